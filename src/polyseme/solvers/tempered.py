"""Tempered EM (Hofmann 1999; Gaussier and Goutte 2005, section 3): posteriors raised to a power beta.

P(z|d,w) ∝ (theta_dz phi_zw)^beta, then the usual M-step. At a fixed beta the free energy
F_beta = (1/beta) sum x log sum_z (theta phi)^beta never falls; the likelihood, reported beside it, may. Folding in uses
the beta of the fit.

Hofmann's schedule of beta (solvers/tempered.py), made to look further before it ends.

`HeldOutTempered` ends at the first beta that brings no improvement on the held-out tokens. With many topics for few
tokens, that can be the very first one: 0.9 still overfits, where 0.6 would not. Here the schedule goes on below it,
from the best point, and ends when that has brought nothing `tries` times in a row. Held-out tokens alone decide.
Patience is 10, since a start improves only after a few steps (3 were too few on Medline: its best point was the start).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np

from polyseme.core.model import Model
from polyseme.data.corpus import Corpus, MemoryCorpus
from polyseme.errors import InputError
from polyseme.kernels import Array
from polyseme.solvers.ascent import EMRun
from polyseme.solvers.base import Snapshot, SolverRun
from polyseme.solvers.early_stopping import hold_out_tokens

_SAME_TOPIC = 0.05
"""topics no further apart than this (total variation) count as one"""


@dataclass(frozen=True)
class Tempered:
    """EM at one beta: below 1 it smooths, at 1 it is plain EM."""

    name: ClassVar[str] = "tempered"
    beta: float = 0.9

    def begin(self, model: Model, corpus: Corpus, theta: Any, phi: Any) -> SolverRun:
        return EMRun(_at(model, self.beta), corpus, theta, phi)

    def resume(self, model: Model, corpus: Corpus, state: Snapshot) -> SolverRun:
        return EMRun(_at(model, self.beta), corpus, state.docs["theta"], state.words["phi"])


@dataclass(frozen=True)
class HeldOutTempered:
    """Hofmann's schedule: lower beta whenever the held-out tokens' perplexity stops improving.

    A share of every document's tokens is held out; EM runs at beta = 1 until `patience` steps together have not made
    them more probable by `least_gain` nats a token, then, from the best point, at shrink * beta, and so on; the fit
    ends when a lower beta brings no such gain, with the best point seen. `smoothing` mixes the unigram into the
    held-out score, since a zero would decide it.
    """

    name: ClassVar[str] = "held-out-tempered"
    holds_out: ClassVar[bool] = True
    held_out: float = 0.1
    shrink: float = 0.9
    smoothing: float = 0.01
    patience: int = 5
    seed: int = 0
    least_gain: float = 1e-4

    def begin(self, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> SolverRun:
        if not 0 < self.held_out < 1 or not 0 < self.shrink < 1 or not 0 < self.smoothing < 1:
            raise InputError("held_out, shrink and smoothing must each be between 0 and 1.")
        if self.patience < 1 or not self.least_gain >= 0:
            raise InputError("patience must be at least 1, and least_gain at least 0.")
        return HeldOutRun(self, _at(model, 1.0), corpus, theta, phi)


@dataclass(frozen=True)
class Annealed:
    """EM along a sequence of betas from `start` to `stop`, `stages` of `steps` iterations, then on at `stop`.

    Rising betas are deterministic annealing: at a low beta topics fall onto each other, and split again as beta rises;
    `noise` (relative, from `seed`) lets them. How many distinct topics there are at the end of each stage is kept in
    `run.stages`: a hint at the number of components. Falling betas are inverse annealing.
    """

    name: ClassVar[str] = "annealed"
    start: float = 0.6
    stop: float = 1.0
    stages: int = 9
    steps: int = 10
    noise: float = 0.01
    seed: int = 0

    def begin(self, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> SolverRun:
        if self.stages < 1 or self.steps < 1 or not 0 <= self.noise < 1:
            raise InputError("stages and steps must be at least 1, and noise at least 0 and below 1.")
        _at(model, self.stop)
        return AnnealedRun(self, model, corpus, theta, phi)


class _Wrapped:
    """A run that shows another run's point."""

    exhausted = False
    inner: EMRun

    @property
    def model(self) -> Model:
        return self.inner.model

    @property
    def theta(self) -> Array:
        return self.inner.theta

    @property
    def phi(self) -> Array:
        return self.inner.phi


class HeldOutRun(_Wrapped):
    """`quality` is the best held-out score: free energies at different betas do not compare."""

    def __init__(self, settings: HeldOutTempered, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> None:
        self._settings = settings
        tokens = hold_out_tokens(corpus, settings.held_out, settings.seed, settings.smoothing)
        self._corpus, self._score = tokens.corpus, tokens.score
        self.inner = EMRun(model, self._corpus, theta, phi)
        self.report = self.inner.report._replace(residual=float("inf"))
        self._best, self.quality = self.inner, self._score(self.inner)
        self._mark = self.quality
        self._improved_at_this_beta = True
        self._waited = 0

    def advance(self) -> None:
        inner = EMRun(self.inner.model, self._corpus, *self.inner.step)
        score = self._score(inner)
        self._waited += 1
        if score > self.quality:
            self._best, self.quality = inner, score
        if score > self._mark + self._settings.least_gain:
            self._mark, self._improved_at_this_beta, self._waited = score, True, 0
        elif self._waited < self._settings.patience:
            pass
        elif self._improved_at_this_beta:
            beta = self.inner.model.temperature * self._settings.shrink
            inner = EMRun(_at(self.inner.model, beta), self._corpus, self._best.theta, self._best.phi)
            self._mark, self._improved_at_this_beta, self._waited = self.quality, False, 0
        else:
            inner, self.exhausted = self._best, True
        self.inner = inner
        self.report = inner.report._replace(residual=float("inf"))


class AnnealedRun(_Wrapped):
    def __init__(self, settings: Annealed, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> None:
        self._settings = settings
        self._corpus = corpus
        self._rng = np.random.default_rng(settings.seed)
        self._betas = [float(beta) for beta in np.linspace(settings.start, settings.stop, settings.stages)]
        self._done = 0
        self.stages: list[tuple[float, int]] = []
        """(beta, number of distinct topics) at the end of each stage"""
        self.inner = EMRun(_at(model, self._betas[0]), corpus, theta, phi)
        self.report = self.inner.report._replace(residual=float("inf"))

    def advance(self) -> None:
        self._done += 1
        stage, within = divmod(self._done, self._settings.steps)
        theta, phi = self.inner.step
        if within == 0 and stage <= len(self._betas):
            self.stages.append((self.model.temperature, distinct_topics(phi[:, : self.model.n_topics].T)))
        if within == 0 and stage < len(self._betas):
            self.inner = EMRun(_at(self.model, self._betas[stage]), self._corpus, theta, self._disturbed(phi))
        else:
            self.inner.advance()
        still_annealing = stage < len(self._betas)
        self.report = self.inner.report._replace(
            residual=float("inf") if still_annealing else self.inner.report.residual
        )

    def _disturbed(self, phi: Array) -> Array:
        noisy = phi * self._rng.uniform(1 - self._settings.noise, 1 + self._settings.noise, phi.shape)
        sums = noisy.sum(axis=0)
        return (noisy / np.where(sums > 0, sums, 1)).astype(phi.dtype)


def distinct_topics(topics: Array) -> int:
    """How many of the topics (K x words) are further than a little from all those before them."""
    kept: list[Array] = []
    for topic in topics:
        if all(0.5 * np.abs(topic - other).sum() > _SAME_TOPIC for other in kept):
            kept.append(topic)
    return len(kept)


def _at(model: Model, beta: float) -> Model:
    if not 0 < beta < float("inf"):
        raise InputError(f"beta must be a finite number above 0, got {beta!r}.")
    return replace(model, temperature=beta)


@dataclass(frozen=True)
class LookFurther:
    """The schedule of `settings`; each of the `tries` covers two more betas below those that it has seen."""

    name: ClassVar[str] = "look-further"
    holds_out: ClassVar[bool] = True
    settings: HeldOutTempered = field(default_factory=lambda: HeldOutTempered(patience=10))
    tries: int = 2

    def begin(self, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> SolverRun:
        if self.tries < 0:
            raise InputError(f"tries must be at least 0, got {self.tries!r}.")
        first = cast(HeldOutRun, self.settings.begin(model, corpus, theta, phi))
        return _FurtherRun(self, model, corpus, first)


class _FurtherRun:
    """Runs of the schedule one after another, each from the best point so far."""

    def __init__(self, solver: LookFurther, model: Model, corpus: MemoryCorpus, first: HeldOutRun) -> None:
        self._solver = solver
        self._model = model
        self._corpus = corpus
        self._best = self._current = first
        self._lowest = 1.0
        self._failures = 0
        self.report = first.report
        self.exhausted = False

    @property
    def model(self) -> Model:
        return self._current.model

    @property
    def theta(self) -> Array:
        return self._current.theta

    @property
    def phi(self) -> Array:
        return self._current.phi

    @property
    def quality(self) -> float:
        """The best held-out score."""
        return max(self._best.quality, self._current.quality)

    def advance(self) -> None:
        self._current.advance()
        self._lowest = min(self._lowest, self._current.model.temperature)
        if self._current.exhausted:
            self._go_on()
        self.report = self._current.report

    def _go_on(self) -> None:
        """From the end of one run: the next one, or the end."""
        if self._current is self._best or self._current.quality > self._best.quality:
            self._best, self._failures = self._current, 0
        else:
            self._failures += 1
        if self._failures >= self._solver.tries:
            self._current, self.exhausted = self._best, True
            return
        lower = replace(self._model, temperature=self._lowest * self._solver.settings.shrink)
        self._current = HeldOutRun(self._solver.settings, lower, self._corpus, self._best.theta, self._best.phi)
