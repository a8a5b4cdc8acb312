"""A fixed background language model beside the topics (Zhai; Hong 2012, section 6).

A share lambda of every document is written by the background P(w|B), which is not fitted: the words that are everywhere
go there and leave the topics.

The objective that a fit raises, as operands for the kernel and as M-steps on expected counts.

Plain PLSA: sum_dw x log sum_k theta_dk phi_kw. Variants are other operands or other M-steps:

- A temperature beta != 1 (tempered EM, Hofmann 1999) raises the operands to that power; what then rises is
  F_beta = (1/beta) sum x log sum_k (theta_dk phi_kw)^beta.
- A background (background.py) is one more column of the operands, A = lambda and B = P(w|B), which no M-step changes.
- Priors (priors/) change the M-step, and their log densities are added to the objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from polyseme.core.factors import rows_to_one
from polyseme.core.shard import Shard
from polyseme.core.statistics import SufficientStatistics
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, Sums, em_rows, em_words, inner, padded, weighted_sum, without_negligible
from polyseme.priors import Prior


@dataclass(frozen=True)
class Background:
    """P(w|d) = share P(w|B) + (1 - share) sum_z P(w|z) P(z|d): every document has the same share of background.

    (Hong's eq. 39 leaves P(d) out of the first term, which then does not sum to one.)

    share : lambda, at least 0 and below 1.
    distribution : P(w|B), one number a word; None takes the unigram of the training documents.
    """

    joint: ClassVar[bool] = False
    """whether the documents' own shares are free"""
    share: float
    distribution: Sequence[float] | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.share, Real) and not isinstance(self.share, bool)
        if not number or not 0 <= float(self.share) < 1:
            raise InputError(f"background must be a number of at least 0 and below 1, got {self.share!r}.")
        object.__setattr__(self, "share", float(self.share))

    def probabilities(self, unigram: Floats) -> Floats:
        """P(w|B) for a vocabulary with this unigram, checked."""
        if self.distribution is None:
            return unigram
        try:
            given = np.asarray(self.distribution, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != unigram.shape:
            raise InputError(f"background: distribution must have one number for each of the {unigram.size} words.")
        if not np.isfinite(given).all() or (given < 0).any():
            raise InputError("background: distribution must be finite and non-negative.")
        missing = np.flatnonzero((given == 0) & (unigram > 0))
        if missing.size:
            raise InputError(
                f"background: distribution gives probability 0 to {missing.size} of the words that occur (such as "
                f"column {missing[0]}): give each of them a little."
            )
        return np.asarray(given / given.sum())


@dataclass(frozen=True)
class JointBackground(Background):
    """Hong's formulation 2: P(d,w) = share P(d) P(w|B) + (1 - share) sum_z P(z) P(d|z) P(w|z), with P(d|z) free.

    Not the same model: only over all documents together is the share as given. Document d has the share
    share / (share + (1 - share) s_d), with s_d = sum_z P(z) P(d|z) / P(d); the mean of s_d is one.
    """

    joint: ClassVar[bool] = True


def as_background(value: Any) -> Background | None:
    """A number (lambda), a Background, or None; no background at all is None."""
    background = value if isinstance(value, Background) else Background(0.0 if value is None else value)
    return background if background.share > 0 else None


_RESTORED_SHARE = 1e-3
"""what a document that a prior left with an impossible word gets of all topics together"""


class WordTotals(Protocol):
    """What a corpus knows of the words of all its documents."""

    @property
    def word_totals(self) -> Floats: ...
    @property
    def n_threads(self) -> int: ...


class FixedBackground(NamedTuple):
    """A background as a model holds it."""

    share: float
    """lambda"""
    distribution: Floats
    """P(w|B)"""
    joint: bool
    """whether P(d|z) is free, so that the rows of theta sum to one only in the mean: see JointBackground"""


@dataclass(frozen=True)
class Model:
    """PLSA with K topics. Arrays are padded (see `kernels`): theta documents x width, phi words x width.

    With a background the column behind the last topic is its place in the operands; in theta and phi it is zero.
    """

    n_topics: int
    temperature: float = 1.0
    background: FixedBackground | None = None
    doc_prior: Prior | None = None
    word_prior: Prior | None = None
    topic_share: float | None = None
    """with a joint background: the share of all tokens that the topics have, if it is known already"""

    @property
    def n_columns(self) -> int:
        """How many columns the operands have before they are padded."""
        return self.n_topics + (self.background is not None)

    @property
    def is_plain(self) -> bool:
        """Whether the kernel's operands are the factors themselves, and nothing is added to the likelihood."""
        return self.temperature == 1.0 and self.background is None and not self._priors

    @property
    def is_monotone(self) -> bool:
        """Whether no step of EM can lower the objective."""
        return all(prior.monotone for prior in self._priors)

    @property
    def is_separable(self) -> bool:
        """Whether a document's weights, given the topics, depend on that document alone."""
        joint = self.background is not None and self.background.joint
        parts = () if self.doc_prior is None else self.doc_prior.parts
        return not joint and all(part.row_by_row() is not None for part in parts)

    @property
    def _priors(self) -> list[Prior]:
        return [prior for prior in (self.doc_prior, self.word_prior) if prior is not None]

    def operands(self, theta: Array, phi: Array) -> tuple[Array, Array]:
        """What the kernel sees of the factors."""
        return self.doc_operand(theta), self.word_operand(phi)

    def doc_operand(self, theta: Array) -> Array:
        if self.background is not None:
            theta = theta * theta.dtype.type(1 - self.background.share)
            theta[:, self.n_topics] = self.background.share
        return theta if self.temperature == 1.0 else theta**self.temperature

    def word_operand(self, phi: Array) -> Array:
        if self.background is not None:
            phi = phi.copy()
            phi[:, self.n_topics] = self.background.distribution
        return phi if self.temperature == 1.0 else phi**self.temperature

    def probability_operands(self, theta: Array, phi: Array) -> tuple[Array, Array]:
        """Operands whose products are P(w|d), at any temperature."""
        A, B = replace(self, temperature=1.0).operands(theta, phi)
        if self.background is not None and self.background.joint:  # q / (lambda + (1 - lambda) s_d)
            A = A * (self.background_shares(theta) / self.background.share)[:, np.newaxis].astype(A.dtype)
        return A, B

    def background_shares(self, theta: Array) -> Floats:
        """The share of each document that the background writes."""
        if self.background is None:
            return np.zeros(len(theta))
        lam = self.background.share
        if not self.background.joint:
            return np.full(len(theta), lam)
        return np.asarray(lam / (lam + (1 - lam) * theta[:, : self.n_topics].sum(axis=1, dtype=np.float64)))

    def token_operands(self, doc_topic: Array, topic_word: Array, background_shares: Floats) -> tuple[Array, Array]:
        """Operands whose products are P(w|d) = share_d P(w|B) + (1 - share_d) sum_z P(w|z) P(z|d)."""
        A = padded(doc_topic, topic_word.dtype, self.n_columns)
        B = padded(topic_word.T, topic_word.dtype, self.n_columns)
        if self.background is not None:
            A *= (1 - background_shares)[:, np.newaxis].astype(A.dtype)
            A[:, self.n_topics] = background_shares
            B[:, self.n_topics] = self.background.distribution
        return A, B

    def for_words(self, words: Array) -> Model:
        """The same model of these words only."""
        if self.background is None:
            return self
        some = self.background._replace(distribution=self.background.distribution[words])
        return replace(self, background=some)

    def normalized_docs(self, theta: Array, shard: Shard) -> Array:
        """theta with the sums that this model's theta has: each row's is one, or with a joint background their mean."""
        if self.background is None or not self.background.joint:
            return rows_to_one(theta)
        mean = inner(theta.sum(axis=1, dtype=np.float64), shard.weighted_totals) / shard.tokens
        return np.asarray(theta / theta.dtype.type(mean))

    def objective(self, stats: SufficientStatistics, phi: Array) -> float:
        """The value that EM raises, at the point that the statistics describe."""
        value = stats.log_operands / self.temperature + stats.doc_log_density
        if self.word_prior is not None:
            value += self.word_prior.log_density(self._topics(phi))
        return value

    def _topics(self, phi: Array) -> Floats:
        """P(w|z) as priors take it, topics x words."""
        return np.ascontiguousarray(phi[:, : self.n_topics].T, dtype=np.float64)


class EStepResult(NamedTuple):
    """What comes of an E-step over a shard."""

    theta: Array
    """the point that was looked at (see `_explaining`)"""
    next_theta: Array
    """the M-step of the documents"""
    stats: SufficientStatistics


def e_step(model: Model, shard: Shard, theta: Array, phi: Array, memory: Floats | None = None) -> EStepResult:
    """One E-step over a shard, and the M-step of its documents: the next theta, and what the shard sends home.

    theta_dk ∝ n_dk, the expected counts n = operand * row_sums. The statistics describe the point (theta, phi) that
    came in; their word sums take the memory (of phi's shape), if there is one.
    """
    theta, A, sums = _explaining(model, shard, theta, phi, memory)
    log_operands = log_likelihood = shard.total_log(sums.logs)
    next_theta, gain = _next_docs(model, shard, theta, A, sums.row_sums)
    if model.temperature != 1.0:
        logs = shard.logs(*model.probability_operands(theta, phi))
        log_likelihood = shard.total_log(logs)
    if model.background is not None:
        sums.word_sums[:, model.n_topics] = 0
        if model.background.joint and model.temperature == 1.0:  # see probability_operands
            scales = model.background_shares(theta) / model.background.share
            log_likelihood += inner(shard.weighted_totals, np.log(scales))
    mass = weighted_sum(shard.weighted_totals, theta, n_threads=shard.n_threads)
    density = _doc_log_density(model, shard, theta)
    stats = SufficientStatistics(sums.word_sums, log_operands, log_likelihood, shard.tokens, mass, gain, density)
    return EStepResult(theta, next_theta, stats)


class Quality(NamedTuple):
    """How good a point is, in nats per token."""

    objective: float
    log_likelihood: float
    residual: float
    """what re-optimizing one side, and then the other, could still gain, at most"""


class EMStepResult(NamedTuple):
    """A point (theta, phi), how good it is, and where EM goes from it; factors as the corpus keeps them."""

    theta: Any
    phi: Any
    next_theta: Any
    next_phi: Any
    quality: Quality


def em_step(model: Model, shard: Shard, theta: Array, phi: Array) -> EMStepResult:
    """An iteration of EM at (theta, phi), over a shard that holds all documents."""
    theta, next_theta, stats = e_step(model, shard, theta, phi)
    next_phi, quality = m_step(model, shard, phi, stats)
    return EMStepResult(theta, phi, next_theta, next_phi, quality)


def background_sums(model: Model, shard: Shard, theta: Array, phi: Array) -> Floats:
    """How many tokens of each word the background explains; there must be one."""
    A, B = model.operands(theta, phi)
    word_sums = shard.word_sums(A, B)
    return np.asarray(word_sums[:, model.n_topics] * B[:, model.n_topics])


def m_step(model: Model, words: WordTotals, phi: Array, stats: SufficientStatistics) -> tuple[Array, Quality]:
    """What follows from the statistics of all documents at (theta, phi): the next phi, and how good the point is."""
    next_phi, word_gain = improve_words(model, words, phi, stats)
    gain = max(stats.doc_gain + word_gain, 0.0) if np.isfinite(stats.log_operands) else float("inf")
    return next_phi, Quality(
        model.objective(stats, phi) / stats.tokens, stats.log_likelihood / stats.tokens, gain / stats.tokens
    )


def improve_words(model: Model, words: WordTotals, phi: Array, stats: SufficientStatistics) -> tuple[Array, float]:
    """The M-step of the words, phi_kw ∝ operand * word_sums, and what better phi could gain at most, in nats.

    The bound is sum_w n_w log max_k H_kw / u_k with H = word_sums and u_k = sum_d n_d theta_dk: the duality gap of the
    Poisson problem for phi, which separates over words (scaling x / p by the largest H_kw / u_k makes it feasible for
    the dual). Jensen's N log sum_k max_w H_kw / N is far looser: one rare word decides it. For models that are not
    plain, see `_next_docs`.
    """
    B = model.word_operand(phi)
    if model.word_prior is None:
        next_phi, gains = em_words(B, stats.word_sums, stats.topic_mass, words.word_totals, n_threads=words.n_threads)
        if model.is_plain:
            return next_phi, float(gains.sum())
    else:
        K = model.n_topics
        counts = np.ascontiguousarray((stats.word_sums[:, :K] * B[:, :K]).T)
        topics = model.word_prior.maximize(counts, model._topics(phi))
        if model.background is None:  # which can write every word that occurs
            _keep_words(topics, counts, words.word_totals > 0)
        next_phi = padded(without_negligible(topics.T, phi.dtype), phi.dtype, model.n_columns)
    if not model.is_monotone:
        return next_phi, inner(np.abs(next_phi - phi).sum(axis=0), stats.topic_mass) / 2
    return next_phi, inner(_log_growth(next_phi, phi), words.word_totals)


def _explaining(
    model: Model, shard: Shard, theta: Array, phi: Array, memory: Floats | None
) -> tuple[Array, Array, Sums]:
    """theta, its operand and the sweep.

    A prior that makes factors sparse can leave a document with a word that none of its topics has, and so with no
    likelihood at all: such a document gets a little of every topic back.
    """
    A, B = model.operands(theta, phi)
    sums = shard.sweep(A, B, memory=memory)
    lost = np.flatnonzero(np.isneginf(sums.logs)) if model._priors else ()
    if len(lost):
        theta = restore_support(theta, lost, model.n_topics)
        A = model.doc_operand(theta)
        sums = shard.sweep(A, B, memory=memory)
    return theta, A, sums


def restore_support(theta: Array, rows: Any, n_topics: int) -> Array:
    """theta with a little of every topic in these rows."""
    theta = theta.copy()
    theta[rows] *= 1 - _RESTORED_SHARE
    theta[rows, :n_topics] += _RESTORED_SHARE / n_topics
    return theta


def _next_docs(model: Model, shard: Shard, theta: Array, A: Array, row_sums: Array) -> tuple[Array, float]:
    """The M-step of the documents, and what better theta could gain.

    Without priors or a temperature that is at most sum_d n_d log (max_k G_dk) / n_d with G = row_sums; with a
    background, of lambda G_dB + (1 - lambda) max_k G_dk (Jensen). Since G_dk / n_d = next_dk / theta_dk, other models
    take sum_d n_d log max_k next_dk / theta_dk: a bound too, apart from the prior's own pseudo-counts, where those are
    not negative. Where a step may fall, zeros come and go, and the total variation of the step stands in.
    """
    K, totals = model.n_topics, shard.totals
    from_background: Array | float = 0.0
    if model.background is not None:
        from_background = row_sums[:, K] * A[:, K]
        row_sums[:, K] = 0
    exact = model.temperature == 1.0 and model.doc_prior is None and not (model.background and model.background.joint)
    if exact and model.background is not None:
        best = from_background + (1 - model.background.share) * row_sums.max(axis=1).astype(np.float64)
        gains = np.log(np.divide(best, totals, out=np.ones_like(totals), where=totals > 0)) * totals
        next_theta, _ = em_rows(A, row_sums, totals, n_threads=shard.n_threads)
        return next_theta, shard.total_log(gains)
    if exact:
        next_theta, gains = em_rows(A, row_sums, totals, n_threads=shard.n_threads)
        return next_theta, shard.total_log(gains)
    next_theta = improve_docs(model, shard, theta, A, row_sums)
    if not model.is_monotone:
        return next_theta, inner(np.abs(next_theta - theta).sum(axis=1), shard.weighted_totals) / 2
    return next_theta, inner(_log_growth(next_theta, theta), shard.weighted_totals)


def _log_growth(new: Array, old: Array) -> Floats:
    """log of the largest factor by which a number of each row grows; zeros do not count."""
    growth = np.divide(new, old, out=np.zeros_like(new), where=old > 0).max(axis=1).astype(np.float64)
    return np.log(growth, out=np.zeros_like(growth), where=growth > 1)


def improve_docs(model: Model, shard: Shard, theta: Array, A: Array, row_sums: Array) -> Array:
    """The M-step of the documents for any model; the background's column of row_sums is zero."""
    if model.background is not None and model.background.joint:
        return _joint_rows(model, shard, A, row_sums)
    if model.doc_prior is None:
        return em_rows(A, row_sums, shard.totals, n_threads=shard.n_threads)[0]
    K = model.n_topics
    counts = np.multiply(A[:, :K], row_sums[:, :K], dtype=np.float64)
    prior = model.doc_prior.with_row_totals(shard.totals, shard.weights)
    rows = prior.maximize(counts, theta[:, :K].astype(np.float64))
    return padded(without_negligible(rows, theta.dtype), theta.dtype, model.n_columns)


def _joint_rows(model: Model, shard: Shard, A: Array, row_sums: Array) -> Array:
    """theta_dk = n_dk / (n_d share of the topics): P(z) P(d|z) = n_dk / sum over all, divided by P(d) = n_d / N."""
    counts = np.multiply(A, row_sums, dtype=np.float64)
    share = model.topic_share
    if share is None:
        share = inner(counts.sum(axis=1), 1.0 if shard.weights is None else shard.weights) / shard.tokens
    scale = shard.totals[:, np.newaxis] * share
    rows = np.divide(counts, scale, out=np.zeros_like(counts), where=scale > 0)
    return without_negligible(rows, A.dtype)


def _doc_log_density(model: Model, shard: Shard, theta: Array) -> float:
    if model.doc_prior is None:
        return 0.0
    prior = model.doc_prior.with_row_totals(shard.totals, shard.weights)
    return shard.total_log(prior.row_log_density(theta[:, : model.n_topics].astype(np.float64)))


def _keep_words(topics: Floats, counts: Floats, seen: Array) -> None:
    """A word that occurs and that a prior took out of every topic keeps the topic that had most of it (in place)."""
    lost = np.flatnonzero(seen & (topics.sum(axis=0) <= 0))
    if lost.size:
        owners = counts[:, lost].argmax(axis=0)
        totals = counts.sum(axis=1)
        topics[owners, lost] = np.maximum(counts[owners, lost], 1e-9) / np.maximum(totals[owners], 1.0)
        topics /= topics.sum(axis=1, keepdims=True)
