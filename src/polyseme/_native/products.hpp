// q = A_d . B_w of every non-zero, in the order of the counts.
#pragma once
#include <vector>

#include "counts.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

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

}  // namespace polyseme
