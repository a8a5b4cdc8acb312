"""Edits of a run: names, merged and deleted topics, hidden words, marks. The last edit can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.shard import without_words
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_files import MANIFEST
from polyseme.data.shard_writer import write_shards
from polyseme.errors import InputError
from polyseme.options import named
from polyseme.progress import Reporter, pluralize
from polyseme.runs.changes import changed_info, names_after_refit, new_levels, page_of, refolded
from polyseme.runs.documents import STORE
from polyseme.runs.edit_files import topics_digest
from polyseme.runs.info import Edit, LevelInfo, Mark, RunInfo
from polyseme.runs.reading import columns_of
from polyseme.runs.run import Run
from polyseme.runs.store import BEFORE_FOLDER, LEVELS_FOLDER, MODEL_FILE, SHARDS_FOLDER, VECTORIZER_FILE
from polyseme.runs.write import RunDraft, preview_run, rewrite_run, timestamp
from polyseme.text.languages import PHRASE_SEPARATOR

_DOCUMENTS = f"{STORE}.index", f"{STORE}.blocks"


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
        run.model._check_edits_topics()
    if refit:
        run.model._check_refits()
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
        info = changed_info(run, shards, **names, **new_levels(run, draft, shards))
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
        "fitted_to": tuple(run.info.fitted_to[group[0]] for group in origin) if run.info.fitted_to else (),
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


def _shards_without(run: Run, draft: RunDraft, columns: list[int]) -> DiskCorpus:
    """Write the counts of a run without some columns; link them if no column is removed."""
    if not columns:
        draft.link(run, SHARDS_FOLDER)
        return DiskCorpus(draft.folder / SHARDS_FOLDER)
    parts = (without_words(part, np.asarray(columns)) for part in run.store.shards)
    return write_shards(parts, draft.folder / SHARDS_FOLDER, vocabulary=run.vocabulary)
