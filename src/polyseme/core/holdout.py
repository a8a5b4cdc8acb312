"""Held-out data: a split of the tokens of every document, and folds of the entries of a table of counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from polyseme.core.shard import document_hashes, mix_bits
from polyseme.errors import InputError
from polyseme.kernels import Floats, SparseCounts
from polyseme.losses.entry_weights import DiagonalEntries

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
    held_out[broken] += np.where(_uniform(mix_bits(keys[broken] + _OTHER)) < share, rest[broken], 0.0)
    return x - held_out, held_out


def split_in_parts(counts: SparseCounts, n_parts: int, seed: int) -> Iterator[Floats]:
    """Yield `n_parts` parts of the tokens of every document, of nearly equal size. They sum to the counts."""
    rest = counts.values.astype(np.float64)
    for left in range(n_parts, 0, -1):
        part = np.zeros(rest.size)
        part[rest > 0] = split_tokens(counts.with_values(rest), seed + n_parts - left, 1 / left)[1]
        rest = rest - part
        yield part


def diagonal_folds(n_docs: int, n_words: int, n_folds: int, seed: int) -> list[DiagonalEntries]:
    """Return `n_folds` sets of entries, each entry in exactly one. Groups are random and of nearly equal size."""
    if min(n_docs, n_words) < n_folds:
        raise InputError(
            f"{n_docs} documents of {n_words} words cannot be divided into {n_folds} folds of entries: use at most "
            f"{min(n_docs, n_words)} folds."
        )
    rng = np.random.default_rng(seed)
    docs, words = (rng.permutation(size) % n_folds for size in (n_docs, n_words))
    return [DiagonalEntries(docs, words, n_folds, fold) for fold in range(n_folds)]


def _keys(counts: SparseCounts, x: Floats, seed: int) -> npt.NDArray[np.uint64]:
    """Return a hash for each non-zero, of its word, the content of its document and the seed."""
    documents = mix_bits(document_hashes(counts, x) + np.uint64(seed))
    words = counts.indices.astype(np.uint64)
    return np.asarray(mix_bits(np.repeat(documents, np.diff(counts.indptr)) ^ mix_bits(words)))


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
