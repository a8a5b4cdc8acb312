"""Output of the commands: text, tables of topics, JSON, errors, progress bars and exit codes.

Control characters in titles and texts are printed in escaped form (\\x1b), so that a document cannot control the
terminal.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich.console
import typer
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

if TYPE_CHECKING:
    from polyseme.kernels import Array
    from polyseme.runs.topic_documents import Labels

FAILED = 1
"""Exit code of an error in the input, a file or the machine. Exit code 2 means wrong arguments."""
INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, as in shells."""

_ARGUMENTS = (
    "categories", "encoding", "format", "id", "label", "language", "max_df", "max_iter", "min_df", "n_components",
    "n_folds", "noise", "random_state", "sample", "text", "time", "title",
)  # fmt: skip
"""Python arguments that are also options of commands."""
_OPTIONS = {"categories": "--category", "n_components": "-k", "n_folds": "--folds", "random_state": "--seed"}
"""Options with a name other than that of the argument."""
_ARGUMENT = re.compile(rf"(?<![\w-])({'|'.join(_ARGUMENTS)})=(?!=)(?=(\w?))")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters of ASCII and Latin-1, except tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that reorder the text of a line
    "\u2028\u2029\ufff9-\ufffb"  # other line separators, and hidden annotations
    "\ud800-\udfff]"  # surrogates, which cannot be encoded
)

_MIN_SHARE_SHOWN = 0.1
"""Labels with a smaller share of a topic are not shown."""
_TOPICS_ON_A_SCREEN = 15
_LABEL_WIDTH = 24

ProgressUpdate = Callable[[float, float | None, str], None]
"""Signature of ``update(completed, total, detail)``; `total` is None while it is not known."""


class Console(rich.console.Console):
    """Console of rich without markup, emoji names and highlighting, which a title may contain by chance."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape control characters; rich calls this method for every cell of a table, too."""
        for segment in super().render(
            _visible_text(renderable) if isinstance(renderable, Text) else renderable, options
        ):
            if segment.control is None and _UNSAFE.search(segment.text):
                segment = Segment(visible(segment.text), segment.style)
            yield segment


class RateColumn(ProgressColumn):
    """Column of a progress bar that shows the units done per second."""

    def __init__(self, unit: str, size: float) -> None:
        super().__init__()
        self._unit = unit
        self._size = size

    def render(self, task: Task) -> Text:
        if not self._unit or task.speed is None:
            return Text("")
        return Text(f"{task.speed / self._size:,.1f} {self._unit}/s")


@contextmanager
def progress_bar(
    console: Console, name: str, *, unit: str = "", size: float = 1.0, quiet: bool = False
) -> Iterator[ProgressUpdate]:
    """Show a progress bar that is removed at the end; without a terminal, print one line at the start.

    The rate is shown in units of `size` per second, if `unit` is given.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        RateColumn(unit, size),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    if not console.is_terminal and not quiet:
        console.print(f"{name} ...")
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, detail="")
        yield lambda completed, total, detail: progress.update(task, completed=completed, total=total, detail=detail)


def print_json(value: Any) -> None:
    r"""Print a value as JSON, with control characters as \u escapes."""
    typer.echo(
        _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False, indent=2))
    )


def print_data(text: str) -> None:
    """Print a table for files and other programs unchanged; in a terminal, escape control characters."""
    typer.echo(visible(text) if _is_terminal() else text, nl=False)


def print_error(message: str) -> None:
    """Print one line on standard error."""
    typer.echo(f"polyseme: {visible(message.rstrip('.'), one_line=True)}.", err=True)


def visible(text: str, *, one_line: bool = False) -> str:
    r"""Return the text with control characters as \x1b or \u202e; with `one_line`, escape line feeds and tabs, too."""
    text = _UNSAFE.sub(_escape, text)
    return text.replace("\n", "\\n").replace("\t", "\\t") if one_line else text


def with_option_names(message: str) -> str:
    """Return a message of the library with the names of options: `encoding=` becomes `--encoding`."""

    def option(found: re.Match[str]) -> str:
        name = _OPTIONS.get(found[1], f"--{found[1].replace('_', '-')}")
        return f"{name} " if found[2] else name  # a value follows

    return _ARGUMENT.sub(option, message)


def pluralize(number: int, noun: str) -> str:
    """Return for example "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def version_info() -> dict[str, Any]:
    """Return the fields of run.json that say when and with which versions the run was written."""
    packages = ("polyseme", "numpy", "scipy", "scikit-learn")
    return {
        "written": timestamp(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def timestamp() -> str:
    """Return the present time in UTC as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class TopicRow:
    """Summary of one topic: its weight, words, labels and documents."""

    topic: int
    name: str
    """Name given with polyseme edit, or ""."""
    weight: float
    """P(z)."""
    fit: float
    """Mean weight of the topic in its own documents: sum_d P(d|z) P(z|d)."""
    words: list[str]
    shares: list[tuple[str, float]]
    """Labels with their shares of the topic, the largest first."""
    documents: list[str]
    """Names of its most typical documents."""
    coherence: float | None = None
    """NPMI of its first ten words in the documents of the run; None if not computed."""

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
    coherence: Array | None = None,
) -> list[TopicRow]:
    """Summarize every topic, in order of decreasing weight.

    counts : counts of the documents, in one or more parts. The share of a label is the sum of P(d|z) over its
    documents; documents without a label have the label "".
    """
    import numpy as np  # these imports are slow, and errors are printed before them

    from polyseme.estimators.tables import largest, words_of_model
    from polyseme.runs.topic_documents import topic_documents

    found = topic_documents(model.fitted_, model.documents_, counts, n_documents, labels)
    shown = words_of_model(model, vocabulary, n_words)
    weights, rows = model.fitted_.topic_weights, []
    for topic in np.argsort(-weights, kind="stable"):
        shares = found.shares[topic]
        rows.append(
            TopicRow(
                topic=int(topic),
                name=(topic_names or {}).get(int(topic), ""),
                weight=float(weights[topic]),
                fit=float(found.fit[topic]),
                words=shown[topic],
                shares=[(labels.names[i], float(shares[i])) for i in largest(shares, len(shares))],
                documents=[titles[document] for document in found.documents[topic]],
                coherence=None if coherence is None else float(coherence[topic]),
            )
        )
    return rows


def topic_table(rows: Sequence[TopicRow]) -> Table:
    """Return a table of all topics with their words, labels and typical documents."""
    table = _empty_topic_table(rows, "words, and typical documents", overflow="fold")
    for row in rows:
        content = Text(f"{row.name}\n" if row.name else "", style="bold underline")
        content.append(" ".join(row.words), style="bold not underline")
        for document in row.documents:
            content.append(f"\n{document}", style="not bold not underline dim")
        _add_topic_row(table, rows, row, _labels_shown(row), content)
    return table


def print_topics(rows: list[TopicRow], screen: Console, folder: Path) -> None:
    """Print one line for each of the heaviest topics, and the command that shows the others."""
    screen.print(_short_topic_table(rows, screen.width))
    if more := _more_topics(rows, str(folder)):
        screen.print(more)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _visible_text(text: Text) -> Text:
    """Escape control characters and move the styles with the characters that they belong to."""
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


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _short_topic_table(rows: Sequence[TopicRow], width: int) -> Table:
    """Return a table with one line for each of the heaviest topics, at most `width` columns wide."""
    rows = rows[:_TOPICS_ON_A_SCREEN]
    first_labels = [_labels_shown(row)[:1] for row in rows]
    table = _empty_topic_table(rows, "words", no_wrap=True)
    words_width = width - len("topic  weight   fit  ") - (len(" npmi  ") if _has_coherence(rows) else 0)
    if _has_labels(rows):
        widths = [min(_LABEL_WIDTH, len(label)) for labels in first_labels for label in labels]
        words_width -= 2 + max([len("mostly"), *widths])
    for row, labels in zip(rows, first_labels, strict=True):
        _add_topic_row(table, rows, row, labels, _fitting_words(row, words_width))
    return table


def _more_topics(rows: Sequence[TopicRow], run: str) -> str:
    """Return a line that says how many topics `_short_topic_table` leaves out; "" if none."""
    more = len(rows) - _TOPICS_ON_A_SCREEN
    return "" if more < 1 else f"{more} more {'topics' if more > 1 else 'topic'}: polyseme topics {run}"


def _empty_topic_table(rows: Sequence[TopicRow], last_column: str, **last: Any) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("topic", justify="right", style="cyan", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("fit", justify="right", no_wrap=True, min_width=4)
    if _has_coherence(rows):
        table.add_column("npmi", justify="right", no_wrap=True, min_width=5)
    if _has_labels(rows):
        table.add_column("mostly", max_width=_LABEL_WIDTH)
    table.add_column(last_column, **last)
    return table


def _add_topic_row(table: Table, rows: Sequence[TopicRow], row: TopicRow, labels: list[str], content: Text) -> None:
    cells: list[str | Text] = [str(row.topic), f"{row.weight:.1%}", f"{row.fit:.0%}"]
    if _has_coherence(rows):
        cells.append(f"{row.coherence:.2f}" if row.coherence is not None else "")
    if _has_labels(rows):
        cells.append(Text("\n".join(labels)))
    table.add_row(*cells, content)


def _has_coherence(rows: Sequence[TopicRow]) -> bool:
    return any(row.coherence is not None for row in rows)


def _has_labels(rows: Sequence[TopicRow]) -> bool:
    return any(name for row in rows for name, _ in row.shares)


def _labels_shown(row: TopicRow) -> list[str]:
    return [f"{name} {share:.0%}" for name, share in row.shares if share >= _MIN_SHARE_SHOWN and name]


def _fitting_words(row: TopicRow, width: int) -> Text:
    """Return the topic's name and as many of its words as fit into `width` columns."""
    text = Text(row.name, style="bold underline")
    for word in row.words:
        separator = ": " if row.name and len(text) == len(row.name) else " " if len(text) else ""
        if len(text) and cell_len(text.plain) + cell_len(separator + word) > width:
            break
        text.append(separator + word, style="not bold not underline")
    return text
