"""Tables of topics for the terminal: `topic_rows` summarizes the topics, the other functions format the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from polyseme.estimators.tables import largest, words_of_model
from polyseme.runs.topic_documents import Labels, topic_documents

MIN_SHARE_SHOWN = 0.1
"""Labels with a smaller share of a topic are not shown."""
TOPICS_ON_A_SCREEN = 15
LABEL_WIDTH = 24


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
    coherence: NDArray[Any] | None = None,
) -> list[TopicRow]:
    """Summarize every topic, in order of decreasing weight.

    counts : counts of the documents, in one or more parts. The share of a label is the sum of P(d|z) over its
    documents; documents without a label have the label "".
    """
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
    table = _table(rows, "words, and typical documents", overflow="fold")
    for row in rows:
        content = Text(f"{row.name}\n" if row.name else "", style="bold underline")
        content.append(" ".join(row.words), style="bold not underline")
        for document in row.documents:
            content.append(f"\n{document}", style="not bold not underline dim")
        _add_row(table, rows, row, _labels_shown(row), content)
    return table


def short_topic_table(rows: Sequence[TopicRow], width: int) -> Table:
    """Return a table with one line for each of the heaviest topics, at most `width` columns wide."""
    rows = rows[:TOPICS_ON_A_SCREEN]
    first_labels = [_labels_shown(row)[:1] for row in rows]
    table = _table(rows, "words", no_wrap=True)
    words_width = width - len("topic  weight   fit  ") - (len(" npmi  ") if _has_coherence(rows) else 0)
    if _has_labels(rows):
        widths = [min(LABEL_WIDTH, len(label)) for labels in first_labels for label in labels]
        words_width -= 2 + max([len("mostly"), *widths])
    for row, labels in zip(rows, first_labels, strict=True):
        _add_row(table, rows, row, labels, _fitting_words(row, words_width))
    return table


def more_topics(rows: Sequence[TopicRow], run: str) -> str:
    """Return a line that says how many topics `short_topic_table` leaves out; "" if none."""
    more = len(rows) - TOPICS_ON_A_SCREEN
    return "" if more < 1 else f"{more} more {'topics' if more > 1 else 'topic'}: polyseme topics {run}"


def _table(rows: Sequence[TopicRow], last_column: str, **last: Any) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("topic", justify="right", style="cyan", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("fit", justify="right", no_wrap=True, min_width=4)
    if _has_coherence(rows):
        table.add_column("npmi", justify="right", no_wrap=True, min_width=5)
    if _has_labels(rows):
        table.add_column("mostly", max_width=LABEL_WIDTH)
    table.add_column(last_column, **last)
    return table


def _add_row(table: Table, rows: Sequence[TopicRow], row: TopicRow, labels: list[str], content: Text) -> None:
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
    return [f"{name} {share:.0%}" for name, share in row.shares if share >= MIN_SHARE_SHOWN and name]


def _fitting_words(row: TopicRow, width: int) -> Text:
    """Return the topic's name and as many of its words as fit into `width` columns."""
    text = Text(row.name, style="bold underline")
    for word in row.words:
        separator = ": " if row.name and len(text) == len(row.name) else " " if len(text) else ""
        if len(text) and cell_len(text.plain) + cell_len(separator + word) > width:
            break
        text.append(separator + word, style="not bold not underline")
    return text
