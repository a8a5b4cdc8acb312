"""Fewer topics from more: the two topics whose union loses least become one, again and again.

If every token's topic were known, one distribution in place of those of topics i and j, with n_i and n_j tokens, would
lose n_i KL(phi_i || m) + n_j KL(phi_j || m) nats, m their weighted mean. So near-duplicates go first, and topics that
have few tokens.

Fits for many numbers of topics on shared folds: the largest from a start, each smaller one from the next larger.

Starts are what blurs such a curve: a fit with 40 topics from a random start finds 35 of them, and the next few extra
topics seem to pay. A fit with more topics than there are finds them all, and merging its near-duplicates (merging.py)
leaves a start for every smaller number that a few iterations finish.

How many topics? The number whose topics predict held-out words best, or fewer that do as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyseme.core.factors import rows_to_one
from polyseme.errors import InputError
from polyseme.estimators.base import count_data
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.tables import frame
from polyseme.kernels import Array, Floats, checked_sparse
from polyseme.metrics import coherence, shown_words, stability, top_words
from polyseme.selection.cross_validation import (
    COMPLETION,
    DocumentFold,
    DocumentScores,
    document_folds,
    joined,
    probabilistic,
    score_documents,
)
from polyseme.solvers import Tempered
from polyseme.utils import check_share, check_whole_number

_NUMBERS_AT_ONCE = 1 << 22


class Topics(NamedTuple):
    """What a fit knows of its topics."""

    doc_topic: Array
    """P(z|d), documents x K"""
    components: Array
    """P(w|z), K x words"""
    tokens: Floats
    """how many tokens each topic has"""


def merged(topics: Topics, n_topics: int) -> Topics:
    """The topics merged until `n_topics` are left."""
    counts = topics.components.astype(np.float64) * topics.tokens[:, np.newaxis]
    theta = topics.doc_topic.astype(np.float64)
    costs = _all_costs(counts)
    kept = np.ones(len(counts), dtype=bool)
    for _ in range(len(counts) - n_topics):
        first, second = np.unravel_index(np.argmin(costs), costs.shape)
        counts[first] += counts[second]
        theta[:, first] += theta[:, second]
        kept[second] = False
        costs[second], costs[:, second] = np.inf, np.inf
        others = np.flatnonzero(kept)
        others = others[others != first]
        costs[np.minimum(first, others), np.maximum(first, others)] = _costs(counts, int(first), others)
    return Topics(theta[:, kept], rows_to_one(counts[kept]), counts[kept].sum(axis=1))


def merge_costs(components: Array, tokens: Floats) -> Floats:
    """What merging each two topics would lose, in nats: K x K, infinite on and below the diagonal."""
    return _all_costs(components.astype(np.float64) * tokens[:, np.newaxis])


def _all_costs(counts: Floats) -> Floats:
    K = len(counts)
    costs = np.full((K, K), np.inf)
    for first in range(K - 1):
        costs[first, first + 1 :] = _costs(counts, first, np.arange(first + 1, K))
    return costs


def _costs(counts: Floats, first: int, others: Array) -> Floats:
    """E_i + E_j - E_union, E = sum_w c log c - n log n of a topic's counts c and their sum n."""
    step = max(1, _NUMBERS_AT_ONCE // counts.shape[1])
    own = _negative_entropy(counts[first : first + 1])
    parts = [
        own + _negative_entropy(counts[some]) - _negative_entropy(counts[some] + counts[first])
        for some in (others[start : start + step] for start in range(0, others.size, step))
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _negative_entropy(counts: Floats) -> Floats:
    sums = counts.sum(axis=1)
    return np.asarray(_x_log_x(counts).sum(axis=1) - _x_log_x(sums))


def _x_log_x(x: Floats) -> Floats:
    return np.asarray(x * np.log(x, out=np.zeros_like(x), where=x > 0))


_REVIVAL = 1e-3
"""the share of the unigram in every topic, and of all topics in every document, of a warm start: EM keeps zeros"""


@dataclass(frozen=True)
class Fitted:
    """What is kept of the fits with one number of topics, one for each fold."""

    n_topics: int
    scores: DocumentScores
    components: list[Array]
    """P(w|z) of each fold"""
    words: list[Array]
    """the columns of the ten words shown for each topic, of each fold"""
    log_likelihood: float
    """training log-likelihood, mean over the folds, in nats"""
    aic: float
    bic: float
    seconds: float = field(compare=False)


class Path:
    """Fits of one estimator for any number of topics up to the largest, which is fitted first.

    warm_iterations : most iterations of a fit that starts from a larger one.
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
        self._topics: dict[int, list[Topics]] = {}
        self.fitted: dict[int, Fitted] = {}

    def fit(self, n_topics: int) -> Fitted:
        """Fits and scores `n_topics`, from the nearest larger number that is there."""
        started = perf_counter()
        larger = min((known for known in self._topics if known > n_topics), default=None)
        models = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a path needs no fit to the last digit
            for number, fold in enumerate(self._folds):
                start = None if larger is None else self._topics[larger][number]
                models.append(self._begun(n_topics, start).fit(self._X[fold.train]))
        models = [probabilistic(model) for model in models]
        self._topics[n_topics] = [_topics_of(model) for model in models]
        scores = joined(
            [
                score_documents(model, self._X[fold.test], COMPLETION, smoothing=self._smoothing, seed=self._seed)
                for model, fold in zip(models, self._folds, strict=True)
            ],
            [fold.test for fold in self._folds],
        )
        logs = np.array([model.log_likelihood_ * model.n_tokens_ for model in models])
        parameters = np.array([_free_parameters(model) for model in models])
        tokens = np.array([model.n_tokens_ for model in models])
        self.fitted[n_topics] = Fitted(
            n_topics,
            scores,
            [model.components_ for model in models],
            [shown_words(model) for model in models],
            float(logs.mean()),
            float((2 * parameters - 2 * logs).mean()),
            float((parameters * np.log(tokens) - 2 * logs).mean()),
            perf_counter() - started,
        )
        return self.fitted[n_topics]

    def _begun(self, n_topics: int, larger: Topics | None) -> Any:
        model = clone(self._estimator).set_params(n_components=n_topics)
        if larger is None:
            return model
        fewer = merged(larger, n_topics)
        unigram = rows_to_one(fewer.tokens[np.newaxis] @ fewer.components)
        start = (
            (1 - _REVIVAL) * rows_to_one(fewer.doc_topic) + _REVIVAL / n_topics,
            (1 - _REVIVAL) * fewer.components + _REVIVAL * unigram,
        )
        return model.set_params(init=start, n_init=1, max_iter=min(self._warm_iterations, model.max_iter))


def _topics_of(model: Any) -> Topics:
    return Topics(model.doc_topic_, model.components_, np.asarray(model.topic_weights_ * model.n_tokens_))


def _free_parameters(model: Any) -> int:
    """(K - 1) weights of every document, and K distributions over the words that occur."""
    n_topics = model.components_.shape[0]
    n_words = int(np.count_nonzero(model.unigram_))
    return len(model.doc_topic_) * (n_topics - 1) + n_topics * (n_words - 1)


def unigram_scores(scores: DocumentScores) -> DocumentScores:
    """What one topic scores: the unigram."""
    return DocumentScores(scores.kind, scores.unigram_logs, scores.unigram_logs, scores.tokens, scores.unseen_tokens)


def unigram_fit(X: Any, folds: list[DocumentFold], scores: DocumentScores) -> Fitted:
    """One topic, which needs no fit: its words are the unigram's."""
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
    return Fitted(
        1,
        unigram_scores(scores),
        components,
        [top_words(unigram) for unigram in components],
        float(L.mean()),
        float((2 * p - 2 * L).mean()),
        float((p * np.log(n) - 2 * L).mean()),
        perf_counter() - started,
    )


VALUES = 10
"""how many numbers of topics a range is cut into"""
_FINE = 0.05
"""the refinement ends when the neighbors of the number to choose are no further off than this share of it"""
_MOST_BY_DEFAULT = 100
_BETA, _TOL = 0.85, 0.03
"""of the default estimator: of 0.85, 0.9 and 1, on corpora drawn with other seeds than the reported ones, 0.85 came
nearest to the truth where topics overlap, and all three found it where they do not"""
_NEGLIGIBLE = 0.01
"""a number that is behind by this share of what the best one gains over the unigram does as well"""
_SURE = 3.0
"""so many standard errors above the unigram are structure: one is too few where ten numbers had their chance"""

_LEAST_GAIN = 1e-3
"""nats per token over the unigram: less is no structure that anyone could use, however sure it is"""

Progress = Callable[[int, int, str], Any]


@dataclass(frozen=True)
class SelectionRow:
    """One number of topics.

    perplexity, standard_error : of held-out halves of held-out documents (completion), over the folds.
    behind, behind_error : how many nats per token the best number predicts better, and the standard error of that
        difference over the same documents.
    coherence : NPMI of the ten words shown for each topic in the documents X, mean over topics and folds.
    stability : how alike the topics of different folds are, matched one to one: 1 - total variation distance, mean over
        topics (NaN for one fold).
    aic, bic : 2 p - 2 L and p log N - 2 L, p = D (K - 1) + K (V - 1) parameters; lower is better.
    """

    n_topics: int
    perplexity: float
    standard_error: float
    behind: float
    behind_error: float
    coherence: float
    stability: float
    aic: float
    bic: float
    seconds: float


@dataclass(frozen=True)
class Selection:
    """The choice, its reason, and the figures it rests on.

    chosen : the number of topics; 1 says that no structure was found.
    best : the number with the lowest held-out perplexity.
    reason : in words.
    rows : a Row for each number tried, in rising order.
    unigram_perplexity : of the same held-out tokens without topics.
    """

    chosen: int
    best: int
    reason: str
    rows: list[SelectionRow]
    unigram_perplexity: float
    fits: dict[int, Fitted] = field(repr=False, compare=False)

    @property
    def structured(self) -> bool:
        """Whether topics predict held-out words better than the unigram."""
        return self.chosen > 1

    @property
    def table(self) -> Any:
        """The rows as a frame (polars or pandas)."""
        names = list(SelectionRow.__dataclass_fields__)
        return frame({name: [getattr(row, name) for row in self.rows] for name in names})

    def as_dict(self) -> dict[str, Any]:
        """Everything but the fits, as plain numbers, lists and texts; None for a figure that is not defined."""
        return {
            "chosen": self.chosen,
            "best": self.best,
            "structured": self.structured,
            "reason": self.reason,
            "unigram_perplexity": self.unigram_perplexity,
            "rows": [
                {name: None if value != value else value for name, value in vars(row).items()} for row in self.rows
            ],
        }


def spread_values(least: int, most: int, n_values: int = VALUES) -> list[int]:
    """About `n_values` whole numbers from `least` to `most`, each larger than the one before by the same factor."""
    least, most = (
        check_whole_number("the least number", least, least=1),
        check_whole_number("the largest number", most, least=1),
    )
    if most < least:
        raise InputError(f"The range of numbers of topics is empty: {most} is less than {least}.")
    return sorted({round(float(value)) for value in np.geomspace(least, most, n_values)})


def default_values(n_documents: int, n_words: int) -> list[int]:
    """From 2 up to twice the root of the number of documents, but 100 at most and fewer than words or documents."""
    most = min(max(10, round(2 * n_documents**0.5)), _MOST_BY_DEFAULT, n_documents - 1, n_words - 1)
    return spread_values(2, max(2, most))


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
    random_state: int = 0,
    progress: Progress | None = None,
) -> Selection:
    """Chooses the number of topics by the completion perplexity of held-out documents.

    All numbers share the folds and the held-out halves, so that their differences are taken document by document; their
    standard error is far below that of a perplexity itself. Chosen is the least number that the best one does not beat
    by more than one standard error of their difference, or by more than 1% of what it gains over the unigram; 1, "no
    structure", if the best number does not beat the unigram by more than three standard errors and 0.001 nats.

    Parameters
    ----------
    X : counts, documents x words.
    n_topics : numbers to try; a `range` of more than 20 is cut into 10 that grow by a constant factor; None: from 2 to
        about 2 sqrt(documents).
    estimator : what to fit (PLSA, LDA, NMF); None: PLSA by tempered EM at beta = 0.85, whose topics overfit less, so
        that the curve has its minimum nearer the truth than plain maximum likelihood's.
    n_folds, folds_run : documents are parted into `n_folds`, and the first `folds_run` of these are held out in turn.
    smoothing : the share of the unigram in the held-out probabilities.
    refine : whether to look between the neighbors of the number to choose until they are within 5% of it.
    warm_iterations : most iterations of a fit that starts from a larger one (the largest has the estimator's own).
    n_jobs : threads; None for all cores. Results do not depend on it.
    random_state : seed of the folds, and of the fits of the default estimator.
    progress : called with (fits done, fits expected, what is being done).
    """
    estimator = _asked_estimator(estimator, n_jobs, random_state)
    X = count_data(clone(estimator), X, reset=True)
    values = _asked_values(n_topics, X.shape)
    folds_run = check_whole_number("folds_run", folds_run, least=1)
    folds = document_folds(X.shape[0], n_folds, random_state)[:folds_run]
    warm_iterations = check_whole_number("warm_iterations", warm_iterations, least=1)
    path = Path(
        estimator,
        X,
        folds,
        smoothing=check_share("smoothing", smoothing),
        seed=random_state,
        warm_iterations=warm_iterations,
    )
    _walk(path, [value for value in values if value > 1] or [2], refine, progress)
    scores = next(iter(path.fitted.values())).scores
    if not scores.tokens.sum() > 0:
        raise InputError("The held-out documents share no word with the others: give more documents, or longer ones.")
    fits = {1: unigram_fit(X, folds, scores), **path.fitted}
    tried = sorted(fits if 1 in values else path.fitted)
    return _judged(fits, tried, X)


def choose_n_topics(
    X: Any,
    n_topics: Iterable[int] | None = None,
    *,
    max_documents: int = 5000,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Selection:
    """`select_n_topics` at the least cost: one fold, at most `max_documents` (drawn at random), few iterations."""
    n_documents = X.shape[0]
    if n_documents > max_documents:
        rows = np.random.default_rng(random_state).choice(n_documents, max_documents, replace=False)
        X = checked_sparse(X).tocsr()[np.sort(rows)] if hasattr(X, "tocsr") else X[np.sort(rows)]
    return select_n_topics(
        X,
        n_topics,
        estimator=default_estimator(n_jobs, random_state, max_iter=50),
        n_folds=min(5, max(2, X.shape[0])),
        folds_run=1,
        random_state=random_state,
        progress=progress,
    )


def default_estimator(n_jobs: int | None, random_state: int, max_iter: int = 100) -> PLSA:
    return PLSA(solver=Tempered(_BETA), max_iter=max_iter, tol=_TOL, n_jobs=n_jobs, random_state=random_state)


def _asked_estimator(estimator: Any, n_jobs: int | None, random_state: int) -> Any:
    if estimator is None:
        return default_estimator(n_jobs, random_state)
    known = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if not {"n_components", "init", "max_iter"} <= set(known):
        raise InputError("estimator must be a topic model such as PLSA(), with n_components, init and max_iter.")
    estimator = clone(estimator)
    return estimator if n_jobs is None else estimator.set_params(n_jobs=n_jobs)


def _asked_values(n_topics: Iterable[int] | None, shape: tuple[int, int]) -> list[int]:
    if n_topics is None:
        return default_values(*shape)
    if isinstance(n_topics, range) and len(n_topics) > 2 * VALUES:
        values = spread_values(min(n_topics), max(n_topics))
    else:
        values = sorted({check_whole_number("a number of topics", value, least=1) for value in n_topics})
    if not values:
        raise InputError("There is no number of topics to try: the range is empty.")
    return values


def _walk(path: Path, values: list[int], refine: bool, progress: Progress | None) -> None:
    """The values from the largest to the smallest, and then those between the neighbors of the number to choose."""

    def go(batch: list[int], what: str) -> None:
        for value in sorted(batch, reverse=True):
            if progress is not None:
                progress(len(path.fitted), expected, f"{what} {value} topics")
            path.fit(value)

    expected = len(values) + (4 if refine else 0)
    go(values, "fitting")
    while refine:
        between = _between(path)
        if not between:
            break
        expected = max(expected, len(path.fitted) + len(between))
        go(between, "refining,")
    if progress is not None:
        progress(len(path.fitted), len(path.fitted), "done")


def _between(path: Path) -> list[int]:
    """The middles of the gaps beside the number to choose that are wider than a twentieth of it."""
    known = sorted(path.fitted)
    chosen = _weighed(path.fitted, known).least
    at = known.index(chosen)
    around = known[max(0, at - 1) : at + 2]
    wide = [(low, high) for low, high in pairwise(around) if high - low > max(1, _FINE * chosen)]
    return [round((low * high) ** 0.5) for low, high in wide]


class _Weighed(NamedTuple):
    """How far each number is behind the best one, with the standard error of that, and the least that does as well."""

    best: int
    least: int
    behind: dict[int, tuple[float, float]]
    over_unigram: tuple[float, float]


def _weighed(fits: dict[int, Fitted], tried: list[int]) -> _Weighed:
    best = max(tried, key=lambda value: fits[value].scores.mean)
    top = fits[best].scores
    behind = {value: top.gain_over(fits[value].scores) for value in tried}
    over_unigram = top.gain_over_unigram()
    enough = _NEGLIGIBLE * over_unigram[0]
    least = min(value for value, (loss, error) in behind.items() if value == best or loss <= max(error, enough))
    return _Weighed(best, least, behind, over_unigram)


def _judged(fits: dict[int, Fitted], tried: list[int], X: Any) -> Selection:
    """The choice among `tried`, or 1 where the best of them is not surely better than the unigram."""
    weighed = _weighed(fits, tried)
    gain, error = weighed.over_unigram
    chosen = weighed.least if gain > max(_SURE * error, _LEAST_GAIN) else 1
    top = fits[weighed.best].scores
    behind = {1: top.gain_over(fits[1].scores), **weighed.behind}
    return Selection(
        chosen,
        weighed.best,
        _reason(chosen, weighed, top),
        [_row(fits[value], behind[value], X) for value in sorted({*tried, chosen})],
        top.unigram_perplexity,
        fits,
    )


def _row(fit: Fitted, behind: tuple[float, float], X: Any) -> SelectionRow:
    return SelectionRow(
        fit.n_topics,
        fit.scores.perplexity,
        fit.scores.perplexity_error,
        *behind,
        float(np.mean([coherence(words, X).mean for words in fit.words])),
        stability(fit.components[0], fit.components[1:]).mean if len(fit.components) > 1 else float("nan"),
        fit.aic,
        fit.bic,
        fit.seconds,
    )


def _figures(form: str, difference: float, error: float) -> str:
    """A difference and its standard error, in parentheses; "" if they are not finite, which tells a reader nothing."""
    if not (np.isfinite(difference) and np.isfinite(error)):
        return ""
    return f" ({form.format(difference)}, standard error {error:.4f})"


def _reason(chosen: int, weighed: _Weighed, top: DocumentScores) -> str:
    """Why, in a few sentences."""
    best, behind = weighed.best, weighed.behind
    if chosen == 1:
        gain, error = weighed.over_unigram
        return (
            f"No structure: topics predict held-out words no better than the unigram does. The best number tried, "
            f"{best}, reaches perplexity {top.perplexity:.1f} against {top.unigram_perplexity:.1f}"
            f"{_figures('{:+.4f} nats per token', gain, error)}."
        )
    found = (
        f"{best} topics predict held-out words best: perplexity {top.perplexity:.1f}, without topics "
        f"{top.unigram_perplexity:.1f}."
    )
    if chosen < best:
        loss, error = behind[chosen]
        within = "one standard error" if loss <= error else "1% of what topics gain over none"
        found += (
            f" {chosen} topics do as well within {within}{_figures('{:.4f} nats per token behind', loss, error)}, so "
            "the smaller number is taken."
        )
    if chosen > min(behind):
        below = max(value for value in behind if value < chosen)
        loss, error = behind[below]
        found += f" Fewer do worse: {below} topics{_figures('{:.4f} behind', loss, error)}."
    elif chosen > 2:
        found += f" {chosen} is the least number tried: fewer may do as well."
    if chosen == max(behind):
        found += f" {chosen} is the largest number tried: more may be better still."
    return found
