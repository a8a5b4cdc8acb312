// Python bindings of logistic_normal.hpp.
#include "arrays.hpp"
#include "logistic_normal.hpp"

namespace polyseme {
namespace {

// Whether the posteriors of `rows` documents and the prior have the same number of topics, and operands their width.
template <class Mean>
bool fit_together(const Mean& mean, const Mean& variance, const In1<double>& prior_mean, const In2<double>& precision,
                  std::size_t rows, std::size_t columns) {
    const std::size_t topics = prior_mean.shape(0);
    return topics > 0 && has_shape(mean, {rows, topics}) && has_shape(variance, {rows, topics}) &&
           has_shape(precision, {topics, topics}) && columns == (topics + 15) / 16 * 16;
}

template <class T>
void bind_documents(nb::module_& module) {
    module.def(
        "normal_operands",
        [](In2<double> mean, In2<double> variance, In1<double> totals, In1<double> prior_mean, In2<double> precision,
           double log_det, Out2<T> A, Out1<double> terms, int n_threads, std::optional<nb::str> isa) {
            const std::size_t rows = A.shape(0);
            require(fit_together(mean, variance, prior_mean, precision, rows, A.shape(1)) &&
                        has_shape(totals, {rows}) && has_shape(terms, {rows}),
                    "the arrays of normal_operands do not fit together");
            const Isa chosen = isa_from(isa);
            const int topics = columns_of(mean), threads = threads_for_each(n_threads, A, topics + 64);
            const nb::gil_scoped_release released;
            const PaddedPrior prior(prior_mean.data(), precision.data(), log_det, topics);
            normal_operands<T>({mean.data(), variance.data()}, prior.prior, totals.data(), static_cast<int64_t>(rows),
                               A.data(), terms.data(), threads, chosen);
        },
        nb::arg("mean").noconvert(), nb::arg("variance").noconvert(), nb::arg("totals").noconvert(),
        nb::arg("prior_mean").noconvert(), nb::arg("precision").noconvert(), nb::arg("log_det"),
        nb::arg("A").noconvert(), nb::arg("terms").noconvert(), nb::arg("n_threads"), nb::arg("isa") = nb::none());
    module.def(
        "improve_normals",
        [](In2<double> mean, In2<double> variance, In2<T> A, In2<T> row_sums, In1<double> totals,
           In1<double> prior_mean, In2<double> precision, Out2<double> next_mean, Out2<double> next_variance,
           int n_threads, std::optional<nb::str> isa) {
            const std::size_t rows = A.shape(0), columns = A.shape(1);
            require(fit_together(mean, variance, prior_mean, precision, rows, columns) &&
                        fit_together(next_mean, next_variance, prior_mean, precision, rows, columns) &&
                        has_shape(totals, {rows}) && has_shape(row_sums, {rows, columns}),
                    "the arrays of improve_normals do not fit together");
            const Isa chosen = isa_from(isa);
            const int topics = columns_of(mean), threads = threads_for_each(n_threads, A, 8 * topics + 512);
            const nb::gil_scoped_release released;
            const PaddedPrior prior(prior_mean.data(), precision.data(), 0, topics);
            improve_normals<T>({mean.data(), variance.data()}, {next_mean.data(), next_variance.data()}, prior.prior,
                               A.data(), row_sums.data(), totals.data(), static_cast<int64_t>(rows), threads, chosen);
        },
        nb::arg("mean").noconvert(), nb::arg("variance").noconvert(), nb::arg("A").noconvert(),
        nb::arg("row_sums").noconvert(), nb::arg("totals").noconvert(), nb::arg("prior_mean").noconvert(),
        nb::arg("precision").noconvert(), nb::arg("next_mean").noconvert(), nb::arg("next_variance").noconvert(),
        nb::arg("n_threads"), nb::arg("isa") = nb::none());
}

template <class Index, class T>
void bind_folding(nb::module_& module) {
    module.def(
        "fold_normals",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, Out2<double> mean, Out2<double> variance,
           In1<double> prior_mean, In2<double> precision, int steps, double tol, int n_threads,
           std::optional<nb::str> isa) {
            const std::size_t rows = mean.shape(0);
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, rows, B.shape(0));
            require(fit_together(mean, variance, prior_mean, precision, rows, B.shape(1)),
                    "the arrays of fold_normals do not fit together");
            const Isa chosen = isa_from(isa);
            const int topics = columns_of(mean), threads = threads_for_each(n_threads, mean, 8 * topics + 512);
            const nb::gil_scoped_release released;
            const PaddedPrior prior(prior_mean.data(), precision.data(), 0, topics);
            fold_normals<Index, T>(counts, B.data(), {mean.data(), variance.data()}, prior.prior, steps, tol, threads,
                                   chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("mean").noconvert(), nb::arg("variance").noconvert(),
        nb::arg("prior_mean").noconvert(), nb::arg("precision").noconvert(), nb::arg("steps"), nb::arg("tol"),
        nb::arg("n_threads"), nb::arg("isa") = nb::none());
}

}  // namespace

void bind_normal(nb::module_& module) {
    bind_documents<float>(module);
    bind_documents<double>(module);
    bind_folding<int32_t, float>(module);
    bind_folding<int32_t, double>(module);
    bind_folding<int64_t, float>(module);
    bind_folding<int64_t, double>(module);
}

}  // namespace polyseme
