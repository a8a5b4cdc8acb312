"""Posting lists, and the rankings that use them: BM25 and the default method "bm25+topics".

The posting list of a word has the documents that contain it, with the counts and the impacts of the word. With the
notation of `polyseme.retrieval.terms`, the impact of word w in document d is the part of BM25 that does not depend on
the query,

    t_dw = x_dw / (x_dw + k1 (1 - b + b n_d / mean n)),        bm25(d) = sum_w q_w idf_w t_dw

and is stored as float32. The compiled functions add up the lists of a query for a range of documents at a time and keep
the best documents in a heap (`_native/retrieval/ranking.hpp`). Scores are float32. Ties are in the order of the corpus.

Every added document changes the mean length, and with it all impacts. Lists are therefore never extended: `Postings.of`
makes new ones in memory, and `StoredLists` makes them for a file, of some words at a time.

The default method (`rank_combined`) uses BM25 first, and topics as a complement. With i_w = q_w idf_w for the words
w of the query that occur in the corpus, I = sum_w i_w, and p(d) the sum of i_w over the words that document d contains,

    score(d) = bm25(d) + WEIGHT [p(d) + (I - p(d)) cos(F, P(z|d))]

bm25(d) + WEIGHT p(d) is the term part: a sum over the words that d contains. The rest is the latent part: the topics of
d replace a share of the words that it does not contain. F is the topic distribution of the query: the mean of P(z|d)
over the FEEDBACK documents with the largest term parts, weighted by these parts. (These documents describe a query
better than folding in its few words.) `similar_documents` uses P(z|d) of the given document as F.

Guarantee: a document that contains all words of the query never ranks below one with a lower bm25, because
p + (I - p) cos <= I, and the left side is I for a document that contains all words. For a query of one word the order
is that of BM25. Without a model the score is bm25(d). Ties are in the order of the corpus.

The latent part is computed for candidates and is zero for other documents. The candidates are the POOL documents with
the largest term parts, and the TYPICAL documents with the largest cosine to each of the LEADING topics of F. The
typical documents of each topic are stored; they may contain no word of the query at all. The guarantee holds for
candidates and for other documents, because the latent part of a document that contains all words is zero anyway. A
search for more documents does not change the first ones.

A filter allows only some documents. Candidates and F are chosen among the allowed documents, so a filtered search is a
search in these documents, except that idf and the mean length are those of the whole corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import InputError, ModelFileError
from polyseme.io.arrays import checked_rows
from polyseme.kernels import Array, Floats, SparseCounts, row_blocks
from polyseme.retrieval import _postings
from polyseme.retrieval.queries import are_columns, distinct

K1, B = 1.2, 0.75
"""Constants of BM25 (the defaults of Lucene)."""
MAX_DOCUMENTS = 2**31 - 1
LISTS_AT_ONCE = 1 << 24
"""Entries of posting lists that are in memory while a file is written, or those of one word."""
_ENTRIES_AT_ONCE = 1 << 22
_CODE_STEP = 16
"""Codes of a vector are padded to a multiple of this (kCodeStep in vectors.hpp)."""


class QueryWords(NamedTuple):
    """The words of a query. Those that no document contains are ignored."""

    rarity: Floats
    """idf_w of all words."""
    words: Array
    """Columns of the words (int32)."""
    values: Floats
    """q_w."""


@dataclass(frozen=True)
class Postings:
    """Posting lists of all words, one after the other, in memory or in a file."""

    indptr: Any
    """Start of each list and the end of the last one (int64)."""
    documents: Any
    """Documents of the lists, in increasing order within a list (int32)."""
    counts: Any
    """x_dw (float32, or uint8 if all are whole numbers up to 255)."""
    impacts: Any
    """t_dw (float32)."""
    n_docs: int
    path: str = ""
    """Name of the file, if the arrays are in a file. In this case each list is checked when it is first used."""
    _checked: Array = field(init=False, repr=False, compare=False)
    """Mask of the lists that need no further check."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_checked", np.full(len(self.indptr) - 1, not self.path))

    @classmethod
    def of(cls, counts: Any) -> tuple[Postings, Floats]:
        """Return the lists of counts (documents x words, CSR), and the lengths n_d of the documents.

        The columns of a row can be in any order and occur several times.
        """
        n_docs, n_words = counts.shape
        check_documents(n_docs)
        starts = np.zeros(n_words + 1, dtype=np.int64)
        _postings.count_entries(counts.indptr, counts.indices, counts.data, starts[1:])
        np.cumsum(starts, out=starts)
        totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        documents, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
        ends = starts[:-1].copy()
        _postings.append_entries(counts.indptr, counts.indices, counts.data, 0, starts, ends, documents, values)
        n = _postings.close_gaps(starts, ends, documents, values)
        documents, values, impacts = documents[:n], values[:n], np.empty(n, dtype=np.float32)
        _postings.compute_impacts(documents, values, penalties(totals, mean_length(totals)), impacts)
        return cls(starts, documents, values, impacts, n_docs), totals

    def frequencies(self) -> Array:
        """Return df_w, the number of documents that contain each word."""
        starts = self.indptr[:]
        sizes = np.diff(starts)
        if self.path and not (starts[0] == 0 and starts[-1] == len(self.documents) and (sizes >= 0).all()):
            raise self._damage("the bounds of the lists are inconsistent")
        return sizes

    def parts(self) -> Iterator[tuple[int, Array, Array, Floats]]:
        """Yield all entries in parts: the first word, then words (counted from the first), documents and counts."""
        starts = self.indptr[:]
        for first, last in _word_blocks(starts, _ENTRIES_AT_ONCE):
            part = slice(int(starts[first]), int(starts[last]))
            words = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            documents = self.documents[part]
            if self.path and documents.size and not (documents.min() >= 0 and documents.max() < self.n_docs):
                raise self._damage("a document does not exist")
            yield first, words, documents, np.asarray(self.counts[part], dtype=np.float64)

    def by_document(self) -> Any:
        """Return the counts (documents x words, CSR, float64), in memory."""
        import scipy.sparse as sp

        shape = (len(self.indptr) - 1, self.n_docs)
        values = np.asarray(self.counts[:], dtype=np.float64)
        return sp.csr_array((values, self.documents[:], self.indptr[:]), shape=shape).T.tocsr()

    def row(self, word: int) -> tuple[Array, Floats]:
        """Return the documents that contain a word, and its counts in them."""
        start, end = self._bounds(word)
        return self._documents(start, end), np.asarray(self.counts[start:end], dtype=np.float64)

    def best(self, query: QueryWords, bonus: float, k: int, allowed: Any = None) -> tuple[Array, Array]:
        """Return the k documents with the largest positive sums of i_w (t_dw + bonus) over words, and the sums."""
        mask = None if allowed is None else allowed.view(np.uint8)
        try:
            return _postings.rank(*self._arrays(query.words), *query, bonus, self.n_docs, k, mask)
        except ValueError as error:
            raise self._damage(str(error)) from None

    def combine(
        self,
        query: QueryWords,
        candidates: Array,
        sums: Array,
        complete: bool,
        others: Array,
        units: Any,
        topics: Array,
        k: int,
    ) -> tuple[Array, Floats, Floats]:
        """Return the k best documents of `candidates` and `others` with the term and the latent parts of their scores.

        The formula is that of the default method. The latent parts of `others` are zero. The first candidates are the
        best ones by their term parts `sums`; `complete` says whether no other document contains a word of the query.
        """
        known = distinct(candidates)[0]
        if known.size and not 0 <= known[0] <= known[-1] < self.n_docs:
            raise self._damage("a document does not exist")
        try:
            return _postings.combine(
                *self._arrays(query.words), *query, WEIGHT, candidates, sums, complete, others, known, units[known],
                topics, k,
            )  # fmt: skip
        except ValueError as error:
            raise self._damage(str(error)) from None

    def combined(
        self, query: QueryWords, feedback: Feedback, topics: Floats | None, k: int
    ) -> tuple[Array, Floats, Floats, Floats]:
        """Return the k best documents by the default method, the parts of their scores, and the topics of the query.

        The same as `best`, `Feedback` and `combine` in one compiled call, for topics in memory and all documents.
        """
        try:
            return _postings.rank_combined(
                *self._arrays(query.words), *query, feedback.units, feedback.typical, topics, WEIGHT, FEEDBACK, POOL,
                LEADING, k,
            )  # fmt: skip
        except ValueError as error:
            raise self._damage(str(error)) from None

    def _arrays(self, words: Array) -> tuple[Array, Array, Array]:
        """Check the lists of these words, and return the arrays of all lists."""
        if not self.path:
            return self.indptr, self.documents, self.impacts
        checked = self._checked
        for word in words[~checked[words]].tolist():
            start, end = self._bounds(word)
            _ = self._documents(start, end), self.impacts[start:end]
            checked[word] = True
        nothing = slice(0, 0)
        return self.indptr[:], checked_rows(self.documents, nothing), checked_rows(self.impacts, nothing)

    def _documents(self, start: int, end: int) -> Array:
        documents: Array = self.documents[start:end]
        if self.path and not are_columns(documents, self.n_docs):
            raise self._damage("the documents of a list do not increase")
        return documents

    def _bounds(self, word: int) -> tuple[int, int]:
        start, end = self.indptr[word : word + 2].tolist()
        if not 0 <= start <= end <= len(self.documents):
            raise self._damage("a list is outside the arrays")
        return start, end

    def _damage(self, problem: str) -> Exception:
        if not self.path:
            return InputError(f"The posting lists are not valid: {problem}.")
        return ModelFileError(f"{self.path} is damaged ({problem}): restore it, or remove it.")


@dataclass(frozen=True)
class StoredLists:
    """Posting lists of counts in files, made for some words at a time."""

    parts: Sequence[tuple[int, SparseCounts]]
    """The first document of each part, and the counts of the part by word (words x documents, float32)."""
    n_words: int
    penalties: Floats

    @cached_property
    def starts(self) -> Array:
        """Start of each list and the end of the last one."""
        sizes: Array = np.zeros(self.n_words, dtype=np.int64)
        for _, part in self.parts:
            sizes += np.diff(part.indptr)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])

    @cached_property
    def counts_type(self) -> np.dtype[Any]:
        """Type of the counts in a file: uint8 if it holds all of them exactly."""
        small = all(bool(((x <= 255) & (x == np.floor(x))).all()) for _, part in self.parts for x in [part.values])
        return np.dtype(np.uint8 if small else np.float32)

    def documents(self) -> Iterator[Array]:
        """Yield the documents of the lists."""
        return (documents for documents, _ in self._lists())

    def counts(self) -> Iterator[Array]:
        """Yield the counts of the lists."""
        return (counts.astype(self.counts_type, copy=False) for _, counts in self._lists())

    def impacts(self) -> Iterator[Array]:
        """Yield the impacts of the lists."""
        for documents, counts in self._lists():
            impacts = np.empty(len(documents), dtype=np.float32)
            _postings.compute_impacts(documents, counts, self.penalties, impacts)
            yield impacts

    def _lists(self) -> Iterator[tuple[Array, Array]]:
        """Yield the documents and the counts of the lists of some words."""
        for first, last in _word_blocks(self.starts, LISTS_AT_ONCE):
            starts = self.starts[first : last + 1] - self.starts[first]
            documents, counts = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
            ends = starts[:-1].copy()
            for start, part in self.parts:
                _postings.append_lists(
                    part.indptr, part.indices, part.values, first, start, starts, ends, documents, counts
                )
            yield documents, counts


def _word_blocks(starts: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of words whose lists have at most so many entries, or one word."""
    first, n_words = 0, len(starts) - 1
    while first < n_words:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n_words)
        yield first, last
        first = last


def check_documents(n_docs: int) -> None:
    """Raise InputError if an index cannot have so many documents."""
    if n_docs > MAX_DOCUMENTS:
        raise InputError(f"An index can have at most {MAX_DOCUMENTS:,} documents, got {n_docs:,}.")


def mean_length(lengths: Floats) -> float:
    """Return the mean of the lengths n_d of documents, or 1 if no document has words."""
    return float(lengths.mean()) if lengths.sum() > 0 else 1.0


def penalties(lengths: Floats, mean: float) -> Floats:
    """Return the summand of documents in the denominator of BM25, from their lengths n_d and the mean length."""
    return np.asarray(K1 * (1 - B + B * lengths / mean))


def best_scores(scores: Array, k: int, allowed: Any = None) -> tuple[Array, Array]:
    """Return the k documents with the largest positive scores (float32), and their scores."""
    return _postings.best_rows(scores, k, None if allowed is None else allowed.view(np.uint8))


@dataclass(frozen=True)
class VectorCodes:
    """Vectors in eight bits, to find those that are nearest to a query (vectors.hpp)."""

    codes: Array
    scales: Array
    errors: Array

    @classmethod
    def of(cls, units: Array) -> VectorCodes:
        """Encode vectors of length one or zero, the columns of `units` (float32)."""
        size, n = units.shape
        width = -(-size // _CODE_STEP) * _CODE_STEP
        codes = cls(np.empty((n, width), dtype=np.int8), *np.empty((2, n), dtype=np.float32))
        _postings.encode_vectors(units, codes.codes, codes.scales, codes.errors)
        return codes

    def nearest(self, units: Array, query: Array, k: int, allowed: Any = None) -> tuple[Array, Array]:
        """Return the k columns of `units` with the largest positive products with a query of length one.

        Also return the products, which are exact up to the rounding to float32.
        """
        mask = None if allowed is None else allowed.view(np.uint8)
        return _postings.nearest_vectors(self.codes, self.scales, self.errors, units, query, k, mask)


# the default method


WEIGHT = 0.2
FEEDBACK = 10
POOL = 200
LEADING = 3
TYPICAL = 100
_NUMBERS_AT_ONCE = 1 << 22
_TINY = 1e-30


class Ranking(NamedTuple):
    """The best documents for a query."""

    rows: Array
    """Documents, best first."""
    parts: dict[str, Floats]
    """Summands of their scores: "term", "latent" or both."""
    topics: Floats | None = None
    """F, the topics of the query, if the method has them."""


@dataclass(frozen=True)
class Feedback:
    """Topics of the documents, which give the topics of a query and its candidates."""

    units: Any
    """P(z|d), scaled to length one (documents x K, float32); zero for documents without words. `UnitRows` in a run."""
    typical: Any
    """The documents with the largest cosine to each topic, best first (K x at most TYPICAL, int32)."""

    def topics(self, rows: Array, weights: Array) -> Floats:
        """Return F from the first documents and their term parts."""
        units = self.units[rows]
        weights = weights / np.maximum(units.sum(axis=1), _TINY)
        topics = weights.astype(np.float64) @ units
        return np.asarray(topics / max(topics.sum(), _TINY))

    def candidates(self, topics: Floats, allowed: Array | None) -> Array:
        """Return the typical documents of the leading topics of F."""
        leading = np.argsort(-topics, kind="stable")[:LEADING]
        if allowed is None:
            documents = self.typical[leading][:, :TYPICAL].ravel()
            return documents[documents >= 0]
        return np.concatenate(typical_documents(self.units, leading, allowed))


def rank_combined(
    postings: Postings,
    query: QueryWords,
    feedback: Feedback | None,
    k: int,
    allowed: Array | None = None,
    topics: Floats | None = None,
) -> Ranking:
    """Return the k best documents by the default method.

    feedback : topics of the documents; None ranks by BM25 alone. allowed : mask of the documents that may be returned.
    topics : F; None computes it from the first documents.
    """
    if feedback is None:
        rows, sums = postings.best(query, 0.0, k, allowed)
        return Ranking(rows, {"term": sums})
    if allowed is None and isinstance(feedback.units, np.ndarray) and isinstance(feedback.typical, np.ndarray):
        rows, term, latent, topics = postings.combined(query, feedback, topics, k)
        return Ranking(rows, {"term": term, "latent": latent}, topics if topics.size else None)
    first, sums = postings.best(query, WEIGHT, max(k, POOL), allowed)
    if not len(first):
        return Ranking(first, {"term": sums, "latent": sums})
    if topics is None:
        topics = feedback.topics(first[:FEEDBACK], sums[:FEEDBACK])
    candidates, complete = np.concatenate((first[:POOL], feedback.candidates(topics, allowed))), len(first) < POOL
    unit = (topics / max(sqrt(topics @ topics), _TINY)).astype(np.float32)
    rows, term, latent = postings.combine(
        query, candidates, sums[:POOL], complete, first[POOL:], feedback.units, unit, k
    )
    return Ranking(rows, {"term": term, "latent": latent}, topics)


def typical_documents(units: Any, topics: Any, allowed: Array | None = None) -> list[Array]:
    """Return the TYPICAL documents with the largest cosine to each topic, best first, ties in corpus order."""
    best: list[tuple[Array, Array]] = [(np.empty(0, np.int32), np.empty(0, np.float32)) for _ in topics]
    for part in row_blocks(units.shape[0], units.shape[1], _NUMBERS_AT_ONCE):
        if allowed is not None:
            rows = (np.flatnonzero(allowed[part]) + part.start).astype(np.int32)
            block = units[rows]
        else:
            rows, block = np.arange(part.start, part.stop, dtype=np.int32), units[part]
        for i, z in enumerate(topics):
            chosen, scores = best_scores(np.ascontiguousarray(block[:, z]), TYPICAL)
            all_rows = np.concatenate([best[i][0], rows[chosen]])
            all_scores = np.concatenate([best[i][1], scores])
            order = np.argsort(-all_scores, kind="stable")[:TYPICAL]
            best[i] = all_rows[order], all_scores[order]
    return [rows for rows, _ in best]


def typical_table(units: Any) -> Array:
    """Return the typical documents of all topics (K x TYPICAL), with -1 where there are fewer."""
    table = np.full((units.shape[1], TYPICAL), -1, dtype=np.int32)
    for row, documents in zip(table, typical_documents(units, range(units.shape[1])), strict=True):
        row[: len(documents)] = documents
    return table
