// The nearest of many vectors to a query, by their products, found with a copy of the vectors in eight bits.
//
// A vector u is stored as scale * code, with integer codes from -127 to 127, and the length of the difference, |u -
// scale * code|. The product with a query differs from the exact one by at most this length times that of the query, so
// a vector whose product plus this error is below the k-th largest product minus its error cannot be among the k best.
// Exact products are computed for the remaining vectors, a few of tens of thousands.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ranking.hpp"

namespace polyseme {

constexpr int64_t kCodeStep = 16;        // codes of a vector are padded with zeros to a multiple of this
constexpr int64_t kMostCodes = 1 << 20;  // sums of products of this many codes fit into 32 bits
constexpr int64_t kVectorRange = 2048;   // vectors whose products are in the cache at the same time
constexpr float kRoundingSlack = 4e-6f;  // more than float32 arithmetic adds to the error of products of unit vectors

struct VectorCodes {
    const int8_t* codes;  // vectors x width
    const float* scales;  // vectors
    const float* errors;  // vectors: |u - scale * code|, rounded up
    int64_t n, width;
};

// Writes codes, scales and errors of the vectors, which are the columns of `units` (size x n).
inline void encode_vectors(const float* units, int64_t size, int64_t n, int64_t width, int8_t* codes, float* scales,
                           float* errors) {
    constexpr int64_t step = 64;  // columns that are read together
    std::vector<float> block(static_cast<std::size_t>(step * size));
    for (int64_t first = 0; first < n; first += step) {
        const int64_t many = std::min(step, n - first);
        for (int64_t k = 0; k < size; ++k)
            for (int64_t i = 0; i < many; ++i) block[static_cast<std::size_t>(i * size + k)] = units[k * n + first + i];
        for (int64_t i = 0; i < many; ++i) {
            const float* const u = block.data() + i * size;
            int8_t* const code = codes + (first + i) * width;
            float largest = 0;
            for (int64_t k = 0; k < size; ++k) largest = std::max(largest, std::fabs(u[k]));
            const float scale = largest / 127;
            double rest = 0;
            for (int64_t k = 0; k < width; ++k) {
                const float value = k < size && scale > 0 ? u[k] / scale : 0;
                code[k] =
                    std::fabs(value) < 127.5f ? static_cast<int8_t>(std::lrint(value)) : int8_t{0};  // 0 for NaN
                const double difference = k < size ? double{u[k]} - double{scale} * code[k] : 0;
                rest += difference * difference;
            }
            scales[first + i] = scale;
            errors[first + i] = std::nextafter(static_cast<float>(std::sqrt(rest)), std::numeric_limits<float>::max());
        }
    }
}

// Products of codes with a query of 16-bit numbers. Sums of integers are the same for any instruction set.
#if defined(__GNUC__)
__attribute__((always_inline))
#endif
inline void add_up_codes(const int8_t* codes, const int16_t* query, int64_t n, int64_t width, int32_t* products) {
    for (int64_t i = 0; i < n; ++i) {
        int32_t total = 0;
        for (int64_t k = 0; k < width; ++k)
            total += static_cast<int32_t>(static_cast<int16_t>(codes[i * width + k])) * query[k];
        products[i] = total;
    }
}

inline void code_products_baseline(const int8_t* codes, const int16_t* query, int64_t n, int64_t width, int32_t* out) {
    add_up_codes(codes, query, n, width, out);
}

#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("avx2"))) inline void code_products_avx2(const int8_t* codes, const int16_t* query, int64_t n,
                                                               int64_t width, int32_t* out) {
    add_up_codes(codes, query, n, width, out);
}

inline auto code_products() { return __builtin_cpu_supports("avx2") ? code_products_avx2 : code_products_baseline; }
#else
inline auto code_products() { return code_products_baseline; }
#endif

// Finds the k vectors with the largest positive products with a query. Products are sums in float64, rounded to float32;
// ties are in the order of the vectors. The vectors, columns of `units` (size x n), and the query have at most length 1.
inline void nearest_vectors(const VectorCodes& vectors, const float* units, const float* query, int64_t size,
                            const uint8_t* allowed, std::size_t k, Best& best) {
    float largest = 0;
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) {
        largest = std::max(largest, std::fabs(query[i]));
        squares += double{query[i]} * query[i];
    }
    if (!(largest > 0)) return;
    const double most = std::floor(2147483647.0 / (127.0 * static_cast<double>(vectors.width)));
    const double step = largest / std::min(32767.0, most);
    std::vector<int16_t> codes(static_cast<std::size_t>(vectors.width));
    double rest = 0;
    for (int64_t i = 0; i < size; ++i) {
        codes[static_cast<std::size_t>(i)] = static_cast<int16_t>(std::lrint(query[i] / step));
        const double difference = query[i] - step * codes[static_cast<std::size_t>(i)];
        rest += difference * difference;
    }
    const auto length = static_cast<float>(std::sqrt(squares)), factor = static_cast<float>(step);
    const float own = static_cast<float>(std::sqrt(rest)) + kRoundingSlack;

    struct Candidate {
        int32_t vector;
        float most;  // the largest product that it can have
    };
    std::vector<Candidate> candidates;
    Best certain(k);  // by the smallest products that the vectors can have
    const auto multiply = code_products();
    int32_t products[kVectorRange];
    alignas(64) float low[kVectorRange], high[kVectorRange];
    for (int64_t first = 0; first < vectors.n; first += kVectorRange) {
        const int64_t n = std::min(kVectorRange, vectors.n - first);
        multiply(vectors.codes + first * vectors.width, codes.data(), n, vectors.width, products);
        const float* const scales = vectors.scales + first;
        const float* const errors = vectors.errors + first;
        for (int64_t i = 0; i < n; ++i) {
            const float product = static_cast<float>(products[i]) * factor * scales[i];
            const float error = errors[i] * (length + own) + own;
            low[i] = product - error;
            high[i] = product + error;
        }
        add_best(low, n, first, allowed, certain);
        for (int64_t start = 0; start < n; start += kGroup) {
            const int64_t end = std::min(start + kGroup, n);
            if (end - start == kGroup && bits_above(high + start, certain.threshold()) == 0) continue;
            for (int64_t i = start; i < end; ++i)
                if (high[i] > certain.threshold() && (!allowed || allowed[first + i]))
                    candidates.push_back({static_cast<int32_t>(first + i), high[i]});
        }
    }
    const std::vector<Best::Found> found = certain.sorted();
    const float least = found.size() == k ? found.back().score : 0;
    candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                    [least](const Candidate& each) { return each.most < least; }),
                     candidates.end());
    std::vector<double> exact(candidates.size());
    for (int64_t i = 0; i < size; ++i) {
        const float* const row = units + i * vectors.n;
        for (std::size_t c = 0; c < candidates.size(); ++c) exact[c] += double{query[i]} * row[candidates[c].vector];
    }
    for (std::size_t c = 0; c < candidates.size(); ++c)
        if (const auto score = static_cast<float>(exact[c]); score > best.threshold())
            best.add(score, candidates[c].vector);
}

}  // namespace polyseme
