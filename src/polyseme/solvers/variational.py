"""Variational Bayes for LDA (Blei, Ng and Jordan 2003) on the shared kernel.

theta_d ~ Dirichlet(alpha) and phi_k ~ Dirichlet(eta). With q(theta_d) = Dirichlet(gamma_d), q(phi_k) =
Dirichlet(lambda_k) and the best q(z) for them, the bound of the log evidence is

    sum_dw x log sum_k exp(E log theta_dk + E log phi_kw) - sum_d KL(q(theta_d) || p) - sum_k KL(q(phi_k) || p),

whose first term is the kernel's log at the operands exp(E log theta), exp(E log phi). The kernel's sums times the
operands are the expected counts n; gamma = alpha + n_d and lambda = eta + n_w are the updates, and neither lowers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from polyseme.core.dirichlet import (
    Concentration,
    DocumentSide,
    WordSide,
    improve_documents,
    topic_sums,
    topics_term,
    word_operands,
)
from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, check_topics, inner, padded
from polyseme.solvers.ascent import Momentum
from polyseme.solvers.base import Iterative
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.initialize import named_start

_FOLD_STEPS, _FOLD_TOLERANCE = 1000, 1e-4
_FRESH_STEPS, _FRESH_TOLERANCE = 50, 0.003
_START_SHAPE, _START_ITERATIONS = 10.0, 10
_HOLD = 10
"""iterations before priors are learned: the first weights are still near uniform, and so would be a prior of them"""


class Priors(NamedTuple):
    """alpha (K numbers) of the documents' weights and eta (one number a word) of the topics."""

    alpha: Concentration
    eta: Concentration

    @property
    def learned(self) -> bool:
        return self.alpha.learned or self.eta.learned


class BoundReport(NamedTuple):
    """Where a fit of variational Bayes is; nats per token."""

    bound: float
    gain: float
    """what an iteration adds to it, lately"""

    @property
    def objective(self) -> float:
        return self.bound

    @property
    def residual(self) -> float:
        return self.gain

    def columns(self) -> dict[str, float]:
        return {"bound": self.bound, "gain": self.gain}


class VariationalRun(Iterative, Protocol):
    """A solver at work on lambda (words x width); the report describes it."""

    @property
    def lambda_(self) -> Array: ...
    @property
    def priors(self) -> Priors: ...


class VariationalSolver(Protocol):
    """Settings of an algorithm."""

    name: ClassVar[str]
    start: ClassVar[str]
    """the start that suits it"""

    def begin(
        self, corpus: MemoryCorpus, priors: Priors, theta: Array, phi: Array, rng: np.random.Generator
    ) -> VariationalRun: ...


def flat_topics(n_words: int, n_topics: int, rng: np.random.Generator) -> Floats:
    """phi (words x K) near the uniform distribution: gamma noise of a third, columns normalized.

    Weak differences let the data decide: from exponential noise around the unigram the bound ends lower.
    """
    noise = rng.gamma(_START_SHAPE, 1 / _START_SHAPE, (n_words, n_topics))
    return np.asarray(noise / noise.sum(axis=0))


def likely_path(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """theta and phi (padded) after each of a few iterations of maximum likelihood (PLSA) from a random start.

    exp(psi(alpha)) makes variational Bayes decide early, and what it has dropped hardly comes back; likelihood has no
    such trap. benchmarks/lda.py --variants measures it.
    """
    model = Model(n_topics)
    run = SCD().begin(model, corpus, *named_start("random", corpus, model, rng))
    yield run.theta, run.phi
    for _ in range(_START_ITERATIONS):
        if run.exhausted:
            break
        run.advance()
        yield run.theta, run.phi


def likely_factors(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The end of `likely_path`."""
    *_, factors = likely_path(corpus, n_topics, rng)
    return factors


@dataclass(frozen=True)
class Variational:
    """Batch variational Bayes: a few steps of every document, then one of the topics, lengthened while the bound rises.

    A topic that a document has dropped cannot come back by small steps: exp(psi(alpha)) is e^-50 for alpha = 1/50. So
    now and then every document is also tried from uniform weights, and keeps the better of the two. The bound never
    falls.

    doc_steps, doc_tol : a document takes so many steps an iteration, or until one moves at most that share of its
        tokens.
    refresh : iterations between such trials; 0 for none.
    extrapolate : whether steps are lengthened (see accelerate.py).
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


def start_point(corpus: MemoryCorpus, priors: Priors, theta: Array, phi: Array) -> tuple[Array, Array]:
    """lambda and expected counts of the documents from theta (documents x width) and phi (words x width)."""
    return first_lambda(phi, priors, corpus.tokens), theta * corpus.totals[:, np.newaxis].astype(theta.dtype)


def first_lambda(phi: Array, priors: Priors, tokens: float) -> Array:
    """lambda (words x width) if each topic of phi (words x width) had as many of the tokens as the others."""
    lambda_ = phi.astype(np.float64) * (tokens / priors.alpha.values.size) + priors.eta.values[:, np.newaxis]
    return lambda_.astype(phi.dtype)


class _Look(NamedTuple):
    """The bound at a point, and where the next iteration goes from there."""

    lambda_: Array
    priors: Priors
    bound: float
    next_lambda: Array
    next_expected: Array
    next_priors: Priors


class _BatchRun:
    exhausted = False

    def __init__(
        self, settings: Variational, corpus: MemoryCorpus, priors: Priors, lambda_: Array, expected: Array
    ) -> None:
        self._settings, self._corpus = settings, corpus
        self._momentum = Momentum(settings.extrapolate, keep=0.5)
        self._iteration = 0
        self._good = self._em_step(lambda_, expected, priors)
        self._last = self._good.next_lambda, self._good.next_expected
        self._bounds = [self._good.bound]
        self.report = self._reported()

    @property
    def lambda_(self) -> Array:
        return self._good.lambda_

    @property
    def priors(self) -> Priors:
        return self._good.priors

    def advance(self) -> None:
        self._iteration += 1
        good = self._good
        tried = self._em_step(
            self._momentum.extrapolate(good.next_lambda, self._last[0]),
            self._momentum.extrapolate(good.next_expected, self._last[1]),
            good.next_priors,
        )
        if tried.bound >= good.bound:
            self._momentum.succeeded()
            self._last, self._good = (good.next_lambda, good.next_expected), tried
            if self.priors.learned and self._iteration <= _HOLD:
                self._bounds.clear()
            self._bounds.append(tried.bound)
            self.report = self._reported()
        elif self._momentum.plain:
            self.exhausted = True  # rounding is all that is left
        else:
            self._momentum.failed()

    def _reported(self) -> BoundReport:
        """The gain is the mean of an iteration since the documents were last tried afresh, that trial included."""
        many = max(1, self._settings.refresh)
        gain = (self._bounds[-1] - self._bounds[-1 - many]) / many if len(self._bounds) > many else float("inf")
        return BoundReport(self._bounds[-1] / self._corpus.tokens, gain / self._corpus.tokens)

    def _em_step(self, lambda_: Array, expected: Array, priors: Priors) -> _Look:
        """Improves the documents (`expected` is changed), and sweeps at the point that this gives."""
        corpus = self._corpus
        alpha, eta = priors.alpha.values, priors.eta.values
        sums = topic_sums(lambda_, alpha.size)
        words = word_operands(lambda_, eta, sums, n_threads=corpus.n_threads)
        docs = self._improved(words, alpha, expected, self._settings.doc_steps, self._settings.doc_tol)
        if self._settings.refresh and self._iteration and self._iteration % self._settings.refresh == 0:
            docs = self._afresh(words, alpha, expected, docs)
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
        return _Look(lambda_, priors, bound, next_lambda.astype(lambda_.dtype), next_expected, next_priors)

    def _improved(self, words: WordSide, alpha: Floats, expected: Array, steps: int, tol: float) -> DocumentSide:
        corpus = self._corpus
        return improve_documents(
            corpus.by_doc, words.operand, alpha, expected, totals=corpus.totals, weights=corpus.weights,
            steps=steps, tol=tol, n_threads=corpus.n_threads,
        )  # fmt: skip

    def _afresh(self, words: WordSide, alpha: Floats, expected: Array, docs: DocumentSide) -> DocumentSide:
        """The documents with the better of their expected counts (changed in place) and those from uniform weights."""
        fresh = uniform_counts(self._corpus.totals, alpha.size, expected.dtype)
        others = self._improved(words, alpha, fresh, _FRESH_STEPS, _FRESH_TOLERANCE)
        better = self._document_bounds(words, others) > self._document_bounds(words, docs)
        expected[better] = fresh[better]
        return self._improved(words, alpha, expected, 0, 0.0)

    def _document_bounds(self, words: WordSide, docs: DocumentSide) -> Floats:
        """Each document's part of the bound, but for the words' scales, which are the same for all weights."""
        logs = self._corpus.logs(docs.operand, words.operand)
        return logs + docs.terms


def number_of_documents(corpus: MemoryCorpus) -> float:
    """How many documents a corpus has, with their weights."""
    return float(corpus.counts.n_docs if corpus.weights is None else corpus.weights.sum())


def uniform_counts(totals: Floats, n_topics: int, dtype: np.dtype[Any]) -> Array:
    """Expected counts (documents x width) with a document's tokens spread evenly over the topics."""
    return padded(np.broadcast_to(totals[:, np.newaxis] / n_topics, (totals.size, n_topics)), dtype)


class InferredDirichlet(NamedTuple):
    """q(theta) of documents with the topics fixed."""

    gamma: Array
    """documents x K"""
    bounds: Floats
    """each document's part of the bound: sum x log q - KL(q(theta_d) || p)"""


def infer(counts: SparseCounts, lambda_: Array, alpha: Floats, *, n_threads: int) -> InferredDirichlet:
    """gamma of every document from uniform weights, each until a step moves at most 1e-4 of its tokens.

    lambda_ is words x width. A document's result depends on that document alone.
    """
    K, totals = alpha.size, counts.totals
    sums = topic_sums(lambda_, K)
    check_topics(sums)
    words = word_operands(lambda_, np.ones(len(lambda_)), sums, n_threads=n_threads)
    expected = uniform_counts(totals, K, counts.dtype)
    docs = improve_documents(
        counts, words.operand, alpha, expected, totals=totals, steps=_FOLD_STEPS, tol=_FOLD_TOLERANCE,
        n_threads=n_threads,
    )  # fmt: skip
    logs = counts.logs(docs.operand, words.operand, n_threads=n_threads)
    scales = np.add.reduceat(np.append(counts.values * words.scales[counts.indices], 0.0), counts.indptr[:-1]) * (
        np.diff(counts.indptr) > 0
    )
    return InferredDirichlet(expected[:, :K] + alpha.astype(counts.dtype), logs + docs.terms + scales)


def padded_parameters(topic_word: Array) -> Array:
    """lambda as the kernels take it (words x width) from K x words; the padding is positive, as a parameter must be."""
    wide = padded(topic_word.T, topic_word.dtype)
    wide[:, len(topic_word) :] = 1
    return wide
