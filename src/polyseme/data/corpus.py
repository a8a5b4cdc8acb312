"""What every corpus of counts offers to a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from polyseme.core.factors import columns_to_one
from polyseme.core.model import EMStepResult, Model, background_sums, em_step
from polyseme.core.shard import Shard, counts_of
from polyseme.kernels import Array, Floats, padded

Extrapolate = Callable[[Array, Array], Array]
"""of a new and an old factor: see solvers/accelerate.py"""


class StreamState(NamedTuple):
    """What goes from one shard to the next where they are read in turn."""

    joint: Array
    """P(w, z), words x width; a step may take its memory"""
    seen: float
    """documents so far"""
    log_sum: float = 0.0
    """sum x log P(w|d) of what was read, with the topics as they were"""
    tokens: float = 0.0


StreamStep = Callable[[int, Shard, StreamState], StreamState]
"""of a shard's number, the shard, and what the shards before it left"""


def uniform_rows(model: Model, n_docs: int, dtype: np.dtype[Any]) -> Array:
    """theta (documents x width) that gives every topic the same weight."""
    K = model.n_topics
    return padded(np.full((n_docs, K), 1.0 / K, dtype=dtype), dtype, model.n_columns)


class Corpus(Protocol):
    """Counts, wherever they are. theta and phi are what the corpus makes of them; solvers pass them on."""

    @property
    def in_memory(self) -> bool:
        """whether the factors are arrays of this process, and the counts at hand"""

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
        """state = step(number, shard, state) for one shard after the other, in an order that the generator decides."""

    def uniform(self, model: Model) -> Any:
        """theta that gives every topic the same weight."""

    def rows(self, function: Callable[[Shard], Array]) -> Any:
        """theta as a function makes it of the documents of a shard."""

    def em_step(self, model: Model, theta: Any, phi: Any) -> EMStepResult:
        """An iteration of EM at (theta, phi)."""

    def extrapolate(
        self, model: Model, extrapolate: Extrapolate, step: tuple[Any, Any], last: tuple[Any, Any]
    ) -> tuple[Any, Any]:
        """The point that lies further along the way from the last step to this one."""

    def topics(self, phi: Any) -> Array:
        """phi as an array, words x width."""

    def column_max(self, theta: Any) -> Array:
        """The largest number of each column of theta."""

    def background_sums(self, model: Model, theta: Any, phi: Any) -> Floats:
        """How many tokens of each word the background explains."""


class MemoryCorpus(Shard):
    """A corpus of one shard, in the memory of this process."""

    in_memory: ClassVar[bool] = True
    """whether all counts, and theta, are arrays of this process; else theta is what `look` makes of it"""

    def in_turn(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        """What the step makes of all documents at once."""
        return step(0, self, state)

    def uniform(self, model: Model) -> Array:
        """theta to start from."""
        return uniform_rows(model, self.n_docs, self.dtype)

    def rows(self, function: Callable[[Shard], Array]) -> Array:
        """theta as a function makes it of the documents."""
        return function(self)

    def em_step(self, model: Model, theta: Array, phi: Array) -> EMStepResult:
        """An iteration of EM at (theta, phi)."""
        return em_step(model, self, theta, phi)

    def extrapolate(
        self, model: Model, extrapolate: Extrapolate, step: tuple[Array, Array], last: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """The point (theta, phi) that lies further along the way from the last step to this one."""
        theta = model.normalized_docs(extrapolate(step[0], last[0]), self)
        return theta, columns_to_one(extrapolate(step[1], last[1]))

    def background_sums(self, model: Model, theta: Array, phi: Array) -> Floats:
        """See model.py."""
        return background_sums(model, self, theta, phi)

    def topics(self, phi: Array) -> Array:
        """phi as an array."""
        return phi

    def column_max(self, theta: Array) -> Array:
        """The largest number of each column of theta."""
        return np.asarray(theta.max(axis=0))


def training_corpora(
    X: Any, dtype: np.dtype[Any], weights: Floats | None, n_threads: int
) -> tuple[MemoryCorpus, MemoryCorpus, Array | None]:
    """All documents; those that a fit counts, since one without weight is as good as absent; and their rows.

    Where every document counts, both sources are the same and the rows are None.
    """
    whole = MemoryCorpus(counts_of(X, dtype), weights, n_threads)
    if weights is None or (weights > 0).all():
        return whole, whole, None
    kept = np.flatnonzero(weights)
    return whole, MemoryCorpus(counts_of(X[kept], dtype), weights[kept], n_threads), kept
