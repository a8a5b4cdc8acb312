"""A picture of how topics go together: a node for each, lines between those that are correlated."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.estimators.tables import words_of_model
from polyseme.explore.figures import pyplot
from polyseme.explore.topic_map import classical_scaling
from polyseme.kernels import Floats

_LEAST_GAP, _MOVES = 0.15, 50
"""how near circles may be, as a part of the whole picture"""


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
    words = words_of_model(model, vocabulary, n_words)
    places = _places(correlations)
    if ax is None:
        ax = pyplot().figure(figsize=(7, 5), layout="constrained").add_subplot()
    for i, j in zip(*np.triu_indices(len(places), 1), strict=True):
        strength = correlations[i, j]
        if abs(strength) > threshold:
            together = strength > 0
            ax.plot(
                *places[[i, j]].T, color="tab:blue" if together else "tab:red", linestyle="-" if together else "--",
                linewidth=4 * abs(strength), alpha=0.5, zorder=1,
            )  # fmt: skip
    ax.scatter(*places.T, s=900 + 4000 * model.topic_weights_, color="lightsteelblue", edgecolors="grey", zorder=2)
    for place, said in zip(places, words, strict=True):
        ax.annotate("\n".join(said), place, ha="center", va="center", fontsize=7, zorder=3)
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def _places(correlations: Floats) -> Floats:
    """Two coordinates of each topic: near where topics go together, apart where circles would cover each other."""
    places = classical_scaling(np.sqrt(np.maximum(1 - correlations, 0)))
    least = _LEAST_GAP * max(float(np.ptp(places, axis=0).max()), 1e-9)
    for _ in range(_MOVES):
        gaps = places[:, np.newaxis] - places
        distances = np.sqrt((gaps**2).sum(axis=2))
        near = (distances < least) & ~np.eye(len(places), dtype=bool)
        if not near.any():
            break
        pushes = np.where(near, (least - distances) / np.maximum(distances, 1e-6), 0)
        places = places + (gaps * pushes[:, :, np.newaxis]).sum(axis=1) / 2
    return places
