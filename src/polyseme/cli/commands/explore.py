"""``polyseme explore``: writes the explorer page of a run."""

from __future__ import annotations

import io
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.cli.console import Console, print_written, screen_reporter
from polyseme.cli.options import JSON, QUIET, RunFolder, open_level, takes
from polyseme.errors import InputError
from polyseme.io.files import write_output
from polyseme.options import LEVEL, OUTPUT, PAGE_TEXT, RUN_OUTPUT, Option
from polyseme.runs.store import PAGE_FILE

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView

PICTURES = ("png", "svg", "pdf")


@takes(
    LEVEL,
    replace(RUN_OUTPUT, help="File to write, by default in the run.", metavar="FILE"),
    replace(PAGE_TEXT, name="text"),
    Option(
        "stability", "Fit N bootstrap samples to measure how stable each topic is.", OUTPUT, int, 0, metavar="N",
        least=0, most=10_000,
    ),
    Option(
        "intervals", "Show intervals of shares by label and over time, from N fits to resampled documents.", OUTPUT,
        int, 0, metavar="N", least=0, most=10_000,
    ),
    Option("title", "Title of the page, which the run keeps.  [default: the name of the run]", OUTPUT),
    Option(
        "picture", "Draw the map of the documents instead of the page: .png, .svg or .pdf.", OUTPUT, metavar="FILE"
    ),
    Option("open", "Open the page in the browser.", OUTPUT, bool, False),
    JSON,
    QUIET,
)  # fmt: skip
def explore(
    run: RunFolder,
    output: Path | None,
    level: int | None,
    text: str,
    stability: int,
    intervals: int,
    title: str | None,
    picture: str | None,
    open: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a web page to explore a run.

    It is one HTML file that needs no server and no network.

    The page contains the word counts of every document, even with --text none. The run stores the result of
    --stability. The page of a finer level, such as --level 40, is explorer_40.html. Intervals are those of polyseme
    groups and polyseme time; a page that is written later has none unless they are asked for again.

    Examples:

      polyseme explore letters-run --open

      polyseme explore letters-run --text full --stability 5 -o letters.html

      polyseme explore letters-run --title "Letters of settlers" --open

      polyseme explore letters-run --intervals 100

      polyseme explore letters-run --picture map.png
    """
    from polyseme.runs.changes import refresh_run

    if picture is not None:
        if output is not None or stability or intervals or title or open:
            raise InputError("--picture draws the map instead of the page: give it without other options of the page.")
        _draw_map(open_level(run, level), Path(picture))
        if as_json:
            print_written("explore", Path(picture))
        elif not quiet:
            Console().print(f"Written to {picture}.")
        return
    report = screen_reporter(quiet=quiet or as_json)
    opened = open_level(run, level)
    if opened.finer is not None:
        if stability:
            raise InputError("--stability is measured for the reading level: leave --level out.")
        output = output or Path(run) / f"explorer_{level}.html"
    path = output or Path(run) / PAGE_FILE
    if intervals:
        output = path
    if title is not None and not title.strip():
        raise InputError("--title is empty: write a title, or leave it out.")
    if output is None or stability or title is not None:
        page, n_topics = text if output is None else None, opened.fitted.n_topics
        changed = refresh_run(Path(run), report, page=page, stability=stability, title=title)
        opened = changed.view.level(n_topics)
    if output is not None:
        with report.stage("Writing the explorer page"):
            opened.explore(output, text=text, intervals=intervals)
    if as_json:
        print_written("explore", path)
    elif not quiet:
        Console().print(f"Written to {path} ({path.stat().st_size / 1e6:.1f} MB).")
    if open:
        webbrowser.open(path.resolve().as_uri())


def _draw_map(view: TopicView, path: Path) -> None:
    """Write the map of the documents of a run as a picture."""
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in PICTURES:
        raise InputError(f"--picture {path}: end the name with {', '.join(f'.{kind}' for kind in PICTURES)}.")
    import matplotlib

    matplotlib.use("agg")
    from polyseme.plots import plot_document_map

    content = io.BytesIO()
    plot_document_map(view.in_memory()).figure.savefig(content, format=suffix, dpi=200)
    write_output(path, content.getvalue())
