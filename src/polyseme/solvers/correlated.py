"""Variational EM for the correlated topic model (Blei and Lafferty 2007) on the shared kernel.

Topic weights are theta_d = softmax(eta_d), eta_d ~ N(mu, Sigma). With q(eta_d) = N(lambda_d, diag(v_d)) and the best
q(z), the log evidence of the documents is at least

    sum_dw x log sum_k exp(lambda_dk) phi_kw
    - sum_d [n_d log sum_k exp(lambda_dk + v_dk / 2) + KL(q(eta_d) || N(mu, Sigma))],

whose first term is the kernel's log at the operands exp(lambda), phi. The kernel's sums give the expected counts; with
them fixed, phi and each document have parts of the bound of their own, and every step below raises its part. mu and
Sigma are then the best for the posteriors. The variances v are what keeps this from the joint maximum over weights and
Sigma, which is unbounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats, SparseCounts, check_topics, em_words
from polyseme.logistic_normal import (
    Normal,
    Posterior,
    divergence,
    fitted_normal,
    improved,
    log_normaliser,
    operand,
)
from polyseme.solvers.folding import without_words
from polyseme.solvers.variational import BoundReport
from polyseme.sources.memory import MemorySource

_FOLD_STEPS, _FOLD_TOLERANCE = 500, 1e-5
_START_VARIANCE = 0.1
_LEAST_WEIGHT = 1e-3


class CorrelatedPoint(NamedTuple):
    """Posteriors of the documents, the prior, and phi (words x width)."""

    posterior: Posterior
    prior: Normal
    phi: Array


def start_point(source: MemorySource, theta: Array, phi: Array, n_topics: int, *, diagonal: bool) -> CorrelatedPoint:
    """From weights and topics (both padded): lambda = log theta, with mean zero in every document."""
    mean = np.log(np.maximum(theta[:, :n_topics].astype(np.float64), _LEAST_WEIGHT))
    mean -= mean.mean(axis=1, keepdims=True)
    posterior = Posterior(mean, np.full_like(mean, _START_VARIANCE))
    spread = Posterior(mean, np.ones_like(mean))
    return CorrelatedPoint(posterior, fitted_normal(spread, counted(source), diagonal=diagonal), phi)


def counted(source: MemorySource) -> Floats:
    """How often each document counts for the prior: its weight; one without words says nothing."""
    weights = np.ones(source.counts.n_docs) if source.weights is None else source.weights
    return np.asarray(np.where(source.totals > 0, weights, 0.0))


class CorrelatedRun:
    """`point` is what the report describes."""

    exhausted = False

    def __init__(self, source: MemorySource, start: CorrelatedPoint, *, diagonal: bool) -> None:
        self._source, self._diagonal = source, diagonal
        self._counted = counted(source)
        bound, self._step = self._look(start)
        self.point = start
        self.report = BoundReport(bound / source.tokens, float("inf"))

    def advance(self) -> None:
        point = self._step
        bound, step = self._look(point)
        value = bound / self._source.tokens
        self.point, self._step = point, step
        self.report = BoundReport(value, value - self.report.bound)

    def _look(self, point: CorrelatedPoint) -> tuple[float, CorrelatedPoint]:
        """The bound at a point, and the step from there."""
        source, (posterior, prior, phi) = self._source, point
        A, largest = operand(posterior, phi.dtype, phi.shape[1])
        swept = source.sweep(A, phi)
        assert swept.row_sums is not None
        assert swept.word_sums is not None
        assert swept.logs is not None
        parts = swept.logs + source.totals * (largest - log_normaliser(posterior)) - divergence(posterior, prior)
        bound = float((parts * self._counted)[self._counted > 0].sum())
        K = prior.mean.size
        expected = np.multiply(A[:, :K], swept.row_sums[:, :K], dtype=np.float64)
        next_posterior = improved(posterior, expected, source.totals, prior, n_threads=source.n_threads)
        ones = np.ones(phi.shape[1])
        next_phi, _ = em_words(phi, swept.word_sums, ones, source.word_totals, n_threads=source.n_threads)
        next_prior = fitted_normal(next_posterior, self._counted, diagonal=self._diagonal)
        return bound, CorrelatedPoint(next_posterior, next_prior, next_phi)


class Inferred(NamedTuple):
    """q(eta) of documents with topics and prior fixed."""

    posterior: Posterior
    bounds: Floats
    """each document's part of the bound; zero for one without known words"""


def infer(counts: SparseCounts, phi: Array, prior: Normal, *, n_threads: int) -> Inferred:
    """Posteriors of every document from the prior's mean, each until a step moves at most 1e-5 of its weights.

    phi is words x width; words that no topic has are left out. A document without others gets the prior's mean and, of
    diagonal posteriors, the one nearest to the prior.
    """
    word_sums = phi.sum(axis=1)
    check_topics(word_sums)
    known: Array = word_sums > 0
    kept, _ = without_words(counts, known)
    K, totals = prior.mean.size, kept.totals
    variances = np.tile(1 / np.diag(prior.precision), (counts.n_docs, 1))
    posterior = Posterior(np.tile(prior.mean, (counts.n_docs, 1)), variances)
    rows = np.flatnonzero(totals > 0)
    part = kept
    part_rows = np.arange(counts.n_docs)
    for _ in range(_FOLD_STEPS):
        if not rows.size:
            break
        if 2 * rows.size < part_rows.size:
            part, part_rows = kept.take(rows), rows
        here = Posterior(posterior.mean[part_rows], posterior.variance[part_rows])
        A, _ = operand(here, phi.dtype, phi.shape[1])
        row_sums = part.sweep(A, phi, n_threads=n_threads, words=False, logs=False).row_sums
        assert row_sums is not None
        expected = np.multiply(A[:, :K], row_sums[:, :K], dtype=np.float64)
        better = improved(here, expected, totals[part_rows], prior, n_threads=n_threads)
        moved = np.abs(better.weights - here.weights).sum(axis=1) / 2
        changing = np.isin(part_rows, rows)
        posterior.mean[part_rows[changing]] = better.mean[changing]
        posterior.variance[part_rows[changing]] = better.variance[changing]
        rows = part_rows[changing & (moved > _FOLD_TOLERANCE)]
    A, largest = operand(posterior, phi.dtype, phi.shape[1])
    logs = kept.sweep(A, phi, n_threads=n_threads, rows=False, words=False).logs
    assert logs is not None
    parts = logs + totals * (largest - log_normaliser(posterior)) - divergence(posterior, prior)
    return Inferred(posterior, np.where(totals > 0, parts, 0.0))
