"""``polyseme demo``: fits topics to docstrings, which every installation has."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.cli.console import (
    Console,
    exit_if_interrupted,
    fit_summary,
    fitted_as_dict,
    print_json,
    print_topics,
    screen_reporter,
    topic_rows,
)
from polyseme.cli.options import JSON, takes
from polyseme.options import MAX_ITER, N_TOPICS, RANDOM_STATE, RUN_OUTPUT
from polyseme.progress import print_line
from polyseme.runs.store import PAGE_FILE, check_target

if TYPE_CHECKING:
    from polyseme.progress import Reporter
    from polyseme.text.readers.inputs import Document

MAX_DF = 0.3
TITLE = "Docstrings of Python, numpy, scipy and scikit-learn"
DEMO_FOLDER = replace(RUN_OUTPUT, default=Path("polyseme-demo"), help="Folder to write; an existing run is replaced.")


@takes(replace(N_TOPICS, default=20, help="Number of topics."), RANDOM_STATE, MAX_ITER, DEMO_FOLDER, JSON)
def demo(output: Path, as_json: bool, **given: Any) -> None:
    """Try polyseme on the docstrings of Python packages.

    Fits topics to the docstrings of Python, numpy, scipy and scikit-learn, which every installation has, and writes a
    run folder with the explorer page.
    """
    from polyseme.runs.pipeline import fit_run
    from polyseme.runs.settings import FitSettings
    from polyseme.text.readers.sources import open_source

    check_target(output, overwrite=True)
    screen, report = Console(), screen_reporter(quiet=as_json)
    settings = FitSettings.of({**given, "language": "english", "min_df": 5, "max_df": MAX_DF})
    run = fit_run(
        lambda: open_source(_documents(report)), ["docstrings"], settings, output=output, overwrite=True, page="full",
        title=TITLE, command=["polyseme", *sys.argv[1:]], report=report,
    )  # fmt: skip
    if as_json:
        print_json("demo", {"runs": [fitted_as_dict(run)]})
        exit_if_interrupted(run.info.interrupted)
        return
    print_topics(topic_rows(run.view), screen, output)
    screen.print(fit_summary(run))
    exit_if_interrupted(run.info.interrupted)
    screen.print("\nTry next", style="bold")
    for command in next_steps(output):
        screen.print(command)
    print_line(screen, f"\nPage to explore: {output / PAGE_FILE}")


def _documents(report: Reporter) -> list[Document]:
    """Return the docstrings; the label and the source of a docstring are its package."""
    from polyseme.datasets import docstrings
    from polyseme.text.readers.inputs import Document

    with report.stage("Reading docstrings") as update:
        corpus = docstrings(progress=lambda done, total: update(done, total, f"{done} of {total} files"))
    if corpus.skipped:
        report.note(f"Files that could not be parsed and were left out: {corpus.skipped}.")
    return [
        Document(name, text, labels=(label,), source=label)
        for name, text, label in zip(corpus.titles, corpus.texts, corpus.labels, strict=True)
    ]


def next_steps(output: Path) -> tuple[str, ...]:
    """Return commands to try after the demo."""
    return (
        f"polyseme topics {output}",
        f"polyseme search {output} solve a linear system",
        "polyseme fit --help",
    )
