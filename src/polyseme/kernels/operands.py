"""What the kernels take and return: padded operands, sums, and counts that can be swept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from polyseme import _kernels

if TYPE_CHECKING:
    from polyseme.kernels.sparse import SparseCounts

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

NUMBERS_AT_ONCE = 1 << 20
_WIDTH_STEP = 16
_CACHE_LINE = 64


def padded_width(n_columns: int) -> int:
    """The width that an operand of `n_columns` columns is stored with."""
    return -(-n_columns // _WIDTH_STEP) * _WIDTH_STEP


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An uninitialised array that starts with a cache line: a row of 16 numbers then touches no line too many."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + _CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def padded(matrix: Array, dtype: npt.DTypeLike, n_columns: int = 0) -> Array:
    """A copy of `matrix` (n x K) in a zeroed, contiguous array with room for n_columns columns, and at least K."""
    wide = aligned_empty((matrix.shape[0], padded_width(max(n_columns, matrix.shape[1]))), dtype)
    wide[:, matrix.shape[1] :] = 0
    wide[:, : matrix.shape[1]] = matrix
    return wide


def without_negligible(factor: Array, dtype: npt.DTypeLike) -> Array:
    """The factor as `dtype`, with zeros for probabilities whose products would be denormal (as in mstep.hpp)."""
    least = 1e-30 if np.dtype(dtype) == np.float32 else 1e-200
    return np.where(factor > least, factor, 0).astype(dtype)


def inner(a: Array, b: Array | float) -> float:
    """sum a b in float64. Not by BLAS, whose sums depend on its number of threads."""
    return float(np.multiply(a, b, dtype=np.float64).sum())


def weighted_sum(weights: Floats, rows: Array, *, n_threads: int = 1) -> Floats:
    """sum_i weights_i rows_i (one number a column) in float64, not by BLAS."""
    total = np.empty(rows.shape[1])
    _kernels.weighted_sum(
        np.ascontiguousarray(weights, dtype=np.float64), np.ascontiguousarray(rows), total, n_threads=n_threads
    )
    return total


class Sums(NamedTuple):
    """What a sweep returns; a part that was not asked for is None."""

    row_sums: Array | None
    word_sums: Floats | None
    logs: Floats | None


class Counts(Protocol):
    """Counts in memory (documents x words) that the kernel can sweep."""

    @property
    def n_docs(self) -> int: ...
    @property
    def n_words(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def totals(self) -> Floats: ...

    def matrix(self) -> Any: ...

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
        rows: bool = True,
        words: bool = True,
        logs: bool = True,
        memory: Floats | None = None,
    ) -> Sums: ...


def sums_in(memory: Floats | None, B: Array) -> Floats:
    """An uninitialised array for the word sums, in this memory if there is one."""
    if memory is None:
        return np.empty(B.shape)
    if memory.shape != B.shape or memory.dtype != np.float64:
        raise TypeError(f"memory {memory.shape} {memory.dtype} does not fit word sums {B.shape} float64")
    return memory


def check_operands(counts: Counts, A: Array | None, B: Array, weights: Floats | None) -> None:
    """Raises TypeError unless the operands fit the counts; the kernels could not tell that B has too few rows."""
    for operand, rows in ((A, counts.n_docs), (B, counts.n_words)):
        if operand is None:
            continue
        if operand.dtype != counts.dtype or operand.shape != (rows, B.shape[1]) or B.shape[1] % _WIDTH_STEP != 0:
            raise TypeError(
                f"an operand {operand.shape} {operand.dtype} does not fit counts ({counts.n_docs}, {counts.n_words}) "
                f"{counts.dtype} and a width of {B.shape[1]}"
            )
    if weights is not None and (weights.shape != (counts.n_docs,) or weights.dtype != np.float64):
        raise TypeError("weights must be one float64 number a document")
