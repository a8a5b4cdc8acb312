"""A run for models whose point is more than theta and phi: monotone steps, lengthened while the objective rises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from polyseme.solvers.accelerate import Momentum
from polyseme.solvers.loop import Progress

P = TypeVar("P", bound=tuple[Any, ...])


class Look(NamedTuple):
    """A point, how good it is, and where a monotone step leads from it."""

    point: Any
    report: Progress
    step: Any


class PointRun(Generic[P]):
    """Goes from look to look; points are tuples of arrays (see accelerate.py).

    look : the report at a point, and the step from there.
    normalised : the point of arrays that were lengthened; None takes plain steps only.
    """

    def __init__(
        self,
        look: Callable[[P], Look],
        start: P,
        normalised: Callable[[P], P] | None = None,
        *,
        keep: float = 0.5,
    ) -> None:
        self.exhausted = False
        self._look = look
        self._normalised = normalised
        self._momentum = Momentum(normalised is not None, keep=keep)
        self._good = look(start)
        self._last_step: P = self._good.step
        self.report = self._good.report

    @property
    def point(self) -> P:
        """The point that the report describes."""
        return self._good.point

    def advance(self) -> None:
        step: P = self._good.step
        plain = self._momentum.plain or self._normalised is None
        tried = self._look(step if plain else self._lengthened(step))
        if self._normalised is None or tried.report.objective >= self.report.objective:
            self._momentum.succeeded()
            self._last_step = step
            self._good, self.report = tried, tried.report
        elif self._momentum.plain:
            self.exhausted = True
        else:
            self._momentum.failed()

    def _lengthened(self, step: P) -> P:
        assert self._normalised is not None
        longer = (self._momentum.lengthened(new, old) for new, old in zip(step, self._last_step, strict=True))
        kind: Callable[..., P] = getattr(type(step), "_make", type(step))
        return self._normalised(kind(longer))
