// Copies operands of the words of a row to columns, by transposing them in registers.
#pragma once

#include <utility>

#include "../row_table.hpp"
#include "../simd.hpp"

#if defined(POLYSEME_VECTOR_TYPES) && POLYSEME_VECTOR_BYTES == 64 && defined(__AVX512F__)
#include <immintrin.h>
#define POLYSEME_PICKS 1
#endif

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

// Transposes four rows in each four lanes, so that register 0, 2, 1 and 3 have the numbers 0, 1, 2 and 3 of all rows.
template <class T>
inline void transpose_fours(Quads<T>* r) {
    const auto all = std::make_integer_sequence<int, quad_lanes<T>>();
    interleave<T>(r[0], r[1], all);
    interleave<T>(r[2], r[3], all);
    join<T>(r[0], r[2], all);
    join<T>(r[1], r[3], all);
}

// Writes the topics k to k + 3 of some words to their columns, by transposing them in registers.
template <class T>
inline void gather_four(const T* const* from, int k, T* const* column, int64_t j) {
    constexpr int N = quad_lanes<T>;
    for (int i = 0; i < kGatheredWords; i += N) {
        Quads<T> r[4];
        for (int w = 0; w < 4; ++w) r[w] = load_quads<T>(from + i + w, k);
        transpose_fours<T>(r);
        std::memcpy(column[k + 0] + j + i, &r[0], sizeof r[0]);
        std::memcpy(column[k + 1] + j + i, &r[2], sizeof r[2]);
        std::memcpy(column[k + 2] + j + i, &r[1], sizeof r[1]);
        std::memcpy(column[k + 3] + j + i, &r[3], sizeof r[3]);
    }
}

#else

template <class T>
inline void gather_four(const T* const* from, int k, T* const* column, int64_t j) {
    for (int c = k; c < k + 4; ++c)
        for (int i = 0; i < kGatheredWords; ++i) column[c][j + i] = from[i][c];
}

#endif

#ifdef POLYSEME_PICKS

// The even blocks of four lanes of a and then of b, if First is 0; and the odd ones if it is 1.
template <class T, int First, int... Lane>
inline Quads<T> every_other(const Quads<T>& a, const Quads<T>& b, std::integer_sequence<int, Lane...>) {
    constexpr int N = quad_lanes<T>;
    return __builtin_shufflevector(
        a, b, (Lane < N / 2 ? 2 * (Lane & ~3) + 4 * First + (Lane & 3)
                            : N + 2 * ((Lane & ~3) - N / 2) + 4 * First + (Lane & 3))...);
}

// Lists the lines that contain the topics to gather, in blocks of as many places as a pack has numbers.
template <class T>
inline int pick_lines(const RowOperands<T>& row) {
    constexpr int N = lanes<T>;
    int picked = 0;
    for (int i = 0; i < row.topics; ++i) {
        const int place = i % N, line = row.topic[i] / N * N;
        if (place == 0 || row.pick[picked - 1].line != line) {
            row.pick[picked] = PickedLine{};
            row.pick[picked++].line = line;
        }
        PickedLine& last = row.pick[picked - 1];
        last.index[place] = row.topic[i] % N;
        last.places |= uint32_t(1) << place;
        if (place == N - 1 || i + 1 == row.topics) last.end = i + 1;
    }
    return picked;
}

// `into` with some of the numbers of a line at their places.
inline __m512 picked(__m512 into, const PickedLine& pick, const float* from) {
    return _mm512_mask_permutexvar_ps(into, static_cast<__mmask16>(pick.places), _mm512_loadu_si512(pick.index),
                                      _mm512_loadu_ps(from + pick.line));
}
inline __m512d picked(__m512d into, const PickedLine& pick, const double* from) {
    const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pick.index));
    return _mm512_mask_permutexvar_pd(into, static_cast<__mmask8>(pick.places), _mm512_cvtepi32_epi64(index),
                                      _mm512_loadu_pd(from + pick.line));
}

// Writes `topics` topics, one in each register of a transposed pack of words, to columns.
template <class T>
inline void store_transposed(Quads<T>* r, int topics, T* column, int64_t stride) {
    constexpr int N = lanes<T>, blocks = N / 4;
    constexpr int at[4] = {0, 2, 1, 3};
    const auto all = std::make_integer_sequence<int, N>();
    for (int i = 0; i < N; i += 4) transpose_fours<T>(r + i);
    for (int c = 0; c < 4; ++c) {
        Quads<T> out[blocks];
        if constexpr (blocks == 4) {
            const Quads<T>&r0 = r[at[c]], &r1 = r[4 + at[c]], &r2 = r[8 + at[c]], &r3 = r[12 + at[c]];
            const Quads<T> even_low = every_other<T, 0>(r0, r1, all), odd_low = every_other<T, 1>(r0, r1, all);
            const Quads<T> even_high = every_other<T, 0>(r2, r3, all), odd_high = every_other<T, 1>(r2, r3, all);
            out[0] = every_other<T, 0>(even_low, even_high, all);
            out[1] = every_other<T, 0>(odd_low, odd_high, all);
            out[2] = every_other<T, 1>(even_low, even_high, all);
            out[3] = every_other<T, 1>(odd_low, odd_high, all);
        } else {
            out[0] = every_other<T, 0>(r[at[c]], r[4 + at[c]], all);
            out[1] = every_other<T, 1>(r[at[c]], r[4 + at[c]], all);
        }
        for (int i = 0; i < blocks; ++i)
            if (4 * i + c < topics) std::memcpy(column + (4 * i + c) * stride, &out[i], sizeof out[i]);
    }
}

// Writes the topics to gather of the words j, j + 1, ... with these operands to their columns.
template <class T>
inline void gather_words(const RowOperands<T>& row, int picks, const T* const* from, int64_t j) {
    constexpr int N = lanes<T>;
    for (int w = 0; w < kGatheredWords; w += N) {
        Quads<T> r[N] = {};
        for (int p = 0, begin = 0; p < picks; ++p) {
            const PickedLine& pick = row.pick[p];
            for (int i = 0; i < N; ++i) r[i] = picked(r[i], pick, from[w + i]);
            if (pick.end == 0) continue;
            store_transposed<T>(r, pick.end - begin, row.first + begin * row.stride + j + w, row.stride);
            begin = pick.end;
            for (int i = 0; i < N; ++i) r[i] = Quads<T>{};
        }
    }
}

#else

template <class T>
inline int pick_lines(const RowOperands<T>&) {
    return 0;
}

// Writes the topics to gather of the words j, j + 1, ... with these operands to their columns.
template <class T>
inline void gather_words(const RowOperands<T>& row, int, const T* const* from, int64_t j) {
    for (int f = 0; f < row.fours; ++f) gather_four<T>(from, row.four[f], row.column, j);
}

#endif

// Sets `from` to the operands of the words j, j + 1, ... of a row. Words after the last one have `zeros`.
template <class T>
inline void words_from(const RowOperands<T>& row, int64_t j, const T** from) {
    for (int i = 0; i < kGatheredWords; ++i) from[i] = j + i < row.n ? row.B + row.offset[j + i] : row.zeros;
}

// The same for operands that are only prefetched, which are those of the next rows after the last word.
template <class T>
inline void words_ahead(const RowOperands<T>& row, int64_t j, const T** from) {
    for (int i = 0; i < kGatheredWords; ++i) from[i] = row.B + row.offset[j + i < row.known ? j + i : row.known - 1];
}

// Writes operands of the words of a row to columns.
template <class T>
void gather(const RowOperands<T>& row) {
    const int picks = pick_lines(row);
    for (int64_t j = 0; j < row.padded; j += kGatheredWords) {
        const T* from[kGatheredWords];
        words_from(row, j, from);
        gather_words(row, picks, from, j);
    }
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
