// Non-negative least squares by coordinate descent, for many rows with the same Gram matrix.
//
// Row i minimizes f'Gf / 2 - p'f over f >= 0, where G = B'B and p = B'x. Along coordinate k the minimum is at
// f_k + (p - G f)_k / G_kk, or at zero. kTogether rows are updated at a time, each in its own place of a vector. A row
// that has stopped is replaced by the next one, so that its result does not depend on the rows beside it.
#pragma once
#include <algorithm>
#include <vector>

#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

struct DescentSettings {
    int topics;
    int passes;     // at most
    double enough;  // a row stops when a pass gains at most this share of p'f / 2, which is what f gains over zero
};

// Updates every row of F (rows x width, in place). P is rows x width, G width x width.
template <class T>
void descend(const double* P, const T* G, int64_t rows, int width, const DescentSettings& settings, T* F, int n_threads,
             Isa isa) {
    const RowTable<T> table = row_table<T>(isa, width);
    const int topics = settings.topics;
    std::vector<T> inverse(static_cast<std::size_t>(topics));
    for (int k = 0; k < topics; ++k) {
        const T curvature = G[static_cast<int64_t>(k) * width + k];
        inverse[static_cast<std::size_t>(k)] = curvature > T(0) ? T(1) / curvature : T(0);
    }
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>((rows + kTogether - 1) / kTogether, 256));
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        const auto numbers = static_cast<std::size_t>(topics) * kTogether;
        std::vector<T> f(numbers), p(numbers);
        int64_t next = rows * piece / pieces;
        const int64_t end = rows * (piece + 1) / pieces;
        int64_t row[kTogether];  // -1: none left
        int pass[kTogether];
        T gain[kTogether], value[kTogether];
        const auto at = [](int k, int i) { return static_cast<std::size_t>(k) * kTogether + static_cast<std::size_t>(i); };
        const auto take = [&](int i) {
            row[i] = next < end ? next++ : -1;
            pass[i] = 0;
            const int64_t start = row[i] * width;
            for (int k = 0; k < topics; ++k) {  // zeros do not move
                f[at(k, i)] = row[i] < 0 ? T(0) : F[start + k];
                p[at(k, i)] = row[i] < 0 ? T(0) : static_cast<T>(P[start + k]);
            }
        };
        const auto put = [&](int i) {
            T* const to = F + row[i] * width;
            for (int k = 0; k < topics; ++k) to[k] = f[at(k, i)];
        };
        const auto any_left = [&] {
            return std::any_of(row, row + kTogether, [](int64_t number) { return number >= 0; });
        };
        for (int i = 0; i < kTogether; ++i) take(i);
        while (settings.passes > 0 && any_left()) {
            table.descend(f.data(), p.data(), G, inverse.data(), topics, width, gain, value);
            for (int i = 0; i < kTogether; ++i) {
                if (row[i] < 0) continue;
                const double enough = settings.enough * 0.5 * static_cast<double>(value[i]);
                if (++pass[i] < settings.passes && static_cast<double>(gain[i]) > enough) continue;
                put(i);
                take(i);
            }
        }
    });
}

}  // namespace polyseme
