"""PLSI-U: term matching with documents whose word frequencies a model has smoothed.

    P(w|d) = lambda x_dw / n_d + (1 - lambda) sum_z P(z|d) P(w|z),      score = cos(q g, P(.|d) g)

with g the weights of words (1 for tf, idf for tfidf). No array of documents x words is made: with Q = q g^2 the product
is lambda Q . x_d / n_d + (1 - lambda) (Q P(w|z)) . P(z|d), and the squared length of a document is
lambda^2 a_d + 2 lambda (1 - lambda) b_d + (1 - lambda)^2 c_d, where

    a = |x_d g|^2 / n_d^2,   b = sum_w g_w^2 (x_dw / n_d) sum_z P(z|d) P(w|z),   c = P(z|d)' G P(z|d)

and G = P(w|z)' g^2 P(w|z) is K x K. They are kept, so that lambda can be chosen with the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.kernels import Array, Floats, single_threaded_blas
from polyseme.retrieval.latent_scores import TopicSpace
from polyseme.retrieval.queries import own_words
from polyseme.retrieval.term_scores import TermScores, idf_weights, posted


@dataclass(frozen=True)
class SmoothedScores:
    """One model's smoothing of a corpus, for one weighting of words."""

    terms: TermScores
    space: TopicSpace
    weighting: str
    doc_topic: Array
    """P(z|d), K x documents, float32"""
    totals: Floats
    """n_d"""
    squares: Floats
    """a, b, c: 3 x documents"""

    @classmethod
    def of(cls, terms: TermScores, space: TopicSpace, counts: Any, weighting: str) -> SmoothedScores:
        sums = np.maximum(space.documents.sum(axis=0), np.finfo(np.float32).tiny)
        doc_topic = space.documents / sums
        totals = np.asarray(counts.sum(axis=1)).ravel()
        filled = np.maximum(totals, 1)
        squared = (idf_weights(terms, weighting) ** 2)[:, np.newaxis]
        topic_word = np.asarray(space.topic_word, dtype=np.float64)
        with single_threaded_blas():
            gram = topic_word.T @ (squared * topic_word)
            c = np.einsum("kd,kd->d", gram @ doc_topic, doc_topic, dtype=np.float64)
        b = np.einsum("dk,kd->d", np.asarray(counts @ (squared * topic_word)), doc_topic) / filled
        a = (terms.lengths[weighting] / filled) ** 2
        return cls(terms, space, weighting, doc_topic, totals, np.stack([a, b, c]))

    def parts(self, queries: Any, term_weight: float) -> tuple[Floats, Floats]:
        """(from the model, from the words themselves), queries x documents each; the score is their sum."""
        scale, weighted = self._scaled(queries, term_weight)
        words, compact = own_words(weighted)
        by_topic = (compact @ self.space.topic_word[words].astype(np.float64)).astype(np.float32)
        with single_threaded_blas():
            latent = (1 - term_weight) * scale * (by_topic @ self.doc_topic)
        counted = np.asarray((weighted @ self.terms.postings).toarray())
        return latent, term_weight * scale * counted / np.maximum(self.totals, 1)

    def word_parts(self, query: Any, document: int, term_weight: float) -> tuple[Array, Floats]:
        """The query's words, and what each adds to the score of a document, whether that contains it or not."""
        scale, weighted = self._scaled(query, term_weight)
        smoothed = self.space.topic_word[weighted.indices] @ self.doc_topic[:, document]
        own = posted(self.terms.postings, weighted.indices, document) / max(self.totals[document], 1)
        mixed = (1 - term_weight) * smoothed + term_weight * own
        return weighted.indices, scale[document] * weighted.data * mixed

    def _scaled(self, queries: Any, term_weight: float) -> tuple[Floats, Any]:
        """One over the documents' lengths, and the queries times g^2 over theirs."""
        mixture = np.array([term_weight**2, 2 * term_weight * (1 - term_weight), (1 - term_weight) ** 2])
        lengths = np.sqrt(np.maximum(mixture @ self.squares, 0))
        weights = idf_weights(self.terms, self.weighting)
        own = np.sqrt(np.asarray(queries.power(2) @ weights**2))
        data = (
            queries.data * weights[queries.indices] ** 2 / np.repeat(np.maximum(own, 1e-300), np.diff(queries.indptr))
        )
        weighted = type(queries)((data, queries.indices, queries.indptr), shape=queries.shape)
        return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0), weighted
