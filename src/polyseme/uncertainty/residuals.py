"""A test whether the number of topics is too small, from what the topics leave unexplained.

If a topic is missing, its words occur together more often than the fitted topics expect. The statistic is the largest
eigenvalue of the covariance of the residuals of frequent words, without its diagonal, so that words that repeat within
a document do not count. Its distribution without a missing topic comes from documents that are drawn from the fitted
model and fitted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics.deviance import residual_covariance
from polyseme.uncertainty.resampling import Resampling, linear_scores
from polyseme.utils import RandomStateLike, check_integer

_MOST_WORDS = 500
"""Number of the most frequent words whose residuals are used."""


@dataclass(frozen=True, eq=False)
class ResidualTest:
    """Result of `residual_test`.

    Attributes
    ----------
    statistic : float
        Largest eigenvalue of the covariance of the residuals.
    expected : array of shape (n_simulations,)
        The same for documents drawn from the model.
    p_value : float
        Share of the drawn corpora, and of the documents themselves, whose statistic is at least as large.
    words : array of int
        Columns of the words that occur together although no topic says so, the strongest first.
    """

    statistic: float
    expected: Floats
    p_value: float
    words: Array

    @property
    def ratio(self) -> float:
        """The statistic divided by its median in drawn corpora: near 1 if no topic is missing."""
        return float(self.statistic / np.median(self.expected))


def residual_test(
    model: Any,
    X: Any = None,
    *,
    n_simulations: int = 39,
    n_words: int = 10,
    random_state: RandomStateLike = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> ResidualTest:
    """Test whether the number of topics is too small.

    Parameters
    ----------
    model : estimator or Run
        A model fitted by maximum likelihood without priors and without a background, or a run with such a model.
    X : array-like or sparse matrix of shape (n_documents, n_words), default=None
        The training documents. None: those of the run.
    n_simulations : int, default=39
        Number of corpora drawn from the model. The smallest possible p-value is 1 / (n_simulations + 1).
    n_words : int, default=10
        Number of words that are returned.
    random_state : int, RandomState or Generator, default=0
        Seed of the random numbers.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    progress : callable, default=None
        Called with (fits done, number of fits).

    Returns
    -------
    ResidualTest
        The p-value, how much larger the residuals are than expected, and words that a further topic would have.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.uncertainty import residual_test
    >>> X = synthetic_corpus(300, n_topics=4, n_words=60, length=200, random_state=0).counts()
    >>> test = residual_test(PLSA(1, random_state=0).fit(X), X)
    >>> test.p_value < 0.05
    True
    """
    if X is None:
        model, X = model.model, model.counts
    check_integer("n_simulations", n_simulations, least=1)
    fits = Resampling(
        model, X, 2, n_simulations=n_simulations, random_state=random_state, n_jobs=n_jobs, progress=progress,
        most_documents=None,
    )  # fmt: skip
    totals = fits.counts.word_totals(None)
    columns = np.sort(np.argsort(-totals, kind="stable")[:_MOST_WORDS])
    columns = columns[totals[columns] > 0]
    if columns.size < 2:
        raise InputError("The residual test needs at least two different words.")

    def largest(counts: SparseCounts, doc_topic: Array, topic_word: Array) -> tuple[float, Floats]:
        A, B = (np.asarray(side, dtype=np.float64) for side in (doc_topic, topic_word.T))
        values, vectors = np.linalg.eigh(residual_covariance(counts, A, B, columns))
        return float(values[-1]), vectors[:, -1]

    statistic, direction = largest(fits.counts, fits.center.doc_topic, fits.topics)
    weights = np.maximum(linear_scores(fits.topics, totals) @ totals / totals.sum(), 0)
    expected = np.array(
        [largest(drawn.counts, drawn.fit.doc_topic, drawn.fit.topic_word)[0] for drawn in fits.simulations(weights)]
    )
    strength = direction * np.sign(direction[np.argmax(np.abs(direction))])
    order = np.argsort(-strength, kind="stable")[:n_words]
    p_value = (1 + int((expected >= statistic).sum())) / (1 + expected.size)
    return ResidualTest(statistic, expected, p_value, columns[order])
