// The parts of coordinate ascent on a row (coordinate.hpp). The operands of a row are stored by topic, in columns of
// `padded` numbers, a multiple of kGatheredWords. Padding has x = 0, b = 0, q = 1.
#pragma once

#include "gather.hpp"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace polyseme {
namespace POLYSEME_ISA {

#ifdef POLYSEME_VECTOR_TYPES

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
inline Pack<T> inverse_of(const Pack<T>& q) {
    return splat(T(1)) / q;
}

#endif

// Lists the topics with theta > 0 or slopes > u, in their order, and returns their number. `topics` has room for one
// more than the width.
template <class T>
int choose(const T* theta, const T* slopes, const T* u, int width, int* topics) {
    int many = 0;
#if POLYSEME_VECTOR_BYTES == 64 && defined(__AVX512F__)
    for (int k = 0; k < width; k += 16) {
        unsigned bits;
        if constexpr (sizeof(T) == 4) {
            bits = _mm512_cmp_ps_mask(_mm512_loadu_ps(theta + k), _mm512_setzero_ps(), _CMP_GT_OQ) |
                   _mm512_cmp_ps_mask(_mm512_loadu_ps(slopes + k), _mm512_loadu_ps(u + k), _CMP_GT_OQ);
        } else {
            bits = 0;
            for (int i = 0; i < 16; i += 8)
                bits |= static_cast<unsigned>(
                            _mm512_cmp_pd_mask(_mm512_loadu_pd(theta + k + i), _mm512_setzero_pd(), _CMP_GT_OQ) |
                            _mm512_cmp_pd_mask(_mm512_loadu_pd(slopes + k + i), _mm512_loadu_pd(u + k + i), _CMP_GT_OQ))
                        << i;
        }
        for (; bits != 0; bits &= bits - 1) topics[many++] = k + __builtin_ctz(bits);
    }
#else
    for (int k = 0; k < width; ++k) {
        topics[many] = k;
        many += theta[k] > T(0) || slopes[k] > u[k] ? 1 : 0;
    }
#endif
    return many;
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

// sums += sum_i r_i from_i of some words, for `Packs` packs from topic k. The operands of the next words are
// prefetched. Even and odd words have sums of their own, because an addition takes longer than the products of few packs.
template <class T, int Packs>
inline void accumulate_words(const T* const* from, const T* const* next, int k, const T* r, T* sums) {
    constexpr int L = lanes<T>, a_line = 64 / static_cast<int>(sizeof(T));
    Pack<T> even[Packs], odd[Packs];
    for (int p = 0; p < Packs; ++p) {
        even[p] = load(sums + k + p * L);
        odd[p] = splat(T(0));
    }
    for (int i = 0; i < kGatheredWords; i += 2) {
        const Pack<T> r0 = splat(r[i]), r1 = splat(r[i + 1]);
        const T *const b0 = from[i] + k, *const b1 = from[i + 1] + k;
#if defined(__GNUC__)
        for (int j = 0; j < Packs * L; j += a_line) {
            __builtin_prefetch(next[i] + k + j);
            __builtin_prefetch(next[i + 1] + k + j);
        }
#endif
        for (int p = 0; p < Packs; ++p) {
            even[p] = even[p] + r0 * load(b0 + p * L);
            odd[p] = odd[p] + r1 * load(b1 + p * L);
        }
    }
    for (int p = 0; p < Packs; ++p) store(sums + k + p * L, even[p] + odd[p]);
}

// Writes operands of the words of a row to columns, as `gather` does; then the products q, their inverse, and the sums
// of x / q times the operands of all topics. Returns whether every q is more than what counts as zero.
template <class T>
bool evaluate(const RowOperands<T>& row, const T* const* column, const T* weight, int many, const T* x, T* q,
              T* inverse, T* sums) {
    constexpr int L = lanes<T>, Packs = POLYSEME_VECTOR_BYTES == 64 ? 8 : 4;
    for (int k = 0; k < row.width; ++k) sums[k] = T(0);
    Pack<T> least = splat(T(1));
    const T* from[kGatheredWords];
    const T* next[kGatheredWords];
    const int picks = pick_lines(row);
    words_from(row, 0, from);
    for (int64_t j = 0; j < row.padded; j += kGatheredWords) {
        words_ahead(row, j + kGatheredWords, next);
        gather_words(row, picks, from, j);
        T r[kGatheredWords];
        for (int i = 0; i < kGatheredWords; i += L)
            store(r + i, load(x + j + i) * mix_pack<T>(column, weight, many, x, j + i, q, inverse, least));
        int k = 0;
        for (; k + Packs * L <= row.width; k += Packs * L) accumulate_words<T, Packs>(from, next, k, r, sums);
        for (; k + 4 * L <= row.width; k += 4 * L) accumulate_words<T, 4>(from, next, k, r, sums);
        for (; k < row.width; k += L) accumulate_words<T, 1>(from, next, k, r, sums);
        words_from(row, j + kGatheredWords, from);
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
