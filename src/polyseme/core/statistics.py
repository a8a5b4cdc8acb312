"""Sufficient statistics of shards of documents, their reduction, and a running mean for online solvers.

The statistics of a shard are all that the M-step of the words and the objective need of its documents. Those of a
corpus are the sums over its shards. Floating-point sums depend on their order, so the order is fixed: a tree over the
shards, in their order, in which every node has `FAN_IN` children. The result is the same in every bit, no matter which
worker adds which part, and when.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import numpy as np

from polyseme.kernels import Array, Floats, add_rows, take_rows

FAN_IN = 4
"""Number of children of a node of the reduction tree. Memory holds at most one sum per level."""
_MIN_SCALE = 1e-12
"""The scale of a running mean is multiplied into its sums when it falls below this, before it can underflow."""


@dataclass(frozen=True)
class Additive:
    """Base class of statistics that can be added, field by field."""

    word_sums: Floats
    """The only large array, whose memory `merge_into` reuses."""

    def merge(self, other: Self) -> Self:
        """Return the statistics of both shards together."""
        return self._plus(other, None)

    def merge_into(self, memory: Floats, other: Self) -> Self:
        """Return `merge(other)` with the word sums in `memory`, which may be the word sums of this object."""
        return self._plus(other, memory)

    def _plus(self, other: Self, memory: Floats | None) -> Self:
        others = vars(other)
        sums = {name: value + others[name] for name, value in vars(self).items() if name != "word_sums"}
        return replace(self, word_sums=np.add(self.word_sums, other.word_sums, out=memory), **sums)


Stats = TypeVar("Stats", bound=Additive)


@dataclass(frozen=True)
class SufficientStatistics(Additive):
    """Weighted sums over the documents of a shard, as computed by `core.model.e_step`."""

    word_sums: Floats
    """Sum of weight_d r A_d over the documents of each word, r = x / q (words x width)."""
    log_operands: float
    """Sum of x log q, where q is the product of the operands."""
    log_likelihood: float
    """Sum of x log P(w|d). Equal to `log_operands` if the operands are the factors themselves."""
    tokens: float
    """Sum of x."""
    topic_mass: Floats
    """Sum of n_d theta_dk over the documents, shape (width,)."""
    doc_gain: float
    """Upper bound, in nats, of what optimizing the document weights can still gain."""
    doc_log_density: float = 0.0
    """Log density of the prior on the document weights, each document times its weight."""


def merged(stats: Iterable[Stats]) -> Stats:
    """Return the sum of one node of the reduction tree: its children, added from left to right and not changed."""
    first, *others = stats
    if not others:
        return first
    total = first.merge(others[0])
    for other in others[1:]:
        total = total.merge_into(total.word_sums, other)
    return total


class ReductionTree(Generic[Stats]):
    """The reduction tree for shards that arrive one after the other. It adds in place to the statistics it is given.

    `spare` returns the buffer of word sums that were already added, because allocating new pages is slow. `buffers` are
    such buffers of an earlier tree; this tree takes from the list and returns to it.
    """

    def __init__(self, buffers: list[Floats] | None = None) -> None:
        self._levels: list[tuple[Stats, int] | None] = []
        self._spare: list[Floats] = [] if buffers is None else buffers

    def spare(self) -> Floats | None:
        """Return a buffer for the word sums of the next shard, or None if there is no free one."""
        return self._spare.pop() if self._spare else None

    def add(self, stats: Stats, level: int = 0) -> None:
        """Add the statistics of the next shard (`level` 0) or of a complete node of the level below."""
        if level == len(self._levels):
            self._levels.append(None)
        partial = self._levels[level]
        if partial is None:
            total, children = stats, 1
        else:
            total, children = partial[0].merge_into(partial[0].word_sums, stats), partial[1] + 1
            self._spare.append(stats.word_sums)
        self._levels[level] = (total, children)
        if children == FAN_IN:
            self._levels[level] = None
            self.add(total, level + 1)

    def total(self) -> Stats:
        """Return the sum over all shards. The tree cannot be used afterwards."""
        level = 0
        while level < len(self._levels) - 1:
            partial, self._levels[level] = self._levels[level], None
            if partial is not None:
                self.add(partial[0], level + 1)
            level += 1
        root = self._levels[-1]
        assert root is not None
        return root[0]


class RunningMean:
    """Running mean s <- (1 - rate) s + rate new of statistics of shape words x width.

    s is stored as scale * sums, so that a step changes only the rows of the words in its documents.
    """

    def __init__(self, sums: Array, n_threads: int = 1) -> None:
        self._sums, self._scale, self._n_threads = sums, 1.0, n_threads
        self.totals: Floats = sums.sum(axis=0, dtype=np.float64)
        """Sums of s over the words, shape (width,)."""

    def step(self, rate: float, words: Array, B: Array, word_sums: Floats, n_topics: int, tokens: float) -> None:
        """Update the mean with new = B * word_sums / tokens, in the columns of topics. No word may occur twice."""
        scale = self._scale * (1 - rate)
        if scale < _MIN_SCALE:
            self._sums *= self._sums.dtype.type(scale)
            scale = 1.0
        self._scale = scale
        share = rate / tokens
        added = add_rows(self._sums, words, B, word_sums, n_topics, share / scale, n_threads=self._n_threads)
        self.totals = (1 - rate) * self.totals + share * added

    def shares(self, words: Array) -> Array:
        """Return s of these words, each column divided by its sum over all words."""
        inverse = np.divide(self._scale, self.totals, out=np.zeros_like(self.totals), where=self.totals > 0)
        return take_rows(self._sums, words, inverse, n_threads=self._n_threads)

    def values(self, words: Array) -> Array:
        """Return s of these words."""
        return take_rows(self._sums, words, np.full_like(self.totals, self._scale), n_threads=self._n_threads)

    def apply_scale(self) -> Array:
        """Apply the scale to the stored sums and return s (not a copy)."""
        self._sums *= self._sums.dtype.type(self._scale)
        self._scale, self.totals = 1.0, self._sums.sum(axis=0, dtype=np.float64)
        return self._sums
