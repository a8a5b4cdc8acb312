"""Losses with penalties of the factors, as NMF of scikit-learn has them.

The objective is loss(X, W H) + sum_d l1 |W_d| + l2 |W_d|^2 / 2 + sum_w l1' |H_w| + l2' |H_w|^2 / 2. A column of W and
the same row of H can be multiplied by c and 1 / c, which changes the penalties only; `best_scales` has the best c.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Counts, Floats, ReciprocalSums
from polyseme.losses.base import Loss, Powers, Zeros

_SCALE_STEPS = 25
"""Steps that find the best scale: each divides the error of its logarithm by at least three."""


@dataclass(frozen=True)
class Penalty:
    """Penalty of one factor: the sum of l1 f / s + l2 (f / s)^2 / 2 over its entries, where s is the scale of a column.

    scales : s of each column that is in use; without them, s is one.
    """

    l1: float
    l2: float
    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", tuple(self.scales))
        numbers = (self.l1, self.l2, *self.scales)
        if not all(isinstance(number, Real) and 0 <= number < np.inf for number in numbers):
            raise InputError("Penalty: l1, l2 and scales must be finite and not negative.")

    def slopes(self, width: int) -> tuple[Floats, Floats]:
        """Return l1 / s and l2 / s^2 of each column; a column of scale zero has no penalty, because it is zero."""
        scales = np.ones(width)
        scales[: len(self.scales)] = self.scales
        inverse = np.divide(1, scales, out=np.zeros(width), where=scales > 0)
        return self.l1 * inverse, self.l2 * inverse**2

    def values(self, factor: Array) -> Floats:
        """Return the penalty of each row of a factor."""
        first, second = self.slopes(factor.shape[1])
        wide = factor.astype(np.float64)
        return np.einsum("dk,k->d", wide, first) + np.einsum("dk,dk,k->d", wide, wide, second) / 2


class Penalties(NamedTuple):
    """Penalties of W and of H."""

    docs: Penalty
    words: Penalty


@dataclass(frozen=True)
class Penalized(Loss):
    """A loss and the penalties of W (`docs`) and H (`words`), which are not part of its values."""

    loss: Loss
    docs: Penalty
    words: Penalty

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def zeros(self) -> Zeros:
        return self.loss.zeros

    @property
    def powers(self) -> Powers:
        return self.loss.powers

    @property
    def is_convex(self) -> bool:
        return self.loss.is_convex

    @property
    def needs_positive(self) -> bool:
        return self.loss.needs_positive

    @property
    def compiled(self) -> type[ReciprocalSums] | None:
        return self.loss.compiled

    @property
    def first_stage(self) -> Loss | None:
        return self.loss.first_stage

    @property
    def next_stage(self) -> Loss | None:
        stage = self.loss.next_stage
        return None if stage is None else replace(self, loss=stage)

    @property
    def penalized(self) -> Penalized:
        return self

    def values(self, x: Array, q: Array) -> Array:
        return self.loss.values(x, q)

    def ratios(self, x: Array, q: Array) -> tuple[Array, Array]:
        return self.loss.ratios(x, q)

    def row_constants(self, x: Array) -> Floats | None:
        return self.loss.row_constants(x)

    def row_values(self, x: Array, q: Array, denominators: Array, constants: Floats | None) -> Floats:
        return self.loss.row_values(x, q, denominators, constants)

    def check_data(self, counts: Counts) -> None:
        self.loss.check_data(counts)

    def value(self, docs: Array, words: Array, weights: Floats | None) -> float:
        """Return the penalties of two factors, those of the documents with their weights."""
        rows = self.docs.values(docs)
        return float((rows if weights is None else weights * rows).sum() + self.words.values(words).sum())

    def best_scales(self, docs: Array, words: Array, weights: Floats | None) -> Floats:
        """Return c of each column for which docs * c and words / c have the smallest penalties, with the same product.

        With P = l1 sum W, P2 = l2 sum W^2 and likewise Q, Q2 for H, the penalties are P c + P2 c^2 / 2 + Q / c +
        Q2 / (2 c^2). In u = log c, the logarithm of (P c + P2 c^2) / (Q / c + Q2 / c^2) has a slope between 2 and 4,
        so that steps of a third of it converge to its root. c is zero if a column of a factor is zero.
        """
        first, second = _sums(docs, self.docs, weights)
        other, other_second = _sums(words, self.words, None)
        used = (first + second > 0) & (other + other_second > 0)
        first, second, other, other_second = (
            np.where(used, sums, 1.0) for sums in (first, second, other, other_second)
        )
        u = np.zeros(used.size)
        for _ in range(_SCALE_STEPS):
            u -= np.log(np.exp(2 * u) * (first + second * np.exp(u)) / (other + other_second * np.exp(-u))) / 3
        return np.where(used, np.exp(u), 0.0)


def _sums(factor: Array, penalty: Penalty, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return l1 sum f and l2 sum f^2 of each column, over the rows with their weights."""
    wide, rows = factor.astype(np.float64), np.ones(len(factor)) if weights is None else weights
    return penalty.l1 * np.einsum("d,dk->k", rows, wide), penalty.l2 * np.einsum("d,dk,dk->k", rows, wide, wide)
