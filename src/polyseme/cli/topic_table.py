"""Tables of topics: `topic_rows` summarizes the topics of a model, the other functions print the rows."""

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
from polyseme.runs.topic_documents import Labels, TopicModel, topic_documents

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
