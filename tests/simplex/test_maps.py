"""The map of real data to the simplex and back, compared with the code and the numbers of Shashanka (2009)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from polyseme import InputError
from polyseme.simplex import Hull, SimplexMap
from polyseme.simplex.maps import lift, lower, project_to_simplex

DIMENSIONS = [*range(1, 34), 63, 64, 65, 100, 127, 199, 200]


def appendix_a(m, *, normalized=True):
    """Return T by the MATLAB code of the paper."""
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


@pytest.mark.parametrize("W", DIMENSIONS)
def test_the_basis_is_that_of_appendix_a_and_orthonormal(W):
    T = lift(np.eye(W)).T
    np.testing.assert_allclose(T, appendix_a(W), atol=1e-15)
    np.testing.assert_allclose(T.T @ T, np.eye(W), atol=1e-14)
    np.testing.assert_allclose(T.sum(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(lift(np.eye(W), normalized=False).T, appendix_a(W, normalized=False), rtol=1e-14)


@pytest.mark.parametrize("W", DIMENSIONS)
def test_lift_and_lower_equal_dense_products_with_the_basis(W):
    rng = np.random.default_rng(W)
    X, Y = rng.normal(size=(6, W)), rng.normal(size=(6, W + 1))
    np.testing.assert_allclose(lift(X), X @ appendix_a(W).T, atol=1e-13)
    np.testing.assert_allclose(lower(Y), Y @ appendix_a(W), atol=1e-13)
    raw = appendix_a(W, normalized=False)
    np.testing.assert_allclose(lift(X, normalized=False), X @ raw.T, atol=1e-11)
    np.testing.assert_allclose(lower(Y, normalized=False), Y @ np.linalg.pinv(raw).T, atol=1e-11)


def test_lower_inverts_lift_in_a_million_dimensions():
    X = np.random.default_rng(0).normal(size=(2, 1_000_003))
    np.testing.assert_allclose(lower(lift(X)), X, atol=1e-12)


@pytest.mark.parametrize("points", [np.zeros(3), np.zeros((2, 0))])
def test_lift_raises_an_error_for_other_shapes(points):
    with pytest.raises(InputError, match="Points must"):
        lift(points)


@pytest.mark.parametrize("W", range(1, 201))
def test_the_map_preserves_ratios_of_distances_and_has_an_inverse(W):
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
def test_the_inverse_map_is_exact_for_any_origin_and_scale(W, n, origin, spread, seed):
    X = origin + spread * np.random.default_rng(seed).normal(size=(n, W))
    for simplex_map in (SimplexMap.of_paper(X), SimplexMap.tight(X)):
        back = simplex_map.from_simplex(simplex_map.to_simplex(X))
        np.testing.assert_allclose(back, X, atol=1e-12 * simplex_map.scale)


def test_the_example_with_three_points_of_the_paper():
    X = np.array([[-2.5, -0.5], [-1.5, 1.5], [-2.0, 0.5]])
    P = SimplexMap.of_paper(X).to_simplex(X)
    printed = [[0, 0.5977, 0.4023], [0.2576, 0.6161, 0.1263], [0.1288, 0.6069, 0.2643]]
    np.testing.assert_allclose(P, printed, atol=5e-5)


def test_the_tight_map_does_not_depend_on_the_origin():
    X = np.random.default_rng(0).normal(size=(20, 5))
    np.testing.assert_allclose(
        SimplexMap.tight(X).to_simplex(X), SimplexMap.tight(X + 100).to_simplex(X + 100), atol=1e-6
    )


def test_onto_simplex_finds_the_nearest_distribution():
    P = np.random.default_rng(1).normal(size=(200, 6))
    P += (1 - P.sum(axis=1, keepdims=True)) / 6
    nearest = project_to_simplex(P)
    weights = Hull(np.eye(6)).weights(P)
    np.testing.assert_allclose(nearest, weights, atol=1e-9)
    np.testing.assert_allclose(project_to_simplex(nearest), nearest, atol=1e-15)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("W", [1, 2, 7, 30])
def test_the_map_of_non_negative_points(W, offset):
    rng = np.random.default_rng(W)
    X = offset + rng.exponential(size=(40, W))
    simplex_map = SimplexMap.of_orthant(X[:20], X[20:])
    P = simplex_map.to_simplex(X)
    assert P.min() >= 0
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(simplex_map.from_simplex(P), X, atol=1e-9 * simplex_map.scale)
    weights = rng.dirichlet(np.ones(40), 5)
    np.testing.assert_allclose(simplex_map.to_simplex(weights @ X), weights @ P, atol=1e-9)
    corners = simplex_map.from_simplex(np.vstack([np.eye(W + 1), rng.dirichlet(np.full(W + 1, 0.2), 100)]))
    assert corners.min() >= 0
    assert corners.min() <= X.min()  # a topic may have lower values than all points
    assert P.max(axis=0)[:-1].min() > 1e-3 / W  # data far from zero still differ


def test_the_nearest_point_of_the_simplex_of_non_negative_points():
    rng = np.random.default_rng(0)
    simplex_map = SimplexMap.of_orthant(rng.exponential(size=(30, 4)))
    points = 3 * rng.normal(size=(200, 4))
    nearest = simplex_map.from_simplex(simplex_map.nearest(simplex_map.to_simplex(points)))
    corners = simplex_map.from_simplex(np.eye(5))
    expected = Hull(corners).weights(points) @ corners
    np.testing.assert_allclose(nearest, expected, atol=1e-6)
    inside = rng.dirichlet(np.ones(5), 10)
    np.testing.assert_allclose(simplex_map.nearest(inside), inside, atol=1e-12)
