"""``polyseme fit``: fits topics to texts and writes a run folder."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.cli.console import (
    Console,
    exit_if_interrupted,
    fit_summary,
    fitted_as_dict,
    levels_note,
    name_by_model,
    print_json,
    print_junk,
    print_topics,
    screen_reporter,
    topic_rows,
)
from polyseme.cli.options import JSON, QUIET, Inputs, check_inputs, takes
from polyseme.errors import InputError
from polyseme.options import FIT, NAMER
from polyseme.progress import print_line
from polyseme.runs.store import PAGE_FILE, check_target

if TYPE_CHECKING:
    from polyseme.runs import Run


@takes(*FIT, NAMER, JSON, QUIET)
def fit(
    inputs: Inputs,
    output: Path | None,
    overwrite: bool,
    resume: bool,
    checkpoint: float,
    page: bool,
    page_text: str,
    as_json: bool,
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
    folder, silent = output or default_folder(inputs), quiet or as_json
    split = given["languages"] == "split"
    if not split:
        check_target(folder, overwrite=overwrite)
    if not resume:
        check_inputs(inputs)

    from polyseme.runs.language_model import language_model_namer
    from polyseme.runs.pipeline import fit_run
    from polyseme.runs.settings import FitSettings
    from polyseme.text.readers.reader import read

    settings = FitSettings.of(given)
    targets: list[tuple[Path, Any]] = [(folder, settings)]
    if split:
        from polyseme.runs.languages import split_languages
        from polyseme.text.languages import get_language

        if "-" in inputs:
            raise InputError("--languages split reads the input several times: give files instead of -.")
        names = split_languages(read(inputs, **settings.reading))
        if not names:
            raise InputError("--languages split found no language: leave it out.")
        targets = [
            (
                folder.with_name(f"{folder.name}-{get_language(name).code}"),
                FitSettings.of({**given, "languages": "majority" if name == names[0] else name}),
            )
            for name in names
        ]
        for target, _ in targets:
            check_target(target, overwrite=overwrite)
    model, runs, report = None if namer is None else language_model_namer(namer), [], screen_reporter(quiet=silent)
    for target, chosen in targets:
        run = fit_run(
            partial(read, inputs, **chosen.reading), inputs, chosen, output=target, overwrite=overwrite, resume=resume,
            checkpoint=checkpoint, page=page_text if page else None, command=["polyseme", *sys.argv[1:]], report=report,
        )  # fmt: skip
        if model is not None:
            run = name_by_model(target, model, None, quiet=silent)
        runs.append(run)
        if not as_json:
            _print_run(run, target, page=page, quiet=quiet)
        if run.info.interrupted:
            break
    if as_json:
        print_json("fit", {"runs": [fitted_as_dict(run) for run in runs]})
    exit_if_interrupted(runs[-1].info.interrupted)


def _print_run(run: Run, folder: Path, *, page: bool, quiet: bool) -> None:
    """Print what was fitted, and where it is."""
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


def default_folder(inputs: list[str]) -> Path:
    """Return the folder named after the first input: news.csv.gz gives news-run, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-run")
