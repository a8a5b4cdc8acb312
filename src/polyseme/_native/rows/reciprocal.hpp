// Sums over dense rows for the Itakura-Saito divergence (reciprocal.hpp).
#pragma once
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstring>

#include "../logarithm.hpp"
#include "../row_table.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

// 1 / q. In float32, AVX-512 has an approximation by 14 bits, which a step of Newton's method makes exact to rounding.
template <class T>
inline Pack<T> reciprocal(const Pack<T>& q) {
#if defined(__AVX512F__) && defined(POLYSEME_VECTOR_TYPES)
    if constexpr (sizeof(T) == 4) {
        const Pack<T> near = _mm512_rcp14_ps(q);
        return near + near * (splat(T(1)) - q * near);
    }
#endif
    return splat(T(1)) / q;
}

// Adds the ratios of some rows, for one pack of columns, to their sums and products. After every call the exponent of a
// product is moved to a sum of exponents, so that the product stays finite, and one logarithm at the end suffices.
template <class T>
inline void add_ratios(const Pack<T> (&ratio)[kDenseRows], ReciprocalLosses<T>& losses, int column) {
    constexpr int L = lanes<T>;
    T ratios[kDenseRows][L];
    for (int r = 0; r < kDenseRows; ++r) store(ratios[r], ratio[r]);
#ifdef POLYSEME_VECTOR_TYPES
    typedef int64_t Whole __attribute__((vector_size(POLYSEME_VECTOR_BYTES)));
    for (int i = 0; i < L; i += lanes<double>) {
        double* const sum = losses.sum + column + i;
        double* const product = losses.product + column + i;
        double* const least = losses.least + column + i;
        int64_t* const exponent = losses.exponent + column + i;
        Pack<double> total = load(sum), all = load(product);
        for (int r = 0; r < kDenseRows; ++r) {
            const Pack<double> wide = as_doubles(ratios[r] + i);
            total = total + wide;
            all = all * wide;
        }
        const Pack<double> before = load(least);
        store(least, all < before ? all : before);
        const Whole bits = as_bits<Whole>(all);
        Whole exponents;
        std::memcpy(&exponents, exponent, sizeof exponents);
        exponents = exponents + (bits >> 52) - 1023;
        std::memcpy(exponent, &exponents, sizeof exponents);
        const Whole mantissa = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
        store(product, as_bits<Pack<double>>(mantissa));
        store(sum, total);
    }
#else
    for (int i = 0; i < L; ++i)
        for (int r = 0; r < kDenseRows; ++r) {
            const double wide = static_cast<double>(ratios[r][i]);
            const double all = losses.product[column + i] * wide;
            int moved = 0;
            losses.sum[column + i] += wide;
            losses.least[column + i] = all < losses.least[column + i] ? all : losses.least[column + i];
            losses.product[column + i] = std::frexp(all, &moved);
            losses.exponent[column + i] += moved;
        }
#endif
}

// Adds the terms of kDenseRows rows to the sums for the columns of one tile (K x tile_columns each), and to the losses
// unless these are null.
template <class T>
void reciprocal_sums(const ReciprocalRows<T>& rows, T* numerators, T* denominators, ReciprocalLosses<T>* losses) {
    constexpr int L = lanes<T>, R = kDenseRows, C = kDensePacks;
    constexpr int width = tile_columns<T>;
    for (int r = 0; r < R; ++r) prefetch<T, width, true>(rows.x[r] + rows.ahead);
    for (int column = 0; column < width; column += C * L) {
        Pack<T> b[R][C], inverse[R][C];
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < C; ++c) b[r][c] = splat(T(0));
        for (int k = 0; k < rows.topics_count; ++k) {
            Pack<T> t[C];
            for (int c = 0; c < C; ++c) t[c] = load(rows.topics + k * width + column + c * L);
            for (int r = 0; r < R; ++r) {
                const Pack<T> a = splat(rows.a[r][k]);
                for (int c = 0; c < C; ++c) b[r][c] = b[r][c] + a * t[c];
            }
        }
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < C; ++c) {
                const Pack<T> floor = larger<T>(splat(rows.floor[r]), load(rows.floors + column + c * L));
                inverse[r][c] = reciprocal<T>(larger<T>(b[r][c], floor));
                b[r][c] = load(rows.x[r] + column + c * L) * inverse[r][c];  // the ratio
            }
        if (losses)
            for (int c = 0; c < C; ++c) {
                Pack<T> ratio[R];
                for (int r = 0; r < R; ++r) ratio[r] = r < rows.present ? b[r][c] : splat(T(1));
                add_ratios<T>(ratio, *losses, column + c * L);
            }
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < C; ++c) b[r][c] = b[r][c] * inverse[r][c];
        for (int k = 0; k < rows.topics_count; ++k) {
            T* const n = numerators + k * width + column;
            T* const d = denominators + k * width + column;
            Pack<T> sum_n[C], sum_d[C];
            for (int c = 0; c < C; ++c) {
                sum_n[c] = load(n + c * L);
                sum_d[c] = load(d + c * L);
            }
            for (int r = 0; r < R; ++r) {
                const Pack<T> a = splat(rows.weighted[r][k]);
                for (int c = 0; c < C; ++c) {
                    sum_n[c] = sum_n[c] + a * b[r][c];
                    sum_d[c] = sum_d[c] + a * inverse[r][c];
                }
            }
            for (int c = 0; c < C; ++c) {
                store(n + c * L, sum_n[c]);
                store(d + c * L, sum_d[c]);
            }
        }
    }
}

// The multiplicative update (reciprocal.hpp). Products of two smaller numbers than `least` would be denormal.
template <class T>
void multiplied(const T* factor, const double* numerators, const double* denominators, bool root, int64_t n, T* out) {
    constexpr double least = sizeof(T) == 4 ? 1e-30 : 1e-200;
    for (int64_t i = 0; i < n; ++i) {
        const double ratio = denominators[i] > 0 ? numerators[i] / denominators[i] : 0.0;
        const double change = root ? std::sqrt(ratio) : ratio;
        const double value = change * static_cast<double>(factor[i]);
        out[i] = value > least ? static_cast<T>(value) : T(0);
    }
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
