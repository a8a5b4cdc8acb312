"""``polyseme explore``: one HTML page of a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from polyseme.cli import options
from polyseme.cli.bars import bar
from polyseme.explore import write_page
from polyseme.runs import Run, open_run

PageText = Literal["excerpt", "full", "none"]
PAGE_FILE = "explorer.html"
"""where a run keeps its page"""


def explore(
    run: options.RunFolder,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="F", help="File to write.", show_default="in the run")
    ] = None,
    text: Annotated[
        PageText, typer.Option("--text", help="Of each document: how it begins, all of it, or nothing.")
    ] = "excerpt",
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the explorer of a run: one HTML page that needs no server and no network, to open and to hand on.

    The page holds the counts of words in every document, whatever --text says.

    Examples:

      polyseme explore letters-run --open

      polyseme explore letters-run --text full -o letters.html
    """
    opened = open_run(run)
    path = output or opened.path / PAGE_FILE
    size = write_explorer(opened, path, text, Console(stderr=True), quiet=quiet)
    if not quiet:
        Console().print(f"Written to {path} ({size / 1e6:.1f} MB).", highlight=False, markup=False)
    if show:
        webbrowser.open(path.resolve().as_uri())


def write_explorer(run: Run, path: Path, text: str, notes: Console, *, quiet: bool = False) -> int:
    """Writes the page; returns its size in bytes."""
    with bar(notes, "Writing the explorer page", quiet=quiet):
        write_page(run, path, text)
    return path.stat().st_size
