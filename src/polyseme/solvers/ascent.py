"""Extrapolation, which wraps any monotone step (Ang and Gillis 2019), and EM with it.

A step from `old` to `new` is lengthened to new + momentum (new - old). While the objective rises the momentum grows;
when it would fall, the lengthened point is dropped, the momentum is cut, and one plain step follows, which cannot fall.

Plain EM (Hofmann 1999; Hong 2012, eq. 8-14 and 33-38; Gaussier and Goutte 2005).

A run for models whose point is more than theta and phi: monotone steps, lengthened while the objective rises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from polyseme.core.model import Model
from polyseme.data.corpus import Corpus
from polyseme.errors import UnsupportedError
from polyseme.kernels import Array
from polyseme.solvers.base import Progress, Report, Snapshot, SolverRun

_FIRST, _GROWTH, _CUT, _LONGEST = 0.5, 1.1, 0.6, 1.0


@dataclass(frozen=True)
class Extrapolation:
    """max(new + size (new - old), keep new); size 0 is a plain step."""

    size: float
    keep: float

    def __call__(self, new: Array, old: Array) -> Array:
        if self.size == 0:
            return new
        longer = new + new.dtype.type(self.size) * (new - old)
        return np.maximum(longer, new.dtype.type(self.keep) * new, out=longer)


class Momentum:
    """How far steps are lengthened.

    keep : a lengthened number is at least this part of the plain one. A step that cannot revive zeros needs a large
        part, lest numbers vanish that should have come back.
    """

    def __init__(self, enabled: bool = True, *, keep: float) -> None:
        self._enabled = enabled
        self._keep = keep
        self.size = _FIRST
        """how far the next lengthened step goes"""
        self.plain = True
        """whether the present step is a plain one"""

    @property
    def extrapolation(self) -> Extrapolation:
        """What the present step does."""
        return Extrapolation(0.0 if self.plain else self.size, self._keep)

    def extrapolate(self, new: Array, old: Array) -> Array:
        return self.extrapolation(new, old)

    def succeeded(self) -> None:
        if not self.plain:
            self.size = min(self.size * _GROWTH, _LONGEST)
        self.plain = not self._enabled

    def failed(self) -> None:
        self.size *= _CUT
        self.plain = True

    @property
    def numbers(self) -> dict[str, float]:
        """For a checkpoint."""
        return {"size": self.size, "plain": float(self.plain)}

    def restore(self, numbers: dict[str, float]) -> None:
        self.size, self.plain = numbers["size"], bool(numbers["plain"])


@dataclass(frozen=True)
class AcceleratedEM:
    """EM with extrapolation, for any model whose EM steps cannot fall; the objective never falls."""

    name: ClassVar[str] = "accelerated-em"

    def begin(self, model: Model, corpus: Corpus, theta: Any, phi: Any) -> SolverRun:
        if not model.is_monotone:
            raise UnsupportedError(
                "solver='accelerated-em' needs priors whose steps never lower the objective: use solver='em'."
            )
        return AcceleratedRun(model, corpus, theta, phi)

    def resume(self, model: Model, corpus: Corpus, state: Snapshot) -> SolverRun:
        return AcceleratedRun.resumed(model, corpus, state)


class AcceleratedRun:
    def __init__(self, model: Model, corpus: Corpus, theta: Any, phi: Any) -> None:
        self.model = model
        self.exhausted = False
        self._corpus = corpus
        self._momentum = Momentum(keep=0.5)
        self._good = EMRun(model, corpus, theta, phi)
        self._last_step = self._good.step
        self.report = self._good.report

    @classmethod
    def resumed(cls, model: Model, corpus: Corpus, state: Snapshot) -> AcceleratedRun:
        run = cls(model, corpus, state.docs["theta"], state.words["phi"])
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
        point = self._corpus.extrapolate(self.model, self._momentum.extrapolation, self._good.step, self._last_step)
        tried = EMRun(self.model, self._corpus, *point)
        if tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._last_step = self._good.step
            self._good, self.report = tried, tried.report
        elif self._momentum.plain:
            self.exhausted = True
        else:
            self._momentum.failed()


@dataclass(frozen=True)
class EM:
    """theta_dk ∝ theta_dk sum_w x phi_kw / p,  phi_kw ∝ phi_kw sum_d x theta_dk / p, both from the old values.

    The symmetric form, with P(z), P(d|z) and P(w|z), has the same iterates: P(z) P(d|z) = P(d) P(z|d).
    """

    name: ClassVar[str] = "em"

    def begin(self, model: Model, corpus: Corpus, theta: Any, phi: Any) -> SolverRun:
        return EMRun(model, corpus, theta, phi)

    def resume(self, model: Model, corpus: Corpus, state: Snapshot) -> SolverRun:
        return EMRun(model, corpus, state.docs["theta"], state.words["phi"])


class EMRun:
    """`step` is where the next iteration goes: EM(theta), EM(phi)."""

    exhausted = False
    theta: Any
    phi: Any
    step: tuple[Any, Any]

    def __init__(self, model: Model, corpus: Corpus, theta: Any, phi: Any) -> None:
        self.model = model
        self._corpus = corpus
        self._em_step(theta, phi)

    def advance(self) -> None:
        self.theta, self.phi = self.step  # let go of the old point before the sweep needs memory
        self._em_step(*self.step)

    def snapshot(self) -> Snapshot:
        return Snapshot({"theta": self.theta}, {"phi": self.phi}, {})

    def _em_step(self, theta: Any, phi: Any) -> None:
        """The E-step at (theta, phi): its report, and the M-step for the next iteration."""
        seen = self._corpus.em_step(self.model, theta, phi)
        self.theta, self.phi, self.step = seen.theta, seen.phi, (seen.next_theta, seen.next_phi)
        self.report = Report(*seen.quality)


P = TypeVar("P", bound=tuple[Any, ...])


class EvaluatedPoint(NamedTuple):
    """A point, how good it is, and where a monotone step leads from it."""

    point: Any
    report: Progress
    step: Any


class PointRun(Generic[P]):
    """Goes from look to look; points are tuples of arrays (see accelerate.py).

    look : the report at a point, and the step from there.
    normalized : the point of arrays that were lengthened; None takes plain steps only.
    """

    def __init__(
        self,
        look: Callable[[P], EvaluatedPoint],
        start: P,
        normalized: Callable[[P], P] | None = None,
        *,
        keep: float = 0.5,
    ) -> None:
        self.exhausted = False
        self._em_step = look
        self._normalized = normalized
        self._momentum = Momentum(normalized is not None, keep=keep)
        self._good = look(start)
        self._last_step: P = self._good.step
        self.report = self._good.report

    @property
    def point(self) -> P:
        """The point that the report describes."""
        return self._good.point

    def advance(self) -> None:
        step: P = self._good.step
        plain = self._momentum.plain or self._normalized is None
        tried = self._em_step(step if plain else self._lengthened(step))
        if self._normalized is None or tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._last_step = step
            self._good, self.report = tried, tried.report
        elif self._momentum.plain:
            self.exhausted = True
        else:
            self._momentum.failed()

    def _lengthened(self, step: P) -> P:
        assert self._normalized is not None
        longer = (self._momentum.extrapolate(new, old) for new, old in zip(step, self._last_step, strict=True))
        kind: Callable[..., P] = getattr(type(step), "_make", type(step))
        return self._normalized(kind(longer))
