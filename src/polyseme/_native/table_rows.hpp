// Reading and updating some rows of a table with one row per word (RunningMean in solvers/online.py).
#pragma once
#include <vector>

#include "threads.hpp"

namespace polyseme {

constexpr int64_t kRowsPerPiece = 256;  // rows of one piece of work

// out_i = table[rows_i] * factors, with one factor per column.
template <class T>
void take_rows(const T* table, int width, const int64_t* rows, int64_t n, const T* factors, T* out, int n_threads) {
    for_each_piece((n + kRowsPerPiece - 1) / kRowsPerPiece, n_threads, [&](int, int64_t piece) {
        for (int64_t i = piece * kRowsPerPiece; i < std::min(n, (piece + 1) * kRowsPerPiece); ++i) {
            const T* from = table + rows[i] * width;
            T* to = out + i * width;
            for (int k = 0; k < width; ++k) to[k] = from[k] * factors[k];
        }
    });
}

// table[rows_i] += scale B_i * sums_i in the first `columns`, and totals = sum_i B_i * sums_i, summed in a fixed order.
// No row may occur twice, because threads update rows in parallel.
template <class T>
void add_rows(T* table, int width, const int64_t* rows, int64_t n, const T* B, const double* sums, int columns,
              double scale, double* totals, int n_threads) {
    const int64_t pieces = (n + kRowsPerPiece - 1) / kRowsPerPiece;
    const std::size_t W = static_cast<std::size_t>(width);
    std::vector<double> partial(static_cast<std::size_t>(pieces) * W, 0.0);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        double* mine = partial.data() + static_cast<std::size_t>(piece) * W;
        for (int64_t i = piece * kRowsPerPiece; i < std::min(n, (piece + 1) * kRowsPerPiece); ++i) {
            const T* b = B + i * width;
            const double* from = sums + i * width;
            T* to = table + rows[i] * width;
            for (int k = 0; k < columns; ++k) {
                const double expected = static_cast<double>(b[k]) * from[k];
                mine[k] += expected;
                to[k] += static_cast<T>(scale * expected);
            }
        }
    });
    std::fill(totals, totals + width, 0.0);
    for (int64_t piece = 0; piece < pieces; ++piece)
        for (std::size_t k = 0; k < W; ++k) totals[k] += partial[static_cast<std::size_t>(piece) * W + k];
}

}  // namespace polyseme
