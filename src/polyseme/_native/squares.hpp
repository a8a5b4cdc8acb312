// Non-negative least squares by coordinate descent, for many rows with the same Gram matrix.
//
// Row i minimizes f'Gf / 2 - p'f over f >= 0, where G = B'B and p = B'x. Along coordinate k the minimum is at
// f_k + (p - G f)_k / G_kk, or at zero. kTogether rows are updated at a time, each in its own place of a vector. A row
// that has stopped is replaced by the next one, so that its result does not depend on the rows beside it.
#pragma once
#include <algorithm>
#include <vector>

#include "products.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

struct DescentSettings {
    int topics;
    int passes;     // at most
    double enough;  // a row stops when a pass gains at most this share of p'f / 2, which is what f gains over zero
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
        : descend_(row_table<T>(isa, width).descend), G_(G), inverse_(inverse), width_(width), settings_(settings),
          f_(static_cast<std::size_t>(settings.topics) * kTogether), p_(f_.size()) {}

    void operator()(const Product* P, int64_t rows, T* F) {
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
    const T* G_;
    const T* inverse_;
    int width_;
    DescentSettings settings_;
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

// The same for p = sum_w x B_w of counts, which is not stored: it is computed for a few rows at a time. p'f before the
// update is written to `crosses`.
template <class Index, class T>
void descend_counts(const Counts<Index, T>& counts, const T* B, const T* G, int width, const DescentSettings& settings,
                    T* F, double* crosses, int n_threads, Isa isa) {
    constexpr int64_t step = 4 * kTogether;  // their products stay in the first-level cache
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
                products(first + i, part.data(), total.data());
                const T* const f = F + (first + i) * width;
                double cross = 0;
                for (int k = 0; k < width; ++k) {
                    const double product = total[static_cast<std::size_t>(k)];
                    P[static_cast<std::size_t>(i * width + k)] = static_cast<T>(product);
                    cross += product * static_cast<double>(f[k]);
                }
                crosses[first + i] = cross;
            }
            descent(P.data(), rows, F + first * width);
        }
    });
}

}  // namespace polyseme
