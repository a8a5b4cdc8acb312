"""Colors of topics: they can be told apart, and neighbors differ."""

import itertools

import numpy as np
import pytest

from polyseme.layout import colors
from polyseme.layout.colors import DARK, LIGHT, assign_colors


def test_oklab_of_known_colors():
    found = colors.oklab(["#ffffff", "#000000", "#ff0000", "#0000ff"])
    known = [[1, 0, 0], [0, 0, 0], [0.628, 0.2249, 0.1258], [0.452, -0.0324, -0.3115]]
    np.testing.assert_allclose(found, known, atol=1e-3)


def test_red_and_green_are_alike_for_color_blind_readers():
    red, green = "#b05a3c", "#7a7a28"
    apart = [colors.distances(colors.oklab([red, green], view))[0, 1] for view in range(3)]
    assert apart[2] < 0.5 * apart[0]


def test_all_colors_differ_for_all_readers():
    assert len(LIGHT) == len(DARK) == 12
    found = colors.color_distances()
    assert min(found[i, j] for i, j in itertools.combinations(range(12), 2)) >= 0.10
    for palette, low, high in ((LIGHT, 0.4, 0.82), (DARK, 0.5, 0.92)):
        lightness = colors.oklab(palette)[:, 0]
        assert low < lightness.min() < lightness.max() < high


def test_a_color_has_the_same_hue_in_both_palettes():
    a, b = (colors.oklab(palette)[:, 1] + 1j * colors.oklab(palette)[:, 2] for palette in (LIGHT, DARK))
    assert np.abs(np.angle(a / b)).max() < 0.6


@pytest.mark.parametrize("n_topics", [0, 1, 2, 5, 12])
def test_few_topics_have_colors_of_their_own(n_topics):
    found = assign_colors(np.random.default_rng(n_topics).uniform(size=(n_topics, 2)))
    assert len(found) == len(set(found)) == n_topics
    assert all(0 <= color < 12 for color in found)


def test_no_exchange_of_two_colors_is_better():
    places = np.random.default_rng(0).uniform(size=(9, 2))
    found = assign_colors(places)
    squares = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    closeness = 1 / (1 + squares / np.median(np.sort(squares, axis=1)[:, 1])) ** 2
    likeness = 1 / (0.02 + colors.color_distances()) ** 2

    def cost(chosen):
        return sum(closeness[i, j] * likeness[chosen[i], chosen[j]] for i, j in itertools.combinations(range(9), 2))

    free = [color for color in range(12) if color not in found]
    for i in range(9):
        others = [[*found[:i], color, *found[i + 1 :]] for color in free]
        for j in range(i):
            swapped = list(found)
            swapped[i], swapped[j] = found[j], found[i]
            others.append(swapped)
        assert all(cost(other) >= cost(found) - 1e-6 for other in others)


def test_neighbors_of_many_topics_differ():
    places = np.random.default_rng(1).uniform(size=(40, 2))
    found = np.array(assign_colors(places))
    squares = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    nearest = np.argsort(squares, axis=1)[:, :3]
    assert (found[nearest] != found[:, None]).all()
    assert np.bincount(found, minlength=12).max() <= 4


def test_topics_at_one_place_have_different_colors():
    assert len(set(assign_colors(np.ones((8, 2))))) == 8
