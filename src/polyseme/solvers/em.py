"""Plain EM (Hofmann 1999; Hong 2012, eq. 8-14 and 33-38; Gaussier and Goutte 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyseme.model import Model
from polyseme.solvers.loop import Report, Run, Snapshot
from polyseme.sources import Source


@dataclass(frozen=True)
class EM:
    """theta_dk ∝ theta_dk sum_w x phi_kw / p,  phi_kw ∝ phi_kw sum_d x theta_dk / p, both from the old values.

    The symmetric form, with P(z), P(d|z) and P(w|z), has the same iterates: P(z) P(d|z) = P(d) P(z|d).
    """

    name: ClassVar[str] = "em"

    def begin(self, model: Model, source: Source, theta: Any, phi: Any) -> Run:
        return EMRun(model, source, theta, phi)

    def resume(self, model: Model, source: Source, state: Snapshot) -> Run:
        return EMRun(model, source, state.docs["theta"], state.words["phi"])


class EMRun:
    """`step` is where the next iteration goes: EM(theta), EM(phi)."""

    exhausted = False
    theta: Any
    phi: Any
    step: tuple[Any, Any]

    def __init__(self, model: Model, source: Source, theta: Any, phi: Any) -> None:
        self.model = model
        self._source = source
        self._look(theta, phi)

    def advance(self) -> None:
        self.theta, self.phi = self.step  # let go of the old point before the sweep needs memory
        self._look(*self.step)

    def snapshot(self) -> Snapshot:
        return Snapshot({"theta": self.theta}, {"phi": self.phi}, {})

    def _look(self, theta: Any, phi: Any) -> None:
        """The E-step at (theta, phi): its report, and the M-step for the next iteration."""
        seen = self._source.look(self.model, theta, phi)
        self.theta, self.phi, self.step = seen.theta, seen.phi, (seen.next_theta, seen.next_phi)
        self.report = Report(*seen.quality)
