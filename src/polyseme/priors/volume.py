"""The prior that prefers topics of small volume, and its M-step.

The log density is -s V(F) with V(F) = 1/2 log det(W F F' + delta I), where F has the K topics as rows and W is the
number of words. Its M-step maximizes a function that is nowhere above the log density and equals it at the current
topics F0:

1. log det is concave, so log det G <= log det G0 + tr(M (G - G0)) with M = inverse of G0. What remains is a quadratic
   form sum_w f_w' M f_w in the K probabilities f_w of each word.
2. With M = P - N, the parts with positive and negative entries, f' P f <= sum_k (P f0)_k f_k^2 / f0_k, and
   f_k f_l >= f0_k f0_l (1 + log f_k / f0_k + log f_l / f0_l) for the entries of N.

So the negative part adds pseudo-counts b = f0 (N f0), and the positive part subtracts c f^2 / 2 with c = P f0 / f0:
every entry maximizes a log f - c f^2 / 2, and a multiplier makes each topic sum to one. Leplat, Gillis and Ang (2020)
use the same two bounds for the volume of factors without a constraint on sums.

References
----------
V. Leplat, N. Gillis and A. Ang (2020). Blind audio source separation with minimum-volume beta-divergence NMF. IEEE
Transactions on Signal Processing 68.

H. Jin et al. (2024). Accurate and sensitive mutational signature analysis with MuSiCal. Nature Genetics 56.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, single_threaded_blas
from polyseme.priors.base import TOPICS, WeightedPrior, check_finite

_SMALLEST = 1e-150
"""Probabilities below this are replaced by it in the bound, whose curvature is in proportion to 1 / f."""
_MEAN_SHARE = 1e-3
"""Share of the mean topic in the start."""
_ROUNDING = 4 * np.finfo(np.float64).eps
_MAX_STEPS = 200


@dataclass(frozen=True)
class MinimumVolume(WeightedPrior):
    """Prior on topics x words with log density -strength D / 2 log det(W F F' + delta I), for topics of small volume.

    F has the topics as rows, W is the number of words and D the number of documents. Where many simplices contain the
    documents equally well, the likelihood has a ridge and its maximum depends on the start. This prior chooses the
    smallest simplex. It needs no anchor words or pure documents, only documents near every face of the simplex.

    The likelihood of a document whose weights are uniformly distributed and whose words are many is, with the weights
    integrated out, in proportion to 1 / volume. Strength 1 is thus the prior of such documents; shorter documents
    say less about the volume. A fit along a ridge gains little per token: use a small `tol`.

    Parameters
    ----------
    strength : float, default=0.25
        Weight of the prior per document, at least zero. 0 is neutral.
    delta : float, default=0.1
        Keeps the volume of equal topics above zero, greater than zero. The scale is that of a uniform topic, which has
        the squared length 1.
    n_documents : float, default=1.0
        Number of documents D, set by the fit.

    References
    ----------
    - Leplat, V., Gillis, N., and Ang, A. (2020). Blind audio source separation with minimum-volume beta-divergence NMF.
      IEEE Transactions on Signal Processing 68.
    - Jin, H., et al. (2024). Accurate and sensitive mutational signature analysis with MuSiCal. Nature Genetics 56.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import MinimumVolume
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, topic_word_prior=MinimumVolume(), random_state=0, tol=0.1).fit(X)
    >>> model.components_.shape
    (2, 4)
    """

    acts_on: ClassVar[tuple[str, ...]] = (TOPICS,)
    starts_at_likelihood: ClassVar[bool] = True
    strength: float = 0.25
    delta: float = 0.1
    n_documents: float = field(default=1.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", check_finite("MinimumVolume", "delta", self.delta))
        if self.delta <= 0:
            raise InputError(f"MinimumVolume: delta must be greater than zero, got {self.delta:g}.")

    @property
    def monotone(self) -> bool:
        return True

    @property
    def concave(self) -> bool:
        return self.neutral

    def with_documents(self, n_documents: float) -> MinimumVolume:
        return replace(self, n_documents=n_documents)

    def adapt_start(self, factor: Floats) -> Floats:
        # A small share of the mean topic, because the M-step cannot increase a zero.
        return (1 - _MEAN_SHARE) * factor + _MEAN_SHARE * factor.mean(axis=0)

    def row_log_density(self, factor: Floats) -> Floats:
        log_det = np.linalg.slogdet(self._gram(factor))[1]
        return np.full(len(factor), -self.strength * self.n_documents / 2 * log_det / len(factor))

    def maximize(self, counts: Floats, factor: Floats) -> Floats:
        """Return the maximum of counts log f plus a lower bound of the log density, which equals it at `factor`.

        Parameters
        ----------
        counts : ndarray of shape (n_topics, n_words)
            Expected counts of the E-step in float64, at least zero.
        factor : ndarray of shape (n_topics, n_words)
            Current factor in float64.

        Returns
        -------
        ndarray of shape (n_topics, n_words)
            New factor; rows sum to one.
        """
        if self.neutral:
            return super().maximize(counts, factor)
        f = np.maximum(factor, _SMALLEST)
        weight = self.strength * self.n_documents * factor.shape[1]
        with single_threaded_blas():
            inverse = weight * np.linalg.inv(self._gram(factor))
            attraction, repulsion = np.maximum(-inverse, 0) @ f, np.maximum(inverse, 0) @ f
        return _constrained_rows(counts + f * attraction, repulsion / f, (factor > 0) | (counts > 0))

    def _gram(self, factor: Floats) -> Floats:
        with single_threaded_blas():
            return np.asarray(factor.shape[1] * (factor @ factor.T) + self.delta * np.eye(len(factor)))


def _constrained_rows(a: Floats, c: Floats, free: Array) -> Floats:
    """Return the rows f with the largest sum a log f - c f^2 / 2 that sum to one and are zero where they are not free.

    An entry is the positive root of a / f - c f = m. The sum of a row decreases in m, from at least one at
    -1 / sum (1 / c) to at most one at sum a. Newton's method solves 1 / sum = 1, which is linear in m for c = 0.
    """
    a, inverse_c = np.where(free, a, 0.0), np.where(free, 1 / c, 0.0)
    root_product = np.sqrt(a) * np.sqrt(c)
    low, high = -1 / inverse_c.sum(axis=1), a.sum(axis=1)
    m = high.copy()
    for _ in range(_MAX_STEPS):
        shift = m[:, np.newaxis]
        root = np.hypot(shift, 2 * root_product)
        f = np.where(
            shift >= 0,
            np.divide(2 * a, shift + root, out=np.zeros_like(a), where=shift + root > 0),
            (root - shift) / 2 * inverse_c,
        )
        sums = f.sum(axis=1)
        above = sums > 1
        low, high = np.where(above, m, low), np.where(above, high, m)
        if (np.abs(sums - 1) <= _ROUNDING).all():
            break
        slope = np.divide(f, root, out=np.zeros_like(a), where=root > 0).sum(axis=1)
        step = np.divide((sums - 1) * sums, slope, out=np.full_like(m, np.inf), where=slope > 0)
        m = np.where((m + step > low) & (m + step < high), m + step, low + (high - low) / 2)
    return np.asarray(f / f.sum(axis=1, keepdims=True))
