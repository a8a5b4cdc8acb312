"""The interface of a corpus, and a corpus in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from polyseme.core.model import EMStepResult, Model, background_sums, em_step
from polyseme.core.shard import Shard, as_counts
from polyseme.kernels import Array, Floats, normalize_columns, padded

Extrapolate = Callable[[Array, Array], Array]
"""Function of a new and an old factor; see `solvers.ascent.Extrapolation`."""


class StreamState(NamedTuple):
    """State of an online solver that is passed from one shard to the next."""

    joint: Array
    """P(w, z), words x width; a step may overwrite it."""
    seen: float
    """Number of documents read so far."""
    log_sum: float = 0.0
    """sum x log P(w|d) of the documents read, each with the topics at that time."""
    tokens: float = 0.0


StreamStep = Callable[[int, Shard, StreamState], StreamState]
"""Function of the number of a shard, the shard, and the state after the previous shards."""


def uniform_rows(model: Model, n_docs: int, dtype: np.dtype[Any]) -> Array:
    """Return theta (documents x width) with equal weights of all topics."""
    K = model.n_topics
    return padded(np.full((n_docs, K), 1.0 / K, dtype=dtype), dtype, model.n_columns)


class Corpus(Protocol):
    """Counts in memory, in files or on a cluster.

    theta and phi are opaque to solvers: arrays, files or futures, as the corpus returns them.
    """

    @property
    def in_memory(self) -> bool:
        """Return whether the counts and the factors are arrays of this process."""

    @property
    def n_docs(self) -> int: ...
    @property
    def n_words(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def n_threads(self) -> int: ...
    @property
    def tokens(self) -> float: ...
    @property
    def word_totals(self) -> Floats: ...
    @property
    def unigram(self) -> Floats: ...

    def in_turn(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        """Run state = step(number, shard, state) for each shard, in random order. Return the last state."""

    def uniform(self, model: Model) -> Any:
        """Return theta with equal weights of all topics."""

    def rows(self, function: Callable[[Shard], Array]) -> Any:
        """Return theta from a function that computes the rows of a shard."""

    def em_step(self, model: Model, theta: Any, phi: Any) -> EMStepResult:
        """Run an iteration of EM at (theta, phi)."""

    def extrapolate(
        self, model: Model, extrapolate: Extrapolate, step: tuple[Any, Any], last: tuple[Any, Any]
    ) -> tuple[Any, Any]:
        """Return the normalized point that is extrapolated from the last step and this one."""

    def topics(self, phi: Any) -> Array:
        """Return phi as an array, words x width."""

    def column_max(self, theta: Any) -> Array:
        """Return the maximum of each column of theta."""

    def background_sums(self, model: Model, theta: Any, phi: Any) -> Floats:
        """Return the expected number of tokens of each word that come from the background."""


class MemoryCorpus(Shard):
    """A corpus in the memory of this process: a single shard."""

    in_memory: ClassVar[bool] = True

    def in_turn(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        return step(0, self, state)

    def uniform(self, model: Model) -> Array:
        return uniform_rows(model, self.n_docs, self.dtype)

    def rows(self, function: Callable[[Shard], Array]) -> Array:
        return function(self)

    def em_step(self, model: Model, theta: Array, phi: Array) -> EMStepResult:
        """Run an iteration of EM at (theta, phi)."""
        return em_step(model, self, theta, phi)

    def extrapolate(
        self, model: Model, extrapolate: Extrapolate, step: tuple[Array, Array], last: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Return the normalized point (theta, phi) that is extrapolated from the last step and this one."""
        theta = model.normalize_docs(extrapolate(step[0], last[0]), self)
        return theta, normalize_columns(extrapolate(step[1], last[1]))

    def background_sums(self, model: Model, theta: Array, phi: Array) -> Floats:
        return background_sums(model, self, theta, phi)

    def topics(self, phi: Array) -> Array:
        return phi

    def column_max(self, theta: Array) -> Array:
        """Return the maximum of each column of theta."""
        return np.asarray(theta.max(axis=0))


def training_corpora(
    X: Any, dtype: np.dtype[Any], weights: Floats | None, n_threads: int
) -> tuple[MemoryCorpus, MemoryCorpus, Array | None]:
    """Return the corpus of all documents, that of the documents with a positive weight, and the rows of these.

    If all weights are positive, both corpora are the same object and the rows are None.
    """
    whole = MemoryCorpus(as_counts(X, dtype), weights, n_threads)
    if weights is None or (weights > 0).all():
        return whole, whole, None
    rows = np.flatnonzero(weights)
    return whole, MemoryCorpus(as_counts(X[rows], dtype), weights[rows], n_threads), rows
