"""Labels of documents as numbers.

Topics as clusters of documents (Gaussier and Goutte 2005), and how well they agree with labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats


def label_numbers(labels: Any, n_documents: int) -> tuple[list[Any], Array]:
    """The different labels, sorted, and the number of each document's; -1 for none (None, NaN or "").

    Raises InputError unless there is one for each of `n_documents` documents.
    """
    if isinstance(labels, str):
        raise InputError(f"labels must be a sequence with one label for each document, got the string {labels!r}.")
    values = list(labels)
    if len(values) != n_documents:
        raise InputError(f"labels must be one for each of the {n_documents} documents, got {len(values)}.")
    missing = [value is None or value == "" or value != value for value in values]
    present = {value for value, none in zip(values, missing, strict=True) if not none}
    try:
        names = sorted(present)
    except TypeError:
        names = sorted(present, key=lambda value: (type(value).__name__, str(value)))
    place = {name: number for number, name in enumerate(names)}
    numbers = (-1 if none else place[value] for value, none in zip(values, missing, strict=True))
    return names, np.fromiter(numbers, dtype=np.int64, count=len(values))


@dataclass(frozen=True)
class Agreement:
    """Agreement between topics and labels; hard ones by the largest P(z|d), soft ones by P(z|d) itself."""

    nmi: float
    """mutual information over the mean of the two entropies: 0 none, 1 the same partition"""
    ari: float
    """pairs of documents together in both, adjusted: 0 as by chance, 1 the same partition"""
    purity: float
    """share of documents whose label is the most frequent one of their topic; rises with the number of topics"""
    soft_nmi: float
    soft_ari: float
    """as if each document's topic were drawn from its P(z|d): the adjusted expected number of pairs"""
    soft_purity: float
    n_documents: int
    """with a label; the others are left out"""
    n_labels: int


def hard_labels(doc_topic: Array) -> Array:
    """The topic with the largest P(z|d) of each document (Gaussier and Goutte 2005); of equal ones the first."""
    return np.asarray(np.asarray(doc_topic).argmax(axis=1))


def label_agreement(doc_topic: Array, labels: Any) -> Agreement:
    """How well topics (P(z|d), documents x K) agree with labels, one a document (None or "": without a label).

    Without any labeled document, or with one label and one topic, the partitions are the same: all figures are 1.
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


def _table(numbers: Array, n_labels: int, weights: Floats) -> Floats:
    """labels x topics: the documents of each label, by their topics' weights."""
    has = sp.csr_array((np.ones(len(numbers)), (numbers, np.arange(len(numbers)))), (n_labels, len(numbers)))
    return np.asarray(has @ weights)


def normalized_mutual_information(table: Floats) -> float:
    """Mutual information of a table (labels x topics), divided by the mean of the two entropies.

    1 if neither side divides the documents, 0 if only one does.
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
    """(E[pairs together in both] - chance) / (mean pairs together in either - chance).

    Pairs are of different documents, whose topics are drawn independently from their weights (one-hot: certain).
    """
    n = len(weights)
    pairs = n * (n - 1) / 2
    own = float(np.square(weights).sum())
    both = (float(np.square(table).sum()) - own) / 2
    by_label = (float(np.square(table.sum(axis=1)).sum()) - n) / 2
    by_topic = (float(np.square(weights.sum(axis=0)).sum()) - own) / 2
    if pairs == 0 or (both == by_label == by_topic):
        return 1.0
    chance = by_label * by_topic / pairs
    most = (by_label + by_topic) / 2
    return float((both - chance) / (most - chance)) if most != chance else 0.0


def _purity(table: Floats) -> float:
    total = table.sum()
    return float(table.max(axis=0).sum() / total) if total > 0 else 1.0
