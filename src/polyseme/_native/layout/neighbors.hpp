// Nearest documents by topics and words: the edges of the graph that the map of documents is computed from.
//
// All sums are sums of integers, so the edges are the same for any instruction set and number of threads. A row of
// topic weights is a unit vector in 16 bits (`kOne` stands for 1), a row of words holds rounded tf-idf weights.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../threads.hpp"

namespace polyseme {

constexpr int32_t kOne = 32767;
constexpr int64_t kRowStep = 8;                         // codes of a row are padded with zeros to a multiple of this
constexpr int64_t kCandidates = 100;                    // documents with similar topics that are compared by words
constexpr int64_t kBest = 12;                           // of these, the neighbors
constexpr std::array<int64_t, 3> kFar = {40, 70, 100};  // ranks, in percent of the candidates, of farther neighbors
constexpr int64_t kNeighbors = kBest + static_cast<int64_t>(kFar.size());
constexpr int64_t kMainTopics = 3;  // topics of a document among whose documents the candidates are
constexpr double kWordWeight = 2;   // of the cosine of the words, relative to that of the topics

// A number for an unordered pair, which breaks ties without a preference for early documents.
inline uint32_t hash_pair(int64_t i, int64_t j) {
    uint64_t x = static_cast<uint64_t>(std::min(i, j)) << 32 | static_cast<uint64_t>(std::max(i, j));
    x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
    x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
    return static_cast<uint32_t>(x >> 32);
}

// Writes the unit vectors along the square roots of the weights of documents (n x size).
inline void encode_rows(const float* weights, int64_t n, int64_t size, int64_t width, int16_t* codes) {
    for (int64_t row = 0; row < n; ++row) {
        double total = 0;
        for (int64_t k = 0; k < size; ++k) total += double{weights[row * size + k]};
        for (int64_t k = 0; k < width; ++k) {
            const double share = k < size && total > 0 ? double{weights[row * size + k]} / total : 0;
            codes[row * width + k] = static_cast<int16_t>(std::sqrt(share) * kOne + 0.5);
        }
    }
}

struct DocumentRows {
    const int16_t* codes;  // n x width
    int64_t n, width;
    const int64_t* indptr;  // of the words
    const int32_t* indices;
    const int16_t* values;
    const double* inverse_norms;  // of the values of each document; 0 without words
};

// Candidates in groups by main topic: group z has the rows starts[z] .. starts[z + 1] - 1.
struct TopicGroups {
    const int64_t* starts;
    int64_t groups, first_code;  // the weight of topic z is code first_code + z
    int16_t least_code;          // of the second and third topic
};

inline int32_t multiply_codes(const int16_t* a, const int16_t* b, int64_t width) {
    int32_t sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += static_cast<int32_t>(a[k]) * b[k];
    return sum;
}

class NeighborFinder {
  public:
    NeighborFinder(const DocumentRows& candidates, const TopicGroups& groups, int64_t n_words)
        : candidates_(candidates), groups_(groups), dense_(static_cast<std::size_t>(n_words)),
          used_(static_cast<std::size_t>(groups.groups)) {
        found_.reserve(2 * kCandidates);
    }

    // Writes kNeighbors candidates for a row: the best, then the farther ones. If there are fewer than kBest, they are
    // repeated. `self` is the number of the row among the candidates, or -1; there must be another candidate.
    void find(const DocumentRows& rows, int64_t row, int64_t self, int64_t id, int32_t* out) {
        collect(rows.codes + row * rows.width, self, id);
        rank_by_words(rows, row);
        const auto many = static_cast<int64_t>(found_.size()), best = std::min(kBest, many);
        std::partial_sort(ranked_.begin(), ranked_.begin() + best, ranked_.end(), [](const Ranked& a, const Ranked& b) {
            return a.score != b.score ? a.score > b.score : a.rank < b.rank;
        });
        for (int64_t k = 0; k < kBest; ++k)
            *out++ = found_[static_cast<std::size_t>(ranked_[static_cast<std::size_t>(k % best)].rank)].document;
        for (const int64_t percent : kFar)
            *out++ = found_[static_cast<std::size_t>((many * percent + 99) / 100 - 1)].document;
    }

  private:
    struct Found {
        uint64_t key;  // product of the codes, then the hash of the pair
        int32_t document;
        bool operator<(const Found& other) const {  // better ones first
            return key != other.key ? key > other.key : document < other.document;
        }
    };
    struct Ranked {
        double score;
        int64_t rank;
    };

    void keep_best() {
        if (static_cast<int64_t>(found_.size()) <= kCandidates) return;
        std::nth_element(found_.begin(), found_.begin() + (kCandidates - 1), found_.end());
        found_.resize(kCandidates);
    }

    // Finds the candidates with the largest products, sorted.
    void collect(const int16_t* code, int64_t self, int64_t id) {
        found_.clear();
        std::fill(used_.begin(), used_.end(), uint8_t{0});
        int64_t seen = 0;
        uint64_t least = 0;
        for (int64_t number = 0; number < groups_.groups; ++number) {
            const int64_t group = next_group(code);
            const bool is_main =
                number == 0 || (number < kMainTopics && code[groups_.first_code + group] >= groups_.least_code);
            if (!is_main && seen >= kCandidates) break;
            used_[static_cast<std::size_t>(group)] = 1;
            const int64_t first = groups_.starts[group], last = groups_.starts[group + 1];
            seen += last - first - (first <= self && self < last);
            for (int64_t other = first; other < last; ++other) {
                const auto product = static_cast<uint64_t>(
                    multiply_codes(code, candidates_.codes + other * candidates_.width, candidates_.width));
                if (product < least || other == self) continue;
                found_.push_back({product << 32 | hash_pair(id, other), static_cast<int32_t>(other)});
                if (static_cast<int64_t>(found_.size()) == 2 * kCandidates) {
                    keep_best();
                    least = found_.back().key >> 32;
                }
            }
        }
        keep_best();
        std::sort(found_.begin(), found_.end());
    }

    // Returns the unused group with the largest weight in the row.
    int64_t next_group(const int16_t* code) const {
        int64_t best = -1;
        for (int64_t group = 0; group < groups_.groups; ++group)
            if (!used_[static_cast<std::size_t>(group)] &&
                (best < 0 || code[groups_.first_code + group] > code[groups_.first_code + best]))
                best = group;
        return best;
    }

    void rank_by_words(const DocumentRows& rows, int64_t row) {
        const int64_t first = rows.indptr[row], last = rows.indptr[row + 1];
        for (int64_t i = first; i < last; ++i) dense_[static_cast<std::size_t>(rows.indices[i])] = rows.values[i];
        ranked_.clear();
        for (std::size_t rank = 0; rank < found_.size(); ++rank) {
            const int64_t other = found_[rank].document;
            int64_t sum = 0;
            for (int64_t i = candidates_.indptr[other]; i < candidates_.indptr[other + 1]; ++i)
                sum += static_cast<int32_t>(candidates_.values[i]) *
                       dense_[static_cast<std::size_t>(candidates_.indices[i])];
            const double topics = static_cast<double>(found_[rank].key >> 32) / (double{kOne} * kOne);
            const double words = static_cast<double>(sum) * rows.inverse_norms[row] * candidates_.inverse_norms[other];
            ranked_.push_back({topics + kWordWeight * words, static_cast<int64_t>(rank)});
        }
        for (int64_t i = first; i < last; ++i) dense_[static_cast<std::size_t>(rows.indices[i])] = 0;
    }

    const DocumentRows& candidates_;
    const TopicGroups& groups_;
    std::vector<int16_t> dense_;  // words of a row
    std::vector<uint8_t> used_;
    std::vector<Found> found_;
    std::vector<Ranked> ranked_;
};

// Writes the neighbors of rows first .. last - 1 (each kNeighbors). `are_candidates`: the rows are the candidates, and
// none is its own neighbor.
inline void find_neighbors(const DocumentRows& rows, int64_t first, int64_t last, const DocumentRows& candidates,
                           bool are_candidates, const TopicGroups& groups, int64_t n_words, int32_t* out,
                           int n_threads) {
    constexpr int64_t step = 64;
    const int64_t many = last - first, pieces = (many + step - 1) / step;
    const double work = static_cast<double>(many) * static_cast<double>(candidates.width + kRowStep) *
                        static_cast<double>(std::min(candidates.n, 10 * kCandidates));
    const int workers = threads_for(n_threads, work);
    std::vector<NeighborFinder> finders(static_cast<std::size_t>(workers), {candidates, groups, n_words});
    for_each_piece(pieces, workers, [&](int worker, int64_t piece) {
        for (int64_t row = first + piece * step; row < std::min(last, first + (piece + 1) * step); ++row) {
            const int64_t self = are_candidates ? row : -1;
            const int64_t id = are_candidates ? row : candidates.n + row;
            finders[static_cast<std::size_t>(worker)].find(rows, row, self, id, out + (row - first) * kNeighbors);
        }
    });
}

}  // namespace polyseme
