"""The objective of a PLSA fit, written as operands for the kernel and as M-steps on expected counts.

Plain PLSA maximizes sum_dw x_dw log sum_k theta_dk phi_kw. A variant uses other operands or another M-step:

- Tempered EM (Hofmann 1999) raises the operands to the power of a temperature beta. The objective is then
  F_beta = (1 / beta) sum x log sum_k (theta_dk phi_kw)^beta.
- A background (Hong 2012, section 6) adds one column to the operands, A = lambda and B = P(w|B), which no M-step
  changes. Words that occur everywhere are explained by it and leave the topics.
- Priors (`polyseme.priors`) change the M-step, and their log densities are added to the objective.

References
----------
T. Hofmann (1999). Probabilistic latent semantic indexing. SIGIR, 50-57.

L. Hong (2012). Probabilistic latent semantic analysis. Tutorial, Lehigh University.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from polyseme.core.shard import Shard, SufficientStatistics
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import (
    Array,
    Floats,
    Sums,
    Want,
    em_rows,
    em_words,
    inner,
    normalize_columns,
    normalize_rows,
    padded,
    weighted_sum,
    without_negligible,
)
from polyseme.losses import KULLBACK_LEIBLER, LOSSES
from polyseme.losses.base import Loss
from polyseme.priors.base import Prior
from polyseme.utils import got

Extrapolate = Callable[[Array, Array], Array]
"""Function of a new and an old factor; see `solvers.ascent.Extrapolation`."""
_RESTORED_SHARE = 1e-3
"""Weight that is spread over all topics of a document if a prior made one of its words impossible."""


@dataclass(frozen=True)
class Background:
    """Background distribution of words with the same share in every document.

    P(w|d) = share P(w|B) + (1 - share) sum_z P(w|z) P(z|d). The background P(w|B) is not fitted. Eq. 39 of Hong (2012)
    omits P(d) in the first term, which then does not sum to one.

    Parameters
    ----------
    share : float
        Share lambda of the background in every document, at least 0 and below 1.
    distribution : sequence of float, default=None
        P(w|B), one number per word. None uses the unigram distribution of the training documents.

    References
    ----------
    L. Hong (2012). Probabilistic latent semantic analysis. Tutorial, Lehigh University.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA, Background
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, background=Background(0.2), random_state=0, tol=0.1).fit(X)
    >>> model.background_weight_
    0.2
    """

    joint: ClassVar[bool] = False
    """Whether each document has its own share of the background."""
    share: float
    distribution: Sequence[float] | Floats | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.share, Real) and not isinstance(self.share, bool)
        if not number or not 0 <= float(self.share) < 1:
            raise InputError(f"background must be a number of at least 0 and below 1, got {self.share!r}.")
        object.__setattr__(self, "share", float(self.share))

    def probabilities(self, unigram: Floats) -> Floats:
        """Return P(w|B) for the words of a corpus.

        Parameters
        ----------
        unigram : ndarray of shape (n_words,)
            P(w) of the training documents.

        Returns
        -------
        ndarray of shape (n_words,)
            P(w|B), which sums to one.

        Raises
        ------
        InputError
            If `distribution` does not have one finite, non-negative number per word, or is zero for a word that occurs.
        """
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
                f"column {missing[0]}): give each of them a positive probability."
            )
        return np.asarray(given / given.sum())

    def resolve(self, unigram: Floats) -> Self:
        """Return the background with its distribution for the words of a corpus.

        Parameters
        ----------
        unigram : ndarray of shape (n_words,)
            P(w) of the training documents.

        Returns
        -------
        Background
            The same background; `distribution` is an array that sums to one.
        """
        return replace(self, distribution=self.probabilities(unigram))

    @property
    def word_probabilities(self) -> Floats:
        """P(w|B) as an array, after `resolve`."""
        assert self.distribution is not None
        return np.asarray(self.distribution)

    def topic_scales(self, shares: Floats) -> Floats:
        """Return s_d = sum_z P(z) P(d|z) / P(d), by which the tokens of the topics differ from P(d).

        Parameters
        ----------
        shares : ndarray of shape (n_documents,)
            Share of the background in each document.

        Returns
        -------
        ndarray of shape (n_documents,)
            One for each document, because all have the same share.
        """
        return np.ones(len(shares))


@dataclass(frozen=True)
class JointBackground(Background):
    """Background distribution of words whose share differs between documents (formulation 2 of Hong 2012).

    P(d,w) = share P(d) P(w|B) + (1 - share) sum_z P(z) P(d|z) P(w|z), with P(d|z) free. The model differs
    from `Background`: the given share holds for the corpus as a whole. Document d has the share
    share / (share + (1 - share) s_d) with s_d = sum_z P(z) P(d|z) / P(d); the mean of s_d is one.

    Parameters
    ----------
    share : float
        Share lambda of the background in the whole corpus, at least 0 and below 1.
    distribution : sequence of float, default=None
        P(w|B), one number per word. None uses the unigram distribution of the training documents.

    References
    ----------
    L. Hong (2012). Probabilistic latent semantic analysis. Tutorial, Lehigh University.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA, JointBackground
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, background=JointBackground(0.2), random_state=0, tol=0.1).fit(X)
    >>> model.doc_background_.shape
    (4,)
    """

    joint: ClassVar[bool] = True

    def topic_scales(self, shares: Floats) -> Floats:
        """Return s_d = sum_z P(z) P(d|z) / P(d), which the share of each document determines.

        Parameters
        ----------
        shares : ndarray of shape (n_documents,)
            Share of the background in each document, share / (share + (1 - share) s_d).

        Returns
        -------
        ndarray of shape (n_documents,)
            Scales s_d; zero for a document without words.
        """
        return np.asarray(self.share * (1 - shares) / ((1 - self.share) * shares))


def as_background(value: Any) -> Background | None:
    """Return the Background for a number (lambda), a Background or None; None if its share is zero."""
    background = value if isinstance(value, Background) else Background(0.0 if value is None else value)
    return background if background.share > 0 else None


def as_loss(loss: Any) -> Loss:
    """Return the loss object, or the loss of that name."""
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    if not isinstance(loss, Loss):
        names = ", ".join(map(repr, LOSSES))
        raise InputError(f"loss must be one of {names} or a loss object such as polyseme.losses.Beta(1.5), {got(loss)}")
    return loss


@dataclass(frozen=True)
class Model:
    """Objective of a PLSA fit with K topics.

    The factors are padded (see `polyseme.kernels`): theta has shape documents x width, phi words x width. With a
    background, the first column after the topics belongs to it in the operands; in theta and phi that column is zero.
    """

    n_topics: int
    temperature: float = 1.0
    background: Background | None = None
    """Background with its distribution, as `Background.resolve` returns it."""
    doc_prior: Prior | None = None
    word_prior: Prior | None = None
    topic_share: float | None = None
    """With a joint background: share of all tokens that the topics explain. None computes it from the shard."""
    loss: Loss = KULLBACK_LEIBLER
    """What is minimized. Minimizing the Kullback-Leibler divergence maximizes the likelihood."""
    free_scale: bool = False
    """With another loss: whether the rows of the documents' factor may have any sum, as in NMF, instead of n_d."""

    @property
    def n_columns(self) -> int:
        """Number of columns of the operands before padding."""
        return self.n_topics + (self.background is not None)

    @property
    def is_plain(self) -> bool:
        """Whether the operands are the factors themselves and the objective is the log-likelihood."""
        return self.temperature == 1.0 and self.background is None and not self._priors

    @property
    def names_topics(self) -> bool:
        """Whether a prior says what the topic of a number is about."""
        return any(part.names_topics for prior in self._priors for part in prior.parts)

    @property
    def weighs_entries(self) -> bool:
        """Whether the entries of the data can have weights; an entry of weight zero is missing."""
        return self.is_plain and self.loss.weighs_entries

    def check_weighs_entries(self) -> None:
        """Raise UnsupportedError if the entries of the data cannot have weights."""
        if self.weighs_entries:
            return
        if not self.loss.weighs_entries:
            raise UnsupportedError(
                f"loss={self.loss.name!r} takes no entry_weight and no missing entries (NaN): use 'kullback-leibler' "
                "or 'squared'."
            )
        raise UnsupportedError(
            "entry_weight and missing entries (NaN) are for models without background, priors and tempering: fit the "
            "model without them."
        )

    @property
    def is_monotone(self) -> bool:
        """Whether no EM step can lower the objective."""
        return all(prior.monotone for prior in self._priors)

    @property
    def is_separable(self) -> bool:
        """Whether the weights of a document, given the topics, depend on that document only."""
        joint = self.background is not None and self.background.joint
        parts = () if self.doc_prior is None else self.doc_prior.parts
        return not joint and all(part.for_new_documents() is not None for part in parts)

    @property
    def _priors(self) -> list[Prior]:
        return [prior for prior in (self.doc_prior, self.word_prior) if prior is not None]

    def operands(self, theta: Array, phi: Array) -> tuple[Array, Array]:
        """Return the operands of the kernel for these factors."""
        return self.doc_operand(theta), self.word_operand(phi)

    def doc_operand(self, theta: Array) -> Array:
        if self.background is not None:
            theta = theta * theta.dtype.type(1 - self.background.share)
            theta[:, self.n_topics] = self.background.share
        return theta if self.temperature == 1.0 else theta**self.temperature

    def word_operand(self, phi: Array) -> Array:
        if self.background is not None:
            phi = phi.copy()
            phi[:, self.n_topics] = self.background.word_probabilities
        return phi if self.temperature == 1.0 else phi**self.temperature

    def probability_operands(self, theta: Array, phi: Array) -> tuple[Array, Array]:
        """Return operands whose products are P(w|d), at any temperature."""
        A, B = replace(self, temperature=1.0).operands(theta, phi)
        if self.background is not None and self.background.joint:  # q / (lambda + (1 - lambda) s_d)
            A = A * (self.background_shares(theta) / self.background.share)[:, np.newaxis].astype(A.dtype)
        return A, B

    def background_shares(self, theta: Array) -> Floats:
        """Return the share of the background in each document."""
        if self.background is None:
            return np.zeros(len(theta))
        lam = self.background.share
        if not self.background.joint:
            return np.full(len(theta), lam)
        return np.asarray(lam / (lam + (1 - lam) * theta[:, : self.n_topics].sum(axis=1, dtype=np.float64)))

    def token_operands(self, doc_topic: Array, topic_word: Array, background_shares: Floats) -> tuple[Array, Array]:
        """Return operands whose products are P(w|d) = share_d P(w|B) + (1 - share_d) sum_z P(w|z) P(z|d)."""
        A = padded(doc_topic, topic_word.dtype, self.n_columns)
        B = padded(topic_word.T, topic_word.dtype, self.n_columns)
        if self.background is not None:
            A *= (1 - background_shares)[:, np.newaxis].astype(A.dtype)
            A[:, self.n_topics] = background_shares
            B[:, self.n_topics] = self.background.word_probabilities
        return A, B

    def for_words(self, words: Array) -> Model:
        """Return the model restricted to these words."""
        if self.background is None:
            return self
        restricted = replace(self.background, distribution=self.background.word_probabilities[words])
        return replace(self, background=restricted)

    def normalize_docs(self, theta: Array, shard: Shard) -> Array:
        """Return theta scaled so that every row sums to one; with a joint background, so that the mean row does."""
        if self.background is None or not self.background.joint:
            return normalize_rows(theta)
        mean = inner(theta.sum(axis=1, dtype=np.float64), shard.weighted_totals) / shard.tokens
        return np.asarray(theta / theta.dtype.type(mean))

    def objective(self, stats: SufficientStatistics, phi: Array) -> float:
        """Return the value that EM maximizes, at the point for which the statistics were computed."""
        value = stats.log_operands / self.temperature + stats.doc_log_density
        if self.word_prior is not None:
            value += self.word_prior.log_density(self._topics(phi))
        return value

    def _topics(self, phi: Array) -> Floats:
        """Return P(w|z) as topics x words, the shape that priors expect."""
        return np.ascontiguousarray(phi[:, : self.n_topics].T, dtype=np.float64)


class WordTotals(Protocol):
    """Word counts of a whole corpus, as the M-step of the words needs them."""

    @property
    def word_totals(self) -> Floats: ...
    @property
    def n_threads(self) -> int: ...


class EStepResult(NamedTuple):
    """Parameters of the documents of one shard after an E-step, and their statistics."""

    rows: Array
    """Parameters that the statistics belong to: those passed in, repaired where a word was impossible."""
    next_rows: Array
    """Parameters after the M-step of the documents."""
    stats: Any
    """Sums over the documents of the shard (`core.shard.Additive`)."""


class Report(NamedTuple):
    """Objective, log-likelihood and residual of a point, in nats per token."""

    objective: float
    """What the solver increases."""
    log_likelihood: float
    """Mean log P(w|d) over all tokens."""
    residual: float
    """Upper bound on the gain from optimizing one factor, plus the same for the other factor."""

    def columns(self) -> dict[str, float]:
        """Return the columns of the history."""
        return {"log_likelihood": self.log_likelihood, "objective": self.objective, "residual": self.residual}


def e_step(model: Model, shard: Shard, theta: Array, phi: Array, memory: Floats | None = None) -> EStepResult:
    """Run the E-step on one shard. Returns the updated document weights and the sufficient statistics.

    The expected counts are n = operand * row_sums, and the M-step of the documents is theta_dk ∝ n_dk. The statistics
    describe the point (theta, phi) before the update. `memory`, an array of phi's shape, is reused for the word sums.
    """
    theta, A, sums = _sweep_with_support(model, shard, theta, phi, memory)
    log_operands = log_likelihood = shard.total_log(sums.logs)
    next_theta, gain = _m_step_docs_with_gain(model, shard, theta, A, sums.row_sums)
    if model.temperature != 1.0:
        logs = shard.sums(*model.probability_operands(theta, phi), Want.LOGS).logs
        log_likelihood = shard.total_log(logs)
    if model.background is not None:
        sums.word_sums[:, model.n_topics] = 0
        if model.background.joint and model.temperature == 1.0:  # the same scale as in probability_operands
            scales = model.background_shares(theta) / model.background.share
            log_likelihood += inner(shard.weighted_totals, np.log(scales))
    mass = weighted_sum(shard.weighted_totals, theta, n_threads=shard.n_threads)
    density = _doc_log_density(model, shard, theta)
    stats = SufficientStatistics(sums.word_sums, log_operands, log_likelihood, shard.tokens, mass, gain, density)
    return EStepResult(theta, next_theta, stats)


def m_step(model: Model, words: WordTotals, phi: Array, stats: SufficientStatistics) -> tuple[Array, Report]:
    """Return the next phi, and the report of the point (theta, phi) that the statistics describe."""
    next_phi, word_gain = m_step_words(model, words, phi, stats)
    gain = max(stats.doc_gain + word_gain, 0.0) if np.isfinite(stats.log_operands) else float("inf")
    return next_phi, Report(
        model.objective(stats, phi) / stats.tokens, stats.log_likelihood / stats.tokens, gain / stats.tokens
    )


@dataclass(frozen=True)
class EMStep:
    """One iteration of EM, as a corpus runs it (`data.corpus.Step`). Rows are theta, shared parameters are (phi,)."""

    model: Model

    def prepare(self, shared: tuple[Array], n_threads: int) -> tuple[Array]:
        return shared

    def e_step(self, shard: Shard, rows: Array, shared: tuple[Array], memory: Floats | None = None) -> EStepResult:
        return e_step(self.model, shard, rows, *shared, memory)

    def m_step(
        self, words: WordTotals, shared: tuple[Array], stats: SufficientStatistics
    ) -> tuple[tuple[Array], Report]:
        next_phi, report = m_step(self.model, words, *shared, stats)
        return (next_phi,), report

    def extrapolate_rows(self, extrapolate: Extrapolate, new: Array, old: Array, shard: Shard) -> Array:
        return self.model.normalize_docs(extrapolate(new, old), shard)

    def extrapolate_shared(self, extrapolate: Extrapolate, new: tuple[Array], old: tuple[Array]) -> tuple[Array]:
        phi = normalize_columns(extrapolate(*new, *old))
        if self.model.word_prior is not None:
            topics = self.model._topics(phi)
            allowed = self.model.word_prior.restrict(topics)
            if allowed is not topics:
                phi = padded(allowed.T, phi.dtype, self.model.n_columns)
        return (phi,)


def m_step_docs(model: Model, shard: Shard, theta: Array, A: Array, row_sums: Array) -> Array:
    """Return the M-step of the documents for any model. The background column of `row_sums` must be zero."""
    if model.background is not None and model.background.joint:
        return _m_step_joint_docs(model, shard, A, row_sums)
    if model.doc_prior is None:
        return em_rows(A, row_sums, shard.totals, n_threads=shard.n_threads)[0]
    K = model.n_topics
    counts = np.multiply(A[:, :K], row_sums[:, :K], dtype=np.float64)
    prior = model.doc_prior.with_row_totals(shard.totals, shard.weights)
    rows = prior.maximize(counts, theta[:, :K].astype(np.float64))
    return padded(without_negligible(rows, theta.dtype), theta.dtype, model.n_columns)


def m_step_words(model: Model, words: WordTotals, phi: Array, stats: SufficientStatistics) -> tuple[Array, float]:
    """Return the M-step of the words, phi_kw ∝ operand * word_sums, and an upper bound, in nats, on the gain in phi.

    The bound is sum_w n_w log max_k H_kw / u_k with H = word_sums and u_k = sum_d n_d theta_dk. It is the duality gap
    of the Poisson problem for phi, which separates over words: x / p divided by the largest H_kw / u_k is feasible for
    the dual. Jensen's bound N log sum_k max_w H_kw / N is far looser, because a single rare word can determine it. For
    models that are not plain see `_m_step_docs_with_gain`.
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
        if model.background is None:  # a background gives every word that occurs a probability
            _restore_words(topics, counts, words.word_totals > 0)
        next_phi = padded(without_negligible(topics.T, phi.dtype), phi.dtype, model.n_columns)
    if not model.is_monotone:
        return next_phi, inner(np.abs(next_phi - phi).sum(axis=0), stats.topic_mass) / 2
    return next_phi, inner(_log_growth(next_phi, phi), words.word_totals)


class TopicUse(NamedTuple):
    """How the documents of a shard use the topics and the background."""

    largest: Array
    """Largest weight of each topic in a document, shape (width,)."""
    background: float
    """With a joint background: expected number of tokens that it explains."""


def topic_use(model: Model, shard: Shard, theta: Array, phi: Array) -> TopicUse:
    """Return how the documents of a shard use the topics at (theta, phi), repaired as in the E-step."""
    if model._priors:
        A, B = model.operands(theta, phi)
        theta = restore_support(theta, np.flatnonzero(np.isneginf(shard.sums(A, B, Want.LOGS).logs)), model.n_topics)
    background = 0.0
    if model.background is not None and model.background.joint:
        A, B = model.operands(theta, phi)
        background = inner(shard.sums(A, B, Want.WORDS).word_sums[:, model.n_topics], B[:, model.n_topics])
    return TopicUse(np.asarray(theta.max(axis=0, initial=0)), background)


def restore_support(theta: Array, rows: Any, n_topics: int) -> Array:
    """Return theta with a small weight for every topic in these rows."""
    theta = theta.copy()
    theta[rows] *= 1 - _RESTORED_SHARE
    theta[rows, :n_topics] += _RESTORED_SHARE / n_topics
    return theta


def _sweep_with_support(
    model: Model, shard: Shard, theta: Array, phi: Array, memory: Floats | None
) -> tuple[Array, Array, Sums]:
    """Return theta, its operand and the sums of a sweep.

    A sparse prior can leave a document with a word that none of its topics contains, so that its likelihood is zero.
    Such a document gets a small weight for every topic.
    """
    A, B = model.operands(theta, phi)
    sums = shard.sums(A, B, memory=memory)
    zero_rows = np.flatnonzero(np.isneginf(sums.logs)) if model._priors else ()
    if len(zero_rows):
        theta = restore_support(theta, zero_rows, model.n_topics)
        A = model.doc_operand(theta)
        sums = shard.sums(A, B, memory=memory)
    return theta, A, sums


def _m_step_docs_with_gain(model: Model, shard: Shard, theta: Array, A: Array, row_sums: Array) -> tuple[Array, float]:
    """Return the M-step of the documents, and an upper bound, in nats, on the gain in theta.

    Without priors and temperature, Jensen's inequality gives sum_d n_d log (max_k G_dk) / n_d with G = row_sums; with a
    background, lambda G_dB + (1 - lambda) max_k G_dk replaces the maximum. Since G_dk / n_d = next_dk / theta_dk, other
    models use sum_d n_d log max_k next_dk / theta_dk. It is a bound too, up to the pseudo-counts of the prior, if these
    are not negative. For priors that are not monotone, entries can become zero and positive again, so the total
    variation of the step is used instead.
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
    next_theta = m_step_docs(model, shard, theta, A, row_sums)
    if not model.is_monotone:
        return next_theta, inner(np.abs(next_theta - theta).sum(axis=1), shard.weighted_totals) / 2
    return next_theta, inner(_log_growth(next_theta, theta), shard.weighted_totals)


def _m_step_joint_docs(model: Model, shard: Shard, A: Array, row_sums: Array) -> Array:
    """Return theta_dk = n_dk / (n_d topic_share).

    This is P(z) P(d|z) / P(d) with P(z) P(d|z) = n_dk / (sum of all n_dk) and P(d) = n_d / N.
    """
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


def _restore_words(topics: Floats, counts: Floats, seen: Array) -> None:
    """Restore words that occur but that a prior removed from all topics, each in its largest topic (in place)."""
    missing = np.flatnonzero(seen & (topics.sum(axis=0) <= 0))
    if missing.size:
        owners = counts[:, missing].argmax(axis=0)
        totals = counts.sum(axis=1)
        topics[owners, missing] = np.maximum(counts[owners, missing], 1e-9) / np.maximum(totals[owners], 1.0)
        topics /= topics.sum(axis=1, keepdims=True)


def _log_growth(new: Array, old: Array) -> Floats:
    """Return the log of the largest growth factor of an entry in each row; entries that were zero are ignored."""
    growth = np.divide(new, old, out=np.zeros_like(new), where=old > 0).max(axis=1).astype(np.float64)
    return np.log(growth, out=np.zeros_like(growth), where=growth > 1)
