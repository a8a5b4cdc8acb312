"""Edits of topics.

Topics can be merged and removed, and words banned (`TopicEdit`). P(w|z) of a merged topic is the mean of P(w|z) of its
parts, weighted by P(z): the distribution of the words that come from any of them. The parts of a Dirichlet posterior
are added as counts (`core.dirichlet.DirichletPosterior.edited`).

A fit with fewer topics can start from the merged topics of a larger one (`merged_start`). If the topic of every token
were known, one distribution in place of those of topics i and j, with n_i and n_j tokens, would lose

    n_i KL(phi_i || m) + n_j KL(phi_j || m)

nats, with m their weighted mean. The pair with the smallest loss is merged first: near-duplicates, and topics with few
tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, normalize_rows, row_blocks

_BLOCK_NUMBERS = 1 << 22
"""Size of the arrays from which the costs of merging are computed."""
_START_SMOOTHING = 1e-3
"""Weight of the unigram in every topic, and of all topics in every document, of a merged start. EM cannot increase a
zero."""


class TopicEdit(NamedTuple):
    """Which topics are merged or removed, and which words are banned."""

    groups: tuple[tuple[int, ...], ...]
    """The old topics that each new topic is made of. A topic in no group is removed."""
    banned: Array
    """Columns of the words whose probability becomes zero."""

    @classmethod
    def of(cls, groups: Any, banned: Any, n_topics: int, n_words: int) -> TopicEdit:
        """Return the edit, after a check of the numbers of topics and columns."""
        found = tuple(tuple(_numbers("groups", group, n_topics)) for group in _listed("groups", groups))
        if not found or not all(found):
            raise InputError("groups must be a list of lists of topics: at least one list, and no list without topics.")
        used = [topic for group in found for topic in group]
        repeated = [topic for topic in used if used.count(topic) > 1]
        if repeated:
            raise InputError(f"groups: topic {repeated[0]} appears more than once: give it once.")
        columns = sorted(set(_numbers("banned", banned, n_words)))
        return cls(found, np.array(columns, dtype=np.intp))

    def sums(self, values: Array) -> Array:
        """Return the sums of an array over the topics of each group; topics are its first axis."""
        return np.array([values[list(group)].sum(axis=0) for group in self.groups])

    def active(self, active: Array) -> Array:
        """Return which of the new topics are used: those that contain a used topic."""
        return np.array([active[list(group)].any() for group in self.groups])


def merged_topics(topic_word: Array, topic_weights: Floats, edit: TopicEdit) -> Array:
    """Return P(w|z) of the new topics, from P(w|z) (K x words) and P(z) of the old ones.

    Topics of weight zero are merged with equal weights.
    """
    topics = topic_word.astype(np.float64)
    topics[:, edit.banned] = 0
    merged = np.empty((len(edit.groups), topics.shape[1]))
    for topic, group in enumerate(map(list, edit.groups)):
        weights = topic_weights[group] if topic_weights[group].sum() > 0 else np.ones(len(group))
        merged[topic] = (weights[:, np.newaxis] * topics[group]).sum(axis=0) / weights.sum()
        if merged[topic].sum() <= 0:
            raise InputError(f"Topic {', '.join(map(str, group))} has only banned words: remove the topic as well.")
    return normalize_rows(merged).astype(topic_word.dtype)


def without(probabilities: Floats, banned: Array) -> Floats:
    """Return a distribution of words without the banned words."""
    kept = np.array(probabilities, dtype=np.float64)
    kept[banned] = 0
    total = kept.sum()
    if not total > 0:
        raise InputError("banned contains all words of the background: ban fewer words.")
    return kept / total


def merged_start(topic_counts: Floats, doc_topic: Array, n_topics: int) -> tuple[Floats, Floats]:
    """Return a start with fewer topics, P(z|d) and P(w|z) without zeros, by merging the topics of a larger fit."""
    counts, doc_topic = merge_topics(topic_counts, doc_topic, n_topics)
    topic_word = normalize_rows(counts)
    unigram = normalize_rows(counts.sum(axis=1)[np.newaxis] @ topic_word)
    return (
        (1 - _START_SMOOTHING) * normalize_rows(doc_topic) + _START_SMOOTHING / n_topics,
        (1 - _START_SMOOTHING) * topic_word + _START_SMOOTHING * unigram,
    )


def merge_topics(topic_counts: Floats, doc_topic: Array, n_topics: int) -> tuple[Floats, Floats]:
    """Merge topics until `n_topics` are left. Returns their expected counts (K x words) and P(z|d) (documents x K)."""
    counts, theta = topic_counts.copy(), doc_topic.astype(np.float64)
    costs = merge_costs(counts)
    remaining = np.ones(len(counts), dtype=bool)
    for _ in range(len(counts) - n_topics):
        first, second = np.unravel_index(np.argmin(costs), costs.shape)
        counts[first] += counts[second]
        theta[:, first] += theta[:, second]
        remaining[second] = False
        costs[second], costs[:, second] = np.inf, np.inf
        others = np.flatnonzero(remaining)
        others = others[others != first]
        costs[np.minimum(first, others), np.maximum(first, others)] = _costs(counts, int(first), others)
    return counts[remaining], theta[:, remaining]


def merge_costs(topic_counts: Floats) -> Floats:
    """Return the loss of merging each pair of topics in nats: K x K, infinite on and below the diagonal."""
    K = len(topic_counts)
    costs = np.full((K, K), np.inf)
    for first in range(K - 1):
        costs[first, first + 1 :] = _costs(topic_counts, first, np.arange(first + 1, K))
    return costs


def _listed(name: str, values: Any) -> Sequence[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, got {values!r}.")
    return list(values)


def _numbers(name: str, values: Any, end: int) -> list[int]:
    """Return whole numbers from 0 to `end` - 1."""
    found = _listed(name, values)
    for value in found:
        if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < end:
            raise InputError(f"{name} must have whole numbers from 0 to {end - 1}, got {value!r}.")
    return [int(value) for value in found]


def _costs(counts: Floats, first: int, others: Array) -> Floats:
    """Return E_i + E_j - E_union, with E = sum_w c log c - n log n of the counts c of a topic and their sum n."""
    own = _negative_entropy(counts[first : first + 1])
    parts = [
        own + _negative_entropy(counts[some]) - _negative_entropy(counts[some] + counts[first])
        for some in (others[block] for block in row_blocks(others.size, counts.shape[1], _BLOCK_NUMBERS))
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _negative_entropy(counts: Floats) -> Floats:
    sums = counts.sum(axis=1)
    return np.asarray(_x_log_x(counts).sum(axis=1) - _x_log_x(sums))


def _x_log_x(x: Floats) -> Floats:
    logs = np.maximum(x, np.finfo(np.float64).tiny)  # a mask is several times slower
    np.log(logs, out=logs)
    return np.asarray(np.multiply(logs, x, out=logs))
