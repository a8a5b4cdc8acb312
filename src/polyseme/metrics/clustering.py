"""Topics as clusters of documents, and their agreement with labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats


@dataclass(frozen=True)
class Agreement:
    """Agreement of topics and labels.

    The hard measures assign each document to its topic with the largest P(z|d); the soft measures use P(z|d) itself.

    Attributes
    ----------
    nmi : float
        Mutual information divided by the mean of the two entropies: 0 for no agreement, 1 for equal partitions.
    ari : float
        Adjusted Rand index, from pairs of documents that both partitions join: 0 for chance, 1 for equal partitions.
    purity : float
        Share of documents that have the most frequent label of their topic. It increases with the number of topics.
    soft_nmi : float
        `nmi` with soft assignments.
    soft_ari : float
        `ari` for topics drawn from P(z|d), with expected numbers of pairs.
    soft_purity : float
        `purity` with soft assignments.
    n_documents : int
        Number of documents with a label; other documents are ignored.
    n_labels : int
        Number of distinct labels.
    """

    nmi: float
    ari: float
    purity: float
    soft_nmi: float
    soft_ari: float
    soft_purity: float
    n_documents: int
    n_labels: int


def label_agreement(doc_topic: Array, labels: Any) -> Agreement:
    """Return the agreement of topics with labels.

    Without a labeled document, or with one label and one topic, the partitions are equal and all measures are 1.

    Parameters
    ----------
    doc_topic : array-like of shape (n_documents, K)
        P(z|d).
    labels : sequence
        One label for each document; None, NaN or "" for a document without a label.

    Returns
    -------
    Agreement
        Hard and soft measures.

    Examples
    --------
    >>> from polyseme.metrics import label_agreement
    >>> label_agreement([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], ["a", "a", "b"]).purity
    1.0
    """
    theta = np.asarray(doc_topic, dtype=np.float64)
    names, numbers = label_numbers(labels, theta.shape[0])
    known = numbers >= 0
    theta, numbers = theta[known], numbers[known]
    chosen = np.zeros_like(theta)
    chosen[np.arange(len(theta)), hard_labels(theta)] = 1.0
    hard, soft = (_table(numbers, len(names), weights) for weights in (chosen, theta))
    return Agreement(
        normalized_mutual_information(hard),
        _adjusted_rand(hard, chosen),
        _purity(hard),
        normalized_mutual_information(soft),
        _adjusted_rand(soft, theta),
        _purity(soft),
        int(known.sum()),
        len(names),
    )


def hard_labels(doc_topic: Array) -> Array:
    """Return the topic with the largest P(z|d) of each document, the first if weights are equal."""
    return np.asarray(np.asarray(doc_topic).argmax(axis=1))


def label_numbers(labels: Any, n_documents: int) -> tuple[list[Any], Array]:
    """Return the sorted labels and the index of the label of each document; -1 for a missing label (None, NaN or "").

    Raise InputError unless there is one label for each of `n_documents` documents.
    """
    if isinstance(labels, str):
        raise InputError(f"labels must be a sequence with one label for each document, got the string {labels!r}.")
    values = list(labels)
    if len(values) != n_documents:
        raise InputError(f"labels must have one entry for each of the {n_documents} documents, got {len(values)}.")
    missing = [value is None or value == "" or value != value for value in values]
    present = {value for value, is_missing in zip(values, missing, strict=True) if not is_missing}
    try:
        names = sorted(present)
    except TypeError:
        names = sorted(present, key=lambda value: (type(value).__name__, str(value)))
    index = {name: i for i, name in enumerate(names)}
    numbers = (-1 if is_missing else index[value] for value, is_missing in zip(values, missing, strict=True))
    return names, np.fromiter(numbers, dtype=np.int64, count=len(values))


def _table(numbers: Array, n_labels: int, weights: Floats) -> Floats:
    """Return the contingency table (labels x topics): the topic weights, summed over the documents of each label."""
    membership = sp.csr_array((np.ones(len(numbers)), (numbers, np.arange(len(numbers)))), (n_labels, len(numbers)))
    return np.asarray(membership @ weights)


def normalized_mutual_information(table: Floats) -> float:
    """Return the mutual information of a table (labels x topics) divided by the mean of the two entropies.

    The value is 1 if neither labels nor topics divide the documents, and 0 if only one of them does.
    """
    total = table.sum()
    if total <= 0:
        return 1.0
    joint = table / total
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    entropies = _entropy(rows) + _entropy(columns)
    if np.count_nonzero(rows) <= 1 and np.count_nonzero(columns) <= 1:
        return 1.0
    information = entropies - _entropy(joint.ravel())
    return float(np.clip(2.0 * information / entropies, 0.0, 1.0))


def _entropy(p: Floats) -> float:
    present = p[p > 0]
    return float(-(present * np.log(present)).sum())


def _adjusted_rand(table: Floats, weights: Floats) -> float:
    """Return (E[pairs joined by both] - chance) / (mean pairs joined by either - chance).

    Pairs consist of different documents, whose topics are drawn independently from their weights. One-hot weights give
    the usual index.
    """
    n = len(weights)
    pairs = n * (n - 1) / 2
    squares = float(np.square(weights).sum())
    both = (float(np.square(table).sum()) - squares) / 2
    by_label = (float(np.square(table.sum(axis=1)).sum()) - n) / 2
    by_topic = (float(np.square(weights.sum(axis=0)).sum()) - squares) / 2
    if pairs == 0 or (both == by_label == by_topic):
        return 1.0
    chance = by_label * by_topic / pairs
    maximum = (by_label + by_topic) / 2
    return float((both - chance) / (maximum - chance)) if maximum != chance else 0.0


def _purity(table: Floats) -> float:
    total = table.sum()
    return float(table.max(axis=0).sum() / total) if total > 0 else 1.0
