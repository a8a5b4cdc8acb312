"""Static figures of models: what they show, and what they say where they cannot."""

import sys

import numpy as np
import pytest

import oracles
from polyseme import LDA, LSA, PLSA, CorrelatedTopicModel, HierarchicalPLSA, InputError, MissingExtraError
from polyseme.explore import plot_convergence, plot_map, plot_topic_graph, plot_topics, plot_tree

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
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


def test_topics_are_panels_the_heaviest_first(model):
    figure = plot_topics(model, WORDS, n_words=5)
    shown = [int(ax.get_title().split()[1]) for ax in figure.axes]
    assert shown == np.argsort(-model.topic_weights_).tolist()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[::-1] == model.topics(WORDS, n_words=5)[shown[0]].words


def test_chosen_topics_come_in_their_order_and_panels_without_one_are_empty(model):
    figure = plot_topics(model, WORDS, topics=[2, 0, 3], columns=2)
    assert [ax.get_title().split()[1] for ax in figure.axes[:3]] == ["2", "0", "3"]
    assert [ax.axison for ax in figure.axes] == [True, True, True, False]


def test_a_dollar_in_a_word_is_no_formula(model):
    names = ["$x^{", *WORDS[1:]]
    figure = plot_topics(model, names, n_words=30, topics=[0])
    assert r"\$x^{" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
    figure.canvas.draw()


def test_the_map_names_every_topic(model):
    texts = [text.get_text() for text in plot_map(model, WORDS).texts]
    assert [text.split()[0] for text in texts] == ["0", "1", "2", "3"]


def test_the_course_is_what_the_fit_raised(model):
    np.testing.assert_array_equal(plot_convergence(model).lines[0].get_ydata(), model.history_["log_likelihood"])
    assert plot_convergence(LDA(2, random_state=0).fit(X)).get_ylabel() == "bound of the log evidence"


REFUSED = {
    "numbers from 0 to 3, got 4": lambda model: plot_topics(model, WORDS, topics=[4]),
    "at least one topic": lambda model: plot_topics(model, WORDS, topics=[]),
    "PLSA is not fitted: call fit first": lambda model: plot_map(PLSA(2), WORDS),
    "LSA has no history_ of a fit to draw: give": lambda model: plot_convergence(LSA(2).fit(X)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_drawn(model, message):
    with pytest.raises(InputError, match=message):
        REFUSED[message](model)


def test_topics_that_would_cover_each_other_are_pushed_apart():
    """Two topics that always go together have no distance of their own."""
    model = CorrelatedTopicModel(3, random_state=0, max_iter=5).fit(X)
    model.covariance_ = np.array([[2.0, 2.0, -2], [2, 2.0001, -2], [-2, -2, 3]])
    places = np.asarray(plot_topic_graph(model).collections[0].get_offsets())
    gaps = [np.linalg.norm(places[i] - places[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert min(gaps) > 0.1 * np.ptp(places, axis=0).max()


@pytest.mark.parametrize("draw", [plot_topics, plot_topic_graph, plot_tree, plot_convergence])
def test_without_matplotlib_the_message_names_the_extra(draw, monkeypatch):
    kinds = {plot_topic_graph: CorrelatedTopicModel(2, random_state=0), plot_tree: HierarchicalPLSA(depth=1)}
    model = kinds.get(draw, PLSA(2, random_state=0)).set_params(max_iter=3).fit(X)
    model.set_vocabulary(WORDS)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"Plots needs the extra 'cli': pip install"):
        draw(model)
