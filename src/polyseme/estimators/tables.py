"""Tables that estimators return, as whatever frame library is installed."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.kernels import Array, Floats


def words_of_topics(topics: Array, vocabulary: Sequence[str] | None, n_words: int) -> list[list[str]]:
    """The n_words most probable words of each topic (topics x words), by name, else numbered x0, x1, ..."""
    size = topics.shape[1]
    if vocabulary is None:
        vocabulary = [f"x{word}" for word in range(size)]
    if len(vocabulary) != size:
        raise InputError(f"vocabulary must have one name for each of the {size} words, got {len(vocabulary)}.")
    return [words_of_topic(topic, vocabulary, n_words) for topic in topics]


def topic_columns(
    components: Array, weights: Floats, fit: Floats, vocabulary: Sequence[str] | None, n_words: int
) -> dict[str, list[Any]]:
    """Columns id, weight, fit, words; words are the n_words most probable, comma-separated."""
    return {
        "id": list(range(len(components))),
        "weight": [float(weight) for weight in weights],
        "fit": [float(value) for value in fit],
        "words": [", ".join(words) for words in words_of_topics(components, vocabulary, n_words)],
    }


def largest(values: Array, count: int) -> list[int]:
    """The positions of the `count` largest values, largest first; of equal ones the first."""
    return [int(i) for i in np.argsort(-values, kind="stable")[:count]]


def words_of_topic(topic: Array, vocabulary: Sequence[str], count: int) -> list[str]:
    """The most probable words of a topic, at most `count`; none that it never says."""
    return [str(vocabulary[word]) for word in largest(topic, count) if topic[word] > 0]


def topics_html(columns: dict[str, list[Any]]) -> str:
    """The columns of `topic_columns` as a small table for a notebook, the heaviest topic first."""
    order = sorted(columns["id"], key=lambda topic: -columns["weight"][topic])
    rows = [
        f"<tr><td>{topic}</td><td>{columns['weight'][topic]:.1%}</td><td>{columns['fit'][topic]:.0%}</td>"
        f'<td style="text-align:left">{html.escape(columns["words"][topic])}</td></tr>'
        for topic in order
    ]
    head = '<tr><th>topic</th><th>weight</th><th>fit</th><th style="text-align:left">words</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def frame(columns: dict[str, list[Any]]) -> Any:
    """A polars frame, or a pandas one where polars is missing."""
    for library in ("polars", "pandas"):
        try:
            return import_module(library).DataFrame(columns)
        except ModuleNotFoundError:
            continue
    raise MissingExtraError("A table of topics", "cli")
