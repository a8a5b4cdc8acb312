"""Algorithms that fit a model, and the loop that runs them."""

from polyseme.solvers.ascent import EM, AcceleratedEM
from polyseme.solvers.base import SOLVERS, Auto, FitProblem, Requirement, Solver, SolverRun
from polyseme.solvers.checkpoints import Checkpoint
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.early_stopping import EarlyStopping
from polyseme.solvers.multiplicative import PLSI, MultiplicativeNMF, NormalizedNMF
from polyseme.solvers.online import OnlineVariational, StepwiseEM
from polyseme.solvers.tempered import Annealed, HeldOutTempered, Tempered
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
    Annealed,
    StepwiseEM,
)

SOLVERS.update((solver.name, solver) for solver in _ALL)

__all__ = [
    "EM",
    "PLSI",
    "SCD",
    "SOLVERS",
    "AcceleratedEM",
    "Annealed",
    "Auto",
    "Checkpoint",
    "EarlyStopping",
    "FitProblem",
    "HeldOutTempered",
    "MultiplicativeNMF",
    "NormalizedNMF",
    "OnlineVariational",
    "Requirement",
    "Solver",
    "SolverRun",
    "StepwiseEM",
    "Tempered",
    "TreeGrowth",
    "Variational",
]
