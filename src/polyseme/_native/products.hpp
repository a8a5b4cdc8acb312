// Products of operands with operands and with counts.
#pragma once
#include <algorithm>
#include <vector>

#include "counts.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

// q = A_d . B_w of every non-zero, in the order of the counts
template <class Index, class T>
void products(const Counts<Index, T>& counts, const T* A, const T* B, int width, T* q, int n_threads, Isa isa) {
    const auto dots = row_table<T>(isa, width).dots;
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(counts.rows, 256));
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        std::vector<int64_t> offset;
        for (int64_t d = cut[static_cast<std::size_t>(piece)]; d < cut[static_cast<std::size_t>(piece + 1)]; ++d) {
            const int64_t begin = counts.indptr[d], n = counts.indptr[d + 1] - begin;
            offset.resize(static_cast<std::size_t>(n));
            for (int64_t j = 0; j < n; ++j)
                offset[static_cast<std::size_t>(j)] = static_cast<int64_t>(counts.indices[begin + j]) * width;
            dots(A + d * width, B, offset.data(), n, width, q + begin);
        }
    });
}

template <class T>
auto row_accumulator(const RowTable<T>& table, const int32_t*) {
    return table.accumulate_rows;
}

template <class T>
auto row_accumulator(const RowTable<T>& table, const int64_t*) {
    return table.accumulate_rows_64;
}

// out_d = sum_w x B_w (rows x width, float64). Sums of up to 1024 terms are of type T, and the sums of these are float64.
template <class Index, class T>
void multiply(const Counts<Index, T>& counts, const T* B, int width, double* out, int n_threads, Isa isa) {
    const auto accumulate = row_accumulator(row_table<T>(isa, width), counts.indices);
    constexpr int64_t most = 1024;
    const int64_t nonzeros = counts.indptr[counts.rows];
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(counts.rows, 256));
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        std::vector<T> part(static_cast<std::size_t>(width));
        for (int64_t d = cut[static_cast<std::size_t>(piece)]; d < cut[static_cast<std::size_t>(piece + 1)]; ++d) {
            double* const total = out + d * width;
            std::fill(total, total + width, 0.0);
            for (int64_t begin = counts.indptr[d]; begin < counts.indptr[d + 1]; begin += most) {
                const int64_t n = std::min<int64_t>(most, counts.indptr[d + 1] - begin);
                std::fill(part.begin(), part.end(), T(0));
                accumulate(B, counts.indices + begin, n, nonzeros - begin, width, counts.values + begin, part.data());
                for (int k = 0; k < width; ++k) total[k] += static_cast<double>(part[static_cast<std::size_t>(k)]);
            }
        }
    });
}

}  // namespace polyseme
