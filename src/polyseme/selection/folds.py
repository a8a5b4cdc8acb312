"""Folds: which documents, or which tokens of every document, are held out in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.estimators.validation import whole_number
from polyseme.kernels import Array, SparseCounts
from polyseme.split import split_in_parts


class DocumentFold(NamedTuple):
    """Numbers of the documents to fit on, and of those held out."""

    train: Array
    test: Array


def document_folds(n_documents: int, n_folds: int, seed: int = 0) -> list[DocumentFold]:
    """Every document held out once, in `n_folds` random parts of nearly equal size."""
    n_folds = whole_number("n_folds", n_folds, least=2)
    if n_documents < n_folds:
        raise InputError(
            f"{n_documents} documents cannot be parted into {n_folds} folds: give at most {n_documents} folds."
            if n_documents >= 2
            else f"Cross-validation by documents needs at least 2 of them, got {n_documents}."
        )
    order = np.random.default_rng(seed).permutation(n_documents)
    parts = [np.sort(part) for part in np.array_split(order, n_folds)]
    everything = np.arange(n_documents)
    return [DocumentFold(np.setdiff1d(everything, part, assume_unique=True), part) for part in parts]


def token_folds(counts: SparseCounts, n_folds: int, seed: int = 0) -> Iterator[tuple[SparseCounts, SparseCounts]]:
    """(observed, held out) for each fold: every token held out once, the same for a document in any batch."""
    n_folds = whole_number("n_folds", n_folds, least=2)
    for held_out in split_in_parts(counts, n_folds, seed):
        yield counts.with_values(counts.values - held_out), counts.with_values(held_out)
