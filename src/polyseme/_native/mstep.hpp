// The M-step of EM from the sums of a sweep, with bounds on the remaining gain (see core/model.py).
#pragma once
#include <cmath>
#include <vector>

#include "threads.hpp"

namespace polyseme {

// Smaller probabilities are set to zero, because products of two of them would be denormal.
template <class T>
constexpr T negligible() {
    return sizeof(T) == 4 ? T(1e-30) : T(1e-200);
}

// Sum of the numbers, by eight partial sums that the compiler can vectorize, added in a fixed order. width is a
// multiple of 8.
template <class T>
double sum_of(const T* numbers, int width) {
    double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int k = 0; k < width; k += 8)
        for (int i = 0; i < 8; ++i) lane[i] += static_cast<double>(numbers[k + i]);
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

template <class T>
T max_of(const T* numbers, int width) {
    T lane[8] = {};
    for (int k = 0; k < width; k += 8)
        for (int i = 0; i < 8; ++i) lane[i] = numbers[k + i] > lane[i] ? numbers[k + i] : lane[i];
    T largest = lane[0];
    for (int i = 1; i < 8; ++i) largest = lane[i] > largest ? lane[i] : largest;
    return largest;
}

// sum_d weight_d rows_d (width numbers): partial sums of pieces of rows, added in a fixed order.
template <class T>
void weighted_sum(const double* weights, const T* rows, int64_t n, int width, double* total, int n_threads) {
    constexpr int64_t step = 1024;
    const int64_t pieces = (n + step - 1) / step;
    const std::size_t W = static_cast<std::size_t>(width);
    std::vector<double> partial(static_cast<std::size_t>(pieces) * W, 0.0);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        double* sums = partial.data() + static_cast<std::size_t>(piece) * W;
        for (int64_t d = piece * step; d < std::min(n, (piece + 1) * step); ++d) {
            const T* row = rows + d * width;
            const double weight = weights[d];
            for (int k = 0; k < width; ++k) sums[k] += weight * static_cast<double>(row[k]);
        }
    });
    std::fill(total, total + width, 0.0);
    for (int64_t piece = 0; piece < pieces; ++piece)
        for (std::size_t k = 0; k < W; ++k) total[k] += partial[static_cast<std::size_t>(piece) * W + k];
}

// out = max(next + size (next - last), keep next), the extrapolation of a step (solvers/ascent.py)
template <class T>
void extrapolate(const T* next, const T* last, T size, T keep, int64_t n, T* out, int n_threads) {
    constexpr int64_t step = 1 << 14;
    for_each_piece((n + step - 1) / step, n_threads, [&](int, int64_t piece) {
        const int64_t end = std::min(n, (piece + 1) * step);
        for (int64_t i = piece * step; i < end; ++i) {
            const T further = (next[i] - last[i]) * size + next[i], least = keep * next[i];
            out[i] = further < least ? least : further;  // NaN stays NaN
        }
    });
}

// out = factor * scales, or factor / scales, with one scale per column
template <class T>
void rescale_columns(const T* factor, const T* scales, bool divide, int64_t rows, int width, T* out, int n_threads) {
    constexpr int64_t step = 256;
    for_each_piece((rows + step - 1) / step, n_threads, [&](int, int64_t piece) {
        const int64_t end = std::min(rows, (piece + 1) * step);
        for (int64_t i = piece * step; i < end; ++i) {
            const T* const from = factor + i * width;
            T* const to = out + i * width;
            if (divide)
                for (int k = 0; k < width; ++k) to[k] = from[k] / scales[k];
            else
                for (int k = 0; k < width; ++k) to[k] = from[k] * scales[k];
        }
    });
}

// M-step of the rows: row_sums_d <- A_d * row_sums_d, normalized. gains_d = n_d log max_k(row_sums_dk / n_d), computed
// before the update.
template <class T>
void finish_rows(const T* A, T* row_sums, const double* totals, int64_t rows, int width, double* gains, int n_threads) {
    constexpr int64_t step = 256;
    for_each_piece((rows + step - 1) / step, n_threads, [&](int, int64_t piece) {
        for (int64_t d = piece * step; d < std::min(rows, (piece + 1) * step); ++d) {
            const T* a = A + d * width;
            T* sums = row_sums + d * width;
            const T largest = max_of(sums, width);
            for (int k = 0; k < width; ++k) sums[k] *= a[k];
            const double total = sum_of(sums, width);
            const T scale = total > 0 ? static_cast<T>(1.0 / total) : T(0);
            for (int k = 0; k < width; ++k) {
                const T value = sums[k] * scale;
                sums[k] = value > negligible<T>() ? value : T(0);
            }
            gains[d] = totals[d] > 0 ? totals[d] * std::log(static_cast<double>(largest) / totals[d]) : 0.0;
        }
    });
}

// Words: phi <- B * word_sums with columns normalized. gains_w = n_w log max_k(word_sums_wk / mass_k) over topics with
// mass.
template <class T>
void finish_words(const T* B, const double* word_sums, const double* mass, const double* totals, int64_t words,
                  int width, T* phi, double* gains, int n_threads) {
    constexpr int64_t step = 256;
    const int64_t pieces = (words + step - 1) / step;
    const std::size_t W = static_cast<std::size_t>(width);
    std::vector<double> partial(static_cast<std::size_t>(pieces) * W, 0.0), inverse_mass(W), column(W, 0.0);
    for (std::size_t k = 0; k < W; ++k) inverse_mass[k] = mass[k] > 0 ? 1.0 / mass[k] : 0.0;
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        double* sums = partial.data() + static_cast<std::size_t>(piece) * W;
        std::vector<double> slopes(W);
        for (int64_t w = piece * step; w < std::min(words, (piece + 1) * step); ++w) {
            const T* b = B + w * width;
            const double* from = word_sums + w * width;
            for (std::size_t k = 0; k < W; ++k) {
                slopes[k] = from[k] * inverse_mass[k];
                sums[k] += static_cast<double>(b[k]) * from[k];
            }
            const double steepest = max_of(slopes.data(), width);
            gains[w] = totals[w] > 0 && steepest > 0 ? totals[w] * std::log(steepest) : 0.0;
        }
    });
    for (int64_t piece = 0; piece < pieces; ++piece)
        for (std::size_t k = 0; k < W; ++k) column[k] += partial[static_cast<std::size_t>(piece) * W + k];
    for (double& sum : column) sum = sum > 0 ? 1.0 / sum : 0.0;
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        for (int64_t w = piece * step; w < std::min(words, (piece + 1) * step); ++w) {
            for (std::size_t k = 0; k < W; ++k) {
                const std::size_t i = static_cast<std::size_t>(w) * W + k;
                const T value = static_cast<T>(static_cast<double>(B[i]) * word_sums[i] * column[k]);
                phi[i] = value > negligible<T>() ? value : T(0);
            }
        }
    });
}

}  // namespace polyseme
