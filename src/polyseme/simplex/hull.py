"""Convex hulls of K corners: points and their hull.

`Hull` finds barycentric coordinates of points and the nearest point of the hull. `SimplexDecomposition` holds points,
corners and weights (Shashanka 2009, section 2.2).

References
----------
C. Lawson and R. Hanson (1974). Solving least squares problems. Prentice-Hall. Chapter 23 (least distance programming).
M. Shashanka (2009). Simplex decompositions for real-valued datasets. IEEE International Workshop on Machine Learning
for Signal Processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from polyseme.kernels import Array, Floats

_NUMBERS_AT_ONCE = 1 << 20
_ROUNDING = 1e-12
_DEPENDENT = 1e-8
"""Corners are dependent if an eigenvalue of their Gram matrix (of unit size) is below this."""


class Hull:
    """Convex hull of K corners: the points sum_k h_k corner_k with non-negative weights h that sum to one.

    Corners may be affinely dependent, such as equal corners or more corners than dimensions. Then the weights of a
    point are not unique, and any solution is returned.

    Parameters
    ----------
    corners : array-like of shape (K, W)
        Corners, with entries of any sign.

    Attributes
    ----------
    corners : ndarray of shape (K, W)
        Corners in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.simplex import Hull
    >>> hull = Hull(np.array([[0.0, 0], [1, 0], [0, 1]]))
    >>> hull.weights(np.array([[0.25, 0.25]])).round(2)
    array([[0.5 , 0.25, 0.25]])
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
        # The first eigenvalue is always zero, because the arms sum to zero.
        self._dependent = bool(K > 1 and np.linalg.eigvalsh(gram)[1] < _DEPENDENT)
        self._inverse = np.asarray(np.linalg.pinv(gram, rcond=1e-13, hermitian=True), dtype=np.float64)

    @property
    def diameter(self) -> float:
        """Largest distance between two corners."""
        squares = np.einsum("kw,kw->k", self._arms, self._arms)
        gaps = squares[:, np.newaxis] + squares - 2 * self._gram
        return self._size * float(np.sqrt(max(gaps.max(), 0.0)))

    def barycentric(self, X: Array) -> Floats:
        """Return the barycentric coordinates of the nearest point in the plane of the corners.

        Parameters
        ----------
        X : array-like of shape (n_points, W)
            Points.

        Returns
        -------
        ndarray of shape (n_points, K)
            Rows that sum to one, with negative entries outside the hull.
        """
        return np.concatenate([self._coordinates(part) for part in self._parts(X)])

    def weights(self, X: Array) -> Floats:
        """Return the weights of the nearest point in the hull (least squares).

        Parameters
        ----------
        X : array-like of shape (n_points, W)
            Points.

        Returns
        -------
        ndarray of shape (n_points, K)
            Non-negative rows that sum to one.
        """
        return np.concatenate([self._nearest(part) for part in self._parts(X)])

    def distance(self, X: Array) -> Floats:
        """Return the distance of each point from the hull.

        Parameters
        ----------
        X : array-like of shape (n_points, W)
            Points.

        Returns
        -------
        ndarray of shape (n_points,)
            Euclidean distances; zero inside the hull.
        """
        X = np.asarray(X)
        weights = self.weights(X)
        parts = zip(self._parts(X), self._parts(weights, like=X), strict=True)
        gaps = (np.asarray(x, dtype=np.float64) - np.einsum("dk,kw->dw", h, self.corners) for x, h in parts)
        return np.concatenate([np.sqrt(np.einsum("dw,dw->d", gap, gap)) for gap in gaps])

    def outside(self, X: Array, tolerance: float = 1e-6) -> Array:
        """Return which points lie outside the hull.

        Parameters
        ----------
        X : array-like of shape (n_points, W)
            Points.
        tolerance : float, default=1e-6
            Points whose distance is at most `tolerance` times the diameter count as inside.

        Returns
        -------
        ndarray of bool of shape (n_points,)
            Whether each point lies outside.
        """
        return np.asarray(self.distance(X) > tolerance * self.diameter)

    def _parts(self, X: Array, like: Array | None = None) -> Iterator[Array]:
        """Yield blocks of rows of X, of the same sizes as the blocks of `like`."""
        X = np.asarray(X)
        K = len(self.corners)
        step = max(1, _NUMBERS_AT_ONCE // max((X if like is None else np.asarray(like)).shape[1], K * K))
        for start in range(0, max(len(X), 1), step):
            yield X[start : start + step]

    def _slopes(self, X: Array) -> Floats:
        """Return arms . (x - origin), with the size of the hull as unit of length (points x K)."""
        return np.einsum("dw,kw->dk", (X - self._origin) / self._size, self._arms)

    def _coordinates(self, X: Array) -> Floats:
        """Return 1 / K + pinv(G) slopes. They sum to one, because the arms, and so the rows of pinv(G), sum to zero."""
        return np.asarray(np.einsum("dk,jk->dj", self._slopes(X), self._inverse) + 1 / len(self.corners))

    def _nearest(self, X: Array) -> Floats:
        """Return the barycentric coordinates if they are not negative, else the result of an active-set method."""
        weights = self._coordinates(X)
        outside = np.flatnonzero((weights < 0).any(axis=1))
        if outside.size:
            weights[outside] = self._active_set(self._slopes(X[outside]), weights[outside])
        return weights / weights.sum(axis=1, keepdims=True)

    def _active_set(self, slopes: Floats, start: Floats) -> Floats:
        """Minimize h G h / 2 - slopes h over the simplex, for all points at once (Lawson and Hanson 1974).

        Weights that are not `free` are zero. A round solves for the free weights. A step that would leave the simplex
        stops at its border, and the weight that became zero is no longer free. A step that stays inside frees the
        weight with the largest gain; the point is finished if there is none.

        References
        ----------
        C. Lawson and R. Hanson (1974). Solving least squares problems. Prentice-Hall.
        """
        h = np.maximum(start, 0)
        h /= h.sum(axis=1, keepdims=True)
        free = h > 0
        active = np.arange(len(h))
        K = h.shape[1]
        for _ in range(20 * K):
            current, target = h[active], self._solve(slopes[active], free[active])
            shrinking = free[active] & (target < 0)
            ratio = np.where(shrinking, current / np.where(shrinking, current - target, 1), np.inf)
            step = np.minimum(ratio.min(axis=1), 1.0)
            moved = np.maximum(current + step[:, np.newaxis] * (target - current), 0)
            blocked = step < 1
            moved[blocked, ratio[blocked].argmin(axis=1)] = 0
            arrived = ~blocked
            moved[arrived] = np.maximum(target[arrived], 0)
            h[active] = moved
            now_free = free[active]
            now_free[blocked] &= moved[blocked] > 0
            gradient = np.einsum("dk,jk->dj", moved, self._gram) - slopes[active]
            level = np.einsum("dk,dk->d", gradient, moved)[:, np.newaxis]
            gain = np.where(now_free, 0.0, level - gradient)
            best = gain.argmax(axis=1)
            improvable = arrived & (gain.max(axis=1) > _ROUNDING)
            now_free[improvable, best[improvable]] = True
            free[active] = now_free
            active = active[blocked | improvable]
            if not active.size:
                break
        return h

    def _solve(self, slopes: Floats, free: Array) -> Floats:
        """Return the weights that sum to one and minimize the objective, with zeros for weights that are not free."""
        n, K = slopes.shape
        system = np.broadcast_to(self._system, (n, K + 1, K + 1)).copy()
        right = np.ones((n, K + 1, 1))
        right[:, :K, 0] = np.where(free, slopes, 0)
        used = np.ones((n, K + 1), dtype=bool)
        used[:, :K] = free
        system *= used[:, :, np.newaxis] & used[:, np.newaxis, :]
        corner = np.arange(K)
        system[:, corner, corner] += ~free
        if self._dependent:
            return np.asarray((np.linalg.pinv(system, rcond=_ROUNDING, hermitian=True) @ right)[:, :K, 0])
        return np.asarray(np.linalg.solve(system, right)[:, :K, 0])


@dataclass(frozen=True)
class SimplexDecomposition:
    """Approximation points ~ weights @ corners, with non-negative weights that sum to one for each point.

    Parameters
    ----------
    points : ndarray of shape (n_points, W)
        Points.
    corners : ndarray of shape (K, W)
        Corners.
    weights : ndarray of shape (n_points, K)
        Weights of the corners for each point.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.simplex import SimplexDecomposition
    >>> corners = np.array([[0.0, 0], [1, 0], [0, 1]])
    >>> weights = np.array([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]])
    >>> decomposition = SimplexDecomposition(weights @ corners, corners, weights)
    >>> bool(decomposition.errors.max() < 1e-12)
    True
    """

    points: Floats
    corners: Floats
    weights: Floats

    @classmethod
    def of(cls, model: Any, X: Any) -> SimplexDecomposition:
        """Return the decomposition of X by a fitted model.

        For a model of counts, points, corners and weights are divided by their sums. A model whose scikit-learn tags do
        not require non-negative data, such as RealTopicModel, takes the points as they are.

        Parameters
        ----------
        model : estimator
            Fitted estimator with `components_` and `transform`, such as PLSA, LDA, NMF, RealTopicModel, and NMF and LDA
            of scikit-learn.
        X : array-like or sparse matrix of shape (n_points, n_features)
            Data that the model can transform.

        Returns
        -------
        SimplexDecomposition
            Points, corners and weights.
        """
        weights = np.asarray(model.transform(X), dtype=np.float64)
        corners = np.asarray(model.components_, dtype=np.float64)
        if hasattr(model, "__sklearn_tags__") and not get_tags(model).input_tags.positive_only:
            return cls(np.asarray(X, dtype=np.float64), corners, weights)
        rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        return cls(_normalize_rows(rows), _normalize_rows(corners), _normalize_rows(weights))

    @cached_property
    def hull(self) -> Hull:
        """Convex hull of the corners."""
        return Hull(self.corners)

    @property
    def approximations(self) -> Floats:
        """Points weights @ corners of the hull that approximate the data, shape (n_points, W)."""
        return np.asarray(np.einsum("dk,kw->dw", self.weights, self.corners))

    @property
    def errors(self) -> Floats:
        """Distance of each point from its approximation."""
        return np.asarray(np.linalg.norm(self.points - self.approximations, axis=1))

    def outside(self, tolerance: float = 1e-6) -> Array:
        """Return which points lie outside the hull, so that no weights fit them.

        Parameters
        ----------
        tolerance : float, default=1e-6
            Points whose distance is at most `tolerance` times the diameter count as inside.

        Returns
        -------
        ndarray of bool of shape (n_points,)
            Whether each point lies outside.
        """
        return self.hull.outside(self.points, tolerance)


def _normalize_rows(rows: Array) -> Floats:
    """Return the rows divided by their sums; rows of zeros become uniform."""
    rows = np.asarray(rows, dtype=np.float64)
    sums = rows.sum(axis=1, keepdims=True)
    return np.divide(rows, sums, out=np.full(rows.shape, 1.0 / rows.shape[1]), where=sums > 0)
