"""Edits of topics: names, merged topics, removed topics and removed words."""

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
    """Edits to apply. Topics are given by their numbers before the edits."""

    rename: Mapping[int, str] = field(default_factory=dict)
    """Names by topic; an empty name removes the name."""
    merge: Sequence[Sequence[int]] = ()
    """Groups of topics to merge into the one with the smallest number."""
    drop: Sequence[int] = ()
    """Topics to remove."""
    ban: Sequence[str] = ()
    """Words to remove."""

    def to_dict(self) -> dict[str, Any]:
        """Return the edits that are not empty, as JSON values."""
        parts = {
            "rename": {str(topic): name for topic, name in self.rename.items()},
            "merge": [list(group) for group in self.merge],
            "drop": list(self.drop),
            "ban": list(self.ban),
        }
        return {name: part for name, part in parts.items() if part}

    @property
    def changes_topics(self) -> bool:
        """Whether the edits change more than names."""
        return bool(self.merge or self.drop or self.ban)


@dataclass(frozen=True)
class Edited:
    """Topics, counts and names after the edits."""

    components: Floats
    """P(w|z) of the new topics; zero for removed words."""
    counts: Any
    """Counts without the removed words."""
    origin: list[list[int]]
    """Old topics that each new topic was made from."""
    names: dict[int, str]


def apply_edits(
    edits: Edits, components: Array, weights: Floats, counts: Any, vocabulary: Sequence[str], names: Mapping[int, str]
) -> Edited:
    """Apply the edits to the topics, counts and names of a run.

    components : P(w|z), K x words. weights : P(z). A merged topic is sum_k P(z_k) P(w|z_k), normalized.
    """
    K = len(components)
    _check_topics(edits, K)
    columns = _columns(edits.ban, vocabulary)
    topics = components.astype(np.float64)
    topics[:, columns] = 0
    emptied = np.flatnonzero(topics.sum(axis=1) <= 0)
    if emptied.size:
        raise InputError(
            f"Topic {emptied[0]} has no other words than the removed ones: remove it, too, with --drop {emptied[0]}."
        )
    groups = {min(group): sorted(set(group)) for group in edits.merge}
    removed = {topic for group in groups.values() for topic in group[1:]} | set(edits.drop)
    origin = [groups.get(topic, [topic]) for topic in range(K) if topic not in removed]
    if not origin:
        raise InputError("--drop would remove all topics: remove fewer.")
    merged = np.array([_weighted_mean(topics[group], weights[group]) for group in origin])
    renamed = {**names, **edits.rename}
    given = ([renamed[topic] for topic in group if renamed.get(topic)] for group in origin)
    return Edited(
        merged / merged.sum(axis=1, keepdims=True),
        _remove_columns(counts, columns),
        origin,
        {topic: group_names[0] for topic, group_names in enumerate(given) if group_names},
    )


def _check_topics(edits: Edits, K: int) -> None:
    merged = [topic for group in edits.merge for topic in set(group)]
    for topic in [*edits.rename, *merged, *edits.drop]:
        if not 0 <= topic < K:
            raise InputError(f"There is no topic {topic}: the run has topics 0 to {K - 1}.")
    if any(len(set(group)) < 2 for group in edits.merge):
        raise InputError("--merge needs at least two topics, such as --merge 4,7.")
    repeated = [topic for topic in {*merged, *edits.drop} if merged.count(topic) + (topic in edits.drop) > 1]
    if repeated:
        raise InputError(f"Topic {repeated[0]} appears more than once in --merge and --drop: give it once.")


def _columns(words: Sequence[str], vocabulary: Sequence[str]) -> list[int]:
    column_of = {word: column for column, word in enumerate(vocabulary)}
    unknown = [word for word in words if word not in column_of]
    if unknown:
        raise InputError(f"--ban: the run has no word {unknown[0]!r}; write words as polyseme topics shows them.")
    return sorted({column_of[word] for word in words})


def _weighted_mean(topics: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of topics; the plain mean if all weights are zero."""
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    return np.asarray(weights @ topics / weights.sum())


def _remove_columns(counts: Any, columns: list[int]) -> Any:
    if not columns:
        return counts
    counts = sp.csr_array(counts, copy=True)
    counts.data[np.isin(counts.indices, columns)] = 0
    counts.eliminate_zeros()
    return counts
