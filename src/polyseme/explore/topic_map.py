"""A map of the topics: a plane that keeps their distances as well as a plane can."""

from __future__ import annotations

import numpy as np

from polyseme.kernels import Floats


def classical_scaling(distances: Floats) -> Floats:
    """Places in the plane, K x 2 (classical multidimensional scaling; Torgerson 1952).

    With J = I - 1/K the leading eigenvectors of -J D^2 J / 2, each times the root of its eigenvalue. The sign of each
    axis is such that its largest coordinate is positive.
    """
    K = len(distances)
    squares = distances**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    places = np.zeros((K, 2))
    for axis in range(min(2, K)):
        value, vector = values[-1 - axis], vectors[:, -1 - axis]
        if value > 1e-12:
            sign = np.sign(vector[np.argmax(np.abs(vector))])
            places[:, axis] = sign * vector * np.sqrt(value)
    return places
