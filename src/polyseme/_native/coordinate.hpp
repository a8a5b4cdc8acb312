// Sequential coordinate ascent on one factor with the other one fixed. Each row maximizes the Poisson likelihood
//     f(theta) = sum_w x log q_w - sum_k u_k theta_k,   q_w = sum_k theta_k b_wk,   theta >= 0,
// one theta_k at a time. At the optimum sum_k u_k theta_k = sum_w x, so the normalized theta are the weights of PLSA.
//
// Along one coordinate let g = sum x b / q and h = sum x (b / q)^2. 1 / g is concave in theta_k (a harmonic mean of
// lines), so the hyperbola with the same g and h lies below g everywhere. Its root, at the step
//     delta = (g / u - 1) g / h,
// is never to the right of the optimum. An upward step is longer than the Newton step, and safe. A downward step may go
// too far. Since g is convex, the step raised f if g(before) + g(after) <= 2 u; otherwise the EM step theta g / u is
// used, which never passes the optimum.
//
// Most weights are zero and remain zero. Only weights that are positive, or that would increase (g > u), are updated.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "counts.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

template <class T>
class CoordinateRow {
  public:
    CoordinateRow(const T* B, int topics, int width, const double* u, Isa isa)
        : B_(B), topics_(topics), width_(width), u_(u), rows_(row_table<T>(isa, width)), acc_(as_size(width)) {}

    template <class Index>
    void load(const Index* indices, const T* values, int64_t n) {
        n_ = n;
        padded_ = (n_ + 15) / 16 * 16;
        offset_.resize(as_size(padded_));
        for (auto* numbers : {&x_, &q_, &r_, &inverse_, &before_}) numbers->resize(as_size(padded_));
        double total = 0;
        for (int64_t j = 0; j < n_; ++j) {
            offset_[as_size(j)] = static_cast<int64_t>(indices[j]) * width_;
            x_[as_size(j)] = values[j];
            total += static_cast<double>(values[j]);
        }
        total_ = total;
        for (int64_t j = n_; j < padded_; ++j) {
            x_[as_size(j)] = T(0);
            q_[as_size(j)] = T(1);
            inverse_[as_size(j)] = T(1);
        }
    }

    // Computes q and the slopes g of all topics at theta. Returns the duality gap, a bound on the gain from better
    // weights.
    double evaluate(const T* theta) {
        rows_.dots(theta, B_, offset_.data(), n_, width_, q_.data());
        rows_.ratios(x_.data(), q_.data(), n_, r_.data());
        std::fill(acc_.begin(), acc_.end(), T(0));
        rows_.accumulate(B_, offset_.data(), n_, width_, r_.data(), acc_.data());
        double steepest = 0, mass = 0;
        for (int k = 0; k < topics_; ++k) {
            if (u_[k] > 0) steepest = std::max(steepest, static_cast<double>(acc_[as_size(k)]) / u_[k]);
            mass += u_[k] * static_cast<double>(theta[k]);
        }
        all_positive_ = true;
        for (int64_t j = 0; j < n_; ++j) all_positive_ = all_positive_ && q_[as_size(j)] > max_zero_product<T>();
        if (!all_positive_) return std::numeric_limits<double>::infinity();
        return total_ * std::log(steepest) - total_ + mass;
    }

    // Updates the weights that are positive, or would increase by the slopes from `evaluate` at this theta (all weights
    // if a word has probability zero), for `passes` passes or until a pass moves at most the share `enough` of the
    // total.
    void improve(T* theta, int passes, double enough) {
        choose_active(theta);
        const int many = static_cast<int>(active_.size());
        gathered_.resize(active_.size() * as_size(padded_));
        rows_.gather(B_, offset_.data(), n_, padded_, active_.data(), many, gathered_.data());
        rows_.mix(gathered_.data(), weights_.data(), many, x_.data(), n_, padded_, q_.data(), inverse_.data());
        for (int pass = 0; pass < passes; ++pass) {
            double moved = 0;
            for (std::size_t a = 0; a < active_.size(); ++a) {
                moved += u_[active_[a]] * std::fabs(update(a));
            }
            if (moved <= enough * total_) break;
        }
        for (std::size_t a = 0; a < active_.size(); ++a) theta[active_[a]] = weights_[a];
    }

    // sum x log q after `improve`. q is computed again, because many small updates accumulate rounding errors.
    double log_sum() {
        rows_.mix(gathered_.data(), weights_.data(), static_cast<int>(active_.size()), x_.data(), n_, padded_,
                  q_.data(), inverse_.data());
        return rows_.weighted_log_sum(q_.data(), x_.data(), n_);
    }

    double total() const { return total_; }

  private:
    static std::size_t as_size(int64_t i) { return static_cast<std::size_t>(i); }

    void choose_active(const T* theta) {
        active_.clear();
        weights_.clear();
        for (int k = 0; k < topics_; ++k) {
            if (theta[k] > T(0) || static_cast<double>(acc_[as_size(k)]) > u_[k] || (!all_positive_ && u_[k] > 0)) {
                active_.push_back(k);
                weights_.push_back(theta[k]);
            }
        }
    }

    // Updates active weight a. Returns its change.
    double update(std::size_t a) {
        const T* b = gathered_.data() + a * as_size(padded_);
        const double u = u_[active_[a]], old = static_cast<double>(weights_[a]);
        const Slope at = slope(b);
        if (!(at.h > 0)) {  // the topic contains no word of this row
            weights_[a] = T(0);
            return old;
        }
        double target = u > 0 ? old + (at.g / u - 1) * at.g / at.h : old;
        if (!(target > smallest())) target = 0;
        double step = rounded(target) - old;
        if (std::fabs(step) <= negligible() * old || step == 0) return 0;
        weights_[a] = static_cast<T>(target);
        if (step > 0) {
            rows_.shift(q_.data(), q_.data(), inverse_.data(), x_.data(), b, step, T(0), padded_);
            return step;
        }
        before_.swap(q_);
        if (!lower(b, step, 2 * u - at.g)) {
            weights_[a] = static_cast<T>(old * at.g / u);
            step = static_cast<double>(weights_[a]) - old;
            lower(b, step, std::numeric_limits<double>::infinity());
        }
        return step;
    }

    Slope slope(const T* b) const {
        const Slope at = rows_.slope(x_.data(), inverse_.data(), b, padded_);
        if (std::isfinite(at.g) && std::isfinite(at.h)) return at;
        Slope exact = {0, 0};  // b / q overflows T, because the word has probability zero so far
        for (int64_t j = 0; j < n_; ++j) {
            const double t = static_cast<double>(b[j]) / static_cast<double>(q_[as_size(j)]);
            exact.g += static_cast<double>(x_[as_size(j)]) * t;
            exact.h += static_cast<double>(x_[as_size(j)]) * t * t;
        }
        return exact;
    }

    // Computes q after a weight decreased by -step, from the q in before_. b is its column, and weights_ has the new
    // weight. Returns whether every word still has a positive probability and the slope is at most `steepest`.
    bool lower(const T* b, double step, double steepest) {
        const T share = min_precise_share();
        const Shifted there =
            rows_.shift(before_.data(), q_.data(), inverse_.data(), x_.data(), b, step, share, padded_);
        if (there.precise) return there.g <= steepest;
        // Where nearly all of q was subtracted, the difference is mostly rounding error, so q is summed again.
        bool positive = true;
        for (int64_t j = 0; j < n_; ++j) {
            T& q = q_[as_size(j)];
            if (q > share * before_[as_size(j)]) continue;
            double sum = 0;
            for (std::size_t c = 0; c < weights_.size(); ++c)
                sum += static_cast<double>(weights_[c]) *
                       static_cast<double>(gathered_[c * as_size(padded_) + as_size(j)]);
            const T least = min_product_share<T>() * x_[as_size(j)];
            q = static_cast<T>(sum);
            if (!(q > least)) {
                q = least;
                positive = false;
            }
            inverse_[as_size(j)] = T(1) / q;
        }
        return positive && slope(b).g <= steepest;
    }

    static double rounded(double value) { return static_cast<double>(static_cast<T>(value)); }
    static double smallest() { return sizeof(T) == 4 ? 1e-27 : 1e-200; }
    static double negligible() { return sizeof(T) == 4 ? 1e-6 : 1e-13; }
    // A difference below this share of q is imprecise.
    static T min_precise_share() { return sizeof(T) == 4 ? T(1e-2) : T(1e-6); }

    const T* B_;
    int topics_, width_;
    const double* u_;
    RowTable<T> rows_;
    std::vector<T> acc_, x_, q_, r_, inverse_, before_, gathered_, weights_;
    std::vector<int64_t> offset_;
    std::vector<int> active_;
    int64_t n_ = 0, padded_ = 0;
    double total_ = 0;
    bool all_positive_ = true;
};

struct CoordinateSettings {
    int topics;
    int passes;
    double enough;  // a row stops when a pass moves at most this share of its total
};

// Updates every row of theta (rows x width, in place) once. gains (rows) receives the duality gap before the update,
// and logs (rows) sum x log q after it.
template <class Index, class T>
void coordinate(const Counts<Index, T>& counts, const T* B, int width, const double* u,
                const CoordinateSettings& settings, T* theta, double* gains, double* logs, int n_threads, Isa isa) {
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(counts.rows, 256));
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        CoordinateRow<T> row(B, settings.topics, width, u, isa);
        for (int64_t d = cut[static_cast<std::size_t>(piece)]; d < cut[static_cast<std::size_t>(piece + 1)]; ++d) {
            const int64_t begin = counts.indptr[d], n = counts.indptr[d + 1] - begin;
            T* weights = theta + d * width;
            if (n == 0) {
                std::fill(weights, weights + width, T(0));
                gains[d] = 0;
                logs[d] = 0;
                continue;
            }
            row.load(counts.indices + begin, counts.values + begin, n);
            gains[d] = row.evaluate(weights);
            row.improve(weights, settings.passes, settings.enough);
            logs[d] = row.log_sum();
        }
    });
}

}  // namespace polyseme
