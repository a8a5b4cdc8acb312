"""In how many documents, or windows of text, the words of a topic stand together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, checked_sparse

_FLAGS_AT_ONCE = 1 << 25


@dataclass(frozen=True)
class TokenSequences:
    """Texts as the columns of their words, in their order, one text after the other."""

    tokens: Array
    """word numbers; -1 for a word outside the vocabulary, which still takes its place in a window"""
    indptr: Array
    """text d is tokens[indptr[d]:indptr[d + 1]]"""

    def __post_init__(self) -> None:
        tokens, indptr = np.asarray(self.tokens), np.asarray(self.indptr)
        if tokens.ndim != 1 or (tokens.size and (tokens.dtype.kind not in "iu" or tokens.min() < -1)):
            raise InputError("tokens must be one row of word numbers, -1 for words outside the vocabulary.")
        if (
            indptr.ndim != 1
            or indptr.size < 1
            or indptr[0] != 0
            or indptr[-1] != tokens.size
            or (np.diff(indptr) < 0).any()
        ):
            raise InputError(f"indptr must rise from 0 to the number of tokens, {tokens.size}.")


def token_sequences(texts: Iterable[Sequence[str]], vocabulary: Sequence[str]) -> TokenSequences:
    """Texts, each a sequence of words, as numbers: the place of each word in the vocabulary."""
    column = {word: number for number, word in enumerate(vocabulary)}
    lists = list(texts)
    if any(isinstance(text, str) for text in lists):
        raise InputError("Each text must be a list of words, not a string: split it first.")
    indptr = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in lists], out=indptr[1:])
    numbers = map(column.get, chain.from_iterable(lists), repeat(-1))
    return TokenSequences(np.fromiter(numbers, dtype=np.int32, count=int(indptr[-1])), indptr)


@dataclass(frozen=True)
class Cooccurrence:
    """In how many windows of a reference the words of each topic stand together."""

    together: Floats
    """topics x n x n: windows with both words; on the diagonal, with the word"""
    n_windows: int
    """in the reference"""
    reference: str
    """"documents" or "windows\""""
    window: int | None
    """tokens in a window; None for whole documents"""


def cooccurrence_in_documents(topic_words: Array, counts: Any) -> Cooccurrence:
    """Counted in the documents of a matrix of counts (documents x words, dense or sparse): boolean documents."""
    X = sp.csr_array(checked_sparse(counts, "counts") if sp.issparse(counts) else np.asarray(counts))
    topic_words = checked_topic_words(topic_words, X.shape[1])
    words, places = np.unique(topic_words, return_inverse=True)
    places = places.reshape(topic_words.shape)
    together = np.zeros((*topic_words.shape, topic_words.shape[1]))
    rows_at_once = max(64, _FLAGS_AT_ONCE // max(1, words.size))
    for start in range(0, X.shape[0] if words.size else 0, rows_at_once):
        bits = _presence(X[start : start + rows_at_once], words)
        for topic, numbers in enumerate(places):
            own = bits[numbers]
            together[topic] += _bits_set(own[:, np.newaxis] & own).sum(axis=2, dtype=np.int64)
    return Cooccurrence(together, int(X.shape[0]), "documents", None)


def _presence(X: sp.csr_array, words: Array) -> Array:
    """Words x documents / 64: a bit for each document, set if it has the word."""
    part = X[:, words]
    flags = np.zeros((words.size, -(-X.shape[0] // 64) * 64), dtype=bool)
    document = np.repeat(np.arange(X.shape[0]), np.diff(part.indptr))
    flags[part.indices, document] = part.data != 0
    return np.packbits(flags, axis=1).view(np.uint64)


def _bits_by_table(numbers: Array) -> Array:
    """The bits that are set in each number."""
    by_byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1, dtype=np.uint8)
    return by_byte[numbers[..., np.newaxis].view(np.uint8)].sum(axis=-1, dtype=np.uint8)


_bits_set = getattr(np, "bitwise_count", _bits_by_table)  # NumPy 1 has none


def cooccurrence_in_windows(topic_words: Array, texts: TokenSequences, window: int) -> Cooccurrence:
    """Counted in windows of `window` tokens, which move on by one token; a shorter text is one window.

    A word stands in an interval of windows around each of its tokens. Cut at the ends of these intervals, a text
    falls into pieces within which every window has the same words: their lengths are what is counted.
    """
    if window < 1:
        raise InputError(f"window must be at least 1 token, got {window}.")
    tokens, indptr = np.asarray(texts.tokens), np.asarray(texts.indptr)
    topic_words = checked_topic_words(topic_words, None)
    words, places = np.unique(topic_words, return_inverse=True)
    lengths = np.diff(indptr)
    windows = np.maximum(1, lengths - window + 1)
    before = np.concatenate([[0], np.cumsum(windows)])

    table = np.full(max(tokens.max(initial=0), words.max(initial=0)) + 2, -1, dtype=np.int64)
    table[words] = np.arange(words.size)
    number = table[tokens]  # a word outside, -1, meets the last entry, which is -1 too
    at = np.flatnonzero(number >= 0)
    at = at[np.argsort(number[at], kind="stable")]
    word = number[at]
    text = np.searchsorted(indptr, at, side="right") - 1
    place = at - indptr[text]
    first = before[text] + np.maximum(0, place - window + 1)
    last = before[text] + np.minimum(place, windows[text] - 1)
    again = np.flatnonzero(word[1:] == word[:-1]) + 1
    first[again] = np.maximum(first[again], last[again - 1] + 1)
    kept = first <= last
    first, end = first[kept], last[kept] + 1
    bounds = np.searchsorted(word[kept], np.arange(words.size + 1))

    together = np.zeros((*topic_words.shape, topic_words.shape[1]))
    for topic, numbers in enumerate(places.reshape(topic_words.shape)):
        parts = [slice(bounds[n], bounds[n + 1]) for n in numbers]
        together[topic] = _shared_lengths([first[part] for part in parts], [end[part] for part in parts])
    return Cooccurrence(together, int(before[-1]), "windows", window)


def _shared_lengths(firsts: list[Array], ends: list[Array]) -> Floats:
    """n x n: in how many places an interval of word i and one of word j overlap; a word's intervals do not."""
    n_words = len(firsts)
    if n_words == 0:
        return np.zeros((0, 0))
    sizes = [part.size for part in firsts]
    column = np.repeat(np.arange(n_words), sizes)
    points = np.concatenate([*firsts, *ends])
    order = np.argsort(points, kind="stable")
    change = np.zeros((points.size, n_words), dtype=np.int8)
    half = column.size
    change[np.arange(points.size), np.concatenate([column, column])[order]] = np.where(order < half, 1, -1)
    lengths = np.diff(points[order])
    active = np.cumsum(change, axis=0, dtype=np.int8)[:-1][lengths > 0].astype(np.float64)
    weighted = active * lengths[lengths > 0, np.newaxis]
    return np.asarray(weighted.T @ active)  # sums of whole numbers: exact in any order


def checked_topic_words(topic_words: Any, n_words: int | None) -> Array:
    """Topics x n numbers of words, below n_words if that is known."""
    topic_words = np.asarray(topic_words)
    if topic_words.ndim != 2 or (topic_words.size and topic_words.dtype.kind not in "iu"):
        raise InputError("topic_words must be a table of word numbers, topics x n: top_words makes one.")
    topic_words = topic_words.astype(np.int64)
    if topic_words.size and (topic_words.min() < 0 or (n_words is not None and topic_words.max() >= n_words)):
        limit = "" if n_words is None else f" and below the reference's {n_words} words"
        raise InputError(f"topic_words must be at least 0{limit}.")
    return topic_words
