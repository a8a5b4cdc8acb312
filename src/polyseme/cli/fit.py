"""``polyseme fit``: from texts to a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from polyseme import PLSA
from polyseme.checkpoints import Checkpoint
from polyseme.cli import options
from polyseme.cli.choosing import chosen_number, forget_choice
from polyseme.cli.documents import Documents
from polyseme.cli.explore import PAGE_FILE, PageText, write_explorer
from polyseme.cli.fitting import end_if, fit_summary, fit_with_bar
from polyseme.cli.outcome import Ended, about_fit
from polyseme.cli.shards import fit_in_shards
from polyseme.cli.topic_table import topic_rows
from polyseme.runs import open_run, whole_folder, write_fitted
from polyseme.runs.folder import CHECKPOINT_FILE, check_free
from polyseme.runs.typical import Labels


def fit(
    inputs: options.Inputs,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Number of topics.", show_default="chosen by held-out documents")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUN", help="Folder to write.", show_default="by input")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is there.")] = False,
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
    uncategorised: options.Uncategorised = False,
    language: options.Language = "auto",
    phrases: options.Phrases = False,
    min_df: options.MinDf = 2,
    max_df: options.MaxDf = 0.5,
    background: Annotated[
        float, typer.Option("--background", min=0.0, max=0.99, help="Share of each text that is common language.")
    ] = 0.0,
    max_iter: Annotated[
        int | None, typer.Option("--max-iter", min=1, help="Most iterations.", show_default="the estimator's")
    ] = None,
    keep_texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Keep the texts in the run, for the explorer page.")
    ] = True,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the explorer page too.")] = True,
    page_text: Annotated[
        PageText,
        typer.Option("--page-text", help="Of each document in the page: its beginning, all, or nothing."),
    ] = "excerpt",
    shards: Annotated[
        bool,
        typer.Option("--shards", help="Keep counts and weights in files, not in memory: for millions of documents."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with this very command where it was killed, to the same result.")
    ] = False,
    checkpoint: Annotated[
        float, typer.Option("--checkpoint", min=0.0, metavar="SECONDS", help="Time between two checkpoints.")
    ] = 10.0,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Fit topics to texts, and write them to a run folder.

    Examples:

      polyseme fit letters/

      polyseme fit letters/ -k 20 -o letters-run

      polyseme fit news.csv --text body --title headline --label section

      polyseme fit itwiki.xml.bz2 --sample 5000 --language italian

      zcat lines.gz | polyseme fit - -k 10 -o run

      polyseme fit enwiki.xml.bz2 --shards -k 200
    """
    screen, notes = Console(), Console(stderr=True)
    folder = output or default_folder(inputs)
    check_free(folder, overwrite=overwrite)
    reading = {
        "format": format, "text": text, "id": id, "title": title, "label": label, "time": time, "encoding": encoding,
        "sample": sample, "categories": category, "noise": noise, "uncategorised": uncategorised, "seed": seed,
    }  # fmt: skip
    counting = {"language": language, "phrases": phrases, "min_df": min_df, "max_df": max_df}
    fitting = {"n_components": k, "background": background, "seed": seed, "max_iter": max_iter}
    documents = Documents(inputs, reading, counting, fitting, keep_texts, shards)
    with whole_folder(folder, overwrite=overwrite, resume=resume) as work:
        make = fit_in_shards if shards else _fit_in_memory
        keep = Checkpoint(None if shards else work / CHECKPOINT_FILE, checkpoint)
        ended = make(
            documents, work, keep, notes, folder=folder, page=page, page_text=page_text, resume=resume, quiet=quiet
        )
    if not quiet:
        ended.tell(screen, notes, guessed=language == "auto")
    screen.print(f"Written to {folder}.", highlight=False, markup=False)
    if page and not quiet:
        screen.print(f"To explore the topics, open {folder / PAGE_FILE} in a browser.", highlight=False, markup=False)
    end_if(ended.interrupted, notes)


def _fit_in_memory(
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
    rows = topic_rows(model, counted.vocabulary, counted.names, Labels.of(counted.labels))
    summary = "" if quiet else fit_summary(model, counted.counts, seconds)
    return Ended(rows, summary, counted.vectorizer.language_, model.n_iter_, model.converged_, interrupted)


def default_folder(inputs: list[str]) -> Path:
    """Named after the input: news.csv.gz gives news-run, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-run")
