"""The stages "fitted" and "levels" of a fit: the model of the reading level, and the finer levels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyseme.estimators.plsa import PLSA
from polyseme.metrics.words import fitted_topics
from polyseme.options import named
from polyseme.progress import Reporter
from polyseme.runs.choosing import sampled_counts
from polyseme.runs.corpus import take_counts
from polyseme.runs.info import LevelInfo, Reproducibility, RunInfo
from polyseme.runs.models import MODELS
from polyseme.runs.seed_words import seed_columns
from polyseme.runs.seeds import drifted_topics
from polyseme.runs.settings import LABELS_MODEL, FitSettings
from polyseme.runs.write import RunDraft
from polyseme.selection.consensus import ConsensusTopics, consensus, wilson_interval
from polyseme.selection.levels import make_levels
from polyseme.selection.reading import reading_topics, shared_topics, start_of_all_words
from polyseme.solvers import Checkpoint
from polyseme.solvers.base import Solver
from polyseme.utils import perplexity_of, sample_rows

LEVELS_SAMPLE = 20_000
"""Number of documents, drawn at random, with which topics are split into finer ones and levels are compared."""
CONSENSUS_FITS = 10
"""Fits to resampled documents of a consensus."""
_SAME_TOPIC = 0.5
"""Least affinity of a topic to the consensus topic from which it started."""


def fit_model(draft: RunDraft, settings: FitSettings, checkpoint: Checkpoint | None) -> RunInfo:
    """Fit the model and write it."""
    info, seeds = draft.info, settings.fitting["seeds"]
    n_topics = info.model.n_topics
    shared: ConsensusTopics | None = None
    known: dict[str, Any] = {"checkpoint": checkpoint if MODELS[settings.model].takes_checkpoint else None}
    if seeds:
        found = seed_columns(seeds, draft.run.vectorizer)
        parts = draft.corpus.count_parts()
        known |= {"seeds": found.columns, "word_totals": sum(np.asarray(part.sum(axis=0)).ravel() for part in parts)}
    elif settings.fitting["consensus"]:
        shared = _consensus(draft, settings.fitting["random_state"])
        known["start"] = start_of_all_words(shared.model.components_, slice(None), info.words)
    elif "start" in MODELS[info.model.name].options:
        known["start"] = _start(draft, settings.fitting["random_state"])
    if not info.in_memory:
        settings.check_shards()
    labels = draft.labels() if settings.model == LABELS_MODEL else None
    model = settings.estimator(n_topics if labels is None else settings.fitting["n_topics"], labels=labels, **known)
    corpus = draft.corpus.counts if info.in_memory else draft.run.store.shards
    y = None if labels is None else np.array([-1 if label is None else label for label in labels], dtype=object)
    interrupted, seconds = fit_with_progress(model, corpus, draft.report, y)
    model.set_vocabulary(draft.run.vocabulary)
    draft.save_model(model)
    names = {topic: name for topic, name in enumerate(seeds or model._own_topic_names) if name}
    problems: tuple[str, ...] = ()
    if seeds:
        drifted = drifted_topics(model, found, draft.corpus, draft.run.vocabulary)
        names = {topic: name for topic, name in names.items() if topic not in drifted}
        problems = (*found.notes, *drifted.values())
        for problem in problems:
            draft.report.note(problem)
    return replace(
        info,
        reproducibility=() if shared is None else _reproducibility(shared, model),
        solver=vars(model).get("solver_", ""),
        iterations=model.n_iter_,
        converged=model.converged_,
        interrupted=interrupted,
        topic_names=names,
        seed_problems=problems,
        seconds={**info.seconds, "fitting": round(seconds, 3)},
    )


def _start(draft: RunDraft, seed: int) -> Any:
    """Return the topics that the fit starts from: those of a fit that chose their number, or those of several starts.

    None if there are too few documents for several starts, or too many topics.
    """
    counts, n_topics, chosen = sampled_counts(draft.corpus, seed), draft.info.model.n_topics, draft.info.selection
    if chosen is not None and chosen.typical_fit is not None:
        return reading_topics(counts, n_topics, chosen.typical_fit, max_documents=None, random_state=seed)
    with draft.report.stage("Comparing starts") as update:
        return shared_topics(counts, n_topics, max_documents=None, random_state=seed, progress=update)


def _consensus(draft: RunDraft, seed: int) -> ConsensusTopics:
    """Return the topics that fits to resampled documents share."""
    with draft.report.stage("Fitting samples") as update:
        found = consensus(
            sampled_counts(draft.corpus, seed), draft.info.model.n_topics, n_fits=CONSENSUS_FITS, random_state=seed,
            progress=update,
        )  # fmt: skip
    return found.best


def _reproducibility(shared: ConsensusTopics, model: Any) -> tuple[Reproducibility, ...]:
    """Return how often fits have each topic; none has a topic that has become another one in the fit of all documents.

    The fit of all documents starts from the consensus of a sample, and may leave it: the affinity is then small.
    """
    affinity = np.einsum("kw,kw->k", np.sqrt(shared.model.components_), np.sqrt(model.components_))
    found = np.where(affinity >= _SAME_TOPIC, shared.reproducibility, 0.0)
    least, most = wilson_interval(found, shared.n_fits).T
    return tuple(Reproducibility(*map(float, row)) for row in zip(found, least, most, strict=True))


def fit_levels(draft: RunDraft) -> RunInfo:
    """Write the finer levels. A fit that Ctrl-C stopped gets none."""
    start, levels, info = time.perf_counter(), dict[int, LevelInfo](), draft.info
    if not info.interrupted:
        corpus = draft.corpus.counts if info.in_memory else draft.run.store.shards
        levels = write_levels(draft, corpus, info.model.random_state)
    return replace(info, levels=levels, seconds={**info.seconds, "levels": round(time.perf_counter() - start, 3)})


def write_levels(draft: RunDraft, corpus: Any, seed: int) -> dict[int, LevelInfo]:
    """Write the finer levels below the model of a draft; return them by number of topics.

    corpus : the counts in memory, or the shards. Topics are split with at most LEVELS_SAMPLE of the documents. After
    Ctrl-C the levels that are complete remain.
    """
    run = draft.run
    rows = sample_rows(corpus.shape[0], LEVELS_SAMPLE, seed)
    sample = take_counts(corpus, rows) if corpus is run.store.shards else corpus[rows]
    levels = dict[int, LevelInfo]()
    with draft.report.stage("Making finer levels") as update:
        try:
            for level in make_levels(cast(PLSA, run.model), corpus, rows, sample, random_state=seed, progress=update):
                level.model.set_vocabulary(run.vocabulary)
                levels[level.model._fitted.n_topics] = draft.save_level(level)
        except KeyboardInterrupt:
            draft.keep_levels(levels)
            draft.report.note("Stopped while finer levels were made: the run has the levels that were complete.")
    return levels


def fit_with_progress(model: Any, corpus: Any, report: Reporter, y: Any = None) -> tuple[bool, float]:
    """Fit with a progress bar; return whether Ctrl-C stopped the fit, and the seconds it took.

    y : labels of the documents, for a classifier.

    After Ctrl-C the estimator has the best model until then. If there is none, raise KeyboardInterrupt again.
    """
    start = time.perf_counter()
    interrupted = False
    most = Solver.max_iter if model.max_iter is None else model.max_iter
    with report.stage("Fitting topics", unit="iterations") as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a note below replaces it

        def show(entry: Mapping[str, float]) -> None:
            update(entry["iteration"], most, f"iteration {entry['iteration']:.0f}{perplexity_shown(entry)}")

        model.set_params(callback=show)
        try:
            model.fit(corpus, y)
        except KeyboardInterrupt:
            if fitted_topics(model) is None:
                raise
            interrupted = True
        finally:
            model.set_params(callback=None)
    if not (model.converged_ or interrupted):
        larger = f"a larger {named('max_iter')} makes topics sharper"
        advice = "rounding hides further gains" if model.n_iter_ < most else larger
        report.note(f"Stopped after {model.n_iter_} iterations, before convergence: {advice}.")
    return interrupted, time.perf_counter() - start


def perplexity_shown(entry: Mapping[str, float]) -> str:
    """Return the perplexity of an iteration for a progress bar; "" if the model has none."""
    return f", perplexity {perplexity_of(entry['log_likelihood']):.1f}" if "log_likelihood" in entry else ""
