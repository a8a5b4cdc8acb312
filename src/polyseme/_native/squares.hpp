// Non-negative least squares by coordinate descent, for many rows with the same Gram matrix.
//
// Row i minimizes f'Gf / 2 - p'f over f >= 0, where G = B'B and p = B'x. Along coordinate k the minimum is at
// f_k + g_k / G_kk, or at zero, with g = p - G f, which is kept current. Rows are updated kTogether at a time. A row that
// has stopped is replaced by the next one, so that its result does not depend on the rows beside it.
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
    constexpr int fresh = 16;  // passes after which g is computed again, because it collects rounding errors
    const int topics = settings.topics;
    const auto wide = static_cast<std::size_t>(width);
    std::vector<T> inverse(static_cast<std::size_t>(topics));
    for (int k = 0; k < topics; ++k) {
        const T curvature = G[static_cast<int64_t>(k) * width + k];
        inverse[static_cast<std::size_t>(k)] = curvature > T(0) ? T(1) / curvature : T(0);
    }
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>((rows + kTogether - 1) / kTogether, 256));
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        std::vector<T> gradients(wide * kTogether), idle(wide), minus(static_cast<std::size_t>(topics));
        std::vector<int64_t> offset(static_cast<std::size_t>(topics));
        int64_t next = rows * piece / pieces;
        const int64_t end = rows * (piece + 1) / pieces;
        int64_t row[kTogether];  // -1: none left
        int pass[kTogether];
        T *f[kTogether], *g[kTogether];
        double gain[kTogether];
        const auto refresh = [&](int i) {  // g = p - G f
            const double* const p = P + row[i] * width;
            int64_t many = 0;
            for (int k = 0; k < width; ++k) g[i][k] = static_cast<T>(p[k]);
            for (int k = 0; k < topics; ++k) {
                if (f[i][k] == T(0)) continue;
                offset[static_cast<std::size_t>(many)] = static_cast<int64_t>(k) * width;
                minus[static_cast<std::size_t>(many++)] = -f[i][k];
            }
            table.accumulate(G, offset.data(), many, width, minus.data(), g[i]);
        };
        const auto take = [&](int i) {
            row[i] = next < end ? next++ : -1;
            pass[i] = 0;
            f[i] = row[i] < 0 ? idle.data() : F + row[i] * width;
            if (row[i] >= 0) refresh(i);
        };
        for (int i = 0; i < kTogether; ++i) {
            g[i] = gradients.data() + wide * static_cast<std::size_t>(i);
            take(i);
        }
        const auto any_left = [&] {
            return std::any_of(row, row + kTogether, [](int64_t number) { return number >= 0; });
        };
        while (settings.passes > 0 && any_left()) {
            for (int i = 0; i < kTogether; ++i)
                if (row[i] < 0) std::fill(g[i], g[i] + width, T(0));  // and f = 0: no step
            table.descend(f, g, G, inverse.data(), topics, width, gain);
            for (int i = 0; i < kTogether; ++i) {
                if (row[i] < 0) continue;
                double value = 0;
                const double* const p = P + row[i] * width;
                if (settings.enough > 0)
                    for (int k = 0; k < topics; ++k) value += p[k] * static_cast<double>(f[i][k]);
                if (++pass[i] >= settings.passes || gain[i] <= settings.enough * 0.5 * value)
                    take(i);
                else if (pass[i] % fresh == 0)
                    refresh(i);
            }
        }
    });
}

}  // namespace polyseme
