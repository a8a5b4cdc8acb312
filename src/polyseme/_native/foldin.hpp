// Folding in: topic weights of each row with the word operands fixed, computed row by row until convergence.
//
// The likelihood is concave in the weights. Without a background and a temperature, coordinate ascent (coordinate.hpp)
// finds the maximum and stops when the duality gap is at most tol nats per token. Otherwise EM is used: with g_k =
// sum_w x (1 - lambda) b_wk / q_w, theta_k <- theta_k g_k / sum. It stops when the bound on the gain from other weights
//     n log((n - sum_k theta_k g_k + max_k g_k) / n)
// (by Jensen's inequality) is at most tol per token or, with a temperature, when a step changes the weights by at most
// tol. The result of a row does not depend on the other rows of the batch.
#pragma once
#include <cmath>
#include <vector>

#include "coordinate.hpp"
#include "counts.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

struct FoldInSettings {
    int topics;           // K; the width of B is K (+ 1 with a background) rounded up
    double background;    // lambda: fixed weight of column K of B; 0 for no background
    double temperature;   // beta: exponent of theta and B (the caller has raised B to it); 1 for plain EM
    double tol;           // nats per token
    int max_iter;         // EM steps
    bool by_coordinates;  // only without background and temperature
};

// EM for one row at a time.
template <class T>
class FoldByEM {
  public:
    FoldByEM(const T* B, int width, const FoldInSettings& settings, Isa isa)
        : B_(B), width_(width), settings_(settings), rows_(row_table<T>(isa, width)), a_(as_size(width)),
          acc_(as_size(width)) {}

    // Returns the number of steps, negative if the limit was reached before convergence.
    template <class Index>
    int fold(const Index* indices, const T* x, int64_t n, T* theta) {
        load(indices, x, n);
        theta_.assign(as_size(settings_.topics), 1.0 / settings_.topics);
        int steps = 0;
        bool converged = false;
        while (!converged && steps < settings_.max_iter) {
            converged = step(x);
            ++steps;
        }
        for (int k = 0; k < settings_.topics; ++k) theta[k] = static_cast<T>(theta_[as_size(k)]);
        return converged ? steps : -steps;
    }

  private:
    static std::size_t as_size(int64_t i) { return static_cast<std::size_t>(i); }

    template <class Index>
    void load(const Index* indices, const T* x, int64_t n) {
        n_ = n;
        offset_.resize(as_size(n_));
        q_.resize(as_size(n_));
        r_.resize(as_size(n_));
        total_ = 0;
        for (int64_t j = 0; j < n_; ++j) {
            offset_[as_size(j)] = static_cast<int64_t>(indices[j]) * width_;
            total_ += static_cast<double>(x[j]);
        }
    }

    // Runs one EM step. Returns true if the weights before it had converged.
    bool step(const T* x) {
        const double keep = std::pow(1.0 - settings_.background, settings_.temperature);
        for (int k = 0; k < settings_.topics; ++k) {
            const double value = theta_[as_size(k)];
            a_[as_size(k)] =
                static_cast<T>(keep * (settings_.temperature == 1.0 ? value : std::pow(value, settings_.temperature)));
        }
        if (settings_.background > 0)
            a_[as_size(settings_.topics)] = static_cast<T>(std::pow(settings_.background, settings_.temperature));
        rows_.dots(a_.data(), B_, offset_.data(), n_, width_, q_.data());
        rows_.ratios(x, q_.data(), n_, r_.data());
        std::fill(acc_.begin(), acc_.end(), T(0));
        rows_.accumulate(B_, offset_.data(), n_, width_, r_.data(), acc_.data());
        double sum = 0, largest = 0, change = 0;
        for (int k = 0; k < settings_.topics; ++k) {
            sum += static_cast<double>(a_[as_size(k)]) * static_cast<double>(acc_[as_size(k)]);
            largest = std::max(largest, keep * static_cast<double>(acc_[as_size(k)]));
        }
        if (!(sum > 0)) return true;  // the background explains every word, so all weights are equally good
        for (int k = 0; k < settings_.topics; ++k) {
            const double next = static_cast<double>(a_[as_size(k)]) * static_cast<double>(acc_[as_size(k)]) / sum;
            change += std::fabs(next - theta_[as_size(k)]);
            theta_[as_size(k)] = next;
        }
        if (settings_.temperature != 1.0) return change <= settings_.tol;
        return std::log((total_ - sum + largest) / total_) <= settings_.tol;
    }

    const T* B_;
    int width_;
    FoldInSettings settings_;
    RowTable<T> rows_;
    std::vector<T> a_, acc_, q_, r_;
    std::vector<int64_t> offset_;
    std::vector<double> theta_;
    int64_t n_ = 0;
    double total_ = 0;
};

// Coordinate ascent for one row at a time. Each round evaluates all topics, then runs a few passes over the active
// ones.
template <class T>
class FoldByCoordinates {
  public:
    FoldByCoordinates(const T* B, int width, const double* u, const FoldInSettings& settings, Isa isa)
        : settings_(settings), row_(B, settings.topics, width, u, isa), theta_(static_cast<std::size_t>(width)) {}

    template <class Index>
    int fold(const Index* indices, const T* x, int64_t n, T* theta) {
        row_.load(indices, x, n, n);
        const int K = settings_.topics;
        std::fill(theta_.begin(), theta_.begin() + K, static_cast<T>(row_.total() / K));
        int rounds = 0;
        bool converged = false;
        while (!converged && rounds < settings_.max_iter) {
            converged = row_.evaluate(theta_.data()) <= settings_.tol * row_.total();
            if (!converged) row_.improve(theta_.data(), 4, 1e-6, 0);
            ++rounds;
        }
        double sum = 0;
        for (int k = 0; k < K; ++k) sum += static_cast<double>(theta_[static_cast<std::size_t>(k)]);
        for (int k = 0; k < K; ++k)
            theta[k] = static_cast<T>(static_cast<double>(theta_[static_cast<std::size_t>(k)]) / sum);
        return converged ? rounds : -rounds;
    }

  private:
    FoldInSettings settings_;
    CoordinateRow<T> row_;
    std::vector<T> theta_;
};

template <class Index, class T, class Fold>
void fold_rows(const Counts<Index, T>& counts, int64_t first, int64_t last, const T* empty, int topics, T* theta,
               int32_t* steps, Fold fold) {
    for (int64_t d = first; d < last; ++d) {
        const int64_t begin = counts.indptr[d], n = counts.indptr[d + 1] - begin;
        if (n == 0) {
            std::copy(empty, empty + topics, theta + d * topics);
            steps[d] = 0;
        } else {
            steps[d] = fold.fold(counts.indices + begin, counts.values + begin, n, theta + d * topics);
        }
    }
}

// Computes theta (rows x topics) and the number of steps of every row. A row without non-zeros gets the weights
// `empty`. u (topics) are the column sums of B over all words.
template <class Index, class T>
void fold_in(const Counts<Index, T>& counts, const T* B, int width, const double* u, const FoldInSettings& settings,
             const T* empty, T* theta, int32_t* steps, int n_threads, Isa isa) {
    constexpr int64_t step = 16;
    for_each_piece((counts.rows + step - 1) / step, n_threads, [&](int, int64_t piece) {
        const int64_t first = piece * step, last = std::min(counts.rows, first + step);
        if (settings.by_coordinates)
            fold_rows(counts, first, last, empty, settings.topics, theta, steps,
                      FoldByCoordinates<T>(B, width, u, settings, isa));
        else
            fold_rows(counts, first, last, empty, settings.topics, theta, steps, FoldByEM<T>(B, width, settings, isa));
    });
}

}  // namespace polyseme
