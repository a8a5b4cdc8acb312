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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyseme.core.dirichlet import (
    Concentration,
    improve_documents,
    prior_columns,
    topic_sums,
    topics_term,
    uniform_counts,
    word_operands,
)
from polyseme.core.model import Model, Report, m_step_docs
from polyseme.core.shard import Shard
from polyseme.data.corpus import Corpus, MemoryCorpus, StreamState, uniform_rows
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, Want, add_rows, inner, padded, padded_width, take_rows
from polyseme.solvers.base import FitProblem, Requirement, Snapshot, Solver, SolverRun
from polyseme.solvers.dirichlet import (
    BoundReport,
    Priors,
    VariationalRun,
    VariationalSolver,
    first_lambda,
    guided_start,
)
from polyseme.solvers.initialize import named_start
from polyseme.utils import as_seed

_MAX_SEED = 1 << 31
_OFFSET = 64.0
"""Default offset of the step size of online variational Bayes in `fit`."""
_STREAM_OFFSET = 10.0
"""The same in `partial_fit`. It is small, so that a random start is soon forgotten."""
_START_PASSES, _START_READS = 3, 7 << 20
"""Limits of the short fit from which online variational Bayes starts: passes, and non-zeros read after the first pass.
More passes overfit if there are few tokens per word and topic."""
_UNIGRAM_SHARE = 0.01
"""Weight of the unigram in the topics of the short fit."""
_MAX_BATCH, _MIN_BATCH = 1024, 16
_NONZEROS_PER_TOPIC, _NONZEROS_PER_TOPIC_AND_WORD = 400, 0.5
"""Non-zeros per topic in a batch of stepwise EM; fewer suffice if there are few words. With too few, words leave topics
by chance, and hardly come back. `benchmarks/starts.py --streams` measures the quality; the
numbers were chosen after seeing such figures."""
_FIRST_BATCHES, _BATCHES = 8, 64
"""Batches of a short stream at least, and of a long one at most: later batches are larger, so that the topics remember
the same share of the stream."""
_LARGER = 2
"""Factor of the batches of online variational Bayes in `partial_fit`, which loses topics sooner."""
_MIN_SCALE = 1e-12
"""The scale of a running mean is multiplied into its sums when it falls below this, before it can underflow."""


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
        Documents per batch. None: as many as have 400 non-zeros per topic, but at most an eighth of the documents, and
        at least a 64th of those read so far.
    offset : float, default=10.0
        Offset of the step size, above 1. Larger values make the first steps smaller.
    decay : float, default=0.7
        Exponent of the step size, above 0.5 and at most 1, as convergence requires.
    doc_steps : int, default=10
        EM steps per document.
    random_state : int, RandomState or Generator, default=0
        Seed of the order of the documents.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.solvers import StepwiseEM
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, solver=StepwiseEM(batch_size=2), max_iter=20, random_state=0, tol=0.1).fit(X)
    >>> model.solver_
    'online'
    """

    name: ClassVar[str] = "online"
    requires: ClassVar[frozenset[Requirement]] = frozenset(
        {Requirement.NO_TOPIC_PRIOR, Requirement.SEPARABLE_DOCUMENTS}
    )
    resumable: ClassVar[bool] = True
    init: ClassVar[str] = "random"
    start_variance: ClassVar[float] = 0.1  # the first batches decide the topics, so these start more similar
    batch_size: int | None = None
    offset: float = 10.0
    decay: float = 0.7
    doc_steps: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "random_state", as_seed(self.random_state))
        if (self.batch_size is not None and self.batch_size < 1) or self.doc_steps < 1:
            raise InputError("StepwiseEM: batch_size and doc_steps must be at least 1.")
        check_schedule("StepwiseEM", self.offset, self.decay)
        if not self.offset > 1:
            raise InputError(
                "StepwiseEM: offset must be above 1, because the first batch would replace the start otherwise."
            )

    def begin(self, problem: FitProblem, theta: Any, phi: Array) -> SolverRun:
        return _StepwiseRun(self, problem, phi / phi.dtype.type(problem.model.n_topics), 0)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        form = (problem.corpus.n_words, padded_width(problem.model.n_columns)), problem.corpus.dtype
        run = _StepwiseRun(self, problem, state.array("joint", *form), int(state.numbers["passes"]))
        run.report = Report(*(state.numbers[name] for name in Report._fields))
        return run

    def schedule(self, corpus: Corpus, n_topics: int, n_docs: float) -> Schedule:
        """Return the batches of a stream.

        Parameters
        ----------
        corpus : Corpus
            Documents that will be read.
        n_topics : int
            Number of topics.
        n_docs : float
            Number of these and all earlier documents.

        Returns
        -------
        Schedule
            Sizes of batches and steps.
        """
        return Schedule.of(self.batch_size, self.offset, self.decay, corpus, n_topics, n_docs)


@dataclass(frozen=True)
class OnlineVariational(VariationalSolver):
    """Stochastic variational Bayes for LDA.

    After each batch of S documents lambda <- (1 - rho) lambda + rho (eta + (D / S) n), with the expected counts n of
    the batch. An iteration is one pass over all documents in random order. Learned priors follow the running mean of
    E log theta (of E log phi) from the second pass on.

    Parameters
    ----------
    batch_size : int or None, default=None
        Documents per batch, S. None: 1024, or fewer so that a pass has at least 16 batches. In `partial_fit` twice as
        many as `StepwiseEM` takes.
    offset : float or None, default=None
        Offset of the step size, at least 1. Larger values make the first steps smaller, so that the start counts more.
        None: 64, and 10 in `partial_fit`, which starts at random.
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

    Examples
    --------
    >>> from polyseme import LDA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.solvers import OnlineVariational
    >>> X = synthetic_corpus(100, n_topics=3, n_words=50, random_state=0).counts()
    >>> LDA(3, solver=OnlineVariational(batch_size=20), tol=0.1, random_state=0).fit(X).components_.shape
    (3, 50)
    """

    batch_size: int | None = None
    offset: float | None = None
    decay: float = 0.7
    doc_steps: int = 50
    doc_tol: float = 0.01
    total_documents: float | None = None
    name: ClassVar[str] = "online"
    start_nonzeros: ClassVar[int | None] = 1 << 22

    def __post_init__(self) -> None:
        if (self.batch_size is not None and self.batch_size < 1) or self.doc_steps < 1:
            raise InputError("OnlineVariational: batch_size and doc_steps must be at least 1.")
        if self.total_documents is not None and not 0 < self.total_documents < float("inf"):
            raise InputError("OnlineVariational: total_documents must be None or a number above 0.")
        check_schedule("OnlineVariational", _OFFSET if self.offset is None else self.offset, self.decay)

    def short_fit(self, corpus: MemoryCorpus, priors: Priors, rng: np.random.Generator) -> tuple[Array, Array]:
        # From topics near the uniform distribution a pass ends at a much higher perplexity: exp(psi(alpha)) is tiny for
        # a topic that a document dropped, and the first batches drop nearly all of them.
        n_topics = priors.alpha.values.size
        model, solver = Model(n_topics), StepwiseEM(random_state=int(rng.integers(_MAX_SEED)))
        theta, phi = named_start("random", corpus, model, rng, variance=solver.start_variance)
        run = solver.begin(FitProblem(model, corpus), theta, guided_start(phi, priors))
        for _ in range(max(1, min(_START_PASSES, _START_READS // max(1, corpus.n_nonzeros)))):
            run.advance()
        unigram = corpus.unigram[:, np.newaxis].astype(corpus.dtype)
        phi = run.phi.copy()
        phi[:, :n_topics] = (1 - _UNIGRAM_SHARE) * phi[:, :n_topics] + _UNIGRAM_SHARE * unigram
        return run.theta, phi

    def begin(
        self, corpus: Corpus, priors: Priors, expected: Callable[[], Any], phi: Array, rng: np.random.Generator
    ) -> VariationalRun:
        lambda_ = first_lambda(phi, priors, corpus.tokens)
        seed = int(rng.integers(_MAX_SEED))
        return _OnlineVariationalRun(self, corpus, PosteriorState.of(priors, lambda_), seed)

    def resume(self, corpus: Corpus, priors: Priors, state: Snapshot) -> VariationalRun:
        return _OnlineVariationalRun.resumed(self, corpus, priors, state)

    def schedule(self, corpus: Corpus, n_topics: int, n_docs: float) -> Schedule:
        """Return the batches of `partial_fit`.

        Parameters
        ----------
        corpus : Corpus
            Documents that will be read.
        n_topics : int
            Number of topics.
        n_docs : float
            Number of these and all earlier documents.

        Returns
        -------
        Schedule
            Sizes of batches and steps.
        """
        offset = _STREAM_OFFSET if self.offset is None else self.offset
        return Schedule.of(self.batch_size, offset, self.decay, corpus, n_topics, n_docs, factor=_LARGER)

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
        return self.batch_size or min(_MAX_BATCH, -(-n_docs // 16))


class Schedule(NamedTuple):
    """Sizes of the batches of a stream, and their steps."""

    offset: float
    decay: float
    size: int
    """Documents of a batch at first."""
    share: float
    """Share of the documents read so far that later batches have."""

    @classmethod
    def of(
        cls,
        batch_size: int | None,
        offset: float,
        decay: float,
        corpus: Corpus,
        n_topics: int,
        n_docs: float,
        *,
        factor: float = 1.0,
    ) -> Schedule:
        """Return batches of the given size, or those that suit the corpus, the next of `n_docs` documents."""
        if batch_size is not None:
            return cls(offset, decay, batch_size, 0.0)
        per_topic = min(_NONZEROS_PER_TOPIC, _NONZEROS_PER_TOPIC_AND_WORD * corpus.n_words)
        enough = per_topic * n_topics * corpus.n_docs / max(1, corpus.n_nonzeros)
        least = max(1, min(_MIN_BATCH, int(n_docs)))
        size = max(least, int(factor * min(enough, n_docs / _FIRST_BATCHES)))
        return cls(offset, decay, size, factor / _BATCHES)

    def batches(
        self, counts: SparseCounts, weights: Floats | None, order: Array, seen: float
    ) -> Iterator[tuple[Batch, float]]:
        """Yield batches of documents in this order, after `seen` documents, with the weight rho of each.

        A batch that is not complete gets the weight with which several of them equal a complete one.
        """
        start = 0
        while start < order.size:
            size = max(self.size, int(self.share * seen))
            batch = _batch(counts, weights, order[start : start + size])
            yield batch, 1 - (1 - rate(self.offset, self.decay, seen / size)) ** (batch.size / size)
            seen += batch.size
            start += size


class Batch(NamedTuple):
    """A batch of documents. The columns of the counts are the words that occur in them."""

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
        yield _batch(counts, weights, order[start : start + size])


def _batch(counts: SparseCounts, weights: Floats | None, rows: Array) -> Batch:
    part = counts.take(rows)
    words = np.flatnonzero(np.bincount(part.indices, minlength=counts.n_words))
    columns = np.zeros(counts.n_words, dtype=part.indices.dtype)
    columns[words] = np.arange(words.size)
    local = SparseCounts(part.indptr, columns[part.indices], part.values, len(rows), max(1, words.size))
    return Batch(words, local, None if weights is None else weights[rows])


def rate(offset: float, decay: float, steps: float) -> float:
    """Return the step size (offset + steps)^-decay, the weight of a new batch in the running mean."""
    return float((offset + steps) ** -decay)


def check_schedule(owner: str, offset: float, decay: float) -> None:
    """Raise InputError unless the sum of the step sizes is infinite and that of their squares is finite."""
    if not 0.5 < decay <= 1 or not offset >= 1:
        raise InputError(f"{owner}: decay must be above 0.5 and at most 1, and offset at least 1.")


class RunningMean:
    """Running mean s <- (1 - rate) s + rate new of statistics of shape words x width.

    s is stored as scale * sums, so that a step changes only the rows of the words in its documents.
    """

    def __init__(self, sums: Array, n_threads: int = 1) -> None:
        self._sums, self._scale, self._n_threads = sums, 1.0, n_threads
        self.totals: Floats = sums.sum(axis=0, dtype=np.float64)
        """Sums of s over the words, shape (width,)."""

    def step(self, rate: float, words: Array, B: Array, word_sums: Floats, n_topics: int, tokens: float) -> None:
        """Update the mean with new = B * word_sums / tokens, in the columns of topics. No word may occur twice."""
        scale = self._scale * (1 - rate)
        if scale < _MIN_SCALE:
            self._sums *= self._sums.dtype.type(scale)
            scale = 1.0
        self._scale = scale
        share = rate / tokens
        added = add_rows(self._sums, words, B, word_sums, n_topics, share / scale, n_threads=self._n_threads)
        self.totals = (1 - rate) * self.totals + share * added

    def shares(self, words: Array) -> Array:
        """Return s of these words, each column divided by its sum over all words."""
        inverse = np.divide(self._scale, self.totals, out=np.zeros_like(self.totals), where=self.totals > 0)
        return take_rows(self._sums, words, inverse, n_threads=self._n_threads)

    def values(self, words: Array) -> Array:
        """Return s of these words."""
        return take_rows(self._sums, words, np.full_like(self.totals, self._scale), n_threads=self._n_threads)

    def apply_scale(self) -> Array:
        """Apply the scale to the stored sums and return s (not a copy)."""
        self._sums *= self._sums.dtype.type(self._scale)
        self._scale, self.totals = 1.0, self._sums.sum(axis=0, dtype=np.float64)
        return self._sums


class Stream:
    """Stepwise EM on a stream of documents.

    joint : P(w, z) at the start, words x width. The array is overwritten.
    seen : number of documents that were read before.
    """

    def __init__(self, settings: StepwiseEM, model: Model, joint: Array, seen: float, n_threads: int) -> None:
        self._settings, self._model, self._n_threads = settings, model, n_threads
        self._mean = RunningMean(joint, n_threads)
        self.seen = seen

    def read(
        self, counts: SparseCounts, weights: Floats | None, order: Array, schedule: Schedule
    ) -> tuple[float, float]:
        """Read documents in this order. Return sum x log P(w|d), each batch before its step, and the tokens."""
        log_sum = tokens = 0.0
        for batch, rho in schedule.batches(counts, weights, order, self.seen):
            if batch.words.size:
                batch_log_sum, batch_tokens = self._step(batch, rho)
                log_sum, tokens = log_sum + batch_log_sum, tokens + batch_tokens
            self.seen += batch.size
        return log_sum, tokens

    @property
    def joint(self) -> Array:
        """Return P(w, z), words x width."""
        return self._mean.apply_scale()

    def _step(self, batch: Batch, rho: float) -> tuple[float, float]:
        """Run the E-step of a batch and update the topics. Return sum x log P(w|d) and the number of tokens."""
        shard = Shard(batch.counts, batch.weights, self._n_threads)
        if not shard.tokens > 0:
            return 0.0, 0.0
        model = self._model.for_words(batch.words)
        B = model.word_operand(self._mean.shares(batch.words))
        A = model.doc_operand(self._weights(model, shard, B))
        _, word_sums, logs = shard.sums(A, B, Want.WORDS | Want.LOGS)
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
        theta = uniform_rows(model, shard)
        for _ in range(steps):
            A = model.doc_operand(theta)
            row_sums = shard.sums(A, B, Want.ROWS).row_sums
            row_sums[:, model.n_topics :] = 0
            theta = m_step_docs(model, shard, theta, A, row_sums)
        return theta


class _BatchStatistics(NamedTuple):
    """Sufficient statistics of a batch."""

    operand: Array
    """exp(E log phi) of the words of the batch (words x width)."""
    word_sums: Floats
    """Their product with the operand is the expected counts of the words of the batch (words x width)."""
    bound: float
    """Contribution of the documents to the bound."""
    log_sums: Floats
    """sum_d weight_d E log theta_dk."""


class PosteriorState(NamedTuple):
    """State of stochastic variational Bayes between two shards or passes."""

    counts: Array
    """lambda - eta, the expected counts of words and topics (words x width)."""
    priors: Priors
    mean_logs: Floats
    """Running mean of E log theta over the documents, shape (K,)."""
    batches: int = 0
    """Batches so far."""
    bound: float = 0.0
    """Contributions of the documents of this pass to the bound, each when it was read."""

    @classmethod
    def of(cls, priors: Priors, lambda_: Array) -> PosteriorState:
        """Return the state before the first batch, from lambda (words x width)."""
        counts = np.maximum(lambda_ - prior_columns(priors.eta.values), 0).astype(lambda_.dtype)
        return cls(counts, priors, np.zeros(priors.alpha.values.size))

    @property
    def lambda_(self) -> Array:
        """Return lambda (words x width)."""
        return (self.counts + prior_columns(self.priors.eta.values)).astype(self.counts.dtype)

    def to_stream(self) -> StreamState:
        arrays = {"counts": self.counts, "mean_logs": self.mean_logs}
        priors = {"alpha": self.priors.alpha.values, "eta": self.priors.eta.values}
        return StreamState({**arrays, **priors}, {"batches": self.batches, "bound": self.bound})

    @classmethod
    def from_stream(cls, kinds: tuple[str, str], state: StreamState) -> PosteriorState:
        """Return the state from its arrays and numbers. `kinds` are the kinds of the priors alpha and eta."""
        arrays, numbers = state
        priors = Priors(Concentration(arrays["alpha"], kinds[0]), Concentration(arrays["eta"], kinds[1]))
        return cls(arrays["counts"], priors, arrays["mean_logs"], int(numbers["batches"]), numbers["bound"])


class PosteriorStream:
    """Stochastic variational Bayes on a stream of documents. The arrays of the state are overwritten.

    n_docs : number of documents D that the posterior is for.
    learn : whether a learned alpha follows the documents.
    """

    def __init__(
        self, settings: OnlineVariational, state: PosteriorState, n_docs: float, n_threads: int, *, learn: bool = False
    ) -> None:
        self._settings, self._n_docs, self._n_threads, self._learn = settings, n_docs, n_threads, learn
        self._offset = _OFFSET if settings.offset is None else settings.offset
        self._state = state
        self._mean = RunningMean(state.counts, n_threads)
        eta = state.priors.eta.values
        self._eta_sum = eta.sum() if eta.ndim == 1 else eta[:, : state.priors.alpha.values.size].sum(axis=0)

    @property
    def state(self) -> PosteriorState:
        """Return the state after the documents that were read."""
        return self._state._replace(counts=self._mean.apply_scale())

    def read(self, counts: SparseCounts, weights: Floats | None, order: Array, size: int) -> None:
        """Read documents in this order, in batches of `size`."""
        for batch in batches(counts, weights, order, size):
            self.take(batch, rate(self._offset, self._settings.decay, self._state.batches))

    def take(self, batch: Batch, rho: float) -> None:
        """Run the E-step of a batch and set lambda to (1 - rho) lambda + rho (eta + (D / S) n)."""
        statistics, state = self._e_step(batch), self._state
        K = state.mean_logs.size
        self._mean.step(
            rho, batch.words, statistics.operand, statistics.word_sums, K, batch.size / self._n_docs
        )  # fmt: skip
        logs = statistics.log_sums / batch.size
        mean_logs = state.mean_logs + (rho if state.batches else 1.0) * (logs - state.mean_logs)
        priors = state.priors
        if self._learn and priors.alpha.learned:
            priors = priors._replace(alpha=priors.alpha.improved(mean_logs * self._n_docs, self._n_docs))
        self._state = state._replace(
            priors=priors, mean_logs=mean_logs, batches=state.batches + 1, bound=state.bound + statistics.bound
        )

    def _e_step(self, batch: Batch) -> _BatchStatistics:
        """Run the E-step of a batch with the topics fixed."""
        alpha, eta = (prior.values for prior in self._state.priors)
        counts, n_threads, totals = batch.counts, self._n_threads, batch.counts.totals
        rows = batch.words if batch.words.size else np.zeros(1, dtype=np.intp)
        lambda_ = self._mean.values(rows)
        lambda_ += prior_columns(eta[rows]).astype(lambda_.dtype)
        words = word_operands(
            lambda_, eta[rows], self._mean.totals[: alpha.size] + self._eta_sum, n_threads=n_threads
        )  # fmt: skip
        expected = uniform_counts(totals, alpha.size, lambda_.dtype)
        docs = improve_documents(
            counts, words.operand, alpha, expected, totals=totals, weights=batch.weights,
            steps=self._settings.doc_steps, tol=self._settings.doc_tol, n_threads=n_threads,
        )  # fmt: skip
        _, word_sums, logs = counts.sums(
            docs.operand, words.operand, Want.WORDS | Want.LOGS, n_threads=n_threads, weights=batch.weights
        )
        weights = np.ones(len(totals)) if batch.weights is None else batch.weights
        bound = inner(weights, logs + docs.terms) + inner(counts.word_totals(batch.weights), words.scales)
        used = batch.words.size
        return _BatchStatistics(words.operand[:used], word_sums[:used], bound, docs.log_sums)


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
        return self._corpus.rows(partial(uniform_rows, self.model))

    @property
    def phi(self) -> Array:
        sums = self._joint.sum(axis=0, dtype=np.float64)
        return (self._joint / np.where(sums > 0, sums, 1)).astype(self._joint.dtype)

    def advance(self) -> None:
        seed = (self._settings.random_state, self._passes)
        schedule = self._settings.schedule(self._corpus, self.model.n_topics, self._corpus.n_docs)
        read = partial(_read_shard, self._settings, self.model, schedule, seed)
        seen = float(self._passes * self._corpus.n_docs)
        start = StreamState({"joint": self._joint}, {"seen": seen, "log_sum": 0.0, "tokens": 0.0})
        arrays, numbers = self._corpus.scan_shards(read, start, np.random.default_rng(seed))
        self._joint = arrays["joint"]
        self._passes += 1
        mean = numbers["log_sum"] / numbers["tokens"]
        self.report = Report(mean, mean, abs(mean - self.report.log_likelihood))

    def remaining(self, values: Sequence[float]) -> float:
        """Return the difference to the pass before."""
        return self.report.residual

    def snapshot(self) -> Snapshot:
        numbers = {"passes": float(self._passes), **self.report._asdict()}
        return Snapshot({}, {"joint": self._joint}, numbers)


def _read_shard(
    settings: StepwiseEM,
    model: Model,
    schedule: Schedule,
    seed: tuple[int, int],
    number: int,
    shard: Shard,
    state: StreamState,
) -> StreamState:
    """Return the state after the documents of a shard, read in random order.

    Its numbers are the documents read in all passes, and the tokens and sum x log P(w|d) of this pass, each document
    under the topics when it was read.
    """
    arrays, numbers = state
    stream = Stream(settings, model, arrays["joint"], numbers["seen"], shard.n_threads)
    order = np.random.default_rng((*seed, number)).permutation(shard.n_docs)
    log_sum, tokens = stream.read(shard.by_doc, shard.weights, order, schedule)
    sums = {"log_sum": numbers["log_sum"] + log_sum, "tokens": numbers["tokens"] + tokens}
    return StreamState({"joint": stream.joint}, {"seen": stream.seen, **sums})


class _OnlineVariationalRun(VariationalRun):
    """A fit by stochastic variational Bayes. An iteration is a pass over the corpus.

    The bound in the report adds up the contribution of each document when it was read. It is an estimate that needs no
    second pass.
    """

    def __init__(self, settings: OnlineVariational, corpus: Corpus, state: PosteriorState, seed: int) -> None:
        self._settings, self._corpus, self._state, self._seed = settings, corpus, state, seed
        self._passes = 0
        self.report = BoundReport(float("-inf"))

    @classmethod
    def resumed(
        cls, settings: OnlineVariational, corpus: Corpus, priors: Priors, state: Snapshot
    ) -> _OnlineVariationalRun:
        """Return the run that made a snapshot."""
        kinds = priors.alpha.kind, priors.eta.kind
        numbers = state.numbers
        K, n_words = priors.alpha.values.size, corpus.n_words
        forms = {"counts": ((n_words, padded_width(K)), corpus.dtype), "eta": (priors.eta.values.shape, np.float64)}
        forms |= dict.fromkeys(("mean_logs", "alpha"), ((K,), np.float64))
        arrays = {name: state.array(name, *form) for name, form in forms.items()}
        found = PosteriorState.from_stream(kinds, StreamState(arrays, numbers))
        run = cls(settings, corpus, found, int(numbers["seed"]))
        run._passes = int(numbers["passes"])
        run.report = BoundReport(numbers["reported_bound"])
        return run

    @property
    def lambda_(self) -> Array:
        return self._state.lambda_

    @property
    def priors(self) -> Priors:
        return self._state.priors

    def advance(self) -> None:
        corpus, settings, seed = self._corpus, self._settings, (self._seed, self._passes)
        kinds = self.priors.alpha.kind, self.priors.eta.kind
        size = settings.documents_per_batch(corpus.n_docs)
        read = partial(_read_posterior, settings, kinds, corpus.documents, size, seed, self._passes > 0)
        start = self._state._replace(bound=0.0, counts=self._state.counts.copy()).to_stream()
        self._state = PosteriorState.from_stream(
            kinds, corpus.scan_shards(read, start, np.random.default_rng(seed))
        )  # fmt: skip
        bound = (self._state.bound + self._topic_bound()) / corpus.tokens
        self._passes += 1
        self.report = BoundReport(bound)

    def remaining(self, values: Sequence[float]) -> float:
        """Return the difference to the pass before."""
        return abs(values[-1] - values[-2])

    def snapshot(self) -> Snapshot:
        arrays, numbers = self._state.to_stream()
        run = {
            "passes": self._passes,
            "seed": self._seed,
            "reported_bound": self.report.bound,
        }
        return Snapshot({}, arrays, {**numbers, **run})

    def _topic_bound(self) -> float:
        """Update a learned prior of the topics, and return their contribution to the bound."""
        alpha, eta = self.priors
        lambda_ = self.lambda_
        sums = topic_sums(lambda_, alpha.values.size)
        if self._passes and eta.learned:
            words = word_operands(lambda_, eta.values, sums, n_threads=self._corpus.n_threads)
            eta = eta.improved(words.log_sums, alpha.values.size)
            self._state = PosteriorState.of(Priors(alpha, eta), lambda_)._replace(
                mean_logs=self._state.mean_logs, batches=self._state.batches, bound=self._state.bound
            )
        words = word_operands(lambda_, eta.values, sums, n_threads=self._corpus.n_threads)
        return topics_term(words, eta.values, sums)


def _read_posterior(
    settings: OnlineVariational,
    kinds: tuple[str, str],
    n_docs: float,
    size: int,
    seed: tuple[int, int],
    learn: bool,
    number: int,
    shard: Shard,
    state: StreamState,
) -> StreamState:
    """Return the state after the documents of a shard, read in random order."""
    stream = PosteriorStream(
        settings, PosteriorState.from_stream(kinds, state), n_docs, shard.n_threads, learn=learn
    )  # fmt: skip
    order = np.random.default_rng((*seed, number)).permutation(shard.n_docs)
    stream.read(shard.by_doc, shard.weights, order, size)
    return stream.state.to_stream()
