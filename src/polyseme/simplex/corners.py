"""The smallest simplex around points, with a soft margin.

Points are given by their barycentric coordinates b (points x K) in some simplex with corners v. Let all faces but the
one opposite corner k stay. Then the new simplex has the corners v_k and v_k + (v_j - v_k) / u_j, its volume is the old
one divided by prod_j u_j, and a point lies behind the new face if sum_j b_j u_j <= 1. So the best face solves

    max  sum_j log u_j - sum_i cap_i max(0, sum_j b_ij u_j - 1)       over u > 0, j != k,

which is concave, and the coordinates in the new simplex are b_j u_j and, for k, one minus their sum. The faces take
turns until none moves. With cap_i = (K - 1) weight_i / (margin x total weight) the points beyond a face weigh at most
the share `margin` of all (as nu does in the nu-SVM); if that is less than any one point, no point is left out.

Corners of a cloud of points: farthest points, and the smallest simplex in the plane of the data.

Everything happens in the plane that fits the points best, K - 1 dimensions for K corners: it is where the corners lie,
and noise in all other directions is left behind. The cost is linear in the points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats, single_threaded_blas, weighted_sum


class _Effort(NamedTuple):
    """How far a search goes: precision of a face (nats), the step of a corner that still counts, most rounds."""

    precision: float
    settled: float
    rounds: int


_ROUGH = _Effort(1e-3, 3e-2, 10)
_FINE = _Effort(1e-7, 1e-4, 20)


class Simplex(NamedTuple):
    """Corners (K x K-1) and what they cost: log volume plus the penalties of the points outside."""

    corners: Floats
    cost: float


def smallest_simplex(points: Floats, starts: list[Floats], margin: float, weights: Floats) -> Simplex:
    """The best of the simplices reached from `starts`, each K corners in K - 1 dimensions.

    points : n x (K-1); weights : n positive numbers; margin : the share of their sum that may lie beyond any one face.
    """
    if points.shape[1] == 0:
        return Simplex(starts[0], 0.0)
    best, *others = [_settled(points, corners, margin, weights, _ROUGH) for corners in starts]
    for other in others:
        if other.cost < best.cost - _ROUGH.precision:
            best = other
    return _settled(points, best.corners, margin, weights, _FINE)


def barycentric(points: Floats, corners: Floats) -> Floats:
    """Coordinates b (points x K), b v = point and sum b = 1, of points in K - 1 dimensions."""
    edges = (corners[:-1] - corners[-1]).T
    first = np.linalg.solve(edges, (points - corners[-1]).T).T
    return np.column_stack([first, 1 - first.sum(axis=1)])


def _settled(points: Floats, corners: Floats, margin: float, weights: Floats, effort: _Effort) -> Simplex:
    K = len(corners)
    allowed = margin * weights.sum()
    caps = np.full(len(weights), 2.0 * (K - 1))  # no point's multiplier can exceed K - 1: so much is a hard margin
    if allowed > 0:
        caps = np.minimum((K - 1) * weights / allowed, caps)
    b = barycentric(points, corners)
    corners, b = _moved_out(corners, b, allowed, weights)
    for _ in range(effort.rounds):
        largest = 0.0
        for k in range(K):
            others = np.arange(K) != k
            u = _best_face(b[:, others], caps, effort.precision)
            b[:, others] *= u
            b[:, k] = 1 - b[:, others].sum(axis=1)
            corners[others] = corners[k] + (corners[others] - corners[k]) / u[:, np.newaxis]
            largest = max(largest, float(np.abs(np.log(u)).max()))
        if largest < effort.settled:
            break
    volume = np.linalg.slogdet(corners[:-1] - corners[-1])[1]
    return Simplex(corners, float(volume + (caps * np.maximum(-b, 0).sum(axis=1)).sum()))


def _moved_out(corners: Floats, b: Floats, allowed: float, weights: Floats) -> tuple[Floats, Floats]:
    """Every face moved out, in parallel, until the points beyond it weigh no more than is allowed."""
    low = np.zeros(len(corners))
    for k in range(len(corners)):
        order = np.argsort(b[:, k], kind="stable")
        first_kept = int((np.cumsum(weights[order]) <= allowed).sum())
        low[k] = min(float(b[order[min(first_kept, len(order) - 1)], k]), 0.0)
    size = 1 - low.sum()
    return size * corners + low @ corners, (b - low) / size


def _best_face(b: Floats, caps: Floats, precision: float) -> Floats:
    """u of the module's problem, by Newton's method on a smoothed hinge whose smoothing mu goes to zero.

    Points far behind the face have no part in it, and are left out until one is seen beyond it.
    """
    K = b.shape[1] + 1
    depth = 1 - b.sum(axis=1)
    near = depth <= (np.partition(depth, len(depth) // 4)[len(depth) // 4] if len(depth) > 200 * K else np.inf)
    while True:
        u = _newton(b[near], caps[near], precision)
        missed = ~near & (b @ u > 1)
        if not missed.any():
            return u
        near |= missed


def _newton(b: Floats, caps: Floats, precision: float) -> Floats:
    n, m = b.shape
    u, mu = np.ones(m), 0.1 * m / n
    while True:
        behind, slack = _slacks(b @ u - 1, caps, mu)
        for _ in range(50):
            p, q = mu / behind, mu / slack
            curvature = p * q / (q * behind + p * slack)
            gradient = b.T @ p - 1 / u
            step = -np.linalg.solve((b * curvature[:, np.newaxis]).T @ b + np.diag(u**-2.0), gradient)
            gain = -gradient @ step
            shrinking = step < 0
            length = min(1.0, 0.95 * float((-u / np.where(shrinking, step, -np.inf)).min(initial=2.0, where=shrinking)))
            before = _barrier(u, behind, slack, caps, mu)
            while True:
                trial = u + length * step
                behind, slack = _slacks(b @ trial - 1, caps, mu)
                if length < 1e-6 or _barrier(trial, behind, slack, caps, mu) <= before - 1e-4 * length * gain:
                    break
                length /= 2
            u = trial
            if gain < 0.1 * mu * n:
                break
        if mu * n < precision:
            return u
        mu *= 0.1


def _slacks(beyond: Floats, caps: Floats, mu: float) -> tuple[Floats, Floats]:
    """r and s > 0 with s - r = beyond and mu / r + mu / s = cap: the hinge cap max(beyond, 0) is cap s for mu = 0."""
    a = caps * beyond
    root = np.sqrt(a * a + 4 * mu * mu)
    long = root + np.abs(a)
    short = 4 * mu * mu / long
    r = (2 * mu + np.where(a > 0, short, long)) / (2 * caps)
    s = (2 * mu + np.where(a > 0, long, short)) / (2 * caps)
    return r, s


def _barrier(u: Floats, r: Floats, s: Floats, caps: Floats, mu: float) -> float:
    return float((caps * s).sum() - mu * (np.log(r) + np.log(s)).sum() - np.log(u).sum())


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
    return plane.points(_with_center(y[farthest_points(y, n_corners)], n_corners))


def minimum_volume_corners(X: Array, n_corners: int, weights: Floats, margin: float) -> Floats:
    """Corners (K x W) of the smallest simplex, in the data's plane, that leaves at most `margin` beyond a face.

    Points of fewer than K - 1 dimensions have a simplex of fewer corners; the others are farthest points, or the center
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
    return plane.points(_with_center(corners, n_corners))


def _with_center(corners: Floats, n_corners: int) -> Floats:
    """As many corners as asked for: those missing are the center of the points."""
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
        centered = (X - origin) * roots[:, np.newaxis]
        squares, left = np.linalg.eigh(centered @ centered.T)
        lengths = np.sqrt(np.maximum(squares[::-1], 0))
        return lengths, (left[:, ::-1].T @ centered) / np.where(lengths > 0, lengths, 1)[:, np.newaxis]
    scatter = np.zeros((W, W))
    for block, root in zip(_row_blocks(X), _row_blocks(roots, like=X), strict=True):
        centered = (block - origin) * root[:, np.newaxis]
        scatter += centered.T @ centered
    squares, directions = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(squares[::-1], 0)), np.ascontiguousarray(directions[:, ::-1].T)


def _row_blocks(X: Array, like: Array | None = None) -> Iterator[Array]:
    step = max(1, _NUMBERS_AT_ONCE // (X if like is None else like).shape[1])
    for start in range(0, len(X), step):
        yield X[start : start + step]


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.einsum("dr,dr->d", rows, rows))
