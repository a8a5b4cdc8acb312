"""Scores from the words that a query and a document share: tf, tfidf and bm25.

With x_dw the counts, q_w the query's, N documents and df_w of them with the word:

    tf      cos(q, x_d)
    tfidf   cos(q idf, x_d idf), idf_w = log((1 + N) / (1 + df_w)) + 1 (scikit-learn's TfidfTransformer)
    bm25    sum_w q_w log(1 + (N - df_w + 1/2) / (df_w + 1/2)) x / (x + k1 (1 - b + b n_d / mean n))

The last is BM25 as Lucene has it (its idf is never negative). Each is a product of the weighted query with a
words x documents matrix, times a number for each document; so the parts of the words add up to the score.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.retrieval.queries import row_of

WEIGHTINGS = ("tf", "tfidf", "bm25")
K1, B = 1.2, 0.75
"""BM25's usual constants (Lucene's defaults)"""


class TermScores:
    """Postings of a corpus: words x documents, so that a query reads the lists of its own words alone."""

    def __init__(self, postings: Any, bm25_values: Floats, idf: Floats, lengths: dict[str, Floats]) -> None:
        self.postings = postings
        """counts, words x documents, CSR, float64"""
        self.bm25_values = bm25_values
        """bm25's weight of each of the postings"""
        self.idf = idf
        self.lengths = lengths
        """{"tf": |x_d|, "tfidf": |x_d idf|}"""
        self._ones = np.ones(postings.shape[1])
        self._scales = {name: _inverse(values) for name, values in lengths.items()}
        self._bm25 = sp.csr_array((bm25_values, postings.indices, postings.indptr), shape=postings.shape)

    @classmethod
    def of(cls, counts: Any) -> TermScores:
        """The postings of counts (documents x words, canonical CSR, float64)."""
        n_docs, n_words = counts.shape
        postings = sp.csr_array(counts.T.tocsr())
        frequency = np.diff(postings.indptr)
        idf = np.log((1 + n_docs) / (1 + frequency)) + 1
        lengths = {name: _row_norms(counts, weights) for name, weights in (("tf", np.ones(n_words)), ("tfidf", idf))}
        totals = np.asarray(counts.sum(axis=1)).ravel()
        mean = totals.mean() if totals.sum() > 0 else 1.0
        penalty = K1 * (1 - B + B * totals / mean)
        rarity = np.log1p((n_docs - frequency + 0.5) / (frequency + 0.5))
        x = postings.data
        bm25 = np.repeat(rarity, frequency) * x / (x + penalty[postings.indices])
        return cls(postings, bm25, idf, lengths)

    def scores(self, queries: Any, weighting: str) -> Floats:
        """Queries x documents, for queries as counts (queries x words, CSR, float64)."""
        weighted = self._weighted(queries, weighting)
        return np.asarray((weighted.queries @ weighted.postings).toarray()) * weighted.scale

    def word_parts(self, query: Any, document: int, weighting: str) -> tuple[Array, Floats]:
        """The query's words, and what each adds to the document's score."""
        weighted = self._weighted(query, weighting)
        words = weighted.queries.indices
        values = posted(weighted.postings, words, document)
        return words, weighted.queries.data * values * weighted.scale[document]

    def _weighted(self, queries: Any, weighting: str) -> _Weighted:
        if weighting == "bm25":
            return _Weighted(queries, self._bm25, self._ones)
        if weighting not in self.lengths:
            raise InputError(f"A term score must be one of {', '.join(map(repr, WEIGHTINGS))}, got {weighting!r}.")
        weights = idf_weights(self, weighting)
        norms = np.repeat(_inverse(_row_norms(queries, weights)), np.diff(queries.indptr))
        data = queries.data * weights[queries.indices] ** 2 * norms
        return _Weighted(
            sp.csr_array((data, queries.indices, queries.indptr), shape=queries.shape),
            self.postings,
            self._scales[weighting],
        )


class _Weighted(NamedTuple):
    """score = scale * (queries @ postings)"""

    queries: Any
    postings: Any
    scale: Floats


def posted(postings: Any, words: Array, document: int) -> Floats:
    """A document's entries in the lists of some words; 0 where it is not in a list."""
    values = np.zeros(len(words))
    for i, word in enumerate(words):
        documents, entries = row_of(postings, word)
        place = int(np.searchsorted(documents, document))
        if place < len(documents) and documents[place] == document:
            values[i] = entries[place]
    return values


def idf_weights(terms: TermScores, weighting: str) -> Floats:
    """What multiplies a word's count in the vector space of `weighting`, tf or tfidf."""
    if weighting not in terms.lengths:
        raise InputError(f"The weights of words are {', '.join(map(repr, terms.lengths))}, got {weighting!r}.")
    return terms.idf if weighting == "tfidf" else np.ones_like(terms.idf)


def _row_norms(matrix: Any, weights: Floats) -> Floats:
    """Lengths of the rows of a CSR matrix whose columns are multiplied by weights."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = (matrix.data * weights[matrix.indices]) ** 2
    return np.sqrt(np.bincount(rows, squares, minlength=matrix.shape[0]))


def _inverse(lengths: Floats) -> Floats:
    """1 / lengths, and 0 where there is nothing."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
