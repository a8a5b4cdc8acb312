// Natural logarithm of vectors of float64 numbers, accurate to about one unit in the last place.
// q = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), as a series in s^2.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>

#include "simd.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

#ifdef POLYSEME_VECTOR_TYPES

// Terms: number of terms of the series. The first omitted term is at most 2 s^(2 Terms + 3) / (2 Terms + 3) with
// |s| <= 0.172: relative to the result, 1e-16 for 11 terms and 2e-11 for 5.
constexpr int kExact = 11;

template <int Terms>
inline Pack<double> log_pack(const Pack<double>& q) {
    typedef int64_t Whole __attribute__((vector_size(POLYSEME_VECTOR_BYTES)));
    const Whole one = Whole{} + 1;
    const Whole bits = as_bits<Whole>(q);
    // Subtracting the bits of sqrt(1/2) moves the boundary between exponents there.
    const Whole shifted = bits - 0x3fe6a09e667f3bcdLL;
    const Whole exponent = shifted >> 52;
    const Whole mantissa_bits = bits - (exponent << 52);
    const Pack<double> m = as_bits<Pack<double>>(mantissa_bits);
    // |exponent| < 2048 fits the low bits of 1.5 * 2^52, which gives an exact conversion without a 64-bit instruction.
    const Whole biased = exponent + 0x4338000000000000LL;
    const Pack<double> e = as_bits<Pack<double>>(biased) - 6755399441055744.0;
    const Pack<double> s = (m - 1.0) / (m + 1.0);
    const Pack<double> z = s * s;
    Pack<double> series = splat(2.0 / (2 * Terms + 1));
    for (int term = Terms - 1; term > 0; --term) series = series * z + 2.0 / (2 * term + 1);
    const Pack<double> log_m = 2.0 * s + s * z * series;
    const Pack<double> result = e * 0.693147180369123816490 + (log_m + e * 1.90821492927058770002e-10);
    // Denormal numbers count as zero, because the kernels flush them to zero.
    const Whole positive = (bits >= (one << 52));
    const Pack<double> none = splat(-std::numeric_limits<double>::infinity());
    const Whole chosen = (positive & as_bits<Whole>(result)) | (~positive & as_bits<Whole>(none));
    return as_bits<Pack<double>>(chosen);
}

inline Pack<double> as_doubles(const double* from) { return load(from); }

inline Pack<double> as_doubles(const float* from) {
    typedef float Half __attribute__((vector_size(POLYSEME_VECTOR_BYTES / 2)));
    Half half;
    std::memcpy(&half, from, sizeof half);
    return __builtin_convertvector(half, Pack<double>);
}

// Adds x_j log q_j of the first n numbers. Both arrays are padded with q = 1, x = 0 to whole packs.
template <class T>
inline void add_logs(const T* q, const T* x, int64_t n, Pack<double>& total) {
    constexpr int L = lanes<double>;
    constexpr int kTerms = sizeof(T) == 4 ? 5 : kExact;  // a float32 q is not known to more than 6e-8 relative
    for (int64_t j = 0; j < n; j += L) total += as_doubles(x + j) * log_pack<kTerms>(as_doubles(q + j));
}

#else

template <class T>
inline void add_logs(const T* q, const T* x, int64_t n, Pack<double>& total) {
    for (int64_t j = 0; j < n; ++j) total.lane[0] += static_cast<double>(x[j]) * std::log(static_cast<double>(q[j]));
}

#endif

// sum_j x_j log q_j over the first n numbers, of arrays that are padded as above.
template <class T>
inline double weighted_log_sum(const T* q, const T* x, int64_t n) {
    Pack<double> total = splat(0.0);
    add_logs(q, x, n, total);
    return sum<double>(total);
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
