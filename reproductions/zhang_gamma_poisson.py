"""Develop NMF into a model like LDA (Zhang, Ding and Tang, section 6): Gamma-Poisson factorization.

    x_dw ~ Poisson(sum_k V_dk phi_kw),   V_dk ~ Gamma(alpha, rate b),   phi_k ~ Dirichlet(eta)

The Poisson likelihood is NMF's divergence. With V_dk = s_d theta_dk the length n_d is Poisson(s_d) with s_d ~ Gamma(K
alpha, b), independent of theta_d ~ Dirichlet(alpha), and given its length a document is drawn from LDA. Part of
zhang_ding_tang.py.
"""

from __future__ import annotations

import numpy as np
from scipy.special import psi
from scipy.stats import dirichlet, gamma, multinomial, poisson

from formulas import Array, ratio
from polyseme import LDA
from polyseme.core.model import Model
from polyseme.priors import Dirichlet
from polyseme.solvers.ascent import EM
from support import EXACT, Finding, as_corpus, begin, error, few, planted_corpus, point, show, verdict

K, ALPHA, ETA = 4, 1.3, 1.1
SPREAD = 0.3
"""Alpha and eta of the variational fit, below one, where the mode does not exist."""


def rows_to_one(A: Array) -> Array:
    return np.asarray(A / A.sum(axis=1, keepdims=True))


def density_error(n_points: int, seed: int, rate: float) -> float:
    """Return the error of log P(x, V) = log P(x, theta | n) + log P(n, s) - (K - 1) log s at random points."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(n_points):
        phi, V = rng.dirichlet(np.ones(12), K), rng.gamma(2.0, 5.0, K)
        x, s, theta = rng.poisson(V @ phi), V.sum(), V / V.sum()
        factorization = poisson.logpmf(x, V @ phi).sum() + gamma.logpdf(V, ALPHA, scale=1 / rate).sum()
        lda = multinomial.logpmf(x, x.sum(), theta @ phi) + dirichlet.logpdf(theta, np.full(K, ALPHA))
        length = poisson.logpmf(x.sum(), s) + gamma.logpdf(s, K * ALPHA, scale=1 / rate) - (K - 1) * np.log(s)
        worst = max(worst, abs(float((lda + length) / factorization - 1)))
    return worst


def mode_error(X: Array, rate: float, iterations: int) -> float:
    """Return the error of the multiplicative rules of the mode against the EM of LDA's mode in the package."""
    rng = np.random.default_rng(0)
    theta, phi = rng.dirichlet(np.ones(K), len(X)), rng.dirichlet(np.ones(X.shape[1]), K)
    run = begin(EM(), as_corpus(X), (theta, phi.T), Model(K, doc_prior=Dirichlet(ALPHA), word_prior=Dirichlet(ETA)))
    V, worst = theta * X.sum(axis=1, keepdims=True), 0.0
    for _ in range(iterations):
        R = ratio(X, V @ phi)
        V, phi = (V * (R @ phi.T) + ALPHA - 1) / (1 + rate), rows_to_one(phi * (V.T @ R) + ETA - 1)
        run.advance()
        found, topics = point(run)
        worst = max(worst, error(rows_to_one(V), found), error(phi.T, topics))
    return worst


def log_mean(parameters: Array) -> Array:
    """Return E log of rows with Dirichlet distributions."""
    return np.asarray(psi(parameters) - psi(parameters.sum(axis=1, keepdims=True)))


def sweep(X: Array, A: Array, lam: Array) -> tuple[Array, Array]:
    """Run one sweep of variational Bayes, with the operand exp E log of the documents' factor."""
    B = np.exp(log_mean(lam))
    R = ratio(X, A @ B)
    return SPREAD + A * (R @ B.T), SPREAD + B * (A.T @ R)


def sweep_gamma(X: Array, shapes: Array, lam: Array, rate: float) -> tuple[Array, Array]:
    """Run one sweep with q(V_dk) = Gamma(shape, rate b + 1) and q(phi_k) = Dirichlet(lam)."""
    return sweep(X, np.exp(psi(shapes)) / (rate + 1), lam)


def variational_errors(X: Array, rate: float, sweeps: int) -> tuple[float, float]:
    """Return the error of sweeps against those of LDA from one start, and how far they lead from the package's LDA."""
    rng = np.random.default_rng(0)
    shapes, lam = rng.gamma(1.0, 1.0, (len(X), K)), rng.gamma(1.0, 1.0, (K, X.shape[1]))
    gamma_, lda_lam, worst = shapes, lam, 0.0
    for _ in range(sweeps):
        shapes, lam = sweep_gamma(X, shapes, lam, rate)
        gamma_, lda_lam = sweep(X, np.exp(log_mean(gamma_)), lda_lam)
        worst = max(worst, error(shapes, gamma_), error(lam, lda_lam))
    lda = LDA(K, doc_topic_prior=SPREAD, topic_word_prior=SPREAD, random_state=0, tol=1e-14, max_iter=5000).fit(X)
    shapes, lam = lda.doc_topic_dirichlet_, lda.topic_word_dirichlet_
    for _ in range(sweeps):
        shapes, lam = sweep_gamma(X, shapes, lam, rate)
    return worst, max(error(shapes, lda.doc_topic_dirichlet_), error(lam, lda.topic_word_dirichlet_))


def gamma_poisson(n_docs: int, sweeps: int, seed: int = 20) -> Finding:
    """Check that Gamma-Poisson factorization is LDA: densities, modes, variational posteriors."""
    X = planted_corpus(n_docs, 40, K, 80, seed)
    X = X[:, X.sum(axis=0) > 0]
    density = max(density_error(50, seed, rate) for rate in (0.05, 2.0))
    mode = max(mode_error(X, rate, 50) for rate in (0.05, 2.0))
    posterior, from_lda = variational_errors(X, 0.05, sweeps)
    show("Gamma-Poisson factorization and LDA", ("", ""), [
        ("log densities at 50 random points, two rates: error", few(density)),
        ("50 iterations to the mode, NMF's rules with the priors and EM of LDA, two rates: error", few(mode)),
        (f"{sweeps} sweeps of variational Bayes, and of LDA's, from one start: error", few(posterior)),
        (f"{sweeps} sweeps from the posterior of `LDA` move by", few(from_lda)),
    ])  # fmt: skip
    return Finding(
        "NMF as a model like LDA (sect. 6)", "one can also consider to develop NMF into some LDA-like model",
        f"NMF's divergence is a Poisson likelihood; with V_dk ~ Gamma(alpha, b) and topics ~ Dirichlet(eta) the "
        f"density is that of LDA times that of the lengths (error {few(density)}), NMF's rules with these priors are "
        f"the EM of LDA's mode (50 iterations, error {few(mode)}), and its variational Bayes is that of LDA ({sweeps} "
        f"sweeps, error {few(posterior)}; from the posterior of `LDA` they move by {few(from_lda)})",
        verdict("true: with Gamma weights it is LDA, with random lengths", density <= EXACT, mode <= EXACT,
                posterior <= 1e-10, from_lda <= 0.01),
    )  # fmt: skip
