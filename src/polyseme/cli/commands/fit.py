"""``polyseme fit``: fits topics to texts and writes a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import options
from polyseme.cli.commands.explore import PAGE_FILE
from polyseme.cli.console import Console
from polyseme.runs.folder import CHECKPOINT_FOLDER, check_target


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
        typer.Option(
            "--background",
            min=0.0,
            max=0.99,
            metavar="SHARE",
            help="Share of each text that a background of common words explains.",
        ),
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
    check_target(folder, overwrite=overwrite)
    if not resume:
        options.check_inputs(inputs)

    from polyseme.cli.fitting import exit_if_interrupted, fit_in_memory, fit_in_shards
    from polyseme.cli.reading import FitSettings
    from polyseme.runs import atomic_folder
    from polyseme.solvers import Checkpoint

    screen, notes = Console(), Console(stderr=True)
    reading = {
        "format": format, "text": text, "id": id, "title": title, "label": label, "time": time, "encoding": encoding,
        "sample": sample, "categories": category, "noise": noise, "uncategorized": uncategorized, "seed": seed,
    }  # fmt: skip
    counting = options.counting_settings(language, phrases, keep_numbers, stop_words, min_df, max_df)
    fitting = {"n_components": k, "background": background, "seed": seed, "max_iter": max_iter}
    settings = FitSettings(inputs, reading, counting, fitting, keep_texts, shards)
    with atomic_folder(folder, overwrite=overwrite, resume=resume) as work:
        store = Checkpoint(work / CHECKPOINT_FOLDER, checkpoint)
        run_fit = fit_in_shards if shards else fit_in_memory
        result = run_fit(
            settings, work, store, notes, folder=folder, page=page, page_text=page_text, resume=resume, quiet=quiet
        )
    if not quiet:
        result.show(screen, notes, folder, detected=language == "auto")
    screen.print(f"Run: {folder}", soft_wrap=True)
    if page and not quiet:
        screen.print(f"Page to explore: {folder / PAGE_FILE}", soft_wrap=True)
    exit_if_interrupted(result.interrupted, notes)


def default_folder(inputs: list[str]) -> Path:
    """Return the folder named after the first input: news.csv.gz gives news-run, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-run")
