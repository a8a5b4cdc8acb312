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

The share of a topic in a group of documents is the mean of P(z|d) over the documents, each with the same weight. It is
the weight with which the topics explain the mean document of the group, sum_d x_d / n_d: given the topics, the
expectation of this document has no error from the shortness of documents, which a mean of estimated weights would have.

References
----------
- Efron, B., and Tibshirani, R. (1993). An introduction to the bootstrap. Chapman and Hall.
- Garwood, F. (1936). Fiducial limits for the Poisson distribution. Biometrika 28, 437-442.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fold_in import MaximumLikelihood, select_known_words
from polyseme.core.shard import sparse_counts
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, normalize_rows
from polyseme.metrics import top_words
from polyseme.metrics.clustering import label_numbers
from polyseme.metrics.coherence import Cooccurrence, coherence_of
from polyseme.metrics.words import word_amounts
from polyseme.uncertainty.intervals import (
    Bias,
    Differences,
    Intervals,
    Sampling,
    count_intervals,
    differences_of,
    normal_intervals,
    share_intervals,
)
from polyseme.uncertainty.resampling import (
    Resampling,
    checked_counts,
    document_posteriors,
    posterior_draws,
    prior_of,
)
from polyseme.utils import RandomStateLike, as_seed

_DRAWN_NUMBERS = 1 << 24
"""Numbers in the draws of P(z|d) that are in memory at once."""
_NO_SHARE = 1e-3
"""Intervals of P(z|d) that begin below this share begin at zero: no document says how far a share is below it."""
_ROUNDING = 1e-9
"""Tokens of a word in the mean document of a group, relative to its length, that are rounding errors."""
_LEAST_TOKENS = 3
"""Expected number of tokens of a word in a topic from which the spread of the resamples is used as it is."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the topics in groups of documents.

    Attributes
    ----------
    names : list
        The groups.
    documents : array of int of shape (n_groups,)
        Number of documents with words in each group.
    shares : Intervals of shape (n_groups, K)
        Mean of P(z|d) over the documents of each group.
    others : Intervals of shape (n_groups, K)
        The same for all other documents that are in a group.
    draws : array of shape (n_resamples, 2 n_groups, K)
        Shares in the groups, then in the others, in every resample; NaN if a topic did not come back.
    biases : array of shape (n_simulations, 2 n_groups, K)
        Errors of these shares in documents drawn from the model. Their mean is subtracted from the estimates.
    sampling : Sampling
        Level and degrees of freedom of the intervals.
    """

    names: list[Any]
    documents: Array
    shares: Intervals
    others: Intervals
    draws: Floats = field(repr=False)
    biases: Floats = field(repr=False)
    sampling: Sampling = field(repr=False)

    def compare(self, first: Any, second: Any = None) -> Differences:
        """Return how much more of each topic a group has than another one.

        Parameters
        ----------
        first : object
            Name of a group.
        second : object, default=None
            Name of another group. None: all documents of the other groups.

        Returns
        -------
        Differences
            Share in the first group minus share in the second, one number per topic.
        """
        row = self._row(first)
        other = row + len(self.names) if second is None else self._row(second)
        return self._differences(np.array([row]), np.array([other]))[0]

    def compare_all(self) -> Differences:
        """Return the differences between every group and all documents of the other groups.

        Returns
        -------
        Differences
            Arrays of shape (n_groups, K). False discovery rates are over all of them.
        """
        rows = np.arange(len(self.names))
        return self._differences(rows, rows + len(rows))

    def _row(self, name: Any) -> int:
        if name not in self.names:
            raise InputError(f"There is no group {name!r}: the groups are {', '.join(map(repr, self.names))}.")
        return self.names.index(name)

    def _differences(self, first: Array, second: Array) -> Differences:
        both = np.concatenate([self.shares.estimate, self.others.estimate])
        spread = self.sampling.error(self.draws[:, first] - self.draws[:, second])
        bias = Bias.of(self.biases[:, first] - self.biases[:, second])
        error = np.sqrt(spread**2 + bias.variance)
        return differences_of(both[first] - both[second], error, self.sampling.level, self.sampling.df)


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
        return "\n".join(lines)

    __repr__ = __str__


def bootstrap(
    model: Any,
    X: Any = None,
    n_resamples: int = 100,
    *,
    clusters: Any = None,
    groups: Any = None,
    level: float = 0.95,
    n_simulations: int = 20,
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
    n_simulations : int, default=20
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
    counts, topics, sampling, level = fits.counts, fits.topics, fits.sampling, fits.sampling.level
    names, membership = _membership(groups, counts.n_docs)
    words = top_words(word_amounts(model), n_words)
    tables = _Tables(counts, membership, words)
    shares = tables.shares(topics, np.ones(counts.n_docs))
    resamples = [
        _Resample(
            np.where(matched.returned, tables.shares(matched.topics, weights), np.nan),
            np.where(matched.returned[:, np.newaxis], _ranks(matched.topics, words), np.nan),
            tables.coherence(weights),
        )
        for weights, matched in fits.resamples()
    ]
    found, expected = [], []
    for theta, sample, _, matched in fits.simulations(shares[0]):
        own = tables.with_counts(sample, fits.rows)
        found.append(own.shares(matched.topics, np.ones(sample.n_docs)))
        expected.append(own.means(theta))

    share_draws, ranks, coherence = (np.array(values) for values in zip(*resamples, strict=True))
    drawn, true = (np.reshape(values, (len(found), *shares.shape)) for values in (found, expected))
    biases = np.nan_to_num(drawn - true)
    root_bias = Bias.of(np.nan_to_num(np.sqrt(drawn) - np.sqrt(true)))
    share_error = np.sqrt(sampling.error(np.sqrt(share_draws)) ** 2 + root_bias.variance)
    corrected = np.clip(shares - Bias.of(biases).mean, 0, 1)
    share_parts = share_intervals(corrected, share_error, level, sampling.df)
    n_groups = len(names)
    return Bootstrap(
        level,
        fits.n_resamples,
        fits.n_simulations,
        _topic_intervals(topics, shares[0] * counts.totals.sum(), fits),
        share_parts[0],
        fits.spread.returned / fits.n_resamples,
        0.5 * np.abs(topics - fits.fitted.topic_word).sum(axis=1),
        words,
        sampling.quantiles(_ranks(topics, words), ranks),
        normal_intervals(tables.coherence(np.ones(counts.n_docs)), sampling.error(coherence), level, sampling.df),
        None
        if groups is None
        else Shares(
            names, tables.n_documents, share_parts[1 : n_groups + 1], share_parts[n_groups + 1 :], share_draws[:, 1:],
            biases[:, 1:], sampling,
        ),
        fits.concentration,
        fits.fitted.vocabulary,
    )  # fmt: skip


class _Resample(NamedTuple):
    shares: Floats
    ranks: Floats
    coherence: Floats


def _membership(groups: Any, n_documents: int) -> tuple[list[Any], sp.csr_array]:
    """Return the names of groups, and the weights of the documents in them (groups x documents)."""
    if groups is None:
        return [], sp.csr_array((0, n_documents))
    if sp.issparse(groups):
        if groups.shape[1] != n_documents:
            raise InputError(f"groups must have a column for each of the {n_documents} documents.")
        return list(range(groups.shape[0])), sp.csr_array(groups, dtype=np.float64)
    names, numbers = label_numbers(groups, n_documents)
    known = np.flatnonzero(numbers >= 0)
    shape = (len(names), n_documents)
    return names, sp.csr_array((np.ones(known.size), (numbers[known], known)), shape=shape)


class _Tables:
    """Counts of words in the corpus and in groups, and of pairs of words in documents, for any weights of documents."""

    def __init__(self, counts: SparseCounts, membership: sp.csr_array, words: Array) -> None:
        self._counts, self._X, self._membership, self._words = counts, counts.matrix(), membership, words
        inside = sp.csr_array(membership > 0, dtype=np.float64)
        every = sp.csr_array(np.asarray(inside.sum(axis=0) > 0, dtype=np.float64).reshape(1, -1))
        self._rows = sp.csr_array(sp.vstack([membership, inside, every]))
        """Documents of each group with their weights, the same without weights, and documents of any group."""
        self._lengths = counts.totals
        self._inverse = np.divide(1, self._lengths, out=np.zeros(counts.n_docs), where=self._lengths > 0)
        columns, places = np.unique(words, return_inverse=True)
        self._places = places.reshape(words.shape)
        self._present = sp.csr_array(self._X[:, columns] > 0, dtype=np.float64)

    def with_counts(self, counts: SparseCounts, rows: Array | None) -> _Tables:
        """Return tables of other counts of the same words, for all documents or some rows of them."""
        return _Tables(counts, self._membership if rows is None else self._membership[:, rows], self._words)

    def _sums(self, weights: Floats, values: Any) -> Any:
        """Return weighted sums over the documents of each group, then over all other documents of groups."""
        sums = sp.csr_array(self._rows * weights) @ values
        n = self._membership.shape[0]
        others = np.ones((n, 1)) * sums[2 * n :] if isinstance(sums, np.ndarray) else sp.vstack([sums[2 * n :]] * n)
        both = (sums[:n], others - sums[n : 2 * n])
        return np.concatenate(both) if isinstance(sums, np.ndarray) else sp.csr_array(sp.vstack(both))

    @property
    def n_documents(self) -> Array:
        """Number of documents with words in each group."""
        return np.asarray((self._membership > 0) @ (self._lengths > 0).astype(np.int64))

    def shares(self, topics: Floats, weights: Floats) -> Floats:
        """Return P(z), then the shares of the topics in each group, then those in all other documents of groups."""
        pooled = sp.csr_array(sp.csr_array(weights[np.newaxis]) @ self._X)
        if self._membership.shape[0]:
            groups = self._sums(weights * self._inverse * self._lengths.mean(), self._X)
            groups.data[groups.data < _ROUNDING * self._lengths.mean()] = 0
            groups.eliminate_zeros()
            pooled = sp.csr_array(sp.vstack([pooled, groups]))
        counts = sparse_counts(pooled, self._counts.dtype)
        found = MaximumLikelihood().weights(counts, topics.astype(counts.dtype), None, n_threads=1).doc_topic
        return np.where(counts.totals[:, np.newaxis] > 0, found, np.nan)

    def means(self, theta: Floats) -> Floats:
        """Return what `shares` estimates if the weights of the documents are `theta`."""
        values = np.column_stack([theta, np.ones(len(theta))])
        sums = (self._lengths @ values)[np.newaxis]
        if self._membership.shape[0]:
            sums = np.concatenate([sums, self._sums((self._lengths > 0).astype(np.float64), values)])
        sizes = sums[:, -1:]
        return np.divide(sums[:, :-1], sizes, out=np.full((len(sums), theta.shape[1]), np.nan), where=sizes > 0.5)

    def coherence(self, weights: Floats) -> Floats:
        """Return the coherence of the words of each topic."""
        together = np.asarray((self._present.T @ (sp.diags_array(weights) @ self._present)).todense())
        pairs = together[self._places[:, :, np.newaxis], self._places[:, np.newaxis]]
        return coherence_of(Cooccurrence(pairs, round(weights.sum()), "documents", None)).topics


def _ranks(topics: Floats, words: Array) -> Floats:
    """Return the rank of some words of each topic; 1 for the most probable word."""
    values = np.take_along_axis(topics, words, axis=1)
    ordered = np.sort(topics, axis=1)
    larger = [row.size - np.searchsorted(row, own, side="right") for row, own in zip(ordered, values, strict=True)]
    return np.array(larger, dtype=np.float64) + 1


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
    unseen = Bias.of_moments(bias.mean, noise).variance
    per_unit += np.divide(unseen, topics, out=np.zeros(topics.shape), where=topics > 0)
    found = count_intervals(estimate, per_unit, sampling.level)
    unknown = spread.returned < 2
    for part in (found.low, found.high, found.error):
        part[unknown] = np.nan
    return found
