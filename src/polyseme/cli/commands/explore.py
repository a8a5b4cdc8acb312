"""``polyseme explore``: writes the explorer page of a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import options
from polyseme.cli.console import Console, screen_reporter
from polyseme.errors import InputError
from polyseme.runs.store import PAGE_FILE


def explore(
    run: options.RunFolder,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write, by default in the run.")
    ] = None,
    level: options.Level = None,
    text: Annotated[
        options.PageText, typer.Option("--text", help="How much of each document's text the page contains.")
    ] = "excerpt",
    samples: Annotated[
        int,
        typer.Option(
            "--stability",
            min=0,
            max=10_000,
            metavar="N",
            help="Fit N bootstrap samples to measure how stable each topic is.",
        ),
    ] = 0,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Write a web page to explore a run.

    It is one HTML file that needs no server and no network.

    The page contains the word counts of every document, even with --text none. The run stores the result of
    --stability. The page of a finer level, such as --level 40, is explorer_40.html.

    Examples:

      polyseme explore letters-run --open

      polyseme explore letters-run --text full --stability 5 -o letters.html
    """
    from polyseme.runs.write import refresh_run

    report = screen_reporter(quiet=quiet)
    opened = options.open_level(run, level, trust_pattern=trust_pattern)
    if opened.finer is not None:
        if samples:
            raise InputError("--stability is measured for the reading level: leave --level out.")
        output = output or Path(run) / f"explorer_{level}.html"
    path = output or Path(run) / PAGE_FILE
    if output is None or samples:
        page = text if output is None else None
        opened = refresh_run(Path(run), report, page=page, stability=samples, trust_pattern=trust_pattern).view
    if output is not None:
        with report.stage("Writing the explorer page"):
            opened.explore(output, text=text)
    if not quiet:
        Console().print(f"Written to {path} ({path.stat().st_size / 1e6:.1f} MB).")
    if show:
        webbrowser.open(path.resolve().as_uri())
