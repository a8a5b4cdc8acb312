"""How a fit of ``polyseme fit`` ended: what its run says of it, and what the screen shows.

A fit under a progress bar, as commands do it.

The number of topics of a fit that was asked for none.

A run written anew in its own place, with what belongs to it.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from polyseme import PLSA, load
from polyseme.cli.commands.explore import PAGE_FILE, write_explorer
from polyseme.cli.console import INTERRUPTED, Console, Update, bar, in_words, versions
from polyseme.cli.options import PageText
from polyseme.cli.reading import Documents, Kept, learn_words
from polyseme.cli.topic_table import TopicRow, more_topics, short_topic_table, topic_rows
from polyseme.data.shard_files import MANIFEST, read_manifest
from polyseme.errors import InputError
from polyseme.io.files import write_atomically
from polyseme.runs import Counted, Run, open_run, whole_folder, write_fitted
from polyseme.runs.documents import DocumentWriter, Texts, TextWriter, read_json, read_vectorizer, write_vectorizer
from polyseme.runs.fields import CHOICE, FITTED
from polyseme.runs.folder import FITTED_FILE, SHARDS_FOLDER, flush_all
from polyseme.runs.run import MODEL_FILE, drawn_rows, sampled_counts, with_documents
from polyseme.runs.topic_documents import Labels
from polyseme.runs.write import keep_model, write_fitted_shards, write_into
from polyseme.scale import DiskCorpus, open_shards, write_shards
from polyseme.selection import choose_n_topics
from polyseme.solvers.checkpoints import Checkpoint
from polyseme.text import Vectorizer


@dataclass(frozen=True)
class Ended:
    """What is left to print when the run is written."""

    rows: list[TopicRow]
    summary: str
    language: str | None
    iterations: int
    converged: bool
    interrupted: bool

    def show(self, screen: Console, notes: Console, folder: Path, *, detected: bool) -> None:
        """Print at most one screen. detected : whether the language was."""
        if self.language is not None and detected:
            notes.print(f"Language: {self.language} (detected; --language sets another).")
        if not self.converged and not self.interrupted:
            notes.print(stopped_early(self.iterations))
        print_topics(self.rows, screen, folder)
        screen.print(self.summary)


def print_topics(rows: list[TopicRow], screen: Console, folder: Path) -> None:
    """The heaviest topics, a line each, and how to see the others."""
    screen.print(short_topic_table(rows, screen.width))
    if more := more_topics(rows, str(folder)):
        screen.print(more)


def stopped_early(iterations: int) -> str:
    """For a fit that has not converged."""
    return f"Stopped after {iterations} iterations, before convergence: a larger --max-iter makes the topics sharper."


def about_fit(
    documents: Documents,
    facts: dict[str, Any],
    model: Any,
    choice: dict[str, Any],
    *,
    folder: Path,
    page_text: str,
    interrupted: bool,
    seconds: float,
) -> dict[str, Any]:
    """What run.json says. facts : of the documents; choice : of the number of topics, if it was not given."""
    return {
        **versions(),
        "command": ["polyseme", *sys.argv[1:]],
        **facts,
        "title": folder.resolve().name,
        "page_text": page_text,
        "model": {"class": "PLSA", **documents.fitting, "n_components": model.n_components},
        **({"selection": choice} if choice else {}),
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "interrupted": interrupted,
        "seconds": {**facts["seconds"], "fitting": round(seconds, 3)},
    }


def fit_with_bar(model: Any, counts: Any, notes: Console, *, quiet: bool = False) -> tuple[bool, float]:
    """Fits; returns whether Ctrl-C cut it short, and the seconds.

    After Ctrl-C the estimator holds the best model so far, or none, and then the interrupt goes on.
    """
    start = time.perf_counter()
    interrupted = False
    with bar(notes, "Fitting topics", unit="iterations", quiet=quiet) as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said in the command line's own words

        def show(entry: Mapping[str, float]) -> None:
            iteration, perplexity = entry["iteration"], exp(-entry["log_likelihood"])
            update(iteration, model.max_iter, f"iteration {iteration:.0f}, perplexity {perplexity:.1f}")

        model.set_params(callback=show)
        try:
            model.fit(counts)
        except KeyboardInterrupt:
            if not hasattr(model, "components_"):
                raise
            interrupted = True
        finally:
            model.set_params(callback=None)
    return interrupted, time.perf_counter() - start


def end_if(interrupted: bool, notes: Console) -> None:
    """After Ctrl-C: says what was written, and ends with the code of an interrupt."""
    if interrupted:
        notes.print("Stopped early: these are the topics as far as they were fitted.")
        raise typer.Exit(INTERRUPTED)


def sizes_and_time(documents: int, words: int, tokens: float, iterations: int, seconds: float) -> str:
    """One line about a fit."""
    sizes = ", ".join((in_words(documents, "document"), in_words(words, "word"), in_words(round(tokens), "token")))
    return f"{sizes}, {in_words(iterations, 'iteration')} in {seconds:.1f} seconds."


def fit_summary(model: Any, counts: Any, seconds: float) -> str:
    """Two lines: sizes and time, and perplexities."""
    documents, words = counts.shape
    report = model.perplexity_report(counts)
    return (
        f"{sizes_and_time(documents, words, report.tokens, model.n_iter_, seconds)}\n"
        f"Perplexity {report.perplexity:.1f}; without topics {report.unigram_perplexity:.1f}."
    )


_CHOICE_FILE = "choice.json"
"""keeps the choice for a fit that is killed later"""
FEW_DOCUMENTS = 20
"""with fewer, there are too few to hold any out"""


def chosen_number(
    counts: Any, work: Path, notes: Console, *, seed: int, resume: bool, quiet: bool
) -> tuple[int, dict[str, Any]]:
    """The number of topics, and what run.json says of how it was chosen."""
    kept = work / _CHOICE_FILE
    if resume and kept.is_file():
        choice = read_json(kept, CHOICE, required=("n_topics", "reason"))
    else:
        choice = _choose(counts, notes, seed=seed, quiet=quiet)
        write_atomically(kept, json.dumps(choice).encode())
    if not quiet:
        notes.print(f"{choice['reason']} (-k says otherwise.)")
    return int(choice["n_topics"]), choice


def check_number(number: int, n_documents: int) -> None:
    """Raises InputError for more topics than documents, which no documents can tell apart."""
    if number > n_documents:
        raise InputError(f"There are {n_documents:,} documents, too few for {number:,} topics: choose a smaller -k.")


def forget_choice(work: Path) -> None:
    """Removes the file, once run.json has what it says."""
    (work / _CHOICE_FILE).unlink(missing_ok=True)


def _choose(counts: Any, notes: Console, *, seed: int, quiet: bool) -> dict[str, Any]:
    n_documents = counts.shape[0]
    if n_documents < FEW_DOCUMENTS:
        number = max(1, min(n_documents // 2, counts.shape[1]))
        return {
            "n_topics": number,
            "reason": f"Number of topics: {number}. With fewer than {FEW_DOCUMENTS} documents none can be held out.",
        }
    with bar(notes, "Choosing the number of topics", quiet=quiet) as update:
        selection = choose_n_topics(counts, random_state=seed, progress=update)
    choice = selection.as_dict()
    if selection.structured:
        return {**choice, "n_topics": selection.chosen}
    return {
        **choice,
        "n_topics": selection.best,
        "reason": f"{selection.reason} The {selection.best} topics that follow may be chance.",
    }


def rewrite(
    run: Run,
    model: Any,
    counted: Counted,
    about: dict[str, Any],
    texts: list[str] | None,
    notes: Console,
    *,
    quiet: bool,
) -> None:
    """Replaces a run by one with another model or other documents."""
    about = {name: value for name, value in about.items() if name not in ("format_version", "stability", "shards")}
    sizes = {"documents": counted.counts.shape[0], "tokens": int(counted.counts.sum())}
    with whole_folder(run.path, overwrite=True) as folder:
        write_into(folder, model, counted, {**about, **sizes}, texts)
        if (run.path / PAGE_FILE).is_file():
            new = open_run(folder, trust_pattern=run.trust_pattern)
            write_explorer(new, folder / PAGE_FILE, about.get("page_text", "excerpt"), notes, quiet=quiet)


def fit_in_memory(
    documents: Documents,
    work: Path,
    keep: Checkpoint,
    notes: Console,
    *,
    folder: Path,
    page: bool,
    page_text: PageText,
    resume: bool,
    quiet: bool,
) -> Ended:
    """Makes the run in the folder `work`, which will be `folder`."""
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
