// Counts of words, characters or n-grams per document.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "merge.hpp"
#include "split.hpp"

namespace polyseme::text {

enum class Unit { words, characters, padded_characters };

// What is counted: n-grams, for n from least to most, of words of at least min_length characters, or of characters.
struct Shape {
    Unit unit;
    int64_t min_length;
    std::size_t least, most;
};

// Boundaries that divide a batch of documents into pieces with about the same number of characters.
inline std::vector<std::size_t> cut_texts(const std::vector<Text>& texts) {
    constexpr int64_t characters_at_once = 1 << 16, cost_of_a_text = 16;
    std::vector<std::size_t> cut{0};
    int64_t characters = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        characters += texts[i].length + cost_of_a_text;
        if (characters >= characters_at_once || i + 1 == texts.size()) {
            cut.push_back(i + 1);
            characters = 0;
        }
    }
    return cut;
}

// Returns freed memory to the system, which the C library would keep otherwise.
inline void trim_memory() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

// Counts documents that are added in batches. Each thread numbers the words it finds. `merge` gives all words common
// numbers, and `renumber` replaces them, for example by the columns of a matrix, and sorts the rows.
class Counter {
  public:
    // Without `keep` only the totals of the words are stored, not the counts of the documents.
    Counter(const uint32_t* table, Shape shape, WordTable stops, bool keep)
        : table_(table), splitter_(table), shape_(shape), stops_(std::move(stops)), store_counts_(keep) {}

    void add(const std::vector<Text>& texts, int n_threads) {
        const std::vector<std::size_t> cut = cut_texts(texts);
        const std::size_t first = pieces_.size();
        pieces_.resize(first + cut.size() - 1);
        ensure_workers(n_threads, cut.size() - 1);
        for_each_piece(static_cast<int64_t>(cut.size() - 1), n_threads, [&](int w, int64_t p) {
            Piece piece;  // local to the thread, because adjacent elements of pieces_ share cache lines
            piece.worker = w;
            for (std::size_t i = cut[static_cast<std::size_t>(p)]; i < cut[static_cast<std::size_t>(p) + 1]; ++i)
                with_characters(texts[i], [&](const auto* characters) {
                    count_text(workers_[w], piece, characters, texts[i].length);
                });
            piece.counts.shrink_to_fit();
            piece.lengths.shrink_to_fit();
            pieces_[first + static_cast<std::size_t>(p)] = std::move(piece);
        });
        if (!store_counts_) pieces_.clear();
    }

    // Adds documents that are given as words: put_words(i, put) calls put(bytes, n) for each word of document i. 8
    // bytes after the word must be readable.
    template <class PutWords>
    void add_words(std::size_t documents, int n_threads, PutWords put_words) {
        constexpr std::size_t at_once = 64;
        const std::size_t first = pieces_.size(), count = (documents + at_once - 1) / at_once;
        pieces_.resize(first + count);
        constexpr double counting_a_document = 4096;  // in multiply-adds
        n_threads = threads_for(n_threads, counting_a_document * static_cast<double>(documents));
        ensure_workers(n_threads, count);
        for_each_piece(static_cast<int64_t>(count), n_threads, [&](int w, int64_t p) {
            Piece piece;
            piece.worker = w;
            Worker& worker = workers_[w];
            const std::size_t start = static_cast<std::size_t>(p) * at_once;
            for (std::size_t i = start; i < std::min(documents, start + at_once); ++i) {
                begin(worker, piece);
                WordSink sink{*this, worker, piece};
                put_words(i, [&](const char* bytes, std::size_t n) { sink.word(bytes, n); });
                end(worker, piece);
            }
            piece.counts.shrink_to_fit();
            piece.lengths.shrink_to_fit();
            pieces_[first + static_cast<std::size_t>(p)] = std::move(piece);
        });
        if (!store_counts_) pieces_.clear();
    }

    const std::vector<std::string_view>& merge(int n_threads) {
        std::vector<const WordTable*> tables;
        for (const Worker& worker : workers_) tables.push_back(&worker.words);
        merged_ = merge_words(tables, n_threads);
        return merged_.words;
    }

    // Adds the numbers of tokens and documents of each word to the arrays, by merged numbers or, after `renumber`, by
    // the new ones.
    void totals(int64_t* tokens, int64_t* documents) const {
        for (const Piece& piece : pieces_)
            for (const uint64_t count : piece.counts) {
                const std::size_t word = common_number(piece, count >> 32);
                tokens[word] += static_cast<int64_t>(count & 0xFFFFFFFF);
                ++documents[word];
            }
        for (std::size_t w = 0; w < workers_.size(); ++w)
            for (std::size_t i = 0; i < workers_[w].totals.size(); ++i) {
                const auto word = static_cast<std::size_t>(merged_.new_number[w][i]);
                tokens[word] += workers_[w].totals[i].tokens;
                documents[word] += workers_[w].totals[i].documents;
            }
    }

    // Changes the number of word i to column[i]; -1 removes the word. Words with the same column are added. Sorts the
    // rows.
    void renumber(const int32_t* column, int n_threads) {
        std::vector<std::vector<int32_t>> of_worker(renumbered_ ? 0 : workers_.size());
        for (std::size_t w = 0; w < of_worker.size(); ++w)
            for (const int32_t word : merged_.new_number[w]) of_worker[w].push_back(column[word]);
        constexpr double sorting_a_count = 32;  // in multiply-adds
        n_threads = threads_for(n_threads, sorting_a_count * static_cast<double>(nonzeros()));
        for_each_piece(static_cast<int64_t>(pieces_.size()), n_threads, [&](int, int64_t p) {
            Piece& piece = pieces_[static_cast<std::size_t>(p)];
            const int32_t* const new_number =
                renumbered_ ? column : of_worker[static_cast<std::size_t>(piece.worker)].data();
            uint64_t *read = piece.counts.data(), *write = read;
            for (uint32_t& length : piece.lengths) {
                uint64_t* const row = write;
                for (const uint64_t* const row_end = read + length; read < row_end; ++read) {
                    const int32_t to = new_number[*read >> 32];
                    if (to >= 0) *write++ = static_cast<uint64_t>(to) << 32 | (*read & 0xFFFFFFFF);
                }
                if (!std::is_sorted(row, write)) std::sort(row, write);
                uint64_t* last = row;
                for (uint64_t* next = row; next < write; ++next) {
                    if (next == row) continue;
                    if (*next >> 32 == *last >> 32)
                        *last += *next & 0xFFFFFFFF;
                    else
                        *++last = *next;
                }
                if (row < write) write = last + 1;
                length = static_cast<uint32_t>(write - row);
            }
            piece.counts.resize(static_cast<std::size_t>(write - piece.counts.data()));
        });
        renumbered_ = true;
    }

    int64_t rows() const {
        return sum([](const Piece& piece) { return piece.lengths.size(); });
    }
    int64_t nonzeros() const {
        return sum([](const Piece& piece) { return piece.counts.size(); });
    }

    // Writes CSR arrays. Frees counts as soon as they are written, so that they are not in memory twice.
    template <class Value>
    void write(int64_t* indptr, int32_t* indices, Value* values, int n_threads) {
        std::vector<int64_t> first_row, first_count;
        int64_t row = 0, count = 0;
        for (const Piece& piece : pieces_) {
            first_row.push_back(row);
            first_count.push_back(count);
            row += static_cast<int64_t>(piece.lengths.size());
            count += static_cast<int64_t>(piece.counts.size());
        }
        indptr[0] = 0;
        n_threads = threads_for(n_threads, 8 * static_cast<double>(count));
        constexpr int64_t counts_at_once = 1 << 23;
        for (std::size_t start = 0, end = 0; start < pieces_.size(); start = end) {
            while (end < pieces_.size() && first_count[end] - first_count[start] < counts_at_once) ++end;
            for_each_piece(static_cast<int64_t>(end - start), n_threads, [&](int, int64_t p) {
                const std::size_t number = start + static_cast<std::size_t>(p);
                Piece& piece = pieces_[number];
                int64_t at = first_count[number], line = first_row[number];
                for (const uint64_t one : piece.counts) {
                    indices[at] = static_cast<int32_t>(one >> 32);
                    values[at++] = static_cast<Value>(one & 0xFFFFFFFF);
                }
                at = first_count[number];
                for (const uint32_t length : piece.lengths) indptr[++line] = at += length;
                piece = Piece{};
            });
            trim_memory();
        }
        pieces_.clear();
    }

  private:
    struct Total {
        int64_t tokens = 0, documents = 0;
    };

    struct alignas(128) Worker {
        WordTable words;
        std::vector<Total> totals;  // totals of documents whose counts are not stored
        Buffer buffer;              // the current word
        Buffer ngram_bytes;         // words or characters of the document, for n-grams
        std::vector<Slice> slices;
        uint32_t document = 0;        // number of the document for this worker, from 1 on
        std::size_t first_count = 0;  // first count of the document in its piece
    };

    // Some documents: number << 32 | count of each word, and the number of distinct words of each document.
    struct Piece {
        int worker = 0;
        std::vector<uint64_t> counts;
        std::vector<uint32_t> lengths;
    };

    // Receives words: counts them immediately, or stores them for the n-grams at the end of the document.
    struct WordSink {
        const Counter& counter;
        Worker& worker;
        Piece& piece;

        void word(const char* bytes, std::size_t n) { word(worker.words.key_of(bytes, n), bytes, n); }

        void word(const WordTable::Key& key, const char* bytes, std::size_t n) {
            if (counter.stops_.size() > 0 && counter.stops_.contains(bytes, n)) return;
            if (counter.shape_.most == 1) return counter.count(worker, piece, key, bytes, n);
            const std::size_t start = worker.ngram_bytes.size();
            worker.ngram_bytes.put_bytes(bytes, n);
            worker.slices.push_back({start, worker.ngram_bytes.size()});
            worker.ngram_bytes.put(' ');
        }

        // Counts words, and prefetches the slots of the next ones.
        void words(const char* bytes, const uint16_t* bounds, std::size_t n, int64_t min_length) {
            constexpr std::size_t distance = 16;
            WordTable::Key keys[distance];
            auto length = [&](std::size_t k) { return static_cast<std::size_t>(bounds[2 * k + 1] - bounds[2 * k]); };
            auto prefetch_slot = [&](std::size_t k) {
                keys[k % distance] = worker.words.key_of(bytes + bounds[2 * k], length(k));
                worker.words.prefetch(keys[k % distance]);
            };
            for (std::size_t k = 0; k < std::min(n, distance); ++k) prefetch_slot(k);
            for (std::size_t k = 0; k < n; ++k) {
                const WordTable::Key key = keys[k % distance];
                if (k + distance < n) prefetch_slot(k + distance);
                if (static_cast<int64_t>(length(k)) >= min_length) word(key, bytes + bounds[2 * k], length(k));
            }
        }

        void barrier() {}
    };

    std::size_t common_number(const Piece& piece, uint64_t number) const {
        if (renumbered_) return static_cast<std::size_t>(number);
        return static_cast<std::size_t>(merged_.new_number[static_cast<std::size_t>(piece.worker)][number]);
    }

    // Creates a worker for each thread that may process one of these pieces.
    void ensure_workers(int n_threads, std::size_t pieces) {
        const std::size_t wanted = std::min(pieces, static_cast<std::size_t>(std::max(1, n_threads)));
        if (workers_.size() < wanted) workers_.resize(wanted);
    }

    void begin(Worker& worker, Piece& piece) const {
        worker.ngram_bytes.cut(0);
        worker.slices.clear();
        if (++worker.document == 0) {
            worker.words.reset_documents();
            worker.document = 1;
        }
        worker.first_count = piece.counts.size();
    }

    void end(Worker& worker, Piece& piece) const {
        for_each_ngram(worker.slices.data(), worker.slices.size(), shape_.least, shape_.most,
                       [&](Slice slice) { count(worker, piece, slice); });
        const std::size_t length = piece.counts.size() - worker.first_count;
        if (length > 0xFFFFFFFF) throw std::length_error("a document with more than four billion distinct words");
        if (store_counts_) {
            piece.lengths.push_back(static_cast<uint32_t>(length));
            return;
        }
        worker.totals.resize(worker.words.size());
        for (const uint64_t one : piece.counts) {
            Total& total = worker.totals[one >> 32];
            total.tokens += static_cast<int64_t>(one & 0xFFFFFFFF);
            ++total.documents;
        }
        piece.counts.clear();
    }

    template <class Character>
    void count_text(Worker& worker, Piece& piece, const Character* text, int64_t length) const {
        if (length > 0xFFFFFFFF) throw std::length_error("a document of more than four billion characters");
        begin(worker, piece);
        if (shape_.unit == Unit::words) {
            WordSink sink{*this, worker, piece};
            splitter_.split(text, length, shape_.min_length, worker.buffer, sink);
        } else if (shape_.unit == Unit::characters) {
            split_characters(text, length, table_, worker.ngram_bytes, worker.slices);
        } else {
            for_each_padded_ngram(text, length, table_, shape_.least, shape_.most, worker.ngram_bytes, worker.slices,
                                  [&](Slice slice) { count(worker, piece, slice); });
            worker.slices.clear();
        }
        end(worker, piece);
    }

    void count(Worker& worker, Piece& piece, Slice slice) const {
        const char* const bytes = worker.ngram_bytes.at(slice.start);
        const std::size_t n = slice.end - slice.start;
        count(worker, piece, worker.words.key_of(bytes, n), bytes, n);
    }

    void count(Worker& worker, Piece& piece, const WordTable::Key& key, const char* bytes, std::size_t n) const {
        WordTable::Slot& slot = worker.words.add(key, bytes, n);
        if (slot.document == worker.document) {
            ++piece.counts[worker.first_count + slot.position];
            return;
        }
        slot.document = worker.document;
        slot.position = static_cast<uint32_t>(piece.counts.size() - worker.first_count);
        piece.counts.push_back(static_cast<uint64_t>(slot.number()) << 32 | 1);
    }

    template <class Part>
    int64_t sum(Part part) const {
        int64_t total = 0;
        for (const Piece& piece : pieces_) total += static_cast<int64_t>(part(piece));
        return total;
    }

    const uint32_t* table_;
    FastSplitter splitter_;
    Shape shape_;
    WordTable stops_;
    bool store_counts_, renumbered_ = false;
    std::vector<Worker> workers_;
    std::vector<Piece> pieces_;
    MergedWords merged_;
};

}  // namespace polyseme::text
