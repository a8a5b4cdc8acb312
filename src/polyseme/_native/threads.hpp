// Threads that process numbered pieces of work.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include "denormals.hpp"

namespace polyseme {

// Makes a loop that polls a variable use less of the core.
inline void pause_briefly() {
#if defined(__SSE2__) || defined(_M_X64)
    _mm_pause();
#endif
}

// Number of threads that this module has started, for tests, which must not depend on timing.
inline std::atomic<int64_t>& threads_started() {
    static std::atomic<int64_t> count{0};
    return count;
}

// Number of threads for this amount of work, at most n_threads. Starting a thread takes about 15 microseconds, and a
// thread computes a million multiply-adds in 50 to 100. The number depends only on the sizes, and results do not depend
// on it.
inline int threads_for(int n_threads, double multiply_adds) {
    constexpr double least_work = 1 << 20;
    const double worthwhile = multiply_adds / least_work;
    if (!(worthwhile >= 2)) return 1;
    return std::max(1, worthwhile < n_threads ? static_cast<int>(worthwhile) : n_threads);
}

// Pieces of work that several threads take in order, with the number of unfinished ones.
class SharedPieces {
  public:
    explicit SharedPieces(int64_t pieces) : pieces_(pieces), unfinished_(pieces) {}

    // Calls body(worker, piece) until no piece is left to take. After an exception, pieces are taken without a call.
    template <class Body>
    void work(int worker, Body& body) {
        const DenormalsOff denormals_off;
        for (int64_t piece = next_++; piece < pieces_; piece = next_++) {
            try {
                if (!failed_) body(worker, piece);
            } catch (...) {
                const std::lock_guard<std::mutex> hold(lock_);
                if (!failure_) failure_ = std::current_exception();
                failed_ = true;
            }
            if (--unfinished_ == 0) {
                const std::lock_guard<std::mutex> hold(lock_);
                finished_.notify_all();
            }
        }
    }

    // Returns when every piece is finished. The first exception is thrown again.
    void wait() {
        constexpr int looks = 2000;  // about 20 microseconds, less than waking a thread takes
        for (int i = 0; i < looks && unfinished_ > 0; ++i) pause_briefly();
        std::unique_lock<std::mutex> hold(lock_);
        finished_.wait(hold, [this] { return unfinished_ == 0; });
        const std::exception_ptr failure = std::move(failure_);  // a late thread must not own the caught exception
        failure_ = nullptr;
        hold.unlock();
        if (failure) std::rethrow_exception(failure);
    }

  private:
    const int64_t pieces_;
    std::atomic<int64_t> next_{0}, unfinished_;
    std::atomic<bool> failed_{false};
    std::mutex lock_;
    std::condition_variable finished_;
    std::exception_ptr failure_;
};

// Number of threads that have been started and do not run yet. A forked child has none of them.
inline std::atomic<int>& threads_late() {
    static std::atomic<int> count{0};
#if defined(__unix__) || defined(__APPLE__)
    [[maybe_unused]] static const int handler = pthread_atfork(nullptr, nullptr, [] { count = 0; });
#endif
    return count;
}

// Calls body(worker, piece) for piece = 0 .. pieces - 1 on up to n_threads threads; the caller is one of them. If the
// system refuses to start a thread (too many, or no address space for its stack), the others do all the work. The same
// holds for a thread that does not run because other programs use the cores: the caller waits for pieces and not for
// threads, and a thread that runs late finds no piece, does not touch `body`, and ends. The first exception is thrown
// again after all pieces have been taken.
template <class Body>
void for_each_piece(int64_t pieces, int n_threads, Body body) {
    const int workers = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(n_threads, pieces)));
    if (workers == 1) {
        const DenormalsOff denormals_off;
        for (int64_t piece = 0; piece < pieces; ++piece) body(0, piece);
        return;
    }
    constexpr int most_late = 64;
    const auto shared = std::make_shared<SharedPieces>(pieces);
    Body* const called = &body;
    try {
        for (int worker = 1; worker < workers && threads_late() < most_late; ++worker) {
            std::thread([shared, called, worker] {
                --threads_late();
                shared->work(worker, *called);
            }).detach();
            ++threads_late();
            ++threads_started();
        }
    } catch (const std::system_error&) {  // the system refused a thread
    } catch (const std::bad_alloc&) {     // no memory for std::thread
    }
    shared->work(0, body);
    shared->wait();
}

// Divides rows into pieces with about the same number of non-zeros. The boundaries depend only on indptr and pieces.
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
