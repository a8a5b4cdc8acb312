"""Documents a few at a time, and steps that grow smaller: what stochastic solvers share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts


class Batch(NamedTuple):
    """Some documents, with the columns of the words that they have."""

    words: Array
    counts: SparseCounts
    weights: Floats | None

    @property
    def size(self) -> float:
        """how many documents these are, with their weights"""
        return float(self.counts.n_docs if self.weights is None else self.weights.sum())


def batches(counts: SparseCounts, weights: Floats | None, order: Array, size: int) -> Iterator[Batch]:
    """The documents in this order, `size` at a time."""
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        part = counts.take(rows)
        words = np.flatnonzero(np.bincount(part.indices, minlength=counts.n_words))
        columns = np.zeros(counts.n_words, dtype=part.indices.dtype)
        columns[words] = np.arange(words.size)
        here = SparseCounts(part.indptr, columns[part.indices], part.values, len(rows), max(1, words.size))
        yield Batch(words, here, None if weights is None else weights[rows])


def rate(offset: float, decay: float, steps: float) -> float:
    """(offset + steps)^-decay: how much of a new batch goes into the running mean after so many steps."""
    return float((offset + steps) ** -decay)


def check_schedule(owner: str, offset: float, decay: float) -> None:
    """Raises InputError unless the steps' sum is infinite and that of their squares is not."""
    if not 0.5 < decay <= 1 or not offset >= 1:
        raise InputError(f"{owner}: decay must be above 0.5 and at most 1, and offset at least 1.")
