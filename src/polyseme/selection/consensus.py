"""Topics that many fits share: how reproducible each topic is, and how many topics are stable.

A fit of a topic model ends at one of many local maxima, and its topics vary with the documents that happened to be
collected. `consensus` fits resampled documents many times, matches the topics of the fits one to one, and returns their
means. Biologists judge gene programs (cNMF) and mutational signatures (SigProfiler) in this way.

1. Every fit has its own resample of the data, and starts from its singular vectors, with noise. Random starts often
   miss rare topics, and the fits then differ by their starts more than by their data.
2. Topics are vectors sqrt(P(w|z)), whose inner product is the affinity 1 - H^2 of Hellinger's distance H. The topics of
   each fit are assigned to those of the consensus, one to one, so that their total affinity is largest. The mean of the
   assigned vectors is the next consensus, until nothing changes.
3. A topic of a fit comes back if its affinity to the consensus is at least 0.85. Topics that do not are set aside, as
   long as half of the fits remain, and the consensus is the mean of P(w|z) of the others.
4. A fit of all documents starts from the consensus, and its topics get a tenth of the consensus. The mean of resamples
   alone is farther from the truth where documents mix many topics: rare words, which a single fit of all documents
   leaves out, are noise in it.

The stability of a topic is its mean silhouette: 1 if its copies in all fits are equal, 0 if they are as far from each
other as from the nearest other topic, negative if they are farther.

References
----------
D. Kotliar et al. Identifying gene expression programs of cell-type identity and cellular activity with single-cell
    RNA-Seq. eLife 8, 2019.
S. M. A. Islam et al. Uncovering novel mutational signatures by de novo extraction with SigProfilerExtractor. Cell
    Genomics 2, 2022.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning

from polyseme.core.shard import sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import annotated_names, count_data
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics.words import frame
from polyseme.solvers.batch import Problem, fit_batch
from polyseme.solvers.initialize import correspondence_parts, with_unigram
from polyseme.utils import RandomStateLike, as_seed, check_integer, check_n_topics, effective_threads

RESAMPLES = ("documents", "counts", "none")
_COMES_BACK = 0.85
"""Affinity of a topic that comes back. Of .7, .8, .85 and .9, shares at .85 separated planted topics from split and
merged ones best."""
STABLE, LEAST_STABLE = 0.9, 0.2
"""Mean and least stability of a stable number of topics. SigProfilerExtractor has 0.8 and 0.2. With 0.8, more of the
simulated cells on which the limit was chosen got too many programs: their genes vary beyond Poisson noise."""
_UNIGRAM_SHARE = 1e-3
"""Weight of the unigram in the mean of the topics, because EM cannot increase a zero."""
_CONSENSUS_SHARE = 0.1
"""Weight of the consensus in the final topics."""
_VECTORS = 16
"""Singular vectors are found in multiples of this number, so that a fit does not depend on the other numbers tried."""
_TOLERANCE = 1e-3
_JOINT_TOLERANCE = 0.1
"""Tolerance of the fit of all documents, as a share of that of the others, which only show what comes back."""
_MAX_ROUNDS = 100

Progress = Callable[[int, int, str], Any]


@dataclass(frozen=True, eq=False)
class ConsensusTopics:
    """Consensus with one number of topics.

    Attributes
    ----------
    model : PLSA
        Model of all documents, fitted from the consensus topics. The largest topic comes first.
    reproducibility : array of shape (n_topics,)
        Share of the fits in which the topic comes back: its affinity to the mean of its copies is at least 0.85.
    interval : array of shape (n_topics, 2)
        Wilson's 95% interval of `reproducibility`.
    topic_stability : array of shape (n_topics,)
        Mean silhouette of the topic in the fits, from -1 to 1.
    agreement : float
        Adjusted mutual information of the documents' main topics in two fits, mean over pairs: 1 if equal, 0 if no more
        alike than by chance. 0 for a single topic.
    unexplained : float
        Deviance of the model per deviance of the unigram: 1 if topics explain nothing, 0 if they explain all.
    n_fits : int
        Number of fits.
    """

    model: PLSA
    reproducibility: Floats
    interval: Floats
    topic_stability: Floats
    agreement: float
    unexplained: float
    n_fits: int

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return len(self.reproducibility)

    @property
    def stability(self) -> float:
        """Mean of `topic_stability`."""
        return float(self.topic_stability.mean())

    @property
    def least_stability(self) -> float:
        """Smallest `topic_stability`."""
        return float(self.topic_stability.min())

    @property
    def stable(self) -> bool:
        """Whether the mean stability is at least 0.9 and that of every topic at least 0.2."""
        return self.stability >= STABLE and self.least_stability >= LEAST_STABLE

    @property
    def table(self) -> Any:
        """Reproducibility of each topic as a polars data frame, or a pandas data frame if polars is not installed."""
        columns = {
            "topic": range(self.n_topics),
            "weight": self.model.topic_weights_,
            "reproducibility": self.reproducibility,
            "least": self.interval[:, 0],
            "most": self.interval[:, 1],
            "stability": self.topic_stability,
        }
        return frame({name: np.asarray(column).tolist() for name, column in columns.items()})


@dataclass(frozen=True, eq=False)
class Consensus:
    """Result of `consensus`.

    Attributes
    ----------
    chosen : int
        The chosen number of topics.
    reason : str
        Why it was chosen, in a sentence or two.
    solutions : dict of int to ConsensusTopics
        Consensus of each number of topics, in increasing order.
    """

    chosen: int
    reason: str
    solutions: dict[int, ConsensusTopics] = field(repr=False)

    @property
    def best(self) -> ConsensusTopics:
        """The consensus with the chosen number of topics."""
        return self.solutions[self.chosen]

    @property
    def model(self) -> PLSA:
        """Model with the chosen number of topics, fitted to all documents."""
        return self.best.model

    @property
    def table(self) -> Any:
        """Stability and deviance by number of topics, as a polars or pandas data frame."""
        names = ("n_topics", "stability", "least_stability", "agreement", "unexplained")
        return frame({name: [getattr(row, name) for row in self.solutions.values()] for name in names})


def consensus(
    X: Any,
    n_topics: int | Iterable[int],
    *,
    n_fits: int = 50,
    resample: str = "documents",
    max_iter: int = 1000,
    tol: float = _TOLERANCE,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    progress: Progress | None = None,
) -> Consensus:
    """Fit resampled data many times, and return the topics that the fits share.

    The chosen number of topics is the largest stable one: the mean stability of its topics is at least 0.9, and that of
    every topic at least 0.2. Without a stable number it is the one with the largest mean stability. The reason also
    names the number at which fits agree best about the main topics of documents, if that is another one.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    n_topics : int or iterable of int
        Number of topics, or numbers to compare.
    n_fits : int, default=50
        Number of fits for each number of topics.
    resample : {"documents", "counts", "none"}, default="documents"
        What each fit draws anew: documents with replacement; every count, from the Poisson distribution with the count
        as its mean; or nothing, so that only the random starts differ.
    max_iter : int, default=1000
        Maximum number of iterations of a fit.
    tol : float, default=1e-3
        A fit ends when an estimate of what it can still gain is below this many nats per token, as in `PLSA`.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    random_state : int, RandomState or Generator, default=0
        Seed of the resamples and the starts.
    progress : callable, default=None
        Called with (fits done, number of fits, description).

    Returns
    -------
    Consensus
        The chosen number, the reason, and for each number the model, and the reproducibility of its topics.

    Examples
    --------
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.selection import consensus
    >>> X = synthetic_corpus(300, n_topics=3, n_words=100, random_state=0).counts()
    >>> result = consensus(X, range(2, 6), n_fits=10)
    >>> result.chosen
    3
    >>> result.model.components_.shape
    (3, 100)
    """
    if resample not in RESAMPLES:
        raise InputError(
            f"resample must be {', '.join(map(repr, RESAMPLES[:-1]))} or {RESAMPLES[-1]!r}, got {resample!r}."
        )
    n_fits = check_integer("n_fits", n_fits, least=2)
    given = n_topics if isinstance(n_topics, Iterable) else [n_topics]
    numbers = sorted({check_n_topics(number, "n_topics") for number in given})
    if not numbers:
        raise InputError("n_topics is empty: give at least one number of topics.")
    words = annotated_names(X)
    X = count_data(PLSA(), X, reset=True)
    counts = sparse_counts(X, np.dtype(np.float32))
    most = min(counts.n_docs, counts.n_words)
    if numbers[-1] > most:
        raise InputError(
            f"n_topics must be at most {most}, the smaller number of documents and words, got {numbers[-1]}."
        )
    resamples = _Resamples(counts, resample, as_seed(random_state))
    n_threads, solutions = effective_threads(n_jobs), {}
    for done, number in enumerate(numbers):

        def report(fits: int, before: int = done * n_fits, number: int = number) -> None:
            if progress is not None:
                progress(before + fits, len(numbers) * n_fits, f"{number} topics")

        solutions[number] = _solution(
            X, counts, resamples.fits(number, n_fits, max_iter, tol, n_threads, report), max_iter, tol, n_jobs
        )
        if words is not None:
            solutions[number].model.set_vocabulary(words)
    chosen, reason = _choice(solutions)
    return Consensus(chosen, reason, solutions)


class MatchedTopics(NamedTuple):
    """Topics of fits, matched one to one."""

    topics: Floats
    """P(w|z), fits x K x words: topic k of all fits are copies of one topic."""
    affinity: Floats
    """Affinity of each topic to the mean of its copies, fits x K."""
    silhouette: Floats
    """Silhouette of each topic among all of them, fits x K."""
    order: Array
    """Number of each topic in its fit, fits x K."""


def match_topics(topics: Floats) -> MatchedTopics:
    """Match the topics of fits (fits x K x words) one to one, so that copies of a topic are alike."""
    roots = np.sqrt(topics)
    center = roots[0]
    order = np.empty(topics.shape[:2], dtype=np.intp)
    for _ in range(_MAX_ROUNDS):
        last = order.copy()
        for fit, rows in enumerate(roots):
            order[fit] = linear_sum_assignment(-center @ rows.T)[1]
        center = np.take_along_axis(roots, order[..., np.newaxis], axis=1).mean(axis=0)
        center /= np.maximum(np.linalg.norm(center, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        if (order == last).all():
            break
    roots = np.take_along_axis(roots, order[..., np.newaxis], axis=1)
    return MatchedTopics(
        np.take_along_axis(topics, order[..., np.newaxis], axis=1),
        np.einsum("fkw,kw->fk", roots, center),
        _silhouettes(roots),
        order,
    )


def _silhouettes(roots: Floats) -> Floats:
    """Return (b - a) / max(a, b) of each topic, by distances 1 - affinity; zeros for a single topic.

    a is the mean distance to the copies of the topic, b that to the copies of the nearest other topic. Means of inner
    products are inner products with sums, so the distances of all pairs are never stored.
    """
    n_fits, n_topics, _ = roots.shape
    sums = roots.sum(axis=0)
    own = (n_fits - np.einsum("fkw,kw->fk", roots, sums)) / (n_fits - 1)  # 1 - affinity, which is 1 with itself
    if n_topics == 1:
        return 1 - own
    to_others = 1 - np.einsum("fkw,jw->fkj", roots, sums / n_fits)
    to_others[:, np.arange(n_topics), np.arange(n_topics)] = np.inf
    nearest = to_others.min(axis=2)
    larger = np.maximum(own, nearest)
    return np.divide(nearest - own, larger, out=np.zeros_like(own), where=larger > 0)


class _Fits(NamedTuple):
    """The fits of all resamples with one number of topics."""

    topics: Floats
    """P(w|z), fits x K x words."""
    agreement: float
    """Mean adjusted mutual information of the main topics of documents, between each fit and the next one."""


@dataclass
class _Resamples:
    """Resamples of the counts, the same for every number of topics."""

    counts: SparseCounts
    resample: str
    seed: int
    parts: dict[tuple[int, int], Array] = field(default_factory=dict)
    """Topics by singular vectors of each resample, from which fits with up to so many topics start."""

    def draw(self, number: int) -> tuple[MemoryCorpus, Array]:
        """Return the documents of a resample, and their rows."""
        counts, rng, rows = self.counts, np.random.default_rng([self.seed, number]), np.arange(self.counts.n_docs)
        if self.resample == "documents":
            weights = np.bincount(rng.integers(counts.n_docs, size=counts.n_docs), minlength=counts.n_docs)
            rows = np.flatnonzero(weights)
            return MemoryCorpus(counts.take(rows), weights[rows].astype(np.float64)), rows
        if self.resample == "counts":
            counts = counts.with_values(rng.poisson(counts.values).astype(counts.dtype))
        return MemoryCorpus(counts), rows

    def problem(self, number: int, corpus: MemoryCorpus, n_topics: int) -> Problem:
        """Return the fit of a resample with a number of topics."""
        many = _VECTORS * -(-n_topics // _VECTORS)
        if (number, many) not in self.parts:
            parts = correspondence_parts(corpus, many, np.random.default_rng(self.seed))
            self.parts[number, many] = parts.astype(np.float32)
        topics = with_unigram(
            self.parts[number, many][:, :n_topics],
            corpus,
            n_topics,
            np.random.default_rng([self.seed, number, n_topics]),
        ).T
        uniform = np.full((corpus.n_docs, n_topics), 1 / n_topics)
        return Problem(n_topics, (uniform, topics), corpus.weights, corpus.by_doc)

    def fits(
        self, n_topics: int, n_fits: int, max_iter: int, tol: float, n_threads: int, report: Callable[[int], Any]
    ) -> _Fits:
        """Fit every resample."""
        topics, mains = list[Floats](), list[tuple[Array, Array]]()
        for first in range(0, n_fits, n_threads):
            numbers = range(first, min(first + n_threads, n_fits))
            drawn = [self.draw(number) for number in numbers]
            problems = [
                self.problem(number, corpus, n_topics) for number, (corpus, _) in zip(numbers, drawn, strict=True)
            ]
            fits = fit_batch(self.counts, problems, max_iter=max_iter, tol=tol, n_threads=n_threads)
            for fit, (_, rows) in zip(fits, drawn, strict=True):
                topics.append(fit.topic_word.astype(np.float64))
                mains.append((rows, fit.doc_topic.argmax(axis=1)))
            report(len(topics))
        agreement = np.mean([_agreement(*one, *other) for one, other in zip(mains, mains[1:] + mains[:1], strict=True)])
        return _Fits(np.array(topics), float(agreement))


def _agreement(rows: Array, main: Array, other_rows: Array, other_main: Array) -> float:
    """Return the adjusted mutual information of the main topics of the documents that two fits share."""
    from sklearn.metrics import adjusted_mutual_info_score

    _, one, other = np.intersect1d(rows, other_rows, assume_unique=True, return_indices=True)
    first, second = main[one], other_main[other]
    if not one.size or not np.ptp(first) or not np.ptp(second):  # scikit-learn calls two undivided partitions equal
        return 0.0
    return float(adjusted_mutual_info_score(first, second))


def _solution(
    X: Any, counts: SparseCounts, fits: _Fits, max_iter: int, tol: float, n_jobs: int | None
) -> ConsensusTopics:
    """Return the consensus of fits."""
    topics, affinity, silhouette, _ = match_topics(fits.topics)
    n_fits, n_topics = affinity.shape
    kept = affinity >= np.minimum(_COMES_BACK, np.median(affinity, axis=0))
    mean = np.einsum("fk,fkw->kw", kept, topics) / kept.sum(axis=0)[:, np.newaxis]
    word_totals = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
    start = (1 - _UNIGRAM_SHARE) * mean + _UNIGRAM_SHARE * word_totals / word_totals.sum()
    (fit,) = fit_batch(counts, [Problem(n_topics, start)], max_iter=max_iter, tol=_JOINT_TOLERANCE * tol)
    largest_first = np.argsort(-(counts.totals @ fit.doc_topic), kind="stable")
    start = ((1 - _CONSENSUS_SHARE) * fit.topic_word + _CONSENSUS_SHARE * start)[largest_first]
    affinity, silhouette = affinity[:, largest_first], silhouette[:, largest_first]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # more iterations would lead back to the fit
        model = PLSA(n_topics, init=(None, start), solver="em", max_iter=1, n_jobs=n_jobs).fit(X)
    found = (affinity >= _COMES_BACK).mean(axis=0)
    unexplained = _unexplained(X, word_totals, model)
    return ConsensusTopics(
        model, found, wilson_interval(found, n_fits), silhouette.mean(axis=0), fits.agreement, unexplained, n_fits
    )


def wilson_interval(shares: Floats, n_fits: int) -> Floats:
    """Return Wilson's 95% interval of each share of fits."""
    counts = np.rint(shares * n_fits).astype(int).tolist()
    return np.array([binomtest(count, n_fits).proportion_ci(method="wilson") for count in counts])


def _unexplained(X: Any, word_totals: Floats, model: PLSA) -> float:
    """Return the deviance of the model per deviance of the unigram, both from the saturated model."""
    values = X.data if sp.issparse(X) else np.asarray(X)
    totals = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    own = xlogy(values, values).sum(dtype=np.float64)
    saturated = own - xlogy(totals, totals).sum()
    unigram = xlogy(word_totals, word_totals).sum() - xlogy(totals.sum(), totals.sum())
    fitted = -totals.sum() * np.log(model.training_perplexity_)
    return float((saturated - fitted) / (saturated - unigram)) if saturated > unigram else 0.0


def _choice(solutions: dict[int, ConsensusTopics]) -> tuple[int, str]:
    """Return the chosen number of topics and the reason."""
    stable = [number for number, solution in solutions.items() if solution.stable]
    chosen = max(stable) if stable else max(solutions, key=lambda number: solutions[number].stability)
    at = solutions[chosen]
    stability = f"mean stability {at.stability:.2f}, least {at.least_stability:.2f}"
    if len(solutions) == 1:
        verdict = "stable" if stable else "not stable"
        return chosen, f"{chosen} topics, as given, are {verdict} in {at.n_fits} fits ({stability})."
    tried = f"Numbers between {min(solutions)} and {max(solutions)} were tried with {at.n_fits} fits each."
    agreed = max(solutions, key=lambda number: solutions[number].agreement)
    if agreed != chosen:
        tried += (
            f" Fits agree best about the main topics of documents with {agreed} topics (agreement "
            f"{solutions[agreed].agreement:.2f}, with {chosen} {at.agreement:.2f})."
        )
    if stable:
        return chosen, f"{chosen} topics, the largest number at which all topics are stable ({stability}). {tried}"
    limits = f"a mean stability of {STABLE} and at least {LEAST_STABLE} for every topic"
    return chosen, f"{chosen} topics, the most stable number ({stability}). No number has {limits}. {tried}"
