// Functions on the non-zeros of one row. Compiled once per instruction set.
//
// A row has an operand a (width numbers), and each of its words has an operand b in B (words x width, row-major). width
// is K rounded up to a multiple of 16; the padding contains zeros, which do not change any sum.
#pragma once
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "logarithm.hpp"
#include "row_table.hpp"

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
inline void accumulate_columns(const T* B, const Place* place, int64_t stride, int64_t n, int64_t ahead, int64_t known,
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
inline void accumulate_any(const T* B, const Place* place, int64_t stride, int64_t n, int64_t ahead, int64_t known,
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
        for (int p = 0; p < P; ++p)
            store(acc + p * L, (total[0][p] + total[1][p]) + (total[2][p] + total[3][p]));
    } else {
        accumulate_any<T, Width, true>(B, index, Width > 0 ? Width : width, n, kAhead, known, width, r, acc);
    }
}

// r_j = x_j / q_j, and 0 where q counts as zero, because r might not be finite.
template <class T>
void ratios(const T* x, const T* q, int64_t n, T* r) {
    for (int64_t j = 0; j < n; ++j) r[j] = q[j] > max_zero_product<T>() ? x[j] / q[j] : T(0);
}

// Non-zeros whose products are held at a time, for their logarithms.
constexpr int kBlock = 64;

// Four numbers x / q, and 0 where q counts as zero.
template <class T>
inline void four_ratios(const T* x, const T* q, T* r) {
#ifdef POLYSEME_VECTOR_TYPES
    typedef T Four __attribute__((vector_size(4 * sizeof(T))));
    Four xs, qs;
    std::memcpy(&xs, x, sizeof xs);
    std::memcpy(&qs, q, sizeof qs);
    const Four rs = qs > max_zero_product<T>() ? xs / qs : Four{};
    std::memcpy(r, &rs, sizeof rs);
#else
    ratios(x, q, 4, r);
#endif
}

// Four non-zeros between the two steps of a sweep: their ratios, and their operands, as far as registers hold them.
template <class T, int Width>
struct SweepGroup {
    static constexpr int P = Width / lanes<T>;
    static constexpr int held_packs = POLYSEME_VECTOR_BYTES == 64 && P <= 4 ? P : 0;  // four operands in 32 registers
    static constexpr bool overlaps = POLYSEME_VECTOR_BYTES == 64 && P <= 2;           // eight operands
    const T* b[4];
    Pack<T> held[4][held_packs > 0 ? held_packs : 1];
    T r[4];
};

// First step: the products of four non-zeros, which are written to q, and their ratios.
template <class T, int Width, class Index>
inline void begin_group(const T* a, const T* B, const Index* index, const T* x, T* q, SweepGroup<T, Width>& group) {
    constexpr int L = lanes<T>, P = Width / L, held_packs = SweepGroup<T, Width>::held_packs;
    Pack<T> s[4];
    for (int i = 0; i < 4; ++i) {
        group.b[i] = B + static_cast<int64_t>(index[i]) * Width;
        s[i] = splat(T(0));
        for (int p = 0; p < P; ++p) {
            const Pack<T> bp = load(group.b[i] + p * L);
            if constexpr (held_packs > 0)
                if (p < held_packs) group.held[i][p] = bp;
            s[i] = s[i] + load(a + p * L) * bp;
        }
    }
    sum_each<T>(s[0], s[1], s[2], s[3], q);
    four_ratios(x, q, group.r);
}

// Second step: adds r_j b_j of the four non-zeros to the sums in registers.
template <class T, int Width>
inline void finish_group(const SweepGroup<T, Width>& group, Pack<T>* total) {
    constexpr int L = lanes<T>, P = Width / L, held_packs = SweepGroup<T, Width>::held_packs;
#if defined(__GNUC__)
    if constexpr (held_packs < P) asm volatile("" : : : "memory");  // operands are read again, not copied to the stack
#endif
    for (int i = 0; i < 4; ++i) {
        const Pack<T> ri = splat(group.r[i]);
        for (int p = 0; p < P; ++p) {
            const Pack<T> bp = p < held_packs ? group.held[i][p] : load(group.b[i] + p * L);
            total[p] = total[p] + ri * bp;
        }
    }
}

// sum x log q of a block of non-zeros; q has room for whole packs. Only the last counts are copied, to be padded.
template <class T>
inline double log_sum(const T* x, T* q, int n) {
    constexpr int many = 8;
    const int whole = n / many * many;
    T rest[many] = {};
    for (int j = whole; j < n; ++j) rest[j - whole] = x[j];
    for (int j = n; j % many != 0; ++j) q[j] = T(1);
    Pack<double> total = splat(0.0);
    add_logs(q, x, whole, total);
    add_logs(q + whole, rest, n - whole, total);
    return sum<double>(total);
}

// Sums over a range. The first step of a group comes before the second step of the previous group, because the sum and
// the division between the steps take longer than the products of a group.
template <class T, int Width, class Index>
inline void sweep_fused(const RowRange<T, Index>& range) {
    constexpr int L = lanes<T>, P = Width / L;
    T q[kBlock];
    Pack<T> total[P];
    for (int p = 0; p < P; ++p) total[p] = load(range.row_sum + p * L);
    for (int64_t begin = 0; begin < range.n; begin += kBlock) {
        const int n = static_cast<int>(range.n - begin < kBlock ? range.n - begin : kBlock);
        const Index* const index = range.index + begin;
        const T* const x = range.x + begin;
        const int whole = n / 4 * 4;
        const auto prefetch_group = [&](int j) {
            if (begin + j + kAhead + 4 <= range.known)
                for (int i = 0; i < 4; ++i)
                    prefetch<T, Width, true>(range.B + static_cast<int64_t>(index[j + kAhead + i]) * Width);
        };
        SweepGroup<T, Width> even, odd;
        int j = 0;
        if constexpr (SweepGroup<T, Width>::overlaps) {
            if (whole > 0) {
                prefetch_group(0);
                begin_group<T, Width>(range.a, range.B, index, x, q, even);
                for (j = 4; j + 8 <= whole; j += 8) {
                    prefetch_group(j);
                    begin_group<T, Width>(range.a, range.B, index + j, x + j, q + j, odd);
                    finish_group<T, Width>(even, total);
                    prefetch_group(j + 4);
                    begin_group<T, Width>(range.a, range.B, index + j + 4, x + j + 4, q + j + 4, even);
                    finish_group<T, Width>(odd, total);
                }
                finish_group<T, Width>(even, total);
            }
        }
        for (; j < whole; j += 4) {
            prefetch_group(j);
            begin_group<T, Width>(range.a, range.B, index + j, x + j, q + j, even);
            finish_group<T, Width>(even, total);
        }
        if (whole < n) {  // the rest as a group with zero counts, whose ratios are zero
            Index rest[4];
            T rest_x[4];
            for (int i = 0; i < 4; ++i) {
                const bool present = whole + i < n;
                rest[i] = index[present ? whole + i : whole];
                rest_x[i] = present ? x[whole + i] : T(0);
            }
            begin_group<T, Width>(range.a, range.B, rest, rest_x, q + whole, even);
            finish_group<T, Width>(even, total);
        }
        if (range.log) *range.log += log_sum(x, q, n);
    }
    for (int p = 0; p < P; ++p) store(range.row_sum + p * L, total[p]);
}

// Adds the sums over a range. If the operands are short, each is used for its product and for the sum at once.
// Otherwise the operands of a block are read twice; the second time they should still be in the first-level cache.
template <class T, int Width, class Index>
void sweep_range(const RowRange<T, Index>& range, int width) {
    if constexpr (Width > 0 && Width / lanes<T> <= 8 && Width * sizeof(T) <= 384) {
        if (range.row_sum) return sweep_fused<T, Width>(range);
    }
    constexpr int64_t cached = 16384;
    const int columns = Width > 0 ? Width : width;
    const int64_t operand_bytes = columns * static_cast<int64_t>(sizeof(T));
    int64_t step = cached / operand_bytes;
    if (step < 8) step = 8;
    if (step > kBlock) step = kBlock;
    T q[kBlock], r[kBlock];
    int64_t offset[2 * kBlock];  // of this block and of the next one, which is prefetched
    for (int64_t begin = 0; begin < range.n; begin += step) {
        const int n = static_cast<int>(range.n - begin < step ? range.n - begin : step);
        const int64_t known = range.known - begin < 2 * n ? range.known - begin : 2 * n;
        for (int64_t j = 0; j < known; ++j) offset[j] = static_cast<int64_t>(range.index[begin + j]) * columns;
        dots<T, Width>(range.a, range.B, offset, n, width, q);
        if (range.row_sum) {
            ratios(range.x + begin, q, n, r);
            accumulate_any<T, Width, false>(range.B, offset, 1, n, n, known, width, r, range.row_sum);
        }
        if (range.log) *range.log += log_sum(range.x + begin, q, n);
    }
}

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
        const Whole bits = reinterpret_cast<const Whole&>(all);
        Whole exponents;
        std::memcpy(&exponents, exponent, sizeof exponents);
        exponents = exponents + (bits >> 52) - 1023;
        std::memcpy(exponent, &exponents, sizeof exponents);
        const Whole mantissa = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
        store(product, reinterpret_cast<const Pack<double>&>(mantissa));
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

template <class T, int Width>
RowTable<T> table_of() {
    return {dots<T, Width>,
            accumulate<T, Width>,
            accumulate_rows<T, Width, int32_t>,
            accumulate_rows<T, Width, int64_t>,
            sweep_range<T, Width, int32_t>,
            sweep_range<T, Width, int64_t>,
            ratios<T>,
            weighted_log_sum<T>,
            gather<T>,
            mix<T>,
            slope<T>,
            shift<T>,
            reciprocal_sums<T>,
            multiplied<T>,
            descend<T>,
            transpose<T>,
            gram<T>};
}

template <class T>
RowTable<T> table_for(int width) {
    switch (width) {
        case 16:
            return table_of<T, 16>();
        case 32:
            return table_of<T, 32>();
        case 48:
            return table_of<T, 48>();
        case 64:
            return table_of<T, 64>();
        case 80:
            return table_of<T, 80>();
        case 96:
            return table_of<T, 96>();
        case 112:
            return table_of<T, 112>();
        case 128:
            return table_of<T, 128>();
        default:
            return table_of<T, 0>();
    }
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
