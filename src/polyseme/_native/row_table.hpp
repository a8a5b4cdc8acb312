// Pointers to the row functions of one instruction set and one width. They are the only interface between the files
// that are compiled once per instruction set and the other code.
#pragma once
#include <cstdint>

namespace polyseme {

// Some non-zeros of one row, and pointers to their sums. A sum whose pointer is null is not computed.
template <class T, class Index>
struct RowRange {
    const T* a;          // operand of the row
    const T* B;          // words x width
    const Index* index;  // word of each non-zero
    const T* x;          // counts
    int64_t n;           // number of non-zeros
    int64_t known;       // at least n: indices that can be read, because the operands of the next ones are prefetched
    T* row_sum;          // sum r b is added to it
    double* log;         // sum x log q is added to it
};

// A product q of at most this value counts as zero: no topic explains the word.
template <class T>
constexpr T max_zero_product() {
    return sizeof(T) == 4 ? T(1e-24) : T(1e-280);
}

// Coordinate ascent keeps q at least this share of x, so that slopes are finite and one step can make a zero q
// positive; and at least min_product, where x is zero.
template <class T>
constexpr T min_product_share() {
    return sizeof(T) == 4 ? T(1e-20) : T(1e-80);
}

template <class T>
constexpr T min_product() {
    return sizeof(T) == 4 ? T(1e-30) : T(1e-200);
}

// Derivatives along one coordinate: g = sum x b / q and h = sum x (b / q)^2.
struct Slope {
    double g, h;
};

// Result of a step along one coordinate: the derivatives along the next one, the slope along the same one, and whether
// every q is more than a given share of its old value.
struct Shifted {
    Slope next;
    double after;
    bool precise;
};

// Coordinate ascent gathers the operands of this many words together.
constexpr int kGatheredWords = 16;

// Topics that lie together in one line of the operands, and their places among the topics to gather.
struct PickedLine {
    int32_t index[16];  // in the line, of the topic at each place
    uint32_t places;
    int line;  // first topic of the line
    int end;   // in the last line of a block of places: number of topics to gather up to this line; else 0
};

// Operands of the words of a row, and the columns to which some of them are gathered.
template <class T>
struct RowOperands {
    const T* B;  // words x width
    int width;
    const int64_t* offset;  // operand of each word
    int64_t n, padded;      // words, and the same rounded up to a multiple of kGatheredWords
    int64_t known;          // at least n: words with the first ones of the next rows, which are prefetched
    const T* zeros;         // operand of the words after the last one
    const int* topic;  // topics to gather, in their order
    int topics;
    T* first;          // column of the first one
    int64_t stride;    // from one column to the next
    PickedLine* pick;  // room for one of each topic
    // The same as fours of adjacent topics f to f + 3, and a column of each topic; columns that are not needed can be
    // equal.
    const int* four;
    int fours;
    T* const* column;
};

// Some rows of a tile of columns of dense data, for the Itakura-Saito loss (reciprocal.hpp). They are computed in parts
// of two packs, so that the values that change most often stay in registers.
constexpr int kDenseRows = 4, kDensePacks = 2;
constexpr int64_t kTileBytes = 64 * kDensePacks;  // of a row of a tile, for any instruction set

template <class T>
constexpr int tile_columns = static_cast<int>(kTileBytes / static_cast<int64_t>(sizeof(T)));

template <class T>
struct ReciprocalRows {
    const T* x[kDenseRows];         // data, at the tile
    int64_t ahead;                  // numbers to the next rows, which are prefetched; 0: there are none
    const T* a[kDenseRows];         // K numbers of the factor of the rows
    const T* weighted[kDenseRows];  // the same times the weight of the row, or zeros
    T floor[kDenseRows];            // smallest q of each row
    const T* floors;                // smallest q of each column of the tile
    const T* topics;                // factor of the columns of the tile (K x tile_columns)
    int topics_count;               // K
    int present;                    // rows before the end of the data; the last one is repeated
};

// For each column of a tile, the sum and the product of the ratios x / q. The product is `product` times 2^exponent;
// `least` is the smallest product of a few ratios.
template <class T>
struct ReciprocalLosses {
    double sum[tile_columns<T>], product[tile_columns<T>], least[tile_columns<T>];
    int64_t exponent[tile_columns<T>];
};

// Rows that `descend` updates together: twice the numbers of the widest vector, because an addition takes four cycles.
constexpr int kTogether = 32;

template <class T>
struct RowTable {
    void (*dots)(const T* a, const T* B, const int64_t* offset, int64_t n, int width, T* q);
    void (*accumulate)(const T* B, const int64_t* offset, int64_t n, int width, const T* r, T* acc);
    void (*accumulate_rows)(const T* B, const int32_t* index, int64_t n, int64_t known, int width, const T* r, T* acc);
    void (*accumulate_rows_64)(const T* B, const int64_t* index, int64_t n, int64_t known, int width, const T* r,
                               T* acc);
    void (*sweep_range)(const RowRange<T, int32_t>& range, int width);
    void (*sweep_range_64)(const RowRange<T, int64_t>& range, int width);
    void (*ratios)(const T* x, const T* q, int64_t n, T* r);
    double (*weighted_log_sum)(const T* q, const T* x, int64_t n);
    int (*choose)(const T* theta, const T* slopes, const T* u, int width, int* topics);
    void (*gather)(const RowOperands<T>& row);
    bool (*evaluate)(const RowOperands<T>& row, const T* const* column, const T* weight, int many, const T* x, T* q,
                     T* inverse, T* sums);
    void (*mix)(const T* const* column, const T* weight, int many, const T* x, int64_t padded, T* q, T* inverse);
    Slope (*slope)(const T* x, const T* inverse, const T* b, int64_t n);
    Shifted (*shift)(const T* from, T* q, T* inverse, const T* x, const T* b, const T* next, double step, T share,
                     int64_t n);
    void (*reciprocal_sums)(const ReciprocalRows<T>& rows, T* numerators, T* denominators, ReciprocalLosses<T>* losses);
    void (*multiplied)(const T* factor, const double* numerators, const double* denominators, bool root, int64_t n,
                       T* out);
    void (*descend)(T* f, const T* p, const T* G, const T* inverse, int topics, int width, T* gain, T* value);
    void (*transpose)(const T* from, int64_t stride, int rows, int columns, T* to, int64_t to_stride);
    void (*gram)(const T* F, const double* weights, int64_t rows, int width, T* G);
};

enum class Isa { baseline, avx2, avx512 };

Isa best_isa();                   // the widest one that this processor supports
Isa isa_named(const char* name);  // throws std::invalid_argument if the processor does not support it
Isa chosen_isa();                 // the one named by POLYSEME_ISA, else best_isa(); throws as isa_named does
const char* isa_name(Isa isa);

template <class T>
RowTable<T> row_table(Isa isa, int width);

}  // namespace polyseme
