"""Changes of a run: new documents (update), and names, merged and deleted topics and hidden words (edits).

The topics are kept or fitted again. The changed run replaces the old one in one step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import DocumentWeights
from polyseme.core.shard import without_words
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import append_to_shards, write_shards
from polyseme.errors import InputError
from polyseme.io.files import is_regular
from polyseme.metrics import align
from polyseme.metrics.evaluation import pool_reports, score_tokens
from polyseme.progress import ProgressUpdate, Reporter, pluralize
from polyseme.runs.documents import DOCUMENTS_FILE, TEXTS_FOLDER, Texts
from polyseme.runs.fit import fit_with_progress, write_levels
from polyseme.runs.folder import PAGE_FILE, VECTORIZER_FILE, run_lock
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
from polyseme.runs.run import (
    LEVELS_FOLDER,
    SHARDS_FOLDER,
    Run,
    columns_of,
    for_people,
    open_run,
    reader_notes,
    reading_progress,
    take_counts,
)
from polyseme.runs.searching import DOCUMENTS_FILE as SEARCH_DOCUMENTS_FILE
from polyseme.runs.searching import INDEX_FILE, EarlierTexts, store_index
from polyseme.runs.write import (
    DOCUMENTS_SHOWN,
    RunDraft,
    link_file,
    refresh_run,
    rewrite_run,
    timestamp,
    write_about,
)
from polyseme.selection.levels import Level
from polyseme.text.duplicates import duplicates_note
from polyseme.text.readers.inputs import Document
from polyseme.text.readers.reader import Reader
from polyseme.utils import effective_threads

MIN_OVERLAP = 0.5
"""Smallest overlap of a topic before and after a refit, 1 - total variation distance, with which it keeps its name."""


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
    like: Run | None = None,
    trust_pattern: bool = False,
) -> Updated:
    """Add the documents of a reader that the run does not contain yet. If there are none, the run does not change."""
    documents = _NewDocuments(reader)
    has_index = (path / INDEX_FILE).is_file()
    try:
        with rewrite_run(path, report, like=like, trust_pattern=trust_pattern) as (run, draft):
            if refit:
                run.model.check_refits()
            shards, duplicates = _append(run, draft, documents)
            earlier = EarlierTexts(run.about["digest"], run.stored_texts.n_files)
            model, interrupted = refolded(run.model, shards, refit=refit, report=report)
            draft.save_model(model)
            entry = {"when": timestamp(), "inputs": reader.names, "refit": refit, "documents": documents.n_added}
            about = {
                **changed_about(run, shards),
                "duplicates": duplicates,
                "updates": [*run.about.get("updates", []), entry],
            }
            if refit:
                about |= names_after_refit(about.get("topic_names", {}), run.model, model)
                about |= _new_levels(run, draft, shards)
            else:
                _fold_in_levels(run, draft, shards)
            draft.finish(about, texts=bool(Texts(run.files)), page=page_of(run))
            if has_index and is_regular(run.path / SEARCH_DOCUMENTS_FILE):  # out of date, but mostly reusable
                link_file(run.path / SEARCH_DOCUMENTS_FILE, draft.folder / SEARCH_DOCUMENTS_FILE)
            without_words, perplexity = _new_documents(model, shards, run.n_documents)
    except _NothingNew:
        return Updated(open_run(path) if like is None else like, documents.n_read, 0)
    if has_index:
        store_index(draft.run.path, report, earlier=earlier, trust_pattern=trust_pattern)
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
    if "levels" not in run.about:
        return {}
    corpus = take_counts(shards) if run.fits_in_memory else shards
    draft.know(shards=shards)
    return {"levels": write_levels(draft, corpus, run.about["model"].get("random_state", 0))}


def changed_about(run: Run, shards: DiskCorpus) -> dict[str, Any]:
    """Return the fields of run.json after a change of documents or topics, without fields that are computed again."""
    manifest = shards.manifest
    sizes = {"documents": manifest.documents, "tokens": int(manifest.tokens), "shards": len(manifest.shards)}
    return {**{name: value for name, value in run.about.items() if name not in ("junk", "stability")}, **sizes}


def page_of(run: Run) -> str | None:
    """Return how much of the texts the page of a run contains; None if the run has no page, or lost it."""
    return run.about.get("page_text", "excerpt") if (run.path / PAGE_FILE).is_file() else None


class _NothingNew(Exception):
    """Raised while a run is rewritten, to leave it unchanged."""


class _NewDocuments:
    """Documents of a reader that a run does not contain, counted as they are read."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.n_read = self.n_added = 0

    def of(self, run: Run, update: ProgressUpdate) -> Iterator[Document]:
        # Hashes, because the sources and ids of millions of documents take much more memory.
        known = {hash(key) for key in run.table.keys()}  # noqa: SIM118, not a mapping
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
        return self._run.without_banned(self._run.vectorizer.transform(texts))

    def get_feature_names_out(self) -> Sequence[str]:
        return self._run.vocabulary


def _append(run: Run, draft: RunDraft, documents: _NewDocuments) -> tuple[DiskCorpus, dict[str, Any]]:
    """Write the metadata, texts and counts of the run and of the new documents.

    Returns all counts, and the field of run.json about near-duplicates.
    """
    texts = bool(Texts(run.files))
    drop = run.duplicates.get("mode") == "drop"
    draft.link(run, VECTORIZER_FILE, SHARDS_FOLDER, *([TEXTS_FOLDER] if texts else []))
    draft.know(vectorizer=run.vectorizer)
    with (
        draft.report.stage("Reading and counting", unit="MB", size=1e6) as update,
        draft.recorder(texts=texts, drop=drop, after=run) as recorder,
    ):
        new = recorder.record(documents.of(run, update))
        shards = append_to_shards(new, draft.folder / SHARDS_FOLDER, _RunCounter(run))
    for note in reader_notes(documents.reader):
        draft.report.note(note)
    duplicates = recorder.duplicates()
    if duplicates["found"]:
        draft.report.note(duplicates_note(duplicates))
    documents.n_added -= duplicates["found"] * drop
    if not documents.n_added:
        raise _NothingNew
    before = run.duplicates or {"found": recorder.n_old_duplicates, "documents": run.n_documents}
    return shards, duplicates | {name: duplicates[name] + before[name] for name in ("found", "documents")}


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


@dataclass(frozen=True)
class Edits:
    """Edits to apply. Topics are given by their numbers before the edits."""

    rename: Mapping[int, str] = field(default_factory=dict)
    """Names by topic; an empty name removes the name."""
    merge: Sequence[Sequence[int]] = ()
    """Groups of topics to merge into the one with the smallest number."""
    delete: Sequence[int] = ()
    """Topics to delete."""
    ban: Sequence[str] = ()
    """Words to hide and, with a refit, to remove."""

    def to_dict(self) -> dict[str, Any]:
        """Return the edits that are not empty, as JSON values."""
        parts = {
            "rename": {str(topic): name for topic, name in self.rename.items()},
            "merge": [list(group) for group in self.merge],
            "delete": list(self.delete),
            "ban": list(self.ban),
        }
        return {name: part for name, part in parts.items() if part}

    def origin(self, n_topics: int) -> list[list[int]]:
        """Return the old topics that each new topic is made of. Raise InputError for topics that do not exist."""
        self._check(n_topics)
        groups = {min(group): sorted(set(group)) for group in self.merge}
        removed = {topic for group in groups.values() for topic in group[1:]} | set(self.delete)
        origin = [groups.get(topic, [topic]) for topic in range(n_topics) if topic not in removed]
        if not origin:
            raise InputError("delete= would remove all topics: delete fewer.")
        return origin

    def names(self, origin: list[list[int]], names: Mapping[int, str]) -> dict[int, str]:
        """Return the names of the new topics; a merged topic gets the first name among its topics."""
        renamed = {**names, **self.rename}
        given = ([renamed[topic] for topic in group if renamed.get(topic)] for group in origin)
        return {topic: group_names[0] for topic, group_names in enumerate(given) if group_names}

    def _check(self, n_topics: int) -> None:
        merged = [topic for group in self.merge for topic in set(group)]
        for topic in [*self.rename, *merged, *self.delete]:
            if not 0 <= topic < n_topics:
                raise InputError(f"There is no topic {topic}: the run has topics 0 to {n_topics - 1}.")
        if any(len(set(group)) < 2 for group in self.merge):
            raise InputError("merge= needs at least two topics in a group.")
        repeated = [topic for topic in {*merged, *self.delete} if merged.count(topic) + (topic in self.delete) > 1]
        if repeated:
            raise InputError(f"Topic {repeated[0]} appears more than once in merge= and delete=: give it once.")


class Edited(NamedTuple):
    """Result of `edit_run`."""

    run: Run
    interrupted: bool
    """Whether Ctrl-C stopped the fit."""


def edit_run(
    path: Path,
    edits: Edits,
    *,
    refit: bool = False,
    level: int | None = None,
    report: Reporter,
    like: Run | None = None,
    trust_pattern: bool = False,
) -> Edited:
    """Apply edits to a run; the edited run replaces it. At a finer `level` topics can only be renamed."""
    if not (edits.to_dict() or refit):
        raise InputError("Nothing to edit: use rename=, merge=, delete=, ban= or refit=True.")
    with rewrite_run(path, report, like=like, trust_pattern=trust_pattern) as (run, draft):
        if level is not None and run.level(level).reading is not None:
            _rename_finer(run.level(level), draft, edits, refit=refit)
            interrupted = False
        else:
            interrupted = _edit_topics(run, draft, edits, refit=refit)
    return Edited(draft.run, interrupted)


def _edit_topics(run: Run, draft: RunDraft, edits: Edits, *, refit: bool) -> bool:
    """Write a run again with edited topics of the reading level; return whether Ctrl-C stopped a refit."""
    origin = edits.origin(run.fitted.n_topics)
    hidden = _hidden_words(run, edits.ban)
    removed = columns_of(hidden, run.vocabulary) if refit else []
    changes_topics = bool(edits.merge or edits.delete or removed)
    if changes_topics:
        run.model.check_edits_topics()
    if refit:
        run.model.check_refits()
    draft.link(run, VECTORIZER_FILE, TEXTS_FOLDER)
    draft.know(vectorizer=run.vectorizer)
    interrupted = False
    names = _names_after(run, edits, origin, hidden)
    if changes_topics or refit:
        shards = _shards_without(run, draft, removed)
        model = run.model.with_edited_topics(origin, removed, shards) if changes_topics else run.model
        if refit:
            before = model
            model, interrupted = refolded(model, shards, refit=True, report=draft.report)
            names = names_after_refit(names["topic_names"], before, model)
        draft.save_model(model)
        draft.reuse_metadata(run)
        about = {**changed_about(run, shards), **_new_levels(run, draft, shards)}
    else:
        draft.link(run, SHARDS_FOLDER, DOCUMENTS_FILE, LEVELS_FOLDER, *run.model_files)
        draft.know(model=run.model)
        about = {**run.about, **_levels_after(run, hidden)}
    entry = {"when": timestamp(), **edits.to_dict(), **({"refit": True} if refit else {})}
    about |= {
        **names,
        "model": {**about["model"], "n_topics": len(origin)},
        **({} if refit else {"junk": _kept_marks(run, origin)}),
        "banned_words": sorted({*run.banned_words, *(hidden if refit else ())}),
        "hidden_words": [] if refit else hidden,
        "edits": [*run.about.get("edits", []), entry],
    }
    draft.finish(about, texts=bool(Texts(run.files)), page=page_of(run))
    return interrupted


def _kept_marks(run: Run, origin: list[list[int]]) -> dict[str, Any]:
    """Return the junk marks of the topics that were not merged or deleted, by their new numbers."""
    marks = ((topic, run.junk.get(old[0])) for topic, old in enumerate(origin) if len(old) == 1)
    return {str(topic): mark._asdict() for topic, mark in marks if mark is not None}


def _rename_finer(level: Run, draft: RunDraft, edits: Edits, *, refit: bool) -> None:
    """Write a run again with new names for topics of a finer level."""
    if refit or set(edits.to_dict()) != {"rename"}:
        raise InputError(
            "level=: topics of a finer level can only be renamed; edit the topics of the reading level, and the finer "
            "levels are made again below them."
        )
    run, n_topics = level.reading, level.fitted.n_topics
    assert run is not None
    names = edits.names(edits.origin(n_topics), level.topic_names)
    draft.link(run, *({name.partition("/")[0] for name in run.files.entries} - set(for_people(run.files))))
    draft.know(model=run.model, vectorizer=run.vectorizer)
    stored = run.about["levels"][str(n_topics)]
    renamed = {**stored, "topic_names": {str(topic): name for topic, name in names.items()}}
    entry = {"when": timestamp(), "level": n_topics, **edits.to_dict()}
    about = {
        **run.about,
        "levels": {**run.about["levels"], str(n_topics): renamed},
        "edits": [*run.about.get("edits", []), entry],
    }
    draft.finish(about, texts=bool(Texts(run.files)), page=page_of(run))


def _hidden_words(run: Run, ban: Sequence[str]) -> list[str]:
    """Return the words that are hidden already and those in `ban`, which may be given in another form."""
    known, hidden = set(run.vocabulary), set(run.hidden_words)
    for word in ban:
        columns = [] if word in known else run.vectorizer.transform([word]).indices.tolist()
        hidden.add(run.vocabulary[columns[0]] if len(columns) == 1 else word)
    columns_of(sorted(hidden), run.vocabulary)  # raises for a word that the run does not have
    if hidden and not known - hidden - set(run.banned_words):
        raise InputError("ban= would hide all words of the run: ban fewer.")
    return sorted(hidden)


def _names_after(run: Run, edits: Edits, origin: list[list[int]], hidden: Sequence[str]) -> dict[str, Any]:
    """Return the fields of run.json with the names of the edited topics; None for a name that has to be made."""
    new = columns_of(sorted(set(hidden) - set(run.hidden_words)), run.vocabulary)
    made = run.about.get("automatic_names") or [None] * run.fitted.n_topics
    kept = [made[group[0]] if len(group) == 1 else None for group in origin]
    given = {str(topic): name for topic, name in edits.names(origin, run.topic_names).items()}
    return {"topic_names": given, "automatic_names": _names_without(run, kept, new)}


def _levels_after(run: Run, hidden: Sequence[str]) -> dict[str, Any]:
    """Return the field of run.json about the finer levels, which do not change except for names with hidden words."""
    new = columns_of(sorted(set(hidden) - set(run.hidden_words)), run.vocabulary)
    levels = {
        n_topics: {**level, "automatic_names": _names_without(run, level["automatic_names"], new)}
        for n_topics, level in run.about.get("levels", {}).items()
        if "automatic_names" in level
    }
    return {"levels": {**run.about["levels"], **levels}} if levels else {}


def _names_without(run: Run, names: Sequence[str | None], columns: Sequence[int]) -> list[str | None]:
    """Return the names, with None for those that contain one of these words."""
    if not columns:
        return list(names)
    occurrences = sp.csr_array(run.vectorizer.transform([name or "" for name in names]))[:, columns].sum(axis=1)
    return [None if count else name for name, count in zip(names, occurrences.tolist(), strict=True)]


def names_after_refit(names: Mapping[str, str], before: Any, after: Any) -> dict[str, Any]:
    """Return the fields of run.json with the names of topics that were fitted again.

    names : given names by topic before the refit. A name moves to the topic with the most similar words, or is dropped
    if the two topics overlap by less than MIN_OVERLAP.
    """
    order, distance = align(before.fitted_.topic_word, after.fitted_.topic_word)
    from_model = {str(topic): name for topic, name in enumerate(after.own_topic_names) if name}
    kept = {str(order[int(topic)]): name for topic, name in names.items() if distance[int(topic)] <= 1 - MIN_OVERLAP}
    return {"topic_names": {**kept, **from_model}, "automatic_names": [None] * after.fitted_.n_topics}


def _shards_without(run: Run, draft: RunDraft, columns: list[int]) -> DiskCorpus:
    """Write the counts of a run without some columns; link them if no column is removed."""
    if not columns:
        draft.link(run, SHARDS_FOLDER)
        return DiskCorpus(draft.folder / SHARDS_FOLDER)
    parts = (without_words(part, np.asarray(columns)) for part in run.shards)
    return write_shards(parts, draft.folder / SHARDS_FOLDER, vocabulary=run.vocabulary)


def name_run(
    path: Path,
    namer: Namer,
    *,
    level: int | None = None,
    overwrite: bool = False,
    report: Reporter,
    like: Run | None = None,
    trust_pattern: bool = False,
) -> Run:
    """Name the topics of a level of a run with a namer; None is the reading level.

    A function is called for topics without a given name, or with `overwrite` for all topics. Each name is stored in
    run.json at once; the tables and the page follow at the end, also after Ctrl-C. Exceptions of the function and
    invalid names are reported in a warning.
    """
    problems: list[str] = []
    with run_lock(path) as target:
        run = open_run(target, trust_pattern=trust_pattern if like is None else like.trust_pattern)
        named = run if level is None else run.level(level)
        check_namer(namer, named.fitted.n_topics)
        names = _StoredNames(run, named)
        if callable(namer):
            problems = _call_namer(namer, named, names, overwrite=overwrite, report=report)
        else:
            names.store(names_of_namer(namer))
    changed = refresh_run(path, report, page=page_of(run), like=like, trust_pattern=trust_pattern)
    if problems:
        first = "; ".join(problems[:_PROBLEMS_SHOWN]).replace("\n", " ")
        more = f"; and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        warnings.warn(
            f"The namer did not name all topics; the others keep their old names: {first}{more}.", stacklevel=3
        )
    return changed if level is None else changed.level(level)


def _call_namer(
    namer: Callable[..., str], named: Run, names: _StoredNames, *, overwrite: bool, report: Reporter
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

    def __init__(self, run: Run, named: Run) -> None:
        self._run, self._named = run, named
        self._entry: dict[str, Any] = {"when": timestamp(), "rename": {}}
        if named is not run:
            self._entry["level"] = named.fitted.n_topics

    def store(self, names: Mapping[int, str]) -> None:
        """Add names; an empty name removes the name of the topic."""
        about, named = self._run.about, self._named
        given = {**named.topic_names, **names}
        named.about["topic_names"] = {str(topic): name for topic, name in given.items() if name}
        self._entry["rename"] |= {str(topic): name for topic, name in names.items()}
        if named is not self._run:
            number = str(named.fitted.n_topics)
            level = {**about["levels"][number], "topic_names": named.about["topic_names"]}
            about["levels"] = {**about["levels"], number: level}
        edits = [entry for entry in about.get("edits", []) if entry is not self._entry]
        about["edits"] = [*edits, self._entry]
        write_about(self._run.path, about, self._run.files)
