"""Sequential coordinate ascent with extrapolation: the fast way to a maximum-likelihood fit.

Both factors are kept unnormalised (poisson.py); each half-step raises every row's Poisson likelihood one weight at a
time (_native/coordinate.hpp; after Hsieh and Dhillon 2011, with a step that needs no line search). What is reported,
and must not fall, is the likelihood of w given d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polyseme.errors import UnsupportedError
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.accelerate import Momentum
from polyseme.solvers.loop import Report, Run
from polyseme.solvers.poisson import Unnormalised, column_sums, from_plsa, log_likelihood
from polyseme.sources.memory import MemorySource


@dataclass(frozen=True)
class SCD:
    """Documents, then words, each by coordinate ascent; between them extrapolation.

    passes : visits to each weight of a row in a half-step.
    extrapolate : whether a half-step is lengthened along its last change. A point that would lower the likelihood is
        dropped, and the next iteration is a plain one from the last good point.
    """

    name: ClassVar[str] = "scd"
    passes: int = 2
    extrapolate: bool = True

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        if not model.is_plain:
            raise UnsupportedError("solver='scd' fits plain maximum likelihood only: use solver='auto' for this model.")
        return SCDRun(self, model, source, theta, phi)


class _Tried(NamedTuple):
    point: Unnormalised
    log_likelihood: float
    gain: float


class SCDRun:
    def __init__(self, settings: SCD, model: Model, source: MemorySource, theta: Array, phi: Array) -> None:
        self.model = model
        self.exhausted = False
        self._passes = settings.passes
        self._source = source
        self._good = self._ahead = from_plsa(source, theta, phi)
        self._momentum = Momentum(settings.extrapolate, keep=0.01)
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
            words_ahead = self._momentum.lengthened(tried.point.words, self._good.words)
            self._good, self._ahead = tried.point, Unnormalised(tried.point.docs, words_ahead)
            self._momentum.succeeded()
            self.report = Report(tried.log_likelihood, tried.log_likelihood, tried.gain)
        elif self._momentum.plain:  # a plain step cannot fall but by rounding: this is the end
            self.exhausted = True
            self.report = self.report._replace(residual=min(self.report.residual, tried.gain))
        else:
            self._ahead = self._good
            self._momentum.failed()

    def _try(self) -> _Tried:
        """Both half-steps from the point ahead; the gain is the sum of their duality gaps before."""
        source, K = self._source, self.model.n_topics
        docs, words = self._ahead.docs.copy(), self._ahead.words.copy()
        doc_gains, _ = source.by_doc.improve_rows(
            docs, words, column_sums(words)[:K], passes=self._passes, n_threads=source.n_threads
        )
        docs = self._momentum.lengthened(docs, self._good.docs)
        word_gains, logs = source.by_word.improve_rows(
            words, docs, column_sums(docs, source.weights)[:K], passes=self._passes, n_threads=source.n_threads
        )
        point = Unnormalised(docs, words)
        gain = (source.total_log(doc_gains) + float(word_gains.sum())) / source.tokens
        return _Tried(point, log_likelihood(source, float(np.sum(logs)), point), max(gain, 0.0))
