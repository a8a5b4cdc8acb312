"""The map of real data to the standard simplex and back (Shashanka 2009, section 3.2 and Appendix B).

A point x (W numbers of any sign) is lifted to T x, whose W + 1 entries sum to zero, moved until no entry is negative,
and divided by the sum that all points then have: p = (T x - shift) / scale. Distances keep their ratios, and weights
that sum to one mix points alike before and after the map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.kernels import Array, Floats
from polyseme.simplex.basis import lift, lower

_NUMBERS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class SimplexMap:
    """p = (T x - shift) / scale, with scale = -sum(shift), so that every p sums to one.

    The map is exact for every x; p is a distribution if x lies in the simplex that `shift` and `scale` describe.
    """

    shift: Floats
    """W + 1 numbers; all equal in the paper"""

    @property
    def scale(self) -> float:
        return -float(self.shift.sum())

    @classmethod
    def of_paper(cls, X: Array) -> SimplexMap:
        """The paper's: one number, the smallest entry of all T x, is subtracted everywhere."""
        least = float(_least_entries(X).min())
        return cls(np.full(X.shape[1] + 1, least if least < 0 else -1.0))

    @classmethod
    def tight(cls, *clouds: Array) -> SimplexMap:
        """The smallest simplex of this orientation around all the points given: each entry's own minimum is subtracted.

        It does not depend on where the data's origin is, and of all maps it leaves the most contrast.
        """
        least = np.min([_least_entries(X) for X in clouds], axis=0)
        room = -float(least.sum())
        floor = max(1e-6 * room, 1e-9 * float(np.abs(least).max()))  # no entry that is zero in all points
        return cls(least - (floor if floor > 0 else 1.0))

    def to_simplex(self, X: Array) -> Floats:
        """points x W to points x (W + 1), rows that sum to one; negative entries where x lies outside the simplex."""
        lifted = lift(X)
        lifted -= self.shift
        lifted /= self.scale
        return lifted

    def from_simplex(self, P: Array) -> Floats:
        """The way back, for any rows that sum to one: T' (p scale + shift)."""
        return lower(np.asarray(P, dtype=np.float64) * self.scale + self.shift)


def onto_simplex(P: Array) -> Floats:
    """The nearest distribution to each row of P, which sums to one: max(p - level, 0), each row with its own level.

    Since the map keeps the ratios of distances, it is the nearest for the data, too.
    """
    P = np.asarray(P, dtype=np.float64)
    falling = -np.sort(-P, axis=1)
    levels = (np.cumsum(falling, axis=1) - 1) / np.arange(1, P.shape[1] + 1)
    kept = (falling > levels).sum(axis=1) - 1
    return np.maximum(P - np.take_along_axis(levels, kept[:, np.newaxis], axis=1), 0)


def _least_entries(X: Array) -> Floats:
    """The smallest value of each entry of T x, a few rows at a time."""
    step = max(1, _NUMBERS_AT_ONCE // X.shape[1])
    parts = [lift(X[start : start + step]).min(axis=0) for start in range(0, len(X), step)]
    return np.asarray(np.min(parts, axis=0))
