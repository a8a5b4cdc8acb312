"""A picture of a tree of topics: the root on the left, a node's words beside it."""

from __future__ import annotations

from typing import Any

from polyseme.errors import InputError
from polyseme.explore.figures import pyplot

_LINE = 0.28
"""inches for a leaf"""


def plot_tree(model: Any, vocabulary: Any = None, *, n_words: int = 5, ax: Any = None) -> Any:
    """Draws a fitted HierarchicalPLSA; a node's circle is as large as its share of all words. Returns the axes."""
    if not hasattr(model, "nodes") or not hasattr(model, "tree_"):
        raise InputError("plot_tree draws a fitted HierarchicalPLSA.")
    tree, weights = model.tree_, model.node_weights_
    words = list(model.nodes(vocabulary, n_words=n_words)["words"])
    places = _places(tree)
    if ax is None:
        ax = _axes(tree)
    for node, (x, y) in places.items():
        parent = tree.parents[node]
        if parent in places:
            x0, y0 = places[parent]
            middle = (x0 + x) / 2
            ax.plot([x0, middle, middle, x], [y0, y0, y, y], color="lightgrey", linewidth=1, zorder=1)
    xs, ys = zip(*(places[node] for node in places), strict=True)
    sizes = [15 + 400 * float(weights[node]) for node in places]
    colours = ["white" if node in tree.silent else "tab:blue" for node in places]
    ax.scatter(xs, ys, s=sizes, c=colours, edgecolors="tab:blue", zorder=2)
    for node, (x, y) in places.items():
        said = f"{words[node]}" if words[node] else "(silent)"
        label = said if tree.names is None else f"{tree.names[node]}: {said}"
        leaf = not tree.children[node]
        ax.annotate(
            label, (x, y), xytext=(8, 0) if leaf else (0, 8), textcoords="offset points", fontsize=7,
            ha="left" if leaf else "center", va="center" if leaf else "bottom", zorder=3,
        )  # fmt: skip
    ax.set_xlim(-0.5, tree.depth + 1.2)
    ax.set_axis_off()
    return ax


def _places(tree: Any) -> dict[int, tuple[float, float]]:
    """Leaves from top to bottom, every other node in the middle of its children."""
    places: dict[int, tuple[float, float]] = {}
    for number, (node, level) in enumerate(
        (node, level) for node, level in tree.by_depth_first() if not tree.children[node]
    ):
        places[node] = float(level), -float(number)
    for node, level in reversed(list(tree.by_depth_first())):
        if tree.children[node]:
            ys = [places[child][1] for child in tree.children[node]]
            places[node] = float(level), (ys[0] + ys[-1]) / 2
    return places


def _axes(tree: Any) -> Any:
    size = (2.4 * (tree.depth + 1.5), 1 + _LINE * len(tree.leaves))
    return pyplot().figure(figsize=size, layout="constrained").add_subplot()
