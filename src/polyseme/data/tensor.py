"""Sparse tensors of counts in memory, swept in chunks of index tuples.

One mode gives the columns of the matrix for the kernel; the rows are the distinct tuples of all other modes. The
operand of a row is the product of the factors of those modes. It is computed for one chunk of tuples at a time, because
an array of all tuples x K could be as large as non-zeros x K.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.kernels import Array, Floats, SparseCounts, inner, map_in_threads

_NUMBERS_AT_ONCE = 1 << 19
"""Numbers in the operand of a chunk."""


class Groups(NamedTuple):
    """Rows that share an index of one mode."""

    indices: Array
    """Distinct indices."""
    members: sp.csr_array
    """Matrix (distinct indices x rows) with ones where a row has the index."""

    @classmethod
    def of(cls, indices: Array) -> Groups:
        distinct, inverse = np.unique(indices, return_inverse=True)
        rows = np.arange(indices.size)
        return cls(distinct, sp.csr_array((np.ones(indices.size), (inverse, rows)), (distinct.size, indices.size)))


@dataclass(frozen=True)
class Chunk:
    """Counts of some tuples (tuples x columns)."""

    tuples: dict[int, Array]
    """Index of every tuple in each mode other than the column mode."""
    columns: Array
    """Indices of the column mode that occur in the chunk, in the order of the columns of the counts."""
    counts: SparseCounts

    @cached_property
    def groups(self) -> dict[int, Groups]:
        """Return the groups of tuples by mode."""
        return {mode: Groups.of(indices) for mode, indices in self.tuples.items()}


class Swept(NamedTuple):
    """Result of a sweep over all chunks."""

    expected: list[Floats]
    """Expected counts of the items of each mode by topic (items x width)."""
    log: float
    """sum x log q."""


class TensorCounts:
    """A sparse tensor of counts.

    coords : one array of indices per mode.
    values : positive counts at these indices; each tuple occurs once.
    """

    def __init__(self, coords: tuple[Array, ...], values: Array, shape: tuple[int, ...], n_threads: int = 1) -> None:
        self.coords, self.values, self.shape, self.n_threads = coords, values, shape, n_threads
        self._chunks: tuple[int, list[Chunk]] = (0, [])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @cached_property
    def tokens(self) -> float:
        return float(self.values.sum(dtype=np.float64))

    @cached_property
    def totals(self) -> list[Floats]:
        """Return the total counts of the items of each mode."""
        x = self.values.astype(np.float64)
        sums = (np.bincount(index, x, minlength=size) for index, size in zip(self.coords, self.shape, strict=True))
        return [np.asarray(total, dtype=np.float64) for total in sums]

    @cached_property
    def column_mode(self) -> int:
        """Return the mode whose removal leaves the fewest distinct tuples."""
        modes = range(len(self.shape))
        return min(modes, key=lambda mode: count_tuples([self.coords[other] for other in modes if other != mode]))

    def chunks(self, width: int) -> list[Chunk]:
        """Return the tuples in chunks whose operands have about half a million numbers; cached for the next sweep."""
        if self._chunks[0] != width:
            self._chunks = width, list(self._cut(max(1, _NUMBERS_AT_ONCE // width)))
        return self._chunks[1]

    def _cut(self, tuples_at_once: int) -> Iterator[Chunk]:
        c = self.column_mode
        others = [mode for mode in range(len(self.shape)) if mode != c]
        order = np.lexsort((self.coords[c], *(self.coords[mode] for mode in reversed(others))))
        sorted_modes = {mode: self.coords[mode][order] for mode in others}
        starts = np.append(new_tuples(list(sorted_modes.values())), order.size)
        for first in range(0, starts.size - 1, tuples_at_once):
            bounds = starts[first : first + tuples_at_once + 1]
            part = slice(bounds[0], bounds[-1])
            columns, local = np.unique(self.coords[c][order[part]], return_inverse=True)
            counts = SparseCounts(
                (bounds - bounds[0]).astype(np.int32), local.astype(np.int32), self.values[order[part]],
                bounds.size - 1, columns.size,
            )  # fmt: skip
            yield Chunk({mode: sorted_modes[mode][bounds[:-1]] for mode in others}, columns, counts)

    def sweep(self, weights: Floats, factors: list[Array]) -> Swept:
        """Run the E-step at P(z) (width numbers) and P(item|z) of every mode (items x width).

        Each row of a factor is divided by its maximum, which cancels in the expected counts. Otherwise products of
        several small probabilities could underflow in float32.
        """
        scales = [row_max(factor) for factor in factors]
        factors = [factor / scale[:, np.newaxis] for factor, scale in zip(factors, scales, strict=True)]
        chunks = self.chunks(weights.size)
        c = self.column_mode
        several = len(chunks) > 1
        expected = [np.zeros(factor.shape) for factor in factors]
        log = sum(
            inner(totals, np.log(scale.astype(np.float64))) for totals, scale in zip(self.totals, scales, strict=True)
        )

        def sweep_chunk(chunk: Chunk) -> tuple[dict[int, Floats], Floats, float]:
            A = operand(weights, factors, chunk.tuples)
            B = np.ascontiguousarray(factors[c][chunk.columns])
            sums = chunk.counts.sweep(A, B, n_threads=1 if several else self.n_threads)
            by_tuple = np.multiply(A, sums.row_sums, dtype=np.float64)
            by_item = {mode: groups.members @ by_tuple for mode, groups in chunk.groups.items()}
            return by_item, B * sums.word_sums, float(sums.logs.sum())

        for chunk, (by_item, by_column, part) in zip(
            chunks, map_in_threads(sweep_chunk, chunks, self.n_threads), strict=True
        ):
            for mode, sums in by_item.items():
                expected[mode][chunk.groups[mode].indices] += sums
            expected[c][chunk.columns] += by_column
            log += part
        return Swept(expected, log)

    def release(self) -> None:
        """Free the cached chunks."""
        self._chunks = (0, [])


def row_max(rows: Array) -> Array:
    """Return the maximum of each row; one for a row of zeros."""
    maximum = rows.max(axis=1)
    return np.asarray(np.where(maximum > 0, maximum, 1), dtype=rows.dtype)


def operand(weights: Floats, factors: list[Array], tuples: dict[int, Array]) -> Array:
    """Return P(z) times the product of P(item|z) over the items of each tuple (tuples x width)."""
    parts: Iterable[Array] = (factors[mode][indices] for mode, indices in tuples.items())
    product = reduce(np.multiply, parts)
    return np.multiply(product, weights.astype(product.dtype))


def new_tuples(sorted_modes: list[Array]) -> Array:
    """Return the positions of the first occurrence of each tuple in sorted tuples."""
    if not sorted_modes[0].size:
        return np.zeros(0, dtype=np.int64)
    changed = np.logical_or.reduce([np.diff(indices) != 0 for indices in sorted_modes])
    return np.concatenate([[0], 1 + np.flatnonzero(changed)])


def count_tuples(modes: list[Array]) -> int:
    """Return the number of distinct tuples."""
    order = np.lexsort(modes)
    return int(new_tuples([indices[order] for indices in modes]).size)
