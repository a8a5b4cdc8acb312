// Random counts and operands for the tests of the kernels.
#pragma once

#include <random>

#include "checks.hpp"
#include "counts.hpp"

// Counts in CSR form with their transpose, and operands: rows of A and columns of B sum to one.
template <class Index, class T>
struct Problem {
    int64_t rows, words;
    int topics, width;
    std::vector<Index> indptr, indices, word_indptr, word_rows;
    std::vector<T> values, word_values, weighted_word_values, A, B;
    std::vector<double> weights, totals, word_totals, mass, u;

    Problem(int64_t rows_, int64_t words_, int topics_, unsigned seed)
        : rows(rows_), words(words_), topics(topics_), width((topics_ + 15) / 16 * 16) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> uniform(0, 1);
        indptr.push_back(0);
        for (int64_t d = 0; d < rows; ++d) {
            const double density = d % 7 == 3   ? 0
                                   : d % 5 == 0 ? 1
                                                : 0.3;  // some rows are empty, and some longer than a block
            for (int64_t w = 0; w < words; ++w) {
                if (w % 11 == 10 || uniform(random) >= density) continue;  // every eleventh word occurs in no row
                indices.push_back(static_cast<Index>(w));
                values.push_back(static_cast<T>(1 + std::floor(9 * uniform(random))));
            }
            indptr.push_back(static_cast<Index>(indices.size()));
        }
        A = factor(rows, random, uniform);
        B = factor(words, random, uniform);
        normalize_rows(A, rows);
        normalize_columns(B, words);
        for (int64_t d = 0; d < rows; ++d) weights.push_back(d % 4 == 1 ? 0 : 2 * uniform(random));
        make_transpose();
        totals.assign(at(rows), 0);
        word_totals.assign(at(words), 0);
        mass.assign(at(width), 0);
        u.assign(at(topics), 0);
        for (int64_t d = 0; d < rows; ++d)
            for (Index j = indptr[at(d)]; j < indptr[at(d + 1)]; ++j) {
                totals[at(d)] += static_cast<double>(values[at(j)]);
                word_totals[at(indices[at(j)])] += static_cast<double>(values[at(j)]);
            }
        for (int64_t d = 0; d < rows; ++d)
            for (int k = 0; k < width; ++k) mass[at(k)] += totals[at(d)] * static_cast<double>(A[at(d * width + k)]);
        for (int64_t w = 0; w < words; ++w)
            for (int k = 0; k < topics; ++k) u[at(k)] += static_cast<double>(B[at(w * width + k)]);
    }

    polyseme::Counts<Index, T> counts() const { return {indptr.data(), indices.data(), values.data(), rows, words}; }
    polyseme::Counts<Index, T> by_word() const {
        return {word_indptr.data(), word_rows.data(), word_values.data(), words, rows};
    }
    polyseme::Counts<Index, T> weighted_by_word() const {
        return {word_indptr.data(), word_rows.data(), weighted_word_values.data(), words, rows};
    }

    double dot(const T* a, int64_t w) const {
        double q = 0;
        for (int k = 0; k < width; ++k) q += static_cast<double>(a[k]) * static_cast<double>(B[at(w * width + k)]);
        return q;
    }

  private:
    void make_transpose() {
        word_indptr.push_back(0);
        for (int64_t w = 0; w < words; ++w) {
            for (int64_t d = 0; d < rows; ++d)
                for (Index j = indptr[at(d)]; j < indptr[at(d + 1)]; ++j)
                    if (indices[at(j)] == w) {
                        word_rows.push_back(static_cast<Index>(d));
                        word_values.push_back(values[at(j)]);
                        weighted_word_values.push_back(
                            static_cast<T>(static_cast<double>(values[at(j)]) * weights[at(d)]));
                    }
            word_indptr.push_back(static_cast<Index>(word_rows.size()));
        }
    }

    // Random factor with a third of zeros. Topic 0 is positive in every row, so that no product is zero.
    std::vector<T> factor(int64_t n, std::mt19937& random, std::uniform_real_distribution<double>& uniform) const {
        std::vector<T> numbers(at(n * width), T(0));
        for (int64_t i = 0; i < n; ++i)
            for (int k = 0; k < topics; ++k)
                if (k == 0 || k == i % topics || uniform(random) > 0.33)
                    numbers[at(i * width + k)] = static_cast<T>(0.05 + uniform(random));
        return numbers;
    }

    void normalize_rows(std::vector<T>& numbers, int64_t n) const {
        for (int64_t i = 0; i < n; ++i) {
            double sum = 0;
            for (int k = 0; k < width; ++k) sum += static_cast<double>(numbers[at(i * width + k)]);
            for (int k = 0; k < width; ++k)
                numbers[at(i * width + k)] = static_cast<T>(static_cast<double>(numbers[at(i * width + k)]) / sum);
        }
    }

    void normalize_columns(std::vector<T>& numbers, int64_t n) const {
        for (int k = 0; k < topics; ++k) {
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(numbers[at(i * width + k)]);
            if (!(sum > 0)) continue;
            for (int64_t i = 0; i < n; ++i)
                numbers[at(i * width + k)] = static_cast<T>(static_cast<double>(numbers[at(i * width + k)]) / sum);
        }
    }
};
