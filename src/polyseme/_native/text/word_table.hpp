// Hash table that numbers strings: each new string of bytes gets the next number.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace polyseme::text {

inline uint64_t mix_bits(uint64_t x) {
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

// Random seed of the hash, so that an attacker cannot choose words that all have the same slot.
inline uint64_t hash_seed() {
    static const uint64_t seed = [] {
        std::random_device device;
        return static_cast<uint64_t>(device()) << 32 | device();
    }();
    return seed;
}

// Up to 7 bytes as a number below 2^56. Always reads 8 bytes.
inline uint64_t first_bytes(const char* bytes, std::size_t n) {
    uint64_t value;
    std::memcpy(&value, bytes, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (value & ~(~uint64_t{0} >> 8 * n)) >> 8;
#else
    return value & ((uint64_t{1} << 8 * n) - 1);
#endif
}

class WordTable {
  public:
    static constexpr std::size_t max_size = 0x7FFFFFF0;  // columns are 32-bit numbers

    // Slot of a word, with fields of the counter: the last document that contained the word, and its position in the
    // counts.
    struct Slot {
        uint64_t head = 0;
        uint32_t hash = 0;
        uint32_t number_and_one = 0;
        uint32_t document = 0;
        uint32_t position = 0;

        uint32_t number() const { return number_and_one - 1; }
    };

    WordTable() : slots_(1024) {}
    WordTable(WordTable&&) noexcept = default;
    WordTable& operator=(WordTable&&) noexcept = default;

    std::size_t size() const { return words_.size(); }
    std::string_view operator[](uint32_t number) const { return words_[number]; }

    // A word of up to seven bytes is stored in `head`, with its length as the top byte. For a longer word `head` is the
    // address of its bytes, and the lowest bit of the hash is set.
    struct Key {
        uint64_t head;
        uint32_t hash;
    };

    // 8 bytes after the end of `bytes` must be readable.
    Key key_of(const char* bytes, std::size_t n) const {
        if (n < 8) {
            const uint64_t head = first_bytes(bytes, n) | static_cast<uint64_t>(n) << 56;
            return {head, static_cast<uint32_t>(mix_bits(head ^ seed_) >> 32) & ~1u};
        }
        uint64_t hash = seed_ + n;
        std::size_t done = 0;
        for (; done + 8 <= n; done += 8) {
            uint64_t eight;
            std::memcpy(&eight, bytes + done, 8);
            hash = mix_bits(hash ^ eight);
        }
        if (done < n) hash = mix_bits(hash ^ first_bytes(bytes + done, n - done));
        return {0, static_cast<uint32_t>(hash >> 32) | 1u};
    }

    // Prefetches the slot where the search for a key begins.
    void prefetch(const Key& key) const {
#if defined(__GNUC__) || defined(__clang__)
        __builtin_prefetch(&slots_[first_slot(key.hash)], 1);
#else
        (void)key;
#endif
    }

    bool contains(const char* bytes, std::size_t n) const {
        return slots_[find_slot(key_of(bytes, n), bytes, n)].number_and_one;
    }

    // Returns the slot of a string, which is added if it is new.
    Slot& add(const char* bytes, std::size_t n) { return add(key_of(bytes, n), bytes, n); }
    Slot& add(Key key, const char* bytes, std::size_t n) {
        std::size_t at = find_slot(key, bytes, n);
        if (slots_[at].number_and_one) return slots_[at];
        if (words_.size() >= max_size) throw std::length_error("more than two billion distinct words");
        if (3 * (words_.size() + 1) > 2 * slots_.size()) {
            grow();
            at = find_slot(key, bytes, n);
        }
        words_.push_back(store(bytes, n));
        if (n >= 8) key.head = reinterpret_cast<uintptr_t>(words_.back().data());
        slots_[at] = {key.head, key.hash, static_cast<uint32_t>(words_.size()), 0, 0};
        return slots_[at];
    }

    void reset_documents() {
        for (Slot& slot : slots_) slot.document = 0;
    }

  private:
    static constexpr std::size_t block = 1 << 20;

    std::size_t first_slot(uint32_t hash) const { return (hash >> 1) & (slots_.size() - 1); }

    std::size_t find_slot(const Key& key, const char* bytes, std::size_t n) const {
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = first_slot(key.hash);; at = (at + 1) & mask) {
            const Slot& slot = slots_[at];
            if (!slot.number_and_one) return at;
            if (slot.hash != key.hash) continue;
            if (n < 8) {
                if (slot.head == key.head) return at;
            } else if (words_[slot.number()].size() == n &&
                       std::memcmp(reinterpret_cast<const char*>(static_cast<uintptr_t>(slot.head)), bytes, n) == 0) {
                return at;
            }
        }
    }

    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        const std::size_t mask = slots_.size() - 1;
        for (const Slot& slot : old) {
            if (!slot.number_and_one) continue;
            std::size_t at = first_slot(slot.hash);
            while (slots_[at].number_and_one) at = (at + 1) & mask;
            slots_[at] = slot;
        }
    }

    std::string_view store(const char* bytes, std::size_t n) {
        if (!free_ || n > remaining_) {  // an empty word needs 8 readable bytes as well
            const std::size_t size = std::max(block, n);
            blocks_.emplace_back(
                new char[size + 8]);  // stored words can be keys themselves, which need 8 readable bytes after them
            free_ = blocks_.back().get();
            remaining_ = size;
        }
        char* const start = free_;
        if (n) std::memcpy(start, bytes, n);
        free_ += n;
        remaining_ -= n;
        return {start, n};
    }

    uint64_t seed_ = hash_seed();
    std::vector<Slot> slots_;
    std::vector<std::string_view> words_;
    std::vector<std::unique_ptr<char[]>> blocks_;
    char* free_ = nullptr;
    std::size_t remaining_ = 0;
};

}  // namespace polyseme::text
