"""The default: coordinate ascent where the model allows it, else EM with extrapolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.accelerate import AcceleratedEM
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.em import EM
from polyseme.solvers.loop import Run, Solver
from polyseme.sources.memory import MemorySource


@dataclass(frozen=True)
class Auto:
    """SCD for plain maximum likelihood; AcceleratedEM for other models, or EM where no step is sure to rise.

    It looks at the model alone.
    """

    name: ClassVar[str] = "auto"

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        return self._choose(model).begin(model, source, theta, phi)

    def _choose(self, model: Model) -> Solver:
        if model.is_plain:
            return SCD()
        return AcceleratedEM() if model.is_monotone else EM()
