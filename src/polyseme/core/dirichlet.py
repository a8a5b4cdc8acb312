"""Dirichlet posteriors of document weights and of topics, and how the parameters of their priors are learned.

In variational Bayes, a factor with Dirichlet parameters g (rows g_i) enters the kernel as exp(E log f) with
E log f_ik = psi(g_ik) - psi(sum_k g_ik). The K numbers of a document or a word are divided by their maximum: this scale
cancels in the expected counts, and without it float32 underflows from about K = 100 on. The logs of the scales are part
of the bound. An operand is at least 1e-18 (float64: 1e-200) times its maximum, so that every word has a topic.

The parameters alpha of a Dirichlet prior are given or learned. Learning maximizes the likelihood of a Dirichlet
distribution by Newton's method (Minka 2000), with E log theta in place of log theta.

Maximum likelihood often gives a document of three words a single topic with weight 1. A prior on P(z|d) shrinks such
weights toward the mean document (`LearnedPosterior`). The mean of the prior is the mean of P(z|d) over the training
documents. Its concentration s maximizes the probability of the second half of the tokens of the training documents,
given the posterior mean of their weights from the first half (`learn_prior`). The topics were fitted to these same
documents, which makes s too small: by a factor of about four on 20 Newsgroups (`benchmarks/judging.py --parts shrink`).
So each document is scored with topics from which its expected counts n_dw P(z|d,w) have been subtracted.

References
----------
T. Minka (2000). Estimating a Dirichlet distribution. Technical report, MIT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import gammaln, polygamma, psi

from polyseme import _kernels
from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import (
    DocumentSample,
    DocumentWeights,
    FittedTopics,
    GivenDocuments,
    NoLargeArrays,
    OwnPrior,
    PriorEvidence,
    StoredArray,
    posterior_operands,
    sample_size,
)
from polyseme.core.fold_in import select_known_words
from polyseme.core.model import Background, Model
from polyseme.core.shard import sample_documents, sparse_counts, split_tokens
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import (
    NUMBERS_AT_ONCE,
    Array,
    Floats,
    SparseCounts,
    Want,
    aligned_empty,
    check_operands,
    check_topics,
    padded,
)

GIVEN, SYMMETRIC, ASYMMETRIC = "given", "symmetric", "asymmetric"
"""Kinds of `Concentration`."""

_MIN_ALPHA, _MAX_ALPHA = 1e-6, 1e6
_MAX_STEPS, _MAX_HALVINGS = 100, 40
_BANNED_ETA = 1e-30
"""Prior of a banned word."""
_FOLD_STEPS, _FOLD_TOLERANCE = 1000, 1e-4
"""Most steps of a document in `DirichletPosterior`, and the share of its tokens that its last step may move."""
_SMOOTHING = 0.01
"""Weight of the unigram that smooths the topics from which a document was subtracted: words of that document alone have
probability zero in them."""
_FIRST, _LEAST, _MOST = 4.0, 2.0**-6, 2.0**14
"""First concentration that is tried, and its limits."""
_FACTORS = (4.0, 2.0, 2.0**0.5)
"""Step sizes of the search for the concentration, from coarse to fine."""
_SCORE_STEPS, _SCORE_TOLERANCE = 100, 1e-3
"""The same two limits in `HeldOutHalves`."""
_LEAST_SHARE = 1e-6
"""Smallest mean weight of a topic in the prior."""


class DocumentPosteriors(NamedTuple):
    """Operands and terms of the bound from q(theta_d) = Dirichlet(alpha + n_d) of every document."""

    operand: Array
    """exp(E log theta), scaled (documents x width)."""
    terms: Floats
    """Term of each document in the bound, without sum x log q of the scaled operands."""
    log_sums: Floats
    """sum_d weight_d E log theta_dk, shape (K,)."""
    steps: npt.NDArray[np.int32]
    """Number of steps of each document; negative if it did not converge within the limit."""


class TopicPosteriors(NamedTuple):
    """Operands and terms of the bound from q(phi_k) = Dirichlet(lambda_k) of every topic."""

    operand: Array
    """exp(E log phi), scaled (words x width)."""
    scales: Floats
    """Log of the scale of each word."""
    terms: Floats
    """sum_k [lgamma(lambda_kw) + (eta_kw - lambda_kw) E log phi_kw] of each word, used by `topics_term`."""
    log_sums: Floats
    """sum_k E log phi_kw of each word."""


@dataclass(frozen=True)
class Concentration:
    """Parameters alpha of a Dirichlet prior, and whether they are learned."""

    values: Floats
    """alpha, one number per column."""
    kind: str = GIVEN
    """GIVEN (not learned), SYMMETRIC (one learned number) or ASYMMETRIC (one learned number per column)."""

    @property
    def learned(self) -> bool:
        """Whether alpha is learned."""
        return self.kind != GIVEN

    def improved(self, log_sums: Floats, rows: float) -> Concentration:
        """Return the alpha that maximizes rows (lgamma(sum alpha) - sum lgamma(alpha)) + sum alpha log_sums.

        `log_sums` is the sum of E log f over the rows (one number per column) and `rows` their number. The function is
        concave; Newton steps are halved until they raise it, so the result is never worse than before. A given alpha is
        returned unchanged, and a symmetric one stays symmetric.
        """
        if not self.learned or self.values.size == 1:
            return self
        newton_step = _symmetric_newton_step if self.kind == SYMMETRIC else _newton_step
        alpha = self.values
        value = _log_density(alpha, log_sums, rows)
        for _ in range(_MAX_STEPS):
            step = newton_step(alpha, log_sums, rows)
            for _ in range(_MAX_HALVINGS):
                tried = np.clip(alpha + step, _MIN_ALPHA, _MAX_ALPHA)
                new = _log_density(tried, log_sums, rows)
                if new > value:
                    break
                step = step / 2
            else:
                break
            converged = new - value <= 1e-9 * rows
            alpha, value = tried, new
            if converged:
                break
        return replace(self, values=alpha)


def improve_documents(
    counts: SparseCounts,
    B: Array,
    alpha: Floats,
    expected: Array,
    *,
    totals: Floats,
    steps: int,
    tol: float,
    n_threads: int,
    weights: Floats | None = None,
    isa: str | None = None,
) -> DocumentPosteriors:
    """Update the expected counts n (`expected`, documents x width, in place) of each document, with B fixed.

    A step is n_dk <- a_k sum_w x b_wk / (a . b_w) with a = exp(psi(alpha + n_d)). A document stops when a step moves at
    most the share `tol` of its tokens, or after `steps` steps.
    """
    check_operands(counts, expected, B, weights)
    operand = aligned_empty(expected.shape, expected.dtype)
    terms, log_sums = np.empty(counts.n_docs), np.empty(expected.shape[1])
    n_steps = np.empty(counts.n_docs, dtype=np.int32)
    wide_alpha = np.ones(expected.shape[1])
    wide_alpha[: alpha.size] = alpha
    _kernels.improve_gamma(
        counts.indptr, counts.indices, counts.values, B, wide_alpha, totals, weights, expected, operand, terms,
        log_sums, n_steps, topics=alpha.size, steps=steps, tol=tol, n_threads=n_threads, isa=isa,
    )  # fmt: skip
    terms += gammaln(alpha.sum()) - gammaln(alpha).sum()
    return DocumentPosteriors(operand, terms, log_sums[: alpha.size], n_steps)


def topic_sums(lambda_: Array, n_topics: int) -> Floats:
    """Return sum_w lambda_kw, shape (K,)."""
    return np.asarray(lambda_[:, :n_topics].sum(axis=0, dtype=np.float64))


def word_operands(
    lambda_: Array, eta: Floats, sums: Floats, *, n_threads: int, isa: str | None = None
) -> TopicPosteriors:
    """Return the operands for lambda (words x width) and the prior eta (one number per word, or words x width).

    `sums` are the sums of lambda over all words of the vocabulary; `lambda_` may contain only some of the words.
    """
    (n_words, width), n_topics = lambda_.shape, sums.size
    shift = np.zeros(width)
    shift[:n_topics] = psi(sums)
    B = aligned_empty(lambda_.shape, lambda_.dtype)
    scales, terms, log_sums = np.empty(n_words), np.empty(n_words), np.empty(n_words)
    _kernels.word_operands(
        lambda_, prior_columns(eta), shift, n_topics, B, scales, terms, log_sums, n_threads=n_threads, isa=isa,
    )  # fmt: skip
    return TopicPosteriors(B, scales, terms, log_sums)


def prior_columns(eta: Floats) -> Floats:
    """Return the prior of the topics in a shape that broadcasts with lambda (words x width)."""
    return eta[:, np.newaxis] if eta.ndim == 1 else eta


def topics_term(words: TopicPosteriors, eta: Floats, sums: Floats) -> float:
    """Return the term of the topics in the bound, -sum_k KL(q(phi_k) || p(phi_k)). `words` must be all words."""
    if eta.ndim == 1:
        log_scales = sums.size * (gammaln(eta.sum()) - gammaln(eta).sum())
    else:
        of_topics = eta[:, : sums.size]
        log_scales = gammaln(of_topics.sum(axis=0)).sum() - gammaln(of_topics).sum()
    constants = log_scales - gammaln(sums).sum()
    return float(words.terms.sum() + constants)


def dirichlet_means(parameters: Array) -> Array:
    """Return the mean of the Dirichlet distribution of every row."""
    return np.asarray(parameters / parameters.sum(axis=1, dtype=np.float64, keepdims=True), dtype=parameters.dtype)


def uniform_counts(totals: Floats, n_topics: int, dtype: np.dtype[Any]) -> Array:
    """Return expected counts (documents x width) with the tokens of a document spread evenly over the topics."""
    return padded(np.broadcast_to(totals[:, np.newaxis] / n_topics, (totals.size, n_topics)), dtype)


def padded_parameters(topic_word: Array) -> Array:
    """Return lambda (words x width) from K x words; the padding is positive, as a parameter must be."""
    wide = padded(topic_word.T, topic_word.dtype)
    wide[:, len(topic_word) :] = 1
    return wide


@dataclass(frozen=True, eq=False)
class DirichletPosterior(OwnPrior):
    """Inference of LDA: q(theta_d) = Dirichlet(gamma_d), with the posterior of the topics fixed."""

    kind: ClassVar[str] = "dirichlet"
    parameter_names: ClassVar[tuple[str, ...]] = ("gamma",)
    background: ClassVar[None] = None
    stored: ClassVar[Mapping[str, StoredArray]] = {
        "topic_word": StoredArray("KW"),
        "alpha": StoredArray("K"),
        "eta": StoredArray("W|KW"),
    }
    stored_by_document: ClassVar[Mapping[str, StoredArray]] = {"gamma": StoredArray("DK")}
    topic_word: Array
    """lambda, the Dirichlet parameters of the topics (K x words)."""
    alpha: Floats
    """Parameters of the prior of the document weights, shape (K,)."""
    eta: Floats
    """Parameters of the prior of the topics: one number per word, or K x words."""

    @property
    def wide_eta(self) -> Floats:
        """The prior of the topics as the solvers use it: one number per word, or words x width."""
        return self.eta if self.eta.ndim == 1 else padded_parameters(self.eta)

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int,
        given: GivenDocuments | None = None,
    ) -> DocumentWeights:  # fmt: skip
        """Return the weights of every row: the mean of gamma, which is the mean of the prior for an empty row.

        gamma starts from uniform weights and is updated until a step moves at most 1e-4 of the tokens of a document.
        The result of a document does not depend on the other documents. Banned words, which have probability zero in
        `topic_word`, are ignored.
        """
        K, lambda_ = self.alpha.size, padded_parameters(self.topic_word)
        sums = topic_sums(lambda_, K)
        check_topics(sums)
        counts, unseen_tokens = select_known_words(counts, topic_word.sum(axis=0) > 0)
        totals = counts.totals
        words = word_operands(lambda_, np.ones(len(lambda_)), sums, n_threads=n_threads)
        expected = uniform_counts(totals, K, counts.dtype)
        docs = improve_documents(
            counts, words.operand, self.alpha, expected, totals=totals, steps=_FOLD_STEPS, tol=_FOLD_TOLERANCE,
            n_threads=n_threads,
        )  # fmt: skip
        logs = counts.sums(docs.operand, words.operand, Want.LOGS, n_threads=n_threads).logs
        scales = np.empty(counts.n_docs)
        for rows, block in counts.blocks(NUMBERS_AT_ONCE):
            scales[rows] = block.sums_by_row(block.values * words.scales[block.indices])
        gamma = expected[:, :K] + self.alpha.astype(counts.dtype)
        return DocumentWeights(
            dirichlet_means(gamma),
            np.zeros(counts.n_docs),
            counts,
            unseen_tokens,
            bounds=logs + docs.terms + scales,
            parameters={"gamma": gamma},
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (self.topic_word,)

    def without_arrays(self) -> DirichletPosterior:
        return replace(self, topic_word=np.empty((0, 0)))

    def with_arrays(self, arrays: tuple[Array, ...]) -> DirichletPosterior:
        return replace(self, topic_word=arrays[0])

    def edited(self, edit: TopicEdit) -> DirichletPosterior:
        """Return the posterior with merged and removed topics, without the counts of banned words.

        The expected counts lambda - eta and the parameters alpha of merged topics are added, and the rows of eta if
        each topic has its own. Extrapolation can end at a lambda below eta: a topic that is not merged keeps it. A
        banned word gets almost no prior, so that neither the other words nor the bound depend on it.
        """
        lambda_, eta = edit.sums(self.topic_word.astype(np.float64)), self.eta.copy()
        if eta.ndim == 1:
            for topic, group in enumerate(edit.groups):
                if len(group) > 1:
                    lambda_[topic] = np.maximum(lambda_[topic] - (len(group) - 1) * eta, eta)
        else:
            eta = edit.sums(eta)
        eta[..., edit.banned] = _BANNED_ETA
        lambda_[:, edit.banned] = _BANNED_ETA
        return DirichletPosterior(lambda_.astype(self.topic_word.dtype), np.asarray(edit.sums(self.alpha)), eta)

    def means(self, banned: Array) -> Array:
        """Return P(w|z), the means of the posterior, with zeros for banned words."""
        topics = self.topic_word.copy()
        topics[:, banned] = 0
        return dirichlet_means(topics)

    def topics_term(self, *, n_threads: int) -> float:
        """Return the term of the topics in the bound."""
        lambda_ = padded_parameters(self.topic_word)
        sums = topic_sums(lambda_, self.alpha.size)
        eta = self.wide_eta
        return topics_term(word_operands(lambda_, eta, sums, n_threads=n_threads), eta, sums)


@dataclass(frozen=True, eq=False)
class LearnedPosterior(NoLargeArrays, OwnPrior):
    """Posterior of documents under a learned Dirichlet prior, with P(w|z) fixed.

    The weights are the means of q(theta_d) = Dirichlet(alpha + n_d), with the expected counts n_d of the document. A
    background is one more component, so that its share is shrunk towards its mean as well.
    """

    kind: ClassVar[str] = "posterior"
    parameter_names: ClassVar[tuple[str, ...]] = ("gamma",)
    alpha: Floats
    """Parameters of the prior: one per topic, then one for the background if there is one."""
    background: Background | None = None
    """Background with its distribution."""

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int,
        given: GivenDocuments | None = None,
    ) -> DocumentWeights:  # fmt: skip
        """Return the posterior means, computed as in `DirichletPosterior`. An empty row gets the mean of the prior.

        The parameters of the posteriors are stored as "gamma".
        """
        K, n = len(topic_word), self.alpha.size
        components = padded(topic_word.T, counts.dtype, n)
        if self.background is not None:
            components[:, K] = self.background.word_probabilities
        largest = components.max(axis=1, keepdims=True)
        check_topics(largest)
        components /= np.where(largest > 0, largest, 1)
        counts, unseen_tokens = select_known_words(counts, largest[:, 0] > 0)
        totals = counts.totals
        expected = uniform_counts(totals, n, counts.dtype)
        improve_documents(
            counts, components, self.alpha, expected, totals=totals, steps=_FOLD_STEPS, tol=_FOLD_TOLERANCE,
            n_threads=n_threads,
        )  # fmt: skip
        gamma = expected[:, :n] + self.alpha.astype(counts.dtype)
        means = dirichlet_means(gamma)
        shares = np.zeros(counts.n_docs) if self.background is None else means[:, K].astype(np.float64)
        doc_topic = np.ascontiguousarray(means[:, :K]) if self.background is None else dirichlet_means(gamma[:, :K])
        return DocumentWeights(doc_topic, shares, counts, unseen_tokens, parameters={"gamma": gamma})

    def operands(self, weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
        model = Model(len(topic_word), 1.0, self.background)
        return model.token_operands(weights.doc_topic, topic_word, weights.background)


def with_posterior(fitted: FittedTopics) -> FittedTopics:
    """Return the model with inference under its learned prior; the model itself if it has none."""
    if fitted.document_prior is None:
        return fitted
    off = np.flatnonzero(~fitted.active)
    prior = fitted.document_prior
    if off.size:
        prior = prior.copy()
        prior[off] = _MIN_ALPHA
    return replace(fitted, inference=LearnedPosterior(prior, fitted.inference.background))


MODEL, POSTERIOR = "model", "posterior"
"""Names of the inferences that users choose from."""


def with_inference(fitted: FittedTopics, inference: str | None) -> FittedTopics:
    """Return the model with the named inference: "model" or "posterior". None: the posterior if a prior was learned."""
    if inference not in (None, MODEL, POSTERIOR):
        raise InputError(f"inference must be {POSTERIOR!r} or {MODEL!r}, got {inference!r}.")
    if inference == POSTERIOR and fitted.document_prior is None and not fitted.inference.has_prior_mean:
        raise UnsupportedError(
            "The model has no prior of P(z|d), which only a fit by likelihood to all documents learns: use "
            f"inference={MODEL!r}."
        )
    return fitted if inference == MODEL else with_posterior(fitted)


def _joined(samples: list[DocumentSample], n_topics: int) -> DocumentSample:
    """Return one sample from the documents of all shards, which does not depend on how the shards divide them."""
    parts = [sample.folded for sample in samples]
    counts = sparse_counts(sp.vstack([part.counts.matrix() for part in parts], format="csr"), parts[0].counts.dtype)
    rows = sample_documents(counts, sample_size(n_topics))
    doc_topic, background = (np.concatenate(arrays)[rows] for arrays in zip(*(part[:2] for part in parts), strict=True))
    weights = np.concatenate([sample.weights for sample in samples])[rows]
    return DocumentSample(DocumentWeights(doc_topic, background, counts.take(rows)), weights)


def learn_prior(evidence: PriorEvidence) -> Floats:
    """Return the parameters of the prior on P(z|d): one per topic, then one for the background if there is one."""
    fitted, topic_sums, samples = evidence
    held_out = HeldOutHalves(fitted, topic_sums, _joined(samples, fitted.n_topics))
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
    """Halves of some training documents, each scored with the topics from which the document was subtracted.

    The probabilities of a word therefore differ between documents, so every non-zero of the sample is a column. The
    size of the sample is bounded.
    """

    def __init__(self, fitted: FittedTopics, topic_sums: Floats, sample: DocumentSample) -> None:
        topics, inference = fitted.active_topics, fitted.inference
        K, background = len(topics), inference.background
        folded, weights, counts = sample.folded, sample.weights, sample.folded.counts
        lengths, words = np.diff(counts.indptr), counts.indices
        self._rows = np.repeat(np.arange(counts.n_docs), lengths)
        taken = np.minimum(weights, 1)  # a document of weight 2 stands for two, of which one is subtracted and scored
        x = taken[self._rows] * counts.values
        share = 0.0 if background is None else float(np.average(folded.background, weights=counts.totals + 1e-300))
        self.mean = _mean_weights(topic_sums, None if background is None else share)

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

        # a word that occurs in no other document would be unknown in a new document
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
            self._observed,
            self._operand,
            alpha,
            expected,
            totals=totals,
            steps=_SCORE_STEPS,
            tol=_SCORE_TOLERANCE,
            n_threads=1,
        )
        theta = dirichlet_means(expected[:, : alpha.size] + alpha.astype(expected.dtype))
        at = self._scored
        p = np.einsum("ik,ik->i", theta[self._rows[at]], self._probabilities[at], dtype=np.float64)
        return float((self._tokens * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum() / self._tokens.sum())


def _mean_weights(topics: Floats, background_share: float | None) -> Floats:
    """Return the mean weight of each topic in a document, then that of the background if there is one."""
    mean = topics / topics.sum() if topics.sum() > 0 else np.full(topics.size, 1 / topics.size)
    if background_share is not None:
        mean = np.append((1 - background_share) * mean, background_share)
    mean = np.maximum(mean, _LEAST_SHARE)
    return np.asarray(mean / mean.sum())


def _log_density(alpha: Floats, log_sums: Floats, rows: float) -> float:
    return float(rows * (gammaln(alpha.sum()) - gammaln(alpha).sum()) + (alpha * log_sums).sum())


def _newton_step(alpha: Floats, log_sums: Floats, rows: float) -> Floats:
    """Return the Newton step. The Hessian is a diagonal plus a constant, so it is inverted in linear time."""
    gradient = rows * (psi(alpha.sum()) - psi(alpha)) + log_sums
    diagonal = -rows * polygamma(1, alpha)
    constant = rows * float(polygamma(1, alpha.sum()))
    shared = (gradient / diagonal).sum() / (1 / constant + (1 / diagonal).sum())
    return np.asarray(-(gradient - shared) / diagonal)


def _symmetric_newton_step(alpha: Floats, log_sums: Floats, rows: float) -> Floats:
    """Return the Newton step along (1, ..., 1)."""
    m, a = alpha.size, float(alpha[0])
    gradient = rows * m * (psi(m * a) - psi(a)) + log_sums.sum()
    curvature = rows * m * (m * polygamma(1, m * a) - polygamma(1, a))
    return np.full(m, -gradient / curvature if curvature < 0 else 0.0)
