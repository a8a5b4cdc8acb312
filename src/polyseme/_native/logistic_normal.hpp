// Posteriors of documents under the correlated topic model: operands, terms of the bound, updates and folding in.
// rows/logistic_normal.hpp has the formulas. Every document is updated by itself, so results do not depend on threads.
#pragma once
#include <cmath>
#include <vector>

#include "counts.hpp"
#include "dirichlet_table.hpp"
#include "normal_table.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

// A prior padded to whole vectors. It owns the arrays of `prior`.
class PaddedPrior {
  public:
    PaddedPrior(const double* mean, const double* precision, double log_det, int topics)
        : width_((topics + 15) / 16 * 16), mean_(as_size(width_)), diagonal_(as_size(width_), 1.0),
          precision_(as_size(width_) * as_size(width_)) {
        std::copy(mean, mean + topics, mean_.begin());
        for (int k = 0; k < topics; ++k) {
            const double* row = precision + static_cast<int64_t>(k) * topics;
            std::copy(row, row + topics, precision_.begin() + static_cast<int64_t>(k) * width_);
            diagonal_[as_size(k)] = row[k];
        }
        prior = {mean_.data(), precision_.data(), diagonal_.data(), log_det, topics, width_};
    }
    PaddedPrior(const PaddedPrior&) = delete;
    PaddedPrior& operator=(const PaddedPrior&) = delete;

    NormalPrior prior;

  private:
    static std::size_t as_size(int64_t i) { return static_cast<std::size_t>(i); }

    int width_;
    std::vector<double> mean_, diagonal_, precision_;
};

// Posteriors of documents (rows x topics each).
template <class Number>
struct NormalsOf {
    Number* mean;
    Number* variance;
};
typedef NormalsOf<const double> GivenNormals;
typedef NormalsOf<double> Normals;

// The posterior of one document at a time.
template <class T>
class NormalRow {
  public:
    NormalRow(const NormalPrior& prior, Isa isa)
        : prior_(prior), table_(normal_table(isa)), dirichlet_(dirichlet_table<T>(isa)), mean_(size()),
          variance_(size(), 1.0), expected_(size()), work_(kNormalArrays * size()) {}

    void load(const GivenNormals& docs, int64_t d) {
        std::copy_n(docs.mean + d * prior_.topics, prior_.topics, mean_.begin());
        std::copy_n(docs.variance + d * prior_.topics, prior_.topics, variance_.begin());
    }

    void store(const Normals& docs, int64_t d) const {
        std::copy_n(mean_.begin(), prior_.topics, docs.mean + d * prior_.topics);
        std::copy_n(variance_.begin(), prior_.topics, docs.variance + d * prior_.topics);
    }

    // a = exp(lambda) divided by its maximum (width numbers)
    void operand(T* a) const {
        const double top = *std::max_element(mean_.begin(), mean_.begin() + prior_.topics);
        dirichlet_.exp_scaled(mean_.data(), top, prior_.topics, prior_.width, min_operand<T>(), a);
    }

    double terms(double total) { return table_.terms(prior_, total, mean_.data(), variance_.data(), work_.data()); }

    // Updates the posterior for expected counts a_k sums_k. They are scaled to sum to `total`: rounded float32 sums of
    // many tokens can miss it by a token, and adding a large number to all eta would then seem to raise the bound.
    void improve(const T* a, const T* sums, double total) {
        double sum = 0;
        for (int k = 0; k < prior_.topics; ++k) {
            expected_[static_cast<std::size_t>(k)] = static_cast<double>(a[k]) * static_cast<double>(sums[k]);
            sum += expected_[static_cast<std::size_t>(k)];
        }
        const double scale = sum > 0 ? total / sum : 1;
        for (double& number : expected_) number *= scale;
        table_.improve(prior_, expected_.data(), total, mean_.data(), variance_.data(), work_.data());
    }

  private:
    std::size_t size() const { return static_cast<std::size_t>(prior_.width); }

    const NormalPrior& prior_;
    NormalTable table_;
    DirichletTable<T> dirichlet_;
    std::vector<double> mean_, variance_, expected_, work_;
};

template <class T, class Body>
void for_each_normal(const NormalPrior& prior, int64_t rows, int n_threads, Isa isa, Body body) {
    constexpr int64_t step = 16;
    for_each_piece((rows + step - 1) / step, n_threads, [&](int, int64_t piece) {
        NormalRow<T> row(prior, isa);
        for (int64_t d = piece * step; d < std::min(rows, (piece + 1) * step); ++d) body(row, d);
    });
}

// Computes the operand of every document (rows x width) and its terms of the bound.
template <class T>
void normal_operands(const GivenNormals& docs, const NormalPrior& prior, const double* totals, int64_t rows, T* A,
                     double* terms, int n_threads, Isa isa) {
    for_each_normal<T>(prior, rows, n_threads, isa, [&](NormalRow<T>& row, int64_t d) {
        row.load(docs, d);
        row.operand(A + d * prior.width);
        terms[d] = row.terms(totals[d]);
    });
}

// Computes the next posterior of every document, for the expected counts A times row_sums (rows x width).
template <class T>
void improve_normals(const GivenNormals& docs, const Normals& next, const NormalPrior& prior, const T* A,
                     const T* row_sums, const double* totals, int64_t rows, int n_threads, Isa isa) {
    for_each_normal<T>(prior, rows, n_threads, isa, [&](NormalRow<T>& row, int64_t d) {
        row.load(docs, d);
        row.improve(A + d * prior.width, row_sums + d * prior.width, totals[d]);
        row.store(next, d);
    });
}

// Updates every document with words until a step moves at most `tol` of its weights, with topics B (words x width).
template <class Index, class T>
void fold_normals(const Counts<Index, T>& counts, const T* B, const Normals& docs, const NormalPrior& prior, int steps,
                  double tol, int n_threads, Isa isa) {
    const RowTable<T> table = row_table<T>(isa, prior.width);
    for_each_normal<T>(prior, counts.rows, n_threads, isa, [&](NormalRow<T>& row, int64_t d) {
        const int64_t begin = counts.indptr[d], n = counts.indptr[d + 1] - begin;
        const std::size_t many = static_cast<std::size_t>(n), width = static_cast<std::size_t>(prior.width);
        std::vector<int64_t> offset(many);
        std::vector<T> q(many), r(many), a(width), next(width), sums(width);
        double total = 0;
        for (int64_t j = 0; j < n; ++j) {
            offset[static_cast<std::size_t>(j)] = static_cast<int64_t>(counts.indices[begin + j]) * prior.width;
            total += static_cast<double>(counts.values[begin + j]);
        }
        if (!(total > 0)) return;
        row.load({docs.mean, docs.variance}, d);
        row.operand(a.data());
        bool moving = true;
        for (int step = 0; moving && step < steps; ++step) {
            table.dots(a.data(), B, offset.data(), n, prior.width, q.data());
            table.ratios(counts.values + begin, q.data(), n, r.data());
            std::fill(sums.begin(), sums.end(), T(0));
            table.accumulate(B, offset.data(), n, prior.width, r.data(), sums.data());
            row.improve(a.data(), sums.data(), total);
            row.operand(next.data());
            double sum = 0, next_sum = 0, moved = 0;
            for (std::size_t k = 0; k < width; ++k) {
                sum += static_cast<double>(a[k]);
                next_sum += static_cast<double>(next[k]);
            }
            for (std::size_t k = 0; k < width; ++k)
                moved += std::fabs(static_cast<double>(next[k]) / next_sum - static_cast<double>(a[k]) / sum) / 2;
            moving = moved > tol;
            a.swap(next);
        }
        row.store(docs, d);
    });
}

}  // namespace polyseme
