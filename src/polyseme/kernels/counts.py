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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from polyseme import _kernels
from polyseme.errors import InputError
from polyseme.kernels.factors import (
    NUMBERS_AT_ONCE,
    WIDTH_STEP,
    Array,
    Floats,
    aligned_empty,
    row_blocks,
    sum_in_order,
    weighted_sum,
    with_weights,
)
from polyseme.kernels.threads import map_in_threads

FOLD_IN_TOLERANCE = 1e-4
"""A document stops when other weights can gain at most this many nats per token. The true gap is far smaller."""

FOLD_IN_STEPS = 1000
"""Maximum number of steps of a document."""

PASS_TOLERANCE = 1e-3
"""Coordinate ascent on a row stops when a pass moves less than this share of its total."""


class Want(Flag):
    """Which sums of a sweep are computed."""

    ROWS = auto()
    WORDS = auto()
    LOGS = auto()
    ALL = ROWS | WORDS | LOGS


class Sums(NamedTuple):
    """The sums of a sweep, with q = A_d . B_w and r = x / q for every count x. A sum that was not wanted is None."""

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

    def sums(
        self, A: Array, B: Array, want: Want = Want.ALL, *, n_threads: int, weights: Floats | None = None,
        memory: Floats | None = None,
    ) -> Sums:  # fmt: skip
        """Return the wanted sums. `weights` multiply documents in the word sums, which use `memory` if given."""


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

    def sums(
        self, A: Array, B: Array, want: Want = Want.ALL, *, n_threads: int, weights: Floats | None = None,
        memory: Floats | None = None, isa: str | None = None,
    ) -> Sums:  # fmt: skip
        check_operands(self, A, B, weights)
        row_sums = aligned_empty(A.shape, A.dtype) if Want.ROWS in want else None
        word_sums = _word_sums_buffer(memory, B) if Want.WORDS in want else None
        logs = np.empty(self.n_docs) if Want.LOGS in want else None
        if row_sums is not None or logs is not None:
            _kernels.sweep_rows(
                self.indptr, self.indices, self.values, A, B, row_sums, logs, n_threads=n_threads, isa=isa
            )
        if word_sums is not None:
            by_word = self.transposed(weights)
            _kernels.sweep_words(
                by_word.indptr, by_word.indices, by_word.values, A, B, word_sums, n_threads=n_threads, isa=isa
            )
        return Sums(row_sums, word_sums, logs)  # type: ignore[arg-type]

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

    def with_transpose(self, transpose: SparseCounts) -> SparseCounts:
        """Return the same counts with their transpose, which is shared."""
        return replace(self, _transposes=[(None, transpose)])

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
        keep, indptr, indices = values > 0, self.indptr, self.indices
        if not keep.all():
            kept_before = np.concatenate([[0], np.cumsum(keep)]).astype(indptr.dtype)
            indptr, indices, values = kept_before[indptr], indices[keep], values[keep]
        return SparseCounts(indptr, indices, values.astype(self.dtype), self.n_docs, self.n_words)

    def improve_rows(self, factor: Array, B: Array, u: Floats, *, passes: int, n_threads: int) -> tuple[Floats, Floats]:
        """Run coordinate ascent on each row of `factor` (rows x width, in place) with B fixed (coordinate.hpp).

        It maximizes sum_w x log q - sum_k u_k factor_k of every row, with q = factor . B_w. Returns the duality gap of
        each row before the update, and sum_w x log q after it.
        """
        check_operands(self, factor, B, None)
        gains, logs = np.empty(self.n_docs), np.empty(self.n_docs)
        _kernels.coordinate(
            self.indptr, self.indices, self.values, B, u, factor, gains, logs,
            passes=passes, enough=PASS_TOLERANCE, negligible=0.0, n_threads=n_threads,
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

    def sums(
        self, A: Array, B: Array, want: Want = Want.ALL, *, n_threads: int, weights: Floats | None = None,
        memory: Floats | None = None,
    ) -> Sums:  # fmt: skip
        check_operands(self, A, B, weights)
        row_sums = np.empty_like(A) if Want.ROWS in want else None
        word_sums = _word_sums_buffer(memory, B) if Want.WORDS in want else None
        log_sums = np.empty(self.n_docs) if Want.LOGS in want else None
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
            # A word that no topic explains adds nothing to the sums.
            largest_zero = 1e-24 if q.dtype == np.float32 else 1e-280
            r = np.divide(x, q, out=np.zeros_like(q), where=present & (q > largest_zero))
            if row_sums is not None:
                row_sums[block] = r @ B
            if word_sums is None:
                return None
            return np.asarray(r.T @ with_weights(a, weights, block))

        for block_sums in map_in_threads(one_block, row_blocks(self.n_docs, self.n_words), n_threads):
            if word_sums is not None and block_sums is not None:
                word_sums += block_sums
        return Sums(row_sums, word_sums, log_sums)  # type: ignore[arg-type]


def check_operands(counts: Counts, A: Array | None, B: Array, weights: Floats | None) -> None:
    """Raise TypeError if the operands do not fit the counts. The kernels cannot detect that B has too few rows."""
    for operand, rows in ((A, counts.n_docs), (B, counts.n_words)):
        if operand is None:
            continue
        if operand.dtype != counts.dtype or operand.shape != (rows, B.shape[1]) or B.shape[1] % WIDTH_STEP != 0:
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


def _word_sums_buffer(memory: Floats | None, B: Array) -> Floats:
    """Return `memory`, checked, or a new array for the word sums."""
    if memory is None:
        return np.empty(B.shape)
    if memory.shape != B.shape or memory.dtype != np.float64:
        raise TypeError(f"memory {memory.shape} {memory.dtype} does not fit word sums {B.shape} float64")
    return memory
