"""The number of topics to read: the largest number at which fits on different samples give documents the same topics.

The number that predicts held-out words best is larger than the number of topics that people see in a corpus. The number
to read comes from another question: which topics do not depend on the documents that happened to be drawn? Ten models
are fitted to ten samples of 80% of the documents, each from its own start. Every model assigns every document to its
largest topic, and the adjusted mutual information (AMI) of two models measures how well these partitions agree: 1 if
they are equal, 0 if they agree no more than by chance. Too many topics divide subjects in ways that differ from sample
to sample, too few join subjects in such ways; both lower the agreement. The number to read is the largest one whose
mean agreement is at least 96% of the maximum of the curve. The curve is smoothed over neighboring numbers, because the
models sometimes agree at a single number by chance.

Each model is first fitted with about twice the largest number that is tried. Each smaller number follows by merging
topics and a few iterations (`core.fitted.merged_start`), which makes the curve smoother than separate starts. Topics
that come from merging also match labels of documents better than those of a random start. A fit with the chosen number
therefore starts from the topics of one of these models: the one that agrees best with the others (`reading_topics`).

A fit with a given number of topics starts from the topics that ten short fits share (`shared_topics`). A single
random start may join two subjects and divide a third one, and the fit then stays there.

Agreement alone does not show that there are topics. In a corpus drawn from one distribution, fits agree as well: they
divide short texts by the same frequent words, other texts by the words that they repeat, and in a small corpus they
group the same documents. Held-out words therefore decide whether there is structure, as in `select_n_topics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from threading import get_ident
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.edits import merged_start
from polyseme.core.model import Model, m_step_docs
from polyseme.core.shard import Shard, sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import count_data
from polyseme.kernels import (
    Array,
    Floats,
    SparseCounts,
    Want,
    em_words,
    map_in_threads,
    normalize_rows,
    padded,
    weighted_sum,
)
from polyseme.progress import pluralize
from polyseme.solvers.initialize import named_start
from polyseme.utils import RandomStateLike, as_seed, check_integer, check_n_topics, effective_threads

BETA = 0.85
"""Power of the posteriors in the fits that choose a number of topics. Of 0.85, 0.9 and 1, 0.85 gave the number nearest
to the true one on synthetic corpora with overlapping topics; without overlap all three gave the true one."""
LEAST, MOST = 5, 25
"""Smallest and largest number of topics tried if there are enough documents: what a person can read as one list."""
FEW_DOCUMENTS = 20
"""With fewer distinct documents, fits on parts of them cannot be compared."""
MAX_DOCUMENTS = 5000
"""Documents drawn by default. With 1,000 of 20 Newsgroups the choice was unstable; more than 5,000 only take longer."""
_SMALL = 100
"""With fewer documents, the numbers tried are 2 to a quarter of the number of documents."""
_FITS, _PART = 10, 0.8
"""Number of fits, and the share of the documents in each sample. With five fits the choice for 20 Newsgroups varied
from 9 to 16."""
_SMOOTHING = np.array([0.25, 0.5, 0.25])
"""Weights of a number of topics and its neighbors in the smoothed curve."""
_ENOUGH = 0.96
"""Share of the best agreement that a larger number of topics needs."""
_UNSEEN_SHARE = 1e-3
"""Weight of the uniform distribution in topics that a fit starts from: EM cannot turn a zero into a positive number."""
_START_WIDTH = 16
"""The first fit of a path has a multiple of this number of topics, the width of the kernels."""
_FIRST_ITERATIONS, _ITERATIONS = 40, 10
"""Iterations of the first fit of a path, and of the smaller ones. With 6 instead of 10 the choice was unstable."""
_MAX_POOLED = 200
"""Largest number of topics, of all fits together, from which `shared_topics` merges its topics. With more than 20
topics there are fewer fits, and the cost stays the same."""
_FOLD_IN_STEPS = 30
"""EM steps that determine the largest topic of a document."""
_NO_AGREEMENT = 0.02
"""There is no structure if the best agreement is at most this value."""
_FLAT = 0.75
"""A curve is flat if every number has at least this share of the best agreement."""
_UNSURE = 1.5
"""The number is weakly determined if two halves of the fits give numbers that differ by this factor."""


Progress = Callable[[int, int, str], Any]


@dataclass(frozen=True)
class ReadingRow:
    """Agreement of the fits with one number of topics.

    Attributes
    ----------
    n_topics : int
        Number of topics.
    agreement : float
        Adjusted mutual information of the documents' largest topics, mean over all pairs of fits.
    agreement_error : float
        Standard error of the mean, over the fits.
    """

    n_topics: int
    agreement: float
    agreement_error: float


@dataclass(frozen=True)
class ReadingChoice:
    """Result of `reading_n_topics`.

    Attributes
    ----------
    chosen : int
        Number of topics to read.
    structured : bool
        Whether there is structure at all; if not, the topics may be due to chance.
    reason : str
        Why this number was chosen, in a few sentences.
    rows : list of ReadingRow
        Agreement of each number tried, in increasing order; empty if there were too few documents to try any.
    interval : tuple of int
        The numbers that each half of the fits alone would choose, the smaller one first.
    flat : bool
        Whether the curve is flat, or `interval` wide, so that the number is weakly determined.
    n_documents : int
        Number of documents that were used.
    typical_fit : int or None
        Index of the fit that agrees best with the others at this number, for `reading_topics`. None without fits or
        structure.
    """

    chosen: int
    structured: bool
    reason: str
    rows: list[ReadingRow]
    interval: tuple[int, int]
    flat: bool
    n_documents: int
    typical_fit: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as numbers, lists and strings for JSON.

        Returns
        -------
        dict
            The fields by name.
        """
        return {**vars(self), "interval": list(self.interval), "rows": [dict(vars(row)) for row in self.rows]}


def reading_n_topics(
    X: Any,
    *,
    max_documents: int | None = MAX_DOCUMENTS,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    structured: bool | None = None,
    progress: Progress | None = None,
) -> ReadingChoice:
    """Choose the number of topics to read, by how well the topics of documents agree between fits.

    The choice is the largest number between 5 and 25 whose agreement is at least 96% of the best. With fewer than 100
    documents the numbers are 2 to a quarter of the documents. With fewer than 20 distinct documents no number is tried:
    the choice is half the number of distinct documents.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    max_documents : int or None, default=5000
        Use at most this many documents, drawn at random. None uses all.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    random_state : int, RandomState or Generator, default=0
        Seed of the samples and the fits.
    structured : bool or None, default=None
        `Selection.structured`, if it is known. None tests it.
    progress : callable, default=None
        Called with (fits done, number of fits, description).

    Returns
    -------
    ReadingChoice
        The number, the reason, and the agreement of all numbers tried.

    Examples
    --------
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.selection import reading_n_topics
    >>> X = synthetic_corpus(300, n_topics=6, n_words=100, random_state=0).counts()
    >>> choice = reading_n_topics(X)
    >>> choice.chosen
    6
    """
    random_state = as_seed(random_state)
    X, total = _sampled(X, max_documents, random_state)
    counts = sparse_counts(X, np.dtype(np.float32))
    few = _few_documents(counts)
    if few is not None:
        return few
    counts, _ = _shared_words(counts)
    if counts.n_docs < FEW_DOCUMENTS:
        reason = (
            f"No structure: only {counts.n_docs} of {pluralize(X.shape[0], 'document')} share a word with another one."
        )
        return ReadingChoice(1, False, reason, [], (1, 1), True, X.shape[0])
    values = path_values(counts.n_docs, counts.n_words)
    agreements = _agreements(counts, values, effective_threads(n_jobs), random_state, progress)
    means, _ = _means_and_errors(agreements, range(_FITS))
    if means.max() <= _NO_AGREEMENT:
        structured = False
    elif structured is None:
        structured = _predicts(X, {values[0], values[int(means.argmax())]}, n_jobs, random_state)
    return _choice(values, agreements, structured, (X.shape[0], total))


def reading_topics(
    X: Any,
    n_topics: int,
    fit: int,
    *,
    max_documents: int | None = MAX_DOCUMENTS,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
) -> Floats:
    """Return the topics of one of the fits of `reading_n_topics`, a start for ``PLSA(n_topics, init=(None, topics))``.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        The counts given to `reading_n_topics`.
    n_topics : int
        `chosen` of the choice, or another number that was tried.
    fit : int
        `typical_fit` of the choice, or the index of another fit.
    max_documents : int or None, default=5000
        As in `reading_n_topics`.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    random_state : int, RandomState or Generator, default=0
        As in `reading_n_topics`.

    Returns
    -------
    ndarray of shape (n_topics, n_words)
        P(w|z), without zeros.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.selection import reading_topics
    >>> X = synthetic_corpus(300, n_topics=6, n_words=100, random_state=0).counts()
    >>> topics = reading_topics(X, 6, fit=0)
    >>> PLSA(6, init=(None, topics), random_state=0).fit(X).components_.shape
    (6, 100)
    """
    random_state = as_seed(random_state)
    X, _ = _sampled(X, max_documents, random_state)
    counts, words = _shared_words(sparse_counts(X, np.dtype(np.float32)))
    values = path_values(counts.n_docs, counts.n_words) if counts.n_docs >= FEW_DOCUMENTS else []
    if n_topics not in values or not 0 <= check_integer("fit", fit, least=0) < _FITS:
        raise InputError(f"There is no fit {fit} with {n_topics} topics: pass the numbers of a ReadingChoice.")
    rows = _samples(counts.n_docs, random_state)[fit]
    needed = [value for value in values if value >= n_topics]
    *_, (_, _, phi) = _fit_path(counts, rows, needed, [random_state, fit], effective_threads(n_jobs))
    return start_of_all_words(phi[:, :n_topics].T, words, X.shape[1])


def shared_topics(
    X: Any,
    n_topics: int,
    *,
    max_documents: int | None = MAX_DOCUMENTS,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    progress: Progress | None = None,
) -> Floats | None:
    """Return the topics that several short fits share, from which a run of a given number of topics starts.

    Ten fits (fewer for more than 20 topics) start from about twice as many topics, which are merged. The topics of all
    fits, and those of the more likely half of them, are then merged to `n_topics`, and the more likely result is kept.
    P(w|z), without zeros, the largest topics first; None, which means to start at random, for more than 100 topics,
    fewer than 20 documents, or fewer documents or words than topics. Only words of several documents, and documents
    with such words, count. `consensus` costs more, and says how reproducible each topic is.
    """
    random_state = as_seed(random_state)
    X, _ = _sampled(X, max_documents, random_state)
    counts, words = _shared_words(sparse_counts(X, np.dtype(np.float32)))
    n_fits = min(_FITS, _MAX_POOLED // check_n_topics(n_topics))
    if n_fits < 2 or counts.n_docs < max(n_topics, FEW_DOCUMENTS) or counts.n_words < n_topics:
        return None
    n_threads, caller = effective_threads(n_jobs), get_ident()
    corpus = MemoryCorpus(counts, None, n_threads)
    done: list[int] = []

    def fit(i: int) -> tuple[Array, Array]:
        rows, threads_per_fit = np.arange(counts.n_docs), max(1, n_threads // n_fits)
        ((_, *factors),) = _fit_path(counts, rows, [n_topics], [random_state, i], threads_per_fit)
        done.append(i)
        if progress is not None and get_ident() == caller:
            progress(len(done), n_fits, f"{len(done)} of {n_fits} starts")
        theta, phi = factors
        return theta, phi

    def likelihood(factors: tuple[Array, Array]) -> float:
        return corpus.total_log(corpus.sums(*factors, Want.LOGS).logs)

    fits = list(map_in_threads(fit, list(range(n_fits)), min(n_threads, n_fits)))
    better = sorted(fits, key=likelihood, reverse=True)[: n_fits // 2]
    theta, phi = max((_merged_fit(corpus, group, n_topics, n_topics) for group in (fits, better)), key=likelihood)
    largest_first = np.argsort(-(counts.totals @ theta[:, :n_topics]), kind="stable")
    return start_of_all_words(phi[:, largest_first].T, words, X.shape[1])


def start_of_all_words(topic_word: Floats, words: Array | slice, n_words: int) -> Floats:
    """Return topics of some words as topics of all words, without zeros."""
    topics = np.full((len(topic_word), n_words), _UNSEEN_SHARE / n_words)
    topics[:, words] += (1 - _UNSEEN_SHARE) * topic_word
    return normalize_rows(topics)


def _sampled(X: Any, max_documents: int | None, seed: int) -> tuple[sp.csr_array, int]:
    """Return the counts of at most `max_documents` documents, and the number of all documents."""
    X = count_data(PLSA(), X, reset=True)
    total = X.shape[0]
    if max_documents is not None:
        X = sample_rows(X, check_integer("max_documents", max_documents, least=2), seed)
    return sp.csr_array(X), total


def sample_rows(X: Any, max_documents: int, seed: int) -> Any:
    """Return at most `max_documents` rows, drawn at random, in their original order."""
    if X.shape[0] <= max_documents:
        return X
    rows = np.random.default_rng(seed).choice(X.shape[0], max_documents, replace=False)
    return X[np.sort(rows)]


def path_values(n_documents: int, n_words: int) -> list[int]:
    """Return the numbers of topics to try, in increasing order: all up to 12, then steps of about 12%."""
    small = n_documents < _SMALL
    largest = min(MOST, n_words, n_documents // 4 if small else MOST)
    least = min(2 if small else LEAST, largest)
    values = {largest, *range(least, 13)}
    value = 12
    while value < largest:
        value = max(value + 2, round(1.12 * value))
        values.add(value)
    return sorted(value for value in values if least <= value <= largest)


def _shared_words(counts: SparseCounts) -> tuple[SparseCounts, Array]:
    """Return the counts without words of a single document and without empty documents, and the remaining words.

    A word of a single document says nothing about topics that documents share. In a sample, half of the words are such.
    """
    matrix = counts.matrix()
    words = np.flatnonzero(np.bincount(counts.indices, minlength=counts.n_words) > 1)
    matrix = matrix[:, words]
    return sparse_counts(matrix[np.flatnonzero(np.diff(matrix.indptr))], counts.dtype), words


def _samples(n_documents: int, seed: int) -> list[Array]:
    """Return the documents of each fit."""
    rng = np.random.default_rng(seed)
    size = max(2, round(_PART * n_documents))
    return [np.sort(rng.choice(n_documents, size, replace=False)) for _ in range(_FITS)]


def _few_documents(counts: SparseCounts) -> ReadingChoice | None:
    """Return the choice for few distinct documents, a quarter of their number; None if there are enough documents."""
    rows = (slice(*ends) for ends in pairwise(counts.indptr))
    different = len({(counts.indices[row].tobytes(), counts.values[row].tobytes()) for row in rows})
    if different >= FEW_DOCUMENTS:
        return None
    chosen = max(1, min(max(2, different // 4), different, counts.n_words))
    too_few = "too few to compare fits on parts of them"
    if different == 1 and counts.n_docs > 1:
        why = f"all {counts.n_docs:,} documents have the same words"
    elif different == counts.n_docs:
        why = f"{pluralize(different, 'document')} {'is' if different == 1 else 'are'} {too_few}"
    else:
        why = f"{different} different documents are {too_few}"
    reason = f"Number of topics: {chosen}, because {why}."
    return ReadingChoice(chosen, different > 1, reason, [], (chosen, chosen), True, counts.n_docs)


def _agreements(
    counts: SparseCounts, values: list[int], n_threads: int, seed: int, progress: Progress | None
) -> Floats:
    """Return the AMI of all pairs of fits: values x fits x fits, above the diagonal."""
    from sklearn.metrics import adjusted_mutual_info_score

    samples = _samples(counts.n_docs, seed)
    caller = get_ident()
    done: list[int] = []

    def fit(i: int) -> list[Array]:
        largest_topics, threads_per_fit = [], max(1, n_threads // _FITS)
        for value, _, phi in _fit_path(counts, samples[i], values, [seed, i], threads_per_fit):
            largest_topics.append(_largest_topics(counts, value, phi, threads_per_fit))
            done.append(value)
            if progress is not None and get_ident() == caller:
                progress(len(done), _FITS * len(values), f"{value} topics")
        return largest_topics[::-1]

    partitions = list(map_in_threads(fit, list(range(_FITS)), min(n_threads, _FITS)))
    agreements = np.zeros((len(values), _FITS, _FITS))
    for one, other in combinations(range(_FITS), 2):
        for i, (first, second) in enumerate(zip(partitions[one], partitions[other], strict=True)):
            if np.ptp(first) and np.ptp(second):  # scikit-learn calls two undivided partitions equal
                agreements[i, one, other] = adjusted_mutual_info_score(first, second)
    return agreements


def _fit_path(
    counts: SparseCounts, rows: Array, values: list[int], seed: list[int], n_threads: int
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each number of topics, the largest first, with P(z|d) (documents x width) and P(w|z) (words x width)."""
    corpus = MemoryCorpus(counts.take(rows), None, n_threads)
    K = _START_WIDTH * max(1, round(2 * values[-1] / _START_WIDTH))
    model = Model(K, temperature=BETA)
    theta, phi = named_start("random", corpus, model, np.random.default_rng(seed))
    theta, phi = _tempered_em(model, corpus, theta, phi, _FIRST_ITERATIONS)
    for value in reversed(values):
        theta, phi = _merged_fit(corpus, [(theta, phi)], K, value)
        K = value
        yield value, theta, phi


def _merged_fit(
    corpus: MemoryCorpus, fits: list[tuple[Array, Array]], n_topics: int, n_merged: int
) -> tuple[Array, Array]:
    """Return theta and phi with `n_merged` topics: those of all fits, merged, after a few iterations."""
    topic_counts = [
        np.ascontiguousarray(phi[:, :n_topics].T, dtype=np.float64)
        * weighted_sum(corpus.totals, theta, n_threads=corpus.n_threads)[:n_topics, np.newaxis]
        for theta, phi in fits
    ]
    doc_topic = np.hstack([theta[:, :n_topics] for theta, _ in fits])
    doc_topic, topic_word = merged_start(np.vstack(topic_counts), doc_topic, n_merged)
    start = padded(doc_topic, corpus.dtype), padded(topic_word.T, corpus.dtype)
    return _tempered_em(Model(n_merged, temperature=BETA), corpus, *start, _ITERATIONS)


def _largest_topics(counts: SparseCounts, n_topics: int, phi: Array, n_threads: int) -> Array:
    """Return the largest topic of every document."""
    words = Model(n_topics, temperature=BETA).word_operand(phi)
    weights = counts.em_steps(words, n_topics, _FOLD_IN_STEPS, n_threads=n_threads, temperature=BETA)
    return np.asarray(weights.argmax(axis=1))


def _tempered_em(model: Model, shard: Shard, theta: Array, phi: Array, n_iterations: int) -> tuple[Array, Array]:
    """Return the factors after iterations of tempered EM, without the sweep that the likelihood would need."""
    for _ in range(n_iterations):
        A, B = model.operands(theta, phi)
        sizes = weighted_sum(shard.totals, theta, n_threads=shard.n_threads)
        theta = m_step_docs(model, shard, theta, A, shard.sums(A, B, Want.ROWS).row_sums)
        phi, _ = em_words(
            B, shard.sums(A, B, Want.WORDS).word_sums, sizes, shard.word_totals, n_threads=shard.n_threads
        )
    return theta, phi


def _predicts(X: Any, numbers: set[int], n_jobs: int | None, seed: int) -> bool:
    """Return whether topics predict held-out words, and words from other words, better than the unigram."""
    from polyseme.selection.n_topics import select_n_topics  # which imports this module

    try:
        selection = select_n_topics(X, sorted(numbers), reading=False, refine=False, n_jobs=n_jobs, random_state=seed)
    except InputError:  # the held-out documents share no word with the others
        return False
    return selection.structured


def _largest_enough(values: list[int], means: Floats, errors: Floats) -> int:
    """Return the largest number whose agreement is at least _ENOUGH times the best.

    The best is the maximum of the smoothed curve, or of a single number minus two standard errors if that is higher.
    """
    smooth = np.convolve(np.pad(means, 1, mode="edge"), _SMOOTHING, mode="valid")
    best = max(smooth.max(), (means - 2 * errors).max())
    return max(value for value, mean in zip(values, means, strict=True) if mean >= _ENOUGH * best)


def _means_and_errors(agreements: Floats, fits: range) -> tuple[Floats, Floats]:
    """Return the mean agreement of all pairs of these fits, and its standard error, for each number of topics."""
    pairs = agreements[:, *np.array(list(combinations(fits, 2))).T]
    return pairs.mean(axis=1), pairs.std(axis=1, ddof=1) / len(fits) ** 0.5


def _choice(values: list[int], agreements: Floats, structured: bool, sample: tuple[int, int]) -> ReadingChoice:
    """Return the choice from the agreements of all fits (values x fits x fits)."""
    means, errors = _means_and_errors(agreements, range(_FITS))
    rows = [ReadingRow(*row) for row in zip(values, means.tolist(), errors.tolist(), strict=True)]
    if not structured:
        reason = _no_structure(means.max(), values)
        return ReadingChoice(1, False, reason + sample_text(*sample), rows, (1, 1), True, sample[0])
    halves = (range(_FITS // 2), range(_FITS // 2, _FITS))
    first, second = (_largest_enough(values, *_means_and_errors(agreements, half)) for half in halves)
    chosen, interval = _largest_enough(values, means, errors), (min(first, second), max(first, second))
    flat = bool(means.min() >= _FLAT * means.max() or interval[1] >= _UNSURE * interval[0])
    reason = _reason(chosen, rows, interval) + sample_text(*sample)
    at_choice = agreements[values.index(chosen)]
    typical = int((at_choice + at_choice.T).sum(axis=1).argmax())
    return ReadingChoice(chosen, True, reason, rows, interval, flat, sample[0], typical)


def _reason(chosen: int, rows: list[ReadingRow], interval: tuple[int, int]) -> str:
    """Return the reason for the choice in a few sentences; the first one can stand alone."""
    agreement = {row.n_topics: row.agreement for row in rows}
    least, most, best = rows[0].n_topics, rows[-1].n_topics, max(agreement, key=agreement.__getitem__)
    at_best = "the best" if chosen == best else f"the best is {agreement[best]:.2f} with {best} topics"
    text = (
        f"{chosen} topics to read, the most at which fits to samples agree. Numbers between {least} and {most} were "
        f"tried; the agreement about the topics of documents is {agreement[chosen]:.2f}, {at_best} (1 is perfect, 0 is "
        "chance)."
    )
    if interval[0] == interval[1]:
        text += f" Each half of the {_FITS} fits alone gives {interval[0]}."
    else:
        text += f" One half of the {_FITS} fits alone gives {interval[0]}, the other half {interval[1]}."
    if min(agreement.values()) >= _FLAT * agreement[best]:
        text += (
            f" The curve is flat (agreement {min(agreement.values()):.2f} to {agreement[best]:.2f} for all numbers), "
            "so the number is weakly determined, and finer or coarser topics may be as good."
        )
    elif interval[1] >= _UNSURE * interval[0]:
        text += " So the number is weakly determined, and finer or coarser topics may be as good."
    if best == least and least > 2:
        text += f" {least} is the smallest number tried: fewer may agree better."
    if chosen == most:
        text += f" {most} is the largest number tried: more may be as good."
    return text


def _no_structure(agreement: float, values: list[int]) -> str:
    tried = f"{values[0]} to {values[-1]} topics" if len(values) > 1 else pluralize(values[0], "topic")
    if agreement <= _NO_AGREEMENT:
        return (
            f"No structure: with {tried}, fits on different parts of the documents agree about their topics no more "
            f"than by chance (agreement at most {agreement:.2f})."
        )
    return (
        "No structure: topics predict held-out words no better than the unigram, except words that documents repeat "
        f"(agreement of fits on different parts of the documents with {tried}: at most {agreement:.2f})."
    )


def sample_text(used: int, total: int) -> str:
    """Return a sentence about the sample, or "" if all documents were used."""
    return f" Chosen with {used:,} of {total:,} documents, drawn at random." if used < total else ""
