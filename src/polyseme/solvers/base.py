"""The fit loop, the interface of a solver, and the best of several starts.

A solver is a frozen dataclass of settings. Its method `begin` returns a run, which the loop advances until the residual
is at most `tol`, `max_iter` iterations are done, or Ctrl-C is pressed. The report of a run has the objective, the
log-likelihood and the residual at its current point. The loop writes the reports to the history, calls the user's
callback and the progress bar, and offers the state of the run to a checkpoint store.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import ModelFileError, UnsupportedError
from polyseme.kernels import Array
from polyseme.progress import Callback, Entry, fit_progress
from polyseme.utils import as_random_state


class Progress(Protocol):
    """Objective and residual of a point, in nats per token."""

    @property
    def objective(self) -> float:
        """Return what the solver increases."""

    @property
    def residual(self) -> float:
        """Return an estimate of the possible gain; the fit ends when it is at most `tol`."""

    def columns(self) -> dict[str, float]:
        """Return the columns of the history."""


class Report(NamedTuple):
    """Objective, log-likelihood and residual of a point, in nats per token."""

    objective: float
    """What the solver increases."""
    log_likelihood: float
    """Mean log P(w|d) over all tokens."""
    residual: float
    """Upper bound on the gain from optimizing one factor, plus the same for the other factor."""

    def columns(self) -> dict[str, float]:
        """Return the columns of the history."""
        return {"log_likelihood": self.log_likelihood, "objective": self.objective, "residual": self.residual}


class Iterative(Protocol):
    """A run as the loop sees it."""

    exhausted: bool
    """Whether no further gain is possible."""

    @property
    def report(self) -> Progress: ...

    def advance(self) -> None:
        """Run one iteration. If it is interrupted, the run keeps a complete point, at least as good as the report."""


class SolverRun(Protocol):
    """A running fit. `theta` (documents x width) and `phi` (words x width) are the point that `report` describes."""

    report: Report
    exhausted: bool
    """Whether no further gain is possible."""

    @property
    def model(self) -> Model: ...
    @property
    def theta(self) -> Array: ...
    @property
    def phi(self) -> Array: ...

    def advance(self) -> None:
        """Run one iteration. If it is interrupted, theta and phi are a complete point, as good as the report."""


class Snapshot(NamedTuple):
    """State of a run. A run that resumes from it, also in another process, gives the same bits.

    A solver whose runs have a method ``snapshot() -> Snapshot`` has a method ``resume(model, corpus, snapshot)``.
    """

    docs: dict[str, Any]
    """Values of theta, in the form that the corpus uses."""
    words: dict[str, Any]
    """Values of phi, in the form that the corpus uses, or other arrays with one row per word."""
    numbers: dict[str, float]


class Solver(Protocol):
    """Settings of an algorithm that fits a model.

    Attributes
    ----------
    name : str
        Name that `solver=` takes.
    """

    name: ClassVar[str]

    def begin(self, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> SolverRun:
        """Start a fit.

        Parameters
        ----------
        model : Model
            Model to fit: number of topics, priors, background and temperature.
        corpus : MemoryCorpus
            Counts. Solvers that use only the methods of `Corpus` also accept counts on disk or on a cluster.
        theta : array of shape (n_documents, width)
            P(z|d) to start from, padded.
        phi : array of shape (n_words, width)
            P(w|z) to start from, padded.

        Returns
        -------
        SolverRun
            The fit before its first iteration.

        Raises
        ------
        UnsupportedError
            If the algorithm cannot fit this model.
        """


class SavedFit(NamedTuple):
    """State and history of a fit, as stored in a checkpoint."""

    state: Snapshot
    history: dict[str, Array]


class CheckpointStore(Protocol):
    """A place where the state of a fit is stored."""

    def load(self) -> SavedFit | None:
        """Return the stored state of this fit, or None."""

    def offer(self, iteration: int, saved: Callable[[], SavedFit]) -> None:
        """Store the state of the fit if it is time to; called after each iteration."""


AnyRun = TypeVar("AnyRun", bound=Iterative)


@dataclass(frozen=True)
class FitEnd(Generic[AnyRun]):
    """Result of the fit loop."""

    run: AnyRun
    history: dict[str, Array]
    n_iter: int
    converged: bool
    interrupted: bool

    @property
    def quality(self) -> float:
        """Return what the best of several starts maximizes: the objective, unless the run defines `quality`."""
        return float(getattr(self.run, "quality", self.run.report.objective))


FitResult = FitEnd[SolverRun]
"""Result of the fit loop for PLSA."""


def run_to_end(
    solver: Solver,
    model: Model,
    corpus: MemoryCorpus,
    theta: Array,
    phi: Array,
    *,
    max_iter: int,
    tol: float,
    listeners: list[Callback],
    store: CheckpointStore | None = None,
) -> FitResult | None:
    """Run `advance_to_end` with the run that a solver begins, or resumes from the store."""
    resume = None
    if store is not None:
        chosen: Any = chosen_solver(solver, model, corpus)
        if not hasattr(chosen, "resume"):
            raise UnsupportedError(
                f"checkpoint: solver={chosen.name!r} cannot be resumed. Solvers that can: {', '.join(_resumable())}."
            )
        resume = partial(_resume, chosen, model, corpus, theta, phi)
    return advance_to_end(
        lambda: solver.begin(model, corpus, theta, phi),
        resume,
        max_iter=max_iter,
        tol=tol,
        listeners=listeners,
        store=store,
    )


def chosen_solver(solver: Any, model: Model, corpus: Any) -> Any:
    """Return the solver that runs: for "auto" the one that it chooses, else the solver itself."""
    return solver.chosen(model, corpus) if hasattr(solver, "chosen") else solver


def advance_to_end(
    begin: Callable[[], AnyRun],
    resume: Callable[[Snapshot], AnyRun] | None = None,
    *,
    max_iter: int,
    tol: float,
    listeners: list[Callback],
    store: CheckpointStore | None = None,
) -> FitEnd[AnyRun] | None:
    """Advance a run until the residual is at most `tol`, `max_iter` iterations are done, or Ctrl-C is pressed.

    After Ctrl-C the result has the last complete point and is marked as interrupted; it is None if there is no such
    point yet. If the store has a state of this fit, `resume` continues from it, with the same result.
    """
    monitor = _Monitor(listeners)
    run: AnyRun | None = None
    iteration, converged, interrupted = 0, False, False
    try:
        saved = None if store is None else store.load()
        if saved is None or resume is None:
            run = begin()
            monitor.record(0, run.report)
        else:
            run = resume(saved.state)
            monitor.restore(saved.history)
            iteration, converged = int(saved.history["iteration"][-1]), _is_done(run, tol)
        while iteration < max_iter and not converged:
            run.advance()
            iteration += 1
            monitor.record(iteration, run.report)
            converged = _is_done(run, tol)
            if store is not None:
                store.offer(iteration, partial(_save, run, monitor))
    except KeyboardInterrupt:
        interrupted = True
    if run is None:
        return None
    return FitEnd(run, monitor.history(), iteration, converged, interrupted)


def best_of(fits: Iterable[FitEnd[AnyRun] | None]) -> tuple[FitEnd[AnyRun], bool]:
    """Return the best of several fits, and whether Ctrl-C ended them.

    Raises KeyboardInterrupt if there is no fit to return.
    """
    best: FitEnd[AnyRun] | None = None
    interrupted = False
    for fit in fits:
        if best is None or (fit is not None and fit.quality > best.quality):
            best = fit
        interrupted = fit is None or fit.interrupted
        if interrupted:
            break
    if best is None:
        raise KeyboardInterrupt
    return best, interrupted


def best_fit(
    estimator: Any, beginnings: Iterable[Callable[[], AnyRun]], *, max_iter: int, tol: float
) -> tuple[FitEnd[AnyRun], bool]:
    """Run the fit of each start and return the best one, and whether Ctrl-C ended them.

    The estimator's parameters `verbose` and `callback` apply.
    """
    with fit_progress(estimator.verbose, max_iter, type(estimator).__name__, estimator.callback) as listeners:
        return best_of(advance_to_end(begin, max_iter=max_iter, tol=tol, listeners=listeners) for begin in beginnings)


def generators(random_state: Any, n_starts: int) -> Iterator[np.random.Generator]:
    """Yield a random generator for each start, from a seed as scikit-learn takes it."""
    state = as_random_state(random_state)
    return (np.random.default_rng(state.randint(np.iinfo(np.int32).max)) for _ in range(n_starts))


def finish_fit(estimator: Any, interrupted: bool, max_iter: int, tol: float) -> None:
    """Raise KeyboardInterrupt after Ctrl-C, or warn if the fit has not converged.

    Called by `fit` itself, after the attributes are set, so that the warning names the line that called `fit`.
    """
    if interrupted:
        raise KeyboardInterrupt
    if estimator.converged_:
        return
    residuals = estimator.history_.get("residual")
    if residuals is None:
        why = f"and each still added more than tol={tol:g} nats per token to the bound"
    else:
        why = f"with a possible gain of up to {residuals[-1]:.2g} nats per token (tol={tol:g})"
    warnings.warn(
        f"The fit stopped after max_iter={max_iter} iterations, {why}: raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )


class _Monitor:
    """Writes the history and calls the listeners."""

    def __init__(self, listeners: list[Callback]) -> None:
        self._listeners = listeners
        self._entries: list[Entry] = []
        self._started = time.perf_counter()

    def record(self, iteration: int, report: Progress) -> None:
        entry: Entry = {"iteration": iteration, "seconds": time.perf_counter() - self._started, **report.columns()}
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


def _resume(solver: Any, model: Model, corpus: Any, theta: Array, phi: Array, state: Snapshot) -> SolverRun:
    """Resume from the state in a file, whose arrays must have the shapes and types of a start."""
    pairs = [(array, theta) for array in state.docs.values()] + [(array, phi) for array in state.words.values()]
    for array, like in pairs:
        if not isinstance(array, np.ndarray) or not isinstance(like, np.ndarray):
            continue  # rows of shards are checked when they are read
        if array.shape != like.shape or array.dtype != like.dtype or not np.isfinite(array).all():
            raise ModelFileError("The checkpoint does not belong to this fit: remove it to start again.")
    try:
        run: SolverRun = solver.resume(model, corpus, state)
    except KeyError as error:
        raise ModelFileError(f"The checkpoint has no {error}: remove it to start again.") from None
    return run


def _resumable() -> list[str]:
    """Return the names of the solvers whose fits can be resumed from a checkpoint."""
    from polyseme.solvers import SOLVERS

    return [name for name, solver in SOLVERS.items() if hasattr(solver, "resume") or hasattr(solver, "chosen")]


def _is_done(run: Iterative, tol: float) -> bool:
    return run.exhausted or run.report.residual <= tol


def _save(run: Any, monitor: _Monitor) -> SavedFit:
    return SavedFit(run.snapshot(), monitor.history())
