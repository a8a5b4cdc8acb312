"""Online solvers: the topics are updated after every batch of documents, and documents have no state.

`StepwiseEM` is stepwise EM for PLSA (Cappe and Moulines 2009), `OnlineVariational` is stochastic variational Bayes for
LDA (Hoffman, Blei and Bach 2010). Both use the step size rho = (offset + batches so far)^-decay.

References
----------
O. Cappe and E. Moulines. On-line expectation-maximization algorithm for latent data models. Journal of the Royal
    Statistical Society B 71, 2009.
M. D. Hoffman, D. M. Blei and F. Bach. Online learning for latent Dirichlet allocation. NIPS 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyseme.core.dirichlet import improve_documents, topic_sums, topics_term, uniform_counts, word_operands
from polyseme.core.model import Model, Report, m_step_docs
from polyseme.core.shard import Shard
from polyseme.core.statistics import RunningMean
from polyseme.data.corpus import Corpus, MemoryCorpus, StreamState, uniform_rows
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, inner, padded
from polyseme.solvers.base import FitProblem, Requirement, Snapshot, Solver, SolverRun
from polyseme.solvers.variational import (
    BoundReport,
    Priors,
    VariationalRun,
    VariationalSolver,
    number_of_documents,
    start_point,
)

_MAX_BATCH, _MIN_BATCH, _BATCHES_PER_PASS = 1024, 16, 64


@dataclass(frozen=True)
class StepwiseEM(Solver):
    """Stepwise EM on batches of documents.

    After each batch s_wk <- (1 - rho) s_wk + rho n_wk / n and phi ∝ s. n_wk are the expected counts of the batch and n
    is its number of tokens. The documents of the batch start from uniform weights and get a few EM steps with the
    topics fixed. An iteration is one pass over all documents. Its report adds up the log-likelihood of each batch at
    the time it was read; the residual is the difference to the pass before. Use one or two passes and then a batch
    solver with `init=(None, model.components_)`.

    Parameters
    ----------
    batch_size : int or None, default=None
        Documents per batch. None: 1024, or fewer so that a pass has 64 batches.
    offset : float, default=10.0
        Offset of the step size, above 1. Larger values make the first steps smaller.
    decay : float, default=0.7
        Exponent of the step size, above 0.5 and at most 1, as convergence requires.
    doc_steps : int, default=10
        EM steps per document.
    seed : int, default=0
        Seed of the order of the documents.
    """

    name: ClassVar[str] = "online"
    requires: ClassVar[frozenset[Requirement]] = frozenset(
        {Requirement.NO_TOPIC_PRIOR, Requirement.SEPARABLE_DOCUMENTS}
    )
    resumable: ClassVar[bool] = True
    start_variance: ClassVar[float] = 0.1  # the first batches decide the topics, so these start more similar
    batch_size: int | None = None
    offset: float = 10.0
    decay: float = 0.7
    doc_steps: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.batch_size is not None and self.batch_size < 1) or self.doc_steps < 1:
            raise InputError("StepwiseEM: batch_size and doc_steps must be at least 1.")
        check_schedule("StepwiseEM", self.offset, self.decay)
        if not self.offset > 1:
            raise InputError(
                "StepwiseEM: offset must be above 1, because the first batch would replace the start otherwise."
            )

    def begin(self, problem: FitProblem, theta: Any, phi: Any) -> SolverRun:
        phi = problem.corpus.topics(phi)
        return _StepwiseRun(self, problem, phi / phi.dtype.type(problem.model.n_topics), 0)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        joint = problem.corpus.topics(state.words["joint"])
        run = _StepwiseRun(self, problem, joint, int(state.numbers["passes"]))
        run.report = Report(*(state.numbers[name] for name in Report._fields))
        return run

    def documents_per_batch(self, n_docs: int) -> int:
        """Return the number of documents per batch.

        Parameters
        ----------
        n_docs : int
            Number of documents of the corpus.

        Returns
        -------
        int
            `batch_size`, or a size that suits the corpus.
        """
        return self.batch_size or max(_MIN_BATCH, min(_MAX_BATCH, -(-n_docs // _BATCHES_PER_PASS)))


@dataclass(frozen=True)
class OnlineVariational(VariationalSolver):
    """Stochastic variational Bayes for LDA.

    After each batch of S documents lambda <- (1 - rho) lambda + rho (eta + (D / S) n), with the expected counts n of
    the batch. An iteration is one pass over all documents in random order. Learned priors follow the running mean of
    E log theta (of E log phi) from the second pass on.

    Parameters
    ----------
    batch_size : int or None, default=None
        Documents per batch, S. None: 256, or fewer so that a pass has at least 16 batches.
    offset : float, default=10.0
        Offset of the step size, at least 1. Larger values make the first steps smaller.
    decay : float, default=0.7
        Exponent of the step size, above 0.5 and at most 1, as convergence requires.
    doc_steps : int, default=50
        Most steps per document. A document starts from uniform weights every time, so it needs more steps than with
        `Variational`.
    doc_tol : float, default=0.01
        A document is done when a step moves at most this share of its tokens.
    total_documents : float or None, default=None
        Number of documents D that `partial_fit` will see in all. None: those it has seen so far. `fit` uses the number
        of its documents.
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
        self, corpus: MemoryCorpus, priors: Priors, theta: Array, phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        return _OnlineVariationalRun(self, corpus, priors, start_point(corpus, priors, theta, phi)[0], rng)

    def documents_per_batch(self, n_docs: int) -> int:
        """Return the number of documents per batch.

        Parameters
        ----------
        n_docs : int
            Number of documents of the corpus.

        Returns
        -------
        int
            `batch_size`, or a size that suits the corpus.
        """
        return self.batch_size or min(256, -(-n_docs // 16))


class Batch(NamedTuple):
    """Some documents. The columns of the counts are the words that occur in them."""

    words: Array
    counts: SparseCounts
    weights: Floats | None

    @property
    def size(self) -> float:
        """Return the number of documents, weighted."""
        return float(self.counts.n_docs if self.weights is None else self.weights.sum())


def batches(counts: SparseCounts, weights: Floats | None, order: Array, size: int) -> Iterator[Batch]:
    """Yield batches of `size` documents in this order."""
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        part = counts.take(rows)
        words = np.flatnonzero(np.bincount(part.indices, minlength=counts.n_words))
        columns = np.zeros(counts.n_words, dtype=part.indices.dtype)
        columns[words] = np.arange(words.size)
        local = SparseCounts(part.indptr, columns[part.indices], part.values, len(rows), max(1, words.size))
        yield Batch(words, local, None if weights is None else weights[rows])


def rate(offset: float, decay: float, steps: float) -> float:
    """Return the step size (offset + steps)^-decay, the weight of a new batch in the running mean."""
    return float((offset + steps) ** -decay)


def check_schedule(owner: str, offset: float, decay: float) -> None:
    """Raise InputError unless the sum of the step sizes is infinite and that of their squares is finite."""
    if not 0.5 < decay <= 1 or not offset >= 1:
        raise InputError(f"{owner}: decay must be above 0.5 and at most 1, and offset at least 1.")


class Stream:
    """Stepwise EM on a stream of documents.

    joint : P(w, z) at the start, words x width. The array is overwritten.
    seen : number of documents that were read before.
    """

    def __init__(self, settings: StepwiseEM, model: Model, joint: Array, seen: float, n_threads: int) -> None:
        self._settings, self._model, self._n_threads = settings, model, n_threads
        self._mean = RunningMean(joint, n_threads)
        self.seen = seen

    def read(self, counts: SparseCounts, weights: Floats | None, order: Array, size: int) -> tuple[float, float]:
        """Read documents in this order. Return sum x log P(w|d), each batch before its step, and the tokens."""
        log_sum = tokens = 0.0
        for batch in batches(counts, weights, order, size):
            if batch.words.size:
                batch_log_sum, batch_tokens = self._step(batch)
                log_sum, tokens = log_sum + batch_log_sum, tokens + batch_tokens
            self.seen += batch.size
        return log_sum, tokens

    @property
    def joint(self) -> Array:
        """Return P(w, z), words x width."""
        return self._mean.apply_scale()

    def _step(self, batch: Batch) -> tuple[float, float]:
        """Run the E-step of a batch and update the topics. Return sum x log P(w|d) and the number of tokens."""
        shard = Shard(batch.counts, batch.weights, self._n_threads)
        if not shard.tokens > 0:
            return 0.0, 0.0
        model = self._model.for_words(batch.words)
        B = model.word_operand(self._mean.shares(batch.words))
        A = model.doc_operand(self._weights(model, shard, B))
        word_sums, logs = shard.words_and_logs(A, B)
        rho = rate(self._settings.offset, self._settings.decay, self.seen / batch.size)
        self._mean.step(rho, batch.words, B, word_sums, model.n_topics, shard.tokens)
        return shard.total_log(logs), shard.tokens

    def _weights(self, model: Model, shard: Shard, B: Array) -> Array:
        """Return theta (documents x width) after some EM steps from uniform weights."""
        steps = self._settings.doc_steps
        if model.doc_prior is None:
            share = 0.0 if model.background is None else model.background.share
            theta = shard.by_doc.em_steps(
                B, model.n_topics, steps, n_threads=self._n_threads, background=share, temperature=model.temperature
            )
            return padded(theta, theta.dtype, model.n_columns)
        theta = uniform_rows(model, shard.n_docs, shard.dtype)
        for _ in range(steps):
            A = model.doc_operand(theta)
            row_sums = shard.row_sums(A, B)
            row_sums[:, model.n_topics :] = 0
            theta = m_step_docs(model, shard, theta, A, row_sums)
        return theta


class _BatchStatistics(NamedTuple):
    """Sufficient statistics of a batch."""

    expected: Floats
    """Expected counts of the words of the batch (words x width)."""
    bound: float
    """Contribution of the documents to the bound."""
    log_sums: Floats
    """sum_d weight_d E log theta_dk."""


class PosteriorStream:
    """Stochastic variational Bayes on a stream of documents; `lambda_` is words x width.

    n_docs : number of documents D that the posterior is for.
    """

    def __init__(
        self, settings: OnlineVariational, priors: Priors, lambda_: Array, n_docs: float, n_threads: int
    ) -> None:
        self.priors, self.lambda_ = priors, lambda_
        self._settings, self._n_docs, self._n_threads = settings, n_docs, n_threads

    def take(self, batch: Batch, rho: float) -> _BatchStatistics:
        """Run the E-step of a batch and update the topics."""
        statistics = self._e_step(batch)
        self.lambda_ = self._updated(rho, batch, statistics)
        return statistics

    def _updated(self, rho: float, batch: Batch, statistics: _BatchStatistics) -> Array:
        """Return (1 - rho) lambda + rho (eta + (D / S) n)."""
        updated = self.lambda_ * self.lambda_.dtype.type(1 - rho)
        updated += (rho * self.priors.eta.values)[:, np.newaxis].astype(updated.dtype)
        updated[batch.words] += (rho * self._n_docs / batch.size * statistics.expected).astype(updated.dtype)
        return updated

    def _e_step(self, batch: Batch) -> _BatchStatistics:
        """Run the E-step of a batch with the topics fixed."""
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
        word_sums, logs = counts.words_and_logs(docs.operand, words.operand, n_threads=n_threads, weights=batch.weights)
        weights = np.ones(len(totals)) if batch.weights is None else batch.weights
        bound = inner(weights, logs + docs.terms) + inner(counts.word_totals(batch.weights), words.scales)
        return _BatchStatistics((words.operand * word_sums)[: batch.words.size], bound, docs.log_sums)


class _StepwiseRun(SolverRun):
    """A fit by stepwise EM. An iteration is a pass over the corpus."""

    _corpus: Corpus

    def __init__(self, settings: StepwiseEM, problem: FitProblem, joint: Array, passes: int) -> None:
        self.model, self._corpus = problem
        self._settings, self._passes = settings, passes
        self._joint = joint
        self.report = Report(float("-inf"), float("-inf"), float("inf"))

    @property
    def theta(self) -> Any:
        """Return uniform weights, because documents have no state."""
        return self._corpus.uniform(self.model)

    @property
    def phi(self) -> Array:
        sums = self._joint.sum(axis=0, dtype=np.float64)
        return (self._joint / np.where(sums > 0, sums, 1)).astype(self._joint.dtype)

    def advance(self) -> None:
        seed = (self._settings.seed, self._passes)
        size = self._settings.documents_per_batch(self._corpus.n_docs)
        read = partial(_read_shard, self._settings, self.model, size, seed)
        start = StreamState(self._joint, float(self._passes * self._corpus.n_docs))
        end = self._corpus.in_turn(read, start, np.random.default_rng(seed))
        self._joint = end.joint
        self._passes += 1
        mean = end.log_sum / end.tokens
        self.report = Report(mean, mean, abs(mean - self.report.log_likelihood))

    def snapshot(self) -> Snapshot:
        numbers = {"passes": float(self._passes), **self.report._asdict()}
        return Snapshot({}, {"joint": self._joint}, numbers)


def _read_shard(
    settings: StepwiseEM,
    model: Model,
    size: int,
    seed: tuple[int, int],
    number: int,
    shard: Shard,
    state: StreamState,
) -> StreamState:
    """Return the state after the documents of a shard, read in random order."""
    stream = Stream(settings, model, state.joint, state.seen, shard.n_threads)
    order = np.random.default_rng((*seed, number)).permutation(shard.n_docs)
    log_sum, tokens = stream.read(shard.by_doc, shard.weights, order, size)
    return StreamState(stream.joint, stream.seen, state.log_sum + log_sum, state.tokens + tokens)


class _OnlineVariationalRun(VariationalRun):
    """A fit by stochastic variational Bayes.

    The bound in the report adds up the contribution of each document when it was read. It is an estimate that needs no
    second pass.
    """

    def __init__(
        self,
        settings: OnlineVariational,
        corpus: MemoryCorpus,
        priors: Priors,
        lambda_: Array,
        rng: np.random.Generator,
    ) -> None:
        self._settings, self._corpus, self._rng = settings, corpus, rng
        self._counts = corpus.by_doc
        self._n_docs = number_of_documents(corpus)
        self._stream = PosteriorStream(settings, priors, lambda_, self._n_docs, corpus.n_threads)
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
        step = self._settings.documents_per_batch(order.size)
        for batch in batches(self._counts, self._corpus.weights, order, step):
            rho = rate(self._settings.offset, self._settings.decay, self._batches)
            statistics = self._stream.take(batch, rho)
            bound += statistics.bound
            self._batches += 1
            self._mean_logs += (rho if self._batches > 1 else 1.0) * (
                statistics.log_sums / batch.size - self._mean_logs
            )
            if self._passes and self.priors.alpha.learned:
                alpha = self.priors.alpha.improved(self._mean_logs * self._n_docs, self._n_docs)
                self._stream.priors = self.priors._replace(alpha=alpha)
        bound = (bound + self._topic_bound()) / self._corpus.tokens
        self._passes += 1
        self.report = BoundReport(bound, bound - self.report.bound)

    def _topic_bound(self) -> float:
        """Update a learned prior of the topics, and return their contribution to the bound."""
        K = self.priors.alpha.values.size
        sums, eta = topic_sums(self.lambda_, K), self.priors.eta
        if self._passes and eta.learned:
            words = word_operands(self.lambda_, eta.values, sums, n_threads=self._corpus.n_threads)
            eta = eta.improved(words.log_sums, K)
            self._stream.priors = self.priors._replace(eta=eta)
        words = word_operands(self.lambda_, eta.values, sums, n_threads=self._corpus.n_threads)
        return topics_term(words, eta.values, sums)
