// Digamma, log-gamma and exp(digamma) of vectors of positive numbers. Compiled once per instruction set.
//
// With z = x + n - 1/2, w = 1 / z^2 and the sum of reciprocals S = sum_{i < n} 1 / (x + i):
//     psi(x)      = log z + sum_k d_k w^k - S
//     exp(psi(x)) = z (1 + sum_k e_k w^k) exp(-S)
//     lgamma(x)   = z log z - z + log(2 pi) / 2 + (1 / z) sum_k g_k w^(k-1) - log prod_{i < n} (x + i)
// d_k = (1 - 2^(1-2k)) B_2k / 2k with Bernoulli's numbers, g_k = -d_k / (2k - 1), and e_k is the series of exp of the
// first. The shift n makes z large enough for the series: 4 for float, 8 for double. Terms i and n - 1 - i of S pair up
// to rational functions of u = x (x + n - 1), so S costs one division.
#pragma once
#include <cmath>

#include "logarithm.hpp"
#include "simd.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

template <class T, std::size_t N>
inline Pack<T> polynomial(const T (&coefficient)[N], const Pack<T>& at) {  // highest power first
    Pack<T> value = splat(coefficient[0]);
    for (std::size_t i = 1; i < N; ++i) value = value * at + splat(coefficient[i]);
    return value;
}

#ifdef POLYSEME_VECTOR_TYPES

inline Pack<double> logarithm(const Pack<double>& x) { return log_pack<11>(x); }

// exp(x) for -700 < x < 700: x = n log 2 + r, and exp(r) by its series. Beyond these limits, which only the padding of
// a row exceeds, the result is arbitrary: the whole numbers are unsigned, so that their overflow is defined.
inline Pack<double> exp_pack(const Pack<double>& x) {
    typedef uint64_t Whole __attribute__((vector_size(POLYSEME_VECTOR_BYTES)));
    static constexpr double series[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
        1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0,         1.0};
    const Pack<double> shifted = x * 1.4426950408889634 + 6755399441055744.0;
    const Pack<double> n = shifted - 6755399441055744.0;
    const Pack<double> r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    const Pack<double> value = polynomial(series, r);
    const Whole bits = as_bits<Whole>(value) + (as_bits<Whole>(shifted) << 52);
    return as_bits<Pack<double>>(bits);
}

// exp(x) for -86 < x < 86
inline Pack<float> exp_pack(const Pack<float>& x) {
    typedef uint32_t Whole __attribute__((vector_size(POLYSEME_VECTOR_BYTES)));
    static constexpr float series[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
    const Pack<float> shifted = x * 1.44269504f + 12582912.0f;
    const Pack<float> n = shifted - 12582912.0f;
    const Pack<float> r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    const Pack<float> value = polynomial(series, r);
    const Whole bits = as_bits<Whole>(value) + (as_bits<Whole>(shifted) << 23);
    return as_bits<Pack<float>>(bits);
}

#else

template <class T>
inline Pack<T> exp_pack(Pack<T> x) {
    for (int i = 0; i < lanes<T>; ++i) x.lane[i] = std::exp(x.lane[i]);
    return x;
}

inline Pack<double> logarithm(Pack<double> x) {
    for (int i = 0; i < lanes<double>; ++i) x.lane[i] = std::log(x.lane[i]);
    return x;
}

#endif

// D = prod_{i < n} (x + i), and S = sum_{i < n} 1 / (x + i) = D' / D.
template <class T>
struct Shifts {
    Pack<T> product, reciprocals;
};

inline Shifts<double> shifts(const Pack<double>& x) {
    static constexpr double D[] = {1, 28, 252, 720, 0}, slope[] = {4, 84, 504, 720};
    const Pack<double> u = x * (x + splat(7.0));
    const Pack<double> product = polynomial(D, u);
    return {product, (x + x + splat(7.0)) * polynomial(slope, u) / product};
}

// x is limited so that the products do not overflow. Beyond the limit, S is far below the rounding error of exp(-S).
inline Shifts<float> shifts(const Pack<float>& number) {
    const Pack<float> x = smaller<float>(number, splat(1e9f));
    const Pack<float> u = x * (x + splat(3.0f));
    const Pack<float> product = u * (u + splat(2.0f));
    return {product, (x + x + splat(3.0f)) * (u + u + splat(2.0f)) / product};
}

// z (1 + sum e_k w^k)
inline Pack<double> exp_digamma_shifted(const Pack<double>& x) {
    static constexpr double e[] = {-0.43960443686008127,  0.08238185223878776,    -0.020734675824368137,
                                   0.007365033269308669,  -0.0039535574489730305, 0.003552482914462081,
                                   -0.006423611111111111, 0.041666666666666664,   1.0};
    const Pack<double> z = x + splat(7.5), inverse = splat(1.0) / z;
    return z * polynomial(e, inverse * inverse);
}

inline Pack<float> exp_digamma_shifted(const Pack<float>& x) {
    static constexpr float e[] = {-0.00395355745f, 0.00355248291f, -0.00642361111f, 0.0416666667f, 1.0f};
    const Pack<float> z = x + splat(3.5f), inverse = splat(1.0f) / z;
    return z * polynomial(e, inverse * inverse);
}

struct Gammas {
    Pack<double> digamma, log_gamma;
};

inline Gammas gammas(const Pack<double>& x) {
    static constexpr double d[] = {-0.4432462767058728,   0.08332316080729167,   -0.021082496875953906,
                                   0.007560961174242424,  -0.004134114583333333, 0.0038442460317460315,
                                   -0.007291666666666667, 0.041666666666666664,  0.0};
    static constexpr double g[] = {0.029549751780391518,   -0.006409473908253205, 0.0019165906250867188,
                                   -0.0008401067971380472, 0.0005905877976190476, -0.0007688492063492063,
                                   0.0024305555555555556,  -0.041666666666666664};
    const Shifts<double> shift = shifts(x);
    const Pack<double> z = x + splat(7.5), inverse = splat(1.0) / z, w = inverse * inverse;
    const Pack<double> log_z = logarithm(z);
    return {log_z + polynomial(d, w) - shift.reciprocals,
            z * log_z - z + splat(0.9189385332046728) + inverse * polynomial(g, w) - logarithm(shift.product)};
}

// Operand of a row of Dirichlet parameters: a_k = exp(psi(g_k) - psi(max g)), at least `floor` (so that a product of
// two operands is never zero), and zero in the padding.
template <class T>
void dirichlet_weights(const T* g, int topics, int width, T floor, T* a) {
    constexpr int L = lanes<T>;
    T top = g[0];
    for (int k = 1; k < topics; ++k) top = g[k] > top ? g[k] : top;
    const Pack<T> highest = splat(top);
    const Pack<T> top_shift = shifts(highest).reciprocals, scale = splat(T(1)) / exp_digamma_shifted(highest);
    const Pack<T> least = splat(sizeof(T) == 4 ? T(-85) : T(-690));
    for (int k = 0; k < width; k += L) {
        const Pack<T> x = load(g + k);
        const Pack<T> power = larger<T>(top_shift - shifts(x).reciprocals, least);
        store(a + k, larger<T>(exp_digamma_shifted(x) * scale * exp_pack(power), splat(floor)));
    }
    for (int k = topics; k < width; ++k) a[k] = T(0);
}

// logs_k = psi(g_k) - shift_k, and the sum over k < topics of lgamma(g_k) + (prior_k - g_k) logs_k.
// Without a shift the row is one Dirichlet distribution: the shift is psi(sum g), and lgamma(sum g) is subtracted.
template <class T>
double dirichlet_terms(const T* g, const double* prior, const double* shift, int topics, int width, double* logs) {
    constexpr int L = lanes<double>;
    double total = 0, same_shift = 0;
    if (!shift) {
        double sum = 0;
        for (int k = 0; k < topics; ++k) sum += static_cast<double>(g[k]);
        const Gammas of_sum = gammas(splat(sum));
        same_shift = of_sum.digamma[0];
        total = -of_sum.log_gamma[0];
    }
    for (int k = 0; k < width; k += L) {
        double numbers[L], terms[L];
        for (int i = 0; i < L; ++i) numbers[i] = static_cast<double>(g[k + i]);
        const Pack<double> x = load(numbers);
        const Gammas at = gammas(x);
        const Pack<double> log = at.digamma - (shift ? load(shift + k) : splat(same_shift));
        store(logs + k, log);
        store(terms, at.log_gamma + (load(prior + k) - x) * log);
        for (int i = 0; i < L && k + i < topics; ++i) total += terms[i];
    }
    return total;
}

// b_k = exp(logs_k - top), at least `floor`, and zero in the padding.
template <class T>
void exp_scaled(const double* logs, double top, int topics, int width, T floor, T* b) {
    constexpr int L = lanes<double>;
    for (int k = 0; k < width; k += L) {
        double numbers[L];
        store(numbers, exp_pack(larger<double>(load(logs + k) - splat(top), splat(-690.0))));
        for (int i = 0; i < L; ++i) {
            const T value = static_cast<T>(numbers[i]);
            b[k + i] = value > floor ? value : floor;
        }
    }
    for (int k = topics; k < width; ++k) b[k] = T(0);
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
