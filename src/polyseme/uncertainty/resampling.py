"""Fits to resampled documents, and to documents drawn from the fitted model.

`Resampling` checks the model and the documents, fits the model to convergence, and yields fits whose topics are matched
with those of this fit. What is estimated from each of them is up to the caller: shares of groups, effects, coherence.

Of more than 50,000 documents, the fits take a sample of 50,000 of them, drawn once. A resample of n documents then
draws from the sample n times (the bag of little bootstraps), so that the spread of the topics is that of n documents,
and its topics are moved by the difference between the topics of all documents and of the sample.
What is estimated with these topics uses all documents, with weights that are drawn for it, independently. Documents
in shards are read part by part, and the model is taken as it is: only its fit to the sample is continued.

Documents drawn from the model show only a part of the bias of short documents, because the topics of the model have it
already. The bias comes from the errors of the weights of documents, whose variance falls with the number of tokens n,
beside the variance of the weights themselves, which falls with their concentration c. So c / n says how much of the
bias is left (`Resampling.shortness`).

References
----------
- Kleiner, A., Talwalkar, A., Sarkar, P., and Jordan, M. I. (2014). A scalable bootstrap for massive data. Journal of
  the Royal Statistical Society B 76, 795-816.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from polyseme.core.dirichlet import LearnedPosterior
from polyseme.core.fitted import FittedTopics
from polyseme.core.fold_in import MaximumLikelihood, select_known_words
from polyseme.core.shard import sparse_counts
from polyseme.datasets import draw_tokens
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators import PLSA
from polyseme.estimators.validation import count_data
from polyseme.kernels import Array, Floats, SparseCounts, normalize_rows
from polyseme.metrics.clustering import label_numbers
from polyseme.metrics.words import fitted_topics
from polyseme.solvers.batch import BatchFit, Problem, fit_batch
from polyseme.uncertainty.intervals import Sampling
from polyseme.utils import RandomStateLike, as_seed, check_integer, check_n_jobs, effective_threads, sample_rows

_MIX = 0.05
"""Share of the unigram in the topics from which documents are drawn. A topic without a word would never get it, and
topics that are fitted to short documents differ more from each other than the true ones."""
_TOL, _MAX_ITER = 1e-3, 500
"""A fit ends when its last ten iterations gain at most this many nats per token. Fits that end earlier stay near their
start, and intervals become too short: `python benchmarks/resamples.py --tolerances` says by how much."""
_LEAST_CONCENTRATION, _MOST_CONCENTRATION = 0.02, 100.0
"""Limits of the concentration of the prior, divided by the number of topics."""
_LEAST_MEAN = 1e-3
"""Smallest mean weight of a topic in the prior."""
FREQUENT = 1e-3
"""P(w|z) of words whose bias is typical of a topic."""
UNSEEN, _SHORT, _TOO_SHORT = 1.5, 0.03, 0.06
"""Bias that remains after correction, as a multiple of that of drawn documents; shortness from which it grows in
proportion to it; and shortness above which intervals are called too short. See benchmarks/short_documents.py."""
_BURN_IN = 50
"""Steps of Gibbs sampling that are not used."""
_STEPS = 5
"""Steps of Gibbs sampling with the same topics."""
N_SIMULATIONS = 12
"""Fits to drawn documents, unless a number is given."""
MOST_DOCUMENTS = 50_000
"""Number of documents above which topics are fitted to a sample of documents."""
_NUMBERS = 1 << 24
"""Numbers in the weights of documents of the fits that are in memory at once."""


class Units(NamedTuple):
    """What is drawn with replacement."""

    n: int
    number: Array | None
    """Number of the cluster of each document; None: every document is drawn on its own."""

    @classmethod
    def of(cls, clusters: Any, n_documents: int) -> Units:
        if clusters is None:
            return cls(n_documents, None)
        names, numbers = label_numbers(clusters, n_documents)
        if (numbers < 0).any():
            raise InputError("clusters must have a value for every document: give documents without one their own.")
        if len(names) < 2:
            raise InputError("clusters must have at least two different values.")
        return cls(len(names), numbers)

    def weights(self, rng: np.random.Generator) -> Floats:
        """Return how often each document is drawn."""
        drawn = rng.multinomial(self.n, np.full(self.n, 1 / self.n)).astype(np.float64)
        return drawn if self.number is None else drawn[self.number]

    def sample_weights(self, rows: Array, weights: Floats, rng: np.random.Generator) -> Floats:
        """Return weights of a sample of documents that vary as much as the means of all documents do.

        `weights` are those of all documents, which clusters share with the sample.
        """
        if self.number is not None:
            return weights[rows]
        drawn = rng.multinomial(self.n, np.full(rows.size, 1 / rows.size)).astype(np.float64)
        return np.asarray(drawn * (rows.size / self.n))


class Fits:
    """Fits of problems with the same counts, as many at a time as memory allows."""

    def __init__(self, counts: SparseCounts, n_topics: int, n_threads: int) -> None:
        self.counts, self.n_threads = counts, n_threads
        self._at_once = max(n_threads, min(16, _NUMBERS // max(1, counts.n_docs * n_topics)))

    def of(self, problems: Iterable[Problem], *, copies: bool = False) -> Iterator[tuple[Problem, BatchFit]]:
        """Yield the problems with their fits; `copies` are problems with counts of their own, which need memory."""
        remaining, at_once = iter(problems), self.n_threads if copies else self._at_once
        while part := list(islice(remaining, at_once)):
            fits = fit_batch(self.counts, part, max_iter=_MAX_ITER, tol=_TOL, n_threads=self.n_threads)
            yield from zip(part, fits, strict=True)

    def one(self, problem: Problem) -> BatchFit:
        """Return the fit of one problem."""
        return next(self.of([problem]))[1]


class Matched(NamedTuple):
    topics: Floats
    """Topics of a fit in the order of those that they are matched with."""
    returned: Array
    """Whether the match of each topic is nearer to it than to every other topic."""


def match_topics(topics: Floats, others: Array) -> Matched:
    """Match the topics of a fit with others, one to one, with the smallest total distance."""
    others = others.astype(np.float64)
    costs = cdist(topics, others, "cityblock")
    rows, order = linear_sum_assignment(costs)
    return Matched(others[order], costs.argmin(axis=0)[order] == rows)


class Moments:
    """Mean and variance of the differences between topics and their matches, where these came back."""

    def __init__(self, topics: Floats) -> None:
        self.topics = topics
        self.returned = np.zeros(len(topics))
        self._sums, self._squares = np.zeros(topics.shape), np.zeros(topics.shape)

    def add(self, matched: Matched) -> None:
        difference = np.where(matched.returned[:, np.newaxis], matched.topics - self.topics, 0)
        self.returned += matched.returned
        self._sums += difference
        self._squares += difference**2

    @property
    def mean(self) -> Floats:
        """Mean difference; zero for a topic that never came back."""
        return np.asarray(self._sums / np.maximum(self.returned, 1)[:, np.newaxis])

    @property
    def variance(self) -> Floats:
        """Variance; zero for a topic that came back less than twice."""
        n = self.returned[:, np.newaxis]
        return np.asarray(np.maximum(self._squares - n * self.mean**2, 0) / np.maximum(n - 1, 1))


class Population(NamedTuple):
    """Documents that are too many for memory, of which a sample is at hand."""

    n_documents: int
    rows: Array
    """The documents of the sample."""
    parts: Callable[[], Iterable[Any]]
    """Returns the counts of all documents, part by part (CSR)."""


class Resampled(NamedTuple):
    """A fit to resampled documents."""

    weights: Floats
    """How often each document was drawn."""
    matched: Matched


class Simulated(NamedTuple):
    """A fit to documents drawn from the model."""

    doc_topic: Floats
    """P(z|d) that the documents were drawn with."""
    counts: SparseCounts
    fit: BatchFit
    matched: Matched


class Resampling:
    """Repeated fits of a model, with the arguments of `bootstrap`.

    Attributes
    ----------
    fitted : FittedTopics
        The model.
    counts : SparseCounts
        The documents in memory, with the words that the model knows: all, or a sample of a population.
    loaded : array of int or slice
        Rows of `counts` among all documents.
    n_documents : int
        Number of all documents.
    rows : array of int or None
        The documents that resamples and simulations are fitted to; None: all.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        n_resamples: int,
        *,
        clusters: Any = None,
        level: float = 0.95,
        n_simulations: int = N_SIMULATIONS,
        random_state: RandomStateLike = 0,
        n_jobs: int | None = None,
        progress: Callable[[int, int], Any] | None = None,
        most_documents: int | None = MOST_DOCUMENTS,
        population: Population | None = None,
    ) -> None:
        self.fitted = checked_model(model)
        self.n_resamples = check_integer("n_resamples", n_resamples, least=2)
        self.n_simulations = check_integer("n_simulations", n_simulations, least=0)
        if not 0 < level < 1:
            raise InputError(f"level must be between 0 and 1, got {level}.")
        counts = checked_counts(X, self.fitted.topic_word.shape[1])
        self._known = np.asarray(self.fitted.topic_word.sum(axis=0) > 0)
        self.counts, _ = select_known_words(counts, self._known)
        self._population = population
        self.loaded = slice(None) if population is None else population.rows
        self.n_documents = self.counts.n_docs if population is None else population.n_documents
        self._units = Units.of(clusters, self.n_documents)
        n = self._units.n
        self._sampling = Sampling(level, min(self.n_resamples, n) - 1, float(np.sqrt(n / (n - 1))))
        self._seed, self._progress, self._done = as_seed(random_state), progress, 0
        n_threads = effective_threads(check_n_jobs(n_jobs))
        self._fits = self._own_fits = Fits(self.counts, self.fitted.n_topics, n_threads)
        self.rows = None if population is None else population.rows
        if population is None and most_documents is not None and self.counts.n_docs > most_documents:
            self.rows = sample_rows(self.counts.n_docs, most_documents, self._seed)
            part = sparse_counts(sp.csr_array(self.counts.matrix()[self.rows]), self.counts.dtype)
            self._own_fits = Fits(part, self.fitted.n_topics, n_threads)

    @property
    def share(self) -> float:
        """Share of the documents that resamples and simulations are fitted to."""
        return self._own_fits.counts.n_docs / self.n_documents

    def parts(self) -> Iterable[SparseCounts]:
        """Return the counts of all documents, part by part."""
        if self._population is None:
            return [self.counts]
        parts = (sparse_counts(part, self.counts.dtype) for part in self._population.parts())
        return (select_known_words(part, self._known)[0] for part in parts)

    @cached_property
    def center(self) -> BatchFit:
        """Fit that continues from the model to convergence, of the documents in memory."""
        return self._fits.one(Problem(self.fitted.n_topics, self.fitted.topic_word))

    @cached_property
    def topics(self) -> Floats:
        """P(w|z) of the fit that continues from the model (K x n_words); of a population those of the model."""
        found = self.center if self._population is None else self.fitted
        return found.topic_word.astype(np.float64)

    @cached_property
    def concentration(self) -> float:
        """Concentration of the Dirichlet prior of P(z|d)."""
        return pair_concentration(self.counts, self.topics)

    @property
    def sampling(self) -> Sampling:
        """Level, degrees of freedom and unseen bias of the intervals."""
        return replace(self._sampling, unseen=UNSEEN * max(1.0, self.shortness / _SHORT))

    @cached_property
    def shortness(self) -> float:
        """Concentration of P(z|d), divided by the mean number of tokens."""
        return self.concentration / self._mean_length

    @property
    def _mean_length(self) -> float:
        """Mean number of tokens of the documents with words."""
        totals = self.counts.totals
        return float(totals[totals > 0].mean())

    @property
    def notes(self) -> list[str]:
        """What makes the intervals too short, one sentence each."""
        if self.shortness <= _TOO_SHORT or self.fitted.n_topics == 1:
            return []
        return [
            f"The documents are too short for {self.fitted.n_topics} topics ({self._mean_length:.0f} words on "
            "average): topics are blurred, differences too small, and intervals too short. Fit fewer topics, or join "
            "short documents that belong together."
        ]

    @cached_property
    def _own_center(self) -> BatchFit:
        """Fit to the documents that resamples are fitted to, which continues from that of all documents."""
        if self.rows is None or self._population is not None:
            return self.center
        start = (self.center.doc_topic[self.rows], self.center.topic_word)
        return self._own_fits.one(Problem(self.fitted.n_topics, start))

    @cached_property
    def spread(self) -> Moments:
        """Differences of the topics of the resamples that were yielded."""
        return Moments(self.topics)

    @cached_property
    def bias(self) -> Moments:
        """Differences of the topics of the simulations that were yielded."""
        return Moments(mixed_topics(self._own_fits.counts, self.topics))

    @property
    def returned(self) -> Floats:
        """Share of the resamples in which each topic came back."""
        return self.spread.returned / self.n_resamples

    def _finished(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self.n_resamples + self.n_simulations)

    def resamples(self) -> Iterator[Resampled]:
        """Yield the fits to resampled documents."""
        K, own = self.fitted.n_topics, self._own_center
        start, shift = (own.doc_topic, own.topic_word), self.topics - own.topic_word
        drawn: list[Floats] = []

        def problems() -> Iterator[Problem]:
            for number in range(self.n_resamples):
                rng = np.random.default_rng([self._seed, 0, number])
                weights = self._units.weights(rng)
                drawn.append(weights)
                if self.rows is not None:
                    weights = self._units.sample_weights(self.rows, weights, rng)
                yield Problem(K, start, weights)

        for _, fit in self._own_fits.of(problems()):
            topics = fit.topic_word
            if self.rows is not None:
                topics = normalize_rows(np.maximum(topics + shift, 0))
            matched = match_topics(self.topics, topics)
            self.spread.add(matched)
            yield Resampled(drawn.pop(0), matched)
            self._finished()

    def simulations(self, topic_weights: Floats) -> Iterator[Simulated]:
        """Yield the fits to documents drawn from the model; `topic_weights` are P(z)."""
        if not self.n_simulations:
            return
        source = Source.of(self._own_fits.counts, self.topics, topic_weights, self._fits.n_threads)
        drawn: list[Floats] = []

        def problems() -> Iterator[Problem]:
            for number in range(self.n_simulations):
                theta, counts = source.draw(np.random.default_rng([self._seed, 1, number]))
                drawn.append(theta)
                start = (theta.astype(counts.dtype), source.topics.astype(counts.dtype))
                yield Problem(self.fitted.n_topics, start, counts=counts)

        for problem, fit in self._own_fits.of(problems(), copies=True):
            assert problem.counts is not None
            matched = match_topics(source.topics, fit.topic_word)
            self.bias.add(matched)
            yield Simulated(drawn.pop(0), problem.counts, fit, matched)
            self._finished()


def checked_model(model: Any) -> FittedTopics:
    """Return the topics of a model, or raise UnsupportedError if its fit cannot be repeated by `fit_batch`."""
    fitted = fitted_topics(model)
    if fitted is None:
        raise InputError("The model has no topics yet: call fit first.")
    inference = fitted.inference
    plain = isinstance(inference, MaximumLikelihood) and inference.temperature == 1 and inference.prior is None
    if not plain or inference.background is not None:
        raise UnsupportedError(
            "Intervals need topics fitted by maximum likelihood, without priors and without a background: fit PLSA() "
            "or NMF() with the Kullback-Leibler loss."
        )
    if not fitted.active.all():
        raise UnsupportedError("A topic of the model has no documents: fit fewer topics.")
    return fitted


def checked_counts(X: Any, n_words: int) -> SparseCounts:
    """Return checked counts with as many columns as the model has words."""
    checked = sp.csr_array(count_data(PLSA(), X, reset=True))
    if checked.shape[1] != n_words:
        raise InputError(f"X has {checked.shape[1]} columns, but the model has {n_words} words.")
    return sparse_counts(checked, np.dtype(np.float32))


# the model that documents are drawn from


def linear_scores(topics: Floats, totals: Floats) -> Floats:
    """Return l (K x words) for which the mean of l_w over the tokens of a document has expectation P(z|d).

    Words are weighted by the inverse of their numbers of tokens, `totals`, as in the likelihood of a mean document.
    """
    weighted = topics * np.divide(totals.sum(), totals, out=np.zeros(totals.size), where=totals > 0)
    return np.asarray(np.linalg.pinv(weighted @ topics.T) @ weighted)


def pair_concentration(counts: SparseCounts, topics: Floats) -> float:
    """Return the concentration of the Dirichlet prior of P(z|d), from pairs of tokens of the same document.

    With l the linear estimate of a token's topics, sum_w x_w l_w / n_d has expectation theta_d, and the mean product of
    different tokens of a document has expectation sum_k E theta_k^2, whatever the length of the document.
    """
    X, lengths = counts.matrix().astype(np.float64), counts.totals
    scores = linear_scores(topics, np.asarray(X.sum(axis=0)).ravel())
    sums = X @ scores.T
    products = (sums**2).sum(axis=1) - X @ (scores**2).sum(axis=0)
    pairs = (lengths * (lengths - 1)).sum()
    K = len(topics)
    mean = sums.sum(axis=0) / lengths.sum()
    same, apart = products.sum() / pairs if pairs > 0 else 1.0, float((mean**2).sum())
    found = (1 - same) / (same - apart) if same > apart else np.inf
    return float(np.clip(found, _LEAST_CONCENTRATION * K, _MOST_CONCENTRATION * K))


def prior_of(concentration: float, mean: Floats) -> Floats:
    """Return the parameters of the prior."""
    used = np.maximum(mean, _LEAST_MEAN)
    return np.asarray(concentration * used / used.sum())


def document_posteriors(counts: SparseCounts, topics: Floats, prior: Floats, *, n_threads: int) -> Floats:
    """Return the parameters of the Dirichlet posterior of every document (documents x K)."""
    found = LearnedPosterior(prior).weights(counts, topics.astype(counts.dtype), None, n_threads=n_threads)
    return np.maximum(found.parameters["gamma"], 1e-4, dtype=np.float64)


def posterior_draws(
    counts: SparseCounts,
    topics: Floats,
    prior: Floats,
    gamma: Floats,
    n_draws: int,
    rng: np.random.Generator,
    error: Floats | None = None,
) -> Floats:
    """Return draws from the posteriors of P(z|d) (draws x documents x K), by Gibbs sampling from `gamma`.

    In turn, every token draws its topic and every document its weights. With standard errors of the topics, P(w|z) is
    drawn again every few steps, from gamma distributions.
    """
    x, of_words = np.rint(counts.values).astype(np.int64), topics.T[counts.indices]
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    used, places = np.unique(counts.indices, return_inverse=True)
    draws = np.empty((n_draws, *gamma.shape))
    theta = normalize_rows(gamma)
    for number in range(-_BURN_IN, n_draws):
        if error is not None and number % _STEPS == 0:
            mean, variance = topics.T[used], error.T[used] ** 2
            scale = np.divide(variance, mean, out=np.zeros(mean.shape), where=mean > 0)
            drawn = rng.standard_gamma(np.divide(mean, scale, out=np.ones(mean.shape), where=scale > 0)) * scale
            of_words = np.where(scale > 0, drawn, mean)[places]
        tokens = rng.multinomial(x, normalize_rows(theta[rows] * of_words + 1e-300))
        sums = np.zeros(gamma.shape)
        np.add.at(sums, rows, tokens)
        theta = normalize_rows(rng.standard_gamma(prior + sums) + 1e-300)
        if number >= 0:
            draws[number] = theta
    return draws


def mixed_topics(counts: SparseCounts, topics: Floats) -> Floats:
    """Return topics with a small share of the unigram."""
    unigram = counts.word_totals(None)
    return normalize_rows((1 - _MIX) * topics + _MIX * unigram / unigram.sum())


class Source(NamedTuple):
    """The model that documents are drawn from."""

    topics: Floats
    posteriors: Floats
    lengths: Array
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, counts: SparseCounts, topics: Floats, topic_weights: Floats, n_threads: int) -> Source:
        mixed = mixed_topics(counts, topics)
        prior = prior_of(pair_concentration(counts, mixed), topic_weights)
        posteriors = document_posteriors(counts, mixed, prior, n_threads=n_threads)
        return cls(mixed, posteriors, np.rint(counts.totals).astype(np.int64), counts.dtype)

    def draw(self, rng: np.random.Generator) -> tuple[Floats, SparseCounts]:
        """Return weights of the documents from their posteriors, and counts drawn with them."""
        theta = normalize_rows(rng.standard_gamma(self.posteriors) + 1e-300)
        documents, words = draw_tokens(rng, self.lengths, theta, self.topics)
        shape = (len(self.lengths), self.topics.shape[1])
        drawn = sp.csr_array(sp.coo_array((np.ones(len(words), dtype=self.dtype), (documents, words)), shape=shape))
        return theta, sparse_counts(drawn, self.dtype)
