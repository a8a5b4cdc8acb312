"""``polyseme fit``: from texts to a run folder."""

from __future__ import annotations

import sys
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
from polyseme.cli.topic_table import topic_rows, topic_table
from polyseme.cli.versions import versions
from polyseme.runs import open_run, whole_folder, write_fitted
from polyseme.runs.folder import CHECKPOINT_FILE, check_free


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
    documents = Documents(inputs, reading, counting, fitting, keep_texts)
    with whole_folder(folder, overwrite=overwrite, resume=resume) as work:
        counted, facts = documents.counted(work, notes, resume=resume, quiet=quiet)
        choice: dict[str, Any] = {}
        if k is None:
            number, choice = chosen_number(counted.counts, work, notes, seed=seed, resume=resume, quiet=quiet)
        else:
            number = k
        limit = {} if max_iter is None else {"max_iter": max_iter}
        keep = Checkpoint(work / CHECKPOINT_FILE, checkpoint)
        model = PLSA(number, background=background, random_state=seed, checkpoint=keep, **limit)
        interrupted, seconds = fit_with_bar(model, counted.counts, notes, quiet=quiet)
        about = {
            **versions(),
            "command": ["polyseme", *sys.argv[1:]],
            **facts,
            "title": folder.resolve().name,
            "page_text": page_text,
            "model": {"class": "PLSA", **fitting, "n_components": number},
            **({"selection": choice} if choice else {}),
            "iterations": model.n_iter_,
            "converged": model.converged_,
            "interrupted": interrupted,
            "seconds": {**facts["seconds"], "fitting": round(seconds, 3)},
        }
        write_fitted(work, model, counted, about)
        forget_choice(work)
        if page:
            write_explorer(open_run(work), work / PAGE_FILE, page_text, notes, quiet=quiet)
    if not quiet:
        screen.print(topic_table(topic_rows(model, counted.vocabulary, counted.names, counted.labels)))
        screen.print(fit_summary(model, counted.counts, seconds), highlight=False)
        guessed = counted.vectorizer.language_
        if guessed is not None and language == "auto":
            notes.print(f"Language: {guessed} (guessed; --language says otherwise).", highlight=False)
        if not model.converged_ and not interrupted:
            notes.print(f"Cut at {model.n_iter_} iterations; a larger --max-iter makes the topics sharper.")
    screen.print(f"Written to {folder}.", highlight=False, markup=False)
    if page and not quiet:
        screen.print(f"To explore the topics, open {folder / PAGE_FILE} in a browser.", highlight=False, markup=False)
    end_if(interrupted, notes)


def default_folder(inputs: list[str]) -> Path:
    """Named after the input: news.csv.gz gives news-run, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-run")
