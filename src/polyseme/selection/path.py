"""Fits for many numbers of topics on shared folds: the largest from a start, each smaller one from the next larger.

Starts are what blurs such a curve: a fit with 40 topics from a random start finds 35 of them, and the next few extra
topics seem to pay. A fit with more topics than there are finds them all, and merging its near-duplicates (merging.py)
leaves a start for every smaller number that a few iterations finish.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyseme.factors import rows_to_one
from polyseme.kernels import Array, Floats
from polyseme.metrics import shown_words, top_words
from polyseme.selection.folds import DocumentFold
from polyseme.selection.merging import Topics, merged
from polyseme.selection.scores import COMPLETION, DocumentScores, joined, probabilistic, score_documents

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
