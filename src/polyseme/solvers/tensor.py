"""Sparse tensors of counts in memory, and EM for them: P(i_1 .. i_n) = sum_z P(z) prod_m P(i_m|z).

A tensor is swept in chunks of index tuples. One mode gives the columns of the matrix for the kernel; the rows are the
distinct tuples of all other modes. The operand of a row is the product of the factors of those modes. It is computed
for one chunk of tuples at a time, because an array of all tuples x K could be as large as non-zeros x K.

References
----------
W. Peng. Equivalence between nonnegative tensor factorization and tensorial probabilistic latent semantic analysis.
    SIGIR 2009.
S. Zafeiriou and M. Petrou. Nonnegative tensor factorization as an alternative Csiszar-Tusnady procedure. Data Mining
    and Knowledge Discovery 22, 2011.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.model import Report
from polyseme.kernels import (
    FOLD_IN_STEPS,
    FOLD_IN_TOLERANCE,
    Array,
    Floats,
    SparseCounts,
    em_words,
    inner,
    map_in_threads,
    normalize_columns,
    padded,
    padded_width,
)
from polyseme.solvers.ascent import Ascent, EvaluatedPoint, extrapolate_arrays

_SWEEP_NUMBERS, _FOLD_IN_NUMBERS = 1 << 19, 1 << 22
"""Numbers in the operand of a chunk, in a sweep and in folding in."""

TensorPoint = tuple[Array, ...]
"""P(z) (width numbers, float64), then P(item|z) of every mode (items x width)."""

TensorRun = Ascent[TensorPoint]


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
            self._chunks = width, list(self._cut(max(1, _SWEEP_NUMBERS // width)))
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
            sums = chunk.counts.sums(A, B, n_threads=1 if several else self.n_threads)
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


def random_start(corpus: TensorCounts, n_topics: int, rng: np.random.Generator) -> TensorPoint:
    """Return a start: P(item|z) of every mode is the share of the item times exponential noise, P(z) is uniform."""
    factors = []
    for totals in corpus.totals:
        noise = rng.standard_exponential((totals.size, n_topics))
        factors.append(normalize_columns(noise * totals[:, np.newaxis]))
    return padded_point(np.full(n_topics, 1.0 / n_topics), factors, corpus.dtype)


def padded_point(weights: Floats, factors: list[Floats], dtype: np.dtype[np.floating]) -> TensorPoint:
    """Return P(z) (K numbers) and P(item|z) (items x K), padded."""
    wide = np.zeros(padded_width(weights.size))
    wide[: weights.size] = weights
    return (wide, *(padded(factor, dtype) for factor in factors))


def evaluate(corpus: TensorCounts, point: TensorPoint) -> EvaluatedPoint[TensorPoint]:
    """Run the E-step at a point and the M-step from there: P(z) ∝ n_z and P(i|z) ∝ n_iz, from the same posterior.

    The residual adds a bound on the gain from P(i|z) of each mode (as for words in PLSA, with u_z = N P(z); entries
    that are zero do not count), and, by Jensen's inequality, N log max_z n_z / (N P(z)) for P(z).
    """
    weights, *factors = point
    tokens = corpus.tokens
    swept = corpus.sweep(weights, factors)
    mass = tokens * weights
    gain = 0.0
    step: list[Array] = []
    for factor, expected, totals in zip(factors, swept.expected, corpus.totals, strict=True):
        slopes = np.divide(expected, factor, out=np.zeros_like(expected), where=factor > 0)
        better, gains = em_words(factor, slopes, mass, totals, n_threads=corpus.n_threads)
        step.append(better)
        gain += float(gains.sum())
    by_topic = swept.expected[0].sum(axis=0)
    growth = np.divide(by_topic, mass, out=np.zeros_like(mass), where=mass > 0).max()
    gain += tokens * float(np.log(max(growth, 1.0)))
    value = swept.log / tokens
    residual = max(gain, 0.0) / tokens if np.isfinite(value) else float("inf")
    return EvaluatedPoint(point, Report(value, value, residual), (by_topic / by_topic.sum(), *step))


def normalized(weights: Floats, *factors: Array) -> TensorPoint:
    """Return the point with distributions that sum to one."""
    return (weights / weights.sum(), *(normalize_columns(factor) for factor in factors))


def begin(corpus: TensorCounts, start: TensorPoint, *, extrapolate: bool) -> TensorRun:
    """Start a fit of a tensor."""
    return Ascent(partial(evaluate, corpus), start, extrapolate_arrays(normalized) if extrapolate else None)


def fold_in(corpus: TensorCounts, mode: int, weights: Floats, factors: list[Array], *, n_threads: int) -> Array:
    """Return P(z|item) (items x K) of every item of `mode`, from the factors of the other modes (items x width each).

    An item is a document and the tuples of its counts are the words: P(tuple|z) is the product of P(item|z) over the
    other modes. The items are processed in chunks; one item needs memory for its tuples times K. An item without counts
    of positive probability gets P(z).
    """
    K = weights.size
    scaled = [factor / row_max(factor)[:, np.newaxis] for factor in factors]
    theta = np.tile(weights.astype(corpus.dtype), (corpus.shape[mode], 1))
    for items, tuples, counts in _item_chunks(corpus, mode, max(1, _FOLD_IN_NUMBERS // padded_width(K))):
        B = operand(np.ones(padded_width(K)), scaled, tuples)
        B /= row_max(B)[:, np.newaxis]
        known: Array = B.max(axis=1) > 0
        known_counts = counts.with_values(np.where(known[counts.indices], counts.values, 0))
        folded, _ = known_counts.fold_in(
            B, K, empty=weights, tol=FOLD_IN_TOLERANCE, max_iter=FOLD_IN_STEPS, n_threads=n_threads, u=np.ones(K)
        )
        theta[items] = folded
    return theta


def _item_chunks(
    corpus: TensorCounts, mode: int, tuples_at_once: int
) -> Iterator[tuple[Array, dict[int, Array], SparseCounts]]:
    """Yield chunks of the items of a mode: indices of the items, distinct tuples by mode, counts (items x tuples)."""
    order = np.argsort(corpus.coords[mode], kind="stable")
    starts = np.append(new_tuples([corpus.coords[mode][order]]), order.size)
    first = 0
    while first < starts.size - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + tuples_at_once, side="right")) - 1)
        part = order[starts[first] : starts[last]]
        others = {m: index[part] for m, index in enumerate(corpus.coords) if m != mode}
        by_tuple = np.lexsort(list(others.values()))
        new = new_tuples([index[by_tuple] for index in others.values()])
        column = np.empty(part.size, dtype=np.int32)
        column[by_tuple] = np.repeat(np.arange(new.size), np.diff(np.append(new, part.size)))
        tuples = {m: index[by_tuple[new]] for m, index in others.items()}
        indptr = (starts[first : last + 1] - starts[first]).astype(np.int32)
        counts = SparseCounts(indptr, column, corpus.values[part], last - first, int(new.size))
        yield corpus.coords[mode][order[starts[first:last]]], tuples, counts
        first = last
