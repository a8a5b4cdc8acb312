// The sequence of words of each document, for phrases.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "counter.hpp"

namespace polyseme::text {

struct PairCount {
    int32_t first, second;
    int64_t count;
};

class Sequences {
  public:
    static constexpr int32_t barrier = -1;  // a phrase does not extend across it

    Sequences(const uint32_t* table, int64_t min_length, WordTable stops)
        : table_(table), min_length_(min_length), stops_(std::move(stops)) {}

    void add(const std::vector<Text>& texts, int n_threads) {
        const std::vector<std::size_t> cut = cut_texts(texts);
        const std::size_t first = pieces_.size();
        pieces_.resize(first + cut.size() - 1);
        ensure_workers(n_threads, cut.size() - 1);
        for_each_piece(static_cast<int64_t>(cut.size() - 1), n_threads, [&](int w, int64_t p) {
            Piece piece;  // local to the thread, because adjacent elements of pieces_ share cache lines
            piece.worker = w;
            Sink sink{*this, workers_[w], piece};
            for (std::size_t i = cut[static_cast<std::size_t>(p)]; i < cut[static_cast<std::size_t>(p) + 1]; ++i) {
                with_characters(texts[i], [&](const auto* characters) {
                    split_words(characters, texts[i].length, table_, min_length_, sink.worker.buffer, sink);
                });
                piece.ends.push_back(piece.numbers.size());
            }
            pieces_[first + static_cast<std::size_t>(p)] = std::move(piece);
        });
    }

    // Adds documents that are given as words.
    void add_words(const std::vector<std::vector<Text>>& documents) {
        ensure_workers(1, 1);
        Piece& piece = pieces_.emplace_back();
        Sink sink{*this, workers_[0], piece};
        for (const auto& words : documents) {
            for (const Text& word : words) {
                sink.worker.buffer.cut(0);
                put_text(sink.worker.buffer, word);
                sink.word(sink.worker.buffer.at(0), sink.worker.buffer.size());
            }
            piece.ends.push_back(piece.numbers.size());
        }
    }

    // Gives all words common numbers, in sorted order.
    const std::vector<std::string_view>& merge(int n_threads) {
        std::vector<const WordTable*> tables;
        for (const Worker& worker : workers_) tables.push_back(&worker.words);
        merged_ = merge_words(tables, n_threads);
        for_each_number(n_threads, [&](const Piece& piece, int32_t number) {
            return merged_.new_number[static_cast<std::size_t>(piece.worker)][static_cast<std::size_t>(number)];
        });
        return merged_.words;
    }

    void renumber(const int32_t* to, int n_threads) {
        for_each_number(n_threads, [&](const Piece&, int32_t number) { return to[number]; });
    }

    // Adds the number of occurrences of each word to the array.
    void totals(int64_t* tokens) const {
        for (const Piece& piece : pieces_)
            for (const int32_t number : piece.numbers)
                if (number >= 0) ++tokens[number];
    }

    // Number of words, with or without barriers.
    std::size_t size(bool barriers) const {
        std::size_t n = 0;
        for (const Piece& piece : pieces_)
            for (const int32_t number : piece.numbers) n += barriers || number >= 0;
        return n;
    }

    std::size_t documents() const {
        std::size_t n = 0;
        for (const Piece& piece : pieces_) n += piece.ends.size();
        return n;
    }

    // Writes the numbers of the words of all documents, with or without barriers. Document d begins at indptr[d].
    void write(int32_t* numbers, int64_t* indptr, bool barriers) const {
        int64_t written = 0;
        *indptr++ = 0;
        for (const Piece& piece : pieces_) {
            std::size_t i = 0;
            for (const std::size_t end : piece.ends) {
                for (; i < end; ++i)
                    if (barriers || piece.numbers[i] >= 0) numbers[written++] = piece.numbers[i];
                *indptr++ = written;
            }
        }
    }

    // Pairs of adjacent words that occur at least min_count times, sorted.
    std::vector<PairCount> pairs(int64_t min_count, int n_threads) const {
        using Counts = std::unordered_map<uint64_t, int64_t, PairHash>;
        const std::size_t n_parts = std::min(pieces_.size(), static_cast<std::size_t>(std::max(1, n_threads)));
        std::vector<Counts> parts(std::max<std::size_t>(1, n_parts));
        for_each_piece(static_cast<int64_t>(pieces_.size()), threads_of(n_threads), [&](int w, int64_t p) {
            const Piece& piece = pieces_[static_cast<std::size_t>(p)];
            std::size_t start = 0;
            for (const std::size_t end : piece.ends) {
                for (std::size_t i = start; i + 1 < end; ++i)
                    if (piece.numbers[i] >= 0 && piece.numbers[i + 1] >= 0)
                        ++parts[static_cast<std::size_t>(w)][pair_key(piece.numbers[i], piece.numbers[i + 1])];
                start = end;
            }
        });
        for (std::size_t w = 1; w < parts.size(); ++w)
            for (const auto& [key, count] : parts[w]) parts[0][key] += count;
        std::vector<PairCount> found;
        for (const auto& [key, count] : parts[0])
            if (count >= min_count)
                found.push_back({static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & 0xFFFFFFFF), count});
        std::sort(found.begin(), found.end(), [](const PairCount& a, const PairCount& b) {
            return pair_key(a.first, a.second) < pair_key(b.first, b.second);
        });
        return found;
    }

    // Replaces adjacent words (first[i], second[i]) by joined[i], from left to right. A word is part of one phrase at
    // most.
    void join(const int32_t* first, const int32_t* second, const int32_t* joined, std::size_t n, int n_threads) {
        std::unordered_map<uint64_t, int32_t, PairHash> phrases;
        for (std::size_t i = 0; i < n; ++i) phrases[pair_key(first[i], second[i])] = joined[i];
        for_each_piece(static_cast<int64_t>(pieces_.size()), threads_of(n_threads), [&](int, int64_t p) {
            Piece& piece = pieces_[static_cast<std::size_t>(p)];
            std::size_t start = 0, written = 0;
            for (std::size_t& end : piece.ends) {
                for (std::size_t i = start; i < end; ++i) {
                    int32_t number = piece.numbers[i];
                    if (number >= 0 && i + 1 < end && piece.numbers[i + 1] >= 0) {
                        const auto phrase = phrases.find(pair_key(number, piece.numbers[i + 1]));
                        if (phrase != phrases.end()) {
                            number = phrase->second;
                            ++i;
                        }
                    }
                    piece.numbers[written++] = number;
                }
                start = end;
                end = written;
            }
            piece.numbers.resize(written);
        });
    }

    // Adds the documents to a counter, with the current names of the numbers.
    void count_into(Counter& counter, const WordTable& names, int n_threads) const {
        std::vector<std::pair<const int32_t*, const int32_t*>> documents;
        for (const Piece& piece : pieces_) {
            std::size_t start = 0;
            for (const std::size_t end : piece.ends) {
                documents.emplace_back(piece.numbers.data() + start, piece.numbers.data() + end);
                start = end;
            }
        }
        counter.add_words(documents.size(), n_threads, [&](std::size_t i, auto put) {
            for (const int32_t* number = documents[i].first; number < documents[i].second; ++number)
                if (*number >= 0) {
                    const std::string_view name = names[static_cast<uint32_t>(*number)];
                    put(name.data(), name.size());
                }
        });
    }

  private:
    struct PairHash {
        std::size_t operator()(uint64_t key) const { return static_cast<std::size_t>(mix_bits(key)); }
    };

    struct alignas(128) Worker {
        WordTable words;
        Buffer buffer;
    };

    struct Piece {
        int worker = 0;
        std::vector<int32_t> numbers;
        std::vector<std::size_t> ends;
    };

    struct Sink {
        const Sequences& sequences;
        Worker& worker;
        Piece& piece;

        void word(const char* bytes, std::size_t n) {
            const bool stop = sequences.stops_.size() > 0 && sequences.stops_.contains(bytes, n);
            piece.numbers.push_back(stop ? Sequences::barrier
                                         : static_cast<int32_t>(worker.words.add(bytes, n).number()));
        }
        void barrier() {
            if (!piece.numbers.empty() && piece.numbers.back() != Sequences::barrier)
                piece.numbers.push_back(Sequences::barrier);
        }
    };

    static uint64_t pair_key(int32_t first, int32_t second) {
        return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second);
    }

    // Creates a worker for each thread that may process one of these pieces.
    void ensure_workers(int n_threads, std::size_t pieces) {
        const std::size_t wanted = std::min(pieces, static_cast<std::size_t>(std::max(1, n_threads)));
        if (workers_.size() < wanted) workers_.resize(wanted);
    }

    // Number of threads for a pass over all words.
    int threads_of(int n_threads) const {
        std::size_t n = 0;
        for (const Piece& piece : pieces_) n += piece.numbers.size();
        constexpr double cost_of_a_word = 16;  // in multiply-adds
        return threads_for(n_threads, cost_of_a_word * static_cast<double>(n));
    }

    template <class New>
    void for_each_number(int n_threads, New new_number) {
        for_each_piece(static_cast<int64_t>(pieces_.size()), threads_of(n_threads), [&](int, int64_t p) {
            Piece& piece = pieces_[static_cast<std::size_t>(p)];
            for (int32_t& number : piece.numbers)
                if (number >= 0) number = new_number(piece, number);
        });
    }

    const uint32_t* table_;
    int64_t min_length_;
    WordTable stops_;
    std::vector<Worker> workers_;
    std::vector<Piece> pieces_;
    MergedWords merged_;
};

}  // namespace polyseme::text
