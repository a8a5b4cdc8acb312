// Products of the operand of a row with those of its words, and weighted sums of the latter.
//
// A row has an operand a (width numbers), and each of its words has an operand b in B (words x width, row-major). width
// is K rounded up to a multiple of 16; the padding contains zeros, which do not change any sum.
#pragma once

#include "../row_table.hpp"
#include "../simd.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

// Number of vectors per row: a compile-time constant for the common widths, else computed at run time (Width = 0).
template <class T, int Width>
inline int packs(int width) {
    return (Width > 0 ? Width : width) / lanes<T>;
}

// q_j = a . b_j
template <class T, int Width>
void dots(const T* a, const T* B, const int64_t* offset, int64_t n, int width, T* q) {
    const int P = packs<T, Width>(width);
    constexpr int L = lanes<T>;
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const T* b0 = B + offset[j];
        const T* b1 = B + offset[j + 1];
        const T* b2 = B + offset[j + 2];
        const T* b3 = B + offset[j + 3];
        Pack<T> s0 = splat(T(0)), s1 = s0, s2 = s0, s3 = s0;
        for (int p = 0; p < P; ++p) {
            const Pack<T> ap = load(a + p * L);
            s0 = s0 + ap * load(b0 + p * L);
            s1 = s1 + ap * load(b1 + p * L);
            s2 = s2 + ap * load(b2 + p * L);
            s3 = s3 + ap * load(b3 + p * L);
        }
        sum_each<T>(s0, s1, s2, s3, q + j);
    }
    for (; j < n; ++j) {
        const T* b = B + offset[j];
        Pack<T> s = splat(T(0));
        for (int p = 0; p < P; ++p) s = s + load(a + p * L) * load(b + p * L);
        T four[4];
        sum_each<T>(s, s, s, s, four);  // the order of additions above, so that a sum does not depend on its position
        q[j] = four[0];
    }
}

// Prefetches `Columns` numbers, into the second-level cache if Near is false.
template <class T, int Columns, bool Near>
inline void prefetch(const T* numbers) {
#if defined(__GNUC__)
    constexpr int a_line = 64 / static_cast<int>(sizeof(T));
    for (int i = 0; i < Columns; i += a_line) __builtin_prefetch(numbers + i, 0, Near ? 3 : 2);
#endif
}

// Operands are prefetched this many non-zeros before they are used.
constexpr int64_t kAhead = 16;

// acc += sum_j r_j b_j for `Columns` columns, with the sums in registers. b_j starts at B + place_j * stride. The
// operand `ahead` places later is prefetched, if it is among the first `known` ones.
template <class T, int Columns, bool Near, class Place>
inline void accumulate_columns(const T* B, const Place& place, int64_t stride, int64_t n, int64_t ahead, int64_t known,
                               const T* r, T* acc) {
    constexpr int L = lanes<T>;
    constexpr int P = Columns / L;
    Pack<T> total[P];
    for (int p = 0; p < P; ++p) total[p] = load(acc + p * L);
    for (int64_t j = 0; j < n; ++j) {
        const Pack<T> rj = splat(r[j]);
        const T* b = B + static_cast<int64_t>(place[j]) * stride;
        if (j + ahead < known) prefetch<T, Columns, Near>(B + static_cast<int64_t>(place[j + ahead]) * stride);
        for (int p = 0; p < P; ++p) total[p] = total[p] + rj * load(b + p * L);
    }
    for (int p = 0; p < P; ++p) store(acc + p * L, total[p]);
}

template <class T, int Width, bool Near, class Place>
inline void accumulate_any(const T* B, const Place& place, int64_t stride, int64_t n, int64_t ahead, int64_t known,
                           int width, const T* r, T* acc) {
    if constexpr (Width > 0) {
        accumulate_columns<T, Width, Near>(B, place, stride, n, ahead, known, r, acc);
    } else {
        int column = 0;
        for (; column + 64 <= width; column += 64)
            accumulate_columns<T, 64, Near>(B + column, place, stride, n, ahead, known, r, acc + column);
        for (; column < width; column += 16)
            accumulate_columns<T, 16, Near>(B + column, place, stride, n, ahead, known, r, acc + column);
    }
}

// acc += sum_j r_j b_j
template <class T, int Width>
void accumulate(const T* B, const int64_t* offset, int64_t n, int width, const T* r, T* acc) {
    accumulate_any<T, Width, true>(B, offset, 1, n, 0, 0, width, r, acc);
}

// acc += sum_j r_j b_j, where b_j is row index_j of B. The places need no array of their own. If an operand has one or
// two packs, an addition would wait for the one before it, so there are four sums that are added at the end.
template <class T, int Width, class Index>
void accumulate_rows(const T* B, const Index* index, int64_t n, int64_t known, int width, const T* r, T* acc) {
    constexpr int L = lanes<T>, P = Width / L, Sets = 4;
    if constexpr (P == 1 || P == 2) {
        Pack<T> total[Sets][P];
        for (int set = 0; set < Sets; ++set)
            for (int p = 0; p < P; ++p) total[set][p] = set == 0 ? load(acc + p * L) : splat(T(0));
        const auto add = [&](int64_t j, int set) {
            const Pack<T> rj = splat(r[j]);
            const T* b = B + static_cast<int64_t>(index[j]) * Width;
            for (int p = 0; p < P; ++p) total[set][p] = total[set][p] + rj * load(b + p * L);
        };
        int64_t j = 0;
        for (; j + Sets <= n; j += Sets) {
            if (j + kAhead + Sets <= known)
                for (int i = 0; i < Sets; ++i)
                    prefetch<T, Width, true>(B + static_cast<int64_t>(index[j + kAhead + i]) * Width);
            for (int set = 0; set < Sets; ++set) add(j + set, set);
        }
        for (int set = 0; j + set < n; ++set) add(j + set, set);
        for (int p = 0; p < P; ++p) store(acc + p * L, (total[0][p] + total[1][p]) + (total[2][p] + total[3][p]));
    } else {
        accumulate_any<T, Width, true>(B, index, Width > 0 ? Width : width, n, kAhead, known, width, r, acc);
    }
}

// r_j = x_j / q_j, and 0 where q counts as zero, because r might not be finite.
template <class T>
void ratios(const T* x, const T* q, int64_t n, T* r) {
    for (int64_t j = 0; j < n; ++j) r[j] = q[j] > max_zero_product<T>() ? x[j] / q[j] : T(0);
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
