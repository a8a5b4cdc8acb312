// Document steps and word operands of variational Bayes compared with plain loops in double.
#include <algorithm>

#include "problem.hpp"
#include "row_table.hpp"
#include "variational.hpp"

using namespace polyseme;

void test_variational();

namespace {

double digamma(double x) {
    double shift = 0;
    for (; x < 20; x += 1) shift -= 1 / x;
    const double w = 1 / (x * x);
    return shift + std::log(x) - 0.5 / x - w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w / 240)));
}

// Checks every instruction set and number of threads.
template <class Index, class T>
void test_topics(int topics) {
    where = "variational, " + std::to_string(topics) + " topics, " + std::to_string(8 * sizeof(T)) + " bits";
    const Problem<Index, T> p(150, 40, topics, 5);
    const int W = p.width;
    std::vector<double> alpha(at(W), 1.0), eta(at(p.words)), sums(at(W), 1.0), shift(at(W), 0.0);
    for (int k = 0; k < topics; ++k) alpha[at(k)] = 0.1 + 0.05 * k;
    for (int64_t w = 0; w < p.words; ++w) eta[at(w)] = 0.2 + 0.01 * static_cast<double>(w);
    std::vector<T> lambda(at(p.words * W), T(1)), first(at(p.rows * W), T(0));
    for (int64_t w = 0; w < p.words; ++w)
        for (int k = 0; k < topics; ++k) lambda[at(w * W + k)] = static_cast<T>(0.3) + T(500) * p.B[at(w * W + k)];
    for (int k = 0; k < topics; ++k) {
        sums[at(k)] = 0;
        for (int64_t w = 0; w < p.words; ++w) sums[at(k)] += static_cast<double>(lambda[at(w * W + k)]);
        shift[at(k)] = digamma(sums[at(k)]);
    }
    for (int64_t d = 0; d < p.rows; ++d)
        for (int k = 0; k < topics; ++k) first[at(d * W + k)] = static_cast<T>(p.totals[at(d)] / topics);

    // expected values by loops in double
    std::vector<double> operand(at(p.words * W), 0.0), word_terms(at(p.words), 0.0), n(first.begin(), first.end());
    for (int64_t w = 0; w < p.words; ++w) {
        double top = -1e300;
        for (int k = 0; k < topics; ++k) {
            const double x = static_cast<double>(lambda[at(w * W + k)]), log = digamma(x) - shift[at(k)];
            operand[at(w * W + k)] = log;
            top = std::max(top, log);
            word_terms[at(w)] += std::lgamma(x) + (eta[at(w)] - x) * log;
        }
        for (int k = 0; k < topics; ++k) operand[at(w * W + k)] = std::exp(operand[at(w * W + k)] - top);
    }
    std::vector<double> terms(at(p.rows), 0.0), log_sums(at(W), 0.0);
    for (int64_t d = 0; d < p.rows; ++d) {
        std::vector<double> logs(at(topics));
        for (int step = 0; step <= 3; ++step) {
            double sum = 0, top = -1e300;
            for (int k = 0; k < topics; ++k) sum += alpha[at(k)] + n[at(d * W + k)];
            for (int k = 0; k < topics; ++k) {
                logs[at(k)] = digamma(alpha[at(k)] + n[at(d * W + k)]) - digamma(sum);
                top = std::max(top, logs[at(k)]);
            }
            if (step == 3) {
                terms[at(d)] = p.totals[at(d)] * top - std::lgamma(sum);
                for (int k = 0; k < topics; ++k) {
                    const double x = alpha[at(k)] + n[at(d * W + k)];
                    terms[at(d)] += std::lgamma(x) + (alpha[at(k)] - x) * logs[at(k)];
                    log_sums[at(k)] += p.weights[at(d)] * logs[at(k)];
                }
                break;
            }
            std::vector<double> next(at(topics), 0.0);
            for (Index j = p.indptr[at(d)]; j < p.indptr[at(d + 1)]; ++j) {
                const double* b = operand.data() + static_cast<int64_t>(p.indices[at(j)]) * W;
                double q = 0;
                for (int k = 0; k < topics; ++k) q += std::exp(logs[at(k)]) * b[k];
                for (int k = 0; k < topics; ++k)
                    next[at(k)] += static_cast<double>(p.values[at(j)]) * std::exp(logs[at(k)]) * b[k] / q;
            }
            if (p.indptr[at(d)] < p.indptr[at(d + 1)])
                for (int k = 0; k < topics; ++k) n[at(d * W + k)] = next[at(k)];
        }
    }

    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (isa > best_isa()) continue;
        std::vector<T> one_thread;
        for (const int n_threads : {1, 3}) {
            std::vector<T> B(at(p.words * W)), counts(first), A(at(p.rows * W));
            std::vector<double> scales(at(p.words)), own(at(p.words)), sums_of_logs(at(p.words)), doc_terms(at(p.rows)),
                logs(at(W));
            std::vector<int32_t> steps(at(p.rows));
            word_operands<T>(lambda.data(), eta.data(), false, shift.data(), p.words, topics, W, B.data(),
                             scales.data(), own.data(), sums_of_logs.data(), n_threads, isa);
            improve_gamma<Index, T>(p.counts(), B.data(), W, alpha.data(), p.totals.data(), p.weights.data(),
                                    {topics, 3, 0.0}, counts.data(), A.data(), doc_terms.data(), logs.data(),
                                    steps.data(), n_threads, isa);
            check_close(B, operand, 10 * tolerance<T>(), "word operands");
            check_close(own, word_terms, 1e-9, "terms of the words");
            check_close(counts, n, 100 * tolerance<T>(), "expected counts after three steps");
            check_close(doc_terms, terms, 100 * tolerance<T>(), "terms of the documents");
            check_close(logs, log_sums, 100 * tolerance<T>(), "sums of E log theta");
            for (int64_t d = 0; topics > 1 && d < p.rows; ++d)
                check(steps[at(d)] == (p.indptr[at(d)] < p.indptr[at(d + 1)] ? -3 : 0), "steps");
            if (n_threads == 1)
                one_thread = counts;
            else
                check_same_bits(counts, one_thread, "threads change no bit");
        }
    }
}

}  // namespace

void test_variational() {
    for (const int topics : {1, 13, 16, 50, 130}) {
        test_topics<int32_t, float>(topics);
        test_topics<int64_t, double>(topics);
    }
}
