"""Coordinate ascent on unnormalized factors, the fastest solver for plain maximum likelihood.

Unnormalized factors are those of KL-NMF: x_dw ~ Poisson(p), p = sum_k docs_dk words_wk. With s_d = sum_w p_dw,
log P(w|d) = log p - log s_d. For fixed topic proportions the Poisson likelihood is largest at s_d = n_d, where the two
likelihoods differ by a constant. So the likelihood of PLSA is the Poisson likelihood maximized over the scales of the
documents. Each document contributes with its weight v_d.

A half-step increases the Poisson likelihood of every row of one factor, one entry at a time
(_native/coordinate.hpp; after Hsieh and Dhillon 2011, with a step that needs no line search). Both half-steps are
extrapolated. The reported likelihood, which never decreases, is that of w given d.

References
----------
C.-J. Hsieh and I. S. Dhillon. Fast coordinate descent methods with variable selection for non-negative matrix
    factorization. KDD 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polyseme.core.model import Model, Report
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError
from polyseme.kernels import (
    Array,
    CoordinateFit,
    FitCounts,
    Floats,
    Want,
    inner,
    padded_width,
    remaining_gain,
    rescaled_columns,
    row_blocks,
    times_ratio,
    weighted_sum,
)
from polyseme.solvers.base import FitProblem, Requirement, Snapshot, Solver, SolverRun, end_of_preliminary_fit
from polyseme.solvers.initialize import named_start

_SHORT_ITERATIONS, _SHORT_TOLERANCE = 30, 1e-3
"""Limits of the short fit of `fitted_factors`."""


@dataclass(frozen=True)
class SCD(Solver):
    """Sequential coordinate ascent with extrapolation: the documents' factor, then the words' factor.

    Parameters
    ----------
    passes : int, default=2
        Updates of each entry of a row in a half-step.
    extrapolate : bool, default=True
        Whether half-steps are extrapolated along the last change. If an extrapolated point would decrease the
        likelihood, it is dropped and a plain iteration follows from the last good point.
    multiplicative_steps : int, default=0
        First iterations, with multiplicative updates of the documents and then of the words instead of coordinate
        ascent, which sets many entries to zero while the topics are still arbitrary. NMF with solver="auto" uses 10.
    """

    name: ClassVar[str] = "scd"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.PLAIN_LIKELIHOOD, Requirement.IN_MEMORY})
    resumable: ClassVar[bool] = True
    passes: int = 2
    extrapolate: bool = True
    multiplicative_steps: int = 0

    def check(self) -> None:
        steps = self.multiplicative_steps
        for name, value, least in (("passes", self.passes, 1), ("multiplicative_steps", steps, 0)):
            if value < least:
                raise InputError(f"SCD: {name} must be at least {least}, got {value!r}.")

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        return SCDRun(self, problem, from_plsa(problem.corpus, theta, phi))

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return SCDRun.resumed(self, problem, state)


class Unnormalized(NamedTuple):
    """Factors docs (documents x width) and words (words x width) of the Poisson model."""

    docs: Array
    words: Array

    @property
    def theta(self) -> Array:
        """Return P(z|d) = docs_dk sum_w words_wk / s_d; zeros for a document without words."""
        theta = self.docs * column_sums(self.words).astype(self.docs.dtype)
        sums = theta.sum(axis=1, dtype=np.float64, keepdims=True)
        return np.divide(theta, sums, out=theta, where=sums > 0, casting="same_kind")

    @property
    def phi(self) -> Array:
        """Return P(w|z), words x width."""
        sums = column_sums(self.words)
        return np.divide(self.words, np.where(sums > 0, sums, 1), out=np.empty_like(self.words), casting="same_kind")

    def rescaled(self, n_threads: int) -> Unnormalized:
        """Return factors with the same product, where columns of words sum to one."""
        sums = column_sums(self.words, n_threads=n_threads)
        scale = np.where(sums > 0, sums, 1)
        return Unnormalized(
            rescaled_columns(self.docs, scale, n_threads=n_threads),
            rescaled_columns(self.words, scale, divide=True, n_threads=n_threads),
        )


def from_plsa(corpus: MemoryCorpus, theta: Array, phi: Array) -> Unnormalized:
    """Return docs = n_d theta and words = phi, so that s_d = n_d."""
    return Unnormalized(theta * corpus.totals[:, np.newaxis].astype(theta.dtype), phi)


def column_sums(factor: Array, weights: Floats | None = None, *, n_threads: int = 1) -> Floats:
    """Return the sum over the rows of weight * factor, in float64 (width numbers)."""
    if weights is None:
        weights = np.ones(len(factor))
    return weighted_sum(weights, factor, n_threads=n_threads)


def log_likelihood(corpus: MemoryCorpus, log_sum: float, point: Unnormalized) -> float:
    """Return the mean of log P(w|d), from log_sum = sum v x log p."""
    return (log_sum - _weighted(corpus, np.log(_filled_scales(corpus, point)))) / corpus.tokens


def poisson_objective(corpus: MemoryCorpus, log_sum: float, point: Unnormalized) -> float:
    """Return the Poisson log-likelihood per token, shifted so that it equals `log_likelihood` if s_d = n_d."""
    scales = _filled_scales(corpus, point)
    totals = corpus.totals[corpus.weighted_totals > 0]
    return (log_sum - _weighted(corpus, np.log(totals) - 1 + scales / totals)) / corpus.tokens


def duality_gap(sums: Array, u: Floats, factor: Array, totals: Floats) -> Floats:
    """Return n log max_k(sums_k / u_k) - n + sum_k u_k factor_k of each row, a bound on the gain from a better row.

    u has K numbers, or K numbers for each row of `factor`.
    """
    gaps = np.empty(len(sums))
    for rows in row_blocks(*sums.shape):
        divisors = np.broadcast_to(u, sums.shape)[rows]
        steepest = np.divide(sums[rows], divisors, out=np.zeros(divisors.shape), where=divisors > 0).max(axis=1)
        logs = np.log(steepest, out=np.zeros_like(steepest), where=steepest > 0)
        gaps[rows] = totals[rows] * logs - totals[rows] + np.einsum("ik,ik->i", factor[rows], divisors)
    return gaps


def fitted_factors(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return theta and phi (padded) of a short fit of PLSA from a random start, as a start for other models."""
    model = Model(n_topics)
    start = named_start("random", corpus, model, rng)
    end = end_of_preliminary_fit(
        lambda: SCD().begin(FitProblem(model, corpus), *start), max_iter=_SHORT_ITERATIONS, tol=_SHORT_TOLERANCE
    )
    return end.theta, end.phi


class SCDRun(SolverRun):
    """A fit by coordinate ascent."""

    _corpus: MemoryCorpus

    def __init__(self, settings: SCD, problem: FitProblem, start: Unnormalized) -> None:
        self.model, self._corpus = problem
        self._settings, self._multiplicative = settings, settings.multiplicative_steps
        corpus = self._corpus
        self._counts = FitCounts(corpus.by_doc, corpus.by_word, corpus.totals, corpus.weights)
        self._begin(start, float("inf"))

    @property
    def theta(self) -> Array:
        return self._point.theta

    @property
    def phi(self) -> Array:
        return self._point.phi

    def advance(self) -> None:
        if self._multiplicative > 0:
            self._multiply()
            return
        self._iterate(1)
        self.exhausted, value = self._fit.exhausted, self._fit.log_likelihood
        self.report = Report(value, value, self._fit.gap)

    def remaining(self, values: Sequence[float]) -> float:
        """Return the gain of the last iterations, or the residual if it is smaller and the run is exhausted.

        Otherwise the residual says too little: half-steps reach nearly what it bounds, and many more can follow.
        """
        return super().remaining(values) if self.exhausted else remaining_gain(values)

    def snapshot(self) -> Snapshot:
        fit, numbers = self._fit, self.report._asdict()
        numbers |= {"multiplicative": float(self._multiplicative)}
        numbers |= {f"state{i}": number for i, number in enumerate(fit.numbers.tolist())}
        return Snapshot({"docs": fit.docs}, {"words": fit.words, "extrapolated": fit.extrapolated}, numbers)

    @classmethod
    def resumed(cls, settings: SCD, problem: FitProblem, state: Snapshot) -> SCDRun:
        """Return the run that made a snapshot."""
        form = (problem.corpus.n_words, padded_width(problem.model.n_topics)), problem.corpus.dtype
        run = cls(settings, problem, Unnormalized(state.docs["docs"], state.array("words", *form)))
        run._fit.extrapolated[:] = state.array("extrapolated", *form)
        run._fit.numbers[:] = [state.numbers[f"state{i}"] for i in range(run._fit.numbers.size)]
        run._multiplicative = int(state.numbers["multiplicative"])
        run.exhausted = run._fit.exhausted
        run.report = Report(*(state.numbers[name] for name in Report._fields))
        return run

    @property
    def _point(self) -> Unnormalized:
        return Unnormalized(self._fit.docs, self._fit.words)

    def _begin(self, start: Unnormalized, residual: float) -> None:
        """Begin coordinate ascent at a point."""
        self._fit = CoordinateFit(*start)
        self._iterate(0)
        value = self._fit.log_likelihood
        self.report = Report(value, value, residual)

    def _iterate(self, max_iter: int) -> None:
        settings = self._settings
        self._fit.run(
            self._counts, self.model.n_topics, passes=settings.passes, extrapolate=settings.extrapolate,
            max_iter=max_iter, n_threads=self._corpus.n_threads,
        )  # fmt: skip

    def _multiply(self) -> None:
        """Run an iteration of multiplicative updates, which never decreases the likelihood."""
        corpus, (docs, words) = self._corpus, self._point
        row_sums, u = corpus.sums(docs, words, Want.ROWS).row_sums, column_sums(words)
        gain = corpus.total_log(duality_gap(row_sums, u, docs, corpus.totals))
        docs = times_ratio(docs, row_sums, np.broadcast_to(u, docs.shape), False, n_threads=corpus.n_threads)
        del row_sums  # as large as a factor
        word_sums, mass = corpus.sums(docs, words, Want.WORDS).word_sums, column_sums(docs, corpus.weights)
        gain += float(duality_gap(word_sums, mass, words, corpus.word_totals).sum())
        words = times_ratio(words, word_sums, np.broadcast_to(mass, words.shape), False, n_threads=corpus.n_threads)
        point = Unnormalized(docs, words)
        self._multiplicative -= 1
        # s_d = n_d, as coordinate ascent needs it at its start
        self._begin(from_plsa(corpus, point.theta, point.phi), max(gain, 0.0) / corpus.tokens)


def _filled_scales(corpus: MemoryCorpus, point: Unnormalized) -> Floats:
    """Return s_d of the documents with words and a positive weight, in float64.

    Rounding the sum of a topic to float32 would shift the likelihood of all its documents by the same amount, which is
    more than late iterations gain. Accepting an extrapolated point would then depend on rounding.
    """
    scales = np.einsum("dk,k->d", point.docs, column_sums(point.words), dtype=np.float64)
    return np.asarray(scales[corpus.weighted_totals > 0])


def _weighted(corpus: MemoryCorpus, values: Floats) -> float:
    return inner(corpus.weighted_totals[corpus.weighted_totals > 0], values)
