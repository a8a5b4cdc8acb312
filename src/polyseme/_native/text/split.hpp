// From the characters of a document to its words, or to its pieces of n characters.
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

// Word characters that are one byte in the buffer, up to the first other: the plain and common case, made fast.
template <class Character>
inline int64_t put_plain(const Character* text, int64_t n, const uint32_t* table, Buffer& buffer) {
    int64_t done = 0;
    while (done < n) {
        char* const room = buffer.room();
        const int64_t most = std::min<int64_t>(n - done, Buffer::slack);
        int64_t i = 0;
        for (; i < most; ++i) {
            const uint32_t entry = table[text[done + i]];
            if ((entry & ~0x7Fu) != word << 24) break;
            room[i] = static_cast<char>(entry);
        }
        buffer.take(static_cast<std::size_t>(i));
        done += i;
        if (i < most) break;
    }
    return done;
}

// Calls sink.word(start) for each word: it is the end of the buffer from `start` on, and the sink may cut it off.
// Calls sink.barrier() where a phrase may not go on: between words with more than spaces between them.
template <class Character, class Sink>
void split_words(const Character* text, int64_t n, const uint32_t* table, int64_t min_length, Buffer& buffer, Sink& sink) {
    int64_t i = 0;
    while (i < n) {
        const std::size_t start = buffer.size();
        int64_t length = 0;
        bool spoiled = false;
        uint32_t kind = separator;
        for (;; ++i) {
            const int64_t plain = put_plain(text + i, n - i, table, buffer);
            i += plain;
            length += plain;
            if (i >= n) break;
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
            sink.word(start);
        } else {
            buffer.cut(start);
            if (length > 0 || spoiled) sink.barrier();
        }
        if (i < n && kind == gram) {
            i = split_grams(text, i, n, table, buffer, sink);
        } else if (i < n) {
            if (kind != space) sink.barrier();
            ++i;
        }
    }
}

// A run of characters that are counted by overlapping pairs; one that stands alone is counted by itself.
template <class Character, class Sink>
int64_t split_grams(const Character* text, int64_t i, int64_t n, const uint32_t* table, Buffer& buffer, Sink& sink) {
    uint32_t before = 0;
    int64_t length = 0;
    for (; i < n; ++i) {
        const uint32_t entry = table[text[i]];
        if (kind_of(entry) == ignored) continue;
        if (kind_of(entry) != gram) break;
        if (length > 0) {
            const std::size_t start = buffer.size();
            buffer.put(before);
            buffer.put(code_of(entry));
            sink.word(start);
        }
        before = code_of(entry);
        ++length;
    }
    if (length == 1) {
        const std::size_t start = buffer.size();
        buffer.put(before);
        sink.word(start);
    }
    sink.barrier();
    return i;
}

// The characters of a document one by one; two or more white spaces become one blank.
template <class Character>
void split_characters(const Character* text, int64_t n, const uint32_t* table, Buffer& buffer, std::vector<Slice>& slices) {
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

// Calls emit(slice) for every n consecutive slices, n from least to most.
template <class Emit>
void for_each_ngram(const Slice* slices, std::size_t count, std::size_t least, std::size_t most, Emit emit) {
    for (std::size_t n = least; n <= most && n <= count; ++n)
        for (std::size_t i = 0; i + n <= count; ++i) emit(Slice{slices[i].start, slices[i + n - 1].end});
}

// The same within each word, which has a blank before and behind it; a word that is too short is taken whole, once.
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
