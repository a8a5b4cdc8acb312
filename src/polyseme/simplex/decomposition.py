"""Simplex decomposition (Shashanka 2009, section 2.2): corners whose hull should hold the data, and weights in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from polyseme.kernels import Array, Floats
from polyseme.simplex.hull import Hull


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
