"""The default solver."""

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
    """Choice of a solver by the model and the corpus.

    `SCD` for plain maximum likelihood of counts in memory, `AcceleratedEM` for other models whose EM steps never
    decrease the objective, and `EM` for the rest.
    """

    name: ClassVar[str] = "auto"

    def begin(self, model: Model, corpus: Any, theta: Any, phi: Any) -> SolverRun:
        return self.chosen(model, corpus).begin(model, corpus, theta, phi)

    def chosen(self, model: Model, corpus: Corpus) -> Solver:
        """Return the solver for a model and a corpus.

        Parameters
        ----------
        model : Model
            Model to fit.
        corpus : Corpus
            Counts.

        Returns
        -------
        Solver
            Solver that `begin` uses.
        """
        if model.is_plain and corpus.in_memory:
            return SCD()
        return AcceleratedEM() if model.is_monotone else EM()
