"""Weights of entries: how much each entry of the data counts. An entry of weight zero is missing.

With weights v, a fit minimizes sum v loss(x, q) over all entries, zeros of the data included. For the Kullback-Leibler
divergence and the squared loss, the numerators of the updates are sums of y = v x, which are the counts of a weighted
corpus. The denominators are sums of v, or of v q, over the observed entries, not over complete rows and columns: a
missing entry is not a zero. No array of entries x K is allocated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import (
    Array,
    DenseCounts,
    Floats,
    SparseCounts,
    check_sparse,
    gram,
    map_in_threads,
    row_blocks,
    sum_in_order,
    weighted_sum,
    with_weights,
)


class EntryWeights(ABC):
    """Weights v of the entries of a table (documents x words). `weights` are weights of documents; None means one."""

    @property
    @abstractmethod
    def largest(self) -> tuple[Floats, Floats]:
        """Largest weight of each document and of each word; one if all its weights are zero."""

    @abstractmethod
    def at(self, rows: Array, columns: Array) -> Floats:
        """Return the weights of the entries in these rows and columns."""

    @abstractmethod
    def dense(self) -> Array:
        """Return all weights as a dense array, for data that are dense."""

    @abstractmethod
    def over_words(self, words: Array, *, n_threads: int = 1) -> Floats:
        """Return sum_w v_dw words_w of each document."""

    @abstractmethod
    def over_docs(self, docs: Array, weights: Floats | None = None, *, n_threads: int = 1) -> Floats:
        """Return sum_d weight_d v_dw docs_d of each word."""

    @abstractmethod
    def fitted_over_words(self, docs: Array, words: Array, *, n_threads: int = 1) -> Floats:
        """Return sum_w v_dw q_dw words_w of each document, with q = docs_d . words_w."""

    @abstractmethod
    def fitted_over_docs(
        self, docs: Array, words: Array, weights: Floats | None = None, *, n_threads: int = 1
    ) -> Floats:
        """Return sum_d weight_d v_dw q_dw docs_d of each word."""

    @abstractmethod
    def take(self, rows: Any) -> Self:
        """Return the weights of these documents."""

    def at_counts(self, counts: SparseCounts) -> Floats:
        """Return the weights of the non-zeros of counts."""
        rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
        return self.at(rows, counts.indices)

    def times(self, X: Any) -> Any:
        """Return y = v x, in the format of X (CSR or dense)."""
        if not sp.issparse(X):
            return X * self.dense()
        X = sp.csr_array(X, copy=True)
        X.sum_duplicates()
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        X.data = X.data * self.at(rows, X.indices)
        X.eliminate_zeros()
        return X


@dataclass(frozen=True, eq=False)
class StoredWeights(EntryWeights):
    """Weights as a sparse matrix; entries that it does not store have weight zero."""

    counts: SparseCounts

    @cached_property
    def largest(self) -> tuple[Floats, Floats]:
        maxima = np.zeros(self.counts.n_docs), np.zeros(self.counts.n_words)
        rows = np.repeat(np.arange(self.counts.n_docs), np.diff(self.counts.indptr))
        for largest, index in zip(maxima, (rows, self.counts.indices), strict=True):
            np.maximum.at(largest, index, self.counts.values)
            largest[largest == 0] = 1
        return maxima

    def at(self, rows: Array, columns: Array) -> Floats:
        return np.asarray(self.counts.matrix()[rows, columns], dtype=np.float64).ravel()

    def dense(self) -> Array:
        return np.asarray(self.counts.matrix().toarray())

    def over_words(self, words: Array, *, n_threads: int = 1) -> Floats:
        return self.counts.multiply(words, n_threads=n_threads)

    def over_docs(self, docs: Array, weights: Floats | None = None, *, n_threads: int = 1) -> Floats:
        by_word = self.counts.transposed(None)
        values = None if weights is None else by_word.values * weights[by_word.indices]
        return by_word.multiply(docs, n_threads=n_threads, values=values)

    def fitted_over_words(self, docs: Array, words: Array, *, n_threads: int = 1) -> Floats:
        q = self.counts.products(docs, words, n_threads=n_threads)
        return self.counts.multiply(words, n_threads=n_threads, values=self.counts.values * q)

    def fitted_over_docs(
        self, docs: Array, words: Array, weights: Floats | None = None, *, n_threads: int = 1
    ) -> Floats:
        by_word = self.counts.transposed(None)
        values = by_word.values * by_word.products(words, docs, n_threads=n_threads)
        if weights is not None:
            values = values * weights[by_word.indices]
        return by_word.multiply(docs, n_threads=n_threads, values=values)

    def take(self, rows: Any) -> StoredWeights:
        return StoredWeights(self.counts.take(np.arange(self.counts.n_docs)[rows]))


@dataclass(frozen=True, eq=False)
class DenseWeights(EntryWeights):
    """Weights as a dense array."""

    counts: DenseCounts

    @cached_property
    def largest(self) -> tuple[Floats, Floats]:
        maxima = (self.counts.values.max(axis=axis, initial=0).astype(np.float64) for axis in (1, 0))
        by_doc, by_word = (np.where(largest > 0, largest, 1) for largest in maxima)
        return by_doc, by_word

    def at(self, rows: Array, columns: Array) -> Floats:
        return np.asarray(self.counts.values[rows, columns], dtype=np.float64)

    def dense(self) -> Array:
        return self.counts.values

    def over_words(self, words: Array, *, n_threads: int = 1) -> Floats:
        return self.counts.multiply(words, n_threads=n_threads)

    def over_docs(self, docs: Array, weights: Floats | None = None, *, n_threads: int = 1) -> Floats:
        return self.counts.multiply_transpose(docs, n_threads=n_threads, weights=weights)

    def fitted_over_words(self, docs: Array, words: Array, *, n_threads: int = 1) -> Floats:
        out = np.empty(docs.shape)

        def one_block(block: slice) -> None:
            out[block] = (self.counts.values[block] * (docs[block] @ words.T)) @ words

        for _ in map_in_threads(one_block, self._blocks, n_threads):
            pass
        return out

    def fitted_over_docs(
        self, docs: Array, words: Array, weights: Floats | None = None, *, n_threads: int = 1
    ) -> Floats:
        def one_block(block: slice) -> Array:
            fitted = self.counts.values[block] * (docs[block] @ words.T)
            return np.asarray(fitted.T @ with_weights(docs[block], weights, block))

        return sum_in_order(map_in_threads(one_block, self._blocks, n_threads), words.shape)

    def take(self, rows: Any) -> DenseWeights:
        return DenseWeights(DenseCounts(np.ascontiguousarray(self.counts.values[rows])))

    @property
    def _blocks(self) -> list[slice]:
        return row_blocks(self.counts.n_docs, self.counts.n_words)


@dataclass(frozen=True, eq=False)
class DiagonalEntries(EntryWeights):
    """Weights that are one on diagonals (Wold 1978) and zero elsewhere.

    An entry (d, w) is on a diagonal if group(d) + group(w) = fold modulo n_groups, so each document has 1 / n_groups of
    the words, and each word 1 / n_groups of the documents. The sums are computed from sums over groups, without a table
    of entries.

    References
    ----------
    S. Wold (1978). Cross-validatory estimation of the number of components in factor and principal components models.
    Technometrics 20(4), 397-405.
    """

    doc_groups: Array
    word_groups: Array
    n_groups: int
    fold: int

    @property
    def largest(self) -> tuple[Floats, Floats]:
        return np.ones(len(self.doc_groups)), np.ones(len(self.word_groups))

    def at(self, rows: Array, columns: Array) -> Floats:
        on = (self.doc_groups[rows] + self.word_groups[columns]) % self.n_groups == self.fold
        return np.asarray(on, dtype=np.float64)

    def dense(self) -> Array:
        return self.at(np.arange(len(self.doc_groups))[:, np.newaxis], np.arange(len(self.word_groups)))

    def over_words(self, words: Array, *, n_threads: int = 1) -> Floats:
        sums = [words[self.word_groups == group].sum(axis=0, dtype=np.float64) for group in range(self.n_groups)]
        return np.array(sums)[self._partner(self.doc_groups)]

    def over_docs(self, docs: Array, weights: Floats | None = None, *, n_threads: int = 1) -> Floats:
        weighted = docs if weights is None else docs * weights[:, np.newaxis]
        sums = [weighted[self.doc_groups == group].sum(axis=0, dtype=np.float64) for group in range(self.n_groups)]
        return np.array(sums)[self._partner(self.word_groups)]

    def fitted_over_words(self, docs: Array, words: Array, *, n_threads: int = 1) -> Floats:
        out, partner = np.empty(docs.shape), self._partner(self.doc_groups)
        for group in range(self.n_groups):
            G = gram(words[self.word_groups == group], n_threads=n_threads)
            out[partner == group] = docs[partner == group] @ G
        return out

    def fitted_over_docs(
        self, docs: Array, words: Array, weights: Floats | None = None, *, n_threads: int = 1
    ) -> Floats:
        out, partner = np.empty(words.shape), self._partner(self.word_groups)
        for group in range(self.n_groups):
            members = self.doc_groups == group
            G = gram(docs[members], None if weights is None else weights[members], n_threads=n_threads)
            out[partner == group] = words[partner == group] @ G
        return out

    def take(self, rows: Any) -> DiagonalEntries:
        return DiagonalEntries(self.doc_groups[rows], self.word_groups, self.n_groups, self.fold)

    def _partner(self, groups: Array) -> Array:
        """Return for each group of documents (or words) the group of words (or documents) on its diagonal."""
        return np.asarray((self.fold - groups) % self.n_groups)


def diagonal_folds(n_docs: int, n_words: int, n_folds: int, seed: int) -> list[DiagonalEntries]:
    """Return `n_folds` sets of entries, with each entry in exactly one. Groups are random and nearly equal in size."""
    if min(n_docs, n_words) < n_folds:
        raise InputError(
            f"{n_docs} documents of {n_words} words cannot be divided into {n_folds} folds of entries: use at most "
            f"{min(n_docs, n_words)} folds."
        )
    rng = np.random.default_rng(seed)
    docs, words = (rng.permutation(size) % n_folds for size in (n_docs, n_words))
    return [DiagonalEntries(docs, words, n_folds, fold) for fold in range(n_folds)]


@dataclass(frozen=True, eq=False)
class WithoutEntries(EntryWeights):
    """Weights that are zero for hidden entries, where `hidden` is one, and one for all other entries."""

    hidden: EntryWeights

    @property
    def largest(self) -> tuple[Floats, Floats]:
        return self.hidden.largest

    def at(self, rows: Array, columns: Array) -> Floats:
        return 1 - self.hidden.at(rows, columns)

    def dense(self) -> Array:
        return np.asarray(1 - self.hidden.dense())

    def over_words(self, words: Array, *, n_threads: int = 1) -> Floats:
        every = weighted_sum(np.ones(len(words)), words, n_threads=n_threads)
        return np.maximum(every - self.hidden.over_words(words, n_threads=n_threads), 0)

    def over_docs(self, docs: Array, weights: Floats | None = None, *, n_threads: int = 1) -> Floats:
        every = weighted_sum(np.ones(len(docs)) if weights is None else weights, docs, n_threads=n_threads)
        return np.maximum(every - self.hidden.over_docs(docs, weights, n_threads=n_threads), 0)

    def fitted_over_words(self, docs: Array, words: Array, *, n_threads: int = 1) -> Floats:
        every = docs @ gram(words, n_threads=n_threads)
        return np.maximum(every - self.hidden.fitted_over_words(docs, words, n_threads=n_threads), 0)

    def fitted_over_docs(
        self, docs: Array, words: Array, weights: Floats | None = None, *, n_threads: int = 1
    ) -> Floats:
        every = words @ gram(docs, weights, n_threads=n_threads)
        return np.maximum(every - self.hidden.fitted_over_docs(docs, words, weights, n_threads=n_threads), 0)

    def take(self, rows: Any) -> WithoutEntries:
        return WithoutEntries(self.hidden.take(rows))


class HiddenEntries:
    """Missing entries, for data in which most entries are observed.

    `fit(X, entry_weight=HiddenEntries(mask))` gives the non-zeros of the mask weight zero and all other entries weight
    one. A sparse mask needs memory only for the missing entries, sparse weights only for the observed ones.

    Parameters
    ----------
    mask : array-like or sparse matrix of shape (n_documents, n_words)
        Non-zero where an entry is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import NMF
    >>> from polyseme.losses import HiddenEntries
    >>> X = np.outer([1, 2, 3, 4], [2, 1, 3.0])
    >>> hidden = np.zeros(X.shape, dtype=bool)
    >>> hidden[3, 2] = True  # this entry, 12, is not known
    >>> X[hidden] = 0
    >>> model = NMF(1, random_state=0, tol=1e-8).fit(X, entry_weight=HiddenEntries(hidden))
    >>> float(model.inverse_transform(model.transform(X, entry_weight=HiddenEntries(hidden)))[3, 2].round(1))
    12.0
    """

    def __init__(self, mask: Any) -> None:
        given = check_sparse(mask, "HiddenEntries") if sp.issparse(mask) else np.asarray(mask)
        if given.ndim != 2 or given.dtype.kind not in "biuf":
            raise InputError("HiddenEntries takes a table of numbers or booleans, documents x words.")
        self.pattern = sp.csr_array(given != 0)

    def weights(self, dtype: np.dtype[Any]) -> EntryWeights:
        """Return the weights of a fit with factors of this type.

        Parameters
        ----------
        dtype : numpy.dtype
            Type of the factors.

        Returns
        -------
        EntryWeights
            Weight zero for missing entries, and one for all others.
        """
        return WithoutEntries(StoredWeights(stored(self.pattern, dtype)))


def stored(matrix: Any, dtype: np.dtype[Any]) -> SparseCounts:
    """Return a CSR matrix as counts of this type."""
    matrix = sp.csr_array(matrix, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    index = np.int64 if np.int64 in (matrix.indptr.dtype, matrix.indices.dtype) else np.int32
    return SparseCounts(
        matrix.indptr.astype(index), matrix.indices.astype(index), matrix.data.astype(dtype), *matrix.shape
    )
