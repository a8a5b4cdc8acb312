"""A picture of how topics go together: a node for each, lines between those that are correlated."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.estimators.tables import words_of_topics
from polyseme.kernels import Floats


def plot_topic_graph(
    model: Any, vocabulary: Any = None, *, threshold: float = 0.2, n_words: int = 3, ax: Any = None
) -> Any:
    """Draws a fitted CorrelatedTopicModel: lines where |correlation| is above the threshold. Returns the axes.

    Blue lines join topics that go together, dashed red ones topics that avoid each other; the width is the strength.
    Topics that go together are drawn close to each other (classical scaling of 1 - correlation); a circle is as large
    as its topic's weight.
    """
    if not hasattr(model, "correlation_"):
        raise InputError("plot_topic_graph draws a fitted CorrelatedTopicModel.")
    correlations = model.correlation_
    if vocabulary is None:
        vocabulary = getattr(model, "feature_names_in_", None)
    words = words_of_topics(model.components_, vocabulary, n_words)
    places = _places(correlations)
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise MissingExtraError("Plots", "cli") from None
        ax = plt.figure(figsize=(7, 5), layout="constrained").add_subplot()
    for i, j in zip(*np.triu_indices(len(places), 1), strict=True):
        strength = correlations[i, j]
        if abs(strength) > threshold:
            together = strength > 0
            ax.plot(
                *places[[i, j]].T, color="tab:blue" if together else "tab:red", linestyle="-" if together else "--",
                linewidth=4 * abs(strength), alpha=0.5, zorder=1,
            )  # fmt: skip
    ax.scatter(*places.T, s=100 + 2000 * model.topic_weights_, color="lightsteelblue", edgecolors="grey", zorder=2)
    for place, said in zip(places, words, strict=True):
        ax.annotate("\n".join(said), place, ha="center", va="center", fontsize=7, zorder=3)
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def _places(correlations: Floats) -> Floats:
    """Two coordinates of each topic, so that squared distances are near 1 - correlation."""
    gaps = 1 - correlations
    centred = gaps - gaps.mean(axis=0)
    centred = -(centred - centred.mean(axis=1, keepdims=True)) / 2
    values, vectors = np.linalg.eigh(centred)
    top = np.argsort(-values)[:2]
    places = np.zeros((len(gaps), 2))
    places[:, : top.size] = vectors[:, top] * np.sqrt(np.maximum(values[top], 0))
    return places
