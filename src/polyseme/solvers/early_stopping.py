"""Data that a fit does not see, and how well it predicts them: what decides when a fit should end.

The score is the mean log-probability of a held-out token, with a little of the unigram mixed in, since a zero would
decide it; words that the fit does not see at all are left out.

Early stopping: a fit ends when it no longer gets better at words it does not see, and keeps the best point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyseme.core.fold_in import fold_in
from polyseme.core.holdout import split_in_parts, split_tokens
from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, inner
from polyseme.solvers.auto import Auto
from polyseme.solvers.base import Report, SolverRun


class HeldOut(NamedTuple):
    """What a fit may see, and the score of its present point on the rest."""

    corpus: MemoryCorpus
    score: Callable[[SolverRun], float]
    rows: Array | None
    """the documents that the corpus has; None for all"""


def hold_out_tokens(corpus: MemoryCorpus, share: float, seed: int, smoothing: float) -> HeldOut:
    """Holds out a share of every document's tokens."""
    return _without_tokens(corpus, split_tokens(corpus.by_doc, seed, share)[1], smoothing)


def token_folds(corpus: MemoryCorpus, n_folds: int, seed: int, smoothing: float) -> Iterator[HeldOut]:
    """Every token held out once."""
    for held_out in split_in_parts(corpus.by_doc, n_folds, seed):
        yield _without_tokens(corpus, held_out, smoothing)


def document_folds(corpus: MemoryCorpus, n_folds: int, seed: int, smoothing: float) -> Iterator[HeldOut]:
    """Every document held out once; half of its tokens give its topic weights, by folding in, and half are scored."""
    counts = corpus.by_doc
    if counts.n_docs < n_folds:
        raise UnsupportedError(f"{counts.n_docs} documents cannot be parted into {n_folds} folds: use fewer folds.")
    order = np.random.default_rng(seed).permutation(counts.n_docs)
    for part in np.array_split(order, n_folds):
        rows = np.setdiff1d(order, part)
        weights = None if corpus.weights is None else corpus.weights[rows]
        seen = MemoryCorpus(counts.take(rows), weights, corpus.n_threads)
        test = counts.take(np.sort(part))
        observed, scored = (test.with_values(values) for values in split_tokens(test, seed))
        test_weights = None if corpus.weights is None else corpus.weights[np.sort(part)]
        mean_log = _mean_log(seen, scored, test_weights, smoothing)
        yield HeldOut(seen, _folded_score(seen, observed, scored, mean_log), rows)


class PartedTokens(NamedTuple):
    """Some tokens of every document, the others, and how well these are predicted."""

    seen: MemoryCorpus
    mean_log: Callable[[Array, Array], float]
    """mean log-probability of the other tokens, from operands whose products are P(w|d)"""


def parted_tokens(corpus: MemoryCorpus, held_out: Floats, smoothing: float) -> PartedTokens:
    """The tokens without those held out (one number a non-zero of `source.by_doc`), and the score on these."""
    counts = corpus.by_doc
    observed, scored = counts.with_values(counts.values - held_out), counts.with_values(held_out)
    if not scored.values.size or not observed.values.size:
        raise UnsupportedError("There are too few tokens to hold some out: use a fixed beta, Tempered(beta), or EM.")
    seen = MemoryCorpus(observed, corpus.weights, corpus.n_threads)
    mean_log = _mean_log(seen, scored, corpus.weights, smoothing)
    return PartedTokens(seen, lambda A, B: mean_log(scored.products(A, B, n_threads=corpus.n_threads)))


def _without_tokens(corpus: MemoryCorpus, held_out: Floats, smoothing: float) -> HeldOut:
    seen, mean_log = parted_tokens(corpus, held_out, smoothing)
    return HeldOut(seen, lambda run: mean_log(*run.model.probability_operands(run.theta, run.phi)), None)


def _folded_score(
    seen: MemoryCorpus, observed: SparseCounts, scored: SparseCounts, mean_log: Callable[[Array], float]
) -> Callable[[SolverRun], float]:
    def score(run: SolverRun) -> float:
        topics = np.ascontiguousarray(run.phi[:, : run.model.n_topics].T)
        folded = fold_in(run.model, observed, topics, None, n_threads=seen.n_threads)
        operands = run.model.token_operands(folded.doc_topic, topics, folded.background)
        return mean_log(scored.products(*operands, n_threads=seen.n_threads))

    return score


def _mean_log(
    seen: MemoryCorpus, scored: SparseCounts, weights: Floats | None, smoothing: float
) -> Callable[[Array], float]:
    """Mean log of (1 - smoothing) p + smoothing P(w) over the tokens `scored`, each with its document's weight."""
    base = seen.unigram[scored.indices]
    x = scored.values * (base > 0)
    if weights is not None:
        x = x * np.repeat(weights, np.diff(scored.indptr))
    total = float(x.sum())
    if not total > 0:
        raise UnsupportedError("The held-out words do not occur in the rest of the documents: hold out fewer.")

    def mean_log(p: Array) -> float:
        mixed = (1 - smoothing) * p.astype(np.float64) + smoothing * base
        return inner(x, np.log(mixed, out=np.zeros_like(mixed), where=base > 0)) / total

    return mean_log


_WAYS = {"words": token_folds, "documents": document_folds}


@dataclass(frozen=True)
class EarlyStopping:
    """Ends a fit when held-out tokens have not become more probable for `patience` iterations.

    held_out : the share of every document's tokens that the fit does not see (with one fold).
    folds : 1, or the number of folds of a cross-validation: then so many fits, each without one fold, run beside the
        one on all documents, which ends when the mean over the folds is at its best.
    by : what a fold holds out, "words" (a part of the tokens of every document) or "documents" (folded in on half of
        their tokens and scored on the other half; thesis ch. 6), which needs two folds or more.
    patience : iterations without improvement. They count from the first improvement on the start: topics that begin
        nearly alike, above all at a low temperature, get worse for some iterations before they get better.
    smoothing : the share of the unigram in the held-out probabilities.
    seed : of the tokens or documents held out.
    solver : whose iterations these are; None for the estimator's own.

    The run's point is the best so far, also when Ctrl-C or max_iter ends it.
    """

    name: ClassVar[str] = "early-stopping"
    holds_out: ClassVar[bool] = True
    held_out: float = 0.1
    folds: int = 1
    by: str = "words"
    patience: int = 5
    smoothing: float = 0.01
    seed: int = 0
    solver: Any = None

    def begin(self, model: Model, corpus: MemoryCorpus, theta: Array, phi: Array) -> SolverRun:
        if not 0 < self.held_out < 1 or not 0 < self.smoothing < 1:
            raise InputError("held_out and smoothing must each be between 0 and 1.")
        if self.patience < 1 or self.folds < 1:
            raise InputError("patience and folds must each be at least 1.")
        if self.by not in _WAYS:
            raise InputError(f"by must be one of {', '.join(map(repr, _WAYS))}, got {self.by!r}.")
        if self.by == "documents" and self.folds < 2:
            raise InputError("EarlyStopping: folds must be at least 2 with by='documents'.")
        solver = Auto() if self.solver is None else self.solver
        if getattr(solver, "holds_out", False):
            raise UnsupportedError(f"solver={solver.name!r} stops by held-out words already: use it without.")
        if self.folds == 1:
            apart = hold_out_tokens(corpus, self.held_out, self.seed, self.smoothing)
            inner = solver.begin(model, apart.corpus, theta, phi)
            return EarlyStoppingRun(inner, [(apart, inner)], self.patience)
        watched = []
        for part in _WAYS[self.by](corpus, self.folds, self.seed, self.smoothing):
            start = theta if part.rows is None else np.ascontiguousarray(theta[part.rows])
            watched.append((part, solver.begin(model, part.corpus, start, phi)))
        return EarlyStoppingRun(solver.begin(model, corpus, theta, phi), watched, self.patience)


class EarlyStoppingRun:
    """`main` is the fit to keep, `watched` are the fits that are scored, each with what it does not see."""

    def __init__(self, main: SolverRun, watched: list[tuple[HeldOut, SolverRun]], patience: int) -> None:
        self._main = main
        self._watched = watched
        self._patience = patience
        self._waited = 0
        self.exhausted = False
        self.quality = self._score()
        self.held_out = [self.quality]
        """mean log-probability of a held-out token at the start and after every iteration"""
        self._keep()

    def advance(self) -> None:
        runs = {id(run): run for run in (self._main, *(run for _, run in self._watched))}
        moving = [run for run in runs.values() if not run.exhausted]
        for run in moving:
            run.advance()
        self.held_out.append(self._score())
        self._waited += 1
        if self.held_out[-1] > self.quality:
            self.quality, self._waited = self.held_out[-1], 0
            self._keep()
        begun = self.quality > self.held_out[0]
        self.exhausted = (begun and self._waited >= self._patience) or all(run.exhausted for run in runs.values())

    def _score(self) -> float:
        return float(np.mean([part.score(run) for part, run in self._watched]))

    def _keep(self) -> None:
        """Takes the present point as the best."""
        self.model: Model = self._main.model
        self.theta: Array = self._main.theta
        self.phi: Array = self._main.phi
        self.report: Report = self._main.report
