"""Comparison of two runs: matched topics, and documents whose main topic differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, normalize_rows
from polyseme.metrics import align
from polyseme.runs.view import TopicView


@dataclass(frozen=True)
class Pair:
    """A topic of the first run and the matched topic of the second; None where a topic has no match."""

    first: int | None
    second: int | None
    overlap: float
    """1 - total variation distance of the two topics over the words of both runs; 0 without a match."""
    first_weight: float
    second_weight: float
    common: list[str]
    """Top words of both topics."""
    only_first: list[str]
    only_second: list[str]


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`: topics matched one to one so that the total overlap is largest."""

    pairs: list[Pair]
    """In order of decreasing weight."""
    shared_words: int
    first_words: int
    second_words: int
    shared_documents: int
    moved: list[dict[str, Any]]
    """Documents of both runs whose main topics are not matched: id, first and second topic."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(first: TopicView, second: TopicView, *, n_words: int = 10) -> Comparison:
    """Match the topics of two runs by their probabilities of the words of both runs."""
    a_words = {word: column for column, word in enumerate(first.store.vocabulary)}
    b_words = second.store.vocabulary
    shared = [(a_words[word], column) for column, word in enumerate(b_words) if word in a_words]
    if not shared:
        raise InputError("The two runs have no word in common, so their topics cannot be compared.")
    a_columns, b_columns = (list(columns) for columns in zip(*shared, strict=True))
    a, b = first.fitted, second.fitted
    order, distance = align(
        normalize_rows(a.topic_word[:, a_columns].astype(np.float64)),
        normalize_rows(b.topic_word[:, b_columns].astype(np.float64)),
    )
    a_tops, b_tops = first.topic_words(n_words), second.topic_words(n_words)
    pairs = []
    for topic, match in enumerate(order.tolist()):
        if match < 0:
            pairs.append(Pair(topic, None, 0.0, float(a.topic_weights[topic]), 0.0, [], a_tops[topic], []))
        else:
            overlap = 1 - float(distance[topic])
            weights = float(a.topic_weights[topic]), float(b.topic_weights[match])
            pairs.append(Pair(topic, match, overlap, *weights, *_words(a_tops[topic], b_tops[match])))
    for topic in sorted(set(range(len(b_tops))) - set(order.tolist())):
        pairs.append(Pair(None, topic, 0.0, 0.0, float(b.topic_weights[topic]), [], [], b_tops[topic]))
    pairs.sort(key=lambda pair: -max(pair.first_weight, pair.second_weight))
    shared_documents, moved = _moved(first, second, order)
    return Comparison(pairs, len(shared), len(a_words), len(b_words), shared_documents, moved)


def _words(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the words that are in both lists, only in the first, and only in the second."""
    return (
        [word for word in first if word in second],
        [word for word in first if word not in second],
        [word for word in second if word not in first],
    )


def _moved(first: TopicView, second: TopicView, order: Array) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of documents of both runs, and those whose main topic differs."""
    ids, others = first.corpus.column("id"), second.corpus.column("id")
    other_row = {name: row for row, name in enumerate(others)}
    if len(other_row) < len(others) or len(set(ids)) < len(ids):
        return 0, []  # repeated ids do not identify documents
    a_main, b_main = (np.asarray(view.doc_topic.argmax(axis=1)) for view in (first, second))
    rows = [(row, other_row[name]) for row, name in enumerate(ids) if name in other_row]
    moved = [
        {"id": ids[row], "first": int(a_main[row]), "second": int(b_main[other])}
        for row, other in rows
        if order[a_main[row]] != b_main[other]
    ]
    return len(rows), moved
