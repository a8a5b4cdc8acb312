"""Arrays of factors: padding and alignment, blocks of rows, and the compiled functions of whole factors."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme import _kernels

Array = npt.NDArray[Any]

Floats = npt.NDArray[np.float64]

NUMBERS_AT_ONCE = 1 << 20
"""Number of counts that are processed at a time where an intermediate array is needed."""

WIDTH_STEP = 16

_CACHE_LINE = 64

_TILE_BYTES = 128
"""Bytes of a tile of columns (kTileBytes in row_table.hpp)."""


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
    return -(-n_columns // WIDTH_STEP) * WIDTH_STEP


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
