// A whole fit by coordinate ascent on unnormalized factors, without Python between its iterations (solvers/coordinate.py
// derives the method). An iteration updates the documents, then the words, each side extrapolated along its last change.
// A point that would lower the likelihood is dropped, and a plain iteration follows from the last good point.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "coordinate.hpp"
#include "mstep.hpp"
#include "sweep.hpp"

namespace polyseme {

// Half-steps and likelihoods of large float64 fits are computed in float32 as long as an iteration gains more than
// kFineGain per token, a thousand times what the mean of so many logarithms loses by rounding. A fit is large if it has
// kLargeFit non-zeros times numbers of a row.
constexpr double kFineGain = 1e-6, kLargeFit = 1 << 22;

// What a fit needs to continue, besides its factors.
struct FitState {
    double log_likelihood;  // per token
    double size;            // of the next extrapolation
    double plain;           // 1: the next iteration is not extrapolated
    double exhausted;       // 1: a plain iteration gained nothing
    double gained;          // by the last iteration that was accepted, per token; 0: a plain one has gained nothing
    double gap;             // bound on the gain from the point that the last iteration started from, per token
};

constexpr int kFitNumbers = static_cast<int>(sizeof(FitState) / sizeof(double));

struct FitSettings {
    int topics, passes;
    bool extrapolate;
    double enough;  // a row stops when a pass moves at most this share of its total
};

template <class Index, class T>
struct FitCounts {
    Counts<Index, T> by_doc, by_word;  // counts by word are multiplied by the weights of their documents
    const double* totals;              // tokens of each document
    const double* weights;             // of the documents
};

// The factors of a fit, updated in place: docs (documents x width) and words (words x width).
template <class T>
struct FitFactors {
    T *docs, *words;
    T* extrapolated;  // words from which the next iteration starts
    T* new_docs;      // memory for an iteration
};

template <class Index, class T>
class CoordinateFit {
  public:
    CoordinateFit(const FitCounts<Index, T>& counts, const FitSettings& settings, const FitFactors<T>& factors,
                  int width, FitState& state, int n_threads, Isa isa)
        : counts_(counts), settings_(settings), docs_(factors.docs), words_(factors.words),
          extrapolated_(factors.extrapolated), new_docs_(factors.new_docs), width_(width),
          state_(state), n_threads_(n_threads), isa_(isa), n_docs_(counts.by_doc.rows), n_words_(counts.by_word.rows),
          ones_(as_size(n_words_), 1.0), gains_(as_size(std::max(n_docs_, n_words_))), logs_(gains_.size()), mass_(as_size(width)),
          sums_(as_size(width)), scales_(as_size(width)) {
        for (int64_t d = 0; d < n_docs_; ++d) tokens_ += counts.weights[d] * counts.totals[d];
        const double size = static_cast<double>(counts.by_doc.indptr[n_docs_]) * width_;
        large_ = sizeof(T) == 8 && size >= kLargeFit && fits_float32();
    }

    // Computes the log-likelihood of the point that a fit starts from.
    void begin() {
        sum_logs(docs_, words_);
        sum_columns(ones_.data(), words_, n_words_, sums_.data());
        state_.log_likelihood = log_likelihood(docs_, n_docs_);
    }

    // Runs one iteration.
    void advance() {
        update_docs();
        update_words();
        double value = log_likelihood(new_docs_, n_words_);
        if (in_float32() && std::fabs(value - state_.log_likelihood) < kFineGain) {
            sum_logs(new_docs_, extrapolated_);
            value = log_likelihood(new_docs_, n_docs_);
        }
        if (value > state_.log_likelihood) {
            accept();
            if (state_.plain == 0) state_.size = std::min(state_.size * growth, 1.0);
            state_.plain = settings_.extrapolate ? 0 : 1;
            state_.gained = value - state_.log_likelihood;
            state_.log_likelihood = value;
        } else if (state_.plain != 0) {
            std::copy(words_, words_ + n_words_ * width_, extrapolated_);
            // Steps that were left out may gain. Else only rounding can make a plain iteration lower the likelihood.
            if (state_.gained > 0)
                state_.gained = 0;
            else
                state_.exhausted = 1;
        } else {
            restart();
            state_.size *= cut;
            state_.plain = 1;
        }
    }

  private:
    static constexpr double growth = 1.1, cut = 0.6, keep = 0.01;

    // Steps of one weight are left out if they gain at most this much per token of their row: it is far less than the
    // last iteration gained.
    double negligible() const { return std::min(1e-7, 1e-3 * state_.gained); }

    int threads(int64_t numbers, double by_number) const {
        return threads_for(n_threads_, by_number * static_cast<double>(numbers));
    }

    void update(const Counts<Index, T>& counts, const T* B, const double* u, const T* from, T* factor, double* logs) {
        const double work = 6.0 * static_cast<double>(counts.indptr[counts.rows]) * width_;
        const CoordinateSettings settings{settings_.topics, settings_.passes, settings_.enough, negligible()};
        const int n_threads = threads_for(n_threads_, work);
        if constexpr (sizeof(T) == 8) {
            if (in_float32()) {
                const float* rounded = rounded_operands(B, counts.columns * width_);
                coordinate(counts, rounded, width_, u, settings, from, factor, gains_.data(), logs, n_threads, isa_);
                return;
            }
        }
        coordinate(counts, B, width_, u, settings, from, factor, gains_.data(), logs, n_threads, isa_);
    }

    bool in_float32() const { return large_ && state_.gained > kFineGain; }

    // Computes v sum x log p of each document.
    void sum_logs(const T* docs, const T* words) {
        const double work = 2.0 * static_cast<double>(counts_.by_doc.indptr[n_docs_]) * width_;
        sweep_rows<Index, T>(counts_.by_doc, docs, words, width_, nullptr, logs_.data(), threads_for(n_threads_, work),
                             isa_);
        for (int64_t d = 0; d < n_docs_; ++d) logs_[as_size(d)] *= counts_.weights[d];
    }

    // Copies operands to float32, in rows that start at a cache line.
    const float* rounded_operands(const T* B, int64_t numbers) {
        constexpr int64_t a_line = 64 / sizeof(float);
        if (rounded_.empty()) rounded_.resize(as_size(std::max(n_docs_, n_words_) * width_ + a_line));
        const auto address = reinterpret_cast<std::uintptr_t>(rounded_.data());
        float* const to = rounded_.data() + (-address & 63) / sizeof(float);
        constexpr int64_t step = 1 << 14;
        for_each_piece((numbers + step - 1) / step, threads(numbers, 2), [&](int, int64_t piece) {
            const int64_t begin = piece * step, end = std::min(numbers, begin + step);
            std::transform(B + begin, B + end, to + begin, [](T b) { return static_cast<float>(b); });
        });
        return to;
    }

    // Whether float32 holds all counts and their products.
    bool fits_float32() const {
        constexpr double least = 1e-10, most = 1e10;
        const int64_t nonzeros = counts_.by_doc.indptr[n_docs_];
        const auto in_range = [](T x) { return least <= static_cast<double>(x) && static_cast<double>(x) <= most; };
        return std::all_of(counts_.by_doc.values, counts_.by_doc.values + nonzeros, in_range) &&
               std::all_of(counts_.by_word.values, counts_.by_word.values + nonzeros, in_range);
    }

    void sum_columns(const double* weights, const T* factor, int64_t rows, double* sums) const {
        weighted_sum<T>(weights, factor, rows, width_, sums, threads(rows * width_, 4));
    }

    void update_docs() {
        sum_columns(ones_.data(), extrapolated_, n_words_, mass_.data());
        update(counts_.by_doc, extrapolated_, mass_.data(), docs_, new_docs_, nullptr);
        gap_ = 0;
        for (int64_t d = 0; d < n_docs_; ++d) gap_ += counts_.weights[d] * gains_[as_size(d)];
        if (state_.plain == 0)
            extrapolate<T>(new_docs_, docs_, static_cast<T>(state_.size), static_cast<T>(keep), n_docs_ * width_,
                           new_docs_, threads(n_docs_ * width_, 2));
    }

    // Replaces the extrapolated words by the new ones.
    void update_words() {
        sum_columns(counts_.weights, new_docs_, n_docs_, mass_.data());
        update(counts_.by_word, new_docs_, mass_.data(), extrapolated_, extrapolated_, logs_.data());
        for (int64_t w = 0; w < n_words_; ++w) gap_ += gains_[as_size(w)];
        state_.gap = std::max(gap_, 0.0) / tokens_;
        sum_columns(ones_.data(), extrapolated_, n_words_, sums_.data());
    }

    // Mean of log P(w|d) = log p - log s_d, from sums of x log p of `parts` rows of either side, in logs_, and the sums of
    // the words of each topic.
    double log_likelihood(const T* docs, int64_t parts) {
        constexpr int64_t step = 256;
        const int64_t pieces = (n_docs_ + step - 1) / step;
        std::vector<double> partial(as_size(pieces), 0.0);
        for_each_piece(pieces, threads(n_docs_, width_ + 20), [&](int, int64_t piece) {
            for (int64_t d = piece * step; d < std::min(n_docs_, (piece + 1) * step); ++d) {
                const double tokens = counts_.weights[d] * counts_.totals[d];
                if (tokens > 0) partial[as_size(piece)] += tokens * std::log(scale_of(docs + d * width_));
            }
        });
        for (int64_t first = 0; first < parts; first += step) {
            double part = 0;
            for (int64_t i = first; i < std::min(parts, first + step); ++i) part += logs_[as_size(i)];
            partial.push_back(-part);
        }
        double total = 0;
        for (const double part : partial) total -= part;
        return total / tokens_;
    }

    // s_d of a row of docs
    double scale_of(const T* row) const {
        double scale = 0;
        for (int k = 0; k < width_; ++k) scale += static_cast<double>(row[k]) * sums_[as_size(k)];
        return scale;
    }

    // Makes the new point the current one, scaled so that the words of each topic sum to one. Without the scaling, a
    // shift of scale between the factors, which changes nothing, would be extrapolated.
    void accept() {
        set_scales();
        const T size = state_.plain == 0 ? static_cast<T>(state_.size) : T(0);
        constexpr int64_t step = 256;
        for_each_piece((n_words_ + step - 1) / step, threads(n_words_ * width_, 4), [&](int, int64_t piece) {
            const int64_t end = std::min(n_words_, (piece + 1) * step);
            for (int64_t w = piece * step; w < end; ++w) {
                T *const words = words_ + w * width_, *const extrapolated = extrapolated_ + w * width_;
                for (int k = 0; k < width_; ++k) {
                    const T next = extrapolated[k], further = (next - words[k]) * size + next;
                    const T least = static_cast<T>(keep) * next, scale = scales_[as_size(k)];
                    extrapolated[k] = (further < least ? least : further) / scale;
                    words[k] = next / scale;
                }
            }
        });
        rescale_columns<T>(new_docs_, scales_.data(), false, n_docs_, width_, docs_,
                           threads(n_docs_ * width_, 2));
    }

    // Scales the current point so that s_d = n_d. From there a plain iteration increases the likelihood.
    void restart() {
        sum_columns(ones_.data(), words_, n_words_, sums_.data());
        for (int64_t d = 0; d < n_docs_; ++d) {
            T* row = docs_ + d * width_;
            const double scale = scale_of(row);
            const T share = scale > 0 ? static_cast<T>(counts_.totals[d] / scale) : T(0);
            for (int k = 0; k < width_; ++k) row[k] = row[k] * static_cast<T>(sums_[as_size(k)]) * share;
        }
        set_scales();
        rescale_columns<T>(words_, scales_.data(), true, n_words_, width_, words_, 1);
        std::copy(words_, words_ + n_words_ * width_, extrapolated_);
    }

    void set_scales() {
        for (int k = 0; k < width_; ++k) {
            const double sum = sums_[as_size(k)];
            scales_[as_size(k)] = sum > 0 ? static_cast<T>(sum) : T(1);
        }
    }

    FitCounts<Index, T> counts_;
    FitSettings settings_;
    T *docs_, *words_, *extrapolated_, *new_docs_;
    int width_;
    FitState& state_;
    int n_threads_;
    Isa isa_;
    int64_t n_docs_, n_words_;
    std::vector<double> ones_, gains_, logs_, mass_, sums_;
    std::vector<T> scales_;
    std::vector<float> rounded_;
    bool large_ = false;  // and float64
    double tokens_ = 0, gap_ = 0;
};

}  // namespace polyseme
