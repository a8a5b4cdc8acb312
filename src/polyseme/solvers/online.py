"""Stepwise EM (Cappe and Moulines 2009): the topics move after every few documents, which keep no state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.model import Model, improve_docs
from polyseme.solvers.loop import Report, Run, Snapshot
from polyseme.solvers.minibatch import Batch, batches, check_schedule, rate
from polyseme.sources import Source
from polyseme.sources.memory import MemorySource, Streamed, uniform_rows
from polyseme.stats import Blend

START_VARIANCE = 0.1
"""of the noise in a random start: the first batches decide what topics are, so these begin more alike than elsewhere"""

_MOST, _LEAST, _BATCHES_A_PASS = 1024, 16, 64


@dataclass(frozen=True)
class Online:
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
        check_schedule("Online", self.offset, self.decay)
        if not self.offset > 1:
            raise InputError("Online: offset must be above 1, or the first batch would erase the start.")

    def begin(self, model: Model, source: Source, theta: Any, phi: Any) -> Run:
        phi = source.topics(phi)
        return _OnlineRun(self, model, source, phi / phi.dtype.type(model.n_topics), 0)

    def resume(self, model: Model, source: Source, state: Snapshot) -> Run:
        run = _OnlineRun(self, model, source, source.topics(state.words["joint"]), int(state.numbers["passes"]))
        run.report = Report(*(state.numbers[name] for name in Report._fields))
        return run

    def documents_a_batch(self, n_docs: int) -> int:
        return self.batch_size or max(_LEAST, min(_MOST, -(-n_docs // _BATCHES_A_PASS)))


class Stream:
    """phi of a model while batches of documents go by.

    joint : P(w, z), words x width, where the stream starts; its memory is taken.
    seen : how many documents have gone by already.
    """

    def __init__(self, settings: Online, model: Model, joint: Array, seen: float, n_threads: int) -> None:
        _refuse(model)
        self._settings, self._model, self._n_threads = settings, model, n_threads
        self._blend = Blend(joint, n_threads)
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
        shard = MemorySource(batch.counts, batch.weights, self._n_threads)
        if not shard.tokens > 0:
            return 0.0, 0.0
        model = self._model.for_words(batch.words)
        B = model.word_operand(self._blend.shares(batch.words))
        A = model.doc_operand(self._weights(model, shard, B))
        swept = shard.sweep(A, B, rows=False)
        assert swept.word_sums is not None
        assert swept.logs is not None
        step = rate(self._settings.offset, self._settings.decay, self.seen / batch.size)
        self._blend.step(step, batch.words, B, swept.word_sums, model.n_topics, shard.tokens)
        return shard.total_log(swept.logs), shard.tokens

    def _weights(self, model: Model, shard: MemorySource, B: Array) -> Array:
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
            row_sums = shard.sweep(A, B, words=False, logs=False).row_sums
            assert row_sums is not None
            row_sums[:, model.n_topics :] = 0
            theta = improve_docs(model, shard, theta, A, row_sums)
        return theta


class _OnlineRun:
    """A pass is an iteration."""

    exhausted = False

    def __init__(self, settings: Online, model: Model, source: Source, joint: Array, passes: int) -> None:
        self.model = model
        _refuse(model)
        self._settings, self._source, self._passes = settings, source, passes
        self._joint = joint
        self.report = Report(float("-inf"), float("-inf"), float("inf"))

    @property
    def theta(self) -> Any:
        """Documents keep no state."""
        return self._source.uniform(self.model)

    @property
    def phi(self) -> Array:
        sums = self._joint.sum(axis=0, dtype=np.float64)
        return (self._joint / np.where(sums > 0, sums, 1)).astype(self._joint.dtype)

    def advance(self) -> None:
        seed = (self._settings.seed, self._passes)
        size = self._settings.documents_a_batch(self._source.n_docs)
        read = partial(_read_shard, self._settings, self.model, size, seed)
        start = Streamed(self._joint, float(self._passes * self._source.n_docs))
        end = self._source.in_turn(read, start, np.random.default_rng(seed))
        self._joint = end.joint
        self._passes += 1
        mean = end.log_sum / end.tokens
        self.report = Report(mean, mean, abs(mean - self.report.log_likelihood))

    def snapshot(self) -> Snapshot:
        numbers = {"passes": float(self._passes), **self.report._asdict()}
        return Snapshot({}, {"joint": self._joint}, numbers)


def _read_shard(
    settings: Online, model: Model, size: int, seed: tuple[int, int], number: int, shard: MemorySource, state: Streamed
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
