"""Holding out tokens of every document, by the content alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from polyseme.kernels import Floats, SparseCounts


def split_tokens(counts: SparseCounts, seed: int, share: float = 0.5) -> tuple[Floats, Floats]:
    """Splits every document's tokens in two: (observed, held out), one number a non-zero each.

    Of a count x, floor(share x) tokens are held out, and of what is left one more (or the fractional rest, for counts
    below one) with the probability that makes the mean share x: decided by a hash of the seed, the word and the whole
    document's content. So the split of a document does not depend on the batch it comes in, and is defined for counts
    that are not whole.
    """
    x = counts.values.astype(np.float64)
    sure = np.floor(share * x)
    room = np.minimum(1.0, x - sure)
    chance = np.divide(share * x - sure, room, out=np.zeros_like(x), where=room > 0)
    held_out = sure + np.where(_uniform(counts, x, seed) < chance, room, 0.0)
    return x - held_out, held_out


def split_in_parts(counts: SparseCounts, n_parts: int, seed: int) -> Iterator[Floats]:
    """Every document's tokens in `n_parts` parts of nearly equal size, one after the other; they sum to the counts."""
    rest = counts.values.astype(np.float64)
    for left in range(n_parts, 0, -1):
        part = np.zeros(rest.size)
        part[rest > 0] = split_tokens(counts.with_values(rest), seed + n_parts - left, 1 / left)[1]
        rest = rest - part
        yield part


def _uniform(counts: SparseCounts, x: Floats, seed: int) -> Floats:
    """A number in [0, 1) for each non-zero, from its word, its document's content and the seed."""
    words = counts.indices.astype(np.uint64)
    content = _mix(words * np.uint64(0x9E3779B97F4A7C15) ^ x.view(np.uint64))
    document = np.zeros(counts.n_docs, dtype=np.uint64)
    lengths = np.diff(counts.indptr)
    filled = np.flatnonzero(lengths)
    if filled.size:
        document[filled] = np.add.reduceat(content, counts.indptr[filled])
    keys = np.repeat(_mix(document + np.uint64(seed)), lengths) ^ _mix(words)
    return np.asarray((_mix(keys) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _mix(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the key changes about half of the bits of the result."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
