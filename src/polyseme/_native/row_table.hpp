// The row functions of one instruction set and one width, as pointers: the only thing that crosses from the
// files compiled per instruction set to the rest.
#pragma once
#include <cstdint>

namespace polyseme {

constexpr int kBlock = 32;  // non-zeros of a row that are handled together

// Some non-zeros of one row, and where their sums go; a null pointer leaves that part out.
template <class T>
struct RowBlock {
    const T* a;                      // the row's operand
    const T* B;                      // words x width
    const int64_t* offset;           // where each word's operand starts in B
    const T* x;                      // counts
    int n;                           // at most kBlock
    T* row_sum;                      // grows by sum r b
    double* log;                     // grows by sum x log q
    const int64_t* ahead = nullptr;  // where n operands start that will be needed next: they are asked for meanwhile
};

// A word whose q is at most this is not explained by any topic.
template <class T>
constexpr T unexplained() {
    return sizeof(T) == 4 ? T(1e-24) : T(1e-280);
}

// Coordinate ascent keeps q at least this part of x: slopes stay finite, and one step explains an unexplained word.
template <class T>
constexpr T least_part() {
    return sizeof(T) == 4 ? T(1e-20) : T(1e-80);
}

// Along one coordinate: g = sum x b / q and h = sum x (b / q)^2.
struct Slope {
    double g, h;
};

// After a step along one coordinate: g there, and whether every q is more than a given part of the old one.
struct Shifted {
    double g;
    bool kept;
};

template <class T>
struct RowTable {
    void (*dots)(const T* a, const T* B, const int64_t* offset, int64_t n, int width, T* q);
    void (*accumulate)(const T* B, const int64_t* offset, int64_t n, int width, const T* r, T* acc);
    void (*sweep_block)(const RowBlock<T>& block, int width);
    void (*ratios)(const T* x, const T* q, int64_t n, T* r);
    double (*weighted_log_sum)(const T* q, const T* x, int64_t n);
    void (*gather)(const T* B, const int64_t* offset, int64_t n, int64_t padded, const int* topic, int many,
                   T* columns);
    void (*mix)(const T* columns, const T* weight, int many, const T* x, int64_t n, int64_t padded, T* q, T* inverse);
    Slope (*slope)(const T* x, const T* inverse, const T* b, int64_t n);
    Shifted (*shift)(const T* from, T* q, T* inverse, const T* x, const T* b, double step, T part, int64_t n);
};

enum class Isa { baseline, avx2, avx512 };

Isa best_isa();                   // the widest one that this processor can run
Isa isa_named(const char* name);  // throws std::invalid_argument if the processor lacks it
Isa chosen_isa();                 // best_isa(), or what POLYSEME_ISA names; throws if the processor lacks it
const char* isa_name(Isa isa);

template <class T>
RowTable<T> row_table(Isa isa, int width);

}  // namespace polyseme
