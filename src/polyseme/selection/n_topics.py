"""The number of topics that predicts best: fits for several numbers, compared on held-out documents.

Only the largest number is fitted from a random start. Each smaller number starts from the fit of the next larger one.
Random starts for all numbers would blur the curve: a fit of 40 topics from a random start may find 35 of them, and a
few more topics then seem to help. A fit with more topics than necessary finds all of them, and merging its
near-duplicates gives every smaller number a start from which it needs only a few iterations.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from polyseme.core.edits import merged_start
from polyseme.core.fitted import FittedTopics
from polyseme.errors import InputError
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import count_data
from polyseme.kernels import Array, Floats
from polyseme.metrics import coherence, stability, top_words
from polyseme.metrics.words import frame
from polyseme.printing import Printed, Table, decimal
from polyseme.selection.cross_validation import (
    COMPLETION,
    DocumentFold,
    DocumentScores,
    combine_scores,
    document_folds,
    score_documents,
    score_other_words,
    scored_topics,
)
from polyseme.selection.reading import (
    BETA,
    MAX_DOCUMENTS,
    Progress,
    ReadingChoice,
    reading_n_topics,
    sample_rows,
    sample_text,
)
from polyseme.solvers import Tempered
from polyseme.utils import RandomStateLike, as_seed, check_integer, check_share, effective_threads

VALUES = 10
"""Number of values that a long range is reduced to."""
_REFINED = 0.05
"""Refinement ends when the neighbors of the chosen number differ from it by at most this share."""
_DEFAULT_MAX = 100
_TOL = 3e-3
_NEGLIGIBLE = 0.01
"""A number of topics is as good as the best if it loses at most this share of the gain over the unigram."""
_SURE_ERRORS = 3.0
"""Standard errors above the unigram that count as structure. One is too few, because the best of ten fits is used."""
_MIN_GAIN = 1e-3
"""Smallest gain over the unigram, in nats per token, that is useful even if it is significant."""
_FLAT = 2.0
"""A curve is flat if the largest number that is as good as the best is this many times the smallest one."""
_NEAR = 2.0
"""Fits with numbers of topics within this factor of the best one are used to estimate how much starts differ."""


@dataclass(frozen=True)
class SelectionRow:
    """Scores of one number of topics. Scores are NaN if the number was tried only to read, or only to predict.

    Attributes
    ----------
    n_topics : int
        Number of topics.
    agreement : float
        Agreement of fits on parts of the documents about the topics of documents: 1 is perfect, 0 is chance.
    agreement_error : float
        Standard error of the agreement.
    perplexity : float
        Completion perplexity of the held-out documents, over the folds.
    standard_error : float
        Standard error of the perplexity.
    behind : float
        Nats per token by which the best number predicts better.
    behind_error : float
        Standard error of `behind`, over the same documents and, with two folds or more, over the starts.
    coherence : float
        NPMI coherence of the ten words shown for each topic, mean over topics and folds.
    stability : float
        Similarity of matched topics of different folds, 1 - total variation distance, mean over topics; NaN for one
        fold.
    aic : float
        Akaike information criterion 2 p - 2 L with the log-likelihood L and p = D (K - 1) + K (V - 1) parameters, for D
        documents, K topics and V words; lower is better.
    bic : float
        Bayesian information criterion p log N - 2 L for N tokens; lower is better.
    seconds : float
        Duration of the fits.
    """

    n_topics: int
    agreement: float = math.nan
    agreement_error: float = math.nan
    perplexity: float = math.nan
    standard_error: float = math.nan
    behind: float = math.nan
    behind_error: float = math.nan
    coherence: float = math.nan
    stability: float = math.nan
    aic: float = math.nan
    bic: float = math.nan
    seconds: float = math.nan


@dataclass(frozen=True, repr=False)
class Selection(Printed):
    """Result of `select_n_topics`: how many topics predict best, and how many are good to read.

    Attributes
    ----------
    chosen_to_predict : int
        Smallest number that predicts held-out words as well as the best one; 1 means that no structure was found.
    best : int
        Number with the lowest held-out perplexity.
    reason_to_predict : str
        Why `chosen_to_predict` was chosen, in a few sentences.
    reading : ReadingChoice or None
        The number to read, with its reason; None with ``reading=False``.
    rows : list of SelectionRow
        Scores of each number tried, in increasing order.
    unigram_perplexity : float
        Perplexity of the same held-out tokens without topics.
    fits : dict of int to FoldFits
        The fits of each number that was tried for prediction.
    """

    chosen_to_predict: int
    best: int
    reason_to_predict: str
    reading: ReadingChoice | None
    rows: list[SelectionRow]
    unigram_perplexity: float
    fits: dict[int, FoldFits] = field(repr=False, compare=False)

    @property
    def chosen_to_read(self) -> int | None:
        """Number of topics that is good to read; 1 means that no structure was found, None that it was not chosen."""
        return None if self.reading is None else self.reading.chosen

    @property
    def reason(self) -> str:
        """Why these numbers were chosen: a line for the number to read, and one for the number that predicts best."""
        return "\n".join([*([] if self.reading is None else [self.reading.reason]), self.reason_to_predict])

    @property
    def structured(self) -> bool:
        """Whether topics predict held-out words, and words from other words, better than the unigram."""
        return self.chosen_to_predict > 1

    @property
    def table(self) -> Any:
        """The rows as a polars data frame, or a pandas data frame if polars is not installed."""
        names = list(SelectionRow.__dataclass_fields__)
        return frame({name: [getattr(row, name) for row in self.rows] for name in names})

    def _printed_table(self) -> Table:
        agreement = {} if self.reading is None else {row.n_topics: row.agreement for row in self.reading.rows}
        perplexity = {row.n_topics: row.perplexity for row in self.rows}
        rows = [
            (str(n), decimal(perplexity.get(n, math.nan), 1), decimal(agreement.get(n, math.nan), 3), self._mark(n))
            for n in sorted({*perplexity, *agreement})
        ]
        return Table(self.reason, ("topics", "held-out perplexity", "agreement of fits", ""), rows)

    def _mark(self, n_topics: int) -> str:
        """Return what a number of topics was chosen for."""
        chosen = {"to read": self.chosen_to_read, "to predict": self.chosen_to_predict}
        return ", ".join(purpose for purpose, number in chosen.items() if number == n_topics)

    def as_dict(self) -> dict[str, Any]:
        """Return everything except the fits as numbers, lists and strings for JSON.

        Returns
        -------
        dict
            The fields by name; None for undefined numbers.
        """
        return {
            "chosen_to_read": self.chosen_to_read,
            "chosen_to_predict": self.chosen_to_predict,
            "best": self.best,
            "structured": self.structured,
            "reason_to_read": None if self.reading is None else self.reading.reason,
            "reason_to_predict": self.reason_to_predict,
            "interval_to_read": None if self.reading is None else list(self.reading.interval),
            "unigram_perplexity": self.unigram_perplexity,
            "rows": [
                {name: None if value != value else value for name, value in vars(row).items()} for row in self.rows
            ],
        }


def select_n_topics(
    X: Any,
    n_topics: Iterable[int] | None = None,
    *,
    estimator: Any = None,
    n_folds: int = 5,
    folds_run: int = 2,
    smoothing: float = 0.01,
    refine: bool = True,
    warm_iterations: int = 10,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    max_documents: int | None = None,
    reading: bool = True,
    progress: Progress | None = None,
) -> Selection:
    """Choose the number of topics that predicts held-out documents best, and the number that is good to read.

    `reading_n_topics` chooses the number to read from numbers of its own, whatever `n_topics` is.

    Prediction is judged by the completion perplexity of held-out documents. All numbers use the same folds and the same
    held-out halves, and differences are taken by document, so their standard errors are much smaller than those of the
    perplexities. Each fold has its own start, and the standard errors include the variation between folds that exceeds
    the variation between documents. The weights of held-out documents are estimated under the prior that the model has
    learned, so that short documents can be scored. The chosen number is the smallest one that the best number does not
    beat by more than one standard error of their difference, or by more than 1% of its gain over the unigram. It is 1
    ("no structure") if the best number does not beat the unigram by more than three standard errors and 0.001 nats, or
    if no number predicts the words of a document from its other words better than the unigram, by more than three
    standard errors. Documents that only repeat their words pass the first test, but not the second one.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    n_topics : iterable of int, default=None
        Numbers to try. A `range` of more than 20 numbers is reduced to 10 that increase by a constant factor. None
        tries numbers from 2 to about 2 sqrt(n_documents).
    estimator : estimator, default=None
        PLSA, LDA or NMF. None uses PLSA by tempered EM with beta = 0.85. Its topics overfit less, so that the minimum
        of the curve is nearer to the true number than with plain maximum likelihood.
    n_folds : int, default=5
        Number of folds of the documents.
    folds_run : int, default=2
        Number of folds that are held out and scored. With one fold the variation between starts is unknown, and the
        standard errors do not include it.
    smoothing : float, default=0.01
        Weight of the unigram in the held-out probabilities.
    refine : bool, default=True
        Whether to try numbers between the chosen number and its neighbors until the neighbors are within 5% of it.
    warm_iterations : int, default=10
        Maximum number of iterations of a fit that starts from a larger one. The largest fit uses `max_iter` of the
        estimator.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    random_state : int, RandomState or Generator, default=0
        Seed of the folds, and of the fits of the default estimator.
    max_documents : int, default=None
        Use at most this many documents, drawn at random. None uses all to predict, and at most 5,000 to read.
    reading : bool, default=True
        Whether to choose the number to read as well.
    progress : callable, default=None
        Called with (fits done, fits expected, description).

    Returns
    -------
    Selection
        The chosen numbers, the reasons, and the scores of all numbers.

    Examples
    --------
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.selection import select_n_topics
    >>> X = synthetic_corpus(300, n_topics=3, n_words=60, random_state=0).counts()
    >>> selection = select_n_topics(X, [1, 2, 3, 6], reading=False)
    >>> selection.chosen_to_predict
    3
    """
    random_state = as_seed(random_state)
    estimator = _checked_estimator(estimator, n_jobs, random_state)
    X = count_data(clone(estimator), X, reset=True)
    everything = X
    if max_documents is not None:
        X = sample_rows(X, check_integer("max_documents", max_documents, least=2), random_state)
    values = _values_to_try(n_topics, X.shape)
    folds_run = check_integer("folds_run", folds_run, least=1)
    folds = document_folds(X.shape[0], n_folds, random_state)[:folds_run]
    warm_iterations = check_integer("warm_iterations", warm_iterations, least=1)
    path = TopicPath(
        estimator,
        X,
        folds,
        smoothing=check_share("smoothing", smoothing),
        seed=random_state,
        warm_iterations=warm_iterations,
    )
    _fit_path(path, [value for value in values if value > 1] or [2], refine, progress)
    scores = next(iter(path.fitted.values())).scores
    if not scores.tokens.sum() > 0:
        raise InputError("The held-out documents share no word with the others: use more or longer documents.")
    fits = {1: unigram_fit(X, folds, scores), **path.fitted}
    tried = sorted(fits if 1 in values else path.fitted)
    selection = _choice(fits, tried, path, X)
    sample = sample_text(X.shape[0], everything.shape[0])
    selection = replace(selection, reason_to_predict=selection.reason_to_predict + sample)
    if not reading:
        return selection
    before = len(path.fitted)
    choice = reading_n_topics(
        everything, max_documents=min(max_documents or MAX_DOCUMENTS, MAX_DOCUMENTS), n_jobs=n_jobs,
        random_state=random_state, structured=selection.structured,
        progress=None if progress is None else lambda done, most, what: progress(before + done, before + most, what),
    )  # fmt: skip
    return replace(selection, reading=choice, rows=_joined_rows(selection.rows, choice))


def _joined_rows(rows: list[SelectionRow], choice: ReadingChoice) -> list[SelectionRow]:
    """Return a row for each number of topics that was tried to predict or to read."""
    by_number = {row.n_topics: row for row in rows}
    for row in choice.rows:
        known = by_number.get(row.n_topics, SelectionRow(row.n_topics))
        by_number[row.n_topics] = replace(known, agreement=row.agreement, agreement_error=row.agreement_error)
    return [by_number[number] for number in sorted(by_number)]


def spread_values(least: int, largest: int, n_values: int = VALUES) -> list[int]:
    """Return about `n_values` integers from `least` to `largest` that increase by a constant factor."""
    least, largest = (
        check_integer("the smallest number", least, least=1),
        check_integer("the largest number", largest, least=1),
    )
    if largest < least:
        raise InputError(f"The range of numbers of topics is empty: {largest} is less than {least}.")
    return sorted({round(float(value)) for value in np.geomspace(least, largest, n_values)})


def default_values(n_documents: int, n_words: int) -> list[int]:
    """Return numbers from 2 to 2 sqrt(n_documents), at most 100 and below the numbers of documents and words."""
    largest = min(max(10, round(2 * n_documents**0.5)), _DEFAULT_MAX, n_documents - 1, n_words - 1)
    return spread_values(2, max(2, largest))


def default_estimator(n_jobs: int | None, random_state: int, max_iter: int = 100) -> PLSA:
    """Return the PLSA by tempered EM that `select_n_topics` uses by default."""
    return PLSA(solver=Tempered(BETA), max_iter=max_iter, tol=_TOL, n_jobs=n_jobs, random_state=random_state)


def _checked_estimator(estimator: Any, n_jobs: int | None, random_state: int) -> Any:
    if estimator is None:
        return default_estimator(n_jobs, random_state)
    parameters = estimator.get_params(deep=False) if isinstance(estimator, BaseEstimator) else {}
    if not {"n_components", "init", "max_iter"} <= set(parameters):
        raise InputError("estimator must be a topic model such as PLSA(), with n_components, init and max_iter.")
    estimator = clone(estimator)
    return estimator if n_jobs is None else estimator.set_params(n_jobs=n_jobs)


def _values_to_try(n_topics: Iterable[int] | None, shape: tuple[int, int]) -> list[int]:
    if n_topics is None:
        return default_values(*shape)
    if isinstance(n_topics, range) and len(n_topics) > 2 * VALUES:
        values = spread_values(min(n_topics), max(n_topics))
    else:
        values = sorted({check_integer("a number of topics", value, least=1) for value in n_topics})
    if not values:
        raise InputError("n_topics is empty: give at least one number of topics.")
    return values


@dataclass(frozen=True)
class FoldFits:
    """Fits with one number of topics, one for each fold."""

    n_topics: int
    scores: DocumentScores
    """Scores of the documents of all folds."""
    fold_scores: list[DocumentScores]
    """Scores of the documents of each fold."""
    components: list[Array]
    """P(w|z) of each fold."""
    words: list[Array]
    """Columns of the ten words shown for each topic, of each fold."""
    log_likelihood: float
    """Training log-likelihood in nats, mean over the folds."""
    aic: float
    bic: float
    seconds: float = field(compare=False)


class OtherWordsGain(NamedTuple):
    """Gain over the unigram in predicting words of a document from its other words, in nats per token."""

    gain: float
    error: float
    n_topics: int

    @property
    def sure(self) -> bool:
        """Whether the gain is significant. It need not be large, because topics have a small share in it."""
        return self.gain > _SURE_ERRORS * self.error


class TopicPath:
    """Fits of one estimator on shared folds, from the largest number of topics to smaller ones.

    `warm_iterations` is the maximum number of iterations of a fit that starts from a larger one.
    """

    def __init__(
        self, estimator: Any, X: Any, folds: list[DocumentFold], *, smoothing: float, seed: int, warm_iterations: int
    ) -> None:
        self._estimator = estimator
        self._X = X
        self._folds = folds
        self._smoothing = smoothing
        self._seed = seed
        self._warm_iterations = warm_iterations
        self._starts: dict[int, list[tuple[FittedTopics, Array]]] = {}
        self.fitted: dict[int, FoldFits] = {}

    def fit(self, n_topics: int) -> FoldFits:
        """Fit and score `n_topics`, starting from the next larger number that was fitted."""
        started = perf_counter()
        larger = min((known for known in self._starts if known > n_topics), default=None)
        models = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # these fits need not converge
            for i, fold in enumerate(self._folds):
                start = None if larger is None else self._starts[larger][i]
                models.append(self._warm_start(n_topics, start, i).fit(self._X[fold.train]))
        fits = [scored_topics(model) for model in models]
        # A start does not need word_documents, which is as large as the topics.
        self._starts[n_topics] = [
            (replace(fitted, word_documents=None), model._training.doc_topic)
            for fitted, model in zip(fits, models, strict=True)
        ]
        fold_scores = [
            score_documents(model, self._X[fold.test], COMPLETION, smoothing=self._smoothing, seed=self._seed)
            for model, fold in zip(models, self._folds, strict=True)
        ]
        tokens = np.array([fitted.n_tokens for fitted in fits])
        logs = np.array([model.log_likelihood_ for model in models]) * tokens
        parameters = np.array(
            [_free_parameters(fitted, len(fold.train)) for fitted, fold in zip(fits, self._folds, strict=True)]
        )
        self.fitted[n_topics] = FoldFits(
            n_topics,
            combine_scores(fold_scores, [fold.test for fold in self._folds]),
            fold_scores,
            [fitted.topic_word for fitted in fits],
            [top_words(fitted) for fitted in fits],
            float(logs.mean()),
            float((2 * parameters - 2 * logs).mean()),
            float((parameters * np.log(tokens) - 2 * logs).mean()),
            perf_counter() - started,
        )
        return self.fitted[n_topics]

    def other_words_gain(self) -> OtherWordsGain:
        """Return the gain of the smallest number of topics for which it is sure, or the largest gain if none is."""
        gains = []
        n_threads = effective_threads(self._estimator.n_jobs)
        for n_topics in sorted(self._starts):
            scores = [
                score_other_words(fitted, self._X[fold.test], seed=self._seed, n_threads=n_threads)
                for (fitted, _), fold in zip(self._starts[n_topics], self._folds, strict=True)
            ]
            combined = combine_scores(scores, [fold.test for fold in self._folds])
            gains.append(OtherWordsGain(*combined.gain_over_unigram(), n_topics))
            if gains[-1].sure:
                return gains[-1]
        return max(gains)

    def _warm_start(self, n_topics: int, larger: tuple[FittedTopics, Array] | None, fold: int) -> Any:
        """Return the estimator for `n_topics`, with merged topics and weights of a larger fit as its start.

        The largest fit has a random start, with another seed in each fold.
        """
        model = clone(self._estimator).set_params(n_components=n_topics)
        if larger is None:
            seed = model.random_state
            return model.set_params(random_state=seed + fold) if isinstance(seed, int | np.integer) else model
        fitted, weights = larger
        start = merged_start(topic_counts(fitted), weights, n_topics)
        most = self._warm_iterations if model.max_iter is None else min(self._warm_iterations, model.max_iter)
        return model.set_params(init=start, n_init=1, max_iter=most)


def _free_parameters(fitted: FittedTopics, n_documents: int) -> int:
    """Return the number of parameters: K - 1 weights per document, and K distributions over the words that occur."""
    n_words = int(np.count_nonzero(fitted.unigram))
    return n_documents * (fitted.n_topics - 1) + fitted.n_topics * (n_words - 1)


def unigram_fit(X: Any, folds: list[DocumentFold], scores: DocumentScores) -> FoldFits:
    """Return the fit of one topic, which is the unigram."""
    started = perf_counter()
    logs, parameters, tokens, components = [], [], [], []
    for fold in folds:
        totals = np.asarray(X[fold.train].sum(axis=0), dtype=np.float64).ravel()
        seen: Floats = totals[totals > 0]
        tokens.append(seen.sum())
        logs.append(float((seen * np.log(seen / seen.sum())).sum()))
        parameters.append(seen.size - 1)
        components.append(totals[np.newaxis] / totals.sum())
    n, L, p = np.array(tokens), np.array(logs), np.array(parameters)
    return FoldFits(
        1,
        replace(scores, logs=scores.unigram_logs),
        [],
        components,
        [top_words(unigram) for unigram in components],
        float(L.mean()),
        float((2 * p - 2 * L).mean()),
        float((p * np.log(n) - 2 * L).mean()),
        perf_counter() - started,
    )


def topic_counts(fitted: FittedTopics) -> Floats:
    """Return the expected counts n P(z) P(w|z) of the words in each topic (K x words)."""
    tokens = np.asarray(fitted.topic_weights * fitted.n_tokens)
    return np.asarray(fitted.topic_word.astype(np.float64) * tokens[:, np.newaxis])


def _fit_path(path: TopicPath, values: list[int], refine: bool, progress: Progress | None) -> None:
    """Fit the values from largest to smallest, then values between the one to choose and its neighbors."""

    def fit_values(batch: list[int], what: str) -> None:
        for value in sorted(batch, reverse=True):
            if progress is not None:
                progress(len(path.fitted), expected, f"{what} {value} topics")
            path.fit(value)

    expected = len(values) + (4 if refine else 0)
    fit_values(values, "fitting")
    while refine:
        between = _values_between(path)
        if not between:
            break
        expected = max(expected, len(path.fitted) + len(between))
        fit_values(between, "refining,")
    if progress is not None:
        progress(len(path.fitted), len(path.fitted), "done")


def _values_between(path: TopicPath) -> list[int]:
    """Return the geometric means of the gaps next to the value to choose that are wider than 5% of this value."""
    known = sorted(path.fitted)
    chosen = _compare(path.fitted, known).least
    at = known.index(chosen)
    around = known[max(0, at - 1) : at + 2]
    wide = [(low, high) for low, high in pairwise(around) if high - low > max(1, _REFINED * chosen)]
    return [round((low * high) ** 0.5) for low, high in wide]


class _Comparison(NamedTuple):
    """Comparison of all numbers with the best one. Each difference has a standard error, over documents and starts."""

    best: int
    least: int
    behind: dict[int, tuple[float, float]]
    over_unigram: tuple[float, float]


def start_variance(fits: Iterable[FoldFits]) -> float:
    """Return the variance over starts of the difference between two fits, as a mean over all pairs of fits.

    The difference between two numbers of topics varies from fold to fold because of the scored documents and because of
    the start (and of the training documents, which differ, too). The variance over folds minus the variance over
    documents is the variance over starts.
    """
    excess = []
    for one, other in combinations(fits, 2):
        pairs = [a.gain_over(b) for a, b in zip(one.fold_scores, other.fold_scores, strict=True)]
        if len(pairs) > 1:
            differences, errors = np.transpose(pairs)
            excess.append(np.var(differences, ddof=1) - np.mean(errors**2))
    return max(0.0, float(np.mean(excess))) if excess and np.isfinite(excess).all() else 0.0


def _compare(fits: dict[int, FoldFits], tried: list[int]) -> _Comparison:
    best = max(tried, key=lambda value: fits[value].scores.mean)
    top = fits[best].scores
    # numbers far from the best differ by more than starts do
    near = [fits[value] for value in tried if value > 1 and best <= _NEAR * value and value <= _NEAR * best]
    variance = start_variance(near) / max(1, len(fits[best].fold_scores))

    def with_starts(difference: tuple[float, float]) -> tuple[float, float]:
        return difference[0], float(np.hypot(difference[1], np.sqrt(variance)))

    behind = {value: (0.0, 0.0) if value == best else with_starts(top.gain_over(fits[value].scores)) for value in tried}
    over_unigram = with_starts(top.gain_over_unigram())
    enough = _NEGLIGIBLE * over_unigram[0]
    least = min(value for value, (loss, error) in behind.items() if value == best or loss <= max(error, enough))
    return _Comparison(best, least, behind, over_unigram)


def _choice(fits: dict[int, FoldFits], tried: list[int], path: TopicPath, X: Any) -> Selection:
    """Return the choice among `tried`, or 1 if topics do not beat the unigram in both tests."""
    comparison = _compare(fits, tried)
    top = fits[comparison.best].scores
    chosen, reason = 1, _no_structure(comparison, top)
    gain, error = comparison.over_unigram
    if gain > max(_SURE_ERRORS * error, _MIN_GAIN):
        other_words = path.other_words_gain()
        if other_words.sure:
            chosen, reason = comparison.least, _reason(comparison.least, comparison, top)
        else:
            reason = _only_repetitions(other_words)
    behind = {1: top.gain_over(fits[1].scores), **comparison.behind}
    return Selection(
        chosen,
        comparison.best,
        reason,
        None,
        [_row(fits[value], behind[value], X) for value in sorted({*tried, chosen})],
        top.unigram_perplexity,
        fits,
    )


def _row(fit: FoldFits, behind: tuple[float, float], X: Any) -> SelectionRow:
    return SelectionRow(
        fit.n_topics,
        perplexity=fit.scores.perplexity,
        standard_error=fit.scores.perplexity_error,
        behind=behind[0],
        behind_error=behind[1],
        coherence=float(np.mean([coherence(words, X).mean for words in fit.words])),
        stability=stability(fit.components[0], fit.components[1:]).mean if len(fit.components) > 1 else math.nan,
        aic=fit.aic,
        bic=fit.bic,
        seconds=fit.seconds,
    )


def _error_text(form: str, difference: float, error: float) -> str:
    """Return a difference and its standard error in parentheses, or "" if they are not finite."""
    if not (np.isfinite(difference) and np.isfinite(error)):
        return ""
    return f" ({form.format(difference)}, standard error {error:.4f})"


def _no_structure(comparison: _Comparison, top: DocumentScores) -> str:
    """Return the reason if topics do not beat the unigram."""
    return (
        f"No structure: topics predict held-out words no better than the unigram does. The best number tried, "
        f"{comparison.best}, reaches perplexity {top.perplexity:.1f} against {top.unigram_perplexity:.1f}"
        f"{_error_text('{:+.4f} nats per token', *comparison.over_unigram)}."
    )


def _only_repetitions(found: OtherWordsGain) -> str:
    """Return the reason if topics beat the unigram only because documents repeat their words."""
    return (
        "No structure: documents repeat their words, but their words say nothing about their other words. The best "
        f"number of topics tried, {found.n_topics}, predicts them no better than the unigram does"
        f"{_error_text('{:+.4f} nats per token', found.gain, found.error)}."
    )


def _reason(chosen: int, comparison: _Comparison, top: DocumentScores) -> str:
    """Return the reason for the choice in a few sentences."""
    best, behind = comparison.best, comparison.behind
    tried = f"of {min(behind)} to {max(behind)} tried" if len(behind) > 1 else "the only number tried"
    text = (
        f"{best} topics predict held-out words best, {tried}: perplexity {top.perplexity:.1f}, without topics "
        f"{top.unigram_perplexity:.1f}."
    )
    if chosen < best:
        loss, error = behind[chosen]
        within = "one standard error" if loss <= error else "1% of what topics gain over none"
        text += (
            f" {chosen} topics do as well within {within}{_error_text('{:.4f} nats per token behind', loss, error)}, "
            "so the smaller number is chosen."
        )
    enough = _NEGLIGIBLE * comparison.over_unigram[0]
    as_good = [value for value, (loss, error) in behind.items() if value == best or loss <= max(error, enough)]
    if max(as_good) >= _FLAT * min(as_good):
        text += f" The curve is flat: {min(as_good)} to {max(as_good)} topics predict about equally well."
    if chosen > min(behind):
        below = max(value for value in behind if value < chosen)
        loss, error = behind[below]
        text += f" Fewer do worse: {below} topics{_error_text('{:.4f} behind', loss, error)}."
    elif chosen > 2:
        text += f" {chosen} is the smallest number tried: fewer may do as well."
    if chosen == max(behind):
        text += f" {chosen} is the largest number tried: more may be better still."
    return text
