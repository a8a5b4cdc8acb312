"""How a model is fitted: one loop, and small solvers that it runs."""

from polyseme.solvers.accelerate import AcceleratedEM
from polyseme.solvers.auto import Auto
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.early_stopping import EarlyStopping
from polyseme.solvers.em import EM
from polyseme.solvers.look_further import LookFurther
from polyseme.solvers.loop import Fit, Report, Run, Solver, run_to_end
from polyseme.solvers.multiplicative import MultiplicativeNMF, NormalizedNMF
from polyseme.solvers.online import Online
from polyseme.solvers.plsi import PLSI
from polyseme.solvers.stochastic import OnlineVariational
from polyseme.solvers.tempered import Annealed, HeldOutTempered, Tempered
from polyseme.solvers.tree_growth import Growth
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
    Online,
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
    "Fit",
    "Growth",
    "HeldOutTempered",
    "LookFurther",
    "MultiplicativeNMF",
    "NormalizedNMF",
    "Online",
    "OnlineVariational",
    "Report",
    "Run",
    "Solver",
    "Tempered",
    "Variational",
    "run_to_end",
]
