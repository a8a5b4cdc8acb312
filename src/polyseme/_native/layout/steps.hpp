// Steps of t-SNE on a graph with weights, and the spreading of points that are too close to be seen apart.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../threads.hpp"
#include "neighbors.hpp"
#include "repulsion.hpp"

namespace polyseme {

struct Graph {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weights;
};

struct StepSettings {
    float exaggeration, momentum;
    int64_t steps;
};

constexpr float kFastest = 5;  // velocity per coordinate

inline float limit(float value, float largest) { return std::max(-largest, std::min(largest, value)); }

// Makes steps v <- momentum v + e sum_j W_ij q_ij (y_j - y_i) + (n / Z) sum_j q_ij^2 (y_i - y_j), y <- y + v.
inline void advance(const Graph& graph, int64_t n, const StepSettings& settings, Point* points, Point* velocities,
                    int n_threads) {
    Repulsion repulsion(n, n_threads);
    std::vector<Point> forces(static_cast<std::size_t>(n)), moved(static_cast<std::size_t>(n));
    const int64_t pieces = (n + kPointsPerPiece - 1) / kPointsPerPiece;
    const int workers = threads_for(n_threads, 8.0 * static_cast<double>(graph.indptr[n] + n));
    for (int64_t step = 0; step < settings.steps; ++step) {
        const double pairs = repulsion.compute(points, forces.data());
        // The sum over pairs of far points can be lost in the error of the grid, which is about 1% of n.
        const auto scale = static_cast<float>(static_cast<double>(n) / std::max(pairs, 1e-3 * static_cast<double>(n)));
        for_each_piece(pieces, workers, [&](int, int64_t piece) {
            for (int64_t i = piece * kPointsPerPiece; i < std::min(n, (piece + 1) * kPointsPerPiece); ++i) {
                float x = 0, y = 0;
                for (int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
                    const Point& other = points[graph.indices[e]];
                    const float dx = other.x - points[i].x, dy = other.y - points[i].y;
                    const float pull = graph.weights[e] / (1 + (dx * dx + dy * dy));
                    x += pull * dx;
                    y += pull * dy;
                }
                Point& v = velocities[i];
                v.x = limit(settings.momentum * v.x + settings.exaggeration * x + scale * forces[i].x, kFastest);
                v.y = limit(settings.momentum * v.y + settings.exaggeration * y + scale * forces[i].y, kFastest);
                moved[i] = {limit(points[i].x + v.x, kLargest), limit(points[i].y + v.y, kLargest)};
            }
        });
        std::copy(moved.begin(), moved.end(), points);
    }
}

// Direction from point j to point i if they have the same place.
inline Point any_direction(int64_t i, int64_t j) {
    const uint32_t hash = hash_pair(i, j);
    const float x = static_cast<float>(hash & 0xffff) - 32767.5f, y = static_cast<float>(hash >> 16) - 32767.5f;
    const float length = std::sqrt(x * x + y * y) * (i < j ? 1.0f : -1.0f);
    return {x / length, y / length};
}

// Moves points first .. n - 1 until they are about `distance` from each other; the others do not move. All points of a
// pass move at once: each by half of what is missing to points that move, by all of it from points that do not.
inline void spread(Point* points, int64_t n, int64_t first, float distance, int64_t passes, int n_threads) {
    constexpr int64_t most_per_cell = 64;  // points of a cell that push another; more only lie in heaps
    std::vector<Point> moved(points, points + n);
    std::vector<int64_t> starts;
    std::vector<int32_t> order(static_cast<std::size_t>(n)), cells(static_cast<std::size_t>(n));
    const int64_t pieces = (n - first + kPointsPerPiece - 1) / kPointsPerPiece;
    const int workers = threads_for(n_threads, 64.0 * static_cast<double>(n - first));
    for (int64_t pass = 0; pass < passes; ++pass) {
        Point low = points[0], high = points[0];
        for (int64_t i = 1; i < n; ++i) {
            low = {std::min(low.x, points[i].x), std::min(low.y, points[i].y)};
            high = {std::max(high.x, points[i].x), std::max(high.y, points[i].y)};
        }
        // At most about 16 n cells, however far apart the points are.
        const float extent = std::max(high.x - low.x, high.y - low.y);
        const float cell = std::max(distance, extent / (4 * std::sqrt(static_cast<float>(n)) + 1));
        const int64_t nx = static_cast<int64_t>((high.x - low.x) / cell) + 1;
        const int64_t ny = static_cast<int64_t>((high.y - low.y) / cell) + 1;
        const auto column = [&](int64_t i) { return static_cast<int64_t>((points[i].x - low.x) / cell); };
        const auto line = [&](int64_t i) { return static_cast<int64_t>((points[i].y - low.y) / cell); };
        starts.assign(static_cast<std::size_t>(nx * ny + 1), 0);
        for (int64_t i = 0; i < n; ++i) {
            cells[static_cast<std::size_t>(i)] = static_cast<int32_t>(line(i) * nx + column(i));
            ++starts[static_cast<std::size_t>(cells[static_cast<std::size_t>(i)] + 1)];
        }
        for (std::size_t c = 1; c < starts.size(); ++c) starts[c] += starts[c - 1];
        for (int64_t i = n; i-- > 0;)  // backwards, so that the points of a cell are in the order of their numbers
            order[static_cast<std::size_t>(
                --starts[static_cast<std::size_t>(cells[static_cast<std::size_t>(i)]) + 1])] = static_cast<int32_t>(i);
        // starts[c + 1] is now the first place of cell c, and starts[c + 2] its end.
        for_each_piece(pieces, workers, [&](int, int64_t piece) {
            const int64_t begin = first + piece * kPointsPerPiece;
            for (int64_t i = begin; i < std::min(n, begin + kPointsPerPiece); ++i) {
                float x = 0, y = 0;
                for (int64_t b = std::max<int64_t>(0, line(i) - 1); b <= std::min(ny - 1, line(i) + 1); ++b)
                    for (int64_t a = std::max<int64_t>(0, column(i) - 1); a <= std::min(nx - 1, column(i) + 1); ++a) {
                        const auto c = static_cast<std::size_t>(b * nx + a + 1);
                        const int64_t start = starts[c], size = (c + 1 < starts.size() ? starts[c + 1] : n) - start;
                        const int64_t skipped = size > most_per_cell ? i % size : 0;
                        for (int64_t k = 0; k < std::min(size, most_per_cell); ++k) {
                            const int64_t j = order[static_cast<std::size_t>(start + (skipped + k) % size)];
                            const float dx = points[i].x - points[j].x, dy = points[i].y - points[j].y;
                            const float squared = dx * dx + dy * dy;
                            if (j == i || squared >= distance * distance) continue;
                            const float apart = std::sqrt(squared);
                            const float push = (distance - apart) * (j < first ? 1.0f : 0.5f);
                            const Point way =
                                apart > 1e-6f * distance ? Point{dx / apart, dy / apart} : any_direction(i, j);
                            x += push * way.x;
                            y += push * way.y;
                        }
                    }
                const float length = std::sqrt(x * x + y * y), most = 0.5f * distance;
                const float factor = length > most ? most / length : 1.0f;
                moved[static_cast<std::size_t>(i)] = {points[i].x + factor * x, points[i].y + factor * y};
            }
        });
        std::copy(moved.begin() + first, moved.end(), points + first);
    }
}

}  // namespace polyseme
