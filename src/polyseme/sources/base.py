"""What every source of counts offers to a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from polyseme.kernels import Array, Floats
from polyseme.model import Look, Model
from polyseme.sources.memory import Lengthen, MemorySource, Step, Streamed


class Source(Protocol):
    """Counts, wherever they are. theta and phi are what the source makes of them; solvers pass them on."""

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

    def in_turn(self, step: Step, state: Streamed, rng: np.random.Generator) -> Streamed:
        """state = step(number, shard, state) for one shard after the other, in an order that the generator decides."""

    def uniform(self, model: Model) -> Any:
        """theta that gives every topic the same weight."""

    def rows(self, function: Callable[[MemorySource], Array]) -> Any:
        """theta as a function makes it of the documents of a shard."""

    def look(self, model: Model, theta: Any, phi: Any) -> Look:
        """An iteration of EM at (theta, phi)."""

    def ahead(self, model: Model, lengthen: Lengthen, step: tuple[Any, Any], last: tuple[Any, Any]) -> tuple[Any, Any]:
        """The point that lies further along the way from the last step to this one."""

    def topics(self, phi: Any) -> Array:
        """phi as an array, words x width."""

    def largest(self, theta: Any) -> Array:
        """The largest number of each column of theta."""

    def background_sums(self, model: Model, theta: Any, phi: Any) -> Floats:
        """How many tokens of each word the background explains."""
