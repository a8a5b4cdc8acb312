"""Which topics of a fitted model are nearly the same, and which hold two subjects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.core.shard import sparse_counts
from polyseme.errors import InputError
from polyseme.estimators.base import count_data
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.kernels.threads import effective_threads
from polyseme.selection.cross_validation import probabilistic
from polyseme.selection.n_topics import Selection, merge_costs, select_n_topics
from polyseme.utils import MOST, check_nonnegative

_LEAST_TOKENS = 2.0
"""of a topic in a document, for the document to say something about what lies within the topic"""
_LEAST_DOCUMENTS = 10


@dataclass(frozen=True)
class MergeSuggestion:
    """Two topics that could be one.

    divergence : their Jensen-Shannon divergence, weighted by their tokens, in nats: 0 for equal topics, at most log 2.
    loss : what one topic in their place would lose, in nats per token of the whole corpus.
    """

    first: int
    second: int
    divergence: float
    loss: float


@dataclass(frozen=True)
class SplitSuggestion:
    """A topic whose own tokens are better told by two topics.

    gain, standard_error : held-out log-probability per token of the topic that two topics gain over one.
    components : the two topics, 2 x words, for a first look.
    """

    topic: int
    gain: float
    standard_error: float
    components: Array


def suggest_merges(model: Any, *, max_divergence: float = 0.25) -> list[MergeSuggestion]:
    """Pairs of topics of a fitted model that are nearly the same, the most alike first.

    Each topic is in the list with as many others as it resembles; merge one pair, and look again.
    """
    check_is_fitted(model)
    limit = check_nonnegative("max_divergence", max_divergence)
    model = probabilistic(model)
    tokens = np.asarray(model.topic_weights_ * model.n_tokens_)
    costs = merge_costs(model.components_, tokens)
    found = []
    for first, second in zip(*np.triu_indices(len(tokens), 1), strict=True):
        together = tokens[first] + tokens[second]
        divergence = float(costs[first, second] / together) if together > 0 else 0.0
        if divergence <= limit:
            loss = float(costs[first, second] / model.n_tokens_)
            found.append(MergeSuggestion(int(first), int(second), max(divergence, 0.0), max(loss, 0.0)))
    return sorted(found, key=lambda merge: (merge.divergence, merge.first, merge.second))


def suggest_splits(
    model: Any, X: Any, *, min_gain: float = 0.02, random_state: int = 0, n_jobs: int | None = None
) -> list[SplitSuggestion]:
    """Topics of a model fitted on X whose own tokens have structure, those that gain most first.

    The tokens that the fit gives to a topic, x P(z|d,w), are a corpus of their own: if two topics predict its held-out
    words better than its unigram does, by the same rule that finds a corpus structured (`select_n_topics`), the topic
    holds more than one subject. Two topics must gain more than `min_gain` nats per token: where topics overlap, the
    tokens of a topic with one subject show a little structure too, which is significant in a large corpus.
    """
    check_is_fitted(model)
    least = check_nonnegative("min_gain", min_gain)
    model = probabilistic(model)
    counts = sparse_counts(count_data(model, X, reset=False), model.components_.dtype)
    if counts.n_docs != len(model.doc_topic_):
        raise InputError(f"X must be the {len(model.doc_topic_)} documents of the fit, got {counts.n_docs}.")
    theta = padded(model.doc_topic_, counts.dtype)
    phi = padded(model.components_.T, counts.dtype)
    q = counts.products(theta, phi, n_threads=effective_threads(n_jobs))
    found = []
    for topic in range(len(model.components_)):
        own = _own_tokens(counts, theta[:, topic], phi[:, topic], q)
        if own.n_docs < _LEAST_DOCUMENTS:
            continue
        seen = select_n_topics(own.matrix(), [2], refine=False, n_jobs=n_jobs, random_state=random_state)
        if seen.structured:
            found.append(_split(topic, seen))
    found = [split for split in found if split.gain > least]
    return sorted(found, key=lambda split: -split.gain)


def _own_tokens(counts: SparseCounts, weights: Array, words: Array, q: Array) -> SparseCounts:
    """x P(z|d,w) of one topic, in the documents that have enough of it."""
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    share: Floats = np.divide(weights[rows] * words[counts.indices], q, out=np.zeros_like(q), where=q > 0)
    tokens = counts.values * share
    own = counts.with_values(np.where(tokens * MOST[counts.dtype] < 1, 0, tokens))  # what a fit would refuse
    return own.take(np.flatnonzero(own.totals >= _LEAST_TOKENS))


def _split(topic: int, seen: Selection) -> SplitSuggestion:
    fit = seen.fits[2]
    return SplitSuggestion(topic, *fit.scores.gain_over_unigram(), components=fit.components[0])
