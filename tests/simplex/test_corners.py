"""Farthest points, and the smallest simplex around points with and without a margin."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, minimize
from scipy.spatial import ConvexHull
from threadpoolctl import threadpool_limits

from polyseme import PLSA, RealTopicModel
from polyseme.simplex import Hull
from polyseme.simplex.corners import (
    Plane,
    _expand,
    _noise,
    barycentric,
    farthest_corners,
    smallest_corners,
)


def matched_error(found, true):
    """Return the largest root-mean-square error of matched corners."""
    gaps = np.sqrt(((found[:, np.newaxis] - true) ** 2).mean(axis=2))
    return gaps[linear_sum_assignment(gaps)].max()


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
    found = smallest_corners(X, K, np.ones(len(X)), 0.0).points
    assert not Hull(found).outside(X, 1e-5).any() or K == 1
    assert matched_error(found, corners) < 0.1 or K == 1
    if K > 1:
        assert volume_of(found) <= volume_of(corners) * (1 + 1e-6)
    else:
        np.testing.assert_allclose(found[0], X.mean(axis=0), atol=1e-12)


def test_no_similar_triangle_around_the_points_is_smaller():
    X = np.random.default_rng(5).normal(size=(200, 2))
    found = smallest_corners(X, 3, np.ones(200), 0.0).points
    hull = X[ConvexHull(X).vertices]
    rng = np.random.default_rng(6)
    for scale in (1e-3, 1e-2, 1e-1):
        for _ in range(300):
            other = found + scale * rng.normal(size=found.shape)
            low = np.minimum(Hull(other).barycentric(hull).min(axis=0), 0)
            other = (1 - low.sum()) * other + low @ other  # moves faces outward until all points are inside
            assert volume_of(other) >= volume_of(found) * (1 - 1e-4)


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.3])
def test_the_margin_bounds_the_weight_outside_of_each_face(margin):
    X, _ = mixtures(3, 2, 500, noise=0.1)
    weights = np.random.default_rng(0).random(500) + 0.1
    found = smallest_corners(X, 3, weights, margin).points
    outside = weights @ (Hull(found).barycentric(X) < -1e-5) / weights.sum()
    assert (outside <= margin).all()
    assert outside.max() > 0.5 * margin


def test_a_soft_margin_is_robust_to_outliers():
    X, corners = mixtures(3, 6, 500)
    X[:5] += 3 * np.random.default_rng(1).normal(size=(5, 6))
    hard, soft = (matched_error(smallest_corners(X, 3, np.ones(500), margin).points, corners) for margin in (0, 0.05))
    assert soft < 0.1 < hard


def test_a_weight_equals_repeated_points():
    X, _ = mixtures(3, 4, 60, noise=0.05)
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    one = smallest_corners(X, 3, weights, 0.05).points
    other = smallest_corners(np.repeat(X, weights.astype(int), axis=0), 3, np.ones(int(weights.sum())), 0.05).points
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_corners_do_not_depend_on_the_threads_of_blas():
    X, _ = mixtures(5, 40, 4000, noise=0.05)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(smallest_corners(X, 5, np.ones(4000), 0.05).points)
    assert np.array_equal(*found)


def test_a_hard_margin_includes_points_outside_of_the_sample(monkeypatch):
    monkeypatch.setattr("polyseme.simplex.corners._MAX_POINTS", 50)
    X, _ = mixtures(3, 4, 1000, noise=0.05)
    found = smallest_corners(X, 3, np.ones(1000), 0.0).points
    assert Hull(found).barycentric(X).min() > -1e-5


@pytest.mark.parametrize(("n", "W"), [(1, 3), (3, 5), (4, 1), (30, 2)])
def test_more_corners_than_dimensions(n, W):
    X = np.random.default_rng(n).normal(size=(n, W))
    for corners in (smallest_corners(X, 5, np.ones(n), 0.0).points, farthest_corners(X, 5, np.ones(n))):
        assert corners.shape == (5, W)
        assert np.isfinite(corners).all()
    if n < 30:
        assert Hull(smallest_corners(X, 5, np.ones(n), 0.0).points).distance(X).max() < 1e-5


def test_farthest_corners_are_points_of_the_data():
    X, _ = mixtures(3, 2, 100)
    corners = farthest_corners(X, 3, np.ones(100))
    assert max(np.abs(X - corner).max(axis=1).min() for corner in corners) < 1e-12


@pytest.mark.parametrize("shape", [(2000, 20), (40, 3000), (60_000, 40), (1100, 2000)])
def test_the_plane_is_that_of_principal_components(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1])) + 5
    plane = Plane.of(X, np.ones(len(X)), 3)
    np.testing.assert_allclose(plane.points(plane.coordinates(X)), X, atol=1e-6)
    np.testing.assert_allclose(plane.directions @ plane.directions.T, np.eye(3), atol=1e-8)
    assert len(Plane.of(X, np.ones(len(X)), 8).directions) == 3


@pytest.mark.parametrize("n_directions", [1, 16])
def test_noise_in_few_directions_is_not_spread_over_all(n_directions):
    rng = np.random.default_rng(0)
    X = np.zeros((4000, 20))
    X[:, :4] = 3 * rng.normal(size=(4000, 4))
    X[:, 4 : 4 + n_directions] = 0.1 * rng.normal(size=(4000, n_directions))
    plane, weights = Plane.robust(X, np.ones(4000), 4, 0.05)
    assert _noise(plane.rest) == pytest.approx(0.1, rel=0.1)
    assert weights.min() < 0.999 <= np.quantile(weights, 0.06)


def spiky_mixtures(K, *, seed, n=200, W=50):
    """Return mixtures of non-negative corners that are zero in most entries, with noise, and the corners."""
    rng = np.random.default_rng(seed)
    places = np.linspace(0, 1, W)
    corners = np.array([np.exp(-(((places - center) / 0.06) ** 2)) for center in rng.random(K)])
    return np.maximum(rng.dirichlet(np.full(K, 0.7), n) @ corners + 0.03 * rng.normal(size=(n, W)), 0), corners


@pytest.mark.parametrize("margin", [0.0, 0.05])
@pytest.mark.parametrize("K", [1, 3, 5])
def test_corners_of_non_negative_points_are_not_negative(K, margin):
    X, _ = spiky_mixtures(K, seed=K)
    free = smallest_corners(X, K, np.ones(len(X)), margin).points
    found = smallest_corners(X, K, np.ones(len(X)), margin, non_negative=True).points
    assert found.min() >= 0
    if K > 1:
        assert free.min() < 0
        assert np.linalg.matrix_rank(found[1:] - found[0]) == K - 1
    far = smallest_corners(X + 100, K, np.ones(len(X)), margin, non_negative=True).points - 100
    gaps = np.abs(far[:, np.newaxis] - free).max(axis=2)
    assert gaps[linear_sum_assignment(gaps)].max() < 0.05
    assert farthest_corners(X, K, np.ones(len(X)), non_negative=True).min() >= 0


def test_the_nearest_non_negative_point_of_a_plane():
    """Compare with a general solver of the quadratic program."""
    X, _ = spiky_mixtures(4, seed=0)
    plane = Plane.of(X, np.ones(len(X)), 3)
    rng = np.random.default_rng(1)
    far = 3 * plane.coordinates(X)[:8] + 0.1 * rng.normal(size=(8, 3))
    nearest = plane.nearest_non_negative(far)
    assert plane.points(nearest).min() > -1e-9
    for point, moved in zip(far, nearest, strict=True):
        found = minimize(
            lambda c, point=point: ((c - point) ** 2).sum(),
            np.zeros(3),
            jac=lambda c, point=point: 2 * (c - point),
            constraints={
                "type": "ineq",
                "fun": lambda c: plane.points(c[np.newaxis])[0],
                "jac": lambda c: plane.directions.T,
            },
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(moved, found.x, atol=1e-5)
    inside = plane.coordinates(X.mean(axis=0, keepdims=True))
    assert np.array_equal(plane.nearest_non_negative(inside), inside)


def test_a_search_that_does_not_converge_moves_the_corner_toward_the_mean(monkeypatch):
    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr("polyseme.simplex.corners.nnls", fail)
    X, _ = spiky_mixtures(3, seed=0)
    plane = Plane.of(X, np.ones(len(X)), 2)
    far = 5 * plane.coordinates(X)[:3]
    nearest = plane.nearest_non_negative(far)
    assert plane.points(nearest).min() > -1e-12
    np.testing.assert_allclose(nearest[:, 0] * far[:, 1], nearest[:, 1] * far[:, 0], rtol=1e-9)
    assert smallest_corners(X, 3, np.ones(len(X)), 0.05, non_negative=True).points.min() >= 0


@pytest.mark.parametrize("weight", [0.1, 2.0, 20.0])
def test_the_margin_is_a_share_of_the_weight(weight):
    """Of 100 points between 0 and 1 and one at 10, a margin of 5% leaves the last one out if it has less weight."""
    X = np.append(np.linspace(0, 1, 100), 10.0)[:, np.newaxis]
    corners = smallest_corners(X, 2, np.append(np.ones(100), weight), 0.05).points
    assert (corners.max() > 9.5) == (weight > 5)


def test_the_margin_treats_weights_as_repeated_points():
    X, _ = mixtures(3, 2, 150, seed=4, noise=0.05)
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    found = smallest_corners(X, 3, weights.astype(float), 0.1).points
    repeated = smallest_corners(np.repeat(X, weights, axis=0), 3, np.ones(weights.sum()), 0.1).points
    assert matched_error(found, repeated) < 0.02
    assert matched_error(found, smallest_corners(X, 3, np.ones(len(X)), 0.1).points) > 0.02


def test_a_start_is_expanded_until_the_weight_outside_is_allowed():
    points = np.array([-3.0, -2.0, -1.0, 0.2, 0.8, 2.0, 4.0])[:, np.newaxis]
    weights = np.array([1.0, 5.0, 1.0, 1.0, 1.0, 1.0, 0.5])
    corners = np.array([[0.0], [1.0]])
    for allowed, ends in ((2.0, [-2.0, 1.0]), (1.0, [-2.0, 2.0]), (0.0, [-3.0, 4.0])):
        expanded, b = _expand(corners, barycentric(points, corners), allowed, weights)
        np.testing.assert_allclose(np.sort(expanded.ravel()), ends, atol=1e-12)
        np.testing.assert_allclose(b @ expanded, points, atol=1e-12)
        assert (weights @ (b < -1e-12)).max() <= allowed


def test_dark_corners_are_found_in_points_of_different_brightness_with_outliers():
    """One of four corners has a tenth of the light of the others; one point in a hundred is an outlier."""
    rng = np.random.default_rng(0)
    places = np.linspace(0, 1, 30)
    corners = 0.2 + np.exp(-(((places - np.array([[0.1], [0.4], [0.65], [0.9]])) / 0.15) ** 2))
    corners[0] *= 0.1
    X = rng.uniform(0.4, 1.0, (600, 1)) * (rng.dirichlet(np.full(4, 0.5), 600) @ corners)
    X = np.maximum(X + 0.005 * rng.normal(size=X.shape), 0)
    X[:6] = 2 * rng.random((6, 30))
    start = smallest_corners(X, 4, np.ones(600), 0.05, non_negative=True).points
    fitted = RealTopicModel(PLSA(4, solver="em")).fit(X).components_
    for found in (start, fitted):
        cosines = corners @ found.T / np.outer(np.linalg.norm(corners, axis=1), np.linalg.norm(found, axis=1))
        angles = np.degrees(np.arccos(np.minimum(cosines, 1)))
        assert angles[linear_sum_assignment(angles)].max() < 5  # at most 4.8 for seeds 0 to 5


@pytest.mark.parametrize(("n", "varies"), [(60, False), (2000, False), (2000, True)])
def test_brightness_is_told_from_noise(n, varies):
    """Noise has one size, or sizes that fall from direction to direction, the first of them close to brightness."""
    sizes = np.concatenate([[1, 1, 0.126], 0.1 * 0.8 ** np.arange(37)]) if varies else np.repeat([1, 0.1], [2, 38])
    X = 10 + np.random.default_rng(0).normal(size=(n, 40)) * sizes
    assert (smallest_corners(X, 3, np.ones(n), 0.05, non_negative=True).level is not None) == varies
