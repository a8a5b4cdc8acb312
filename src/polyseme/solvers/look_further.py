"""Hofmann's schedule of beta (solvers/tempered.py), made to look further before it ends.

`HeldOutTempered` ends at the first beta that brings no improvement on the held-out tokens. With many topics for few
tokens, that can be the very first one: 0.9 still overfits, where 0.6 would not. Here the schedule goes on below it,
from the best point, and ends when that has brought nothing `tries` times in a row. Held-out tokens alone decide.
Patience is 10, since a start improves only after a few steps (3 were too few on Medline: its best point was the start).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

from polyseme.errors import InputError
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.loop import Run
from polyseme.solvers.tempered import HeldOutRun, HeldOutTempered
from polyseme.sources.memory import MemorySource


@dataclass(frozen=True)
class LookFurther:
    """The schedule of `settings`; each of the `tries` covers two more betas below those that it has seen."""

    name: ClassVar[str] = "look-further"
    holds_out: ClassVar[bool] = True
    settings: HeldOutTempered = field(default_factory=lambda: HeldOutTempered(patience=10))
    tries: int = 2

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        if self.tries < 0:
            raise InputError(f"tries must be at least 0, got {self.tries!r}.")
        first = cast(HeldOutRun, self.settings.begin(model, source, theta, phi))
        return _FurtherRun(self, model, source, first)


class _FurtherRun:
    """Runs of the schedule one after another, each from the best point so far."""

    def __init__(self, solver: LookFurther, model: Model, source: MemorySource, first: HeldOutRun) -> None:
        self._solver = solver
        self._model = model
        self._source = source
        self._best = self._current = first
        self._lowest = 1.0
        self._failures = 0
        self.report = first.report
        self.exhausted = False

    @property
    def model(self) -> Model:
        return self._current.model

    @property
    def theta(self) -> Array:
        return self._current.theta

    @property
    def phi(self) -> Array:
        return self._current.phi

    @property
    def quality(self) -> float:
        """The best held-out score."""
        return max(self._best.quality, self._current.quality)

    def advance(self) -> None:
        self._current.advance()
        self._lowest = min(self._lowest, self._current.model.temperature)
        if self._current.exhausted:
            self._go_on()
        self.report = self._current.report

    def _go_on(self) -> None:
        """From the end of one run: the next one, or the end."""
        if self._current is self._best or self._current.quality > self._best.quality:
            self._best, self._failures = self._current, 0
        else:
            self._failures += 1
        if self._failures >= self._solver.tries:
            self._current, self.exhausted = self._best, True
            return
        lower = replace(self._model, temperature=self._lowest * self._solver.settings.shrink)
        self._current = HeldOutRun(self._solver.settings, lower, self._source, self._best.theta, self._best.phi)
