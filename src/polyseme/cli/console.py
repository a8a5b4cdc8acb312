"""Messages of the library in the words of the command line: options instead of Python arguments.

What the command line tells the shell.

The one place that prints. Texts of others cannot command the terminal: control characters are shown as \\x1b.

Progress bars, which vanish when done; where there is no terminal, a line says what has begun.

What a run says of how it was made.

From a fitted model to the table of its topics.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import rich.console
import typer
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Span, Text

from polyseme.estimators.tables import largest, words_of_model
from polyseme.runs.topic_documents import Labels, TopicModel, topic_documents

_OTHER_NAMES = {"categories": "--category", "n_components": "-k", "random_state": "--seed"}
_ARGUMENTS = (
    "categories", "encoding", "format", "id", "label", "language", "max_df", "max_iter", "min_df", "n_components",
    "noise", "random_state", "sample", "text", "time", "title",
)  # fmt: skip
_ARGUMENT = re.compile(rf"(?<![\w-])({'|'.join(_ARGUMENTS)})=(?!=)")


def in_options(message: str) -> str:
    """The message with `encoding=` as `--encoding`, and so on for all arguments that are options too."""
    return _ARGUMENT.sub(lambda found: _OTHER_NAMES.get(found[1], f"--{found[1].replace('_', '-')}"), message)


FAILED = 1
"""The input, a file or the machine did not allow it; the message says what to do. (2 is for wrong arguments.)"""

INTERRUPTED = 130
"""Stopped by Ctrl-C, as shells count it: 128 + SIGINT."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # the controls of ASCII and of Latin-1, but the tab and the line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # which reorder the text on the line
    "\u2028\u2029\ufff9-\ufffb"  # other line ends, and hidden annotations
    "\ud800-\udfff]"  # halves of characters, which cannot be encoded
)


def visible(text: str, *, one_line: bool = False) -> str:
    r"""The text with its control characters written as \x1b or \u202e; with `one_line`, line feeds and tabs, too."""
    text = _UNSAFE.sub(_escape, text)
    return text.replace("\n", "\\n").replace("\t", "\\t") if one_line else text


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Console(rich.console.Console):
    """rich's console without markup, emoji names and colored numbers, which a title may look like by chance."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Also for parts of tables: rich renders each of them by this method."""
        for segment in super().render(
            _visible_text(renderable) if isinstance(renderable, Text) else renderable, options
        ):
            if segment.control is None and _UNSAFE.search(segment.text):
                segment = Segment(visible(segment.text), segment.style)
            yield segment


def _visible_text(text: Text) -> Text:
    """The same with the styles where they were."""
    places, added = [], [0]
    for found in _UNSAFE.finditer(text.plain):
        places.append(found.start())
        added.append(added[-1] + len(_escape(found)) - 1)
    if not places:
        return text
    changed = text.copy()
    changed.plain = visible(text.plain)
    changed.spans = [
        Span(start + added[bisect_left(places, start)], end + added[bisect_left(places, end)], style)
        for start, end, style in text.spans
    ]
    return changed


def in_words(number: int, noun: str) -> str:
    """For example "1 document" and "2,000 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    """The value for other programs; a character that is unsafe in a terminal is written as JSON's own escape."""
    typer.echo(
        _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False, indent=2))
    )


def print_data(text: str) -> None:
    """A table for files and other programs, as it is; only a terminal gets control characters shown."""
    typer.echo(visible(text) if _is_terminal() else text, nl=False)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def print_error(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"polyseme: {visible(message.rstrip('.'), one_line=True)}.", err=True)


Update = Callable[[float, float | None, str], None]


class Rate(ProgressColumn):
    """How much is done in a second."""

    def __init__(self, unit: str, size: float) -> None:
        super().__init__()
        self._unit = unit
        self._size = size

    def render(self, task: Task) -> Text:
        if not self._unit or task.speed is None:
            return Text("")
        return Text(f"{task.speed / self._size:,.1f} {self._unit}/s")


@contextmanager
def bar(console: Console, name: str, *, unit: str = "", size: float = 1.0, quiet: bool = False) -> Iterator[Update]:
    """Gives ``update(completed, total, detail)``; total is None while it is not known.

    The rate is shown in units of `size` a second, if they have a name.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        Rate(unit, size),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    if not console.is_terminal and not quiet:
        console.print(f"{name} ...")
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, detail="")
        yield lambda completed, total, detail: progress.update(task, completed=completed, total=total, detail=detail)


def versions() -> dict[str, Any]:
    """When, and by which versions."""
    packages = ("polyseme", "numpy", "scipy", "scikit-learn")
    return {
        "written": now(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


SMALLEST_SHARE_SHOWN = 0.1
TOPICS_ON_A_SCREEN = 15
LABEL_WIDTH = 24


@dataclass(frozen=True)
class TopicRow:
    """One topic in words: how much of the corpus it makes up, what it says and where it is said."""

    topic: int
    name: str
    """that people gave it, or nothing"""
    weight: float
    fit: float
    """how much of its own documents it carries"""
    words: list[str]
    shares: list[tuple[str, float]]
    """of the labels"""
    documents: list[str]
    coherence: float | None = None
    """NPMI of its first ten words in the run's documents, if requested"""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "shares": dict(self.shares)}


def topic_rows(
    model: Any,
    counts: Iterable[Any],
    vocabulary: Sequence[str],
    titles: Sequence[str],
    labels: Labels,
    topic_names: Mapping[int, str] | None = None,
    *,
    n_words: int = 8,
    n_documents: int = 2,
    coherence: NDArray[Any] | None = None,
) -> list[TopicRow]:
    """Summarize each topic, the heaviest first; a label's share is the sum of P(d|z) over its documents.

    counts : of the documents, in one or more parts. A document without a label has the label "".
    """
    found = topic_documents(TopicModel.of(model), counts, n_documents, labels)
    shown = words_of_model(model, vocabulary, n_words)
    rows = []
    for topic in np.argsort(-model.topic_weights_, kind="stable"):
        shares = found.shares[topic]
        rows.append(
            TopicRow(
                topic=int(topic),
                name=(topic_names or {}).get(int(topic), ""),
                weight=float(model.topic_weights_[topic]),
                fit=float(found.fit[topic]),
                words=shown[topic],
                shares=[(labels.names[i], float(shares[i])) for i in largest(shares, len(shares))],
                documents=[titles[document] for document in found.documents[topic]],
                coherence=None if coherence is None else float(coherence[topic]),
            )
        )
    return rows


def topic_table(rows: Sequence[TopicRow]) -> Table:
    """All topics with their words, labels and typical documents."""
    table = _table(rows, "words, and typical documents", overflow="fold")
    for row in rows:
        says = Text(f"{row.name}\n" if row.name else "", style="bold underline")
        says.append(" ".join(row.words), style="bold not underline")
        for document in row.documents:
            says.append(f"\n{document}", style="not bold not underline dim")
        _add_row(table, rows, row, _labels_shown(row), says)
    return table


def short_topic_table(rows: Sequence[TopicRow], width: int) -> Table:
    """One line a topic: the heaviest topics, with as many words as fit into `width` columns."""
    rows = rows[:TOPICS_ON_A_SCREEN]
    largest_labels = [_labels_shown(row)[:1] for row in rows]
    table = _table(rows, "words", no_wrap=True)
    room = width - len("topic  weight   fit  ") - (len(" npmi  ") if _judged(rows) else 0)
    if _labeled(rows):
        widths = [min(LABEL_WIDTH, len(label)) for labels in largest_labels for label in labels]
        room -= 2 + max([len("mostly"), *widths])
    for row, labels in zip(rows, largest_labels, strict=True):
        _add_row(table, rows, row, labels, _as_many_as_fit(row, room))
    return table


def more_topics(rows: Sequence[TopicRow], run: str) -> str:
    """Says how many topics `short_topic_table` leaves out; "" if none."""
    more = len(rows) - TOPICS_ON_A_SCREEN
    return "" if more < 1 else f"{more} more {'topics' if more > 1 else 'topic'}: polyseme topics {run}"


def _table(rows: Sequence[TopicRow], last_column: str, **last: Any) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("topic", justify="right", style="cyan", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("fit", justify="right", no_wrap=True, min_width=4)
    if _judged(rows):
        table.add_column("npmi", justify="right", no_wrap=True, min_width=5)
    if _labeled(rows):
        table.add_column("mostly", max_width=LABEL_WIDTH)
    table.add_column(last_column, **last)
    return table


def _add_row(table: Table, rows: Sequence[TopicRow], row: TopicRow, labels: list[str], says: Text) -> None:
    cells: list[str | Text] = [str(row.topic), f"{row.weight:.1%}", f"{row.fit:.0%}"]
    if _judged(rows):
        cells.append(f"{row.coherence:.2f}" if row.coherence is not None else "")
    if _labeled(rows):
        cells.append(Text("\n".join(labels)))
    table.add_row(*cells, says)


def _judged(rows: Sequence[TopicRow]) -> bool:
    return any(row.coherence is not None for row in rows)


def _labeled(rows: Sequence[TopicRow]) -> bool:
    return any(name for row in rows for name, _ in row.shares)


def _labels_shown(row: TopicRow) -> list[str]:
    return [f"{name} {share:.0%}" for name, share in row.shares if share >= SMALLEST_SHARE_SHOWN and name]


def _as_many_as_fit(row: TopicRow, room: int) -> Text:
    """The topic's name, and its words up to the last one that fits."""
    text = Text(row.name, style="bold underline")
    for word in row.words:
        separator = ": " if row.name and len(text) == len(row.name) else " " if len(text) else ""
        if len(text) and cell_len(text.plain) + cell_len(separator + word) > room:
            break
        text.append(separator + word, style="not bold not underline")
    return text
