"""Held-out data: a split of the tokens of every document, and masks that hide entries of a table of counts.

A mask hides zeros and non-zeros alike, as if they had not been observed. A fit on the other entries replaces the sums
of its factors by sums over the entries that are not hidden: over the words of a document, and over the documents of a
word. Setting the hidden counts to zero without this change biases the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import ndtri

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, check_sparse

_MAX_EXACT = 1000
"""Largest count whose split is exactly binomial."""
_OTHER = np.uint64(0xD1B54A32D192ED03)
"""Added to a hash to get another one."""


def split_tokens(counts: SparseCounts, seed: int, share: float = 0.5) -> tuple[Floats, Floats]:
    """Split the tokens of every document in two: (observed, held out), each with one number per non-zero.

    Every token is held out with probability `share`, independently of all others: of a count of n tokens a
    binomial(n, share) number. What is left of a count that is not an integer, x - floor(x), is held out as a whole with
    the same probability. Hashes of the seed, the word and the content of the whole document decide, so the split of a
    document does not depend on the other documents.
    """
    x = counts.values.astype(np.float64)
    keys = _keys(counts, x, seed)
    tokens = np.floor(x)
    rest = x - tokens
    held_out = _binomial(_uniform(keys), tokens, share)
    broken = np.flatnonzero(rest)
    held_out[broken] += np.where(_uniform(_mix(keys[broken] + _OTHER)) < share, rest[broken], 0.0)
    return x - held_out, held_out


def split_in_parts(counts: SparseCounts, n_parts: int, seed: int) -> Iterator[Floats]:
    """Yield `n_parts` parts of the tokens of every document, of nearly equal size. They sum to the counts."""
    rest = counts.values.astype(np.float64)
    for left in range(n_parts, 0, -1):
        part = np.zeros(rest.size)
        part[rest > 0] = split_tokens(counts.with_values(rest), seed + n_parts - left, 1 / left)[1]
        rest = rest - part
        yield part


class Mask(Protocol):
    """Set of hidden entries of a table of counts."""

    def hides(self, rows: Array, columns: Array) -> Array:
        """Return whether these entries are hidden."""

    def sums_over_words(self, words: Array) -> Floats:
        """Return the sum of words_wk over the hidden words of each document (documents x K)."""

    def sums_over_docs(self, docs: Array) -> Floats:
        """Return the sum of docs_dk over the documents in which each word is hidden (words x K)."""


class SparseMask:
    """Hidden entries given as a sparse matrix: its non-zeros are hidden."""

    def __init__(self, hidden: Any) -> None:
        pattern = sp.csr_array(check_sparse(hidden, "hidden"))
        pattern.sum_duplicates()
        pattern.eliminate_zeros()
        pattern.data = np.ones(pattern.nnz)
        self._pattern = pattern

    @property
    def shape(self) -> tuple[int, int]:
        return self._pattern.shape

    def hides(self, rows: Array, columns: Array) -> Array:
        return np.asarray(self._pattern[rows, columns]).ravel() > 0

    def sums_over_words(self, words: Array) -> Floats:
        return np.asarray(self._pattern @ words.astype(np.float64))

    def sums_over_docs(self, docs: Array) -> Floats:
        return np.asarray(self._pattern.T @ docs.astype(np.float64))


@dataclass(frozen=True)
class DiagonalMask:
    """Hidden entries on diagonals (Wold 1978): (d, w) is hidden if group(d) + group(w) = fold modulo n_groups.

    A document lacks 1 / n_groups of the words, and a word 1 / n_groups of the documents. The sums are computed from
    sums over groups, without a table of entries.

    References
    ----------
    S. Wold (1978). Cross-validatory estimation of the number of components in factor and principal components models.
    Technometrics 20(4), 397-405.
    """

    doc_groups: Array
    word_groups: Array
    n_groups: int
    fold: int

    def hides(self, rows: Array, columns: Array) -> Array:
        return np.asarray((self.doc_groups[rows] + self.word_groups[columns]) % self.n_groups == self.fold)

    def sums_over_words(self, words: Array) -> Floats:
        return self._sums(words, self.word_groups)[(self.fold - self.doc_groups) % self.n_groups]

    def sums_over_docs(self, docs: Array) -> Floats:
        return self._sums(docs, self.doc_groups)[(self.fold - self.word_groups) % self.n_groups]

    def _sums(self, factor: Array, groups: Array) -> Floats:
        return np.array([factor[groups == group].sum(axis=0, dtype=np.float64) for group in range(self.n_groups)])


def diagonal_masks(n_docs: int, n_words: int, n_folds: int, seed: int) -> list[DiagonalMask]:
    """Return `n_folds` masks that hide every entry exactly once. Groups are random and of nearly equal size."""
    if min(n_docs, n_words) < n_folds:
        raise InputError(
            f"{n_docs} documents of {n_words} words cannot be divided into {n_folds} folds of entries: use at most "
            f"{min(n_docs, n_words)} folds."
        )
    rng = np.random.default_rng(seed)
    docs, words = (rng.permutation(size) % n_folds for size in (n_docs, n_words))
    return [DiagonalMask(docs, words, n_folds, fold) for fold in range(n_folds)]


def split_hidden(counts: SparseCounts, mask: Mask) -> tuple[SparseCounts, SparseCounts]:
    """Return the counts of the visible entries, and those of the hidden entries."""
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    hidden = mask.hides(rows, counts.indices)
    visible = counts.with_values(np.where(hidden, 0, counts.values))
    return visible, counts.with_values(np.where(hidden, counts.values, 0))


def _keys(counts: SparseCounts, x: Floats, seed: int) -> npt.NDArray[np.uint64]:
    """Return a hash for each non-zero, of its word, the content of its document and the seed."""
    words = counts.indices.astype(np.uint64)
    content = _mix(words * np.uint64(0x9E3779B97F4A7C15) ^ x.view(np.uint64))
    document = np.zeros(counts.n_docs, dtype=np.uint64)
    lengths = np.diff(counts.indptr)
    filled = np.flatnonzero(lengths)
    if filled.size:
        document[filled] = np.add.reduceat(content, counts.indptr[filled])
    return np.asarray(_mix(np.repeat(_mix(document + np.uint64(seed)), lengths) ^ _mix(words)))


def _uniform(keys: npt.NDArray[np.uint64]) -> Floats:
    """Return a number in [0, 1) for each hash."""
    return np.asarray((keys >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _binomial(u: Floats, n: Floats, p: float) -> Floats:
    """Return the quantiles u of binomial(n, p). Above n = 1000 they are those of a normal distribution, rounded."""
    if p > 0.5:  # so that (1 - p)^n does not underflow
        return np.asarray(n - _binomial((1 - 2.0**-53) - u, n, 1 - p))  # a number in [0, 1) again
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


def _mix(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finalizer of splitmix64: every bit of the key changes about half of the bits of the result."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
