// The best documents for a query, from posting lists or from the scores of all documents.
//
// Documents are visited in ranges whose scores fit into the first-level cache: the lists of all query words are added
// up for a range, and the largest score of each block of 128 documents decides whether the block can contain one of the
// k best. Sums are in float32, in the order of the query words. Ties are in the order of the documents, so the result
// does not depend on the ranges.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace polyseme {

constexpr int64_t kRange = 8192;  // documents whose scores are in the cache at the same time (32 kB); a power of two
constexpr int64_t kBlock = 128;   // documents that are skipped or visited together
constexpr int64_t kGroup = 16;    // documents of a block that are skipped or visited together

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

    std::size_t k_;
    float threshold_ = 0;
    std::vector<Found> found_;
};

// Whether one of `size` numbers, a multiple of 16, is above a threshold. Compilers turn the sixteen lanes into vectors.
inline bool any_above(const float* scores, int64_t size, float threshold) {
    float lanes[16];
    for (int lane = 0; lane < 16; ++lane) lanes[lane] = scores[lane];
    for (int64_t i = 16; i < size; i += 16)
        for (int lane = 0; lane < 16; ++lane)
            lanes[lane] = lanes[lane] < scores[i + lane] ? scores[i + lane] : lanes[lane];
    int above = 0;
    for (const float lane : lanes) above |= lane > threshold;
    return above != 0;
}

// Adds the documents `first`, `first` + 1, ... with these positive scores. `allowed` may be null.
inline void add_best(const float* scores, int64_t n, int64_t first, const uint8_t* allowed, Best& best) {
    for (int64_t start = 0; start < n; start += kBlock) {
        const int64_t end = std::min(start + kBlock, n);
        if (end - start == kBlock && !any_above(scores + start, kBlock, best.threshold())) continue;
        for (int64_t group = start; group < end; group += kGroup) {
            const int64_t stop = std::min(group + kGroup, end);
            if (stop - group == kGroup && !any_above(scores + group, kGroup, best.threshold())) continue;
            for (int64_t i = group; i < stop; ++i)
                if (scores[i] > best.threshold() && (!allowed || allowed[first + i]))
                    best.add(scores[i], static_cast<int32_t>(first + i));
        }
    }
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

// Returns the k best documents by the sum of a term and a latent part, best first. The latent part of a candidate is
// `share` times the weight of the words that it does not contain times its cosine with `topics`. The latent part of
// `others` is zero. `units` are the topics of the documents, and `topics` those of the query, both of length one.
inline std::vector<Combined> combine(const std::vector<QueryList>& lists, std::vector<int32_t> candidates,
                                     const std::vector<int32_t>& others, const float* units, const float* topics,
                                     int64_t n_topics, double share, std::size_t k) {
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
                const double cosine = inner_product(units + static_cast<int64_t>(rows[i]) * n_topics, topics, n_topics);
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

}  // namespace polyseme
