"""Pictures of a simplex decomposition (Shashanka 2009, figures 1 and 2): points, corners, approximations.

| form | coordinates | needs |
|---|---|---|
| "space" | the data's own | 2 or 3 features |
| "simplex" | the plane (or the space) of the standard simplex | distributions over 3 or 4 entries |
| "corners" | barycentric: the corners form a regular triangle (or tetrahedron) | 3 or 4 corners |
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.explore.figures import pyplot
from polyseme.kernels import Array, Floats
from polyseme.simplex import SimplexDecomposition, lower

FORMS = ("space", "simplex", "corners")


def plot_simplex(
    seen: SimplexDecomposition, *, form: str = "space", highlight: Sequence[int] = (), ax: Any = None
) -> Any:
    """Draws the points, the corners with their edges, the standard simplex (dotted) where it can be seen, and of the
    `highlight`ed points a star each and a square at their approximation. Returns the axes.
    """
    if form not in FORMS:
        raise InputError(f"form must be one of {', '.join(map(repr, FORMS))}, got {form!r}.")
    points, corners, approximations, standard = _drawn(seen, form)
    if ax is None:
        ax = _axes(points.shape[1])
    if standard is not None:
        _edges(ax, standard, color="grey", linestyle=":")
    ax.plot(*points.T, ".", color="tab:blue", markersize=2, label="points")
    _edges(ax, corners, color="tab:red", linestyle="-")
    ax.plot(*corners.T, "o", color="tab:red", markersize=5, label="corners")
    chosen = np.asarray(highlight, dtype=np.intp)
    if chosen.size:
        ax.plot(*points[chosen].T, "*", color="tab:red", markersize=9, label="chosen points")
        ax.plot(*approximations[chosen].T, "s", color="black", markersize=4, label="their approximations")
    if points.shape[1] == 2:
        ax.set_aspect("equal")
    if form != "space":
        ax.set_axis_off()
    return ax


def _drawn(seen: SimplexDecomposition, form: str) -> tuple[Floats, Floats, Floats, Floats | None]:
    """Coordinates (2 or 3 columns) of points, corners, approximations and, where it shows, the standard simplex."""
    n_features, K = seen.points.shape[1], len(seen.corners)
    distributions = bool(np.allclose(seen.points.sum(axis=1), 1) and seen.points.min() >= 0)
    if form == "space":
        _need(n_features in (2, 3), f"form='space' draws 2 or 3 features, not {n_features}: try form='corners'.")
        standard = np.eye(n_features) if distributions else None
        return seen.points, seen.corners, seen.approximations, standard
    if form == "simplex":
        fits = distributions and n_features in (3, 4)
        _need(fits, "form='simplex' draws distributions over 3 or 4 entries: try form='corners'.")
        return lower(seen.points), lower(seen.corners), lower(seen.approximations), lower(np.eye(n_features))
    _need(K in (3, 4), f"form='corners' draws 3 or 4 corners, not {K}.")
    return lower(seen.hull.barycentric(seen.points)), lower(np.eye(K)), lower(seen.weights), None


def _need(fits: bool, otherwise: str) -> None:
    if not fits:
        raise InputError(otherwise)


def _axes(n_dimensions: int) -> Any:
    return pyplot().figure().add_subplot(projection="3d" if n_dimensions == 3 else None)


def _edges(ax: Any, corners: Array, **style: Any) -> None:
    for a, b in combinations(corners, 2):
        ax.plot(*np.stack([a, b], axis=1), linewidth=1, **style)
