"""Term scores of documents: words that the query and the document share.

Notation: x_dw are the counts of the corpus, n_d the length of document d, q_w the counts of the query, N the number of
documents, and df_w the number of documents that contain word w.

    tf      cos(q, x_d)
    tfidf   cos(q idf, x_d idf) with idf_w = log((1 + N) / (1 + df_w)) + 1, as scikit-learn's TfidfTransformer
    bm25    sum_w q_w log(1 + (N - df_w + 1/2) / (df_w + 1/2)) x_dw / (x_dw + k1 (1 - b + b n_d / mean n))

BM25 is the variant of Lucene, whose idf is never negative. Each score is the product of a weighted query and a words x
documents matrix, times a factor for each document, so the contributions of the words add up to the score.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import (
    Array,
    Floats,
)
from polyseme.retrieval.postings import (
    Postings,
    QueryWords,
    mean_length,
    penalties,
)
from polyseme.retrieval.queries import SparseRow

WEIGHTINGS = ("tf", "tfidf", "bm25")
LSA_WEIGHTS = {"tf": "counts", "tfidf": "tf-idf"}


class TermScores:
    """Term scores, computed from posting lists, so that a query reads only the lists of its words."""

    def __init__(
        self, postings: Postings, totals: Any, lengths: dict[str, Any] | None = None, mean: float | None = None
    ) -> None:
        self.postings = postings
        self.totals = totals
        """n_d."""
        self.mean = mean_length(totals) if mean is None else mean
        """Mean of n_d."""
        self._lengths: dict[str, Any] = lengths or {}
        self._scales: dict[str, Floats] = {}

    @cached_property
    def frequencies(self) -> Array:
        """df_w, the number of documents that contain each word."""
        return self.postings.frequencies()

    @cached_property
    def idf(self) -> Floats:
        """The factor of each word in tfidf."""
        return np.asarray(np.log((1 + self.postings.n_docs) / (1 + self.frequencies)) + 1)

    @cached_property
    def rarity(self) -> Floats:
        """The factor of each word in bm25."""
        n_docs, frequencies = self.postings.n_docs, self.frequencies
        return np.asarray(np.log1p((n_docs - frequencies + 0.5) / (frequencies + 0.5)))

    @cached_property
    def word_totals(self) -> Floats:
        """Number of tokens of each word."""
        totals = np.zeros(len(self.frequencies))
        for first, words, _, x in self.postings.parts():
            sums = np.bincount(words, x)
            totals[first : first + len(sums)] += sums
        return totals

    def lengths(self, weighting: str) -> Floats:
        """Return the lengths of the documents: |x_d| for tf, |x_d idf| for tfidf."""
        if weighting not in self._lengths:
            squares = np.zeros(self.postings.n_docs)
            factors = self.idf**2 if weighting == "tfidf" else np.ones(len(self.frequencies))
            for first, words, documents, x in self.postings.parts():
                squares += np.bincount(documents, x**2 * factors[first + words], minlength=len(squares))
            self._lengths[weighting] = np.sqrt(squares)
        return np.asarray(self._lengths[weighting][:])

    def query_words(self, queries: Any, i: int) -> QueryWords:
        """Return the words of query i."""
        start, end = queries.indptr[i : i + 2].tolist()
        words = np.asarray(queries.indices[start:end], dtype=np.int32)
        return QueryWords(self.rarity, words, queries.data[start:end])

    def scores(self, queries: Any, weighting: str) -> Floats:
        """Return the scores (queries x documents) of queries given as counts (queries x words, CSR, float64)."""
        weights = self._query_weights(queries, weighting)
        scores = self._products(queries, weights, weighting)
        scores *= self._scale(weighting)
        return scores

    def query_impacts(self, query: Any, row: SparseRow, document: int) -> tuple[Array, Floats, Floats]:
        """Return the words of a query that occur in the corpus, their summands of bm25, and i_w."""
        known = self.frequencies[query.indices] > 0
        words = query.indices[known]
        weights = query.data[known] * self.rarity[words]
        x = values_of(row, words)
        return words, weights * x / (x + self._penalties(document)), weights

    def counted(self, queries: Any, weights: Floats) -> Floats:
        """Return the products of the queries, with `weights` as their values, and the counts (queries x documents)."""
        return self._products(queries, weights, "tf")

    def word_parts(self, query: Any, row: SparseRow, document: int, weighting: str) -> tuple[Array, Floats]:
        """Return the words of the query and their contributions to the score of a document, whose counts are `row`."""
        words = query.indices
        values = values_of(row, words)
        if weighting == "bm25":
            values = self.rarity[words] * values / (values + self._penalties(document))
        return words, self._query_weights(query, weighting) * values * self._scale(weighting)[document]

    def word_weights(self, words: Array, weighting: str) -> Floats:
        """Return the factors of the counts in the vector space of `weighting`: 1 for tf, idf for tfidf."""
        if weighting not in LSA_WEIGHTS:
            raise InputError(f"weighting must be one of {', '.join(map(repr, LSA_WEIGHTS))}, got {weighting!r}.")
        return np.asarray(self.idf[words]) if weighting == "tfidf" else np.ones(len(words))

    def _penalties(self, documents: Any) -> Floats:
        """Return the summand of documents in the denominator of bm25."""
        return penalties(self.totals[documents], self.mean)

    def _scale(self, weighting: str) -> Floats:
        """Return the factor of each document in its score."""
        if weighting not in self._scales:
            bm25 = weighting == "bm25"
            self._scales[weighting] = np.ones(self.postings.n_docs) if bm25 else inverse(self.lengths(weighting))
        return self._scales[weighting]

    def _query_weights(self, queries: Any, weighting: str) -> Floats:
        """Return the weights of the words of the queries, one for each entry of `queries`."""
        if weighting == "bm25":
            return np.asarray(queries.data)
        if weighting not in LSA_WEIGHTS:
            raise InputError(f"A term score must be one of {', '.join(map(repr, WEIGHTINGS))}, got {weighting!r}.")
        weights = self.word_weights(queries.indices, weighting)
        norms = sums_by_row(queries, (queries.data * weights) ** 2)
        return np.asarray(queries.data * weights**2 * np.repeat(inverse(np.sqrt(norms)), np.diff(queries.indptr)))

    def _list(self, word: int, weighting: str) -> SparseRow:
        """Return the documents that contain a word, and its weights in them: counts, or the summands of bm25."""
        documents, x = self.postings.row(word)
        if weighting == "bm25":
            x = self.rarity[word] * x / (x + self._penalties(documents))
        return SparseRow(documents, x)

    def _products(self, queries: Any, weights: Floats, weighting: str) -> Floats:
        """Return sums of posting lists (queries x documents). A list that several queries need is read once."""
        products = np.zeros((queries.shape[0], self.postings.n_docs))
        read = cache(lambda word: self._list(word, weighting))
        words = queries.indices.tolist()
        for i, product in enumerate(products):
            for place in range(*queries.indptr[i : i + 2].tolist()):
                documents, values = read(words[place])
                product[documents] += weights[place] * values
        return products


def values_of(row: SparseRow, words: Array) -> Floats:
    """Return the values of some words in a row; 0 for words that it does not contain."""
    values = np.zeros(len(words))
    positions = np.searchsorted(row.indices, words)
    inside = np.flatnonzero(positions < len(row.indices))
    present = inside[row.indices[positions[inside]] == words[inside]]
    values[present] = row.data[positions[present]]
    return values


def sums_by_row(rows: Any, values: Floats) -> Floats:
    """Return the sums of values, one for each entry, over the rows of a sparse matrix."""
    row_indices = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.asarray(np.bincount(row_indices, values, minlength=rows.shape[0]), dtype=np.float64)


def inverse(lengths: Floats) -> Floats:
    """Return 1 / lengths, and 0 for lengths of zero."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
