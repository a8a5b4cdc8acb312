"""Weights of documents that minimize a loss without a likelihood, with the topics fixed.

The squared loss of NMF is minimized by coordinate descent, every other one by majorization-minimization from uniform
weights, for each document separately. Words of probability zero under all topics are ignored; a document without other
words gets P(z).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyseme.core.fitted import DocumentWeights, NoLargeArrays, mean_operands
from polyseme.core.fold_in import select_known_words
from polyseme.core.model import Model
from polyseme.core.shard import Shard, sparse_counts
from polyseme.kernels import (
    FOLD_IN_STEPS,
    Array,
    Floats,
    SparseCounts,
    check_topics,
    gram,
    least_squares_rows,
    normalize_rows,
    padded,
    weighted_sum,
)
from polyseme.losses import Loss
from polyseme.losses.base import Zeros
from polyseme.losses.sums import LossSums
from polyseme.losses.updates import constrained, multiplied

_TOLERANCE = 2e-6
"""A document stops when a step changes at most this share of its weights."""
_FIRST_SIZE, _GROWTH, _CUT = 0.5, 1.1, 0.6
"""Size of the extrapolation of a document, and its changes after success and failure."""
_ENOUGH = {np.dtype(np.float32): 1e-9, np.dtype(np.float64): 1e-14}
"""Coordinate descent on a document stops when all its weights together gain at most this share of the loss."""


@dataclass(frozen=True, eq=False)
class LeastLoss(NoLargeArrays):
    """Inference by the minimum of a loss that is not minus a log-likelihood."""

    kind: ClassVar[str] = "loss"
    is_likelihood: ClassVar[bool] = False
    weighs_unknown: ClassVar[bool] = False
    temperature: ClassVar[float] = 1.0
    background: ClassVar[None] = None
    prior: ClassVar[None] = None
    topic_share: ClassVar[None] = None
    loss: Loss
    """What is minimized."""
    free_scale: bool
    """Whether the approximation of a document may have any sum (NMF), or has the sum of the document (PLSA)."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("factor",) if self.free_scale else ()

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int
    ) -> DocumentWeights:
        """Return P(z|d) of every row and, for a free scale, W as the parameter "factor"."""
        word_sums = topic_word.sum(axis=0)
        check_topics(word_sums)
        known = word_sums > 0
        known_counts, unseen_tokens = select_known_words(counts, known)
        used, topics = known_counts, topic_word
        if not known.all():
            used, topics = sparse_counts(known_counts.matrix()[:, known], counts.dtype), topic_word[:, known]
        self.loss.check_data(used)
        factor = self._factor(used, padded(topics.T, counts.dtype), len(topics), n_threads)
        doc_topic, sums = normalize_rows(factor), factor.sum(axis=1, dtype=np.float64)
        empty = ~(sums > 0)
        if empty.any():
            if topic_weights is None:
                total = float(sums.sum())
                uniform = np.full(len(topics), 1.0 / len(topics))
                topic_weights = weighted_sum(sums, doc_topic) / total if total > 0 else uniform
            doc_topic[empty] = topic_weights
        parameters = {"factor": factor} if self.free_scale else {}
        return DocumentWeights(doc_topic, np.zeros(counts.n_docs), known_counts, unseen_tokens, parameters=parameters)

    def operands(self, weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
        """Return operands whose products are the shares of the words in the approximation of a document."""
        return mean_operands(weights, topic_word)

    def _factor(self, counts: SparseCounts, B: Array, K: int, n_threads: int) -> Array:
        """Return W (documents x K) for fixed topics B (words x width)."""
        totals = counts.totals
        factor = padded(np.repeat(totals[:, np.newaxis] / K, K, axis=1), B.dtype)
        if self.free_scale and self.loss.zeros is Zeros.SQUARED:
            products, G = counts.multiply(B, n_threads=n_threads), gram(B, n_threads=n_threads)
            factor = least_squares_rows(
                factor, products, G, K, passes=FOLD_IN_STEPS, enough=_ENOUGH[B.dtype], n_threads=n_threads
            )
            return np.ascontiguousarray(factor[:, :K])
        rows = np.flatnonzero(totals > 0)
        factor[rows] = self._by_steps(counts, factor[rows], rows, totals, B, K, n_threads)
        return np.ascontiguousarray(factor[:, :K])

    def _by_steps(
        self, counts: SparseCounts, start: Array, rows: Array, totals: Floats, B: Array, K: int, n_threads: int
    ) -> Array:
        """Return W of some rows by majorization-minimization, with extrapolation for each row (see `Ascent`).

        A row stops when a step changes it by at most a small share. Rows that have stopped are no longer evaluated.
        """
        found, index = start.copy(), np.arange(rows.size)

        def evaluate(point: Array, index: Array) -> tuple[Floats, Array]:
            part = counts if index.size == counts.n_docs else counts.take(rows[index])
            values, terms = LossSums(self.loss, part, K, n_threads=n_threads).docs(point, B)
            if self.free_scale:
                return values, multiplied(point, terms, self.loss.powers)
            return values, constrained(point, terms, self.loss.powers, totals[rows[index]])

        point, last = start, start
        values, step = evaluate(point, index)
        size, plain = np.full(rows.size, _FIRST_SIZE), np.ones(rows.size, dtype=bool)
        for _ in range(FOLD_IN_STEPS):
            moving = np.abs(step - point).sum(axis=1, dtype=np.float64) > _TOLERANCE * point.sum(axis=1)
            found[index] = step
            if not moving.all():
                index, point, last, step = index[moving], point[moving], last[moving], step[moving]
                values, size, plain = values[moving], size[moving], plain[moving]
            if not index.size:
                break
            tried = self._extrapolated(step, last, np.where(plain, 0, size), totals[rows[index]])
            new_values, next_step = evaluate(tried, index)
            good = plain | (new_values <= values)
            size = np.where(good, np.where(plain, size, np.minimum(size * _GROWTH, 1)), size * _CUT)
            plain = ~good
            kept = good[:, np.newaxis]
            last = np.where(kept, step, last)
            point, step = np.where(kept, tried, point), np.where(kept, next_step, step)
            values = np.where(good, new_values, values)
        return found

    def _extrapolated(self, new: Array, old: Array, size: Floats, totals: Floats) -> Array:
        """Return the rows new + size (new - old), at least half of new, with their given sums."""
        rows = np.maximum(new + size[:, np.newaxis].astype(new.dtype) * (new - old), new / 2)
        if self.free_scale:
            return rows
        return rows * (totals / rows.sum(axis=1, dtype=np.float64))[:, np.newaxis].astype(new.dtype)


def fold_in_by_loss(model: Model, shard: Shard, phi: Array) -> Array:
    """Return the factor of the documents of a shard (documents x width) for fixed phi (words x width), as a start."""
    counts, topic_word = shard.by_doc, np.ascontiguousarray(phi[:, : model.n_topics].T)
    found = LeastLoss(model.loss, model.free_scale).weights(counts, topic_word, None, n_threads=shard.n_threads)
    factor = found.parameters["factor"] if model.free_scale else found.doc_topic * counts.totals[:, np.newaxis]
    return padded(factor, phi.dtype, model.n_columns)
