"""Pictures of simplex decompositions: what is drawn where, and what cannot be drawn."""

import builtins

import numpy as np
import pytest

from polyseme import InputError, MissingExtraError
from polyseme.explore.simplex_plots import plot_simplex
from polyseme.simplex import Hull, SimplexDecomposition

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def decomposition(K, W, *, distributions=False):
    rng = np.random.default_rng(0)
    corners = rng.dirichlet(np.ones(W), K) if distributions else rng.normal(size=(K, W))
    weights = rng.dirichlet(np.ones(K), 20)
    return SimplexDecomposition(weights @ corners, corners, weights)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("form", "K", "W", "distributions", "dimensions"),
    [
        ("space", 3, 2, False, 2),
        ("space", 4, 3, False, 3),
        ("space", 3, 3, True, 3),
        ("simplex", 3, 3, True, 2),
        ("simplex", 3, 4, True, 3),
        ("corners", 3, 10, False, 2),
        ("corners", 4, 10, False, 3),
    ],
)
def test_points_corners_and_approximations_are_drawn(form, K, W, distributions, dimensions):
    seen = decomposition(K, W, distributions=distributions)
    ax = plot_simplex(seen, form=form, highlight=[3, 5])
    drawn = {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}
    assert list(drawn) == ["points", "corners", "chosen points", "their approximations"]
    place = {name: np.array(getattr(line, "get_data_3d" if dimensions == 3 else "get_data")()).T
             for name, line in drawn.items()}  # fmt: skip
    assert place["points"].shape == (20, dimensions)
    assert not Hull(place["corners"]).outside(place["points"]).any()
    np.testing.assert_allclose(place["chosen points"], place["their approximations"], atol=1e-6)
    edges = K * (K - 1) // 2 + (W * (W - 1) // 2 if distributions else 0)
    assert len(ax.get_lines()) == 4 + edges


@pytest.mark.parametrize(
    ("form", "K", "W"), [("space", 3, 10), ("simplex", 3, 3), ("corners", 5, 3), ("sideways", 3, 2)]
)
def test_what_cannot_be_drawn_says_so(form, K, W):
    with pytest.raises(InputError, match="form"):
        plot_simplex(decomposition(K, W), form=form)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real_import = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match="cli"):
        plot_simplex(decomposition(3, 2))
