"""Expected numbers of documents by topic and word, which the words shown for a topic are ranked by."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.stats import DocumentSums, document_sums


class WordDocuments:
    """Adds up `document_sums` over batches of the training documents, in their order."""

    def __init__(self, weights: Floats | None, n_threads: int) -> None:
        self._weights, self._n_threads = weights, n_threads
        self._rows = 0
        self._sums: DocumentSums | None = None

    def add(self, counts: SparseCounts, operands: tuple[Array, Array], doc_topic: Array) -> None:
        """operands : A and B, of which A_dz B_wz / (A_d . B_w) is P(z|d,w). doc_topic : P(z|d)."""
        rows = slice(self._rows, self._rows + counts.n_docs)
        weights = None if self._weights is None else self._weights[rows]
        more = document_sums(counts, operands, doc_topic, weights, n_threads=self._n_threads)
        self._sums = more if self._sums is None else self._sums.merge_into(self._sums.word_sums, more)
        self._rows = rows.stop

    def topic_words(self, n_topics: int) -> Array:
        """n_zw, topics x words, as float32, which is precise enough to rank words."""
        assert self._sums is not None
        return topic_words(self._sums, n_topics)

    def keep_in(self, estimator: Any) -> None:
        assert self._sums is not None
        keep_word_documents(estimator, self._sums)


def keep_word_documents(estimator: Any, sums: DocumentSums) -> None:
    """Sets word_documents_, topic_documents_ and document_frequency_."""
    estimator.word_documents_ = topic_words(sums, len(sums.topics))
    estimator.topic_documents_ = sums.topics
    estimator.document_frequency_ = sums.words


def topic_words(sums: DocumentSums, n_topics: int) -> Array:
    return np.ascontiguousarray(sums.word_sums[:, :n_topics].T, dtype=np.float32)


def tempered(operands: tuple[Array, Array], temperature: float) -> tuple[Array, Array]:
    """Operands of P(z|d,w) in a model of this temperature, from those of P(w|d)."""
    A, B = operands
    return (A, B) if temperature == 1.0 else (A**temperature, B**temperature)
