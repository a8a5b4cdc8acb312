"""Extrapolation, which wraps any monotone step (Ang and Gillis 2019), and EM with it.

A step from `old` to `new` is lengthened to new + momentum (new - old). While the objective rises the momentum grows;
when it would fall, the lengthened point is dropped, the momentum is cut, and one plain step follows, which cannot fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyseme.errors import UnsupportedError
from polyseme.factors import columns_to_one
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.em import EMRun
from polyseme.solvers.loop import Run, State
from polyseme.sources.memory import MemorySource

_FIRST, _GROWTH, _CUT, _LONGEST = 0.5, 1.1, 0.6, 1.0


class Momentum:
    """How far steps are lengthened.

    keep : a lengthened number is at least this part of the plain one. A step that cannot revive zeros needs a large
        part, lest numbers vanish that should have come back.
    """

    def __init__(self, enabled: bool = True, *, keep: float) -> None:
        self._enabled = enabled
        self._keep = keep
        self._size = _FIRST
        self.plain = True
        """whether the present step is a plain one"""

    def lengthened(self, new: Array, old: Array) -> Array:
        """max(new + momentum (new - old), keep new)"""
        if self.plain:
            return new
        longer = new + new.dtype.type(self._size) * (new - old)
        return np.maximum(longer, new.dtype.type(self._keep) * new, out=longer)

    def succeeded(self) -> None:
        if not self.plain:
            self._size = min(self._size * _GROWTH, _LONGEST)
        self.plain = not self._enabled

    def failed(self) -> None:
        self._size *= _CUT
        self.plain = True

    @property
    def numbers(self) -> Array:
        """For a checkpoint."""
        return np.array([self._size, self.plain])

    def restore(self, numbers: Array) -> None:
        self._size, self.plain = float(numbers[0]), bool(numbers[1])


@dataclass(frozen=True)
class AcceleratedEM:
    """EM with extrapolation, for any model whose EM steps cannot fall; the objective never falls."""

    name: ClassVar[str] = "accelerated-em"

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        if not model.is_monotone:
            raise UnsupportedError(
                "solver='accelerated-em' needs priors whose steps never lower the objective: use solver='em'."
            )
        return AcceleratedRun(model, source, theta, phi)


class AcceleratedRun:
    def __init__(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> None:
        self.model = model
        self.exhausted = False
        self._source = source
        self._momentum = Momentum(keep=0.5)
        self._good = EMRun(model, source, theta, phi)
        self._last_step = self._good.step
        self.report = self._good.report

    @property
    def theta(self) -> Array:
        return self._good.theta

    @property
    def phi(self) -> Array:
        return self._good.phi

    def advance(self) -> None:
        theta, phi = self._good.step
        tried = EMRun(
            self.model,
            self._source,
            self.model.normalised_docs(self._momentum.lengthened(theta, self._last_step[0]), self._source),
            columns_to_one(self._momentum.lengthened(phi, self._last_step[1])),
        )
        if tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._last_step = self._good.step
            self._good, self.report = tried, tried.report
        elif self._momentum.plain:
            self.exhausted = True
        else:
            self._momentum.failed()

    def state(self) -> State:
        return {
            **self._good.state(),
            "last_theta": self._last_step[0],
            "last_phi": self._last_step[1],
            "momentum": self._momentum.numbers,
            "exhausted": np.array(self.exhausted),
        }

    def restore(self, state: State) -> None:
        self._good.restore(state)
        self.report = self._good.report
        self._last_step = (state["last_theta"], state["last_phi"])
        self._momentum.restore(state["momentum"])
        self.exhausted = bool(state["exhausted"])
