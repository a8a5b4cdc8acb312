"""Algorithms that fit a model, and the loop that runs them.

`solver=` takes the name of every solver in `__all__`, and model files can contain it.
"""

from polyseme.solvers.ascent import EM, AcceleratedEM
from polyseme.solvers.base import SOLVERS, Auto, Solver
from polyseme.solvers.checkpoints import Checkpoint
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.dirichlet import Variational
from polyseme.solvers.early_stopping import EarlyStopping
from polyseme.solvers.majorize import HALS, MajorizeMinimize
from polyseme.solvers.multiplicative import PLSI, MultiplicativeNMF, NormalizedNMF
from polyseme.solvers.online import OnlineVariational, StepwiseEM
from polyseme.solvers.tempered import Annealed, HeldOutTempered, Tempered
from polyseme.solvers.tree import TreeGrowth

__all__ = [
    "EM",
    "HALS",
    "PLSI",
    "SCD",
    "SOLVERS",
    "AcceleratedEM",
    "Annealed",
    "Auto",
    "Checkpoint",
    "EarlyStopping",
    "HeldOutTempered",
    "MajorizeMinimize",
    "MultiplicativeNMF",
    "NormalizedNMF",
    "OnlineVariational",
    "Solver",
    "StepwiseEM",
    "Tempered",
    "TreeGrowth",
    "Variational",
]

_NO_NAMES: tuple[type[Solver], ...] = (Solver, EarlyStopping)
"""Solvers that `solver=` does not take by name."""
_CLASSES = [value for name, value in list(globals().items()) if name in __all__ and isinstance(value, type)]
SOLVERS["auto"] = Auto  # the first in messages
SOLVERS.update({kind.name: kind for kind in _CLASSES if issubclass(kind, Solver) and kind not in _NO_NAMES})
