"""The stage "chosen" of a fit: the number of topics, and the model of short texts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from polyseme.errors import InputError
from polyseme.options import named
from polyseme.progress import Reporter, pluralize
from polyseme.runs.corpus import RunCorpus, take_counts
from polyseme.runs.counting import SHORT_DOCUMENT
from polyseme.runs.info import RunInfo, Selection, SelectionRow
from polyseme.runs.models import MODELS, n_label_topics
from polyseme.runs.settings import LABELS_MODEL, FitSettings
from polyseme.runs.write import RunDraft
from polyseme.selection.reading import MAX_DOCUMENTS, reading_n_topics
from polyseme.selection.short_texts import compare_mixture
from polyseme.utils import sample_rows

LEAST_COMPARED = 500
"""With fewer documents, models of short texts are not compared: their held-out words would decide by chance."""


def choose_topics(draft: RunDraft, settings: FitSettings) -> RunInfo:
    """Choose the number of topics, unless it is given."""
    n_topics, seed, n_documents = settings.fitting["n_topics"], settings.fitting["random_state"], draft.info.documents
    if settings.model == LABELS_MODEL:
        labels = draft.labels()
        n_topics = max(n_topics or 0, n_label_topics(labels))
        n_labeled = sum(label is not None for label in labels)
        draft.report.note(f"{n_labeled:,} of {pluralize(n_documents, 'document')} have a label.")
    if n_topics is None and settings.fitting["branching"] is not None:
        n_topics = math.prod(settings.estimator(None).branching)
    if n_topics is not None:
        check_n_documents(n_documents, n_topics)
        return replace(draft.info, model=replace(draft.info.model, n_topics=n_topics))
    counts = sampled_counts(draft.corpus, seed)
    choice = choose_n_topics(counts, draft.report, seed)
    reason, n_topics = choice.reason, choice.n_topics
    if counts.shape[0] < n_documents:
        reason += f" Chosen with {counts.shape[0]:,} of {n_documents:,} documents, drawn at random."
    seeds, depth = settings.fitting["seeds"], settings.fitting["depth"]
    for least, why in (
        (len(seeds or ()), "that many have seed words"),
        (2 ** (depth or 0), f"a tree of depth {depth} needs that many"),
    ):
        if n_topics < least:
            n_topics, choice = least, replace(choice, typical_fit=None)
            reason = f"{least} topics, because {why}. {reason}"
    draft.report.note(f"{reason.partition('. ')[0].rstrip('.')} ({named('n_topics')} sets another).")
    choice = replace(choice, n_topics=n_topics, reason=reason)
    return replace(draft.info, selection=choice, model=replace(draft.info.model, n_topics=n_topics))


def choose_model(draft: RunDraft, info: RunInfo, settings: FitSettings) -> RunInfo:
    """Choose a mixture with one topic per document for short texts if it predicts held-out words better than PLSA."""
    short = info.tokens < SHORT_DOCUMENT * info.documents
    if not (settings.chooses_model and short and info.in_memory and info.documents >= LEAST_COMPARED):
        return info
    seed = info.model.random_state
    with draft.report.stage("Comparing models"):
        mixture, plsa = compare_mixture(sampled_counts(draft.corpus, seed), info.model.n_topics, random_state=seed)
    if not mixture.perplexity < plsa.perplexity:
        return info
    draft.report.note(
        f"Model: {named('model', 'mixture')}, with one topic per document, which predicts held-out words of these "
        f"short texts better (perplexity {mixture.perplexity:,.0f}; {named('model', 'plsa')}: {plsa.perplexity:,.0f})."
    )
    estimator = MODELS["mixture"].estimator.__name__
    return replace(info, model=replace(info.model, name="mixture", estimator=estimator))


def sampled_counts(corpus: RunCorpus, seed: int) -> Any:
    """Return the counts of the documents with which the number of topics is chosen."""
    rows = sample_rows(corpus.n_documents, MAX_DOCUMENTS, seed)
    return corpus.counts[rows] if corpus.is_loaded else take_counts(corpus.store.shards, rows)


def choose_n_topics(counts: Any, report: Reporter, seed: int) -> Selection:
    """Choose the number of topics for reading."""
    with report.stage("Choosing the number of topics") as update:
        selection = reading_n_topics(counts, max_documents=None, random_state=seed, progress=update)
    n_topics, reason = selection.chosen, selection.reason
    if not selection.structured and selection.rows:
        n_topics = selection.rows[0].n_topics
        reason = f"{n_topics} topics, which may be due to chance. {reason}"
    return Selection(
        n_topics,
        reason,
        tuple(SelectionRow(**vars(row)) for row in selection.rows),
        selection.interval,
        selection.structured,
        selection.flat,
        selection.n_documents,
        selection.typical_fit,
    )


def check_n_documents(n_documents: int, n_topics: int) -> None:
    """Raise InputError if there are more topics than documents."""
    if n_topics > n_documents:
        raise InputError(
            f"There are {n_documents:,} documents, too few for {n_topics:,} topics: choose a smaller "
            f"{named('n_topics')}."
        )
