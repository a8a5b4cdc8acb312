"""Update of a run: new documents are added, and the topics are kept or fitted again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.core.fitted import DocumentWeights
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import append_to_shards
from polyseme.metrics.perplexity import pool_reports, score_tokens
from polyseme.progress import ProgressUpdate, Reporter
from polyseme.runs.documents import TEXTS_FOLDER, Texts
from polyseme.runs.fields import VECTORIZER_FILE
from polyseme.runs.fit import fit_with_progress
from polyseme.runs.models import fits_shards
from polyseme.runs.run import PAGE_FILE, SHARDS_FOLDER, Run, open_run, reader_notes, reading_progress, take_counts
from polyseme.runs.write import RunDraft, rewrite_run, timestamp
from polyseme.text import Document, Reader
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


def update_run(
    path: Path,
    reader: Reader,
    *,
    refit: bool = False,
    report: Reporter,
    like: Run | None = None,
    trust_pattern: bool = False,
) -> Updated:
    """Add the documents of a reader that the run does not contain. Without new documents the run does not change."""
    documents = _NewDocuments(reader)
    try:
        with rewrite_run(path, report, like=like, trust_pattern=trust_pattern) as (run, draft):
            if refit:
                run.model.check_refits()
            shards = _append(run, draft, documents)
            model, interrupted = refolded(run.model, shards, refit=refit, report=report)
            draft.save_model(model)
            entry = {"when": timestamp(), "inputs": reader.names, "refit": refit, "documents": documents.n_added}
            about = {**changed_about(run, shards), "updates": [*run.about.get("updates", []), entry]}
            draft.finish(about, texts=bool(Texts(run.files)), page=page_of(run))
            without_words, perplexity = _new_documents(model, shards, run.n_documents)
    except _NothingNew:
        return Updated(open_run(path) if like is None else like, documents.n_read, 0)
    return Updated(draft.run, documents.n_read, documents.n_added, without_words, perplexity, interrupted)


def refolded(model: Any, shards: DiskCorpus, *, refit: bool, report: Reporter) -> tuple[Any, bool]:
    """Return the model with the documents of shards, fitted again if wanted, and whether Ctrl-C stopped that fit."""
    if not refit:
        return model.with_documents(shards), False
    corpus = shards if fits_shards(model) else take_counts(shards)
    fresh = model.refitting(corpus)
    interrupted, _ = fit_with_progress(fresh, corpus, report)
    return fresh.set_vocabulary(model.vocabulary_), interrupted


def changed_about(run: Run, shards: DiskCorpus) -> dict[str, Any]:
    """Return the fields of run.json for other documents or topics."""
    manifest = shards.manifest
    sizes = {"documents": manifest.documents, "tokens": int(manifest.tokens), "shards": len(manifest.shards)}
    return {**{name: value for name, value in run.about.items() if name != "stability"}, **sizes}


def page_of(run: Run) -> str | None:
    """Return how much of the texts the page of a run contains; None if the run has no page."""
    return run.about.get("page_text", "excerpt") if (run.path / PAGE_FILE).is_file() else None


class _NothingNew(Exception):
    """Raised while a run is rewritten, to leave it unchanged."""


class _NewDocuments:
    """Documents of a reader that a run does not contain; counts them as they are read."""

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
    """Counts texts with the words of a run, without those that were removed with `edit`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.vocabulary_ = run.vectorizer.vocabulary_

    def transform(self, texts: Iterable[str]) -> Any:
        return self._run.without_banned(self._run.vectorizer.transform(texts))

    def get_feature_names_out(self) -> list[str]:
        return self._run.vocabulary


def _append(run: Run, draft: RunDraft, documents: _NewDocuments) -> DiskCorpus:
    """Write the metadata, texts and counts of the run and of the new documents; return all counts."""
    texts = bool(Texts(run.files))
    draft.link(run, VECTORIZER_FILE, SHARDS_FOLDER, *([TEXTS_FOLDER] if texts else []))
    draft.know(vectorizer=run.vectorizer)
    with (
        draft.report.stage("Reading and counting", unit="MB", size=1e6) as update,
        draft.recorder(texts=texts, after=run) as recorder,
    ):
        new = recorder.record(documents.of(run, update))
        shards = append_to_shards(new, draft.folder / SHARDS_FOLDER, _RunCounter(run))
    for note in reader_notes(documents.reader):
        draft.report.note(note)
    if not documents.n_added:
        raise _NothingNew
    return shards


def _new_documents(model: Any, shards: DiskCorpus, first: int) -> tuple[int, float]:
    """Return the number of documents from `first` on without known words, and the perplexity of all of them."""
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
