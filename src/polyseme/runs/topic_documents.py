"""Topics and their documents, some thousand documents at a time: fit, typical documents, shares of labels.

A document is typical of a topic that explains it well for its length: by the nats per token that the topic explains,
sum_w n_dw P(z|d,w) log[P(w|z) / P(w)] / n_d. Documents shorter than half the median are left out, of documents with
equal counts only the first is taken, and a document is typical of at most three topics: of those that explain most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.model import FixedBackground, Model
from polyseme.core.shard import sparse_counts
from polyseme.estimators.tables import largest
from polyseme.kernels import Array, Floats
from polyseme.kernels.threads import effective_threads

MOST_TOPICS = 3
"""that a document is typical of"""
LEAST_LENGTH = 0.5
"""of a typical document, as a share of the median length"""
RANKED = 10
"""documents of a topic that are chosen together; a list of fewer is the beginning of the same list"""
_NUMBERS_AT_ONCE = 1 << 20
_COPIES = 8
"""arrays of as many numbers as a block of documents has counts"""


class Labels(NamedTuple):
    """The label of each document by its number."""

    names: list[str]
    """sorted; "" for none"""
    numbers: Array
    """of each document"""

    @classmethod
    def of(cls, labels: Iterable[str | None]) -> Labels:
        """labels : one for each document; None and "" for none."""
        met: dict[str, int] = {}
        found = np.fromiter((met.setdefault(label or "", len(met)) for label in labels), dtype=np.int32)
        names = sorted(met)
        place = np.empty(len(names), dtype=np.int32)
        place[[met[name] for name in names]] = np.arange(len(names))
        return cls(names, place[found])


class TopicDocuments(NamedTuple):
    """Of each topic."""

    fit: Floats
    """how much of its own documents it carries: sum_d P(d|z) P(z|d)"""
    documents: list[list[int]]
    """its typical documents, the most typical first; fewer where too few have the topic"""
    scores: list[list[float]]
    """nats per token that the topic explains in these documents"""
    shares: Floats
    """topics x labels: the sum of P(d|z) over the documents of each label"""


class TopicModel(NamedTuple):
    """What explains the words of documents."""

    topic_word: Array
    """P(w|z), K x words"""
    unigram: Floats
    """P(w)"""
    doc_topic: Array
    """P(z|d), documents x K"""
    lengths: Floats
    """n_d, or anything proportional to it"""
    temperature: float = 1.0
    background: Floats | None = None
    """P(w|B)"""
    background_shares: Array | None = None
    """of each document, where there is a background"""

    @classmethod
    def of(cls, model: Any) -> TopicModel:
        """A fitted model with its training documents, which all have the same weight."""
        background = getattr(model, "background_", None)
        return cls(
            model.components_, model.unigram_, model.doc_topic_, model.doc_weights_,
            float(getattr(model, "temperature_", 1.0)), background,
            None if background is None else model.doc_background_,
        )  # fmt: skip


def topic_documents(
    model: TopicModel, counts: Iterable[Any], n_documents: int, labels: Labels | None = None
) -> TopicDocuments:
    """The fit, the typical documents and the labels of each topic.

    counts : documents x words, CSR, in one or more parts, in the order of the documents. Arrays of all documents have
    one number for each.
    """
    K = model.doc_topic.shape[1]
    doc_weights = model.lengths / model.lengths.sum()
    weights, fit = np.zeros(K), np.zeros(K)
    by_label = np.zeros((K + 1, 0 if labels is None else len(labels.names)))
    for part in _blocks(len(model.doc_topic), K):
        theta = np.asarray(model.doc_topic[part], dtype=np.float64)
        joint = np.column_stack([theta * doc_weights[part, np.newaxis], doc_weights[part]])
        weights += joint[:, :K].sum(axis=0)
        fit += (joint[:, :K] * theta).sum(axis=0)
        if labels is not None:
            for topic in range(K + 1):
                by_label[topic] += np.bincount(labels.numbers[part], joint[:, topic], by_label.shape[1])
    used = weights > 0
    scale = np.where(used, weights, 1.0)
    documents, scores = _typical_documents(model, counts, n_documents)
    return TopicDocuments(
        np.where(used, fit / scale, 0.0),
        documents,
        scores,
        np.where(used[:, np.newaxis], by_label[:K] / scale[:, np.newaxis], by_label[K]),
    )


def _typical_documents(
    model: TopicModel, counts: Iterable[Any], n_documents: int
) -> tuple[list[list[int]], list[list[float]]]:
    """The typical documents of each topic, and the nats per token that it explains in them."""
    K = model.doc_topic.shape[1]
    if n_documents == 0:
        return [[] for _ in range(K)], [[] for _ in range(K)]
    ranked = max(n_documents, RANKED)
    # At most ranked * K / MOST_TOPICS documents can be taken by other topics: of so many more there are enough left.
    best = [_Best(ranked + ranked * K // MOST_TOPICS) for _ in range(K)]
    lengths = np.asarray(model.lengths)
    least = LEAST_LENGTH * float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 0.0
    start, explainer = 0, Explainer(model)
    for part in counts:
        for block in _blocks(part.shape[0], max(K, _COPIES * part.nnz // max(part.shape[0], 1))):
            counted = sp.csr_array(part[block])
            rows = slice(start, start + counted.shape[0])
            scores = np.where((lengths[rows] >= least)[:, np.newaxis], explainer.scores(counted, rows), 0.0)
            hashes = row_hashes(counted)
            for topic, found in enumerate(best):
                found.offer(scores[:, topic], hashes, start)
            start = rows.stop
    return _shared_out(best, ranked, n_documents)


class Explainer:
    """Nats per token that each topic explains in documents."""

    def __init__(self, model: TopicModel) -> None:
        self._model = model
        self._dtype = np.dtype(np.float64 if model.topic_word.dtype == np.float64 else np.float32)
        self._topic_word = np.asarray(model.topic_word, dtype=self._dtype)
        self._gains: Floats = np.empty(model.topic_word.T.shape)
        """P(w|z)^beta log[P(w|z) / P(w)], words x K"""
        for words in _blocks(len(self._gains), len(model.topic_word)):
            phi = model.topic_word[:, words].T.astype(np.float64)
            p = model.unigram[words, np.newaxis]
            ratio = np.divide(phi, p, out=np.ones_like(phi), where=(phi > 0) & (p > 0))
            self._gains[words] = phi**model.temperature * np.log(ratio)

    def scores(self, counts: Any, rows: slice) -> Floats:
        """Documents x K, for the counts (CSR) of these rows of the corpus; zeros for an empty document."""
        model, sparse = self._model, sparse_counts(counts, self._dtype)
        doc_topic = np.asarray(model.doc_topic[rows])
        shares = np.zeros(len(doc_topic)) if model.background_shares is None else model.background_shares[rows]
        fixed = None if model.background is None else FixedBackground(0.0, model.background, False)
        A, B = Model(doc_topic.shape[1], background=fixed).token_operands(doc_topic, self._topic_word, shares)
        if model.temperature != 1.0:
            A, B = A**model.temperature, B**model.temperature
        q = sparse.products(A, B, n_threads=effective_threads(None)).astype(np.float64)
        ratio = np.divide(sparse.values, q, out=np.zeros_like(q), where=q > 0)
        sums = sp.csr_array((ratio, sparse.indices, sparse.indptr), counts.shape) @ self._gains
        totals = np.maximum(sparse.totals, np.finfo(np.float64).tiny)
        return np.asarray(A[:, : doc_topic.shape[1]] * sums / totals[:, np.newaxis])


def row_hashes(counts: Any) -> Array:
    """A number of 64 bits for each row (CSR, without duplicates), the same for rows with equal counts."""
    bits = np.asarray(counts.data, dtype=np.float64).view(np.uint64)
    mixed = counts.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + bits
    for multiplier in (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)):  # as splitmix64 mixes
        mixed = (mixed ^ (mixed >> np.uint64(30))) * multiplier
    mixed ^= mixed >> np.uint64(31)
    sums = np.zeros(counts.shape[0], dtype=np.uint64)
    filled = np.flatnonzero(np.diff(counts.indptr))
    if filled.size:
        sums[filled] = np.add.reduceat(mixed, counts.indptr[filled])
    return sums


def _blocks(n_rows: int, numbers_a_row: int) -> Iterator[slice]:
    """Some rows at a time."""
    rows_at_once = max(64, _NUMBERS_AT_ONCE // numbers_a_row)
    for start in range(0, n_rows, rows_at_once):
        yield slice(start, min(start + rows_at_once, n_rows))


def _shared_out(best: list[_Best], ranked: int, n_documents: int) -> tuple[list[list[int]], list[list[float]]]:
    """Each document to the topics that explain most of it, until it has MOST_TOPICS or the topic has enough."""
    pairs = sorted(
        (-value, topic, row)
        for topic, found in enumerate(best)
        for value, row in zip(found.values.tolist(), found.rows.tolist(), strict=True)
    )
    documents: list[list[int]] = [[] for _ in best]
    scores: list[list[float]] = [[] for _ in best]
    taken: dict[int, int] = {}
    for value, topic, row in pairs:
        if len(documents[topic]) < ranked and taken.get(row, 0) < MOST_TOPICS:
            documents[topic].append(row)
            scores[topic].append(-value)
            taken[row] = taken.get(row, 0) + 1
    return [rows[:n_documents] for rows in documents], [values[:n_documents] for values in scores]


class _Best:
    """The rows of the largest positive values offered, the largest first; of equal values or hashes the first row."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.values = np.empty(0)
        self.rows = np.empty(0, dtype=np.int64)
        self._hashes = np.empty(0, dtype=np.uint64)

    def offer(self, values: Floats, hashes: Array, start: int) -> None:
        least = self.values[-1] if len(self.rows) == self._count else 0.0
        near = np.flatnonzero(values > least)
        if not near.size:
            return
        candidates = np.concatenate([self.values, values[near]])
        rows = np.concatenate([self.rows, start + near])
        keys = np.concatenate([self._hashes, hashes[near]])
        order = np.array(largest(candidates, len(candidates)))
        order = order[np.sort(np.unique(keys[order], return_index=True)[1])][: self._count]
        self.values, self.rows, self._hashes = candidates[order], rows[order], keys[order]
