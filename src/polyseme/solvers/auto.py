"""The default: coordinate ascent where the model allows it, else EM with extrapolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyseme.model import Model
from polyseme.solvers.accelerate import AcceleratedEM
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.em import EM
from polyseme.solvers.loop import Run, Solver
from polyseme.sources import Source


@dataclass(frozen=True)
class Auto:
    """SCD for plain maximum likelihood of counts in memory; else AcceleratedEM, or EM where no step is sure to rise."""

    name: ClassVar[str] = "auto"

    def begin(self, model: Model, source: Any, theta: Any, phi: Any) -> Run:
        return self.chosen(model, source).begin(model, source, theta, phi)

    def chosen(self, model: Model, source: Source) -> Solver:
        if model.is_plain and source.in_memory:
            return SCD()
        return AcceleratedEM() if model.is_monotone else EM()
