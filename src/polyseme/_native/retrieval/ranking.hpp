// The best documents for a query, from posting lists or from the scores of all documents.
//
// Documents are visited in ranges whose scores fit into the first-level cache: the lists of all query words are added
// up for a range, and sixteen scores are compared at once with a score that k documents reach. Sums are in float32, in the order of the query words. Ties are in the order of the documents, so the result
// does not depend on the ranges.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

namespace polyseme {

constexpr int64_t kRange = 8192;  // documents whose scores are in the cache at the same time (32 kB); a power of two
constexpr int64_t kBlock = 128;   // documents whose scores are compared together
constexpr int64_t kGroup = 16;    // documents that are skipped or visited together

// The k best documents so far. New ones are collected in a buffer; whenever it is full, a partial sort leaves the best.
class Best {
public:
    struct Found {
        float score;
        int32_t document;
    };

    explicit Best(std::size_t k) : k_(k) {}

    // Score that a document must exceed. Documents come in increasing order, so a tie with the worst is not enough.
    float threshold() const { return threshold_; }

    // Raises the threshold to a score that k documents reach, so that few others are collected. Blocks of the scores are
    // divided into sixteen parts, whose maxima belong to different documents, and are counted in intervals.
    void raise_threshold(const float* scores, int64_t n) {
        if (k_ < kFew) return;
        for (int64_t block = 0; block + kBlock <= n; block += kBlock) {
            float largest[kGroup] = {};
            for (int64_t i = block; i < block + kBlock; i += kGroup)
                for (int64_t lane = 0; lane < kGroup; ++lane)
                    largest[lane] = largest[lane] < scores[i + lane] ? scores[i + lane] : largest[lane];
            maxima_.insert(maxima_.end(), largest, largest + kGroup);
        }
        if (maxima_.empty()) return;
        if (scale_ == 0) {
            const float most = *std::max_element(maxima_.begin(), maxima_.end());
            if (!(most > std::numeric_limits<float>::min() * kIntervals)) return maxima_.clear();
            scale_ = kIntervals / most;
        }
        for (const float score : maxima_) ++counts_[std::min(static_cast<int>(score * scale_), kIntervals - 1)];
        maxima_.clear();
        std::size_t reached = 0;
        int interval = kIntervals;
        while (interval > 0 && reached < k_) reached += counts_[--interval];
        if (reached < k_) return;
        const float least = static_cast<float>(interval) / scale_ * (1 - 1e-5f);  // below the rounded bound
        threshold_ = std::max(threshold_, least);
    }

    void add(float score, int32_t document) {
        found_.push_back({score, document});
        if (found_.size() >= 2 * k_ + 32) keep_best();
    }

    // Best first. The object is empty afterwards.
    std::vector<Found> sorted() {
        if (found_.size() > k_) keep_best();
        std::sort(found_.begin(), found_.end(), is_better);
        return std::move(found_);
    }

private:
    static bool is_better(const Found& a, const Found& b) {
        return a.score > b.score || (a.score == b.score && a.document < b.document);
    }

    void keep_best() {
        const auto last = found_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
        std::nth_element(found_.begin(), last, found_.end(), is_better);
        found_.resize(k_);
        threshold_ = found_[k_ - 1].score;
    }

    static constexpr int kIntervals = 256;
    static constexpr std::size_t kFew = 64;  // documents that are found fast without this
    std::size_t k_;
    float threshold_ = 0, scale_ = 0;
    std::size_t counts_[kIntervals] = {};
    std::vector<float> maxima_;
    std::vector<Found> found_;
};

// Bits of the numbers among sixteen that are above a threshold.
inline uint32_t bits_above(const float* scores, float threshold) {
#if defined(__SSE2__) || defined(_M_X64)
    const __m128 least = _mm_set1_ps(threshold);
    uint32_t bits = 0;
    for (int part = 0; part < 4; ++part) {
        const __m128 above = _mm_cmpgt_ps(_mm_loadu_ps(scores + 4 * part), least);
        bits |= static_cast<uint32_t>(_mm_movemask_ps(above)) << (4 * part);
    }
    return bits;
#else
    uint32_t bits = 0;
    for (int lane = 0; lane < 16; ++lane) bits |= static_cast<uint32_t>(scores[lane] > threshold) << lane;
    return bits;
#endif
}

// Adds the documents `first`, `first` + 1, ... with these positive scores. `allowed` may be null.
inline void add_best(const float* scores, int64_t n, int64_t first, const uint8_t* allowed, Best& best) {
    if (!allowed) best.raise_threshold(scores, n);
    const auto visit = [&](int64_t i) {
        if (scores[i] > best.threshold() && (!allowed || allowed[first + i]))
            best.add(scores[i], static_cast<int32_t>(first + i));
    };
    int64_t group = 0;
    for (; group + kGroup <= n; group += kGroup) {
        const uint32_t bits = bits_above(scores + group, best.threshold());
        for (int64_t lane = 0; bits >> lane != 0; ++lane)
            if (bits >> lane & 1) visit(group + lane);
    }
    for (; group < n; ++group) visit(group);
}

// The list of one word of a query.
struct QueryList {
    const int32_t* documents;
    const float* impacts;
    int64_t size;
    float weight;  // factor of the impacts
    float bonus;   // added for each document of the list
};

// Finds the k documents with the largest sums of weight * impact + bonus over the lists. Returns false if a list is not
// in increasing order or has a document that does not exist; even then nothing outside the arrays is read or written.
inline bool rank_lists(const std::vector<QueryList>& lists, int64_t n_docs, const uint8_t* allowed, Best& best) {
    std::vector<int64_t> places(lists.size());
    alignas(64) float scores[kRange];
    std::fill(scores, scores + kRange, 0.0f);
    int64_t next = 0;  // first range that any list can have a document in
    while (next < n_docs) {
        const int64_t first = next / kRange * kRange, n = std::min(kRange, n_docs - first);
        next = n_docs;
        bool any = false;
        for (std::size_t l = 0; l < lists.size(); ++l) {
            const QueryList& list = lists[l];
            const float weight = list.weight, bonus = list.bonus;
            const auto origin = static_cast<uint32_t>(first);
            const auto* documents = reinterpret_cast<const uint32_t*>(list.documents);
            int64_t i = places[l];
            // A document before or after the range wraps around to a number above it, so one comparison is enough for
            // both ends, and for four documents.
            for (; i + 4 <= list.size; i += 4) {
                const uint32_t a = documents[i] - origin, b = documents[i + 1] - origin;
                const uint32_t c = documents[i + 2] - origin, d = documents[i + 3] - origin;
                if ((a | b | c | d) >= kRange) break;
                scores[a] += weight * list.impacts[i] + bonus;
                scores[b] += weight * list.impacts[i + 1] + bonus;
                scores[c] += weight * list.impacts[i + 2] + bonus;
                scores[d] += weight * list.impacts[i + 3] + bonus;
            }
            for (; i < list.size && documents[i] - origin < kRange; ++i)
                scores[documents[i] - origin] += weight * list.impacts[i] + bonus;
            any = any || i > places[l];
            places[l] = i;
            if (i < list.size) next = std::min(next, static_cast<int64_t>(list.documents[i]));
        }
        if (any) {
            add_best(scores, n, first, allowed, best);
            std::fill(scores, scores + kRange, 0.0f);
        }
        if (next < first + n) return false;
    }
    for (std::size_t l = 0; l < lists.size(); ++l)
        if (places[l] != lists[l].size || (places[l] > 0 && lists[l].documents[places[l] - 1] >= n_docs)) return false;
    return true;
}

// Sums over the words of a query for some documents, in float64.
struct Sums {
    std::vector<double> scores;   // sums of weight * (impact + share)
    std::vector<double> covered;  // sums of the weights of the words that a document contains
    double total = 0;             // sum of all weights, in the same order
};

// Computes the sums of some documents, which are in increasing order.
inline Sums look_up(const std::vector<QueryList>& lists, const std::vector<int32_t>& rows, double share) {
    Sums sums;
    sums.scores.resize(rows.size());
    sums.covered.resize(rows.size());
    for (const QueryList& list : lists) {
        const int32_t *place = list.documents, *end = list.documents + list.size;
        const double weight = list.weight;
        sums.total += weight;
        const bool is_short = list.size < 16 * static_cast<int64_t>(rows.size());
        for (std::size_t i = 0; i < rows.size() && place != end; ++i) {
            if (is_short) {
                while (place != end && *place < rows[i]) ++place;
            } else {
                const int32_t* low = place;
                int64_t step = 1;  // doubled steps, because the next document is often near
                while (end - low > step && low[step] < rows[i]) {
                    low += step;
                    step *= 2;
                }
                place = std::lower_bound(low, low + std::min<int64_t>(step + 1, end - low), rows[i]);
            }
            if (place != end && *place == rows[i]) {
                sums.scores[i] += weight * (static_cast<double>(list.impacts[place - list.documents]) + share);
                sums.covered[i] += weight;
            }
        }
    }
    return sums;
}

// Product of two rows of numbers, added up in eight lanes.
inline double inner_product(const float* a, const float* b, int64_t size) {
    float lanes[8] = {};
    int64_t i = 0;
    for (; i + 8 <= size; i += 8)
        for (int lane = 0; lane < 8; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
    double sum = 0;
    for (const float lane : lanes) sum += static_cast<double>(lane);
    for (; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

struct Combined {
    int32_t document;
    double term, latent;
};

// The same in float32, for bounds.
inline float rounded_product(const float* a, const float* b, int64_t size) {
    float lanes[16] = {};
    int64_t i = 0;
    for (; i + 16 <= size; i += 16)
        for (int lane = 0; lane < 16; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
    for (int half = 8; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    for (; i < size; ++i) lanes[0] += a[i] * b[i];
    return lanes[0];
}

// Topics of documents, of length one: of all, or of those in `known`, which is in increasing order.
struct UnitRows {
    const float* values;
    const int32_t* known;  // null: all documents
    int64_t n_known, n_topics;

    const float* of(int32_t document) const {
        const int64_t row = known ? std::lower_bound(known, known + n_known, document) - known : document;
        return values + row * n_topics;
    }
};

// Removes candidates that cannot be among the k best. The first ones are sorted by their term parts `sums`, which are the
// largest of all documents; the term part of the others is at most the last of these, or zero if `complete`, that is,
// if no other document has a word of the query. A latent part is at most `share` times the missing weight times the
// cosine, and the weight of the words of a document is at least its term part divided by 1 + share.
inline void keep_possible(const std::vector<QueryList>& lists, const float* sums, std::size_t n_sums, bool complete,
                          const UnitRows& units, const float* topics, double share, std::size_t k,
                          std::vector<int32_t>& candidates) {
    if (n_sums < k) return;
    const double slack = 1e-6 * static_cast<double>(lists.size() + 10);  // relative error of a sum in float32
    const double rounding = 1e-6 * static_cast<double>(units.n_topics + 10);
    double total = 0;
    for (const QueryList& list : lists) total += static_cast<double>(list.weight);
    const double least = static_cast<double>(sums[k - 1]) * (1 - slack);
    const double others = complete ? 0 : static_cast<double>(sums[n_sums - 1]) * (1 + slack);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const double term = i < n_sums ? static_cast<double>(sums[i]) * (1 + slack) : others;
        const double covered = i < n_sums ? static_cast<double>(sums[i]) * (1 - slack) / (1 + share) : 0;
        const double most = share * std::max(total * (1 + slack) - covered, 0.0);
        bool possible = term + most >= least;
        if (possible && i >= k) {
            const float* unit = units.of(candidates[i]);
            const double cosine = static_cast<double>(rounded_product(unit, topics, units.n_topics));
            possible = term + most * (std::max(cosine, 0.0) + rounding) >= least;
        }
        if (possible) candidates[kept++] = candidates[i];
    }
    candidates.resize(kept);
}

// Returns the k best documents by the sum of a term and a latent part, best first. The latent part of a candidate is
// `share` times the weight of the words that it does not contain times its cosine with `topics`. The latent part of
// `others` is zero. `units` are the topics of the documents, and `topics` those of the query, both of length one.
inline std::vector<Combined> combine(const std::vector<QueryList>& lists, std::vector<int32_t> candidates,
                                     const std::vector<int32_t>& others, const UnitRows& units, const float* topics,
                                     double share, std::size_t k) {
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::vector<int32_t> rows = candidates;
    if (!others.empty()) {
        rows.insert(rows.end(), others.begin(), others.end());
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }
    const Sums sums = look_up(lists, rows, share);
    std::vector<Combined> found;
    found.reserve(rows.size());
    auto candidate = candidates.begin();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        double latent = 0;
        if (candidate != candidates.end() && *candidate == rows[i]) {
            ++candidate;
            const double missing = sums.total - sums.covered[i];
            if (missing > 0) {
                const double cosine = inner_product(units.of(rows[i]), topics, units.n_topics);
                latent = share * missing * std::min(std::max(cosine, 0.0), 1.0);
            }
        }
        if (sums.scores[i] + latent > 0) found.push_back({rows[i], sums.scores[i], latent});
    }
    const auto is_better = [](const Combined& a, const Combined& b) {
        const double left = a.term + a.latent, right = b.term + b.latent;
        return left > right || (left == right && a.document < b.document);
    };
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(k, found.size()));
    std::partial_sort(found.begin(), end, found.end(), is_better);
    found.erase(end, found.end());
    return found;
}

// Topics of the documents, and the settings of the default method (retrieval/postings.py).
struct TopicFeedback {
    const float* units;      // topics of the documents, of length one
    const int32_t* typical;  // documents with the largest cosine to each topic, best first; -1: no more
    int64_t n_docs, n_topics, n_typical;
    double share;
    std::size_t feedback, pool, leading;
};

// Topics of a query, which add up to one: those of its first documents, weighted by their term parts.
inline std::vector<double> feedback_topics(const std::vector<Best::Found>& first, const TopicFeedback& settings) {
    constexpr double tiny = 1e-30;
    std::vector<double> topics(static_cast<std::size_t>(settings.n_topics), 0.0);
    for (std::size_t i = 0; i < std::min(settings.feedback, first.size()); ++i) {
        const float* unit = settings.units + first[i].document * settings.n_topics;
        double sum = 0;
        for (std::size_t z = 0; z < topics.size(); ++z) sum += static_cast<double>(unit[z]);
        const double weight = static_cast<double>(first[i].score) / std::max(sum, tiny);
        for (std::size_t z = 0; z < topics.size(); ++z) topics[z] += weight * static_cast<double>(unit[z]);
    }
    double total = 0;
    for (const double topic : topics) total += topic;
    for (double& topic : topics) topic /= std::max(total, tiny);
    return topics;
}

// Adds the typical documents of the leading topics. Returns false if a document does not exist.
inline bool add_typical(const std::vector<double>& topics, const TopicFeedback& settings,
                        std::vector<int32_t>& candidates) {
    std::vector<std::size_t> order(topics.size());
    for (std::size_t z = 0; z < order.size(); ++z) order[z] = z;
    const std::size_t leading = std::min(settings.leading, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(leading), order.end(),
                      [&](std::size_t a, std::size_t b) {
                          return topics[a] > topics[b] || (topics[a] == topics[b] && a < b);
                      });
    for (std::size_t i = 0; i < leading; ++i) {
        const int32_t* documents = settings.typical + static_cast<int64_t>(order[i]) * settings.n_typical;
        for (int64_t j = 0; j < settings.n_typical; ++j) {
            if (documents[j] >= settings.n_docs) return false;
            if (documents[j] >= 0) candidates.push_back(documents[j]);
        }
    }
    return true;
}

// The default method in one call: the first documents, their topics unless `topics` are given, and the k best of the
// candidates. Returns false if a list or a document is not valid.
inline bool rank_combined(const std::vector<QueryList>& lists, const TopicFeedback& settings, std::size_t k,
                          std::vector<double>& topics, std::vector<Combined>& found) {
    Best best(std::max(k, settings.pool));
    if (!rank_lists(lists, settings.n_docs, nullptr, best)) return false;
    const std::vector<Best::Found> first = best.sorted();
    if (first.empty()) return true;
    if (topics.empty()) topics = feedback_topics(first, settings);
    const std::size_t pool = std::min(settings.pool, first.size());
    std::vector<int32_t> candidates, others;
    std::vector<float> sums;
    for (std::size_t i = 0; i < first.size(); ++i) {
        (i < pool ? candidates : others).push_back(first[i].document);
        if (i < pool) sums.push_back(first[i].score);
    }
    if (!add_typical(topics, settings, candidates)) return false;
    double square = 0;
    for (const double topic : topics) square += topic * topic;
    const double length = std::max(std::sqrt(square), 1e-30);
    std::vector<float> unit;
    for (const double topic : topics) unit.push_back(static_cast<float>(topic / length));
    const UnitRows units{settings.units, nullptr, settings.n_docs, settings.n_topics};
    keep_possible(lists, sums.data(), pool, first.size() < settings.pool, units, unit.data(), settings.share, k,
                  candidates);
    found = combine(lists, std::move(candidates), others, units, unit.data(), settings.share, k);
    return true;
}

}  // namespace polyseme
