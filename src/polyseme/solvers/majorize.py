"""Solvers of losses other than the Kullback-Leibler divergence: majorization-minimization, and coordinate descent.

Both update the factor of the documents, then that of the words with the new documents. Neither half-step raises the
loss, and iterations are extrapolated (`Ascent`). NMF minimizes over all non-negative factors. In PLSA, the rows of the
documents sum to their numbers of tokens and the columns of the words to one: the factors are n_d P(z|d) and P(w|z).

With weights v of the entries (`losses.entry_weights`), the Kullback-Leibler divergence is minimized here too:

    docs_dk  <- docs_dk  (sum_w v x words_wk / q) / (sum_w v words_wk)
    words_wk <- words_wk (sum_d v x docs_dk / q)  / (sum_d v docs_dk)

This is EM for x ~ Poisson(q), so the likelihood of the observed entries never decreases. The scale of a document is
free in every loss, because the total of a document with missing entries is not known.

References
----------
C. Fevotte and J. Idier. Algorithms for nonnegative matrix factorization with the beta-divergence. Neural Computation
    23, 2011.
A. Cichocki and A.-H. Phan. Fast local algorithms for large scale nonnegative matrix and tensor factorizations. IEICE
    Transactions on Fundamentals E92-A, 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, aligned_empty, gram, inner, least_squares_rows, padded_width
from polyseme.losses.penalized import Penalized
from polyseme.losses.updates import LossSums, Terms, constrained, multiplied, with_penalty
from polyseme.solvers.ascent import Ascent, EvaluatedPoint, extrapolate_arrays
from polyseme.solvers.base import FitProblem, Requirement, Solver, SolverRun
from polyseme.solvers.coordinate import Unnormalized, duality_gap

_WINDOW = 10
"""Iterations over which the decrease of the loss is measured."""
_LEAST_SHARE = 1e-3
"""The decrease is measured against at least this share of the loss at the start, because an exact fit has no loss."""
_KEEP = 0.95
"""Smallest share of a plain multiplicative update that extrapolation keeps. With 0.5, entries fell to nearly zero in a
few iterations, and hundreds of multiplicative updates were needed to raise them again: fits stopped far too early."""

Evaluate = Callable[[Unnormalized], EvaluatedPoint[Unnormalized]]


@dataclass(frozen=True)
class MajorizeMinimize(Solver):
    """Majorization-minimization, for every loss without a likelihood, and for entries with weights.

    Each factor moves to the minimum of a function that lies above the loss and touches it at the current factor. For
    NMF this is the multiplicative update of `polyseme.losses`. For PLSA it is the minimum among factors with the given
    sums.

    Parameters
    ----------
    extrapolate : bool, default=True
        Whether iterations are extrapolated. If an extrapolated point would raise the loss, it is dropped and a plain
        iteration follows.
    """

    name: ClassVar[str] = "mm"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.OTHER_LOSS, Requirement.IN_MEMORY})
    weighs_entries: ClassVar[bool] = True
    extrapolate: bool = True

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        if problem.model.loss.is_likelihood:
            theta = scaled_start(problem.corpus, theta)
        return LossRun(problem, _majorize, theta, phi, extrapolate=self.extrapolate, keep=_KEEP)


@dataclass(frozen=True)
class HALS(Solver):
    """Coordinate descent for NMF with the squared loss (hierarchical alternating least squares).

    Each entry of a factor moves to its minimum, with the others fixed. The Gram matrix of the other factor and its
    product with the data are computed once in a half-step. Entries with a weight below the largest one, such as
    missing entries, are imputed with their current approximation, which gives a function that lies above the loss.

    Parameters
    ----------
    passes : int, default=1
        Updates of each entry in a half-step.
    extrapolate : bool, default=True
        Whether iterations are extrapolated.
    """

    name: ClassVar[str] = "hals"
    requires: ClassVar[frozenset[Requirement]] = frozenset(
        {Requirement.OTHER_LOSS, Requirement.SQUARED_LOSS, Requirement.FREE_SCALE, Requirement.IN_MEMORY}
    )
    weighs_entries: ClassVar[bool] = True
    passes: int = 1
    extrapolate: bool = True

    def check(self) -> None:
        if self.passes < 1:
            raise InputError(f"HALS: passes must be at least 1, got {self.passes!r}.")

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        return LossRun(problem, partial(_descend, self.passes), theta, phi, extrapolate=self.extrapolate)


class LossReport(NamedTuple):
    """Loss of a point."""

    loss: float
    """Sum over all entries, weighted."""
    residual: float = np.inf

    @property
    def objective(self) -> float:
        """Return what the solver increases."""
        return -self.loss

    def columns(self) -> dict[str, float]:
        """Return the columns of the history."""
        return {"loss": self.loss, "objective": self.objective}


class WeightedReport(NamedTuple):
    """Loss, log-likelihood and residual of a fit of entries with weights, in nats per token."""

    loss: float
    log_likelihood: float
    """Mean log-probability of a token, among the observed words of its document."""
    residual: float
    """Upper bound on the gain from optimizing one factor, plus the same for the other factor."""

    @property
    def objective(self) -> float:
        """Return what the solver increases."""
        return -self.loss

    def columns(self) -> dict[str, float]:
        """Return the columns of the history."""
        return {"log_likelihood": self.log_likelihood, "objective": self.objective, "residual": self.residual}


class LossRun(Ascent[Unnormalized], SolverRun):
    """A fit of W and H to a loss."""

    report: Any

    def __init__(
        self, problem: FitProblem, method: Callable[[FitProblem], Evaluate], docs: Array, words: Array, *,
        extrapolate: bool, keep: float = 0.5,
    ) -> None:  # fmt: skip
        self.model = problem.model
        self._problem, self._method = problem, method
        normalize = Unnormalized if _has_free_scale(problem) else _with_sums(problem)
        penalized = problem.model.loss.penalized
        start = Unnormalized(docs, words)
        if penalized is not None:
            start = _balanced(penalized, start, problem.corpus)
        extrapolation = extrapolate_arrays(normalize) if extrapolate else None
        with np.errstate(over="ignore", invalid="ignore"):  # the check below reports a loss that is not finite
            super().__init__(
                method(problem), start, extrapolation,
                compare=not problem.model.loss.is_likelihood, keep=keep, n_threads=problem.corpus.n_threads,
            )  # fmt: skip
        if not np.isfinite(self.report.loss):
            raise InputError(f"loss={problem.model.loss.name!r} of this data is not finite: rescale X.")

    @property
    def theta(self) -> Array:
        return self.point.theta

    @property
    def phi(self) -> Array:
        return self.point.phi

    @property
    def inferred(self) -> Array:
        return self.point.rescaled(self._problem.corpus.n_threads).docs

    def advance(self) -> None:
        super().advance()
        if self.exhausted:
            self._use_next_stage()

    def remaining(self, values: Sequence[float]) -> float:
        """Return the decrease of a loss in the last ten iterations in percent, or the possible gain of a likelihood.

        The decrease of the last ten is estimated from fewer at first. An exhausted run would leave the loss as it is.
        """
        if self._problem.model.loss.is_likelihood:
            return super().remaining(values)
        recent = values[-_WINDOW - 1 :]
        decrease = (recent[-1] - recent[0]) * _WINDOW / (len(recent) - 1)
        scale = max(-values[-1], -_LEAST_SHARE * values[0])
        return 0.0 if self.exhausted or scale <= 0 else 100 * decrease / scale

    def _use_next_stage(self) -> None:
        """Continue from the same point with a closer majorizer, if the loss has one."""
        model = self._problem.model
        stage = model.loss.next_stage
        if stage is not None:
            self._problem = self._problem._replace(model=replace(model, loss=stage))
            self._evaluate = self._method(self._problem)
            self._accept(self._evaluate(self.point))
            self.exhausted = False


def _has_free_scale(problem: FitProblem) -> bool:
    """Return whether the rows of the documents' factor may have any sum."""
    return problem.model.free_scale or problem.corpus.entries is not None


def scaled_start(corpus: MemoryCorpus, theta: Array) -> Array:
    """Return the factor of the documents whose rows sum to their tokens, from P(z|d)."""
    return np.asarray(theta * corpus.totals[:, np.newaxis].astype(theta.dtype))


def _with_sums(problem: FitProblem) -> Callable[..., Unnormalized]:
    """Return the function that gives two factors the sums of PLSA: tokens for the documents, one for the topics."""
    totals = problem.corpus.totals[:, np.newaxis]

    def normalized(docs: Array, words: Array) -> Unnormalized:
        sums = docs.sum(axis=1, dtype=np.float64, keepdims=True)
        scale = np.divide(totals, sums, out=np.zeros_like(sums), where=sums > 0)
        return Unnormalized((docs * scale).astype(docs.dtype), Unnormalized(docs, words).phi)

    return normalized


def _majorize(problem: FitProblem) -> Evaluate:
    """Return the function that evaluates a point by majorization-minimization."""
    model, corpus = problem
    sums = LossSums(
        model.loss, corpus.counts, model.n_topics, n_threads=corpus.n_threads, weights=corpus.weights,
        entries=corpus.entries,
    )  # fmt: skip
    powers, free, penalized = model.loss.powers, _has_free_scale(problem), model.loss.penalized

    def evaluate(point: Unnormalized) -> EvaluatedPoint[Unnormalized]:
        docs, words = point
        losses, terms = sums.docs(docs, words)
        report: Any = LossReport(corpus.total_log(losses))
        if penalized is not None:
            report = LossReport(report.loss + penalized.value(docs, words, corpus.weights))
            docs = multiplied(docs, terms, powers, penalty=penalized.docs)
            words = multiplied(words, sums.words(docs, words), powers, penalty=penalized.words)
            return EvaluatedPoint(point, report, _balanced(penalized, Unnormalized(docs, words), corpus))
        if free:
            docs, doc_terms = multiplied(docs, terms, powers, n_threads=corpus.n_threads), terms
            terms = sums.words(docs, words)
            if model.loss.is_likelihood:
                report = _weighted_report(corpus, sums, losses, doc_terms, terms, point)
            words = multiplied(words, terms, powers, n_threads=corpus.n_threads)
            return EvaluatedPoint(point, report, Unnormalized(docs, words).rescaled(corpus.n_threads))
        docs = constrained(docs, terms, powers, corpus.totals)
        terms = sums.words(docs, words)
        by_topic = Terms(terms.numerators.T, terms.denominators.T)
        words = constrained(words.T, by_topic, powers, np.ones(words.shape[1])).T
        return EvaluatedPoint(point, report, Unnormalized(docs, np.ascontiguousarray(words)))

    return evaluate


def _balanced(penalized: Penalized, point: Unnormalized, corpus: MemoryCorpus) -> Unnormalized:
    """Return factors with the same product and the smallest penalties."""
    docs, words = point
    scale = penalized.best_scales(docs, words, corpus.weights)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    return Unnormalized((docs * scale).astype(docs.dtype), (words * inverse).astype(words.dtype))


def _weighted_report(
    corpus: MemoryCorpus, sums: LossSums, losses: Floats, doc_terms: Terms, word_terms: Terms, point: Unnormalized
) -> WeightedReport:
    """Return the report of a point of a fit of entries with weights, from the sums at this point."""
    expected = np.einsum("dk,dk->d", point.docs, doc_terms.denominators, dtype=np.float64)
    logs = sums.constants + expected - losses  # sum y log q
    filled = corpus.totals > 0
    logs[filled] -= corpus.totals[filled] * np.log(expected[filled])
    doc_gain = duality_gap(doc_terms.numerators, doc_terms.denominators, point.docs, corpus.totals)
    word_gain = duality_gap(word_terms.numerators, word_terms.denominators, point.words, corpus.word_totals)
    gain = corpus.total_log(doc_gain) + float(word_gain.sum())
    tokens = corpus.tokens
    return WeightedReport(corpus.total_log(losses) / tokens, corpus.total_log(logs) / tokens, max(gain, 0.0) / tokens)


def _descend(passes: int, problem: FitProblem) -> Evaluate:
    """Return the function that evaluates a point by coordinate descent on the squared loss."""
    model, corpus = problem
    counts, weights, n_threads, entries = corpus.counts, corpus.weights, corpus.n_threads, corpus.entries
    settings = {"n_topics": model.n_topics, "passes": passes, "enough": 0.0, "n_threads": n_threads}
    penalized = model.loss.penalized
    if entries is None and penalized is None and counts.is_sparse:
        return _descend_sparse(corpus, settings)
    if entries is None:
        total = corpus.total_log(counts.squares)
    else:
        sums = LossSums(model.loss, counts, model.n_topics, n_threads=n_threads, entries=entries)
        total = corpus.total_log(sums.constants)
        by_doc_weight, by_word_weight = (largest[:, np.newaxis] for largest in entries.largest)
    width = padded_width(model.n_columns)
    by_doc, by_word = (aligned_empty((size, width), np.float64) for size in (counts.n_docs, counts.n_words))

    def evaluate(point: Unnormalized) -> EvaluatedPoint[Unnormalized]:
        docs, words = point
        products, G = counts.multiply(words, n_threads=n_threads, memory=by_doc), gram(words, n_threads=n_threads)
        cross = corpus.total_log(np.einsum("dk,dk->d", docs, products))
        if entries is None:
            explained = inner(G, gram(docs, weights, n_threads=n_threads))
        else:
            fitted = entries.fitted_over_words(docs, words, n_threads=n_threads)
            explained = corpus.total_log(np.einsum("dk,dk->d", docs, fitted))
            products = docs @ G + (products - fitted) / by_doc_weight
        report = LossReport(max(total - 2 * cross + explained, 0.0) / 2)
        if penalized is not None:
            report = LossReport(report.loss + penalized.value(docs, words, weights))
            products, G = with_penalty(products, G, penalized.docs)
        docs = least_squares_rows(docs, products, G, **settings)
        products = counts.multiply_transpose(docs, n_threads=n_threads, weights=weights, memory=by_word)
        G = gram(docs, weights, n_threads=n_threads)
        if penalized is not None:
            products, G = with_penalty(products, G, penalized.words)
            words = least_squares_rows(words, products, G, **settings)
            return EvaluatedPoint(point, report, _balanced(penalized, Unnormalized(docs, words), corpus))
        if entries is not None:
            fitted = entries.fitted_over_docs(docs, words, weights, n_threads=n_threads)
            products = words @ G + (products - fitted) / by_word_weight
        words = least_squares_rows(words, products, G, **settings)
        return EvaluatedPoint(point, report, Unnormalized(docs, words).rescaled(n_threads))

    return evaluate


def _descend_sparse(corpus: MemoryCorpus, settings: dict[str, Any]) -> Evaluate:
    """Return the same function for sparse data without weights of entries, without arrays for the products."""
    by_doc, weights, n_threads = corpus.counts.sparse(), corpus.weights, corpus.n_threads
    total = corpus.total_log(by_doc.squares)

    def evaluate(point: Unnormalized) -> EvaluatedPoint[Unnormalized]:
        docs, words = point
        G = gram(words, n_threads=n_threads)
        explained = inner(G, gram(docs, weights, n_threads=n_threads))
        crosses = np.empty(by_doc.n_docs)
        docs = by_doc.least_squares(docs, words, G, crosses=crosses, **settings)
        report = LossReport(max(total - 2 * corpus.total_log(crosses) + explained, 0.0) / 2)
        G = gram(docs, weights, n_threads=n_threads)
        words = by_doc.transposed(weights).least_squares(words, docs, G, **settings)
        return EvaluatedPoint(point, report, Unnormalized(docs, words).rescaled(n_threads))

    return evaluate
