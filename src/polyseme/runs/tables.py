"""The tables of a run: topics for a spreadsheet, documents for data tools."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyseme.kernels import Array, Floats

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
WORDS_SHOWN, DOCUMENTS_SHOWN = 10, 3


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return "'" + cell if cell.startswith(_FORMULA_STARTS) else cell


def largest(values: Array, count: int) -> list[int]:
    """The positions of the `count` largest values, largest first; of equal ones the first."""
    return [int(i) for i in np.argsort(-values, kind="stable")[:count]]


def topics_csv(
    components: Array,
    weights: Floats,
    fit: Floats,
    topic_doc: Floats,
    vocabulary: Sequence[str],
    names: Sequence[str],
) -> str:
    """A row for each topic, the heaviest first: topic, weight P(z), fit, its words and its most typical documents."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["topic", "weight", "fit", "words", "documents"])
    for topic in largest(weights, len(weights)):
        words = " ".join(vocabulary[word] for word in largest(components[topic], WORDS_SHOWN))
        documents = "; ".join(names[document] for document in largest(topic_doc[topic], DOCUMENTS_SHOWN))
        writer.writerow([topic, f"{weights[topic]:.6f}", f"{fit[topic]:.6f}", harmless(words), harmless(documents)])
    return text.getvalue()


def document_frame(columns: dict[str, list[Any]], tokens: Floats, doc_topic: Array) -> Any:
    """A polars frame with a row for each document: what is known of it, its main topic, and P(z|d) of every topic."""
    import polars as pl

    main = doc_topic.argmax(axis=1)
    frame = pl.DataFrame(columns).with_columns(
        pl.Series("tokens", tokens),
        pl.Series("topic", main.astype(np.int32)),
        pl.Series("share", doc_topic[np.arange(len(main)), main]),
    )
    return frame.with_columns(
        [pl.Series(f"topic_{k}", np.ascontiguousarray(doc_topic[:, k])) for k in range(doc_topic.shape[1])]
    )
