"""Counts as CSR arrays, swept by the compiled kernels; the M-steps of EM; rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from polyseme import _kernels
from polyseme.kernels.operands import NUMBERS_AT_ONCE, Array, Floats, Sums, aligned_empty, check_operands, sums_in

_ENOUGH = 1e-3  # a row's passes end when one moves less than this share of its total


@dataclass(frozen=True)
class SparseCounts:
    """Counts as CSR arrays without explicit zeros, sorted; `values` has the dtype of the operands."""

    indptr: Array
    indices: Array
    values: Array
    n_docs: int
    n_words: int
    _transposes: list[tuple[Floats | None, SparseCounts]] = field(default_factory=list, repr=False, compare=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def totals(self) -> Floats:
        """n_d: the tokens of each document, in float64."""
        return self.sums_by_row(self.values)

    def sums_by_row(self, values: Array) -> Floats:
        """The sums over each document's non-zeros of values, one for each non-zero, in float64."""
        sums = np.zeros(self.n_docs)
        filled = np.flatnonzero(np.diff(self.indptr))
        if filled.size:
            sums[filled] = np.add.reduceat(values, self.indptr[filled], dtype=np.float64)
        return sums

    def release(self) -> None:
        """Lets go of the transpose."""
        self._transposes.clear()

    def sparse(self) -> SparseCounts:
        """The same counts as CSR."""
        return self

    def presence(self) -> SparseCounts:
        """1 where these counts have a number: which document has which word."""
        known = [(None, transpose.presence()) for weights, transpose in self._transposes if weights is None]
        return SparseCounts(
            self.indptr, self.indices, np.ones_like(self.values), self.n_docs, self.n_words, [*known]
        )  # fmt: skip

    def matrix(self) -> Any:
        """The same counts as a scipy array."""
        return sp.csr_array((self.values, self.indices, self.indptr), (self.n_docs, self.n_words))

    def word_totals(self, weights: Floats | None) -> Floats:
        """sum_d weight_d x_dw, in float64."""
        sums = np.zeros(self.n_words)
        rows_at_once = max(1, self.n_docs * NUMBERS_AT_ONCE // max(1, self.values.size))
        for first in range(0, self.n_docs, rows_at_once):
            starts = self.indptr[first : first + rows_at_once + 1]
            part = slice(starts[0], starts[-1])
            values = self.values[part].astype(np.float64)
            if weights is not None:
                values *= np.repeat(weights[first : first + rows_at_once], np.diff(starts))
            sums += np.bincount(self.indices[part], values, minlength=self.n_words)
        return sums

    def sweep(
        self,
        A: Array,
        B: Array,
        *,
        n_threads: int,
        weights: Floats | None = None,
        rows: bool = True,
        words: bool = True,
        logs: bool = True,
        memory: Floats | None = None,
        isa: str | None = None,
    ) -> Sums:
        check_operands(self, A, B, weights)
        row_sums = aligned_empty(A.shape, A.dtype) if rows else None
        word_sums = sums_in(memory, B) if words else None
        log_sums = np.empty(self.n_docs) if logs else None
        if rows or logs:
            _kernels.sweep_rows(
                self.indptr, self.indices, self.values, A, B, row_sums, log_sums, n_threads=n_threads, isa=isa
            )
        if words:
            by_word = self.transposed(weights)
            _kernels.sweep_words(
                by_word.indptr, by_word.indices, by_word.values, A, B, word_sums, n_threads=n_threads, isa=isa
            )
        return Sums(row_sums, word_sums, log_sums)

    def products(self, A: Array, B: Array, *, n_threads: int) -> Array:
        """q = A_d . B_w of every non-zero, in the order of `values`."""
        check_operands(self, A, B, None)
        q = np.empty(self.values.size, dtype=self.dtype)
        _kernels.products(self.indptr, self.indices, self.values, A, B, q, n_threads=n_threads)
        return q

    def transposed(self, weights: Floats | None) -> SparseCounts:
        """Words as rows, documents as columns; each count times its document's weight. Kept until `release`."""
        for known_weights, transpose in self._transposes:
            if known_weights is weights:
                return transpose
        by_word = self.matrix().tocsc()
        same = self.indptr.dtype
        transpose = SparseCounts(
            by_word.indptr.astype(same, copy=False), by_word.indices.astype(same, copy=False), by_word.data,
            self.n_words, self.n_docs,
        )  # fmt: skip
        if weights is not None:
            transpose = transpose.with_values(transpose.values * weights[transpose.indices])
        self._transposes[:] = [(weights, transpose)]
        return transpose

    def take(self, rows: Array) -> SparseCounts:
        """The counts of these rows."""
        part = self.matrix()[rows]
        same = self.indptr.dtype
        return SparseCounts(
            part.indptr.astype(same, copy=False), part.indices.astype(same, copy=False), part.data, len(rows),
            self.n_words,
        )  # fmt: skip

    def with_values(self, values: Array) -> SparseCounts:
        """The same rows with other counts, one for each of `values`, without those that are zero."""
        keep = values > 0
        kept_before = np.concatenate([[0], np.cumsum(keep)]).astype(self.indptr.dtype)
        return SparseCounts(
            kept_before[self.indptr], self.indices[keep], values[keep].astype(self.dtype), self.n_docs, self.n_words
        )

    def improve_rows(self, factor: Array, B: Array, u: Floats, *, passes: int, n_threads: int) -> tuple[Floats, Floats]:
        """Coordinate ascent on each row of `factor` (rows x width, in place) with B fixed: see coordinate.hpp.

        Raises sum_w x log q - sum_k u_k factor_k of every row, q = factor . B_w. Returns the duality gap of each row
        before, and sum_w x log q after.
        """
        check_operands(self, factor, B, None)
        gains, logs = np.empty(self.n_docs), np.empty(self.n_docs)
        _kernels.coordinate(
            self.indptr, self.indices, self.values, B, u, factor, gains, logs,
            passes=passes, enough=_ENOUGH, n_threads=n_threads,
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
        """Topic weights (documents x K) of every row with B fixed, and the EM steps each took (negative: cut off).

        Column K of B, with weight `background`, stays fixed; empty rows get the weights `empty`. u is the sum of each
        topic over all words (K numbers), where B has not all of them.
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
        """Topic weights (documents x K) of every row after n_steps of EM from uniform ones, B fixed as in `fold_in`."""
        check_operands(self, None, B, None)
        theta = np.empty((self.n_docs, n_topics), dtype=B.dtype)
        uniform = np.full(n_topics, 1 / n_topics, dtype=B.dtype)
        _kernels.fold_in(
            self.indptr, self.indices, self.values, B, np.ones(n_topics), uniform, theta,
            np.empty(self.n_docs, dtype=np.int32), background=background, temperature=temperature, tol=-np.inf,
            max_iter=n_steps, by_coordinates=False, n_threads=n_threads,
        )  # fmt: skip
        return theta


def em_rows(A: Array, row_sums: Array, totals: Floats, *, n_threads: int) -> tuple[Array, Floats]:
    """theta = A * row_sums with rows normalised (in the memory of row_sums), and n_d log max_k(row_sums_dk / n_d)."""
    gains = np.empty(A.shape[0])
    _kernels.finish_rows(A, row_sums, totals, gains, n_threads=n_threads)
    return row_sums, gains


def em_words(
    B: Array, word_sums: Floats, topic_mass: Floats, word_totals: Floats, *, n_threads: int
) -> tuple[Array, Floats]:
    """phi = B * word_sums with columns normalised, and n_w log max_k(word_sums_wk / topic_mass_k)."""
    phi, gains = aligned_empty(B.shape, B.dtype), np.empty(B.shape[0])
    _kernels.finish_words(B, word_sums, topic_mass, word_totals, phi, gains, n_threads=n_threads)
    return phi, gains


def take_rows(table: Array, rows: Array, factors: Array, *, n_threads: int) -> Array:
    """table[rows] * factors, one factor a column."""
    taken = aligned_empty((len(rows), table.shape[1]), table.dtype)
    _kernels.take_rows(table, rows, factors.astype(table.dtype), taken, n_threads=n_threads)
    return taken


def add_rows(
    table: Array, rows: Array, B: Array, sums: Floats, n_columns: int, scale: float, *, n_threads: int
) -> Floats:
    """table[rows] += scale B * sums in the first n_columns (in place; no row twice). Returns B * sums, added up."""
    totals = np.empty(table.shape[1])
    _kernels.add_rows(table, rows, B, sums, scale, totals, columns=n_columns, n_threads=n_threads)
    return totals
