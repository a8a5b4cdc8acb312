// Non-negative least squares by coordinate descent, for many rows with the same Gram matrix.
//
// Row i minimizes f'Gf / 2 - p'f over f >= 0, where G = B'B and p = B'x. Along coordinate k the minimum is at
// f_k + g_k / G_kk, or at zero, with g = p - G f, which is kept current. A step of zero costs nothing.
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
    const auto accumulate = row_table<T>(isa, width).accumulate;
    constexpr int fresh = 16;  // passes after which g is computed again, because it collects rounding errors
    const int topics = settings.topics;
    std::vector<int64_t> offset(static_cast<std::size_t>(topics));
    for (int k = 0; k < topics; ++k) offset[static_cast<std::size_t>(k)] = static_cast<int64_t>(k) * width;
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(rows, 256));
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        std::vector<T> g(static_cast<std::size_t>(width)), minus(static_cast<std::size_t>(topics));
        for (int64_t i = rows * piece / pieces; i < rows * (piece + 1) / pieces; ++i) {
            T* const f = F + i * width;
            const double* const p = P + i * width;
            for (int pass = 0; pass < settings.passes; ++pass) {
                if (pass % fresh == 0) {
                    for (int k = 0; k < width; ++k) g[static_cast<std::size_t>(k)] = static_cast<T>(p[k]);
                    for (int k = 0; k < topics; ++k) minus[static_cast<std::size_t>(k)] = -f[k];
                    accumulate(G, offset.data(), topics, width, minus.data(), g.data());
                }
                double gain = 0, value = 0;
                for (int k = 0; k < topics; ++k) {
                    const T curvature = G[offset[static_cast<std::size_t>(k)] + k];
                    const T slope = g[static_cast<std::size_t>(k)];
                    const T step = curvature > T(0) ? std::max(-f[k], slope / curvature) : -f[k];
                    if (step != T(0)) {
                        f[k] += step;
                        const T back = -step;
                        accumulate(G, offset.data() + k, 1, width, &back, g.data());
                        gain += static_cast<double>(step) * (static_cast<double>(slope) - 0.5 * curvature * step);
                    }
                    value += p[k] * static_cast<double>(f[k]);
                }
                if (gain <= settings.enough * 0.5 * value) break;
            }
        }
    });
}

}  // namespace polyseme
