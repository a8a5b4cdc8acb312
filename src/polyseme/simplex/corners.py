"""Search for the K corners of a cloud of points: farthest points, or the smallest simplex with a soft margin.

Both searches work in the plane of K - 1 dimensions that fits the points best. K corners lie in it, and noise in other
directions is removed. The cost is linear in the number of points.

Smallest simplex. Points are given by their barycentric coordinates b (points x K) in a simplex with corners v. Suppose
that all faces stay fixed except the one opposite to corner k. Then the new simplex has the corners v_k and
v_k + (v_j - v_k) / u_j, its volume is the old one divided by prod_j u_j, and a point is inside the new face if
sum_j b_j u_j <= 1. The best face therefore solves the concave problem

    max  sum_j log u_j - sum_i cap_i max(0, sum_j b_ij u_j - 1)       over u > 0, j != k.

The coordinates in the new simplex are b_j u_j and, for k, one minus their sum. The faces are updated in turn until
convergence. With cap_i = (K - 1) weight_i / (margin * total weight), the points outside a face have at most the share
`margin` of the total weight (like nu in the nu-SVM). If that is less than the weight of any point, no point is outside.

Noise. With a margin, a point may be outside a face by half the standard deviation of the noise at no cost. Its variance
is sum_j s_j^2 / sum_j s_j over the variances s_j in the directions outside of the plane: their mean if they are equal,
and that of the few large ones if noise has few directions, such as spectra that vary from pixel to pixel. If t_i is
this allowance in units of the coordinate b_k, then b_i u <= 1 + t_i is the constraint above for the point b_i / (1 +
t_i) with the cap (1 + t_i) cap_i. The plane is fitted with less weight for the share `margin` of points farthest from
it, so that outliers do not turn it.

Brightness. Points without negative entries may be mixtures times a brightness, such as pixels in the shade. They lie in
a cone of K dimensions instead of a plane of K - 1. If the variance in the first direction outside of the plane is at
least twice that of the noise in the others, each point x is divided by h x, where h minimizes the weighted sum of (h
x_i - 1)^2. If brightness and weights are independent, h c_k is then the same for all corners, however dark they are, so
that a dark corner is as far from the others as a bright one. Division by the sum of the entries would move all mixtures
with a dark corner to the bright ones. The noise of a point is divided by h x, too, so that dark points have a large
allowance.

Non-negative corners. Each round over the faces is followed by a projection: every corner moves to the nearest point of
the plane without negative entries. The next round fits the other faces to the projected corners. The best of the
projected simplices is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from polyseme.kernels import Array, Floats, row_blocks, single_threaded_blas, weighted_sum

_NUMBERS_AT_ONCE = 1 << 20
_MAX_POINTS = 20_000
"""Number of evenly spaced points on which a simplex with a soft margin is fitted."""
_MAX_DIRECT_SVD = 1 << 21
"""Larger matrices are decomposed through their Gram or scatter matrix."""
_FLAT = 1e-7
"""Lengths below this, relative to the size of the data, count as zero."""
_UNBOUNDED = 1 / _FLAT
"""A face counts as unbounded if it divides an edge, or multiplies a coordinate, by at least this."""
_MAX_PLANES = 10
"""Maximum number of planes that are fitted until the weights of far points no longer change."""
_SAME_SHARE = 1e-3
"""Weights have converged when no point changes its share of the given weight by this."""
_ALLOWANCE = 0.5
"""Distance of a point from a face that costs nothing, in standard deviations of the noise."""
_SIGNIFICANT = 2.0
"""A direction is more than noise if its variance is at least this, times 1 + W / n, times that of the noise.
White noise of many points has (1 + y)^2 / (1 + y^2) <= 2, where y^2 = W / n; the factor allows for few points."""
_THIN = 1e-2
"""A projection is rejected if it makes a simplex thinner than this share of the first simplex of the search, or if no
point has a coordinate of at least this for one of the corners."""


class _Effort(NamedTuple):
    """Accuracy of a search."""

    precision: float
    """Accuracy of the objective of a face in nats."""
    tolerance: float
    """The search has converged when no log u in a round is larger than this."""
    max_rounds: int
    """Maximum number of rounds over all faces."""


_ROUGH = _Effort(1e-3, 3e-2, 10)
_FINE = _Effort(1e-7, 1e-4, 20)


Project = Callable[[Floats], Floats]


class Simplex(NamedTuple):
    """Simplex with its cost."""

    corners: Floats
    """Shape K x (K - 1)."""
    cost: float
    """Log volume plus the penalties of the points outside."""


class View(NamedTuple):
    """Points in a plane of at most K - 1 dimensions, where their corners are searched."""

    plane: Plane
    points: Floats
    """Coordinates in the plane, n x rank."""
    weights: Floats
    """Shape (n,)."""
    allowance: Floats
    """Distance from a face that costs nothing, shape (n,)."""
    level: Floats | None = None
    """Shape (W,). Points were divided by their product with it, their brightness."""


class Corners(NamedTuple):
    """Corners and, if brightness varies, what it is measured with."""

    points: Floats
    """Shape K x W."""
    level: Floats | None = None
    """Shape (W,). The product of a point and the level is its brightness, and one for every corner."""


class Plane(NamedTuple):
    """Affine plane origin + coordinates @ directions."""

    origin: Floats
    """Shape (W,)."""
    directions: Floats
    """Orthonormal rows, rank x W."""
    rest: Floats
    """Standard deviations of the points in other directions, largest first."""

    @classmethod
    def of(cls, X: Array, weights: Floats, n_dimensions: int, *, through_zero: bool = False) -> Plane:
        """Return the plane of the weighted principal components, with fewer dimensions if the points have fewer.

        Its origin is the mean, or zero.
        """
        origin = np.zeros(X.shape[1]) if through_zero else weighted_sum(weights, X) / weights.sum()
        with single_threaded_blas():
            lengths, directions = _principal_axes(X, origin, np.sqrt(weights))
        nonzero = lengths[:n_dimensions] > _FLAT * max(float(lengths[0]), 1e-9 * float(np.abs(origin).max()))
        return cls(origin, directions[:n_dimensions][nonzero], lengths[n_dimensions:] / np.sqrt(weights.sum()))

    @classmethod
    def robust(
        cls, X: Array, weights: Floats, n_dimensions: int, margin: float, *, through_zero: bool = False
    ) -> tuple[Plane, Floats]:
        """Return the plane and the weights that determine it.

        The share `margin` of the points farthest from the plane has its weights multiplied by (limit / distance)^2,
        where the limit is the distance of the nearest of these points.
        """
        plane = cls.of(X, weights, 0, through_zero=through_zero)
        shares = np.zeros(len(X))
        for _ in range(_MAX_PLANES):
            distances = plane.distances(X)
            limit = max(_weighted_quantile(distances, weights, 1 - margin), _FLAT * float(distances.max()))
            before, shares = shares, (limit / np.maximum(distances, limit)) ** 2 if limit > 0 else np.ones(len(X))
            if np.abs(shares - before).max() < _SAME_SHARE:
                break
            plane = cls.of(X, weights * shares, n_dimensions, through_zero=through_zero)
        return plane, weights * shares

    def coordinates(self, X: Array) -> Floats:
        """Return the coordinates of the projections of points on the plane (points x rank)."""
        parts = row_blocks(X.shape[0], X.shape[1], _NUMBERS_AT_ONCE)
        return np.concatenate([np.einsum("dw,rw->dr", X[part] - self.origin, self.directions) for part in parts])

    def distances(self, X: Array) -> Floats:
        """Return the distances of points from the plane."""
        parts = row_blocks(X.shape[0], X.shape[1], _NUMBERS_AT_ONCE)
        gaps = (X[part] - self.points(self.coordinates(X[part])) for part in parts)
        return np.concatenate([np.sqrt(_squares(gap)) for gap in gaps])

    def points(self, coordinates: Array) -> Floats:
        """Return the points with these coordinates (points x W)."""
        return np.asarray(self.origin + np.einsum("dr,rw->dw", coordinates, self.directions))

    def nearest_non_negative(self, coordinates: Floats) -> Floats:
        """Return the nearest coordinates whose points have no negative entries, up to rounding.

        The origin, a mean of non-negative points, must not have negative entries.
        """
        nearest = coordinates.copy()
        tolerance = _FLAT**2 * float(np.abs(self.origin).max())
        for row in np.flatnonzero((self.points(coordinates) < -tolerance).any(axis=1)):
            nearest[row] = self._least_move(coordinates[row])
        return nearest

    def _least_move(self, coordinates: Floats) -> Floats:
        """Return the coordinates of the nearest non-negative point to one point, by least distance programming.

        If the active-set method does not converge, the point moves toward the origin instead.
        """
        needed = -(self.origin + np.einsum("r,rw->w", coordinates, self.directions))
        size = float(np.abs(needed).max())
        system = np.vstack([self.directions, needed / size])
        target = np.append(np.zeros(len(coordinates)), 1.0)
        try:
            residual = np.einsum("rw,w->r", system, nnls(system, target)[0]) - target
        except RuntimeError:
            residual = np.zeros(len(target))
        if residual[-1] < -_FLAT:
            moved = coordinates - size * residual[:-1] / residual[-1]
            if float((self.origin + np.einsum("r,rw->w", moved, self.directions)).min()) > -_FLAT * size:
                return np.asarray(moved)
        excess = needed + self.origin  # how far the point is below the origin
        share = (self.origin[excess > 0] / excess[excess > 0]).min(initial=1.0)
        return coordinates * share


def farthest_corners(X: Array, n_corners: int, weights: Floats, *, non_negative: bool = False) -> Floats:
    """Return corners that are points of the data, projected onto the plane that fits the weighted data best.

    The first corner is the point farthest from the mean, and each further corner is the point farthest from the plane
    through the previous corners. If there are fewer distinct points, the mean is repeated. `non_negative` sets negative
    entries, which the projection can cause, to zero.
    """
    plane = Plane.of(X, weights, n_corners - 1)
    y = plane.coordinates(X)
    corners = plane.points(_with_center(y[farthest_points(y, n_corners)], n_corners))
    return np.maximum(corners, 0) if non_negative else corners


def smallest_corners(
    X: Array, n_corners: int, weights: Floats, margin: float, *, non_negative: bool = False
) -> Corners:
    """Return the K corners of the smallest simplex in the plane of the data with at most `margin` outside a face.

    Points of fewer than K - 1 dimensions have a simplex with fewer corners. The other corners are farthest points, or
    the mean if there are too few. The level is that of brightness.

    margin : share of the total weight that may lie outside any one face by more than noise, and of the points that may
    lie far from the plane without turning it. With 0 no point is outside. Otherwise at most 20,000 evenly spaced points
    are used. non_negative : whether corners, like the points, must not have negative entries. More points than `margin`
    can then be outside a face, because perhaps no simplex with such corners contains them. With a margin, points of
    different brightness are compared at the same brightness.
    """
    sample = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MAX_POINTS)).astype(np.intp))
    if margin > 0:
        view = _soft_view(X[sample], weights[sample], n_corners, margin, non_negative=non_negative)
        sample = np.arange(len(view.points))
    else:
        plane = Plane.of(X, weights, n_corners - 1)
        view = View(plane, plane.coordinates(X), weights, np.zeros(len(X)))
    plane, y, weights, allowance, level = view
    rank = y.shape[1]
    project = plane.nearest_non_negative if non_negative else None
    while True:
        # a repeated row is one row of larger weight
        rows, index = np.unique(np.column_stack([y, allowance])[sample], axis=0, return_inverse=True)
        chosen, allowed = np.ascontiguousarray(rows[:, :-1]), rows[:, -1]
        mass = np.bincount(index.ravel(), weights[sample]).astype(np.float64)
        spread = np.sqrt(weighted_sum(mass, chosen**2) / mass.sum())
        views = (chosen, chosen / np.where(spread > 0, spread, 1))  # unscaled, and scaled to equal variances
        exact = np.flatnonzero(allowed <= _weighted_quantile(allowed, mass, 1 - margin))
        starts = [chosen[exact[farthest_points(view[exact], rank + 1)]] for view in views]
        with single_threaded_blas():
            corners = smallest_simplex(chosen, starts, margin, mass, allowed, project).corners
            outside = np.flatnonzero((barycentric(y, corners) < -_FLAT).any(axis=1)) if margin == 0 else sample[:0]
        if not np.setdiff1d(outside, sample).size:
            break
        sample = np.union1d(sample, outside)
    if rank + 1 < n_corners:
        corners = np.concatenate([corners, y[farthest_points(y, n_corners)[rank + 1 :]]])
    corners = plane.points(_with_center(corners, n_corners))
    # only rounding or a data point is negative here
    return Corners(np.maximum(corners, 0) if non_negative else corners, level)


def _soft_view(X: Array, weights: Floats, n_corners: int, margin: float, *, non_negative: bool) -> View:
    """Return the points in the plane that fits them best or, if brightness varies, at the same brightness."""
    plane, _ = Plane.robust(X, weights, n_corners - 1, margin)
    flat = View(plane, plane.coordinates(X), weights, np.full(len(X), _ALLOWANCE * _noise(plane.rest)))
    if not non_negative or not 0 < len(plane.directions) == n_corners - 1 or len(plane.rest) < 2:
        return flat
    least = max(_noise(plane.rest[1:]), _FLAT * float(np.abs(plane.origin).max()))
    if plane.rest[0] ** 2 < _SIGNIFICANT * (1 + X.shape[1] / len(X)) * least**2:
        return flat
    cone, trusted = Plane.robust(X, weights, n_corners, margin, through_zero=True)
    if len(cone.directions) < n_corners:
        return flat
    y, roots = cone.coordinates(X), np.sqrt(trusted)
    with single_threaded_blas():
        h = np.linalg.lstsq(y * roots[:, np.newaxis], roots)[0]
        across = np.linalg.svd(h[np.newaxis])[2][1:]
    brightness = np.einsum("dk,k->d", y, h)
    lit = brightness > _FLAT
    center = weighted_sum(trusted, y) / float(trusted @ brightness)
    origin, directions = (np.einsum("...k,kw->...w", rows, cone.directions) for rows in (center, across))
    plane = Plane(origin, directions, cone.rest)
    if plane.origin.min() < -_FLAT * plane.origin.max():
        return flat
    y, brightness = y[lit], brightness[lit]
    points = np.einsum("dk,rk->dr", y / brightness[:, np.newaxis] - center, across)
    level = np.einsum("k,kw->w", h, cone.directions)
    return View(plane, points, weights[lit], _ALLOWANCE * _noise(cone.rest) / brightness, level)


def _noise(deviations: Floats) -> float:
    """Return the standard deviation of noise with these standard deviations (see the module docstring)."""
    variances = deviations**2
    total = float(variances.sum())
    return float(np.sqrt((variances**2).sum() / total)) if total > 0 else 0.0


def _weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """Return the smallest value for which the values up to it have at least the share of the total weight."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(total, share * total[-1])), len(values) - 1)]])


def farthest_points(y: Floats, n_corners: int) -> Array:
    """Return the index of the point farthest from the origin, then of points farthest from the plane of those before.

    If every point lies in that plane (more corners than dimensions), the point farthest from the chosen points is next.
    The result has fewer than `n_corners` indices if there are fewer distinct points.
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


def smallest_simplex(
    points: Floats,
    starts: list[Floats],
    margin: float,
    weights: Floats,
    allowance: Floats,
    project: Project | None = None,
) -> Simplex:
    """Return the best of the simplices that are reached from `starts`, each with K corners in K - 1 dimensions.

    `points` has shape n x (K - 1), `weights` are n positive numbers, and `margin` is the share of their sum that may
    lie outside any one face by more than their `allowance`. `project` moves corners to the nearest allowed ones.
    """
    if points.shape[1] == 0:
        return Simplex(starts[0], 0.0)
    best, *others = [_shrink(points, corners, margin, weights, allowance, _ROUGH, project) for corners in starts]
    for other in others:
        if other.cost < best.cost - _ROUGH.precision:
            best = other
    fine = _shrink(points, best.corners, margin, weights, allowance, _FINE, project)
    return fine if project is None or fine.cost <= best.cost else best


def barycentric(points: Floats, corners: Floats) -> Floats:
    """Return coordinates b (points x K) with b v = point and sum b = 1, for points in K - 1 dimensions."""
    edges = (corners[:-1] - corners[-1]).T
    first = np.linalg.solve(edges, (points - corners[-1]).T).T
    return np.column_stack([first, 1 - first.sum(axis=1)])


def _shrink(
    points: Floats,
    corners: Floats,
    margin: float,
    weights: Floats,
    allowance: Floats,
    effort: _Effort,
    project: Project | None,
) -> Simplex:
    """Return the simplex after updating all faces in turn until convergence, from a start.

    With `project`, a round ends with a projection of the corners, and the best simplex after a round is returned. If
    every projection is rejected, the cost is infinite.
    """
    K = len(corners)
    allowed = margin * weights.sum()
    caps = np.full(len(weights), 2.0 * (K - 1))  # a hard margin: no multiplier can exceed K - 1
    if allowed > 0:
        caps = np.minimum((K - 1) * weights / allowed, caps)

    def simplex() -> Simplex:
        volume = np.linalg.slogdet(corners[:-1] - corners[-1])[1]
        beyond = np.maximum(-b - allowance[:, np.newaxis] * _slopes(corners), 0)
        return Simplex(corners.copy(), float(volume + (caps * beyond.sum(axis=1)).sum()))

    b = barycentric(points, corners)
    corners, b = _expand(corners, b, allowed, weights)
    best: Simplex | None = None
    thinnest = _THIN * _thickness(corners)
    for _ in range(effort.max_rounds):
        updated = _update_faces(corners, b, caps, allowance, effort.precision)
        if updated is None:
            break
        before, (corners, b, largest_change) = corners, updated
        if project is not None:
            projected = project(corners)
            if _thickness(projected) < thinnest:  # corners have met, and barycentric coordinates would be infinite
                break
            coordinates = barycentric(points, projected)
            if coordinates.max(axis=0).min() < _THIN:  # no point uses a corner, and its best face would be infinite
                break
            corners, b = projected, coordinates
            candidate = simplex()
            best = candidate if best is None or candidate.cost < best.cost else best
            largest_change = float(np.abs(corners - before).max() / np.abs(corners - corners[0]).max())
        if largest_change < effort.tolerance:
            break
    if project is not None:
        return best or Simplex(corners, np.inf)
    return simplex()


def _slopes(corners: Floats) -> Floats:
    """Return the change of each barycentric coordinate along the normal of its face, over a unit of length."""
    first = np.linalg.inv((corners[:-1] - corners[-1]).T)
    return np.sqrt(_squares(np.vstack([first, -first.sum(axis=0)])))


def _update_faces(
    corners: Floats, b: Floats, caps: Floats, allowance: Floats, precision: float
) -> tuple[Floats, Floats, float] | None:
    """Return the corners and the coordinates b after updating all faces in turn, and the largest |log u|.

    The result is None if the best face is unbounded: no point uses one of the corners, which could move to another one.
    """
    corners, b = corners.copy(), b.copy()
    largest_change = 0.0
    for k in range(len(corners)):
        others = np.arange(len(corners)) != k
        limit = 1 + allowance * _slopes(corners)[k]
        u = _best_face(b[:, others] / limit[:, np.newaxis], caps * limit, precision)
        if not u.max() < _UNBOUNDED:
            return None
        b[:, others] *= u
        b[:, k] = 1 - b[:, others].sum(axis=1)
        corners[others] = corners[k] + (corners[others] - corners[k]) / u[:, np.newaxis]
        largest_change = max(largest_change, float(np.abs(np.log(u)).max()))
    if not np.abs(b).max() < _UNBOUNDED:  # also if b is NaN
        return None
    return corners, b, largest_change


def _thickness(corners: Floats) -> float:
    """Return the smallest extent of a simplex in any direction, as a share of the largest."""
    lengths = np.linalg.svd(corners[:-1] - corners[-1], compute_uv=False)
    return float(lengths[-1] / lengths[0]) if lengths[0] > 0 else 0.0


def _expand(corners: Floats, b: Floats, allowed: float, weights: Floats) -> tuple[Floats, Floats]:
    """Move every face outward, parallel to itself, until the points outside have at most the allowed weight."""
    low = np.zeros(len(corners))
    for k in range(len(corners)):
        order = np.argsort(b[:, k], kind="stable")
        first_inside = int((np.cumsum(weights[order]) <= allowed).sum())
        low[k] = min(float(b[order[min(first_inside, len(order) - 1)], k]), 0.0)
    size = 1 - low.sum()
    return size * corners + low @ corners, (b - low) / size


def _best_face(b: Floats, caps: Floats, precision: float) -> Floats:
    """Return u of the problem in the module docstring, by Newton's method on a smoothed hinge loss.

    Points far inside the face do not affect it. They are ignored until one of them is outside.
    """
    K = b.shape[1] + 1
    depth = 1 - b.sum(axis=1)
    near = depth <= (np.partition(depth, len(depth) // 4)[len(depth) // 4] if len(depth) > 200 * K else np.inf)
    while True:
        u = _newton(b[near], caps[near], precision)
        outside = ~near & (b @ u > 1)
        if not outside.any():
            return u
        near |= outside


def _newton(b: Floats, caps: Floats, precision: float) -> Floats:
    """Return u by Newton's method. The smoothing mu of the hinge loss decreases to zero.

    If an entry of the best u is infinite, the result is a u with an entry of at least `_UNBOUNDED`.
    """
    n, m = b.shape
    u, mu = np.ones(m), 0.1 * m / n
    while True:
        r, s = _slacks(b @ u - 1, caps, mu)
        for _ in range(50):
            p, q = mu / r, mu / s
            curvature = p * q / (q * r + p * s)
            gradient = b.T @ p - 1 / u
            step = -np.linalg.solve((b * curvature[:, np.newaxis]).T @ b + np.diag(u**-2.0), gradient)
            gain = -gradient @ step
            shrinking = step < 0
            length = min(1.0, 0.95 * float((-u / np.where(shrinking, step, -np.inf)).min(initial=2.0, where=shrinking)))
            before = _barrier(u, r, s, caps, mu)
            while True:
                trial = u + length * step
                r, s = _slacks(b @ trial - 1, caps, mu)
                if length < 1e-6 or _barrier(trial, r, s, caps, mu) <= before - 1e-4 * length * gain:
                    break
                length /= 2
            u = trial
            if not u.max() < _UNBOUNDED:
                return u
            if gain < 0.1 * mu * n:
                break
        if mu * n < precision:
            return u
        mu *= 0.1


def _slacks(excess: Floats, caps: Floats, mu: float) -> tuple[Floats, Floats]:
    """Return r, s > 0 with s - r = excess and mu / r + mu / s = cap; for mu = 0, s is the hinge max(excess, 0)."""
    a = caps * excess
    root = np.sqrt(a * a + 4 * mu * mu)
    long = root + np.abs(a)
    short = 4 * mu * mu / long
    r = (2 * mu + np.where(a > 0, short, long)) / (2 * caps)
    s = (2 * mu + np.where(a > 0, long, short)) / (2 * caps)
    return r, s


def _barrier(u: Floats, r: Floats, s: Floats, caps: Floats, mu: float) -> float:
    """Return the smoothed objective of a face, to be minimized."""
    return float((caps * s).sum() - mu * (np.log(r) + np.log(s)).sum() - np.log(u).sum())


def _with_center(corners: Floats, n_corners: int) -> Floats:
    """Return `n_corners` corners. Missing ones are the origin of the plane, the mean of the points."""
    return np.concatenate([corners, np.zeros((n_corners - len(corners), corners.shape[1]))])


def _principal_axes(X: Array, origin: Floats, roots: Floats) -> tuple[Floats, Floats]:
    """Return the singular values, largest first, and right singular vectors (rows) of diag(roots) (X - origin)."""
    n, W = X.shape
    if n * W <= _MAX_DIRECT_SVD:
        _, lengths, directions = np.linalg.svd((X - origin) * roots[:, np.newaxis], full_matrices=False)
        return lengths, directions
    if n < W:
        centered = (X - origin) * roots[:, np.newaxis]
        squares, left = np.linalg.eigh(centered @ centered.T)
        lengths = np.sqrt(np.maximum(squares[::-1], 0))
        return lengths, (left[:, ::-1].T @ centered) / np.where(lengths > 0, lengths, 1)[:, np.newaxis]
    scatter = np.zeros((W, W))
    for part in row_blocks(X.shape[0], X.shape[1], _NUMBERS_AT_ONCE):
        centered = (X[part] - origin) * roots[part, np.newaxis]
        scatter += centered.T @ centered
    squares, directions = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(squares[::-1], 0)), np.ascontiguousarray(directions[:, ::-1].T)


def _squares(rows: Floats) -> Floats:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("dr,dr->d", rows, rows))
