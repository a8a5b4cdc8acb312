"""Pictures of trees: every node is drawn with its words, below its parent."""

import numpy as np
import pytest

import oracles
from polyseme import PLSA, HierarchicalPLSA, InputError
from polyseme.explore.tree_plots import plot_tree

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 30, 4)


def test_every_node_is_drawn_with_its_words():
    tree = {"all": {"left": ["a", "b", "c"], "right": ["d", "e"]}}
    model = HierarchicalPLSA(tree, silent="right", random_state=0, max_iter=20).fit(X)
    ax = plot_tree(model, n_words=2)
    places = np.asarray(ax.collections[0].get_offsets())
    assert len(places) == 8
    assert len(ax.get_lines()) == 7
    texts = [text.get_text() for text in ax.texts]
    assert "right: (silent)" in texts
    best = ", ".join(f"x{word}" for word in np.argsort(-model.node_word_[0], kind="stable")[:2])
    assert f"all: {best}" in texts
    assert sorted(set(places[:, 0])) == [0, 1, 2]
    assert len(set(places[places[:, 0] == 2][:, 1])) == 5
    matplotlib.pyplot.close("all")


def test_only_trees_are_drawn():
    with pytest.raises(InputError, match="HierarchicalPLSA"):
        plot_tree(PLSA(2))
