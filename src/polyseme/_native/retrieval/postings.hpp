// Posting lists: for each word the documents that contain it, in increasing order, with its counts and impacts.
//
// The impact of a word in a document is x / (x + penalty of the document), the part of BM25 that does not depend on the
// query. Its product with the weight of a query word is a summand of the score.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../counts.hpp"

namespace polyseme {

// Adds the number of entries of each word to `sizes`. Returns false if a column is not a word. Columns of a row need not
// be sorted, and may occur several times.
template <class Index, class T>
bool count_entries(const Counts<Index, T>& counts, int64_t* sizes) {
    for (int64_t i = counts.indptr[0]; i < counts.indptr[counts.rows]; ++i) {
        const int64_t word = counts.indices[i];
        if (word < 0 || word >= counts.columns) return false;
        ++sizes[word];
    }
    return true;
}

// Writes the entries of consecutive documents, from document `first` on, to their lists. `ends` are the current ends of
// the lists. Entries of the same word and document are added up. A list must have room for all entries.
template <class Index, class T>
void append_entries(const Counts<Index, T>& counts, int32_t first, const int64_t* starts, int64_t* ends,
                    int32_t* documents, float* values) {
    for (int64_t row = 0; row < counts.rows; ++row) {
        const auto document = static_cast<int32_t>(first + row);
        for (int64_t i = counts.indptr[row]; i < counts.indptr[row + 1]; ++i) {
            const auto value = static_cast<float>(counts.values[i]);
            if (value == 0) continue;
            const int64_t word = counts.indices[i];
            const int64_t end = ends[word];
            if (end > starts[word] && documents[end - 1] == document) {
                values[end - 1] += value;
            } else {
                documents[end] = document;
                values[end] = value;
                ends[word] = end + 1;
            }
        }
    }
}

// Appends lists of consecutive documents, from document `first` on, to the lists of the words from `word` on. `indptr`,
// `indices` and `added` have the lists of all words, with documents that are counted from zero.
inline void append_lists(const int32_t* indptr, const int32_t* indices, const float* added, int64_t word, int64_t n_words,
                         int32_t first, int64_t* ends, int32_t* documents, float* values) {
    for (int64_t i = 0; i < n_words; ++i) {
        for (int64_t j = indptr[word + i]; j < indptr[word + i + 1]; ++j) {
            documents[ends[i]] = first + indices[j];
            values[ends[i]++] = added[j];
        }
    }
}

// Moves lists to the left to remove unused room, so that each one begins where the previous one ends. Returns their
// total length; `starts` gets the new starts.
inline int64_t close_gaps(int64_t n_words, int64_t* starts, const int64_t* ends, int32_t* documents, float* values) {
    int64_t place = 0;
    for (int64_t word = 0; word < n_words; ++word) {
        const int64_t start = starts[word], size = ends[word] - start;
        if (place != start) {
            std::copy(documents + start, documents + start + size, documents + place);
            std::copy(values + start, values + start + size, values + place);
        }
        starts[word] = place;
        place += size;
    }
    starts[n_words] = place;
    return place;
}

// Computes the impacts of entries. Returns false if a document has no penalty.
template <class T>
bool compute_impacts(const int32_t* documents, const T* values, int64_t n, const double* penalties, int64_t n_docs,
                     float* impacts) {
    for (int64_t i = 0; i < n; ++i) {
        const int64_t document = documents[i];
        if (document < 0 || document >= n_docs) return false;
        const double x = static_cast<double>(values[i]);
        impacts[i] = static_cast<float>(x / (x + penalties[document]));
    }
    return true;
}

}  // namespace polyseme
