"""Early stopping: a fit ends when it no longer gets better at words it does not see, and keeps the best point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.auto import Auto
from polyseme.solvers.held_out import HeldOut, document_folds, hold_out_tokens, token_folds
from polyseme.solvers.loop import Report, Run
from polyseme.sources.memory import MemorySource

_WAYS = {"words": token_folds, "documents": document_folds}


@dataclass(frozen=True)
class EarlyStopping:
    """Ends a fit when held-out tokens have not become more probable for `patience` iterations.

    held_out : the share of every document's tokens that the fit does not see (with one fold).
    folds : 1, or the number of folds of a cross-validation: then so many fits, each without one fold, run beside the
        one on all documents, which ends when the mean over the folds is at its best.
    by : what a fold holds out, "words" (a part of the tokens of every document) or "documents" (folded in on half of
        their tokens and scored on the other half; thesis ch. 6), which needs two folds or more.
    patience : iterations without improvement. They count from the first improvement on the start: topics that begin
        nearly alike, above all at a low temperature, get worse for some iterations before they get better.
    smoothing : the share of the unigram in the held-out probabilities.
    seed : of the tokens or documents held out.
    solver : whose iterations these are; None for the estimator's own.

    The run's point is the best so far, also when Ctrl-C or max_iter ends it.
    """

    name: ClassVar[str] = "early-stopping"
    holds_out: ClassVar[bool] = True
    held_out: float = 0.1
    folds: int = 1
    by: str = "words"
    patience: int = 5
    smoothing: float = 0.01
    seed: int = 0
    solver: Any = None

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        if not 0 < self.held_out < 1 or not 0 < self.smoothing < 1:
            raise InputError("held_out and smoothing must each be between 0 and 1.")
        if self.patience < 1 or self.folds < 1:
            raise InputError("patience and folds must each be at least 1.")
        if self.by not in _WAYS:
            raise InputError(f"by must be one of {', '.join(map(repr, _WAYS))}, got {self.by!r}.")
        if self.by == "documents" and self.folds < 2:
            raise InputError("EarlyStopping: folds must be at least 2 with by='documents'.")
        solver = Auto() if self.solver is None else self.solver
        if getattr(solver, "holds_out", False):
            raise UnsupportedError(f"solver={solver.name!r} stops by held-out words already: use it without.")
        if self.folds == 1:
            apart = hold_out_tokens(source, self.held_out, self.seed, self.smoothing)
            inner = solver.begin(model, apart.source, theta, phi)
            return EarlyStoppingRun(inner, [(apart, inner)], self.patience)
        watched = []
        for part in _WAYS[self.by](source, self.folds, self.seed, self.smoothing):
            start = theta if part.rows is None else np.ascontiguousarray(theta[part.rows])
            watched.append((part, solver.begin(model, part.source, start, phi)))
        return EarlyStoppingRun(solver.begin(model, source, theta, phi), watched, self.patience)


class EarlyStoppingRun:
    """`main` is the fit to keep, `watched` are the fits that are scored, each with what it does not see."""

    def __init__(self, main: Run, watched: list[tuple[HeldOut, Run]], patience: int) -> None:
        self._main = main
        self._watched = watched
        self._patience = patience
        self._waited = 0
        self.exhausted = False
        self.quality = self._score()
        self.held_out = [self.quality]
        """mean log-probability of a held-out token at the start and after every iteration"""
        self._keep()

    def advance(self) -> None:
        runs = {id(run): run for run in (self._main, *(run for _, run in self._watched))}
        moving = [run for run in runs.values() if not run.exhausted]
        for run in moving:
            run.advance()
        self.held_out.append(self._score())
        self._waited += 1
        if self.held_out[-1] > self.quality:
            self.quality, self._waited = self.held_out[-1], 0
            self._keep()
        begun = self.quality > self.held_out[0]
        self.exhausted = (begun and self._waited >= self._patience) or all(run.exhausted for run in runs.values())

    def _score(self) -> float:
        return float(np.mean([part.score(run) for part, run in self._watched]))

    def _keep(self) -> None:
        """Takes the present point as the best."""
        self.model: Model = self._main.model
        self.theta: Array = self._main.theta
        self.phi: Array = self._main.phi
        self.report: Report = self._main.report
