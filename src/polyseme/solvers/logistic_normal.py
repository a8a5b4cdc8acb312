"""Variational EM for the correlated topic model (Blei and Lafferty 2007).

Topic weights are theta_d = softmax(eta_d), eta_d ~ N(mu, Sigma). With
q(eta_d) = N(lambda_d, diag(v_d)) and the best q(z), the log evidence of the documents is at least

    sum_dw x log sum_k exp(lambda_dk) phi_kw
    - sum_d [n_d log sum_k exp(lambda_dk + v_dk / 2) + KL(q(eta_d) || N(mu, Sigma))].

Its first term is the log of the kernel at the operands exp(lambda) and phi. The sums of the kernel give the expected
counts. With these fixed, the bound separates into parts of phi and of each document, and every step increases its part.
mu and Sigma are then set to their optimum for the posteriors. Without the variances v, the joint maximum over weights
and Sigma would be unbounded.

References
----------
D. M. Blei and J. D. Lafferty. A correlated topic model of Science. Annals of Applied Statistics 1, 2007.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.core.logistic_normal import Normal, Posterior, fit_normal, improved, operands
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import Array, Floats, em_words
from polyseme.solvers.ascent import Ascent, EvaluatedPoint
from polyseme.solvers.dirichlet import BoundReport

_START_VARIANCE = 0.1
_LEAST_WEIGHT = 1e-3


class CorrelatedPoint(NamedTuple):
    """Parameters: posteriors of the documents, the prior, and phi (words x width)."""

    posterior: Posterior
    prior: Normal
    phi: Array


def correlated_start(
    corpus: MemoryCorpus, theta: Array, phi: Array, n_topics: int, *, diagonal: bool
) -> CorrelatedPoint:
    """Return a start from weights and topics (both padded): lambda = log theta, with mean zero in every document."""
    mean = np.log(np.maximum(theta[:, :n_topics].astype(np.float64), _LEAST_WEIGHT))
    mean -= mean.mean(axis=1, keepdims=True)
    posterior = Posterior(mean, np.full_like(mean, _START_VARIANCE))
    spread = Posterior(mean, np.ones_like(mean))
    prior = fit_normal(spread, _prior_weights(corpus), diagonal=diagonal, n_threads=corpus.n_threads)
    return CorrelatedPoint(posterior, prior, phi)


def _prior_weights(corpus: MemoryCorpus) -> Floats:
    """Return the weight of each document in the prior; zero for a document without words."""
    weights = np.ones(corpus.counts.n_docs) if corpus.weights is None else corpus.weights
    return np.asarray(np.where(corpus.totals > 0, weights, 0.0))


CorrelatedRun = Ascent[CorrelatedPoint]


def begin_correlated(corpus: MemoryCorpus, start: CorrelatedPoint, *, diagonal: bool) -> CorrelatedRun:
    """Start a fit of the correlated topic model."""
    return Ascent(_CorrelatedEvaluation(corpus, diagonal), start)


class _CorrelatedEvaluation:
    """Function that evaluates the points of a fit, one after the other. It has no extrapolation."""

    def __init__(self, corpus: MemoryCorpus, diagonal: bool) -> None:
        self._corpus, self._diagonal = corpus, diagonal
        self._weights = _prior_weights(corpus)

    def __call__(self, point: CorrelatedPoint) -> EvaluatedPoint[CorrelatedPoint]:
        """Return the bound at a point, and the step from there."""
        corpus, (posterior, prior, phi) = self._corpus, point
        totals, n_threads = corpus.totals, corpus.n_threads
        A, terms = operands(posterior, totals, prior, phi.dtype, n_threads=n_threads)
        swept = corpus.sums(A, phi)
        bound = float(((swept.logs + terms) * self._weights)[self._weights > 0].sum()) / corpus.tokens
        next_posterior = improved(posterior, A, swept.row_sums, totals, prior, n_threads=n_threads)
        ones = np.ones(phi.shape[1])
        next_phi, _ = em_words(phi, swept.word_sums, ones, corpus.word_totals, n_threads=n_threads)
        next_prior = fit_normal(next_posterior, self._weights, diagonal=self._diagonal, n_threads=n_threads)
        return EvaluatedPoint(point, BoundReport(bound), CorrelatedPoint(next_posterior, next_prior, next_phi))
