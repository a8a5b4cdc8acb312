"""Sequential coordinate ascent with extrapolation: the fast way to a maximum-likelihood fit.

Both factors are kept unnormalised (poisson.py); each half-step raises every row's Poisson likelihood one weight at a
time (_native/coordinate.hpp; after Hsieh and Dhillon 2011, with a step that needs no line search). What is reported,
and must not fall, is the likelihood of w given d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.accelerate import Momentum
from polyseme.solvers.loop import Report, Run, Snapshot
from polyseme.solvers.poisson import Unnormalised, column_sums, duality_gap, from_plsa, log_likelihood
from polyseme.sources.memory import MemorySource


@dataclass(frozen=True)
class SCD:
    """Documents, then words, each by coordinate ascent; between them extrapolation.

    passes : visits to each weight of a row in a half-step.
    extrapolate : whether a half-step is lengthened along its last change. A point that would lower the likelihood is
        dropped, and the next iteration is a plain one from the last good point.
    """

    name: ClassVar[str] = "scd"
    in_memory_only: ClassVar[bool] = True
    passes: int = 2
    extrapolate: bool = True

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        if not model.is_plain:
            raise UnsupportedError("solver='scd' fits plain maximum likelihood only: use solver='auto' for this model.")
        if self.passes < 1:
            raise InputError(f"passes must be at least 1, got {self.passes!r}.")
        return SCDRun(self, model, source, from_plsa(source, theta, phi))

    def resume(self, model: Model, source: MemorySource, state: Snapshot) -> Run:
        return SCDRun.resumed(self, model, source, state)


_PATIENCE = 5


class _Tried(NamedTuple):
    point: Unnormalised
    log_likelihood: float
    gain: float


class SCDRun:
    def __init__(self, settings: SCD, model: Model, source: MemorySource, start: Unnormalised) -> None:
        self.model = model
        self.exhausted = False
        self._passes = settings.passes
        self._source = source
        self._good = self._ahead = start
        self._momentum = Momentum(settings.extrapolate, keep=0.01)
        self._least_gain, self._waited = float("inf"), 0
        logs = source.sweep(*self._good, rows=False, words=False).logs
        assert logs is not None
        value = log_likelihood(source, source.total_log(logs), self._good)
        self.report = Report(value, value, float("inf"))

    @property
    def theta(self) -> Array:
        return self._good.theta

    @property
    def phi(self) -> Array:
        return self._good.phi

    def advance(self) -> None:
        tried = self._try()
        if tried.log_likelihood > self.report.log_likelihood:
            self._keep(tried.point)
            self._momentum.succeeded()
            self.report = Report(tried.log_likelihood, tried.log_likelihood, self._residual(tried.gain))
        elif self._momentum.plain:  # a plain step cannot fall but by rounding: this is the end
            self.exhausted = True
            self.report = self.report._replace(residual=self._gain())
        else:  # a plain step raises the likelihood from a point where each document has its own scale
            self._good = self._ahead = from_plsa(self._source, self.theta, self.phi)
            self._momentum.failed()

    def snapshot(self) -> Snapshot:
        numbers = {
            **self._momentum.numbers,
            **self.report._asdict(),
            "least_gain": self._least_gain,
            "waited": float(self._waited),
            "exhausted": float(self.exhausted),
        }
        points = {"good": self._good, "ahead": self._ahead}
        docs, words = ({name: point[side] for name, point in points.items()} for side in (0, 1))
        return Snapshot(docs, words, numbers)

    @classmethod
    def resumed(cls, settings: SCD, model: Model, source: MemorySource, state: Snapshot) -> SCDRun:
        good, ahead = (Unnormalised(state.docs[name], state.words[name]) for name in ("good", "ahead"))
        run = cls(settings, model, source, good)
        run._ahead = ahead
        run._momentum.restore(state.numbers)
        run._least_gain, run._waited = state.numbers["least_gain"], int(state.numbers["waited"])
        run.exhausted = bool(state.numbers["exhausted"])
        run.report = Report(*(state.numbers[name] for name in Report._fields))
        return run

    def _residual(self, gain_ahead: float) -> float:
        """The gain at the lengthened point is free, but can stay large when the fit is done.

        So now and then, while it does not fall, the gain at the reported point is computed instead.
        """
        self._least_gain, self._waited = (
            (gain_ahead, 0) if gain_ahead < self._least_gain else (self._least_gain, self._waited + 1)
        )
        if self._waited < _PATIENCE:
            return gain_ahead
        self._waited = 0
        return self._gain()

    def _keep(self, point: Unnormalised) -> None:
        """Takes a point, in the gauge where each topic's words sum to one.

        Else scale that moves from one factor to the other, which changes nothing, would be lengthened for ever.
        """
        words_ahead = self._momentum.lengthened(point.words, self._good.words)
        sums = column_sums(point.words)
        scale = np.where(sums > 0, sums, 1).astype(point.words.dtype)
        self._good = Unnormalised(point.docs * scale, point.words / scale)
        self._ahead = Unnormalised(self._good.docs, words_ahead / scale)

    def _gain(self) -> float:
        """The duality gaps of both sides at the present point, its documents at their best scale, per token."""
        source = self._source
        point = from_plsa(source, self.theta, self.phi)
        sums = source.sweep(*point, logs=False)
        assert sums.row_sums is not None
        assert sums.word_sums is not None
        docs = duality_gap(sums.row_sums, column_sums(point.words), point.docs, source.totals)
        mass = column_sums(point.docs, source.weights)
        words = duality_gap(sums.word_sums, mass, point.words, source.word_totals)
        return max(source.total_log(docs) + float(words.sum()), 0.0) / source.tokens

    def _try(self) -> _Tried:
        """Both half-steps from the point ahead; the gain is the sum of their duality gaps before."""
        source, K = self._source, self.model.n_topics
        docs, u = self._ahead.docs.copy(), column_sums(self._ahead.words)[:K]
        doc_gains, _ = source.by_doc.improve_rows(
            docs, self._ahead.words, u, passes=self._passes, n_threads=source.n_threads
        )
        docs = self._momentum.lengthened(docs, self._good.docs)
        words = self._ahead.words.copy()
        word_gains, logs = source.by_word.improve_rows(
            words, docs, column_sums(docs, source.weights)[:K], passes=self._passes, n_threads=source.n_threads
        )
        point = Unnormalised(docs, words)
        gain = (source.total_log(doc_gains) + float(word_gains.sum())) / source.tokens
        return _Tried(point, log_likelihood(source, float(np.sum(logs)), point), max(gain, 0.0))
