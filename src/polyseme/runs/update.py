"""New documents in a run. The topics are kept, with or without new ones beside them, or fitted again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from polyseme.core.fitted import DocumentWeights
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import append_to_shards
from polyseme.estimators.plsa import PLSA
from polyseme.metrics.evaluation import PerplexityReport, score_tokens
from polyseme.progress import ProgressUpdate, Reporter
from polyseme.runs.changes import changed_info, names_after_refit, new_levels, page_of, refolded
from polyseme.runs.info import Duplicates, Update
from polyseme.runs.new_topics import checked_new_topics, find_topics, with_added_topics
from polyseme.runs.reading import reader_notes, reading_progress, without_banned
from polyseme.runs.run import Run, open_run
from polyseme.runs.search_index import INDEX_FILE
from polyseme.runs.searching import store_index
from polyseme.runs.store import SHARDS_FOLDER, VECTORIZER_FILE
from polyseme.runs.write import RunDraft, rewrite_run, timestamp
from polyseme.selection.levels import Level
from polyseme.text.readers.inputs import Document
from polyseme.text.readers.reader import Reader
from polyseme.utils import effective_threads


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

    @property
    def entry(self) -> Update:
        """What run.json says about the update."""
        return self.run.info.updates[-1]


def update_run(
    path: Path,
    reader: Reader,
    *,
    refit: bool = False,
    new_topics: str | int | None = None,
    report: Reporter,
    caller: Run | None = None,
) -> Updated:
    """Add the documents of a reader that the run does not contain yet. If there are none, the run does not change.

    new_topics : number of topics to add for the new documents, or "auto"; None adds none.
    """
    if new_topics is not None:
        new_topics = checked_new_topics(new_topics, refit=refit)
    documents = _NewDocuments(reader)
    has_index = (path / INDEX_FILE).is_file()
    try:
        with rewrite_run(path, report, caller=caller) as (run, draft):
            if refit:
                run.model._check_refits()
            if new_topics is not None:
                run.model._check_adds_topics()
            shards, duplicates = _append(run, draft, documents)
            found = None if new_topics is None else find_topics(run, shards, new_topics, report)
            if found is not None and len(found.topics):
                model, interrupted = cast(PLSA, run.model).with_added_topics(found.topics, shards), False
            else:
                model, interrupted = refolded(run.model, shards, refit=refit, report=report)
            draft.save_model(model)
            entry = Update(timestamp(), tuple(reader.names), documents.n_added, refit)
            if found is not None:
                entry = replace(entry, p_value=found.p_value, faded=found.faded)
            info = changed_info(run, shards, duplicates=duplicates, updates=(*run.info.updates, entry))
            if found is not None and len(found.topics):
                info = with_added_topics(run, draft, shards, found, info)
            elif refit:
                names = names_after_refit(info.topic_names, info.hidden_topics, run.model, model)
                info = replace(info, **names, **new_levels(run, draft, shards))
            else:
                info = replace(info, fitted_to=info.fitted_to or ((0, run.info.documents),) * run.levels[0])
                _fold_in_levels(run, draft, shards)
            draft.finish(info, page=page_of(run))
            without_words, perplexity = _new_documents(model, shards, run.info.documents)
    except _NothingNew:
        return Updated(open_run(path) if caller is None else caller, documents.n_read, 0)
    if has_index:
        store_index(draft.run.store, report)
    return Updated(draft.run, documents.n_read, documents.n_added, without_words, perplexity, interrupted)


def _fold_in_levels(run: Run, draft: RunDraft, shards: DiskCorpus) -> None:
    """Write the finer levels with the documents of shards folded in. Topics and parents do not change."""
    for n_topics in run.levels[1:]:
        level = run.level(n_topics)
        assert level.parents is not None
        draft.save_level(
            Level(cast(PLSA, level.model).with_documents(shards), level.parents.topics, level.parents.shares)
        )


class _NothingNew(Exception):
    """Raised while a run is rewritten, to leave it unchanged."""


class _NewDocuments:
    """Documents of a reader that a run does not contain, counted as they are read."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.n_read = self.n_added = 0

    def of(self, run: Run, update: ProgressUpdate) -> Iterator[Document]:
        # Sorted hashes, because a set of millions of sources and ids takes much more memory.
        columns = zip(*(run.view.corpus.column(name) for name in ("source", "id")), strict=True)
        known = np.sort(np.fromiter(map(hash, columns), dtype=np.int64))
        for document in reading_progress(self.reader, update):
            self.n_read += 1
            found = hash((document.source, document.id))
            place = known.searchsorted(found)
            if place == known.size or known[place] != found:
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
    once = run.info.repeated_lines == "once"
    draft.link(run, VECTORIZER_FILE, SHARDS_FOLDER)
    with (
        draft.report.stage("Reading and counting", unit="MB", size=1e6) as update,
        draft.recorder(texts=run.store.documents.has_texts, drop=drop, once=once, after=run) as recorder,
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
    fitted, trained, reports, empty, start = model._fitted, model._training, [], 0, 0
    for number, entry in enumerate(shards.manifest.shards):
        rows = slice(start, start + entry.documents)
        start = rows.stop
        if rows.start >= first:
            counts = shards.shard(number, fitted.topic_word.dtype, 1).by_doc
            weights = DocumentWeights(np.asarray(trained.doc_topic[rows]), np.asarray(trained.background[rows]), counts)
            probabilities = fitted.token_probabilities(weights, counts, n_threads=effective_threads(None))
            reports.append(score_tokens("folded in", counts, probabilities, fitted.unigram))
            empty += int((counts.totals == 0).sum())
    return empty, PerplexityReport.pool(reports).perplexity
