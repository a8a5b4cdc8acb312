"""``polyseme merge``: joins runs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.commands.mcp import existing_runs
from polyseme.cli.console import Console, fitted_as_dict, print_json, print_topics, screen_reporter, topic_rows
from polyseme.cli.options import JSON, QUIET, takes
from polyseme.options import OPTIONS, RUN_OUTPUT
from polyseme.progress import pluralize, print_line
from polyseme.runs.store import check_target


@takes(replace(RUN_OUTPUT, help="Folder to write.", default=...), OPTIONS["overwrite"], JSON, QUIET)
def merge(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Folders written by polyseme fit.", callback=existing_runs)
    ],
    output: Path,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Merge runs into a new one.

    Topics of different runs that share at least half of their words, by probability, are joined by their weights; the
    others are kept. Topics of the first run keep their numbers and names. The texts are counted with the words of all
    runs. A document that several runs have is kept once. The runs need the model plsa, texts, the same language and
    the same word rules.

    Examples:

      polyseme merge letters-run diaries-run -o papers-run
    """
    check_target(output, overwrite=overwrite)
    from polyseme.runs import open_run
    from polyseme.runs.merging import merge_runs

    merged = merge_runs(
        [open_run(run) for run in runs], output, overwrite=overwrite, command=["polyseme", *sys.argv[1:]],
        report=screen_reporter(quiet=quiet or as_json),
    )  # fmt: skip
    if as_json:
        print_json("merge", {"joined": merged.n_shared, "repeated": merged.n_repeated, **fitted_as_dict(merged.run)})
        return
    screen = Console()
    if not quiet:
        print_topics(topic_rows(merged.run.view), screen, output)
        screen.print(
            f"{pluralize(merged.n_shared, 'topic')} of several runs joined; "
            f"{pluralize(merged.n_repeated, 'document')} of several runs kept once."
        )
    print_line(screen, f"Run: {output}")
