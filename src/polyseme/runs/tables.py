"""The tables of a run: topics for a spreadsheet, documents for data tools."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.estimators.tables import largest, words_of_model
from polyseme.kernels import Array, Floats
from polyseme.runs.typical import Typical

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""ASCII and full-width, which spreadsheets in some languages take too"""
WORDS_SHOWN, DOCUMENTS_SHOWN = 10, 3


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return "'" + cell if cell.startswith(_FORMULA_STARTS) else cell


def topics_csv(
    model: Any,
    found: Typical,
    vocabulary: Sequence[str],
    documents: Sequence[str],
    topic_names: Mapping[str, str],
) -> str:
    """A row for each topic, the heaviest first: topic, name, weight P(z), fit, words and most typical documents."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["topic", "name", "weight", "fit", "words", "documents"])
    weights, shown = model.topic_weights_, words_of_model(model, vocabulary, WORDS_SHOWN)
    for topic in largest(weights, len(weights)):
        words = " ".join(shown[topic])
        typical = "; ".join(documents[document] for document in found.documents[topic])
        numbers = (f"{weights[topic]:.6f}", f"{found.fit[topic]:.6f}")
        writer.writerow(
            [topic, harmless(topic_names.get(str(topic), "")), *numbers, harmless(words), harmless(typical)]
        )
    return text.getvalue()


def with_topics(documents: Any, tokens: Floats, doc_topic: Array) -> Any:
    """A polars frame of documents with their tokens, their main topic and its share, and P(z|d) of every topic."""
    import polars as pl

    main = doc_topic.argmax(axis=1)
    return documents.with_columns(
        pl.Series("tokens", tokens),
        pl.Series("topic", main.astype(np.int32)),
        pl.Series("share", doc_topic[np.arange(len(main)), main]),
        *[pl.Series(f"topic_{k}", np.ascontiguousarray(doc_topic[:, k])) for k in range(doc_topic.shape[1])],
    )
