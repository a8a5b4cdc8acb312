"""Points and the hull of K corners: barycentric coordinates, the nearest point of the hull and its weights.

Simplex decomposition (Shashanka 2009, section 2.2): corners whose hull should hold the data, and weights in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from polyseme.kernels import Array, Floats

_NUMBERS_AT_ONCE = 1 << 20
_ROUNDING = 1e-12
_DEPENDENT = 1e-8


class Hull:
    """The hull of K corners (K x W, any sign): the points sum_k h_k corner_k with h non-negative and of sum one.

    Corners may depend on each other (more of them than dimensions, or two that are equal); then weights are not unique,
    and any of the nearest are given.
    """

    def __init__(self, corners: Array) -> None:
        self.corners = np.asarray(corners, dtype=np.float64)
        self._origin = self.corners.mean(axis=0)
        arms = self.corners - self._origin
        self._size = float(np.sqrt(np.einsum("kw,kw->k", arms, arms).max())) or 1.0
        self._arms = arms / self._size
        gram = np.einsum("kw,jw->kj", self._arms, self._arms)
        K = len(gram)
        system = np.zeros((K + 1, K + 1))
        system[:K, :K] = gram
        system[:K, K] = system[K, :K] = 1.0
        self._gram, self._system = gram, system
        self._dependent = bool(
            K > 1 and np.linalg.eigvalsh(gram)[1] < _DEPENDENT
        )  # the first is zero: arms sum to zero
        self._inverse = np.asarray(np.linalg.pinv(gram, rcond=1e-13, hermitian=True), dtype=np.float64)

    @property
    def diameter(self) -> float:
        """The largest distance between two corners."""
        squares = np.einsum("kw,kw->k", self._arms, self._arms)
        gaps = squares[:, np.newaxis] + squares - 2 * self._gram
        return self._size * float(np.sqrt(max(gaps.max(), 0.0)))

    def barycentric(self, X: Array) -> Floats:
        """Coordinates (points x K) that sum to one of the nearest point in the corners' plane; negative outside."""
        return np.concatenate([self._coordinates(part) for part in self._parts(X)])

    def weights(self, X: Array) -> Floats:
        """Weights (points x K, at least zero, of sum one) of the nearest point in the hull: least squares."""
        return np.concatenate([self._nearest(part) for part in self._parts(X)])

    def distance(self, X: Array) -> Floats:
        """How far each point is from the hull, in the data's units."""
        X = np.asarray(X)
        weights = self.weights(X)
        parts = zip(self._parts(X), self._parts(weights, like=X), strict=True)
        gaps = (np.asarray(x, dtype=np.float64) - np.einsum("dk,kw->dw", h, self.corners) for x, h in parts)
        return np.concatenate([np.sqrt(np.einsum("dw,dw->d", gap, gap)) for gap in gaps])

    def outside(self, X: Array, tolerance: float = 1e-6) -> Array:
        """Which points lie further from the hull than `tolerance` times its diameter."""
        return np.asarray(self.distance(X) > tolerance * self.diameter)

    def _parts(self, X: Array, like: Array | None = None) -> Iterator[Array]:
        X = np.asarray(X)
        K = len(self.corners)
        step = max(1, _NUMBERS_AT_ONCE // max((X if like is None else np.asarray(like)).shape[1], K * K))
        for start in range(0, max(len(X), 1), step):
            yield X[start : start + step]

    def _slopes(self, X: Array) -> Floats:
        """arms . (x - origin), in the hull's own unit of length (points x K)."""
        return np.einsum("dw,kw->dk", (X - self._origin) / self._size, self._arms)

    def _coordinates(self, X: Array) -> Floats:
        """1 / K + pinv(G) slopes: they sum to one, since the arms, and so the rows of pinv(G), sum to zero."""
        return np.asarray(np.einsum("dk,jk->dj", self._slopes(X), self._inverse) + 1 / len(self.corners))

    def _nearest(self, X: Array) -> Floats:
        """Barycentric coordinates where they are weights; else an active-set method, all points side by side."""
        weights = self._coordinates(X)
        left = np.flatnonzero((weights < 0).any(axis=1))
        if left.size:
            weights[left] = self._active_set(self._slopes(X[left]), weights[left])
        return weights / weights.sum(axis=1, keepdims=True)

    def _active_set(self, slopes: Floats, start: Floats) -> Floats:
        """min h G h / 2 - slopes h over the simplex (Lawson and Hanson): `free` weights, the others zero.

        A round solves for the free weights; a step that would leave the simplex ends at its border and frees one weight
        less; a step that arrives frees the weight whose slope is steepest, or ends.
        """
        h = np.maximum(start, 0)
        h /= h.sum(axis=1, keepdims=True)
        free = h > 0
        left = np.arange(len(h))
        K = h.shape[1]
        for _ in range(20 * K):
            now, target = h[left], self._solve(slopes[left], free[left])
            falling = free[left] & (target < 0)
            ratio = np.where(falling, now / np.where(falling, now - target, 1), np.inf)
            step = np.minimum(ratio.min(axis=1), 1.0)
            moved = np.maximum(now + step[:, np.newaxis] * (target - now), 0)
            blocked = step < 1
            moved[blocked, ratio[blocked].argmin(axis=1)] = 0
            arrived = ~blocked
            moved[arrived] = np.maximum(target[arrived], 0)
            h[left] = moved
            freed = free[left]
            freed[blocked] &= moved[blocked] > 0
            gradient = np.einsum("dk,jk->dj", moved, self._gram) - slopes[left]
            level = np.einsum("dk,dk->d", gradient, moved)[:, np.newaxis]
            gain = np.where(freed, 0.0, level - gradient)
            best = gain.argmax(axis=1)
            going = arrived & (gain.max(axis=1) > _ROUNDING)
            freed[going, best[going]] = True
            free[left] = freed
            left = left[blocked | going]
            if not left.size:
                break
        return h

    def _solve(self, slopes: Floats, free: Array) -> Floats:
        """The free weights of sum one that minimize the objective, each row's own; the others are zero."""
        n, K = slopes.shape
        system = np.broadcast_to(self._system, (n, K + 1, K + 1)).copy()
        right = np.ones((n, K + 1, 1))
        right[:, :K, 0] = np.where(free, slopes, 0)
        both = np.ones((n, K + 1), dtype=bool)
        both[:, :K] = free
        system *= both[:, :, np.newaxis] & both[:, np.newaxis, :]
        corner = np.arange(K)
        system[:, corner, corner] += ~free
        if self._dependent:
            return np.asarray((np.linalg.pinv(system, rcond=_ROUNDING, hermitian=True) @ right)[:, :K, 0])
        return np.asarray(np.linalg.solve(system, right)[:, :K, 0])


class Decomposing(Protocol):
    """What a fitted model needs to have: PLSA, LDA, a KL-NMF, RealTopicModel and scikit-learn's own all do."""

    components_: Array

    def transform(self, X: Any) -> Array: ...


@dataclass(frozen=True)
class SimplexDecomposition:
    """points ~ weights @ corners, every weight at least zero and each point's weights of sum one."""

    points: Floats
    """D x W"""
    corners: Floats
    """K x W"""
    weights: Floats
    """D x K"""

    @classmethod
    def of(cls, model: Decomposing, X: Any) -> SimplexDecomposition:
        """How a fitted model sees the rows of X.

        A model of counts sees every row divided by its sum, and its corners and weights are made to sum to one. A model
        of points in their own space says so by a method `simplex_points`.
        """
        weights = np.asarray(model.transform(X), dtype=np.float64)
        corners = np.asarray(model.components_, dtype=np.float64)
        own_points = getattr(model, "simplex_points", None)
        if own_points is not None:
            return cls(np.asarray(own_points(X), dtype=np.float64), corners, weights)
        rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        return cls(_to_one(rows), _to_one(corners), _to_one(weights))

    @cached_property
    def hull(self) -> Hull:
        return Hull(self.corners)

    @property
    def approximations(self) -> Floats:
        """The points of the hull that stand for the data, D x W."""
        return np.asarray(np.einsum("dk,kw->dw", self.weights, self.corners))

    @property
    def errors(self) -> Floats:
        """The distance of each point to its approximation."""
        return np.asarray(np.linalg.norm(self.points - self.approximations, axis=1))

    def outside(self, tolerance: float = 1e-6) -> Array:
        """Which points lie outside the hull by more than `tolerance` times its diameter: no weights fit them."""
        return self.hull.outside(self.points, tolerance)


def _to_one(rows: Array) -> Floats:
    rows = np.asarray(rows, dtype=np.float64)
    sums = rows.sum(axis=1, keepdims=True)
    return np.divide(rows, sums, out=np.full(rows.shape, 1.0 / rows.shape[1]), where=sums > 0)
