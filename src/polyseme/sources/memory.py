"""Counts that fit in memory, swept by threads of this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import joblib
import numpy as np
import scipy.sparse as sp

from polyseme.factors import columns_to_one
from polyseme.kernels import (
    Array,
    Counts,
    DenseCounts,
    Floats,
    SparseCounts,
    Sums,
    checked_sparse,
    inner,
    openmp_threads,
    padded,
)
from polyseme.model import Look, Model, background_sums, look

_DENSE_NUMBERS_AT_ONCE = 1 << 22


def usable_cores() -> int:
    """The cores that this process may use: by its affinity, its cgroup, and LOKY_MAX_CPU_COUNT."""
    affinity = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return _cores_of(affinity, os.environ.get("LOKY_MAX_CPU_COUNT"))


@cache
def _cores_of(affinity: frozenset[int] | None, limit: str | None) -> int:
    """joblib's count, remembered: it opens files, which would take a good part of a small fit."""
    return int(joblib.cpu_count())


def effective_threads(n_jobs: int | None) -> int:
    """How many threads to use.

    None: as many as there are cores for this process (its affinity and cgroup limits, as joblib counts them), but no
    more than OpenMP would use (OMP_NUM_THREADS, `threadpool_limits`, joblib's `inner_max_num_threads`). A negative
    number counts back from there, as in scikit-learn. A positive number is taken as it is, up to four times the cores:
    beyond that threads cost memory and gain nothing, and results do not depend on their number.
    """
    if n_jobs == 1:
        return 1
    cores = usable_cores()
    if n_jobs is not None and n_jobs > 0:
        return min(n_jobs, 4 * cores)
    usable = min(cores, openmp_threads() or cores)
    return usable if n_jobs is None else max(1, usable + 1 + n_jobs)


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


Lengthen = Callable[[Array, Array], Array]
"""of a new and an old factor: see solvers/accelerate.py"""


class Streamed(NamedTuple):
    """What goes from one shard to the next where they are read in turn."""

    joint: Array
    """P(w, z), words x width; a step may take its memory"""
    seen: float
    """documents so far"""
    log_sum: float = 0.0
    """sum x log P(w|d) of what was read, with the topics as they were"""
    tokens: float = 0.0


Step = Callable[[int, "MemorySource", Streamed], Streamed]
"""of a shard's number, the shard, and what the shards before it left"""


def uniform_rows(model: Model, n_docs: int, dtype: np.dtype[Any]) -> Array:
    """theta (documents x width) that gives every topic the same weight."""
    K = model.n_topics
    return padded(np.full((n_docs, K), 1.0 / K, dtype=dtype), dtype, model.n_columns)


class MemorySource:
    """Counts (documents x words) with a weight for each document (None: all one)."""

    in_memory: ClassVar[bool] = True
    """whether all counts, and theta, are arrays of this process; else theta is what `look` makes of it"""

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

    def sweep(
        self,
        A: Array,
        B: Array,
        *,
        rows: bool = True,
        words: bool = True,
        logs: bool = True,
        memory: Floats | None = None,
    ) -> Sums:
        """The kernel over all documents: see `kernels`."""
        return self.counts.sweep(
            A, B, n_threads=self.n_threads, weights=self.weights, rows=rows, words=words, logs=logs, memory=memory
        )

    def in_turn(self, step: Step, state: Streamed, rng: np.random.Generator) -> Streamed:
        """What the step makes of all documents at once."""
        return step(0, self, state)

    def uniform(self, model: Model) -> Array:
        """theta to start from."""
        return uniform_rows(model, self.n_docs, self.dtype)

    def rows(self, function: Callable[[MemorySource], Array]) -> Array:
        """theta as a function makes it of the documents."""
        return function(self)

    def look(self, model: Model, theta: Array, phi: Array) -> Look:
        """An iteration of EM at (theta, phi)."""
        return look(model, self, theta, phi)

    def ahead(
        self, model: Model, lengthen: Lengthen, step: tuple[Array, Array], last: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """The point (theta, phi) that lies further along the way from the last step to this one."""
        theta = model.normalised_docs(lengthen(step[0], last[0]), self)
        return theta, columns_to_one(lengthen(step[1], last[1]))

    def background_sums(self, model: Model, theta: Array, phi: Array) -> Floats:
        """See model.py."""
        return background_sums(model, self, theta, phi)

    def topics(self, phi: Array) -> Array:
        """phi as an array."""
        return phi

    def largest(self, theta: Array) -> Array:
        """The largest number of each column of theta."""
        return np.asarray(theta.max(axis=0))

    def total_log(self, logs: Floats) -> float:
        """sum_d weight_d logs_d; a document of weight zero counts for nothing, be its log infinite."""
        if self.weights is None:
            return float(logs.sum())
        counted = self.weights > 0
        return inner(logs[counted], self.weights[counted])


def training_sources(
    X: Any, dtype: np.dtype[Any], weights: Floats | None, n_threads: int
) -> tuple[MemorySource, MemorySource, Array | None]:
    """All documents; those that a fit counts, since one without weight is as good as absent; and their rows.

    Where every document counts, both sources are the same and the rows are None.
    """
    whole = MemorySource(counts_of(X, dtype), weights, n_threads)
    if weights is None or (weights > 0).all():
        return whole, whole, None
    kept = np.flatnonzero(weights)
    return whole, MemorySource(counts_of(X[kept], dtype), weights[kept], n_threads), kept
