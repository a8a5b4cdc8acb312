"""Plots of fitted models with matplotlib: topics, convergence, the number of topics, trees, correlations, simplexes."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.estimators import CorrelatedTopicModel, HierarchicalPLSA
from polyseme.kernels import Array, Floats, normalize_rows
from polyseme.layout.colors import DARK_PALETTE, LIGHT_PALETTE, Palette
from polyseme.layout.document_map import DocumentMap, RegionName
from polyseme.layout.places import LARGEST
from polyseme.layout.region_names import place_names
from polyseme.metrics import distances, top_words
from polyseme.metrics.topics import classical_scaling
from polyseme.metrics.words import (
    WordAmounts,
    column_words,
    fitted_topics,
    topic_rows,
    word_amounts,
    words_of_model,
)
from polyseme.runs.run import Run
from polyseme.runs.view import FinerTopic, TopicView
from polyseme.selection.consensus import LEAST_STABLE, STABLE
from polyseme.simplex import SimplexDecomposition
from polyseme.simplex.maps import lower
from polyseme.uncertainty.effects import Effects
from polyseme.uncertainty.groups import SIGNIFICANT, GroupComparison
from polyseme.uncertainty.time import Timeline
from polyseme.uncertainty.words import WordContrasts

if TYPE_CHECKING:
    from polyseme.selection.consensus import Consensus
    from polyseme.selection.n_topics import Selection
    from polyseme.selection.reading import ReadingChoice


__all__ = [
    "plot_consensus",
    "plot_convergence",
    "plot_document_map",
    "plot_effects",
    "plot_groups",
    "plot_map",
    "plot_over_time",
    "plot_selection",
    "plot_signatures",
    "plot_simplex",
    "plot_topic_graph",
    "plot_topic_tree",
    "plot_topics",
    "plot_tree",
    "plot_volcano",
]
FORMS = ("space", "simplex", "corners")
_HISTORY_LABELS = (
    ("log_likelihood", "log-likelihood per token"),
    ("bound", "bound of the log evidence"),
    ("objective", "objective"),
)
_MIN_GAP, _MAX_MOVES = 0.15, 50
"""Smallest distance between two topics, as a share of the figure, and the number of iterations that move them apart."""
_SUBSTITUTION_COLORS = {
    "C>A": "#1bb8e8", "C>G": "#1a1a1a", "C>T": "#dd2a26", "T>A": "#b5b3b3", "T>C": "#8fc255", "T>G": "#e0a9a5",
}  # fmt: skip
"""The colors by which readers recognize substitutions, slightly darker on white than usual."""
_LINE_STYLES = ("-", "--", "-.", ":")
"""Lines of groups, so that one that covers another shows it."""
_LABEL_PLACES = ((4, 0), (-4, 0), (4, 7), (4, -7), (-4, 7), (-4, -7), (4, 13), (4, -13), (-4, 13), (-4, -13))
"""Places of the name of a point, to the right and up, in typographic points."""
_LINE = 0.28
"""Inches per leaf."""
_PIXELS = 100
"""Pixels of the explorer page per inch."""
_NAME_WEIGHTS = ("bold", "bold", "normal")
"""Weight of the names of regions by level."""


def plot_topics(
    model: Any,
    vocabulary: Sequence[str] | None = None,
    *,
    topics: Sequence[int] | None = None,
    n_words: int = 8,
    columns: int = 4,
) -> Any:
    """Plot the words of topics, one panel per topic, with bars for P(w|z).

    Words are ranked by relevance, topics by weight.

    Parameters
    ----------
    model : estimator or Run
        A fitted topic model, or a run, whose topics have names.
    vocabulary : sequence of str, default=None
        The word of each column. None: the names that the model knows.
    topics : sequence of int, default=None
        Numbers of the topics to plot, in this order. None: the topics with the largest weights, at most 24.
    n_words : int, default=8
        Number of words per topic.
    columns : int, default=4
        Number of panels in a row.

    Returns
    -------
    array of matplotlib.axes.Axes
        The axes of the topics, in the order of `topics`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.plots import plot_topics
    >>> model = PLSA(2, random_state=0).fit(np.array([[4, 3, 0], [5, 2, 1], [0, 1, 6]]))
    >>> panels = plot_topics(model, ["wine", "bread", "guitar"])
    >>> panels[0].figure.savefig("topics.png")
    """
    model, names, amounts = _named_model(model)
    words, (phi, weights) = column_words(model, vocabulary, None), _topics_and_weights(model)
    shown = top_words(amounts, n_words)
    chosen = (
        list(np.argsort(-weights, kind="stable")[:24]) if topics is None else [_checked_topic(t, phi) for t in topics]
    )
    if not chosen:
        raise InputError("topics is empty: give at least one topic.")
    columns = min(columns, len(chosen))
    rows = -(-len(chosen) // columns)
    size = (3.1 * columns, (0.24 * n_words + 0.7) * rows)
    _, axes = _pyplot().subplots(rows, columns, figsize=size, squeeze=False, constrained_layout=True)
    for place, ax in enumerate(axes.ravel()):
        if place >= len(chosen):
            ax.set_axis_off()
            continue
        topic = chosen[place]
        top = shown[topic][::-1]
        ax.barh([_literal(words[word]) for word in top], phi[topic, top], color=f"C{place % 10}", height=0.7)
        title = f"topic {topic}" if names is None else textwrap.shorten(f"{topic} {names[topic]}", 34, placeholder="…")
        ax.set_title(f"{_literal(title)}   {weights[topic]:.1%}", fontsize=10 if names is None else 8)
        ax.tick_params(labelsize=8, length=0)
        ax.set_xticks([])
        for side in ("top", "right", "bottom"):
            ax.spines[side].set_visible(False)
    return axes.ravel()[: len(chosen)]


def plot_map(model: Any, vocabulary: Sequence[str] | None = None, *, ax: Any = None) -> Any:
    """Plot topics in a plane in which their distances are nearly their Hellinger distances.

    The areas of the circles are proportional to P(z).

    Parameters
    ----------
    model : estimator or Run
        A fitted topic model, or a run, whose topics have names.
    vocabulary : sequence of str, default=None
        The word of each column. None: the names that the model knows.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.plots import plot_map
    >>> model = PLSA(5, random_state=0).fit(synthetic_corpus(100, n_topics=5, n_words=50, random_state=0).counts())
    >>> plot_map(model, [f"word{column}" for column in range(50)]).figure.savefig("map.png")
    """
    model, names, amounts = _named_model(model)
    words, (phi, weights) = column_words(model, vocabulary, None), _topics_and_weights(model)
    places, shown = classical_scaling(distances(phi)), top_words(amounts, 2)
    ax = _pyplot().subplots()[1] if ax is None else ax
    ax.scatter(*places.T, s=4000 * weights / max(weights.max() * len(weights) ** 0.5, 1e-12), alpha=0.45)
    for topic, place in enumerate(places):
        label = ", ".join(words[word] for word in shown[topic]) if names is None else names[topic].partition(", ")[0]
        ax.annotate(_literal(f"{topic} {label}"), place, ha="center", va="center", fontsize=8)
    ax.margins(0.15)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def plot_document_map(run: Run | TopicView, *, dark: bool = False, ax: Any = None) -> Any:
    """Plot the map of the documents of a run: places, colors and names are those of the explorer page.

    Parameters
    ----------
    run : Run or TopicView
        A run, one of its levels, or a sample.
    dark : bool, default=False
        Whether to draw on a dark background.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Names that would cover others, or that are wider than their region, are left out.

    Examples
    --------
    >>> import polyseme
    >>> from polyseme.plots import plot_document_map
    >>> texts = ["red wine", "red wine and cheese", "bass guitar", "drums and bass guitar"]
    >>> run = polyseme.fit(texts, 2, language="english")
    >>> plot_document_map(run).figure.savefig("map.png")
    """
    view = run.view if isinstance(run, Run) else run
    found = view.document_map
    palette = DARK_PALETTE if dark else LIGHT_PALETTE
    if ax is None:
        ax = _pyplot().subplots(figsize=(11, 9), layout="constrained")[1]
        ax.figure.set_facecolor(palette.ground)
    ax.set_facecolor(palette.ground)
    weights = view.doc_topic if found.documents is None else view.doc_topic[found.documents]
    size = float(np.clip(90_000 / max(len(found.places), 1), 1.5, 40))
    points = found.places / LARGEST
    ax.scatter(*points.T, s=size, c=found.mixed_colors(weights, palette), alpha=0.85, linewidths=0, rasterized=True)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    ax.set_axis_off()
    ax.margins(0.04)
    _draw_names(ax, found, palette)
    return ax


def _draw_names(ax: Any, found: DocumentMap, palette: Palette) -> None:
    """Draw the names that the explorer page shows in a window of this size, at 100 pixels per inch."""
    from matplotlib.colors import to_rgb
    from matplotlib.font_manager import FontProperties
    from matplotlib.patheffects import withStroke
    from matplotlib.textpath import TextPath

    bold = FontProperties(weight="bold")
    ax.figure.draw_without_rendering()
    frame, unit, colors = ax.get_window_extent(), ax.figure.dpi / _PIXELS, found.topic_colors(palette)

    def on_screen(name: RegionName) -> tuple[float, float, float]:
        (x, y), (end, _) = ax.transData.transform([(name.x, name.y), (name.x + name.radius, name.y)])
        return (x - frame.x0) / unit, (frame.y1 - y) / unit, (end - x) / unit

    def width_of(text: str) -> float:
        return float(TextPath((0, 0), _literal(text), size=100, prop=bold).get_extents().width) / 100

    for placed in place_names(found.names, on_screen, width_of, frame.width / unit, frame.height / unit):
        color = 0.5 * np.array(to_rgb(colors[placed.name.top])) + 0.5 * np.array(to_rgb(palette.ink))
        middle = ax.transData.inverted().transform((frame.x0 + placed.x * unit, frame.y1 - placed.y * unit))
        ax.text(
            *middle, _literal("\n".join(placed.lines)), size=placed.size * 72 / _PIXELS,
            weight=_NAME_WEIGHTS[placed.rank], color=color, ha="center", va="center", linespacing=1,
            path_effects=[withStroke(linewidth=2.5, foreground=palette.ground)],
        )  # fmt: skip


def plot_topic_tree(run: Run | TopicView, *, n_levels: int = 3, dark: bool = False, ax: Any = None) -> Any:
    """Plot the levels of topics of a run: beside each topic are the topics of the next finer level that belong to it.

    Names and colors are those of the explorer page. The heights of the topics of the first level are their weights
    P(z); a topic is divided by the weights of the finer topics below it.

    Parameters
    ----------
    run : Run or TopicView
        A run with levels, or one of its levels, whose topics are then the first ones.
    n_levels : int, default=3
        Number of levels, at least 2; a run with fewer levels is drawn with all of them.
    dark : bool, default=False
        Whether to draw on a dark background.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Names that do not fit are shortened; topics that are too flat have no name.

    Examples
    --------
    >>> import polyseme
    >>> from polyseme.datasets import docstrings
    >>> from polyseme.plots import plot_topic_tree
    >>> run = polyseme.fit(docstrings().texts, 10, language="english")  # doctest: +SKIP
    >>> plot_topic_tree(run).figure.savefig("tree.png")  # doctest: +SKIP
    """
    view = run.view if isinstance(run, Run) else run
    if n_levels < 2:
        raise InputError(f"n_levels= must be at least 2, got {n_levels!r}.")
    finer, hidden = view.finer_topics(), view.hidden_topics
    if not any(finer):
        raise InputError("plot_topic_tree needs finer topics: this is the finest level, or the run has no others.")
    palette = DARK_PALETTE if dark else LIGHT_PALETTE
    colors, weights, titles = view.document_map.topic_colors(palette), view.fitted.topic_weights, view.topic_titles
    order = [topic for topic in np.argsort(-weights, kind="stable").tolist() if topic not in hidden]
    order.sort(key=lambda topic: topic in view.junk)
    n_levels = min(n_levels, len(view.levels) - view.levels.index(len(titles)))
    if ax is None:
        ax = _pyplot().subplots(figsize=(3.4 * n_levels, 9), layout="constrained")[1]
        ax.figure.set_facecolor(palette.ground)
    ax.set_xlim(0, n_levels)
    ax.set_ylim(float(weights[order].sum()), 0)
    ax.set_axis_off()
    ax.figure.draw_without_rendering()
    top = 0.0
    for topic in order:
        height = float(weights[topic])
        name = f"{titles[topic]}  {height:.0%}"
        _draw_branch(ax, name, finer[topic], (0, top, height, n_levels), colors[topic], palette)
        top += height
    return ax


def _draw_branch(
    ax: Any, name: str, below: Sequence[FinerTopic], place: tuple[int, float, float, int], color: str, palette: Palette
) -> None:
    """Draw a topic and the finer topics below it.

    place : number of its level, top, height, and number of levels.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    depth, top, height, n_levels = place
    strength = 0.5 / (1 + depth)
    fill = strength * np.array(to_rgb(color)) + (1 - strength) * np.array(to_rgb(palette.ground))
    ax.add_patch(Rectangle((depth, top), 1, height, facecolor=fill, edgecolor=palette.ground, linewidth=1.2))
    _draw_fitting(
        ax, name, (depth, top, height), 10.0 - 1.5 * min(depth, 2), "bold" if depth == 0 else "normal", palette
    )
    total = sum(topic.weight for topic in below)
    if depth + 1 == n_levels or not total > 0:
        return
    for topic in below:
        part = height * topic.weight / total
        _draw_branch(ax, topic.name, topic.children, (depth + 1, top, part, n_levels), color, palette)
        top += part


def _draw_fitting(
    ax: Any, name: str, place: tuple[int, float, float], size: float, weight: str, palette: Palette
) -> None:
    """Write a name into a box, on two lines or shortened if it is too long; nothing if the box is too flat."""
    left, top, height = place
    ends = ax.transData.transform([(left, top), (left + 1, top + height)])
    width, tall = abs(ends[1] - ends[0])
    shown = ax.text(left + 0.025, top + height / 2, "", size=size, weight=weight, color=palette.ink, va="center")
    words = name.split(" ")
    lines = [" ".join(words[:cut]) + "\n" + " ".join(words[cut:]) for cut in range(len(words) - 1, 0, -1)]
    shorter = [" ".join(words[:cut]).rstrip(",") + " …" for cut in range(len(words) - 1, 0, -1)]
    for text in (name, *lines, *shorter):
        shown.set_text(_literal(text))
        box = shown.get_window_extent()
        if box.width <= 0.95 * width and box.height <= tall:
            return
    shown.remove()


def plot_groups(comparison: GroupComparison, *, ax: Any = None) -> Any:
    """Plot the share of each topic in each group of documents, with intervals.

    Parameters
    ----------
    comparison : GroupComparison
        Result of `Run.compare_groups`.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Filled points differ from all other documents at a false discovery rate of 0.05.

    Examples
    --------
    >>> import polyseme
    >>> from polyseme.plots import plot_groups
    >>> texts = ["red wine", "wine and cheese", "bread and cheese", "bass guitar", "drums and bass", "guitar"] * 5
    >>> run = polyseme.fit(texts, 2, language="english")
    >>> comparison = run.compare_groups(["food", "food", "food", "music", "music", "music"] * 5, n_resamples=10)
    >>> plot_groups(comparison).figure.savefig("groups.png")
    """
    shares, order = comparison.groups.shares, comparison.order[::-1]
    n_groups = len(comparison.groups.names)
    if ax is None:
        size = (7, 1 + _LINE * len(order) * max(1, 0.5 * n_groups))
        ax = _pyplot().subplots(figsize=size, layout="constrained")[1]
    for group, name in enumerate(comparison.groups.names):
        found = shares[group][order]
        places = np.arange(len(order)) + 0.7 * ((n_groups - 1) / 2 - group) / n_groups
        color = f"C{group % 10}"
        ax.hlines(places, found.low, found.high, color=color, linewidth=1.5)
        marked = comparison.differences.q_values[group][order] < SIGNIFICANT
        faces = [color if filled else ax.get_facecolor() for filled in marked]
        ax.scatter(found.estimate, places, s=22, color=faces, edgecolors=color, zorder=3)
        ax.scatter([], [], s=22, color=color, label=_literal(textwrap.shorten(str(name), 30, placeholder="…")))
    names = [textwrap.shorten(f"{k} {comparison.topic_names[k]}", 40, placeholder="…") for k in order]
    ax.set_yticks(range(len(order)), [_literal(name) for name in names], fontsize=8)
    ax.tick_params(length=0)
    ax.xaxis.set_major_formatter(lambda value, _: f"{round(100 * value, 6):g}%")
    ax.set_xlim(left=0)
    ax.set_xlabel(f"share of the topic, {comparison.groups.sampling.level:.0%} interval")
    ax.grid(axis="x", alpha=0.3)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.legend(title=comparison.by, fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def plot_effects(
    effects: Effects, column: str, *, topics: Sequence[int] | None = None, by: str | None = None, ax: Any = None
) -> Any:
    """Plot the shares of topics that a regression predicts for the values of a column, with intervals.

    Parameters
    ----------
    effects : Effects
        Result of `Run.effects`.
    column : str
        A column of the formula. Numbers are a line with a band, groups are points.
    topics : sequence of int, default=None
        Numbers of the topics. None: the five topics (two with `by`) on which terms with the column have the surest
        effect.
    by : str, default=None
        A column of groups: each group has its own line or points.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.plots import plot_effects
    >>> from polyseme.uncertainty import effects
    >>> X = synthetic_corpus(100, n_topics=2, n_words=50, random_state=0).counts()
    >>> year = {"year": np.arange(100) // 10}
    >>> found = effects(PLSA(2, random_state=0).fit(X), X, "year", year, n_resamples=10, n_simulations=2)
    >>> plot_effects(found, "year").figure.savefig("effects.png")
    """
    groups = effects.groups(column)
    if topics is None:
        topics = effects.surest(column)[: 5 if by is None else 2]
    if by is not None and not effects.groups(by):
        raise InputError(f"by= needs a column of groups, but {by!r} has numbers.")
    lines = [{}] if by is None else [{by: group} for group in effects.groups(by)]
    if ax is None:
        ax = _pyplot().subplots(figsize=(7, 4), layout="constrained")[1]
    predicted = [effects.predict(column, at=at) for at in lines]
    n_series = len(topics) * len(lines)
    for number, topic in enumerate(topics):
        for place, (at, found) in enumerate(zip(lines, predicted, strict=True)):
            series, shares = number * len(lines) + place, found.shares[:, topic]
            color, name = f"C{series % 10}", f"{topic} {effects.topic_names[topic]}"
            label = _literal(textwrap.shorten(" ".join([name, *map(str, at.values())]), 40, placeholder="…"))
            if groups:
                places = np.arange(len(groups)) + 0.5 * (series - (n_series - 1) / 2) / n_series
                ax.vlines(places, shares.low, shares.high, color=color, linewidth=1.5)
                ax.scatter(places, shares.estimate, s=22, color=color, label=label, zorder=3)
            else:
                ax.fill_between(found.values, shares.low, shares.high, color=color, alpha=0.2, linewidth=0)
                style = _LINE_STYLES[place % len(_LINE_STYLES)]
                ax.plot(found.values, shares.estimate, color=color, linestyle=style, label=label)
    if groups:
        names = [_literal(textwrap.shorten(group, 20, placeholder="…")) for group in groups]
        ax.set_xticks(range(len(groups)), names)
    ax.set_xlabel(_literal(column))
    ax.set_ylabel(f"share, {effects.level:.0%} interval")
    ax.yaxis.set_major_formatter(lambda value, _: f"{round(100 * value, 6):g}%")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", alpha=0.3)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(fontsize=8, frameon=False)
    return ax


def plot_volcano(contrasts: WordContrasts, topic: int, *, n_words: int = 15, ax: Any = None) -> Any:
    """Plot how much more a topic has of each word against how sure this is.

    Parameters
    ----------
    contrasts : WordContrasts
        Result of `polyseme.uncertainty.word_contrasts`.
    topic : int
        Number of the topic.
    n_words : int, default=15
        Number of words whose names are shown: those that the topic has more by the largest ratios. A name that would
        cover others or points is left out.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Words with a local false sign rate of at most 0.05 are colored.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.plots import plot_volcano
    >>> from polyseme.uncertainty import word_contrasts
    >>> X = synthetic_corpus(100, n_topics=3, n_words=30, random_state=0).counts()
    >>> contrasts = word_contrasts(PLSA(3, random_state=0).fit(X), X, n_simulations=2)
    >>> plot_volcano(contrasts, topic=0).figure.savefig("volcano.png")
    """
    if ax is None:
        ax = _pyplot().subplots(figsize=(6, 5), layout="constrained")[1]
    ratio, scores = contrasts.estimate[topic] / math.log(2), contrasts.log_ratio[topic] / contrasts.error[topic]
    sure = contrasts.sign_rate[topic] <= 0.05
    ax.scatter(ratio, np.abs(scores), s=8, c=np.where(sure, "C0", "0.75"), linewidths=0)
    ax.set_xlabel(f"log2 ratio of topic {topic} to other topics, shrunk")
    ax.set_ylabel("ratio / standard error")
    ax.set_yscale("symlog", linthresh=5)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.margins(x=0.1, y=0.08)
    ax.grid(alpha=0.3)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    named = np.flatnonzero(sure & (ratio > 0))
    named = named[np.argsort(-ratio[named], kind="stable")[:n_words]]
    names = named if contrasts.vocabulary is None else [contrasts.vocabulary[word] for word in named]
    points = np.column_stack([ratio, np.abs(scores)])
    _label_points(ax, dict(zip(named.tolist(), map(_literal, map(str, names)), strict=True)), points)
    return ax


def _label_points(ax: Any, names: Mapping[int, str], points: Floats) -> None:
    """Write names beside points, by their rows, each at the first place where it covers no other name and no point."""
    ax.figure.draw_without_rendering()
    frame, drawn = ax.get_window_extent(), ax.transData.transform(points)
    taken: list[Any] = []
    for row, name in names.items():
        point = (float(points[row, 0]), float(points[row, 1]))
        label = ax.annotate(name, point, (0, 0), textcoords="offset points", va="center", fontsize=8)
        for right, up in _LABEL_PLACES:
            label.set(position=(right, up), ha="left" if right > 0 else "right")
            box = label.get_window_extent()
            is_free = not box.count_contains(drawn) and not box.count_overlaps(taken)
            if is_free and all(frame.contains(*corner) for corner in (box.min, box.max)):
                taken.append(box)
                break
        else:
            label.remove()


def plot_over_time(timeline: Timeline, *, topics: Sequence[int] | None = None, ax: Any = None) -> Any:
    """Plot the shares of topics by calendar period, with bands of their intervals.

    Parameters
    ----------
    timeline : Timeline
        Result of `Run.over_time`.
    topics : sequence of int, default=None
        Numbers of the topics. None: the five topics whose shares change most certainly.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Lines have gaps at periods without documents; gray bars are the numbers of documents.

    Examples
    --------
    >>> import polars
    >>> import polyseme
    >>> from polyseme.plots import plot_over_time
    >>> texts = ["red wine", "wine and cheese", "bread and cheese", "bass guitar", "drums and bass", "guitar"] * 5
    >>> table = {"text": texts, "date": [f"{2020 + row // 6}-05-01" for row in range(30)]}
    >>> run = polyseme.fit(polars.DataFrame(table), 2, time="date", language="english")
    >>> timeline = run.over_time("year", n_resamples=10)
    >>> plot_over_time(timeline).figure.savefig("time.png")
    """
    if topics is None:
        chosen = np.argsort(timeline.trend.p_values, kind="stable")[:5].tolist()
    else:
        chosen = [_checked_topic(topic, timeline.topic_word) for topic in topics]
    if not chosen:
        raise InputError("topics is empty: give at least one topic.")
    if ax is None:
        ax = _pyplot().subplots(figsize=(9, 5), layout="constrained")[1]
    places = np.arange(len(timeline.periods))
    for number, topic in enumerate(chosen):
        found = timeline.shares[:, topic]
        name = textwrap.shorten(f"{topic} {timeline.topic_names[topic]}", 40, placeholder="…")
        ax.fill_between(places, found.low, found.high, color=f"C{number % 10}", alpha=0.2, linewidth=0)
        ax.plot(places, found.estimate, color=f"C{number % 10}", marker="o", markersize=3, label=_literal(name))
    top = max(float(np.nanmax(timeline.shares.high[:, chosen])), 1e-9)
    bars = 0.15 * top * timeline.documents / max(timeline.documents.max(), 1)
    ax.bar(places, bars, bottom=-0.17 * top, color="0.75", width=0.8)
    ax.text(-0.5, -0.02 * top, f"documents (at most {timeline.documents.max():,})", fontsize=7, color="0.4", va="top")
    ax.set_yticks([tick for tick in ax.get_yticks() if tick >= 0])
    ax.set_ylim(-0.17 * top, 1.02 * top)
    step = -(-len(places) // 12)
    ax.set_xticks(places[::step], [_literal(name) for name in timeline.periods[::step]], fontsize=8)
    ax.yaxis.set_major_formatter(lambda value, _: f"{round(100 * value, 6):g}%")
    ax.set_ylabel(f"share of the topic, {timeline.level:.0%} interval")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(fontsize=8, frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return ax


def plot_convergence(model: Any, *, ax: Any = None) -> Any:
    """Plot the log-likelihood (or the bound of LDA) against the iterations of a fit.

    Parameters
    ----------
    model : estimator
        A fitted topic model.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.plots import plot_convergence
    >>> model = PLSA(2, random_state=0).fit(np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]]))
    >>> plot_convergence(model).figure.savefig("convergence.png")
    """
    history: Mapping[str, Any] = getattr(model, "history_", {})
    recorded = [(name, label) for name, label in _HISTORY_LABELS if name in history]
    if not recorded:
        raise InputError(f"{type(model).__name__} has no history_ to plot: give a fitted topic model.")
    name, label = recorded[0]
    ax = _pyplot().subplots()[1] if ax is None else ax
    ax.plot(history["iteration"], history[name])
    ax.set_xlabel("iteration")
    ax.set_ylabel(label)
    return ax


def plot_consensus(consensus: Consensus, *, ax: Any = None) -> Any:
    """Plot stability and unexplained deviance against the number of topics, with the chosen number.

    The left axis shows the mean stability of the topics, and that of the least stable one; dotted lines are the limits
    of a stable number of topics. The right axis shows the deviance that topics leave unexplained.

    Parameters
    ----------
    consensus : Consensus
        The result of `polyseme.selection.consensus`.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the stability.

    Examples
    --------
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.plots import plot_consensus
    >>> from polyseme.selection import consensus
    >>> X = synthetic_corpus(200, n_topics=3, n_words=60, random_state=0).counts()
    >>> axes = plot_consensus(consensus(X, range(2, 5), n_fits=5))
    >>> axes.figure.savefig("consensus.png")
    """
    if ax is None:
        ax = _pyplot().figure(figsize=(7, 4.2), layout="constrained").add_subplot()
    rows = list(consensus.solutions.values())
    numbers = [row.n_topics for row in rows]
    ax.plot(numbers, [row.stability for row in rows], "o-", color="tab:blue", label="mean stability (left)")
    least = [row.least_stability for row in rows]
    ax.plot(numbers, least, "v--", color="tab:blue", alpha=0.6, label="least stable topic (left)")
    for limit in (STABLE, LEAST_STABLE):
        ax.axhline(limit, color="gray", linestyle=":", linewidth=1)
    _mark(ax, consensus.chosen, consensus.best.stability, f"chosen: {consensus.chosen}", "tab:blue")
    ax.set_xlabel("number of topics")
    ax.set_ylabel("stability (silhouette)")
    ax.set_ylim(top=1.1)
    ax.xaxis.get_major_locator().set_params(integer=True)
    right = ax.twinx()
    unexplained = [100 * row.unexplained for row in rows]
    right.plot(numbers, unexplained, "s-", color="tab:orange", markersize=4, label="unexplained deviance (right)")
    right.set_ylabel("unexplained deviance (%)")
    right.set_ylim(bottom=0)
    handles = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    ax.legend(handles=handles, fontsize=8, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    return ax


def plot_selection(selection: Selection, *, ax: Any = None) -> Any:
    """Plot held-out perplexity and the agreement of fits against the number of topics, with the chosen numbers.

    The left axis is for prediction: bars show one standard error of the difference from the best number, and a dotted
    line shows the perplexity of the unigram. The right axis, if the number to read was chosen, is for the agreement of
    fits about the topics of documents, with one standard error.

    Parameters
    ----------
    selection : Selection
        The result of `polyseme.selection.select_n_topics`.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the perplexity.

    Examples
    --------
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.plots import plot_selection
    >>> from polyseme.selection import select_n_topics
    >>> X = synthetic_corpus(200, n_topics=3, n_words=60, random_state=0).counts()
    >>> plot_selection(select_n_topics(X, [2, 3, 4], reading=False)).figure.savefig("selection.png")
    """
    if ax is None:
        ax = _pyplot().figure(figsize=(7, 4.2), layout="constrained").add_subplot()
    rows = [row for row in selection.rows if row.perplexity == row.perplexity]
    numbers = np.array([row.n_topics for row in rows])
    perplexities = np.array([row.perplexity for row in rows])
    errors = np.array([row.behind_error for row in rows]) * perplexities
    ax.errorbar(
        numbers, perplexities, yerr=errors, marker="o", markersize=4, linewidth=1, capsize=3, color="tab:blue",
        label="held-out perplexity (left; bars: one standard\nerror of the difference from the best number)",
    )  # fmt: skip
    ax.axhline(selection.unigram_perplexity, color="gray", linestyle=":", label="without topics (unigram)")
    chosen = selection.chosen_to_predict
    at = next(row for row in rows if row.n_topics == chosen)
    _mark(ax, chosen, at.perplexity, f"to predict: {chosen}" if selection.structured else "no structure", "tab:blue")
    handles, labels = ax.get_legend_handles_labels()
    if selection.reading is not None and selection.reading.rows:
        right = _plot_agreement(selection.reading, ax)
        handles, labels = (a + b for a, b in zip((handles, labels), right.get_legend_handles_labels(), strict=True))
    tried = [row.n_topics for row in selection.rows]
    if max(tried) > 4 * min(tried):
        ax.set_xscale("log")
        ticks = _ticks(tried, [chosen, *([] if selection.chosen_to_read is None else [selection.chosen_to_read])])
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
    ax.set_xlabel("number of topics")
    ax.set_ylabel("completion perplexity")
    # above the plot, because two curves leave no corner that is always empty
    ax.legend(handles, labels, fontsize=8, frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return ax


def _plot_agreement(reading: ReadingChoice, ax: Any) -> Any:
    """Plot the agreement of fits on a second axis on the right, and return it."""
    right = ax.twinx()
    right.errorbar(
        [row.n_topics for row in reading.rows], [row.agreement for row in reading.rows],
        yerr=[row.agreement_error for row in reading.rows], marker="s", markersize=4, linewidth=1, capsize=3,
        color="tab:orange", label="agreement of fits (right)",
    )  # fmt: skip
    for row in reading.rows:
        if row.n_topics == reading.chosen:
            _mark(right, row.n_topics, row.agreement, f"to read: {row.n_topics}", "tab:orange")
    right.set_ylabel("agreement about the topics of documents")
    right.set_ylim(0, 1.05)
    return right


def _mark(ax: Any, x: float, y: float, label: str, color: str) -> None:
    """Draw a circle around a point of a curve."""
    ax.plot([x], [y], "o", markersize=11, markerfacecolor="none", markeredgewidth=2, color=color, label=label)


def plot_signatures(signatures: Any, types: Sequence[str], names: Sequence[str] | None = None) -> Any:
    """Plot mutational signatures of single bases, one panel per signature, in the usual six colors.

    Parameters
    ----------
    signatures : array-like of shape (n_signatures, n_types)
        Probabilities or numbers of mutations; each row is shown in percent of its sum.
    types : sequence of str
        Type of each column, such as ``A[C>T]G``, in the order of `polyseme.signatures.read_spectra`.
    names : sequence of str, default=None
        Title of each panel. None: numbers.

    Returns
    -------
    array of matplotlib.axes.Axes
        The panels.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.plots import plot_signatures
    >>> changes = ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"]
    >>> types = [f"{left}[{change}]{right}" for change in changes for left in "ACGT" for right in "ACGT"]
    >>> panels = plot_signatures(np.random.default_rng(0).dirichlet(np.ones(96), 2), types, ["A", "B"])
    >>> panels[0].figure.savefig("signatures.png")
    """
    rows = np.atleast_2d(np.asarray(signatures, dtype=np.float64))
    parts = [re.fullmatch(r"([ACGT])\[([CT]>[ACGT])\]([ACGT])", label) for label in types]
    if rows.shape[1] != len(types) or not all(parts):
        raise InputError("plot_signatures needs a type such as A[C>T]G for each column of the signatures.")
    substitutions = [part[2] for part in parts if part is not None]
    figure = _pyplot().figure(figsize=(11, 1.4 * len(rows) + 0.5), layout="constrained")
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    places = np.arange(len(types))
    for number, (ax, row) in enumerate(zip(panels, rows, strict=True)):
        ax.bar(places, 100 * row / max(row.sum(), np.finfo(np.float64).tiny), 0.7,
               color=[_SUBSTITUTION_COLORS[substitution] for substitution in substitutions])  # fmt: skip
        ax.set_title(str(number) if names is None else names[number], loc="left", fontsize=9)
        ax.set_ylabel("%", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlim(-0.7, len(types) - 0.3)
    contexts = [f"{part[1]}{part[2][0]}{part[3]}" for part in parts if part is not None]
    panels[-1].set_xticks(places, contexts, rotation=90, fontsize=5, family="monospace")
    for substitution in dict.fromkeys(substitutions):
        where = [place for place, other in zip(places, substitutions, strict=True) if other == substitution]
        panels[0].annotate(
            substitution, ((where[0] + where[-1]) / 2, 1.02), xycoords=("data", "axes fraction"), ha="center",
            fontsize=9, weight="bold", color=_SUBSTITUTION_COLORS[substitution],
        )  # fmt: skip
    return panels


def plot_tree(model: Any, vocabulary: Any = None, *, n_words: int = 5, ax: Any = None) -> Any:
    """Plot the tree of a fitted HierarchicalPLSA, with the root on the left.

    The areas of the circles grow with the share of all tokens that come from the nodes.

    Parameters
    ----------
    model : HierarchicalPLSA
        A fitted model.
    vocabulary : sequence of str, default=None
        The word of each column. None: the names that the model knows.
    n_words : int, default=5
        Number of words per node.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from polyseme import HierarchicalPLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.plots import plot_tree
    >>> X = synthetic_corpus(100, n_topics=3, n_words=30, random_state=0).counts()
    >>> plot_tree(HierarchicalPLSA(branching=3, random_state=0, tol=0.1).fit(X)).figure.savefig("tree.png")
    """
    if not isinstance(model, HierarchicalPLSA) or fitted_topics(model) is None:
        raise InputError("plot_tree draws a fitted HierarchicalPLSA.")
    tree, weights = model.tree_, model.node_weights_
    words = list(model.nodes(vocabulary, n_words=n_words)["words"])
    places = _tree_places(tree)
    if ax is None:
        size = (2.4 * (tree.depth + 1.5), 1 + _LINE * len(tree.leaves))
        ax = _pyplot().figure(figsize=size, layout="constrained").add_subplot()
    for node, (x, y) in places.items():
        parent = tree.parents[node]
        if parent in places:
            x0, y0 = places[parent]
            middle = (x0 + x) / 2
            ax.plot([x0, middle, middle, x], [y0, y0, y, y], color="lightgray", linewidth=1, zorder=1)
    xs, ys = zip(*(places[node] for node in places), strict=True)
    sizes = [15 + 400 * float(weights[node]) for node in places]
    colors = ["white" if node in tree.silent else "tab:blue" for node in places]
    ax.scatter(xs, ys, s=sizes, c=colors, edgecolors="tab:blue", zorder=2)
    for node, (x, y) in places.items():
        text = words[node] or "(silent)"
        label = text if tree.names is None else f"{tree.names[node]}: {text}"
        leaf = not tree.children[node]
        ax.annotate(
            label, (x, y), xytext=(8, 0) if leaf else (0, 8), textcoords="offset points", fontsize=7,
            ha="left" if leaf else "center", va="center" if leaf else "bottom", zorder=3,
        )  # fmt: skip
    ax.set_xlim(-0.5, tree.depth + 1.2)
    ax.set_axis_off()
    return ax


def plot_topic_graph(
    model: Any, vocabulary: Any = None, *, threshold: float = 0.2, n_words: int = 3, ax: Any = None
) -> Any:
    """Plot the correlations of a fitted CorrelatedTopicModel as a graph.

    Blue lines join topics with a positive correlation, dashed red lines join topics with a negative one; the width is
    the strength. Correlated topics are near each other (classical scaling of 1 - correlation). The areas of the circles
    grow with P(z).

    Parameters
    ----------
    model : CorrelatedTopicModel
        A fitted model.
    vocabulary : sequence of str, default=None
        The word of each column. None: the names that the model knows.
    threshold : float, default=0.2
        Smallest absolute correlation of a line.
    n_words : int, default=3
        Number of words per topic.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from polyseme import CorrelatedTopicModel
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.plots import plot_topic_graph
    >>> X = synthetic_corpus(100, n_topics=3, n_words=30, random_state=0).counts()
    >>> model = CorrelatedTopicModel(3, random_state=0, tol=0.1).fit(X)
    >>> plot_topic_graph(model).figure.savefig("graph.png")
    """
    if not isinstance(model, CorrelatedTopicModel) or fitted_topics(model) is None:
        raise InputError("plot_topic_graph draws a fitted CorrelatedTopicModel.")
    correlations = model.correlation_
    words = words_of_model(model, vocabulary, n_words)
    places = _graph_places(correlations)
    if ax is None:
        ax = _pyplot().figure(figsize=(7, 5), layout="constrained").add_subplot()
    for i, j in zip(*np.triu_indices(len(places), 1), strict=True):
        strength = correlations[i, j]
        if abs(strength) > threshold:
            positive = strength > 0
            ax.plot(
                *places[[i, j]].T, color="tab:blue" if positive else "tab:red", linestyle="-" if positive else "--",
                linewidth=4 * abs(strength), alpha=0.5, zorder=1,
            )  # fmt: skip
    ax.scatter(*places.T, s=900 + 4000 * model.topic_weights_, color="lightsteelblue", edgecolors="gray", zorder=2)
    for place, topic_words in zip(places, words, strict=True):
        ax.annotate("\n".join(topic_words), place, ha="center", va="center", fontsize=7, zorder=3)
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def plot_simplex(
    decomposition: SimplexDecomposition, *, form: str = "space", highlight: Sequence[int] = (), ax: Any = None
) -> Any:
    """Plot points, corners with their edges, and approximations of a simplex decomposition.

    =========  ======================================================  ==================================
    form       coordinates                                             needs
    =========  ======================================================  ==================================
    "space"    those of the data                                       2 or 3 features
    "simplex"  the plane (or space) of the standard simplex            distributions over 3 or 4 entries
    "corners"  barycentric: the corners form a regular triangle (or    3 or 4 corners
               tetrahedron)
    =========  ======================================================  ==================================

    The standard simplex is dotted, if it is visible.

    Parameters
    ----------
    decomposition : SimplexDecomposition
        The points, corners and weights.
    form : {"space", "simplex", "corners"}, default="space"
        Coordinates, see the table.
    highlight : sequence of int, default=()
        Points to mark with a star, with a square at their approximations.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot in. None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    References
    ----------
    - Shashanka, M. (2009). Simplex decompositions for real-valued datasets. IEEE International Workshop on Machine
      Learning for Signal Processing.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.plots import plot_simplex
    >>> from polyseme.simplex import SimplexDecomposition
    >>> corners = np.array([[0.0, 0], [1, 0], [0, 1]])
    >>> weights = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    >>> decomposition = SimplexDecomposition(weights @ corners, corners, weights)
    >>> plot_simplex(decomposition).figure.savefig("simplex.png")
    """
    if form not in FORMS:
        raise InputError(f"form must be one of {', '.join(map(repr, FORMS))}, got {form!r}.")
    points, corners, approximations, standard = _coordinates(decomposition, form)
    if ax is None:
        ax = _pyplot().figure().add_subplot(projection="3d" if points.shape[1] == 3 else None)
    if standard is not None:
        _edges(ax, standard, color="gray", linestyle=":")
    ax.plot(*points.T, ".", color="tab:blue", markersize=2, label="points")
    _edges(ax, corners, color="tab:red", linestyle="-")
    ax.plot(*corners.T, "o", color="tab:red", markersize=5, label="corners")
    chosen = np.asarray(highlight, dtype=np.intp)
    if chosen.size:
        ax.plot(*points[chosen].T, "*", color="tab:red", markersize=9, label="chosen points")
        ax.plot(*approximations[chosen].T, "s", color="black", markersize=4, label="their approximations")
    if points.shape[1] == 2:
        ax.set_aspect("equal")
    if form != "space":
        ax.set_axis_off()
    return ax


def _pyplot() -> Any:
    """Return matplotlib.pyplot, or raise MissingExtraError with the extra to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("Plots", "plots") from None
    return plt


def _named_model(model: Any) -> tuple[Any, list[str] | None, WordAmounts]:
    """Return the model of a run, the names of its topics and the amounts of their words; a model has no names."""
    if isinstance(model, Run | TopicView):
        view = model.view if isinstance(model, Run) else model
        return view.model, view.topic_titles, view.word_amounts
    return model, None, word_amounts(model)


def _topics_and_weights(model: Any) -> tuple[Floats, Floats]:
    """Return P(w|z) and P(z); equal weights for a model that has none, such as one of another library."""
    topics = np.asarray(normalize_rows(np.asarray(topic_rows(model), dtype=np.float64)))
    fitted = fitted_topics(model)
    weights = np.full(len(topics), 1 / len(topics)) if fitted is None else fitted.topic_weights
    return topics, np.asarray(weights, dtype=np.float64)


def _checked_topic(topic: int, phi: Floats) -> int:
    if not 0 <= int(topic) < len(phi):
        raise InputError(f"topics must be numbers from 0 to {len(phi) - 1}, got {topic!r}.")
    return int(topic)


def _literal(word: str) -> str:
    """Return a word that matplotlib does not interpret as a formula."""
    return word.replace("$", r"\$")


def _ticks(numbers: list[int], chosen: list[int]) -> list[int]:
    """Return the chosen numbers and others whose labels do not overlap on a logarithmic axis."""
    ticks: list[int] = []
    for number in [*chosen, *numbers]:
        if all(max(number, other) / min(number, other) > 1.2 for other in ticks):
            ticks.append(number)
    return sorted(ticks)


def _tree_places(tree: Any) -> dict[int, tuple[float, float]]:
    """Return the positions of the nodes: leaves from top to bottom, every other node in the middle of its children."""
    places: dict[int, tuple[float, float]] = {}
    for number, (node, level) in enumerate(
        (node, level) for node, level in tree.depth_first() if not tree.children[node]
    ):
        places[node] = float(level), -float(number)
    for node, level in reversed(list(tree.depth_first())):
        if tree.children[node]:
            ys = [places[child][1] for child in tree.children[node]]
            places[node] = float(level), (ys[0] + ys[-1]) / 2
    return places


def _graph_places(correlations: Floats) -> Floats:
    """Return two coordinates per topic: correlated topics are near each other, and circles are moved apart."""
    places = classical_scaling(np.sqrt(np.maximum(1 - correlations, 0)))
    min_gap = _MIN_GAP * max(float(np.ptp(places, axis=0).max()), 1e-9)
    for _ in range(_MAX_MOVES):
        gaps = places[:, np.newaxis] - places
        distances = np.sqrt((gaps**2).sum(axis=2))
        near = (distances < min_gap) & ~np.eye(len(places), dtype=bool)
        if not near.any():
            break
        pushes = np.where(near, (min_gap - distances) / np.maximum(distances, 1e-6), 0)
        places = places + (gaps * pushes[:, :, np.newaxis]).sum(axis=1) / 2
    return places


def _coordinates(decomposition: SimplexDecomposition, form: str) -> tuple[Floats, Floats, Floats, Floats | None]:
    """Return coordinates (2 or 3 columns) of points, corners, approximations and the standard simplex, if visible."""
    n_features, K = decomposition.points.shape[1], len(decomposition.corners)
    distributions = bool(np.allclose(decomposition.points.sum(axis=1), 1) and decomposition.points.min() >= 0)
    if form == "space":
        _require(n_features in (2, 3), f"form='space' draws 2 or 3 features, not {n_features}: try form='corners'.")
        standard = np.eye(n_features) if distributions else None
        return decomposition.points, decomposition.corners, decomposition.approximations, standard
    if form == "simplex":
        fits = distributions and n_features in (3, 4)
        _require(fits, "form='simplex' draws distributions over 3 or 4 entries: try form='corners'.")
        return (
            lower(decomposition.points),
            lower(decomposition.corners),
            lower(decomposition.approximations),
            lower(np.eye(n_features)),
        )
    _require(K in (3, 4), f"form='corners' draws 3 or 4 corners, not {K}.")
    return (
        lower(decomposition.hull.barycentric(decomposition.points)),
        lower(np.eye(K)),
        lower(decomposition.weights),
        None,
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def _edges(ax: Any, corners: Array, **style: Any) -> None:
    for a, b in combinations(corners, 2):
        ax.plot(*np.stack([a, b], axis=1), linewidth=1, **style)
