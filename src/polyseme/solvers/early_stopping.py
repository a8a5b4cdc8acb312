"""Early stopping: a fit ends when held-out tokens stop becoming more probable.

Either documents or tokens are held out. Held-out documents are folded in with the topics of each iteration, as new
documents are. Held-out tokens of the training documents are scored with the weights of the fit; these overfit the few
tokens of a document long before the topics do, so the fit ends too early for new documents.

The score is the mean log-probability of a held-out token. A little of the unigram is mixed in, because otherwise a
single zero would make the score -inf. Words that do not occur in the training tokens are not scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyseme.core.fold_in import fold_in
from polyseme.core.model import topic_use
from polyseme.core.shard import split_in_parts, split_tokens
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, inner
from polyseme.solvers.base import Auto, FitProblem, MakeStart, Requirement, Solver, SolverRun
from polyseme.utils import as_seed


@dataclass(frozen=True)
class EarlyStopping(Solver):
    """Early stopping of a fit by the probability of held-out tokens.

    The result is the best point after the start, also if Ctrl-C or `max_iter` ends the fit. The start is never the
    result, because it was computed from the word frequencies of all documents, the held-out words included.

    Parameters
    ----------
    held_out : float, default=0.1
        Share of the tokens of every document that is held out, if `folds` is 1.
    folds : int, default=5
        Number of folds. With 2 or more, one fit per fold runs without the tokens or documents of that fold, in step
        with the fit on all documents, which ends where the mean score of the folds is best.
    by : {"documents", "words"}, default="documents"
        What a fold holds out: documents, which are folded in on half of their tokens and scored on the other half
        (chapter 6 of the thesis), or a part of the tokens of every document. "documents" needs 2 folds or more.
        "words" predicts other words of the training documents; the fit then ends too early for new documents.
    patience : int, default=5
        Iterations without improvement after which the fit ends. They count from the first improvement on the first
        iteration: topics that are nearly equal can get worse for some iterations first.
    smoothing : float, default=0.01
        Weight of the unigram in the held-out probability.
    random_state : int, RandomState or Generator, default=0
        Seed of the choice of held-out tokens or documents.
    solver : Solver or None, default=None
        Solver that is stopped. None: the solver of the estimator.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.solvers import EarlyStopping
    >>> X = synthetic_corpus(100, n_topics=3, n_words=50, random_state=0).counts()
    >>> PLSA(3, early_stopping=EarlyStopping(held_out=0.2, patience=3), random_state=0).fit(X).components_.shape
    (3, 50)
    """

    name: ClassVar[str] = "early-stopping"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.IN_MEMORY})
    holds_out: ClassVar[bool] = True
    held_out: float = 0.1
    folds: int = 5
    by: str = "documents"
    patience: int = 5
    smoothing: float = 0.01
    random_state: int = 0
    solver: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "random_state", as_seed(self.random_state))

    @property
    def _label(self) -> str:
        return "early_stopping"

    @property
    def _inner(self) -> Solver:
        if self.solver is None:
            return Auto()
        if not isinstance(self.solver, Solver):
            raise InputError(
                "EarlyStopping: solver must be None or a solver object such as polyseme.solvers.Tempered(0.9), "
                f"got {self.solver!r}."
            )
        return self.solver

    def choose(self, problem: FitProblem) -> Solver:
        return replace(self, solver=self._inner.choose(problem))

    def check(self) -> None:
        if not 0 < self.held_out < 1 or not 0 < self.smoothing < 1:
            raise InputError("EarlyStopping: held_out and smoothing must each be between 0 and 1.")
        if self.patience < 1 or self.folds < 1:
            raise InputError("EarlyStopping: patience and folds must each be at least 1.")
        if self.by not in _FOLDS:
            raise InputError(f"EarlyStopping: by must be one of {', '.join(map(repr, _FOLDS))}, got {self.by!r}.")
        if self.by == "documents" and self.folds < 2:
            raise InputError("EarlyStopping: folds must be at least 2 with by='documents'.")

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        return self.begin_from(
            problem, lambda _, rows: (theta if rows is None else np.ascontiguousarray(theta[rows]), phi)
        )

    def begin_from(self, problem: FitProblem, start: MakeStart) -> SolverRun:
        def begun(part: HeldOut) -> tuple[HeldOut, SolverRun]:
            return part, self._inner.begin(problem._replace(corpus=part.corpus), *start(part.corpus, part.rows))

        if self.folds == 1:
            scored = begun(hold_out_tokens(problem.corpus, self.held_out, self.random_state, self.smoothing))
            return EarlyStoppingRun(scored[1], [scored], self.patience)
        parts = _FOLDS[self.by](problem.corpus, self.folds, self.random_state, self.smoothing)
        return EarlyStoppingRun(self._inner.begin_from(problem, start), list(map(begun, parts)), self.patience)


class EarlyStoppingRun(SolverRun):
    """A fit with early stopping. `main` gives the result; the `scored` fits decide when it ends."""

    def __init__(self, main: SolverRun, scored: list[tuple[HeldOut, SolverRun]], patience: int) -> None:
        self._main = main
        self._scored = scored
        self._patience = patience
        self._waited = 0
        self.held_out = [self._mean_score()]
        """Mean log-probability of a held-out token at the start and after every iteration."""
        self._values = [main.report.objective]
        self._best_score = -np.inf
        self._accept()

    @property
    def theta(self) -> Array:
        return self._best[0]

    @property
    def phi(self) -> Array:
        return self._best[1]

    @property
    def score(self) -> float:
        """Return the mean log-probability of a held-out token at the best point."""
        return self._best_score

    @property
    def attributes(self) -> dict[str, Array]:
        return {"held_out_": np.array(self.held_out)}

    def advance(self) -> None:
        runs = {id(run): run for run in (self._main, *(run for _, run in self._scored))}
        for run in runs.values():
            if not run.exhausted:
                run.advance()
        self.held_out.append(self._mean_score())
        self._values.append(self._main.report.objective)
        self._waited += 1
        if self.held_out[-1] > self._best_score:
            self._best_score, self._waited = self.held_out[-1], 0
            self._accept()
        self.exhausted = self._is_stopped or all(run.exhausted for run in runs.values())

    def remaining(self, values: Sequence[float]) -> float:
        """Return -infinity once held-out tokens have stopped the fit, else what the fit on all documents can gain."""
        return float("-inf") if self._is_stopped else self._main.remaining(self._values)

    @property
    def _is_stopped(self) -> bool:
        improved = self._best_score > self.held_out[1]
        return improved and self._waited >= self._patience

    def _mean_score(self) -> float:
        return float(np.mean([part.score(run) for part, run in self._scored]))

    def _accept(self) -> None:
        """Set the best point to the current one."""
        self.model, self.report = self._main.model, self._main.report
        self._best = self._main.theta, self._main.phi


class HeldOut(NamedTuple):
    """Counts that a fit sees, and the score of its current point on the rest."""

    corpus: MemoryCorpus
    score: Callable[[SolverRun], float]
    rows: Array | None
    """Documents of the corpus; None for all."""


def hold_out_tokens(corpus: MemoryCorpus, share: float, seed: int, smoothing: float) -> HeldOut:
    """Hold out a share of the tokens of every document."""
    return _held_out(corpus, split_tokens(corpus.by_doc, seed, share)[1], smoothing)


def token_folds(corpus: MemoryCorpus, n_folds: int, seed: int, smoothing: float) -> Iterator[HeldOut]:
    """Yield folds that hold out every token once."""
    for held_out in split_in_parts(corpus.by_doc, n_folds, seed):
        yield _held_out(corpus, held_out, smoothing)


def document_folds(corpus: MemoryCorpus, n_folds: int, seed: int, smoothing: float) -> Iterator[HeldOut]:
    """Yield folds that hold out every document once; it is folded in on half of its tokens and scored on the rest."""
    counts = corpus.by_doc
    if counts.n_docs < n_folds:
        raise UnsupportedError(f"{counts.n_docs} documents cannot be split into {n_folds} folds: use fewer folds.")
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


class TokenSplit(NamedTuple):
    """Tokens that a fit sees, and the score on the held-out tokens."""

    seen: MemoryCorpus
    mean_log: Callable[[Array, Array], float]
    """Mean log-probability of a held-out token, from operands whose products are P(w|d)."""


def without_tokens(corpus: MemoryCorpus, held_out: Floats, smoothing: float) -> TokenSplit:
    """Return the corpus without the held-out tokens (a count per non-zero of `corpus.by_doc`), and their score."""
    counts = corpus.by_doc
    observed, scored = counts.with_values(counts.values - held_out), counts.with_values(held_out)
    if not scored.values.size or not observed.values.size:
        raise UnsupportedError(
            "There are too few tokens to hold some out: use a solver that holds none out, such as 'em'."
        )
    seen = MemoryCorpus(observed, corpus.weights, corpus.n_threads)
    mean_log = _mean_log(seen, scored, corpus.weights, smoothing)
    return TokenSplit(seen, lambda A, B: mean_log(scored.products(A, B, n_threads=corpus.n_threads)))


_FOLDS = {"documents": document_folds, "words": token_folds}


def _held_out(corpus: MemoryCorpus, held_out: Floats, smoothing: float) -> HeldOut:
    seen, mean_log = without_tokens(corpus, held_out, smoothing)
    return HeldOut(seen, lambda run: mean_log(*run.model.probability_operands(run.theta, run.phi)), None)


def _folded_score(
    seen: MemoryCorpus, observed: SparseCounts, scored: SparseCounts, mean_log: Callable[[Array], float]
) -> Callable[[SolverRun], float]:
    """Return a function that folds held-out documents in on `observed` and scores them on `scored`."""

    def score(run: SolverRun) -> float:
        model, topics = run.model, np.ascontiguousarray(run.phi[:, : run.model.n_topics].T)
        if model.background is not None and model.background.joint:
            use = topic_use(model, seen, run.theta, run.phi)
            model = replace(model, topic_share=1 - use.background / seen.tokens)
        folded = fold_in(model, observed, topics, None, n_threads=seen.n_threads)
        operands = model.token_operands(folded.doc_topic, topics, folded.background)
        return mean_log(scored.products(*operands, n_threads=seen.n_threads))

    return score


def _mean_log(
    seen: MemoryCorpus, scored: SparseCounts, weights: Floats | None, smoothing: float
) -> Callable[[Array], float]:
    """Return a function of p: mean log of (1 - smoothing) p + smoothing P(w) over the tokens `scored`, weighted."""
    if not seen.tokens > 0:
        raise UnsupportedError("Without the held-out documents no tokens are left to fit: leave early_stopping out.")
    base = seen.unigram[scored.indices]
    x = scored.values * (base > 0)
    if weights is not None:
        x = x * np.repeat(weights, np.diff(scored.indptr))
    total = float(x.sum())
    if not total > 0:
        raise UnsupportedError("The held-out words do not occur in the rest of the documents: use a smaller held_out.")

    def mean_log(p: Array) -> float:
        mixed = (1 - smoothing) * p.astype(np.float64) + smoothing * base
        return inner(x, np.log(mixed, out=np.zeros_like(mixed), where=base > 0)) / total

    return mean_log
