"""Counts that fit in memory, swept by threads of this process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.kernels import (
    Array,
    Counts,
    DenseCounts,
    Floats,
    SparseCounts,
    Sums,
    checked_sparse,
    inner,
)

_DENSE_NUMBERS_AT_ONCE = 1 << 22


def sparse_counts(X: Any, dtype: np.dtype[Any]) -> SparseCounts:
    """CSR counts of `dtype`, sorted, without duplicates or stored zeros; arrays are shared where they can be."""
    matrix = sp.csr_array(checked_sparse(X))
    if matrix.indices.size > matrix.nnz:
        matrix.prune()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and matrix.data.min() <= 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    large = np.int64 in (matrix.indptr.dtype, matrix.indices.dtype) or max(matrix.shape) > np.iinfo(np.int32).max
    index = np.int64 if large else np.int32
    return SparseCounts(
        np.ascontiguousarray(matrix.indptr, dtype=index),
        np.ascontiguousarray(matrix.indices, dtype=index),
        np.ascontiguousarray(matrix.data, dtype=dtype),
        matrix.shape[0],
        matrix.shape[1],
    )


def counts_of(X: Any, dtype: np.dtype[Any]) -> Counts:
    """The counts as the kernels take them: dense stays dense, anything sparse becomes CSR."""
    if sp.issparse(X):
        return sparse_counts(X, dtype)
    return DenseCounts(np.ascontiguousarray(X, dtype=dtype))


def row_batches(X: Any, dtype: np.dtype[Any]) -> Iterator[SparseCounts]:
    """X as CSR counts: all rows at once where it is sparse, a few at a time where it is dense."""
    step = X.shape[0] if sp.issparse(X) else max(1, _DENSE_NUMBERS_AT_ONCE // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield sparse_counts(X[start : start + step], dtype)


class Shard:
    """Counts (documents x words) in memory, with a weight for each document (None: all one)."""

    def __init__(self, counts: Counts, weights: Floats | None = None, n_threads: int = 1) -> None:
        self.counts = counts
        self.weights = weights
        self.n_threads = n_threads

    @property
    def n_docs(self) -> int:
        return self.counts.n_docs

    @property
    def n_words(self) -> int:
        return self.counts.n_words

    @property
    def dtype(self) -> np.dtype[Any]:
        """of the factors"""
        return self.counts.dtype

    @cached_property
    def totals(self) -> Floats:
        """n_d, without the weights."""
        return self.counts.totals

    @cached_property
    def weighted_totals(self) -> Floats:
        return self.totals if self.weights is None else self.totals * self.weights

    @cached_property
    def tokens(self) -> float:
        """N = sum_d weight_d n_d"""
        return float(self.weighted_totals.sum())

    @cached_property
    def word_totals(self) -> Floats:
        """n_w = sum_d weight_d x_dw"""
        return self.counts.word_totals(self.weights)

    @property
    def unigram(self) -> Floats:
        """P(w) of the whole, weighted."""
        return self.word_totals / self.word_totals.sum()

    @cached_property
    def by_doc(self) -> SparseCounts:
        """The counts as CSR, for solvers that go row by row."""
        return self.counts.sparse()

    @property
    def by_word(self) -> SparseCounts:
        """The transpose, each count times its document's weight."""
        return self.by_doc.transposed(self.weights)

    def release(self) -> None:
        """Lets go of the transpose and other memory that only a fit needs."""
        if "by_doc" in self.__dict__:  # made only if a solver asked for it
            self.__dict__.pop("by_doc").release()
        self.counts.release()

    def sweep(self, A: Array, B: Array, *, memory: Floats | None = None) -> Sums:
        """Return the kernel's three sums over all documents: see `Sums`. Word sums take the array `memory`."""
        return self.counts.sweep(A, B, n_threads=self.n_threads, weights=self.weights, memory=memory)

    def row_sums(self, A: Array, B: Array) -> Array:
        return self.counts.row_sums(A, B, n_threads=self.n_threads)

    def word_sums(self, A: Array, B: Array) -> Floats:
        return self.counts.word_sums(A, B, n_threads=self.n_threads, weights=self.weights)

    def logs(self, A: Array, B: Array) -> Floats:
        return self.counts.logs(A, B, n_threads=self.n_threads)

    def rows_and_logs(self, A: Array, B: Array) -> tuple[Array, Floats]:
        return self.counts.rows_and_logs(A, B, n_threads=self.n_threads)

    def words_and_logs(self, A: Array, B: Array) -> tuple[Floats, Floats]:
        return self.counts.words_and_logs(A, B, n_threads=self.n_threads, weights=self.weights)

    def total_log(self, logs: Floats) -> float:
        """Return sum_d weight_d logs_d. Documents of weight zero are ignored, even if their log-likelihood is -inf."""
        if self.weights is None:
            return float(logs.sum())
        counted = self.weights > 0
        return inner(logs[counted], self.weights[counted])
