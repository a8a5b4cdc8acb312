// A short vector of numbers (Pack), as wide as the instruction set this file is compiled for. With GCC and Clang it is
// a vector type, with other compilers an array with loops that the compiler may vectorize.
//
// Code that is compiled once per instruction set must not use standard templates that are not inlined: the linker keeps
// one copy of them, which may contain instructions that the processor lacks.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#ifndef POLYSEME_ISA
#define POLYSEME_ISA baseline
#endif

#if defined(POLYSEME_VECTOR_BYTES)
// set by the compiler command, to test the widest form on machines without its instructions
#elif defined(__AVX512F__)
#define POLYSEME_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define POLYSEME_VECTOR_BYTES 32
#else
#define POLYSEME_VECTOR_BYTES 16
#endif

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define POLYSEME_VECTOR_TYPES 1
#endif
#endif

namespace polyseme {
namespace POLYSEME_ISA {

template <class T>
constexpr int lanes = POLYSEME_VECTOR_BYTES / static_cast<int>(sizeof(T));

#ifdef POLYSEME_VECTOR_TYPES

template <class T>
struct PackOf {
    typedef T type __attribute__((vector_size(POLYSEME_VECTOR_BYTES)));
};
template <class T>
using Pack = typename PackOf<T>::type;

template <class T>
inline Pack<T> splat(T value) {
    return value - Pack<T>{};
}

// The same bits as numbers of another type.
template <class To, class From>
inline To as_bits(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "both types have the same size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// Writes the sums of the elements of a, b, c and d to out[0..3].
template <class T>
inline void sum_each(Pack<T> a, Pack<T> b, Pack<T> c, Pack<T> d, T* out) {
    if constexpr (lanes<T> == 2) {
        out[0] = a[0] + a[1];
        out[1] = b[0] + b[1];
        out[2] = c[0] + c[1];
        out[3] = d[0] + d[1];
    } else {
        typedef T Four __attribute__((vector_size(4 * sizeof(T))));
        Four total;
        if constexpr (lanes<T> == 4) {
            const Pack<T> ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const Pack<T> cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
            total = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        } else if constexpr (lanes<T> == 8) {
            const Pack<T> ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +
                               __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
            const Pack<T> cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13) +
                               __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
            const Pack<T> all = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
                                __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
            total = __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
        } else {
            const Pack<T> ab =
                __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
            const Pack<T> cd =
                __builtin_shufflevector(c, d, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                __builtin_shufflevector(c, d, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
            const Pack<T> all =
                __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
            total =
                (__builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7)) +
                (__builtin_shufflevector(all, all, 8, 9, 10, 11) + __builtin_shufflevector(all, all, 12, 13, 14, 15));
        }
        std::memcpy(out, &total, sizeof total);
    }
}

#else

template <class T>
struct Pack {
    T lane[lanes<T>];
    T operator[](int i) const { return lane[i]; }
};
template <class T>
inline Pack<T> operator+(Pack<T> a, const Pack<T>& b) {
    for (int i = 0; i < lanes<T>; ++i) a.lane[i] += b.lane[i];
    return a;
}
template <class T>
inline Pack<T> operator-(Pack<T> a, const Pack<T>& b) {
    for (int i = 0; i < lanes<T>; ++i) a.lane[i] -= b.lane[i];
    return a;
}
template <class T>
inline Pack<T> operator*(Pack<T> a, const Pack<T>& b) {
    for (int i = 0; i < lanes<T>; ++i) a.lane[i] *= b.lane[i];
    return a;
}
template <class T>
inline Pack<T> operator/(Pack<T> a, const Pack<T>& b) {
    for (int i = 0; i < lanes<T>; ++i) a.lane[i] /= b.lane[i];
    return a;
}
template <class T>
inline Pack<T> splat(T value) {
    Pack<T> a;
    for (int i = 0; i < lanes<T>; ++i) a.lane[i] = value;
    return a;
}
template <class T>
inline void sum_each(const Pack<T>& a, const Pack<T>& b, const Pack<T>& c, const Pack<T>& d, T* out) {
    out[0] = out[1] = out[2] = out[3] = T(0);
    for (int i = 0; i < lanes<T>; ++i) {
        out[0] += a.lane[i];
        out[1] += b.lane[i];
        out[2] += c.lane[i];
        out[3] += d.lane[i];
    }
}

#endif

template <class T>
inline Pack<T> load(const T* from) {
    Pack<T> value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
inline void store(T* to, const Pack<T>& value) {
    std::memcpy(to, &value, sizeof value);
}

template <class T>
inline Pack<T> larger(const Pack<T>& a, const Pack<T>& b) {
#ifdef POLYSEME_VECTOR_TYPES
    return a > b ? a : b;
#else
    Pack<T> value;
    for (int i = 0; i < lanes<T>; ++i) value.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
    return value;
#endif
}

template <class T>
inline Pack<T> smaller(const Pack<T>& a, const Pack<T>& b) {
#ifdef POLYSEME_VECTOR_TYPES
    return a < b ? a : b;
#else
    Pack<T> value;
    for (int i = 0; i < lanes<T>; ++i) value.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
    return value;
#endif
}

// a where x > 0, else b.
template <class T>
inline Pack<T> where_positive(const Pack<T>& x, const Pack<T>& a, const Pack<T>& b) {
#ifdef POLYSEME_VECTOR_TYPES
    return x > T(0) ? a : b;
#else
    Pack<T> value;
    for (int i = 0; i < lanes<T>; ++i) value.lane[i] = x.lane[i] > T(0) ? a.lane[i] : b.lane[i];
    return value;
#endif
}

#ifdef POLYSEME_VECTOR_TYPES

// The numbers `By` further, from the first one again after the last one.
template <class T, int By, int... Lane>
inline Pack<T> rotated(const Pack<T>& a, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(a, a, ((Lane + By) % lanes<T>)...);
}

template <class T, int By = lanes<T> / 2>
inline T least_of(const Pack<T>& a) {
    const Pack<T> least = smaller<T>(a, rotated<T, By>(a, std::make_integer_sequence<int, lanes<T>>()));
    if constexpr (By > 1)
        return least_of<T, By / 2>(least);
    else
        return least[0];
}

#else

template <class T>
inline T least_of(const Pack<T>& a) {
    T least = a[0];
    for (int i = 1; i < lanes<T>; ++i) least = a[i] < least ? a[i] : least;
    return least;
}

#endif

template <class T>
inline T sum(const Pack<T>& a) {
    T total = a[0];
    for (int i = 1; i < lanes<T>; ++i) total += a[i];
    return total;
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
