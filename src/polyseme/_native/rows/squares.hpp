// Coordinate descent on rows for the squared loss, and Gram matrices (squares.hpp).
#pragma once

#include <cstring>

#include "../row_table.hpp"
#include "../simd.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

// One pass of coordinate descent over kTogether rows (squares.hpp): each f_k moves to its minimum. f and p are topics x
// kTogether, so that a vector has the same topic of several rows, and no row waits for its own steps. G is topics x
// width, inverse_k is 1 / G_kk, or 0 for a topic of zeros, whose f_k becomes 0. The gain of the pass and p'f after it
// are written to `gain` and `value`.
template <class T>
void descend(T* f, const T* p, const T* G, const T* inverse, int topics, int width, T* gain, T* value) {
    constexpr int L = lanes<T>, all = kTogether / L, R = all < 4 ? all : 4;
    const Pack<T> zero = splat(T(0)), half = splat(T(0.5));
    for (int first = 0; first < kTogether; first += R * L) {
        Pack<T> gains[R], values[R];
        for (int r = 0; r < R; ++r) gains[r] = values[r] = zero;
        for (int k = 0; k < topics; ++k) {
            const T* const row = G + static_cast<int64_t>(k) * width;
            Pack<T> even[R], odd[R];
            for (int r = 0; r < R; ++r) {
                even[r] = load(p + k * kTogether + first + r * L);
                odd[r] = zero;
            }
            int j = 0;
            for (; j + 2 <= topics; j += 2) {
                const Pack<T> g0 = splat(row[j]), g1 = splat(row[j + 1]);
                const T* const at = f + j * kTogether + first;
                for (int r = 0; r < R; ++r) {
                    even[r] = even[r] - g0 * load(at + r * L);
                    odd[r] = odd[r] - g1 * load(at + kTogether + r * L);
                }
            }
            if (j < topics) {
                const Pack<T> g0 = splat(row[j]);
                for (int r = 0; r < R; ++r) even[r] = even[r] - g0 * load(f + j * kTogether + first + r * L);
            }
            const Pack<T> curvature = splat(row[k]), scale = splat(inverse[k]);
            for (int r = 0; r < R; ++r) {
                T* const at = f + k * kTogether + first + r * L;
                const Pack<T> old = load(at), slope = even[r] + odd[r];
                const Pack<T> next = inverse[k] > T(0) ? larger<T>(old + slope * scale, zero) : zero;
                const Pack<T> step = next - old;
                store(at, next);
                gains[r] = gains[r] + step * (slope - half * curvature * step);
                values[r] = values[r] + load(p + k * kTogether + first + r * L) * next;
            }
        }
        for (int r = 0; r < R; ++r) {
            store(gain + first + r * L, gains[r]);
            store(value + first + r * L, values[r]);
        }
    }
}

// to[column, row] = from[row, column]. rows and columns are multiples of four.
template <class T>
void transpose(const T* from, int64_t stride, int rows, int columns, T* to, int64_t to_stride) {
#ifdef POLYSEME_VECTOR_TYPES
    typedef T Four __attribute__((vector_size(4 * sizeof(T))));
    for (int i = 0; i < rows; i += 4)
        for (int k = 0; k < columns; k += 4) {
            Four r[4];
            for (int n = 0; n < 4; ++n) std::memcpy(&r[n], from + (i + n) * stride + k, sizeof r[n]);
            const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
            const Four b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
            const Four c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
            const Four d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
            const Four columns_of_four[4] = {
                __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
                __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
            for (int n = 0; n < 4; ++n)
                std::memcpy(to + (k + n) * to_stride + i, &columns_of_four[n], sizeof columns_of_four[n]);
        }
#else
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < columns; ++k) to[k * to_stride + i] = from[i * stride + k];
#endif
}

// Adds weight_i f_i f_i' of some rows to G (width x width), in tiles of four topics by some packs. Tiles left of the
// diagonal are skipped. Without weights, all weights are one.
template <class T, int Packs>
inline void gram_tile(const T* F, const double* weights, int64_t rows, int width, int topic, int column, T* G) {
    constexpr int L = lanes<T>;
    const int64_t stride = width;
    Pack<T> total[4][Packs];
    for (int i = 0; i < 4; ++i)
        for (int c = 0; c < Packs; ++c) total[i][c] = load(G + (topic + i) * stride + column + c * L);
    for (int64_t row = 0; row < rows; ++row, F += width) {
        Pack<T> b[Packs];
        for (int c = 0; c < Packs; ++c) b[c] = load(F + column + c * L);
        for (int i = 0; i < 4; ++i) {
            const Pack<T> a = splat(weights ? F[topic + i] * static_cast<T>(weights[row]) : F[topic + i]);
            for (int c = 0; c < Packs; ++c) total[i][c] = total[i][c] + a * b[c];
        }
    }
    for (int i = 0; i < 4; ++i)
        for (int c = 0; c < Packs; ++c) store(G + (topic + i) * stride + column + c * L, total[i][c]);
}

template <class T>
void gram(const T* F, const double* weights, int64_t rows, int width, T* G) {
    constexpr int L = lanes<T>, Packs = POLYSEME_VECTOR_BYTES == 64 ? 4 : 2;
    for (int topic = 0; topic < width; topic += 4) {
        int column = topic / L * L;
        for (; column + Packs * L <= width; column += Packs * L)
            gram_tile<T, Packs>(F, weights, rows, width, topic, column, G);
        for (; column < width; column += L) gram_tile<T, 1>(F, weights, rows, width, topic, column, G);
    }
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
