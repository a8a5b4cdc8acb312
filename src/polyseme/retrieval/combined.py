"""The default method "bm25+topics": BM25 first, topics as a complement.

With i_w = q_w idf_w for the words w of the query that occur in the corpus, I = sum_w i_w, and p(d) the sum of i_w over
those that document d contains,

    score(d) = bm25(d) + WEIGHT [p(d) + s (I - p(d)) cos(F, P(z|d))],    s = 1 - (1 - REST) m^4

bm25(d) + WEIGHT p(d) is the term part: a sum over the words that d contains. The rest is the latent part: the topics of
d replace a share of the words that it does not contain. m is the largest p(d) / I of a candidate: the better the words
of the query are found together, the less topics are needed, and the less they move what BM25 finds; if a document
contains all words, s is REST. F are the topics of the query: the mean of P(z|d) over the
FEEDBACK documents with the largest term parts, weighted by these. (The first documents describe a query better than its
few words folded in.) `similar_documents` takes P(z|d) of the given document for F.

Guarantee: a document that contains all words of the query is never overtaken by one with a lower bm25, because
p + s (I - p) cos <= I, and it has I itself. A query of one word has the order of BM25. Without a model the score is
bm25(d). Ties are in the order of the corpus.

The latent part is computed for candidates only and is zero for other documents: the POOL documents with the largest
term parts, and the TYPICAL documents with the largest cosine to each of the LEADING topics of F. The last ones, which
are stored for each topic, can contain no word of the query at all. The guarantee holds for candidates and for others,
because the latent part of a document that has all words is zero anyway. The k best documents are the first k of any
larger number of best ones.

A filter allows some documents only. Candidates and F are chosen among these, so that a filtered search is a search in
the allowed documents, except that idf and the mean length are those of the whole corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats
from polyseme.retrieval.postings import Postings, QueryWords, best_scores

WEIGHT = 0.25
REST = 0.5
FEEDBACK = 8
POOL = 100
LEADING = 3
TYPICAL = 50
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
    """Topics of the documents, from which those of a query and candidates are found."""

    units: Any
    """P(z|d), scaled to length one (documents x K, float32); zero for documents without words."""
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
            found = self.typical[leading][:, :TYPICAL].ravel()
            return found[found >= 0]
        return np.concatenate([typical_documents(self.units, [z], allowed)[0] for z in leading])


def rank_combined(
    postings: Postings,
    query: QueryWords,
    feedback: Feedback | None,
    k: int,
    allowed: Array | None = None,
    topics: Floats | None = None,
) -> Ranking:
    """Return the k best documents.

    Parameters
    ----------
    postings : Postings
        Lists of the words.
    query : QueryWords
        Words of the query.
    feedback : Feedback or None
        Topics of the documents. None without a model.
    k : int
        Number of documents.
    allowed : array of bool, default=None
        The documents that may be found. None allows all.
    topics : array of shape (K,), default=None
        F. None computes it from the first documents.
    """
    if feedback is None:
        rows, sums = postings.best(query, 0.0, k, allowed)
        return Ranking(rows, {"term": sums})
    first, sums = postings.best(query, WEIGHT, max(k, POOL), allowed)
    if not len(first):
        return Ranking(first, {"term": sums, "latent": sums})
    if topics is None:
        topics = feedback.topics(first[:FEEDBACK], sums[:FEEDBACK])
    candidates = np.concatenate((first[:POOL], feedback.candidates(topics, allowed)))
    unit = (topics / max(sqrt(topics @ topics), _TINY)).astype(np.float32)
    rows, term, latent = postings.combine(query, (WEIGHT, REST), candidates, first[POOL:], feedback.units, unit, k)
    return Ranking(rows, {"term": term, "latent": latent}, topics)


def typical_documents(units: Any, topics: Any, allowed: Array | None = None) -> list[Array]:
    """Return the TYPICAL documents with the largest cosine to each of some topics, best first, ties in their order."""
    n_docs = units.shape[0]
    best: list[tuple[Array, Array]] = [(np.empty(0, np.int32), np.empty(0, np.float32)) for _ in topics]
    step = max(1, _NUMBERS_AT_ONCE // max(1, units.shape[1]))
    for start in range(0, n_docs, step):
        block = units[start : start + step]
        if allowed is not None:
            here = np.flatnonzero(allowed[start : start + step])
            rows, block = (here + start).astype(np.int32), block[here]
        else:
            rows = np.arange(start, start + len(block), dtype=np.int32)
        for number, z in enumerate(topics):
            chosen, scores = best_scores(np.ascontiguousarray(block[:, z]), TYPICAL)
            all_rows = np.concatenate([best[number][0], rows[chosen]])
            all_scores = np.concatenate([best[number][1], scores])
            order = np.argsort(-all_scores, kind="stable")[:TYPICAL]
            best[number] = all_rows[order], all_scores[order]
    return [rows for rows, _ in best]


def typical_table(units: Any) -> Array:
    """Return the typical documents of all topics (K x TYPICAL), with -1 where there are fewer."""
    table = np.full((units.shape[1], TYPICAL), -1, dtype=np.int32)
    for row, found in zip(table, typical_documents(units, range(units.shape[1])), strict=True):
        row[: len(found)] = found
    return table
