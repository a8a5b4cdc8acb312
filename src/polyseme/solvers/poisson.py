"""Unnormalised factors, as KL-NMF keeps them: x_dw ~ Poisson(p), p = sum_k docs_dk words_wk.

With s_d = sum_w p_dw, log P(w|d) = log p - log s_d; and the Poisson likelihood is highest, over the documents' scales,
at s_d = n_d, where the two likelihoods differ by a constant. So PLSA's likelihood is the Poisson one with the scales
profiled out. Documents count with their weights v_d.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats, inner, weighted_sum
from polyseme.sources.memory import MemorySource


class Unnormalised(NamedTuple):
    """docs (documents x width) and words (words x width)."""

    docs: Array
    words: Array

    @property
    def theta(self) -> Array:
        """P(z|d) = docs_dk sum_w words_wk / s_d; a document without words has zeros."""
        theta = self.docs * column_sums(self.words).astype(self.docs.dtype)
        sums = theta.sum(axis=1, dtype=np.float64, keepdims=True)
        return np.divide(theta, sums, out=np.zeros_like(theta), where=sums > 0, casting="same_kind")

    @property
    def phi(self) -> Array:
        """P(w|z), words x width."""
        sums = column_sums(self.words)
        return (self.words / np.where(sums > 0, sums, 1)).astype(self.words.dtype)


def from_plsa(source: MemorySource, theta: Array, phi: Array) -> Unnormalised:
    """docs = n_d theta, words = phi: the scale at which s_d = n_d."""
    return Unnormalised(theta * source.totals[:, np.newaxis].astype(theta.dtype), phi)


def column_sums(factor: Array, weights: Floats | None = None) -> Floats:
    """sum over rows of weight * factor, in float64 (width numbers)."""
    if weights is None:
        return np.asarray(factor.sum(axis=0, dtype=np.float64))
    return weighted_sum(weights, factor)


def log_likelihood(source: MemorySource, log_sum: float, point: Unnormalised) -> float:
    """Mean log P(w|d) from log_sum = sum v x log p."""
    return (log_sum - _weighted(source, np.log(_filled_scales(source, point)))) / source.tokens


def poisson_objective(source: MemorySource, log_sum: float, point: Unnormalised) -> float:
    """The Poisson log-likelihood per token, shifted so that it equals `log_likelihood` where s_d = n_d."""
    scales = _filled_scales(source, point)
    totals = source.totals[source.weighted_totals > 0]
    return (log_sum - _weighted(source, np.log(totals) - 1 + scales / totals)) / source.tokens


def duality_gap(sums: Array, u: Floats, factor: Array, totals: Floats) -> Floats:
    """n log max_k(sums_k / u_k) - n + sum_k u_k factor_k of each row: what a better row of `factor` could gain.

    u has K numbers, or a row of them for each row of `factor`.
    """
    steepest = np.divide(sums, u, out=np.zeros(sums.shape), where=u > 0).max(axis=1)
    logs = np.log(steepest, out=np.zeros_like(steepest), where=steepest > 0)
    return np.asarray(totals * logs - totals + np.einsum("ik,k->i" if u.ndim == 1 else "ik,ik->i", factor, u))


def _filled_scales(source: MemorySource, point: Unnormalised) -> Floats:
    """s_d of the documents that have words and weight.

    In float64: rounding a topic's sum to float32 would shift the likelihood of all its documents alike, by more than
    late iterations gain, and whether an extrapolated point is kept would depend on the order of rounding.
    """
    scales = np.einsum("dk,k->d", point.docs, column_sums(point.words), dtype=np.float64)
    return np.asarray(scales[source.weighted_totals > 0])


def _weighted(source: MemorySource, values: Floats) -> float:
    return inner(source.weighted_totals[source.weighted_totals > 0], values)
