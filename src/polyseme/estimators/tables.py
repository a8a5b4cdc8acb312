"""Tables that estimators return, as whatever frame library is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.kernels import Array, Floats


def topic_columns(
    components: Array, weights: Floats, fit: Floats, vocabulary: Sequence[str] | None, n_words: int
) -> dict[str, list[Any]]:
    """Columns id, weight, fit, words; words are the n_words most probable, comma-separated."""
    n_topics, size = components.shape
    if vocabulary is None:
        vocabulary = [f"x{word}" for word in range(size)]
    if len(vocabulary) != size:
        raise InputError(f"vocabulary must have one name for each of the {size} words, got {len(vocabulary)}.")
    return {
        "id": list(range(n_topics)),
        "weight": [float(weight) for weight in weights],
        "fit": [float(value) for value in fit],
        "words": [", ".join(top_words(topic, vocabulary, n_words)) for topic in components],
    }


def largest(values: Array, count: int) -> list[int]:
    """The positions of the `count` largest values, largest first; of equal ones the first."""
    return [int(i) for i in np.argsort(-values, kind="stable")[:count]]


def top_words(topic: Array, vocabulary: Sequence[str], count: int) -> list[str]:
    """The most probable words of a topic, at most `count`; none that it never says."""
    return [str(vocabulary[word]) for word in largest(topic, count) if topic[word] > 0]


def frame(columns: dict[str, list[Any]]) -> Any:
    """A polars frame, or a pandas one where polars is missing."""
    for library in ("polars", "pandas"):
        try:
            return import_module(library).DataFrame(columns)
        except ModuleNotFoundError:
            continue
    raise MissingExtraError("A table of topics", "cli")
