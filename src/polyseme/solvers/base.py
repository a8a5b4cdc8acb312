"""The interface of a solver, the check of its requirements, the fit loop, and the best of several starts.

A solver is a frozen dataclass of settings that declares what it requires of a model and a corpus; `check_solver` is the
only place where a solver is refused. Its method `begin` returns a run, which the loop advances until what it can still
gain is below `tol`, `max_iter` iterations are done, or Ctrl-C is pressed. The report of a run has the objective, the
log-likelihood and the residual at its current point. The loop writes the reports to the history, calls the user's
callback and the progress bar, and offers the state of the run to a checkpoint store.
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyseme.core.model import Model, Report
from polyseme.data.corpus import LOADED_NONZEROS
from polyseme.errors import UnsupportedError
from polyseme.kernels import Array, remaining_gain
from polyseme.losses.base import Zeros
from polyseme.progress import Callback, Entry, fit_progress
from polyseme.utils import as_random_state


class Progress(Protocol):
    """Objective and residual of a point, in nats per token."""

    @property
    def objective(self) -> float:
        """Return what the solver increases."""

    @property
    def residual(self) -> float:
        """Return a bound on the possible gain; infinity if the model has none."""

    def columns(self) -> dict[str, float]:
        """Return the columns of the history."""


class Iterative(ABC):
    """A running fit, as the loop sees it. The report describes its current point."""

    report: Progress
    exhausted: bool = False
    """Whether the run has ended by itself, for example because rounding hides further gains."""

    @property
    def score(self) -> float:
        """Return what the best of several starts maximizes."""
        return self.report.objective

    @property
    def attributes(self) -> dict[str, Array]:
        """Return attributes that the estimator gets in addition to those of every fit."""
        return {}

    def remaining(self, values: Sequence[float]) -> float:
        """Return an estimate of what the fit can still gain. It has converged when this is below `tol`.

        Parameters
        ----------
        values : sequence of float
            Objective at the start and after each iteration.

        Returns
        -------
        float
            The gain of the last quarter of the iterations, at least of ten, or the residual if that is smaller.
        """
        return min(self.report.residual, remaining_gain(values))

    @abstractmethod
    def advance(self) -> None:
        """Run one iteration. If it is interrupted, the run keeps a complete point, at least as good as the report."""


class Snapshot(NamedTuple):
    """State of a run. A run that resumes from it, also in another process, gives the same bits."""

    docs: dict[str, Any]
    """Values of theta or other rows of the documents, in the form that the corpus uses."""
    words: dict[str, Array]
    """Values of phi, and other arrays that all documents share."""
    numbers: dict[str, float]

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array of `words`. Raise ValueError if the file is of another fit: its shape or type differs."""
        array = self.words[name]
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"{name} has another shape or type")
        return array


class SolverRun(Iterative):
    """A running fit of PLSA. The report describes the point (theta, phi)."""

    report: Report
    model: Model
    """Model at the point. Its temperature can change during a fit."""

    def remaining(self, values: Sequence[float]) -> float:
        """Return as others do, but only the residual for priors under which the objective can fall.

        Parameters
        ----------
        values : sequence of float
            Objective at the start and after each iteration.

        Returns
        -------
        float
            The estimate, in nats per token, or the share of the tokens that the last iteration has reassigned.
        """
        return super().remaining(values) if self.model.is_monotone else self.report.residual

    @property
    @abstractmethod
    def theta(self) -> Any:
        """Return P(z|d), documents x width."""

    @property
    @abstractmethod
    def phi(self) -> Array:
        """Return P(w|z), words x width."""

    @property
    def inferred(self) -> Any:
        """Return the weights of the documents in the form that inference has, from which folding in can continue."""
        return self.theta

    def snapshot(self) -> Snapshot:
        """Return the state for a checkpoint. A run of a resumable solver defines it."""
        raise UnsupportedError("This fit cannot be stored in a checkpoint: leave checkpoint out.")


class FitProblem(NamedTuple):
    """What a solver fits.

    Attributes
    ----------
    model : Model
        Number of topics, priors, background and temperature.
    corpus : Corpus
        Counts. A solver that requires IN_MEMORY gets a MemoryCorpus.
    """

    model: Model
    corpus: Any

    def placed_for(self, solver: Solver) -> FitProblem:
        """Return the problem with its corpus loaded into memory, if a checked solver requires it.

        Parameters
        ----------
        solver : Solver
            Solver that `check_solver` returned.

        Returns
        -------
        FitProblem
            The problem for `solver.begin`.
        """
        if self.corpus.in_memory or Requirement.IN_MEMORY not in solver.requires:
            return self
        return self._replace(corpus=self.corpus.load()[0])


MakeStart = Callable[[Any, Array | None], tuple[Any, Array]]
"""Function that makes a start from some or all documents of a problem (see `Solver.begin_from`)."""


class Requirement(Enum):
    """What a solver can require of a problem: a predicate and the words of the error message."""

    IN_MEMORY = (
        lambda problem: problem.corpus.in_memory or problem.corpus.n_nonzeros <= LOADED_NONZEROS,
        f"needs all counts in memory, where shards of at most {LOADED_NONZEROS:,} non-zeros are loaded",
        "read shards",
    )
    PLAIN_LIKELIHOOD = (lambda problem: problem.model.is_plain, "fits plain maximum likelihood only")
    MONOTONE_PRIORS = (
        lambda problem: problem.model.is_monotone,
        "needs priors whose steps never decrease the objective",
    )
    NO_TOPIC_PRIOR = (lambda problem: problem.model.word_prior is None, "does not support topic_word_prior")
    SEPARABLE_DOCUMENTS = (
        lambda problem: problem.model.is_separable,
        "sees only some documents at a time, so it takes no JointBackground and no priors that couple documents",
    )
    LIKELIHOOD = (
        lambda problem: problem.model.loss.is_likelihood,
        "maximizes a likelihood, so it fits loss='kullback-leibler' without penalties only",
        "fit this loss",
    )
    OTHER_LOSS = (
        lambda problem: not problem.model.loss.is_likelihood or problem.corpus.entries is not None,
        "fits losses other than 'kullback-leibler', or entries with weights",
        "fit this loss",
    )
    EQUAL_ENTRIES = (
        lambda problem: problem.corpus.entries is None,
        "gives all entries the same weight, so it takes no entry_weight and no missing entries",
        "weigh entries",
    )
    SQUARED_LOSS = (
        lambda problem: problem.model.loss.zeros is Zeros.SQUARED,
        "fits loss='squared' only",
        "fit this loss",
    )
    FREE_SCALE = (
        lambda problem: problem.model.free_scale or problem.corpus.entries is not None,
        "fits NMF only, not the normalized factors of PLSA",
    )

    def __init__(self, holds: Callable[[FitProblem], bool], sentence: str, others: str = "fit this model") -> None:
        self.holds = holds
        self.sentence = sentence
        self.others = others


class Solver(ABC):
    """Settings of an algorithm that fits a model, and what the algorithm requires.

    Subclasses are frozen dataclasses.

    Attributes
    ----------
    name : str
        Name that `solver=` takes.
    requires : frozenset of Requirement
        Requirements on the model and the corpus. LIKELIHOOD is added unless OTHER_LOSS is among them.
    weighs_entries : bool
        Whether entries can have weights. Otherwise EQUAL_ENTRIES is added to what the solver requires.
    resumable : bool
        Whether fits can be stored in a checkpoint: `resume` and `SolverRun.snapshot` are defined.
    holds_out : bool
        Whether the algorithm itself stops by held-out tokens, so that `EarlyStopping` cannot stop it.
    starts_from_sample : bool
        Whether a fit of shards that are too large for memory starts from a fit to a sample of their documents.
    init : str
        Name of the start of `init="auto"`.
    start_variance : float
        Variance of the noise in a random start.
    max_iter : int
        Most iterations of a fit, if the estimator has no `max_iter` of its own.
    """

    name: ClassVar[str]
    requires: ClassVar[frozenset[Requirement]] = frozenset()
    weighs_entries: ClassVar[bool] = False
    resumable: ClassVar[bool] = False
    holds_out: ClassVar[bool] = False
    starts_from_sample: ClassVar[bool] = False
    init: ClassVar[str] = "documents"
    start_variance: ClassVar[float] = 1.0
    max_iter: ClassVar[int] = 200

    @property
    def _label(self) -> str:
        """Return how error messages name the solver."""
        return f"solver={self.name!r}"

    @property
    def _inner(self) -> Solver | None:
        """Return the solver that this one runs and stops. None if it runs no other solver."""
        return None

    def choose(self, problem: FitProblem) -> Solver:
        """Return the solver that fits a problem.

        Parameters
        ----------
        problem : FitProblem
            Model and corpus.

        Returns
        -------
        Solver
            This solver. `Auto` returns another one.
        """
        return self

    def check(self) -> None:  # noqa: B027, a solver may have no settings
        """Check the settings.

        Raises
        ------
        InputError
            If a setting is out of its range.
        """

    @abstractmethod
    def begin(self, problem: FitProblem, theta: Any, phi: Array) -> SolverRun:
        """Start a fit. The solver has been checked with `check_solver`.

        Parameters
        ----------
        problem : FitProblem
            Model and corpus.
        theta : array of shape (n_documents, width)
            P(z|d) to start from, padded, in the form that the corpus uses.
        phi : array of shape (n_words, width)
            P(w|z) to start from, padded.

        Returns
        -------
        SolverRun
            The fit before its first iteration.
        """

    def begin_from(self, problem: FitProblem, start: MakeStart) -> SolverRun:
        """Start a fit at a start that is made from the counts that the fit sees.

        Parameters
        ----------
        problem : FitProblem
            Model and corpus.
        start : callable
            Function of a corpus and of the rows that its documents have in the problem (None: all documents), which
            returns P(z|d) and P(w|z) to start from, padded.

        Returns
        -------
        SolverRun
            The fit before its first iteration.
        """
        return self.begin(problem, *start(problem.corpus, None))

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        """Resume a fit from its state. A resumable solver defines it.

        Parameters
        ----------
        problem : FitProblem
            Model and corpus.
        state : Snapshot
            What the run's `snapshot` returned.

        Returns
        -------
        SolverRun
            The fit as it was.

        Raises
        ------
        UnsupportedError
            If fits of this solver cannot be resumed.
        """
        raise UnsupportedError(f"{self._label} cannot be resumed: leave checkpoint out.")


SOLVERS: dict[str, type[Solver]] = {}
"""Solvers of PLSA by the name that `solver=` takes. `solvers/__init__.py` fills it."""

_PREFERRED = ("scd", "accelerated-em", "em", "hals", "mm")
"""Solvers among which `Auto` chooses, the fastest first. `em` fits every likelihood, `mm` other losses in memory."""


@dataclass(frozen=True)
class Auto(Solver):
    """Choice of the fastest solver for the model and the corpus.

    `SCD` for plain maximum likelihood of counts in memory, and of shards with at most 67,108,864 non-zeros, which are
    loaded; `EM` for larger shards; `AcceleratedEM` for other models whose EM steps never decrease the objective; and
    `EM` for the rest. For losses other than the Kullback-Leibler divergence, `HALS` for NMF with the squared loss, and
    `MajorizeMinimize` for the rest. The choice depends on the model and the size of the data, not on the machine.

    Parameters
    ----------
    multiplicative_steps : int, default=0
        Multiplicative updates before the coordinate ascent of `SCD`, if that is chosen.
    """

    name: ClassVar[str] = "auto"
    resumable: ClassVar[bool] = True
    starts_from_sample: ClassVar[bool] = True
    multiplicative_steps: int = 0

    def choose(self, problem: FitProblem) -> Solver:
        settings = {"scd": {"multiplicative_steps": self.multiplicative_steps}}
        names = _PREFERRED if Requirement.IN_MEMORY.holds(problem) else ("em", *_PREFERRED)
        solvers = [SOLVERS[name](**settings.get(name, {})) for name in names]
        return next((solver for solver in solvers if _unmet(solver, problem) is None), solvers[-1])

    def begin(self, problem: FitProblem, theta: Any, phi: Array) -> SolverRun:
        return self.choose(problem).begin(problem, theta, phi)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return self.choose(problem).resume(problem, state)


def check_solver(solver: Solver, problem: FitProblem, *, checkpoint: bool) -> Solver:
    """Return the solver that fits a problem: the one that `solver` chooses.

    `checkpoint` says whether the user asks for a checkpoint.

    Raises UnsupportedError, with the names of the solvers that can, if the solver cannot fit the problem, and
    InputError if one of its settings is out of its range.
    """
    return _check(solver, problem, checkpoint=checkpoint, stopped=False)


def _check(solver: Solver, problem: FitProblem, *, checkpoint: bool, stopped: bool) -> Solver:
    """Check a solver. `stopped` says whether EarlyStopping wraps it."""
    chosen = solver.choose(problem)
    refusal = _refusal(chosen, problem, checkpoint, stopped)
    if refusal is not None:
        others = (
            name
            for name, other in SOLVERS.items()
            if _refusal(other().choose(problem), problem, checkpoint, stopped) is None
        )
        raise UnsupportedError(f"{refusal}: {', '.join(others)}.")
    chosen.check()
    if chosen._inner is not None:
        _check(chosen._inner, problem, checkpoint=False, stopped=True)
    return chosen


def _refusal(solver: Solver, problem: FitProblem, checkpoint: bool, stopped: bool) -> str | None:
    """Return why a solver cannot fit a problem, as a sentence that ends with a list of other solvers, or None."""
    unmet = _unmet(solver, problem)
    without = "" if solver._inner is None else f", without {solver._label}"
    if unmet is not None:
        return f"{solver._label} {unmet.sentence}. Solvers that {unmet.others}{without}"
    if checkpoint and not solver.resumable:
        return f"checkpoint: {solver._label} cannot be resumed. Solvers that can{without}"
    if stopped and solver.holds_out:
        use = "use it without early_stopping. Solvers that early_stopping can stop"
        return f"{solver._label} already stops by held-out tokens: {use}"
    return None


def _unmet(solver: Solver, problem: FitProblem) -> Requirement | None:
    """Return the first requirement of a solver that a problem does not meet, or None."""
    requires = solver.requires
    if Requirement.OTHER_LOSS not in requires:
        requires = requires | {Requirement.LIKELIHOOD}
    if not solver.weighs_entries:
        requires = requires | {Requirement.EQUAL_ENTRIES}
    unmet = (item for item in Requirement if item in requires and not item.holds(problem))
    return next(unmet, None)


class SavedFit(NamedTuple):
    """State and history of a fit, as stored in a checkpoint."""

    state: Snapshot
    history: dict[str, Array]


class Store(Protocol):
    """A place where the state of a fit is stored (`solvers.checkpoints.CheckpointStore`)."""

    def load(self) -> SavedFit | None: ...
    def offer(self, saved: Callable[[], SavedFit]) -> None: ...


AnyRun = TypeVar("AnyRun", bound=Iterative)


@dataclass(frozen=True)
class FitEnd(Generic[AnyRun]):
    """Result of the fit loop."""

    run: AnyRun
    history: dict[str, Array]
    n_iter: int
    converged: bool
    interrupted: bool


def advance_to_end(
    begin: Callable[[], AnyRun],
    resume: Callable[[Snapshot], AnyRun] | None = None,
    *,
    max_iter: int,
    tol: float,
    listeners: list[Callback],
    store: Store | None = None,
) -> FitEnd[AnyRun] | None:
    """Advance a run until it has converged or is exhausted, `max_iter` iterations are done, or Ctrl-C is pressed.

    After Ctrl-C the result has the last complete point and is marked as interrupted; it is None if there is no such
    point yet. If the store has a state of this fit, `resume` continues from it, with the same result.
    """
    monitor = _Monitor(listeners)
    run: AnyRun | None = None
    interrupted = False
    try:
        saved = None if store is None else store.load()
        if saved is None or resume is None:
            run = begin()
            monitor.record(run)
        else:
            run = resume(saved.state)
            monitor.restore(saved.history)
        while monitor.iteration < max_iter and not run.exhausted and not monitor.remaining < tol:
            run.advance()
            monitor.record(run)
            if store is not None:
                store.offer(partial(_save, run, monitor))
    except KeyboardInterrupt:
        interrupted = True
    if run is None:
        return None
    return FitEnd(run, monitor.history(), monitor.iteration, monitor.remaining < tol, interrupted)


def end_of_preliminary_fit(begin: Callable[[], AnyRun], max_iter: int, tol: float) -> AnyRun:
    """Return the end of a fit that is the start of another one; Ctrl-C ends both."""
    end = advance_to_end(begin, max_iter=max_iter, tol=tol, listeners=[])
    if end is None or end.interrupted:
        raise KeyboardInterrupt
    return end.run


def best_of(fits: Iterable[FitEnd[AnyRun] | None]) -> tuple[FitEnd[AnyRun], bool]:
    """Return the best of several fits, and whether Ctrl-C ended them.

    Raises KeyboardInterrupt if there is no fit to return.
    """
    best: FitEnd[AnyRun] | None = None
    interrupted = False
    for fit in fits:
        if best is None or (fit is not None and fit.run.score > best.run.score):
            best = fit
        interrupted = fit is None or fit.interrupted
        if interrupted:
            break
    if best is None:
        raise KeyboardInterrupt
    return best, interrupted


class Start(NamedTuple, Generic[AnyRun]):
    """A fit from one start: how it begins and how it resumes from a stored state."""

    begin: Callable[[], AnyRun]
    resume: Callable[[Snapshot], AnyRun] | None = None
    store: Store | None = None


class FitStarts:
    """The starts of a fit. Their states are not stored; `solvers.checkpoints.FitFolder` stores them."""

    def starts(
        self,
        corpus: Any,
        identity: tuple[Any, ...],
        seeds: Iterable[int],
        begin: Callable[[Any, np.random.Generator], AnyRun],
        resume: Callable[[Any, Snapshot], AnyRun] | None,
    ) -> Iterator[Start[AnyRun]]:
        """Yield a start for each seed.

        identity : everything that determines the result of the fit, except the counts and the seed.
        resume : None if the fit cannot be resumed, so that its state is not stored.
        """
        for seed in seeds:
            yield Start(partial(begin, corpus, np.random.default_rng(seed)))

    def finish(self) -> None:
        """Remove the stored states after a fit, unless they are to be kept."""


class Watched(Protocol):
    """Parameters of an estimator by which a user follows its fits."""

    verbose: int
    callback: Callback | None


def best_fit(
    estimator: Watched, starts: Iterable[Start[AnyRun]], *, max_iter: int, tol: float
) -> tuple[FitEnd[AnyRun], bool]:
    """Run the fit of each start and return the best one, and whether Ctrl-C ended them."""
    with fit_progress(estimator.verbose, max_iter, type(estimator).__name__, estimator.callback) as listeners:
        return best_of(
            advance_to_end(*start[:2], max_iter=max_iter, tol=tol, listeners=listeners, store=start.store)
            for start in starts
        )


def seeds(random_state: Any, n_starts: int) -> Iterator[int]:
    """Yield a seed for each start, from a seed as scikit-learn takes it."""
    state = as_random_state(random_state)
    return (int(state.randint(np.iinfo(np.int32).max)) for _ in range(n_starts))


def generators(random_state: Any, n_starts: int) -> Iterator[np.random.Generator]:
    """Yield a random generator for each start, from a seed as scikit-learn takes it."""
    return map(np.random.default_rng, seeds(random_state, n_starts))


class FitSummary(NamedTuple):
    """How a fit ended, without the factors of its last point."""

    history: dict[str, Array]
    n_iter: int
    converged: bool
    interrupted: bool
    """Whether Ctrl-C ended the fit."""
    solver: str
    """Name of the solver."""
    attributes: dict[str, Array]
    """Attributes of the estimator that the solver sets."""

    @classmethod
    def of(cls, end: FitEnd[Any], interrupted: bool, solver: str) -> FitSummary:
        """Return the summary of the best of several fits."""
        return cls(end.history, end.n_iter, end.converged, interrupted, solver, end.run.attributes)


def finish_fit(end: FitSummary, dtype: np.dtype[Any], max_iter: int, tol: float) -> None:
    """Raise KeyboardInterrupt after Ctrl-C, or warn if the fit has not converged. `dtype` is that of the factors.

    Called by `fit` itself, after the attributes are set, so that the warning names the line that called `fit`.
    """
    if end.interrupted:
        raise KeyboardInterrupt
    if end.converged:
        return
    remaining = end.history["remaining"][-1]
    if np.isinf(remaining):
        why = f"too few to see what it could still gain (tol={tol:g})"
    elif "loss" in end.history:
        why = f"and the last {min(10, end.n_iter)} still lowered the loss by {remaining:.3g} percent (tol={tol:g})"
    else:
        why = f"and could still gain about {remaining:.2g} nats per token (tol={tol:g})"
    if end.n_iter < max_iter:
        message = f"After {end.n_iter} iterations rounding hides further gains, {why}: raise tol"
        if dtype == np.float32:
            message += ", or use dtype='float64'"
    else:
        message = f"The fit stopped after max_iter={max_iter} iterations, {why}: raise max_iter or tol"
    warnings.warn(f"{message}.", ConvergenceWarning, stacklevel=3)


class _Monitor:
    """Writes the history and calls the listeners."""

    def __init__(self, listeners: list[Callback]) -> None:
        self._listeners = listeners
        self._entries: list[Entry] = []
        self._started = time.perf_counter()

    @property
    def iteration(self) -> int:
        """Return the number of the last iteration; before the start it is -1."""
        return len(self._entries) - 1

    @property
    def remaining(self) -> float:
        """Return an estimate of what can still be gained; infinity before the first iteration."""
        return float(self._entries[-1]["remaining"]) if self._entries else float("inf")

    def record(self, run: Iterative) -> None:
        """Add the current point of a run."""
        iteration, columns = self.iteration + 1, run.report.columns()
        name = "objective" if "objective" in columns else "bound"
        values = [*(entry[name] for entry in self._entries), columns[name]]
        remaining = run.remaining(values) if iteration else float("inf")
        seconds = time.perf_counter() - self._started
        entry: Entry = {"iteration": iteration, "seconds": seconds, **columns, "remaining": remaining}
        self._entries.append(entry)
        for listener in self._listeners:
            listener(dict(entry))

    def restore(self, history: dict[str, Array]) -> None:
        """Continue after a stored history; the clock continues too."""
        rows = zip(*(column.tolist() for column in history.values()), strict=True)
        self._entries = [dict(zip(history, row, strict=True)) for row in rows]
        self._started = time.perf_counter() - self._entries[-1]["seconds"]

    def history(self) -> dict[str, Array]:
        names = self._entries[0] if self._entries else ("iteration",)
        history = {name: np.array([entry[name] for entry in self._entries]) for name in names}
        history["iteration"] = history["iteration"].astype(np.int64)
        return history


def _save(run: Any, monitor: _Monitor) -> SavedFit:
    return SavedFit(run.snapshot(), monitor.history())
