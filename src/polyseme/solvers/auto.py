"""The default: coordinate ascent where the model allows it, else EM with extrapolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.accelerate import AcceleratedEM
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.loop import Run, Solver
from polyseme.sources.memory import MemorySource


@dataclass(frozen=True)
class Auto:
    """SCD for plain maximum likelihood; AcceleratedEM for every other model. It looks at the model alone."""

    name: ClassVar[str] = "auto"

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        solver: Solver = SCD() if model.is_plain else AcceleratedEM()
        return solver.begin(model, source, theta, phi)
