"""Documents in memory: kernel sweeps over their counts, sums over shards, samples of documents, held-out tokens.

The M-step of the words and the objective need only the sufficient statistics of a shard, not its documents. The
statistics of a corpus are the sums over its shards. Floating-point sums depend on their order, so the order is fixed: a
tree over the shards in which every node has `FAN_IN` children. The result has the same bits no matter which worker adds
which part, and when.

Hashes of the content of each document decide whether the document is sampled and which of its tokens are held out. So
the choice does not depend on the other documents, on their order or on the shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import ndtri

from polyseme.kernels import (
    Array,
    Counts,
    DenseCounts,
    Floats,
    SparseCounts,
    Sums,
    Want,
    check_sparse,
    inner,
    row_blocks,
)
from polyseme.losses.entry_weights import EntryWeights

_DENSE_NUMBERS_AT_ONCE = 1 << 22
"""Entries of a dense matrix that `row_batches` converts to CSR at a time."""
_HASHES_AT_ONCE = 1 << 16
"""Non-zeros that are hashed at a time."""
_MAX_EXACT = 1000
"""Largest count whose split is exactly binomial."""
_OTHER = np.uint64(0xD1B54A32D192ED03)
"""Added to a hash to derive a second one."""


class Shard:
    """Counts (documents x words) in memory, with a weight for each document (None: all weights are one).

    With weights v of the entries (`losses.entry_weights`), the counts are v x.
    """

    def __init__(
        self, counts: Counts, weights: Floats | None = None, n_threads: int = 1, entries: EntryWeights | None = None
    ) -> None:
        self.counts = counts
        self.entries = entries
        self.weights = weights
        self.n_threads = n_threads

    @property
    def n_docs(self) -> int:
        return self.counts.n_docs

    @property
    def n_words(self) -> int:
        return self.counts.n_words

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the counts and of the factors."""
        return self.counts.dtype

    @property
    def documents(self) -> float:
        """Number of documents, weighted."""
        return float(self.counts.n_docs if self.weights is None else self.weights.sum())

    @cached_property
    def totals(self) -> Floats:
        """n_d, the number of tokens of each document, without its weight."""
        return self.counts.totals

    @cached_property
    def weighted_totals(self) -> Floats:
        return self.totals if self.weights is None else self.totals * self.weights

    @cached_property
    def tokens(self) -> float:
        """N = sum_d weight_d n_d."""
        return float(self.weighted_totals.sum())

    @cached_property
    def word_totals(self) -> Floats:
        """n_w = sum_d weight_d x_dw."""
        return self.counts.word_totals(self.weights)

    @property
    def unigram(self) -> Floats:
        """P(w) = n_w / N."""
        return self.word_totals / self.word_totals.sum()

    @cached_property
    def by_doc(self) -> SparseCounts:
        """The counts as CSR, for solvers that update one row after the other."""
        return self.counts.sparse()

    @property
    def by_word(self) -> SparseCounts:
        """The transpose; each count is multiplied by the weight of its document."""
        return self.by_doc.transposed(self.weights)

    def release(self) -> None:
        """Free the transpose and other memory that only a fit needs."""
        if "by_doc" in self.__dict__:  # computed only if a solver used it
            self.__dict__.pop("by_doc").release()
        self.counts.release()

    def sums(self, A: Array, B: Array, want: Want = Want.ALL, *, memory: Floats | None = None) -> Sums:
        """Return the wanted sums of the kernel over all documents, the word sums in `memory` if given."""
        return self.counts.sums(A, B, want, n_threads=self.n_threads, weights=self.weights, memory=memory)

    def total_log(self, logs: Floats) -> float:
        """Return sum_d weight_d logs_d. Documents of weight zero are ignored, even if their log-likelihood is -inf."""
        if self.weights is None:
            return float(logs.sum())
        counted = self.weights > 0
        return inner(logs[counted], self.weights[counted])


def sparse_counts(X: Any, dtype: np.dtype[Any]) -> SparseCounts:
    """Return X as sorted CSR counts of `dtype` without duplicates or stored zeros. Copies only what has to change."""
    matrix = sp.csr_array(check_sparse(X))
    if matrix.indices.size > matrix.nnz:
        matrix.prune()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and matrix.data.min() <= 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    large = np.int64 in (matrix.indptr.dtype, matrix.indices.dtype) or max(matrix.shape) > np.iinfo(np.int32).max
    index = np.int64 if large else np.int32
    return SparseCounts(
        np.ascontiguousarray(matrix.indptr, dtype=index),
        np.ascontiguousarray(matrix.indices, dtype=index),
        np.ascontiguousarray(matrix.data, dtype=dtype),
        matrix.shape[0],
        matrix.shape[1],
    )


def as_counts(X: Any, dtype: np.dtype[Any]) -> Counts:
    """Return X as counts for the kernels: dense arrays stay dense, sparse ones become CSR."""
    if sp.issparse(X):
        return sparse_counts(X, dtype)
    return DenseCounts(np.ascontiguousarray(X, dtype=dtype))


def row_batches(X: Any, dtype: np.dtype[Any]) -> Iterator[SparseCounts]:
    """Yield X as CSR counts: all rows at once if X is sparse, blocks of rows if it is dense."""
    if sp.issparse(X):
        yield sparse_counts(X, dtype)
        return
    for rows in row_blocks(X.shape[0], X.shape[1], _DENSE_NUMBERS_AT_ONCE):
        yield sparse_counts(X[rows], dtype)


def without_words(X: Any, columns: Sequence[int] | Array) -> Any:
    """Return counts, CSR or dense, with zeros in these columns."""
    if not sp.issparse(X):
        X = np.array(X)
        X[:, columns] = 0
        return X
    X = sp.csr_array(X, copy=True)
    X.data[np.isin(X.indices, columns)] = 0
    X.eliminate_zeros()
    return X


FAN_IN = 4
"""Number of children of a node of the reduction tree. Memory holds at most one sum per level."""


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

    `spare` returns the buffer of word sums that were already added, because allocating new pages is slow. `buffers` is
    a list of free buffers that several trees share.
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


def split_tokens(counts: SparseCounts, seed: int, share: float = 0.5) -> tuple[Floats, Floats]:
    """Split the tokens of every document in two: (observed, held out), each with one number per non-zero.

    Every token is held out with probability `share`, independently of all others, so a count of n tokens loses a
    binomial(n, share) number. The fractional part of a count is held out as a whole with the same probability. Hashes
    of the seed, the word and the content of the document decide, so the split of a document does not depend on the
    other documents.
    """
    x = counts.values.astype(np.float64)
    keys = _keys(counts, seed)
    tokens = np.floor(x)
    rest = x - tokens
    held_out = _binomial(_uniform(keys), tokens, share)
    broken = np.flatnonzero(rest)
    held_out[broken] += np.where(_uniform(mixed_bits(keys[broken] + _OTHER)) < share, rest[broken], 0.0)
    return x - held_out, held_out


def split_in_parts(counts: SparseCounts, n_parts: int, seed: int) -> Iterator[Floats]:
    """Yield `n_parts` parts of the tokens of every document, of nearly equal size. They sum to the counts."""
    rest = counts.values.astype(np.float64)
    for left in range(n_parts, 0, -1):
        part = np.zeros(rest.size)
        part[rest > 0] = split_tokens(counts.with_values(rest), seed + n_parts - left, 1 / left)[1]
        rest = rest - part
        yield part


def sample_documents(counts: SparseCounts, most: int, allowed: Array | None = None) -> Array:
    """Return rows of documents with at most `most` non-zeros in total, but at least one document that is not empty.

    They are the documents with the smallest hashes of their content, sorted by hash, so that a sample does not depend
    on the order of the documents. `allowed` is a mask of the documents (None: all).
    """
    lengths = np.diff(counts.indptr)
    possible = np.flatnonzero(lengths if allowed is None else lengths * allowed)
    hashes = mixed_bits(document_hashes(counts))[possible]
    ordered = possible[np.argsort(hashes, kind="stable")]
    return ordered[: max(1, int(np.searchsorted(np.cumsum(lengths[ordered]), most, side="right")))]


def document_hashes(counts: SparseCounts) -> npt.NDArray[np.uint64]:
    """Return a hash of the words and counts of each document. Temporary arrays have a bounded size."""
    hashes = np.zeros(counts.n_docs, dtype=np.uint64)
    for rows, block in counts.blocks(_HASHES_AT_ONCE):
        bits = block.values.astype(np.float64).view(np.uint64)
        content = mixed_bits(block.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ bits)
        hashes[rows] = block.reduce_rows(np.add, content, np.uint64)
    return hashes


def mixed_bits(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finalizer of splitmix64: every bit of the key changes about half of the bits of the result."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _keys(counts: SparseCounts, seed: int) -> npt.NDArray[np.uint64]:
    """Return a hash for each non-zero, of its word, the content of its document and the seed."""
    documents = mixed_bits(document_hashes(counts) + np.uint64(seed))
    words = counts.indices.astype(np.uint64)
    return np.asarray(mixed_bits(np.repeat(documents, np.diff(counts.indptr)) ^ mixed_bits(words)))


def _uniform(keys: npt.NDArray[np.uint64]) -> Floats:
    """Return a number in [0, 1) for each hash."""
    return np.asarray((keys >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _binomial(u: Floats, n: Floats, p: float) -> Floats:
    """Return the quantiles u of binomial(n, p). Above n = 1000 they are those of a normal distribution, rounded."""
    if p > 0.5:  # so that (1 - p)^n does not underflow
        return np.asarray(n - _binomial((1 - 2.0**-53) - u, n, 1 - p))  # the argument stays in [0, 1)
    drawn = np.zeros(n.size)
    many = n > _MAX_EXACT
    if many.any():
        wanted = np.rint(n[many] * p + np.sqrt(n[many] * p * (1 - p)) * ndtri(u[many]))
        drawn[many] = np.clip(wanted, 0, n[many])
    open_ = np.flatnonzero(~many & (n > 0))
    probability = (1 - p) ** n[open_]
    left = u[open_] - probability
    k = 0
    while open_.size:
        # a quantile beyond n is a rounding error of the sum of probabilities
        going = (left >= 0) & (n[open_] > k)
        open_, probability, left = open_[going], probability[going], left[going]
        k += 1
        drawn[open_] = k
        probability = probability * ((n[open_] - k + 1) / k * (p / (1 - p)))
        left = left - probability
    return drawn
