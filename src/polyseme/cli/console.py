"""Output of the commands: a console that shows control characters, tables of topics, JSON, errors and exit codes."""

from __future__ import annotations

import json
import math
import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich.console
import typer
from rich.cells import cell_len
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Span, Text
from rich.tree import Tree

from polyseme.progress import UNSAFE, TerminalReporter, escape_character, pluralize, print_line, visible
from polyseme.text.sentences import cut_at_word

if TYPE_CHECKING:
    from polyseme.cli import schemas
    from polyseme.kernels import Array
    from polyseme.runs import Run
    from polyseme.runs.info import Reproducibility
    from polyseme.runs.quotes import TypicalDocument
    from polyseme.runs.view import FinerTopic, TopicView

FAILED = 1
"""Exit code of an error in the input, a file or the machine. Exit code 2 means wrong arguments."""
INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, as in shells."""
SCHEMA_VERSION = 1
"""Version of the JSON that commands print."""

_MIN_SHARE_SHOWN, _MOST = 0.1, 0.5
"""Labels with a smaller share of a topic are not shown in lists of labels, and as the label of most documents."""
_TOPICS_ON_A_SCREEN = 15
_LABEL_WIDTH = 24
_FOUND_WIDTH = len("100% (72 to 100)")
_INDENT = 7
"""Columns before the lines of a topic, the width of its number."""


class Console(rich.console.Console):
    """Console of rich without markup, emoji names and highlighting, which a title may contain by chance."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape control characters. rich also calls this method for every cell of a table."""
        for segment in super().render(
            _visible_text(renderable) if isinstance(renderable, Text) else renderable, options
        ):
            if segment.control is None and UNSAFE.search(segment.text):
                segment = Segment(visible(segment.text), segment.style)
            yield segment


def print_json(command: str, value: Any) -> None:
    r"""Print the result of a command as JSON, with control characters as \u escapes.

    Its schema is that of the command in `cli.schemas`.
    """
    text = json.dumps({"schema": f"{command}/{SCHEMA_VERSION}", **finite(value)}, ensure_ascii=False, indent=2) + "\n"
    print_data(UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text))


def finite(value: Any) -> Any:
    """Return a JSON value with None for numbers that JSON does not have: NaN and infinity."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_rows(columns: dict[str, list[Any]]) -> list[Any]:
    """Return columns by name as rows."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def print_written(command: str, path: Path) -> None:
    """Print which file a command has written, as JSON."""
    print_json(command, {"file": str(path), "bytes": path.stat().st_size})


def print_data(text: str) -> None:
    """Print a table for files and other programs unchanged, as UTF-8; in a terminal, escape control characters."""
    typer.echo(visible(text) if _is_terminal() else text.encode(), nl=False)


def print_error(message: str) -> None:
    """Print one line on standard error."""
    print_line(Console(stderr=True), f"polyseme: {visible(message.rstrip('.'), one_line=True)}.")


def screen_reporter(*, quiet: bool = False) -> TerminalReporter:
    """Return the reporter of a command: bars and notes on standard error."""
    return TerminalReporter(Console(stderr=True), quiet=quiet)


def exit_if_interrupted(interrupted: bool) -> None:
    """After Ctrl-C, say which topics were written and exit with the code of an interrupt."""
    if interrupted:
        Console(stderr=True).print("Stopped early: these are the topics of the last completed iteration.")
        raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True)
class TopicRow:
    """Summary of one topic: its weight, words, labels and documents."""

    topic: int
    name: str
    """Its name: given with polyseme edit, or made of phrases and words of the documents."""
    weight: float
    """P(z)."""
    fit: float
    """Mean weight of the topic in its own documents: sum_d P(d|z) P(z|d)."""
    words: list[str]
    shares: dict[str, float]
    """Labels with their shares of the topic, the largest first."""
    documents: list[TypicalDocument]
    """Its most typical documents, with quotes."""
    junk: str = ""
    """Reason why it may not describe a subject, or ""."""
    reproducibility: Reproducibility | None = None
    """How often fits to resampled documents have it; None without a consensus."""
    coherence: float | None = None
    """NPMI of its first ten words in the documents of the run; None if not computed."""
    level: int = 0
    """Number of topics of its level."""
    parent: int | None = None
    """The topic of the level above to which it belongs; None at the reading level."""
    parent_name: str = ""
    """Name of its parent, or ""."""
    parent_share: float | None = None
    """Share of its tokens that its parent has."""
    children: list[FinerTopic] = field(default_factory=list)
    """Topics of the next finer level that belong to it."""


def levels_note(run: TopicView, folder: Path | str) -> str:
    """Return a line that names the levels of a run and the command that shows another one; "" if there is only one."""
    levels = run.levels
    if len(levels) == 1:
        return ""
    other = levels[1] if run.finer is None else levels[0]
    listed = ", ".join(map(str, levels))
    return f"Levels of {listed} topics: polyseme topics {folder} --level {other}"


def topic_rows(
    run: TopicView, *, n_words: int = 8, n_documents: int = 0, coherence: Array | None = None
) -> list[TopicRow]:
    """Summarize every topic of a run, in order of decreasing weight; at a finer level in the order of their parents.

    The share of a label is the sum of P(d|z) over its documents; documents without a label have the label "".
    """
    from polyseme.metrics.words import largest  # slow imports: errors are printed before them
    from polyseme.runs.names import parent_titles
    from polyseme.runs.tables import topics_in_order

    typical = run.typical_documents(n_documents) if n_documents else [[] for _ in range(run.fitted.n_topics)]
    labels, rows, topics, parents = run.corpus.label_numbers, [], run.topics(n_words), run.parents
    children, above = run.finer_topics(n_words), parent_titles(run)
    for topic in (topics[number] for number in topics_in_order(run)):
        shares = run.typical.shares[topic.id]
        rows.append(
            TopicRow(
                topic=topic.id,
                name=topic.name,
                weight=topic.weight,
                fit=topic.fit,
                words=topic.words,
                shares={labels.names[i]: float(shares[i]) for i in largest(shares, len(shares))},
                documents=typical[topic.id],
                junk=run.junk[topic.id].reason if topic.id in run.junk else "",
                reproducibility=run.reproducibility[topic.id] if run.reproducibility else None,
                coherence=None if coherence is None else float(coherence[topic.id]),
                level=len(topics),
                parent=None if parents is None else int(parents.topics[topic.id]),
                parent_name=above[topic.id] if above else "",
                parent_share=None if parents is None else float(parents.shares[topic.id]),
                children=children[topic.id],
            )
        )
    return rows


def name_by_model(folder: Path, namer: Callable[..., str], level: int | None, *, quiet: bool) -> Run:
    """Name topics of a run with a function; say which topics keep their names, and why."""
    from polyseme.runs.naming import name_run

    report = screen_reporter(quiet=quiet)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = name_run(folder, namer, level=level, report=report)
    for warning in caught:
        report.note(str(warning.message))
    return run


def fitted_as_dict(run: Run) -> schemas.FittedRun:
    """Return what a fit has found as JSON values."""
    from polyseme.runs.store import PAGE_FILE
    from polyseme.utils import perplexity_of

    info, page = run.info, run.path / PAGE_FILE
    return {
        "run": str(run.path),
        "page": str(page) if page.is_file() else None,
        "documents": info.documents,
        "words": info.words,
        "tokens": info.tokens,
        "iterations": info.iterations,
        "converged": info.converged,
        "seconds": sum(info.seconds.values()),
        "perplexity": perplexity_of(run.model.log_likelihood_),
        "left_out": info.left_out,
        "problems": info.problems,
        "interrupted": info.interrupted,
        "topics": topics_as_dicts(run.view),
    }


def topics_as_dicts(view: TopicView) -> Any:
    """Return the topics of a level as JSON values."""
    return [asdict(row) for row in topic_rows(view)]


def print_junk(run: TopicView, screen: Console, folder: str) -> None:
    """Print which topics may not describe a subject, and how to remove them."""
    from polyseme.runs.junk import junk_notes

    for note in junk_notes(run.junk, folder):
        print_line(screen, note)


def fit_summary(run: Run) -> str:
    """Return two lines: sizes and seconds of the fit, and perplexities."""
    import numpy as np

    from polyseme.utils import perplexity_of

    info, model, duplicates = run.info, run.model, run.info.duplicates
    counted = ("document", info.documents), ("word", info.words), ("token", info.tokens)
    sizes = ", ".join(pluralize(number, noun) for noun, number in counted)
    note = f"; {pluralize(duplicates.found, 'near-duplicate')}" if duplicates.found else ""
    note += " left out" if note and duplicates.mode == "drop" else ""
    p = model.unigram_[model.unigram_ > 0]
    perplexity, without_topics = perplexity_of(model.log_likelihood_), perplexity_of((p * np.log(p)).sum())
    return (
        f"{sizes}, {pluralize(model.n_iter_, 'iteration')} in {info.seconds['fitting']:.1f} seconds{note}.\n"
        f"Perplexity of these documents {perplexity:.1f}; without topics {without_topics:.1f}."
    )


def print_topic_details(rows: Sequence[TopicRow], screen: Console) -> None:
    """Print every topic with its words, labels, typical documents with quotes, and finer topics."""
    indent, width = _INDENT, max(screen.width - _INDENT, 1)
    table = _empty_topic_table(rows, "name", screen.width, labels=False, no_wrap=True)
    for row in rows:
        _add_topic_row(table, rows, row, None, Text(row.name, style="bold underline"))
    heading, *lines = screen.render_lines(table, pad=False)
    screen.print(Segments([*heading, Segment.line()]), end="")
    for row, line in zip(rows, lines, strict=True):
        screen.print(Segments([*line, Segment.line()]), end="")
        parts = [Text(" ".join(row.words), style="bold"), Text(", ".join(_labels_shown(row)))]
        if row.parent_name:
            parts.append(Text(f"part of {row.parent} {row.parent_name}"))
        for document in row.documents:
            parts += [_one_line(document.title, width), _one_line(f"  {document.quote}", width, style="dim")]
        parts += [Text(f"{child.level}/{child.topic} {child.weight:.1%} {child.name}") for child in row.children]
        for part in parts:
            if part.plain.strip():
                screen.print(Padding(part, (0, 0, 0, indent)))


def _one_line(text: str, width: int, style: str = "") -> Text:
    """Return a text in at most `width` columns, cut at a word."""
    text = visible(text, one_line=True)
    length = width
    while cell_len(shown := cut_at_word(text, length)) > width and length > 1:
        length -= 1
    return Text(shown, style=style, no_wrap=True, overflow="ellipsis")


def node_tree(run: TopicView, n_words: int) -> Tree | None:
    """Return the tree of a hierarchical model, with the words of its inner nodes and its topics; None without one."""
    from polyseme.estimators.hierarchical import HierarchicalPLSA, node_amounts
    from polyseme.metrics.words import without_columns, words_of_amounts

    model = run.model
    if not isinstance(model, HierarchicalPLSA):
        return None
    words = words_of_amounts(without_columns(node_amounts(model), run.hidden_columns), run.store.vocabulary, n_words)
    topics = {leaf: topic for topic, leaf in enumerate(model.tree_.leaves)}
    titles, weights = run.topic_titles, run.fitted.topic_weights
    shown: dict[int, Tree] = {}
    for node, _ in model.tree_.depth_first():
        topic = topics.get(node)
        label = (
            f"{model.node_weights_[node]:.1%} {' '.join(words[node])}"
            if topic is None
            else f"topic {topic} {weights[topic]:.1%} {titles[topic]}"
        )
        parent = model.tree_.parents[node]
        shown[node] = Tree(Text(label)) if parent not in shown else shown[parent].add(Text(label))
    return shown[model.tree_.root]


def print_topics(rows: list[TopicRow], screen: Console, folder: Path) -> None:
    """Print one line for each topic of a finer level, below the names of the topics above it.

    Of the reading level, print the topics with the largest weights, and the command that shows the others.
    """
    most = _TOPICS_ON_A_SCREEN if rows[0].parent is None else len(rows)
    screen.print(_short_topic_table(rows[:most], screen.width))
    if any(row.reproducibility for row in rows):
        screen.print("In fits: share of fits to resampled documents in which the topic comes back, 95% interval.")
    if more := _more_topics(len(rows) - most, str(folder)):
        screen.print(more)


def _visible_text(text: Text) -> Text:
    """Escape control characters, and move the styles with their characters."""
    positions, added = [], [0]
    for match in UNSAFE.finditer(text.plain):
        positions.append(match.start())
        added.append(added[-1] + len(escape_character(match)) - 1)
    if not positions:
        return text
    changed = text.copy()
    changed.plain = visible(text.plain)
    changed.spans = [
        Span(start + added[bisect_left(positions, start)], end + added[bisect_left(positions, end)], style)
        for start, end, style in text.spans
    ]
    return changed


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _short_topic_table(rows: Sequence[TopicRow], width: int) -> Table:
    """Return a table with one line for each topic, at most `width` columns wide."""
    table = _empty_topic_table(rows, "words", width, no_wrap=True)
    words_width = width - len("topic  weight   fit  ") - (len(" npmi  ") if _has_coherence(rows) else 0)
    if any(row.reproducibility for row in rows):
        words_width -= 2 + _FOUND_WIDTH
    labels = [_labels_shown(row, _label_width(width), least=_MOST)[:1] for row in rows]
    if _has_labels(rows):
        words_width -= 2 + max([len("mostly"), *(cell_len(label) for shown in labels for label in shown)])
    above = None
    for row, shown in zip(rows, labels, strict=True):
        if row.parent != above:
            above, heading = row.parent, Text(f"{row.parent} {row.parent_name}", style="dim")
            table.add_row(*[""] * (len(table.columns) - 1), _cut(heading, words_width))
        _add_topic_row(table, rows, row, shown, _fitting_words(row, words_width))
    return table


def _more_topics(more: int, run: str) -> str:
    """Return a line that says how many topics `print_topics` leaves out; "" if none."""
    return "" if more < 1 else f"{more} more {'topics' if more > 1 else 'topic'}: polyseme topics {run}"


def _empty_topic_table(
    rows: Sequence[TopicRow], last_column: str, width: int, *, labels: bool = True, **last: Any
) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("topic", justify="right", style="cyan", no_wrap=True, min_width=5)
    table.add_column("weight", justify="right", no_wrap=True, min_width=6)
    table.add_column("fit", justify="right", no_wrap=True, min_width=4)
    if _has_coherence(rows):
        table.add_column("npmi", justify="right", no_wrap=True, min_width=5)
    if any(row.reproducibility for row in rows):
        table.add_column("in fits", no_wrap=True, min_width=_FOUND_WIDTH)
    if labels and _has_labels(rows):
        table.add_column("mostly", max_width=_label_width(width))
    table.add_column(last_column, **last)
    return table


def _add_topic_row(
    table: Table, rows: Sequence[TopicRow], row: TopicRow, labels: list[str] | None, content: Text
) -> None:
    """Add a row to the table; without labels, if it has no column for them."""
    cells: list[str | Text] = [str(row.topic), f"{row.weight:.1%}", f"{row.fit:.0%}"]
    if _has_coherence(rows):
        cells.append(f"{row.coherence:.2f}" if row.coherence is not None else "")
    if row.reproducibility:
        cells.append(_found_again(row))
    if labels is not None and _has_labels(rows):
        cells.append(Text("\n".join(labels)))
    table.add_row(*cells, content)


def _found_again(row: TopicRow) -> str:
    """Return the reproducibility of a topic with its interval."""
    found = row.reproducibility
    return f"{found.share:.0%} ({100 * found.least:.0f} to {100 * found.most:.0f})" if found else ""


def _has_coherence(rows: Sequence[TopicRow]) -> bool:
    return any(row.coherence is not None for row in rows)


def _label_width(width: int) -> int:
    """Return the number of columns for labels on a screen with this many columns."""
    return min(_LABEL_WIDTH, width // 4)


def _has_labels(rows: Sequence[TopicRow]) -> bool:
    """Return whether the labels distinguish documents: a label that all of them have says nothing about a topic."""
    return len({name for row in rows for name in row.shares}) > 1


def _labels_shown(row: TopicRow, width: int | None = None, least: float = _MIN_SHARE_SHOWN) -> list[str]:
    """Return the labels with at least this share of a topic; long names are cut to `width` columns with the share."""
    shown = []
    for label, share in row.shares.items():
        if share >= least and label:
            name, end = Text(label), f" {share:.0%}"
            if width is not None:
                name.truncate(max(1, width - len(end)), overflow="ellipsis")
            shown.append(name.plain + end)
    return shown


def _fitting_words(row: TopicRow, width: int) -> Text:
    """Return the topic's name, cut if it is too long, and as many of its other words as fit into `width` columns."""
    from polyseme.metrics.words import other_words

    text = Text(row.name, style="bold underline")
    for word in other_words(row.name, row.words):
        separator = ": " if row.name and len(text) == len(row.name) else " " if len(text) else ""
        if len(text) and cell_len(text.plain) + cell_len(separator + word) > width:
            break
        text.append(separator + word, style="not bold not underline")
    return _cut(text, width)


def _cut(text: Text, width: int) -> Text:
    """Cut a text to `width` columns, between words if possible."""
    if text.cell_len <= width:
        return text
    whole = text.plain
    text.truncate(max(0, width - 1), overflow="crop")
    if whole[len(text)] not in " ," and " " in text.plain:
        text = text[: text.plain.rindex(" ")]
    text = text[: len(text.plain.rstrip(" ,"))]
    return text.append("…")
