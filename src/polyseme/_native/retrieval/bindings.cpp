// Python bindings of the posting lists: their construction, and the best documents for a query.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "postings.hpp"
#include "ranking.hpp"
#include "vectors.hpp"

namespace nb = nanobind;
using namespace polyseme;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Mask = std::optional<In<uint8_t>>;
template <class T>
using Numpy = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using Ranked = std::pair<Numpy<int32_t>, Numpy<float>>;
using CombinedParts = std::tuple<Numpy<int32_t>, Numpy<double>, Numpy<double>>;
using CombinedRanking = std::tuple<Numpy<int32_t>, Numpy<double>, Numpy<double>, Numpy<double>>;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class T>
Numpy<T> to_numpy(std::vector<T>&& values) {
    auto* owned = new std::vector<T>(std::move(values));
    const nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    return {owned->data(), {owned->size()}, owner};
}

Ranked to_ranked(Best& best) {
    const std::vector<Best::Found> found = best.sorted();
    std::vector<int32_t> rows;
    std::vector<float> scores;
    rows.reserve(found.size());
    scores.reserve(found.size());
    for (const Best::Found& each : found) {
        rows.push_back(each.document);
        scores.push_back(each.score);
    }
    return {to_numpy(std::move(rows)), to_numpy(std::move(scores))};
}

CombinedParts to_parts(const std::vector<Combined>& found) {
    std::vector<int32_t> rows;
    std::vector<double> term, latent;
    for (const Combined& each : found) {
        rows.push_back(each.document);
        term.push_back(each.term);
        latent.push_back(each.latent);
    }
    return {to_numpy(std::move(rows)), to_numpy(std::move(term)), to_numpy(std::move(latent))};
}

std::vector<int32_t> to_vector(const In<int32_t>& rows) { return {rows.data(), rows.data() + rows.shape(0)}; }

const uint8_t* mask_of(const Mask& allowed, std::size_t n_docs) {
    require(!allowed || allowed->shape(0) == n_docs, "allowed must have a number for each document");
    return allowed ? allowed->data() : nullptr;
}

std::vector<QueryList> lists_of(const In<int64_t>& indptr, const In<int32_t>& documents, const In<float>& impacts,
                                const In<double>& rarity, const In<int32_t>& words, const In<double>& values,
                                float bonus) {
    const auto n_words = static_cast<int64_t>(indptr.shape(0)) - 1;
    const auto size = static_cast<int64_t>(documents.shape(0));
    require(impacts.shape(0) == documents.shape(0) && values.shape(0) == words.shape(0) &&
                rarity.shape(0) + 1 == indptr.shape(0),
            "the arrays of the posting lists do not fit together");
    std::vector<QueryList> lists;
    lists.reserve(words.shape(0));
    for (std::size_t i = 0; i < words.shape(0); ++i) {
        const int64_t word = words.data()[i];
        require(0 <= word && word < n_words, "a word has no list");
        const int64_t start = indptr.data()[word], end = indptr.data()[word + 1];
        require(0 <= start && start <= end && end <= size, "a list is outside its array");
        if (start == end) continue;  // a word that does not occur is ignored
        const auto weight = static_cast<float>(values.data()[i] * rarity.data()[word]);
        lists.push_back({documents.data() + start, impacts.data() + start, end - start, weight, weight * bonus});
    }
    return lists;
}

template <class Index, class T>
Counts<Index, T> counts_of(const In<Index>& indptr, const In<Index>& indices, const In<T>& values,
                           std::size_t n_words) {
    require(indptr.shape(0) > 0 && indices.shape(0) == values.shape(0), "the arrays of counts do not fit together");
    const auto rows = static_cast<int64_t>(indptr.shape(0)) - 1;
    const Index* starts = indptr.data();
    require(starts[0] == 0 && static_cast<std::size_t>(starts[rows]) == indices.shape(0), "indptr does not span the indices");
    for (int64_t row = 0; row < rows; ++row) require(starts[row] <= starts[row + 1], "indptr decreases");
    return {starts, indices.data(), values.data(), rows, static_cast<int64_t>(n_words)};
}

template <class Index, class T>
void bind_counts(nb::module_& module) {
    module.def(
        "count_entries",
        [](In<Index> indptr, In<Index> indices, In<T> values, Out<int64_t> sizes) {
            const auto counts = counts_of<Index, T>(indptr, indices, values, sizes.shape(0));
            const nb::gil_scoped_release released;
            require(count_entries(counts, sizes.data()), "a column is outside the vocabulary");
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("sizes").noconvert());
    module.def(
        "append_entries",
        [](In<Index> indptr, In<Index> indices, In<T> values, int32_t first, In<int64_t> starts, Out<int64_t> ends,
           Out<int32_t> documents, Out<float> lists) {
            const std::size_t n_words = ends.shape(0);
            const auto counts = counts_of<Index, T>(indptr, indices, values, n_words);
            require(starts.shape(0) == n_words + 1 && documents.shape(0) == lists.shape(0),
                    "the arrays of the lists do not fit together");
            const nb::gil_scoped_release released;
            // The room that is left in each list must be enough for the entries of these documents.
            std::vector<int64_t> needed(ends.data(), ends.data() + n_words);
            require(count_entries(counts, needed.data()), "a column is outside the vocabulary");
            for (std::size_t word = 0; word < n_words; ++word)
                require(0 <= starts.data()[word] && starts.data()[word] <= ends.data()[word] &&
                            needed[word] <= starts.data()[word + 1] &&
                            static_cast<std::size_t>(starts.data()[word + 1]) <= documents.shape(0),
                        "a list has no room");
            append_entries(counts, first, starts.data(), ends.data(), documents.data(), lists.data());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(), nb::arg("first"),
        nb::arg("starts").noconvert(), nb::arg("ends").noconvert(), nb::arg("documents").noconvert(),
        nb::arg("lists").noconvert());
}

}  // namespace

NB_MODULE(_postings, module) {
    module.doc() = "Posting lists, and the best documents for a query.";
    bind_counts<int32_t, float>(module);
    bind_counts<int32_t, double>(module);
    bind_counts<int64_t, float>(module);
    bind_counts<int64_t, double>(module);
    module.def(
        "append_lists",
        [](In<int32_t> indptr, In<int32_t> indices, In<float> added, int64_t word, int32_t first, In<int64_t> starts,
           Out<int64_t> ends, Out<int32_t> documents, Out<float> values) {
            const auto n_words = static_cast<int64_t>(ends.shape(0));
            require(0 <= word && static_cast<std::size_t>(word + n_words) < indptr.shape(0) &&
                        starts.shape(0) == ends.shape(0) + 1 && indices.shape(0) == added.shape(0) &&
                        documents.shape(0) == values.shape(0),
                    "the arrays of the lists do not fit together");
            const int32_t* bounds = indptr.data() + word;
            for (int64_t i = 0; i < n_words; ++i) {
                const int64_t size = static_cast<int64_t>(bounds[i + 1]) - bounds[i], end = ends.data()[i];
                require(0 <= bounds[i] && size >= 0 && static_cast<std::size_t>(bounds[i + 1]) <= indices.shape(0),
                        "a list is outside its array");
                require(0 <= end && end + size <= starts.data()[i + 1] &&
                            static_cast<std::size_t>(starts.data()[i + 1]) <= documents.shape(0),
                        "a list has no room");
            }
            const nb::gil_scoped_release released;
            append_lists(indptr.data(), indices.data(), added.data(), word, n_words, first, ends.data(),
                         documents.data(), values.data());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("added").noconvert(), nb::arg("word"),
        nb::arg("first"), nb::arg("starts").noconvert(), nb::arg("ends").noconvert(),
        nb::arg("documents").noconvert(), nb::arg("values").noconvert());
    module.def(
        "close_gaps",
        [](Out<int64_t> starts, In<int64_t> ends, Out<int32_t> documents, Out<float> lists) {
            require(starts.shape(0) == ends.shape(0) + 1 && documents.shape(0) == lists.shape(0),
                    "the arrays of the lists do not fit together");
            int64_t before = 0;
            for (std::size_t word = 0; word < ends.shape(0); ++word) {
                require(before <= starts.data()[word] && starts.data()[word] <= ends.data()[word],
                        "a list begins before the end of another");
                before = ends.data()[word];
            }
            require(static_cast<std::size_t>(before) <= documents.shape(0), "a list is outside its array");
            const nb::gil_scoped_release released;
            return close_gaps(static_cast<int64_t>(ends.shape(0)), starts.data(), ends.data(), documents.data(),
                              lists.data());
        },
        nb::arg("starts").noconvert(), nb::arg("ends").noconvert(), nb::arg("documents").noconvert(),
        nb::arg("lists").noconvert());
    module.def(
        "compute_impacts",
        [](In<int32_t> documents, In<float> values, In<double> penalties, Out<float> impacts) {
            require(values.shape(0) == documents.shape(0) && impacts.shape(0) == documents.shape(0),
                    "the arrays of the lists do not fit together");
            const nb::gil_scoped_release released;
            require(compute_impacts(documents.data(), values.data(), static_cast<int64_t>(documents.shape(0)),
                                    penalties.data(), static_cast<int64_t>(penalties.shape(0)), impacts.data()),
                    "a document does not exist");
        },
        nb::arg("documents").noconvert(), nb::arg("values").noconvert(), nb::arg("penalties").noconvert(),
        nb::arg("impacts").noconvert());
    module.def(
        "rank",
        [](In<int64_t> indptr, In<int32_t> documents, In<float> impacts, In<double> rarity, In<int32_t> words,
           In<double> values, float bonus, int64_t n_docs, std::size_t k, Mask allowed) -> Ranked {
            require(k > 0 && 0 <= n_docs && n_docs <= INT32_MAX, "k or the number of documents is out of range");
            const std::vector<QueryList> lists = lists_of(indptr, documents, impacts, rarity, words, values, bonus);
            const uint8_t* mask = mask_of(allowed, static_cast<std::size_t>(n_docs));
            Best best(k);
            {
                const nb::gil_scoped_release released;
                require(rank_lists(lists, n_docs, mask, best), "the documents of a list do not increase");
            }
            return to_ranked(best);
        },
        nb::arg("indptr").noconvert(), nb::arg("documents").noconvert(), nb::arg("impacts").noconvert(),
        nb::arg("rarity").noconvert(), nb::arg("words").noconvert(), nb::arg("values").noconvert(), nb::arg("bonus"),
        nb::arg("n_docs"), nb::arg("k"), nb::arg("allowed").noconvert() = nb::none());
    module.def(
        "combine",
        [](In<int64_t> indptr, In<int32_t> documents, In<float> impacts, In<double> rarity, In<int32_t> words,
           In<double> values, double share, In<int32_t> candidates, In<float> sums, bool complete, In<int32_t> others,
           In<int32_t> known, In2<float> units, In<float> topics, std::size_t k) -> CombinedParts {
            const std::size_t n_topics = units.shape(1);
            const UnitRows rows{units.data(), known.data(), static_cast<int64_t>(known.shape(0)),
                                static_cast<int64_t>(n_topics)};
            const auto is_known = [&](int32_t row) {
                return std::binary_search(known.data(), known.data() + known.shape(0), row);
            };
            require(topics.shape(0) == n_topics && known.shape(0) == units.shape(0) && k > 0 &&
                        sums.shape(0) <= candidates.shape(0) &&
                        std::is_sorted(known.data(), known.data() + known.shape(0)) &&
                        std::all_of(candidates.data(), candidates.data() + candidates.shape(0), is_known),
                    "the arrays of combine do not fit together");
            const std::vector<QueryList> lists = lists_of(indptr, documents, impacts, rarity, words, values, 0);
            std::vector<Combined> found;
            {
                const nb::gil_scoped_release released;
                std::vector<int32_t> possible = to_vector(candidates);
                keep_possible(lists, sums.data(), sums.shape(0), complete, rows, topics.data(), share, k, possible);
                found = combine(lists, std::move(possible), to_vector(others), rows, topics.data(), share, k);
            }
            return to_parts(found);
        },
        nb::arg("indptr").noconvert(), nb::arg("documents").noconvert(), nb::arg("impacts").noconvert(),
        nb::arg("rarity").noconvert(), nb::arg("words").noconvert(), nb::arg("values").noconvert(), nb::arg("share"),
        nb::arg("candidates").noconvert(), nb::arg("sums").noconvert(), nb::arg("complete"),
        nb::arg("others").noconvert(), nb::arg("known").noconvert(), nb::arg("units").noconvert(),
        nb::arg("topics").noconvert(), nb::arg("k"));
    module.def(
        "rank_combined",
        [](In<int64_t> indptr, In<int32_t> documents, In<float> impacts, In<double> rarity, In<int32_t> words,
           In<double> values, In2<float> units, In2<int32_t> typical, std::optional<In<double>> topics, double share,
           std::size_t feedback, std::size_t pool, std::size_t leading, std::size_t k) -> CombinedRanking {
            const std::size_t n_docs = units.shape(0), n_topics = units.shape(1);
            require(typical.shape(0) == n_topics && (!topics || topics->shape(0) == n_topics) && k > 0 && pool > 0 &&
                        n_docs <= INT32_MAX,
                    "the arrays of rank_combined do not fit together");
            const auto bonus = static_cast<float>(share);
            const std::vector<QueryList> lists = lists_of(indptr, documents, impacts, rarity, words, values, bonus);
            const TopicFeedback settings{units.data(), typical.data(), static_cast<int64_t>(n_docs),
                                         static_cast<int64_t>(n_topics), static_cast<int64_t>(typical.shape(1)), share,
                                         feedback, pool, leading};
            std::vector<double> query;
            if (topics) query.assign(topics->data(), topics->data() + n_topics);
            std::vector<Combined> found;
            {
                const nb::gil_scoped_release released;
                require(rank_combined(lists, settings, k, query, found), "the documents of a list do not increase");
            }
            auto [rows, term, latent] = to_parts(found);
            return {rows, term, latent, to_numpy(std::move(query))};
        },
        nb::arg("indptr").noconvert(), nb::arg("documents").noconvert(), nb::arg("impacts").noconvert(),
        nb::arg("rarity").noconvert(), nb::arg("words").noconvert(), nb::arg("values").noconvert(),
        nb::arg("units").noconvert(), nb::arg("typical").noconvert(), nb::arg("topics").noconvert().none(),
        nb::arg("share"), nb::arg("feedback"), nb::arg("pool"), nb::arg("leading"), nb::arg("k"));
    module.def(
        "best_rows",
        [](In<float> scores, std::size_t k, Mask allowed) -> Ranked {
            require(k > 0 && scores.shape(0) <= INT32_MAX, "k or the number of documents is out of range");
            const uint8_t* mask = mask_of(allowed, scores.shape(0));
            Best best(k);
            {
                const nb::gil_scoped_release released;
                add_best(scores.data(), static_cast<int64_t>(scores.shape(0)), 0, mask, best);
            }
            return to_ranked(best);
        },
        nb::arg("scores").noconvert(), nb::arg("k"), nb::arg("allowed").noconvert() = nb::none());
    module.def(
        "encode_vectors",
        [](In2<float> units, Out2<int8_t> codes, Out<float> scales, Out<float> errors) {
            const std::size_t size = units.shape(0), n = units.shape(1), width = codes.shape(1);
            require(codes.shape(0) == n && scales.shape(0) == n && errors.shape(0) == n && width >= size &&
                        width % kCodeStep == 0,
                    "the arrays of the vectors do not fit together");
            const nb::gil_scoped_release released;
            encode_vectors(units.data(), static_cast<int64_t>(size), static_cast<int64_t>(n),
                           static_cast<int64_t>(width), codes.data(), scales.data(), errors.data());
        },
        nb::arg("units").noconvert(), nb::arg("codes").noconvert(), nb::arg("scales").noconvert(),
        nb::arg("errors").noconvert());
    module.def(
        "nearest_vectors",
        [](In2<int8_t> codes, In<float> scales, In<float> errors, In2<float> units, In<float> query, std::size_t k,
           Mask allowed) -> Ranked {
            const std::size_t size = units.shape(0), n = units.shape(1), width = codes.shape(1);
            require(codes.shape(0) == n && scales.shape(0) == n && errors.shape(0) == n && query.shape(0) == size &&
                        width >= size && width % kCodeStep == 0 && width <= kMostCodes,
                    "the arrays of the vectors do not fit together");
            require(k > 0 && n <= INT32_MAX, "k or the number of documents is out of range");
            const uint8_t* mask = mask_of(allowed, n);
            Best best(k);
            {
                const nb::gil_scoped_release released;
                nearest_vectors(
                    {codes.data(), scales.data(), errors.data(), static_cast<int64_t>(n), static_cast<int64_t>(width)},
                    units.data(), query.data(), static_cast<int64_t>(size), mask, k, best);
            }
            return to_ranked(best);
        },
        nb::arg("codes").noconvert(), nb::arg("scales").noconvert(), nb::arg("errors").noconvert(),
        nb::arg("units").noconvert(), nb::arg("query").noconvert(), nb::arg("k"),
        nb::arg("allowed").noconvert() = nb::none());
}
