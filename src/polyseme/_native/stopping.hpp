// When a fit ends (docs/mathematics.md, "Stopping").
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace polyseme {

// Least number of iterations whose gain says something about what is still to be gained: a single iteration may be
// dropped, or gain little before the next one gains more.
constexpr int64_t kWindow = 10;

// Returns an estimate of what an ascent can still gain, from its values at the start and after each iteration: the gain
// of the last quarter of the iterations, but at least of `kWindow` and of `least`. A window of fixed length would be too
// short for the tail of EM, where the distance to the limit falls as a power of the number of iterations.
inline double remaining_gain(const double* values, int64_t size, int64_t least = 0) {
    const int64_t iterations = size - 1, window = std::max({kWindow, least, iterations / 4});
    if (iterations < window) return std::numeric_limits<double>::infinity();
    return std::max(values[size - 1] - values[size - 1 - window], 0.0);
}

}  // namespace polyseme
