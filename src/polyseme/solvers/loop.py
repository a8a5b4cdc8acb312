"""The one fit loop: every solver is a run that it advances, reports on, and stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.sources.memory import MemorySource


class Report(NamedTuple):
    """How good a point is; all three in nats per token."""

    objective: float
    """what the solver raises"""
    log_likelihood: float
    """mean log P(w|d) over all tokens"""
    residual: float
    """an upper bound on what re-optimising one side, and then the other, could still gain"""


class Run(Protocol):
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


class Solver(Protocol):
    """Settings of an algorithm. `begin` refuses, in one sentence, a model that the algorithm cannot raise."""

    name: ClassVar[str]

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run: ...


Entry = dict[str, float]
Callback = Callable[[Entry], Any]


class Monitor:
    """Writes the history down and tells whoever listens."""

    COLUMNS = ("iteration", "seconds", "log_likelihood", "objective", "residual")

    def __init__(self, listeners: list[Callback]) -> None:
        self._listeners = listeners
        self._entries: list[Entry] = []
        self._started = time.perf_counter()

    def record(self, iteration: int, report: Report) -> None:
        entry: Entry = {
            "iteration": iteration,
            "seconds": time.perf_counter() - self._started,
            "log_likelihood": report.log_likelihood,
            "objective": report.objective,
            "residual": report.residual,
        }
        self._entries.append(entry)
        for listener in self._listeners:
            listener(dict(entry))

    def history(self) -> dict[str, Array]:
        history = {name: np.array([entry[name] for entry in self._entries]) for name in self.COLUMNS}
        history["iteration"] = history["iteration"].astype(np.int64)
        return history


@dataclass(frozen=True)
class Fit:
    """Where a fit ended."""

    run: Run
    history: dict[str, Array]
    n_iter: int
    converged: bool
    interrupted: bool

    @property
    def quality(self) -> float:
        """What the best of several fits has most of: the objective, unless the run has a better measure."""
        return float(getattr(self.run, "quality", self.run.report.objective))


def run_to_end(
    solver: Solver,
    model: Model,
    source: MemorySource,
    theta: Array,
    phi: Array,
    *,
    max_iter: int,
    tol: float,
    listeners: list[Callback],
) -> Fit | None:
    """Advances until the residual is at most `tol`, `max_iter` iterations are done, or Ctrl-C.

    After Ctrl-C the last whole point is returned, marked as interrupted; None if there is none yet.
    """
    monitor = Monitor(listeners)
    run: Run | None = None
    iteration, converged, interrupted = 0, False, False
    try:
        run = solver.begin(model, source, theta, phi)
        monitor.record(0, run.report)
        while iteration < max_iter and not converged:
            run.advance()
            iteration += 1
            monitor.record(iteration, run.report)
            converged = run.exhausted or run.report.residual <= tol
    except KeyboardInterrupt:
        interrupted = True
    if run is None:
        return None
    return Fit(run, monitor.history(), iteration, converged, interrupted)
