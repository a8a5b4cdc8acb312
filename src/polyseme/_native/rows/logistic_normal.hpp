// Posterior N(lambda, diag(v)) of eta of one document under the correlated topic model (core/logistic_normal.py).
//
// For expected counts n of N tokens, its term of the bound is, with zeta = sum_k exp(lambda_k + v_k / 2),
//     n . lambda - N log zeta - KL(N(lambda, diag(v)) || N(mu, Sigma)).
// All arrays have the padded width of the prior. The padding of lambda is zero and that of v is one.
#pragma once
#include "../normal_table.hpp"
#include "../special.hpp"
#include "products.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

inline double sum_of(const Pack<double>& a) {
    double four[4];
    sum_each<double>(a, a, a, a, four);
    return four[0];
}

inline double dot(const double* a, const double* b, int width) {
    Pack<double> total = splat(0.0);
    for (int k = 0; k < width; k += lanes<double>) total = total + load(a + k) * load(b + k);
    return sum_of(total);
}

// Places of all rows, for `accumulate_any`.
struct EveryRow {
    int64_t operator[](int64_t j) const { return j; }
};

// y = P x
inline void multiply_precision(const NormalPrior& prior, const double* x, double* y) {
    for (int k = 0; k < prior.width; ++k) y[k] = 0;
    accumulate_any<double, 0, true>(prior.precision, EveryRow{}, prior.width, prior.topics, 0, 0, prior.width, x, y);
}

// p = softmax(mean + variance / 2), and the log of its denominator.
inline double softmax(const double* mean, const double* variance, int topics, int width, double* p) {
    constexpr int L = lanes<double>;
    for (int k = 0; k < width; k += L) store(p + k, load(mean + k) + splat(0.5) * load(variance + k));
    for (int k = topics; k < width; ++k) p[k] = p[0];
    Pack<double> highest = load(p), part = splat(0.0);
    for (int k = L; k < width; k += L) highest = larger<double>(highest, load(p + k));
    const double top = -least_of<double>(splat(0.0) - highest);
    for (int k = 0; k < width; k += L) store(p + k, exp_pack(larger<double>(load(p + k) - splat(top), splat(-690.0))));
    for (int k = topics; k < width; ++k) p[k] = 0;
    for (int k = 0; k < width; k += L) part = part + load(p + k);
    const double total = sum_of(part);
    const Pack<double> scale = splat(1 / total);
    for (int k = 0; k < width; k += L) store(p + k, load(p + k) * scale);
    return top + std::log(total);
}

// The best v for the current zeta: the root of P_kk v + c v exp(v / 2) = 1 with c = N exp(lambda_k) / zeta.
//
// The left side is convex and increasing, so after one step Newton's method converges from the right of the root, which
// is at most 1 / P_kk and 1 / c, and at most 2 log(1 / c) if that is above 1. The method starts from the last v.
inline void improve_variance(const NormalPrior& prior, double total, const double* mean, double* variance, double* c) {
    constexpr int L = lanes<double>, most_steps = 12;
    constexpr double least_log = -690, precise = 1e-7;  // the next step is precise to the square of this share
    const int W = prior.width;
    const double log_share = (total > 0 ? std::log(total) : least_log) - softmax(mean, variance, prior.topics, W, c);
    const Pack<double> one = splat(1.0), half = splat(0.5);
    for (int k = 0; k < W; k += L) {
        const Pack<double> log_c =
            smaller<double>(larger<double>(load(mean + k) + splat(log_share), splat(least_log)), splat(-least_log));
        const Pack<double> share = exp_pack(log_c);
        const Pack<double> most = smaller<double>(one / larger<double>(load(prior.diagonal + k), share),
                                                  larger<double>(one, splat(-2.0) * log_c));
        store(c + k, share);
        store(variance + k, smaller<double>(load(variance + k), most));
    }
    bool converged = false;
    for (int step = 0; step < most_steps && !converged; ++step) {
        Pack<double> within = one;
        for (int k = 0; k < W; k += L) {
            const Pack<double> v = load(variance + k), precision = load(prior.diagonal + k);
            const Pack<double> grown = load(c + k) * exp_pack(half * v);
            const Pack<double> change = (precision * v + grown * v - one) / (precision + grown * (one + half * v));
            const Pack<double> allowed = splat(precise) * v;
            within = smaller<double>(within, smaller<double>(allowed - change, allowed + change));
            store(variance + k, v - change);
        }
        converged = least_of<double>(within) >= 0;
    }
    for (int k = prior.topics; k < W; ++k) variance[k] = 1;
}

// x = (P + N (diag(p) - p p'))^-1 gradient, by preconditioned conjugate gradients, which end when the residual is a
// small share of the gradient: the bound still rises with an imprecise step.
inline void solve_newton(const NormalPrior& prior, double total, const double* p, double* residual, double* x,
                         double* direction, double* product, double* inverse) {
    constexpr int L = lanes<double>, most_steps = 12;
    constexpr double enough = 1e-8;
    const int W = prior.width;
    Pack<double> part = splat(0.0);
    for (int k = 0; k < W; k += L) {
        const Pack<double> scale = splat(1.0) / (load(prior.diagonal + k) + splat(total) * load(p + k));
        const Pack<double> r = load(residual + k), z = r * scale;
        store(inverse + k, scale);
        store(direction + k, z);
        store(x + k, splat(0.0));
        part = part + r * z;
    }
    double rz = sum_of(part);
    const double small = enough * rz;
    for (int step = 0; step < most_steps && rz > small; ++step) {
        multiply_precision(prior, direction, product);
        const Pack<double> mean = splat(dot(p, direction, W));
        Pack<double> curved = splat(0.0);
        for (int k = 0; k < W; k += L) {
            const Pack<double> d = load(direction + k);
            const Pack<double> y = load(product + k) + splat(total) * load(p + k) * (d - mean);
            store(product + k, y);
            curved = curved + d * y;
        }
        const double curvature = sum_of(curved);
        if (!(curvature > 0)) break;
        const Pack<double> length = splat(rz / curvature);
        part = splat(0.0);
        for (int k = 0; k < W; k += L) {
            const Pack<double> r = load(residual + k) - length * load(product + k);
            store(x + k, load(x + k) + length * load(direction + k));
            store(residual + k, r);
            part = part + r * r * load(inverse + k);
        }
        const double next = sum_of(part);
        const Pack<double> turn = splat(next / rz);
        rz = next;
        for (int k = 0; k < W; k += L)
            store(direction + k, load(residual + k) * load(inverse + k) + turn * load(direction + k));
    }
}

// Sets v to its optimum for the current zeta, and takes a Newton step of lambda, halved until it does not lower the
// bound. `expected` sums to `total`, and its padding is zero.
inline void improve_normal(const NormalPrior& prior, const double* expected, double total, double* mean,
                           double* variance, double* work) {
    constexpr int L = lanes<double>, most_halvings = 12;
    constexpr double rounding = 1e-14;  // relative decrease of the bound that counts as rounding error
    const int W = prior.width;
    double *const p = work, *const offset = work + W, *const pulled = work + 2 * W, *const gradient = work + 3 * W,
                  *const step = work + 4 * W, *const direction = work + 5 * W, *const inverse = work + 6 * W;
    improve_variance(prior, total, mean, variance, p);
    const double log_zeta = softmax(mean, variance, prior.topics, W, p);
    for (int k = 0; k < W; ++k) offset[k] = mean[k] - prior.mean[k];
    multiply_precision(prior, offset, pulled);
    for (int k = 0; k < W; ++k) gradient[k] = expected[k] - total * p[k] - pulled[k];
    // What follows needs of `offset` only its product with P: along the step, the distance from mu is a parabola.
    const double distance = dot(offset, pulled, W), value = dot(expected, mean, W) - total * log_zeta - distance / 2;
    const double least = value - rounding * std::fabs(value);
    solve_newton(prior, total, p, gradient, step, direction, offset, inverse);
    multiply_precision(prior, step, direction);
    const double slope = dot(step, pulled, W), curvature = dot(step, direction, W);
    double size = 1;
    for (int halving = 0; halving < most_halvings; ++halving, size /= 2) {
        for (int k = 0; k < W; k += L) store(direction + k, load(mean + k) + splat(size) * load(step + k));
        const double tried = dot(expected, direction, W) - total * softmax(direction, variance, prior.topics, W, p) -
                             (distance + size * (2 * slope + size * curvature)) / 2;
        if (tried >= least) {
            for (int k = 0; k < prior.topics; ++k) mean[k] = direction[k];
            return;
        }
    }
}

// N (max_k lambda_k - log zeta) - KL(N(lambda, diag(v)) || N(mu, Sigma))
inline double normal_terms(const NormalPrior& prior, double total, const double* mean, const double* variance,
                           double* work) {
    constexpr int L = lanes<double>;
    const int W = prior.width;
    double *const p = work, *const offset = work + W, *const pulled = work + 2 * W;
    double top = mean[0];
    for (int k = 1; k < prior.topics; ++k) top = mean[k] > top ? mean[k] : top;
    const double log_zeta = softmax(mean, variance, prior.topics, W, p);
    for (int k = 0; k < W; ++k) offset[k] = mean[k] - prior.mean[k];
    multiply_precision(prior, offset, pulled);
    Pack<double> part = splat(0.0);
    for (int k = 0; k < W; k += L) {
        const Pack<double> v = load(variance + k);
        part = part + (v * load(prior.diagonal + k) - logarithm(v));
    }
    const double spread = sum_of(part) - (W - prior.topics);
    return total * (top - log_zeta) - (dot(offset, pulled, W) + spread + prior.log_det - prior.topics) / 2;
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
