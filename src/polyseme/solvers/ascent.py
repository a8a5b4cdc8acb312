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
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from polyseme.core.model import Report
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
        return EMRun.resumed(problem, state)


@dataclass(frozen=True)
class AcceleratedEM(Solver):
    """EM with extrapolation, for models whose EM steps never decrease the objective."""

    name: ClassVar[str] = "accelerated-em"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.MONOTONE_PRIORS})
    resumable: ClassVar[bool] = True

    def begin(self, problem: FitProblem, theta: Any, phi: Any) -> SolverRun:
        return EMRun(problem, theta, phi, extrapolate=True)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return EMRun.resumed(problem, state, extrapolate=True)


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


P = TypeVar("P")


class EvaluatedPoint(NamedTuple, Generic[P]):
    """A point, its report, and the step from it."""

    point: P
    report: Progress
    step: P


Extrapolate = Callable[[Extrapolation, P, P], P]
"""Function of an extrapolation, a step and the step before it, which returns the point to evaluate."""


def extrapolate_arrays(normalize: Callable[..., P]) -> Extrapolate[P]:
    """Return a function that extrapolates each array of a point and calls `normalize` with the arrays.

    A step that is not extrapolated is returned as it is.
    """

    def extrapolate(extrapolation: Extrapolation, step: Any, last: Any) -> P:
        return step if extrapolation.size == 0 else normalize(*map(extrapolation, step, last))

    return extrapolate


class Ascent(Iterative, Generic[P]):
    """A fit by steps that increase the objective, with or without extrapolation.

    evaluate : returns the report at a point and the step from there.
    extrapolate : returns the point to evaluate next. None: the step itself.
    compare : whether a point with a lower objective is rejected; always so with `extrapolate`. Otherwise every step is
        accepted, and the old point is freed before the evaluation of the next one allocates memory.
    """

    _current: EvaluatedPoint[P]

    def __init__(
        self,
        evaluate: Callable[[P], EvaluatedPoint[P]],
        start: P,
        extrapolate: Extrapolate[P] | None = None,
        *,
        compare: bool = False,
    ) -> None:
        self._evaluate = evaluate
        self._extrapolate = extrapolate
        self._compare = compare or extrapolate is not None
        self._momentum = Momentum(extrapolate is not None, keep=0.5)
        self._accept(evaluate(start))
        self._last_step = self.step if extrapolate is not None else None

    @property
    def point(self) -> P:
        """Return the point that the report describes."""
        return self._current.point

    @property
    def step(self) -> P:
        """Return the step from the point."""
        return self._current.step

    def advance(self) -> None:
        step = self.step
        point = step
        if self._extrapolate is not None:
            assert self._last_step is not None
            point = self._extrapolate(self._momentum.extrapolation, step, self._last_step)
        if not self._compare:
            self._current = self._current._replace(point=step)  # frees the old point
        tried = self._evaluate(point)
        if not self._compare or tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._accept(tried)
            if self._extrapolate is not None:
                self._last_step = step
        elif self._momentum.plain:
            self.exhausted = True  # only rounding can make a plain step decrease the objective
        else:
            self._momentum.failed()

    def _accept(self, evaluated: EvaluatedPoint[P]) -> None:
        self._current, self.report = evaluated, evaluated.report


class EMRun(Ascent[tuple[Any, Any]], SolverRun):
    """A fit of theta and phi by EM, with or without extrapolation."""

    report: Report

    def __init__(self, problem: FitProblem, theta: Any, phi: Any, *, extrapolate: bool = False) -> None:
        self.model, corpus = problem
        combine = partial(corpus.extrapolate, self.model) if extrapolate else None
        super().__init__(partial(_em_step, problem), (theta, phi), combine)

    @classmethod
    def resumed(cls, problem: FitProblem, state: Snapshot, *, extrapolate: bool = False) -> EMRun:
        """Return the run that made a snapshot."""
        run = cls(problem, state.docs["theta"], state.words["phi"], extrapolate=extrapolate)
        if "last" in state.docs:
            run._last_step = state.docs["last"], state.words["last"]
        run._momentum.restore(state.numbers)
        run.exhausted = bool(state.numbers["exhausted"])
        return run

    @property
    def theta(self) -> Any:
        return self.point[0]

    @property
    def phi(self) -> Any:
        return self.point[1]

    def snapshot(self) -> Snapshot:
        docs, words = {"theta": self.theta}, {"phi": self.phi}
        if self._last_step is not None and self._last_step is not self.step:
            docs["last"], words["last"] = self._last_step
        return Snapshot(docs, words, {**self._momentum.numbers, "exhausted": float(self.exhausted)})


def _em_step(problem: FitProblem, point: tuple[Any, Any]) -> EvaluatedPoint[tuple[Any, Any]]:
    """Return the report at (theta, phi) and the step of EM from there."""
    result = problem.corpus.em_step(problem.model, *point)
    return EvaluatedPoint((result.theta, result.phi), result.report, (result.next_theta, result.next_phi))
