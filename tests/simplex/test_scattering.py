"""Scattering of points: known cases, and hulls checked by linear programs."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from polyseme import InputError
from polyseme.simplex import scattering


def permutations(row):
    return np.array(sorted(set(itertools.permutations(row))))


@pytest.mark.parametrize("share", [0.55, 0.6, 0.66, 0.67, 0.7, 0.95])
def test_a_hexagon_is_scattered_from_two_thirds_on(share):
    """Huang et al. (2014): the points (a, 1 - a, 0) and their permutations."""
    assert scattering(permutations((share, 1 - share, 0))).sufficient == (share > 2 / 3)


def test_a_polygon_that_touches_the_circle_elsewhere_is_not_scattered():
    assert scattering(permutations((2 / 3, 1 / 3, 0))).sufficient is False


@pytest.mark.parametrize("n_topics", [1, 2, 3, 7, 30])
def test_anchors_are_sufficient(n_topics):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.dirichlet(np.ones(n_topics), 50), 5 * np.eye(n_topics)])
    found = scattering(rows)
    assert found.sufficient
    assert (found.purity == 1).all()
    assert found.faces_covered.all()
    if n_topics > 1:
        np.testing.assert_array_equal(found.purest, 50 + np.arange(n_topics))


def test_points_inside_are_not_sufficient():
    found = scattering(np.random.default_rng(0).dirichlet(np.full(4, 5.0), 100))
    assert found.sufficient is False
    assert not found.faces_covered.any()


def test_many_topics_are_not_decided():
    found = scattering(permutations((0.5, 0.5, 0, 0, 0, 0, 0)))
    assert found.faces_covered.all()
    assert found.sufficient is None


def is_mixture(point, rows):
    return linprog(np.zeros(len(rows)), A_eq=rows.T, b_eq=point).status == 0


@pytest.mark.parametrize("seed", range(8))
def test_the_verdict_agrees_with_points_of_the_ball(seed):
    """Points on the sphere are mixtures of the rows exactly if the ball is in the hull."""
    rng = np.random.default_rng(seed)
    K = 3 + seed % 3
    shares = np.sort(rng.uniform(0.3, 0.9, 2))
    rows = np.concatenate([permutations((share, 1 - share, *np.zeros(K - 2))) for share in shares])
    rows = np.concatenate([rows, permutations((0, *np.full(K - 1, 1 / (K - 1))))])
    directions = rng.normal(size=(200, K))
    directions[:K] = -np.eye(K)
    directions[K : 2 * K] = np.eye(K)
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sphere = 1 / K + 0.9999 / np.sqrt(K * (K - 1)) * directions
    inside = all(is_mixture(point, rows) for point in sphere)
    assert scattering(rows, tolerance=0).sufficient == inside


def test_rare_rows_are_left_out_and_rows_keep_their_numbers():
    rows = np.array([[0.0, 0.0], [0.01, 0.0], [6.0, 2.0], [2.0, 6.0]])
    assert scattering(rows).purest[0] == 1
    found = scattering(rows, least=0.5)
    assert found.purest.tolist() == [2, 3]
    np.testing.assert_allclose(found.purity, 0.75)
    assert not found.sufficient


def test_wrong_rows():
    for rows in ([1.0, 2.0], [[-1.0, 2.0]], [[np.nan, 1.0]], np.empty((0, 2))):
        with pytest.raises(InputError, match="rows must be a matrix"):
            scattering(rows)
    with pytest.raises(InputError, match="no row with a positive weight"):
        scattering(np.zeros((2, 2)))
