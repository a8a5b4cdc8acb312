"""Documents a few at a time, and steps that grow smaller: what stochastic solvers share.

Stepwise EM (Cappe and Moulines 2009): the topics move after every few documents, which keep no state.

Stochastic variational Bayes for LDA (Hoffman, Blei and Bach 2010): the topics move after every few documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyseme.core.dirichlet import improve_documents, topic_sums, topics_term, word_operands
from polyseme.core.model import Model, improve_docs
from polyseme.core.shard import Shard
from polyseme.core.statistics import RunningMean
from polyseme.data.corpus import Corpus, MemoryCorpus, Streamed, uniform_rows
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, inner, padded
from polyseme.solvers.base import Report, Snapshot, SolverRun
from polyseme.solvers.variational import (
    BoundReport,
    Priors,
    VariationalRun,
    number_of_documents,
    start_point,
    uniform_counts,
)


class Batch(NamedTuple):
    """Some documents, with the columns of the words that they have."""

    words: Array
    counts: SparseCounts
    weights: Floats | None

    @property
    def size(self) -> float:
        """how many documents these are, with their weights"""
        return float(self.counts.n_docs if self.weights is None else self.weights.sum())


def batches(counts: SparseCounts, weights: Floats | None, order: Array, size: int) -> Iterator[Batch]:
    """The documents in this order, `size` at a time."""
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        part = counts.take(rows)
        words = np.flatnonzero(np.bincount(part.indices, minlength=counts.n_words))
        columns = np.zeros(counts.n_words, dtype=part.indices.dtype)
        columns[words] = np.arange(words.size)
        here = SparseCounts(part.indptr, columns[part.indices], part.values, len(rows), max(1, words.size))
        yield Batch(words, here, None if weights is None else weights[rows])


def rate(offset: float, decay: float, steps: float) -> float:
    """(offset + steps)^-decay: how much of a new batch goes into the running mean after so many steps."""
    return float((offset + steps) ** -decay)


def check_schedule(owner: str, offset: float, decay: float) -> None:
    """Raises InputError unless the steps' sum is infinite and that of their squares is not."""
    if not 0.5 < decay <= 1 or not offset >= 1:
        raise InputError(f"{owner}: decay must be above 0.5 and at most 1, and offset at least 1.")


START_VARIANCE = 0.1
"""of the noise in a random start: the first batches decide what topics are, so these begin more alike than elsewhere"""

_MOST, _LEAST, _BATCHES_A_PASS = 1024, 16, 64


@dataclass(frozen=True)
class StepwiseEM:
    """s_wk <- (1 - rho) s_wk + rho n_wk / n after each batch, rho = (offset + batches so far)^-decay; phi ∝ s.

    n_wk are the batch's expected counts, its documents from uniform weights by a few steps of EM with the topics as
    they are, and n its tokens. An iteration is one pass over all documents; its report adds up what each batch was
    worth when it came, and its residual is how far that is from the pass before. One or two passes are what it is for:
    then let a batch solver finish, with `init=(None, model.components_)`.

    batch_size : documents; None for 1024, or fewer so that a pass has 64 batches.
    offset : above 1; larger values slow the first steps down.
    decay : above 0.5 and at most 1, for convergence.
    doc_steps : steps of EM for each document.
    seed : of the order of the documents.
    """

    name: ClassVar[str] = "online"
    batch_size: int | None = None
    offset: float = 10.0
    decay: float = 0.7
    doc_steps: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.batch_size is not None and self.batch_size < 1) or self.doc_steps < 1:
            raise InputError("Online: batch_size and doc_steps must be at least 1.")
        check_schedule("StepwiseEM", self.offset, self.decay)
        if not self.offset > 1:
            raise InputError("Online: offset must be above 1, or the first batch would erase the start.")

    def begin(self, model: Model, corpus: Corpus, theta: Any, phi: Any) -> SolverRun:
        phi = corpus.topics(phi)
        return _StepwiseRun(self, model, corpus, phi / phi.dtype.type(model.n_topics), 0)

    def resume(self, model: Model, corpus: Corpus, state: Snapshot) -> SolverRun:
        run = _StepwiseRun(self, model, corpus, corpus.topics(state.words["joint"]), int(state.numbers["passes"]))
        run.report = Report(*(state.numbers[name] for name in Report._fields))
        return run

    def documents_a_batch(self, n_docs: int) -> int:
        return self.batch_size or max(_LEAST, min(_MOST, -(-n_docs // _BATCHES_A_PASS)))


class Stream:
    """phi of a model while batches of documents go by.

    joint : P(w, z), words x width, where the stream starts; its memory is taken.
    seen : how many documents have gone by already.
    """

    def __init__(self, settings: StepwiseEM, model: Model, joint: Array, seen: float, n_threads: int) -> None:
        _refuse(model)
        self._settings, self._model, self._n_threads = settings, model, n_threads
        self._blend = RunningMean(joint, n_threads)
        self.seen = seen

    def read(self, counts: SparseCounts, weights: Floats | None, order: Array, size: int) -> tuple[float, float]:
        """Takes the documents in this order, a batch at a time; sum x log P(w|d) as they came, and their tokens."""
        log_sum = tokens = 0.0
        for batch in batches(counts, weights, order, size):
            if batch.words.size:
                worth = self._take(batch)
                log_sum, tokens = log_sum + worth[0], tokens + worth[1]
            self.seen += batch.size
        return log_sum, tokens

    @property
    def joint(self) -> Array:
        """P(w, z) as the stream has it, words x width."""
        return self._blend.settled()

    def _take(self, batch: Batch) -> tuple[float, float]:
        """The E-step of a batch, and the step of the topics."""
        shard = Shard(batch.counts, batch.weights, self._n_threads)
        if not shard.tokens > 0:
            return 0.0, 0.0
        model = self._model.for_words(batch.words)
        B = model.word_operand(self._blend.shares(batch.words))
        A = model.doc_operand(self._weights(model, shard, B))
        word_sums, logs = shard.words_and_logs(A, B)
        step = rate(self._settings.offset, self._settings.decay, self.seen / batch.size)
        self._blend.step(step, batch.words, B, word_sums, model.n_topics, shard.tokens)
        return shard.total_log(logs), shard.tokens

    def _weights(self, model: Model, shard: Shard, B: Array) -> Array:
        """theta of the documents (documents x width), some steps of EM from uniform weights."""
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
            theta = improve_docs(model, shard, theta, A, row_sums)
        return theta


class _StepwiseRun:
    """A pass is an iteration."""

    exhausted = False

    def __init__(self, settings: StepwiseEM, model: Model, corpus: Corpus, joint: Array, passes: int) -> None:
        self.model = model
        _refuse(model)
        self._settings, self._corpus, self._passes = settings, corpus, passes
        self._joint = joint
        self.report = Report(float("-inf"), float("-inf"), float("inf"))

    @property
    def theta(self) -> Any:
        """Documents keep no state."""
        return self._corpus.uniform(self.model)

    @property
    def phi(self) -> Array:
        sums = self._joint.sum(axis=0, dtype=np.float64)
        return (self._joint / np.where(sums > 0, sums, 1)).astype(self._joint.dtype)

    def advance(self) -> None:
        seed = (self._settings.seed, self._passes)
        size = self._settings.documents_a_batch(self._corpus.n_docs)
        read = partial(_read_shard, self._settings, self.model, size, seed)
        start = Streamed(self._joint, float(self._passes * self._corpus.n_docs))
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
    state: Streamed,
) -> Streamed:
    """The state after all documents of a shard, in an order of their own."""
    stream = Stream(settings, model, state.joint, state.seen, shard.n_threads)
    order = np.random.default_rng((*seed, number)).permutation(shard.n_docs)
    log_sum, tokens = stream.read(shard.by_doc, shard.weights, order, size)
    return Streamed(stream.joint, stream.seen, state.log_sum + log_sum, state.tokens + tokens)


def _refuse(model: Model) -> None:
    if model.word_prior is not None:
        raise UnsupportedError(
            "solver='online' takes no topic_word_prior: use solver='auto', or LDA with solver='online'."
        )
    if not model.is_separable:
        raise UnsupportedError(
            "solver='online' sees some documents at a time: no JointBackground, and no prior that looks at all of them."
        )


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
        self, corpus: MemoryCorpus, priors: Priors, theta: Array, phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        return _OnlineVariationalRun(self, corpus, priors, start_point(corpus, priors, theta, phi)[0], rng)

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
        word_sums, logs = counts.words_and_logs(docs.operand, words.operand, n_threads=n_threads, weights=batch.weights)
        weights = np.ones(len(totals)) if batch.weights is None else batch.weights
        bound = inner(weights, logs + docs.terms) + inner(counts.word_totals(batch.weights), words.scales)
        return _Visited((words.operand * word_sums)[: batch.words.size], bound, docs.log_sums)


class _OnlineVariationalRun:
    """The report's bound adds up what each document gave when it was visited: an estimate, without a second pass."""

    exhausted = False

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
        step = self._settings.documents_a_batch(order.size)
        for batch in batches(self._counts, self._corpus.weights, order, step):
            rho = rate(self._settings.offset, self._settings.decay, self._batches)
            visited = self._stream.take(batch, rho)
            bound += visited.bound
            self._batches += 1
            self._mean_logs += (rho if self._batches > 1 else 1.0) * (visited.log_sums / batch.size - self._mean_logs)
            if self._passes and self.priors.alpha.learned:
                alpha = self.priors.alpha.improved(self._mean_logs * self._n_docs, self._n_docs)
                self._stream.priors = self.priors._replace(alpha=alpha)
        bound = (bound + self._topics_part()) / self._corpus.tokens
        self._passes += 1
        self.report = BoundReport(bound, bound - self.report.bound)

    def _topics_part(self) -> float:
        """The topics' part of the bound at the end of a pass, after their prior is learned."""
        K = self.priors.alpha.values.size
        sums, eta = topic_sums(self.lambda_, K), self.priors.eta
        if self._passes and eta.learned:
            words = word_operands(self.lambda_, eta.values, sums, n_threads=self._corpus.n_threads)
            eta = eta.improved(words.log_sums, K)
            self._stream.priors = self.priors._replace(eta=eta)
        words = word_operands(self.lambda_, eta.values, sums, n_threads=self._corpus.n_threads)
        return topics_term(words, eta.values, sums)
