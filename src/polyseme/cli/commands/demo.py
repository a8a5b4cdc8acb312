"""``polyseme demo``: fits topics to docstrings, which every installation has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.console import Console, exit_if_interrupted, fit_summary, print_topics, screen_reporter, topic_rows
from polyseme.runs.store import PAGE_FILE, check_target

if TYPE_CHECKING:
    from polyseme.progress import Reporter
    from polyseme.text.readers.inputs import Document

MAX_DF = 0.3
TITLE = "Docstrings of Python, numpy, scipy and scikit-learn"


def demo(
    k: Annotated[int, typer.Option("-k", min=1, help="Number of topics.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the random numbers.")] = 0,
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of iterations.", show_default="the estimator's")
    ] = None,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="RUN", help="Folder to write; an existing run is replaced.")
    ] = Path("polyseme-demo"),
) -> None:
    """Try polyseme on the docstrings of Python packages.

    Fits topics to the docstrings of Python, numpy, scipy and scikit-learn, which every installation has, and writes a
    run folder with the explorer page.
    """
    from polyseme.runs.fit import FitSettings, fit_run
    from polyseme.text.readers.reader import open_source

    check_target(folder, overwrite=True)
    screen, report = Console(), screen_reporter()
    settings = FitSettings(
        reading={},
        counting={"language": "english", "min_df": 5, "max_df": MAX_DF},
        fitting={
            "model": "plsa", "n_topics": k, "seeds": None, "background": 0.0, "depth": None, "branching": None,
            "levels": None, "max_iter": max_iter, "random_state": seed,
        },
        keep_texts=True,
        shards=None,
    )  # fmt: skip
    run = fit_run(
        lambda: open_source(_documents(report)), ["docstrings"], settings, output=folder, overwrite=True, page="full",
        title=TITLE, command=["polyseme", *sys.argv[1:]], report=report,
    )  # fmt: skip
    print_topics(topic_rows(run.view), screen, folder)
    screen.print(fit_summary(run))
    exit_if_interrupted(run.info.interrupted)
    screen.print("\nTry next", style="bold")
    for command in next_steps(folder):
        screen.print(command)
    screen.print(f"\nPage to explore: {folder / PAGE_FILE}", soft_wrap=True)


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


def next_steps(folder: Path) -> tuple[str, ...]:
    """Return commands to try after the demo."""
    return (
        f"polyseme topics {folder}",
        f"polyseme search {folder} solve a linear system",
        "polyseme fit --help",
    )
