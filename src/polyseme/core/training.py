"""Training documents after a fit: they are folded in, and a Dirichlet prior of P(z|d) is learned from some of them.

Maximum likelihood gives a document of three words one topic with weight 1. The prior shrinks such weights towards the
mean document. Its mean is the mean of P(z|d) over the training documents. Its concentration s makes the second half of
the tokens of a training document most probable, given the posterior mean of its weights from the first half.

Topics know their training documents: they were fitted to them. Without a correction s would be too small by a factor of
about four on 20 Newsgroups (`benchmarks/judging.py --parts shrink`). So each document is scored with topics from which
its own expected counts n_dw P(z|d,w) were taken out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.dirichlet import dirichlet_means, improve_documents, uniform_counts
from polyseme.core.fitted import (
    DocumentSample,
    DocumentWeights,
    FittedTopics,
    Foldable,
    FoldedTraining,
    FoldIn,
    Inference,
    TrainingDocuments,
    posterior_operands,
    sample_size,
    topic_weights_of,
)
from polyseme.core.holdout import sample_documents, split_tokens
from polyseme.core.shard import sparse_counts
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.priors import Prior

_SMOOTHING = 0.01
"""Weight of the unigram in the topics without a document, which have zeros where it has a word of its own."""
_FIRST, _LEAST, _MOST = 4.0, 2.0**-6, 2.0**14
"""First concentration that is tried, and its limits."""
_FACTORS = (4.0, 2.0, 2.0**0.5)
"""Ratios of concentrations that are compared, one after the other."""
_STEPS, _TOLERANCE = 100, 1e-3
_LEAST_SHARE = 1e-6
"""Smallest mean weight of a topic in the prior."""


def fold_in_training(
    corpus: Foldable, topic_word: Array, inference: Inference, *, active: Array | None = None, rows: Any = None,
    prior: Prior | None = None, **fields: Any,
) -> FoldedTraining:  # fmt: skip
    """Fold in the training documents, and return the fitted model with the P(z) and the prior that follow.

    `active` are the topics that are used (None: all), `rows` the weights to start from, in the form that the corpus
    uses (None: uniform weights), `prior` a prior that knows single documents, `fields` the other fields of FittedTopics
    that the documents do not determine.
    """
    active = np.ones(len(topic_word), dtype=bool) if active is None else active
    job = FoldIn(inference.without_arrays(), active, corpus.tokens, prior=prior)
    folded = corpus.fold_in(job, (topic_word, *inference.arrays), rows)
    assert folded.sums is not None
    background = inference.background
    arrays = dict(folded.arrays)
    doc_topic = arrays.pop("doc_topic")
    shares = arrays.pop("background", None)
    if shares is None:
        shares = np.broadcast_to(np.float64(0.0 if background is None else background.share), (corpus.n_docs,))
    fitted = FittedTopics(
        topic_word, topic_weights_of(folded.parts), active=active, inference=inference,
        word_documents=folded.sums.by_topic(), **fields,
    )  # fmt: skip
    samples = [part.sample for part in folded.parts if part.sample is not None]
    if samples:
        fitted = replace(fitted, document_prior=learned_prior(fitted, _joined(samples, len(topic_word))))
    return FoldedTraining(
        fitted,
        TrainingDocuments(corpus.doc_weights, doc_topic, shares, arrays),
        sum(part.log_sum for part in folded.parts) / corpus.tokens,
        sum(part.bound for part in folded.parts),
    )


def _joined(samples: list[DocumentSample], n_topics: int) -> DocumentSample:
    """Return one sample of the documents of all shards, which does not depend on how they are distributed."""
    parts = [sample.folded for sample in samples]
    counts = sparse_counts(sp.vstack([part.counts.matrix() for part in parts], format="csr"), parts[0].counts.dtype)
    rows = sample_documents(counts, sample_size(n_topics))
    doc_topic, background = (np.concatenate(arrays)[rows] for arrays in zip(*(part[:2] for part in parts), strict=True))
    weights = np.concatenate([sample.weights for sample in samples])[rows]
    return DocumentSample(DocumentWeights(doc_topic, background, counts.take(rows)), weights)


def learned_prior(fitted: FittedTopics, sample: DocumentSample) -> Floats:
    """Return the parameters of the Dirichlet prior: one of each topic, and one of the background if there is one."""
    held_out = HeldOutHalves(fitted, sample)
    if held_out.mean.size == 1 or not held_out.scored:
        return _FIRST * held_out.mean
    best, value = _FIRST, held_out.score(_FIRST)
    for factor in _FACTORS:
        for step in (factor, 1 / factor):
            moved = False
            while _LEAST <= best * step <= _MOST:
                tried = held_out.score(best * step)
                if not tried > value:
                    break
                best, value, moved = best * step, tried, True
            if moved:
                break
    return best * held_out.mean


class HeldOutHalves:
    """Halves of some training documents, each with the topics that the other documents alone would give.

    A word of a document has a column of its own, with its probabilities without the document. The arrays have one row
    per non-zero of the sample, whose size is bounded.
    """

    def __init__(self, fitted: FittedTopics, sample: DocumentSample) -> None:
        topics, inference = fitted.active_topics, fitted.inference
        K, background = len(topics), inference.background
        folded, weights, counts = sample.folded, sample.weights, sample.folded.counts
        lengths, words = np.diff(counts.indptr), counts.indices
        self._rows = np.repeat(np.arange(counts.n_docs), lengths)
        taken = np.minimum(weights, 1)  # a document of weight 2 is two documents, of which one is scored
        x = taken[self._rows] * counts.values
        share = 0.0 if background is None else float(np.average(folded.background, weights=counts.totals + 1e-300))
        self.mean = _mean_weights(fitted, share)

        A, B = posterior_operands(inference.operands(folded, fitted.topic_word), inference.temperature)
        own = (A[self._rows] * B[words])[:, : self.mean.size].astype(np.float64)
        own *= np.divide(x, own.sum(axis=1), out=np.zeros(x.size), where=own.sum(axis=1) > 0)[:, np.newaxis]
        probabilities = topics.T[words].astype(np.float64)
        sizes = fitted.topic_weights * fitted.n_tokens * (1 - share)
        doc_sums = np.zeros((counts.n_docs, K))
        np.add.at(doc_sums, self._rows, own[:, :K])
        left = np.maximum(probabilities * sizes - own[:, :K], 0) / np.maximum(sizes - doc_sums[self._rows], 1e-9)
        if background is not None:
            left = np.column_stack([left, background.word_probabilities[words]])
        other = np.maximum(fitted.unigram[words] * fitted.n_tokens - x, 0)
        totals = (taken * counts.totals)[self._rows]
        unigram = other / np.maximum(fitted.n_tokens - totals, 1e-9)
        self._probabilities = ((1 - _SMOOTHING) * left + _SMOOTHING * unigram[:, np.newaxis]).astype(counts.dtype)

        # a word that only this document has would be unknown in a new one
        usable = other > 1e-6 * x
        observed, scored = (np.where(usable, part, 0.0) for part in split_tokens(counts, 0))
        columns = np.arange(x.size, dtype=counts.indices.dtype)
        kept = SparseCounts(counts.indptr, columns, counts.values, counts.n_docs, x.size)
        self._observed = kept.with_values(observed)
        self._scored = np.flatnonzero(scored)
        self._tokens = (scored * weights[self._rows])[self._scored]
        largest = self._probabilities.max(axis=1, keepdims=True)
        scaled = np.divide(self._probabilities, largest, out=np.zeros_like(self._probabilities), where=largest > 0)
        self._operand = padded(scaled, counts.dtype)

    @property
    def scored(self) -> bool:
        """Whether there is any token to score."""
        return bool(self._scored.size)

    def score(self, concentration: float) -> float:
        """Return the mean log-probability of a token of the second halves."""
        alpha, totals = concentration * self.mean, self._observed.totals
        expected = uniform_counts(totals, alpha.size, self._observed.dtype)
        improve_documents(
            self._observed, self._operand, alpha, expected, totals=totals, steps=_STEPS, tol=_TOLERANCE, n_threads=1
        )
        theta = dirichlet_means(expected[:, : alpha.size] + alpha.astype(expected.dtype))
        at = self._scored
        p = np.einsum("ik,ik->i", theta[self._rows[at]], self._probabilities[at], dtype=np.float64)
        return float((self._tokens * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum() / self._tokens.sum())


def _mean_weights(fitted: FittedTopics, background_share: float) -> Floats:
    """Return the mean weights of the training documents, of the topics and of the background if there is one."""
    assert fitted.word_documents is not None
    topics = fitted.word_documents.topics
    mean = topics / topics.sum() if topics.sum() > 0 else np.full(topics.size, 1 / topics.size)
    if fitted.inference.background is not None:
        mean = np.append((1 - background_share) * mean, background_share)
    mean = np.maximum(mean, _LEAST_SHARE)
    return np.asarray(mean / mean.sum())
