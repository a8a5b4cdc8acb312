"""Unnormalized factors, as KL-NMF keeps them: x_dw ~ Poisson(p), p = sum_k docs_dk words_wk.

With s_d = sum_w p_dw, log P(w|d) = log p - log s_d; and the Poisson likelihood is highest, over the documents' scales,
at s_d = n_d, where the two likelihoods differ by a constant. So PLSA's likelihood is the Poisson one with the scales
profiled out. Documents count with their weights v_d.

Sequential coordinate ascent with extrapolation: the fast way to a maximum-likelihood fit.

Both factors are kept unnormalized (poisson.py); each half-step raises every row's Poisson likelihood one weight at a
time (_native/coordinate.hpp; after Hsieh and Dhillon 2011, with a step that needs no line search). What is reported,
and must not fall, is the likelihood of w given d.

Topics of a short fit of PLSA, for models that a start near a good likelihood saves from poor optima.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, inner, weighted_sum
from polyseme.solvers.ascent import Momentum
from polyseme.solvers.base import Report, Snapshot, SolverRun, run_to_end
from polyseme.solvers.initialize import named_start


class Unnormalized(NamedTuple):
    """docs (documents x width) and words (words x width)."""

    docs: Array
    words: Array

    @property
    def theta(self) -> Array:
        """P(z|d) = docs_dk sum_w words_wk / s_d; a document without words has zeros."""
        theta = self.docs * column_sums(self.words).astype(self.docs.dtype)
        sums = theta.sum(axis=1, dtype=np.float64, keepdims=True)
        return np.divide(theta, sums, out=np.zeros_like(theta), where=sums > 0, casting="same_kind")

    @property
    def phi(self) -> Array:
        """P(w|z), words x width."""
        sums = column_sums(self.words)
        return (self.words / np.where(sums > 0, sums, 1)).astype(self.words.dtype)


def from_plsa(corpus: MemoryCorpus, theta: Array, phi: Array) -> Unnormalized:
    """docs = n_d theta, words = phi: the scale at which s_d = n_d."""
    return Unnormalized(theta * corpus.totals[:, np.newaxis].astype(theta.dtype), phi)


def column_sums(factor: Array, weights: Floats | None = None) -> Floats:
    """sum over rows of weight * factor, in float64 (width numbers)."""
    if weights is None:
        return np.asarray(factor.sum(axis=0, dtype=np.float64))
    return weighted_sum(weights, factor)


def log_likelihood(corpus: MemoryCorpus, log_sum: float, point: Unnormalized) -> float:
    """Mean log P(w|d) from log_sum = sum v x log p."""
    return (log_sum - _weighted(corpus, np.log(_filled_scales(corpus, point)))) / corpus.tokens


def poisson_objective(corpus: MemoryCorpus, log_sum: float, point: Unnormalized) -> float:
    """The Poisson log-likelihood per token, shifted so that it equals `log_likelihood` where s_d = n_d."""
    scales = _filled_scales(corpus, point)
    totals = corpus.totals[corpus.weighted_totals > 0]
    return (log_sum - _weighted(corpus, np.log(totals) - 1 + scales / totals)) / corpus.tokens


def duality_gap(sums: Array, u: Floats, factor: Array, totals: Floats) -> Floats:
    """n log max_k(sums_k / u_k) - n + sum_k u_k factor_k of each row: what a better row of `factor` could gain.

    u has K numbers, or a row of them for each row of `factor`.
    """
    steepest = np.divide(sums, u, out=np.zeros(sums.shape), where=u > 0).max(axis=1)
    logs = np.log(steepest, out=np.zeros_like(steepest), where=steepest > 0)
    return np.asarray(totals * logs - totals + np.einsum("ik,k->i" if u.ndim == 1 else "ik,ik->i", factor, u))


def _filled_scales(corpus: MemoryCorpus, point: Unnormalized) -> Floats:
    """s_d of the documents that have words and weight.

    In float64: rounding a topic's sum to float32 would shift the likelihood of all its documents alike, by more than
    late iterations gain, and whether an extrapolated point is kept would depend on the order of rounding.
    """
    scales = np.einsum("dk,k->d", point.docs, column_sums(point.words), dtype=np.float64)
    return np.asarray(scales[corpus.weighted_totals > 0])


def _weighted(corpus: MemoryCorpus, values: Floats) -> float:
    return inner(corpus.weighted_totals[corpus.weighted_totals > 0], values)


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

    def begin(self, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> SolverRun:
        if not model.is_plain:
            raise UnsupportedError("solver='scd' fits plain maximum likelihood only: use solver='auto' for this model.")
        if self.passes < 1:
            raise InputError(f"passes must be at least 1, got {self.passes!r}.")
        return SCDRun(self, model, corpus, from_plsa(corpus, theta, phi))

    def resume(self, model: Model, corpus: MemoryCorpus, state: Snapshot) -> SolverRun:
        return SCDRun.resumed(self, model, corpus, state)


_PATIENCE = 5


class _Tried(NamedTuple):
    point: Unnormalized
    log_likelihood: float
    gain: float


class SCDRun:
    def __init__(self, settings: SCD, model: Model, corpus: MemoryCorpus, start: Unnormalized) -> None:
        self.model = model
        self.exhausted = False
        self._passes = settings.passes
        self._corpus = corpus
        self._good = self._extrapolated = start
        self._momentum = Momentum(settings.extrapolate, keep=0.01)
        self._least_gain, self._waited = float("inf"), 0
        logs = corpus.logs(*self._good)
        value = log_likelihood(corpus, corpus.total_log(logs), self._good)
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
            self._good = self._extrapolated = from_plsa(self._corpus, self.theta, self.phi)
            self._momentum.failed()

    def snapshot(self) -> Snapshot:
        numbers = {
            **self._momentum.numbers,
            **self.report._asdict(),
            "least_gain": self._least_gain,
            "waited": float(self._waited),
            "exhausted": float(self.exhausted),
        }
        points = {"good": self._good, "ahead": self._extrapolated}
        docs, words = ({name: point[side] for name, point in points.items()} for side in (0, 1))
        return Snapshot(docs, words, numbers)

    @classmethod
    def resumed(cls, settings: SCD, model: Model, corpus: MemoryCorpus, state: Snapshot) -> SCDRun:
        good, ahead = (Unnormalized(state.docs[name], state.words[name]) for name in ("good", "ahead"))
        run = cls(settings, model, corpus, good)
        run._extrapolated = ahead
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

    def _keep(self, point: Unnormalized) -> None:
        """Takes a point, in the gauge where each topic's words sum to one.

        Else scale that moves from one factor to the other, which changes nothing, would be lengthened for ever.
        """
        extrapolated_words = self._momentum.extrapolate(point.words, self._good.words)
        sums = column_sums(point.words)
        scale = np.where(sums > 0, sums, 1).astype(point.words.dtype)
        self._good = Unnormalized(point.docs * scale, point.words / scale)
        self._extrapolated = Unnormalized(self._good.docs, extrapolated_words / scale)

    def _gain(self) -> float:
        """The duality gaps of both sides at the present point, its documents at their best scale, per token."""
        corpus = self._corpus
        point = from_plsa(corpus, self.theta, self.phi)
        row_sums, word_sums = corpus.row_sums(*point), corpus.word_sums(*point)
        docs = duality_gap(row_sums, column_sums(point.words), point.docs, corpus.totals)
        mass = column_sums(point.docs, corpus.weights)
        words = duality_gap(word_sums, mass, point.words, corpus.word_totals)
        return max(corpus.total_log(docs) + float(words.sum()), 0.0) / corpus.tokens

    def _try(self) -> _Tried:
        """Both half-steps from the point ahead; the gain is the sum of their duality gaps before."""
        corpus, K = self._corpus, self.model.n_topics
        docs, u = self._extrapolated.docs.copy(), column_sums(self._extrapolated.words)[:K]
        doc_gains, _ = corpus.by_doc.improve_rows(
            docs, self._extrapolated.words, u, passes=self._passes, n_threads=corpus.n_threads
        )
        docs = self._momentum.extrapolate(docs, self._good.docs)
        words = self._extrapolated.words.copy()
        word_gains, logs = corpus.by_word.improve_rows(
            words, docs, column_sums(docs, corpus.weights)[:K], passes=self._passes, n_threads=corpus.n_threads
        )
        point = Unnormalized(docs, words)
        gain = (corpus.total_log(doc_gains) + float(word_gains.sum())) / corpus.tokens
        return _Tried(point, log_likelihood(corpus, float(np.sum(logs)), point), max(gain, 0.0))


_ITERATIONS, _TOLERANCE = 30, 1e-2


def fitted_factors(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """theta and phi (padded) of a fit from a random start."""
    model = Model(n_topics)
    fit = run_to_end(
        SCD(), model, corpus, *named_start("random", corpus, model, rng),
        max_iter=_ITERATIONS, tol=_TOLERANCE, listeners=[],
    )  # fmt: skip
    if fit is None or fit.interrupted:
        raise KeyboardInterrupt
    return fit.run.theta, fit.run.phi
