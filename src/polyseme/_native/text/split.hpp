// Splits the characters of a document into words, or into n-grams of characters.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "characters.hpp"

namespace polyseme::text {

// A part of a Buffer.
struct Slice {
    std::size_t start, end;
};

// Splits a run of characters of kind `gram` into overlapping pairs. A single character is counted itself.
template <class Character, class Sink>
int64_t split_grams(const Character* text, int64_t i, int64_t n, const uint32_t* table, Buffer& buffer, Sink& sink) {
    uint32_t before = 0;
    int64_t length = 0;
    for (; i < n; ++i) {
        const uint32_t entry = table[text[i]];
        if (kind_of(entry) == ignored) continue;
        if (kind_of(entry) != gram) break;
        buffer.cut(0);
        if (length > 0) {
            buffer.put(before);
            buffer.put(code_of(entry));
            sink.word(buffer.at(0), buffer.size());
        }
        before = code_of(entry);
        ++length;
    }
    if (length == 1) {
        buffer.cut(0);
        buffer.put(before);
        sink.word(buffer.at(0), buffer.size());
    }
    sink.barrier();
    return i;
}

// Calls sink.word(bytes, n) for each word. A few bytes after the word are readable, and all are valid only during the
// call. Calls sink.barrier() where a phrase ends: between words that are separated by more than spaces.
template <class Character, class Sink>
void split_words(const Character* text, int64_t n, const uint32_t* table, int64_t min_length, Buffer& buffer,
                 Sink& sink) {
    int64_t i = 0;
    while (i < n) {
        buffer.cut(0);
        int64_t length = 0;
        bool spoiled = false;
        uint32_t kind = separator;
        for (; i < n; ++i) {
            const uint32_t entry = table[text[i]];
            kind = kind_of(entry);
            if (kind == word) {
                buffer.put(code_of(entry));
                ++length;
            } else if (kind == spoiler) {
                spoiled = true;
            } else if (kind == joiner && length > 0 && i + 1 < n && kind_of(table[text[i + 1]]) == word) {
                buffer.put(code_of(entry));
            } else if (kind != ignored) {
                break;
            }
        }
        if (length >= min_length && !spoiled) {
            sink.word(buffer.at(0), buffer.size());
        } else if (length > 0 || spoiled) {
            sink.barrier();
        }
        if (i < n && kind == gram) {
            i = split_grams(text, i, n, table, buffer, sink);
        } else if (i < n) {
            if (kind != space) sink.barrier();
            ++i;
        }
    }
}

// Faster version of split_words for texts that consist mostly of words of ASCII letters. Other parts use split_words.
class FastSplitter {
  public:
    explicit FastSplitter(const uint32_t* table) : table_(table) {
        for (uint32_t c = 0; c < 256; ++c) {
            const uint32_t kind = kind_of(table[c]);
            const bool ascii = code_of(table[c]) < 0x80, gap = kind == separator || kind == space;
            const uint16_t flag = kind == word && ascii     ? in_word
                                  : kind == joiner && ascii ? joins
                                  : gap                     ? 0
                                                            : needs_slow_path;
            bytes_[c] = static_cast<uint16_t>((code_of(table[c]) & 0xFF) | flag);
            if (gap) gap_byte_ = static_cast<uint8_t>(c);
        }
    }

    // Calls sink.words(bytes, bounds, n), where word k is from bytes[bounds[2k]] to bytes[bounds[2k + 1]]; words
    // shorter than min_length are included. Calls sink.word for parts that need split_words. There are no barriers
    // between plain words.
    template <class Character, class Sink>
    void split(const Character* text, int64_t n, int64_t min_length, Buffer& buffer, Sink& sink) const {
        Found found;
        Character joined[most];
        for (int64_t i = 0, m = 0; i < n; i += m) {
            m = up_to_a_gap(text + i, n - i);
            uint16_t seen = needs_slow_path;
            if (m <= most) seen = find(text + i, m, in_word, found);
            if ((seen & (joins | needs_slow_path)) == joins) {
                join(text + i, m, joined);
                find(joined, m, in_word | joins, found);
            }
            if (seen & needs_slow_path)
                split_words(text + i, m, table_, min_length, buffer, sink);
            else
                sink.words(found.lowered, found.bounds, found.n_bounds / 2, min_length);
        }
    }

  private:
    static constexpr int64_t most = 2048;
    static constexpr uint16_t in_word = 0x100, joins = 0x200, needs_slow_path = 0x400;

    struct Found {
        char lowered[most + Buffer::slack];
        uint16_t bounds[most + 2];
        std::size_t n_bounds;
    };

    // Flags of a character, and its byte in a word.
    template <class Character>
    uint16_t byte_of(Character c) const {
        if constexpr (sizeof(Character) > 1) {
            if (c > 0xFF) return kind_of(table_[c]) <= space ? 0 : needs_slow_path;
        }
        return bytes_[c];
    }
    template <class Character>
    bool is_gap(Character c) const {
        return byte_of(c) < in_word;
    }

    // Length of a part of about `most` characters that ends at a gap, or of the whole text.
    template <class Character>
    int64_t up_to_a_gap(const Character* text, int64_t n) const {
        if (n <= most) return n;
        int64_t m = most;
        while (m > 0 && !is_gap(text[m - 1])) --m;
        if (m > 0) return m;
        for (m = most; m < n && !is_gap(text[m]);) ++m;
        return m;
    }

    // Finds where runs of characters with `flags` begin and end. Returns the flags of all characters. The loop has no
    // branches, because the ends of words cannot be predicted.
    template <class Character>
    uint16_t find(const Character* text, int64_t m, uint16_t flags, Found& found) const {
        std::size_t n_bounds = 0;
        uint16_t before = 0, seen = 0;
        for (int64_t k = 0; k < m; ++k) {
            const uint16_t byte = byte_of(text[k]);
            const uint16_t inside = (byte & flags) != 0;
            found.lowered[k] = static_cast<char>(byte);
            found.bounds[n_bounds] = static_cast<uint16_t>(k);
            n_bounds += inside ^ before;
            before = inside;
            seen |= byte;
        }
        found.bounds[n_bounds] = static_cast<uint16_t>(m);
        found.n_bounds = n_bounds + before;
        return seen;
    }

    // Copies the text with joiners that are not between two word characters replaced by a gap.
    template <class Character>
    void join(const Character* text, int64_t m, Character* joined) const {
        for (int64_t k = 0; k < m; ++k) {
            const bool between = k > 0 && k + 1 < m && byte_of(text[k - 1]) & byte_of(text[k + 1]) & in_word;
            joined[k] = byte_of(text[k]) & joins && !between ? Character{gap_byte_} : text[k];
        }
    }

    const uint32_t* table_;
    uint16_t bytes_[256];
    uint8_t gap_byte_ = 0;
};

// Splits a document into characters. Two or more white-space characters become one space.
template <class Character>
void split_characters(const Character* text, int64_t n, const uint32_t* table, Buffer& buffer,
                      std::vector<Slice>& slices) {
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t entry = table[text[i]];
        uint32_t code = code_of(entry);
        if (kind_of(entry) == space && i + 1 < n && kind_of(table[text[i + 1]]) == space) {
            while (i + 1 < n && kind_of(table[text[i + 1]]) == space) ++i;
            code = ' ';
        }
        const std::size_t start = buffer.size();
        buffer.put(code);
        slices.push_back({start, buffer.size()});
    }
}

// Calls emit(slice) for every n consecutive slices, for n from least to most.
template <class Emit>
void for_each_ngram(const Slice* slices, std::size_t count, std::size_t least, std::size_t most, Emit emit) {
    for (std::size_t n = least; n <= most && n <= count; ++n)
        for (std::size_t i = 0; i + n <= count; ++i) emit(Slice{slices[i].start, slices[i + n - 1].end});
}

// Calls emit(slice) for the n-grams within each word, with a space before and after it. A word that is too short is
// emitted once, as a whole.
template <class Character, class Emit>
void for_each_padded_ngram(const Character* text, int64_t n, const uint32_t* table, std::size_t least, std::size_t most,
                           Buffer& buffer, std::vector<Slice>& slices, Emit emit) {
    auto put = [&](uint32_t code) {
        const std::size_t start = buffer.size();
        buffer.put(code);
        slices.push_back({start, buffer.size()});
    };
    for (int64_t i = 0; i < n;) {
        if (kind_of(table[text[i]]) == space) {
            ++i;
            continue;
        }
        buffer.cut(0);
        slices.clear();
        put(' ');
        for (; i < n && kind_of(table[text[i]]) != space; ++i) put(code_of(table[text[i]]));
        put(' ');
        const std::size_t count = slices.size();
        for (std::size_t size = least; size <= most; ++size) {
            if (count <= size) {
                emit(Slice{slices.front().start, slices.back().end});
                break;
            }
            for_each_ngram(slices.data(), count, size, size, emit);
        }
    }
}

}  // namespace polyseme::text
