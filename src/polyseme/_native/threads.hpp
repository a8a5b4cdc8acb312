// A few threads that take numbered pieces of work.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "denormals.hpp"

namespace polyseme {

// body(worker, piece) for piece = 0 .. pieces - 1, on up to n_threads threads (the caller is one of them).
// Pieces are handed out in order. The first exception is thrown again here, after all threads have ended.
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
    others.reserve(static_cast<std::size_t>(workers - 1));
    for (int worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
    work(0);
    for (auto& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Cuts rows into pieces of about equally many non-zeros: boundaries depend on indptr and pieces alone.
template <class Index>
std::vector<int64_t> cut_rows(const Index* indptr, int64_t rows, int64_t pieces) {
    std::vector<int64_t> cut(static_cast<std::size_t>(pieces + 1), rows);
    cut[0] = 0;
    const double total = static_cast<double>(indptr[rows] - indptr[0]);
    for (int64_t piece = 1; piece < pieces; ++piece) {
        const auto target = static_cast<Index>(indptr[0] + total * static_cast<double>(piece) / static_cast<double>(pieces));
        const int64_t row = std::lower_bound(indptr, indptr + rows + 1, target) - indptr;
        cut[static_cast<std::size_t>(piece)] = std::max(cut[static_cast<std::size_t>(piece - 1)], std::min(row, rows));
    }
    return cut;
}

}  // namespace polyseme
