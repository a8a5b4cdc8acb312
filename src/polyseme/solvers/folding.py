"""Folding in (Hofmann 1999; thesis ch. 4): topic weights of documents, with the topics fixed.

One routine gives `doc_topic_`, `fit_transform` and `transform`: from uniform weights, to convergence for each
document alone. Words that the topics do not know are left out; a document without known words gets P(z).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats, SparseCounts, padded, weighted_sum
from polyseme.model import Model

TOLERANCE = 1e-4
"""nats per token that any other weights could gain, at most, when a document stops (the true gap is far smaller)"""
MAX_STEPS = 1000


class FoldedIn(NamedTuple):
    """The documents' weights, and the counts they rest on."""

    doc_topic: Array
    """P(z|d), documents x K"""
    counts: SparseCounts
    """the counts without the unknown words"""
    unseen_tokens: float
    """how many tokens were left out"""


def fold_in(
    model: Model,
    counts: SparseCounts,
    topic_word: Array,
    topic_weights: Floats | None,
    *,
    n_threads: int,
    tol: float = TOLERANCE,
) -> FoldedIn:
    """Weights of every row of `counts` given phi = topic_word (K x words).

    `topic_weights` is P(z), for documents without known words; None takes it from the other documents, by their
    lengths.
    """
    known = topic_word.sum(axis=0) > 0
    kept, unseen_tokens = _without_words(counts, known)
    B = padded(model.operand(topic_word.T), counts.dtype)
    K = model.n_topics
    theta, _ = kept.fold_in(
        B, K, empty=np.full(K, 1.0 / K), tol=tol, max_iter=MAX_STEPS, n_threads=n_threads,
        temperature=model.temperature,
    )  # fmt: skip
    empty = np.diff(kept.indptr) == 0
    if empty.any():
        if topic_weights is None:
            totals = kept.totals
            topic_weights = weighted_sum(totals, theta) / totals.sum() if totals.sum() > 0 else np.full(K, 1.0 / K)
        theta[empty] = topic_weights
    return FoldedIn(theta, kept, unseen_tokens)


def _without_words(counts: SparseCounts, known: Array) -> tuple[SparseCounts, float]:
    """The counts of known words alone, and how many tokens that leaves out."""
    keep = known[counts.indices]
    if keep.all():
        return counts, 0.0
    return counts.with_values(np.where(keep, counts.values, 0)), float(counts.values[~keep].sum(dtype=np.float64))
