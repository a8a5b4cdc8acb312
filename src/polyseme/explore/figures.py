"""Static figures (matplotlib), one line each: topics, their map, the course of a fit.

(Perplexity against the number of topics is `polyseme.selection`'s own figure.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.explore.parts import words_of
from polyseme.explore.topic_map import classical_scaling
from polyseme.factors import rows_to_one
from polyseme.kernels import Floats
from polyseme.metrics import distances, shown_words

_COURSES = (
    ("log_likelihood", "log-likelihood per token"),
    ("bound", "bound of the log evidence"),
    ("objective", "objective"),
)


def plot_topics(
    model: Any,
    vocabulary: Sequence[str] | None = None,
    *,
    topics: Sequence[int] | None = None,
    n_words: int = 8,
    columns: int = 4,
) -> Any:
    """The words of topics by relevance, with bars for P(w|z), a panel for each topic, the heaviest first.

    Returns the figure. topics : which ones, by the model's own numbers; None for all, at most 24.
    """
    words, phi, weights = words_of(model, vocabulary, None), _topics_of(model), _weights_of(model)
    shown = shown_words(model, n_words)
    chosen = list(np.argsort(-weights, kind="stable")[:24]) if topics is None else [_checked(t, phi) for t in topics]
    if not chosen:
        raise InputError("topics must name at least one topic.")
    columns = min(columns, len(chosen))
    rows = -(-len(chosen) // columns)
    size = (3.1 * columns, (0.24 * n_words + 0.7) * rows)
    figure, axes = pyplot().subplots(rows, columns, figsize=size, squeeze=False, constrained_layout=True)
    for place, ax in enumerate(axes.ravel()):
        if place >= len(chosen):
            ax.set_axis_off()
            continue
        topic = chosen[place]
        top = shown[topic][::-1]
        ax.barh([_literal(words[word]) for word in top], phi[topic, top], color=f"C{place % 10}", height=0.7)
        ax.set_title(f"topic {topic}   {weights[topic]:.1%}", fontsize=10)
        ax.tick_params(labelsize=8, length=0)
        ax.set_xticks([])
        for side in ("top", "right", "bottom"):
            ax.spines[side].set_visible(False)
    return figure


def plot_map(model: Any, vocabulary: Sequence[str] | None = None, *, ax: Any = None) -> Any:
    """The topics in a plane that keeps their Hellinger distances as well as it can; areas are weights P(z)."""
    words, phi, weights = words_of(model, vocabulary, None), _topics_of(model), _weights_of(model)
    places, shown = classical_scaling(distances(phi)), shown_words(model, 2)
    ax = pyplot().subplots()[1] if ax is None else ax
    ax.scatter(*places.T, s=4000 * weights / max(weights.max() * len(weights) ** 0.5, 1e-12), alpha=0.45)
    for topic, place in enumerate(places):
        label = f"{topic} {', '.join(_literal(words[word]) for word in shown[topic])}"
        ax.annotate(label, place, ha="center", va="center", fontsize=8)
    ax.margins(0.15)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def plot_convergence(model: Any, *, ax: Any = None) -> Any:
    """What a fit raised (the likelihood; the bound of LDA) against its iterations."""
    history: Mapping[str, Any] = getattr(model, "history_", {})
    found = [(name, told) for name, told in _COURSES if name in history]
    if not found:
        raise InputError(f"{type(model).__name__} has no history_ of a fit to draw: give a fitted model of topics.")
    name, told = found[0]
    ax = pyplot().subplots()[1] if ax is None else ax
    ax.plot(history["iteration"], history[name])
    ax.set_xlabel("iteration")
    ax.set_ylabel(told)
    return ax


def _topics_of(model: Any) -> Floats:
    if not hasattr(model, "components_"):
        raise InputError(f"{type(model).__name__} is not fitted: call fit first.")
    return np.asarray(rows_to_one(np.asarray(model.components_, dtype=np.float64)))


def _weights_of(model: Any) -> Floats:
    """P(z); equal weights where the model keeps none."""
    weights = getattr(model, "topic_weights_", None)
    K = len(model.components_)
    return np.full(K, 1 / K) if weights is None else np.asarray(weights, dtype=np.float64)


def _checked(topic: int, phi: Floats) -> int:
    if not 0 <= int(topic) < len(phi):
        raise InputError(f"topics must be numbers from 0 to {len(phi) - 1}, got {topic!r}.")
    return int(topic)


def _literal(word: str) -> str:
    """A word that matplotlib does not take for a formula."""
    return word.replace("$", r"\$")


def pyplot() -> Any:
    """matplotlib.pyplot, or which extra to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("Plots", "cli") from None
    return plt
