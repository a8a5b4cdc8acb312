"""Map of real data to the standard simplex and back (Shashanka 2009, section 3.2 and appendices A and B).

The matrix T of appendix A has W orthonormal columns that span the plane of the standard simplex with W + 1 corners. It
has shape (W + 1) x W, and every column sums to zero. T is built by halving. With n = W + 1 rows,

    n even: T_n = [T_h 0 1; 0 T_h -1], h = n / 2        n odd: T_n = [T_(n-1) 1; 0 -(n-1)]

and T_1 is empty; then every column is divided by its norm. Each column divides one block of rows into two parts and is
constant on each of them. T x is a sum of offsets, from all rows down to single rows, and T' y needs only sums of
blocks. Both take O(W) operations per vector, without storing T.

A point x (W numbers of any sign) is lifted to T x, whose W + 1 entries sum to zero, shifted until no entry is negative,
and divided by the sum that all points then have: p = (T x - shift) / scale. The map preserves ratios of distances and
mixtures with weights that sum to one.

For non-negative data there is a second map, with (x, -sum x) instead of T x. Its entries also sum to zero, so mixtures
are preserved, and the simplex is {x >= shift, sum x <= a bound}. If the shifts of the features are not negative, every
distribution is mapped back to a point without negative entries, so no topic model can find a corner with negative
entries.

References
----------
M. Shashanka (2009). Simplex decompositions for real-valued datasets. IEEE International Workshop on Machine Learning
for Signal Processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, row_blocks

_LIFT_NUMBERS_AT_ONCE = 1 << 18
_NUMBERS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class SimplexMap:
    """The map p = (T x - shift) / scale with scale = -sum(shift), so that every p sums to one.

    The map is exact for every x. p is a distribution if x lies in the simplex that `shift` and `scale` describe.

    Parameters
    ----------
    shift : ndarray of shape (W + 1,)
        Numbers that are subtracted from T x, all equal in the paper.
    non_negative : bool, default=False
        Whether the map uses (x, -sum x) instead of T x, so that distributions are mapped back to points whose entries
        are at least `shift`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.simplex import SimplexMap
    >>> points = np.array([[-1.0, 2], [3, 0], [1, 1]])
    >>> shares = SimplexMap.tight(points).to_simplex(points)
    >>> shares.shape, shares.sum(axis=1).round(6).tolist()
    ((3, 3), [1.0, 1.0, 1.0])
    """

    shift: Floats
    non_negative: bool = False

    @property
    def scale(self) -> float:
        """Sum of the entries of T x - shift."""
        return -float(self.shift.sum())

    @classmethod
    def of_paper(cls, X: Array) -> SimplexMap:
        """Return the map of the paper, which subtracts the smallest entry of all T x from every entry.

        Parameters
        ----------
        X : ndarray of shape (n_points, W)
            Points that the simplex has to contain.

        Returns
        -------
        SimplexMap
            The map.
        """
        least = float(_min_entries(X).min())
        return cls(np.full(X.shape[1] + 1, least if least < 0 else -1.0))

    @classmethod
    def of_orthant(cls, *clouds: Array) -> SimplexMap:
        """Return the map of non-negative points: p = (x - shift, bound - sum x) / scale.

        No distribution is mapped back to a point with negative entries. The shift of a feature is zero or, for data far
        from zero, the smallest value minus the range of the feature, so that topics can have lower values than points.

        Parameters
        ----------
        *clouds : ndarray of shape (n_points, W)
            Points that the simplex has to contain, without negative entries.

        Returns
        -------
        SimplexMap
            The map.
        """
        least = np.min([_min_entries(X, _with_sum) for X in clouds], axis=0)
        largest = -np.min([_min_entries(X, _with_negated_sum) for X in clouds], axis=0)
        shift, bound = np.maximum(2 * least - largest, 0), -float(least[-1])
        size = bound - float(shift[:-1].sum())
        margin = max(1e-6 * size, 1e-9 * bound)  # so that the last entry is not zero for all points
        shift[-1] = -bound - (margin if margin > 0 else 1.0)
        return cls(shift, non_negative=True)

    @classmethod
    def tight(cls, *clouds: Array) -> SimplexMap:
        """Return the map to the smallest simplex of this orientation around all points.

        The minimum of each entry of T x is subtracted from that entry. The map does not depend on the origin of the
        data, and of all maps it gives the distributions the most contrast.

        Parameters
        ----------
        *clouds : ndarray of shape (n_points, W)
            Points that the simplex has to contain.

        Returns
        -------
        SimplexMap
            The map.
        """
        least = np.min([_min_entries(X) for X in clouds], axis=0)
        size = -float(least.sum())
        margin = max(1e-6 * size, 1e-9 * float(np.abs(least).max()))  # so that no entry is zero for all points
        return cls(least - (margin if margin > 0 else 1.0))

    def to_simplex(self, X: Array) -> Floats:
        """Map points to the simplex.

        Parameters
        ----------
        X : ndarray of shape (n_points, W)
            Points.

        Returns
        -------
        ndarray of shape (n_points, W + 1)
            Rows that sum to one, with negative entries for points outside the simplex.
        """
        lifted = _with_sum(X) if self.non_negative else lift(X)
        lifted -= self.shift
        lifted /= self.scale
        return lifted

    def from_simplex(self, P: Array) -> Floats:
        """Map rows that sum to one back to points: T' (p scale + shift).

        Parameters
        ----------
        P : array-like of shape (n_points, W + 1)
            Rows that sum to one.

        Returns
        -------
        ndarray of shape (n_points, W)
            Points.
        """
        Y = np.asarray(P, dtype=np.float64) * self.scale + self.shift
        return np.ascontiguousarray(Y[:, :-1]) if self.non_negative else lower(Y)

    def nearest(self, P: Array) -> Floats:
        """Return the distributions of the nearest points in the simplex, by distance in the space of the data.

        Parameters
        ----------
        P : array-like of shape (n_points, W + 1)
            Mapped points: rows that sum to one, with entries of any sign.

        Returns
        -------
        ndarray of shape (n_points, W + 1)
            Non-negative rows that sum to one.
        """
        P = np.asarray(P, dtype=np.float64)
        if not self.non_negative:
            return project_to_simplex(P)  # the map preserves ratios of distances
        features = np.maximum(P[:, :-1], 0)
        beyond = features.sum(axis=1) > 1
        features[beyond] = project_to_simplex(P[beyond, :-1])
        return np.column_stack([features, np.maximum(1 - features.sum(axis=1), 0)])


def project_to_simplex(P: Array) -> Floats:
    """Return the nearest distribution to each row of P: max(p - level, 0) with one level per row."""
    P = np.asarray(P, dtype=np.float64)
    decreasing = -np.sort(-P, axis=1)
    levels = (np.cumsum(decreasing, axis=1) - 1) / np.arange(1, P.shape[1] + 1)
    last_positive = (decreasing > levels).sum(axis=1) - 1
    return np.maximum(P - np.take_along_axis(levels, last_positive[:, np.newaxis], axis=1), 0)


def lift(X: Array, *, normalized: bool = True) -> Floats:
    """Return T x of every row x of X, equation (6) of Shashanka (2009): rows with one more column that sum to zero."""
    X = _check_matrix(X)
    if X.shape[1] < 1:
        raise InputError("Points must have at least one dimension.")
    lifted = np.empty((X.shape[0], X.shape[1] + 1))
    for part in row_blocks(X.shape[0], X.shape[1], _LIFT_NUMBERS_AT_ONCE):
        _lift(X[part], lifted[part], normalized)
    return lifted


def lower(Y: Array, *, normalized: bool = True) -> Floats:
    """Return T' y of every row y of Y, equation (7) of Shashanka (2009), the inverse of `lift`.

    If the columns of T are not divided by their norms, its pseudo-inverse is used instead of T' (footnote 3 of the
    paper).
    """
    Y = _check_matrix(Y)
    if Y.shape[1] < 2:
        raise InputError("Points of the simplex must have at least two entries.")
    lowered = np.empty((Y.shape[0], Y.shape[1] - 1))
    for part in row_blocks(Y.shape[0], Y.shape[1], _LIFT_NUMBERS_AT_ONCE):
        _lower(Y[part], lowered[part], normalized)
    return lowered


class _Split(NamedTuple):
    """Columns of T that divide blocks of the same size into two halves, or into the last row and all rows before it."""

    rows: Array
    """First row of each block."""
    columns: Array
    """Column that divides each block."""
    size: int
    """Number of rows of a block."""
    body: int
    """Number of rows of the first part, where the column is positive."""


def _splits(n: int) -> Iterator[_Split]:
    """Yield the columns of T_n, from all rows down to single rows, in O(n) operations."""
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
    """Return the entries of a column on the first part of a block (positive) and on the second (negative)."""
    rest = -(split.body / (split.size - split.body))
    norm = np.sqrt(split.body + (split.size - split.body) * rest**2) if normalized else 1.0
    return 1.0 / norm, rest / norm


def _lift(X: Array, out: Floats, normalized: bool) -> None:
    """Compute T x by offsets, from all rows down: the offset of a part of a block is that of the block plus its own."""
    offsets = np.zeros((X.shape[0], 1))
    for split in _splits(X.shape[1] + 1):
        positive, negative = _signs(split, normalized=normalized)
        share = X[:, split.columns].astype(np.float64, copy=False)
        rest = offsets + negative * share
        offsets = offsets + positive * share
        if split.body == split.size - 1 and split.size > 2:  # odd size: the last row of each block is final
            out[:, split.rows + split.body] = rest
        else:
            offsets = np.stack([offsets, rest], axis=2).reshape(X.shape[0], -1)
            rows = np.stack([split.rows, split.rows + split.body], axis=1).ravel()
    out[:, rows] = offsets


def _lower(Y: Array, out: Floats, normalized: bool) -> None:
    """Compute T' y by sums of blocks, from the single rows up."""
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


def _with_sum(X: Array) -> Floats:
    """Return (x, -sum x) of every row x of X, which the map of non-negative data uses instead of T x."""
    X = _check_matrix(X).astype(np.float64, copy=False)
    return np.column_stack([X, -X.sum(axis=1)])


def _with_negated_sum(X: Array) -> Floats:
    return -_with_sum(X)


def _min_entries(X: Array, lifted: Callable[[Array], Floats] = lift) -> Floats:
    """Return the smallest value of each entry of T x, or of another lifted point, for a few rows at a time."""
    parts = [lifted(X[part]).min(axis=0) for part in row_blocks(X.shape[0], X.shape[1], _NUMBERS_AT_ONCE)]
    return np.asarray(np.min(parts, axis=0))


def _check_matrix(X: Array) -> Array:
    X = np.asarray(X)
    if X.ndim != 2:
        raise InputError(f"Points must be the rows of a matrix, got {X.ndim} dimensions.")
    return X
