"""``polyseme explore``: writes the explorer page of a run."""

from __future__ import annotations

import warnings
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli import options
from polyseme.cli.console import Console, progress_bar

if TYPE_CHECKING:
    from polyseme.runs import Run


PAGE_FILE = "explorer.html"
"""Name of the page in the run folder."""


def explore(
    run: options.RunFolder,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write, by default in the run.")
    ] = None,
    text: Annotated[
        options.PageText, typer.Option("--text", help="How much of each document's text the page holds.")
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
    """Write the explorer page of a run.

    It is one HTML file that needs no server and no network.

    The page holds the word counts of every document, even with --text none. --stability is stored in the run.

    Examples:

      polyseme explore letters-run --open

      polyseme explore letters-run --text full --stability 5 -o letters.html
    """
    from polyseme.runs import open_run

    opened = open_run(run, trust_pattern=trust_pattern)
    if samples:
        opened = _with_stability(opened, samples, Console(stderr=True), quiet=quiet)
    path = output or opened.path / PAGE_FILE
    size = write_explorer(opened, path, text, Console(stderr=True), quiet=quiet)
    if not quiet:
        Console().print(f"Written to {path} ({size / 1e6:.1f} MB).")
    if show:
        webbrowser.open(path.resolve().as_uri())


def write_explorer(run: Run, path: Path, text: str, notes: Console, *, quiet: bool = False) -> int:
    """Write the page; return its size in bytes."""
    from polyseme.explore import write_page

    with progress_bar(notes, "Writing the explorer page", quiet=quiet):
        write_page(run.in_memory(), path, text)
    return path.stat().st_size


def _with_stability(run: Run, n_samples: int, notes: Console, *, quiet: bool) -> Run:
    """Measure how stable each topic is in bootstrap samples of the documents; store the result in the run."""
    from sklearn.exceptions import ConvergenceWarning

    from polyseme.metrics import bootstrap_stability
    from polyseme.runs.write import update_about

    with progress_bar(notes, "Fitting samples", unit="fits", quiet=quiet) as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = bootstrap_stability(
            run.model,
            run.counts,
            n_samples=n_samples,
            progress=lambda done, total: update(done, total, f"{done} of {total}"),
        )
    return update_about(run, {"stability": [round(float(value), 4) for value in found.topics]})
