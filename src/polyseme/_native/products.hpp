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

// sum_w x B_w of one row (width numbers, float64). Sums of up to 1024 terms are of type T, and the sums of these are
// float64. `part` has width numbers.
template <class Index, class T>
class RowProducts {
  public:
    RowProducts(const Counts<Index, T>& counts, const T* B, int width, Isa isa)
        : accumulate_(row_accumulator(row_table<T>(isa, width), counts.indices)), counts_(counts), B_(B), width_(width),
          nonzeros_(counts.indptr[counts.rows]) {}

    // The same as numbers of type T. `part` and `total` have width numbers.
    void narrow(int64_t row, T* part, double* total, T* out) const {
        const int64_t begin = counts_.indptr[row], n = counts_.indptr[row + 1] - begin;
        if (n <= most) {  // one sum
            std::fill(out, out + width_, T(0));
            accumulate_(B_, counts_.indices + begin, n, nonzeros_ - begin, width_, counts_.values + begin, out);
        } else {
            (*this)(row, part, total);
            for (int k = 0; k < width_; ++k) out[k] = static_cast<T>(total[k]);
        }
    }

    void operator()(int64_t row, T* part, double* total) const {
        const int64_t end = counts_.indptr[row + 1];
        int64_t begin = counts_.indptr[row];
        std::fill(total, total + width_, 0.0);
        for (; begin < end; begin += most) {
            std::fill(part, part + width_, T(0));
            accumulate_(B_, counts_.indices + begin, std::min(most, end - begin), nonzeros_ - begin, width_,
                        counts_.values + begin, part);
            for (int k = 0; k < width_; ++k) total[k] += static_cast<double>(part[k]);
        }
    }

  private:
    static constexpr int64_t most = 1024;

    decltype(row_accumulator(RowTable<T>{}, static_cast<const Index*>(nullptr))) accumulate_;
    Counts<Index, T> counts_;
    const T* B_;
    int width_;
    int64_t nonzeros_;
};

// out_d = sum_w x B_w (rows x width, float64)
template <class Index, class T>
void multiply(const Counts<Index, T>& counts, const T* B, int width, double* out, int n_threads, Isa isa) {
    const RowProducts<Index, T> products(counts, B, width, isa);
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(counts.rows, 256));
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        std::vector<T> part(static_cast<std::size_t>(width));
        for (int64_t d = cut[static_cast<std::size_t>(piece)]; d < cut[static_cast<std::size_t>(piece + 1)]; ++d)
            products(d, part.data(), out + d * width);
    });
}

}  // namespace polyseme
