// The words of several tables in one sorted list.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "../threads.hpp"
#include "word_table.hpp"

namespace polyseme::text {

struct MergedWords {
    std::vector<std::string_view> words;  // all distinct, sorted by bytes, which in UTF-8 is the order of code points
    std::vector<std::vector<int32_t>> new_number;  // of the words of each table
};

// Merges tables. The result does not depend on which table contains which words.
inline MergedWords merge_words(const std::vector<const WordTable*>& tables, int n_threads) {
    std::vector<std::vector<uint32_t>> sorted(tables.size());
    std::size_t words = 0;
    for (const WordTable* table : tables) words += table->size();
    constexpr double sorting_a_word = 512;  // in multiply-adds
    const int threads = threads_for(n_threads, sorting_a_word * static_cast<double>(words));
    for_each_piece(static_cast<int64_t>(tables.size()), threads, [&](int, int64_t t) {
        const WordTable& table = *tables[static_cast<std::size_t>(t)];
        struct Key {
            uint64_t start;  // the first bytes, so that most comparisons need not read the word
            uint32_t number;
        };
        std::vector<Key> keys(table.size());
        for (uint32_t i = 0; i < keys.size(); ++i) {
            uint64_t start = 0;
            for (std::size_t byte = 0; byte < 8; ++byte)
                start = start << 8 | (byte < table[i].size() ? static_cast<uint8_t>(table[i][byte]) : 0u);
            keys[i] = {start, i};
        }
        std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
            return a.start != b.start ? a.start < b.start : table[a.number] < table[b.number];
        });
        auto& order = sorted[static_cast<std::size_t>(t)];
        order.reserve(keys.size());
        for (const Key& key : keys) order.push_back(key.number);
    });

    MergedWords result;
    result.new_number.resize(tables.size());
    for (std::size_t t = 0; t < tables.size(); ++t) result.new_number[t].resize(tables[t]->size());
    std::vector<std::size_t> next(tables.size(), 0);
    auto head = [&](std::size_t t) { return (*tables[t])[sorted[t][next[t]]]; };
    for (;;) {
        std::size_t smallest = tables.size();
        for (std::size_t t = 0; t < tables.size(); ++t)
            if (next[t] < sorted[t].size() && (smallest == tables.size() || head(t) < head(smallest))) smallest = t;
        if (smallest == tables.size()) return result;
        const std::string_view word = head(smallest);
        for (std::size_t t = smallest; t < tables.size(); ++t)
            if (next[t] < sorted[t].size() && head(t) == word)
                result.new_number[t][sorted[t][next[t]++]] = static_cast<int32_t>(result.words.size());
        result.words.push_back(word);
    }
}

}  // namespace polyseme::text
