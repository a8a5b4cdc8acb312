"""Topics of a run over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.options import OPTIONS, named
from polyseme.runs.groups import LEAST_DOCUMENTS, cluster_numbers, resampling_of, words_of
from polyseme.runs.periods import periods_of_days
from polyseme.uncertainty.shares import shares_of
from polyseme.uncertainty.time import Timeline, period_tokens

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView


def over_time(
    view: TopicView,
    every: str | None = None,
    *,
    clusters: Any = None,
    n_resamples: int = 100,
    level: float = 0.95,
    random_state: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> Timeline:
    """Return shares by period, and the words that change between the earlier and the later half of the documents."""
    every = OPTIONS["every"].check(every)
    days = np.asarray(view.corpus.days)
    found = periods_of_days(days, every)
    dated = np.flatnonzero(days > 0)
    if found is None or dated.size < 2 * LEAST_DOCUMENTS or np.unique(days[dated]).size < 2:
        raise InputError(
            f"Changes over time need at least {2 * LEAST_DOCUMENTS} documents with different dates; a fit reads dates "
            f"with {named('time', 'COLUMN')}."
        )
    n_documents, n_periods = len(days), len(found.names)
    middle = np.median(days[dated])
    late = days[dated] > middle if (days[dated] > middle).any() else days[dated] >= middle
    halves = sp.csr_array((np.ones(dated.size), (late.astype(np.int64), dated)), shape=(2, n_documents))
    by_period = sp.csr_array((np.ones(dated.size), (found.numbers[dated], dated)), shape=(n_periods, n_documents))
    units = cluster_numbers(view, clusters)
    fits = resampling_of(view, n_resamples, units, level, random_state, progress)
    result = shares_of(fits, sp.csr_array(sp.vstack([halves, by_period])), fits.resamples()).groups
    hidden = frozenset(view.hidden_columns)
    words = words_of(fits, halves, units)
    tokens, shrinkage = period_tokens(fits.counts, view.fitted, found.numbers[fits.loaded], n_periods, random_state)
    return Timeline(
        found.unit,
        level,
        found.names,
        result.documents[2:],
        result.shares[2:],
        result.shares[0],
        result.shares[1],
        result.compare(1, 0),
        [word for word in words if word.group == 1 and word.word not in hidden],
        shrinkage,
        view.topic_titles,
        view.store.vocabulary,
        n_documents - dated.size,
        fits.notes,
        view.fitted.topic_word,
        tokens,
    )
