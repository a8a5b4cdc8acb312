"""Small problems for the solvers, and functions that run solvers on them."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers.base import SOLVERS, FitProblem, Requirement, advance_to_end, check_solver

STOCHASTIC = ("online",)  # see tests/solvers/test_online.py
TEMPERED = ("tempered", "held-out-tempered", "annealed")
HOLDING_OUT = ("held-out-tempered",)
LIKELIHOOD = [name for name, solver in SOLVERS.items() if Requirement.OTHER_LOSS not in solver.requires]
"""Solvers that maximize a likelihood; tests/solvers/test_majorize.py has the others."""
PLAIN = [name for name in LIKELIHOOD if name not in (*TEMPERED, *STOCHASTIC)]
EVERY = pytest.mark.parametrize("name", [name for name in LIKELIHOOD if name not in STOCHASTIC])
EVERY_PLAIN = pytest.mark.parametrize("name", PLAIN)

K = 4
X = oracles.mixed_counts(0, 40, 30, K)
X[[0, 17]] = 0
X[:, 3] = 0
FILLED = X.sum(axis=1) > 0
START = oracles.random_factors(0, *X.shape, K)


def make_corpus(X, *, layout=sp.csr_array, dtype=np.float64, weights=None, n_threads=1):
    return MemoryCorpus(as_counts(layout(X), np.dtype(dtype)), weights, n_threads)


def begin(solver, X, start, *, temperature=1.0, dtype=np.float64, **source):
    """Return the solver's run at start = (theta documents x K, phi K x words)."""
    theta, phi = start
    problem = FitProblem(Model(len(phi), temperature), make_corpus(X, dtype=dtype, **source))
    return begin_problem(solver, problem, padded(theta, dtype), padded(phi.T, dtype))


def begin_problem(solver, problem, theta, phi):
    """Return the run of a solver at padded factors, checked as an estimator does."""
    return check_solver(solver, problem, checkpoint=False).begin(problem, theta, phi)


def fit(solver, X, start, *, max_iter, tol=0.0, dtype=np.float64, **source):
    """Run a solver to its end from start = (theta documents x K, phi K x words)."""
    return advance_to_end(
        lambda: begin(solver, X, start, dtype=dtype, **source), max_iter=max_iter, tol=tol, listeners=[]
    )


def factors(run):
    """Return theta and phi (K x words) of a run without the padding."""
    K = run.model.n_topics
    return run.theta[:, :K], run.phi[:, :K].T


def advanced(run, iterations):
    """Return the run after a number of iterations, or at its end."""
    for _ in range(iterations):
        if run.exhausted:
            break
        run.advance()
    return run


def path(run, iterations):
    """Return (temperature, report) at the start and after every iteration."""
    seen = [(run.model.temperature, run.report)]
    for _ in range(iterations):
        if run.exhausted:
            break
        run.advance()
        seen.append((run.model.temperature, run.report))
    return seen


def worst_fall(seen):
    """Return the largest relative decrease of the objective in one iteration at a constant temperature."""
    return max(
        (
            (before.objective - after.objective) / abs(before.objective)
            for (beta, before), (next_beta, after) in pairwise(seen)
            if beta == next_beta
        ),
        default=0.0,
    )


def mean_log_likelihood(X, theta, phi, weights=None):
    """Return sum x log P(w|d) per token, computed densely."""
    tokens = X.sum() if weights is None else weights @ X.sum(axis=1)
    return oracles.log_likelihood(X, theta, phi, weights) / tokens


def saturated(X):
    """Return the mean log-likelihood of P(w|d) = x / n_d, which no model exceeds."""
    return mean_log_likelihood(X, np.eye(len(X)), oracles.normalized(X))


def multipliers(X, theta, phi, weights=None):
    """Return g / u of both sides, which is at most one at an optimum, and one where the factor is positive.

    Documents: sum_w x phi / p over n_d. Words: sum_d x theta / p over sum_d n_d theta (zero for a topic without mass).
    """
    weights = np.ones(len(X)) if weights is None else weights
    p = theta @ phi
    ratio = np.divide(X, p, out=np.zeros_like(p), where=X > 0)
    totals = X.sum(axis=1, keepdims=True)
    docs = np.divide(ratio @ phi.T, totals, out=np.zeros_like(theta), where=totals > 0)
    mass = (weights * X.sum(axis=1)) @ theta
    words = np.divide(
        (theta * weights[:, np.newaxis]).T @ ratio,
        mass[:, np.newaxis],
        out=np.zeros_like(phi),
        where=mass[:, np.newaxis] > 0,
    )
    return docs, words


def blocks(n_docs=12, n_words=10):
    """Return two groups of documents without common words, each of one distribution, so that the optimum is known."""
    rng = np.random.default_rng(5)
    X = np.zeros((n_docs, n_words))
    half_docs, half_words = n_docs // 2, n_words // 2
    lengths = rng.integers(20, 90, n_docs)[:, np.newaxis]
    X[:half_docs, :half_words] = lengths[:half_docs] * rng.dirichlet(np.ones(half_words))
    X[half_docs:, half_words:] = lengths[half_docs:] * rng.dirichlet(np.ones(n_words - half_words))
    return X


def factorable(seed, n_docs, n_words, K, tokens=1000.0):
    """Return X = theta phi times document lengths, exactly, with its positive theta and phi."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(K, 2.0), n_docs)
    phi = rng.dirichlet(np.full(n_words, 2.0), K)
    lengths = rng.uniform(0.5, 1.5, (n_docs, 1)) * tokens
    return lengths * (theta @ phi), (theta, phi)
