// Python bindings of the map of documents: neighbors by topics and words, steps of t-SNE, spreading of points.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "neighbors.hpp"
#include "repulsion.hpp"
#include "steps.hpp"

namespace nb = nanobind;
using namespace polyseme;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class Array>
int64_t rows_of(const Array& array) {
    return static_cast<int64_t>(array.shape(0));
}

void check_indptr(const In<int64_t>& indptr, int64_t rows, std::size_t size) {
    require(rows_of(indptr) == rows + 1 && indptr.data()[0] == 0, "indptr has the wrong size");
    for (int64_t row = 0; row < rows; ++row) require(indptr.data()[row] <= indptr.data()[row + 1], "indptr decreases");
    require(static_cast<std::size_t>(indptr.data()[rows]) == size, "indptr does not span the indices");
}

void check_indices(const In<int32_t>& indices, int64_t most) {
    require(std::all_of(indices.data(), indices.data() + indices.shape(0),
                        [most](int32_t index) { return 0 <= index && index < most; }),
            "an index is too large");
}

template <class Array>
Point* points_of(const Array& array) {
    require(array.shape(1) == 2, "points have two coordinates");
    return reinterpret_cast<Point*>(array.data());
}

// Rows of documents that are checked once and then used by many calls.
class Rows {
  public:
    Rows(In2<int16_t> codes, In<int64_t> indptr, In<int32_t> indices, In<int16_t> values, In<double> inverse_norms,
         int64_t n_words)
        : codes_(codes), indptr_(indptr), indices_(indices), values_(values), inverse_norms_(inverse_norms),
          n_words_(n_words) {
        require(codes.shape(1) % kRowStep == 0, "the width of the codes is not a multiple of 8");
        require(std::all_of(codes.data(), codes.data() + codes.size(), [](int16_t code) { return code >= 0; }),
                "a code is negative");
        check_indptr(indptr, rows_of(codes), indices.shape(0));
        check_indices(indices, n_words);
        require(values.shape(0) == indices.shape(0) && inverse_norms.shape(0) == codes.shape(0),
                "the arrays of the words do not fit together");
    }
    DocumentRows get() const {
        return {codes_.data(),        rows_of(codes_), static_cast<int64_t>(codes_.shape(1)),
                indptr_.data(),       indices_.data(), values_.data(),
                inverse_norms_.data()};
    }
    int64_t n_words() const { return n_words_; }

  private:
    const In2<int16_t> codes_;
    const In<int64_t> indptr_;
    const In<int32_t> indices_;
    const In<int16_t> values_;
    const In<double> inverse_norms_;
    const int64_t n_words_;
};

}  // namespace

NB_MODULE(_layout, module) {
    module.doc() = "Map of documents: neighbors by topics and words, steps of t-SNE, spreading of points.";
    module.attr("N_NEIGHBORS") = kNeighbors;
    module.attr("N_BEST") = kBest;
    module.attr("ONE") = kOne;
    module.attr("ROW_STEP") = kRowStep;
    nb::class_<Rows>(module, "Rows")
        .def(nb::init<In2<int16_t>, In<int64_t>, In<int32_t>, In<int16_t>, In<double>, int64_t>(),
             nb::arg("codes").noconvert(), nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("inverse_norms").noconvert(), nb::arg("n_words"));
    module.def(
        "encode_rows",
        [](In2<float> weights, Out2<int16_t> codes) {
            require(weights.shape(0) == codes.shape(0) && weights.shape(1) <= codes.shape(1),
                    "the codes do not fit the weights");
            require(std::all_of(weights.data(), weights.data() + weights.size(),
                                [](float weight) { return 0 <= weight && weight < 1e30f; }),
                    "a weight is negative or not finite");
            const nb::gil_scoped_release released;
            encode_rows(weights.data(), rows_of(weights), static_cast<int64_t>(weights.shape(1)),
                        static_cast<int64_t>(codes.shape(1)), codes.data());
        },
        nb::arg("weights").noconvert(), nb::arg("codes").noconvert());
    module.def(
        "find_neighbors",
        [](const Rows& rows, int64_t first, const Rows& candidates, bool are_candidates, In<int64_t> starts,
           int64_t first_code, int16_t least_code, Out2<int32_t> neighbors, int n_threads) {
            const DocumentRows queries = rows.get(), found = candidates.get();
            const int64_t last = first + rows_of(neighbors), groups = rows_of(starts) - 1;
            require(0 <= first && last <= queries.n && neighbors.shape(1) == kNeighbors, "rows are out of range");
            require(queries.width == found.width && rows.n_words() == candidates.n_words(),
                    "the documents do not fit together");
            require(!are_candidates || queries.n == found.n, "the rows are not the candidates");
            require(found.n >= (are_candidates ? 2 : 1), "there are no candidates");
            require(groups >= 1 && first_code >= 0 && first_code + groups <= queries.width,
                    "there are too many groups");
            check_indptr(starts, groups, static_cast<std::size_t>(found.n));
            const nb::gil_scoped_release released;
            find_neighbors(queries, first, last, found, are_candidates, {starts.data(), groups, first_code, least_code},
                           rows.n_words(), neighbors.data(), n_threads);
        },
        nb::arg("rows"), nb::arg("first"), nb::arg("candidates"), nb::arg("are_candidates"),
        nb::arg("starts").noconvert(), nb::arg("first_code"), nb::arg("least_code"), nb::arg("neighbors").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "repel",
        [](In2<float> points, Out2<float> forces, Out<float> potentials, int n_threads) {
            const int64_t n = rows_of(points);
            require(n >= 1 && rows_of(forces) == n && rows_of(potentials) == n, "the arrays do not fit together");
            require(points.shape(1) == 2, "points have two coordinates");
            const auto* const places = reinterpret_cast<const Point*>(points.data());
            require(std::all_of(points.data(), points.data() + points.size(),
                                [](float value) { return -kLargest <= value && value <= kLargest; }),
                    "a point is outside of the plane");
            Point* const out = points_of(forces);
            const nb::gil_scoped_release released;
            return Repulsion(n, n_threads).compute(places, out, potentials.data());
        },
        nb::arg("points").noconvert(), nb::arg("forces").noconvert(), nb::arg("potentials").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "advance",
        [](In<int64_t> indptr, In<int32_t> indices, In<float> weights, float exaggeration, float momentum,
           int64_t steps, Out2<float> points, Out2<float> velocities, int n_threads) {
            const int64_t n = rows_of(points);
            require(n >= 1 && rows_of(velocities) == n && weights.shape(0) == indices.shape(0),
                    "the arrays do not fit together");
            check_indptr(indptr, n, indices.shape(0));
            check_indices(indices, n);
            Point *const places = points_of(points), *const v = points_of(velocities);
            require(std::all_of(points.data(), points.data() + points.size(),
                                [](float value) { return -kLargest <= value && value <= kLargest; }),
                    "a point is outside of the plane");
            const nb::gil_scoped_release released;
            polyseme::advance({indptr.data(), indices.data(), weights.data()}, n, {exaggeration, momentum, steps},
                              places, v, n_threads);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("exaggeration"), nb::arg("momentum"), nb::arg("steps"), nb::arg("points").noconvert(),
        nb::arg("velocities").noconvert(), nb::arg("n_threads"));
    module.def(
        "spread",
        [](Out2<float> points, int64_t first, float distance, int64_t passes, int n_threads) {
            const int64_t n = rows_of(points);
            require(n >= 1 && 0 <= first && first <= n && distance > 0, "there is nothing to spread");
            require(std::all_of(points.data(), points.data() + points.size(),
                                [](float value) { return -1e6f <= value && value <= 1e6f; }),
                    "a point is outside of the plane");
            Point* const places = points_of(points);
            const nb::gil_scoped_release released;
            polyseme::spread(places, n, first, distance, passes, n_threads);
        },
        nb::arg("points").noconvert(), nb::arg("first"), nb::arg("distance"), nb::arg("passes"), nb::arg("n_threads"));
}
