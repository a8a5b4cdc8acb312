"""Labels of documents as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array


def label_numbers(labels: Any, n_documents: int) -> tuple[list[Any], Array]:
    """The different labels, sorted, and the number of each document's; -1 for none (None, NaN or "").

    Raises InputError unless there is one for each of `n_documents` documents.
    """
    if isinstance(labels, str):
        raise InputError(f"labels must be a sequence with one label for each document, got the string {labels!r}.")
    values = list(labels)
    if len(values) != n_documents:
        raise InputError(f"labels must be one for each of the {n_documents} documents, got {len(values)}.")
    missing = [value is None or value == "" or value != value for value in values]
    present = {value for value, none in zip(values, missing, strict=True) if not none}
    try:
        names = sorted(present)
    except TypeError:
        names = sorted(present, key=lambda value: (type(value).__name__, str(value)))
    place = {name: number for number, name in enumerate(names)}
    numbers = (-1 if none else place[value] for value, none in zip(values, missing, strict=True))
    return names, np.fromiter(numbers, dtype=np.int64, count=len(values))
