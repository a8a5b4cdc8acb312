"""EM, and extrapolation of any step that never decreases the objective (Ang and Gillis 2019).

A step from `old` to `new` is extrapolated to new + size (new - old). While the objective increases, the size grows. If
it would decrease, the extrapolated point is dropped, the size shrinks, and a plain step follows, which can decrease the
objective by rounding only.

References
----------
T. Hofmann. Probabilistic latent semantic analysis. UAI 1999.
E. Gaussier and C. Goutte. Relation between PLSA and NMF and implications. SIGIR 2005.
L. Hong. Probabilistic latent semantic analysis. Tutorial, Lehigh University, 2012. Equations 8-14 and 33-38.
A. M. S. Ang and N. Gillis. Accelerating nonnegative matrix factorization algorithms using extrapolation. Neural
    Computation 31, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from polyseme.core.model import EMStep, Report
from polyseme.data.corpus import Corpus, Point, Step
from polyseme.kernels import Array, extrapolated, padded_width
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
    starts_from_sample: ClassVar[bool] = True

    def begin(self, problem: FitProblem, theta: Any, phi: Array) -> SolverRun:
        return EMRun(problem, theta, phi)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return EMRun.resumed(problem, state)


@dataclass(frozen=True)
class AcceleratedEM(Solver):
    """EM with extrapolation, for models whose EM steps never decrease the objective."""

    name: ClassVar[str] = "accelerated-em"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.MONOTONE_PRIORS})
    resumable: ClassVar[bool] = True
    starts_from_sample: ClassVar[bool] = True

    def begin(self, problem: FitProblem, theta: Any, phi: Array) -> SolverRun:
        return EMRun(problem, theta, phi, extrapolate=True)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return EMRun.resumed(problem, state, extrapolate=True)


@dataclass(frozen=True)
class Extrapolation:
    """The function max(new + size (new - old), keep new); a plain step if the size is 0."""

    size: float
    keep: float
    n_threads: int = 1

    def __call__(self, new: Array, old: Array) -> Array:
        if self.size == 0:
            return new
        return extrapolated(new, old, self.size, self.keep, n_threads=self.n_threads)


class Momentum:
    """Size of the extrapolation, adapted to success and failure.

    keep : an extrapolated number is at least this share of the plain one. Use a large value if the update cannot turn
        a zero into a positive number.
    """

    def __init__(self, enabled: bool = True, *, keep: float, n_threads: int = 1) -> None:
        self._enabled = enabled
        self._keep = keep
        self._n_threads = n_threads
        self.size = _FIRST_SIZE
        """Size of the next extrapolated step."""
        self.plain = True
        """Whether the current step is not extrapolated."""

    @property
    def extrapolation(self) -> Extrapolation:
        """Return the extrapolation of the current step."""
        return Extrapolation(0.0 if self.plain else self.size, self._keep, self._n_threads)

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
    compare : whether a plain step to a lower objective is rejected and exhausts the run. Otherwise it is accepted,
        because only rounding lowers the objective, and later steps can still gain. Without `extrapolate`, the old point
        is then freed before the evaluation of the next one allocates memory.
    keep : see `Momentum`.
    n_threads : threads of the extrapolation.
    """

    _current: EvaluatedPoint[P]

    def __init__(
        self,
        evaluate: Callable[[P], EvaluatedPoint[P]],
        start: P,
        extrapolate: Extrapolate[P] | None = None,
        *,
        compare: bool = False,
        keep: float = 0.5,
        n_threads: int = 1,
    ) -> None:
        self._evaluate = evaluate
        self._extrapolate = extrapolate
        self._compare = compare
        self._momentum = Momentum(extrapolate is not None, keep=keep, n_threads=n_threads)
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

    @property
    def last_step(self) -> P | None:
        """Return the step before the current one, from which steps are extrapolated; None if it is the same."""
        return None if self._last_step is self.step else self._last_step

    @property
    def numbers(self) -> dict[str, float]:
        """Return the part of the state for a checkpoint that is not a point."""
        return self._momentum.numbers

    def restore(self, last_step: P | None, numbers: dict[str, float]) -> None:
        """Continue as a run with this state. This run has begun at its point.

        Parameters
        ----------
        last_step : point or None
            Step before the current one.
        numbers : dict of str to float
            The rest of the state, as `numbers`.
        """
        if last_step is not None:
            self._last_step = last_step
        self._momentum.restore(numbers)

    def advance(self) -> None:
        step = self.step
        point = step
        if self._extrapolate is not None:
            assert self._last_step is not None
            point = self._extrapolate(self._momentum.extrapolation, step, self._last_step)
            self._last_step = step  # frees the one before: if the point is rejected, a plain step follows
        elif not self._compare:
            self._current = self._current._replace(point=step)  # frees the old point
        tried = self._evaluate(point)
        plain = self._momentum.plain
        if tried.report.objective >= self.report.objective or (plain and not self._compare):
            self._momentum.succeeded()
            self._accept(tried)
        elif plain:
            self.exhausted = True
        else:
            self._momentum.failed()

    def _accept(self, evaluated: EvaluatedPoint[P]) -> None:
        self._current, self.report = evaluated, evaluated.report


class StepRun(Ascent[Point]):
    """A fit by the steps of a model on a corpus (`data.corpus.Step`), with or without extrapolation."""

    def __init__(self, corpus: Corpus, step: Step, point: Point, *, extrapolate: bool = False) -> None:
        self.corpus = corpus
        super().__init__(
            partial(_run_step, corpus, step), point, partial(corpus.combine, step) if extrapolate else None
        )

    @property
    def rows(self) -> Any:
        """Return the parameters of the documents, in the form that the corpus uses."""
        return self.point[0]

    @property
    def shared(self) -> tuple[Array, ...]:
        """Return the parameters that all documents share."""
        return self.corpus.gather(self.point[1])

    def snapshot(self) -> Snapshot:
        """Return the state for a checkpoint.

        Returns
        -------
        Snapshot
            The point, the step before it and the state of the extrapolation.
        """
        return points_snapshot(self.corpus, self.point, self.last_step, self.numbers)

    def restore_snapshot(self, state: Snapshot) -> None:
        """Continue as the run that made a snapshot. This run has begun at its point.

        Parameters
        ----------
        state : Snapshot
            What `snapshot` returned.
        """
        last = None
        if "last" in state.docs:
            forms = [(array.shape, array.dtype) for array in self.shared]
            last = stored_point(self.corpus, state, "last", forms)
        self.restore(last, state.numbers)


def points_snapshot(corpus: Corpus, point: Point, last: Point | None, numbers: dict[str, float]) -> Snapshot:
    """Return the state of a run that has a point and, with extrapolation, the step before its last one."""
    points = {"point": point} if last is None else {"point": point, "last": last}
    shared = {name: corpus.gather(arrays) for name, (_, arrays) in points.items()}
    return Snapshot(
        {name: rows for name, (rows, _) in points.items()},
        {f"{name}{i}": array for name, arrays in shared.items() for i, array in enumerate(arrays)},
        numbers,
    )


def stored_point(corpus: Corpus, state: Snapshot, name: str, forms: Iterable[tuple[tuple[int, ...], Any]]) -> Point:
    """Return a point of a snapshot, whose shared parameters have these shapes and types."""
    return state.docs[name], corpus.share(shared_arrays(state, name, forms))


def shared_arrays(state: Snapshot, name: str, forms: Iterable[tuple[tuple[int, ...], Any]]) -> tuple[Array, ...]:
    """Return the shared parameters of a point in a snapshot, which have these shapes and types."""
    return tuple(state.array(f"{name}{i}", *form) for i, form in enumerate(forms))


def _run_step(corpus: Corpus, step: Step, point: Point) -> EvaluatedPoint[Point]:
    """Return the report at a point and the step from there."""
    result = corpus.run(step, *point)
    return EvaluatedPoint((result.rows, result.shared), result.report, (result.next_rows, result.next_shared))


class EMRun(StepRun, SolverRun):
    """A fit of theta and phi by EM, with or without extrapolation.

    Parameters
    ----------
    problem : FitProblem
        Model and corpus.
    theta : array of shape (n_documents, width)
        P(z|d) to start from, padded, in the form that the corpus uses.
    phi : array of shape (n_words, width)
        P(w|z) to start from, padded.
    extrapolate : bool, default=False
        Whether steps are extrapolated.
    """

    report: Report

    def __init__(self, problem: FitProblem, theta: Any, phi: Array, *, extrapolate: bool = False) -> None:
        self.model, corpus = problem
        super().__init__(corpus, EMStep(self.model), (theta, corpus.share((phi,))), extrapolate=extrapolate)

    @classmethod
    def resumed(cls, problem: FitProblem, state: Snapshot, *, extrapolate: bool = False) -> EMRun:
        """Return the run that made a snapshot.

        Parameters
        ----------
        problem : FitProblem
            Model and corpus.
        state : Snapshot
            What `snapshot` returned.
        extrapolate : bool, default=False
            Whether steps are extrapolated.

        Returns
        -------
        EMRun
            The run as it was.
        """
        form = (problem.corpus.n_words, padded_width(problem.model.n_columns)), problem.corpus.dtype
        (phi,) = shared_arrays(state, "point", [form])
        run = cls(problem, state.docs["point"], phi, extrapolate=extrapolate)
        run.restore_snapshot(state)
        return run

    @property
    def next_factors(self) -> tuple[Any, Array]:
        """Return theta and phi after the step of EM from the point."""
        rows, shared = self.step
        return rows, *self.corpus.gather(shared)

    @property
    def theta(self) -> Any:
        return self.rows

    @property
    def phi(self) -> Array:
        (phi,) = self.shared
        return phi
