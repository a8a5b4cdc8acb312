"""``polyseme update`` of a run whose counts are shards: more shards, and the rest written anew a piece at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.base import clone

from polyseme.cli.bars import bar
from polyseme.cli.console import Console
from polyseme.cli.explore import PAGE_FILE, write_explorer
from polyseme.cli.fitting import fit_with_bar
from polyseme.cli.reading import Kept, show_problems
from polyseme.runs import open_run, whole_folder
from polyseme.runs.counted import DOCUMENTS_FILE, VECTORIZER_FILE
from polyseme.runs.folder import SHARDS_FOLDER
from polyseme.runs.pieces import DocumentWriter
from polyseme.runs.sharded import ShardedRun, with_documents
from polyseme.runs.texts import FOLDER as TEXTS_FOLDER
from polyseme.runs.texts import Texts, TextWriter
from polyseme.runs.write_sharded import keep_model, write_fitted_shards
from polyseme.scale.writing import append_to_shards
from polyseme.text import Document, Reader

_OF_A_FIT = ("doc_topic.npy", "doc_weights.npy")
"""files beside the shards that are written anew"""


class Update:
    """What came of it."""

    def __init__(self) -> None:
        self.read = self.added = 0
        self.interrupted = False


def update_shards(run: ShardedRun, reader: Reader, entry: dict[str, Any], notes: Console, *, quiet: bool) -> Update:
    """Adds the documents that the run does not have. entry : what run.json says of it; `refine` fits on."""
    done = Update()
    had_page = (run.path / PAGE_FILE).is_file()
    with whole_folder(run.path, overwrite=True) as work:
        keeps_texts = bool(Texts(run.path))
        _link(run.path, work)
        kept = Kept(DocumentWriter(work, more=True), TextWriter(work, more=True) if keeps_texts else None)
        with bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
            texts = kept.passing(_new(reader, run, done), reader, update)
            shards = append_to_shards(texts, work / SHARDS_FOLDER, run.vectorizer)
        if not quiet:
            show_problems(reader, notes)
        if not done.added:
            raise NothingNew
        old = run.model
        if entry["refine"]:
            model = clone(old).set_params(init=(None, old.components_), checkpoint=None)
            done.interrupted, _ = fit_with_bar(model, shards, notes, quiet=quiet)
        else:
            model = old.with_topics(old.components_, shards)
        keep_model(work, model, shards)
        sizes = {
            "documents": shards.shape[0],
            "tokens": int(shards.manifest.tokens),
            "shards": len(shards.manifest.shards),
        }
        about = {name: value for name, value in run.about.items() if name not in ("format_version", "stability")}
        updates = [*about.get("updates", []), {**entry, "documents": done.added}]
        about = {**about, **sizes, "updates": updates}
        write_fitted_shards(work, with_documents(model, shards), shards, about, run.vocabulary)
        if had_page:
            new = open_run(work, trust_pattern=run.trust_pattern)
            write_explorer(new, work / PAGE_FILE, about.get("page_text", "excerpt"), notes, quiet=quiet)
    return done


class NothingNew(Exception):
    """All documents are in the run already."""


def _new(reader: Reader, run: ShardedRun, done: Update) -> Iterator[Document]:
    """The documents that the run does not have; of those that it has, memory holds the hashes of their names."""
    known = {hash(name) for name in zip(run.pieces.column("source"), run.pieces.column("id"), strict=True)}
    for document in reader:
        done.read += 1
        if hash((document.source, document.id)) not in known:
            done.added += 1
            yield document


def _link(old: Path, new: Path) -> None:
    """The files that stay as they are, under two names where the system can."""
    shutil.copy2(old / VECTORIZER_FILE, new)
    for folder in (SHARDS_FOLDER, DOCUMENTS_FILE, TEXTS_FOLDER):
        if not (old / folder).is_dir():
            continue
        (new / folder).mkdir()
        for file in (old / folder).iterdir():
            if file.is_file() and file.name not in _OF_A_FIT:
                try:
                    os.link(file, new / folder / file.name)
                except OSError:
                    shutil.copy2(file, new / folder)
