"""The map to the simplex and back, hulls, and the smallest simplex, against the paper and naive formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, nnls
from scipy.spatial import ConvexHull
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

from polyseme import PLSA, InputError
from polyseme.simplex import (
    Hull,
    SimplexDecomposition,
    SimplexMap,
    farthest_corners,
    lift,
    lower,
    minimum_volume_corners,
    onto_simplex,
    orthonormal_basis,
)
from polyseme.simplex.corners import Plane

DIMENSIONS = [*range(1, 34), 63, 64, 65, 100, 127, 199, 200]


def appendix_a(m, *, normalized=True):
    """The paper's MATLAB, line by line."""
    sizes, i, T = [m + 1], m + 1, np.zeros((1, 0))
    while i != 1:
        i //= 2
        sizes.append(i)
    for i in sizes[-2::-1]:
        half = i // 2
        T = np.block([[T, np.zeros_like(T)], [np.zeros_like(T), T]])
        T = np.column_stack([T, np.repeat([1.0, -1.0], half)])
        if i % 2:
            T = np.vstack([np.column_stack([T, np.ones(i - 1)]), [*np.zeros(i - 2), -(i - 1.0)]])
    return T / np.linalg.norm(T, axis=0) if normalized else T


def matched_error(found, true):
    """The worst root-mean-square error of matched corners."""
    gaps = np.sqrt(((found[:, np.newaxis] - true) ** 2).mean(axis=2))
    return gaps[linear_sum_assignment(gaps)].max()


# T


@pytest.mark.parametrize("W", DIMENSIONS)
def test_basis_is_appendix_a_and_orthonormal(W):
    T = orthonormal_basis(W)
    np.testing.assert_allclose(T, appendix_a(W), atol=1e-15)
    np.testing.assert_allclose(T.T @ T, np.eye(W), atol=1e-14)
    np.testing.assert_allclose(T.sum(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(orthonormal_basis(W, normalized=False), appendix_a(W, normalized=False), rtol=1e-14)


@pytest.mark.parametrize("W", DIMENSIONS)
def test_structure_gives_the_dense_products(W):
    rng = np.random.default_rng(W)
    X, Y = rng.normal(size=(6, W)), rng.normal(size=(6, W + 1))
    np.testing.assert_allclose(lift(X), X @ appendix_a(W).T, atol=1e-13)
    np.testing.assert_allclose(lower(Y), Y @ appendix_a(W), atol=1e-13)
    raw = appendix_a(W, normalized=False)
    np.testing.assert_allclose(lift(X, normalized=False), X @ raw.T, atol=1e-11)
    np.testing.assert_allclose(lower(Y, normalized=False), Y @ np.linalg.pinv(raw).T, atol=1e-11)


def test_large_dimension_needs_no_dense_matrix():
    X = np.random.default_rng(0).normal(size=(2, 1_000_003))
    np.testing.assert_allclose(lower(lift(X)), X, atol=1e-12)


@pytest.mark.parametrize("points", [np.zeros(3), np.zeros((2, 0))])
def test_lift_refuses_what_is_no_matrix(points):
    with pytest.raises(InputError, match="Points must"):
        lift(points)


# the map


@pytest.mark.parametrize("W", range(1, 201))
def test_map_keeps_ratios_of_distances_and_comes_back(W):
    X = np.random.default_rng(W).normal(size=(7, W)) * 10
    for simplex_map in (SimplexMap.of_paper(X), SimplexMap.tight(X)):
        P = simplex_map.to_simplex(X)
        assert P.min() >= -1e-15
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        ratios = pdist(P) / pdist(X)
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)
        np.testing.assert_allclose(simplex_map.from_simplex(P), X, atol=1e-12 * np.abs(X).max() * 10)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.integers(0, 1000))
def test_map_comes_back_wherever_the_data_lies(W, n, origin, spread, seed):
    X = origin + spread * np.random.default_rng(seed).normal(size=(n, W))
    for simplex_map in (SimplexMap.of_paper(X), SimplexMap.tight(X)):
        back = simplex_map.from_simplex(simplex_map.to_simplex(X))
        np.testing.assert_allclose(back, X, atol=1e-12 * simplex_map.scale)


def test_three_points_of_the_paper():
    X = np.array([[-2.5, -0.5], [-1.5, 1.5], [-2.0, 0.5]])
    P = SimplexMap.of_paper(X).to_simplex(X)
    printed = [[0, 0.5977, 0.4023], [0.2576, 0.6161, 0.1263], [0.1288, 0.6069, 0.2643]]
    np.testing.assert_allclose(P, printed, atol=5e-5)


def test_tight_map_does_not_see_the_origin():
    X = np.random.default_rng(0).normal(size=(20, 5))
    np.testing.assert_allclose(
        SimplexMap.tight(X).to_simplex(X), SimplexMap.tight(X + 100).to_simplex(X + 100), atol=1e-6
    )


def test_nearest_distribution():
    P = np.random.default_rng(1).normal(size=(200, 6))
    P += (1 - P.sum(axis=1, keepdims=True)) / 6
    nearest = onto_simplex(P)
    weights = Hull(np.eye(6)).weights(P)
    np.testing.assert_allclose(nearest, weights, atol=1e-9)
    np.testing.assert_allclose(onto_simplex(nearest), nearest, atol=1e-15)


# hulls


@pytest.mark.parametrize(("K", "W"), [(1, 3), (2, 1), (3, 2), (4, 10), (10, 9)])
def test_nearest_weights_are_those_of_least_squares(K, W):
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
def test_corners_that_depend_on_each_other(corners):
    corners = np.asarray(corners, dtype=float)
    X = 2 * np.random.default_rng(1).normal(size=(100, corners.shape[1]))
    heavy = np.vstack([corners.T, np.full(len(corners), 1e5)])
    naive = np.array([np.linalg.norm(x - nnls(heavy, [*x, 1e5])[0] @ corners) for x in X])
    np.testing.assert_allclose(Hull(corners).distance(X), naive, atol=1e-6)


def test_barycentric_coordinates_and_the_outside():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    X = np.array([[0.25, 0.25], [0.5, 0.5], [1.0, 1.0], [-0.1, 0.5]])
    hull = Hull(corners)
    np.testing.assert_allclose(hull.barycentric(X), np.column_stack([1 - X.sum(axis=1), X]), atol=1e-9)
    assert hull.outside(X).tolist() == [False, False, True, True]
    assert not hull.outside(X, tolerance=0.6).any()
    assert hull.diameter == pytest.approx(np.sqrt(2))


def test_weights_of_a_row_do_not_depend_on_its_batch():
    rng = np.random.default_rng(3)
    hull, X = Hull(rng.normal(size=(4, 7))), rng.normal(size=(50, 7))
    assert np.array_equal(hull.weights(X)[17:18], hull.weights(X[17:18]))


# the smallest simplex


def mixtures(K, W, n, *, seed=0, noise=0.0, alpha=0.5):
    rng = np.random.default_rng(seed)
    corners = rng.normal(size=(K, W))
    return rng.dirichlet(np.full(K, alpha), n) @ corners + noise * rng.normal(size=(n, W)), corners


def volume_of(corners):
    edges = corners[1:] - corners[0]
    return np.sqrt(np.linalg.det(edges @ edges.T))


@pytest.mark.parametrize(("K", "W"), [(1, 4), (2, 1), (2, 5), (3, 2), (4, 30), (6, 5)])
def test_corners_of_mixtures_are_found(K, W):
    X, corners = mixtures(K, W, 400, seed=K)
    found = minimum_volume_corners(X, K, np.ones(len(X)), 0.0)
    assert not Hull(found).outside(X, 1e-5).any() or K == 1
    assert matched_error(found, corners) < 0.1 or K == 1
    if K > 1:
        assert volume_of(found) <= volume_of(corners) * (1 + 1e-6)
    else:
        np.testing.assert_allclose(found[0], X.mean(axis=0), atol=1e-12)


def test_no_triangle_near_it_is_smaller():
    X = np.random.default_rng(5).normal(size=(200, 2))
    found = minimum_volume_corners(X, 3, np.ones(200), 0.0)
    hull = X[ConvexHull(X).vertices]
    rng = np.random.default_rng(6)
    for scale in (1e-3, 1e-2, 1e-1):
        for _ in range(300):
            other = found + scale * rng.normal(size=found.shape)
            low = np.minimum(Hull(other).barycentric(hull).min(axis=0), 0)
            other = (1 - low.sum()) * other + low @ other  # faces moved out to hold all points
            assert volume_of(other) >= volume_of(found) * (1 - 1e-4)


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.3])
def test_margin_bounds_the_weight_beyond_each_face(margin):
    X, _ = mixtures(3, 2, 500, noise=0.1)
    weights = np.random.default_rng(0).random(500) + 0.1
    found = minimum_volume_corners(X, 3, weights, margin)
    beyond = weights @ (Hull(found).barycentric(X) < -1e-5) / weights.sum()
    assert (beyond <= margin).all()
    assert beyond.max() > 0.5 * margin


def test_margin_is_robust_to_outliers():
    X, corners = mixtures(3, 6, 500)
    X[:5] += 3 * np.random.default_rng(1).normal(size=(5, 6))
    hard, soft = (matched_error(minimum_volume_corners(X, 3, np.ones(500), margin), corners) for margin in (0, 0.05))
    assert soft < 0.1 < hard


def test_weight_two_is_two_points():
    X, _ = mixtures(3, 4, 60, noise=0.05)
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    one = minimum_volume_corners(X, 3, weights, 0.05)
    other = minimum_volume_corners(np.repeat(X, weights.astype(int), axis=0), 3, np.ones(int(weights.sum())), 0.05)
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_corners_do_not_depend_on_the_threads_of_blas():
    X, _ = mixtures(5, 40, 4000, noise=0.05)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(minimum_volume_corners(X, 5, np.ones(4000), 0.05))
    assert np.array_equal(*found)


def test_hard_margin_checks_the_points_that_were_not_chosen(monkeypatch):
    monkeypatch.setattr("polyseme.simplex.corners.ENOUGH_POINTS", 50)
    X, _ = mixtures(3, 4, 1000, noise=0.05)
    found = minimum_volume_corners(X, 3, np.ones(1000), 0.0)
    assert Hull(found).barycentric(X).min() > -1e-5


@pytest.mark.parametrize(("n", "W"), [(1, 3), (3, 5), (4, 1), (30, 2)])
def test_fewer_dimensions_than_corners(n, W):
    X = np.random.default_rng(n).normal(size=(n, W))
    for corners in (minimum_volume_corners(X, 5, np.ones(n), 0.0), farthest_corners(X, 5, np.ones(n))):
        assert corners.shape == (5, W)
        assert np.isfinite(corners).all()
    if n < 30:
        assert Hull(minimum_volume_corners(X, 5, np.ones(n), 0.0)).distance(X).max() < 1e-5


def test_farthest_corners_are_points_of_the_data():
    X, _ = mixtures(3, 2, 100)
    corners = farthest_corners(X, 3, np.ones(100))
    assert max(np.abs(X - corner).max(axis=1).min() for corner in corners) < 1e-12


@pytest.mark.parametrize("shape", [(2000, 20), (40, 3000), (60_000, 40), (1100, 2000)])
def test_plane_is_that_of_principal_components(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1])) + 5
    plane = Plane.of(X, np.ones(len(X)), 3)
    np.testing.assert_allclose(plane.points(plane.coordinates(X)), X, atol=1e-6)
    np.testing.assert_allclose(plane.directions @ plane.directions.T, np.eye(3), atol=1e-8)
    assert len(Plane.of(X, np.ones(len(X)), 8).directions) == 3


# what all have in common


def test_plsa_as_a_simplex_decomposition():
    rng = np.random.default_rng(0)
    X = rng.multinomial(200, rng.dirichlet([0.3] * 3, 50) @ rng.dirichlet([0.5] * 6, 3))
    model = PLSA(3, random_state=0).fit(X)
    seen = SimplexDecomposition.of(model, X)
    np.testing.assert_allclose(seen.points, X / X.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(seen.weights.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(seen.approximations, seen.weights @ model.components_, atol=1e-7)
    assert seen.outside().shape == (50,)
    assert (seen.errors >= seen.hull.distance(seen.points) - 1e-7).all()
