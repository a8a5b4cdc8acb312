"""Extrapolation, which wraps any monotone step (Ang and Gillis 2019), and EM with it.

A step from `old` to `new` is lengthened to new + momentum (new - old). While the objective rises the momentum grows;
when it would fall, the lengthened point is dropped, the momentum is cut, and one plain step follows, which cannot fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyseme.errors import UnsupportedError
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.em import EMRun
from polyseme.solvers.loop import Run, Snapshot
from polyseme.sources import Source

_FIRST, _GROWTH, _CUT, _LONGEST = 0.5, 1.1, 0.6, 1.0


@dataclass(frozen=True)
class Lengthening:
    """max(new + size (new - old), keep new); size 0 is a plain step."""

    size: float
    keep: float

    def __call__(self, new: Array, old: Array) -> Array:
        if self.size == 0:
            return new
        longer = new + new.dtype.type(self.size) * (new - old)
        return np.maximum(longer, new.dtype.type(self.keep) * new, out=longer)


class Momentum:
    """How far steps are lengthened.

    keep : a lengthened number is at least this part of the plain one. A step that cannot revive zeros needs a large
        part, lest numbers vanish that should have come back.
    """

    def __init__(self, enabled: bool = True, *, keep: float) -> None:
        self._enabled = enabled
        self._keep = keep
        self.size = _FIRST
        """how far the next lengthened step goes"""
        self.plain = True
        """whether the present step is a plain one"""

    @property
    def lengthening(self) -> Lengthening:
        """What the present step does."""
        return Lengthening(0.0 if self.plain else self.size, self._keep)

    def lengthened(self, new: Array, old: Array) -> Array:
        return self.lengthening(new, old)

    def succeeded(self) -> None:
        if not self.plain:
            self.size = min(self.size * _GROWTH, _LONGEST)
        self.plain = not self._enabled

    def failed(self) -> None:
        self.size *= _CUT
        self.plain = True

    @property
    def numbers(self) -> dict[str, float]:
        """For a checkpoint."""
        return {"size": self.size, "plain": float(self.plain)}

    def restore(self, numbers: dict[str, float]) -> None:
        self.size, self.plain = numbers["size"], bool(numbers["plain"])


@dataclass(frozen=True)
class AcceleratedEM:
    """EM with extrapolation, for any model whose EM steps cannot fall; the objective never falls."""

    name: ClassVar[str] = "accelerated-em"

    def begin(self, model: Model, source: Source, theta: Any, phi: Any) -> Run:
        if not model.is_monotone:
            raise UnsupportedError(
                "solver='accelerated-em' needs priors whose steps never lower the objective: use solver='em'."
            )
        return AcceleratedRun(model, source, theta, phi)

    def resume(self, model: Model, source: Source, state: Snapshot) -> Run:
        return AcceleratedRun.resumed(model, source, state)


class AcceleratedRun:
    def __init__(self, model: Model, source: Source, theta: Any, phi: Any) -> None:
        self.model = model
        self.exhausted = False
        self._source = source
        self._momentum = Momentum(keep=0.5)
        self._good = EMRun(model, source, theta, phi)
        self._last_step = self._good.step
        self.report = self._good.report

    @classmethod
    def resumed(cls, model: Model, source: Source, state: Snapshot) -> AcceleratedRun:
        run = cls(model, source, state.docs["theta"], state.words["phi"])
        if "last" in state.docs:
            run._last_step = state.docs["last"], state.words["last"]
        run._momentum.restore(state.numbers)
        run.exhausted = bool(state.numbers["exhausted"])
        return run

    def snapshot(self) -> Snapshot:
        docs, words = {"theta": self.theta}, {"phi": self.phi}
        if self._last_step is not self._good.step:
            docs["last"], words["last"] = self._last_step
        return Snapshot(docs, words, {**self._momentum.numbers, "exhausted": float(self.exhausted)})

    @property
    def theta(self) -> Any:
        return self._good.theta

    @property
    def phi(self) -> Any:
        return self._good.phi

    def advance(self) -> None:
        point = self._source.ahead(self.model, self._momentum.lengthening, self._good.step, self._last_step)
        tried = EMRun(self.model, self._source, *point)
        if tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._last_step = self._good.step
            self._good, self.report = tried, tried.report
        elif self._momentum.plain:
            self.exhausted = True
        else:
            self._momentum.failed()
