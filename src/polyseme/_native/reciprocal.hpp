// Sums of the Itakura-Saito loss over dense data: with q = A_d . B_w, at least a floor,
//     numerators   x / q^2 times the other factor        denominators   1 / q times the other factor
//     losses       x / q - log(x / q) - 1
// q is computed in tiles that stay in registers, and never stored. The rows of a piece are processed by one thread, and so
// are the columns of a tile, in a fixed order.
#pragma once
#include <algorithm>
#include <vector>

#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

// Data whose columns are padded with zeros, so that whole tiles can be read.
template <class T>
struct DenseProblem {
    const T* x;       // rows x stride
    const T* A;         // rows x K
    const T* weighted;  // rows x K: A times the weights of the rows
    const T* zeros;     // K zeros
    const T* topics;  // K x stride
    const T* floors;  // rows
    int64_t rows, columns, stride;
    int topics_count;

    // Returns the rows from row i on; if there are no more, the last one again with a weight of zero.
    ReciprocalRows<T> rows_from(int64_t i, int64_t column) const {
        ReciprocalRows<T> found{};
        for (int r = 0; r < kMostRows; ++r) {
            const int64_t row = std::min(i + r, rows - 1);
            found.x[r] = x + row * stride + column;
            found.a[r] = A + row * topics_count;
            found.weighted[r] = i + r < rows ? weighted + row * topics_count : zeros;
            found.floor[r] = floors[row];
        }
        found.topics = topics + column;
        found.stride = stride;
        found.columns = columns;
        found.topics_count = topics_count;
        return found;
    }
};

template <class T>
void reciprocal_docs(const DenseProblem<T>& problem, T* numerators, T* denominators, double* losses, int n_threads,
                     Isa isa) {
    const auto function = row_table<T>(isa, 16).reciprocal_docs;
    const int K = problem.topics_count;
    const int64_t pairs = (problem.rows + kDocRows - 1) / kDocRows;
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(pairs, 64));
    constexpr std::size_t most_lanes = 64 / sizeof(T);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        const std::size_t size = static_cast<std::size_t>(K) * kDocRows * most_lanes;
        std::vector<T> n(size), d(size);
        double loss[kDocRows];
        const int64_t begin = pairs * piece / pieces * kDocRows;
        const int64_t end = std::min(pairs * (piece + 1) / pieces * kDocRows, problem.rows);
        for (int64_t i = begin; i < end; i += kDocRows) {
            function(problem.rows_from(i, 0), n.data(), d.data(), loss);
            for (int r = 0; r < kDocRows && i + r < problem.rows; ++r) {
                losses[i + r] = loss[r];
                for (int k = 0; k < K; ++k) {
                    const std::size_t from = static_cast<std::size_t>(k * kDocRows + r);
                    numerators[(i + r) * K + k] = n[from];
                    denominators[(i + r) * K + k] = d[from];
                }
            }
        }
    });
}

// numerators and denominators: K x stride, float64. Sums over 1024 rows are of type T, and the sums of these are float64.
template <class T>
void reciprocal_words(const DenseProblem<T>& problem, double* numerators, double* denominators, int n_threads,
                      Isa isa) {
    const auto function = row_table<T>(isa, 16).reciprocal_words;
    const int K = problem.topics_count;
    constexpr int64_t width = kWordBytes / static_cast<int64_t>(sizeof(T)), most = 1024;
    for_each_piece(problem.stride / width, n_threads, [&](int, int64_t tile) {
        const std::size_t size = static_cast<std::size_t>(K) * static_cast<std::size_t>(width);
        std::vector<T> n(size), d(size);
        const int64_t column = tile * width;
        for (int64_t first = 0; first < problem.rows; first += most) {
            std::fill(n.begin(), n.end(), T(0));
            std::fill(d.begin(), d.end(), T(0));
            for (int64_t i = first; i < std::min(first + most, problem.rows); i += kWordRows)
                function(problem.rows_from(i, column), n.data(), d.data());
            for (int k = 0; k < K; ++k)
                for (int64_t j = 0; j < width; ++j) {
                    const auto from = static_cast<std::size_t>(k * width + j);
                    numerators[k * problem.stride + column + j] += static_cast<double>(n[from]);
                    denominators[k * problem.stride + column + j] += static_cast<double>(d[from]);
                }
        }
    });
}

}  // namespace polyseme
