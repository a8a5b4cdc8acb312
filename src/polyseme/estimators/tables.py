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
    top = np.argsort(-components, axis=1, kind="stable")[:, :n_words]
    return {
        "id": list(range(n_topics)),
        "weight": [float(weight) for weight in weights],
        "fit": [float(value) for value in fit],
        "words": [", ".join(str(vocabulary[word]) for word in row) for row in top],
    }


def frame(columns: dict[str, list[Any]]) -> Any:
    """A polars frame, or a pandas one where polars is missing."""
    for library in ("polars", "pandas"):
        try:
            return import_module(library).DataFrame(columns)
        except ModuleNotFoundError:
            continue
    raise MissingExtraError("A table of topics", "cli")
