"""Stochastic variational Bayes for LDA (Hoffman, Blei and Bach 2010): the topics move after every few documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polyseme.dirichlet import improve_documents, topic_sums, topics_term, word_operands
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, inner
from polyseme.solvers.minibatch import Batch, batches, check_schedule, rate
from polyseme.solvers.variational import (
    BoundReport,
    Priors,
    VariationalRun,
    number_of_documents,
    start_point,
    uniform_counts,
)
from polyseme.sources.memory import MemorySource


@dataclass(frozen=True)
class OnlineVariational:
    """lambda <- (1 - rho) lambda + rho (eta + (D / S) n) after each S documents, rho = (offset + batches)^-decay.

    An iteration is one pass over all documents, in an order that the seed decides. Documents keep no state. Learned
    priors follow the running mean of E log theta (of E log phi) from the second pass on.

    batch_size : S; None for 256, or fewer so that a pass has at least 16 batches.
    total_documents : D, how many documents `partial_fit` will see in all; None for those that it has seen so far.
        `fit` uses the number of its documents.
    offset : larger values slow the first steps down.
    decay : above 0.5 and at most 1, for convergence.
    doc_steps, doc_tol : as in Variational; documents start from uniform weights each time, so they need more steps.
    """

    batch_size: int | None = None
    offset: float = 10.0
    decay: float = 0.7
    doc_steps: int = 50
    doc_tol: float = 0.01
    total_documents: float | None = None
    name: ClassVar[str] = "online"
    start: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        if (self.batch_size is not None and self.batch_size < 1) or self.doc_steps < 1:
            raise InputError("OnlineVariational: batch_size and doc_steps must be at least 1.")
        if self.total_documents is not None and not 0 < self.total_documents < float("inf"):
            raise InputError("OnlineVariational: total_documents must be None or a number above 0.")
        check_schedule("OnlineVariational", self.offset, self.decay)

    def begin(
        self, source: MemorySource, priors: Priors, theta: Array, phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        return _OnlineRun(self, source, priors, start_point(source, priors, theta, phi)[0], rng)

    def documents_a_batch(self, n_docs: int) -> int:
        return self.batch_size or min(256, -(-n_docs // 16))


class _Visited(NamedTuple):
    expected: Floats
    """expected counts of the batch's words (words x width)"""
    bound: float
    """the documents' part of the bound"""
    log_sums: Floats
    """sum_d weight_d E log theta_dk"""


class PosteriorStream:
    """lambda (words x width) while batches of documents go by.

    n_docs : D, how many documents the posterior is of.
    """

    def __init__(
        self, settings: OnlineVariational, priors: Priors, lambda_: Array, n_docs: float, n_threads: int
    ) -> None:
        self.priors, self.lambda_ = priors, lambda_
        self._settings, self._n_docs, self._n_threads = settings, n_docs, n_threads

    def take(self, batch: Batch, rho: float) -> _Visited:
        """The E-step of a batch, and the step of the topics."""
        visited = self._visit(batch)
        self.lambda_ = self._moved(rho, batch, visited)
        return visited

    def _moved(self, rho: float, batch: Batch, visited: _Visited) -> Array:
        """(1 - rho) lambda + rho (eta + (D / S) n)"""
        moved = self.lambda_ * self.lambda_.dtype.type(1 - rho)
        moved += (rho * self.priors.eta.values)[:, np.newaxis].astype(moved.dtype)
        moved[batch.words] += (rho * self._n_docs / batch.size * visited.expected).astype(moved.dtype)
        return moved

    def _visit(self, batch: Batch) -> _Visited:
        """The E-step of a batch with the topics as they are."""
        lambda_, priors = self.lambda_, self.priors
        alpha, counts, n_threads = priors.alpha.values, batch.counts, self._n_threads
        totals = counts.totals
        some = lambda_[batch.words] if batch.words.size else lambda_[:1]
        eta = priors.eta.values[batch.words] if batch.words.size else priors.eta.values[:1]
        words = word_operands(some, eta, topic_sums(lambda_, alpha.size), n_threads=n_threads)
        expected = uniform_counts(totals, alpha.size, lambda_.dtype)
        docs = improve_documents(
            counts, words.operand, alpha, expected, totals=totals, weights=batch.weights,
            steps=self._settings.doc_steps, tol=self._settings.doc_tol, n_threads=n_threads,
        )  # fmt: skip
        swept = counts.sweep(docs.operand, words.operand, n_threads=n_threads, weights=batch.weights, rows=False)
        assert swept.word_sums is not None
        assert swept.logs is not None
        weights = np.ones(len(totals)) if batch.weights is None else batch.weights
        bound = inner(weights, swept.logs + docs.terms) + inner(counts.word_totals(batch.weights), words.scales)
        return _Visited((words.operand * swept.word_sums)[: batch.words.size], bound, docs.log_sums)


class _OnlineRun:
    """The report's bound adds up what each document gave when it was visited: an estimate, without a second pass."""

    exhausted = False

    def __init__(
        self,
        settings: OnlineVariational,
        source: MemorySource,
        priors: Priors,
        lambda_: Array,
        rng: np.random.Generator,
    ) -> None:
        self._settings, self._source, self._rng = settings, source, rng
        self._counts = source.by_doc
        self._n_docs = number_of_documents(source)
        self._stream = PosteriorStream(settings, priors, lambda_, self._n_docs, source.n_threads)
        self._batches, self._passes = 0, 0
        self._mean_logs = np.zeros(priors.alpha.values.size)
        self.report = BoundReport(float("-inf"), float("inf"))

    @property
    def lambda_(self) -> Array:
        return self._stream.lambda_

    @property
    def priors(self) -> Priors:
        return self._stream.priors

    def advance(self) -> None:
        bound = 0.0
        order = self._rng.permutation(self._counts.n_docs)
        step = self._settings.documents_a_batch(order.size)
        for batch in batches(self._counts, self._source.weights, order, step):
            rho = rate(self._settings.offset, self._settings.decay, self._batches)
            visited = self._stream.take(batch, rho)
            bound += visited.bound
            self._batches += 1
            self._mean_logs += (rho if self._batches > 1 else 1.0) * (visited.log_sums / batch.size - self._mean_logs)
            if self._passes and self.priors.alpha.learned:
                alpha = self.priors.alpha.improved(self._mean_logs * self._n_docs, self._n_docs)
                self._stream.priors = self.priors._replace(alpha=alpha)
        bound = (bound + self._topics_part()) / self._source.tokens
        self._passes += 1
        self.report = BoundReport(bound, bound - self.report.bound)

    def _topics_part(self) -> float:
        """The topics' part of the bound at the end of a pass, after their prior is learned."""
        K = self.priors.alpha.values.size
        sums, eta = topic_sums(self.lambda_, K), self.priors.eta
        if self._passes and eta.learned:
            words = word_operands(self.lambda_, eta.values, sums, n_threads=self._source.n_threads)
            eta = eta.improved(words.log_sums, K)
            self._stream.priors = self.priors._replace(eta=eta)
        words = word_operands(self.lambda_, eta.values, sums, n_threads=self._source.n_threads)
        return topics_term(words, eta.values, sums)
