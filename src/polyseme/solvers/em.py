"""Plain EM (Hofmann 1999; Hong 2012, eq. 8-14 and 33-38; Gaussier and Goutte 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyseme.kernels import Array
from polyseme.model import Model, improve_words, visit
from polyseme.solvers.loop import Report, Run, State
from polyseme.sources.memory import MemorySource


@dataclass(frozen=True)
class EM:
    """theta_dk ∝ theta_dk sum_w x phi_kw / p,  phi_kw ∝ phi_kw sum_d x theta_dk / p, both from the old values.

    The symmetric form, with P(z), P(d|z) and P(w|z), has the same iterates: P(z) P(d|z) = P(d) P(z|d).
    """

    name: ClassVar[str] = "em"

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        return EMRun(model, source, theta, phi)


class EMRun:
    """`step` is where the next iteration goes: EM(theta), EM(phi)."""

    exhausted = False
    step: tuple[Array, Array]

    def __init__(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> None:
        self.model = model
        self._source = source
        self._look(theta, phi)

    def advance(self) -> None:
        self.theta, self.phi = self.step  # let go of the old point before the sweep needs memory
        self._look(*self.step)

    def state(self) -> State:
        next_theta, next_phi = self.step
        return {
            "theta": self.theta,
            "phi": self.phi,
            "next_theta": next_theta,
            "next_phi": next_phi,
            "report": self.report.numbers,
        }

    def restore(self, state: State) -> None:
        self.theta, self.phi = state["theta"], state["phi"]
        self.step = (state["next_theta"], state["next_phi"])
        self.report = Report(*state["report"].tolist())

    def _look(self, theta: Array, phi: Array) -> None:
        """The E-step at (theta, phi): its report, and the M-step for the next iteration."""
        theta, next_theta, stats = visit(self.model, self._source, theta, phi)
        next_phi, word_gain = improve_words(self.model, self._source, phi, stats)
        self.theta, self.phi, self.step = theta, phi, (next_theta, next_phi)
        gain = max(stats.doc_gain + word_gain, 0.0) if np.isfinite(stats.log_operands) else float("inf")
        self.report = Report(
            self.model.objective(stats, phi) / stats.tokens,
            stats.log_likelihood / stats.tokens,
            gain / stats.tokens,
        )
