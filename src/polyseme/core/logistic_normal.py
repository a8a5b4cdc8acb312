"""Logistic-normal posteriors of documents' topic weights: their part of a bound, and steps that raise it.

eta_d ~ N(mu, Sigma), theta_d = softmax(eta_d), and q(eta_d) = N(lambda_d, diag(v_d)). With the expected counts n_dk of
a document of N tokens fixed, its part of the bound (Blei and Lafferty 2007, with the best zeta put in) is

    n . lambda - N log sum_k exp(lambda_k + v_k / 2) - KL(N(lambda, diag(v)) || N(mu, Sigma)),

concave in (lambda, v). All functions work on all documents at once; a document's result depends on it alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats, side_by_side, single_threaded_blas

_CG_STEPS, _HALVINGS, _VARIANCE_STEPS, _ROUNDS = 12, 12, 8, 1
_DOCS_AT_ONCE = 1024
_ROUNDING = 1e-14
_LEAST_VARIANCE = 1e-6
"""eigenvalues of Sigma are at least this: where all documents have the same weights, the best Sigma is zero"""


class Normal(NamedTuple):
    """The prior N(mu, Sigma)."""

    mean: Floats
    covariance: Floats
    precision: Floats
    log_det: float

    @classmethod
    def of(cls, mean: Floats, covariance: Floats) -> Normal:
        """Eigenvalues below the least are raised to it: the best covariance with that limit, if this was the best."""
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, _LEAST_VARIANCE)
        return cls(mean, (vectors * values) @ vectors.T, (vectors / values) @ vectors.T, float(np.log(values).sum()))


class Posterior(NamedTuple):
    """q(eta_d) of every document."""

    mean: Floats
    """lambda, documents x K"""
    variance: Floats
    """v, documents x K"""

    @property
    def weights(self) -> Floats:
        """softmax(lambda): the topic weights where q has its largest density."""
        return softmax(self.mean)


def softmax(numbers: Floats) -> Floats:
    """exp of the numbers, rows normalized (scipy's takes ten times as long for few documents)."""
    powers = np.exp(numbers - numbers.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fitted_normal(posterior: Posterior, weights: Floats, *, diagonal: bool) -> Normal:
    """The best prior for posteriors of documents that count so often: mean, and covariance v + deviations."""
    total = weights.sum()
    shares = (weights / total)[:, np.newaxis]
    mean = (shares * posterior.mean).sum(axis=0)
    apart = posterior.mean - mean
    own = (shares * posterior.variance).sum(axis=0)
    if diagonal:
        return Normal.of(mean, np.diag(own + (shares * apart**2).sum(axis=0)))
    with single_threaded_blas():
        covariance = apart.T @ (shares * apart)
    return Normal.of(mean, (covariance + covariance.T) / 2 + np.diag(own))


def divergence(posterior: Posterior, prior: Normal) -> Floats:
    """KL(q(eta_d) || N(mu, Sigma)) of every document."""
    apart = posterior.mean - prior.mean
    with single_threaded_blas():
        distance = np.einsum("dk,dk->d", apart @ prior.precision, apart)
    variance = posterior.variance
    spread = (variance * np.diag(prior.precision) - np.log(variance)).sum(axis=1)
    return 0.5 * (distance + spread + prior.log_det - len(prior.mean))


def log_normalizer(posterior: Posterior) -> Floats:
    """log sum_k exp(lambda_k + v_k / 2), which bounds E log sum_k exp(eta_k) from above."""
    numbers = posterior.mean + posterior.variance / 2
    largest = numbers.max(axis=1)
    return np.asarray(largest + np.log(np.exp(numbers - largest[:, np.newaxis]).sum(axis=1)))


def improved(posterior: Posterior, expected: Floats, totals: Floats, prior: Normal, *, n_threads: int = 1) -> Posterior:
    """Posteriors whose part of the bound, with these expected counts (documents x K), is higher or the same.

    Blocks of documents that fit the cache go side by side.
    """
    n_docs = len(totals)
    blocks = [slice(start, start + _DOCS_AT_ONCE) for start in range(0, n_docs, _DOCS_AT_ONCE)]
    better = Posterior(np.empty_like(posterior.mean), np.empty_like(posterior.variance))

    def one_block(block: slice) -> None:
        part = Posterior(posterior.mean[block], posterior.variance[block])
        for _ in range(_ROUNDS):
            part = Posterior(part.mean, _best_variance(part, totals[block], prior))
            part = _newton_step(part, expected[block], totals[block], prior)
        better.mean[block], better.variance[block] = part

    for _ in side_by_side(one_block, blocks, n_threads):
        pass
    return better


def _best_variance(posterior: Posterior, totals: Floats, prior: Normal) -> Floats:
    """The best v for the zeta that was best before: P_kk v + c v exp(v / 2) = 1 with c = N exp(lambda_k) / zeta.

    The left side is convex and rising; Newton's method from the right of the root stays there and converges. The root
    is at most 1 / P_kk and 1 / c, and at most 2 log(1 / c) if that is above 1.
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
    """A Newton step of lambda, by conjugate gradients, halved where it would lower the bound."""
    mean, N = posterior.mean, totals[:, np.newaxis]
    p = softmax(mean + posterior.variance / 2)
    slope = expected - N * p - (mean - prior.mean) @ prior.precision
    step = _solved(slope, p, N, prior.precision)
    value = _value(posterior, expected, totals, prior)
    least = value - _ROUNDING * np.abs(value)
    size = np.ones(len(mean))
    waiting = np.arange(len(mean))
    found = mean.copy()
    for _ in range(_HALVINGS):
        tried = mean[waiting] + size[waiting, np.newaxis] * step[waiting]
        at = Posterior(tried, posterior.variance[waiting])
        better = _value(at, expected[waiting], totals[waiting], prior) >= least[waiting]
        found[waiting[better]] = tried[better]
        waiting = waiting[~better]
        if not waiting.size:
            break
        size[waiting] /= 2
    return Posterior(found, posterior.variance)


def _solved(slope: Floats, p: Floats, N: Floats, precision: Floats) -> Floats:
    """(P + N (diag(p) - p p'))^-1 slope of every document, by preconditioned conjugate gradients.

    A product with the matrix is one with P, which all documents share, and a few with vectors: no document needs a
    K x K matrix of its own. A document rests when its residual is small.
    """
    preconditioner = np.diag(precision) + N * p
    x = np.zeros_like(slope)
    residual = slope.copy()
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
    """The part of the bound that depends on lambda, of each document."""
    apart = posterior.mean - prior.mean
    distance = np.einsum("dk,dk->d", apart @ prior.precision, apart)
    told = np.einsum("dk,dk->d", expected, posterior.mean)
    return np.asarray(told - totals * log_normalizer(posterior) - distance / 2)


def correlation(covariance: Floats) -> Floats:
    """The correlation matrix of eta_k less the mean of all eta, from the covariance of eta.

    softmax does not see a shift of all eta by the same amount, so neither do the data: covariances that differ by such
    shifts alone are one model, and have the same matrix here.
    """
    centered = covariance - covariance.mean(axis=0)
    centered = centered - centered.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.maximum(np.diag(centered), 1e-300))
    matrix = np.clip(centered / np.outer(spread, spread), -1, 1)
    np.fill_diagonal(matrix, 1)
    return np.asarray((matrix + matrix.T) / 2)


def least_weight(dtype: np.dtype[np.floating]) -> float:
    """What a weight is at least, so that a word is never without a topic: no weight is zero by this model."""
    return 1e-18 if dtype == np.float32 else 1e-200


def operand(posterior: Posterior, dtype: np.dtype[np.floating], width: int) -> tuple[Array, Floats]:
    """exp(lambda) as the kernel takes it (documents x width), each row divided by its largest, and its log."""
    largest = posterior.mean.max(axis=1)
    A = np.zeros((len(posterior.mean), width), dtype=dtype)
    A[:, : posterior.mean.shape[1]] = np.maximum(np.exp(posterior.mean - largest[:, np.newaxis]), least_weight(dtype))
    return A, largest
