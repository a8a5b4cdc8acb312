"""Hulls of corners compared with non-negative least squares, and the simplex decomposition of a fitted model."""

import numpy as np
import pytest
from scipy.optimize import nnls

from polyseme import PLSA
from polyseme.simplex import Hull, SimplexDecomposition


@pytest.mark.parametrize(("K", "W"), [(1, 3), (2, 1), (3, 2), (4, 10), (10, 9)])
def test_weights_equal_non_negative_least_squares(K, W):
    rng = np.random.default_rng(K)
    corners, X = rng.normal(size=(K, W)), 2 * rng.normal(size=(100, W))
    hull = Hull(corners)
    weights = hull.weights(X)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    heavy = np.vstack([corners.T, np.full(K, 1e5)])
    naive = np.array([nnls(heavy, [*x, 1e5])[0] for x in X])
    np.testing.assert_allclose(weights, naive, atol=1e-6)
    np.testing.assert_allclose(hull.distance(X), np.linalg.norm(X - weights @ corners, axis=1), atol=1e-12)


@pytest.mark.parametrize("corners", [np.ones((3, 2)), np.random.default_rng(0).normal(size=(6, 3)), [[0.0], [1], [1]]])
def test_distances_for_dependent_corners(corners):
    corners = np.asarray(corners, dtype=float)
    X = 2 * np.random.default_rng(1).normal(size=(100, corners.shape[1]))
    heavy = np.vstack([corners.T, np.full(len(corners), 1e5)])
    naive = np.array([np.linalg.norm(x - nnls(heavy, [*x, 1e5])[0] @ corners) for x in X])
    np.testing.assert_allclose(Hull(corners).distance(X), naive, atol=1e-6)


def test_barycentric_coordinates_and_points_outside():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    X = np.array([[0.25, 0.25], [0.5, 0.5], [1.0, 1.0], [-0.1, 0.5]])
    hull = Hull(corners)
    np.testing.assert_allclose(hull.barycentric(X), np.column_stack([1 - X.sum(axis=1), X]), atol=1e-9)
    assert hull.outside(X).tolist() == [False, False, True, True]
    assert not hull.outside(X, tolerance=0.6).any()
    assert hull.diameter == pytest.approx(np.sqrt(2))


def test_weights_do_not_depend_on_the_batch():
    rng = np.random.default_rng(3)
    hull, X = Hull(rng.normal(size=(4, 7))), rng.normal(size=(50, 7))
    assert np.array_equal(hull.weights(X)[17:18], hull.weights(X[17:18]))


def test_simplex_decomposition_of_plsa():
    rng = np.random.default_rng(0)
    X = rng.multinomial(200, rng.dirichlet([0.3] * 3, 50) @ rng.dirichlet([0.5] * 6, 3))
    model = PLSA(3, random_state=0).fit(X)
    decomposition = SimplexDecomposition.of(model, X)
    np.testing.assert_allclose(decomposition.points, X / X.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(decomposition.weights.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(decomposition.approximations, decomposition.weights @ model.components_, atol=1e-7)
    assert decomposition.outside().shape == (50,)
    assert (decomposition.errors >= decomposition.hull.distance(decomposition.points) - 1e-7).all()
