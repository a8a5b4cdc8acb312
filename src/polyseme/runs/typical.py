"""Typical documents of topics.

Documents of a topic are ranked by the nats per token that the topic explains in them,

    sum_w n_dw P(z|d,w) log r_zw / n_d,    r_zw = [df_w P(w|z) / P(w) + PRIOR] / (df_w + PRIOR),

with the number df_w of documents that contain the word. The prior of r_zw = 1 keeps words of few documents, which a
topic may have from one document alone, from making this document the typical one.

Documents shorter than half the median length are left out, and so are near-duplicates of a listed document and copies
with equal counts. A document is listed for at most three topics: the topics that explain most of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import DocumentWeights, FittedTopics, TrainingDocuments, posterior_operands
from polyseme.core.shard import document_hashes, mixed_bits, sparse_counts
from polyseme.kernels import Array, Floats, SparseCounts, row_blocks
from polyseme.metrics.words import largest, word_amounts
from polyseme.runs.documents import Labels
from polyseme.utils import effective_threads

MAX_TOPICS = 3
"""Number of topics for which a document may be listed."""
MIN_RELATIVE_LENGTH = 0.5
"""Minimum length of a listed document, as a share of the median length."""
N_RANKED = 10
"""Documents of a topic that are always ranked, so that a shorter list is the beginning of a longer one."""
PRIOR = 20.0
"""Number of documents in which each word is taken to be as frequent as in all topics."""
_NUMBERS_PER_BLOCK, _LEAST_ROWS = 1 << 20, 64
_COPIES = 8
"""Number of temporary arrays as large as the counts of a block."""
_ROUNDING = 1e-12
"""Relative rounding error of a length, so that a document of exactly the minimum length is listed."""


class TopicDocuments(NamedTuple):
    """Result of `topic_documents`, with one entry for each topic."""

    fit: Floats
    """Mean weight of the topic in its own documents: sum_d P(d|z) P(z|d)."""
    documents: list[list[int]]
    """Rows of its documents, the best first; fewer if too few documents have the topic."""
    scores: list[list[float]]
    """Nats per token that the topic explains in these documents."""
    shares: Floats
    """Topics x labels: the sum of P(d|z) over the documents of each label."""


def topic_documents(
    fitted: FittedTopics,
    documents: TrainingDocuments,
    counts: Iterable[Any],
    n_documents: int,
    labels: Labels | None = None,
    groups: Array | None = None,
) -> TopicDocuments:
    """Return the fit, the documents and the label shares of each topic.

    documents : P(d) must be proportional to the number of tokens, so all sample weights must be equal.
    counts : documents x words, CSR, in one or more parts, in the order of the documents.
    groups : the row of the first document in each document's group of near-duplicates, of which only one is listed.
    """
    K = fitted.n_topics
    doc_weights = documents.doc_weights / documents.doc_weights.sum()
    weights, fit = np.zeros(K), np.zeros(K)
    by_label = np.zeros((K + 1, 0 if labels is None else len(labels.names)))
    for part in row_blocks(len(documents.doc_topic), K, _NUMBERS_PER_BLOCK, _LEAST_ROWS):
        theta = np.asarray(documents.doc_topic[part], dtype=np.float64)
        joint = np.column_stack([theta * doc_weights[part, np.newaxis], doc_weights[part]])
        weights += joint[:, :K].sum(axis=0)
        fit += (joint[:, :K] * theta).sum(axis=0)
        if labels is not None:
            for topic in range(K + 1):
                by_label[topic] += np.bincount(labels.numbers[part], joint[:, topic], by_label.shape[1])
    used = weights > 0
    scale = np.where(used, weights, 1.0)
    rows, scores = _best_documents(fitted, documents, counts, n_documents, groups)
    return TopicDocuments(
        np.where(used, fit / scale, 0.0),
        rows,
        scores,
        np.where(used[:, np.newaxis], by_label[:K] / scale[:, np.newaxis], by_label[K]),
    )


def _best_documents(
    fitted: FittedTopics, documents: TrainingDocuments, counts: Iterable[Any], n_documents: int, groups: Array | None
) -> tuple[list[list[int]], list[list[float]]]:
    """Return the best documents of each topic, and the nats per token that it explains in them."""
    K = fitted.n_topics
    if n_documents == 0:
        return [[] for _ in range(K)], [[] for _ in range(K)]
    ranked = max(n_documents, N_RANKED)
    # Other topics take at most ranked * K / MAX_TOPICS documents, so this many more leave enough for each topic.
    best = [_TopRows(ranked + ranked * K // MAX_TOPICS) for _ in range(K)]
    lengths = np.asarray(documents.doc_weights)
    min_length = MIN_RELATIVE_LENGTH * float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 0.0
    min_length *= 1 - _ROUNDING
    alike = None if groups is None else np.bincount(groups)[groups] > 1
    start, scorer = 0, DocumentScorer(fitted, documents)
    for part in counts:
        numbers = max(K, _COPIES * part.nnz // max(part.shape[0], 1))
        for block in row_blocks(part.shape[0], numbers, _NUMBERS_PER_BLOCK, _LEAST_ROWS):
            counted = sp.csr_array(part[block])
            rows = slice(start, start + counted.shape[0])
            scores = np.where((lengths[rows] >= min_length)[:, np.newaxis], scorer.scores(counted, rows), 0.0)
            hashes = document_hashes(sparse_counts(counted, np.dtype(np.float64)))
            if groups is not None and alike is not None:
                hashes = np.where(alike[rows], mixed_bits(groups[rows].astype(np.uint64)), hashes)
            for topic, top_rows in enumerate(best):
                top_rows.update(scores[:, topic], hashes, start)
            start = rows.stop
    return _assign_documents(best, ranked, n_documents)


class DocumentScorer:
    """Scorer of documents by the nats per token that each topic explains in them."""

    def __init__(self, fitted: FittedTopics, documents: TrainingDocuments) -> None:
        self._documents, self._inference = documents, fitted.inference
        self._dtype = np.dtype(np.float64 if fitted.topic_word.dtype == np.float64 else np.float32)
        self._topic_word = np.asarray(fitted.topic_word, dtype=self._dtype)
        n_topics, n_words = fitted.topic_word.shape
        _, B = self._operands(slice(0, 0), sparse_counts(sp.csr_array((0, n_words)), self._dtype))
        document_counts = word_amounts(fitted).words  # tokens if the model does not know in how many documents
        self._gains: Floats = np.empty((n_words, n_topics))
        """B_wz log r_zw, words x K, with the word operand B of P(z|d,w)."""
        for words in row_blocks(n_words, n_topics, _NUMBERS_PER_BLOCK, _LEAST_ROWS):
            phi = fitted.topic_word[:, words].T.astype(np.float64)
            p = fitted.unigram[words, np.newaxis]
            ratio = np.divide(phi, p, out=np.ones_like(phi), where=(phi > 0) & (p > 0))
            df = document_counts[words, np.newaxis]
            self._gains[words] = B[words, :n_topics] * np.log((df * ratio + PRIOR) / (df + PRIOR))

    def scores(self, counts: Any, rows: slice) -> Floats:
        """Return the scores, documents x K, of these rows with their counts (CSR); zeros for empty documents."""
        sparse = sparse_counts(counts, self._dtype)
        A, B = self._operands(rows, sparse)
        q = sparse.products(A, B, n_threads=effective_threads(None)).astype(np.float64)
        ratio = np.divide(sparse.values, q, out=np.zeros_like(q), where=q > 0)
        sums = sp.csr_array((ratio, sparse.indices, sparse.indptr), counts.shape) @ self._gains
        totals = np.maximum(sparse.totals, np.finfo(np.float64).tiny)
        return np.asarray(A[:, : sums.shape[1]] * sums / totals[:, np.newaxis])

    def _operands(self, rows: slice, counts: SparseCounts) -> tuple[Array, Array]:
        """Return the operands of P(z|d,w) for these documents."""
        doc_topic = np.asarray(self._documents.doc_topic[rows])
        weights = DocumentWeights(doc_topic, self._documents.background[rows], counts)
        operands = self._inference.operands(weights, self._topic_word)
        return posterior_operands(operands, self._inference.temperature)


def _assign_documents(best: list[_TopRows], ranked: int, n_documents: int) -> tuple[list[list[int]], list[list[float]]]:
    """Assign documents in order of their scores, at most MAX_TOPICS topics per document and `ranked` per topic."""
    pairs = sorted(
        (-value, topic, row)
        for topic, top_rows in enumerate(best)
        for value, row in zip(top_rows.values.tolist(), top_rows.rows.tolist(), strict=True)
    )
    documents: list[list[int]] = [[] for _ in best]
    scores: list[list[float]] = [[] for _ in best]
    taken: dict[int, int] = {}
    for value, topic, row in pairs:
        if len(documents[topic]) < ranked and taken.get(row, 0) < MAX_TOPICS:
            documents[topic].append(row)
            scores[topic].append(-value)
            taken[row] = taken.get(row, 0) + 1
    return [rows[:n_documents] for rows in documents], [values[:n_documents] for values in scores]


class _TopRows:
    """The rows with the largest positive values, in decreasing order; of rows with equal hashes only the first."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.values = np.empty(0)
        self.rows = np.empty(0, dtype=np.int64)
        self._hashes = np.empty(0, dtype=np.uint64)

    def update(self, values: Floats, hashes: Array, start: int) -> None:
        threshold = self.values[-1] if len(self.rows) == self._count else 0.0
        larger = np.flatnonzero(values > threshold)
        if not larger.size:
            return
        candidates = np.concatenate([self.values, values[larger]])
        rows = np.concatenate([self.rows, start + larger])
        keys = np.concatenate([self._hashes, hashes[larger]])
        order = np.array(largest(candidates, len(candidates)))
        order = order[np.sort(np.unique(keys[order], return_index=True)[1])][: self._count]
        self.values, self.rows, self._hashes = candidates[order], rows[order], keys[order]
