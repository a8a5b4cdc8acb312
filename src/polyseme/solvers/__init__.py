"""How a model is fitted: one loop, and small solvers that it runs."""

from polyseme.solvers.em import EM
from polyseme.solvers.loop import Fit, Report, Solver, run_to_end

SOLVERS: dict[str, type[Solver]] = {"em": EM}

__all__ = ["EM", "SOLVERS", "Fit", "Report", "Solver", "run_to_end"]
