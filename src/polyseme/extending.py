"""What you need to write a prior, a loss or a solver of your own.

docs/how-to explains each with an example. This interface is for code that extends polyseme, and changes more often than
the rest.
"""

from polyseme.losses.base import Loss
from polyseme.priors.base import Prior
from polyseme.solvers.ascent import EMRun
from polyseme.solvers.base import FitProblem, Requirement, Solver, SolverRun

__all__ = [
    "EMRun",
    "FitProblem",
    "Loss",
    "Prior",
    "Requirement",
    "Solver",
    "SolverRun",
]
