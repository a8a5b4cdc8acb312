"""Logistic-normal posteriors of topic weights: their terms of the variational bound, and updates that raise it.

eta_d ~ N(mu, Sigma), theta_d = softmax(eta_d), and q(eta_d) = N(lambda_d, diag(v_d)). For fixed expected counts n_dk of
a document of N tokens, its term of the bound (Blei and Lafferty 2007, with the optimal zeta inserted) is

    n . lambda - N log sum_k exp(lambda_k + v_k / 2) - KL(N(lambda, diag(v)) || N(mu, Sigma)),

which is concave in (lambda, v). All functions are vectorized over documents; the result of a document does not depend
on the others.

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

from polyseme.core.fitted import DocumentWeights, GivenDocuments, NoLargeArrays, StoredArray, mean_operands
from polyseme.core.fold_in import select_known_words
from polyseme.kernels import (
    Array,
    Floats,
    SparseCounts,
    Want,
    check_topics,
    map_in_threads,
    padded,
    row_blocks,
    single_threaded_blas,
)

_CG_STEPS, _MAX_HALVINGS, _VARIANCE_STEPS = 12, 12, 8
_DOCS_AT_ONCE = 1024
"""Documents updated at a time by a thread, so that their arrays fit the cache."""
_ROUNDING = 1e-14
"""Relative decrease of the bound that counts as rounding error."""
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
        values, vectors = np.linalg.eigh(covariance)
        values = np.clip(values, _MIN_VARIANCE, _MAX_VARIANCE)
        return cls(mean, (vectors * values) @ vectors.T, (vectors / values) @ vectors.T, float(np.log(values).sum()))


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


def fit_normal(posterior: Posterior, weights: Floats, *, diagonal: bool) -> Normal:
    """Return the prior that maximizes the bound, for documents with these weights.

    The covariance is the mean of diag(v) plus the covariance of the posterior means.
    """
    total = weights.sum()
    shares = (weights / total)[:, np.newaxis]
    mean = (shares * posterior.mean).sum(axis=0)
    difference = posterior.mean - mean
    own = (shares * posterior.variance).sum(axis=0)
    if diagonal:
        return Normal.of(mean, np.diag(own + (shares * difference**2).sum(axis=0)))
    with single_threaded_blas():
        covariance = difference.T @ (shares * difference)
    return Normal.of(mean, (covariance + covariance.T) / 2 + np.diag(own))


def divergence(posterior: Posterior, prior: Normal) -> Floats:
    """Return KL(q(eta_d) || N(mu, Sigma)) of every document."""
    difference = posterior.mean - prior.mean
    with single_threaded_blas():
        distance = np.einsum("dk,dk->d", difference @ prior.precision, difference)
    variance = posterior.variance
    spread = (variance * np.diag(prior.precision) - np.log(variance)).sum(axis=1)
    return 0.5 * (distance + spread + prior.log_det - len(prior.mean))


def log_normalizer(posterior: Posterior) -> Floats:
    """Return log sum_k exp(lambda_k + v_k / 2), an upper bound of E log sum_k exp(eta_k)."""
    numbers = posterior.mean + posterior.variance / 2
    largest = numbers.max(axis=1)
    return np.asarray(largest + np.log(np.exp(numbers - largest[:, np.newaxis]).sum(axis=1)))


def improved(posterior: Posterior, expected: Floats, totals: Floats, prior: Normal, *, n_threads: int = 1) -> Posterior:
    """Return updated posteriors that do not lower the bound for these expected counts (documents x K).

    Threads update blocks of documents in parallel. Expected counts are scaled to sum to `totals`: rounded float32 sums
    of many tokens can miss it by a token, and adding a large number to all eta would then seem to raise the bound.
    """
    n_docs = len(totals)
    sums = expected.sum(axis=1)
    expected = expected * np.divide(totals, sums, out=np.ones(n_docs), where=sums > 0)[:, np.newaxis]
    blocks = row_blocks(n_docs, 1, _DOCS_AT_ONCE)
    better = Posterior(np.empty_like(posterior.mean), np.empty_like(posterior.variance))

    def one_block(block: slice) -> None:
        part = Posterior(posterior.mean[block], posterior.variance[block])
        part = Posterior(part.mean, _best_variance(part, totals[block], prior))
        part = _newton_step(part, expected[block], totals[block], prior)
        better.mean[block], better.variance[block] = part

    for _ in map_in_threads(one_block, blocks, n_threads):
        pass
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


def min_weight(dtype: np.dtype[np.floating]) -> float:
    """Return the lower limit of a weight. Under this model no weight is zero, so every word must have a topic."""
    return 1e-18 if dtype == np.float32 else 1e-200


def operand(posterior: Posterior, dtype: np.dtype[np.floating], width: int) -> tuple[Array, Floats]:
    """Return exp(lambda) divided by the maximum of each row (documents x width), and the log of that maximum."""
    largest = posterior.mean.max(axis=1)
    A = np.zeros((len(posterior.mean), width), dtype=dtype)
    A[:, : posterior.mean.shape[1]] = np.maximum(np.exp(posterior.mean - largest[:, np.newaxis]), min_weight(dtype))
    return A, largest


@dataclass(frozen=True, eq=False)
class LogisticNormalPosterior(NoLargeArrays):
    """Inference of the correlated topic model: q(eta_d) = N(lambda_d, diag(v_d)), with topics and prior fixed."""

    kind: ClassVar[str] = "logistic-normal"
    is_likelihood: ClassVar[bool] = True
    has_prior_mean: ClassVar[bool] = True
    has_one_maximum: ClassVar[bool] = True
    learns_prior: ClassVar[bool] = False
    parameter_names: ClassVar[tuple[str, ...]] = ("mean", "variance")
    temperature: ClassVar[float] = 1.0
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
        K, totals = prior.mean.size, known_counts.totals
        variances = np.tile(1 / np.diag(prior.precision), (counts.n_docs, 1))
        posterior = Posterior(np.tile(prior.mean, (counts.n_docs, 1)), variances)
        rows = np.flatnonzero(totals > 0)
        part = known_counts
        part_rows = np.arange(counts.n_docs)
        for _ in range(_FOLD_STEPS):
            if not rows.size:
                break
            if 2 * rows.size < part_rows.size:
                part, part_rows = known_counts.take(rows), rows
            current = Posterior(posterior.mean[part_rows], posterior.variance[part_rows])
            A, _ = operand(current, phi.dtype, phi.shape[1])
            row_sums = part.sums(A, phi, Want.ROWS, n_threads=n_threads).row_sums
            expected = np.multiply(A[:, :K], row_sums[:, :K], dtype=np.float64)
            better = improved(current, expected, totals[part_rows], prior, n_threads=n_threads)
            moved = np.abs(better.weights - current.weights).sum(axis=1) / 2
            changing = np.isin(part_rows, rows)
            posterior.mean[part_rows[changing]] = better.mean[changing]
            posterior.variance[part_rows[changing]] = better.variance[changing]
            rows = part_rows[changing & (moved > _FOLD_TOLERANCE)]
        A, row_max = operand(posterior, phi.dtype, phi.shape[1])
        logs = known_counts.sums(A, phi, Want.LOGS, n_threads=n_threads).logs
        parts = logs + totals * (row_max - log_normalizer(posterior)) - divergence(posterior, prior)
        return DocumentWeights(
            np.maximum(posterior.weights, min_weight(topic_word.dtype)).astype(topic_word.dtype),
            np.zeros(counts.n_docs),
            known_counts,
            unseen_tokens,
            np.where(totals > 0, parts, 0.0),
            {"mean": posterior.mean, "variance": posterior.variance},
        )

    def operands(self, weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
        return mean_operands(weights, topic_word)


def _best_variance(posterior: Posterior, totals: Floats, prior: Normal) -> Floats:
    """Return the optimal v for the current zeta.

    It is the root of P_kk v + c v exp(v / 2) = 1 with the prior's precision P and c = N exp(lambda_k) / zeta.

    The left side is convex and increasing, so Newton's method converges from the right of the root. The root is at most
    1 / P_kk and 1 / c, and at most 2 log(1 / c) if that is above 1.
    """
    precision = np.diag(prior.precision)
    c = totals[:, np.newaxis] * np.exp(posterior.mean - log_normalizer(posterior)[:, np.newaxis])
    c = np.maximum(c, 1e-300)
    v = np.minimum(1 / np.maximum(precision, c), np.maximum(1, -2 * np.log(c)))
    for _ in range(_VARIANCE_STEPS):
        grown = c * np.exp(v / 2)
        v = v - (precision * v + grown * v - 1) / (precision + grown * (1 + v / 2))
    return v


def _newton_step(posterior: Posterior, expected: Floats, totals: Floats, prior: Normal) -> Posterior:
    """Take a Newton step of lambda by conjugate gradients, halved for documents whose bound it would lower."""
    mean, N = posterior.mean, totals[:, np.newaxis]
    p = softmax(mean + posterior.variance / 2)
    gradient = expected - N * p - (mean - prior.mean) @ prior.precision
    step = _solve_newton(gradient, p, N, prior.precision)
    value = _value(posterior, expected, totals, prior)
    least = value - _ROUNDING * np.abs(value)
    size = np.ones(len(mean))
    waiting = np.arange(len(mean))
    found = mean.copy()
    for _ in range(_MAX_HALVINGS):
        tried = mean[waiting] + size[waiting, np.newaxis] * step[waiting]
        at = Posterior(tried, posterior.variance[waiting])
        better = _value(at, expected[waiting], totals[waiting], prior) >= least[waiting]
        found[waiting[better]] = tried[better]
        waiting = waiting[~better]
        if not waiting.size:
            break
        size[waiting] /= 2
    return Posterior(found, posterior.variance)


def _solve_newton(gradient: Floats, p: Floats, N: Floats, precision: Floats) -> Floats:
    """Return (P + N (diag(p) - p p'))^-1 gradient of every document, by preconditioned conjugate gradients.

    A product with this matrix needs one product with P, which all documents share, and products of vectors. So no
    document needs its own K x K matrix. A document stops when its residual is small.
    """
    preconditioner = np.diag(precision) + N * p
    x = np.zeros_like(gradient)
    residual = gradient.copy()
    z = residual / preconditioner
    direction = z.copy()
    rz = np.einsum("dk,dk->d", residual, z)
    small = 1e-16 * rz
    for _ in range(_CG_STEPS):
        product = direction @ precision + N * p * (direction - np.einsum("dk,dk->d", p, direction)[:, np.newaxis])
        curvature = np.einsum("dk,dk->d", direction, product)
        moving = (rz > small) & (curvature > 0)
        if not moving.any():
            break
        length = np.divide(rz, curvature, out=np.zeros_like(rz), where=moving)[:, np.newaxis]
        x += length * direction
        residual -= length * product
        z = residual / preconditioner
        new = np.einsum("dk,dk->d", residual, z)
        turn = np.divide(new, rz, out=np.zeros_like(rz), where=moving)
        direction = z + turn[:, np.newaxis] * direction
        rz = np.where(moving, new, rz)
    return x


def _value(posterior: Posterior, expected: Floats, totals: Floats, prior: Normal) -> Floats:
    """Return the part of the bound of each document that depends on lambda."""
    difference = posterior.mean - prior.mean
    distance = np.einsum("dk,dk->d", difference @ prior.precision, difference)
    linear = np.einsum("dk,dk->d", expected, posterior.mean)
    return np.asarray(linear - totals * log_normalizer(posterior) - distance / 2)
