"""``polyseme fit``: fits topics to texts and writes a run folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from polyseme.cli.console import (
    Console,
    exit_if_interrupted,
    fit_summary,
    levels_note,
    name_by_model,
    print_junk,
    print_topics,
    screen_reporter,
    topic_rows,
)
from polyseme.cli.options import QUIET, Inputs, check_inputs, takes
from polyseme.errors import InputError
from polyseme.options import FIT, NAMER
from polyseme.progress import print_line
from polyseme.runs.store import PAGE_FILE, check_target


@takes(*FIT, NAMER, QUIET)
def fit(
    inputs: Inputs,
    output: Path | None,
    overwrite: bool,
    resume: bool,
    checkpoint: float,
    page: bool,
    page_text: str,
    quiet: bool,
    namer: str | None,
    **given: Any,
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

      polyseme fit mails/ --languages split

      zcat lines.gz | polyseme fit - -k 10 -o run
    """
    folder = output or default_folder(inputs)
    split = given["languages"] == "split"
    if not split:
        check_target(folder, overwrite=overwrite)
    if not resume:
        check_inputs(inputs)

    from polyseme.runs.fit import fit_run
    from polyseme.runs.language_model import language_model_namer
    from polyseme.runs.settings import FitSettings
    from polyseme.text.readers.reader import read

    settings = FitSettings.of(given)
    if split:
        from polyseme.runs.languages import split_languages
        from polyseme.text.languages import get_language

        if "-" in inputs:
            raise InputError("--languages split reads the input several times: give files instead of -.")
        names = split_languages(read(inputs, **settings.reading))
        if not names:
            raise InputError("--languages split found no language: leave it out.")
        for name in names:
            part = folder.with_name(f"{folder.name}-{get_language(name).code}")
            given["languages"] = "majority" if name == names[0] else name
            fit(inputs, part, overwrite, resume, checkpoint, page, page_text, quiet, namer, **given)
        return
    model = None if namer is None else language_model_namer(namer)
    run = fit_run(
        lambda: read(inputs, **settings.reading), inputs, settings, output=folder, overwrite=overwrite, resume=resume,
        checkpoint=checkpoint, page=page_text if page else None, command=["polyseme", *sys.argv[1:]],
        report=screen_reporter(quiet=quiet),
    )  # fmt: skip
    if model is not None:
        run = name_by_model(folder, model, None, quiet=quiet)
    screen = Console()
    if not quiet:
        print_topics(topic_rows(run.view), screen, folder)
        print_junk(run.view, screen, str(folder))
        screen.print(fit_summary(run))
        if note := levels_note(run.view, folder):
            print_line(screen, note)
    print_line(screen, f"Run: {folder}")
    if page and not quiet:
        print_line(screen, f"Page to explore: {folder / PAGE_FILE}")
    exit_if_interrupted(run.info.interrupted)


def default_folder(inputs: list[str]) -> Path:
    """Return the folder named after the first input: news.csv.gz gives news-run, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-run")
