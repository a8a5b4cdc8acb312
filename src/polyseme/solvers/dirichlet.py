"""Batch variational Bayes for LDA (Blei, Ng and Jordan 2003).

theta_d ~ Dirichlet(alpha) and phi_k ~ Dirichlet(eta). With q(theta_d) =
Dirichlet(gamma_d), q(phi_k) = Dirichlet(lambda_k) and the best q(z) for them, the lower bound of the log evidence is

    sum_dw x log sum_k exp(E log theta_dk + E log phi_kw) - sum_d KL(q(theta_d) || p) - sum_k KL(q(phi_k) || p).

Its first term is the log of the kernel at the operands exp(E log theta) and exp(E log phi). The sums of the kernel
times the operands are the expected counts n. The updates gamma = alpha + n_d and lambda = eta + n_w never decrease the
bound.

References
----------
D. M. Blei, A. Y. Ng and M. I. Jordan. Latent Dirichlet allocation. Journal of Machine Learning Research 3, 2003.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyseme.core.dirichlet import (
    Concentration,
    DocumentPosteriors,
    TopicPosteriors,
    improve_documents,
    prior_columns,
    topic_sums,
    topics_term,
    uniform_counts,
    word_operands,
)
from polyseme.core.fold_in import fold_in_shard
from polyseme.core.model import EStepResult, Extrapolate, Model, WordTotals
from polyseme.core.shard import Additive, Shard
from polyseme.data.corpus import Corpus, MemoryCorpus, uniform_rows
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, Want, inner, padded_width, remaining_gain
from polyseme.solvers.ascent import Ascent, EvaluatedPoint, Extrapolation, points_snapshot, stored_point
from polyseme.solvers.base import FitProblem, Iterative, Snapshot, SolverRun
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.initialize import named_start

_RESTART_STEPS, _RESTART_TOLERANCE = 50, 0.003
_START_SHAPE, _START_ITERATIONS = 10.0, 10
_HOLD = 10
"""Iterations before priors are learned, because the first weights are nearly uniform."""


class Priors(NamedTuple):
    """Dirichlet priors: alpha (K numbers) of the document weights, eta of the topics.

    eta is one number per word, or words x width if every topic has its own; the padding is positive.
    """

    alpha: Concentration
    eta: Concentration

    @property
    def learned(self) -> bool:
        return self.alpha.learned or self.eta.learned


class BoundReport(NamedTuple):
    """Bound of variational Bayes, in nats per token."""

    bound: float
    residual: float = float("inf")

    @property
    def objective(self) -> float:
        return self.bound

    def columns(self) -> dict[str, float]:
        return {"bound": self.bound}


class VariationalRun(Iterative):
    """A running fit of lambda (words x width), which the report describes."""

    report: BoundReport

    @property
    @abstractmethod
    def lambda_(self) -> Array:
        """Return the Dirichlet parameters of the topics, words x width."""

    @property
    @abstractmethod
    def priors(self) -> Priors:
        """Return the priors at the point."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the state for a checkpoint."""


class VariationalSolver(ABC):
    """Settings of a variational algorithm.

    Attributes
    ----------
    name : str
        Name that `solver=` takes.
    start_nonzeros : int or None
        Most non-zeros of the documents in the short fit of PLSA that is the default start; a sample if there are more.
        None: as many as are loaded into memory.
    """

    name: ClassVar[str]
    start_nonzeros: ClassVar[int | None] = None

    @abstractmethod
    def short_fit(self, corpus: MemoryCorpus, priors: Priors, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return theta and phi of a short fit of PLSA, the start "plsa".

        Parameters
        ----------
        corpus : MemoryCorpus
            Counts of all documents or of a sample.
        priors : Priors
            Dirichlet priors. If every topic has its own, the fit starts from what they prefer (`guided_start`).
        rng : Generator
            Source of random numbers.

        Returns
        -------
        tuple of arrays
            P(z|d) (documents x width) and P(w|z) (words x width), padded.
        """

    @abstractmethod
    def begin(
        self, corpus: Corpus, priors: Priors, expected: Callable[[], Any], phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        """Start a fit.

        Parameters
        ----------
        corpus : Corpus
            Counts.
        priors : Priors
            Dirichlet priors of the document weights and of the topics.
        expected : callable
            Returns the expected counts of the documents to start from (documents x width), padded, in the form that the
            corpus uses. A solver whose documents have no state does not call it.
        phi : array of shape (n_words, width)
            P(w|z) to start from, padded.
        rng : Generator
            Source of random numbers.

        Returns
        -------
        VariationalRun
            The fit before its first iteration.
        """

    @abstractmethod
    def resume(self, corpus: Corpus, priors: Priors, state: Snapshot) -> VariationalRun:
        """Resume a fit from its state.

        Parameters
        ----------
        corpus : Corpus
            Counts.
        priors : Priors
            Dirichlet priors at the start of the fit.
        state : Snapshot
            What the run's `snapshot` returned.

        Returns
        -------
        VariationalRun
            The fit as it was.
        """


@dataclass(frozen=True)
class Variational(VariationalSolver):
    """Batch variational Bayes for LDA, with extrapolation; the bound never decreases.

    An iteration has a few steps for every document and one for the topics. Small steps cannot bring back a topic that a
    document has lost, because exp(psi(alpha)) is e^-50 for alpha = 1/50. So from time to time every document is also
    started from uniform weights, and the better result is used.

    Parameters
    ----------
    doc_steps : int, default=5
        Most steps per document and iteration.
    doc_tol : float, default=0.01
        A document is done when a step moves at most this share of its tokens.
    refresh : int, default=8
        Iterations between two starts of the documents from uniform weights. 0: never.
    extrapolate : bool, default=True
        Whether steps are extrapolated while the bound increases.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import LDA
    >>> from polyseme.solvers import Variational
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> LDA(2, solver=Variational(doc_steps=20), random_state=0).fit(X).solver_
    'variational'
    """

    doc_steps: int = 5
    doc_tol: float = 0.01
    refresh: int = 8
    extrapolate: bool = True
    name: ClassVar[str] = "variational"

    def __post_init__(self) -> None:
        if self.doc_steps < 0 or self.doc_tol < 0 or self.refresh < 0:
            raise InputError("Variational: doc_steps, doc_tol and refresh must not be negative.")

    def short_fit(self, corpus: MemoryCorpus, priors: Priors, rng: np.random.Generator) -> tuple[Array, Array]:
        *_, run = plsa_path(corpus, priors.alpha.values.size, rng, priors)
        return run.theta, run.phi

    def begin(
        self, corpus: Corpus, priors: Priors, expected: Callable[[], Any], phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        shared = first_lambda(phi, priors, corpus.tokens), priors.alpha.values, priors.eta.values
        return _BatchRun(self, corpus, priors, _TopicPoint(expected(), corpus.share(shared)))

    def resume(self, corpus: Corpus, priors: Priors, state: Snapshot) -> VariationalRun:
        return _BatchRun.resumed(self, corpus, priors, state)


def flat_topics(n_words: int, n_topics: int, rng: np.random.Generator) -> Floats:
    """Return phi (words x K) near the uniform distribution: gamma noise with a standard deviation of a third.

    The bound ends higher than from exponential noise around the unigram.
    """
    noise = rng.gamma(_START_SHAPE, 1 / _START_SHAPE, (n_words, n_topics))
    return np.asarray(noise / noise.sum(axis=0))


def plsa_path(
    corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator, priors: Priors | None = None
) -> Iterator[SolverRun]:
    """Yield a fit of PLSA at its start from documents and after each of a few iterations.

    Variational Bayes removes topics from documents early, because exp(psi(alpha)) is tiny, and they hardly come back.
    Maximum likelihood does not have this problem. `benchmarks/lda.py --variants` measures the difference.
    """
    model = Model(n_topics)
    theta, phi = named_start("documents", corpus, model, rng)
    run = SCD().begin(FitProblem(model, corpus), theta, phi if priors is None else guided_start(phi, priors))
    yield run
    for _ in range(_START_ITERATIONS):
        if run.exhausted:
            break
        run.advance()
        yield run


def guided_start(phi: Array, priors: Priors) -> Array:
    """Return a start (words x width) in which topics with more prior counts of some words than others have these words.

    Half of the probability of such a topic is in proportion to what its prior exceeds the smallest one of each word by,
    the other half is the mean of all topics, as `SeedWords.adapt_start` does.
    """
    eta, K = priors.eta.values, priors.alpha.values.size
    if eta.ndim == 1:
        return phi
    excess = eta[:, :K] - eta[:, :K].min(axis=1, keepdims=True)
    totals, phi, mean = excess.sum(axis=0), phi.copy(), phi[:, :K].mean(axis=1)
    for topic in np.flatnonzero(totals > 0):
        phi[:, topic] = (mean + excess[:, topic] / totals[topic]) / 2
    return phi


def uniform_expected(n_topics: int, shard: Shard) -> Array:
    """Return expected counts (documents x width) of the documents of a shard, with equal weights for all topics."""
    return expected_counts(uniform_rows(Model(n_topics), shard), shard.totals)


def folded_expected(n_topics: int, shard: Shard, phi: Array) -> Array:
    """Return expected counts (documents x width) of the documents of a shard, folded in with phi (words x width)."""
    return expected_counts(fold_in_shard(Model(n_topics), shard, phi), shard.totals)


def expected_counts(theta: Array, totals: Floats) -> Array:
    """Return n_d theta_dk (documents x width)."""
    return theta * totals[:, np.newaxis].astype(theta.dtype)


def first_lambda(phi: Array, priors: Priors, tokens: float) -> Array:
    """Return lambda (words x width) from phi (words x width), with the same number of tokens in each topic."""
    lambda_ = phi.astype(np.float64) * (tokens / priors.alpha.values.size) + prior_columns(priors.eta.values)
    return lambda_.astype(phi.dtype)


@dataclass(frozen=True)
class DirichletStatistics(Additive):
    """Sums over the documents of a shard, as `DirichletStep.e_step` computes them."""

    word_sums: Floats
    """Sum of weight_d r A_d over the documents of each word (words x width)."""
    bound: float
    """Contribution of the documents to the bound, without the scales of the words."""
    log_sums: Floats
    """sum_d weight_d E log theta_dk, shape (K,)."""
    documents: float
    """Number of documents, weighted."""


class _PreparedTopics(NamedTuple):
    """Shared parameters (lambda, alpha, eta), and what follows from lambda."""

    lambda_: Array
    alpha: Floats
    eta: Floats
    sums: Floats
    words: TopicPosteriors


@dataclass(frozen=True)
class DirichletStep:
    """One iteration of batch variational Bayes. Rows are expected counts, shared parameters (lambda, alpha, eta)."""

    settings: Variational
    alpha_kind: str
    eta_kind: str
    refresh: bool
    """Whether the documents are also started from uniform weights."""
    learn: bool
    """Whether priors are learned in this iteration."""

    def prepare(self, shared: tuple[Array, Floats, Floats], n_threads: int) -> _PreparedTopics:
        lambda_, alpha, eta = shared
        sums = topic_sums(lambda_, alpha.size)
        return _PreparedTopics(*shared, sums, word_operands(lambda_, eta, sums, n_threads=n_threads))

    def e_step(self, shard: Shard, rows: Array, prepared: _PreparedTopics, memory: Floats | None = None) -> EStepResult:
        """Improve the documents, in `rows` if these are writable, and return their expected counts and statistics."""
        expected, alpha, words = rows if rows.flags.writeable else rows.copy(), prepared.alpha, prepared.words
        docs = self._improved(shard, words, alpha, expected, self.settings.doc_steps, self.settings.doc_tol)
        if self.refresh:
            bounds = _document_bounds(shard, words, docs)
            del docs  # as large as `expected`
            docs = self._restarted(shard, words, alpha, expected, bounds)
        swept = shard.sums(docs.operand, words.operand, memory=memory)
        bound = shard.total_log(swept.logs + docs.terms)
        next_expected = np.multiply(docs.operand, swept.row_sums, out=swept.row_sums)
        stats = DirichletStatistics(swept.word_sums, bound, docs.log_sums, shard.documents)
        return EStepResult(expected, next_expected, stats)

    def m_step(
        self, words: WordTotals, prepared: _PreparedTopics, stats: DirichletStatistics
    ) -> tuple[tuple[Array, Floats, Floats], float]:
        """Return the next lambda, alpha and eta, and the bound in nats."""
        lambda_, alpha, eta, sums, topics = prepared
        bound = stats.bound + inner(words.word_totals, topics.scales) + topics_term(topics, eta, sums)
        if self.learn:
            next_alpha = Concentration(alpha, self.alpha_kind).improved(stats.log_sums, stats.documents).values
            eta = Concentration(eta, self.eta_kind).improved(topics.log_sums, alpha.size).values
            alpha = next_alpha
        next_lambda = np.multiply(topics.operand, stats.word_sums, out=stats.word_sums)
        next_lambda += prior_columns(eta)
        return (next_lambda.astype(lambda_.dtype), alpha, eta), bound

    def extrapolate_rows(self, extrapolate: Extrapolate, new: Array, old: Array, shard: Shard) -> Array:
        """Return new rows, because the E-step overwrites them."""
        rows = extrapolate(new, old)
        return rows.copy() if rows is new else rows

    def extrapolate_shared(
        self, extrapolate: Extrapolate, new: tuple[Array, ...], old: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        return (extrapolate(new[0], old[0]), *new[1:])

    def _improved(
        self, shard: Shard, words: TopicPosteriors, alpha: Floats, expected: Array, steps: int, tol: float
    ) -> DocumentPosteriors:
        return improve_documents(
            shard.by_doc, words.operand, alpha, expected, totals=shard.totals, weights=shard.weights,
            steps=steps, tol=tol, n_threads=shard.n_threads,
        )  # fmt: skip

    def _restarted(
        self, shard: Shard, words: TopicPosteriors, alpha: Floats, expected: Array, bounds: Floats
    ) -> DocumentPosteriors:
        """Start the documents from uniform weights, and use the result (in `expected`) where it exceeds the bounds."""
        restarted = uniform_counts(shard.totals, alpha.size, expected.dtype)
        others = self._improved(shard, words, alpha, restarted, _RESTART_STEPS, _RESTART_TOLERANCE)
        better = _document_bounds(shard, words, others) > bounds
        np.copyto(expected, restarted, where=better[:, np.newaxis])
        del restarted, others
        return self._improved(shard, words, alpha, expected, 0, 0.0)


def _document_bounds(shard: Shard, words: TopicPosteriors, docs: DocumentPosteriors) -> Floats:
    """Return the contribution of each document to the bound, without the scales of the words, a constant."""
    return shard.sums(docs.operand, words.operand, Want.LOGS).logs + docs.terms


class _TopicPoint(NamedTuple):
    """Parameters of a fit, and what their evaluation starts from."""

    expected: Any
    """Expected counts of the documents, from which their steps start. None after they were overwritten in memory."""
    shared: Any
    """(lambda, alpha, eta)."""


class _BatchEvaluation:
    """Function that evaluates the points of a fit, one in each iteration."""

    def __init__(self, settings: Variational, corpus: Corpus, priors: Priors, iteration: int = -1) -> None:
        self.settings, self._corpus, self._priors = settings, corpus, priors
        self.iteration = iteration
        """Number of evaluations so far, minus one."""

    def __call__(self, point: _TopicPoint) -> EvaluatedPoint[_TopicPoint]:
        """Improve the documents and evaluate the point with them."""
        self.iteration += 1
        result = self._corpus.run(self._step, point.expected, point.shared)
        used = point._replace(expected=None) if self._corpus.in_memory else point
        return EvaluatedPoint(used, BoundReport(result.report), _TopicPoint(result.next_rows, result.next_shared))

    def extrapolate(self, extrapolation: Extrapolation, step: _TopicPoint, last: _TopicPoint) -> _TopicPoint:
        return _TopicPoint(*self._corpus.combine(self._step, extrapolation, step, last))

    @property
    def _step(self) -> DirichletStep:
        refresh = self.settings.refresh
        return DirichletStep(
            self.settings,
            self._priors.alpha.kind,
            self._priors.eta.kind,
            refresh=refresh > 0 and self.iteration > 0 and self.iteration % refresh == 0,
            learn=self._priors.learned and self.iteration >= _HOLD,
        )


class _BatchRun(VariationalRun):
    """A fit by batch variational Bayes."""

    def __init__(
        self, settings: Variational, corpus: Corpus, priors: Priors, point: _TopicPoint, iteration: int = -1
    ) -> None:
        self._corpus, self._given = corpus, priors
        self._evaluation = _BatchEvaluation(settings, corpus, priors, iteration)
        extrapolate = self._evaluation.extrapolate if settings.extrapolate else None
        self._ascent = Ascent(self._evaluation, point, extrapolate)
        self._evaluated_at = self._evaluation.iteration
        self._set_report()

    @classmethod
    def resumed(cls, settings: Variational, corpus: Corpus, priors: Priors, state: Snapshot) -> _BatchRun:
        """Return the run that made a snapshot."""
        numbers = state.numbers
        K = priors.alpha.values.size
        eta_form = priors.eta.values.shape, np.float64
        forms = ((corpus.n_words, padded_width(K)), corpus.dtype), ((K,), np.float64), eta_form
        point = _TopicPoint(*stored_point(corpus, state, "point", forms))
        run = cls(settings, corpus, priors, point, int(numbers["evaluated_at"]) - 1)
        run._evaluation.iteration = int(numbers["iteration"])
        last = stored_point(corpus, state, "last", forms) if "last" in state.docs else None
        run._ascent.restore(None if last is None else _TopicPoint(*last), numbers)
        return run

    @property
    def lambda_(self) -> Array:
        return self._corpus.gather(self._ascent.point.shared)[0]

    @property
    def priors(self) -> Priors:
        _, alpha, eta = self._corpus.gather(self._ascent.point.shared)
        return Priors(replace(self._given.alpha, values=alpha), replace(self._given.eta, values=eta))

    def advance(self) -> None:
        point = self._ascent.point
        self._ascent.advance()
        if self._ascent.point is not point:
            self._evaluated_at = self._evaluation.iteration
        self._set_report()

    def remaining(self, values: Sequence[float]) -> float:
        """Return the gain of the last iterations, with at least one start of the documents from uniform weights."""
        return remaining_gain(values[_HOLD if self._given.learned else 0 :], self._evaluation.settings.refresh)

    def snapshot(self) -> Snapshot:
        point, last = self._ascent.point, self._ascent.last_step
        numbers = {
            **self._ascent.numbers,
            "iteration": float(self._evaluation.iteration),
            "evaluated_at": float(self._evaluated_at),
        }
        return points_snapshot(self._corpus, point, last, numbers)

    def _set_report(self) -> None:
        """Set the report per token. The ascent compares sums, because a division can make different sums equal."""
        self.report = BoundReport(self._ascent.report.objective / self._corpus.tokens)
