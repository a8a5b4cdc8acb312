"""Hidden entries of a table of counts: zeros and non-zeros alike, as if they had not been observed.

A fit on the others needs, in place of the sums of its factors, sums over what is not hidden: of a document over its
words, of a word over its documents. Leaving the hidden counts at zero without that is wrong by a factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, checked_sparse


class Mask(Protocol):
    """Which entries are hidden."""

    def hides(self, rows: Array, columns: Array) -> Array:
        """Whether these entries are hidden."""

    def sums_over_words(self, words: Array) -> Floats:
        """sum of words_wk over the hidden words of each document: documents x K."""

    def sums_over_docs(self, docs: Array) -> Floats:
        """sum of docs_dk over the documents that each word is hidden in: words x K."""


class SparseMask:
    """Any entries, as a sparse table; its memory is that of its entries."""

    def __init__(self, hidden: Any) -> None:
        pattern = sp.csr_array(checked_sparse(hidden, "hidden"))
        pattern.sum_duplicates()
        pattern.eliminate_zeros()
        pattern.data = np.ones(pattern.nnz)
        self._pattern = pattern

    @property
    def shape(self) -> tuple[int, int]:
        return self._pattern.shape

    def hides(self, rows: Array, columns: Array) -> Array:
        return np.asarray(self._pattern[rows, columns]).ravel() > 0

    def sums_over_words(self, words: Array) -> Floats:
        return np.asarray(self._pattern @ words.astype(np.float64))

    def sums_over_docs(self, docs: Array) -> Floats:
        return np.asarray(self._pattern.T @ docs.astype(np.float64))


@dataclass(frozen=True)
class DiagonalMask:
    """Wold's diagonals: documents and words fall into groups, and (d, w) is hidden where g_d + h_w = fold, modulo n.

    Each document misses 1/n of the words and each word 1/n of the documents; the sums need n groups, no table.
    """

    doc_groups: Array
    word_groups: Array
    n_groups: int
    fold: int

    def hides(self, rows: Array, columns: Array) -> Array:
        return np.asarray((self.doc_groups[rows] + self.word_groups[columns]) % self.n_groups == self.fold)

    def sums_over_words(self, words: Array) -> Floats:
        return self._sums(words, self.word_groups)[(self.fold - self.doc_groups) % self.n_groups]

    def sums_over_docs(self, docs: Array) -> Floats:
        return self._sums(docs, self.doc_groups)[(self.fold - self.word_groups) % self.n_groups]

    def _sums(self, factor: Array, groups: Array) -> Floats:
        return np.array([factor[groups == group].sum(axis=0, dtype=np.float64) for group in range(self.n_groups)])


def diagonal_masks(n_docs: int, n_words: int, n_folds: int, seed: int) -> list[DiagonalMask]:
    """`n_folds` masks that hide every entry once; the groups are drawn at random, of nearly equal size."""
    if min(n_docs, n_words) < n_folds:
        raise InputError(
            f"{n_docs} documents of {n_words} words cannot be parted into {n_folds} folds of entries: give at most "
            f"{min(n_docs, n_words)} folds."
        )
    rng = np.random.default_rng(seed)
    docs, words = (rng.permutation(size) % n_folds for size in (n_docs, n_words))
    return [DiagonalMask(docs, words, n_folds, fold) for fold in range(n_folds)]


def split_hidden(counts: SparseCounts, mask: Mask) -> tuple[SparseCounts, SparseCounts]:
    """The counts that are not hidden, and those that are."""
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    hidden = mask.hides(rows, counts.indices)
    return counts.with_values(np.where(hidden, 0, counts.values)), counts.with_values(
        np.where(hidden, counts.values, 0)
    )
