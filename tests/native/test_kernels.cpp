// The kernels compared with plain loops in double. `make native-sanitize` builds this file with the sanitizers. Returns
// 1 on failure. Buffers have exactly the size that the kernels may access, so that the address sanitizer detects any
// overrun.
#include <memory>
#include <stdexcept>

#if defined(__linux__)
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "coordinate.hpp"
#include "foldin.hpp"
#include "mstep.hpp"
#include "problem.hpp"
#include "products.hpp"
#include "row_table.hpp"
#include "sweep.hpp"
#include "threads.hpp"

using namespace polyseme;

void test_losses();       // test_losses.cpp
void test_variational();  // test_variational.cpp

namespace {

// Sums of a sweep, computed by loops.
struct Naive {
    std::vector<double> row_sums, word_sums, q, logs;
};

template <class Index, class T>
Naive naive_sweep(const Problem<Index, T>& p, bool weighted) {
    Naive sums{std::vector<double>(at(p.rows * p.width)),
               std::vector<double>(at(p.words * p.width)),
               {},
               std::vector<double>(at(p.rows))};
    for (int64_t d = 0; d < p.rows; ++d)
        for (Index j = p.indptr[at(d)]; j < p.indptr[at(d + 1)]; ++j) {
            const int64_t w = p.indices[at(j)];
            const double x = static_cast<double>(p.values[at(j)]), q = p.dot(p.A.data() + d * p.width, w), r = x / q;
            const double weight = weighted ? p.weights[at(d)] : 1;
            sums.q.push_back(q);
            sums.logs[at(d)] += x * std::log(q);
            for (int k = 0; k < p.width; ++k) {
                sums.row_sums[at(d * p.width + k)] += r * static_cast<double>(p.B[at(w * p.width + k)]);
                sums.word_sums[at(w * p.width + k)] += weight * r * static_cast<double>(p.A[at(d * p.width + k)]);
            }
        }
    return sums;
}

template <class T>
struct Swept {
    std::vector<T> row_sums;
    std::vector<double> logs, word_sums, weighted_word_sums;
};

template <class Index, class T>
Swept<T> swept(const Problem<Index, T>& p, int n_threads, Isa isa) {
    Swept<T> s{std::vector<T>(at(p.rows * p.width), T(7)), std::vector<double>(at(p.rows), 7),
               std::vector<double>(at(p.words * p.width), 7), std::vector<double>(at(p.words * p.width), 7)};
    sweep_rows(p.counts(), p.A.data(), p.B.data(), p.width, s.row_sums.data(), s.logs.data(), n_threads, isa);
    sweep_words(p.by_word(), p.A.data(), p.B.data(), p.width, s.word_sums.data(), n_threads, isa);
    sweep_words(p.weighted_by_word(), p.A.data(), p.B.data(), p.width, s.weighted_word_sums.data(), n_threads, isa);
    return s;
}

template <class Index, class T>
void test_sweep(const Problem<Index, T>& p, Isa isa) {
    const Swept<T> one = swept(p, 1, isa), four = swept(p, 4, isa);
    const Naive naive = naive_sweep(p, false);
    check_close(one.row_sums, naive.row_sums, tolerance<T>(), "row sums");
    check_close(one.logs, naive.logs, tolerance<T>(), "logs");
    check_close(one.word_sums, naive.word_sums, tolerance<T>(), "word sums");
    check_close(one.weighted_word_sums, naive_sweep(p, true).word_sums, tolerance<T>(), "weighted word sums");
    check_same_bits(one.row_sums, four.row_sums, "row sums of 1 and 4 threads");
    check_same_bits(one.logs, four.logs, "logs of 1 and 4 threads");
    check_same_bits(one.word_sums, four.word_sums, "word sums of 1 and 4 threads");
    check_same_bits(one.weighted_word_sums, four.weighted_word_sums, "weighted word sums of 1 and 4 threads");

    // single sums
    std::vector<T> row_sums(at(p.rows * p.width));
    std::vector<double> logs(at(p.rows));
    T* const no_numbers = nullptr;
    double* const no_logs = nullptr;
    sweep_rows(p.counts(), p.A.data(), p.B.data(), p.width, row_sums.data(), no_logs, 4, isa);
    sweep_rows(p.counts(), p.A.data(), p.B.data(), p.width, no_numbers, logs.data(), 4, isa);
    sweep_rows(p.counts(), p.A.data(), p.B.data(), p.width, no_numbers, no_logs, 4, isa);
    check_same_bits(row_sums, one.row_sums, "row sums alone");
    check_same_bits(logs, one.logs, "logs alone");
}

template <class Index, class T>
void test_products(const Problem<Index, T>& p, Isa isa) {
    std::vector<T> one(p.values.size()), four(p.values.size());
    products(p.counts(), p.A.data(), p.B.data(), p.width, one.data(), 1, isa);
    products(p.counts(), p.A.data(), p.B.data(), p.width, four.data(), 4, isa);
    check_close(one, naive_sweep(p, false).q, tolerance<T>(), "products");
    check_same_bits(one, four, "products of 1 and 4 threads");
}

template <class Index, class T>
void test_m_steps(const Problem<Index, T>& p, Isa isa) {
    const Swept<T> sums = swept(p, 1, isa);
    std::vector<T> theta = sums.row_sums, theta4 = sums.row_sums, phi(p.B.size()), phi4(p.B.size());
    std::vector<double> gains(at(p.rows)), gains4(at(p.rows)), word_gains(at(p.words)), word_gains4(at(p.words));
    finish_rows(p.A.data(), theta.data(), p.totals.data(), p.rows, p.width, gains.data(), 1);
    finish_rows(p.A.data(), theta4.data(), p.totals.data(), p.rows, p.width, gains4.data(), 4);
    finish_words(p.B.data(), sums.word_sums.data(), p.mass.data(), p.word_totals.data(), p.words, p.width, phi.data(),
                 word_gains.data(), 1);
    finish_words(p.B.data(), sums.word_sums.data(), p.mass.data(), p.word_totals.data(), p.words, p.width, phi4.data(),
                 word_gains4.data(), 4);
    check_same_bits(theta, theta4, "theta of 1 and 4 threads");
    check_same_bits(gains, gains4, "gains of 1 and 4 threads");
    check_same_bits(phi, phi4, "phi of 1 and 4 threads");
    check_same_bits(word_gains, word_gains4, "word gains of 1 and 4 threads");

    const Naive naive = naive_sweep(p, false);
    std::vector<double> expected_theta(p.A.size()), expected_phi(p.B.size()), expected_gains(at(p.rows)),
        expected_word_gains(at(p.words));
    for (int64_t d = 0; d < p.rows; ++d) {
        double total = 0, largest = 0;
        for (int k = 0; k < p.width; ++k) {
            const std::size_t i = at(d * p.width + k);
            total += expected_theta[i] = naive.row_sums[i] * static_cast<double>(p.A[i]);
            largest = std::max(largest, naive.row_sums[i]);
        }
        for (int k = 0; k < p.width && total > 0; ++k) expected_theta[at(d * p.width + k)] /= total;
        if (total > 0) expected_gains[at(d)] = p.totals[at(d)] * std::log(largest / p.totals[at(d)]);
    }
    for (int k = 0; k < p.width; ++k) {
        double total = 0;
        for (int64_t w = 0; w < p.words; ++w) {
            const std::size_t i = at(w * p.width + k);
            total += expected_phi[i] = naive.word_sums[i] * static_cast<double>(p.B[i]);
        }
        for (int64_t w = 0; w < p.words && total > 0; ++w) expected_phi[at(w * p.width + k)] /= total;
    }
    for (int64_t w = 0; w < p.words; ++w) {
        double steepest = 0;
        for (int k = 0; k < p.topics; ++k)
            if (p.mass[at(k)] > 0) steepest = std::max(steepest, naive.word_sums[at(w * p.width + k)] / p.mass[at(k)]);
        if (p.word_totals[at(w)] > 0) expected_word_gains[at(w)] = p.word_totals[at(w)] * std::log(steepest);
    }
    check_close(theta, expected_theta, tolerance<T>(), "M-step of the rows");
    check_close(phi, expected_phi, tolerance<T>(), "M-step of the words");
    check_close(gains, expected_gains, 100 * tolerance<T>(), "gains of the rows");
    check_close(word_gains, expected_word_gains, 100 * tolerance<T>(), "gains of the words");
}

// Duality gap of a row at theta (not normalized), by loops: n log max_k g_k / u_k - n + sum_k u_k theta_k.
template <class Index, class T>
double naive_gap(const Problem<Index, T>& p, int64_t d, const T* theta) {
    std::vector<double> g(at(p.topics), 0);
    for (Index j = p.indptr[at(d)]; j < p.indptr[at(d + 1)]; ++j) {
        const int64_t w = p.indices[at(j)];
        const double r = static_cast<double>(p.values[at(j)]) / p.dot(theta, w);
        for (int k = 0; k < p.topics; ++k) g[at(k)] += r * static_cast<double>(p.B[at(w * p.width + k)]);
    }
    double steepest = 0, mass = 0;
    for (int k = 0; k < p.topics; ++k) {
        if (p.u[at(k)] > 0) steepest = std::max(steepest, g[at(k)] / p.u[at(k)]);
        mass += p.u[at(k)] * static_cast<double>(theta[k]);
    }
    return p.totals[at(d)] * std::log(steepest) - p.totals[at(d)] + mass;
}

// Objective of coordinate ascent: sum x log q - sum_k u_k theta_k.
template <class Index, class T>
double naive_objective(const Problem<Index, T>& p, int64_t d, const T* theta, double* log_part) {
    double value = 0;
    for (Index j = p.indptr[at(d)]; j < p.indptr[at(d + 1)]; ++j)
        value += static_cast<double>(p.values[at(j)]) * std::log(p.dot(theta, p.indices[at(j)]));
    *log_part = value;
    for (int k = 0; k < p.topics; ++k) value -= p.u[at(k)] * static_cast<double>(theta[k]);
    return value;
}

template <class Index, class T>
void test_coordinate(const Problem<Index, T>& p, Isa isa) {
    CoordinateSettings settings{};
    settings.topics = p.topics;
    settings.passes = 5;
    settings.enough = 0;
    std::vector<T> theta(at(p.rows * p.width), T(0));
    for (int64_t d = 0; d < p.rows; ++d)
        for (int k = 0; k < p.topics; ++k) theta[at(d * p.width + k)] = static_cast<T>(p.totals[at(d)] / p.topics);
    std::vector<T> theta4 = theta;
    std::vector<double> gains(at(p.rows)), logs(at(p.rows)), gains4(at(p.rows)), logs4(at(p.rows)),
        last(at(p.rows), -1e300);
    bool rises = true, gaps_right = true, logs_right = true;
    for (int sweep = 0; sweep < 60; ++sweep) {
        std::vector<double> gap(at(p.rows), 0);
        for (int64_t d = 0; d < p.rows; ++d)
            if (p.totals[at(d)] > 0) gap[at(d)] = naive_gap(p, d, theta.data() + d * p.width);
        coordinate(p.counts(), p.B.data(), p.width, p.u.data(), settings, theta.data(), theta.data(), gains.data(),
                   logs.data(), 1, isa);
        coordinate(p.counts(), p.B.data(), p.width, p.u.data(), settings, theta4.data(), theta4.data(), gains4.data(),
                   logs4.data(), 4, isa);
        for (int64_t d = 0; d < p.rows; ++d) {
            const double n = p.totals[at(d)];
            double log_part = 0;
            const double value = n > 0 ? naive_objective(p, d, theta.data() + d * p.width, &log_part) : 0;
            rises = rises && value >= last[at(d)] - tolerance<T>() * n;
            gaps_right = gaps_right && std::fabs(gains[at(d)] - gap[at(d)]) <= 100 * tolerance<T>() * n;
            logs_right =
                logs_right && std::fabs(logs[at(d)] - log_part) <= 100 * tolerance<T>() * (n + std::fabs(log_part));
            last[at(d)] = value;
        }
    }
    check(rises, "coordinate ascent never lowers the objective");
    check(gaps_right, "coordinate ascent reports the duality gap before it");
    check(logs_right, "coordinate ascent reports the logs after it");
    check_same_bits(theta, theta4, "coordinate ascent of 1 and 4 threads");
    check_same_bits(gains, gains4, "its gains of 1 and 4 threads");
    check_same_bits(logs, logs4, "its logs of 1 and 4 threads");
    bool optimal = true, empty_rows_are_zero = true, padding_is_zero = true;
    for (int64_t d = 0; d < p.rows; ++d) {
        const T* row = theta.data() + d * p.width;
        if (p.totals[at(d)] > 0) optimal = optimal && naive_gap(p, d, row) <= 1e-5 * p.totals[at(d)];
        for (int k = 0; k < p.width; ++k) {
            if (p.totals[at(d)] == 0) empty_rows_are_zero = empty_rows_are_zero && row[k] == T(0);
            if (k >= p.topics) padding_is_zero = padding_is_zero && row[k] == T(0);
        }
    }
    check(optimal, "coordinate ascent reaches the optimum");
    check(empty_rows_are_zero, "coordinate ascent leaves empty rows at zero");
    check(padding_is_zero, "coordinate ascent leaves the padding at zero");
}

// Bound of the gain of other weights in nats per token, with a background of fixed weight lambda in column `topics`.
template <class Index, class T>
double naive_jensen(const Problem<Index, T>& p, int64_t d, const T* theta, int topics, double lambda) {
    std::vector<T> a(at(p.width), T(0));
    for (int k = 0; k < topics; ++k) a[at(k)] = static_cast<T>((1 - lambda) * static_cast<double>(theta[k]));
    if (lambda > 0) a[at(topics)] = static_cast<T>(lambda);
    std::vector<double> g(at(topics), 0);
    for (Index j = p.indptr[at(d)]; j < p.indptr[at(d + 1)]; ++j) {
        const int64_t w = p.indices[at(j)];
        const double r = (1 - lambda) * static_cast<double>(p.values[at(j)]) / p.dot(a.data(), w);
        for (int k = 0; k < topics; ++k) g[at(k)] += r * static_cast<double>(p.B[at(w * p.width + k)]);
    }
    double largest = 0, sum = 0;
    for (int k = 0; k < topics; ++k) {
        largest = std::max(largest, g[at(k)]);
        sum += static_cast<double>(theta[k]) * g[at(k)];
    }
    return std::log((p.totals[at(d)] - sum + largest) / p.totals[at(d)]);
}

template <class Index, class T>
void test_fold_in(const Problem<Index, T>& p, double background, double temperature, Isa isa) {
    const int topics = background > 0 ? p.topics - 1 : p.topics;
    if (topics < 1) return;
    const double tol = 1e-3;
    const FoldInSettings settings{topics, background, temperature, tol, 20000, background == 0.0 && temperature == 1.0};
    std::vector<T> empty(at(topics)), one(at(p.rows * topics), T(7)), four(at(p.rows * topics), T(7));
    for (int k = 0; k < topics; ++k) empty[at(k)] = static_cast<T>((k + 1.0) / (topics * (topics + 1) / 2.0));
    std::vector<int32_t> steps(at(p.rows)), steps4(at(p.rows));
    fold_in(p.counts(), p.B.data(), p.width, p.u.data(), settings, empty.data(), one.data(), steps.data(), 1, isa);
    fold_in(p.counts(), p.B.data(), p.width, p.u.data(), settings, empty.data(), four.data(), steps4.data(), 4, isa);
    check_same_bits(one, four, "weights folded in by 1 and 4 threads");
    check_same_bits(steps, steps4, "steps of 1 and 4 threads");
    bool proper = true, converged = true, good = true, empties = true;
    for (int64_t d = 0; d < p.rows; ++d) {
        const T* theta = one.data() + d * topics;
        if (p.totals[at(d)] == 0) {
            empties = empties && std::memcmp(theta, empty.data(), at(topics) * sizeof(T)) == 0 && steps[at(d)] == 0;
            continue;
        }
        double sum = 0;
        for (int k = 0; k < topics; ++k) {
            proper = proper && theta[k] >= T(0);
            sum += static_cast<double>(theta[k]);
        }
        proper = proper && std::fabs(sum - 1) < 1e-5;
        converged = converged && steps[at(d)] > 0;
        if (temperature == 1.0) {
            // EM stops one step after the point it evaluated, where the bound differs, but is below twice the
            // tolerance.
            const double allowed = background > 0 ? 2 * tol : tol;
            good = good && naive_jensen(p, d, theta, topics, background) <= allowed + 10 * tolerance<T>();
        }
    }
    check(empties, "empty rows get the given weights");
    check(proper, "weights folded in are distributions");
    check(converged, "folding in converges");
    check(good, "weights folded in are within the tolerance of the optimum");
}

template <class Index, class T>
void test_all(int64_t rows, int64_t words, int topics, const char* types) {
    const Problem<Index, T> p(rows, words, topics, static_cast<unsigned>(topics));
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (isa > best_isa()) continue;
        where = std::string(types) + ", " + std::to_string(rows) + " x " + std::to_string(words) +
                ", K = " + std::to_string(topics) + ", " + isa_name(isa);
        test_sweep(p, isa);
        test_products(p, isa);
        test_m_steps(p, isa);
        test_coordinate(p, isa);
        test_fold_in(p, 0.0, 1.0, isa);
        test_fold_in(p, 0.25, 1.0, isa);
        test_fold_in(p, 0.0, 0.8, isa);
    }
}

template <class Index, class T>
void test_all_sizes(const char* types) {
    for (const int topics : {1, 15, 16, 17, 64, 128, 129, 200}) test_all<Index, T>(20, 45, topics, types);
    test_all<Index, T>(1300, 2, 3, types);  // words with more rows than one block of the pass by word
    test_all<Index, T>(1, 1, 2, types);
}

// Operands larger than the cache: prefetched, and processed in tiles by the pass by word.
template <class Index, class T>
void test_large_operands() {
    where = "large operands";
    const int64_t rows = 6 + kTiledBytes / (208 * static_cast<int64_t>(sizeof(T)));
    const Problem<Index, T> tall(rows, 4, 200, 5), wide(3, rows / 2, 200, 6);
    check(tile_count(tall.by_word(), tall.width) == 2, "two tiles");
    for (const Isa isa : {Isa::baseline, best_isa()}) {
        test_sweep(tall, isa);
        test_sweep(wide, isa);
    }
}

void test_no_nonzeros() {
    where = "no non-zeros";
    const Problem<int32_t, double> p(4, 11, 3, 1);
    const std::vector<int32_t> indptr(5, 0), none;
    const std::vector<double> no_values;
    const Counts<int32_t, double> counts{indptr.data(), none.data(), no_values.data(), 4, 0};
    std::vector<double> row_sums(at(4 * p.width), 7), logs(4, 7);
    sweep_rows(counts, p.A.data(), p.B.data(), p.width, row_sums.data(), logs.data(), 3, best_isa());
    check_same_bits(row_sums, std::vector<double>(at(4 * p.width), 0), "row sums are zero");
    check_same_bits(logs, std::vector<double>(4, 0), "logs are zero");
}

void test_threads() {
    where = "threads";
    std::vector<int> calls(1000, 0);
    for_each_piece(1000, 4, [&](int, int64_t piece) { ++calls[at(piece)]; });
    check_same_bits(calls, std::vector<int>(1000, 1), "every piece is processed once");
    for_each_piece(0, 4, [&](int, int64_t) { check(false, "no pieces, no work"); });
    for (const int n_threads : {1, 4}) {
        bool caught = false;
        try {
            for_each_piece(100, n_threads, [](int, int64_t piece) {
                if (piece == 50) throw std::runtime_error("piece 50");
            });
        } catch (const std::runtime_error& error) {
            caught = std::string(error.what()) == "piece 50";
        }
        check(caught, "an exception in a piece arrives at the caller");
    }
    bool all = true;
    for (int call = 0; call < 300; ++call) {  // many of the threads start after the call, when its memory is free
        const auto numbers = std::make_unique<std::vector<int>>(8, 0);
        for_each_piece(8, 8, [found = numbers.get()](int, int64_t piece) { (*found)[at(piece)] += 1; });
        all = all && *numbers == std::vector<int>(8, 1);
    }
    check(all, "every piece is finished when the call returns");
    const std::vector<int64_t> indptr{0, 0, 5, 5, 6, 100, 100, 101};
    for (const int64_t pieces : {1, 2, 3, 7, 50}) {
        const std::vector<int64_t> cut = cut_rows(indptr.data(), 7, pieces);
        check(static_cast<int64_t>(cut.size()) == pieces + 1 && cut.front() == 0 && cut.back() == 7,
              "cuts cover the rows");
        for (std::size_t i = 1; i < cut.size(); ++i) check(cut[i - 1] <= cut[i], "cuts are in order");
    }
    check(threads_for(8, 0) == 1 && threads_for(8, 2e6) == 1, "one thread for little work");
    check(threads_for(8, 4e6) == 3 && threads_for(2, 4e6) == 2 && threads_for(8, 1e300) == 8, "threads for more work");
    check(threads_for(0, 1e9) == 1 && threads_for(-3, 1e9) == 1 && threads_for(8, std::nan("")) == 1,
          "at least one thread");
    volatile float tiny = 1e-40F;
    for_each_piece(4, 1, [](int, int64_t) {});
    check(tiny * 0.5F > 0, "the denormal mode of the caller is restored");
}

#if defined(__linux__)
// If the system refuses threads (here because their stacks are larger than the address space), the caller does all the
// work. The test runs in a child process, because it changes the default stack size.
void test_refused_threads() {
    where = "refused threads";
    const pid_t child = fork();
    if (child == 0) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, std::size_t{1} << 46);  // more than any machine maps
        pthread_setattr_default_np(&attributes);
        const int64_t before = threads_started();
        std::vector<int> calls(1000, 0);
        for_each_piece(1000, 64, [&](int, int64_t piece) { ++calls[at(piece)]; });
        _exit(calls == std::vector<int>(1000, 1) && threads_started() == before ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the caller does the work of refused threads");
}

// Threads that were started before a fork never run in the child, so they must not count as late there.
void test_late_threads_of_a_parent() {
    where = "late threads of a parent";
    threads_late() = 64;
    const pid_t child = fork();
    if (child == 0) _exit(threads_late() == 0 ? 0 : 1);
    threads_late() = 0;
    int status = 0;
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child counts no late threads");
}
#endif

void test_underflow() {
    where = "underflow";
    Problem<int32_t, float> p(6, 12, 5, 3);
    for (float& a : p.A) a *= 1e-38F;
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (isa > best_isa()) continue;
        const Swept<float> s = swept(p, 2, isa);
        bool finite = true;
        for (const float value : s.row_sums) finite = finite && std::isfinite(value);
        for (const double value : s.word_sums) finite = finite && std::isfinite(value);
        check(finite, "sums are finite where products underflow");
    }
}

}  // namespace

int main() {
#if defined(__linux__)
    test_refused_threads();  // first: a fork copies only one thread, and threads of an earlier call may still end
    test_late_threads_of_a_parent();
#endif
    test_all_sizes<int32_t, float>("float, 32 bits");
    test_all_sizes<int64_t, float>("float, 64 bits");
    test_all_sizes<int32_t, double>("double, 32 bits");
    test_all_sizes<int64_t, double>("double, 64 bits");
    test_large_operands<int32_t, float>();
    test_large_operands<int64_t, double>();
    test_losses();
    test_variational();
    test_no_nonzeros();
    test_threads();
    test_underflow();
    std::printf("%ld checks on %s and below, %d failed\n", checks, isa_name(best_isa()), failures);
    return failures == 0 && checks > 0 ? 0 : 1;
}
