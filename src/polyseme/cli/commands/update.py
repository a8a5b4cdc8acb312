"""``polyseme update`` of a run whose counts are shards: more shards, and the rest written anew a piece at a time.

``polyseme update``: more documents for a run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sklearn.base import clone

from polyseme.cli import options
from polyseme.cli.commands.explore import PAGE_FILE, write_explorer
from polyseme.cli.console import Console, bar, in_words, now
from polyseme.cli.fitting import fit_with_bar
from polyseme.cli.reading import Kept, show_problems
from polyseme.data.shard_writer import append_to_shards
from polyseme.runs import open_run, whole_folder
from polyseme.runs.documents import DOCUMENTS_FILE, VECTORIZER_FILE, DocumentWriter, Texts, TextWriter
from polyseme.runs.documents import FOLDER as TEXTS_FOLDER
from polyseme.runs.folder import SHARDS_FOLDER
from polyseme.runs.run import ShardedRun, with_documents
from polyseme.runs.write import keep_model, write_fitted_shards
from polyseme.text import Document, Reader

if TYPE_CHECKING:
    from polyseme.runs import Counted
    from polyseme.runs.run import ShardedRun
    from polyseme.text import Reader


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


MANY_UNKNOWN = 0.1
"""of the new documents; from there on a new fit is worth while"""


NOTHING_NEW = "All of these documents are in the run already: nothing is changed."


def update(
    run: options.RunFolder,
    inputs: options.Inputs,
    refine: Annotated[
        bool, typer.Option("--refine", help="Fit on with all documents; else the topics stay as they are.")
    ] = False,
    format: options.Format = None,
    text: options.Text = None,
    id: options.Id = None,
    title: options.Title = None,
    label: options.Label = None,
    time: options.Time = None,
    encoding: options.Encoding = None,
    uncategorized: options.Uncategorized = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Add documents to a run: their topics are found, and the run's own topics stay, or are refined.

    The words stay those of the run: words that it does not have are not counted, and a document that is in the run
    already (the same id from the same file) is left out.

    Examples:

      polyseme update letters-run letters-of-1872/

      polyseme update news-run today.jsonl --refine
    """
    options.check_inputs(inputs)

    from sklearn.base import clone

    from polyseme.cli.fitting import end_if, fit_with_bar, rewrite
    from polyseme.cli.reading import count_as_before
    from polyseme.runs import open_run
    from polyseme.runs.documents import TextWriter, read_texts
    from polyseme.runs.run import ShardedRun
    from polyseme.text import read

    screen, notes = Console(), Console(stderr=True)
    opened = open_run(run, trust_pattern=trust_pattern)
    reader = read(
        inputs, format=format, text=text, id=id, title=title, label=label, time=time, encoding=encoding,
        uncategorized=uncategorized,
    )  # fmt: skip
    entry = {"when": now(), "inputs": inputs, "refine": refine}
    if isinstance(opened, ShardedRun):
        _update_shards(opened, reader, entry, screen, notes, quiet=quiet)
        return
    old_texts = opened.texts
    with TemporaryDirectory() as place:
        writer = None if old_texts is None else TextWriter(Path(place))
        added = count_as_before(reader, opened.vectorizer, notes, texts=writer, quiet=quiet)
        texts = read_texts(Path(place))
    new = _new_rows(opened.counted, added)
    if not len(new):
        screen.print(NOTHING_NEW)
        return
    counted = _together(opened.counted, added, new)
    interrupted = False
    model = opened.model.with_topics(opened.model.components_, counted.counts)
    if refine:
        model = clone(model).set_params(init=(model.doc_topic_, model.components_))
        interrupted, _ = fit_with_bar(model, counted.counts, notes, quiet=quiet)
    about = {**opened.about, "updates": [*opened.about.get("updates", []), {**entry, "documents": len(new)}]}
    all_texts = None if old_texts is None or texts is None else [*old_texts, *(texts[row] for row in new)]
    rewrite(opened, model, counted, about, all_texts, notes, quiet=quiet)
    if not quiet:
        _tell(opened.model, added, new, screen)
    end_if(interrupted, notes)


def _update_shards(
    run: ShardedRun, reader: Reader, entry: dict[str, Any], screen: Console, notes: Console, *, quiet: bool
) -> None:
    from polyseme.cli.fitting import end_if

    try:
        done = update_shards(run, reader, entry, notes, quiet=quiet)
    except NothingNew:
        screen.print(NOTHING_NEW)
        return
    if not quiet:
        screen.print(f"{in_words(done.added, 'document')} added; {done.read - done.added:,} already in the run.")
    end_if(done.interrupted, notes)


def _new_rows(old: Counted, added: Counted) -> Any:
    """The rows of `added` whose document `old` does not have."""
    import numpy as np

    known = set(zip(old.columns["source"], old.columns["id"], strict=True))
    names = zip(added.columns["source"], added.columns["id"], strict=True)
    return np.array([row for row, name in enumerate(names) if name not in known], dtype=np.int64)


def _together(old: Counted, added: Counted, new: Any) -> Counted:
    import scipy.sparse as sp

    from polyseme.runs import Counted

    columns = {name: [*values, *(added.columns[name][row] for row in new)] for name, values in old.columns.items()}
    counts = sp.csr_array(sp.vstack([old.counts, sp.csr_array(added.counts)[new]]))
    return Counted(counts, columns, old.vectorizer)


def _tell(model: Any, added: Counted, new: Any, screen: Console) -> None:
    import numpy as np
    import scipy.sparse as sp

    counts = sp.csr_array(added.counts)[new]
    wordless = int((np.diff(counts.indptr) == 0).sum())
    report = model.perplexity_report(counts)
    screen.print(f"{in_words(len(new), 'document')} added; {len(added.names) - len(new):,} already in the run.")
    screen.print(
        f"Perplexity of the new documents under the topics as they were: {report.perplexity:.1f}; "
        f"of the run's own: {model.training_perplexity_:.1f}.",
    )
    if wordless > MANY_UNKNOWN * len(new):
        screen.print(f"{wordless:,} of them have no word that the run knows: a new polyseme fit would learn theirs.")
