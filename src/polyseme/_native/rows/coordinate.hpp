// The parts of coordinate ascent on a row (coordinate.hpp). The operands of a row are stored by topic, in columns of
// `padded` numbers, a multiple of kGatheredWords. Padding has x = 0, b = 0, q = 1.
#pragma once

#include <utility>

#include "../row_table.hpp"
#include "../simd.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

#ifdef POLYSEME_VECTOR_TYPES

// A pack, of at least four numbers.
template <class T>
constexpr int quad_lanes = lanes<T> < 4 ? 4 : lanes<T>;
template <class T>
struct QuadsOf {
    typedef T four __attribute__((vector_size(4 * sizeof(T))));
    typedef T eight __attribute__((vector_size(8 * sizeof(T))));
    typedef T type __attribute__((vector_size(quad_lanes<T> * sizeof(T))));
};
template <class T>
using Quads = typename QuadsOf<T>::type;

// Four numbers of the words 0, 4, 8, ... from the first one.
template <class T>
inline Quads<T> load_quads(const T* const* from, int k) {
    typename QuadsOf<T>::four q[quad_lanes<T> / 4];
    for (int i = 0; i < quad_lanes<T> / 4; ++i) std::memcpy(&q[i], from[4 * i] + k, sizeof q[i]);
    if constexpr (quad_lanes<T> == 4) {
        return q[0];
    } else {
        const typename QuadsOf<T>::eight low = __builtin_shufflevector(q[0], q[1], 0, 1, 2, 3, 4, 5, 6, 7);
        if constexpr (quad_lanes<T> == 8) {
            return low;
        } else {
            const typename QuadsOf<T>::eight high = __builtin_shufflevector(q[2], q[3], 0, 1, 2, 3, 4, 5, 6, 7);
            return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        }
    }
}

// In each four lanes: the first two of a and of b, alternating; and the same of the last two.
template <class T, int... Lane>
inline void interleave(Quads<T>& a, Quads<T>& b, std::integer_sequence<int, Lane...>) {
    constexpr int N = quad_lanes<T>;
    const Quads<T> low = __builtin_shufflevector(a, b, ((Lane & ~3) + (Lane & 3) / 2 + (Lane & 1) * N)...);
    b = __builtin_shufflevector(a, b, ((Lane & ~3) + 2 + (Lane & 3) / 2 + (Lane & 1) * N)...);
    a = low;
}

// In each four lanes: the first two of a, then those of b; and the same of the last two.
template <class T, int... Lane>
inline void join(Quads<T>& a, Quads<T>& b, std::integer_sequence<int, Lane...>) {
    constexpr int N = quad_lanes<T>;
    const Quads<T> low = __builtin_shufflevector(a, b, ((Lane & ~3) + (Lane & 1) + (Lane & 2) / 2 * N)...);
    b = __builtin_shufflevector(a, b, ((Lane & ~3) + 2 + (Lane & 1) + (Lane & 2) / 2 * N)...);
    a = low;
}

// Writes the topics k to k + 3 of some words to their columns, by transposing them in registers.
template <class T>
inline void gather_four(const T* const* from, int k, T* const* column, int64_t j) {
    constexpr int N = quad_lanes<T>;
    const auto all = std::make_integer_sequence<int, N>();
    for (int i = 0; i < kGatheredWords; i += N) {
        Quads<T> a = load_quads<T>(from + i, k), b = load_quads<T>(from + i + 1, k),
                 c = load_quads<T>(from + i + 2, k), d = load_quads<T>(from + i + 3, k);
        interleave<T>(a, b, all);
        interleave<T>(c, d, all);
        join<T>(a, c, all);
        join<T>(b, d, all);
        std::memcpy(column[k + 0] + j + i, &a, sizeof a);
        std::memcpy(column[k + 1] + j + i, &c, sizeof c);
        std::memcpy(column[k + 2] + j + i, &b, sizeof b);
        std::memcpy(column[k + 3] + j + i, &d, sizeof d);
    }
}

// An estimate of 1 / q from the exponent and the mantissa, with an error of at most 12.5%.
template <class T>
inline Pack<T> rough_inverse(const Pack<T>& q) {
    if constexpr (sizeof(T) == 4) {
        typedef int32_t Whole __attribute__((vector_size(POLYSEME_VECTOR_BYTES)));
        const Whole bits = 0x7ef311c7 - reinterpret_cast<const Whole&>(q);
        return reinterpret_cast<const Pack<T>&>(bits);
    } else {
        typedef int64_t Whole __attribute__((vector_size(POLYSEME_VECTOR_BYTES)));
        const Whole bits = 0x7fde6238da3c2118LL - reinterpret_cast<const Whole&>(q);
        return reinterpret_cast<const Pack<T>&>(bits);
    }
}

// 1 / q to about one unit in the last place, for 1e-36 < q < 1e36. Twice as fast as a division, and unlike the
// approximations of processors it has the same bits on all of them. Each round multiplies the number of correct digits
// by three: y (1 + e + e^2) with e = 1 - q y.
template <class T>
inline Pack<T> inverse_of(const Pack<T>& q) {
    const Pack<T> one = splat(T(1));
    Pack<T> y = rough_inverse<T>(q);
    for (int round = 0; round < (sizeof(T) == 4 ? 1 : 2); ++round) {
        const Pack<T> e = one - q * y;
        y = y + y * (e + e * e);
    }
    return y + y * (one - q * y);
}

#else

template <class T>
inline void gather_four(const T* const* from, int k, T* const* column, int64_t j) {
    for (int c = k; c < k + 4; ++c)
        for (int i = 0; i < kGatheredWords; ++i) column[c][j + i] = from[i][c];
}

template <class T>
inline Pack<T> inverse_of(const Pack<T>& q) {
    return splat(T(1)) / q;
}

#endif

// Sets `from` to the operands of the words j, j + 1, ... of a row. Words after the last one have `zeros`.
template <class T>
inline void words_from(const RowOperands<T>& row, int64_t j, const T** from) {
    for (int i = 0; i < kGatheredWords; ++i) from[i] = j + i < row.n ? row.B + row.offset[j + i] : row.zeros;
}

// Writes operands of the words of a row to columns.
template <class T>
void gather(const RowOperands<T>& row) {
    for (int64_t j = 0; j < row.padded; j += kGatheredWords) {
        const T* from[kGatheredWords];
        words_from(row, j, from);
        for (int f = 0; f < row.fours; ++f) gather_four<T>(from, row.four[f], row.column, j);
    }
}

// Products q = sum_a weight_a column_a of one pack of words, at least a tiny share of x (see row_table.hpp), and their
// inverse. `least` becomes the smallest product.
template <class T>
inline Pack<T> mix_pack(const T* const* column, const T* weight, int many, const T* x, int64_t j, T* q, T* inverse,
                        Pack<T>& least) {
    Pack<T> even = splat(T(0)), odd = even;
    int a = 0;
    for (; a + 2 <= many; a += 2) {
        even = even + splat(weight[a]) * load(column[a] + j);
        odd = odd + splat(weight[a + 1]) * load(column[a + 1] + j);
    }
    if (a < many) even = even + splat(weight[a]) * load(column[a] + j);
    const Pack<T> product = even + odd, xj = load(x + j);
    const Pack<T> floored = larger<T>(product, splat(min_product_share<T>()) * xj + splat(min_product<T>()));
    const Pack<T> inverted = inverse_of<T>(floored);
    least = smaller<T>(least, where_positive<T>(xj, product, splat(T(1))));
    store(q + j, floored);
    store(inverse + j, inverted);
    return inverted;
}

// The products of a row and their inverse.
template <class T>
void mix(const T* const* column, const T* weight, int many, const T* x, int64_t padded, T* q, T* inverse) {
    Pack<T> least = splat(T(1));
    for (int64_t j = 0; j < padded; j += lanes<T>) mix_pack<T>(column, weight, many, x, j, q, inverse, least);
}

// sums += sum_i r_i from_i of some words, for `packs` packs. The operands of the next words are prefetched.
template <class T, int Packs>
inline void accumulate_words(const T* const* from, const T* const* next, const T* r, T* sums) {
    constexpr int L = lanes<T>, a_line = 64 / static_cast<int>(sizeof(T));
    Pack<T> total[Packs];
    for (int p = 0; p < Packs; ++p) total[p] = load(sums + p * L);
    for (int i = 0; i < kGatheredWords; ++i) {
        const Pack<T> ri = splat(r[i]);
#if defined(__GNUC__)
        for (int k = 0; k < Packs * L; k += a_line) __builtin_prefetch(next[i] + k);
#endif
        for (int p = 0; p < Packs; ++p) total[p] = total[p] + ri * load(from[i] + p * L);
    }
    for (int p = 0; p < Packs; ++p) store(sums + p * L, total[p]);
}

// Writes operands of the words of a row to columns, as `gather` does; then the products q, their inverse, and the sums
// of x / q times the operands of all topics. Returns whether every q is more than what counts as zero.
template <class T>
bool evaluate(const RowOperands<T>& row, const T* const* column, const T* weight, int many, const T* x, T* q,
              T* inverse, T* sums) {
    constexpr int L = lanes<T>, Packs = 8;
    for (int k = 0; k < row.width; ++k) sums[k] = T(0);
    Pack<T> least = splat(T(1));
    const T* from[kGatheredWords];
    const T* next[kGatheredWords];
    words_from(row, 0, next);
    for (int64_t j = 0; j < row.padded; j += kGatheredWords) {
        for (int i = 0; i < kGatheredWords; ++i) from[i] = next[i];
        words_from(row, j + kGatheredWords, next);
        for (int f = 0; f < row.fours; ++f) gather_four<T>(from, row.four[f], row.column, j);
        T r[kGatheredWords];
        for (int i = 0; i < kGatheredWords; i += L)
            store(r + i, load(x + j + i) * mix_pack<T>(column, weight, many, x, j + i, q, inverse, least));
        int k = 0;
        const auto moved = [&](const T* const* words, const T** to) {
            for (int i = 0; i < kGatheredWords; ++i) to[i] = words[i] + k;
        };
        const T* here[kGatheredWords];
        const T* ahead[kGatheredWords];
        for (; k + Packs * L <= row.width; k += Packs * L) {
            moved(from, here);
            moved(next, ahead);
            accumulate_words<T, Packs>(here, ahead, r, sums + k);
        }
        for (; k < row.width; k += L) {
            moved(from, here);
            moved(next, ahead);
            accumulate_words<T, 1>(here, ahead, r, sums + k);
        }
    }
    return least_of<T>(least) > max_zero_product<T>();
}

template <class T>
Slope slope(const T* x, const T* inverse, const T* b, int64_t n) {
    constexpr int L = lanes<T>;
    Pack<T> g = splat(T(0)), h = g;
    for (int64_t j = 0; j < n; j += L) {
        const Pack<T> t = load(b + j) * load(inverse + j), xt = load(x + j) * t;
        g = g + xt;
        h = h + xt * t;
    }
    T four[4];
    sum_each<T>(g, h, g, h, four);
    return {static_cast<double>(four[0]), static_cast<double>(four[1])};
}

// q += step b and its inverse, with the derivatives along `next` there. After a step down, also the slope along b and
// the smallest q - share * old, which says whether q is precise.
template <class T, bool Down>
inline Shifted shift_either(const T* from, T* q, T* inverse, const T* x, const T* b, const T* next, T step, T share,
                            int64_t n) {
    constexpr int L = lanes<T>;
    const Pack<T> delta = splat(step), shares = splat(share);
    Pack<T> g = splat(T(0)), h = g, after = g, least = splat(T(1));
    for (int64_t j = 0; j < n; j += L) {
        const Pack<T> bj = load(b + j), old = load(from + j), xj = load(x + j);
        const Pack<T> qj = old + delta * bj, ij = inverse_of<T>(qj);
        store(q + j, qj);
        store(inverse + j, ij);
        const Pack<T> t = load(next + j) * ij, xt = xj * t;
        g = g + xt;
        h = h + xt * t;
        if constexpr (Down) {
            after = after + xj * ij * bj;
            least = smaller<T>(least, qj - shares * old);
        }
    }
    T four[4];
    sum_each<T>(g, h, after, after, four);
    return {{static_cast<double>(four[0]), static_cast<double>(four[1])},
            static_cast<double>(four[2]),
            !Down || least_of<T>(least) > T(0)};
}

template <class T>
Shifted shift(const T* from, T* q, T* inverse, const T* x, const T* b, const T* next, double step, T share, int64_t n) {
    if (step > 0) return shift_either<T, false>(from, q, inverse, x, b, next, static_cast<T>(step), share, n);
    return shift_either<T, true>(from, q, inverse, x, b, next, static_cast<T>(step), share, n);
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
