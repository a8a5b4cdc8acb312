"""``polyseme fit``: from texts to a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli import options
from polyseme.cli.console import Console
from polyseme.cli.explore import PAGE_FILE, write_explorer
from polyseme.runs.folder import CHECKPOINT_FILE, check_free

if TYPE_CHECKING:
    from polyseme.checkpoints import Checkpoint
    from polyseme.cli.documents import Documents
    from polyseme.cli.outcome import Ended


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

    from polyseme.checkpoints import Checkpoint
    from polyseme.cli.documents import Documents
    from polyseme.cli.fitting import end_if
    from polyseme.cli.shards import fit_in_shards
    from polyseme.runs import whole_folder

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
    from polyseme.cli.choosing import check_number, chosen_number, forget_choice
    from polyseme.cli.fitting import fit_summary, fit_with_bar
    from polyseme.cli.outcome import Ended, about_fit
    from polyseme.cli.topic_table import topic_rows
    from polyseme.runs import open_run, write_fitted
    from polyseme.runs.typical import Labels

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
