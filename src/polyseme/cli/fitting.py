"""Work of ``polyseme fit`` and ``polyseme update``, and what other commands that fit share with them.

`fit_in_memory` holds all counts in memory. `fit_in_shards` is for documents that do not fit into memory: it reads the
input once and writes its texts to files while it learns the words, counts the texts into shards, fits from the shards,
and writes the files of the run piece by piece. After a kill, ``--resume`` continues from the last completed step and
reaches the same bits. `update_in_memory` and `update_shards` add documents to the two kinds of runs.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
import typer
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyseme import PLSA, load
from polyseme.cli.commands.explore import PAGE_FILE, write_explorer
from polyseme.cli.console import (
    INTERRUPTED,
    Console,
    ProgressUpdate,
    TopicRow,
    pluralize,
    print_topics,
    progress_bar,
    topic_rows,
    version_info,
)
from polyseme.cli.options import PageText
from polyseme.cli.reading import (
    FEW_DOCUMENTS,
    DocumentRecorder,
    FitSettings,
    learn_words,
    print_problems,
    transform_counts,
)
from polyseme.data.shard_files import MANIFEST, read_manifest
from polyseme.data.shard_writer import append_to_shards
from polyseme.errors import InputError
from polyseme.io.files import flush_all, write_atomically
from polyseme.kernels import Array
from polyseme.metrics.words import fitted_topics
from polyseme.runs import Counted, Run, atomic_folder, open_run, write_fitted
from polyseme.runs.documents import (
    DOCUMENTS_FILE,
    TEXTS_FOLDER,
    VECTORIZER_FILE,
    DocumentWriter,
    Texts,
    TextWriter,
    read_json,
    read_texts,
    read_vectorizer,
    write_vectorizer,
)
from polyseme.runs.folder import CHOICE_FIELDS, FITTED_FIELDS, FITTED_FILE, SHARDS_FOLDER
from polyseme.runs.run import MODEL_FILE, ShardedRun, sample_rows, take_counts, with_documents
from polyseme.runs.topic_documents import Labels
from polyseme.runs.write import save_model, write_files, write_fitted_shards
from polyseme.scale import DiskCorpus, open_shards, write_shards
from polyseme.selection import select_n_topics
from polyseme.selection.n_topics import default_estimator
from polyseme.solvers import Checkpoint
from polyseme.text import Document, Reader, Vectorizer

SELECTION_SAMPLE = 10_000
"""Number of documents, drawn at random, with which a fit from shards chooses the number of topics."""
_CHOICE_FILE = "choice.json"
"""Stores the chosen number of topics in the work folder, for --resume."""
_UPDATE_EVERY = 512
"""Documents between two updates of the progress bar."""
_NOTHING_NEW = "All of these documents are in the run already: nothing is changed."
_UNKNOWN_SHARE = 0.1
"""Share of the new documents without a known word from which a new fit is recommended."""
_FILES_OF_A_FIT = ("doc_topic.npy", "doc_weights.npy")
"""Files beside the shards that an update writes again."""


@dataclass(frozen=True)
class FitOutcome:
    """What ``polyseme fit`` prints after the run is written."""

    rows: list[TopicRow]
    summary: str
    language: str | None
    iterations: int
    converged: bool
    interrupted: bool

    def show(self, screen: Console, notes: Console, folder: Path, *, detected: bool) -> None:
        """Print at most one screen. `detected` says whether the language was detected."""
        if self.language is not None and detected:
            notes.print(f"Language: {self.language} (detected; --language sets another).")
        if not self.converged and not self.interrupted:
            notes.print(not_converged(self.iterations))
        print_topics(self.rows, screen, folder)
        screen.print(self.summary)


def fit_in_memory(
    settings: FitSettings,
    work: Path,
    checkpoint: Checkpoint,
    notes: Console,
    *,
    folder: Path,
    page: bool,
    page_text: PageText,
    resume: bool,
    quiet: bool,
) -> FitOutcome:
    """Write the run into the folder `work`, which is then renamed to `folder`."""
    counted, facts = settings.counted(work, notes, resume=resume, quiet=quiet)
    choice: dict[str, Any] = {}
    n_topics, seed = settings.fitting["n_components"], settings.fitting["seed"]
    if n_topics is None:
        n_topics, choice = choose_once(counted.counts, work, notes, seed=seed, resume=resume, quiet=quiet)
    check_n_topics(n_topics, counted.counts.shape[0])
    model = _estimator(settings, n_topics, checkpoint)
    interrupted, seconds = fit_with_bar(model, counted.counts, notes, quiet=quiet)
    about = _run_fields(
        settings, facts, model, choice, folder=folder, page_text=page_text, interrupted=interrupted, seconds=seconds
    )
    write_fitted(work, model, counted, about)
    remove_choice(work)
    if page:
        write_explorer(open_run(work), work / PAGE_FILE, page_text, notes, quiet=quiet)
    rows = topic_rows(model, [counted.counts], counted.vocabulary, counted.names, Labels.of(counted.labels))
    summary = "" if quiet else fit_summary(model, counted.counts, seconds)
    return FitOutcome(rows, summary, counted.vectorizer.language_, model.n_iter_, model.converged_, interrupted)


def fit_in_shards(
    settings: FitSettings,
    work: Path,
    checkpoint: Checkpoint,
    notes: Console,
    *,
    folder: Path,
    page: bool,
    page_text: PageText,
    resume: bool,
    quiet: bool,
) -> FitOutcome:
    """Write the run into the folder `work`, which is then renamed to `folder`."""
    facts = (settings.load_facts(work) if resume else None) or _read_documents(settings, work, notes, quiet=quiet)
    with _resume_hint(notes):
        vectorizer = read_vectorizer(work)
        shards = _count_shards(work, vectorizer, facts["documents"], notes, quiet=quiet)
        facts = {**facts, "tokens": int(shards.manifest.tokens), "shards": len(shards.manifest.shards)}
        choice: dict[str, Any] = {}
        n_topics, seed = settings.fitting["n_components"], settings.fitting["seed"]
        if n_topics is None:
            sample = take_counts(shards, sample_rows(shards.shape[0], SELECTION_SAMPLE, seed))
            n_topics, choice = choose_once(sample, work, notes, seed=seed, resume=resume, quiet=quiet)
            choice = {**choice, "documents": sample.shape[0]}
            if sample.shape[0] < shards.shape[0] and not quiet:
                notes.print(f"It was chosen with {sample.shape[0]:,} documents, drawn at random.")
        check_n_topics(n_topics, shards.shape[0])
        model, interrupted, seconds = _fit_once(settings, shards, n_topics, checkpoint, work, notes, quiet=quiet)
        about = _run_fields(
            settings, facts, model, choice, folder=folder, page_text=page_text, interrupted=interrupted, seconds=seconds
        )
        vocabulary = [str(word) for word in vectorizer.get_feature_names_out()]
        write_fitted_shards(work, model, shards, about, vocabulary)
        remove_choice(work)
        if not settings.keep_texts:
            Texts(work).remove()
        run = open_run(work)
        if page:
            write_explorer(run, work / PAGE_FILE, page_text, notes, quiet=quiet)
        rows = topic_rows(model, run.count_parts(), run.vocabulary, run.names, run.label_numbers)
        summary = _shard_summary(model, shards, seconds)
        (work / FITTED_FILE).unlink(missing_ok=True)
        return FitOutcome(rows, summary, facts["counting"]["language"], model.n_iter_, model.converged_, interrupted)


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
        screen.print(_NOTHING_NEW)
        return False
    counted = _append_rows(run.counted, added, rows)
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
    except _NoNewDocuments:
        screen.print(_NOTHING_NEW)
        return False
    if not quiet:
        _print_numbers(documents.n_added, documents.n_read, screen)
    return interrupted


def fit_with_bar(model: Any, counts: Any, notes: Console, *, quiet: bool = False) -> tuple[bool, float]:
    """Fit with a progress bar; return whether Ctrl-C stopped the fit, and the seconds it took.

    After Ctrl-C the estimator holds the best model so far. If there is none, KeyboardInterrupt is raised again.
    """
    start = time.perf_counter()
    interrupted = False
    with progress_bar(notes, "Fitting topics", unit="iterations", quiet=quiet) as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # not_converged says it in terms of options

        def show(entry: Mapping[str, float]) -> None:
            iteration, perplexity = entry["iteration"], exp(-entry["log_likelihood"])
            update(iteration, model.max_iter, f"iteration {iteration:.0f}, perplexity {perplexity:.1f}")

        model.set_params(callback=show)
        try:
            model.fit(counts)
        except KeyboardInterrupt:
            if fitted_topics(model) is None:
                raise
            interrupted = True
        finally:
            model.set_params(callback=None)
    return interrupted, time.perf_counter() - start


def exit_if_interrupted(interrupted: bool, notes: Console) -> None:
    """After Ctrl-C, say which topics were written and exit with the code of an interrupt."""
    if interrupted:
        notes.print("Stopped early: these are the topics of the last completed iteration.")
        raise typer.Exit(INTERRUPTED)


def choose_once(
    counts: Any, work: Path, notes: Console, *, seed: int, resume: bool, quiet: bool
) -> tuple[int, dict[str, Any]]:
    """Choose the number of topics, or load the stored choice; return it with the fields of run.json about it."""
    path = work / _CHOICE_FILE
    if resume and path.is_file():
        choice = read_json(path, CHOICE_FIELDS, required=("n_topics", "reason"))
    else:
        choice = _choose(counts, notes, seed=seed, quiet=quiet)
        write_atomically(path, json.dumps(choice).encode())
    if not quiet:
        notes.print(f"{choice['reason']} (Use -k to set another number.)")
    return int(choice["n_topics"]), choice


def remove_choice(work: Path) -> None:
    """Remove the stored choice, which run.json contains by now."""
    (work / _CHOICE_FILE).unlink(missing_ok=True)


def check_n_topics(n_topics: int, n_documents: int) -> None:
    """Raise InputError if there are more topics than documents."""
    if n_topics > n_documents:
        raise InputError(f"There are {n_documents:,} documents, too few for {n_topics:,} topics: choose a smaller -k.")


def rewrite_run(
    run: Run,
    model: Any,
    counted: Counted,
    about: dict[str, Any],
    texts: list[str] | None,
    notes: Console,
    *,
    quiet: bool,
) -> None:
    """Replace a run by one with another model or other documents; write its page again if it has one."""
    about = {name: value for name, value in about.items() if name not in ("format_version", "stability", "shards")}
    sizes = {"documents": counted.counts.shape[0], "tokens": int(counted.counts.sum())}
    with atomic_folder(run.path, overwrite=True) as folder:
        write_files(folder, model, counted, {**about, **sizes}, texts)
        if (run.path / PAGE_FILE).is_file():
            new = open_run(folder, trust_pattern=run.trust_pattern)
            write_explorer(new, folder / PAGE_FILE, about.get("page_text", "excerpt"), notes, quiet=quiet)


def not_converged(iterations: int) -> str:
    """Return the message about a fit that reached the maximum number of iterations."""
    return f"Stopped after {iterations} iterations, before convergence: a larger --max-iter makes the topics sharper."


def fit_summary(model: Any, counts: Any, seconds: float) -> str:
    """Return two lines: sizes and time, and perplexities."""
    documents, words = counts.shape
    report = model.perplexity_report(counts)
    return (
        f"{_sizes_and_time(documents, words, report.tokens, model.n_iter_, seconds)}\n"
        f"Perplexity {report.perplexity:.1f}; without topics {report.unigram_perplexity:.1f}."
    )


def _shard_summary(model: Any, shards: DiskCorpus, seconds: float) -> str:
    """Return the same two lines from the fitted attributes, without another pass over the shards."""
    p = model.unigram_[model.unigram_ > 0]
    return (
        f"{_sizes_and_time(*shards.shape, shards.manifest.tokens, model.n_iter_, seconds)}\n"
        f"Perplexity {model.training_perplexity_:.1f}; without topics {np.exp(-(p * np.log(p)).sum()):.1f}."
    )


def _sizes_and_time(documents: int, words: int, tokens: float, iterations: int, seconds: float) -> str:
    sizes = ", ".join((pluralize(documents, "document"), pluralize(words, "word"), pluralize(round(tokens), "token")))
    return f"{sizes}, {pluralize(iterations, 'iteration')} in {seconds:.1f} seconds."


def _estimator(settings: FitSettings, n_topics: int, checkpoint: Checkpoint) -> PLSA:
    """Return the estimator with the settings of the fit."""
    fitting = settings.fitting
    limit = {} if fitting["max_iter"] is None else {"max_iter": fitting["max_iter"]}
    return PLSA(
        n_topics, background=fitting["background"], random_state=fitting["seed"], checkpoint=checkpoint, **limit
    )


def _run_fields(
    settings: FitSettings,
    facts: dict[str, Any],
    model: Any,
    choice: dict[str, Any],
    *,
    folder: Path,
    page_text: str,
    interrupted: bool,
    seconds: float,
) -> dict[str, Any]:
    """Return the fields of run.json. `facts` are those about the documents, `choice` those about the choice of K."""
    return {
        **version_info(),
        "command": ["polyseme", *sys.argv[1:]],
        **facts,
        "title": folder.resolve().name,
        "page_text": page_text,
        "model": {"class": "PLSA", **settings.fitting, "n_components": model.n_components},
        **({"selection": choice} if choice else {}),
        "solver": model.solver_,
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "interrupted": interrupted,
        "seconds": {**facts["seconds"], "fitting": round(seconds, 3)},
    }


def _choose(counts: Any, notes: Console, *, seed: int, quiet: bool) -> dict[str, Any]:
    n_documents = counts.shape[0]
    if n_documents < FEW_DOCUMENTS:
        n_topics = max(1, min(n_documents // 2, counts.shape[1]))
        return {
            "n_topics": n_topics,
            "reason": f"Number of topics: {n_topics}. With fewer than {FEW_DOCUMENTS} documents none can be held out.",
        }
    with progress_bar(notes, "Choosing the number of topics", quiet=quiet) as update:
        selection = select_n_topics(
            counts,
            estimator=default_estimator(None, seed, max_iter=50),
            folds_run=1,
            random_state=seed,
            max_documents=5000,
            progress=update,
        )
    choice = selection.as_dict()
    if selection.structured:
        return {**choice, "n_topics": selection.chosen}
    return {
        **choice,
        "n_topics": selection.best,
        "reason": f"{selection.reason} The {selection.best} topics that follow may be chance.",
    }


@contextmanager
def _resume_hint(notes: Console) -> Iterator[None]:
    """On Ctrl-C, say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        notes.print("Stopped: the work so far is stored; the same command with --resume continues it.")
        raise


def _read_documents(settings: FitSettings, work: Path, notes: Console, *, quiet: bool) -> dict[str, Any]:
    """Write the texts and metadata of the documents and the fitted vectorizer to files; return the facts."""
    start = time.perf_counter()
    reader, vectorizer = settings.reader(), settings.vectorizer()
    recorder = DocumentRecorder(DocumentWriter(work), TextWriter(work))
    learn_words(vectorizer.fit, reader, vectorizer, recorder, notes, quiet=quiet)
    write_vectorizer(work, vectorizer)
    flush_all(work)
    sizes = {"documents": reader.documents, "words": len(vectorizer.vocabulary_)}
    return settings.store_facts(work, reader, vectorizer, sizes, time.perf_counter() - start)


def _count_shards(work: Path, vectorizer: Vectorizer, n_documents: int, notes: Console, *, quiet: bool) -> DiskCorpus:
    """Count the texts into shards; shards that exist already are not written again."""
    folder = work / SHARDS_FOLDER
    if (folder / MANIFEST).exists() and read_manifest(folder).complete:
        return open_shards(folder)
    with progress_bar(notes, "Writing shards", unit="documents", quiet=quiet) as update:
        return write_shards(_with_progress(Texts(work), n_documents, update), folder, vectorizer=vectorizer)


def _with_progress(texts: Texts, n_documents: int, update: ProgressUpdate) -> Iterator[str]:
    for number, text in enumerate(texts, start=1):
        if number % _UPDATE_EVERY == 0:
            update(number, n_documents, f"{number:,} of {n_documents:,} documents")
        yield text


def _fit_once(
    settings: FitSettings,
    shards: DiskCorpus,
    n_topics: int,
    checkpoint: Checkpoint,
    work: Path,
    notes: Console,
    *,
    quiet: bool,
) -> tuple[Any, bool, float]:
    """Fit, or load the model of a completed fit; return it, whether Ctrl-C stopped the fit, and the seconds."""
    if not (work / FITTED_FILE).is_file():
        model = _estimator(settings, n_topics, checkpoint)
        interrupted, seconds = fit_with_bar(model, shards, notes, quiet=quiet)
        save_model(work, model, shards)
        result = {"interrupted": interrupted, "seconds": round(seconds, 3)}
        write_atomically(work / FITTED_FILE, json.dumps(result).encode())
        shutil.rmtree(checkpoint.folder, ignore_errors=True)
    stored = read_json(work / FITTED_FILE, FITTED_FIELDS, required=tuple(FITTED_FIELDS))
    return with_documents(load(work / MODEL_FILE), shards), bool(stored["interrupted"]), float(stored["seconds"])


class _NoNewDocuments(Exception):
    """Raised inside `atomic_folder` to leave the run unchanged."""


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
            raise _NoNewDocuments
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


def _append_rows(old: Counted, added: Counted, rows: Array) -> Counted:
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
    if without_words > _UNKNOWN_SHARE * len(rows):
        screen.print(
            f"{pluralize(without_words, 'new document')} without any word of the run: polyseme fit learns new words."
        )


def _print_numbers(n_added: int, n_read: int, screen: Console) -> None:
    screen.print(f"{pluralize(n_added, 'document')} added; {n_read - n_added:,} already in the run.")
