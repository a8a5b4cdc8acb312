"""Logistic-normal posteriors of topic weights: their terms of the variational bound, and updates that raise it.

eta_d ~ N(mu, Sigma), theta_d = softmax(eta_d), and q(eta_d) = N(lambda_d, diag(v_d)). For fixed expected counts n_dk of
a document of N tokens, its term of the bound (Blei and Lafferty 2007, with the optimal zeta inserted) is

    n . lambda - N log sum_k exp(lambda_k + v_k / 2) - KL(N(lambda, diag(v)) || N(mu, Sigma)),

which is concave in (lambda, v). Compiled code (rows/logistic_normal.hpp) updates v by Newton's method, then lambda by a
Newton step. The result of a document does not depend on the others.

References
----------
D. Blei and J. Lafferty (2007). A correlated topic model of Science. Annals of Applied Statistics 1(1), 17-35.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from polyseme import _kernels
from polyseme.core.fitted import DocumentWeights, GivenDocuments, NoLargeArrays, OwnPrior, StoredArray
from polyseme.core.fold_in import select_known_words
from polyseme.kernels import (
    Array,
    Floats,
    SparseCounts,
    Want,
    aligned_empty,
    check_topics,
    gram,
    padded,
    padded_width,
    single_threaded_blas,
    weighted_sum,
)

_FOLD_STEPS, _FOLD_TOLERANCE = 500, 1e-5
"""Most steps of a document in `LogisticNormalPosterior`, and the share of its weights that its last step may move."""
_MIN_VARIANCE, _MAX_VARIANCE = 1e-6, 1e4
"""Limits of the eigenvalues of Sigma.

If all documents have the same weights, the optimal Sigma is zero. If documents of many tokens have one topic each, eta
and Sigma grow without limit. Float64 cannot invert a Sigma that has tiny and huge eigenvalues, and the bound, computed
with a wrong inverse, would fall. Weights between exp(-41) and 1 cannot show a standard deviation above 100.
"""


class Normal(NamedTuple):
    """The prior N(mu, Sigma) of eta."""

    mean: Floats
    """mu, shape (K,)."""
    covariance: Floats
    """Sigma, K x K."""
    precision: Floats
    """Inverse of Sigma."""
    log_det: float
    """Log determinant of Sigma."""

    @classmethod
    def of(cls, mean: Floats, covariance: Floats) -> Normal:
        """Return the prior with the eigenvalues of `covariance` between `_MIN_VARIANCE` and `_MAX_VARIANCE`.

        If `covariance` is optimal, the result is optimal among covariances with these limits.
        """
        with single_threaded_blas():
            values, vectors = np.linalg.eigh(covariance)
            values = np.clip(values, _MIN_VARIANCE, _MAX_VARIANCE)
            restored, inverse = (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
        return cls(mean, restored, inverse, float(np.log(values).sum()))


class Posterior(NamedTuple):
    """Parameters of q(eta_d) = N(lambda_d, diag(v_d)) of every document."""

    mean: Floats
    """lambda, documents x K."""
    variance: Floats
    """v, documents x K."""

    @property
    def weights(self) -> Floats:
        """softmax(lambda), the topic weights at the mode of q."""
        return softmax(self.mean)


def softmax(numbers: Floats) -> Floats:
    """Return the softmax of every row. Ten times faster than scipy's for few documents."""
    powers = np.exp(numbers - numbers.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fit_normal(posterior: Posterior, weights: Floats, *, diagonal: bool, n_threads: int = 1) -> Normal:
    """Return the prior that maximizes the bound, for documents with these weights.

    The covariance is the mean of diag(v) plus the covariance of the posterior means.
    """
    K, shares = posterior.mean.shape[1], weights / weights.sum()
    mean = weighted_sum(shares, posterior.mean, n_threads=n_threads)
    own = weighted_sum(shares, posterior.variance, n_threads=n_threads)
    difference = aligned_empty((len(shares), padded_width(K)), np.float64)
    difference[:, K:] = 0
    np.subtract(posterior.mean, mean, out=difference[:, :K])
    covariance = gram(difference, shares, n_threads=n_threads)[:K, :K]
    if diagonal:
        return Normal.of(mean, np.diag(own + np.diag(covariance)))
    return Normal.of(mean, covariance + np.diag(own))


def operands(
    posterior: Posterior, totals: Floats, prior: Normal, dtype: np.dtype[np.floating], *, n_threads: int = 1
) -> tuple[Array, Floats]:
    """Return exp(lambda) divided by the maximum of each row (documents x width), and terms of the bound.

    The term of a document is N (max lambda - log sum_k exp(lambda_k + v_k / 2)) - KL(q(eta_d) || N(mu, Sigma)). Under
    this model no weight is zero, so an entry is at least 1e-18 (float64: 1e-200), and every word has a topic.
    """
    A = aligned_empty((len(totals), padded_width(prior.mean.size)), dtype)
    terms = np.empty(len(totals))
    _kernels.normal_operands(
        *posterior, totals, prior.mean, prior.precision, prior.log_det, A, terms, n_threads=n_threads
    )
    return A, terms


def improved(
    posterior: Posterior, A: Array, row_sums: Array, totals: Floats, prior: Normal, *, n_threads: int = 1
) -> Posterior:
    """Return updated posteriors that do not lower the bound for the expected counts A row_sums (documents x width)."""
    better = Posterior(np.empty_like(posterior.mean), np.empty_like(posterior.variance))
    _kernels.improve_normals(*posterior, A, row_sums, totals, prior.mean, prior.precision, *better, n_threads=n_threads)
    return better


def correlation(covariance: Floats) -> Floats:
    """Return the correlation matrix of eta_k minus the mean of all eta, given the covariance of eta.

    softmax is invariant to adding the same number to all eta. Covariances that differ only by such shifts describe the
    same model, and give the same correlation matrix.
    """
    centered = covariance - covariance.mean(axis=0)
    centered = centered - centered.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.maximum(np.diag(centered), 1e-300))
    matrix = np.clip(centered / np.outer(spread, spread), -1, 1)
    np.fill_diagonal(matrix, 1)
    return np.asarray((matrix + matrix.T) / 2)


@dataclass(frozen=True, eq=False)
class LogisticNormalPosterior(NoLargeArrays, OwnPrior):
    """Inference of the correlated topic model: q(eta_d) = N(lambda_d, diag(v_d)), with topics and prior fixed."""

    kind: ClassVar[str] = "logistic-normal"
    parameter_names: ClassVar[tuple[str, ...]] = ("mean", "variance")
    background: ClassVar[None] = None
    stored: ClassVar[Mapping[str, StoredArray]] = {"mean": StoredArray("K"), "covariance": StoredArray("KK")}
    stored_by_document: ClassVar[Mapping[str, StoredArray]] = {"mean": StoredArray("DK"), "variance": StoredArray("DK")}
    mean: Floats
    """mu, shape (K,)."""
    covariance: Floats
    """Sigma, K x K."""

    @cached_property
    def prior(self) -> Normal:
        """N(mu, Sigma) with its precision."""
        return Normal.of(self.mean, self.covariance)

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int,
        given: GivenDocuments | None = None,
    ) -> DocumentWeights:  # fmt: skip
        """Return the weights of every row: the softmax of lambda.

        lambda starts from the mean of the prior and is updated until a step moves at most 1e-5 of the weights. Words
        that have probability zero in all topics are ignored. A document without other words gets the mean of the prior
        and the diagonal covariance that is nearest to the prior; its bound is zero.
        """
        phi = padded(topic_word.T, topic_word.dtype)
        word_sums = phi.sum(axis=1)
        check_topics(word_sums)
        known: Array = word_sums > 0
        known_counts, unseen_tokens = select_known_words(counts, known)
        prior = self.prior
        totals = known_counts.totals
        variances = np.tile(1 / np.diag(prior.precision), (counts.n_docs, 1))
        posterior = Posterior(np.tile(prior.mean, (counts.n_docs, 1)), variances)
        _kernels.fold_normals(
            known_counts.indptr, known_counts.indices, known_counts.values, phi, *posterior, prior.mean,
            prior.precision, steps=_FOLD_STEPS, tol=_FOLD_TOLERANCE, n_threads=n_threads,
        )  # fmt: skip
        A, terms = operands(posterior, totals, prior, phi.dtype, n_threads=n_threads)
        parts = known_counts.sums(A, phi, Want.LOGS, n_threads=n_threads).logs + terms
        least = 1e-18 if topic_word.dtype == np.float32 else 1e-200  # no weight is zero: every word must have a topic
        return DocumentWeights(
            np.maximum(posterior.weights, least).astype(topic_word.dtype),
            np.zeros(counts.n_docs),
            known_counts,
            unseen_tokens,
            np.where(totals > 0, parts, 0.0),
            {"mean": posterior.mean, "variance": posterior.variance},
        )
