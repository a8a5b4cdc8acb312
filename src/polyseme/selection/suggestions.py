"""Suggestions of topics to merge and topics to split in a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.core.edits import merge_costs
from polyseme.core.fitted import DocumentWeights, FittedTopics, TrainingDocuments, posterior_operands
from polyseme.core.shard import sparse_counts
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.validation import count_data
from polyseme.kernels import Array, Floats, SparseCounts, Want
from polyseme.selection.cross_validation import scored_topics
from polyseme.selection.n_topics import Selection, select_n_topics, topic_counts
from polyseme.utils import MAX_COUNT, RandomStateLike, as_seed, check_nonnegative, effective_threads

_MIN_TOKENS = 2.0
"""Documents with fewer tokens of a topic are not used to split it."""
MIN_DOCUMENTS = 10
"""Topics with fewer documents are not split."""


@dataclass(frozen=True)
class MergeSuggestion:
    """Two topics that could be merged.

    Attributes
    ----------
    first : int
        Index of the first topic.
    second : int
        Index of the second topic.
    divergence : float
        Jensen-Shannon divergence of the topics, weighted by their tokens, in nats: 0 for equal topics, at most log 2.
    loss : float
        Log-likelihood that a merged topic would lose, in nats per token of the whole corpus.
    """

    first: int
    second: int
    divergence: float
    loss: float


@dataclass(frozen=True)
class SplitSuggestion:
    """A topic whose tokens two topics predict better than one.

    Attributes
    ----------
    topic : int
        Index of the topic.
    gain : float
        Held-out log-probability per token of the topic that two topics gain over one.
    standard_error : float
        Standard error of `gain`.
    components : array of shape (2, n_words)
        The two topics.
    """

    topic: int
    gain: float
    standard_error: float
    components: Array


def suggest_merges(model: Any, *, max_divergence: float = 0.25) -> list[MergeSuggestion]:
    """Return pairs of topics that are nearly equal, most similar first.

    A topic may occur in several pairs. Merge one pair, then call the function again.

    Parameters
    ----------
    model : estimator
        A fitted topic model.
    max_divergence : float, default=0.25
        Largest Jensen-Shannon divergence of a pair, in nats.

    Returns
    -------
    list of MergeSuggestion
        The pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.selection import suggest_merges
    >>> X = np.kron(np.eye(2), np.full((20, 5), 3))  # two groups of documents without a common word
    >>> suggest_merges(PLSA(2, random_state=0).fit(X))
    []
    """
    fitted = scored_topics(model)
    limit = check_nonnegative("max_divergence", max_divergence)
    tokens = np.asarray(fitted.topic_weights * fitted.n_tokens)
    costs = merge_costs(topic_counts(fitted))
    suggestions = []
    for first, second in zip(*np.triu_indices(len(tokens), 1), strict=True):
        both = tokens[first] + tokens[second]
        divergence = float(costs[first, second] / both) if both > 0 else 0.0
        if divergence <= limit:
            loss = float(costs[first, second] / fitted.n_tokens)
            suggestions.append(MergeSuggestion(int(first), int(second), max(divergence, 0.0), max(loss, 0.0)))
    return sorted(suggestions, key=lambda merge: (merge.divergence, merge.first, merge.second))


def suggest_splits(
    model: Any, X: Any, *, min_gain: float = 0.02, random_state: RandomStateLike = 0, n_jobs: int | None = None
) -> list[SplitSuggestion]:
    """Return topics whose tokens contain more than one subject, those with the largest gain first.

    The expected counts x P(z|d,w) of a topic form a corpus. If two topics predict held-out words of this corpus better
    than its unigram, by the rule of `select_n_topics`, the topic contains more than one subject.

    Parameters
    ----------
    model : estimator
        A fitted topic model.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        The training documents.
    min_gain : float, default=0.02
        Smallest gain in nats per token. Overlapping topics give a small gain even for a topic with one subject, which
        is significant in a large corpus.
    random_state : int, RandomState or Generator, default=0
        Seed of the folds and the fits.
    n_jobs : int, default=None
        Number of threads; None uses all cores.

    Returns
    -------
    list of SplitSuggestion
        The topics.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.selection import suggest_splits
    >>> X = np.kron(np.eye(2), np.full((50, 5), 3))  # two groups of documents without a common word
    >>> [suggestion.topic for suggestion in suggest_splits(PLSA(1, random_state=0).fit(X), X)]
    [0]
    """
    random_state = as_seed(random_state)
    fitted = scored_topics(model)
    min_gain = check_nonnegative("min_gain", min_gain)
    counts = sparse_counts(count_data(model, X, reset=False), fitted.topic_word.dtype)
    documents: TrainingDocuments | None = model._training
    if documents is None:
        raise UnsupportedError(
            "suggest_splits needs the weights of the training documents, not known after partial_fit: use fit."
        )
    if counts.n_docs != len(documents.doc_topic):
        raise InputError(f"X must be the {len(documents.doc_topic)} documents of the fit, got {counts.n_docs}.")
    tokens = TopicTokens(fitted, documents, counts, n_threads=effective_threads(n_jobs))
    suggestions = []
    for topic in range(fitted.n_topics):
        expected = tokens.enough(topic)
        if expected.n_docs < MIN_DOCUMENTS:
            continue
        selection = select_n_topics(
            expected.matrix(), [2], refine=False, reading=False, n_jobs=n_jobs, random_state=random_state
        )
        if selection.structured:
            suggestions.append(_split(topic, selection))
    suggestions = [split for split in suggestions if split.gain > min_gain]
    return sorted(suggestions, key=lambda split: -split.gain)


class TopicTokens:
    """Expected counts x P(z|d,w) of the topics of a fitted model in documents, one topic at a time."""

    def __init__(
        self, fitted: FittedTopics, documents: TrainingDocuments, counts: SparseCounts, *, n_threads: int
    ) -> None:
        weights = DocumentWeights(documents.doc_topic, documents.background, counts)
        operands = fitted.inference.operands(weights, fitted.topic_word)
        self._A, self._B = posterior_operands(operands, fitted.inference.temperature)
        self._counts, self._q = counts, counts.products(self._A, self._B, n_threads=n_threads)
        self._rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
        self._n_threads = n_threads

    def of(self, topic: int) -> SparseCounts:
        """Return the expected counts of a topic in all documents. Over all topics, they sum to the counts."""
        joint = self._A[self._rows, topic] * self._B[self._counts.indices, topic]
        share: Floats = np.divide(joint, self._q, out=np.zeros_like(self._q), where=self._q > 0)
        return self._counts.with_values(self._counts.values * share)

    def n_documents(self) -> Array:
        """Return the number of documents with enough tokens of each topic; the last topic may be the background."""
        expected = self._A * self._counts.sums(self._A, self._B, Want.ROWS, n_threads=self._n_threads).row_sums
        return np.asarray((expected >= _MIN_TOKENS).sum(axis=0))

    def enough(self, topic: int) -> SparseCounts:
        """Return the expected counts of a topic in the documents with enough of its tokens, to fit topics to them."""
        counts = self.of(topic)
        # a fit would refuse smaller counts
        counts = counts.with_values(np.where(counts.values * MAX_COUNT[counts.dtype] < 1, 0, counts.values))
        return counts.take(np.flatnonzero(counts.totals >= _MIN_TOKENS))


def _split(topic: int, selection: Selection) -> SplitSuggestion:
    fit = selection.fits[2]
    return SplitSuggestion(topic, *fit.scores.gain_over_unigram(), components=fit.components[0])
