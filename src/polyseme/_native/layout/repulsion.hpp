// Repulsion of t-SNE: Phi(y) = sum_j q(|y - y_j|), q(d) = 1 / (1 + d^2), and -1/2 of its gradient, sum_j q^2 (y - y_j).
//
// q is a sum of Gaussians whose variances grow by factors of four. Points are deposited on a grid with quadratic
// B-splines (variance 1/4 of a cell). Level l of a pyramid is reached by l steps with [1 3 3 1] / 4 (variance 3/4 of a
// cell each), is blurred with [1 4 6 4 1] / 16 (variance 1), and is added to the finer level by linear interpolation
// (again 3/4); the potential is read with B-splines. So level l is almost a Gaussian with variance 3/2 4^l cells, and
// kAmplitudes, found by non-negative least squares, approximate q by these kernels for cells of length kCell. Deposits
// are integers and each cell is computed by one thread, so the sums do not depend on the number of threads.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../threads.hpp"

namespace polyseme {

constexpr float kCell = 0.4f;
constexpr std::array<float, 8> kAmplitudes = {0.4104f, 0.4338f, 0.1577f, 0.0439f, 0.0112f, 0.0029f, 0.0006f, 0.0003f};
constexpr float kThreePi = 9.42477796f;  // 3 pi: a Gaussian of variance 3/2 cells has the height 1 / (3 pi)
constexpr float kLargest = 400;          // coordinates are limited to -kLargest .. kLargest
constexpr int64_t kFewPoints = 256;      // up to this many, sums over all pairs are computed instead
constexpr int64_t kPointsPerPiece = 1024;
constexpr int kDepositGrids = 4;  // at most this many threads deposit points, each on its own grid

struct Point {
    float x, y;
};

// Cells -kPad .. size + kPad - 1 of each axis exist. Masses are in cells -1 .. size, and are 0 beyond.
struct GridLevel {
    static constexpr int64_t kPad = 4;
    int64_t nx = 0, ny = 0;
    std::vector<float> mass, field;

    void resize(int64_t new_nx, int64_t new_ny) {
        nx = new_nx;
        ny = new_ny;
        mass.assign(static_cast<std::size_t>(stride() * (ny + 2 * kPad)), 0.0f);
        field.assign(mass.size(), 0.0f);
    }
    int64_t stride() const { return nx + 2 * kPad; }
    int64_t place(int64_t x, int64_t y) const { return (y + kPad) * stride() + x + kPad; }
    const float* mass_row(int64_t y) const { return mass.data() + place(0, y); }
    float* mass_row(int64_t y) { return mass.data() + place(0, y); }
    const float* field_row(int64_t y) const { return field.data() + place(0, y); }
    float* field_row(int64_t y) { return field.data() + place(0, y); }
};

// Weights of the three cells around a point, and their derivatives; `cell` is the middle one.
struct Spline {
    int64_t cell;
    float weight[3], slope[3];

    explicit Spline(float place) : cell(static_cast<int64_t>(place)) {
        const float t = place - static_cast<float>(cell) - 0.5f, left = 0.5f - t, right = 0.5f + t;
        weight[0] = 0.5f * left * left;
        weight[1] = 0.75f - t * t;
        weight[2] = 0.5f * right * right;
        slope[0] = -left;
        slope[1] = -2 * t;
        slope[2] = right;
    }
};

class Repulsion {
  public:
    Repulsion(int64_t n, int n_threads) : n_(n), n_threads_(n_threads) {
        while (static_cast<int64_t>(unit_) * n > int64_t{1} << 32) unit_ /= 2;
    }

    // Writes sum_j q^2 (y_i - y_j) of each point, and returns the sum of q over all pairs i != j.
    double compute(const Point* points, Point* forces, float* potentials = nullptr) {
        const int64_t pieces = (n_ + kPointsPerPiece - 1) / kPointsPerPiece;
        std::vector<double> sums(static_cast<std::size_t>(pieces));
        const bool all_pairs = n_ <= kFewPoints;
        if (!all_pairs) deposit(points, pieces);
        const double work = static_cast<double>(n_) * (all_pairs ? 8.0 * static_cast<double>(n_) : 64.0);
        for_each_piece(pieces, threads_for(n_threads_, work), [&](int, int64_t piece) {
            double sum = 0;
            for (int64_t i = piece * kPointsPerPiece; i < std::min(n_, (piece + 1) * kPointsPerPiece); ++i) {
                const float others = all_pairs ? sum_pairs(points, i, forces[i]) : read(points[i], forces[i]) - 1;
                if (potentials != nullptr) potentials[i] = others;
                sum += double{others};
            }
            sums[static_cast<std::size_t>(piece)] = sum;
        });
        double total = 0;
        for (const double sum : sums) total += sum;
        return total;
    }

  private:
    float sum_pairs(const Point* points, int64_t i, Point& force) const {
        float sum = 0, x = 0, y = 0;
        for (int64_t j = 0; j < n_; ++j) {
            const float dx = points[i].x - points[j].x, dy = points[i].y - points[j].y;
            const float q = 1 / (1 + (dx * dx + dy * dy));
            sum += q;
            x += q * q * dx;
            y += q * q * dy;
        }
        force = {x, y};
        return sum - 1;
    }

    void deposit(const Point* points, int64_t pieces) {
        Point low = points[0], high = points[0];
        for (int64_t i = 1; i < n_; ++i) {
            low = {std::min(low.x, points[i].x), std::min(low.y, points[i].y)};
            high = {std::max(high.x, points[i].x), std::max(high.y, points[i].y)};
        }
        constexpr float margin = 2;  // cells
        corner_ = {low.x / kCell - margin, low.y / kCell - margin};
        int64_t nx = static_cast<int64_t>(high.x / kCell - corner_.x + margin) + 1;
        int64_t ny = static_cast<int64_t>(high.y / kCell - corner_.y + margin) + 1;
        for (GridLevel& level : levels_) {
            level.resize(nx, ny);
            nx = (nx + 1) / 2;
            ny = (ny + 1) / 2;
        }
        GridLevel& finest = levels_[0];
        const int workers = std::min(kDepositGrids, threads_for(n_threads_, 32.0 * static_cast<double>(n_)));
        grids_.resize(static_cast<std::size_t>(workers));
        for (auto& grid : grids_) grid.assign(static_cast<std::size_t>(finest.nx * finest.ny), 0u);
        for_each_piece(pieces, workers, [&](int worker, int64_t piece) {
            uint32_t* const grid = grids_[static_cast<std::size_t>(worker)].data();
            for (int64_t i = piece * kPointsPerPiece; i < std::min(n_, (piece + 1) * kPointsPerPiece); ++i) {
                const Spline sx(points[i].x / kCell - corner_.x), sy(points[i].y / kCell - corner_.y);
                for (int64_t b = 0; b < 3; ++b)
                    for (int64_t a = 0; a < 3; ++a)
                        grid[(sy.cell + b - 1) * finest.nx + sx.cell + a - 1] += static_cast<uint32_t>(
                            static_cast<int32_t>(sx.weight[a] * sy.weight[b] * static_cast<float>(unit_) + 0.5f));
            }
        });
        by_rows(finest, 0, finest.ny, [&](int64_t y, std::vector<float>&) {
            float* const out = finest.mass_row(y);
            for (int64_t x = 0; x < finest.nx; ++x) {
                uint32_t sum = 0;
                for (const auto& grid : grids_) sum += grid[static_cast<std::size_t>(y * finest.nx + x)];
                out[x] = static_cast<float>(sum) / static_cast<float>(unit_);
            }
        });
        for (std::size_t l = 1; l < levels_.size(); ++l) shrink(levels_[l - 1], levels_[l]);
        for (std::size_t l = levels_.size(); l-- > 0;)
            make_field(levels_[l], kAmplitudes[l], l + 1 < levels_.size() ? &levels_[l + 1] : nullptr);
    }

    // Calls body(y, buffer) for rows first .. last - 1 of a level.
    template <class Body>
    void by_rows(const GridLevel& level, int64_t first, int64_t last, Body body) {
        constexpr int64_t rows = 16;
        const int64_t pieces = (last - first + rows - 1) / rows;
        const double work = 16.0 * static_cast<double>(level.nx * level.ny);
        for_each_piece(pieces, threads_for(n_threads_, work), [&](int, int64_t piece) {
            std::vector<float> buffer(static_cast<std::size_t>(2 * level.stride()));
            for (int64_t y = first + piece * rows; y < std::min(last, first + (piece + 1) * rows); ++y) body(y, buffer);
        });
    }

    void shrink(const GridLevel& fine, GridLevel& coarse) {
        by_rows(fine, -1, coarse.ny + 1, [&](int64_t y, std::vector<float>& buffer) {
            const float *r0 = fine.mass_row(2 * y - 1), *r1 = fine.mass_row(2 * y), *r2 = fine.mass_row(2 * y + 1),
                        *r3 = fine.mass_row(2 * y + 2);
            float* const t = buffer.data() + GridLevel::kPad;
            for (int64_t x = -3; x < fine.nx + 4; ++x) t[x] = (r0[x] + r3[x]) + 3 * (r1[x] + r2[x]);
            float* const out = coarse.mass_row(y);
            for (int64_t x = -1; x <= coarse.nx; ++x)
                out[x] = ((t[2 * x - 1] + t[2 * x + 2]) + 3 * (t[2 * x] + t[2 * x + 1])) * 0.0625f;
        });
    }

    void make_field(GridLevel& level, float amplitude, const GridLevel* coarse) {
        const float scale = amplitude * kThreePi / 256;
        by_rows(level, -1, level.ny + 1, [&](int64_t y, std::vector<float>& buffer) {
            const float *a = level.mass_row(y - 2), *b = level.mass_row(y - 1), *c = level.mass_row(y),
                        *d = level.mass_row(y + 1), *e = level.mass_row(y + 2);
            float* const t = buffer.data() + GridLevel::kPad;
            for (int64_t x = -3; x < level.nx + 3; ++x) t[x] = (a[x] + e[x]) + 4 * (b[x] + d[x]) + 6 * c[x];
            float* const out = level.field_row(y);
            for (int64_t x = -1; x <= level.nx; ++x)
                out[x] = scale * ((t[x - 2] + t[x + 2]) + 4 * (t[x - 1] + t[x + 1]) + 6 * t[x]);
            if (coarse == nullptr) return;
            const int64_t row = (y + 2) / 2 - 1, next = y % 2 == 0 ? row - 1 : row + 1;
            const float *near = coarse->field_row(row), *far = coarse->field_row(next);
            float* const u = t;
            for (int64_t x = -1; x <= coarse->nx; ++x) u[x] = 0.75f * near[x] + 0.25f * far[x];
            out[-1] += 0.75f * u[-1] + 0.25f * u[0];
            for (int64_t x = 0; 2 * x + 1 <= level.nx; ++x) {
                out[2 * x] += 0.75f * u[x] + 0.25f * u[x - 1];
                out[2 * x + 1] += 0.75f * u[x] + 0.25f * u[x + 1];
            }
            if (level.nx % 2 == 0) out[level.nx] += 0.75f * u[level.nx / 2] + 0.25f * u[level.nx / 2 - 1];
        });
    }

    float read(const Point& point, Point& force) const {
        const GridLevel& finest = levels_[0];
        const Spline sx(point.x / kCell - corner_.x), sy(point.y / kCell - corner_.y);
        float potential = 0, gx = 0, gy = 0;
        for (int64_t b = 0; b < 3; ++b) {
            const float* const row = finest.field_row(sy.cell + b - 1) + sx.cell - 1;
            const float along = row[0] * sx.weight[0] + row[1] * sx.weight[1] + row[2] * sx.weight[2];
            potential += along * sy.weight[b];
            gx += (row[0] * sx.slope[0] + row[1] * sx.slope[1] + row[2] * sx.slope[2]) * sy.weight[b];
            gy += along * sy.slope[b];
        }
        force = {gx * (-0.5f / kCell), gy * (-0.5f / kCell)};
        return potential;
    }

    const int64_t n_;
    const int n_threads_;
    uint32_t unit_ = 4096;  // deposit of a point
    Point corner_{};        // in cells
    std::array<GridLevel, kAmplitudes.size()> levels_;
    std::vector<std::vector<uint32_t>> grids_;
};

}  // namespace polyseme
