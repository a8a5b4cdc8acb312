"""``polyseme fit --shards``: documents that do not fit into memory.

The input is read once: its texts go to files, and the words are learned as they pass by. The texts are then counted
into shards, a fit visits the shards, and the files of the run are written a piece at a time. After a kill each step
goes on from what the steps before it left, to the same bits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from polyseme import PLSA, load
from polyseme.checkpoints import Checkpoint
from polyseme.cli.bars import Update, bar
from polyseme.cli.choosing import check_number, chosen_number, forget_choice
from polyseme.cli.console import Console
from polyseme.cli.documents import Documents
from polyseme.cli.explore import PAGE_FILE, write_explorer
from polyseme.cli.fitting import fit_with_bar, sizes_and_time
from polyseme.cli.outcome import Ended, about_fit
from polyseme.cli.reading import Kept, learn_words
from polyseme.cli.topic_table import topic_rows
from polyseme.files import write_atomically
from polyseme.runs import open_run
from polyseme.runs.counted import read_json, read_vectorizer, write_vectorizer
from polyseme.runs.fields import FITTED
from polyseme.runs.folder import FITTED_FILE, SHARDS_FOLDER, flush_all
from polyseme.runs.pieces import DocumentWriter
from polyseme.runs.run import MODEL_FILE
from polyseme.runs.sharded import drawn_rows, sampled_counts, with_documents
from polyseme.runs.texts import Texts, TextWriter
from polyseme.runs.write_sharded import keep_model, write_fitted_shards
from polyseme.scale import Shards, open_shards, write_shards
from polyseme.sources.shards import MANIFEST, read_manifest
from polyseme.text import Vectorizer

CHOSEN_FROM = 10_000
"""documents, drawn at random, that the number of topics is chosen by"""
_SHOW_EVERY = 512


def fit_in_shards(
    documents: Documents,
    work: Path,
    keep: Checkpoint,
    notes: Console,
    *,
    folder: Path,
    page: bool,
    page_text: Any,
    resume: bool,
    quiet: bool,
) -> Ended:
    """Makes the run in the folder `work`, which will be `folder`."""
    facts = (documents.facts_in(work) if resume else None) or _read_in(documents, work, notes, quiet=quiet)
    with _kept_if_stopped(notes):
        vectorizer = read_vectorizer(work)
        shards = _counted_shards(work, vectorizer, facts["documents"], notes, quiet=quiet)
        facts = {**facts, "tokens": int(shards.manifest.tokens), "shards": len(shards.manifest.shards)}
        choice: dict[str, Any] = {}
        number, seed = documents.fitting["n_components"], documents.fitting["seed"]
        if number is None:
            sample = sampled_counts(shards, drawn_rows(shards.shape[0], CHOSEN_FROM, seed))
            number, choice = chosen_number(sample, work, notes, seed=seed, resume=resume, quiet=quiet)
            choice = {**choice, "documents": sample.shape[0]}
            if sample.shape[0] < shards.shape[0] and not quiet:
                notes.print(f"It was chosen by {sample.shape[0]:,} documents, drawn at random.")
        check_number(number, shards.shape[0])
        model, interrupted, seconds = _fitted(documents, shards, number, keep, work, notes, quiet=quiet)
        about = about_fit(
            documents,
            facts,
            model,
            choice,
            folder=folder,
            page_text=page_text,
            interrupted=interrupted,
            seconds=seconds,
        )
        vocabulary = [str(word) for word in vectorizer.get_feature_names_out()]
        write_fitted_shards(work, model, shards, about, vocabulary)
        forget_choice(work)
        if not documents.keep_texts:
            Texts(work).remove()
        run = open_run(work)
        if page:
            write_explorer(run, work / PAGE_FILE, page_text, notes, quiet=quiet)
        rows = topic_rows(model, run.count_parts(), run.vocabulary, run.names, run.label_numbers)
        summary = _summary(model, shards, seconds)
        return Ended(rows, summary, facts["counting"]["language"], model.n_iter_, model.converged_, interrupted)


@contextmanager
def _kept_if_stopped(notes: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        notes.print("Stopped: what is done so far is kept; the same command with --resume goes on.")
        raise


def _read_in(documents: Documents, work: Path, notes: Console, *, quiet: bool) -> dict[str, Any]:
    """Texts, and what is known of them, to files; the words to the vectorizer's."""
    start = time.perf_counter()
    reader, vectorizer = documents.reader(), documents.vectorizer()
    kept = Kept(DocumentWriter(work), TextWriter(work))
    learn_words(vectorizer.fit, reader, vectorizer, kept, notes, quiet=quiet)
    write_vectorizer(work, vectorizer)
    flush_all(work)
    sizes = {"documents": reader.documents, "words": len(vectorizer.vocabulary_)}
    return documents.keep_facts(work, reader, vectorizer, sizes, time.perf_counter() - start)


def _counted_shards(work: Path, vectorizer: Vectorizer, n_documents: int, notes: Console, *, quiet: bool) -> Shards:
    """The shards, which may be there already, all or some of them."""
    folder = work / SHARDS_FOLDER
    if (folder / MANIFEST).exists() and read_manifest(folder).complete:
        return open_shards(folder)
    with bar(notes, "Writing shards", unit="documents", quiet=quiet) as update:
        return write_shards(_passing(Texts(work), n_documents, update), folder, vectorizer=vectorizer)


def _passing(texts: Texts, n_documents: int, update: Update) -> Iterator[str]:
    for number, text in enumerate(texts, start=1):
        if number % _SHOW_EVERY == 0:
            update(number, n_documents, f"{number:,} of {n_documents:,} documents")
        yield text


def _fitted(
    documents: Documents, shards: Shards, number: int, keep: Checkpoint, work: Path, notes: Console, *, quiet: bool
) -> tuple[Any, bool, float]:
    """The model, whether Ctrl-C cut its fit short, and the seconds; a fit that was done is not done again."""
    if not (work / FITTED_FILE).is_file():
        asked = documents.fitting
        limit = {} if asked["max_iter"] is None else {"max_iter": asked["max_iter"]}
        fitted = PLSA(number, background=asked["background"], random_state=asked["seed"], checkpoint=keep, **limit)
        interrupted, seconds = fit_with_bar(fitted, shards, notes, quiet=quiet)
        keep_model(work, fitted, shards)
        ended = {"interrupted": interrupted, "seconds": round(seconds, 3)}
        write_atomically(work / FITTED_FILE, json.dumps(ended).encode())
    found = read_json(work / FITTED_FILE, FITTED, required=tuple(FITTED))
    return with_documents(load(work / MODEL_FILE), shards), bool(found["interrupted"]), float(found["seconds"])


def _summary(model: Any, shards: Shards, seconds: float) -> str:
    """Two lines: sizes and time, and perplexities."""
    p = model.unigram_[model.unigram_ > 0]
    return (
        f"{sizes_and_time(*shards.shape, shards.manifest.tokens, model.n_iter_, seconds)}\n"
        f"Perplexity {model.training_perplexity_:.1f}; without topics {np.exp(-(p * np.log(p)).sum()):.1f}."
    )
