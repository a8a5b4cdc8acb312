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
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "counts.hpp"
#include "mstep.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

inline std::size_t as_size(int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
class CoordinateRow {
  public:
    CoordinateRow(const T* B, int topics, int width, const double* u, Isa isa)
        : B_(B), topics_(topics), width_(width), u_(u), rows_(row_table<T>(isa, width)), inverse_u_(as_size(width)),
          rounded_u_(as_size(width)), slopes_(as_size(width)), zeros_(as_size(width), T(0)),
          infinite_(as_size(width)), weights_(as_size(topics + 1)),
          columns_(as_size(width)), targets_(as_size(width)), chosen_(as_size(topics + 1)), four_(as_size(width / 4)), topic_(as_size(width + 1)) {
        for (int k = 0; k < topics; ++k) {
            inverse_u_[as_size(k)] = u[k] > 0 ? 1 / u[k] : 0;
            rounded_u_[as_size(k)] = static_cast<T>(u[k]);
            infinite_[as_size(k)] = u[k] > 0 ? std::numeric_limits<T>::infinity() : T(0);
        }
    }

    // `known` indices can be read, of this row and the next ones, whose operands are prefetched.
    template <class Index, class Count>
    void load(const Index* indices, const Count* values, int64_t n, int64_t known) {
        n_ = n;
        known_ = std::min(known, n + kGatheredWords);
        padded_ = (n + kGatheredWords - 1) / kGatheredWords * kGatheredWords;
        for (auto* numbers : {&x_, &q_, &inverse_, &before_}) grow(*numbers, padded_);
        grow(offset_, n + kGatheredWords);
        for (int64_t j = 0; j < known_; ++j) offset_[as_size(j)] = static_cast<int64_t>(indices[j]) * width_;
        std::transform(values, values + n, x_.begin(), [](Count x) { return static_cast<T>(x); });
        std::fill(x_.begin() + n, x_.begin() + padded_, T(0));
        total_ = sum_of(x_.data(), static_cast<int>(padded_));
    }

    // Computes q and the slopes g of all topics at theta. Returns the duality gap, a bound on the gain from better
    // weights.
    double evaluate(const T* theta) {
        choose(theta, zeros_.data());
        for (const int k : placed_) columns_[as_size(k)] = nullptr;
        placed_.clear();
        all_positive_ = rows_.evaluate(place_columns(block_, 0), chosen_.data(), weights_.data(), many_, x_.data(),
                                       q_.data(), inverse_.data(), slopes_.data());
        if (!all_positive_) return std::numeric_limits<double>::infinity();
        double mass = 0, steepest[4] = {0, 0, 0, 0};
        for (std::size_t a = 0; a < as_size(many_); ++a) mass += u_[topic_[a]] * static_cast<double>(weights_[a]);
        for (std::size_t k = 0; k < slopes_.size(); k += 4)
            for (std::size_t i = 0; i < 4; ++i) {
                const double ratio = static_cast<double>(slopes_[k + i]) * inverse_u_[k + i];
                steepest[i] = ratio > steepest[i] ? ratio : steepest[i];
            }
        const double largest = std::max(std::max(steepest[0], steepest[1]), std::max(steepest[2], steepest[3]));
        return total_ * std::log(largest) - total_ + mass;
    }

    // Updates the weights that are positive, or would increase by the slopes from `evaluate` at this theta (all weights
    // if a word has probability zero), for `passes` passes or until a pass moves at most the share `enough` of the
    // total. Steps that gain at most the share `negligible` of the total are left out.
    void improve(T* theta, int passes, double enough, double negligible) {
        begin(theta, passes, enough, negligible);
        while (advance()) {
        }
        finish(theta);
    }

    // The parts of `improve`, for several rows in turn: `advance` updates one weight and returns whether others follow.
    void begin(const T* theta, int passes, double enough, double negligible) {
        const int before = many_;
        choose(theta, all_positive_ ? slopes_.data() : infinite_.data());
        if (many_ != before) rows_.gather(place_columns(revived_, before));
        passes_ = passes;
        enough_ = enough * total_;
        least_gain_ = negligible * total_;
        at_ = 0;
        moved_ = 0;
        if (many_ > 0) next_ = slope(0);
    }

    bool advance() {
        if (many_ == 0) return false;
        const std::size_t a = at_;
        at_ = a + 1 < as_size(many_) ? a + 1 : 0;
        const double old = static_cast<double>(weights_[a]);
        const Slope slopes = exact_if_infinite(next_, chosen_[a]);
        const double step = choose_step(a, slopes);
        moved_ += u_[topic_[a]] * std::fabs(step);
        bool follows = true;
        if (at_ == 0) {
            follows = --passes_ > 0 && moved_ > enough_;
            moved_ = 0;
        }
        if (step == 0 || !(slopes.h > 0)) {
            if (follows) next_ = slope(at_);
        } else if (step > 0) {
            if (follows)
                next_ = rows_.shift(q_.data(), q_.data(), inverse_.data(), x_.data(), chosen_[a], chosen_[at_], step,
                                    T(0), padded_)
                            .next;
        } else {
            before_.swap(q_);
            if (!lower(a, step, 2 * u_[topic_[a]] - slopes.g)) {
                weights_[a] = static_cast<T>(old * slopes.g * inverse_u_[as_size(topic_[a])]);
                lower(a, static_cast<double>(weights_[a]) - old, std::numeric_limits<double>::infinity());
            }
        }
        return follows;
    }

    void finish(T* theta) const {
        for (std::size_t a = 0; a < as_size(many_); ++a) theta[topic_[a]] = weights_[a];
    }

    // sum x log q after `improve`. q is computed again, because many small updates accumulate rounding errors.
    double log_sum() {
        rows_.mix(chosen_.data(), weights_.data(), many_, x_.data(), padded_, q_.data(), inverse_.data());
        return rows_.weighted_log_sum(q_.data(), x_.data(), n_);
    }

    double total() const { return total_; }
    int64_t words() const { return n_; }

  private:
    template <class Numbers>
    static void grow(Numbers& numbers, int64_t size) {
        if (numbers.size() < as_size(size)) numbers.resize(as_size(size));
    }

    // Chooses the topics that are positive or have slopes above u, in their order, and their weights.
    void choose(const T* theta, const T* slopes) {
        many_ = rows_.choose(theta, slopes, rounded_u_.data(), width_, topic_.data());
        for (std::size_t a = 0; a < as_size(many_); ++a) weights_[a] = theta[topic_[a]];
    }

    // Gives each chosen topic that has no column yet one in `block`, and returns what has to be gathered. Columns start
    // at an odd number of cache lines from each other, so that they do not share the lines of a set of a cache.
    RowOperands<T> place_columns(std::vector<T>& block, int many_placed) {
        constexpr int64_t a_line = 64 / static_cast<int64_t>(sizeof(T));
        const int64_t stride = ((padded_ + a_line - 1) / a_line | 1) * a_line;
        grow(block, (many_ - many_placed + 1) * stride + a_line);
        const auto address = reinterpret_cast<std::uintptr_t>(block.data());
        T* const spare = block.data() + (-address & 63) / sizeof(T);
        T* free = spare;
        int fours = 0;
        const auto placed_before = static_cast<int>(placed_.size());
        for (int a = 0; a < many_; ++a) {
            const std::size_t k = as_size(topic_[as_size(a)]);
            if (!columns_[k]) {
                const int first = topic_[as_size(a)] / 4 * 4;
                if (fours == 0 || four_[as_size(fours - 1)] != first) {
                    four_[as_size(fours++)] = first;
                    std::fill_n(targets_.begin() + first, 4, spare);
                }
                targets_[k] = columns_[k] = free += stride;
                placed_.push_back(topic_[as_size(a)]);
            }
            chosen_[as_size(a)] = columns_[k];
        }
        const int placed = static_cast<int>(placed_.size()) - placed_before;
        grow(picks_, placed);
        return {B_, width_, offset_.data(), n_, padded_, known_, zeros_.data(), placed_.data() + placed_before, placed,
                spare + stride, stride, picks_.data(), four_.data(), fours, targets_.data()};
    }

    // Sets the weight of chosen topic a to its best value along this coordinate. Returns its change.
    double choose_step(std::size_t a, const Slope& at) {
        const int k = topic_[a];
        const double u = u_[k], old = static_cast<double>(weights_[a]);
        if (!(at.h > 0)) {  // the topic contains no word of this row
            weights_[a] = T(0);
            return -old;
        }
        double target = u > 0 ? old + (at.g * inverse_u_[as_size(k)] - 1) * at.g / at.h : old;
        if (!(target > smallest())) target = 0;
        const double step = rounded(target) - old;
        if (std::fabs(step) <= negligible() * old || 0.5 * step * (at.g - u) <= least_gain_) return 0;
        weights_[a] = static_cast<T>(target);
        return step;
    }

    Slope slope(std::size_t a) const { return rows_.slope(x_.data(), inverse_.data(), chosen_[a], padded_); }

    // b / q overflows T if the word has probability zero so far.
    Slope exact_if_infinite(const Slope& at, const T* b) const {
        if (std::isfinite(at.g) && std::isfinite(at.h)) return at;
        Slope exact = {0, 0};
        for (int64_t j = 0; j < n_; ++j) {
            const double t = static_cast<double>(b[j]) / static_cast<double>(q_[as_size(j)]);
            exact.g += static_cast<double>(x_[as_size(j)]) * t;
            exact.h += static_cast<double>(x_[as_size(j)]) * t * t;
        }
        return exact;
    }

    // Computes q after the weight of topic a decreased by -step, from the q in before_. weights_ has the new weight.
    // Returns whether every word still has a positive probability and the slope is at most `steepest`.
    bool lower(std::size_t a, double step, double steepest) {
        const T share = min_precise_share();
        const T* const b = chosen_[a];
        const Shifted there = rows_.shift(before_.data(), q_.data(), inverse_.data(), x_.data(), b, chosen_[at_], step,
                                          share, padded_);
        next_ = there.next;
        if (there.precise) return there.after <= steepest;
        // Where nearly all of q was subtracted, the difference is mostly rounding error, so q is summed again.
        bool positive = true;
        for (int64_t j = 0; j < n_; ++j) {
            T& q = q_[as_size(j)];
            if (q > share * before_[as_size(j)]) continue;
            double sum = 0;
            for (std::size_t c = 0; c < as_size(many_); ++c)
                sum += static_cast<double>(weights_[c]) * static_cast<double>(chosen_[c][j]);
            const T least = min_product_share<T>() * x_[as_size(j)];
            q = static_cast<T>(sum);
            if (!(q > least)) {
                q = least;
                positive = false;
            }
            inverse_[as_size(j)] = T(1) / q;
        }
        next_ = slope(at_);
        return positive && exact_if_infinite(slope(a), b).g <= steepest;
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
    std::vector<double> inverse_u_;
    std::vector<T> rounded_u_, slopes_, zeros_;
    std::vector<T> infinite_;  // slopes that let all topics with words rise
    std::vector<T> weights_, x_, q_, inverse_, before_, block_, revived_;
    std::vector<T*> columns_;       // of the chosen topics, by topic; else null
    std::vector<T*> targets_;       // columns to gather to
    std::vector<const T*> chosen_;  // columns of the chosen topics, in their order
    std::vector<int> four_, topic_, placed_;
    std::vector<PickedLine> picks_;
    std::vector<int64_t> offset_;
    int many_ = 0;  // number of chosen topics
    int64_t n_ = 0, padded_ = 0, known_ = 0;
    double total_ = 0, enough_ = 0, least_gain_ = 0, moved_ = 0;
    std::size_t at_ = 0;
    int passes_ = 0;
    Slope next_ = {0, 0};
    bool all_positive_ = true;
};

struct CoordinateSettings {
    int topics;
    int passes;
    double enough;      // a row stops when a pass moves at most this share of its total
    double negligible;  // steps that gain at most this share of the total are left out
};

// Updates every row of `from` (rows x width) once, into theta, which may be the same. gains (rows) receives the duality
// gap before the update, and logs (rows, may be null) sum x log q after it. Computes in the type of B.
template <class Index, class T, class Wide>
void coordinate(const Counts<Index, Wide>& counts, const T* B, int width, const double* u,
                const CoordinateSettings& settings, const Wide* from, Wide* theta, double* gains, double* logs,
                int n_threads, Isa isa) {
    struct Updated {
        CoordinateRow<T> row;
        std::vector<T> weights;
    };
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(counts.rows, 256));
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    std::vector<std::vector<Updated>> of_workers(as_size(std::max(1, n_threads)));
    for_each_piece(pieces, n_threads, [&](int worker, int64_t piece) {
        // Two rows are updated in turn, because each step waits for the sums of the one before it.
        std::vector<Updated>& two = of_workers[as_size(worker)];
        while (two.size() < 2)
            two.push_back({CoordinateRow<T>(B, settings.topics, width, u, isa), std::vector<T>(as_size(width))});
        const auto begin = [&](Updated& updated, int64_t d) {
            auto& [row, weights] = updated;
            const int64_t start = counts.indptr[d], n = counts.indptr[d + 1] - start;
            row.load(counts.indices + start, counts.values + start, n, counts.indptr[counts.rows] - start);
            for (int k = 0; k < width; ++k) weights[as_size(k)] = n > 0 ? static_cast<T>(from[d * width + k]) : T(0);
            const double gap = row.evaluate(weights.data());
            gains[d] = n > 0 ? gap : 0;
            row.begin(weights.data(), settings.passes, settings.enough, settings.negligible);
        };
        const auto finish = [&](Updated& updated, int64_t d) {
            auto& [row, weights] = updated;
            row.finish(weights.data());
            for (int k = 0; k < width; ++k) theta[d * width + k] = static_cast<Wide>(weights[as_size(k)]);
            if (logs) logs[d] = row.log_sum();
        };
        const int64_t past = cut[as_size(piece + 1)];
        for (int64_t d = cut[as_size(piece)]; d < past; d += 2) {
            const bool second = d + 1 < past;
            begin(two[0], d);
            if (second) begin(two[1], d + 1);
            bool more = true, others = second;
            while (more && others) {
                more = two[0].row.advance();
                others = two[1].row.advance();
            }
            while (more) more = two[0].row.advance();
            while (others) others = two[1].row.advance();
            finish(two[0], d);
            if (second) finish(two[1], d + 1);
        }
    });
}

}  // namespace polyseme
