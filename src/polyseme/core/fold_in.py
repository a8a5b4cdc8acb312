"""Folding in (Hofmann 1999; thesis ch. 4): topic weights of documents, with the topics fixed.

One routine gives `doc_topic_`, `fit_transform` and `transform`: from uniform weights, to convergence for each
document alone. Words that nothing in the model can write are left out; a document without other words gets P(z).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polyseme.core.model import Model, improve_docs, restore_support
from polyseme.core.shard import Shard
from polyseme.errors import UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, check_topics, padded, weighted_sum

TOLERANCE = 1e-4
"""nats per token that any other weights could gain, at most, when a document stops (the true gap is far smaller)"""
MAX_STEPS = 1000


class FoldedIn(NamedTuple):
    """The documents' weights, and the counts they rest on."""

    doc_topic: Array
    """P(z|d), documents x K"""
    background: Floats
    """the share of each document that the background writes; zeros without one"""
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
    """Weights of every row of `counts` given phi = topic_word (K x words; a row of zeros is a topic switched off).

    `topic_weights` is P(z), for documents without known words; None takes it from the other documents, by their
    lengths.
    """
    word_sums = topic_word.sum(axis=0)
    check_topics(word_sums)
    known = word_sums > 0
    if model.background is not None:
        known |= model.background.distribution > 0
    kept, unseen_tokens = without_words(counts, known)
    if model.doc_prior is not None:
        model = replace(model, doc_prior=model.doc_prior.row_by_row())
    phi = padded(topic_word.T, counts.dtype, model.n_columns)
    joint = model.background is not None and model.background.joint
    by_sweeps = joint or model.doc_prior is not None
    theta = (_by_sweeps if by_sweeps else _natively)(model, kept, phi, tol, n_threads)
    background = model.background_shares(theta)
    K = model.n_topics
    theta = theta[:, :K]
    if joint:
        sums = theta.sum(axis=1, keepdims=True)
        theta = np.divide(theta, sums, out=np.full_like(theta, 1 / K), where=sums > 0)
    empty = np.diff(kept.indptr) == 0
    if empty.any():
        if topic_weights is None:
            totals = kept.totals
            topic_weights = weighted_sum(totals, theta) / totals.sum() if totals.sum() > 0 else np.full(K, 1.0 / K)
        theta[empty] = topic_weights
    return FoldedIn(np.ascontiguousarray(theta), background, kept, unseen_tokens)


def folded_rows(model: Model, phi: Array, shard: Shard) -> Array:
    """theta (documents x width) of the shard's documents, with phi (words x width) fixed: where a fit may start."""
    if model.background is not None and model.background.joint:
        raise UnsupportedError("JointBackground cannot start from topics alone: give init=(doc_topic, topic_word).")
    topic_word = phi[:, : model.n_topics].T
    folded = fold_in(model, shard.by_doc, topic_word, None, n_threads=shard.n_threads)
    return padded(folded.doc_topic, phi.dtype, model.n_columns)


def _natively(model: Model, counts: SparseCounts, phi: Array, tol: float, n_threads: int) -> Array:
    """Row by row in the compiled kernel (foldin.hpp)."""
    K = model.n_topics
    theta, _ = counts.fold_in(
        model.word_operand(phi), K, empty=np.full(K, 1.0 / K), tol=tol, max_iter=MAX_STEPS, n_threads=n_threads,
        background=0.0 if model.background is None else model.background.share, temperature=model.temperature,
    )  # fmt: skip
    return theta


def _by_sweeps(model: Model, counts: SparseCounts, phi: Array, tol: float, n_threads: int) -> Array:
    """EM on all rows at once with the M-step of any model; a row rests when a step moves no more than tol."""
    K, B = model.n_topics, model.word_operand(phi)
    theta = padded(np.full((counts.n_docs, K), 1.0 / K), phi.dtype, model.n_columns)
    rows = np.arange(counts.n_docs)
    corpus, moving = Shard(counts, None, n_threads), np.ones(counts.n_docs, dtype=bool)
    for _ in range(MAX_STEPS):
        if 2 * np.count_nonzero(moving) < rows.size:
            rows = rows[moving]
            corpus, moving = Shard(counts.take(rows), None, n_threads), np.ones(rows.size, dtype=bool)
        if not moving.any():
            break
        old = theta[rows]
        A = model.doc_operand(old)
        row_sums = corpus.row_sums(A, B)
        row_sums[:, K:] = 0
        new = improve_docs(model, corpus, old, A, row_sums)
        theta[rows[moving]] = new[moving]
        moving &= np.abs(new - old).sum(axis=1) > 2 * tol
    logs = Shard(counts, None, n_threads).logs(model.doc_operand(theta), B)
    return restore_support(theta, np.flatnonzero(np.isneginf(logs)), K)


def without_words(counts: SparseCounts, known: Array) -> tuple[SparseCounts, float]:
    """The counts of known words alone, and how many tokens that leaves out."""
    keep = known[counts.indices]
    if keep.all():
        return counts, 0.0
    return counts.with_values(np.where(keep, counts.values, 0)), float(counts.values[~keep].sum(dtype=np.float64))
