"""What a shard of documents sends home after a visit: enough to improve phi and to judge the fit.

Statistics of shards add up to those of the whole. Sums of floats depend on their order, so the order is fixed: a tree
over the shards, in their order, of which every node has `FAN_IN` children. Whoever adds, and when, changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from polyseme.kernels import Array, Floats, SparseCounts, add_rows, take_rows, weighted_sum

FAN_IN = 4
"""children of a node of the tree; memory holds at most one sum for each of its log(shards) levels"""
_LEAST_SCALE = 1e-12


class Additive(Protocol):
    """Statistics of some documents that add up; `word_sums` is their large part, added in place where it can be."""

    @property
    def word_sums(self) -> Floats: ...
    def merge(self, other: Self) -> Self: ...
    def merge_into(self, memory: Floats, other: Self) -> Self: ...


Stats = TypeVar("Stats", bound=Additive)


@dataclass(frozen=True)
class SufficientStatistics:
    """Sums over the documents of a shard, each document with its weight."""

    word_sums: Floats
    """sum_d weight r A_d (words x width)"""
    log_operands: float
    """sum x log q, q the product of the operands"""
    log_likelihood: float
    """sum x log P(w|d); the same as log_operands unless the operands are not the factors themselves"""
    tokens: float
    """sum x"""
    topic_mass: Floats
    """sum_d n_d theta_dk (width numbers)"""
    doc_gain: float
    """what re-optimizing the document side could still gain, at most, in nats"""
    doc_log_density: float = 0.0
    """of the prior on the documents' weights, each document as often as it counts"""

    def merge(self, other: SufficientStatistics) -> SufficientStatistics:
        """The statistics of both shards together."""
        return self._plus(other, None)

    def merge_into(self, memory: Floats, other: SufficientStatistics) -> SufficientStatistics:
        """`merge`, with the word sums in `memory`, which may be those of this shard."""
        return self._plus(other, memory)

    def _plus(self, other: SufficientStatistics, memory: Floats | None) -> SufficientStatistics:
        return SufficientStatistics(
            np.add(self.word_sums, other.word_sums, out=memory),
            self.log_operands + other.log_operands,
            self.log_likelihood + other.log_likelihood,
            self.tokens + other.tokens,
            self.topic_mass + other.topic_mass,
            self.doc_gain + other.doc_gain,
            self.doc_log_density + other.doc_log_density,
        )


@dataclass(frozen=True)
class DocumentSums:
    """Expected numbers of documents, each document with its weight: what the words shown for a topic are ranked by."""

    word_sums: Floats
    """n_zw = sum of P(z|d,w) over the documents that contain w (words x width; columns behind the topics are unused)"""
    topics: Floats
    """D_z = sum_d P(z|d) over the documents that have a word of the model (K numbers)"""
    words: Floats
    """df_w, the number of documents that contain w"""

    def merge(self, other: DocumentSums) -> DocumentSums:
        """The sums over the documents of both."""
        return self._plus(other, None)

    def merge_into(self, memory: Floats, other: DocumentSums) -> DocumentSums:
        """`merge`, with the word sums in `memory`, which may be those of this object."""
        return self._plus(other, memory)

    def _plus(self, other: DocumentSums, memory: Floats | None) -> DocumentSums:
        return DocumentSums(
            np.add(self.word_sums, other.word_sums, out=memory),
            self.topics + other.topics,
            self.words + other.words,
        )


def document_sums(
    counts: SparseCounts,
    operands: tuple[Array, Array],
    doc_topic: Array,
    weights: Floats | None = None,
    *,
    n_threads: int = 1,
    memory: Floats | None = None,
) -> DocumentSums:
    """One sweep with every count set to 1: P(z|d,w) = A_dz B_wz / (A_d . B_w), summed over the documents.

    operands : A (documents x width) and B (words x width), topics first; one more column may be a background.
    doc_topic : P(z|d), documents x K.
    """
    A, B = operands
    present = counts.presence()
    sums = present.word_sums(A, B, n_threads=n_threads, weights=weights, memory=memory)
    sums *= B
    known = np.asarray((B > 0).any(axis=1))
    counted = counts.sums_by_row(known[counts.indices].astype(np.float32)) > 0
    per_document = np.where(counted, 1.0 if weights is None else weights, 0.0)
    topics = weighted_sum(per_document, doc_topic, n_threads=n_threads)
    return DocumentSums(sums, topics, present.word_totals(weights))


def merged(stats: Iterable[Stats]) -> Stats:
    """One node of the tree: its children added from left to right; none of them changes."""
    first, *others = stats
    if not others:
        return first
    total = first.merge(others[0])
    for other in others[1:]:
        total = total.merge_into(total.word_sums, other)
    return total


class ReductionTree(Generic[Stats]):
    """The same tree, fed with one shard after the other; it keeps what it is given, and adds in place.

    Allocating new pages is slow: `spare` gives the memory of word sums that were already added, for the next shard.
    """

    def __init__(self) -> None:
        self._levels: list[tuple[Stats, int] | None] = []
        self._spare: list[Floats] = []

    def spare(self) -> Floats | None:
        return self._spare.pop() if self._spare else None

    def add(self, stats: Stats, level: int = 0) -> None:
        if level == len(self._levels):
            self._levels.append(None)
        begun = self._levels[level]
        if begun is None:
            total, children = stats, 1
        else:
            total, children = begun[0].merge_into(begun[0].word_sums, stats), begun[1] + 1
            self._spare.append(stats.word_sums)
        self._levels[level] = (total, children)
        if children == FAN_IN:
            self._levels[level] = None
            self.add(total, level + 1)

    def total(self) -> Stats:
        """The root; the tree is used up."""
        level = 0
        while level < len(self._levels) - 1:
            begun, self._levels[level] = self._levels[level], None
            if begun is not None:
                self.add(begun[0], level + 1)
            level += 1
        root = self._levels[-1]
        assert root is not None
        return root[0]


class RunningMean:
    """A running mean of statistics: s <- (1 - rate) s + rate new, for s of words x width.

    s is kept as scale * sums, so that a step costs the rows that it touches, and not all of them.
    """

    def __init__(self, sums: Array, n_threads: int = 1) -> None:
        self._sums, self._scale, self._n_threads = sums, 1.0, n_threads
        self.totals: Floats = sums.sum(axis=0, dtype=np.float64)
        """sum over the words (width numbers)"""

    def step(self, rate: float, words: Array, B: Array, word_sums: Floats, n_topics: int, tokens: float) -> None:
        """new = B * word_sums / tokens of these words, which are all different, in the columns of the topics."""
        scale = self._scale * (1 - rate)
        if scale < _LEAST_SCALE:
            self._sums *= self._sums.dtype.type(scale)
            scale = 1.0
        self._scale = scale
        share = rate / tokens
        added = add_rows(self._sums, words, B, word_sums, n_topics, share / scale, n_threads=self._n_threads)
        self.totals = (1 - rate) * self.totals + share * added

    def shares(self, words: Array) -> Array:
        """s of these words, each column divided by its total over all words."""
        inverse = np.divide(self._scale, self.totals, out=np.zeros_like(self.totals), where=self.totals > 0)
        return take_rows(self._sums, words, inverse, n_threads=self._n_threads)

    def settled(self) -> Array:
        """s itself, with nothing put off; not a copy."""
        self._sums *= self._sums.dtype.type(self._scale)
        self._scale, self.totals = 1.0, self._sums.sum(axis=0, dtype=np.float64)
        return self._sums
