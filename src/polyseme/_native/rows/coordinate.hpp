// The parts of coordinate ascent on a row (coordinate.hpp).
#pragma once

#include "../row_table.hpp"
#include "../simd.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

// Gathers the entries of some topics for the words of a row into columns (many x padded), with zeros after the first n.
template <class T>
void gather(const T* B, const int64_t* offset, int64_t n, int64_t padded, const int* topic, int many, T* columns) {
    constexpr int L = lanes<T>;
    const int64_t whole = n / L * L;
    for (int64_t j = 0; j < whole; j += L) {
        const int64_t* from = offset + j;
#if defined(__GNUC__)
        if (many > 0 && j + 2 * L <= whole)
            for (int i = 0; i < L; ++i) __builtin_prefetch(B + from[L + i] + topic[0]);
#endif
        T* to = columns + j;
        for (int a = 0; a < many; ++a, to += padded) {
            const T* b = B + topic[a];
            T column[L];
            for (int i = 0; i < L; ++i) column[i] = b[from[i]];
            std::memcpy(to, column, sizeof column);
        }
    }
    T* to = columns;
    for (int a = 0; a < many; ++a, to += padded) {
        for (int64_t j = whole; j < n; ++j) to[j] = B[offset[j] + topic[a]];
        for (int64_t j = n; j < padded; ++j) to[j] = T(0);
    }
}

// q = sum_a weight_a column_a and its inverse, with q = 1 after the first n. q is at least a tiny share of x (see
// row_table.hpp).
template <class T>
void mix(const T* columns, const T* weight, int many, const T* x, int64_t n, int64_t padded, T* q, T* inverse) {
    constexpr int L = lanes<T>;
    const T part = min_product_share<T>();
    for (int64_t j = 0; j < padded; j += L) {
        Pack<T> total = splat(T(0));
        for (int a = 0; a < many; ++a) total = total + splat(weight[a]) * load(columns + a * padded + j);
        store(q + j, total);
    }
    for (int64_t j = n; j < padded; ++j) q[j] = T(1);
    for (int64_t j = 0; j < padded; ++j) {
        q[j] = q[j] > part * x[j] ? q[j] : part * x[j];
        inverse[j] = T(1) / q[j];
    }
}

// The arrays of the next two functions are padded to whole vectors with x = 0, b = 0, q = 1.

template <class T>
Slope slope(const T* x, const T* inverse, const T* b, int64_t n) {
    constexpr int L = lanes<T>;
    Pack<T> g0 = splat(T(0)), h0 = g0, g1 = g0, h1 = g0;
    int64_t j = 0;
    for (; j + 2 * L <= n; j += 2 * L) {
        const Pack<T> t0 = load(b + j) * load(inverse + j), t1 = load(b + j + L) * load(inverse + j + L);
        const Pack<T> xt0 = load(x + j) * t0, xt1 = load(x + j + L) * t1;
        g0 = g0 + xt0;
        g1 = g1 + xt1;
        h0 = h0 + xt0 * t0;
        h1 = h1 + xt1 * t1;
    }
    for (; j < n; j += L) {
        const Pack<T> t = load(b + j) * load(inverse + j);
        const Pack<T> xt = load(x + j) * t;
        g0 = g0 + xt;
        h0 = h0 + xt * t;
    }
    return {static_cast<double>(sum<T>(g0 + g1)), static_cast<double>(sum<T>(h0 + h1))};
}

// q = from + step b and inverse = 1 / q. `precise` is whether q > share * from everywhere. q and from may be the same
// array.
template <class T>
Shifted shift(const T* from, T* q, T* inverse, const T* x, const T* b, double step, T share, int64_t n) {
    constexpr int L = lanes<T>;
    const Pack<T> delta = splat(static_cast<T>(step)), one = splat(T(1)), shares = splat(share);
    Pack<T> g = splat(T(0)), least = splat(T(1e30));
    for (int64_t j = 0; j < n; j += L) {
        const Pack<T> bj = load(b + j), old = load(from + j);
        const Pack<T> qj = old + delta * bj;
        const Pack<T> ij = one / qj;
        const Pack<T> above = qj - shares * old;
        store(q + j, qj);
        store(inverse + j, ij);
        g = g + load(x + j) * bj * ij;
#ifdef POLYSEME_VECTOR_TYPES
        least = above < least ? above : least;
#else
        for (int i = 0; i < L; ++i) least.lane[i] = above.lane[i] < least.lane[i] ? above.lane[i] : least.lane[i];
#endif
    }
    T smallest = least[0];
    for (int i = 1; i < L; ++i) smallest = least[i] < smallest ? least[i] : smallest;
    return {static_cast<double>(sum<T>(g)), smallest > T(0)};
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
