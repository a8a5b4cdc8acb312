"""What all changes of a run share: topics that are fitted again, their names and finer levels, tables and the page.

The changed run replaces the old one in one step.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from polyseme.data.disk import DiskCorpus
from polyseme.metrics import align, bootstrap_stability
from polyseme.progress import Reporter
from polyseme.runs.corpus import take_counts
from polyseme.runs.fitting import fit_with_progress, write_levels
from polyseme.runs.info import RunInfo
from polyseme.runs.models import fits_shards
from polyseme.runs.run import Run
from polyseme.runs.store import BEFORE_FOLDER, PAGE_FILE, output_only_files
from polyseme.runs.write import RunDraft, rewrite_run

MIN_OVERLAP = 0.5
"""Smallest overlap of a topic before and after a refit, 1 - total variation distance, with which it keeps its name."""


def refolded(model: Any, shards: DiskCorpus, *, refit: bool, report: Reporter) -> tuple[Any, bool]:
    """Return the model with the documents of shards, and whether Ctrl-C stopped the fit if `refit` is set."""
    if not refit:
        return model.with_documents(shards), False
    corpus = shards if fits_shards(model) else take_counts(shards)
    fresh = model.refitting(corpus)
    interrupted, _ = fit_with_progress(fresh, corpus, report)
    return fresh.set_vocabulary(model.vocabulary_), interrupted


def new_levels(run: Run, draft: RunDraft, shards: DiskCorpus) -> dict[str, Any]:
    """Make finer levels again below the changed topics of a draft, unless the run was fitted without levels."""
    if run.info.levels is None:
        return {}
    corpus = take_counts(shards) if run.view.corpus.fits_in_memory(run.levels[0]) else shards
    draft.run.store.shards = shards
    return {"levels": write_levels(draft, corpus, run.info.model.random_state)}


def changed_info(run: Run, shards: DiskCorpus, **changes: Any) -> RunInfo:
    """Return the facts about a run after a change of documents or topics, without those that are computed again."""
    documents, tokens, n_shards = shards.manifest.documents, int(shards.manifest.tokens), len(shards.manifest.shards)
    sizes: Any = {"documents": documents, "tokens": tokens, "shards": n_shards}
    return replace(run.info, junk=None, stability=(), reproducibility=(), before=None, **sizes, **changes)


def page_of(run: Run) -> str | None:
    """Return how much of the texts the page of a run contains; None if the run has no page, or lost it."""
    return run.info.page_text if (run.path / PAGE_FILE).is_file() else None


def names_after_refit(names: Mapping[int, str], hidden: Sequence[int], before: Any, after: Any) -> dict[str, Any]:
    """Return the names of topics that were fitted again, and the hidden ones, as fields of RunInfo.

    names, hidden : given names and hidden topics before the refit. They move to the topics with the most similar words,
    or are dropped if the two topics overlap by less than MIN_OVERLAP.
    """
    order, distance = align(before._fitted.topic_word, after._fitted.topic_word)
    from_model = {topic: name for topic, name in enumerate(after._own_topic_names) if name}
    kept = {int(order[topic]): name for topic, name in names.items() if distance[topic] <= 1 - MIN_OVERLAP}
    moved = sorted(int(order[topic]) for topic in hidden if distance[topic] <= 1 - MIN_OVERLAP)
    return {
        "topic_names": {**kept, **from_model},
        "automatic_names": (),
        "hidden_topics": tuple(moved),
        "fitted_to": (),
    }


def refresh_run(
    path: Path,
    report: Reporter,
    *,
    page: str | None,
    stability: int = 0,
    title: str | None = None,
    caller: Run | None = None,
) -> Run:
    """Write the tables and the page of a run, and measure how stable its topics are in samples of the documents.

    page : how much of the texts the page contains; None leaves the page as it is. stability : number of bootstrap
    samples. title : new title of the page, which the run keeps. caller : as in `rewrite_run`.
    """
    with rewrite_run(path, report, caller=caller) as (run, draft):
        files = run.store.files
        rewritten = {name for name in output_only_files(files) if page is not None or name != PAGE_FILE}
        if not any(edit.changes_model for edit in run.info.edits[-1:]):
            rewritten.add(BEFORE_FOLDER)  # of an earlier edit
        draft.link(run, *({name.partition("/")[0] for name in files.entries} - rewritten))
        info = replace(run.info, stability=_stability(run, stability, report)) if stability else run.info
        draft.finish(info if title is None else replace(info, title=title), page=page)
    return draft.run


def _stability(run: Run, n_samples: int, report: Reporter) -> tuple[float, ...]:
    with report.stage("Fitting samples", unit="fits") as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stability = bootstrap_stability(
            run.model,
            run.counts,
            n_samples=n_samples,
            progress=lambda done, total: update(done, total, f"{done} of {total}"),
        )
    return tuple(round(float(value), 4) for value in stability.topics)
