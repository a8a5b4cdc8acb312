"""Work of ``polyseme update``: adds documents to a run in memory or to a run of shards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from polyseme.cli.commands.explore import PAGE_FILE, write_explorer
from polyseme.cli.console import Console, pluralize, progress_bar
from polyseme.cli.fitting import fit_with_bar, rewrite_run
from polyseme.cli.reading import DocumentRecorder, print_problems, transform_counts
from polyseme.data.shard_writer import append_to_shards
from polyseme.kernels import Array
from polyseme.runs import Counted, Run, atomic_folder, open_run
from polyseme.runs.documents import (
    DOCUMENTS_FILE,
    TEXTS_FOLDER,
    VECTORIZER_FILE,
    DocumentWriter,
    Texts,
    TextWriter,
    read_texts,
)
from polyseme.runs.folder import SHARDS_FOLDER
from polyseme.runs.run import ShardedRun, with_documents
from polyseme.runs.write import save_model, write_fitted_shards
from polyseme.text import Document, Reader

NOTHING_NEW = "All of these documents are in the run already: nothing is changed."
UNKNOWN_SHARE = 0.1
"""Share of the new documents without a known word from which a new fit is recommended."""
_FILES_OF_A_FIT = ("doc_topic.npy", "doc_weights.npy")
"""Files beside the shards that an update writes again."""


class NoNewDocuments(Exception):
    """Raised inside `atomic_folder` to leave the run unchanged."""


def update_in_memory(
    run: Run, reader: Reader, entry: dict[str, Any], screen: Console, notes: Console, *, quiet: bool
) -> bool:
    """Add the documents of `reader` that the run does not contain; return whether Ctrl-C stopped the fit.

    entry : what run.json records about this update; its `refine` says whether to fit the topics again.
    """
    old_texts = run.texts
    with TemporaryDirectory() as folder:
        writer = None if old_texts is None else TextWriter(Path(folder))
        added = transform_counts(reader, run.vectorizer, notes, texts=writer, quiet=quiet)
        texts = read_texts(Path(folder))
    rows = _new_rows(run.counted, added)
    if not len(rows):
        screen.print(NOTHING_NEW)
        return False
    counted = _append(run.counted, added, rows)
    interrupted = False
    model = run.model.with_topics(run.model.components_, counted.counts)
    if entry["refine"]:
        model = clone(model).set_params(init=(model.doc_topic_, model.components_))
        interrupted, _ = fit_with_bar(model, counted.counts, notes, quiet=quiet)
    about = {**run.about, "updates": [*run.about.get("updates", []), {**entry, "documents": len(rows)}]}
    all_texts = None if old_texts is None or texts is None else [*old_texts, *(texts[row] for row in rows)]
    rewrite_run(run, model, counted, about, all_texts, notes, quiet=quiet)
    if not quiet:
        _print_report(run.model, added, rows, screen)
    return interrupted


def update_shards(
    run: ShardedRun, reader: Reader, entry: dict[str, Any], screen: Console, notes: Console, *, quiet: bool
) -> bool:
    """Do the same for a run of shards: append shards, and write the other files piece by piece."""
    documents = _NewDocuments(reader, run)
    try:
        interrupted = _append_shards(run, documents, entry, notes, quiet=quiet)
    except NoNewDocuments:
        screen.print(NOTHING_NEW)
        return False
    if not quiet:
        _print_numbers(documents.n_added, documents.n_read, screen)
    return interrupted


class _NewDocuments:
    """Documents of a reader that a run does not contain; counts them as they are read."""

    def __init__(self, reader: Reader, run: ShardedRun) -> None:
        self.reader = reader
        self._run = run
        self.n_read = self.n_added = 0

    def __iter__(self) -> Iterator[Document]:
        # Hashes, because the sources and ids of millions of documents take much more memory.
        pieces = self._run.pieces
        known = {hash(key) for key in zip(pieces.column("source"), pieces.column("id"), strict=True)}
        for document in self.reader:
            self.n_read += 1
            if hash((document.source, document.id)) not in known:
                self.n_added += 1
                yield document


def _append_shards(
    run: ShardedRun, documents: _NewDocuments, entry: dict[str, Any], notes: Console, *, quiet: bool
) -> bool:
    has_page = (run.path / PAGE_FILE).is_file()
    interrupted = False
    with atomic_folder(run.path, overwrite=True) as work:
        has_texts = bool(Texts(run.path))
        _link_files(run.path, work)
        recorder = DocumentRecorder(
            DocumentWriter(work, append=True), TextWriter(work, append=True) if has_texts else None
        )
        with progress_bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
            texts = recorder.record(documents, documents.reader, update)
            shards = append_to_shards(texts, work / SHARDS_FOLDER, run.vectorizer)
        if not quiet:
            print_problems(documents.reader, notes)
        if not documents.n_added:
            raise NoNewDocuments
        old = run.model
        if entry["refine"]:
            model = clone(old).set_params(init=(None, old.components_), checkpoint=None)
            interrupted, _ = fit_with_bar(model, shards, notes, quiet=quiet)
        else:
            model = old.with_topics(old.components_, shards)
        save_model(work, model, shards)
        sizes = {
            "documents": shards.shape[0],
            "tokens": int(shards.manifest.tokens),
            "shards": len(shards.manifest.shards),
        }
        about = {name: value for name, value in run.about.items() if name not in ("format_version", "stability")}
        updates = [*about.get("updates", []), {**entry, "documents": documents.n_added}]
        about = {**about, **sizes, "updates": updates}
        write_fitted_shards(work, with_documents(model, shards), shards, about, run.vocabulary)
        if has_page:
            new = open_run(work, trust_pattern=run.trust_pattern)
            write_explorer(new, work / PAGE_FILE, about.get("page_text", "excerpt"), notes, quiet=quiet)
    return interrupted


def _link_files(old: Path, new: Path) -> None:
    """Link the files that do not change into the new folder; copy them where links are not possible."""
    shutil.copy2(old / VECTORIZER_FILE, new)
    for folder in (SHARDS_FOLDER, DOCUMENTS_FILE, TEXTS_FOLDER):
        if not (old / folder).is_dir():
            continue
        (new / folder).mkdir()
        for file in (old / folder).iterdir():
            if file.is_file() and file.name not in _FILES_OF_A_FIT:
                try:
                    os.link(file, new / folder / file.name)
                except OSError:
                    shutil.copy2(file, new / folder)


def _new_rows(old: Counted, added: Counted) -> Array:
    """Return the rows of `added` whose documents are not in `old`."""
    known = set(zip(old.columns["source"], old.columns["id"], strict=True))
    keys = zip(added.columns["source"], added.columns["id"], strict=True)
    return np.array([row for row, key in enumerate(keys) if key not in known], dtype=np.int64)


def _append(old: Counted, added: Counted, rows: Array) -> Counted:
    """Return `old` followed by these rows of `added`."""
    columns = {name: [*values, *(added.columns[name][row] for row in rows)] for name, values in old.columns.items()}
    counts = sp.csr_array(sp.vstack([old.counts, sp.csr_array(added.counts)[rows]]))
    return Counted(counts, columns, old.vectorizer)


def _print_report(model: Any, added: Counted, rows: Array, screen: Console) -> None:
    counts = sp.csr_array(added.counts)[rows]
    without_words = int((np.diff(counts.indptr) == 0).sum())
    report = model.perplexity_report(counts)
    _print_numbers(len(rows), len(added.names), screen)
    screen.print(
        f"Perplexity of the new documents under the topics before the update: {report.perplexity:.1f}; "
        f"of the run's own documents: {model.training_perplexity_:.1f}.",
    )
    if without_words > UNKNOWN_SHARE * len(rows):
        screen.print(
            f"{pluralize(without_words, 'new document')} without any word of the run: polyseme fit learns new words."
        )


def _print_numbers(n_added: int, n_read: int, screen: Console) -> None:
    screen.print(f"{pluralize(n_added, 'document')} added; {n_read - n_added:,} already in the run.")
