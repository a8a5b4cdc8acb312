"""Python interface of the compiled kernels, and the same sums for dense counts by BLAS.

All models use one operation, a sweep over the non-zero counts x. With operands A (documents x K) and B (words x K), let
q = A_d . B_w and r = x / q for every non-zero. The sums are

    row_sums_d  = sum_w r B_w                (documents x K)
    word_sums_w = sum_d weight_d r A_d       (words x K, float64)
    logs_d      = sum_w x log q              (documents, float64)

Multiplied by A and B, the sums are the expected counts of EM. Operands are padded with columns of zeros to a width
that the kernels support (`padded_width`); the sums have the same width.

`SparseCounts` calls the compiled kernels, `DenseCounts` computes the same sums with BLAS. Sparse arrays are checked
before compiled code, scipy's or our own, uses their indices to read memory. BLAS has one thread while Python threads
compute blocks of rows, because its sums depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import prod
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from polyseme import _kernels
from polyseme.errors import InputError

try:
    _kernels.chosen_isa()
except ValueError as error:  # POLYSEME_ISA names an instruction set that the processor lacks
    raise InputError(f"{error}.") from None

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

NUMBERS_AT_ONCE = 1 << 20
"""Number of counts that are processed at a time where an intermediate array is needed."""
FOLD_IN_TOLERANCE = 1e-4
"""A document stops when other weights can gain at most this many nats per token. The true gap is far smaller."""
FOLD_IN_STEPS = 1000
"""Maximum number of steps of a document."""
_WIDTH_STEP = 16
_CACHE_LINE = 64
_TILE_BYTES = 128
"""Bytes of a tile of columns (kTileBytes in row_table.hpp)."""
_PASS_TOLERANCE = 1e-3
"""Coordinate ascent on a row stops when a pass moves less than this share of its total."""


class Sums(NamedTuple):
    """The three sums of a sweep, with q = A_d . B_w and r = x / q for every count x."""

    row_sums: Array
    """Sum of r B_w over the words of each document (documents x width)."""
    word_sums: Floats
    """Sum of weight_d r A_d over the documents of each word (words x width)."""
    logs: Floats
    """Sum of x log q over the words of each document."""


class Counts(Protocol):
    """Counts (documents x words) in memory that the kernel can sweep."""

    @property
    def n_docs(self) -> int: ...
    @property
    def n_words(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def totals(self) -> Floats: ...
    @property
    def n_positive(self) -> int: ...

    is_sparse: ClassVar[bool]
    """Whether zeros are not stored."""

    def matrix(self) -> Any: ...

    def dense_rows(self, rows: slice) -> Array:
        """Return some rows as a dense array."""

    def multiply(self, B: Array, *, n_threads: int, memory: Floats | None = None) -> Floats:
        """Return sum_w x B_w of every document (documents x width), in `memory` if given."""

    def multiply_transpose(
        self, A: Array, *, n_threads: int, weights: Floats | None = None, memory: Floats | None = None
    ) -> Floats:
        """Return sum_d weight_d x A_d of every word (words x width), in `memory` if given."""

    @property
    def squares(self) -> Floats:
        """Return sum_w x^2 of every document."""

    def word_totals(self, weights: Floats | None) -> Floats: ...

    def sparse(self) -> SparseCounts: ...

    def release(self) -> None: ...

    def sweep(
        self,
        A: Array,
        B: Array,
        *,
        n_threads: int,
        weights: Floats | None = None,
        memory: Floats | None = None,
    ) -> Sums:
        """Return all three sums. `weights` multiply documents in the word sums, which use `memory` if given."""

    def row_sums(self, A: Array, B: Array, *, n_threads: int) -> Array: ...
    def logs(self, A: Array, B: Array, *, n_threads: int) -> Floats: ...
    def rows_and_logs(self, A: Array, B: Array, *, n_threads: int) -> tuple[Array, Floats]: ...
    def word_sums(
        self, A: Array, B: Array, *, n_threads: int, weights: Floats | None = None, memory: Floats | None = None
    ) -> Floats: ...
    def words_and_logs(
        self, A: Array, B: Array, *, n_threads: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True)
class SparseCounts:
    """Counts as sorted CSR arrays without explicit zeros. `values` has the dtype of the operands."""

    indptr: Array
    indices: Array
    values: Array
    n_docs: int
    n_words: int
    _transposes: list[tuple[Floats | None, SparseCounts]] = field(default_factory=list, repr=False, compare=False)
    is_sparse: ClassVar[bool] = True

    @property
    def n_positive(self) -> int:
        return int(self.values.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def totals(self) -> Floats:
        """n_d, the number of tokens of each document, in float64."""
        return self.sums_by_row(self.values)

    def sums_by_row(self, values: Array) -> Floats:
        """Return the sum over each document of `values`, one number per non-zero, in float64."""
        return self.reduce_rows(np.add, values, np.float64)

    def reduce_rows(self, function: np.ufunc, values: Array, dtype: npt.DTypeLike) -> Array:
        """Return a reduction over each document of `values`, one number per non-zero; zero for an empty document."""
        reduced = np.zeros(self.n_docs, dtype)
        for rows, block in self.blocks(NUMBERS_AT_ONCE):  # reduceat converts all its values to `dtype` first
            filled = np.flatnonzero(np.diff(block.indptr))
            if filled.size:
                part = values[self.indptr[rows.start] : self.indptr[rows.stop]]
                reduced[rows][filled] = function.reduceat(part, block.indptr[filled], dtype=dtype)
        return reduced

    def blocks(self, n_nonzeros: int) -> Iterator[tuple[slice, SparseCounts]]:
        """Yield blocks of documents with about `n_nonzeros` non-zeros each: the rows, and their counts."""
        rows_at_once = max(1, self.n_docs * n_nonzeros // max(1, self.values.size))
        for first in range(0, self.n_docs, rows_at_once):
            starts = self.indptr[first : first + rows_at_once + 1]
            part = slice(starts[0], starts[-1])
            indices, values = self.indices[part], self.values[part]
            block = SparseCounts(starts - starts[0], indices, values, starts.size - 1, self.n_words)
            yield slice(first, first + block.n_docs), block

    def release(self) -> None:
        """Free the cached transpose."""
        self._transposes.clear()

    def sparse(self) -> SparseCounts:
        """Return the counts as CSR, that is, this object."""
        return self

    def presence(self) -> SparseCounts:
        """Return counts with every value set to 1: which document contains which word.

        The result and its transpose share the ones.
        """
        import scipy.sparse as sp

        ones = np.ones_like(self.values)
        known = self._cached_transpose(None)
        if known is None:
            small = sp.csr_array((np.ones(ones.size, np.int8), self.indices, self.indptr), (self.n_docs, self.n_words))
            known = _transpose_of(small, self.indptr.dtype)
        by_word = SparseCounts(known.indptr, known.indices, ones, self.n_words, self.n_docs)
        return SparseCounts(self.indptr, self.indices, ones, self.n_docs, self.n_words, [(None, by_word)])

    def matrix(self) -> Any:
        """Return the counts as a scipy array."""
        import scipy.sparse as sp

        return sp.csr_array((self.values, self.indices, self.indptr), (self.n_docs, self.n_words))

    def word_totals(self, weights: Floats | None) -> Floats:
        """Return sum_d weight_d x_dw in float64."""
        sums = np.zeros(self.n_words)
        for rows, block in self.blocks(NUMBERS_AT_ONCE):
            values = block.values.astype(np.float64)
            if weights is not None:
                values *= np.repeat(weights[rows], np.diff(block.indptr))
            sums += np.bincount(block.indices, values, minlength=self.n_words)
        return sums

    def sweep(
        self,
        A: Array,
        B: Array,
        *,
        n_threads: int,
        weights: Floats | None = None,
        memory: Floats | None = None,
        isa: str | None = None,
    ) -> Sums:
        row_sums, logs = self.rows_and_logs(A, B, n_threads=n_threads, isa=isa)
        word_sums = self.word_sums(A, B, n_threads=n_threads, weights=weights, memory=memory, isa=isa)
        return Sums(row_sums, word_sums, logs)

    def row_sums(self, A: Array, B: Array, *, n_threads: int) -> Array:
        row_sums = aligned_empty(A.shape, A.dtype)
        self._sweep_rows(A, B, row_sums, None, n_threads, None)
        return row_sums

    def logs(self, A: Array, B: Array, *, n_threads: int) -> Floats:
        logs = np.empty(self.n_docs)
        self._sweep_rows(A, B, None, logs, n_threads, None)
        return logs

    def rows_and_logs(self, A: Array, B: Array, *, n_threads: int, isa: str | None = None) -> tuple[Array, Floats]:
        row_sums, logs = aligned_empty(A.shape, A.dtype), np.empty(self.n_docs)
        self._sweep_rows(A, B, row_sums, logs, n_threads, isa)
        return row_sums, logs

    def word_sums(
        self,
        A: Array,
        B: Array,
        *,
        n_threads: int,
        weights: Floats | None = None,
        memory: Floats | None = None,
        isa: str | None = None,
    ) -> Floats:
        check_operands(self, A, B, weights)
        word_sums, by_word = _word_sums_buffer(memory, B), self.transposed(weights)
        _kernels.sweep_words(
            by_word.indptr, by_word.indices, by_word.values, A, B, word_sums, n_threads=n_threads, isa=isa
        )
        return word_sums

    def words_and_logs(
        self, A: Array, B: Array, *, n_threads: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        return self.word_sums(A, B, n_threads=n_threads, weights=weights), self.logs(A, B, n_threads=n_threads)

    def _sweep_rows(
        self, A: Array, B: Array, row_sums: Array | None, logs: Floats | None, n_threads: int, isa: str | None
    ) -> None:
        """Fill the arrays that are given, in one pass over the counts."""
        check_operands(self, A, B, None)
        _kernels.sweep_rows(self.indptr, self.indices, self.values, A, B, row_sums, logs, n_threads=n_threads, isa=isa)

    def products(self, A: Array, B: Array, *, n_threads: int) -> Array:
        """Return q = A_d . B_w of every non-zero, in the order of `values`."""
        check_operands(self, A, B, None)
        q = np.empty(self.values.size, dtype=self.dtype)
        _kernels.products(self.indptr, self.indices, self.values, A, B, q, n_threads=n_threads)
        return q

    def dense_rows(self, rows: slice) -> Array:
        part = slice(self.indptr[rows.start], self.indptr[rows.stop])
        dense = np.zeros((rows.stop - rows.start, self.n_words), dtype=self.dtype)
        lengths = np.diff(self.indptr[rows.start : rows.stop + 1])
        dense[np.repeat(np.arange(len(dense)), lengths), self.indices[part]] = self.values[part]
        return dense

    def multiply(
        self, B: Array, *, n_threads: int, values: Array | None = None, memory: Floats | None = None
    ) -> Floats:
        """Return sum_w x B_w of every document, with `values` in place of x if given."""
        check_operands(self, None, B, None)
        out = aligned_empty((self.n_docs, B.shape[1]), np.float64) if memory is None else memory
        x = self.values if values is None else np.ascontiguousarray(values, dtype=self.dtype)
        _kernels.multiply(self.indptr, self.indices, x, B, out, n_threads=n_threads)
        return out

    def multiply_transpose(
        self, A: Array, *, n_threads: int, weights: Floats | None = None, memory: Floats | None = None
    ) -> Floats:
        return self.transposed(weights).multiply(A, n_threads=n_threads, memory=memory)

    def least_squares(
        self, factor: Array, B: Array, gram: Floats, n_topics: int, *, passes: int, enough: float, n_threads: int,
        crosses: Floats | None = None, isa: str | None = None,
    ) -> Array:  # fmt: skip
        """Return `least_squares_rows` of the products p_d = sum_w x B_w, which are not stored.

        p'f of each row of `factor` is written to `crosses`, if it is given.
        """
        check_operands(self, factor, B, None)
        factor, new = np.ascontiguousarray(factor), aligned_empty(factor.shape, factor.dtype)
        _kernels.descend_counts(
            self.indptr, self.indices, self.values, B, np.ascontiguousarray(gram, dtype=self.dtype), factor, new,
            crosses, topics=n_topics, passes=passes, enough=enough, n_threads=n_threads, isa=isa,
        )  # fmt: skip
        return new

    @property
    def squares(self) -> Floats:
        return self.sums_by_row(self.values.astype(np.float64) ** 2)

    def transposed(self, weights: Floats | None) -> SparseCounts:
        """Return the transpose (words x documents), with counts times document weights. Cached until `release`."""
        known = self._cached_transpose(weights)
        if known is not None:
            return known
        plain = self._cached_transpose(None)
        transpose = _transpose_of(self.matrix(), self.indptr.dtype) if plain is None else plain
        if weights is not None:
            transpose = transpose.with_values(transpose.values * weights[transpose.indices])
        self._transposes[:] = [(weights, transpose)]
        return transpose

    def _cached_transpose(self, weights: Floats | None) -> SparseCounts | None:
        return next((transpose for known, transpose in self._transposes if known is weights), None)

    def take(self, rows: Array) -> SparseCounts:
        """Return the counts of these rows."""
        part = self.matrix()[rows]
        same = self.indptr.dtype
        return SparseCounts(
            part.indptr.astype(same, copy=False), part.indices.astype(same, copy=False), part.data, len(rows),
            self.n_words,
        )  # fmt: skip

    def with_values(self, values: Array) -> SparseCounts:
        """Return the counts with these values instead, one per non-zero; zeros are removed."""
        keep = values > 0
        kept_before = np.concatenate([[0], np.cumsum(keep)]).astype(self.indptr.dtype)
        return SparseCounts(
            kept_before[self.indptr], self.indices[keep], values[keep].astype(self.dtype), self.n_docs, self.n_words
        )

    def improve_rows(self, factor: Array, B: Array, u: Floats, *, passes: int, n_threads: int) -> tuple[Floats, Floats]:
        """Run coordinate ascent on each row of `factor` (rows x width, in place) with B fixed (coordinate.hpp).

        It maximizes sum_w x log q - sum_k u_k factor_k of every row, with q = factor . B_w. Returns the duality gap of
        each row before the update, and sum_w x log q after it.
        """
        check_operands(self, factor, B, None)
        gains, logs = np.empty(self.n_docs), np.empty(self.n_docs)
        _kernels.coordinate(
            self.indptr, self.indices, self.values, B, u, factor, gains, logs,
            passes=passes, enough=_PASS_TOLERANCE, n_threads=n_threads,
        )  # fmt: skip
        return gains, logs

    def fold_in(
        self,
        B: Array,
        n_topics: int,
        *,
        empty: Array,
        tol: float,
        max_iter: int,
        n_threads: int,
        background: float = 0.0,
        temperature: float = 1.0,
        u: Floats | None = None,
    ) -> tuple[Array, npt.NDArray[np.int32]]:
        """Return the topic weights of every row (documents x K) with B fixed, and its number of steps.

        The number of steps is negative if a row did not converge within `max_iter`. Column K of B belongs to a
        background with the fixed weight `background`. Empty rows get the weights `empty`. `u` is the sum of each topic
        over all words (K numbers), for a B that contains only some of them.
        """
        check_operands(self, None, B, None)
        theta = np.empty((self.n_docs, n_topics), dtype=B.dtype)
        steps = np.empty(self.n_docs, dtype=np.int32)
        if u is None:
            u = B[:, :n_topics].sum(axis=0, dtype=np.float64)
        _kernels.fold_in(
            self.indptr, self.indices, self.values, B, u,
            np.ascontiguousarray(empty, dtype=B.dtype), theta, steps,
            background=background, temperature=temperature, tol=tol, max_iter=max_iter,
            by_coordinates=background == 0 and temperature == 1, n_threads=n_threads,
        )  # fmt: skip
        return theta, steps

    def em_steps(
        self,
        B: Array,
        n_topics: int,
        n_steps: int,
        *,
        n_threads: int,
        background: float = 0.0,
        temperature: float = 1.0,
    ) -> Array:
        """Return the topic weights of every row after `n_steps` EM steps from uniform weights. B is as in `fold_in`."""
        check_operands(self, None, B, None)
        theta = np.empty((self.n_docs, n_topics), dtype=B.dtype)
        uniform = np.full(n_topics, 1 / n_topics, dtype=B.dtype)
        _kernels.fold_in(
            self.indptr, self.indices, self.values, B, np.ones(n_topics), uniform, theta,
            np.empty(self.n_docs, dtype=np.int32), background=background, temperature=temperature, tol=-np.inf,
            max_iter=n_steps, by_coordinates=False, n_threads=n_threads,
        )  # fmt: skip
        return theta


def _transpose_of(matrix: Any, index_dtype: np.dtype[Any]) -> SparseCounts:
    """Return the transpose of a CSR array, with indices of the given type."""
    by_word = matrix.tocsc()
    return SparseCounts(
        by_word.indptr.astype(index_dtype, copy=False), by_word.indices.astype(index_dtype, copy=False), by_word.data,
        matrix.shape[1], matrix.shape[0],
    )  # fmt: skip


@dataclass(frozen=True)
class DenseCounts:
    """Counts as a dense array. Sums are computed by BLAS in blocks of rows whose size depends on the shape only."""

    values: Array
    is_sparse: ClassVar[bool] = False

    @property
    def n_positive(self) -> int:
        return int(np.count_nonzero(self.values))

    def dense_rows(self, rows: slice) -> Array:
        return self.values[rows]

    def multiply(self, B: Array, *, n_threads: int, memory: Floats | None = None) -> Floats:
        out = aligned_empty((self.n_docs, B.shape[1]), np.float64) if memory is None else memory

        def one_block(block: slice) -> None:
            out[block] = self.values[block] @ B

        for _ in map_in_threads(one_block, row_blocks(self.n_docs, self.n_words), n_threads):
            pass
        return out

    def multiply_transpose(
        self, A: Array, *, n_threads: int, weights: Floats | None = None, memory: Floats | None = None
    ) -> Floats:
        def one_block(block: slice) -> Array:
            return np.asarray(self.values[block].T @ with_weights(A[block], weights, block))

        blocks = row_blocks(self.n_docs, self.n_words)
        return sum_in_order(map_in_threads(one_block, blocks, n_threads), (self.n_words, A.shape[1]), memory)

    @property
    def squares(self) -> Floats:
        return np.einsum("dw,dw->d", self.values, self.values, dtype=np.float64)

    @property
    def n_docs(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_words(self) -> int:
        return int(self.values.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def totals(self) -> Floats:
        return np.asarray(self.values.sum(axis=1, dtype=np.float64))

    def release(self) -> None:
        """Do nothing: dense counts cache nothing."""

    def sparse(self) -> SparseCounts:
        import scipy.sparse as sp

        matrix = sp.csr_array(self.values)
        return SparseCounts(
            matrix.indptr.astype(matrix.indices.dtype), matrix.indices, matrix.data, self.n_docs, self.n_words
        )

    def matrix(self) -> Any:
        return self.values

    def word_totals(self, weights: Floats | None) -> Floats:
        if weights is None:
            return np.asarray(self.values.sum(axis=0, dtype=np.float64))
        return weighted_sum(weights, self.values)

    def sweep(
        self,
        A: Array,
        B: Array,
        *,
        n_threads: int,
        weights: Floats | None = None,
        memory: Floats | None = None,
    ) -> Sums:
        sums = Sums(np.empty_like(A), _word_sums_buffer(memory, B), np.empty(self.n_docs))
        self._sweep(A, B, *sums, n_threads=n_threads, weights=weights)
        return sums

    def row_sums(self, A: Array, B: Array, *, n_threads: int) -> Array:
        row_sums = np.empty_like(A)
        self._sweep(A, B, row_sums, None, None, n_threads=n_threads)
        return row_sums

    def logs(self, A: Array, B: Array, *, n_threads: int) -> Floats:
        logs = np.empty(self.n_docs)
        self._sweep(A, B, None, None, logs, n_threads=n_threads)
        return logs

    def rows_and_logs(self, A: Array, B: Array, *, n_threads: int) -> tuple[Array, Floats]:
        row_sums, logs = np.empty_like(A), np.empty(self.n_docs)
        self._sweep(A, B, row_sums, None, logs, n_threads=n_threads)
        return row_sums, logs

    def word_sums(
        self, A: Array, B: Array, *, n_threads: int, weights: Floats | None = None, memory: Floats | None = None
    ) -> Floats:
        word_sums = _word_sums_buffer(memory, B)
        self._sweep(A, B, None, word_sums, None, n_threads=n_threads, weights=weights)
        return word_sums

    def words_and_logs(
        self, A: Array, B: Array, *, n_threads: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        word_sums, logs = _word_sums_buffer(None, B), np.empty(self.n_docs)
        self._sweep(A, B, None, word_sums, logs, n_threads=n_threads, weights=weights)
        return word_sums, logs

    def _sweep(
        self,
        A: Array,
        B: Array,
        row_sums: Array | None,
        word_sums: Floats | None,
        log_sums: Floats | None,
        *,
        n_threads: int,
        weights: Floats | None = None,
    ) -> None:
        """Fill the arrays that are given, in one pass over blocks of documents."""
        check_operands(self, A, B, weights)
        if word_sums is not None:
            word_sums.fill(0)

        def one_block(block: slice) -> Array | None:
            x, a = self.values[block], A[block]
            q = a @ B.T
            present = x > 0
            if log_sums is not None:
                log_q = np.log(q, out=np.zeros(q.shape), where=present & (q > 0))
                log_q[present & (q <= 0)] = -np.inf
                log_sums[block] = np.einsum("dw,dw->d", x, log_q, dtype=np.float64)
            if row_sums is None and word_sums is None:
                return None
            r = np.divide(x, q, out=np.zeros_like(q), where=present & (q > _max_zero_product(q.dtype)))
            if row_sums is not None:
                row_sums[block] = r @ B
            if word_sums is None:
                return None
            return np.asarray(r.T @ with_weights(a, weights, block))

        for block_sums in map_in_threads(one_block, row_blocks(self.n_docs, self.n_words), n_threads):
            if word_sums is not None and block_sums is not None:
                word_sums += block_sums


def row_blocks(n_rows: int, n_columns: int, numbers: int = NUMBERS_AT_ONCE, least: int = 1) -> list[slice]:
    """Return blocks of rows with about `numbers` entries, but at least `least` rows. They depend on the shape only."""
    step = max(least, numbers // max(1, n_columns))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def with_weights(rows: Array, weights: Floats | None, block: slice) -> Array:
    """Return rows of a factor times the weights of their documents."""
    return rows if weights is None else rows * weights[block, np.newaxis].astype(rows.dtype)


def sum_in_order(parts: Iterable[Array], shape: tuple[int, ...], memory: Floats | None = None) -> Floats:
    """Return the sum of arrays in float64, in their order, in `memory` if given."""
    total = aligned_empty(shape, np.float64) if memory is None else memory
    total.fill(0)
    for part in parts:
        total += part
    return total


def gram(factor: Array, weights: Floats | None = None, *, n_threads: int = 1) -> Floats:
    """Return sum_i weights_i f_i f_i' over the rows of a padded factor, in float64 (width x width)."""
    total = np.empty((factor.shape[1], factor.shape[1]))
    by_row = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    _kernels.gram(np.ascontiguousarray(factor), by_row, total, n_threads=n_threads)
    return total


def entropic_rows(counts: Floats, factor: Floats, beta: float) -> Floats:
    """Return the distributions f of each row that maximize sum counts log f + beta sum f log f (entropic.hpp).

    Each row of counts has a positive sum. For beta > 0 they are the best local maxima that were found, no worse than
    `factor`.
    """
    counts, factor = np.ascontiguousarray(counts), np.ascontiguousarray(factor, dtype=np.float64)
    out = np.empty_like(counts)
    _kernels.entropic_rows(counts, factor, out, beta=beta, n_threads=1)
    return out


def least_squares_rows(
    factor: Array, products: Floats, gram: Floats, n_topics: int, *, passes: int, enough: float, n_threads: int
) -> Array:
    """Return the rows f >= 0 that minimize f'Gf / 2 - p'f, by coordinate descent from `factor` (squares.hpp).

    A row stops after `passes` updates of every entry, or when an update of all gains at most the share `enough`.
    """
    new = aligned_copy(factor)
    _kernels.descend(
        products, np.ascontiguousarray(gram, dtype=factor.dtype), new,
        topics=n_topics, passes=passes, enough=enough, n_threads=n_threads,
    )  # fmt: skip
    return new


class ReciprocalSums:
    """Sums of the Itakura-Saito loss over dense rows, compiled (reciprocal.hpp).

    x : rows of positive data, of which two copies are kept. floors : smallest q of each row.
    """

    def __init__(self, x: Array, floors: Array) -> None:
        self._by_row, self._by_column = _with_whole_tiles(x), _with_whole_tiles(x.T)
        self._floors = np.ascontiguousarray(floors, dtype=x.dtype)

    def docs(self, A: Array, B: Array, n_topics: int, *, n_threads: int) -> tuple[Floats, Floats, Floats]:
        """Return the loss of each row, and sums over the columns of x / q^2 B and of 1 / q B (rows x width).

        A (rows x width) and B (columns x width) are padded operands with `n_topics` columns in use, and q = A B'.
        """
        losses, numerators, denominators = np.empty(len(A)), np.empty(A.shape), np.empty(A.shape)
        _kernels.reciprocal_sums(
            self._by_column, B, B, np.ascontiguousarray(A), None, self._floors, numerators, denominators, losses,
            topics=n_topics, n_threads=n_threads,
        )  # fmt: skip
        return losses, numerators, denominators

    def words(self, A: Array, weighted: Array, B: Array, n_topics: int, *, n_threads: int) -> tuple[Floats, Floats]:
        """Return sums over the rows of x / q^2 and of 1 / q times `weighted`, A times weights (columns x width)."""
        numerators, denominators = np.empty(B.shape), np.empty(B.shape)
        _kernels.reciprocal_sums(
            self._by_row, np.ascontiguousarray(A), np.ascontiguousarray(weighted), B, self._floors, None, numerators,
            denominators, None, topics=n_topics, n_threads=n_threads,
        )  # fmt: skip
        return numerators, denominators


def _with_whole_tiles(rows: Array) -> Array:
    """Return a copy of rows with columns of zeros up to a multiple of the kernel's tiles."""
    tile = _TILE_BYTES // rows.dtype.itemsize
    wide = aligned_empty((len(rows), -(-rows.shape[1] // tile) * tile), rows.dtype)
    wide[:, : rows.shape[1]], wide[:, rows.shape[1] :] = rows, 0
    return wide


def times_ratio(factor: Array, numerators: Array, denominators: Array, root: bool, *, n_threads: int) -> Array:
    """Return factor * numerators / denominators, or, with `root`, times the root of the ratio; all are rows x width.

    An entry becomes zero if its denominator is zero, or if products with it would be denormal.
    """
    out = aligned_empty(factor.shape, factor.dtype)
    for rows in row_blocks(*factor.shape):
        sums = (np.ascontiguousarray(terms[rows], dtype=np.float64) for terms in (numerators, denominators))
        _kernels.multiplied(np.ascontiguousarray(factor[rows]), *sums, root, out[rows], n_threads=n_threads)
    return out


def padded_width(n_columns: int) -> int:
    """Return the number of columns with which an operand of `n_columns` columns is stored."""
    return -(-n_columns // _WIDTH_STEP) * _WIDTH_STEP


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an uninitialized array that starts at a cache line, so that a padded row touches few lines."""
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _CACHE_LINE, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % _CACHE_LINE  # many times as fast as memory.ctypes.data
    return memory[start : start + size].view(dtype).reshape(shape)


def aligned_copy(array: Array) -> Array:
    """Return a copy of an array that starts at a cache line."""
    copy = aligned_empty(array.shape, array.dtype)
    copy[:] = array
    return copy


def padded(matrix: Array, dtype: npt.DTypeLike, n_columns: int = 0) -> Array:
    """Return a copy of `matrix` (n x K), padded with zeros to the width for max(n_columns, K) columns."""
    wide = aligned_empty((matrix.shape[0], padded_width(max(n_columns, matrix.shape[1]))), dtype)
    wide[:, matrix.shape[1] :] = 0
    wide[:, : matrix.shape[1]] = matrix
    return wide


def without_negligible(factor: Array, dtype: npt.DTypeLike) -> Array:
    """Return the factor as `dtype`, with zeros for probabilities whose products would be denormal (as in mstep.hpp)."""
    least = 1e-30 if np.dtype(dtype) == np.float32 else 1e-200
    return np.where(factor > least, factor, 0).astype(dtype)


def inner(a: Array, b: Array | float) -> float:
    """Return sum a b in float64, without BLAS, because its sums depend on the number of threads."""
    return float(np.multiply(a, b, dtype=np.float64).sum())


def weighted_sum(weights: Floats, rows: Array, *, n_threads: int = 1) -> Floats:
    """Return sum_i weights_i rows_i (one number per column) in float64, without BLAS."""
    total = np.empty(rows.shape[1])
    _kernels.weighted_sum(
        np.ascontiguousarray(weights, dtype=np.float64), np.ascontiguousarray(rows), total, n_threads=n_threads
    )
    return total


def extrapolated(new: Array, old: Array, size: float, keep: float, *, n_threads: int = 1) -> Array:
    """Return max(new + size (new - old), keep new) of two arrays of any shape."""
    out = aligned_empty(new.shape, new.dtype)
    flat = (np.ascontiguousarray(array).reshape(-1) for array in (new, old))
    _kernels.extrapolate(*flat, size, keep, out.reshape(-1), n_threads=n_threads)
    return out


def rescaled_columns(factor: Array, scales: Floats, *, divide: bool = False, n_threads: int = 1) -> Array:
    """Return a factor with each column multiplied or divided by one number."""
    out, scales = aligned_empty(factor.shape, factor.dtype), scales.astype(factor.dtype)
    _kernels.rescale_columns(np.ascontiguousarray(factor), scales, divide, out, n_threads=n_threads)
    return out


def normalize_rows(factor: Array) -> Array:
    """Return the rows divided by their sums. Rows of zeros are unchanged."""
    sums = factor.sum(axis=1, dtype=np.float64, keepdims=True)
    return np.asarray(factor / np.where(sums > 0, sums, 1).astype(factor.dtype))


def normalize_columns(factor: Array) -> Array:
    """Return the columns divided by their sums. Columns of zeros are unchanged."""
    sums = factor.sum(axis=0, dtype=np.float64)
    return np.asarray(factor / np.where(sums > 0, sums, 1).astype(factor.dtype))


def em_rows(A: Array, row_sums: Array, totals: Floats, *, n_threads: int) -> tuple[Array, Floats]:
    """Return theta = A * row_sums with normalized rows, and n_d log max_k(row_sums_dk / n_d). Overwrites `row_sums`."""
    gains = np.empty(A.shape[0])
    _kernels.finish_rows(A, row_sums, totals, gains, n_threads=n_threads)
    return row_sums, gains


def em_words(
    B: Array, word_sums: Floats, topic_mass: Floats, word_totals: Floats, *, n_threads: int
) -> tuple[Array, Floats]:
    """Return phi = B * word_sums with normalized columns, and n_w log max_k(word_sums_wk / topic_mass_k)."""
    phi, gains = aligned_empty(B.shape, B.dtype), np.empty(B.shape[0])
    _kernels.finish_words(B, word_sums, topic_mass, word_totals, phi, gains, n_threads=n_threads)
    return phi, gains


def take_rows(table: Array, rows: Array, factors: Array, *, n_threads: int) -> Array:
    """Return table[rows] * factors, one factor per column."""
    taken = aligned_empty((len(rows), table.shape[1]), table.dtype)
    _kernels.take_rows(table, rows, factors.astype(table.dtype), taken, n_threads=n_threads)
    return taken


def add_rows(
    table: Array, rows: Array, B: Array, sums: Floats, n_columns: int, scale: float, *, n_threads: int
) -> Floats:
    """Add scale * B * sums to table[rows] in the first `n_columns` (in place). Return the column sums of B * sums.

    No row may occur twice, because threads update rows in parallel.
    """
    totals = np.empty(table.shape[1])
    _kernels.add_rows(table, rows, B, sums, scale, totals, columns=n_columns, n_threads=n_threads)
    return totals


def check_operands(counts: Counts, A: Array | None, B: Array, weights: Floats | None) -> None:
    """Raise TypeError if the operands do not fit the counts. The kernels cannot detect that B has too few rows."""
    for operand, rows in ((A, counts.n_docs), (B, counts.n_words)):
        if operand is None:
            continue
        if operand.dtype != counts.dtype or operand.shape != (rows, B.shape[1]) or B.shape[1] % _WIDTH_STEP != 0:
            raise TypeError(
                f"an operand {operand.shape} {operand.dtype} does not fit counts ({counts.n_docs}, {counts.n_words}) "
                f"{counts.dtype} and a width of {B.shape[1]}"
            )
    if weights is not None and (weights.shape != (counts.n_docs,) or weights.dtype != np.float64):
        raise TypeError("weights must be one float64 number per document")


def check_topics(sums: Array) -> None:
    """Raise InputError if sums over the topics of a model are not finite."""
    if not np.isfinite(sums).all():
        raise InputError("The model's topics contain NaN or infinity: fit the model again.")


def check_sparse(X: Any, name: str = "X") -> Any:
    """Return X. Raise InputError if X is sparse and its indices do not fit its shape."""
    import scipy.sparse as sp

    if sp.issparse(X):
        fault = _sparse_fault(X)
        if fault is not None:
            raise InputError(f"{name} is not a valid sparse matrix: {fault}; build it again from its entries.")
    return X


def find_counts_error(indptr: Array, indices: Array, values: Array, shape: tuple[int, int]) -> str | None:
    """Return what is wrong with CSR counts read from a file, or None.

    In addition to a valid CSR matrix, no entry may be unused, and all values must be finite and non-negative.
    """
    fault = _csr_fault(indptr, indices, values, shape)
    if fault is not None:
        return fault
    if indptr[-1] != len(indices):
        return f"indptr ends at {indptr[-1]}, but there are {len(indices)} values"
    if values.dtype.kind not in "fiu" or values.ndim != 1:
        return "the values must be numbers"
    if values.size and not (values.min() >= 0 and np.isfinite(values.max())):
        return "a count is not a finite number of at least 0"
    return None


def _sparse_fault(X: Any) -> str | None:
    """Return what is wrong with the index arrays of a scipy sparse matrix or array, or None."""
    if X.format in ("csr", "csc"):
        return _csr_fault(X.indptr, X.indices, X.data, X.shape if X.format == "csr" else X.shape[::-1])
    if X.format == "bsr":
        blocks = tuple(size // block for size, block in zip(X.shape, X.blocksize, strict=True))
        return _csr_fault(X.indptr, X.indices, X.data, blocks)
    if X.format == "coo":
        coords = X.coords if hasattr(X, "coords") else (X.row, X.col)  # scipy before 1.13
        if any(len(indices) != len(X.data) for indices in coords):
            return "the coordinates and the values differ in length"
        faults = (_index_fault(indices, size) for indices, size in zip(coords, X.shape, strict=True))
        return next((fault for fault in faults if fault is not None), None)
    return None  # scipy stores the other formats as Python lists or diagonals, and converts them safely


def _csr_fault(indptr: Array, indices: Array, values: Array, shape: tuple[int, int]) -> str | None:
    """Return what is wrong with the arrays of a CSR matrix of this shape, or None. Reads every index once.

    As in scipy, `indices` and `values` may be longer than `indptr` requires; the rest is unused.
    """
    rows, columns = shape
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu" or indptr.ndim != 1 or indices.ndim != 1:
        return "indptr and indices must be one-dimensional arrays of whole numbers"
    if indptr.size != rows + 1:
        return f"indptr has {indptr.size} entries where {rows + 1} are needed"
    if len(indices) != len(values):
        return f"there are {len(indices)} indices but {len(values)} values"
    if indptr[0] != 0:
        return f"indptr starts at {indptr[0]} instead of 0"
    if (indptr[1:] < indptr[:-1]).any():
        return "indptr decreases"
    if indptr[-1] > len(indices):
        return f"indptr ends at {indptr[-1]}, but there are only {len(indices)} values"
    return _index_fault(indices[: indptr[-1]], columns)


def _index_fault(indices: Array, size: int) -> str | None:
    for index in (indices.min(), indices.max()) if indices.size else ():
        if not 0 <= index < size:
            return f"the index {index} is outside 0..{size - 1}"
    return None


def _word_sums_buffer(memory: Floats | None, B: Array) -> Floats:
    """Return `memory`, checked, or a new array for the word sums."""
    if memory is None:
        return np.empty(B.shape)
    if memory.shape != B.shape or memory.dtype != np.float64:
        raise TypeError(f"memory {memory.shape} {memory.dtype} does not fit word sums {B.shape} float64")
    return memory


def _max_zero_product(dtype: np.dtype[Any]) -> float:
    """Return the largest q that counts as zero: a word that no topic explains adds nothing to the sums."""
    return 1e-24 if dtype == np.float32 else 1e-280


# threads

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside the `with` block, because its sums depend on the number of threads.

    The limit holds for the calling thread, or for the process if BLAS has one number of threads per process.
    """
    own = _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave(own)


def map_in_threads(function: Callable[[Item], Result], items: list[Item], n_threads: int) -> Iterator[Result]:
    """Yield function(item) of each item, in order, computed by `n_threads` threads with single-threaded BLAS.

    The calling thread is one of them, and does all the work if the system refuses to start others. An item is started
    only when it is among the next `n_threads` items to be yielded, because finished results are held in memory.
    """
    n_threads = max(1, n_threads)
    jobs: SimpleQueue[int | None] = SimpleQueue()
    results = [Future[Result]() for _ in items]

    def work() -> None:
        with single_threaded_blas():
            for number in iter(jobs.get, None):
                try:
                    results[number].set_result(function(items[number]))
                except BaseException as error:  # raised again when the result is read
                    results[number].set_exception(error)

    with single_threaded_blas():
        threads = _start_threads(work, min(n_threads, len(items)) - 1)
        try:
            started = 0
            for number in range(len(items)):
                while started < min(number + n_threads, len(items)):
                    jobs.put(started)
                    started += 1
                while not results[number].done() and (own := _next_job(jobs)) is not None:
                    results[own].set_result(function(items[own]))
                yield results[number].result()
                results[number] = Future()  # frees the result
        finally:
            while _next_job(jobs) is not None:
                pass
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                thread.join()


class _BlasLimit:
    """Limit of BLAS to one thread, as long as at least one caller needs it.

    OpenBLAS, as in the wheels of numpy and scipy, has one number of threads for the whole process. So the first caller
    sets it and the last one restores it. If each caller restored it, one could end the limit of another, or restore the
    limit instead of the original number. With OpenMP, and in other libraries, the number belongs to a thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before: list[tuple[Any, int]] = []

    def enter(self) -> list[tuple[Any, int]]:
        """Set the limit. Returns what `leave` has to restore for this thread."""
        with self._lock:
            if self._users == 0:
                self._before = _limit(library for library in _blas_libraries() if _is_shared(library))
            self._users += 1
        return _limit(library for library in _blas_libraries() if not _is_shared(library))

    def leave(self, own: list[tuple[Any, int]]) -> None:
        """Remove the limit of this caller."""
        _restore(own)
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _restore(self._before)

    def reset_after_fork(self) -> None:
        """Restore the number of threads in a forked child, where the threads that would do so do not exist."""
        self._lock = Lock()
        if self._users:
            self._users = 0
            _restore(self._before)


_blas_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.reset_after_fork)


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number of threads of a BLAS library, from any Python thread.

    Since version 3.7, threadpoolctl lets only one Python thread at a time change OpenBLAS and silently ignores the
    others. So its inner function is called if it exists; the lock of `_BlasLimit` makes this safe.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


def _is_shared(library: Any) -> bool:
    """Return whether the library has one number of threads for the whole process."""
    return library.internal_api == "openblas" and library.threading_layer != "openmp"


def _limit(libraries: Iterable[Any]) -> list[tuple[Any, int]]:
    """Set each library to one thread. Returns the previous numbers of threads."""
    before = [(library, library.get_num_threads()) for library in libraries]
    for library, _ in before:
        _set_threads(library, 1)
    return before


def _restore(before: list[tuple[Any, int]]) -> None:
    for library, n_threads in before:
        _set_threads(library, n_threads)


@cache
def _blas_libraries() -> list[Any]:
    """Return the loaded BLAS libraries. Cached, because the search takes milliseconds."""
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _start_threads(work: Callable[[], None], n_threads: int) -> list[Thread]:
    """Start up to `n_threads` threads; fewer if the system refuses more."""
    threads: list[Thread] = []
    while len(threads) < n_threads:
        thread = Thread(target=work, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            break
        threads.append(thread)
    return threads


def _next_job(jobs: SimpleQueue[int | None]) -> int | None:
    try:
        return jobs.get_nowait()
    except Empty:
        return None
