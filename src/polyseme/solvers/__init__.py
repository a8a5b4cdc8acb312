"""How a model is fitted: one loop, and small solvers that it runs."""

from polyseme.solvers.ascent import EM, AcceleratedEM
from polyseme.solvers.auto import Auto
from polyseme.solvers.base import FitResult, Report, Solver, SolverRun, run_to_end
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.early_stopping import EarlyStopping
from polyseme.solvers.multiplicative import PLSI, MultiplicativeNMF, NormalizedNMF
from polyseme.solvers.online import OnlineVariational, StepwiseEM
from polyseme.solvers.tempered import Annealed, HeldOutTempered, LookFurther, Tempered
from polyseme.solvers.tree import TreeGrowth
from polyseme.solvers.variational import Variational

_ALL: tuple[type[Solver], ...] = (
    Auto,
    SCD,
    EM,
    AcceleratedEM,
    MultiplicativeNMF,
    NormalizedNMF,
    PLSI,
    Tempered,
    HeldOutTempered,
    LookFurther,
    Annealed,
    StepwiseEM,
)

SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in _ALL}
"""every solver of PLSA by the name that `solver=` takes"""

__all__ = [
    "EM",
    "PLSI",
    "SCD",
    "SOLVERS",
    "AcceleratedEM",
    "Annealed",
    "Auto",
    "EarlyStopping",
    "FitResult",
    "HeldOutTempered",
    "LookFurther",
    "MultiplicativeNMF",
    "NormalizedNMF",
    "OnlineVariational",
    "Report",
    "Solver",
    "SolverRun",
    "StepwiseEM",
    "Tempered",
    "TreeGrowth",
    "Variational",
    "run_to_end",
]
