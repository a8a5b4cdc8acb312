// The kernels of the losses compared with plain loops in double: products, least squares, Itakura-Saito.
#include <cmath>

#include "problem.hpp"
#include "products.hpp"
#include "reciprocal.hpp"
#include "row_table.hpp"
#include "squares.hpp"

using namespace polyseme;

void test_losses();

namespace {

template <class T>
double close_to() {
    return sizeof(T) == 4 ? 1e-4 : 1e-11;
}

template <class T>
void test_multiply(Isa isa) {
    const Problem<int32_t, T> p(40, 90, 20, 1);
    std::vector<double> one(at(p.rows * p.width)), four(one.size()), naive(one.size());
    multiply(p.counts(), p.B.data(), p.width, one.data(), 1, isa);
    multiply(p.counts(), p.B.data(), p.width, four.data(), 4, isa);
    for (int64_t d = 0; d < p.rows; ++d)
        for (int32_t j = p.indptr[at(d)]; j < p.indptr[at(d + 1)]; ++j)
            for (int k = 0; k < p.width; ++k)
                naive[at(d * p.width + k)] += static_cast<double>(p.values[at(j)]) *
                                              static_cast<double>(p.B[at(int64_t{p.indices[at(j)]} * p.width + k)]);
    check_close(one, naive, close_to<T>(), "multiply");
    check_same_bits(one, four, "multiply with 1 and 4 threads");
}

// After enough passes no entry can gain: the slope is zero where f > 0, and not positive where f = 0.
template <class T>
void test_descend(int64_t rows, int topics, Isa isa) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(0, 1);
    const int width = (topics + 15) / 16 * 16, words = 3 * topics + 2;
    std::vector<double> B(at(words * topics)), P(at(rows * width));
    for (double& b : B) b = uniform(random);
    std::vector<T> G(at(width * width)), one(at(rows * width)), four;
    for (int k = 0; k < topics; ++k)
        for (int j = 0; j < topics; ++j) {
            double total = 0;
            for (int w = 0; w < words; ++w) total += B[at(w * topics + k)] * B[at(w * topics + j)];
            G[at(k * width + j)] = static_cast<T>(total);
        }
    for (int64_t i = 0; i < rows; ++i)
        for (int k = 0; k < topics; ++k) {
            P[at(i * width + k)] = 5 * uniform(random);
            one[at(i * width + k)] = T(1);
        }
    four = one;
    const DescentSettings settings{topics, 20000, 0.0};
    descend(P.data(), G.data(), rows, width, settings, one.data(), 1, isa);
    descend(P.data(), G.data(), rows, width, settings, four.data(), 4, isa);
    check_same_bits(one, four, "descend with 1 and 4 threads");
    bool minimal = true;
    for (int64_t i = 0; i < rows; ++i)
        for (int k = 0; k < topics; ++k) {
            double slope = P[at(i * width + k)];
            for (int j = 0; j < topics; ++j)
                slope -= static_cast<double>(G[at(k * width + j)]) * static_cast<double>(one[at(i * width + j)]);
            const double f = static_cast<double>(one[at(i * width + k)]);
            minimal = minimal && f >= 0 && slope <= 2e-3 && (f == 0 || slope >= -2e-3);
        }
    check(minimal, "descend ends at a minimum");
}

template <class T>
void test_descend_counts(int passes, Isa isa) {
    const Problem<int32_t, T> p(140, 90, 20, 1);
    std::vector<T> G(at(p.width * p.width)), one = p.A, four = p.A, expected = p.A;
    for (int k = 0; k < p.width; ++k)
        for (int j = 0; j < p.width; ++j) {
            double total = 0;
            for (int64_t w = 0; w < p.words; ++w)
                total += static_cast<double>(p.B[at(w * p.width + k)]) * static_cast<double>(p.B[at(w * p.width + j)]);
            G[at(k * p.width + j)] = static_cast<T>(total);
        }
    const DescentSettings settings{p.topics, passes, 0.0};
    std::vector<double> crosses(at(p.rows)), crosses4(at(p.rows)), P(at(p.rows * p.width)), naive(at(p.rows));
    descend_counts(p.counts(), p.B.data(), G.data(), p.width, settings, p.A.data(), one.data(), crosses.data(), 1,
                   isa);
    descend_counts(p.counts(), p.B.data(), G.data(), p.width, settings, p.A.data(), four.data(), crosses4.data(), 4,
                   isa);
    multiply(p.counts(), p.B.data(), p.width, P.data(), 1, isa);
    descend(P.data(), G.data(), p.rows, p.width, settings, expected.data(), 1, isa);
    for (int64_t d = 0; d < p.rows; ++d)
        for (int k = 0; k < p.width; ++k)
            naive[at(d)] += P[at(d * p.width + k)] * static_cast<double>(p.A[at(d * p.width + k)]);
    check_same_bits(one, four, "descend_counts with 1 and 4 threads");
    check_same_bits(crosses, crosses4, "crosses with 1 and 4 threads");
    check_same_bits(one, expected, "descend_counts and descend");
    check_close(crosses, naive, close_to<T>(), "crosses");
}

template <class T>
void test_gram(int64_t rows, Isa isa) {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> uniform(0, 1);
    const int width = rows < 5000 ? 80 : 16;
    std::vector<T> F(at(rows * width));
    std::vector<double> weights(at(rows)), naive(at(width * width)), one(naive.size(), 7), four(naive.size());
    for (T& f : F) f = static_cast<T>(uniform(random));
    for (double& weight : weights) weight = uniform(random);
    for (const bool weighted : {false, true}) {
        std::fill(naive.begin(), naive.end(), 0.0);
        for (int64_t i = 0; i < rows; ++i)
            for (int k = 0; k < width; ++k)
                for (int j = 0; j < width; ++j)
                    naive[at(k * width + j)] += (weighted ? weights[at(i)] : 1.0) *
                                                static_cast<double>(F[at(i * width + k)]) *
                                                static_cast<double>(F[at(i * width + j)]);
        const double* const by_row = weighted ? weights.data() : nullptr;
        gram(F.data(), by_row, rows, width, one.data(), 1, isa);
        gram(F.data(), by_row, rows, width, four.data(), 4, isa);
        check_close(one, naive, close_to<T>(), "gram");
        check_same_bits(one, four, "gram with 1 and 4 threads");
        bool symmetric = true;
        for (int k = 0; k < width; ++k)
            for (int j = 0; j < width; ++j)
                symmetric = symmetric && one[at(k * width + j)] == one[at(j * width + k)];
        check(symmetric, "gram is symmetric");
    }
}

template <class T>
void test_reciprocal(int64_t rows, int64_t columns, int topics, Isa isa) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(0.1, 2);
    const int64_t tile = tile_columns<T>, stride = (columns + tile - 1) / tile * tile;
    const int width = (topics + 15) / 16 * 16;
    std::vector<T> x(at(rows * stride)), A(at(rows * width)), weighted(A.size()), B(at(columns * width));
    std::vector<T> row_floors(at(rows), T(0.2)), column_floors(at(columns), T(0.3));
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t w = 0; w < columns; ++w) x[at(i * stride + w)] = static_cast<T>(uniform(random));
        for (int k = 0; k < topics; ++k) {
            A[at(i * width + k)] = static_cast<T>(uniform(random));
            weighted[at(i * width + k)] = A[at(i * width + k)] * static_cast<T>(i % 3);
        }
    }
    for (int64_t w = 0; w < columns; ++w)
        for (int k = 0; k < topics; ++k) B[at(w * width + k)] = static_cast<T>(uniform(random));
    for (const bool by_column : {false, true}) {
        const DenseProblem<T> problem{x.data(),
                                      A.data(),
                                      weighted.data(),
                                      B.data(),
                                      by_column ? nullptr : row_floors.data(),
                                      by_column ? column_floors.data() : nullptr,
                                      rows,
                                      columns,
                                      stride,
                                      topics,
                                      width};
        std::vector<double> n_naive(B.size()), d_naive(B.size()), losses_naive(at(columns));
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t w = 0; w < columns; ++w) {
                double q = 0;
                for (int k = 0; k < topics; ++k)
                    q += static_cast<double>(A[at(i * width + k)]) * static_cast<double>(B[at(w * width + k)]);
                q = std::max(q, by_column ? 0.3 : 0.2);
                const double ratio = static_cast<double>(x[at(i * stride + w)]) / q;
                losses_naive[at(w)] += ratio - std::log(ratio) - 1;
                for (int k = 0; k < topics; ++k) {
                    n_naive[at(w * width + k)] += ratio / q * static_cast<double>(weighted[at(i * width + k)]);
                    d_naive[at(w * width + k)] += static_cast<double>(weighted[at(i * width + k)]) / q;
                }
            }
        std::vector<double> first;
        for (const int threads : {1, 4}) {
            std::vector<double> n(B.size(), 7), d(B.size(), 7), losses(at(columns), 7);
            reciprocal_sums(problem, n.data(), d.data(), losses.data(), threads, isa);
            check_close(losses, losses_naive, close_to<T>(), "losses of Itakura-Saito");
            check_close(n, n_naive, close_to<T>(), "numerators of Itakura-Saito");
            check_close(d, d_naive, close_to<T>(), "denominators of Itakura-Saito");
            n.insert(n.end(), losses.begin(), losses.end());
            if (threads > 1) check_same_bits(n, first, "Itakura-Saito with 1 and 4 threads");
            first = n;
        }
    }
}

template <class T>
void test_multiplied(Isa isa) {
    const std::vector<T> factor{T(2), T(3), T(5), T(1e-29)};
    const std::vector<double> n{8, 4, 1, 1e-8}, d{2, 0, 4, 1};
    std::vector<T> plain(4), root(4);
    multiplied(factor.data(), n.data(), d.data(), false, 4, plain.data(), 2, isa);
    multiplied(factor.data(), n.data(), d.data(), true, 4, root.data(), 2, isa);
    const T small = sizeof(T) == 4 ? T(0) : T(1e-37), smaller = sizeof(T) == 4 ? T(0) : T(1e-33);
    check_close(plain, std::vector<T>{T(8), T(0), T(1.25), small}, 1e-15, "multiplicative update");
    check_close(root, std::vector<T>{T(4), T(0), T(2.5), smaller}, 1e-15, "multiplicative update with a root");
}

}  // namespace

void test_losses() {
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (isa > best_isa()) continue;
        where = std::string("losses, ") + isa_name(isa);
        test_multiply<float>(isa);
        test_multiply<double>(isa);
        for (const int passes : {1, 3}) {
            test_descend_counts<float>(passes, isa);
            test_descend_counts<double>(passes, isa);
        }
        for (const int64_t rows : {0, 1, 70, 1100, 70000}) {
            test_gram<float>(rows, isa);
            test_gram<double>(rows, isa);
        }
        test_multiplied<float>(isa);
        test_multiplied<double>(isa);
        for (const int64_t rows : {1, 3, 4, 9}) {
            test_descend<float>(rows, 5, isa);
            test_descend<double>(rows, 17, isa);
            for (const int64_t columns : {1, 31, 64, 130}) {
                test_reciprocal<float>(rows, columns, 5, isa);
                test_reciprocal<double>(rows, columns, 20, isa);
            }
        }
    }
}
