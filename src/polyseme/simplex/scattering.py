"""Whether points of a simplex are scattered enough to determine its corners: identifiability of topic models.

The points are weights of documents, rows P(z|d), or of words, rows P(w|z) over z. A point with all its weight on topic
k is a corner: a pure document, or an anchor word. The points are sufficiently scattered (Huang, Sidiropoulos and Swami
2014) if their convex hull contains the ball that touches every face of the simplex in its center, and touches this
ball nowhere else. Then no other simplex of the same or smaller volume contains the points.

To decide this is NP-hard in general. Three facts decide most cases:

- The center of every face must be in the hull, of which only points on this face can help: K linear programs. If one
  has no solution, the points are not sufficiently scattered.
- A pure point for every topic is sufficient.
- The facets of the hull are all computed for up to six topics: each must be farther from the center than the radius of
  the ball, except those that lie in a face of the simplex.

References
----------
K. Huang, N. Sidiropoulos and A. Swami (2014). Non-negative matrix factorization revisited: uniqueness and algorithm for
symmetric decomposition. IEEE Transactions on Signal Processing 62(1).

X. Fu, K. Huang, N. Sidiropoulos and W.-K. Ma (2019). Nonnegative matrix factorization for signal and data analytics.
IEEE Signal Processing Magazine 36(2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.utils import check_nonnegative

_MOST_TOPICS = 6
"""Largest number of topics for which all facets of the hull are computed: their number grows exponentially."""
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Scattering:
    """Result of `scattering`.

    Attributes
    ----------
    purest : array of shape (n_topics,)
        Row with the largest share of each topic, of equal ones that with the largest weight: the anchor word, or the
        purest document.
    purity : array of shape (n_topics,)
        This share; 1 if the row has no other topic.
    faces_covered : array of bool of shape (n_topics,)
        Whether the center of the face opposite to each topic is in the hull of the rows without this topic. If one is
        not, the rows are not sufficiently scattered.
    sufficient : bool or None
        Whether the rows are sufficiently scattered. None: not decided, because there are too many topics.
    """

    purest: Array
    purity: Floats
    faces_covered: Array
    sufficient: bool | None


def scattering(rows: Any, *, tolerance: float = 1e-3, least: float = 0.0) -> Scattering:
    """Return how pure and how scattered weights are, which decides whether a topic model is unique.

    Topics and weights of an exact factorization are unique, up to the order of the topics, if the words and the
    documents are both sufficiently scattered; the topics of smallest volume are unique if the documents are.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_topics)
        Non-negative weights: ``model.doc_topic_`` for the documents, ``model.components_.T`` for the words. Rows are
        divided by their sums.
    tolerance : float, default=1e-3
        Shares up to this count as zero.
    least : float, default=0.0
        Rows whose sum is below this share of the mean sum are left out, such as rare words, which are pure by chance.

    Returns
    -------
    Scattering
        Purest rows, and whether the rows are sufficiently scattered.

    Examples
    --------
    >>> from polyseme.simplex import scattering
    >>> found = scattering([[0.7, 0.3, 0], [0.3, 0.7, 0], [0.7, 0, 0.3], [0.3, 0, 0.7], [0, 0.7, 0.3], [0, 0.3, 0.7]])
    >>> found.sufficient, found.purity.tolist()
    (True, [0.7, 0.7, 0.7])
    """
    tolerance, least = check_nonnegative("tolerance", tolerance), check_nonnegative("least", least)
    given = np.asarray(rows, dtype=np.float64)
    if given.ndim != 2 or not given.size or not np.isfinite(given).all() or (given < 0).any():
        raise InputError("rows must be a matrix (rows x topics) of finite non-negative weights.")
    sums = given.sum(axis=1)
    used = np.flatnonzero((sums > 0) & (sums >= least * sums.mean()))
    if not used.size:
        raise InputError("rows has no row with a positive weight: give weights, or a smaller least.")
    points = given[used] / sums[used, np.newaxis]
    points[points <= tolerance] = 0
    points /= points.sum(axis=1, keepdims=True)
    purity, K = points.max(axis=0), points.shape[1]
    best = np.where(points == purity, given[used], -1).argmax(axis=0)
    points = np.unique(points, axis=0)
    covered = np.array([_covers_face(points, topic) for topic in range(K)])
    sufficient: bool | None = None
    if not covered.all() or (purity == 1).all():
        sufficient = bool(covered.all())
    elif K <= _MOST_TOPICS:
        sufficient = _contains_ball(points)
    return Scattering(used[best], purity, covered, sufficient)


def _covers_face(points: Floats, topic: int) -> bool:
    """Return whether the center of the face opposite to a topic is a mixture of the points on this face."""
    K = points.shape[1]
    on_face = points[points[:, topic] == 0]
    if K == 1 or not len(on_face):
        return K == 1
    center = np.full(K, 1 / (K - 1))
    center[topic] = 0
    found = linprog(np.zeros(len(on_face)), A_eq=on_face.T, b_eq=center, method="highs")
    return bool(found.status == 0)


def _contains_ball(points: Floats) -> bool:
    """Return whether the hull of points contains the ball in the simplex, and touches it in the centers of faces only.

    The centers of all faces are in the hull.
    """
    K = points.shape[1]
    center, radius = np.full(K, 1 / K), 1 / np.sqrt(K * (K - 1))
    basis = np.linalg.svd(np.ones((1, K)))[2][1:]  # orthonormal directions in the plane of the simplex
    facets = ConvexHull((points - center) @ basis.T).equations
    distances = -facets[:, -1]
    touched = center + radius * facets[:, :-1] @ basis
    in_face = (touched < _ROUNDING).any(axis=1)
    return bool((distances[in_face] >= radius - _ROUNDING).all() and (distances[~in_face] > radius + _ROUNDING).all())
