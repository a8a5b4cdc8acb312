"""Resampled fits: how sure the topics, their words and their shares are.

Documents, or clusters of documents, are drawn with replacement, as weights of the documents. Every resample is fitted
from the topics of the model, to convergence, and its topics are matched with them. A topic comes back in a resample if
its match is nearer to it than to every other topic of the model; resamples in which it does not come back are reported
and left out of its intervals.

Resamples show the spread of an estimate, but not its bias: with short documents the topics of maximum likelihood differ
from the true ones however many documents there are, because every document adds K - 1 parameters (the weights of its
topics). A second kind of resamples measures the bias: documents are drawn from the fitted model itself, with weights
from their posteriors, and fitted in the same way. The mean difference between these fits and the model that they were
drawn from is subtracted. It is only a part of the bias, because the model that documents are drawn from has it already,
so it also widens the intervals. The posteriors need the prior of the weights. Its concentration follows from pairs of
tokens of a document: how often both have the same topic.

P(w|z) is estimated from a limited number of tokens, so its intervals are those of a Poisson count whose exposure
reproduces the spread of the resamples. A word that a topic does not have in any resample has an interval, too: it
comes from the spread of the other words of the topic, and from the fits to drawn documents, in which topics have a
small share of all words of the corpus.

References
----------
- Efron, B., and Tibshirani, R. (1993). An introduction to the bootstrap. Chapman and Hall.
- Garwood, F. (1936). Fiducial limits for the Poisson distribution. Biometrika 28, 437-442.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.fold_in import select_known_words
from polyseme.kernels import Array, Floats, SparseCounts, normalize_rows
from polyseme.metrics import top_words
from polyseme.metrics.coherence import Cooccurrence, coherence_of
from polyseme.metrics.words import word_amounts
from polyseme.uncertainty.intervals import Intervals, count_intervals, normal_intervals
from polyseme.uncertainty.resampling import (
    FREQUENT,
    N_SIMULATIONS,
    UNSEEN,
    Moments,
    Resampled,
    Resampling,
    checked_counts,
    document_posteriors,
    posterior_draws,
    prior_of,
)
from polyseme.uncertainty.shares import Shares, shares_of
from polyseme.utils import RandomStateLike, as_seed

_DRAWN_NUMBERS = 1 << 24
"""Numbers in the draws of P(z|d) that are in memory at once."""
_NO_SHARE = 1e-3
"""Intervals of P(z|d) that begin below this share begin at zero: no document says how far a share is below it."""
_LEAST_TOKENS = 3
"""Expected number of tokens of a word in a topic from which the spread of the resamples is used as it is."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Intervals from resampled fits, by `bootstrap`.

    Attributes
    ----------
    level : float
        Level of the intervals, such as 0.95.
    n_resamples : int
        Number of fits to resampled documents.
    n_simulations : int
        Number of fits to drawn documents, which measure the bias.
    topic_word : Intervals of shape (K, n_words)
        P(w|z). The estimate is corrected for the bias of short documents.
    topic_weights : Intervals of shape (K,)
        P(z), the share of all tokens, corrected like P(w|z).
    returned : array of shape (K,)
        Share of the resamples in which each topic came back. The intervals of a topic hold for these resamples.
    moved : array of shape (K,)
        Total variation distance of each topic of the model from the topic of a fit that continues from it to
        convergence, which the resamples are compared with.
    words : array of int of shape (K, n)
        Columns of the words shown for each topic.
    word_ranks : Intervals of shape (K, n)
        Ranks of these words by P(w|z), 1 for the most probable word.
    coherence : Intervals of shape (K,)
        Coherence (NPMI in documents) of these words.
    groups : Shares or None
        Shares of the topics in groups of documents, if groups were given.
    concentration : float
        Concentration of the Dirichlet prior of P(z|d): small if documents have few topics.
    vocabulary : array of str or None
        The word of each column.
    notes : list of str
        What makes the intervals too short, one sentence each; empty if nothing does.
    """

    level: float
    n_resamples: int
    n_simulations: int
    topic_word: Intervals
    topic_weights: Intervals
    returned: Floats
    moved: Floats
    words: Array
    word_ranks: Intervals
    coherence: Intervals
    groups: Shares | None
    concentration: float
    vocabulary: Array | None
    notes: list[str]

    def doc_topic(self, X: Any, *, n_draws: int = 400, random_state: RandomStateLike = 0) -> Intervals:
        """Return P(z|d) of documents with intervals from draws of their posteriors, and of the topics.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        n_draws : int, default=400
            Number of draws.
        random_state : int, RandomState or Generator, default=0
            Seed of the draws.

        Returns
        -------
        Intervals
            Arrays of shape (n_documents, K).
        """
        counts = checked_counts(X, self.topic_word.estimate.shape[1])
        topics = normalize_rows(self.topic_word.estimate)
        counts, _ = select_known_words(counts, np.asarray(topics.sum(axis=0) > 0))
        prior = prior_of(self.concentration, self.topic_weights.estimate)
        gamma = document_posteriors(counts, topics, prior, n_threads=1)
        rng, tail = np.random.default_rng(as_seed(random_state)), (1 - self.level) / 2
        parts = []
        error = np.nan_to_num(self.topic_word.error)
        for rows, block in counts.blocks(max(1, _DRAWN_NUMBERS // (n_draws * len(topics)))):
            draws = posterior_draws(block, topics, prior, gamma[rows], n_draws, rng, error)
            low, high = np.quantile(draws, (tail, 1 - tail), axis=0)
            parts.append([draws.mean(axis=0), np.where(low < _NO_SHARE, 0, low), high, draws.std(axis=0)])
        return Intervals(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def __str__(self) -> str:
        lines = [f"{'topic':>5} {'weight':>6}  {f'{self.level:.0%} interval':>14}  {'came back':>9}  words"]
        weights = self.topic_weights
        for k in np.argsort(-weights.estimate, kind="stable").tolist():
            interval = f"{weights.low[k]:.1%} to {weights.high[k]:.1%}"
            words = [str(word) if self.vocabulary is None else self.vocabulary[word] for word in self.words[k]]
            shown = ", ".join(words)
            line = f"{k:>5} {weights.estimate[k]:>6.1%}  {interval:>14}  {self.returned[k]:>9.0%}  "
            lines.append(line + (shown if len(line + shown) <= 100 else shown[: 99 - len(line)] + "…"))
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


def bootstrap(
    model: Any,
    X: Any = None,
    n_resamples: int = 100,
    *,
    clusters: Any = None,
    groups: Any = None,
    level: float = 0.95,
    n_simulations: int = N_SIMULATIONS,
    n_words: int = 10,
    random_state: RandomStateLike = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Bootstrap:
    """Return intervals for the topics of a model and their shares, from fits to resampled documents.

    Parameters
    ----------
    model : estimator or Run
        A model fitted by maximum likelihood without priors and without a background, or a run with such a model.
    X : array-like or sparse matrix of shape (n_documents, n_words), default=None
        The training documents. None: those of the run.
    n_resamples : int, default=100
        Number of resamples.
    clusters : sequence, default=None
        The cluster of each document, such as its author. Whole clusters are drawn, so that documents of a cluster need
        not be independent. None: every document is drawn on its own.
    groups : sequence or sparse matrix of shape (n_groups, n_documents), default=None
        The group of each document, whose shares of the topics get intervals; None, NaN or "" is no group. A matrix has
        the weight of each document in each group.
    level : float, default=0.95
        Level of the intervals.
    n_simulations : int, default=12
        Number of fits to documents drawn from the model, which measure the bias of short documents. 0: no correction.
    n_words : int, default=10
        Number of words of each topic whose ranks and coherence get intervals.
    random_state : int, RandomState or Generator, default=0
        Seed of the random numbers.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    progress : callable, default=None
        Called with (fits done, number of fits).

    Returns
    -------
    Bootstrap
        Intervals for P(w|z), P(z), ranks of words, coherence, and shares in groups; P(z|d) by `Bootstrap.doc_topic`.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.uncertainty import bootstrap
    >>> X = synthetic_corpus(200, n_topics=3, n_words=50, random_state=0).counts()
    >>> found = bootstrap(PLSA(3, random_state=0).fit(X), X, n_resamples=20, n_simulations=2)
    >>> bool((found.topic_weights.low < found.topic_weights.high).all())
    True
    """
    if X is None:
        model, X = model.model, model.counts
    fits = Resampling(
        model, X, n_resamples, clusters=clusters, level=level, n_simulations=n_simulations, random_state=random_state,
        n_jobs=n_jobs, progress=progress,
    )  # fmt: skip
    return intervals_of(fits, model, groups, n_words)


def intervals_of(fits: Resampling, model: Any, groups: Any, n_words: int) -> Bootstrap:
    """Return the result of `bootstrap` from its fits."""
    counts, topics = fits.counts, fits.topics
    words = top_words(word_amounts(model), n_words)
    pairs = _WordPairs(counts, words)
    ranks, coherence = [], []

    def resamples() -> Iterator[Resampled]:
        for resample in fits.resamples():
            topics, returned = resample.matched
            ranks.append(np.where(returned[:, np.newaxis], _ranks(topics, words), np.nan))
            coherence.append(pairs.coherence(resample.weights))
            yield resample

    found = shares_of(fits, groups, resamples())
    sampling, level = fits.sampling, fits.sampling.level
    whole = pairs.coherence(np.ones(counts.n_docs))
    return Bootstrap(
        level,
        fits.n_resamples,
        fits.n_simulations,
        _topic_intervals(topics, found.plain_weights * counts.totals.sum(), fits),
        found.topic_weights,
        fits.returned,
        0.5 * np.abs(topics - fits.fitted.topic_word).sum(axis=1),
        words,
        sampling.quantiles(_ranks(topics, words), np.array(ranks)),
        normal_intervals(whole, sampling.error(np.array(coherence)), level, sampling.df),
        None if groups is None else found.groups,
        fits.concentration,
        fits.fitted.vocabulary,
        fits.notes,
    )  # fmt: skip


class _WordPairs:
    """Documents with both of two shown words of a topic."""

    def __init__(self, counts: SparseCounts, words: Array) -> None:
        present = sp.csc_array(counts.matrix()[:, words.ravel()] > 0, dtype=np.float64)
        self._shape = (*words.shape, words.shape[1])
        self._first, self._second = np.tril_indices(words.shape[1])
        columns = [present[:, first : first + words.shape[1]] for first in range(0, words.size, words.shape[1])]
        self._together = [own[:, self._first].multiply(own[:, self._second]).T.tocsr() for own in columns]

    def coherence(self, weights: Floats) -> Floats:
        """Return the coherence of the words of each topic."""
        pairs = np.empty(self._shape)
        for own, together in zip(pairs, self._together, strict=True):
            own[self._first, self._second] = own[self._second, self._first] = together @ weights
        return coherence_of(Cooccurrence(pairs, round(weights.sum()), "documents", None)).topics


def _ranks(topics: Floats, words: Array) -> Floats:
    """Return the rank of some words of each topic; 1 for the most probable word."""
    values = np.take_along_axis(topics, words, axis=1)
    larger = [(row > own[:, np.newaxis]).sum(axis=1) for row, own in zip(topics, values, strict=True)]
    return np.array(larger, dtype=np.float64) + 1


def _blurred(topics: Floats, bias: Moments, noise: Floats, fits: Resampling) -> Floats:
    """Return the variance per unit that short documents add to each topic (K x 1).

    They blur other words than those whose bias drawn documents show, so it is that of a typical word of the topic.
    """
    rates = np.zeros((len(topics), 1))
    squares = np.maximum(bias.mean**2 - noise, 0)
    for rate, own, topic in zip(rates, squares, topics, strict=True):
        frequent = topic > FREQUENT
        if frequent.any():
            rate[0] = np.median(own[frequent] / topic[frequent])
    return (fits.sampling.unseen**2 - UNSEEN**2) * rates if fits.n_simulations else rates


def _topic_intervals(topics: Floats, tokens: Floats, fits: Resampling) -> Intervals:
    """Return intervals for P(w|z). `tokens` are the expected numbers of tokens of the topics."""
    spread, bias, sampling = fits.spread, fits.bias, fits.sampling
    estimate = np.maximum(topics - bias.mean, 0)
    noise = bias.variance / np.maximum(bias.returned, 1)[:, np.newaxis]
    least = 1 / np.maximum(tokens, 1)[:, np.newaxis]
    variance = spread.variance * sampling.inflation**2
    per_unit = np.maximum(np.divide(variance, topics, out=np.zeros(topics.shape), where=topics > 0), least)
    enough = topics > _LEAST_TOKENS * least
    for row, use, values in zip(per_unit, enough, per_unit.copy(), strict=True):
        if use.any():
            row[~use] = np.median(values[use])
    drawn = bias.topics
    known = (drawn > 0) & (bias.returned > 1)[:, np.newaxis]
    simulated = np.divide(fits.share * bias.variance, drawn, out=np.zeros(topics.shape), where=known)
    per_unit = np.maximum(per_unit, simulated)
    unseen = sampling.bias_of_moments(bias.mean, noise).variance
    per_unit += np.maximum(
        np.divide(unseen, topics, out=np.zeros(topics.shape), where=topics > 0), _blurred(topics, bias, noise, fits)
    )
    found = count_intervals(estimate, per_unit, sampling.level)
    unknown = spread.returned < 2
    for part in (found.low, found.high, found.error):
        part[unknown] = np.nan
    return found
