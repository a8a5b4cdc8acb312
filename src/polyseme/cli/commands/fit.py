"""``polyseme fit``: fits topics to texts and writes a run folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from polyseme.cli import options
from polyseme.cli.console import (
    Console,
    exit_if_interrupted,
    fit_summary,
    levels_note,
    print_junk,
    print_topics,
    screen_reporter,
    topic_rows,
)
from polyseme.runs.store import PAGE_FILE, check_target


def fit(
    inputs: options.Inputs,
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, metavar="N", help="Number of topics, by default chosen for readable topics."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUN", help="Folder to write, by default INPUT-run.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False,
    model: Annotated[
        Literal["plsa", "lda", "ctm", "hierarchical", "nmf"],
        typer.Option("--model", help="Model: PLSA, LDA, a correlated topic model (ctm), a tree of topics, or NMF."),
    ] = "plsa",
    seeds: Annotated[
        Path | None,
        typer.Option(
            "--seeds",
            metavar="FILE",
            help='Predefined topics: lines such as "Sport: match, team", or a JSON object from names to words. These '
            "topics come first.",
        ),
    ] = None,
    labels_from: Annotated[
        str | None,
        typer.Option(
            "--labels-from",
            metavar="COLUMN",
            help="Column with labels: every label gets a topic with its name, and transform predicts labels.",
        ),
    ] = None,
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
            help="Share of each text that a background of common words explains (plsa).",
        ),
    ] = 0.0,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, metavar="N", help="Levels of topics below the root (hierarchical).")
    ] = None,
    branching: Annotated[
        int | None,
        typer.Option("--branching", min=2, metavar="N", help="Children of each topic above the leaves (hierarchical)."),
    ] = None,
    levels: Annotated[
        Literal["auto", "none"] | None,
        typer.Option(
            "--levels",
            help="Make finer levels of topics below these, as long as they predict better (plsa), or none.  "
            "[default: auto for plsa]",
            show_default=False,
        ),
    ] = None,
    max_iter: options.MaxIter = None,
    duplicates: Annotated[
        Literal["keep", "drop"],
        typer.Option(
            "--duplicates", help="Keep documents that are near-duplicates of others in the fit, or leave them out."
        ),
    ] = "keep",
    keep_texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Store the texts in the run, for the explorer page.")
    ] = True,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the explorer page.")] = True,
    page_text: Annotated[
        options.PageText,
        typer.Option("--page-text", help="How much of each document's text the page contains."),
    ] = "excerpt",
    shards: Annotated[
        bool | None,
        typer.Option(
            "--shards/--in-memory",
            help="Count and fit from files, or in memory. By default files are used for texts of more than 2^30 "
            "characters.",
            show_default=False,
        ),
    ] = None,
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

      polyseme fit abstracts.jsonl --model lda -k 40

      polyseme fit news.csv --seeds topics.txt

      polyseme fit mails.csv --labels-from folder

      polyseme fit itwiki.xml.bz2 --sample 5000 --language italian

      zcat lines.gz | polyseme fit - -k 10 -o run
    """
    folder = output or default_folder(inputs)
    check_target(folder, overwrite=overwrite)
    if not resume:
        options.check_inputs(inputs)
    words = options.read_stop_words(stop_words)

    from polyseme.runs.fit import FitSettings, fit_run, with_labels
    from polyseme.runs.models import read_seeds
    from polyseme.text.readers.reader import read

    model_name, label = with_labels(model, label, labels_from)
    reading = {
        **options.reading(format, text, id, title, label, time, encoding, uncategorized),
        **options.sampling(sample, category, noise, seed),
    }
    settings = FitSettings(
        reading,
        options.counting(language, phrases, keep_numbers, words, min_df, max_df),
        {
            "model": model_name, "n_topics": k, "seeds": None if seeds is None else read_seeds(seeds),
            "background": background, "depth": depth, "branching": branching, "levels": levels,
            "max_iter": max_iter, "random_state": seed,
        },
        keep_texts,
        shards,
        duplicates,
    )  # fmt: skip
    run = fit_run(
        lambda: read(inputs, **reading), inputs, settings, output=folder, overwrite=overwrite, resume=resume,
        checkpoint=checkpoint, page=page_text if page else None, command=["polyseme", *sys.argv[1:]],
        report=screen_reporter(quiet=quiet),
    )  # fmt: skip
    screen = Console()
    if not quiet:
        print_topics(topic_rows(run.view), screen, folder)
        print_junk(run.view, screen, str(folder))
        screen.print(fit_summary(run))
        if note := levels_note(run.view, folder):
            screen.print(note, soft_wrap=True)
    screen.print(f"Run: {folder}", soft_wrap=True)
    if page and not quiet:
        screen.print(f"Page to explore: {folder / PAGE_FILE}", soft_wrap=True)
    exit_if_interrupted(run.info.interrupted)


def default_folder(inputs: list[str]) -> Path:
    """Return the folder named after the first input: news.csv.gz gives news-run, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-run")
