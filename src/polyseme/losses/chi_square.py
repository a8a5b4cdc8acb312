"""Pearson's chi-square statistic as a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.kernels import Array
from polyseme.losses.base import Loss, Powers, Zeros


@dataclass(frozen=True)
class ChiSquare(Loss):
    """Pearson's chi-square statistic.

    (x - q)^2 / q = x^2 / q - 2 x + q, which Zhang, Ding and Tang mention with least squares and Kullback-Leibler.
    Neyman's form divides by x, which is zero for most words of a document. Pearson's form agrees with twice the
    Kullback-Leibler divergence up to the second order in x - q. x^2 / q is convex in q, and Jensen's inequality gives
    the update with the exponent 1/2, which never raises the loss. Sparse data are used as they are.

    Attributes
    ----------
    name : str
        "chi-square".
    """

    name = "chi-square"
    zeros = Zeros.LINEAR
    powers = Powers(0.0, 2.0)

    def values(self, x: Array, q: Array) -> Array:
        return np.asarray((x - q) ** 2 / q)

    def ratios(self, x: Array, q: Array) -> tuple[Array, Array]:
        return (x / q) ** 2, np.ones_like(q)
