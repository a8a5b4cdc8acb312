"""``polyseme time``: shows topics over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from polyseme.cli.console import Console, as_rows, print_json
from polyseme.cli.options import JSON, QUIET, RunFolder, open_level, takes
from polyseme.options import EVERY, LEVEL, RANDOM_STATE, RESAMPLING

if TYPE_CHECKING:
    from polyseme.cli import schemas
    from polyseme.kernels import Floats
    from polyseme.uncertainty.time import Timeline

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 24
"""Periods that are drawn as bars of their own; more are joined."""
_MOST_WORDS = 3
"""Rising and falling words of a topic that are shown."""


@takes(EVERY, *RESAMPLING, LEVEL, RANDOM_STATE, QUIET, JSON)
def time(
    run: RunFolder,
    every: str | None,
    clusters: str | None,
    n_resamples: int,
    level: int | None,
    random_state: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show topics over time.

    The bars are the mean shares of a topic in the documents of each period, from zero to its largest share; periods
    without documents are blank. The shares in the earlier and the later half of the documents have 95% intervals in
    --json. + and - mark topics that rise or fall between the halves, at a false discovery rate of 5%. Below are the
    words that a topic uses more and less in the later half.

    Examples:

      polyseme time letters-run

      polyseme time letters-run --every month --json
    """
    opened = open_level(run, level)
    verbose = 0 if quiet or as_json else 1
    found = opened.over_time(
        every, clusters=clusters, n_resamples=n_resamples, random_state=random_state, verbose=verbose
    )
    if as_json:
        print_json("time", timeline_as_dict(found))
        return
    screen = Console()
    screen.print(_table(found, screen.width))
    screen.print(
        f"{len(found.periods)} periods (each a {found.every}) with {found.documents.min():,} to "
        f"{found.documents.max():,} documents. + rises, - falls between the halves (false discovery rate 5%)."
    )
    for line in _word_lines(found):
        screen.print(line)
    for note in found.notes:
        screen.print(note)
    if found.left_out:
        screen.print(f"{found.left_out:,} documents have no date.")


def timeline_as_dict(found: Timeline) -> schemas.Time:
    """Return the timeline as JSON values."""
    topics: list[schemas.Trend] = [
        {
            "topic": k, "name": name, "earlier": float(found.earlier.estimate[k]),
            "later": float(found.later.estimate[k]), "difference": float(found.trend.estimate[k]),
            "difference_low": float(found.trend.low[k]), "difference_high": float(found.trend.high[k]),
            "p_value": float(found.trend.p_values[k]), "q_value": float(found.trend.q_values[k]),
        }
        for k, name in enumerate(found.topic_names)
    ]  # fmt: skip
    words: list[schemas.ChangingWord] = [
        {
            "topic": word.topic, "word": found.vocabulary[word.word], "log_ratio": word.log_ratio, "error": word.error,
            "q_value": word.q_value,
        }
        for word in found.words
    ]  # fmt: skip
    shares = as_rows(found.to_dict())
    return {
        "every": found.every, "shares": shares, "topics": topics, "words": words, "left_out": found.left_out,
        "notes": found.notes,
    }  # fmt: skip


def _table(found: Timeline, width: int) -> Table:
    table, n_bars = Table(header_style="bold"), min(len(found.periods), _MOST_BARS)
    ends = f"{found.periods[0]} … {found.periods[-1]}"
    room = width - max(n_bars, len(ends)) - 30
    table.add_column("topic", overflow="ellipsis", no_wrap=True, max_width=max(12, room))
    table.add_column(ends, no_wrap=True)
    for half in ("earlier", "later"):
        table.add_column(half, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for k in found.order:
        shares = f"{found.earlier.estimate[k]:.1%}", f"{found.later.estimate[k]:.1%}"
        table.add_row(f"{k} {found.topic_names[k]}", _bars(found, k, n_bars), *shares, found.mark(k))
    return table


def _bars(found: Timeline, topic: int, n_bars: int) -> str:
    """Return one bar for each period, or for several periods weighted by their documents."""
    import numpy as np

    shares, documents = found.shares.estimate[:, topic], found.documents.astype(np.float64)
    bar = np.arange(len(shares)) * n_bars // len(shares)
    sums = np.bincount(bar, np.where(documents > 0, np.nan_to_num(shares), 0) * documents, n_bars)
    sizes = np.bincount(bar, documents, n_bars)
    values: Floats = np.divide(sums, sizes, out=np.full(n_bars, np.nan), where=sizes > 0)
    largest = max(float(np.nanmax(values)), 1e-9)
    return "".join(" " if value != value else _BARS[min(int(8 * value / largest), 7)] for value in values.tolist())


def _word_lines(found: Timeline) -> list[str]:
    lines = []
    for k in found.order:
        rising, falling = found.changing_words(k, _MOST_WORDS)
        parts = [f"{name}: {', '.join(words)}" for name, words in (("more", rising), ("less", falling)) if words]
        if parts:
            lines.append(f"{found.topic_names[k].partition(',')[0]}: {'; '.join(parts)}")
    return ["Words of a topic in the later half:", *lines] if lines else []
