"""Groups of the documents of a run, by a column of the metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.options import named
from polyseme.runs.documents import COLUMNS
from polyseme.text.readers.inputs import LABEL_SEPARATOR
from polyseme.uncertainty.groups import GroupComparison, GroupWord, compare_words
from polyseme.uncertainty.resampling import MOST_DOCUMENTS, Population, Resampling
from polyseme.uncertainty.shares import shares_of

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


def words_of(fits: Resampling, membership: sp.csr_array, units: Sequence[Any] | None) -> list[GroupWord]:
    """Return the words that groups of the documents in memory use differently. `units` are clusters of documents."""
    numbers = None
    if units is not None:
        numbers = np.unique(np.array(units, dtype=str)[fits.loaded], return_inverse=True)[1]
    return compare_words(fits.counts, fits.fitted, membership[:, fits.loaded], numbers, fits.sampling.level)


def resampling_of(
    view: TopicView, n_resamples: int, clusters: Any, level: float, random_state: int, progress: Any
) -> Resampling:
    """Return fits to resampled documents of a view; if it is too large for memory, of a sample of it."""
    corpus, population = view.corpus, None
    if not corpus.fits_in_memory(view.fitted.n_topics):
        all_documents, corpus = corpus, corpus.sample(MOST_DOCUMENTS)
        assert corpus.rows is not None
        population = Population(all_documents.n_documents, corpus.rows, all_documents.count_parts)
    return Resampling(
        view.model, corpus.counts, n_resamples, clusters=clusters, level=level, random_state=random_state,
        progress=progress, population=population,
    )  # fmt: skip


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
    fits = resampling_of(view, n_resamples, units, level, random_state, progress)
    shares = replace(shares_of(fits, membership, fits.resamples()).groups, names=names)
    hidden = frozenset(view.hidden_columns)
    words = words_of(fits, membership, units)
    return GroupComparison(
        by if isinstance(by, str) else "group",
        shares,
        shares.compare_all(),
        [word for word in words if word.word not in hidden],
        view.topic_titles,
        view.store.vocabulary,
        fits.returned,
        fits.notes,
        len(values) - len(np.unique(rows)),
    )
