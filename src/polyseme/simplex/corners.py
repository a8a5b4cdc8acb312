"""Corners of a cloud of points: farthest points, and the smallest simplex in the plane of the data.

Everything happens in the plane that fits the points best, K - 1 dimensions for K corners: it is where the corners lie,
and noise in all other directions is left behind. The cost is linear in the points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats, single_threaded_blas, weighted_sum
from polyseme.simplex.volume import barycentric, smallest_simplex

ENOUGH_POINTS = 20_000
"""a soft margin is a share of the points, and so many evenly spaced ones tell it well enough"""
_NUMBERS_AT_ONCE = 1 << 20
_DIRECT = 1 << 21
_FLAT = 1e-7


class Plane(NamedTuple):
    """The affine plane that fits points best: origin + coordinates @ directions."""

    origin: Floats
    """W numbers"""
    directions: Floats
    """rank x W, orthonormal rows"""

    @classmethod
    def of(cls, X: Array, weights: Floats, n_dimensions: int) -> Plane:
        """By weighted principal components; fewer dimensions if the points have fewer."""
        origin = weighted_sum(weights, X) / weights.sum()
        with single_threaded_blas():
            lengths, directions = _principal(X, origin, np.sqrt(weights))
        kept = lengths[:n_dimensions] > _FLAT * max(float(lengths[0]), 1e-9 * float(np.abs(origin).max()))
        return cls(origin, directions[:n_dimensions][kept])

    def coordinates(self, X: Array) -> Floats:
        """points x rank"""
        blocks = [np.einsum("dw,rw->dr", block - self.origin, self.directions) for block in _row_blocks(X)]
        return np.concatenate(blocks)

    def points(self, coordinates: Array) -> Floats:
        return np.asarray(self.origin + np.einsum("dr,rw->dw", coordinates, self.directions))


def farthest_corners(X: Array, n_corners: int, weights: Floats) -> Floats:
    """Corners (K x W) that are points of the data, seen in its plane: see `farthest_points`."""
    plane = Plane.of(X, weights, n_corners - 1)
    y = plane.coordinates(X)
    return plane.points(_with_centre(y[farthest_points(y, n_corners)], n_corners))


def minimum_volume_corners(X: Array, n_corners: int, weights: Floats, margin: float) -> Floats:
    """Corners (K x W) of the smallest simplex, in the data's plane, that leaves at most `margin` beyond a face.

    Points of fewer than K - 1 dimensions have a simplex of fewer corners; the others are farthest points, or the centre
    where those are too few. Without a margin no point of X is left out. With one, `ENOUGH_POINTS` of
    X decide.
    """
    plane = Plane.of(X, weights, n_corners - 1)
    y = plane.coordinates(X)
    rank = y.shape[1]
    few = np.unique(np.linspace(0, len(y) - 1, min(len(y), ENOUGH_POINTS)).astype(np.intp))
    while True:
        chosen, place = np.unique(y[few], axis=0, return_inverse=True)  # a row twice is a row of weight two
        mass = np.bincount(place.ravel(), weights[few]).astype(np.float64)
        spread = np.sqrt(weighted_sum(mass, chosen**2) / mass.sum())
        views = (chosen, chosen / np.where(spread > 0, spread, 1))  # as it is, and with all axes alike
        starts = [chosen[farthest_points(view, rank + 1)] for view in views]
        with single_threaded_blas():
            corners = smallest_simplex(chosen, starts, margin, mass).corners
            missed = np.flatnonzero((barycentric(y, corners) < -_FLAT).any(axis=1)) if margin == 0 else few[:0]
        if not np.setdiff1d(missed, few).size:
            break
        few = np.union1d(few, missed)
    if rank + 1 < n_corners:
        corners = np.concatenate([corners, y[farthest_points(y, n_corners)[rank + 1 :]]])
    return plane.points(_with_centre(corners, n_corners))


def _with_centre(corners: Floats, n_corners: int) -> Floats:
    """As many corners as asked for: those missing are the centre of the points."""
    return np.concatenate([corners, np.zeros((n_corners - len(corners), corners.shape[1]))])


def farthest_points(y: Floats, n_corners: int) -> Array:
    """Indices of points that span a cloud: the farthest from the origin, then each the farthest from the plane so far.

    When every point lies in that plane (more corners than dimensions), the farthest from the points chosen so far; when
    these are all the points there are, fewer than asked for.
    """
    squares = _squares(y)
    flat = _FLAT**2 * float(squares.max(initial=0.0))
    chosen = [int(squares.argmax())]
    rest = y - y[chosen[0]]
    nearest = _squares(rest)
    while len(chosen) < n_corners:
        squares = _squares(rest)
        new = int(squares.argmax())
        if squares[new] > flat:
            direction = rest[new] / np.sqrt(squares[new])
            rest = rest - np.einsum("dr,r->d", rest, direction)[:, np.newaxis] * direction
        else:
            new = int(nearest.argmax())
            if nearest[new] <= flat:
                break
        chosen.append(new)
        nearest = np.minimum(nearest, _squares(y - y[new]))
    return np.array(chosen)


def _principal(X: Array, origin: Floats, roots: Floats) -> tuple[Floats, Floats]:
    """Singular values, largest first, and right singular vectors (rows) of diag(roots) (X - origin)."""
    n, W = X.shape
    if n * W <= _DIRECT:
        _, lengths, directions = np.linalg.svd((X - origin) * roots[:, np.newaxis], full_matrices=False)
        return lengths, directions
    if n < W:
        centred = (X - origin) * roots[:, np.newaxis]
        squares, left = np.linalg.eigh(centred @ centred.T)
        lengths = np.sqrt(np.maximum(squares[::-1], 0))
        return lengths, (left[:, ::-1].T @ centred) / np.where(lengths > 0, lengths, 1)[:, np.newaxis]
    scatter = np.zeros((W, W))
    for block, root in zip(_row_blocks(X), _row_blocks(roots, like=X), strict=True):
        centred = (block - origin) * root[:, np.newaxis]
        scatter += centred.T @ centred
    squares, directions = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(squares[::-1], 0)), np.ascontiguousarray(directions[:, ::-1].T)


def _row_blocks(X: Array, like: Array | None = None) -> Iterator[Array]:
    step = max(1, _NUMBERS_AT_ONCE // (X if like is None else like).shape[1])
    for start in range(0, len(X), step):
        yield X[start : start + step]


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.einsum("dr,dr->d", rows, rows))
