// Non-negative least squares by coordinate descent, for many rows with the same Gram matrix.
//
// Row i minimizes f'Gf / 2 - p'f over f >= 0, where G = B'B and p = B'x. Along coordinate k the minimum is at
// f_k + (p - G f)_k / G_kk, or at zero. kTogether rows are updated at a time, each in its own element of a vector. A
// row that has stopped is replaced by the next one, so that its result does not depend on the rows beside it.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "products.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

struct DescentSettings {
    int topics;
    int passes;     // maximum number of passes
    double enough;  // a row stops when a pass gains at most this share of p'f / 2, the gain of f over zero
};

// 1 / G_kk, and 0 for a topic of zeros
template <class T>
std::vector<T> inverse_curvatures(const T* G, int topics, int width) {
    std::vector<T> inverse(static_cast<std::size_t>(topics));
    for (int k = 0; k < topics; ++k) {
        const T curvature = G[static_cast<int64_t>(k) * width + k];
        inverse[static_cast<std::size_t>(k)] = curvature > T(0) ? T(1) / curvature : T(0);
    }
    return inverse;
}

// Updates some rows of F (rows x width, in place) in one thread. P is rows x width.
template <class T, class Product>
class RowDescent {
  public:
    RowDescent(const T* G, const T* inverse, int width, const DescentSettings& settings, Isa isa)
        : descend_(row_table<T>(isa, width).descend), transpose_(row_table<T>(isa, width).transpose), G_(G),
          inverse_(inverse), width_(width), settings_(settings), columns_((settings.topics + 3) / 4 * 4),
          f_(static_cast<std::size_t>(columns_) * kTogether), p_(f_.size()) {}

    void operator()(const Product* P, int64_t rows, T* F) {
        if constexpr (std::is_same_v<Product, T>) {
            for (; settings_.passes == 1 && rows >= kTogether; rows -= kTogether) {  // no row waits for another one
                transpose_(F, width_, kTogether, columns_, f_.data(), kTogether);
                transpose_(P, width_, kTogether, columns_, p_.data(), kTogether);
                descend_(f_.data(), p_.data(), G_, inverse_, settings_.topics, width_, gain_, value_);
                transpose_(f_.data(), kTogether, columns_, kTogether, F, width_);
                F += kTogether * width_;
                P += kTogether * width_;
            }
            if (rows == 0) return;
        }
        next_ = 0;
        for (int i = 0; i < kTogether; ++i) take(i, P, rows, F);
        while (settings_.passes > 0 && any_left()) {
            descend_(f_.data(), p_.data(), G_, inverse_, settings_.topics, width_, gain_, value_);
            for (int i = 0; i < kTogether; ++i) {
                if (row_[i] < 0) continue;
                const double enough = settings_.enough * 0.5 * static_cast<double>(value_[i]);
                if (++pass_[i]<settings_.passes&& static_cast<double>(gain_[i])> enough) continue;
                T* const to = F + row_[i] * width_;
                for (int k = 0; k < settings_.topics; ++k) to[k] = f_[at(k, i)];
                take(i, P, rows, F);
            }
        }
    }

  private:
    static std::size_t at(int k, int i) {
        return static_cast<std::size_t>(k) * kTogether + static_cast<std::size_t>(i);
    }

    void take(int i, const Product* P, int64_t rows, const T* F) {
        row_[i] = next_ < rows ? next_++ : -1;
        pass_[i] = 0;
        const int64_t start = row_[i] * width_;
        for (int k = 0; k < settings_.topics; ++k) {  // zeros do not move
            f_[at(k, i)] = row_[i] < 0 ? T(0) : F[start + k];
            p_[at(k, i)] = row_[i] < 0 ? T(0) : static_cast<T>(P[start + k]);
        }
    }

    bool any_left() const {
        return std::any_of(row_, row_ + kTogether, [](int64_t number) { return number >= 0; });
    }

    decltype(RowTable<T>::descend) descend_;
    decltype(RowTable<T>::transpose) transpose_;
    const T* G_;
    const T* inverse_;
    int width_;
    DescentSettings settings_;
    int columns_;  // topics, rounded up
    std::vector<T> f_, p_;
    int64_t next_ = 0;
    int64_t row_[kTogether];  // -1: none left
    int pass_[kTogether];
    T gain_[kTogether], value_[kTogether];
};

// Updates every row of F (rows x width, in place). P is rows x width, G width x width.
template <class T>
void descend(const double* P, const T* G, int64_t rows, int width, const DescentSettings& settings, T* F, int n_threads,
             Isa isa) {
    const std::vector<T> inverse = inverse_curvatures(G, settings.topics, width);
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>((rows + kTogether - 1) / kTogether, 256));
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        const int64_t begin = rows * piece / pieces, end = rows * (piece + 1) / pieces;
        RowDescent<T, double>(G, inverse.data(), width, settings, isa)(P + begin * width, end - begin,
                                                                       F + begin * width);
    });
}

// sum_k a_k b_k in float64, by eight sums that do not wait for each other. width is a multiple of 8.
template <class T>
double inner_product(const T* a, const T* b, int width) {
    double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int k = 0; k < width; k += 8)
        for (int i = 0; i < 8; ++i) lane[i] += static_cast<double>(a[k + i]) * static_cast<double>(b[k + i]);
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

// The same for p = sum_w x B_w of counts, which is not stored: it is computed for a few rows at a time. The new rows
// are written to F. p'f of the old rows is written to `crosses`, unless it is null.
template <class Index, class T>
void descend_counts(const Counts<Index, T>& counts, const T* B, const T* G, int width, const DescentSettings& settings,
                    const T* old, T* F, double* crosses, int n_threads, Isa isa) {
    constexpr int64_t step = 2 * kTogether;  // their products stay in the first-level cache
    const std::vector<T> inverse = inverse_curvatures(G, settings.topics, width);
    const RowProducts<Index, T> products(counts, B, width, isa);
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(counts.rows, 256));
    const std::vector<int64_t> cut = cut_rows(counts.indptr, counts.rows, pieces);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        RowDescent<T, T> descent(G, inverse.data(), width, settings, isa);
        std::vector<T> part(static_cast<std::size_t>(width)), P(static_cast<std::size_t>(step * width));
        std::vector<double> total(static_cast<std::size_t>(width));
        const int64_t end = cut[static_cast<std::size_t>(piece + 1)];
        for (int64_t first = cut[static_cast<std::size_t>(piece)]; first < end; first += step) {
            const int64_t rows = std::min(step, end - first);
            for (int64_t i = 0; i < rows; ++i) {
                T* const p = P.data() + i * width;
                products.narrow(first + i, part.data(), total.data(), p);
                if (crosses) crosses[first + i] = inner_product(p, old + (first + i) * width, width);
            }
            std::copy(old + first * width, old + (first + rows) * width, F + first * width);
            descent(P.data(), rows, F + first * width);
        }
    });
}

// G = sum_i weight_i f_i f_i' over the rows of F (rows x width). Sums over 1024 rows are of type T, and the sums of
// these are float64, in a fixed order. weights may be null.
template <class T>
void gram(const T* F, const double* weights, int64_t rows, int width, double* G, int n_threads, Isa isa) {
    constexpr int64_t most = 1024, step = 64;  // rows of a sum of type T, and rows that stay in the first-level cache
    const auto add = row_table<T>(isa, width).gram;
    const int64_t chunks = (rows + most - 1) / most, pieces = std::max<int64_t>(1, std::min<int64_t>(chunks, 64));
    const std::size_t W = static_cast<std::size_t>(width), size = W * W;
    std::vector<double> partial(static_cast<std::size_t>(pieces) * size, 0.0);
    for_each_piece(pieces, n_threads, [&](int, int64_t piece) {
        std::vector<T> part(size);
        double* const total = partial.data() + static_cast<std::size_t>(piece) * size;
        for (int64_t chunk = chunks * piece / pieces; chunk < chunks * (piece + 1) / pieces; ++chunk) {
            const int64_t end = std::min(rows, (chunk + 1) * most);
            std::fill(part.begin(), part.end(), T(0));
            for (int64_t first = chunk * most; first < end; first += step)
                add(F + first * width, weights ? weights + first : nullptr, std::min(step, end - first), width,
                    part.data());
            for (std::size_t i = 0; i < size; ++i) total[i] += static_cast<double>(part[i]);
        }
    });
    std::fill(G, G + size, 0.0);
    for (std::size_t piece = 0; piece < static_cast<std::size_t>(pieces); ++piece)
        for (std::size_t i = 0; i < size; ++i) G[i] += partial[piece * size + i];
    for (std::size_t k = 0; k < W; ++k)
        for (std::size_t j = 0; j < k; ++j) G[k * W + j] = G[j * W + k];
}

}  // namespace polyseme
