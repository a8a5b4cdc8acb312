"""Equivalences that Hong (2012) cites: PLSA and LDA (Girolami and Kaban), PLSA and NMF of tensors (Peng).

The two papers were not available: this module checks what the tutorial and their titles say.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import rel_entr, xlogy
from scipy.stats import dirichlet
from sklearn.exceptions import ConvergenceWarning

from formulas import Array, ratio
from hong_em import Asymmetric, log_likelihood, start
from polyseme import LDA, PLSA, TensorPLSA
from polyseme.metrics import align
from support import EXACT, Finding, error, few, show, verdict

SAME = 1e-3
"""Products within this total variation count as the same optimum."""


# PLSA and LDA


def log_posterior(X: Array, now: Asymmetric, alpha: float, eta: float) -> float:
    """Return log P(X, theta, phi) of LDA, without the multinomial coefficients, from the densities of SciPy."""
    K, n_words = now.phi.shape
    return (
        log_likelihood(X, now.theta @ now.phi)
        + sum(dirichlet.logpdf(row, np.full(K, alpha)) for row in now.theta)
        + sum(dirichlet.logpdf(row, np.full(n_words, eta)) for row in now.phi)
    )


def lda_under_a_uniform_prior(X: Array, n_topics: int, points: int) -> Finding:
    """Check that the densities differ by a constant if both priors are uniform, and that the fits are the same."""
    gaps = {}
    for prior in (1.0, 1.1):
        random = [start(X, n_topics, seed) for seed in range(points)]
        values = [log_posterior(X, now, prior, prior) - log_likelihood(X, now.theta @ now.phi) for now in random]
        gaps[prior] = float(np.ptp(values) / abs(log_likelihood(X, random[0].theta @ random[0].phi)))
    first = start(X, n_topics, seed=0)
    settings: dict[str, Any] = {"init": (first.theta, first.phi), "tol": 1e-6, "max_iter": 5000}
    plsa = PLSA(n_topics, **settings).fit(X)
    mode = LDA(n_topics, solver="map", doc_topic_prior=1.0, topic_word_prior=1.0, **settings).fit(X)
    settings |= {"init": (plsa.doc_topic_, plsa.components_)}
    mean = LDA(n_topics, doc_topic_prior=1.0, topic_word_prior=1.0, **settings).fit(X)
    same = error(mode.doc_topic_ @ mode.components_, plsa.doc_topic_ @ plsa.components_)
    apart = float(align(plsa.components_, mean.components_)[1].max())
    lost = plsa.log_likelihood_ - mean.log_likelihood_
    show("LDA under uniform priors, alpha = eta = 1", ("", ""), [
        (f"log posterior - log-likelihood: range over {points} random points, relative", few(gaps[1.0])),
        ("the same with alpha = eta = 1.1", few(gaps[1.1])),
        ("P(w|d) of the mode of LDA and of PLSA from one start: error", few(same)),
        ("topics of variational LDA from that point: largest total variation", f"{apart:.3f}"),
        ("log-likelihood per token: PLSA, variational LDA", f"{plsa.log_likelihood_:.4f}, {mean.log_likelihood_:.4f}"),
    ])  # fmt: skip
    return Finding(
        "PLSA and LDA (sect. 1; Girolami and Kaban)", "PLSA and LDA are equivalent (under a uniform prior)",
        f"with alpha = eta = 1 the log posterior of LDA is the log-likelihood plus a constant ({points} random points, "
        f"error {few(gaps[1.0])}; {few(gaps[1.1])} with 1.1), and its mode is PLSA (error {few(same)}); the mean that "
        f"variational LDA finds from there has topics {apart:.2f} from PLSA's (total variation) and {lost:.3f} nats "
        f"per token less likelihood",
        verdict("true for the mode of the posterior, not for its mean", gaps[1.0] <= EXACT, gaps[1.1] > 1e-6,
                same <= EXACT, apart > 0.02, lost > 0),
    )  # fmt: skip


# PLSA and NMF of tensors


class Tensor(NamedTuple):
    """P(z), and P(item|z) of three modes (items x K)."""

    weights: Array
    factors: tuple[Array, ...]

    @property
    def product(self) -> Array:
        return tensor_product(self.unnormalized)

    @property
    def unnormalized(self) -> tuple[Array, ...]:
        """The factors of NTF with the same product."""
        return (self.factors[0] * self.weights, *self.factors[1:])


def tensor_product(factors: tuple[Array, ...]) -> Array:
    return np.einsum("ak,bk,ck->abc", *factors)


def random_tensor(rng: np.random.Generator, spread: float) -> Tensor:
    """Return a random point; a small `spread` makes sparse factors."""
    return Tensor(rng.dirichlet(np.full(3, 5.0)), tuple(rng.dirichlet(np.full(n, spread), 3).T for n in (12, 10, 8)))


def ntf_factor(X: Array, factors: tuple[Array, ...], mode: int) -> Array:
    """Return one factor after the multiplicative rule of NTF with the KL divergence, from the factors given."""
    others = [m for m in range(3) if m != mode]
    terms = ",".join(f"{'abc'[m]}k" for m in others)
    fixed = [factors[m] for m in others]
    sums = np.einsum(f"abc,{terms}->{'abc'[mode]}k", ratio(X, tensor_product(factors)), *fixed)
    return np.asarray(factors[mode] * sums / np.prod([factor.sum(axis=0) for factor in fixed], axis=0))


def ntf(X: Array, factors: tuple[Array, ...]) -> tuple[Array, ...]:
    """Run one iteration of NTF: each factor in turn, from the newest ones."""
    for mode in range(3):
        factors = (*factors[:mode], ntf_factor(X, factors, mode), *factors[mode + 1 :])
    return factors


def normalized_tensor(factors: Sequence[Array], weights: Array) -> Tensor:
    return Tensor(weights / weights.sum(), tuple(factor / factor.sum(axis=0) for factor in factors))


def ntf_from_old_values(X: Array, now: Tensor) -> Tensor:
    """Run the rules of NTF with all factors from the old ones and normalize; the first factor has the mass P(z)."""
    new = [ntf_factor(X, now.unnormalized, mode) for mode in range(3)]
    return normalized_tensor(new, new[0].sum(axis=0))


def em_of_package(X: Array, now: Tensor, iterations: int) -> Tensor:
    """Run the EM of TensorPLSA from a point."""
    init = (now.weights, [factor.T for factor in now.factors])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TensorPLSA(3, solver="em", max_iter=iterations, tol=0.0, init=init).fit(X)
    return Tensor(model.topic_weights_, tuple(factor.T for factor in model.factors_))


class TensorRuns(NamedTuple):
    """Errors of one tensor. The last four are total variations between products."""

    steps: float
    objective: float
    exact: float
    ntf_at_em: float
    em_at_ntf: float
    ends: float


def compare_tensors(seed: int, iterations: int) -> TensorRuns:
    """Compare TensorPLSA with naive NTF: iterates, objectives, fixed points and results."""
    rng = np.random.default_rng(seed)
    truth, first = random_tensor(rng, 0.5), random_tensor(rng, 1.0)
    X = rng.poisson(3000 * truth.product).astype(np.float64)
    X /= X.sum()
    naive, package, steps = first, first, []
    for _ in range(30):
        naive, package = ntf_from_old_values(X, naive), em_of_package(X, package, 1)
        steps.append(error(package.product, naive.product))
    products = [random_tensor(rng, 1.0).product for _ in range(5)]
    constants = [float(xlogy(X, P).sum() + (rel_entr(X, P) - X + P).sum()) for P in products]
    end = em_of_package(X, first, iterations)
    factors = first.unnormalized
    for _ in range(iterations):
        factors = ntf(X, factors)
    end_of_ntf = normalized_tensor(factors, np.prod([factor.sum(axis=0) for factor in factors], axis=0))
    return TensorRuns(
        steps=max(steps),
        objective=float(np.ptp(constants) / abs(constants[0])),
        exact=max(error(tensor_product(ntf(truth.product, truth.unnormalized)), truth.product),
                  error(em_of_package(truth.product, truth, 1).product, truth.product)),
        ntf_at_em=total_variation(tensor_product(ntf(X, end.unnormalized)), end.product),
        em_at_ntf=total_variation(em_of_package(X, end_of_ntf, 1).product, end_of_ntf.product),
        ends=total_variation(end.product, end_of_ntf.product),
    )  # fmt: skip


def tensors(n_tensors: int, iterations: int) -> Finding:
    """Judge the equivalence of tensorial PLSA and NTF on random tensors of counts."""
    runs = [compare_tensors(seed, iterations) for seed in range(n_tensors)]
    show(f"TensorPLSA and NTF with the KL divergence on tensors of counts, {iterations} iterations",
         ("tensor", "30 iterates", "objective", "exact", "NTF's step after EM", "EM's step after NTF", "results apart"),
         [(number, *map(few, run)) for number, run in enumerate(runs)])  # fmt: skip
    worst = TensorRuns(*(max(values) for values in zip(*runs, strict=True)))
    same = sum(run.ends <= SAME for run in runs)
    return Finding(
        "Tensors (sect. 1; Peng)", "nonnegative tensor factorization is equivalent to tensorial PLSA",
        f"divergence plus likelihood is constant (error {few(worst.objective)}); the EM of `TensorPLSA` is NTF's rules "
        f"from old values, normalized (30 products, error {few(worst.steps)}); at an exact factorization both move by "
        f"{few(worst.exact)}; after {iterations} iterations of EM a step of NTF moves by at most "
        f"{few(worst.ntf_at_em)}, of NTF with the newest factors a step of EM by {few(worst.em_at_ntf)}; from one "
        f"start they reach the same product in {same} of {n_tensors} tensors",
        verdict("true: one objective with the same fixed points", worst.objective <= EXACT,
                worst.steps <= EXACT, worst.exact <= EXACT, worst.ntf_at_em <= 1e-4, worst.em_at_ntf <= 1e-4),
    )  # fmt: skip


def total_variation(P: Array, Q: Array) -> float:
    return float(np.abs(P - Q).sum() / 2)
