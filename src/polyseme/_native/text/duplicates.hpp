// Finds near-duplicates among texts that are added one after the other.
//
// A text is the set of its shingles, its sequences of a few adjacent words. Two texts are near-duplicates if the
// Jaccard similarity of their sets is large enough. MinHash values of the sets, joined to bands, are the keys of a
// table, so that a text is compared only with texts that share a band, and with a limited number of these.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "counter.hpp"
#include "split.hpp"
#include "word_table.hpp"

namespace polyseme::text {

// Hashes of the shingles of a text. They do not depend on the machine or the process.
class Shingles {
  public:
    Shingles(const uint32_t* characters, std::size_t words) : splitter_(characters), length_(words) {}

    // The hash of each shingle. A text of fewer words is one shingle, and one without words has none.
    void of(const Text& text, std::vector<uint32_t>& hashes) {
        words_.clear();
        with_characters(text, [&](const auto* data) { splitter_.split(data, text.length, 1, buffer_, *this); });
        hashes.clear();
        const std::size_t length = std::min(length_, words_.size());
        for (std::size_t i = 0; length > 0 && i + length <= words_.size(); ++i) {
            uint64_t hash = length;
            for (std::size_t k = 0; k < length; ++k) hash = hash * 0x9E3779B97F4A7C15u + words_[i + k];
            hashes.push_back(static_cast<uint32_t>(mix_bits(hash)));
        }
    }

    // Called by the splitter.
    void word(const char* bytes, std::size_t n) {
        uint64_t hash = n;
        std::size_t done = 0;
        for (; done + 7 <= n; done += 7) hash = mix_bits(hash ^ first_bytes(bytes + done, 7));
        if (done < n) hash = mix_bits(hash ^ first_bytes(bytes + done, n - done));
        words_.push_back(hash);
    }
    void words(const char* bytes, const uint16_t* bounds, std::size_t n, int64_t) {
        for (std::size_t k = 0; k < n; ++k) word(bytes + bounds[2 * k], bounds[2 * k + 1] - bounds[2 * k]);
    }
    void barrier() {}

  private:
    FastSplitter splitter_;
    std::size_t length_;
    Buffer buffer_;
    std::vector<uint64_t> words_;
};

// A sample of a set of hashes: its smallest ones, or all of them.
struct Sketch {
    std::vector<uint32_t> hashes;
    bool whole = true, sorted = false;

    void sort() {
        if (!sorted) std::sort(hashes.begin(), hashes.end());
        if (!sorted) hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
        sorted = true;
    }

    // Most texts are not compared with any other, so hashes are sorted only if there are too many of them.
    void limit(std::size_t most) {
        sorted = false;
        if (hashes.size() > most) sort();
        whole = hashes.size() <= most;
        if (!whole) hashes.resize(most);
    }
};

// The Jaccard similarity of two sorted sets, or its estimate from the smallest hashes of their union.
inline double jaccard(const Sketch& a, const Sketch& b, std::size_t limit) {
    const std::size_t most = a.whole && b.whole ? a.hashes.size() + b.hashes.size() : limit;
    std::size_t i = 0, j = 0, both = 0, either = 0;
    while (either < most && (i < a.hashes.size() || j < b.hashes.size())) {
        const bool in_a = j == b.hashes.size() || (i < a.hashes.size() && a.hashes[i] <= b.hashes[j]);
        const bool in_b = i == a.hashes.size() || (j < b.hashes.size() && b.hashes[j] <= a.hashes[i]);
        i += in_a;
        j += in_b;
        both += in_a && in_b;
        ++either;
    }
    return either ? static_cast<double>(both) / static_cast<double>(either) : 0.0;
}

class NearDuplicates {
  public:
    static constexpr int64_t none = -1;

    // Sketches are stored in the file `path`, which nothing else may use. `least` is the similarity of near-duplicates.
    NearDuplicates(const uint32_t* characters, std::size_t words, double least, const std::string& path)
        : characters_(characters), words_(words), least_(least) {
        slots_.fill(std::vector<Slot>(256));
        n_keys_.fill(0);
        file_.open(path, std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc);
        check_file();
    }

    int64_t compared() const { return compared_; }

    // Adds texts. Returns, for each, the index of the text that it is a near-duplicate of, or none: the most similar of
    // the texts that are not near-duplicates themselves, and the first of equally similar ones. Threads hash the texts,
    // which are then compared one after the other.
    std::vector<int64_t> add(const std::vector<Text>& texts, int n_threads) {
        const std::vector<std::size_t> cut = cut_texts(texts);
        const auto pieces = static_cast<int64_t>(cut.size()) - 1;
        while (shingles_.size() < static_cast<std::size_t>(std::max(1, n_threads)))
            shingles_.emplace_back(characters_, words_);
        std::vector<std::vector<Hashed>> hashed(static_cast<std::size_t>(pieces));
        for_each_piece(pieces, n_threads, [&](int worker, int64_t p) {
            const auto piece = static_cast<std::size_t>(p);
            std::vector<Hashed> found(cut[piece + 1] - cut[piece]);
            for (std::size_t i = 0; i < found.size(); ++i) {
                shingles_[static_cast<std::size_t>(worker)].of(texts[cut[piece] + i], found[i].sketch.hashes);
                found[i].sketch.limit(most_hashes);
                if (!found[i].sketch.hashes.empty()) found[i].keys = keys_of(found[i].sketch.hashes);
            }
            hashed[piece] = std::move(found);
        });
        std::vector<int64_t> firsts;
        firsts.reserve(texts.size());
        for (std::vector<Hashed>& piece : hashed)
            for (Hashed& text : piece) firsts.push_back(add(text));
        return firsts;
    }

    // Adds texts that are not known, and are not compared with any other.
    void skip(int64_t n) { n_texts_ += n; }

    void close() { file_.close(); }

  private:
    static constexpr std::size_t n_bands = 6, band_size = 3;
    static constexpr std::size_t most_hashes = 1024;  // of a sketch
    static constexpr std::size_t most_compared = 8;   // texts with the same band
    static constexpr uint32_t nothing = std::numeric_limits<uint32_t>::max();
    using Keys = std::array<uint32_t, n_bands>;

    struct Hashed {
        Sketch sketch;
        Keys keys;
    };

    // A text that is not a near-duplicate.
    struct Stored {
        int64_t text;
        uint64_t start;  // of its sketch in the file
        uint32_t size;   // of its sketch
        bool whole;
        std::array<uint32_t, n_bands> before;  // the stored text before it with the same band
    };
    struct Slot {
        uint32_t key = 0, latest = nothing;
    };

    static Keys keys_of(const std::vector<uint32_t>& hashes) {
        constexpr std::size_t n = n_bands * band_size;
        static const std::array<uint64_t, n> factors = [] {
            std::array<uint64_t, n> odd;
            for (std::size_t i = 0; i < n; ++i) odd[i] = mix_bits(i + 1) | 1;
            return odd;
        }();
        std::array<uint32_t, n> least;
        least.fill(nothing);
        for (const uint32_t hash : hashes)
            for (std::size_t i = 0; i < n; ++i)
                least[i] = std::min(least[i], static_cast<uint32_t>(hash * factors[i] >> 32));
        Keys keys;
        for (std::size_t band = 0; band < n_bands; ++band) {
            uint64_t key = band;
            for (std::size_t k = 0; k < band_size; ++k) key = mix_bits(key ^ least[band * band_size + k]);
            keys[band] = static_cast<uint32_t>(key);
        }
        return keys;
    }

    // The slot of a key, or the empty slot where it belongs. The seed of the process makes it impossible to choose
    // texts whose keys all have the same slot; it does not change the results.
    Slot& slot_of(std::size_t band, uint32_t key) {
        std::vector<Slot>& slots = slots_[band];
        std::size_t place = static_cast<std::size_t>(mix_bits(key ^ seed_));
        for (;; ++place) {
            Slot& slot = slots[place & (slots.size() - 1)];
            if (slot.latest == nothing || slot.key == key) return slot;
        }
    }

    int64_t add(Hashed& text) {
        int64_t found = none;
        if (!text.sketch.hashes.empty()) {
            found = find(text);
            if (found == none) store(text);
        }
        ++n_texts_;
        return found;
    }

    int64_t find(Hashed& text) {
        const Keys& keys = text.keys;
        double best = least_;
        int64_t found = none;
        seen_.clear();
        for (std::size_t band = 0; band < n_bands; ++band) {
            uint32_t next = slot_of(band, keys[band]).latest;
            for (std::size_t steps = 0; next != nothing && steps < most_compared; ++steps) {
                const Stored& other = stored_[next];
                if (std::find(seen_.begin(), seen_.end(), next) == seen_.end()) {
                    seen_.push_back(next);
                    const double similarity = compare(text.sketch, other);
                    if (similarity > best || (similarity == best && (found == none || other.text < found))) {
                        best = similarity;
                        found = other.text;
                    }
                }
                next = other.before[band];
            }
        }
        return found;
    }

    double compare(Sketch& sketch, const Stored& other) {
        ++compared_;
        other_.whole = other.whole;
        other_.hashes.resize(other.size);
        moved_ = true;
        file_.seekg(static_cast<std::streamoff>(other.start));
        file_.read(reinterpret_cast<char*>(other_.hashes.data()), bytes_of(other_));
        check_file();
        other_.sorted = false;
        other_.sort();
        sketch.sort();
        return jaccard(sketch, other_, most_hashes);
    }

    void store(const Hashed& text) {
        const auto& [sketch, keys] = text;
        if (stored_.size() >= nothing) throw std::length_error("there are too many texts to find near-duplicates");
        Stored added{n_texts_, end_, static_cast<uint32_t>(sketch.hashes.size()), sketch.whole, {}};
        if (moved_) file_.seekp(static_cast<std::streamoff>(end_));  // seekp flushes the buffer
        moved_ = false;
        file_.write(reinterpret_cast<const char*>(sketch.hashes.data()), bytes_of(sketch));
        check_file();
        end_ += static_cast<uint64_t>(bytes_of(sketch));
        for (std::size_t band = 0; band < n_bands; ++band) {
            if (4 * n_keys_[band] >= 3 * slots_[band].size()) grow(band);
            Slot& slot = slot_of(band, keys[band]);
            n_keys_[band] += slot.latest == nothing;
            added.before[band] = slot.latest;
            slot = {keys[band], static_cast<uint32_t>(stored_.size())};
        }
        stored_.push_back(added);
    }

    void grow(std::size_t band) {
        std::vector<Slot> old(2 * slots_[band].size());
        old.swap(slots_[band]);
        for (const Slot& slot : old)
            if (slot.latest != nothing) slot_of(band, slot.key) = slot;
    }

    static std::streamsize bytes_of(const Sketch& sketch) {
        return static_cast<std::streamsize>(sketch.hashes.size() * sizeof(uint32_t));
    }
    void check_file() const {
        if (!file_) throw std::runtime_error("the file of shingles cannot be written or read");
    }

    const uint32_t* characters_;
    std::size_t words_;
    std::deque<Shingles> shingles_;  // one for each thread
    double least_;
    std::fstream file_;
    uint64_t end_ = 0;
    bool moved_ = false;  // whether the file was read after the last sketch was written
    std::deque<Stored> stored_;  // does not need twice its memory while it grows
    std::array<std::vector<Slot>, n_bands> slots_;  // one table for each band: they do not grow at the same time
    std::array<std::size_t, n_bands> n_keys_;
    int64_t n_texts_ = 0, compared_ = 0;
    const uint64_t seed_ = hash_seed();
    Sketch other_;
    std::vector<uint32_t> seen_;
};

}  // namespace polyseme::text
