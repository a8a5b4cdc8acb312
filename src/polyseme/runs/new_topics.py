"""New topics for the new documents of a run: `polyseme update --new-topics`.

The topics of the run keep their numbers, names and words. New topics follow them, so no number is used twice, and every
finer level gets children of the new topics.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple, cast

import numpy as np

from polyseme.core.shard import sparse_counts
from polyseme.data.disk import DiskCorpus
from polyseme.errors import InputError
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats
from polyseme.options import named
from polyseme.progress import Reporter
from polyseme.runs.corpus import take_counts
from polyseme.runs.drift import reference_of, share_changes
from polyseme.runs.fitting import LEVELS_SAMPLE
from polyseme.runs.info import NewTopic, RunInfo
from polyseme.runs.run import Run
from polyseme.runs.write import RunDraft
from polyseme.selection.levels import Level, add_children, linked
from polyseme.selection.new_topics import MIN_NEW, find_new_topics, fit_new_topics, given_topics
from polyseme.utils import effective_threads, sample_rows

AUTO = "auto"
"""Let a test decide whether there are new topics, and how many."""
_TYPICAL = 3
"""Documents that are named for each new topic."""


class FoundTopics(NamedTuple):
    """New topics of new documents."""

    topics: Floats
    """P(w|z) of the new topics; none if nothing is new."""
    rows: Array
    """Rows of the documents that they were fitted to."""
    p_value: float | None
    """P-value of the test; None if the number of new topics was given, or there are too few documents to test."""
    faded: tuple[int, ...]
    """Old topics that are much less frequent in the new documents."""


def checked_new_topics(value: Any, *, refit: bool) -> str | int:
    """Return a number of new topics, or "auto". Raise InputError for others, and together with a refit."""
    if refit:
        raise InputError(
            f"{named('new_topics')} keeps the topics and {named('refit', True)} fits them again: choose one of them."
        )
    if value == AUTO:
        return AUTO
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{named('new_topics')} must be {AUTO} or a whole number of at least 1, got {value!r}.")
    return int(value)


def find_topics(run: Run, shards: DiskCorpus, new_topics: str | int, report: Reporter) -> FoundTopics:
    """Fit new topics to the documents of shards that a run does not contain yet, which are the last rows."""
    first, seed, n_threads = run.info.documents, run.info.model.random_state, effective_threads(None)
    rows = first + sample_rows(shards.manifest.documents - first, LEVELS_SAMPLE, seed)
    counts = sparse_counts(take_counts(shards, rows), run.view.fitted.topic_word.dtype)
    known = int((counts.totals > 0).sum())
    with report.stage("Looking for new topics") as update:
        reference = reference_of(run)
        faded = tuple(share_changes(reference, counts).faded) if known > 1 else ()
        p_value, start, new = None, np.empty((0, counts.n_words)), np.empty(0, dtype=bool)
        if isinstance(new_topics, int):
            if known < new_topics:
                raise InputError(
                    f"{named('new_topics', new_topics)}: only {known} new documents have words of the run: choose a "
                    "smaller number."
                )
            start = given_topics(reference, counts, new_topics, random_state=seed, n_threads=n_threads)
            new = np.ones(new_topics, dtype=bool)
        else:
            found = find_new_topics(reference, counts, random_state=seed, n_threads=n_threads, progress=update)
            if found is None:
                report.note(f"{known} new documents are too few to look for new topics: at least {MIN_NEW} are needed.")
            else:
                p_value, start, new = found
        if not len(start):
            return FoundTopics(start, rows, p_value, faded)
        topics = fit_new_topics(run.view.fitted, reference, counts, start, n_threads=n_threads)[new]
    return FoundTopics(topics, rows, p_value, faded)


def with_added_topics(run: Run, draft: RunDraft, shards: DiskCorpus, found: FoundTopics, info: RunInfo) -> RunInfo:
    """Add the topics to the facts about a run, and children of them to its finer levels."""
    n_old, n_new = run.info.model.n_topics, len(found.topics)
    before = info.fitted_to or ((0, run.info.documents),) * n_old
    last = info.documents
    info = replace(
        info,
        model=replace(info.model, n_topics=n_old + n_new),
        automatic_names=(*info.automatic_names, *[""] * n_new),
        fitted_to=(*before, *[(run.info.documents, last)] * n_new),
    )
    draft.run.store.info = info
    entry = replace(info.updates[-1], new_topics=_facts(found, draft, n_old))
    info = replace(info, updates=(*info.updates[:-1], entry))
    if not info.levels:
        return info
    seed = info.model.random_state
    counts, rows = take_counts(shards, found.rows), sample_rows(last, LEVELS_SAMPLE, seed)
    sample = take_counts(shards, rows)
    above, added, levels = cast(PLSA, draft.run.model), np.arange(n_old, n_old + n_new), {}
    for size in run.levels[1:]:
        old = run.level(size)
        assert old.parents is not None
        fine = add_children(above, cast(PLSA, old.model), added, counts, found.rows, shards, random_state=seed)
        new = linked(above, fine, rows, sample)
        level = Level(
            fine,
            np.append(old.parents.topics, new.parents[size:]),
            np.append(old.parents.shares, new.nesting[size:]),
        )
        facts = draft.save_level(level)
        kept = (info.levels or {})[size]
        n_children = len(facts.parents) - size
        names = (*kept.automatic_names, *[""] * n_children) if kept.automatic_names else ()
        levels[len(facts.parents)] = replace(facts, topic_names=kept.topic_names, automatic_names=names)
        above, added = fine, np.arange(size, size + n_children)
    return replace(info, levels=levels)


def _facts(found: FoundTopics, draft: RunDraft, n_old: int) -> tuple[NewTopic, ...]:
    """Return what run.json says about the topics that the model of a draft has after `n_old` old ones."""
    draft.record_files()  # so that the draft can read the ids of its documents
    training, ids = draft.run.model._training, draft.corpus.ids
    assert training is not None
    weights = np.asarray(training.doc_topic[found.rows])
    main, tokens = weights.argmax(axis=1), np.asarray(training.doc_weights[found.rows])
    facts = []
    for topic in range(n_old, weights.shape[1]):
        best = np.argsort(-weights[:, topic] * tokens, kind="stable")[:_TYPICAL]
        typical = tuple(ids[found.rows[place]] for place in best if weights[place, topic] > 0)
        facts.append(NewTopic(topic, int((main == topic).sum()), typical))
    return tuple(facts)
