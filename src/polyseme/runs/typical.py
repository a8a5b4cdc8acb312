"""What topics are to documents, some thousand documents at a time: fit, most typical documents, shares of labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from polyseme.estimators.tables import largest
from polyseme.kernels import Array, Floats

_NUMBERS_AT_ONCE = 1 << 20


class Labels(NamedTuple):
    """The label of each document by its number."""

    names: list[str]
    """sorted; "" for none"""
    numbers: Array
    """of each document"""

    @classmethod
    def of(cls, labels: Iterable[str | None]) -> Labels:
        """labels : one for each document; None and "" for none."""
        met: dict[str, int] = {}
        found = np.fromiter((met.setdefault(label or "", len(met)) for label in labels), dtype=np.int32)
        names = sorted(met)
        place = np.empty(len(names), dtype=np.int32)
        place[[met[name] for name in names]] = np.arange(len(names))
        return cls(names, place[found])


class Typical(NamedTuple):
    """Of each topic."""

    fit: Floats
    """how much of its own documents it carries: sum_d P(d|z) P(z|d)"""
    documents: list[list[int]]
    """those with the largest P(d|z), the largest first"""
    shares: Floats
    """topics x labels: the sum of P(d|z) over the documents of each label"""


def typical(doc_topic: Array, doc_weights: Array, n_documents: int, labels: Labels | None = None) -> Typical:
    """From P(z|d) (documents x K) and P(d), without P(d|z) of all documents at once.

    P(d|z) = P(d) P(z|d) / P(z); a topic of weight zero has P(d|z) = P(d).
    """
    K = doc_topic.shape[1]
    weights, fit = np.zeros(K), np.zeros(K)
    by_label = np.zeros((K + 1, 0 if labels is None else len(labels.names)))
    best = [_Best(n_documents) for _ in range(K + 1)]
    rows_at_once = max(64, _NUMBERS_AT_ONCE // K)
    for start in range(0, len(doc_topic), rows_at_once):
        part = slice(start, start + rows_at_once)
        theta = np.asarray(doc_topic[part], dtype=np.float64)
        joint = np.column_stack([theta * doc_weights[part, np.newaxis], doc_weights[part]])
        weights += joint[:, :K].sum(axis=0)
        fit += (joint[:, :K] * theta).sum(axis=0)
        for topic, found in enumerate(best):
            found.offer(joint[:, topic], start)
            if labels is not None:
                by_label[topic] += np.bincount(labels.numbers[part], joint[:, topic], by_label.shape[1])
    used = weights > 0
    scale = np.where(used, weights, 1.0)
    return Typical(
        np.where(used, fit / scale, 0.0),
        [best[topic if used[topic] else K].rows for topic in range(K)],
        np.where(used[:, np.newaxis], by_label[:K] / scale[:, np.newaxis], by_label[K]),
    )


class _Best:
    """The rows of the largest values offered, the largest first; of equal ones the first."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values = np.empty(0)
        self._rows = np.empty(0, dtype=np.int64)

    def offer(self, values: Floats, start: int) -> None:
        if self._count == 0:
            return
        full = len(self._rows) == self._count
        near = np.flatnonzero(values > self._values[-1]) if full else np.arange(len(values))
        candidates = np.concatenate([self._values, values[near]])
        rows = np.concatenate([self._rows, start + near])
        order = largest(candidates, self._count)
        self._values, self._rows = candidates[order], rows[order]

    @property
    def rows(self) -> list[int]:
        return [int(row) for row in self._rows]
