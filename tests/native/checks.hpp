// Counts checks and failures, and prints the first failures.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

inline int failures = 0;
inline long checks = 0;
inline std::string where;

inline void check(bool holds, const char* what) {
    ++checks;
    if (holds) return;
    ++failures;
    if (failures <= 50) std::printf("FAILED %s: %s\n", where.c_str(), what);
}

template <class One, class Other>
void check_close(const std::vector<One>& actual, const std::vector<Other>& expected, double tolerance,
                 const char* what) {
    bool all = actual.size() == expected.size();
    for (std::size_t i = 0; all && i < actual.size(); ++i) {
        const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
        all = std::fabs(a - e) <= tolerance * (1 + std::fabs(e));
    }
    check(all, what);
}

template <class T>
void check_same_bits(const std::vector<T>& one, const std::vector<T>& other, const char* what) {
    check(one.size() == other.size() &&
              (one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0),
          what);
}

template <class T>
constexpr double tolerance() {
    return sizeof(T) == 4 ? 2e-5 : 1e-12;
}

inline std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
