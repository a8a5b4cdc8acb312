"""``polyseme fit --shards``: documents that do not fit into memory.

The input is read once: its texts go to files, and the words are learned as they pass by. The texts are then counted
into shards, a fit visits the shards, and the files of the run are written a piece at a time. After a kill each step
goes on from what the steps before it left, to the same bits.

``polyseme fit``: from texts to a run folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from polyseme import PLSA, load
from polyseme.cli import options
from polyseme.cli.commands.explore import PAGE_FILE, write_explorer
from polyseme.cli.console import Console, Update, bar, topic_rows
from polyseme.cli.fitting import (
    Ended,
    about_fit,
    check_number,
    chosen_number,
    fit_with_bar,
    forget_choice,
    sizes_and_time,
)
from polyseme.cli.reading import Documents, Kept, learn_words
from polyseme.data.shard_files import MANIFEST, read_manifest
from polyseme.io.files import write_atomically
from polyseme.runs import open_run
from polyseme.runs.documents import DocumentWriter, Texts, TextWriter, read_json, read_vectorizer, write_vectorizer
from polyseme.runs.folder import CHECKPOINT_FILE, FITTED, FITTED_FILE, SHARDS_FOLDER, check_free, flush_all
from polyseme.runs.run import MODEL_FILE, drawn_rows, sampled_counts, with_documents
from polyseme.runs.write import keep_model, write_fitted_shards
from polyseme.scale import DiskCorpus, open_shards, write_shards
from polyseme.solvers.checkpoints import Checkpoint
from polyseme.text import Vectorizer

if TYPE_CHECKING:
    from polyseme.cli.fitting import Ended
    from polyseme.cli.reading import Documents
    from polyseme.solvers.checkpoints import Checkpoint


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


def _counted_shards(work: Path, vectorizer: Vectorizer, n_documents: int, notes: Console, *, quiet: bool) -> DiskCorpus:
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
    documents: Documents, shards: DiskCorpus, number: int, keep: Checkpoint, work: Path, notes: Console, *, quiet: bool
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


def _summary(model: Any, shards: DiskCorpus, seconds: float) -> str:
    """Two lines: sizes and time, and perplexities."""
    p = model.unigram_[model.unigram_ > 0]
    return (
        f"{sizes_and_time(*shards.shape, shards.manifest.tokens, model.n_iter_, seconds)}\n"
        f"Perplexity {model.training_perplexity_:.1f}; without topics {np.exp(-(p * np.log(p)).sum()):.1f}."
    )


def fit(
    inputs: options.Inputs,
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, metavar="N", help="Number of topics, by default chosen with held-out documents."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUN", help="Folder to write, by default INPUT-run.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False,
    format: options.Format = None,
    text: options.Text = None,
    id: options.Id = None,
    title: options.Title = None,
    label: options.Label = None,
    time: options.Time = None,
    encoding: options.Encoding = None,
    sample: options.Sample = None,
    category: options.Category = None,
    noise: options.Noise = 0,
    uncategorized: options.Uncategorized = False,
    language: options.Language = "auto",
    phrases: options.Phrases = False,
    keep_numbers: options.KeepNumbers = False,
    stop_words: options.StopWords = None,
    min_df: options.MinDf = 2,
    max_df: options.MaxDf = 0.5,
    background: Annotated[
        float,
        typer.Option("--background", min=0.0, max=0.99, metavar="SHARE", help="Share of common words in each text."),
    ] = 0.0,
    max_iter: options.MaxIter = None,
    keep_texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Store the texts in the run, for the explorer page.")
    ] = True,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the explorer page.")] = True,
    page_text: Annotated[
        options.PageText,
        typer.Option("--page-text", help="How much of each document's text the page holds."),
    ] = "excerpt",
    shards: Annotated[
        bool,
        typer.Option("--shards", help="Fit from files instead of memory: for millions of documents."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the same command after it was killed, with the same result.")
    ] = False,
    checkpoint: Annotated[
        float, typer.Option("--checkpoint", min=0.0, metavar="SECONDS", help="Seconds between two checkpoints.")
    ] = 10.0,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Fit topics to texts and write a run folder.

    Examples:

      polyseme fit letters/

      polyseme fit letters/ -k 20 -o letters-run

      polyseme fit news.csv --text body --title headline --label section

      polyseme fit itwiki.xml.bz2 --sample 5000 --language italian

      zcat lines.gz | polyseme fit - -k 10 -o run

      polyseme fit enwiki.xml.bz2 --shards -k 200
    """
    folder = output or default_folder(inputs)
    check_free(folder, overwrite=overwrite)
    if not resume:
        options.check_inputs(inputs)

    from polyseme.cli.fitting import end_if
    from polyseme.cli.reading import Documents
    from polyseme.runs import whole_folder
    from polyseme.solvers.checkpoints import Checkpoint

    screen, notes = Console(), Console(stderr=True)
    reading = {
        "format": format, "text": text, "id": id, "title": title, "label": label, "time": time, "encoding": encoding,
        "sample": sample, "categories": category, "noise": noise, "uncategorized": uncategorized, "seed": seed,
    }  # fmt: skip
    counting = options.counting_settings(language, phrases, keep_numbers, stop_words, min_df, max_df)
    fitting = {"n_components": k, "background": background, "seed": seed, "max_iter": max_iter}
    documents = Documents(inputs, reading, counting, fitting, keep_texts, shards)
    with whole_folder(folder, overwrite=overwrite, resume=resume) as work:
        make = fit_in_shards if shards else _fit_in_memory
        keep = Checkpoint(None if shards else work / CHECKPOINT_FILE, checkpoint)
        ended = make(
            documents, work, keep, notes, folder=folder, page=page, page_text=page_text, resume=resume, quiet=quiet
        )
    if not quiet:
        ended.show(screen, notes, folder, detected=language == "auto")
    screen.print(f"Run: {folder}", soft_wrap=True)
    if page and not quiet:
        screen.print(f"Page to explore: {folder / PAGE_FILE}", soft_wrap=True)
    end_if(ended.interrupted, notes)


def _fit_in_memory(
    documents: Documents,
    work: Path,
    keep: Checkpoint,
    notes: Console,
    *,
    folder: Path,
    page: bool,
    page_text: options.PageText,
    resume: bool,
    quiet: bool,
) -> Ended:
    """Makes the run in the folder `work`, which will be `folder`."""
    from polyseme import PLSA
    from polyseme.cli.console import topic_rows
    from polyseme.cli.fitting import (
        Ended,
        about_fit,
        check_number,
        chosen_number,
        fit_summary,
        fit_with_bar,
        forget_choice,
    )
    from polyseme.runs import open_run, write_fitted
    from polyseme.runs.topic_documents import Labels

    counted, facts = documents.counted(work, notes, resume=resume, quiet=quiet)
    asked = documents.fitting
    choice: dict[str, Any] = {}
    number = asked["n_components"]
    if number is None:
        number, choice = chosen_number(counted.counts, work, notes, seed=asked["seed"], resume=resume, quiet=quiet)
    check_number(number, counted.counts.shape[0])
    limit = {} if asked["max_iter"] is None else {"max_iter": asked["max_iter"]}
    model = PLSA(number, background=asked["background"], random_state=asked["seed"], checkpoint=keep, **limit)
    interrupted, seconds = fit_with_bar(model, counted.counts, notes, quiet=quiet)
    about = about_fit(
        documents, facts, model, choice, folder=folder, page_text=page_text, interrupted=interrupted, seconds=seconds
    )
    write_fitted(work, model, counted, about)
    forget_choice(work)
    if page:
        write_explorer(open_run(work), work / PAGE_FILE, page_text, notes, quiet=quiet)
    rows = topic_rows(model, [counted.counts], counted.vocabulary, counted.names, Labels.of(counted.labels))
    summary = "" if quiet else fit_summary(model, counted.counts, seconds)
    return Ended(rows, summary, counted.vectorizer.language_, model.n_iter_, model.converged_, interrupted)


def default_folder(inputs: list[str]) -> Path:
    """Named after the input: news.csv.gz gives news-run, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-run")
