"""Changes of a run: new documents (update), and names, merged and deleted topics and hidden words (edits).

The topics are kept or fitted again. The changed run replaces the old one in one step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import DocumentWeights
from polyseme.core.shard import without_words
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_files import MANIFEST
from polyseme.data.shard_writer import append_to_shards, write_shards
from polyseme.errors import InputError
from polyseme.metrics import align
from polyseme.metrics.evaluation import pool_reports, score_tokens
from polyseme.options import named
from polyseme.progress import ProgressUpdate, Reporter, pluralize
from polyseme.runs.corpus import take_counts
from polyseme.runs.documents import STORE
from polyseme.runs.edit_files import topics_digest
from polyseme.runs.fit import fit_with_progress, write_levels
from polyseme.runs.info import Duplicates, Edit, LevelInfo, Mark, RunInfo, Update
from polyseme.runs.models import fits_shards
from polyseme.runs.names import (
    Namer,
    check_namer,
    checked_name,
    excerpts_of_topics,
    names_of_namer,
    parent_titles,
    siblings_of,
)
from polyseme.runs.reading import columns_of, reader_notes, reading_progress, without_banned
from polyseme.runs.run import Run, open_run
from polyseme.runs.searching import INDEX_FILE, store_index
from polyseme.runs.store import (
    BEFORE_FOLDER,
    LEVELS_FOLDER,
    MODEL_FILE,
    PAGE_FILE,
    SHARDS_FOLDER,
    VECTORIZER_FILE,
    run_lock,
)
from polyseme.runs.view import TopicView
from polyseme.runs.write import (
    DOCUMENTS_SHOWN,
    RunDraft,
    preview_run,
    refresh_run,
    rewrite_run,
    timestamp,
)
from polyseme.selection.levels import Level
from polyseme.text.languages import PHRASE_SEPARATOR
from polyseme.text.readers.inputs import Document
from polyseme.text.readers.reader import Reader
from polyseme.utils import effective_threads

MIN_OVERLAP = 0.5
"""Smallest overlap of a topic before and after a refit, 1 - total variation distance, with which it keeps its name."""


_DOCUMENTS = f"{STORE}.index", f"{STORE}.blocks"
_PROBLEMS_SHOWN = 3


class Updated(NamedTuple):
    """Result of `update_run`."""

    run: Run
    n_read: int
    n_added: int
    without_words: int = 0
    """New documents without any word of the run."""
    perplexity: float = float("nan")
    """Perplexity of the new documents."""
    interrupted: bool = False
    """Whether Ctrl-C stopped the fit."""


def update_run(
    path: Path,
    reader: Reader,
    *,
    refit: bool = False,
    report: Reporter,
    caller: Run | None = None,
) -> Updated:
    """Add the documents of a reader that the run does not contain yet. If there are none, the run does not change."""
    documents = _NewDocuments(reader)
    has_index = (path / INDEX_FILE).is_file()
    try:
        with rewrite_run(path, report, caller=caller) as (run, draft):
            if refit:
                run.model.check_refits()
            shards, duplicates = _append(run, draft, documents)
            model, interrupted = refolded(run.model, shards, refit=refit, report=report)
            draft.save_model(model)
            entry = Update(timestamp(), tuple(reader.names), documents.n_added, refit)
            info = changed_info(run, shards, duplicates=duplicates, updates=(*run.info.updates, entry))
            if refit:
                names = names_after_refit(info.topic_names, info.hidden_topics, run.model, model)
                info = replace(info, **names, **_new_levels(run, draft, shards))
            else:
                _fold_in_levels(run, draft, shards)
            draft.finish(info, page=page_of(run))
            without_words, perplexity = _new_documents(model, shards, run.info.documents)
    except _NothingNew:
        return Updated(open_run(path) if caller is None else caller, documents.n_read, 0)
    if has_index:
        store_index(draft.run.store, report)
    return Updated(draft.run, documents.n_read, documents.n_added, without_words, perplexity, interrupted)


def refolded(model: Any, shards: DiskCorpus, *, refit: bool, report: Reporter) -> tuple[Any, bool]:
    """Return the model with the documents of shards, and whether Ctrl-C stopped the fit if `refit` is set."""
    if not refit:
        return model.with_documents(shards), False
    corpus = shards if fits_shards(model) else take_counts(shards)
    fresh = model.refitting(corpus)
    interrupted, _ = fit_with_progress(fresh, corpus, report)
    return fresh.set_vocabulary(model.vocabulary_), interrupted


def _fold_in_levels(run: Run, draft: RunDraft, shards: DiskCorpus) -> None:
    """Write the finer levels with the documents of shards folded in. Topics and parents do not change."""
    for n_topics in run.levels[1:]:
        level = run.level(n_topics)
        assert level.parents is not None
        draft.save_level(Level(level.model.with_documents(shards), level.parents.topics, level.parents.shares))


def _new_levels(run: Run, draft: RunDraft, shards: DiskCorpus) -> dict[str, Any]:
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
    return replace(run.info, junk=None, stability=(), before=None, **sizes, **changes)


def page_of(run: Run) -> str | None:
    """Return how much of the texts the page of a run contains; None if the run has no page, or lost it."""
    return run.info.page_text if (run.path / PAGE_FILE).is_file() else None


class _NothingNew(Exception):
    """Raised while a run is rewritten, to leave it unchanged."""


class _NewDocuments:
    """Documents of a reader that a run does not contain, counted as they are read."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.n_read = self.n_added = 0

    def of(self, run: Run, update: ProgressUpdate) -> Iterator[Document]:
        # Hashes, because the sources and ids of millions of documents take much more memory.
        known = set(map(hash, zip(*(run.view.corpus.column(name) for name in ("source", "id")), strict=True)))
        for document in reading_progress(self.reader, update):
            self.n_read += 1
            if hash((document.source, document.id)) not in known:
                self.n_added += 1
                yield document


class _RunCounter:
    """Counter of the words of a run in texts, without the words that were removed with `edit`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.vocabulary_ = run.vectorizer.vocabulary_

    def transform(self, texts: Iterable[str]) -> Any:
        return without_banned(self._run.store, self._run.vectorizer.transform(texts))

    def get_feature_names_out(self) -> Sequence[str]:
        return self._run.vocabulary


def _append(run: Run, draft: RunDraft, documents: _NewDocuments) -> tuple[DiskCorpus, Duplicates]:
    """Write the metadata, texts and counts of the run and of the new documents.

    Returns all counts, and the near-duplicates among all documents.
    """
    drop = run.info.duplicates.mode == "drop"
    draft.link(run, VECTORIZER_FILE, SHARDS_FOLDER)
    with (
        draft.report.stage("Reading and counting", unit="MB", size=1e6) as update,
        draft.recorder(texts=run.store.documents.has_texts, drop=drop, after=run) as recorder,
    ):
        new = recorder.record(documents.of(run, update))
        shards = append_to_shards(new, draft.folder / SHARDS_FOLDER, _RunCounter(run))
    for note in reader_notes(documents.reader):
        draft.report.note(note)
    old, new_ones = run.info.duplicates, recorder.duplicates
    if new_ones.found:
        draft.report.note(new_ones.note)
    documents.n_added -= new_ones.found * drop
    if not documents.n_added:
        raise _NothingNew
    return shards, replace(old, found=old.found + new_ones.found, documents=old.documents + new_ones.documents)


def _new_documents(model: Any, shards: DiskCorpus, first: int) -> tuple[int, float]:
    """Return the number of documents without known words, and the perplexity, of all documents from row `first` on."""
    fitted, trained, reports, empty, start = model.fitted_, model.documents_, [], 0, 0
    for number, entry in enumerate(shards.manifest.shards):
        rows = slice(start, start + entry.documents)
        start = rows.stop
        if rows.start >= first:
            counts = shards.shard(number, fitted.topic_word.dtype, 1).by_doc
            weights = DocumentWeights(np.asarray(trained.doc_topic[rows]), np.asarray(trained.background[rows]), counts)
            probabilities = fitted.token_probabilities(weights, counts, n_threads=effective_threads(None))
            reports.append(score_tokens("folded in", counts, probabilities, fitted.unigram))
            empty += int((counts.totals == 0).sum())
    return empty, pool_reports(reports).perplexity


class Edited(NamedTuple):
    """Result of `edit_run`."""

    run: Run
    interrupted: bool
    """Whether Ctrl-C stopped the fit."""


def edit_run(
    path: Path,
    edit: Edit,
    *,
    made_for: str | None = None,
    dry_run: bool = False,
    report: Reporter,
    caller: Run | None = None,
) -> Edited:
    """Apply an edit to a run; the edited run replaces it. At a finer level topics can only be renamed.

    made_for : digest of the topics that the edit was made for; None: those of the run. With `dry_run` the edited run is
    in a temporary folder, without a page, and the run does not change.
    """
    if not (edit.rename or edit.merge or edit.delete or edit.hide or edit.ban or edit.refit):
        ways = ", ".join(named(name) for name in ("rename", "merge", "delete", "hide", "ban"))
        raise InputError(f"Nothing to edit: use {ways} or {named('refit', True)}.")
    edit = replace(edit, when=timestamp())
    with preview_run(path, report) if dry_run else rewrite_run(path, report, caller=caller) as (run, draft):
        level = None if edit.level is None else run.level(edit.level)
        if made_for not in (None, topics_digest((level or run.view).fitted.topic_word)):
            raise InputError(
                f"{named('file')}: the edits are for other topics, because the run has changed since the page was "
                "written, or because the page is of another run: make them again in the page of this run."
            )
        if level is not None and level.finer is not None:
            info, interrupted = _rename_finer(run, level.finer, draft, edit), False
        else:
            edit = replace(edit, level=None)
            info, interrupted = _edit_topics(run, draft, edit)
        info = replace(info, edits=(*run.info.edits, edit), before=replace(run.info, before=None))
        draft.finish(info, page=None if dry_run else page_of(run))
    return Edited(draft.run, interrupted)


def undo_run(path: Path, *, report: Reporter, caller: Run | None = None) -> Run:
    """Restore a run as it was before the last edit. Tables and the page are written again."""
    with rewrite_run(path, report, caller=caller) as (run, draft):
        before, files = run.info.before, run.store.files
        if before is None:
            raise InputError("Nothing to undo: only the last edit can be undone, and only until the next update.")
        source = f"{BEFORE_FOLDER}/" if run.info.edits[-1].changes_model else ""
        shards = source if f"{source}{SHARDS_FOLDER}/{MANIFEST}" in files.entries else ""
        draft.link(run, VECTORIZER_FILE, *_DOCUMENTS)
        draft.link(run, *_model_files(run, source), source=source)
        draft.link(run, SHARDS_FOLDER, source=shards)
        draft.finish(before, page=None if page_of(run) is None else before.page_text)
    return draft.run


def edit_changes(before: Run, after: Run) -> list[str]:
    """Return sentences about what the last edit of the run `after` has changed in the run `before`."""
    edit = after.info.edits[-1]
    old, new = (run.view if edit.level is None else run.level(edit.level) for run in (before, after))
    origin, changes = edit.origin(old.fitted.n_topics), []

    def shown(group: Sequence[int]) -> str:
        listed = [f"{topic} ({old.topic_titles[topic]})" for topic in group]
        return f"Topic {listed[0]}" if len(group) == 1 else f"Topics {', '.join(listed[:-1])} and {listed[-1]}"

    for topic, group in enumerate(origin):
        title, keeps_name = new.topic_titles[topic], old.topic_titles[group[0]] == new.topic_titles[topic]
        if len(group) > 1:
            changes.append(f"{shown(group)} become topic {topic} ({title}).")
        elif group != [topic]:
            changes.append(f"{shown(group)} becomes topic {topic}{'' if keeps_name else f' ({title})'}.")
        elif not keeps_name:
            changes.append(f"{shown(group)} gets the name {title}.")
    if edit.delete:
        changes.append(f"{shown(edit.delete)} {'is' if len(edit.delete) == 1 else 'are'} deleted.")
    if edit.hide:
        changes.append(f"{shown(edit.hide)} {'is' if len(edit.hide) == 1 else 'are'} hidden.")
    removed, hidden = (
        sorted(set(getattr(after.info, kind)) - set(getattr(before.info, kind)))
        for kind in ("banned_words", "hidden_words")
    )
    if removed:
        changes.append(f"Words that are removed from the counts: {', '.join(removed)}.")
    if hidden:
        changes.append(f"Words that are hidden: {', '.join(hidden)}.")
    if edit.refit:
        changes.append("All topics are fitted again.")
    if edit.changes_model and before.levels[1:]:
        changes.append("The finer levels are made again.")
    elif edit.ban:
        pairs = ((before.level(n).topic_titles, after.level(n).topic_titles) for n in before.levels[1:])
        renamed = sum(one != other for titles in pairs for one, other in zip(*titles, strict=True))
        changes += [f"{pluralize(renamed, 'topic')} of finer levels get other names."] if renamed else []
    return changes or ["Nothing changes."]


def _model_files(run: Run, folder: str = "") -> set[str]:
    """Return the names, in a folder of a run, of the files and folders of its models."""
    names = {name.removeprefix(folder).partition("/")[0] for name in run.store.files.entries if name.startswith(folder)}
    return {name for name in names if name in (MODEL_FILE, LEVELS_FOLDER) or name.endswith(".npy")}


def _edit_topics(run: Run, draft: RunDraft, edits: Edit) -> tuple[RunInfo, bool]:
    """Write the edited topics of the reading level; return the facts about them, and whether Ctrl-C stopped a refit.

    Files that the edit changes, and that cannot be made again from others, are kept in BEFORE_FOLDER.
    """
    refit = edits.refit
    origin = edits.origin(run.levels[0])
    hidden = _hidden_words(run, edits.ban)
    removed = columns_of(hidden, run.vocabulary) if refit else []
    changes_topics = bool(edits.merge or edits.delete or removed)
    if changes_topics:
        run.model.check_edits_topics()
    if refit:
        run.model.check_refits()
    names = _names_after(run, edits, origin, hidden)
    draft.link(run, VECTORIZER_FILE, *_DOCUMENTS)
    interrupted = False
    if edits.changes_model:
        changed = (*_model_files(run), *([SHARDS_FOLDER] if removed else []))
        draft.link(run, *changed, target=f"{BEFORE_FOLDER}/")
        shards = _shards_without(run, draft, removed)
        model = run.model.with_edited_topics(origin, removed, shards) if changes_topics else run.model
        if refit:
            before = model
            model, interrupted = refolded(model, shards, refit=True, report=draft.report)
            names = names | names_after_refit(names["topic_names"], names["hidden_topics"], before, model)
        draft.save_model(model)
        info = changed_info(run, shards, **names, **_new_levels(run, draft, shards))
    else:
        draft.link(run, SHARDS_FOLDER, *_model_files(run))
        info = replace(run.info, **names, levels=_levels_after(run, hidden))
    info = replace(
        info,
        junk=None if refit else _kept_marks(run, origin),
        banned_words=tuple(sorted({*run.info.banned_words, *(hidden if refit else ())})),
        hidden_words=() if refit else tuple(hidden),
    )
    return info, interrupted


def _kept_marks(run: Run, origin: list[list[int]]) -> dict[int, Mark]:
    """Return the junk marks of the topics that were not merged or deleted, by their new numbers."""
    marks = ((topic, run.junk.get(old[0])) for topic, old in enumerate(origin) if len(old) == 1)
    return {topic: mark for topic, mark in marks if mark is not None}


def _rename_finer(run: Run, n_topics: int, draft: RunDraft, edit: Edit) -> RunInfo:
    """Return the facts about a run with new names for topics of a finer level."""
    if edit.changes_model or edit.ban or edit.hide:
        raise InputError(
            f"{named('level')}: topics of a finer level can only be renamed; edit the topics of the reading level, and "
            "the finer levels are made again below them."
        )
    levels = dict(run.info.levels or {})
    names = edit.names(edit.origin(n_topics), levels[n_topics].topic_names)
    levels[n_topics] = replace(levels[n_topics], topic_names=names)
    draft.link(run, VECTORIZER_FILE, SHARDS_FOLDER, *_DOCUMENTS, *_model_files(run))
    return replace(run.info, levels=levels)


def _hidden_words(run: Run, ban: Sequence[str]) -> list[str]:
    """Return the words that are hidden already and those in `ban`, which may be given in another form.

    A phrase that is counted as one word is hidden with each of its words.
    """
    known, hidden = set(run.vocabulary), set(run.info.hidden_words)
    having: dict[str, set[str]] = {}
    for phrase in known if run.vectorizer.phrases else ():
        for part in phrase.split(PHRASE_SEPARATOR):
            having.setdefault(part, set()).add(phrase)
    for word, counts in zip(ban, sp.csr_array(run.vectorizer.transform(ban)) if ban else (), strict=True):
        if word not in known and counts.nnz == 1:
            word = run.vocabulary[counts.indices[0]]
        hidden |= having.get(word.casefold(), {word})
    columns_of(sorted(hidden), run.vocabulary)  # raises for a word that the run does not have
    if hidden and not known - hidden - set(run.info.banned_words):
        raise InputError(f"{named('ban')} would hide all words of the run: ban fewer.")
    return sorted(hidden)


def _names_after(run: Run, edits: Edit, origin: list[list[int]], hidden: Sequence[str]) -> dict[str, Any]:
    """Return the number, the names and the hidden ones of the edited topics as fields of RunInfo."""
    kept = [run.info.automatic_names[group[0]] if len(group) == 1 else "" for group in origin]
    return {
        "model": replace(run.info.model, n_topics=len(origin)),
        "topic_names": edits.names(origin, run.info.topic_names),
        "automatic_names": _names_without(run, kept, hidden),
        "hidden_topics": edits.hidden(origin, run.info.hidden_topics),
    }


def _levels_after(run: Run, hidden: Sequence[str]) -> dict[int, LevelInfo] | None:
    """Return the finer levels, which do not change except for names with hidden words."""
    if run.info.levels is None:
        return None
    return {
        n_topics: replace(level, automatic_names=_names_without(run, level.automatic_names, hidden))
        for n_topics, level in run.info.levels.items()
    }


def _names_without(run: Run, names: Sequence[str], hidden: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with "" for those that contain a word that was not hidden before."""
    columns = columns_of(sorted(set(hidden) - set(run.info.hidden_words)), run.vocabulary)
    if not columns or not names:
        return tuple(names)
    occurrences = sp.csr_array(run.vectorizer.transform(names))[:, columns].sum(axis=1)
    return tuple("" if count else name for name, count in zip(names, occurrences.tolist(), strict=True))


def names_after_refit(names: Mapping[int, str], hidden: Sequence[int], before: Any, after: Any) -> dict[str, Any]:
    """Return the names of topics that were fitted again, and the hidden ones, as fields of RunInfo.

    names, hidden : given names and hidden topics before the refit. They move to the topics with the most similar words,
    or are dropped if the two topics overlap by less than MIN_OVERLAP.
    """
    order, distance = align(before.fitted_.topic_word, after.fitted_.topic_word)
    from_model = {topic: name for topic, name in enumerate(after.own_topic_names) if name}
    kept = {int(order[topic]): name for topic, name in names.items() if distance[topic] <= 1 - MIN_OVERLAP}
    moved = sorted(int(order[topic]) for topic in hidden if distance[topic] <= 1 - MIN_OVERLAP)
    return {"topic_names": {**kept, **from_model}, "automatic_names": (), "hidden_topics": tuple(moved)}


def _shards_without(run: Run, draft: RunDraft, columns: list[int]) -> DiskCorpus:
    """Write the counts of a run without some columns; link them if no column is removed."""
    if not columns:
        draft.link(run, SHARDS_FOLDER)
        return DiskCorpus(draft.folder / SHARDS_FOLDER)
    parts = (without_words(part, np.asarray(columns)) for part in run.store.shards)
    return write_shards(parts, draft.folder / SHARDS_FOLDER, vocabulary=run.vocabulary)


def name_run(
    path: Path,
    namer: Namer,
    *,
    level: int | None = None,
    overwrite: bool = False,
    report: Reporter,
    caller: Run | None = None,
) -> Run:
    """Name the topics of a level of a run with a namer; None is the reading level.

    A function is called for topics without a given name, or with `overwrite` for all topics. Each name is stored in
    run.json at once; the tables and the page follow at the end, also after Ctrl-C. Exceptions of the function and
    invalid names are reported in a warning.
    """
    problems: list[str] = []
    with run_lock(path) as target:
        run = open_run(target)
        named = run.view if level is None else run.level(level)
        check_namer(namer, named.fitted.n_topics)
        names = _StoredNames(named)
        if callable(namer):
            problems = _call_namer(namer, named, names, overwrite=overwrite, report=report)
        else:
            names.store(names_of_namer(namer))
    changed = refresh_run(path, report, page=page_of(run), caller=caller)
    if problems:
        first = "; ".join(problems[:_PROBLEMS_SHOWN]).replace("\n", " ")
        more = f"; and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        warnings.warn(
            f"The namer did not name all topics; the others keep their old names: {first}{more}.", stacklevel=3
        )
    return changed


def _call_namer(
    namer: Callable[..., str], named: TopicView, names: _StoredNames, *, overwrite: bool, report: Reporter
) -> list[str]:
    """Name topics with a function, those with the largest weights first. Return descriptions of what went wrong."""
    problems: list[str] = []
    order = np.argsort(-named.fitted.topic_weights, kind="stable").tolist()
    missing = [topic for topic in order if overwrite or topic not in named.topic_names]
    n_missing = len(missing)
    words, documents = named.topic_words(), excerpts_of_topics(named, DOCUMENTS_SHOWN)
    above = parent_titles(named)
    try:
        with report.stage("Naming topics", unit="topics") as update:
            while missing:
                topic = missing[0]
                update(n_missing - len(missing), n_missing, f"topic {topic}")
                parent = above[topic] if above else None
                siblings = siblings_of(named, topic, named.topic_titles)
                try:
                    name = checked_name(namer(words[topic], documents[topic], parent=parent, siblings=siblings))
                except Exception as error:
                    problems.append(f"topic {topic} ({type(error).__name__}: {error})")
                else:
                    names.store({topic: name})
                del missing[0]
    except KeyboardInterrupt:
        problems.append(f"Ctrl-C stopped it before {pluralize(len(missing), 'topic')}")
    return problems


class _StoredNames:
    """Given names of a level of a run, which are stored in its run.json one by one; the caller holds `run_lock`."""

    def __init__(self, named: TopicView) -> None:
        self._named, self._before = named, replace(named.store.info, before=None)
        self._entry = Edit(level=named.finer, when=timestamp())

    def store(self, names: Mapping[int, str]) -> None:
        """Add names; an empty name removes the name of the topic."""
        named, store, info = self._named, self._named.store, self._named.store.info
        given = {topic: name for topic, name in {**named.topic_names, **names}.items() if name}
        self._entry = replace(self._entry, rename={**self._entry.rename, **names})
        changes: dict[str, Any] = {"topic_names": given}
        if named.finer is not None:
            levels = info.levels or {}
            changes = {"levels": {**levels, named.finer: replace(levels[named.finer], topic_names=given)}}
        edits = (*self._before.edits, self._entry)
        store.info = replace(info, edits=edits, before=self._before, **changes)
        store.write()
