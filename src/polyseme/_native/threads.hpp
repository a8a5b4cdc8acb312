// Threads that process numbered pieces of work.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "denormals.hpp"

namespace polyseme {

// Number of threads that this module has started, for tests, which must not depend on timing.
inline std::atomic<int64_t>& threads_started() {
    static std::atomic<int64_t> count{0};
    return count;
}

// Number of threads for this amount of work, at most n_threads. Starting a thread takes about 15 microseconds, and a
// thread computes a million multiply-adds in 50 to 100. The number depends on the sizes only, and results do not depend
// on it.
inline int threads_for(int n_threads, double multiply_adds) {
    constexpr double least_work = 1 << 20;
    const double worthwhile = multiply_adds / least_work;
    if (!(worthwhile >= 2)) return 1;
    return std::max(1, worthwhile < n_threads ? static_cast<int>(worthwhile) : n_threads);
}

// Calls body(worker, piece) for piece = 0 .. pieces - 1 on up to n_threads threads; the caller is one of them. Threads
// take pieces in order. If the system refuses to start a thread (too many, or no address space for its stack), the
// others do all the work. The first exception is thrown again after all threads have ended.
template <class Body>
void for_each_piece(int64_t pieces, int n_threads, Body body) {
    const int workers = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(n_threads, pieces)));
    std::atomic<int64_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto work = [&](int worker) {
        const DenormalsOff denormals_off;
        try {
            for (int64_t piece = next++; piece < pieces; piece = next++) body(worker, piece);
        } catch (...) {
            const std::lock_guard<std::mutex> hold(failure_lock);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        others.reserve(static_cast<std::size_t>(workers - 1));
        for (int worker = 1; worker < workers; ++worker) {
            others.emplace_back(work, worker);
            ++threads_started();
        }
    } catch (const std::system_error&) {  // the system refused a thread
    } catch (const std::bad_alloc&) {     // no memory for std::thread
    }
    work(0);
    for (auto& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Divides rows into pieces with about the same number of non-zeros. The boundaries depend on indptr and pieces only.
template <class Index>
std::vector<int64_t> cut_rows(const Index* indptr, int64_t rows, int64_t pieces) {
    std::vector<int64_t> cut(static_cast<std::size_t>(pieces + 1), rows);
    cut[0] = 0;
    const double total = static_cast<double>(indptr[rows] - indptr[0]);
    for (int64_t piece = 1; piece < pieces; ++piece) {
        const auto target =
            static_cast<Index>(indptr[0] + total * static_cast<double>(piece) / static_cast<double>(pieces));
        const int64_t row = std::lower_bound(indptr, indptr + rows + 1, target) - indptr;
        cut[static_cast<std::size_t>(piece)] = std::max(cut[static_cast<std::size_t>(piece - 1)], std::min(row, rows));
    }
    return cut;
}

}  // namespace polyseme
