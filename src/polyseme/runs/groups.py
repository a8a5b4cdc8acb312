"""Groups of the documents of a run, by a column of the metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.shard import sparse_counts
from polyseme.errors import InputError
from polyseme.kernels import Array
from polyseme.options import named
from polyseme.runs.documents import COLUMNS
from polyseme.text.readers.inputs import LABEL_SEPARATOR
from polyseme.uncertainty import bootstrap
from polyseme.uncertainty.groups import GroupComparison, compare_words

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView

LEAST_DOCUMENTS = 10
"""Groups with fewer documents are not compared."""


def column_values(view: TopicView, column: Any, option: str) -> list[list[str]]:
    """Return the values of each document in a column of a run, several for labels; or of a sequence, one per document.

    `option` names the argument in messages.
    """
    n_documents = view.corpus.n_documents
    if not isinstance(column, str):
        values = list(column)
        if len(values) != n_documents:
            raise InputError(f"{named(option)} must have a value for each of the {n_documents} documents.")
        return [[] if value is None or value == "" or value != value else [str(value)] for value in values]
    if column not in COLUMNS[:-1]:
        raise InputError(f"{named(option)} must be one of {', '.join(COLUMNS[:-1])}, got {column!r}.")
    separator = LABEL_SEPARATOR if column == "label" else "\0"
    return [[part for part in (value or "").split(separator) if part] for value in view.corpus.column(column)]


def cluster_numbers(view: TopicView, clusters: Any) -> Sequence[Any] | None:
    """Return a value for each document; documents without one are clusters of their own."""
    if clusters is None:
        return None
    values = column_values(view, clusters, "clusters")
    return [LABEL_SEPARATOR.join(parts) or f"\0{row}" for row, parts in enumerate(values)]


def unit_numbers(units: Sequence[Any] | None) -> Array | None:
    """Return the number of the cluster of each document."""
    return None if units is None else np.unique(np.array(units, dtype=str), return_inverse=True)[1]


def compare_groups(
    view: TopicView,
    by: Any = "label",
    *,
    most: int = 6,
    clusters: Any = None,
    n_resamples: int = 100,
    level: float = 0.95,
    random_state: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> GroupComparison:
    """Compare the groups with the most documents."""
    values = column_values(view, by, "by")
    sizes = Counter(part for parts in values for part in set(parts))
    names = sorted(name for name, size in sizes.most_common(most) if size >= LEAST_DOCUMENTS)
    if len(names) < 2:
        raise InputError(
            f"{named('by')}: {by if isinstance(by, str) else 'the groups'!r} must divide the documents into at least "
            f"two groups of at least {LEAST_DOCUMENTS} documents."
        )
    place = {name: number for number, name in enumerate(names)}
    pairs = [(place[part], row) for row, parts in enumerate(values) for part in set(parts) if part in place]
    groups, rows = (np.array(numbers) for numbers in zip(*sorted(pairs), strict=True))
    membership = sp.csr_array((np.ones(len(rows)), (groups, rows)), shape=(len(names), len(values)))
    units = cluster_numbers(view, clusters)
    found = bootstrap(
        view.model, view.corpus.counts, n_resamples, clusters=units, groups=membership, level=level,
        random_state=random_state, progress=progress,
    )  # fmt: skip
    assert found.groups is not None
    shares = replace(found.groups, names=names)
    numbers = unit_numbers(units)
    counts = sparse_counts(view.corpus.counts, np.dtype(np.float32))
    hidden = frozenset(view.hidden_columns)
    words = compare_words(counts, view.fitted, membership, numbers, level)
    return GroupComparison(
        by if isinstance(by, str) else "group",
        shares,
        shares.compare_all(),
        [word for word in words if word.word not in hidden],
        view.topic_titles,
        view.store.vocabulary,
        found.returned,
        len(values) - len(np.unique(rows)),
    )
