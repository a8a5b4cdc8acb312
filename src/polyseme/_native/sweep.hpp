// The kernel: one pass over the non-zeros by row, and one by word.
//
// With operands A (rows x width) and B (words x width), for every non-zero x of row d and word w:
//     q = A_d . B_w,   r = x / q
//     row_sums_d  = sum_w r B_w
//     word_sums_w = sum_d weight_d r A_d
//     logs_d      = sum_w x log q
// The pass by row keeps r, one number a non-zero; the pass by word reads it through the transpose's positions. Every sum
// is thus made by one thread, in registers and in a fixed order: threads change nothing, no thread needs a buffer of
// words x width, and nothing is written in random order. (Adding r A_d to the words during the pass by row costs more
// than reading A_d again: half of the time of a sweep went into those writes.)
#pragma once
#include <vector>

#include "counts.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

// The transpose of CSR counts: for each word, the rows that have it and their positions among the non-zeros.
template <class Index>
struct ByWord {
    const Index* indptr;
    const Index* rows;
    const Index* positions;
    int64_t words;
};

constexpr int64_t kPieces = 256;  // how finely the work is handed out; it does not affect results

inline int64_t piece_count(int64_t rows) { return std::max<int64_t>(1, std::min<int64_t>(rows, kPieces)); }

// row_sums (rows x width), r (non-zeros) and logs (rows) may each be null.
template <class Index, class T>
void sweep_rows(const Counts<Index, T>& counts, const T* A, const T* B, int width, T* row_sums, T* r, double* logs, int n_threads,
                Isa isa) {
    const auto sweep_block = row_table<T>(isa, width).sweep_block;
    const int64_t pieces = piece_count(counts.rows);
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        int64_t offset[kBlock];
        for (int64_t d = cut[static_cast<std::size_t>(piece)]; d < cut[static_cast<std::size_t>(piece + 1)]; ++d) {
            RowBlock<T> block{A + d * width, B, offset, nullptr, 0, row_sums ? row_sums + d * width : nullptr, nullptr,
                              logs ? logs + d : nullptr};
            if (block.row_sum) std::fill(block.row_sum, block.row_sum + width, T(0));
            if (block.log) *block.log = 0;
            for (int64_t j = counts.indptr[d], end = counts.indptr[d + 1]; j < end; j += kBlock) {
                block.n = static_cast<int>(std::min<int64_t>(kBlock, end - j));
                block.x = counts.values + j;
                block.r = r ? r + j : nullptr;
                for (int i = 0; i < block.n; ++i) offset[i] = static_cast<int64_t>(counts.indices[j + i]) * width;
                sweep_block(block, width);
            }
        }
    });
}

// word_sums (words x width, float64) from r; weights (rows) may be null. Sums of up to a thousand terms are of type T,
// sums of those are float64.
template <class Index, class T>
void sweep_words(const ByWord<Index>& by_word, const T* A, int width, const T* r, const double* weights, double* word_sums,
                 int n_threads, Isa isa) {
    const auto accumulate = row_table<T>(isa, width).accumulate;
    const int64_t pieces = piece_count(by_word.words);
    const std::vector<int64_t> cut = cut_rows(by_word.indptr, by_word.words, pieces);
    constexpr int64_t most = 1024;
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        std::vector<int64_t> offset(static_cast<std::size_t>(most));
        std::vector<T> ratio(static_cast<std::size_t>(most)), part(static_cast<std::size_t>(width));
        for (int64_t w = cut[static_cast<std::size_t>(piece)]; w < cut[static_cast<std::size_t>(piece + 1)]; ++w) {
            double* total = word_sums + w * width;
            std::fill(total, total + width, 0.0);
            for (int64_t j = by_word.indptr[w], end = by_word.indptr[w + 1]; j < end; j += most) {
                const int n = static_cast<int>(std::min(most, end - j));
                for (int i = 0; i < n; ++i) {
                    const int64_t d = by_word.rows[j + i];
                    offset[static_cast<std::size_t>(i)] = d * width;
                    const T value = r[by_word.positions[j + i]];
                    ratio[static_cast<std::size_t>(i)] = weights ? value * static_cast<T>(weights[d]) : value;
                }
                std::fill(part.begin(), part.end(), T(0));
                accumulate(A, offset.data(), n, width, ratio.data(), part.data());
                for (int k = 0; k < width; ++k) total[k] += static_cast<double>(part[static_cast<std::size_t>(k)]);
            }
        }
    });
}

}  // namespace polyseme
