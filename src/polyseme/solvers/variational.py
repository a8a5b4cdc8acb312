"""Batch variational Bayes for LDA (Blei, Ng and Jordan 2003).

theta_d ~ Dirichlet(alpha) and phi_k ~ Dirichlet(eta). With q(theta_d) = Dirichlet(gamma_d), q(phi_k) =
Dirichlet(lambda_k) and the best q(z) for them, the lower bound of the log evidence is

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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polyseme.core.dirichlet import (
    Concentration,
    DocumentPosteriors,
    TopicPosteriors,
    improve_documents,
    topic_sums,
    topics_term,
    uniform_counts,
    word_operands,
)
from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, inner
from polyseme.solvers.ascent import Ascent, EvaluatedPoint, Extrapolation
from polyseme.solvers.base import FitProblem, Iterative
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.initialize import named_start

_RESTART_STEPS, _RESTART_TOLERANCE = 50, 0.003
_START_SHAPE, _START_ITERATIONS = 10.0, 10
_HOLD = 10
"""Iterations before priors are learned, because the first weights are nearly uniform."""


class Priors(NamedTuple):
    """Dirichlet priors: alpha (K numbers) of the document weights, eta (one number per word) of the topics."""

    alpha: Concentration
    eta: Concentration

    @property
    def learned(self) -> bool:
        return self.alpha.learned or self.eta.learned


class BoundReport(NamedTuple):
    """Bound and gain of variational Bayes, in nats per token."""

    bound: float
    gain: float
    """Mean increase of the bound per iteration, over the last iterations."""

    @property
    def objective(self) -> float:
        return self.bound

    @property
    def residual(self) -> float:
        return self.gain

    def columns(self) -> dict[str, float]:
        return {"bound": self.bound, "gain": self.gain}


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


class VariationalSolver(ABC):
    """Settings of a variational algorithm.

    Attributes
    ----------
    name : str
        Name that `solver=` takes.
    start : str
        Name of the default start.
    """

    name: ClassVar[str]
    start: ClassVar[str]

    @abstractmethod
    def begin(
        self, corpus: MemoryCorpus, priors: Priors, theta: Array, phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        """Start a fit.

        Parameters
        ----------
        corpus : MemoryCorpus
            Counts.
        priors : Priors
            Dirichlet priors of the document weights and of the topics.
        theta : array of shape (n_documents, width)
            P(z|d) to start from, padded.
        phi : array of shape (n_words, width)
            P(w|z) to start from, padded.
        rng : Generator
            Source of random numbers.

        Returns
        -------
        VariationalRun
            The fit before its first iteration.
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
    """

    doc_steps: int = 5
    doc_tol: float = 0.01
    refresh: int = 8
    extrapolate: bool = True
    name: ClassVar[str] = "variational"
    start: ClassVar[str] = "plsa"

    def __post_init__(self) -> None:
        if self.doc_steps < 0 or self.doc_tol < 0 or self.refresh < 0:
            raise InputError("Variational: doc_steps, doc_tol and refresh must not be negative.")

    def begin(
        self, corpus: MemoryCorpus, priors: Priors, theta: Array, phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        return _BatchRun(self, corpus, priors, *start_point(corpus, priors, theta, phi))


def flat_topics(n_words: int, n_topics: int, rng: np.random.Generator) -> Floats:
    """Return phi (words x K) near the uniform distribution: gamma noise with a standard deviation of a third.

    The bound ends higher than from exponential noise around the unigram.
    """
    noise = rng.gamma(_START_SHAPE, 1 / _START_SHAPE, (n_words, n_topics))
    return np.asarray(noise / noise.sum(axis=0))


def plsa_path(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Yield theta and phi (padded) after each of a few iterations of PLSA from a random start.

    Variational Bayes removes topics from documents early, because exp(psi(alpha)) is tiny, and they hardly come back.
    Maximum likelihood does not have this problem. `benchmarks/lda.py --variants` measures the difference.
    """
    model = Model(n_topics)
    run = SCD().begin(FitProblem(model, corpus), *named_start("random", corpus, model, rng))
    yield run.theta, run.phi
    for _ in range(_START_ITERATIONS):
        if run.exhausted:
            break
        run.advance()
        yield run.theta, run.phi


def plsa_factors(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the last theta and phi of `plsa_path`."""
    *_, factors = plsa_path(corpus, n_topics, rng)
    return factors


def start_point(corpus: MemoryCorpus, priors: Priors, theta: Array, phi: Array) -> tuple[Array, Array]:
    """Return lambda and the expected counts of the documents, from theta (documents x width) and phi."""
    return first_lambda(phi, priors, corpus.tokens), theta * corpus.totals[:, np.newaxis].astype(theta.dtype)


def first_lambda(phi: Array, priors: Priors, tokens: float) -> Array:
    """Return lambda (words x width) from phi (words x width), with the same number of tokens in each topic."""
    lambda_ = phi.astype(np.float64) * (tokens / priors.alpha.values.size) + priors.eta.values[:, np.newaxis]
    return lambda_.astype(phi.dtype)


def number_of_documents(corpus: MemoryCorpus) -> float:
    """Return the number of documents of a corpus, weighted."""
    return float(corpus.counts.n_docs if corpus.weights is None else corpus.weights.sum())


class _TopicPoint(NamedTuple):
    """Parameters of a fit, and what their evaluation starts from."""

    lambda_: Array
    priors: Priors
    expected: Array | None
    """Expected counts of the documents, from which their steps start. None after the evaluation, to free memory."""
    bounds: tuple[float, ...]
    """Bounds of the last accepted points before this one, at most one for each iteration of a period."""


def _extrapolated(extrapolation: Extrapolation, step: _TopicPoint, last: _TopicPoint) -> _TopicPoint:
    assert step.expected is not None
    assert last.expected is not None
    return step._replace(
        lambda_=extrapolation(step.lambda_, last.lambda_), expected=extrapolation(step.expected, last.expected)
    )


class _BatchRun(VariationalRun):
    """A fit by batch variational Bayes."""

    def __init__(
        self, settings: Variational, corpus: MemoryCorpus, priors: Priors, lambda_: Array, expected: Array
    ) -> None:
        self._tokens = corpus.tokens
        self._ascent = Ascent(
            _BatchEvaluation(settings, corpus),
            _TopicPoint(lambda_, priors, expected, ()),
            _extrapolated if settings.extrapolate else None,
            compare=True,
        )
        self._set_report()

    @property
    def lambda_(self) -> Array:
        return self._ascent.point.lambda_

    @property
    def priors(self) -> Priors:
        return self._ascent.point.priors

    def advance(self) -> None:
        self._ascent.advance()
        self.exhausted = self._ascent.exhausted
        self._set_report()

    def _set_report(self) -> None:
        """Set the report per token. The ascent compares sums, because a division can round two sums to one number."""
        total = self._ascent.report
        self.report = BoundReport(total.objective / self._tokens, total.residual / self._tokens)


class _BatchEvaluation:
    """Function that evaluates the points of a fit, one in each iteration."""

    def __init__(self, settings: Variational, corpus: MemoryCorpus) -> None:
        self._settings, self._corpus = settings, corpus
        self._iteration = -1

    def __call__(self, point: _TopicPoint) -> EvaluatedPoint[_TopicPoint]:
        """Improve the documents (in place, in `expected`), and evaluate the point with them."""
        self._iteration += 1
        corpus, (lambda_, priors, expected, bounds) = self._corpus, point
        assert expected is not None
        alpha, eta = priors.alpha.values, priors.eta.values
        sums = topic_sums(lambda_, alpha.size)
        words = word_operands(lambda_, eta, sums, n_threads=corpus.n_threads)
        docs = self._improved(words, alpha, expected, self._settings.doc_steps, self._settings.doc_tol)
        if self._settings.refresh and self._iteration and self._iteration % self._settings.refresh == 0:
            docs = self._restarted(words, alpha, expected, docs)
        swept = corpus.sweep(docs.operand, words.operand)
        bound = (
            corpus.total_log(swept.logs + docs.terms)
            + inner(corpus.word_totals, words.scales)
            + topics_term(words, eta, sums)
        )
        next_priors = priors
        if priors.learned and self._iteration >= _HOLD:
            next_priors = Priors(
                priors.alpha.improved(docs.log_sums, number_of_documents(corpus)),
                priors.eta.improved(words.log_sums, alpha.size),
            )
        next_lambda = np.multiply(words.operand, swept.word_sums, out=swept.word_sums)
        next_lambda += next_priors.eta.values[:, np.newaxis]
        next_expected = np.multiply(docs.operand, swept.row_sums, out=swept.row_sums)
        bounds = (*(() if priors.learned and self._iteration <= _HOLD else bounds), bound)
        step = _TopicPoint(next_lambda.astype(lambda_.dtype), next_priors, next_expected, bounds[-self._period :])
        return EvaluatedPoint(point._replace(expected=None), BoundReport(bound, self._gain(bounds)), step)

    @property
    def _period(self) -> int:
        """Return the number of iterations between two starts of the documents from uniform weights."""
        return max(1, self._settings.refresh)

    def _gain(self, bounds: tuple[float, ...]) -> float:
        """Return the mean increase of the bound over the last period; infinity before its end."""
        if len(bounds) <= self._period:
            return float("inf")
        return (bounds[-1] - bounds[-1 - self._period]) / self._period

    def _improved(
        self, words: TopicPosteriors, alpha: Floats, expected: Array, steps: int, tol: float
    ) -> DocumentPosteriors:
        corpus = self._corpus
        return improve_documents(
            corpus.by_doc, words.operand, alpha, expected, totals=corpus.totals, weights=corpus.weights,
            steps=steps, tol=tol, n_threads=corpus.n_threads,
        )  # fmt: skip

    def _restarted(
        self, words: TopicPosteriors, alpha: Floats, expected: Array, docs: DocumentPosteriors
    ) -> DocumentPosteriors:
        """Start the documents from uniform weights, and use the result (in `expected`) where it is better."""
        restarted = uniform_counts(self._corpus.totals, alpha.size, expected.dtype)
        others = self._improved(words, alpha, restarted, _RESTART_STEPS, _RESTART_TOLERANCE)
        better = self._document_bounds(words, others) > self._document_bounds(words, docs)
        expected[better] = restarted[better]
        return self._improved(words, alpha, expected, 0, 0.0)

    def _document_bounds(self, words: TopicPosteriors, docs: DocumentPosteriors) -> Floats:
        """Return the contribution of each document to the bound, without the scales of the words, a constant."""
        logs = self._corpus.logs(docs.operand, words.operand)
        return logs + docs.terms
