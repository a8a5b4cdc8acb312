// M-step of a row with an entropic term: the distribution f that maximizes Q(f) = sum n log f + beta sum f log f.
//
// beta > 0 (less entropy): Q has several local maxima. The best of those that are reached from up to three starts is
// used. The starts are the normalized n; a peak at the largest count, if the largest n is below beta; and the current
// row, if it is better than the results of the other starts, so that no M-step lowers Q. The entries of the best f are
// in the order of n, because f log f is the same function for every entry, and the iteration preserves this order. At
// such a maximum only the largest entry can exceed n / beta. The maximum is therefore unique if the largest n is at
// least beta, and otherwise there is at most one maximum without a peak. There is no proof that there is at most one
// with a peak, or that the Newton steps do not lead to another maximum, but a numerical search found no counterexample.
//
// beta < 0 (more entropy): Q is concave. Its maximum solves n / f - weight log f = mu with weight = -beta. With u = n /
// (weight f) and t = mu / weight this is u + log u = t + log(n / weight), so u is the value of Wright's omega function.
// Multiplying by f and summing gives mu = sum n + weight entropy(f), so t is at most log m above sum n / weight.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "threads.hpp"

namespace polyseme {

// Returns u > 0 with u + log u = z, from an approximation u. The iteration of Fritsch, Shafer and Crowley is of fourth
// order: after a relative change of 1e-4 the error is below that of rounding.
inline double refine_omega(double z, double u) {
    for (int i = 0; i < 8; ++i) {
        const double r = z - u - std::log(u), one = 1 + u, q = 2 * one * (one + 2.0 / 3.0 * r);
        const double change = r / one * (q - r) / (q - 2 * r);
        u *= 1 + change;
        if (std::fabs(change) <= 1e-4) break;
    }
    return u;
}

// Returns u > 0 with u + log u = z.
inline double wright_omega(double z) {
    if (z < -36) return std::exp(z);  // u is below the rounding error of z
    return refine_omega(z, z < 1 ? std::exp(z < -1 ? z : (z - 1) / 2 + (z - 1) * (z - 1) / 16) : z - std::log(z));
}

class EntropicRow {
  public:
    explicit EntropicRow(double beta) : beta_(beta) {}

    // Writes the best row for the counts (columns numbers, with a positive sum) to `out`.
    void maximize(const double* counts, const double* factor, int64_t columns, double* out) {
        if (beta_ > 0)
            less_entropy(counts, factor, columns, out);
        else
            more_entropy(counts, columns, out);
    }

  private:
    using Row = std::vector<double>;
    static constexpr int kMaxSteps = 100;            // each step raises Q
    static constexpr double kStepTolerance = 1e-9;   // largest change of an entry in the last step
    static constexpr double kRounding = 1e-14;       // relative rounding error of Q
    static constexpr double kOffPeak = 1e-3;         // probability of the other entries in a peaked start
    static constexpr int kNewtonSteps = 100;         // about five are needed

    void less_entropy(const double* counts, const double* factor, int64_t columns, double* out) {
        positive_.clear();
        n_.clear();
        for (int64_t k = 0; k < columns; ++k) {
            if (!(counts[k] > 0)) continue;
            positive_.push_back(k);
            n_.push_back(counts[k]);
        }
        const std::size_t m = n_.size();
        const auto largest = static_cast<std::size_t>(std::max_element(n_.begin(), n_.end()) - n_.begin());
        best_ = n_;
        normalize(best_);
        iterate(best_);
        double reached = objective(best_, logs_);
        if (n_[largest] < beta_) {
            other_ = n_;
            normalize(other_);
            for (double& value : other_) value *= kOffPeak;
            other_[largest] += 1 - kOffPeak;
            improve(reached);
        }
        other_.resize(m);
        double sum = 0;
        for (std::size_t i = 0; i < m; ++i) sum += other_[i] = factor[positive_[i]];
        other_[largest] += std::max(1 - sum, 0.0);  // the weight of entries without counts, to raise Q
        normalize(other_);
        if (objective(other_, logs_) > reached) improve(reached);
        std::fill(out, out + columns, 0.0);
        for (std::size_t i = 0; i < m; ++i) out[positive_[i]] = best_[i];
    }

    // Runs the iteration from other_, and uses the result if it is better than best_.
    void improve(double& reached) {
        iterate(other_);
        const double value = objective(other_, logs_);
        if (value > reached) {
            best_.swap(other_);
            reached = value;
        }
    }

    // Iterates f_k = n_k / (mu - beta log f_k_old). The convex function beta sum f log f lies above its tangent at the old
    // f. The step maximizes Q with the tangent in place of that term, so it raises Q. A Newton step follows if it is as
    // good, because the iteration alone needs hundreds of steps when the best f is close to n / beta.
    void iterate(Row& f) {
        const std::size_t m = f.size();
        cost_.resize(m);
        step_.resize(m);
        newton_.resize(m);
        objective(f, logs_);
        for (int step = 0; step < kMaxSteps; ++step) {
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < m; ++i) least = std::min(least, cost_[i] = -beta_ * logs_[i]);
            for (std::size_t i = 0; i < m; ++i) cost_[i] -= least;
            const double nu = multiplier();
            for (std::size_t i = 0; i < m; ++i) step_[i] = n_[i] / (nu + cost_[i]);
            normalize(step_);
            const double reached = objective(step_, logs_);
            Row* next = &step_;
            if (newton_step()) {
                const double value = objective(newton_, newton_logs_);
                if (value >= reached - kRounding * std::fabs(reached)) {
                    next = &newton_;
                    logs_.swap(newton_logs_);
                }
            }
            double change = 0;
            for (std::size_t i = 0; i < m; ++i) change = std::max(change, std::fabs((*next)[i] - f[i]));
            f.swap(*next);
            if (!(change > kStepTolerance)) break;
        }
    }

    // Writes a Newton step for Q on the simplex from step_, whose logarithms are logs_, to newton_. The Hessian of Q is
    // diagonal. Returns false where Q is not concave, because there Newton's method leads to saddle points, or where the
    // step is long. Q is concave along the simplex if all (negated) curvatures are positive, or if one is not and the
    // sum of the inverse curvatures is negative.
    bool newton_step() {
        const std::size_t m = step_.size();
        int convex = 0;
        double total = 0, mean = 0;
        for (std::size_t i = 0; i < m; ++i) {
            const double f = step_[i], curvature = n_[i] - beta_ * f;
            convex += curvature <= 0;
            const double scale = curvature == 0 ? 0 : f * f / curvature;
            total += scale;
            mean += scale * (n_[i] / f + beta_ * logs_[i]);
        }
        if (convex > 1 || (convex == 1 && !(total < 0))) return false;
        mean /= total;
        for (std::size_t i = 0; i < m; ++i) {
            const double f = step_[i], curvature = n_[i] - beta_ * f;
            const double move = curvature == 0 ? 0 : f * f / curvature * (n_[i] / f + beta_ * logs_[i] - mean);
            if (!(std::fabs(move) <= f / 2)) return false;
            newton_[i] = f + move;
        }
        normalize(newton_);
        return true;
    }

    // Returns the root nu > 0 of F(nu) = sum n / (nu + c) = 1. The smallest c is zero. 1 / F, a harmonic mean of lines, is
    // concave and increasing, so Newton's method from the left never passes the root.
    double multiplier() const {
        const std::size_t m = n_.size();
        double nu = 0;
        for (std::size_t i = 0; i < m; ++i) nu = std::max(nu, n_[i] - cost_[i]);
        for (int step = 0; step < kNewtonSteps; ++step) {
            double total = 0, slope = 0;
            for (std::size_t i = 0; i < m; ++i) {
                const double inverse = 1 / (nu + cost_[i]), part = n_[i] * inverse;
                total += part;
                slope += part * inverse;
            }
            const double move = total * (total - 1) / slope;
            if (!(move > 1e-15 * nu)) break;
            nu += move;
        }
        return nu;
    }

    // Returns Q of a row, and writes the logarithms of its entries.
    double objective(const Row& f, Row& logs) const {
        logs.resize(f.size());
        double value = 0;
        for (std::size_t i = 0; i < f.size(); ++i) {
            logs[i] = std::log(f[i]);
            value += f[i] > 0 ? (n_[i] + beta_ * f[i]) * logs[i] : -std::numeric_limits<double>::infinity();
        }
        return value;
    }

    // Newton's method on log sum f, kept between the bounds of t that are known so far.
    void more_entropy(const double* counts, int64_t columns, double* out) {
        const auto m = static_cast<std::size_t>(columns);
        const double weight = -beta_, infinity = std::numeric_limits<double>::infinity();
        double sum = 0, entropy = 0;
        logs_.resize(m);
        for (std::size_t k = 0; k < m; ++k) {
            sum += counts[k];
            logs_[k] = counts[k] > 0 ? std::log(counts[k]) - std::log(weight) : -infinity;
        }
        for (std::size_t k = 0; k < m; ++k) {
            const double share = (counts[k] + weight / static_cast<double>(m)) / (sum + weight);
            entropy -= share * std::log(share);
        }
        double low = sum / weight, high = low + std::log(static_cast<double>(m)), t = low + entropy;
        omega_.assign(m, 0.0);
        for (int step = 0; step < kNewtonSteps; ++step) {
            double slope = 0;
            const double total = entropic_row(counts, weight, t, out, &slope);
            if (total >= 1) low = t;
            if (total <= 1) high = t;
            double next = t + std::log(total) * total / slope;
            if (!(next >= low && next <= high)) next = (low + high) / 2;
            const bool moves = std::fabs(next - t) > 1e-14 * std::max(std::fabs(t), 1.0);
            t = next;
            if (!moves) break;
        }
        const double total = entropic_row(counts, weight, t, out, nullptr);
        for (std::size_t k = 0; k < m; ++k) out[k] /= total;
    }

    // Writes f = n / (weight u) = exp(u - t), by the more accurate of the two formulas. Returns its sum; `slope` is the
    // sum of f / (1 + u).
    double entropic_row(const double* counts, double weight, double t, double* f, double* slope) {
        double total = 0;
        for (std::size_t k = 0; k < logs_.size(); ++k) {
            const double z = t + logs_[k], before = omega_[k];
            double u = 0;  // the u of the previous t is a good start
            if (counts[k] > 0) u = before > 1e-12 ? refine_omega(z, before) : wright_omega(z);
            omega_[k] = u;
            f[k] = u > 1 ? counts[k] / (weight * u) : std::exp(u - t);
            total += f[k];
            if (slope) *slope += f[k] / (1 + u);
        }
        return total;
    }

    static void normalize(Row& row) {
        double sum = 0;
        for (const double value : row) sum += value;
        for (double& value : row) value /= sum;
    }

    double beta_;
    std::vector<int64_t> positive_;
    Row n_, best_, other_, cost_, step_, newton_, logs_, newton_logs_, omega_;
};

// Writes the best row for each row of counts (rows x columns, float64, with positive sums).
inline void entropic_rows(const double* counts, const double* factor, double beta, int64_t rows, int64_t columns,
                          double* out, int n_threads) {
    constexpr int64_t step = 16;
    for_each_piece((rows + step - 1) / step, n_threads, [&](int, int64_t piece) {
        EntropicRow row(beta);
        const int64_t last = std::min(rows, (piece + 1) * step);
        for (int64_t i = piece * step; i < last; ++i)
            row.maximize(counts + i * columns, factor + i * columns, columns, out + i * columns);
    });
}

}  // namespace polyseme
