"""Coherence: whether the top words of a topic occur together in a reference corpus.

All measures depend on the reference and on the window, so a report names both. P(i) and P(i,j) are the shares of the
windows (or documents) of the reference that contain word i, or both words, and e = 1e-12:

| measure | definition |
|---|---|
| "umass" | mean over i > j of log((P(i,j) + e) / P(j)), at most about 0; words in order, most probable first |
| "uci" | mean over pairs of the PMI, log((P(i,j) + e) / (P(i) P(j))) |
| "npmi" | mean over pairs of PMI / -log(P(i,j) + e): -1 if never together, 0 for chance, at most 1 |
| "c_v" | mean over words i of the cosine of v_i and sum_j v_j, where v_i are the NPMIs of i with the topic's words |

The measures are always defined. Pairs with a word that is not in the reference count as 0 (in UMass only the pairs that
are conditioned on this word). Words that occur in all windows occur together by chance, which counts as 0. A topic with
fewer than two words has coherence 0.

Röder, M., Both, A., and Hinneburg, A. (2015). Exploring the space of topic coherence measures. WSDM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, check_sparse, row_blocks
from polyseme.utils import word_names

WINDOWS = {"umass": None, "uci": 10, "npmi": 10, "c_v": 110}
"""Usual number of tokens in a window for each measure; None for whole documents."""
_EPSILON = 1e-12
_BLOCK_FLAGS = 1 << 25


@dataclass(frozen=True)
class CoherenceReport:
    """Coherence of topics, with its reference.

    Attributes
    ----------
    measure : str
        Name of the measure.
    topics : array of shape (K,)
        Coherence of each topic.
    mean : float
        Mean over the topics.
    reference : str
        "documents" or "windows".
    window : int or None
        Tokens in a window; None for whole documents.
    n_windows : int
        Number of windows in the reference.
    absent_words : int
        Number of top words, over all topics, that the reference does not contain.
    """

    measure: str
    topics: Floats
    mean: float
    reference: str
    window: int | None
    n_windows: int
    absent_words: int


def coherence(
    topic_words: Any, reference: Any, measure: str = "npmi", *, window: int | None = None, vocabulary: Any = None
) -> CoherenceReport:
    """Return the coherence of the top words of each topic.

    Parameters
    ----------
    topic_words : array-like of int or str of shape (K, n)
        Top words of each topic, most probable first, such as `[topic.words for topic in model.topics()]`; or their
        columns (see `top_words`).
    reference : array-like, sparse matrix, list of lists of str, or TokenSequences
        Counts (documents x words), whose documents are the windows, or texts, each a list of words.
    measure : {"umass", "uci", "npmi", "c_v"}, default="npmi"
        The measure. See the table in `polyseme.metrics.coherence`.
    window : int, default=None
        Tokens in a window, only for texts. None uses 10 for "uci" and "npmi", 110 for "c_v", and whole documents for
        "umass".
    vocabulary : sequence of str or fitted vectorizer, default=None
        The word of each column. Needed only if one of `topic_words` and `reference` has words and the other has
        columns.

    Returns
    -------
    CoherenceReport
        The coherence of each topic and their mean.

    References
    ----------
    - Röder, M., Both, A., and Hinneburg, A. (2015). Exploring the space of topic coherence measures. WSDM.

    Examples
    --------
    >>> from polyseme.metrics import coherence
    >>> texts = [["red", "wine", "and", "cheese"], ["cheese", "and", "bread"], ["guitar", "and", "drums"], ["drums"]]
    >>> coherence([["cheese", "bread"], ["cheese", "drums"]], texts).topics.round(2)
    array([ 0.5 , -0.95])
    """
    if measure not in WINDOWS:
        raise InputError(f"measure must be one of {', '.join(WINDOWS)}, got {measure!r}.")
    topic_words, reference = _in_columns(topic_words, reference, vocabulary)
    if not isinstance(reference, TokenSequences):
        if window is not None:
            raise InputError("window: counts have no word order. Pass TokenSequences as reference, or omit window.")
        return coherence_of(cooccurrence_in_documents(topic_words, reference), measure)
    window = WINDOWS[measure] if window is None else window
    if window is not None:
        return coherence_of(cooccurrence_in_windows(topic_words, reference, window), measure)
    longest = int(np.diff(reference.indptr).max(initial=1))
    counted = cooccurrence_in_windows(topic_words, reference, longest)
    return coherence_of(Cooccurrence(counted.together, counted.n_windows, "documents", None), measure)


def _in_columns(topic_words: Any, reference: Any, vocabulary: Any) -> tuple[Any, Any]:
    """Return the topics and the reference with words replaced by columns; words that it lacks get empty columns."""
    if hasattr(topic_words, "__array__"):  # iterating over a data frame would give the names of its columns
        topic_words = np.asarray(topic_words)
    if not hasattr(topic_words, "__iter__"):
        raise InputError(
            f"topic_words must be a list of words for each topic, got a {type(topic_words).__name__}: pass "
            "[topic.words for topic in model.topics()]."
        )
    of_words = _has_words(topic_words, "topic")
    of_texts = isinstance(reference, list | tuple) and _has_words(reference, "text")
    if not (of_words or of_texts):
        return topic_words, reference
    if vocabulary is None and not of_texts:
        raise InputError("topic_words are words, but the reference has columns: give their words as vocabulary.")
    if vocabulary is None and not of_words:
        raise InputError("topic_words are columns, but the reference has words: give words, or vocabulary.")
    names: list[Any] = []
    if vocabulary is not None:
        is_matrix = not of_texts and not isinstance(reference, TokenSequences)
        given = vocabulary.get_feature_names_out() if hasattr(vocabulary, "get_feature_names_out") else vocabulary
        names = word_names("vocabulary", given, np.shape(reference)[1] if is_matrix else len(given)).tolist()
    if of_words:
        if len({len(words) for words in topic_words}) > 1:
            raise InputError("topic_words must have the same number of words for each topic.")
        known = set(names)
        names += [word for word in dict.fromkeys(chain.from_iterable(topic_words)) if word not in known]
        columns = {word: column for column, word in enumerate(names)}
        topic_words = np.array([[columns[word] for word in words] for words in topic_words])
    if of_texts:
        return topic_words, token_sequences(reference, names)
    if not isinstance(reference, TokenSequences):
        reference = sp.csr_array(reference if sp.issparse(reference) else np.asarray(reference))
        reference.resize(reference.shape[0], len(names))
    return topic_words, reference


def _has_words(lists: Any, name: str) -> bool:
    """Return whether lists contain words, not numbers."""
    if any(isinstance(words, str) for words in lists):
        raise InputError(f"Each {name} must be a list of words, not a string: split it first.")
    return any(isinstance(word, str) for words in lists if np.iterable(words) for word in words)


@dataclass(frozen=True)
class TokenSequences:
    """Texts as sequences of columns of words, one text after the other."""

    tokens: Array
    """Columns of the words; -1 for a word outside the vocabulary, which still counts as a token of a window."""
    indptr: Array
    """Text d is tokens[indptr[d]:indptr[d + 1]]."""

    def __post_init__(self) -> None:
        tokens, indptr = np.asarray(self.tokens), np.asarray(self.indptr)
        if tokens.ndim != 1 or (tokens.size and (tokens.dtype.kind not in "iu" or tokens.min() < -1)):
            raise InputError(
                "tokens must be a one-dimensional array of column indices, -1 for words outside the vocabulary."
            )
        if (
            indptr.ndim != 1
            or indptr.size < 1
            or indptr[0] != 0
            or indptr[-1] != tokens.size
            or (np.diff(indptr) < 0).any()
        ):
            raise InputError(f"indptr must increase from 0 to the number of tokens, {tokens.size}.")


def token_sequences(texts: Iterable[Sequence[str]], vocabulary: Sequence[str]) -> TokenSequences:
    """Convert texts, each a sequence of words, to columns of the vocabulary; -1 for words outside it."""
    columns = {word: column for column, word in enumerate(vocabulary)}
    lists = list(texts)
    if any(isinstance(text, str) for text in lists):
        raise InputError("Each text must be a list of words, not a string: split it first.")
    indptr = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in lists], out=indptr[1:])
    tokens = map(columns.get, chain.from_iterable(lists), repeat(-1))
    return TokenSequences(np.fromiter(tokens, dtype=np.int32, count=int(indptr[-1])), indptr)


@dataclass(frozen=True)
class Cooccurrence:
    """Numbers of windows of a reference that contain two words of a topic."""

    together: Floats
    """Number of windows with both words (topics x words x words); on the diagonal, with the word."""
    n_windows: int
    """Number of windows in the reference."""
    reference: str
    """"documents" or "windows"."""
    window: int | None
    """Tokens in a window; None for whole documents."""


def coherence_of(counted: Cooccurrence, measure: str = "npmi") -> CoherenceReport:
    """Return the coherence for cooccurrences that are already counted."""
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


def cooccurrence_in_documents(topic_words: Array, counts: Any) -> Cooccurrence:
    """Count cooccurrences in the documents of a matrix of counts (documents x words, dense or sparse)."""
    X = sp.csr_array(check_sparse(counts, "counts") if sp.issparse(counts) else np.asarray(counts))
    topic_words = checked_topic_words(topic_words, X.shape[1])
    words, places = np.unique(topic_words, return_inverse=True)
    places = places.reshape(topic_words.shape)
    together = np.zeros((*topic_words.shape, topic_words.shape[1]))
    for part in row_blocks(X.shape[0] if words.size else 0, words.size, _BLOCK_FLAGS, least=64):
        bits = _presence(X[part], words)
        for topic, rows in enumerate(places):
            of_topic = bits[rows]
            together[topic] += _bits_set(of_topic[:, np.newaxis] & of_topic).sum(axis=2, dtype=np.int64)
    return Cooccurrence(together, int(X.shape[0]), "documents", None)


def cooccurrence_in_windows(topic_words: Array, texts: TokenSequences, window: int) -> Cooccurrence:
    """Count cooccurrences in windows of `window` tokens that move by one token; a shorter text is one window.

    A word is in an interval of windows around each of its tokens. The ends of these intervals divide a text into pieces
    in which all windows have the same words; the lengths of the pieces are summed.
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
    index = table[tokens]  # -1, a word outside the vocabulary, indexes the last entry, which is -1
    positions = np.flatnonzero(index >= 0)
    positions = positions[np.argsort(index[positions], kind="stable")]
    word = index[positions]
    text = np.searchsorted(indptr, positions, side="right") - 1
    place = positions - indptr[text]
    first = before[text] + np.maximum(0, place - window + 1)
    last = before[text] + np.minimum(place, windows[text] - 1)
    repeated = np.flatnonzero(word[1:] == word[:-1]) + 1
    first[repeated] = np.maximum(first[repeated], last[repeated - 1] + 1)
    nonempty = first <= last
    first, end = first[nonempty], last[nonempty] + 1
    bounds = np.searchsorted(word[nonempty], np.arange(words.size + 1))

    together = np.zeros((*topic_words.shape, topic_words.shape[1]))
    for topic, rows in enumerate(places.reshape(topic_words.shape)):
        parts = [slice(bounds[row], bounds[row + 1]) for row in rows]
        together[topic] = _shared_lengths([first[part] for part in parts], [end[part] for part in parts])
    return Cooccurrence(together, int(before[-1]), "windows", window)


def checked_topic_words(topic_words: Any, n_words: int | None) -> Array:
    """Return topic_words as a checked array (topics x n) of column indices, below `n_words` if it is given."""
    topic_words = np.asarray(topic_words)
    if topic_words.ndim != 2 or (topic_words.size and topic_words.dtype.kind not in "iu"):
        raise InputError("topic_words must be an array of column indices, topics x n, such as the result of top_words.")
    topic_words = topic_words.astype(np.int64)
    if topic_words.size and (topic_words.min() < 0 or (n_words is not None and topic_words.max() >= n_words)):
        limit = "" if n_words is None else f" and below the reference's {n_words} words"
        raise InputError(f"topic_words must be at least 0{limit}.")
    return topic_words


def _log_conditional(P: Floats, p: Floats) -> Floats:
    condition = np.broadcast_to(p[:, np.newaxis, :], P.shape)
    ratio = np.divide(P + _EPSILON, condition, out=np.ones_like(P), where=condition > 0)
    return np.asarray(np.log(ratio))


def _pmi(P: Floats, p: Floats) -> Floats:
    independent = p[:, :, np.newaxis] * p[:, np.newaxis, :]
    return np.asarray(np.log(np.divide(P + _EPSILON, independent, out=np.ones_like(P), where=independent > 0)))


def _npmi(P: Floats, p: Floats) -> Floats:
    self_information = -np.log(P + _EPSILON)
    return np.divide(_pmi(P, p), self_information, out=np.zeros_like(P), where=P < 1)


def _indirect_cosine(npmi: Floats) -> Floats:
    total = npmi.sum(axis=1)
    lengths = np.linalg.norm(npmi, axis=2) * np.linalg.norm(total, axis=1)[:, np.newaxis]
    products = np.einsum("kij,kj->ki", npmi, total)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).mean(axis=1)


def _presence(X: sp.csr_array, words: Array) -> Array:
    """Return an array (words x documents / 64) with one bit per document, which is set if it contains the word."""
    part = X[:, words]
    flags = np.zeros((words.size, -(-X.shape[0] // 64) * 64), dtype=bool)
    document = np.repeat(np.arange(X.shape[0]), np.diff(part.indptr))
    flags[part.indices, document] = part.data != 0
    return np.packbits(flags, axis=1).view(np.uint64)


def _bits_by_table(numbers: Array) -> Array:
    """Return the number of bits that are set in each integer."""
    by_byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1, dtype=np.uint8)
    return by_byte[numbers[..., np.newaxis].view(np.uint8)].sum(axis=-1, dtype=np.uint8)


_bits_set = getattr(np, "bitwise_count", _bits_by_table)  # NumPy 1 has no bitwise_count


def _shared_lengths(firsts: list[Array], ends: list[Array]) -> Floats:
    """Return the total overlap of the intervals of words i and j (n x n). Intervals of one word do not overlap."""
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
    return np.asarray(weighted.T @ active)  # sums of integers are exact in any order
