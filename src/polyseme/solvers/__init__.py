"""Algorithms that fit a model, and the loop that runs them.

A line below adds a solver to the package: its name is public, `solver=` takes it, and model files can contain it.
"""

from polyseme.solvers.ascent import EM as EM
from polyseme.solvers.ascent import AcceleratedEM as AcceleratedEM
from polyseme.solvers.base import SOLVERS as SOLVERS
from polyseme.solvers.base import Auto as Auto
from polyseme.solvers.base import FitProblem as FitProblem
from polyseme.solvers.base import Requirement as Requirement
from polyseme.solvers.base import Solver as Solver
from polyseme.solvers.base import SolverRun as SolverRun
from polyseme.solvers.checkpoints import Checkpoint as Checkpoint
from polyseme.solvers.coordinate import SCD as SCD
from polyseme.solvers.dirichlet import Variational as Variational
from polyseme.solvers.early_stopping import EarlyStopping as EarlyStopping
from polyseme.solvers.majorize import HALS as HALS
from polyseme.solvers.majorize import MajorizeMinimize as MajorizeMinimize
from polyseme.solvers.multiplicative import PLSI as PLSI
from polyseme.solvers.multiplicative import MultiplicativeNMF as MultiplicativeNMF
from polyseme.solvers.multiplicative import NormalizedNMF as NormalizedNMF
from polyseme.solvers.online import OnlineVariational as OnlineVariational
from polyseme.solvers.online import StepwiseEM as StepwiseEM
from polyseme.solvers.tempered import Annealed as Annealed
from polyseme.solvers.tempered import HeldOutTempered as HeldOutTempered
from polyseme.solvers.tempered import Tempered as Tempered
from polyseme.solvers.tree import TreeGrowth as TreeGrowth

_NO_NAMES: tuple[type[Solver], ...] = (Solver, EarlyStopping)
"""Solvers that `solver=` does not take by name."""
_CLASSES = {name: value for name, value in list(globals().items()) if isinstance(value, type)}
SOLVERS["auto"] = Auto  # the first in messages
SOLVERS.update({kind.name: kind for kind in _CLASSES.values() if issubclass(kind, Solver) and kind not in _NO_NAMES})

__all__ = ["SOLVERS", *_CLASSES]
