"""Folding in: topic weights of documents with the topics fixed (Hofmann 1999).

The weights maximize the likelihood (`MaximumLikelihood`) or minimize a loss without a likelihood (`LeastLoss`).
`doc_topic_`, `fit_transform` and `transform` use the same function: it starts from uniform weights and runs until
convergence, for each document separately. If a prior has several maxima, a beta is above 1, or a loss is not convex,
training documents start from the weights of the fit instead, because these weights and the topics are a local optimum
together. Words of probability zero under all topics and the background are ignored; a document without other words gets
P(z). The squared loss of NMF is minimized by coordinate descent, every other loss by majorization-minimization.

References
----------
T. Hofmann (1999). Probabilistic latent semantic indexing. SIGIR, 50-57.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from polyseme.core.edits import TopicEdit, without
from polyseme.core.fitted import DocumentWeights, GivenDocuments, NoLargeArrays, StoredArray, mean_operands
from polyseme.core.model import Background, Model, m_step_docs, restore_support
from polyseme.core.shard import Shard, sparse_counts
from polyseme.errors import UnsupportedError
from polyseme.kernels import (
    FOLD_IN_STEPS,
    FOLD_IN_TOLERANCE,
    Array,
    Floats,
    SparseCounts,
    Want,
    check_topics,
    gram,
    least_squares_rows,
    normalize_rows,
    padded,
    weighted_sum,
)
from polyseme.losses import KULLBACK_LEIBLER
from polyseme.losses.base import Loss, Zeros
from polyseme.losses.entry_weights import EntryWeights
from polyseme.losses.penalized import Penalty
from polyseme.losses.updates import LossSums, constrained, multiplied, with_penalty
from polyseme.priors.base import Prior


@dataclass(frozen=True, eq=False)
class MaximumLikelihood(NoLargeArrays):
    """Inference of PLSA, by maximum likelihood or, with a prior, by the maximum of the posterior density."""

    kind: ClassVar[str] = "likelihood"
    is_likelihood: ClassVar[bool] = True
    has_prior_mean: ClassVar[bool] = False
    learns_prior: ClassVar[bool] = True
    stored: ClassVar[Mapping[str, StoredArray]] = {}
    stored_by_document: ClassVar[Mapping[str, StoredArray]] = {}
    parameter_names: ClassVar[tuple[str, ...]] = ()
    temperature: float = 1.0
    """Exponent beta of tempered EM."""
    background: Background | None = None
    """Background with its distribution."""
    prior: Prior | None = None
    """Prior on P(z|d)."""
    topic_share: float | None = None
    """With a joint background: share of all tokens that the topics explain."""

    @property
    def has_one_maximum(self) -> bool:
        # The free energy is the log of a norm of the weights, with the exponent beta: not concave above 1.
        return self.temperature <= 1 and (self.prior is None or self.prior.concave)

    def model(self, n_topics: int) -> Model:
        """Return the model of the documents, for `n_topics` topics."""
        return Model(n_topics, self.temperature, self.background, doc_prior=self.prior, topic_share=self.topic_share)

    def edited(self, edit: TopicEdit) -> MaximumLikelihood:
        """Return the inference for merged and removed topics, without the banned words in the background."""
        background, prior = self.background, self.prior
        if background is not None:
            background = replace(background, distribution=without(background.word_probabilities, edit.banned))
        return replace(
            self, background=background, prior=None if prior is None else prior.with_merged_columns(edit.groups)
        )

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int,
        given: GivenDocuments | None = None,
    ) -> DocumentWeights:  # fmt: skip
        if given is not None and given.entries is not None:
            self.model(len(topic_word)).check_weighs_entries()
            return _KULLBACK_LEIBLER.weights(counts, topic_word, topic_weights, n_threads=n_threads, given=given)
        start = None if given is None else given.start
        return fold_in(self.model(len(topic_word)), counts, topic_word, topic_weights, n_threads=n_threads, start=start)

    def operands(self, weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
        return self.model(len(topic_word)).token_operands(weights.doc_topic, topic_word, weights.background)


def fold_in(
    model: Model,
    counts: SparseCounts,
    topic_word: Array,
    topic_weights: Floats | None,
    *,
    n_threads: int,
    tol: float = FOLD_IN_TOLERANCE,
    start: Array | None = None,
) -> DocumentWeights:
    """Return the topic weights of every row of `counts`, given topic_word (K x words; a row of zeros: topic is off).

    Documents without known words get `topic_weights`, P(z). None computes it as the mean of the other documents,
    weighted by their lengths. Documents start from the rows of `start` (documents x width; None: uniform weights, which
    also replace a row of zeros). If the model acts on all documents together, these rows are the result.
    """
    word_sums = topic_word.sum(axis=0)
    check_topics(word_sums)
    known = word_sums > 0
    if model.background is not None:
        known |= model.background.word_probabilities > 0
    known_counts, unseen_tokens = select_known_words(counts, known)
    together = not model.is_separable
    if model.doc_prior is not None:
        model = replace(model, doc_prior=model.doc_prior.for_new_documents())
    phi = padded(topic_word.T, counts.dtype, model.n_columns)
    joint = model.background is not None and model.background.joint
    if joint or model.doc_prior is not None or start is not None:
        theta = _by_sweeps(model, known_counts, phi, tol, n_threads, start, together)
    else:
        theta = _by_kernel(model, known_counts, phi, tol, n_threads)
    background = model.background_shares(theta)
    K = model.n_topics
    theta = theta[:, :K]
    if joint:
        sums = theta.sum(axis=1, keepdims=True)
        theta = np.divide(theta, sums, out=np.full_like(theta, 1 / K), where=sums > 0)
    empty = np.diff(known_counts.indptr) == 0
    if empty.any():
        if topic_weights is None:
            totals = known_counts.totals
            topic_weights = weighted_sum(totals, theta) / totals.sum() if totals.sum() > 0 else np.full(K, 1.0 / K)
        theta[empty] = topic_weights
        if model.doc_prior is not None:
            theta = model.doc_prior.adapt_start(theta).astype(theta.dtype, copy=False)
    return DocumentWeights(np.ascontiguousarray(theta), background, known_counts, unseen_tokens)


def fold_in_shard(model: Model, shard: Shard, phi: Array) -> Array:
    """Return theta (documents x width) of a shard for fixed phi (words x width), as a start of a fit."""
    if model.background is not None and model.background.joint:
        raise UnsupportedError("JointBackground cannot start from topics alone: give init=(doc_topic, topic_word).")
    known = None if model.doc_prior is None else model.doc_prior.for_training_documents()
    if known is not None:
        model = replace(model, doc_prior=known)
    topic_word = phi[:, : model.n_topics].T
    if shard.entries is not None:
        given = GivenDocuments(entries=shard.entries)
        topics = np.ascontiguousarray(topic_word)
        folded = _KULLBACK_LEIBLER.weights(shard.by_doc, topics, None, n_threads=shard.n_threads, given=given)
        return padded(folded.doc_topic, phi.dtype, model.n_columns)
    folded = fold_in(model, shard.by_doc, topic_word, None, n_threads=shard.n_threads)
    return padded(folded.doc_topic, phi.dtype, model.n_columns)


def select_known_words(counts: SparseCounts, known: Array) -> tuple[SparseCounts, float]:
    """Return the counts of the known words, and the number of tokens of the others."""
    keep = known[counts.indices]
    if keep.all():
        return counts, 0.0
    return counts.with_values(np.where(keep, counts.values, 0)), float(counts.values[~keep].sum(dtype=np.float64))


def _by_kernel(model: Model, counts: SparseCounts, phi: Array, tol: float, n_threads: int) -> Array:
    """Return theta of a model without priors or a joint background, by the compiled kernel (foldin.hpp)."""
    K = model.n_topics
    theta, _ = counts.fold_in(
        model.word_operand(phi), K, empty=np.full(K, 1.0 / K), tol=tol, max_iter=FOLD_IN_STEPS, n_threads=n_threads,
        background=0.0 if model.background is None else model.background.share, temperature=model.temperature,
    )  # fmt: skip
    return theta


def _by_sweeps(
    model: Model, counts: SparseCounts, phi: Array, tol: float, n_threads: int, start: Array | None, together: bool
) -> Array:
    """Return theta of any model, by EM on all rows at once. A row stops when a step changes it by at most `tol`.

    If the model acts on all documents `together`, given rows do not change, except to make their words possible.
    """
    K, B = model.n_topics, model.word_operand(phi)
    joint = model.background is not None and model.background.joint
    theta, prior = np.full((counts.n_docs, K), 1.0 / K), model.doc_prior
    theta = padded(theta if prior is None else prior.adapt_start(theta), phi.dtype, model.n_columns)
    rows, moving = np.arange(counts.n_docs), np.ones(counts.n_docs, dtype=bool)
    if start is not None:
        kept = start.any(axis=1)
        theta[kept] = start[kept]
        moving &= ~(kept & together)
    shard = Shard(counts, None, n_threads)
    for _ in range(FOLD_IN_STEPS):
        if 2 * np.count_nonzero(moving) < rows.size:
            rows = rows[moving]
            shard, moving = Shard(counts.take(rows), None, n_threads), np.ones(rows.size, dtype=bool)
            model = replace(model, doc_prior=None if prior is None else prior.with_rows(rows))
        if not moving.any():
            break
        old = theta[rows]
        A = model.doc_operand(old)
        row_sums = shard.sums(A, B, Want.ROWS).row_sums
        row_sums[:, K:] = 0
        new = m_step_docs(model, shard, old, A, row_sums)
        if not joint:  # where the background explains every word, all weights are equally good
            new = np.where(new.any(axis=1, keepdims=True), new, old)
        theta[rows[moving]] = new[moving]
        moving &= np.abs(new - old).sum(axis=1) > 2 * tol
    if model.background is not None:  # it makes every word possible
        return theta
    logs = Shard(counts, None, n_threads).sums(model.doc_operand(theta), B, Want.LOGS).logs
    impossible = np.isneginf(logs)
    support = None if prior is None else prior.support((counts.n_docs, K))
    if support is not None:
        impossible &= support.all(axis=1)  # a document with known topics gets no others
    return restore_support(theta, np.flatnonzero(impossible), K)


_TOLERANCE = 2e-6
"""A document stops when a step changes at most this share of its weights."""
_PASSES = 4
"""Passes of coordinate descent on a document between two imputations of its missing entries."""
_FIRST_SIZE, _GROWTH, _CUT = 0.5, 1.1, 0.6
"""Size of the extrapolation of a document, and its changes after success and failure."""
_KEEP = 0.95
"""Smallest share of a plain step that extrapolation keeps: multiplicative updates raise small weights slowly."""
_ENOUGH = {np.dtype(np.float32): 1e-9, np.dtype(np.float64): 1e-14}
"""Coordinate descent on a document stops when all its weights together gain at most this share of the loss."""


@dataclass(frozen=True, eq=False)
class LeastLoss(NoLargeArrays):
    """Inference by the minimum of a loss that is not minus a log-likelihood."""

    kind: ClassVar[str] = "loss"
    is_likelihood: ClassVar[bool] = False
    has_prior_mean: ClassVar[bool] = False
    learns_prior: ClassVar[bool] = False
    temperature: ClassVar[float] = 1.0
    background: ClassVar[None] = None
    prior: ClassVar[None] = None
    topic_share: ClassVar[None] = None
    stored: ClassVar[Mapping[str, StoredArray]] = {}
    stored_by_document: ClassVar[Mapping[str, StoredArray]] = {"factor": StoredArray("DK")}
    loss: Loss
    """What is minimized."""
    free_scale: bool
    """Whether the approximation of a document may have any sum (NMF), or has the sum of the document (PLSA)."""

    @property
    def has_one_maximum(self) -> bool:
        return self.loss.is_convex

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("factor",) if self.free_scale and not self.loss.is_likelihood else ()

    @property
    def _penalty(self) -> Penalty | None:
        """Penalty of the weights of a document."""
        penalized = self.loss.penalized
        return None if penalized is None else penalized.docs

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int,
        given: GivenDocuments | None = None,
    ) -> DocumentWeights:  # fmt: skip
        """Return P(z|d) of every row and, for a free scale, W as the parameter "factor"."""
        word_sums = topic_word.sum(axis=0)
        check_topics(word_sums)
        known = word_sums > 0
        known_counts, unseen_tokens = select_known_words(counts, known)
        used, topics = known_counts, topic_word
        start, entries = (None, None) if given is None else given
        if entries is not None:
            Model(len(topic_word), loss=self.loss).check_weighs_entries()
        if not known.all() and entries is None:  # losses that weigh entries are defined for x = q = 0
            used, topics = sparse_counts(known_counts.matrix()[:, known], counts.dtype), topic_word[:, known]
        self.loss.check_data(used)
        factor = self._factor(used, padded(topics.T, counts.dtype), len(topics), n_threads, start, entries)
        doc_topic, sums = normalize_rows(factor), factor.sum(axis=1, dtype=np.float64)
        empty = ~(sums > 0)
        if empty.any():
            if topic_weights is None:
                total = float(sums.sum())
                uniform = np.full(len(topics), 1.0 / len(topics))
                topic_weights = weighted_sum(sums, doc_topic) / total if total > 0 else uniform
            doc_topic[empty] = topic_weights
        parameters = {"factor": factor} if self.parameter_names else {}
        return DocumentWeights(doc_topic, np.zeros(counts.n_docs), known_counts, unseen_tokens, parameters=parameters)

    def operands(self, weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
        """Return operands whose products are the shares of the words in the approximation of a document."""
        return mean_operands(weights, topic_word)

    def _factor(
        self, counts: SparseCounts, B: Array, K: int, n_threads: int, start: Array | None, entries: EntryWeights | None
    ) -> Array:  # fmt: skip
        """Return W (documents x K) for fixed topics B (words x width), not worse than a given start."""
        totals, used, penalty = counts.totals, B[:, :K].any(axis=0), self._penalty
        if penalty is not None and penalty.scales:
            used &= np.array(penalty.scales) > 0  # elsewhere H is zero
            B = padded(np.where(used, B[:, :K], 0), B.dtype)
        factor = padded(np.where(used, totals[:, np.newaxis] / max(int(np.count_nonzero(used)), 1), 0.0), B.dtype)
        if start is not None:
            known = np.where(used, start[:, :K], 0)
            fitted = known.any(axis=1)
            factor[fitted, :K] = known[fitted]
        if self.free_scale and self.loss.zeros is Zeros.SQUARED and entries is None:
            products, G = counts.multiply(B, n_threads=n_threads), gram(B, n_threads=n_threads)
            if penalty is not None:
                products, G = with_penalty(products, G, penalty)
            factor = least_squares_rows(
                factor, products, G, K, passes=FOLD_IN_STEPS, enough=_ENOUGH[B.dtype], n_threads=n_threads
            )
            return np.ascontiguousarray(factor[:, :K])
        rows = np.flatnonzero(totals > 0)
        stage: Loss | None = self.loss
        while stage is not None:
            at = replace(self, loss=stage)
            factor[rows] = at._by_steps(counts, factor[rows], rows, totals, B, K, n_threads, entries)
            stage = stage.next_stage
        return np.ascontiguousarray(factor[:, :K])

    def _by_steps(
        self, counts: SparseCounts, start: Array, rows: Array, totals: Floats, B: Array, K: int, n_threads: int,
        entries: EntryWeights | None,
    ) -> Array:  # fmt: skip
        """Return W of some rows by majorization-minimization, with extrapolation for each row (see `Ascent`).

        A row stops when a step changes it by at most a small share. Rows that have stopped are no longer evaluated.
        With weights of entries the total of a document is not known, so its scale is free.
        """
        found, index = start.copy(), np.arange(rows.size)
        free, sums, G = self.free_scale or entries is not None, None, None
        penalty = self._penalty
        if entries is not None and self.loss.zeros is Zeros.SQUARED:
            G = gram(B, n_threads=n_threads)

        def evaluate(point: Array, index: Array) -> tuple[Floats, Array]:
            nonlocal sums
            if sums is None or len(point) != sums.n_docs:
                whole = index.size == counts.n_docs
                part = counts if whole else counts.take(rows[index])
                own = entries if whole or entries is None else entries.take(rows[index])
                sums = LossSums(self.loss, part, K, n_threads=n_threads, entries=own)
            values, terms = sums.docs(point, B)
            if G is not None and entries is not None:  # the same step as in the solver HALS
                largest = entries.largest[0][rows[index], np.newaxis]
                products = point @ G + (terms.numerators - terms.denominators) / largest
                step = least_squares_rows(point, products, G, K, passes=_PASSES, enough=0.0, n_threads=n_threads)
                return values, step
            if penalty is not None:
                step = multiplied(point, terms, self.loss.powers, penalty=penalty)
                return values + penalty.values(point), step
            if free:
                return values, multiplied(point, terms, self.loss.powers, n_threads=n_threads)
            return values, constrained(point, terms, self.loss.powers, totals[rows[index]])

        point, last = start, start
        first, step = evaluate(point, index)
        values = first
        size, plain = np.full(rows.size, _FIRST_SIZE), np.ones(rows.size, dtype=bool)
        for _ in range(FOLD_IN_STEPS):
            moving = np.abs(step - point).sum(axis=1, dtype=np.float64) > _TOLERANCE * point.sum(axis=1)
            found[index] = step
            if not moving.all():
                index, point, last, step = index[moving], point[moving], last[moving], step[moving]
                values, size, plain = values[moving], size[moving], plain[moving]
            if not index.size:
                break
            tried = _extrapolated(step, last, np.where(plain, 0, size), None if free else totals[rows[index]])
            new_values, next_step = evaluate(tried, index)
            good = plain | (new_values <= values)
            size = np.where(good, np.where(plain, size, np.minimum(size * _GROWTH, 1)), size * _CUT)
            plain = ~good
            kept = good[:, np.newaxis]
            last = np.where(kept, step, last)
            point, step = np.where(kept, tried, point), np.where(kept, next_step, step)
            values = np.where(good, new_values, values)
        if not self.has_one_maximum:  # steps of a smoothed loss may raise it
            worse = evaluate(found, np.arange(rows.size))[0] > first
            found[worse] = start[worse]
        return found


def _extrapolated(new: Array, old: Array, size: Floats, totals: Floats | None) -> Array:
    """Return the rows new + size (new - old), at least most of new, with their given sums (None: free)."""
    rows = np.maximum(new + size[:, np.newaxis].astype(new.dtype) * (new - old), new * new.dtype.type(_KEEP))
    if totals is None:
        return rows
    return np.asarray(rows * (totals / rows.sum(axis=1, dtype=np.float64))[:, np.newaxis].astype(new.dtype))


_KULLBACK_LEIBLER = LeastLoss(KULLBACK_LEIBLER, free_scale=True)
"""Inference by maximum likelihood from entries with weights."""


def fold_in_by_loss(model: Model, shard: Shard, phi: Array) -> Array:
    """Return the factor of the documents of a shard (documents x width) for fixed phi (words x width), as a start."""
    counts, topic_word = shard.by_doc, np.ascontiguousarray(phi[:, : model.n_topics].T)
    given = GivenDocuments(entries=shard.entries)
    inference = LeastLoss(model.loss, model.free_scale)
    found = inference.weights(counts, topic_word, None, n_threads=shard.n_threads, given=given)
    factor = found.parameters["factor"] if model.free_scale else found.doc_topic * counts.totals[:, np.newaxis]
    return padded(factor, phi.dtype, model.n_columns)
