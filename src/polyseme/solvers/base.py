"""The one fit loop: every solver is a run that it advances, reports on, and stops.

Several starts of a fit, of which the best is kept.

How a fit ended: what every estimator does last.
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
    """How good a point is, in nats per token."""

    @property
    def objective(self) -> float:
        """what the solver raises"""

    @property
    def residual(self) -> float:
        """what is left to gain; the fit ends when it is at most tol"""

    def columns(self) -> dict[str, float]:
        """What the history has of it."""


class Report(NamedTuple):
    """How good a point is; all three in nats per token."""

    objective: float
    """what the solver raises"""
    log_likelihood: float
    """mean log P(w|d) over all tokens"""
    residual: float
    """an upper bound on what re-optimizing one side, and then the other, could still gain"""

    def columns(self) -> dict[str, float]:
        return {"log_likelihood": self.log_likelihood, "objective": self.objective, "residual": self.residual}


class Iterative(Protocol):
    """What the loop advances."""

    exhausted: bool
    """whether there is nothing more to gain"""

    @property
    def report(self) -> Progress: ...

    def advance(self) -> None:
        """One iteration. If it is interrupted, what is kept is a whole point, no worse than the report says."""


class SolverRun(Protocol):
    """A solver at work. `theta` (documents x width) and `phi` (words x width) are the point that `report` describes."""

    report: Report
    exhausted: bool
    """whether there is nothing more to gain"""

    @property
    def model(self) -> Model: ...
    @property
    def theta(self) -> Array: ...
    @property
    def phi(self) -> Array: ...

    def advance(self) -> None:
        """One iteration. If it is interrupted, theta and phi are a whole point, no worse than the report says."""


class Snapshot(NamedTuple):
    """What a run needs to go on as if it had never stopped, in another process too, without a bit's difference.

    A solver whose runs have a method ``snapshot() -> Snapshot`` takes it back: ``resume(model, corpus, snapshot)``.
    """

    docs: dict[str, Any]
    """thetas, as the corpus keeps them"""
    words: dict[str, Any]
    """phis, as the corpus keeps them, or other arrays of words"""
    numbers: dict[str, float]


class Solver(Protocol):
    """Settings of an algorithm. `begin` refuses, in one sentence, a model that the algorithm cannot raise."""

    name: ClassVar[str]

    def begin(self, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> SolverRun: ...


class SavedFit(NamedTuple):
    """A fit that was put down."""

    state: Snapshot
    history: dict[str, Array]


class CheckpointStore(Protocol):
    """Keeps the state of a fit somewhere safe."""

    def load(self) -> SavedFit | None:
        """What was kept of this very fit."""

    def offer(self, iteration: int, kept: Callable[[], SavedFit]) -> None:
        """Called after each iteration: takes the fit's state if it is time to."""


class Monitor:
    """Writes the history down and tells whoever listens."""

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
        """Goes on after a history, its clock too."""
        rows = zip(*(column.tolist() for column in history.values()), strict=True)
        self._entries = [dict(zip(history, row, strict=True)) for row in rows]
        self._started = time.perf_counter() - self._entries[-1]["seconds"]

    def history(self) -> dict[str, Array]:
        names = self._entries[0] if self._entries else ("iteration",)
        history = {name: np.array([entry[name] for entry in self._entries]) for name in names}
        history["iteration"] = history["iteration"].astype(np.int64)
        return history


AnyRun = TypeVar("AnyRun", bound=Iterative)


@dataclass(frozen=True)
class FitEnd(Generic[AnyRun]):
    """Where a fit ended."""

    run: AnyRun
    history: dict[str, Array]
    n_iter: int
    converged: bool
    interrupted: bool

    @property
    def quality(self) -> float:
        """What the best of several fits has most of: the objective, unless the run has a better measure."""
        return float(getattr(self.run, "quality", self.run.report.objective))


FitResult = FitEnd[SolverRun]
"""a fit of PLSA at its end: the run with its point, the history and why it stopped"""


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
    """`advance_to_end` of what the solver begins."""
    resume = None
    if store is not None:
        chosen: Any = chosen_solver(solver, model, corpus)
        if not hasattr(chosen, "resume"):
            raise UnsupportedError("This solver's fits cannot be kept in a checkpoint: use 'auto', 'scd' or 'em'.")
        resume = partial(_resumed, chosen, model, corpus, theta, phi)
    return advance_to_end(
        lambda: solver.begin(model, corpus, theta, phi),
        resume,
        max_iter=max_iter,
        tol=tol,
        listeners=listeners,
        store=store,
    )


def _resumed(solver: Any, model: Model, corpus: Any, theta: Array, phi: Array, state: Snapshot) -> SolverRun:
    """Goes on from a state of a file, whose arrays must be like those of a start."""
    pairs = [(array, theta) for array in state.docs.values()] + [(array, phi) for array in state.words.values()]
    for array, like in pairs:
        if not isinstance(array, np.ndarray) or not isinstance(like, np.ndarray):
            continue  # of shards: checked where they are read
        if array.shape != like.shape or array.dtype != like.dtype or not np.isfinite(array).all():
            raise ModelFileError("The checkpoint is not a state of this fit: remove it to begin anew.")
    try:
        run: SolverRun = solver.resume(model, corpus, state)
    except KeyError as error:
        raise ModelFileError(f"The checkpoint has no {error}: remove it to begin anew.") from None
    return run


def chosen_solver(solver: Any, model: Model, corpus: Any) -> Any:
    """The solver that does the work: of one that chooses by the model and the data, the chosen one."""
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
    """Advances until the residual is at most `tol`, `max_iter` iterations are done, or Ctrl-C.

    After Ctrl-C the last whole point is returned, marked as interrupted; None if there is none yet. With a store the
    fit goes on from what was kept of it, by `resume`, to the same end.
    """
    monitor = Monitor(listeners)
    run: AnyRun | None = None
    iteration, converged, interrupted = 0, False, False
    try:
        kept = None if store is None else store.load()
        if kept is None or resume is None:
            run = begin()
            monitor.record(0, run.report)
        else:
            run = resume(kept.state)
            monitor.restore(kept.history)
            iteration, converged = int(kept.history["iteration"][-1]), _is_done(run, tol)
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


def _is_done(run: Iterative, tol: float) -> bool:
    return run.exhausted or run.report.residual <= tol


def _save(run: Any, monitor: Monitor) -> SavedFit:
    return SavedFit(run.snapshot(), monitor.history())


def best_of(fits: Iterable[FitEnd[AnyRun] | None]) -> tuple[FitEnd[AnyRun], bool]:
    """The best of several fits, which are made one after the other, and whether Ctrl-C cut them short.

    Raises KeyboardInterrupt if it came before there was anything to keep.
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


R = TypeVar("R", bound=Iterative)


def generators(random_state: Any, n_starts: int) -> Iterator[np.random.Generator]:
    """Random numbers for each start, from a seed as scikit-learn takes it."""
    state = as_random_state(random_state)
    return (np.random.default_rng(state.randint(np.iinfo(np.int32).max)) for _ in range(n_starts))


def best_fit(
    estimator: Any, beginnings: Iterable[Callable[[], R]], *, max_iter: int, tol: float
) -> tuple[FitEnd[R], bool]:
    """The best of the runs that these functions begin, and whether Ctrl-C ended it; the estimator's listeners hear."""
    with fit_progress(estimator.verbose, max_iter, type(estimator).__name__, estimator.callback) as listeners:
        return best_of(advance_to_end(begin, max_iter=max_iter, tol=tol, listeners=listeners) for begin in beginnings)


def finish_fit(estimator: Any, interrupted: bool, max_iter: int, tol: float) -> None:
    """Raises KeyboardInterrupt after Ctrl-C, now that the best model so far is kept; warns of a fit that is not done.

    Called by `fit` itself: the warning names the line that called it.
    """
    if interrupted:
        raise KeyboardInterrupt
    if estimator.converged_:
        return
    residuals = estimator.history_.get("residual")
    if residuals is None:
        why = f"before one added as little as tol={tol:g} nats per token to the bound"
    else:
        why = f"where re-optimizing could still gain up to {residuals[-1]:.2g} nats per token (tol={tol:g})"
    warnings.warn(
        f"The fit stopped after max_iter={max_iter} iterations, {why}: raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
