// Kinds of characters, texts as Python stores them, and a buffer of UTF-8 bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace polyseme::text {

// Kinds of characters. text/tokens.py creates the table and uses the same numbers.
enum Kind : uint32_t {
    separator = 0,  // ends a word and a phrase
    space = 1,      // ends a word, but not a phrase
    word = 2,       // part of a word
    spoiler = 3,    // a run of word characters that contains one is not a word
    gram = 4,       // of a script without spaces between words: counted as pairs of adjacent characters
    joiner = 5,     // part of a word between two word characters, else a separator
    ignored = 6,    // skipped
};

// An entry of the table, one per code point: the kind, and the code point to count, such as its lower case.
inline uint32_t kind_of(uint32_t entry) { return entry >> 24; }
inline uint32_t code_of(uint32_t entry) { return entry & 0x1FFFFF; }

// A Python string in memory. width is 1, 2 or 4 bytes per character.
struct Text {
    const void* data;
    int64_t length;
    int width;
};

// Growing array of UTF-8 bytes. `slack` bytes after the end can always be read.
class Buffer {
  public:
    static constexpr std::size_t slack = 16;

    std::size_t size() const { return size_; }
    const char* at(std::size_t offset) const { return bytes_.get() + offset; }
    void cut(std::size_t size) { size_ = size; }

    void put(uint32_t code) {
        if (size_ + slack > capacity_) grow();
        char* const end = bytes_.get() + size_;
        if (code < 0x80) {
            end[0] = static_cast<char>(code);
            size_ += 1;
        } else if (code < 0x800) {
            end[0] = static_cast<char>(0xC0 | code >> 6);
            end[1] = static_cast<char>(0x80 | (code & 0x3F));
            size_ += 2;
        } else if (code < 0x10000) {
            end[0] = static_cast<char>(0xE0 | code >> 12);
            end[1] = static_cast<char>(0x80 | (code >> 6 & 0x3F));
            end[2] = static_cast<char>(0x80 | (code & 0x3F));
            size_ += 3;
        } else {
            end[0] = static_cast<char>(0xF0 | code >> 18);
            end[1] = static_cast<char>(0x80 | (code >> 12 & 0x3F));
            end[2] = static_cast<char>(0x80 | (code >> 6 & 0x3F));
            end[3] = static_cast<char>(0x80 | (code & 0x3F));
            size_ += 4;
        }
    }

    void put_bytes(const char* bytes, std::size_t n) {
        while (size_ + n + slack > capacity_) grow();
        std::memcpy(bytes_.get() + size_, bytes, n);
        size_ += n;
    }

  private:
    void grow() {
        const std::size_t larger = 2 * capacity_;
        std::unique_ptr<char[]> bytes(new char[larger]);
        std::memcpy(bytes.get(), bytes_.get(), size_);
        bytes_ = std::move(bytes);
        capacity_ = larger;
    }

    std::size_t size_ = 0, capacity_ = 256;
    std::unique_ptr<char[]> bytes_{new char[capacity_]};
};

// Calls body with a pointer to the characters, in the type that the text has.
template <class Body>
void with_characters(const Text& text, Body body) {
    if (text.width == 1)
        body(static_cast<const uint8_t*>(text.data));
    else if (text.width == 2)
        body(static_cast<const uint16_t*>(text.data));
    else
        body(static_cast<const uint32_t*>(text.data));
}

// Appends a text as UTF-8. Lone surrogates, which are not valid in UTF-8, are encoded in the same way.
inline void put_text(Buffer& buffer, const Text& text) {
    with_characters(text, [&](const auto* characters) {
        for (int64_t i = 0; i < text.length; ++i) buffer.put(characters[i]);
    });
}

}  // namespace polyseme::text
