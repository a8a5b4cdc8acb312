// The sums of a sweep over the non-zeros of a row (sweep.hpp).
#pragma once

#include "../logarithm.hpp"
#include "products.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

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

// Packs of a row whose operands are held in registers from the products to the sums, or read again from the
// first-level cache (sweep_short).
constexpr int kShortPacks = POLYSEME_VECTOR_BYTES == 64 ? 3 : 2;
// Packs of the longest row whose sums are held in registers, or next to them on the stack (sweep_merged).
constexpr int kMostPacks = 32;

// Four non-zeros between the two steps of a sweep: their ratios, and their operands, if registers hold them.
template <class T, int Width>
struct SweepGroup {
    static constexpr int P = Width / lanes<T>;
    static constexpr bool held = POLYSEME_VECTOR_BYTES == 64;                // four operands in 32 registers
    static constexpr bool overlaps = POLYSEME_VECTOR_BYTES == 64 && P <= 2;  // eight operands
    const T* b[4];
    Pack<T> operand[4][held ? P : 1];
    T r[4];
};

// First step: the products of four non-zeros, which are written to q, and their ratios.
template <class T, int Width, class Index>
inline void begin_group(const T* a, const T* B, const Index* index, const T* x, T* q, SweepGroup<T, Width>& group) {
    constexpr int L = lanes<T>, P = Width / L;
    constexpr bool held = SweepGroup<T, Width>::held;
    Pack<T> s[4];
    for (int i = 0; i < 4; ++i) {
        group.b[i] = B + static_cast<int64_t>(index[i]) * Width;
        s[i] = splat(T(0));
        for (int p = 0; p < P; ++p) {
            const Pack<T> bp = load(group.b[i] + p * L);
            if constexpr (held) group.operand[i][p] = bp;
            s[i] = s[i] + load(a + p * L) * bp;
        }
    }
    sum_each<T>(s[0], s[1], s[2], s[3], q);
    four_ratios(x, q, group.r);
}

// Second step: adds r_j b_j of the four non-zeros to the sums in registers.
template <class T, int Width>
inline void finish_group(const SweepGroup<T, Width>& group, Pack<T>* total) {
    constexpr int L = lanes<T>, P = Width / L;
    constexpr bool held = SweepGroup<T, Width>::held;
#if defined(__GNUC__)
    if constexpr (!held) asm volatile("" : : : "memory");  // operands are read again, not copied to the stack
#endif
    for (int i = 0; i < 4; ++i) {
        const Pack<T> ri = splat(group.r[i]);
        for (int p = 0; p < P; ++p) {
            if constexpr (held)
                total[p] = total[p] + ri * group.operand[i][p];
            else
                total[p] = total[p] + ri * load(group.b[i] + p * L);
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

// Sums over a range of a short row. The first step of a group comes before the second step of the previous group,
// because the sum and the division between the steps take longer than the products of a group.
template <class T, int Width, class Index>
inline void sweep_short(const RowRange<T, Index>& range) {
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

// Sums over a range of rows of more packs. One loop adds the products of four non-zeros and r b of the four before
// them, because the sum of a product and the division take longer than the multiplications of four non-zeros.
template <class T, int Width, class Index>
inline void sweep_merged(const RowRange<T, Index>& range) {
    constexpr int L = lanes<T>, P = Width / L, ahead = Width * sizeof(T) <= 256 ? kAhead : kAhead / 2;
    T q[kBlock];
    Pack<T> total[P], r[4], last_r[4];
    const T *b[4], *last_b[4];
    for (int p = 0; p < P; ++p) total[p] = load(range.row_sum + p * L);
    for (int i = 0; i < 4; ++i) {
        b[i] = range.a;
        r[i] = splat(T(0));
    }
    for (int64_t begin = 0; begin < range.n + 4; begin += kBlock) {
        const int64_t left = range.n + 4 - begin;
        for (int j = 0; j < (left < kBlock ? left : kBlock); j += 4) {
            const Index* const index = range.index + begin + j;
            T x[4];
            for (int i = 0; i < 4; ++i) {
                last_b[i] = b[i];
                last_r[i] = r[i];
            }
            if (begin + j + 4 <= range.n) {
                for (int i = 0; i < 4; ++i) {
                    b[i] = range.B + static_cast<int64_t>(index[i]) * Width;
                    x[i] = range.x[begin + j + i];
                }
            } else {  // after the last non-zero come others with count zero, whose ratios are zero
                for (int i = 0; i < 4; ++i) {
                    const bool present = begin + j + i < range.n;
                    b[i] = present ? range.B + static_cast<int64_t>(index[i]) * Width : range.a;
                    x[i] = present ? range.x[begin + j + i] : T(0);
                }
            }
            if (begin + j + ahead + 4 <= range.known)
                for (int i = 0; i < 4; ++i)
                    prefetch<T, Width, true>(range.B + static_cast<int64_t>(index[ahead + i]) * Width);
            Pack<T> s[4];
            for (int i = 0; i < 4; ++i) s[i] = splat(T(0));
#pragma GCC unroll 32
            for (int p = 0; p < P; ++p) {
                const Pack<T> ap = load(range.a + p * L);
                for (int i = 0; i < 4; ++i) s[i] = s[i] + ap * load(b[i] + p * L);
                for (int i = 0; i < 4; ++i) total[p] = total[p] + last_r[i] * load(last_b[i] + p * L);
            }
            T ratio[4];
            sum_each<T>(s[0], s[1], s[2], s[3], q + j);
            four_ratios(x, q + j, ratio);
            for (int i = 0; i < 4; ++i) r[i] = splat(ratio[i]);
        }
        const int n = static_cast<int>(range.n - begin < kBlock ? range.n - begin : kBlock);
        if (range.log && n > 0) *range.log += log_sum(range.x + begin, q, n);
    }
    for (int p = 0; p < P; ++p) store(range.row_sum + p * L, total[p]);
}

// Adds the sums over a range. If the operands are not too long, each is used for its product and for the sum while it
// is in the first-level cache. Otherwise the operands of a block are read twice; the second time they should still be
// there.
template <class T, int Width, class Index>
void sweep_range(const RowRange<T, Index>& range, int width) {
    constexpr int P = Width / lanes<T>;
    if constexpr (0 < P && P <= kShortPacks) {
        if (range.row_sum) return sweep_short<T, Width>(range);
    } else if constexpr (0 < P && P <= kMostPacks) {
        if (range.row_sum) return sweep_merged<T, Width>(range);
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

}  // namespace POLYSEME_ISA
}  // namespace polyseme
