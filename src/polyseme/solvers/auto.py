"""The default: coordinate ascent where the model allows it, else EM with extrapolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyseme.core.model import Model
from polyseme.data.corpus import Corpus
from polyseme.solvers.ascent import EM, AcceleratedEM
from polyseme.solvers.base import Solver, SolverRun
from polyseme.solvers.coordinate import SCD


@dataclass(frozen=True)
class Auto:
    """SCD for plain maximum likelihood of counts in memory; else AcceleratedEM, or EM where no step is sure to rise."""

    name: ClassVar[str] = "auto"

    def begin(self, model: Model, corpus: Any, theta: Any, phi: Any) -> SolverRun:
        return self.chosen(model, corpus).begin(model, corpus, theta, phi)

    def chosen(self, model: Model, corpus: Corpus) -> Solver:
        if model.is_plain and corpus.in_memory:
            return SCD()
        return AcceleratedEM() if model.is_monotone else EM()
