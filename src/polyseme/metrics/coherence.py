"""In how many documents, or windows of text, the words of a topic stand together.

Coherence: whether the top words of a topic stand together in a reference corpus.

All figures depend on the reference and on the window, so a report names both. With P the share of the reference's
windows (or documents) that have a word, or both words, and e = 1e-12 (Röder, Both and Hinneburg 2015):

"umass"  mean over i > j of log((P(i,j) + e) / P(j)): at most about 0; words in order, most probable first
"uci"    mean over pairs of the PMI, log((P(i,j) + e) / (P(i) P(j)))
"npmi"   mean over pairs of the NPMI, PMI / -log(P(i,j) + e): from -1 (never together) over 0 (as by chance) to 1
"c_v"    mean over words of the cosine between the word's NPMIs with all the topic's words, and their sum over words

Every case has a value. A word that the reference never has says nothing: its pairs count 0 (in UMass: those that are
conditioned on it). Words that stand in all windows are together as by chance, 0. A topic of fewer than two words has
coherence 0.
"""

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


WINDOWS = {"umass": None, "uci": 10, "npmi": 10, "c_v": 110}
"""tokens in a window, as usual for each measure; None for whole documents"""

_EPSILON = 1e-12


@dataclass(frozen=True)
class CoherenceReport:
    """The coherence of topics, and what it rests on."""

    measure: str
    topics: Floats
    """of each topic"""
    mean: float
    reference: str
    """"documents" or "windows\""""
    window: int | None
    """tokens in a window; None for whole documents"""
    n_windows: int
    """of the reference"""
    absent_words: int
    """top words that the reference never has, each topic's counted"""


def coherence(
    topic_words: Array, reference: Any, measure: str = "npmi", *, window: int | None = None
) -> CoherenceReport:
    """The coherence of each topic's top words (topics x n word numbers, most probable first: `top_words`).

    reference : counts (documents x words; whole documents are the windows), or TokenSequences, with windows of
        `window` tokens (default: 10 for uci and npmi, 110 for c_v, whole documents for umass).
    """
    if measure not in WINDOWS:
        raise InputError(f"measure must be one of {', '.join(WINDOWS)}, got {measure!r}.")
    if not isinstance(reference, TokenSequences):
        if window is not None:
            raise InputError("Counts have no order, so no window: give TokenSequences, or leave window out.")
        return coherence_of(cooccurrence_in_documents(topic_words, reference), measure)
    window = WINDOWS[measure] if window is None else window
    if window is not None:
        return coherence_of(cooccurrence_in_windows(topic_words, reference, window), measure)
    longest = int(np.diff(reference.indptr).max(initial=1))
    whole = cooccurrence_in_windows(topic_words, reference, longest)
    return coherence_of(Cooccurrence(whole.together, whole.n_windows, "documents", None), measure)


def coherence_of(counted: Cooccurrence, measure: str = "npmi") -> CoherenceReport:
    """The coherence of topics whose words have been counted: several measures of one counting."""
    if measure not in WINDOWS:
        raise InputError(f"measure must be one of {', '.join(WINDOWS)}, got {measure!r}.")
    n_topics, n_words = counted.together.shape[:2]
    P = counted.together / max(counted.n_windows, 1)
    p = np.einsum("kii->ki", P)
    if n_words < 2:
        values = np.zeros(n_topics)
    elif measure == "c_v":
        values = _indirect_cosine(_npmi(P, p))
    else:
        values = {"umass": _log_conditional, "uci": _pmi, "npmi": _npmi}[measure](P, p)
        below = np.tril_indices(n_words, -1)
        values = values[:, below[0], below[1]].mean(axis=1)
    mean = float(values.mean()) if n_topics else 0.0
    absent = int(np.count_nonzero(p == 0))
    return CoherenceReport(measure, values, mean, counted.reference, counted.window, counted.n_windows, absent)


def _log_conditional(P: Floats, p: Floats) -> Floats:
    condition = np.broadcast_to(p[:, np.newaxis, :], P.shape)
    ratio = np.divide(P + _EPSILON, condition, out=np.ones_like(P), where=condition > 0)
    return np.asarray(np.log(ratio))


def _pmi(P: Floats, p: Floats) -> Floats:
    apart = p[:, :, np.newaxis] * p[:, np.newaxis, :]
    return np.asarray(np.log(np.divide(P + _EPSILON, apart, out=np.ones_like(P), where=apart > 0)))


def _npmi(P: Floats, p: Floats) -> Floats:
    least = -np.log(P + _EPSILON)
    return np.divide(_pmi(P, p), least, out=np.zeros_like(P), where=P < 1)


def _indirect_cosine(npmi: Floats) -> Floats:
    whole = npmi.sum(axis=1)
    lengths = np.linalg.norm(npmi, axis=2) * np.linalg.norm(whole, axis=1)[:, np.newaxis]
    products = np.einsum("kij,kj->ki", npmi, whole)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).mean(axis=1)
