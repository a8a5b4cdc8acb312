"""From a fitted model to the table of its topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from polyseme.estimators.tables import largest, words_of_topic
from polyseme.runs.typical import Labels, typical

SMALLEST_SHARE_SHOWN = 0.1


class TopicModel(Protocol):
    """What a table of topics needs of a fitted model."""

    @property
    def components_(self) -> NDArray[Any]: ...

    @property
    def topic_weights_(self) -> NDArray[Any]: ...

    @property
    def doc_weights_(self) -> NDArray[Any]: ...

    @property
    def doc_topic_(self) -> NDArray[Any]: ...


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
    """NPMI of its ten most probable words in the run's documents, where it was asked for"""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "shares": dict(self.shares)}


def topic_rows(
    model: TopicModel,
    vocabulary: Sequence[str],
    titles: Sequence[str],
    labels: Labels,
    topic_names: Mapping[int, str] | None = None,
    *,
    n_words: int = 8,
    n_documents: int = 2,
    coherence: NDArray[Any] | None = None,
) -> list[TopicRow]:
    """Summarise each topic, the heaviest first; a label's share is the sum of P(d|z) over its documents.

    A document without a label has the label "".
    """
    found = typical(model.doc_topic_, model.doc_weights_, n_documents, labels)
    rows = []
    for topic in np.argsort(-model.topic_weights_, kind="stable"):
        shares = found.shares[topic]
        rows.append(
            TopicRow(
                topic=int(topic),
                name=(topic_names or {}).get(int(topic), ""),
                weight=float(model.topic_weights_[topic]),
                fit=float(found.fit[topic]),
                words=words_of_topic(model.components_[topic], vocabulary, n_words),
                shares=[(labels.names[i], float(shares[i])) for i in largest(shares, len(shares))],
                documents=[titles[document] for document in found.documents[topic]],
                coherence=None if coherence is None else float(coherence[topic]),
            )
        )
    return rows


def topic_table(rows: Iterable[TopicRow]) -> Table:
    """The topics as a table that fits the width of the terminal."""
    rows = list(rows)
    labelled = any(name for row in rows for name, _ in row.shares)
    judged = any(row.coherence is not None for row in rows)
    table = Table(header_style="bold", show_lines=True)
    table.add_column("topic", justify="right", style="cyan", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("fit", justify="right", no_wrap=True)
    if judged:
        table.add_column("npmi", justify="right", no_wrap=True)
    if labelled:
        table.add_column("from", max_width=24)
    table.add_column("words, and the most typical documents", overflow="fold")
    for row in rows:
        shares = [f"{name} {share:.0%}" for name, share in row.shares if share >= SMALLEST_SHARE_SHOWN and name]
        says = Text(f"{row.name}\n" if row.name else "", style="bold underline")
        says.append(" ".join(row.words), style="bold not underline")
        for document in row.documents:
            says.append(f"\n{document}", style="not bold not underline dim")
        cells = [str(row.topic), f"{row.weight:.1%}", f"{row.fit:.0%}"]
        cells += [f"{row.coherence:.2f}" if row.coherence is not None else ""] if judged else []
        table.add_row(*cells, *([Text("\n".join(shares))] if labelled else []), says)
    return table
