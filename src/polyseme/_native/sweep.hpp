// The kernel: one pass over the non-zeros by row, and one by word.
//
// With operands A (rows x width) and B (words x width), for every non-zero x of row d and word w:
//     q = A_d . B_w,   r = x / q
//     row_sums_d  = sum_w r B_w
//     word_sums_w = sum_d r A_d
//     logs_d      = sum_w x log q
// The pass by word is the pass by row over the transpose, and computes q again. A_d has to be read for the sum anyway,
// and a second product with it costs less than storing r, one number per non-zero, and gathering it in the order of the
// words. Every sum is computed by one thread, in registers and in a fixed order. Results therefore do not depend on the
// number of threads, no thread needs a buffer of words x width, and no memory is written in random order.
#pragma once
#include <vector>

#include "counts.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

constexpr int64_t kTileSize = int64_t{8} << 20;  // bytes of an operand that stay in the last-level cache
constexpr int64_t kTiledBytes = 2 * kTileSize;   // larger operands are processed in tiles
constexpr int64_t kPieces = 256;                 // pieces of work for the threads; results do not depend on it

inline int64_t piece_count(int64_t rows) { return std::max<int64_t>(1, std::min<int64_t>(rows, kPieces)); }

template <class T>
auto range_sweeper(const RowTable<T>& table, const int32_t*) {
    return table.sweep_range;
}

template <class T>
auto range_sweeper(const RowTable<T>& table, const int64_t*) {
    return table.sweep_range_64;
}

// Computes row_sums (rows x width) and logs (rows). Either may be null.
template <class Index, class T>
void sweep_rows(const Counts<Index, T>& counts, const T* A, const T* B, int width, T* row_sums, double* logs,
                int n_threads, Isa isa) {
    const auto sweep_range = range_sweeper(row_table<T>(isa, width), counts.indices);
    const int64_t pieces = piece_count(counts.rows), nonzeros = counts.indptr[counts.rows];
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        for (int64_t d = cut[static_cast<std::size_t>(piece)]; d < cut[static_cast<std::size_t>(piece + 1)]; ++d) {
            const int64_t begin = counts.indptr[d];
            const RowRange<T, Index> range{A + d * width,
                                           B,
                                           counts.indices + begin,
                                           counts.values + begin,
                                           counts.indptr[d + 1] - begin,
                                           nonzeros - begin,
                                           row_sums ? row_sums + d * width : nullptr,
                                           logs ? logs + d : nullptr};
            if (range.row_sum) std::fill(range.row_sum, range.row_sum + width, T(0));
            if (range.log) *range.log = 0;
            sweep_range(range, width);
        }
    });
}

// Number of tiles of documents that the pass by word processes one after the other, so that operands, which are read in
// random order, stay in the last-level cache. Every tile reads and writes word_sums once more, so it needs enough
// non-zeros per word to pay off. The number depends only on the sizes, so that results do not depend on the number of
// threads.
template <class Index, class T>
int64_t tile_count(const Counts<Index, T>& by_word, int width) {
    constexpr int64_t min_nonzeros_per_word = 16;
    const int64_t bytes = by_word.columns * width * static_cast<int64_t>(sizeof(T));
    if (bytes <= kTiledBytes) return 1;
    const int64_t worthwhile =
        by_word.indptr[by_word.rows] / (min_nonzeros_per_word * std::max<int64_t>(1, by_word.rows));
    return std::max<int64_t>(1, std::min(bytes / kTileSize, worthwhile));
}

// Computes word_sums (words x width, float64) from the counts by word. Sums of up to 1024 terms are of type T, and the
// sums of these are float64.
template <class Index, class T>
void sweep_words(const Counts<Index, T>& by_word, const T* A, const T* B, int width, double* word_sums, int n_threads,
                 Isa isa) {
    const auto sweep_range = range_sweeper(row_table<T>(isa, width), by_word.indices);
    const int64_t pieces = piece_count(by_word.rows), nonzeros = by_word.indptr[by_word.rows];
    const std::vector<int64_t> cut = cut_rows(by_word.indptr, by_word.rows, pieces);
    const int64_t tiles = tile_count(by_word, width);
    std::vector<Index> begin(by_word.indptr, by_word.indptr + by_word.rows);  // first non-zero of each word in the tile
    constexpr int64_t most = 1024;
    for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t past = by_word.columns * (tile + 1) / tiles;  // the first document after the tile
        for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
            std::vector<T> part(static_cast<std::size_t>(width));
            for (int64_t w = cut[static_cast<std::size_t>(piece)]; w < cut[static_cast<std::size_t>(piece + 1)]; ++w) {
                double* total = word_sums + w * width;
                if (tile == 0) std::fill(total, total + width, 0.0);
                int64_t j = begin[static_cast<std::size_t>(w)], end = by_word.indptr[w + 1];
                if (tile + 1 < tiles)
                    end = std::lower_bound(by_word.indices + j, by_word.indices + end, past) - by_word.indices;
                begin[static_cast<std::size_t>(w)] = static_cast<Index>(end);
                const int64_t known = tiles == 1 ? nonzeros : end;
                for (; j < end; j += most) {
                    std::fill(part.begin(), part.end(), T(0));
                    const RowRange<T, Index> range{
                        B + w * width,           A,         by_word.indices + j, by_word.values + j,
                        std::min(end - j, most), known - j, part.data(),         nullptr};
                    sweep_range(range, width);
                    for (int k = 0; k < width; ++k) total[k] += static_cast<double>(part[static_cast<std::size_t>(k)]);
                }
            }
        });
    }
}

}  // namespace polyseme
