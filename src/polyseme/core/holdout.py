"""Holding out tokens of every document, by the content alone.

Hidden entries of a table of counts: zeros and non-zeros alike, as if they had not been observed.

A fit on the others needs, in place of the sums of its factors, sums over what is not hidden: of a document over its
words, of a word over its documents. Leaving the hidden counts at zero without that is wrong by a factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, checked_sparse


def split_tokens(counts: SparseCounts, seed: int, share: float = 0.5) -> tuple[Floats, Floats]:
    """Splits every document's tokens in two: (observed, held out), one number a non-zero each.

    Of a count x, floor(share x) tokens are held out, and of what is left one more (or the fractional rest, for counts
    below one) with the probability that makes the mean share x: decided by a hash of the seed, the word and the whole
    document's content. So the split of a document does not depend on the batch it comes in, and is defined for counts
    that are not whole.
    """
    x = counts.values.astype(np.float64)
    sure = np.floor(share * x)
    room = np.minimum(1.0, x - sure)
    chance = np.divide(share * x - sure, room, out=np.zeros_like(x), where=room > 0)
    held_out = sure + np.where(_uniform(counts, x, seed) < chance, room, 0.0)
    return x - held_out, held_out


def split_in_parts(counts: SparseCounts, n_parts: int, seed: int) -> Iterator[Floats]:
    """Every document's tokens in `n_parts` parts of nearly equal size, one after the other; they sum to the counts."""
    rest = counts.values.astype(np.float64)
    for left in range(n_parts, 0, -1):
        part = np.zeros(rest.size)
        part[rest > 0] = split_tokens(counts.with_values(rest), seed + n_parts - left, 1 / left)[1]
        rest = rest - part
        yield part


def _uniform(counts: SparseCounts, x: Floats, seed: int) -> Floats:
    """A number in [0, 1) for each non-zero, from its word, its document's content and the seed."""
    words = counts.indices.astype(np.uint64)
    content = _mix(words * np.uint64(0x9E3779B97F4A7C15) ^ x.view(np.uint64))
    document = np.zeros(counts.n_docs, dtype=np.uint64)
    lengths = np.diff(counts.indptr)
    filled = np.flatnonzero(lengths)
    if filled.size:
        document[filled] = np.add.reduceat(content, counts.indptr[filled])
    keys = np.repeat(_mix(document + np.uint64(seed)), lengths) ^ _mix(words)
    return np.asarray((_mix(keys) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _mix(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of splitmix64: every bit of the key changes about half of the bits of the result."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


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
