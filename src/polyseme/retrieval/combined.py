"""The default method "bm25+topics": BM25 first, topics as a complement.

With i_w = q_w idf_w for the words w of the query that occur in the corpus, I = sum_w i_w, and p(d) the sum of i_w over
those that document d contains,

    score(d) = bm25(d) + WEIGHT [p(d) + (I - p(d)) cos(F, P(z|d))]

bm25(d) + WEIGHT p(d) is the term part: a sum over the words that d contains. The rest is the latent part: the topics of
d replace a share of the words that it does not contain. F are the topics of the query: the mean of P(z|d) over the
FEEDBACK documents with the largest term parts, weighted by these. (The first documents describe a query better than its
few words folded in.) `similar_documents` takes P(z|d) of the given document for F.

Guarantee: a document that contains all words of the query is never overtaken by one with a lower bm25, because
p + (I - p) cos <= I, and it has I itself. A query of one word has the order of BM25. Without a model the score is
bm25(d). Ties are in the order of the corpus.

The latent part is computed for candidates only and is zero for other documents: the POOL documents with the largest
term parts, and the TYPICAL documents with the largest cosine to each of the LEADING topics of F. The last ones can
contain no word of the query at all. The guarantee holds for candidates and for others, because the latent part of a
document that has all words is zero anyway. The k best documents are the first k of any larger number of best ones.

A filter allows some documents only. Candidates and F are chosen among these, so that a filtered search is a search in
the allowed documents, except that idf and the mean length are those of the whole corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats
from polyseme.retrieval.queries import best_rows, distinct

WEIGHT = 0.2
FEEDBACK = 10
POOL = 200
LEADING = 3
TYPICAL = 100


class Ranking(NamedTuple):
    """The best documents for a query."""

    rows: Array
    """Documents, best first."""
    parts: dict[str, Floats]
    """Summands of their scores: "term", "latent" or both."""
    topics: Floats | None = None
    """F, the topics of the query, if the method has them."""


@dataclass(frozen=True)
class QueryTerms:
    """The words of a query in the corpus, and the documents that contain them."""

    impacts: Floats
    """bm25 of all documents."""
    covered: Floats
    """p of all documents."""
    total: float
    """I."""


def rank_combined(terms: QueryTerms, units: Any, k: int, allowed: Any = None, topics: Any = None) -> Ranking:
    """Return the k best documents.

    Parameters
    ----------
    terms : QueryTerms
        bm25 and p.
    units : array of shape (K, n_documents) or None
        P(z|d), scaled to length one; zeros for documents without words. None without a model.
    k : int
        Number of documents.
    allowed : array of bool, default=None
        The documents that may be found. None allows all.
    topics : array of shape (K,), default=None
        F. None computes it from the first documents.
    """
    term = terms.impacts if units is None else terms.impacts + WEIGHT * terms.covered
    if allowed is not None:
        term = np.where(allowed, term, 0)
    if units is None:
        best = best_rows(term, k)
        return Ranking(best, {"term": term[best]})
    latent = np.zeros(len(term))
    if term.any():
        first = best_rows(term, POOL)
        if topics is None:
            topics = feedback(units[:, first[:FEEDBACK]], term[first[:FEEDBACK]])
        rows, _ = distinct(np.concatenate([first, typical_documents(units, topics, allowed)]))
        latent[rows] = WEIGHT * (terms.total - terms.covered[rows]) * cosines(units[:, rows], topics)
    best = best_rows(term + latent, k)
    return Ranking(best, {"term": term[best], "latent": latent[best]}, topics)


def feedback(units: Array, weights: Floats) -> Floats:
    """Return F from the first documents (K x documents) and their term parts."""
    shares = units / np.maximum(units.sum(axis=0), np.finfo(np.float32).tiny)
    return np.asarray(shares @ weights / weights.sum())


def cosines(units: Array, topics: Floats) -> Floats:
    """Return cos(F, P(z|d)) of some documents, at most 1."""
    length = max(float(np.sqrt(topics @ topics)), np.finfo(float).tiny)
    return np.clip((topics / length) @ units, 0, 1)


def typical_documents(units: Array, topics: Floats, allowed: Any = None) -> Array:
    """Return the documents with the largest cosine to each of the leading topics of F."""
    leading = np.argsort(-topics, kind="stable")[:LEADING]
    found = [best_rows(units[z] if allowed is None else np.where(allowed, units[z], 0), TYPICAL) for z in leading]
    return np.concatenate(found)
