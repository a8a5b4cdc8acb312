"""Topics as people want them: named, merged, dropped, without certain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats


@dataclass(frozen=True)
class Edits:
    """What to change; topics by their ids before the change."""

    rename: Mapping[int, str] = field(default_factory=dict)
    """a name for a topic; an empty one takes the name away"""
    merge: Sequence[Sequence[int]] = ()
    """groups of topics that become one, under the smallest id"""
    drop: Sequence[int] = ()
    ban: Sequence[str] = ()
    """words that no topic may have"""

    def to_dict(self) -> dict[str, Any]:
        """Only what is changed, as JSON."""
        parts = {
            "rename": {str(topic): name for topic, name in self.rename.items()},
            "merge": [list(group) for group in self.merge],
            "drop": list(self.drop),
            "ban": list(self.ban),
        }
        return {name: part for name, part in parts.items() if part}

    @property
    def changes_topics(self) -> bool:
        """Whether more than names change."""
        return bool(self.merge or self.drop or self.ban)


@dataclass(frozen=True)
class Edited:
    """Topics after the edits."""

    components: Floats
    """K' x words, rows sum to one; banned words are zero"""
    counts: Any
    """without the banned words"""
    origin: list[list[int]]
    """the topics before the edits that each topic is made of"""
    names: dict[int, str]


def apply_edits(
    edits: Edits, components: Array, weights: Floats, counts: Any, vocabulary: Sequence[str], names: Mapping[int, str]
) -> Edited:
    """The topics, counts and names that the edits make of those of a run.

    components : P(w|z), K x words; weights : P(z). A merged topic is sum_k P(z_k) P(w|z_k), normalized.
    """
    K = len(components)
    _check_topics(edits, K)
    columns = _columns(edits.ban, vocabulary)
    topics = components.astype(np.float64)
    topics[:, columns] = 0
    emptied = np.flatnonzero(topics.sum(axis=1) <= 0)
    if emptied.size:
        raise InputError(f"Topic {emptied[0]} has no other words than the banned ones: drop it too.")
    groups = {min(group): sorted(set(group)) for group in edits.merge}
    gone = {topic for group in groups.values() for topic in group[1:]} | set(edits.drop)
    origin = [groups.get(topic, [topic]) for topic in range(K) if topic not in gone]
    if not origin:
        raise InputError("No topic would be left: drop fewer.")
    merged = np.array([_mean(topics[group], weights[group]) for group in origin])
    renamed = {**names, **edits.rename}
    found = ([renamed[topic] for topic in group if renamed.get(topic)] for group in origin)
    return Edited(
        merged / merged.sum(axis=1, keepdims=True),
        _without(counts, columns),
        origin,
        {place: given[0] for place, given in enumerate(found) if given},
    )


def _check_topics(edits: Edits, K: int) -> None:
    merged = [topic for group in edits.merge for topic in set(group)]
    for topic in [*edits.rename, *merged, *edits.drop]:
        if not 0 <= topic < K:
            raise InputError(f"There is no topic {topic}: the run has topics 0 to {K - 1}.")
    if any(len(set(group)) < 2 for group in edits.merge):
        raise InputError("Merging needs two topics or more.")
    repeated = [topic for topic in {*merged, *edits.drop} if merged.count(topic) + (topic in edits.drop) > 1]
    if repeated:
        raise InputError(f"Topic {repeated[0]} is merged or dropped twice: name it once.")


def _columns(words: Sequence[str], vocabulary: Sequence[str]) -> list[int]:
    place = {word: column for column, word in enumerate(vocabulary)}
    unknown = [word for word in words if word not in place]
    if unknown:
        raise InputError(f"The run has no word {unknown[0]!r}: name words as polyseme topics shows them.")
    return sorted({place[word] for word in words})


def _mean(topics: Floats, weights: Floats) -> Floats:
    """The mean by weight; equal weights where all are zero."""
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    return np.asarray(weights @ topics / weights.sum())


def _without(counts: Any, columns: list[int]) -> Any:
    if not columns:
        return counts
    left = sp.csr_array(counts, copy=True)
    left.data[np.isin(left.indices, columns)] = 0
    left.eliminate_zeros()
    return left
