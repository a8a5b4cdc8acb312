"""Figures of models, simplex decompositions and trees: their content, and errors where nothing can be drawn."""

import builtins
import sys
from dataclasses import replace

import numpy as np
import pytest

import oracles
from cli_runner import tree_texts
from polyseme import LDA, LSA, PLSA, CorrelatedTopicModel, HierarchicalPLSA, InputError, MissingExtraError, fit
from polyseme.datasets import synthetic_corpus
from polyseme.plots import (
    plot_consensus,
    plot_convergence,
    plot_document_map,
    plot_map,
    plot_signatures,
    plot_simplex,
    plot_topic_graph,
    plot_topic_tree,
    plot_topics,
    plot_tree,
)
from polyseme.selection import consensus
from polyseme.simplex import Hull, SimplexDecomposition

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pytest.importorskip("matplotlib.pyplot")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 30, 4)
WORDS = [f"word{number}" for number in range(30)]


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    return PLSA(4, random_state=0, tol=1e-4).fit(X)


def test_each_topic_has_a_panel_sorted_by_weight(model):
    axes = plot_topics(model, WORDS, n_words=5)
    shown = [int(ax.get_title().split()[1]) for ax in axes]
    assert shown == np.argsort(-model.topic_weights_).tolist()
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
    assert labels[::-1] == model.topics(WORDS, n_words=5)[shown[0]].words


@pytest.mark.parametrize("dark", [False, True])
def test_the_map_of_documents_has_the_places_and_names_of_the_run(dark):
    run = fit(tree_texts(), 2)
    ax = plot_document_map(run, dark=dark)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), run.places / 65535)
    colors = ax.collections[0].get_facecolors()[:, :3]
    main = run.doc_topic.argmax(axis=1)
    assert np.linalg.norm(colors[main == 0].mean(axis=0) - colors[main == 1].mean(axis=0)) > 0.1
    names = {text.get_text().replace("\n", " ") for text in ax.texts}
    known = [name for level in run.levels for name in run.level(level).topic_titles]
    assert set(run.topic_titles) <= names <= set(known)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(box.overlaps(other) for i, box in enumerate(boxes) for other in boxes[:i])
    frame = ax.get_window_extent()
    assert all(frame.contains(*corner) for box in boxes for corner in (box.min, box.max))


@pytest.mark.parametrize("dark", [False, True])
def test_the_tree_of_topics_has_the_names_colors_and_weights_of_the_run(dark):
    run = fit(tree_texts(), 2)
    ax = plot_topic_tree(run, dark=dark)
    below = run.view.finer_topics()
    assert len(ax.patches) == 2 + sum(1 + len(child.children) for topic in below for child in topic)
    heights = {round(box.get_y(), 9): box.get_height() for box in ax.patches if box.get_x() == 0}
    weights = sorted(run.view.fitted.topic_weights, reverse=True)
    np.testing.assert_allclose([heights[y] for y in sorted(heights)], weights)
    for x in (1, 2)[: len(run.levels) - 1]:
        np.testing.assert_allclose(sum(box.get_height() for box in ax.patches if box.get_x() == x), sum(weights))
    names = [text.get_text().replace("\n", " ") for text in ax.texts]
    assert [name.rpartition("  ")[0] for name in names if name.endswith("%")] == [
        run.topic_titles[topic] for topic in np.argsort(-run.view.fitted.topic_weights)
    ]
    known = {title for level in run.levels for title in run.level(level).topic_titles}
    assert {name for name in names if not name.endswith(("%", "…"))} <= known
    ax.figure.canvas.draw()
    for text in ax.texts:
        box = text.get_window_extent()
        assert any(patch.get_window_extent().contains(*corner) for patch in ax.patches for corner in (box.min,))
    first = [box.get_facecolor() for box in ax.patches if box.get_x() == 0]
    assert len(set(first)) == 2


def test_a_tree_needs_levels_and_leaves_hidden_topics_out():
    run = fit(tree_texts(), 2)
    with pytest.raises(InputError, match="n_levels= must be at least 2"):
        plot_topic_tree(run, n_levels=1)
    with pytest.raises(InputError, match="needs finer topics"):
        plot_topic_tree(run.level(run.levels[-1]))
    hidden = run.edit(hide=[1])
    assert sum(box.get_x() == 0 for box in plot_topic_tree(hidden).patches) == 1


def test_given_topics_keep_their_order_and_other_panels_are_empty(model):
    axes = plot_topics(model, WORDS, topics=[2, 0, 3], columns=2)
    assert [ax.get_title().split()[1] for ax in axes] == ["2", "0", "3"]
    assert [ax.axison for ax in axes[0].figure.axes] == [True, True, True, False]


def test_a_dollar_in_a_word_is_not_a_formula(model):
    names = ["$x^{", *WORDS[1:]]
    axes = plot_topics(model, names, n_words=30, topics=[0])
    assert r"\$x^{" in [label.get_text() for label in axes[0].get_yticklabels()]
    axes[0].figure.canvas.draw()


def test_the_map_names_every_topic(model):
    texts = [text.get_text() for text in plot_map(model, WORDS).texts]
    assert [text.split()[0] for text in texts] == ["0", "1", "2", "3"]


def test_convergence_shows_the_objective_of_the_fit(model):
    np.testing.assert_array_equal(plot_convergence(model).lines[0].get_ydata(), model.history_["log_likelihood"])
    assert plot_convergence(LDA(2, random_state=0).fit(X)).get_ylabel() == "bound of the log evidence"


REFUSED = {
    "numbers from 0 to 3, got 4": lambda model: plot_topics(model, WORDS, topics=[4]),
    "at least one topic": lambda model: plot_topics(model, WORDS, topics=[]),
    "no topics yet: call fit first": lambda model: plot_map(PLSA(2), WORDS),
    "LSA has no history_ to plot: give": lambda model: plot_convergence(LSA(2).fit(X)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_models_and_topics_raise(model, message):
    with pytest.raises(InputError, match=message):
        REFUSED[message](model)


def test_topics_that_would_overlap_are_moved():
    """Two topics that always occur together have no distance between them."""
    model = CorrelatedTopicModel(3, random_state=0, max_iter=5).fit(X)
    covariance = np.array([[2.0, 2.0, -2], [2, 2.0001, -2], [-2, -2, 3]])
    model._fitted = replace(model._fitted, inference=replace(model._fitted.inference, covariance=covariance))
    places = np.asarray(plot_topic_graph(model).collections[0].get_offsets())
    gaps = [np.linalg.norm(places[i] - places[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert min(gaps) > 0.1 * np.ptp(places, axis=0).max()


@pytest.mark.parametrize("draw", [plot_topics, plot_topic_graph, plot_tree, plot_convergence])
def test_without_matplotlib_the_message_names_the_extra(draw, monkeypatch):
    kinds = {plot_topic_graph: CorrelatedTopicModel(2, random_state=0), plot_tree: HierarchicalPLSA(depth=1)}
    model = kinds.get(draw, PLSA(2, random_state=0)).set_params(max_iter=3).fit(X)
    model.set_vocabulary(WORDS)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"Plots needs the extra 'plots': pip install"):
        draw(model)


# simplex decompositions


def decomposition(K, W, *, distributions=False):
    rng = np.random.default_rng(0)
    corners = rng.dirichlet(np.ones(W), K) if distributions else rng.normal(size=(K, W))
    weights = rng.dirichlet(np.ones(K), 20)
    return SimplexDecomposition(weights @ corners, corners, weights)


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
def test_a_form_that_does_not_fit_the_data_raises(form, K, W):
    with pytest.raises(InputError, match="form"):
        plot_simplex(decomposition(K, W), form=form)


def test_plot_simplex_without_matplotlib_names_the_extra(monkeypatch):
    real_import = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match="plots"):
        plot_simplex(decomposition(3, 2))


# trees


def test_every_node_is_drawn_with_its_words():
    tree = {"all": {"left": ["a", "b", "c"], "right": ["d", "e"]}}
    model = HierarchicalPLSA(tree, silent="right", random_state=0, max_iter=20).fit(X)
    ax = plot_tree(model, n_words=2)
    places = np.asarray(ax.collections[0].get_offsets())
    assert len(places) == 8
    assert len(ax.get_lines()) == 7
    texts = [text.get_text() for text in ax.texts]
    assert "right: (silent)" in texts
    assert f"all: {model.nodes(n_words=2)['words'][0]}" in texts
    assert sorted(set(places[:, 0])) == [0, 1, 2]
    assert len(set(places[places[:, 0] == 2][:, 1])) == 5


def test_plot_tree_of_a_model_without_a_tree_raises():
    with pytest.raises(InputError, match="HierarchicalPLSA"):
        plot_tree(PLSA(2))


def test_a_consensus_is_drawn_with_its_choice():
    found = consensus(synthetic_corpus(80, n_topics=2, n_words=40, random_state=0).counts(), [1, 2, 3], n_fits=4)
    axes = plot_consensus(found)
    stability, least = axes.lines[:2]
    np.testing.assert_array_equal(stability.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(stability.get_ydata(), [row.stability for row in found.solutions.values()])
    np.testing.assert_allclose(least.get_ydata(), [row.least_stability for row in found.solutions.values()])
    assert f"chosen: {found.chosen}" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_signatures_are_drawn_in_percent_with_a_color_for_each_substitution():
    types = ["A[C>A]A", "A[C>A]C", "A[T>G]A"]
    panels = plot_signatures([[1, 1, 2], [0, 3, 1]], types, ["one", "two"])
    assert [ax.get_title(loc="left") for ax in panels] == ["one", "two"]
    np.testing.assert_allclose([bar.get_height() for bar in panels[0].patches], [25, 25, 50])
    first, second, third = (bar.get_facecolor() for bar in panels[1].patches)
    assert first == second != third
    with pytest.raises(InputError, match=r"A\[C>T\]G"):
        plot_signatures([[1, 2]], ["one", "two"])
