"""EM, and extrapolation of any step that never decreases the objective (Ang and Gillis 2019).

A step from `old` to `new` is extrapolated to new + size (new - old). While the objective increases, the size grows. If
it would decrease, the extrapolated point is dropped, the size shrinks, and a plain step follows, which cannot decrease
the objective.

References
----------
T. Hofmann. Probabilistic latent semantic analysis. UAI 1999.
E. Gaussier and C. Goutte. Relation between PLSA and NMF and implications. SIGIR 2005.
L. Hong. Probabilistic latent semantic analysis. Tutorial, Lehigh University, 2012. Equations 8-14 and 33-38.
A. M. S. Ang and N. Gillis. Accelerating nonnegative matrix factorization algorithms using extrapolation. Neural
    Computation 31, 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from polyseme.kernels import Array
from polyseme.solvers.base import FitProblem, Iterative, Progress, Requirement, Snapshot, Solver, SolverRun

_FIRST_SIZE, _GROWTH, _CUT, _MAX_SIZE = 0.5, 1.1, 0.6, 1.0


@dataclass(frozen=True)
class EM(Solver):
    """Plain EM.

    theta_dk ∝ theta_dk sum_w x phi_kw / p and phi_kw ∝ phi_kw sum_d x theta_dk / p, both from the old values. The
    symmetric form with P(z), P(d|z) and P(w|z) has the same iterates, because P(z) P(d|z) = P(d) P(z|d).
    """

    name: ClassVar[str] = "em"
    resumable: ClassVar[bool] = True

    def begin(self, problem: FitProblem, theta: Any, phi: Any) -> SolverRun:
        return EMRun(problem, theta, phi)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return EMRun(problem, state.docs["theta"], state.words["phi"])


@dataclass(frozen=True)
class AcceleratedEM(Solver):
    """EM with extrapolation, for models whose EM steps never decrease the objective."""

    name: ClassVar[str] = "accelerated-em"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.MONOTONE_PRIORS})
    resumable: ClassVar[bool] = True

    def begin(self, problem: FitProblem, theta: Any, phi: Any) -> SolverRun:
        return AcceleratedRun(problem, theta, phi)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return AcceleratedRun.resumed(problem, state)


@dataclass(frozen=True)
class Extrapolation:
    """The function max(new + size (new - old), keep new); a plain step if the size is 0."""

    size: float
    keep: float

    def __call__(self, new: Array, old: Array) -> Array:
        if self.size == 0:
            return new
        extrapolated = new + new.dtype.type(self.size) * (new - old)
        return np.maximum(extrapolated, new.dtype.type(self.keep) * new, out=extrapolated)


class Momentum:
    """Size of the extrapolation, adapted to success and failure.

    keep : an extrapolated number is at least this share of the plain one. Use a large value if the update cannot turn
        a zero into a positive number.
    """

    def __init__(self, enabled: bool = True, *, keep: float) -> None:
        self._enabled = enabled
        self._keep = keep
        self.size = _FIRST_SIZE
        """Size of the next extrapolated step."""
        self.plain = True
        """Whether the current step is not extrapolated."""

    @property
    def extrapolation(self) -> Extrapolation:
        """Return the extrapolation of the current step."""
        return Extrapolation(0.0 if self.plain else self.size, self._keep)

    def extrapolate(self, new: Array, old: Array) -> Array:
        return self.extrapolation(new, old)

    def succeeded(self) -> None:
        if not self.plain:
            self.size = min(self.size * _GROWTH, _MAX_SIZE)
        self.plain = not self._enabled

    def failed(self) -> None:
        self.size *= _CUT
        self.plain = True

    @property
    def numbers(self) -> dict[str, float]:
        """Return the state for a checkpoint."""
        return {"size": self.size, "plain": float(self.plain)}

    def restore(self, numbers: dict[str, float]) -> None:
        self.size, self.plain = numbers["size"], bool(numbers["plain"])


class EMRun(SolverRun):
    """A fit by plain EM. `step` is the point of the next iteration: EM(theta), EM(phi)."""

    step: tuple[Any, Any]

    def __init__(self, problem: FitProblem, theta: Any, phi: Any) -> None:
        self.model, self._corpus = problem
        self._em_step(theta, phi)

    @property
    def theta(self) -> Any:
        return self._point[0]

    @property
    def phi(self) -> Any:
        return self._point[1]

    def advance(self) -> None:
        self._point = self.step  # frees the old point before the sweep allocates memory
        self._em_step(*self.step)

    def snapshot(self) -> Snapshot:
        return Snapshot({"theta": self.theta}, {"phi": self.phi}, {})

    def _em_step(self, theta: Any, phi: Any) -> None:
        """Set the report at (theta, phi), and the step from there."""
        result = self._corpus.em_step(self.model, theta, phi)
        self._point, self.step = (result.theta, result.phi), (result.next_theta, result.next_phi)
        self.report = result.report


class AcceleratedRun(SolverRun):
    """A fit by EM with extrapolation."""

    def __init__(self, problem: FitProblem, theta: Any, phi: Any) -> None:
        self.model = problem.model
        self._problem = problem
        self._momentum = Momentum(keep=0.5)
        self._good = EMRun(problem, theta, phi)
        self._last_step = self._good.step
        self.report = self._good.report

    @classmethod
    def resumed(cls, problem: FitProblem, state: Snapshot) -> AcceleratedRun:
        """Return the run that made a snapshot."""
        run = cls(problem, state.docs["theta"], state.words["phi"])
        if "last" in state.docs:
            run._last_step = state.docs["last"], state.words["last"]
        run._momentum.restore(state.numbers)
        run.exhausted = bool(state.numbers["exhausted"])
        return run

    def snapshot(self) -> Snapshot:
        docs, words = {"theta": self.theta}, {"phi": self.phi}
        if self._last_step is not self._good.step:
            docs["last"], words["last"] = self._last_step
        return Snapshot(docs, words, {**self._momentum.numbers, "exhausted": float(self.exhausted)})

    @property
    def theta(self) -> Any:
        return self._good.theta

    @property
    def phi(self) -> Any:
        return self._good.phi

    def advance(self) -> None:
        corpus = self._problem.corpus
        point = corpus.extrapolate(self.model, self._momentum.extrapolation, self._good.step, self._last_step)
        tried = EMRun(self._problem, *point)
        if tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._last_step = self._good.step
            self._good, self.report = tried, tried.report
        elif self._momentum.plain:
            self.exhausted = True
        else:
            self._momentum.failed()


P = TypeVar("P", bound=tuple[Any, ...])


class EvaluatedPoint(NamedTuple):
    """A point, its report, and the step from it."""

    point: Any
    report: Progress
    step: Any


class PointRun(Iterative, Generic[P]):
    """A fit of a model whose parameters are any tuple of arrays.

    evaluate : returns the report at a point and the step from there, which must not decrease the objective.
    normalized : normalizes an extrapolated point. None: no extrapolation.
    """

    def __init__(
        self,
        evaluate: Callable[[P], EvaluatedPoint],
        start: P,
        normalized: Callable[[P], P] | None = None,
    ) -> None:
        self._evaluate = evaluate
        self._normalized = normalized
        self._momentum = Momentum(normalized is not None, keep=0.5)
        self._good = evaluate(start)
        self._last_step: P = self._good.step
        self.report = self._good.report

    @property
    def point(self) -> P:
        """Return the point that the report describes."""
        return self._good.point

    def advance(self) -> None:
        step: P = self._good.step
        plain = self._momentum.plain or self._normalized is None
        tried = self._evaluate(step if plain else self._extrapolated(step))
        if self._normalized is None or tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._last_step = step
            self._good, self.report = tried, tried.report
        elif self._momentum.plain:
            self.exhausted = True
        else:
            self._momentum.failed()

    def _extrapolated(self, step: P) -> P:
        assert self._normalized is not None
        arrays = (self._momentum.extrapolate(new, old) for new, old in zip(step, self._last_step, strict=True))
        kind: Callable[..., P] = getattr(type(step), "_make", type(step))
        return self._normalized(kind(arrays))
