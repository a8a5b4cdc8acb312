"""Algorithms that fit a model, and the loop that runs them.

`solver=` takes the name of every solver, and model files can contain it. Solvers whose settings are worth a choice are
public.
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
    "Annealed",
    "Checkpoint",
    "EarlyStopping",
    "HeldOutTempered",
    "OnlineVariational",
    "StepwiseEM",
    "Tempered",
    "TreeGrowth",
    "Variational",
]

_BY_NAME = (EM, AcceleratedEM, SCD, HALS, MajorizeMinimize, PLSI, MultiplicativeNMF, NormalizedNMF)
"""Solvers that users choose by name only."""
_PUBLIC = [value for name, value in list(globals().items()) if name in __all__ and isinstance(value, type)]
_SOLVERS = [kind for kind in (*_BY_NAME, *_PUBLIC) if issubclass(kind, Solver) and kind is not EarlyStopping]
SOLVERS["auto"] = Auto  # the first in messages
SOLVERS.update({kind.name: kind for kind in _SOLVERS})
