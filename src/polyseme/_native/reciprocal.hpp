// Sums of the Itakura-Saito loss over dense data: with q = A_i . B_j, at least a floor, for the columns j
//     numerators   sum_i weight_i x / q^2 A_i        denominators   sum_i weight_i 1 / q A_i
//     losses       sum_i x / q - log(x / q) - 1
// The sums for the rows are those for the columns of the transpose. q is computed in parts of tiles that stay in
// registers, and never stored. A tile of columns is processed by one thread, row by row in a fixed order. Everything
// that it needs, except the data, is in the first-level cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

template <class T>
struct DenseProblem {
    const T* x;              // rows x stride; stride is a multiple of tile_columns<T>
    const T* A;              // rows x width
    const T* weighted;       // rows x width: A times the weights of the rows
    const T* B;              // columns x width
    const T* row_floors;     // smallest q of each row, or null
    const T* column_floors;  // smallest q of each column, or null
    int64_t rows, columns, stride;
    int topics, width;
};

// The sums of one tile, in one thread.
template <class T>
class ReciprocalTile {
  public:
    ReciprocalTile(const DenseProblem<T>& problem, int64_t first, Isa isa)
        : function_(row_table<T>(isa, 16).reciprocal_sums), problem_(problem), first_(first),
          many_(std::min<int64_t>(C, problem.columns - first)), size_(static_cast<std::size_t>(problem.topics) * C),
          zeros_(static_cast<std::size_t>(problem.width)), topics_(size_), floors_(C), part_n_(size_), part_d_(size_),
          n_(size_), d_(size_) {
        for (int64_t j = 0; j < many_; ++j) {
            const T* const b = problem.B + (first + j) * problem.width;
            for (int k = 0; k < problem.topics; ++k) topics_[at(k, j)] = b[k];
            floors_[static_cast<std::size_t>(j)] = problem.column_floors ? problem.column_floors[first + j] : T(0);
        }
        std::fill(floors_.begin() + many_, floors_.end(), T(1));  // columns that are not read
    }

    // Writes the sums and, unless `losses` is null, the losses. Sums over 1024 rows are of type T, and the sums of
    // these are float64.
    void operator()(double* numerators, double* denominators, double* losses) {
        ReciprocalLosses<T> found;
        std::fill_n(found.sum, C, 0.0);
        std::fill_n(found.product, C, 1.0);
        std::fill_n(found.least, C, 1.0);
        std::fill_n(found.exponent, C, int64_t{0});
        constexpr int64_t most = 1024;
        for (int64_t begin = 0; begin < problem_.rows; begin += most) {
            std::fill(part_n_.begin(), part_n_.end(), T(0));
            std::fill(part_d_.begin(), part_d_.end(), T(0));
            for (int64_t i = begin; i < std::min(begin + most, problem_.rows); i += kDenseRows)
                function_(rows_from(i), part_n_.data(), part_d_.data(), losses ? &found : nullptr);
            for (std::size_t i = 0; i < size_; ++i) {
                n_[i] += static_cast<double>(part_n_[i]);
                d_[i] += static_cast<double>(part_d_[i]);
            }
        }
        for (int64_t j = 0; j < many_; ++j) {
            double* const n = numerators + (first_ + j) * problem_.width;
            double* const d = denominators + (first_ + j) * problem_.width;
            for (int k = 0; k < problem_.width; ++k) {
                n[k] = k < problem_.topics ? n_[at(k, j)] : 0.0;
                d[k] = k < problem_.topics ? d_[at(k, j)] : 0.0;
            }
            if (losses) losses[first_ + j] = loss(found, j);
        }
    }

  private:
    static constexpr int64_t C = tile_columns<T>;

    static std::size_t at(int k, int64_t j) { return static_cast<std::size_t>(k * C + j); }

    ReciprocalRows<T> rows_from(int64_t i) const {
        ReciprocalRows<T> rows{};
        for (int r = 0; r < kDenseRows; ++r) {
            const int64_t row = std::min(i + r, problem_.rows - 1);
            rows.x[r] = problem_.x + row * problem_.stride + first_;
            rows.a[r] = problem_.A + row * problem_.width;
            rows.weighted[r] = i + r < problem_.rows ? problem_.weighted + row * problem_.width : zeros_.data();
            rows.floor[r] = problem_.row_floors ? problem_.row_floors[row] : T(0);
        }
        rows.ahead = i + 2 * kDenseRows <= problem_.rows ? kDenseRows * problem_.stride : 0;
        rows.floors = floors_.data();
        rows.topics = topics_.data();
        rows.topics_count = problem_.topics;
        rows.present = static_cast<int>(std::min<int64_t>(kDenseRows, problem_.rows - i));
        return rows;
    }

    double loss(const ReciprocalLosses<T>& found, int64_t j) const {
        if (!(found.least[j] >= std::numeric_limits<double>::min()))  // a ratio is zero, or too small for a product
            return std::numeric_limits<double>::infinity();
        constexpr double log_2 = 0.69314718055994530942;
        const double logs = std::log(found.product[j]) + log_2 * static_cast<double>(found.exponent[j]);
        // the rows after the last one add ones
        const int64_t ratios = (problem_.rows + kDenseRows - 1) / kDenseRows * kDenseRows;
        return found.sum[j] - static_cast<double>(ratios) - logs;
    }

    decltype(RowTable<T>::reciprocal_sums) function_;
    const DenseProblem<T>& problem_;
    int64_t first_, many_;
    std::size_t size_;
    std::vector<T> zeros_, topics_, floors_, part_n_, part_d_;
    std::vector<double> n_, d_;
};

// numerators and denominators: columns x width, float64. losses: of the columns, or null.
template <class T>
void reciprocal_sums(const DenseProblem<T>& problem, double* numerators, double* denominators, double* losses,
                     int n_threads, Isa isa) {
    constexpr int64_t C = tile_columns<T>;
    for_each_piece((problem.columns + C - 1) / C, n_threads, [&](int, int64_t tile) {
        ReciprocalTile<T>(problem, tile * C, isa)(numerators, denominators, losses);
    });
}

// out = factor * numerators / denominators, or factor * sqrt(numerators / denominators), the multiplicative update. An
// entry whose denominator is zero, and one that is negligible, becomes zero.
template <class T>
void multiplied(const T* factor, const double* numerators, const double* denominators, bool root, int64_t n, T* out,
                int n_threads, Isa isa) {
    const auto function = row_table<T>(isa, 16).multiplied;
    constexpr int64_t step = 1 << 13;
    for_each_piece((n + step - 1) / step, n_threads, [&](int, int64_t piece) {
        const int64_t begin = piece * step;
        function(factor + begin, numerators + begin, denominators + begin, root, std::min(step, n - begin),
                 out + begin);
    });
}

}  // namespace polyseme
