// Variational Bayes for LDA: updates of documents and operands of words. The sums over words are in sweep.hpp.
//
// Documents: q(theta_d) is Dirichlet with parameters gamma_d = alpha + n_d, where n_dk are the expected counts. With
// the word operands B fixed, a step is a = exp(psi(gamma)), q_w = a . b_w, n_k <- a_k sum_w x b_wk / q_w. It never
// lowers the bound.
// Words: the parameters lambda (words x width) give the operands B_wk = exp(psi(lambda_wk) - psi(sum_w lambda_wk)).
// Both operands are divided by the maximum of their row, which cancels. The logs of these scales are part of the bound.
#pragma once
#include <cmath>
#include <vector>

#include "counts.hpp"
#include "dirichlet_table.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

struct GammaSettings {
    int topics;
    int steps;   // maximum number of steps of a row
    double tol;  // a row stops when a step moves at most this share of its tokens
};

template <class T>
class GammaRow {
  public:
    GammaRow(const T* B, const double* alpha, int width, const GammaSettings& settings, Isa isa)
        : B_(B), alpha_(alpha), width_(width), settings_(settings), rows_(row_table<T>(isa, width)),
          dirichlet_(dirichlet_table<T>(isa)), gamma_(as_size(width), T(1)), acc_(as_size(width)),
          logs_(as_size(width)) {}

    // Updates the expected counts n (width numbers, in place) and stores their operand in a. Returns the number of
    // steps, negative if the limit was reached before convergence.
    template <class Index>
    int improve(const Index* indices, const T* x, int64_t many, T* n, T* a) {
        offset_.resize(as_size(many));
        q_.resize(as_size(many));
        r_.resize(as_size(many));
        double total = 0;
        for (int64_t j = 0; j < many; ++j) {
            offset_[as_size(j)] = static_cast<int64_t>(indices[j]) * width_;
            total += static_cast<double>(x[j]);
        }
        int steps = 0;
        bool converged = settings_.steps == 0 || many == 0;
        operand(n, a);
        while (!converged && steps < settings_.steps) {
            rows_.dots(a, B_, offset_.data(), many, width_, q_.data());
            rows_.ratios(x, q_.data(), many, r_.data());
            std::fill(acc_.begin(), acc_.end(), T(0));
            rows_.accumulate(B_, offset_.data(), many, width_, r_.data(), acc_.data());
            double moved = 0;
            for (int k = 0; k < settings_.topics; ++k) {
                const T next = a[k] * acc_[as_size(k)];
                moved += static_cast<double>(std::fabs(next - n[k]));
                n[k] = next;
            }
            operand(n, a);
            ++steps;
            converged = moved <= settings_.tol * total;
        }
        return converged ? steps : -steps;
    }

    // Term of the row in the bound, without sum x log q of the scaled operands and the constants of the prior:
    // tokens E log theta_top + sum_k [lgamma(gamma_k) + (alpha_k - gamma_k) E log theta_k] - lgamma(sum gamma).
    double terms(double tokens) {
        const double own = dirichlet_.terms(gamma_.data(), alpha_, nullptr, settings_.topics, width_, logs_.data());
        double top = logs_[0];
        for (int k = 1; k < settings_.topics; ++k) top = std::max(top, logs_[as_size(k)]);
        return tokens * top + own;
    }

    // E log theta, available after a call of `terms`.
    const double* logs() const { return logs_.data(); }

  private:
    static std::size_t as_size(int64_t i) { return static_cast<std::size_t>(i); }

    void operand(const T* n, T* a) {
        for (int k = 0; k < settings_.topics; ++k) gamma_[as_size(k)] = static_cast<T>(alpha_[k]) + n[k];
        dirichlet_.weights(gamma_.data(), settings_.topics, width_, min_operand<T>(), a);
    }

    const T* B_;
    const double* alpha_;
    int width_;
    GammaSettings settings_;
    RowTable<T> rows_;
    DirichletTable<T> dirichlet_;
    std::vector<T> gamma_, acc_, q_, r_;
    std::vector<double> logs_;
    std::vector<int64_t> offset_;
};

constexpr int64_t kDocsAtOnce = 64;  // documents whose E log theta is summed by one thread, in order

// Updates the expected counts of every row (rows x width, in place). A (rows x width) receives their operands, terms
// (rows) their terms of the bound, log_sums (width) sum_d weight_d E log theta_d, and steps (rows) the number of steps.
// totals (rows) are the numbers of tokens. weights may be null. If terms is null, log_sums is not written.
template <class Index, class T>
void improve_gamma(const Counts<Index, T>& counts, const T* B, int width, const double* alpha, const double* totals,
                   const double* weights, const GammaSettings& settings, T* n, T* A, double* terms, double* log_sums,
                   int32_t* steps, int n_threads, Isa isa) {
    const int64_t pieces = (counts.rows + kDocsAtOnce - 1) / kDocsAtOnce;
    const std::size_t W = static_cast<std::size_t>(width);
    std::vector<double> partial(terms ? static_cast<std::size_t>(pieces) * W : 0, 0.0);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        GammaRow<T> row(B, alpha, width, settings, isa);
        for (int64_t d = piece * kDocsAtOnce; d < std::min(counts.rows, (piece + 1) * kDocsAtOnce); ++d) {
            const int64_t begin = counts.indptr[d], words = counts.indptr[d + 1] - begin;
            steps[d] = row.improve(counts.indices + begin, counts.values + begin, words, n + d * width, A + d * width);
            if (!terms) continue;
            terms[d] = row.terms(totals[d]);
            const double weight = weights ? weights[d] : 1.0;
            double* sums = partial.data() + static_cast<std::size_t>(piece) * W;
            for (int k = 0; k < settings.topics; ++k) sums[k] += weight * row.logs()[k];
        }
    });
    if (!terms) return;
    std::fill(log_sums, log_sums + width, 0.0);
    for (int64_t piece = 0; piece < pieces; ++piece)
        for (std::size_t k = 0; k < W; ++k) log_sums[k] += partial[static_cast<std::size_t>(piece) * W + k];
}

// Computes the operands B (words x width) of lambda (words x width), the log of the scale of each word, its term of the
// bound sum_k [lgamma(lambda_wk) + (eta_wk - lambda_wk) E log phi_wk], and sum_k E log phi_wk. eta has one number per
// word, or with `by_topic` one row (width) per word.
template <class T>
void word_operands(const T* lambda, const double* eta, bool by_topic, const double* shift, int64_t words, int topics,
                   int width, T* B, double* scales, double* terms, double* log_sums, int n_threads, Isa isa) {
    const DirichletTable<T> dirichlet = dirichlet_table<T>(isa);
    constexpr int64_t step = 256;
    for_each_piece((words + step - 1) / step, n_threads, [&](int, int64_t piece) {
        std::vector<double> logs(static_cast<std::size_t>(width)), prior(static_cast<std::size_t>(width));
        for (int64_t w = piece * step; w < std::min(words, (piece + 1) * step); ++w) {
            if (!by_topic) std::fill(prior.begin(), prior.end(), eta[w]);
            const double* of_word = by_topic ? eta + w * width : prior.data();
            terms[w] = dirichlet.terms(lambda + w * width, of_word, shift, topics, width, logs.data());
            double top = logs[0], sum = 0;
            for (int k = 0; k < topics; ++k) {
                const double log = logs[static_cast<std::size_t>(k)];
                top = std::max(top, log);
                sum += log;
            }
            scales[w] = top;
            log_sums[w] = sum;
            dirichlet.exp_scaled(logs.data(), top, topics, width, min_operand<T>(), B + w * width);
        }
    });
}

}  // namespace polyseme
