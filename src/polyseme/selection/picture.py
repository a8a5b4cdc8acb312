"""The picture of a choice: held-out perplexity against the number of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.errors import MissingExtraError

if TYPE_CHECKING:
    from polyseme.selection.number import Selection


def plot_selection(selection: Selection, ax: Any = None) -> Any:
    """Perplexities with bars of one standard error of the difference to the best number, the unigram's, the choice."""
    if ax is None:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingExtraError("A plot", "cli") from None
        ax = Figure(figsize=(7, 4.2), layout="constrained").add_subplot()
    numbers = np.array([row.n_topics for row in selection.rows])
    perplexities = np.array([row.perplexity for row in selection.rows])
    errors = np.array([row.behind_error for row in selection.rows]) * perplexities
    ax.errorbar(
        numbers, perplexities, yerr=errors, marker="o", markersize=4, linewidth=1, capsize=3, color="tab:blue",
        label="held-out perplexity (bars: one standard error\nof the difference to the best number)",
    )  # fmt: skip
    ax.axhline(selection.unigram_perplexity, color="grey", linestyle=":", label="without topics (unigram)")
    at = next(row for row in selection.rows if row.n_topics == selection.chosen)
    label = f"chosen: {selection.chosen}" if selection.structured else "no structure"
    ax.plot([at.n_topics], [at.perplexity], "o", markersize=11, markerfacecolor="none", markeredgewidth=2,
            color="tab:red", label=label)  # fmt: skip
    if numbers.max() > 4 * numbers.min():
        ax.set_xscale("log")
        ticks = [row.n_topics for row in selection.rows]
        ticks = _apart(ticks, selection.chosen)
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
    ax.set_xlabel("number of topics")
    ax.set_ylabel("completion perplexity")
    ax.legend(fontsize=8)
    return ax


def _apart(numbers: list[int], chosen: int) -> list[int]:
    """Those numbers, the chosen one among them, whose labels do not touch on a logarithmic axis."""
    kept = [chosen]
    for number in numbers:
        if all(max(number, other) / min(number, other) > 1.2 for other in kept):
            kept.append(number)
    return sorted(kept)
