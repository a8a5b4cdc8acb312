"""Multiplicative updates of a loss: sums over all entries, and the minimum of the majorizer that these determine.

The sums are the value of the loss, and the numerators and denominators of the updates. What the entries with x = 0 add
(`Loss.zeros`) determines how sparse data are used:

- linear: sums of the factors, plus a correction at the non-zeros, by the compiled kernels;
- squared: Gram matrices of the factors, and products of the data with the factors;
- dense: blocks of rows become dense. A block has at least 64 rows, and about 262,144 entries if the rows are short.

Dense data are read in such blocks, too, except for the products of the squared loss. Blocks depend only on the shape,
and their sums are added in order, so results do not depend on the number of threads.

The minimum of the majorizer is the update of a factor. Without a constraint, an entry changes by t = (numerator /
denominator)^exponent. If the entries of a row (or a column) must have a given sum, the slope of the majorizer is minus
a multiplier m, the same for all entries of the row:

    denominator t^rise - numerator t^-fall = -m

The row's sum decreases in m. It is convex in m if fall = 0 and rise = 1, if rise = 0, or if both powers are 1, so that
Newton's method never passes the root when it starts where the sum is too large: at the largest m for which a single
entry is already the whole sum. If both powers are positive, both become 1, which only raises the majorizer: t^b / b <=
t^2 / 2 + const for 1 <= b <= 2, and -t^(b-1) / (b-1) <= -log t + const. If rise > 1, the sum is not convex, and m is
found by bisection.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from polyseme.kernels import (
    Array,
    Counts,
    Floats,
    ReciprocalSums,
    SparseCounts,
    Want,
    gram,
    map_in_threads,
    row_blocks,
    sum_in_order,
    times_ratio,
    weighted_sum,
    with_weights,
    without_negligible,
)
from polyseme.losses.base import Loss, Powers, Zeros
from polyseme.losses.entry_weights import EntryWeights
from polyseme.losses.penalized import Penalty

_BLOCK_NUMBERS, _BLOCK_ROWS = 1 << 18, 64
"""Size of a dense block: entries that fit in the cache, and rows, so that sums over words cost little in comparison."""
_LEAST_SHARE = 1e-12
"""q is at least this share of x, or of the mean of a row, so that ratios are finite."""
_EMPTY_FLOOR = 1e-24
"""Smallest q of an empty row."""


class Terms(NamedTuple):
    """Sums for the update of one factor (rows x width)."""

    numerators: Array
    denominators: Array


class LossSums:
    """Sums of a loss of counts, for factors A (documents x width) and B (words x width) with K columns in use.

    weights : weights of the documents in the sums for the words; None means one.
    entries : weights v of the entries. If they are given, the counts are v x.
    """

    def __init__(
        self, loss: Loss, counts: Counts, n_topics: int, *, n_threads: int, weights: Floats | None = None,
        entries: EntryWeights | None = None,
    ) -> None:  # fmt: skip
        self._loss, self._counts, self._entries = loss, counts, entries
        assert entries is None or loss.weighs_entries
        self._weights = weights
        self._n_topics, self._n_threads = n_topics, n_threads
        self._kept: ReciprocalSums | None = None
        self._row_constants: dict[int, Floats | None] = {}
        """`Loss.row_constants` of each block, by its first row."""
        self._linear = counts.is_sparse and loss.zeros is Zeros.LINEAR

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return self._counts.n_docs

    def values(self, A: Array, B: Array) -> Floats:
        """Return the loss of each document. The squared loss of dense data is summed entry by entry."""
        if self._entries is not None or self._linear or (self._counts.is_sparse and self._loss.zeros is Zeros.SQUARED):
            return self.docs(A, B)[0]
        return self._dense_docs(A, B, update=False)[0]

    def docs(self, A: Array, B: Array) -> tuple[Floats, Terms]:
        """Return the loss of each document, and the sums for the update of A."""
        counts, n_threads = self._counts, self._n_threads
        if self._entries is not None:
            return self._weighted_docs(self._entries, A, B)
        if self._linear:
            sparse, sums = counts.sparse(), weighted_sum(np.ones(len(B)), B, n_threads=n_threads)
            q = _products(sparse, A, B, n_threads)
            at_nonzeros = sparse.sums_by_row(self._loss.values(sparse.values, q) - q)
            losses = np.einsum("dk,k->d", A, sums, dtype=np.float64) + at_nonzeros
            return losses, self._linear_terms(sparse, q, B, sums, None)
        if self._loss.zeros is Zeros.SQUARED:
            products, G = counts.multiply(B, n_threads=n_threads), gram(B, n_threads=n_threads)
            terms = Terms(products, _times_gram(A, G, n_threads))
            cross, explained = (np.einsum("dk,dk->d", A, term, dtype=np.float64) for term in terms)
            return np.maximum(counts.squares - 2 * cross + explained, 0) / 2, terms
        return self._dense_docs(A, B, update=True)

    def words(self, A: Array, B: Array) -> Terms:
        """Return the sums for the update of B."""
        counts, n_threads, weights = self._counts, self._n_threads, self._weights
        if self._entries is not None and self._loss.is_likelihood:
            numerators = counts.sums(A, B, Want.WORDS, n_threads=n_threads, weights=weights).word_sums
            return Terms(numerators, self._entries.over_docs(A, weights, n_threads=n_threads))
        if self._entries is not None:
            numerators = counts.multiply_transpose(A, n_threads=n_threads, weights=weights)
            return Terms(numerators, self._entries.fitted_over_docs(A, B, weights, n_threads=n_threads))
        if self._linear:
            by_word = counts.sparse().transposed(None)
            sums = weighted_sum(np.ones(counts.n_docs) if weights is None else weights, A, n_threads=n_threads)
            scale = None if weights is None else weights[by_word.indices].astype(A.dtype)
            return self._linear_terms(by_word, _products(by_word, B, A, n_threads), A, sums, scale)
        if self._loss.zeros is Zeros.SQUARED:
            products = counts.multiply_transpose(A, n_threads=n_threads, weights=weights)
            return Terms(products, _times_gram(B, gram(A, weights, n_threads=n_threads), n_threads))
        K = self._n_topics
        if self._loss.compiled is not None:
            parts_of_blocks = (
                self._compiled(block).words(A[block], with_weights(A[block], weights, block), B, K, n_threads=n_threads)
                for block in self._compiled_blocks
            )
            terms = Terms(*next(parts_of_blocks))
            for part in parts_of_blocks:
                for sums, more in zip(terms, part, strict=True):
                    sums += more
            return terms
        topics = np.ascontiguousarray(B[:, :K].T)

        def one_block(block: slice) -> Array:
            a, x = A[block, :K], counts.dense_rows(block)
            ratios = self._loss.ratios(x, self._approximation(a, topics, block))
            weighted = with_weights(a, weights, block)
            return np.stack([ratio.T @ weighted for ratio in ratios])

        parts = map_in_threads(one_block, self._blocks, n_threads)
        return Terms(*(_widened(sums, B) for sums in sum_in_order(parts, (2, len(B), K))))

    def _weighted_docs(self, entries: EntryWeights, A: Array, B: Array) -> tuple[Floats, Terms]:
        """Return the loss of each document, and the sums for A, with weights of entries."""
        counts, n_threads = self._counts, self._n_threads
        if self._loss.is_likelihood:  # sum v (x log x - x) - y log q + v q
            row_sums, _, logs = counts.sums(A, B, Want.ROWS | Want.LOGS, n_threads=n_threads)
            terms = Terms(row_sums, entries.over_words(B, n_threads=n_threads))
            explained = np.einsum("dk,dk->d", A, terms.denominators, dtype=np.float64)
            return self.constants - logs + explained, terms
        products = counts.multiply(B, n_threads=n_threads)
        terms = Terms(products, entries.fitted_over_words(A, B, n_threads=n_threads))
        cross, explained = (np.einsum("dk,dk->d", A, term, dtype=np.float64) for term in terms)
        return np.maximum(self.constants - 2 * cross + explained, 0) / 2, terms

    @cached_property
    def constants(self) -> Floats:
        """Part of the weighted loss of each document that does not depend on the factors."""
        assert self._entries is not None
        y = self._counts.sparse()
        values = y.values.astype(np.float64)
        x = values / self._entries.at_counts(y)
        return y.sums_by_row(values * (np.log(x) - 1) if self._loss.is_likelihood else values * x)

    def _dense_docs(self, A: Array, B: Array, *, update: bool) -> tuple[Floats, Terms]:
        """Return the loss of each document and, with `update`, the sums for A, from blocks of dense rows."""
        K = self._n_topics
        if self._loss.compiled is not None:
            parts = [
                self._compiled(block).docs(A[block], B, K, n_threads=self._n_threads) for block in self._compiled_blocks
            ]
            losses, *sums_of_docs = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
            return losses, Terms(*sums_of_docs)
        topics, losses = np.ascontiguousarray(B[:, :K].T), np.empty(self._counts.n_docs)
        terms = Terms(np.zeros_like(A), np.zeros_like(A)) if update else Terms(A, A)

        def one_block(block: slice) -> None:
            x = self._counts.dense_rows(block)
            q = self._approximation(A[block, :K], topics, block)
            ratios = self._loss.ratios(x, q)
            if block.start not in self._row_constants:
                self._row_constants[block.start] = self._loss.row_constants(x)
            losses[block] = self._loss.row_values(x, q, ratios[1], self._row_constants[block.start])
            if update:
                for sums, ratio in zip(terms, ratios, strict=True):
                    sums[block, :K] = ratio @ topics.T

        for _ in map_in_threads(one_block, self._blocks, self._n_threads):
            pass
        return losses, terms

    def _approximation(self, a: Array, topics: Array, block: slice) -> Array:
        """Return q of a block of documents."""
        q = a @ topics
        return np.maximum(q, self._floors[block], out=q)

    def _linear_terms(self, counts: SparseCounts, q: Array, B: Array, sums: Floats, weights: Array | None) -> Terms:
        """Return the sums for the factor of the rows of `counts`, where B is the other factor, from q of the non-zeros.

        The ratio of a denominator is 1 at x = 0: all entries together add `sums`, and the non-zeros add the difference
        of their ratios from 1. `weights` multiply the non-zeros.
        """
        numerator, denominator = self._loss.ratios(counts.values, q)
        difference = denominator - 1
        if weights is not None:
            numerator, difference = numerator * weights, difference * weights
        denominators = np.broadcast_to(sums, (counts.n_docs, B.shape[1]))
        if difference.any():
            corrected = denominators + counts.multiply(B, n_threads=self._n_threads, values=difference)
            denominators = np.maximum(corrected, 0)  # only rounding makes them negative
        return Terms(counts.multiply(B, n_threads=self._n_threads, values=numerator), denominators)

    @cached_property
    def _compiled_blocks(self) -> list[slice]:
        """Blocks for the compiled sums, which have their own threads: all rows of dense data at once."""
        return self._blocks if self._counts.is_sparse else [slice(0, self._counts.n_docs)]

    def _compiled(self, block: slice) -> ReciprocalSums:
        """Return the compiled sums of a block; those of dense data are kept, with a copy of the data."""
        if self._kept is not None:
            return self._kept
        assert self._loss.compiled is not None
        sums = self._loss.compiled(self._counts.dense_rows(block), self._floors[block, 0])
        if not self._counts.is_sparse:
            self._kept = sums
        return sums

    @cached_property
    def _blocks(self) -> list[slice]:
        return row_blocks(self._counts.n_docs, self._counts.n_words, _BLOCK_NUMBERS, _BLOCK_ROWS)

    @cached_property
    def _floors(self) -> Array:
        """Smallest q of each row, as a column. It depends only on the row."""
        counts = self._counts
        means = counts.totals / counts.n_words
        floors = np.where(means > 0, _LEAST_SHARE * means, _EMPTY_FLOOR)
        return floors.astype(counts.dtype)[:, np.newaxis]


def _products(counts: SparseCounts, A: Array, B: Array, n_threads: int) -> Array:
    """Return q of the non-zeros, at least a tiny share of x."""
    q = counts.products(A, B, n_threads=n_threads)
    return np.maximum(q, counts.dtype.type(_LEAST_SHARE) * counts.values, out=q)


def _times_gram(factor: Array, G: Floats, n_threads: int) -> Array:
    """Return factor @ G, in the type of the factor."""
    product, G = np.empty_like(factor), G.astype(factor.dtype)

    def one_block(block: slice) -> None:
        product[block] = factor[block] @ G

    for _ in map_in_threads(one_block, row_blocks(*factor.shape), n_threads):
        pass
    return product


def _widened(sums: Floats, like: Array) -> Floats:
    """Return sums with columns of zeros up to the width of a factor."""
    wide = np.zeros(like.shape)
    wide[:, : sums.shape[1]] = sums
    return wide


# minimum of a majorizer


_NEWTON_STEPS, _BISECTIONS = 60, 50
_LEAST_CHANGE = 0.1
"""Smallest t where the minimum could be at t = 0, because an update cannot make a zero positive again."""
_PRECISION = 1e-14
"""Relative error of a sum at which Newton's method stops."""


def multiplied(
    factor: Array, terms: Terms, powers: Powers, *, penalty: Penalty | None = None, n_threads: int = 1
) -> Array:
    """Return the factor after a multiplicative update. An entry becomes zero if its denominator is zero."""
    if penalty is not None:
        change = _penalized_change(factor, terms, powers, penalty)
        return without_negligible(change * factor, factor.dtype)
    numerators, denominators = terms
    exponent = powers.exponent
    if exponent in (0.5, 1):
        return times_ratio(factor, numerators, denominators, exponent == 0.5, n_threads=n_threads)
    change = np.divide(numerators, denominators, out=np.zeros(factor.shape), where=denominators > 0)
    return without_negligible(change**exponent * factor, factor.dtype)


def with_penalty(products: Array, gram: Floats, penalty: Penalty) -> tuple[Array, Floats]:
    """Return p and G of f'Gf / 2 - p'f plus the penalty of f, which has the same form."""
    first, second = penalty.slopes(products.shape[1])
    return products - first.astype(products.dtype), gram + np.diag(second)


def _penalized_change(factor: Array, terms: Terms, powers: Powers, penalty: Penalty) -> Floats:
    """Return the root t of the slope of the majorizer with a penalty, D t^rise - N t^-fall + l1 + l2 f t.

    In u = log t, log (D t^rise + l1 + l2 f t) + fall u - log N is convex and increases, so that Newton's method never
    passes the root when it starts where none of the three terms alone is too small. Without a fall, l1 is subtracted
    from N.
    """
    N, D = (np.asarray(sums, dtype=np.float64) for sums in terms)
    l1, l2 = penalty.slopes(factor.shape[1])
    first, second = np.broadcast_to(l1, N.shape), l2 * factor
    rise, fall = powers
    if fall == 0:
        N, first = N - first, np.zeros(N.shape)
    least = _LEAST_CHANGE if fall == 0 else 0.0
    changes = (N > 0) & (factor > 0) & (D + first + second > 0)
    N, D, first, second = (array[changes] for array in (N, D, first, second))
    t = np.full(factor.shape, least)
    t[changes] = np.maximum(_penalized_root(N, D, first, second, rise, fall), least)
    return t


def _penalized_root(N: Floats, D: Floats, first: Floats, second: Floats, rise: float, fall: float) -> Floats:
    """Return the root of D t^rise + first + second t = N t^-fall, with positive N."""
    if rise == 1 and fall == 0:
        return N / (D + second)
    if fall == 1 and rise in (0, 1):
        linear, square = (first + D, second) if rise == 0 else (first, D + second)
        return 2 * N / (linear + np.sqrt(linear**2 + 4 * square * N))
    with np.errstate(divide="ignore", over="ignore"):
        limits = [np.log(N / D) / (rise + fall), np.log(N / second) / (1 + fall)]
        if fall > 0:
            limits.append(np.log(N / first) / fall)
    u = np.minimum.reduce(limits)
    for _ in range(_NEWTON_STEPS):
        rising, growing = D * np.exp(rise * u), second * np.exp(u)
        total = rising + first + growing
        step = (np.log(total / N) + fall * u) / ((rise * rising + growing) / total + fall)
        u = u - step
        if not (np.abs(step) > _PRECISION * np.maximum(np.abs(u), 1)).any():
            break
    return np.exp(u)


def constrained(factor: Array, terms: Terms, powers: Powers, totals: Floats) -> Array:
    """Return the factor (rows x width) after an update that keeps the sum of each row equal to its total.

    A row whose entries cannot change, or whose total is zero, stays as it is.
    """
    rows = np.flatnonzero((totals > 0) & ((factor > 0) & (terms.numerators > 0)).any(axis=1))
    f, goal = factor[rows].astype(np.float64), totals[rows, np.newaxis]
    # Padding and entries that are zero stay zero: their ratios are set to harmless numbers.
    live = f > 0
    N = np.where(live, terms.numerators[rows], 0.0)
    D = np.where(live, np.maximum(terms.denominators[rows], np.finfo(np.float64).tiny), 1.0)
    if powers.rise > 1:
        new = _by_bisection(f, N, D, powers.rise, goal)
    else:
        form = Powers(1.0, 1.0) if powers.rise > 0 and powers.fall > 0 else powers
        new = _by_newton(f, N, D, form, goal)
    sums = new.sum(axis=1, keepdims=True)
    good = np.isfinite(sums) & (sums > 0)
    updated = factor.copy()
    scaled = new * (goal / np.where(good, sums, 1))
    updated[rows] = np.where(good, without_negligible(scaled, factor.dtype), factor[rows])
    return updated


def _by_newton(f: Floats, N: Floats, D: Floats, powers: Powers, goal: Floats) -> Floats:
    """Return f t with the sums `goal`, where the sum is convex in the multiplier."""
    changes = (f > 0) & (N > 0)
    if powers.rise == 0:  # the multiplier may be near minus the smallest D, so it is measured from there
        D = np.where(changes, D - np.min(D, axis=1, keepdims=True, where=changes, initial=np.inf), 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        largest = goal / f  # t of an entry that is the whole sum, the largest t possible
        falling = N * largest**-powers.fall
        alone = falling - D * largest**powers.rise
    multiplier = np.max(alone, axis=1, keepdims=True, where=changes, initial=-np.inf)
    new = f
    for _ in range(_NEWTON_STEPS):
        t, slope = _change(N, D, multiplier, powers, falling)
        new = f * t
        excess = new.sum(axis=1, keepdims=True) - goal
        steepness = (f * slope).sum(axis=1, keepdims=True)
        step = np.divide(excess, steepness, out=np.zeros_like(excess), where=steepness > 0)
        moving = excess > _PRECISION * goal
        if not moving.any():
            break
        multiplier = multiplier + np.where(moving, step, 0)
    return new


def _change(N: Floats, D: Floats, multiplier: Floats, powers: Powers, least: Floats) -> tuple[Floats, Floats]:
    """Return t for a multiplier, and minus its derivative. `least` is the smallest possible D + m if rise = 0."""
    if powers.fall == 0:
        t = (N - multiplier) / D
        return np.maximum(t, _LEAST_CHANGE), np.where(t > _LEAST_CHANGE, 1 / D, 0)
    if powers.rise == 0:
        denominator = np.where(N > 0, np.maximum(D + multiplier, least), 1)
        t = (N / denominator) ** (1 / powers.fall)
        return t, t / (powers.fall * denominator)
    root = np.sqrt(multiplier**2 + 4 * D * N)
    positive = multiplier > 0
    t = np.where(positive, 2 * N, root - multiplier) / np.where(positive, root + multiplier, 2 * D)
    return t, np.divide(t, root, out=np.zeros_like(t), where=root > 0)


def _by_bisection(f: Floats, N: Floats, D: Floats, rise: float, goal: Floats) -> Floats:
    """Return f t with the sums `goal`, where t = ((N - m) / D)^(1 / rise)."""
    with np.errstate(divide="ignore", over="ignore"):
        alone = N - D * (goal / f) ** rise
    low = np.max(alone, axis=1, keepdims=True, where=f > 0, initial=-np.inf)
    high = np.max(N, axis=1, keepdims=True)  # the sum is at most a tenth of the goal there
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_small = (f * _root(N - middle, D, rise)).sum(axis=1, keepdims=True) < goal
        low, high = np.where(too_small, low, middle), np.where(too_small, middle, high)
    return f * _root(N - low, D, rise)


def _root(slope: Floats, D: Floats, rise: float) -> Floats:
    return np.maximum((np.maximum(slope, 0) / D) ** (1 / rise), _LEAST_CHANGE)
