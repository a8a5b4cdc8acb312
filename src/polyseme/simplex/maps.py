"""The matrix T of Shashanka (2009), Appendix A: W orthonormal vectors that span the plane of the standard W-simplex.

T is (W + 1) x W, and every column sums to zero. It is built by halving. With n = W + 1 rows,

    n even: T_n = [T_h 0 1; 0 T_h -1], h = n / 2        n odd: T_n = [T_(n-1) 1; 0 -(n-1)]

and T_1 is empty; then every column is divided by its norm. So a column divides one block of rows into two parts, on
each of which it is constant: T x is a sum of offsets from the whole down to the single rows, and T' y needs the sums
of the blocks alone: O(W) a vector, without T.

The map of real data to the standard simplex and back (Shashanka 2009, section 3.2 and Appendix B).

A point x (W numbers of any sign) is lifted to T x, whose W + 1 entries sum to zero, moved until no entry is negative,
and divided by the sum that all points then have: p = (T x - shift) / scale. Distances keep their ratios, and weights
that sum to one mix points alike before and after the map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats

_ROWS_AT_ONCE = 1 << 18


class _Split(NamedTuple):
    """Columns of T that divide blocks of one size, each into two halves or into a body and its last row."""

    rows: Array
    """the first row of each block"""
    columns: Array
    """the column that divides it"""
    size: int
    """rows of a block"""
    body: int
    """rows of the part that gets the positive sign"""


def _splits(n: int) -> Iterator[_Split]:
    """The columns of T_n from the whole to the single rows: O(n) in all."""
    rows, columns, size = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp), n
    while size > 1:
        if size % 2:
            yield _Split(rows, columns + size - 2, size, size - 1)
            size -= 1
        half = size // 2
        yield _Split(rows, columns + size - 2, size, half)
        rows = np.stack([rows, rows + half], axis=1).ravel()
        columns = np.stack([columns, columns + half - 1], axis=1).ravel()
        size = half


def _signs(split: _Split, *, normalized: bool) -> tuple[float, float]:
    """The entry of a column on its body, and (negative) on the rest."""
    rest = -(split.body / (split.size - split.body))
    norm = np.sqrt(split.body + (split.size - split.body) * rest**2) if normalized else 1.0
    return 1.0 / norm, rest / norm


def lift(X: Array, *, normalized: bool = True) -> Floats:
    """T x of every row x of X: points x W to points x (W + 1), rows that sum to zero. Equation (6)."""
    X = _matrix(X)
    if X.shape[1] < 1:
        raise InputError("Points must have at least one dimension.")
    lifted = np.empty((X.shape[0], X.shape[1] + 1))
    for part in _row_blocks(X):
        _lift(X[part], lifted[part], normalized)
    return lifted


def lower(Y: Array, *, normalized: bool = True) -> Floats:
    """T' y of every row y of Y: points x (W + 1) to points x W. Equation (7).

    For T without its normalization this is the pseudo-inverse of footnote 3, so that `lower` undoes `lift` either way.
    """
    Y = _matrix(Y)
    if Y.shape[1] < 2:
        raise InputError("Points of the simplex must have at least two entries.")
    lowered = np.empty((Y.shape[0], Y.shape[1] - 1))
    for part in _row_blocks(Y):
        _lower(Y[part], lowered[part], normalized)
    return lowered


def orthonormal_basis(n_features: int, *, normalized: bool = True) -> Floats:
    """T itself, (W + 1) x W, for reading and for tests: everything else uses its structure."""
    T = np.zeros((n_features + 1, n_features))
    for split in _splits(n_features + 1):
        positive, negative = _signs(split, normalized=normalized)
        for row, column in zip(split.rows, split.columns, strict=True):
            T[row : row + split.body, column] = positive
            T[row + split.body : row + split.size, column] = negative
    return T


def _lift(X: Array, out: Floats, normalized: bool) -> None:
    """Offsets from the whole down: every part of a block has its block's offset plus its own share."""
    offsets = np.zeros((X.shape[0], 1))
    for split in _splits(X.shape[1] + 1):
        positive, negative = _signs(split, normalized=normalized)
        share = X[:, split.columns].astype(np.float64, copy=False)
        rest = offsets + negative * share
        offsets = offsets + positive * share
        if split.body == split.size - 1 and split.size > 2:  # odd: the last row of each block is done
            out[:, split.rows + split.body] = rest
        else:
            offsets = np.stack([offsets, rest], axis=2).reshape(X.shape[0], -1)
            rows = np.stack([split.rows, split.rows + split.body], axis=1).ravel()
    out[:, rows] = offsets


def _lower(Y: Array, out: Floats, normalized: bool) -> None:
    """Sums of blocks from the single rows up."""
    splits = list(_splits(Y.shape[1]))
    last = splits[-1]
    rows = np.stack([last.rows, last.rows + last.body], axis=1).ravel()
    sums = Y[:, rows].astype(np.float64, copy=False)
    for split in reversed(splits):
        if split.body == split.size - 1 and split.size > 2:
            body, rest = sums, Y[:, split.rows + split.body]
        else:
            body, rest = sums[:, 0::2], sums[:, 1::2]
        positive, negative = _signs(split, normalized=normalized)
        column = positive * body + negative * rest
        if not normalized:  # pinv(T) = diag(1 / |column|^2) T'
            column /= split.body * positive**2 + (split.size - split.body) * negative**2
        out[:, split.columns] = column
        sums = body + rest


def _matrix(X: Array) -> Array:
    X = np.asarray(X)
    if X.ndim != 2:
        raise InputError(f"Points must be the rows of a matrix, got {X.ndim} dimensions.")
    return X


def _row_blocks(X: Array) -> Iterator[slice]:
    """Rows a few at a time, so that the work in between stays small."""
    step = max(1, _ROWS_AT_ONCE // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield slice(start, start + step)


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
