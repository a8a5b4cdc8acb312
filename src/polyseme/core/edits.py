"""Edits of fitted topics: merged and removed topics, and banned words.

P(w|z) of a merged topic is the mean of P(w|z) of its parts, weighted by P(z): the distribution of the words that come
from any of them. The parts of a Dirichlet posterior are added as counts (`core.dirichlet.DirichletPosterior.edited`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, normalize_rows


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
        """Return which of the new topics are used: those with an old topic that is."""
        return np.array([active[list(group)].any() for group in self.groups])


def merged_topics(topic_word: Array, topic_weights: Floats, edit: TopicEdit) -> Array:
    """Return P(w|z) of the new topics, from P(w|z) (K x words) and P(z) of the old ones.

    Topics of weight zero are merged with equal weights.
    """
    topics = topic_word.astype(np.float64)
    topics[:, edit.banned] = 0
    merged = np.array([_weighted_mean(topics[list(group)], topic_weights[list(group)]) for group in edit.groups])
    check_words_left(merged, edit)
    return normalize_rows(merged).astype(topic_word.dtype)


def check_words_left(topics: Array, edit: TopicEdit) -> None:
    """Raise InputError if a topic has no words other than the banned ones."""
    emptied = np.flatnonzero(topics.sum(axis=1) <= 0)
    if emptied.size:
        parts = ", ".join(map(str, edit.groups[emptied[0]]))
        raise InputError(f"Topic {parts} has no other words than the banned ones: remove the topic, too.")


def without(probabilities: Floats, banned: Array) -> Floats:
    """Return a distribution of words without the banned words."""
    kept = np.array(probabilities, dtype=np.float64)
    kept[banned] = 0
    total = kept.sum()
    if not total > 0:
        raise InputError("banned has all words of the background: ban fewer words.")
    return kept / total


def _weighted_mean(topics: Floats, weights: Floats) -> Floats:
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    return np.asarray((weights[:, np.newaxis] * topics).sum(axis=0) / weights.sum())


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
