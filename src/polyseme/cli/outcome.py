"""How a fit of ``polyseme fit`` ended: what its run says of it, and what the screen shows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.cli.console import Console
from polyseme.cli.documents import Documents
from polyseme.cli.topic_table import TopicRow, more_topics, short_topic_table
from polyseme.cli.versions import versions


@dataclass(frozen=True)
class Ended:
    """What is left to print when the run is written."""

    rows: list[TopicRow]
    summary: str
    language: str | None
    iterations: int
    converged: bool
    interrupted: bool

    def show(self, screen: Console, notes: Console, folder: Path, *, detected: bool) -> None:
        """Print at most one screen. detected : whether the language was."""
        if self.language is not None and detected:
            notes.print(f"Language: {self.language} (detected; --language sets another).")
        if not self.converged and not self.interrupted:
            notes.print(stopped_early(self.iterations))
        print_topics(self.rows, screen, folder)
        screen.print(self.summary)


def print_topics(rows: list[TopicRow], screen: Console, folder: Path) -> None:
    """The heaviest topics, a line each, and how to see the others."""
    screen.print(short_topic_table(rows, screen.width))
    if more := more_topics(rows, str(folder)):
        screen.print(more)


def stopped_early(iterations: int) -> str:
    """For a fit that has not converged."""
    return f"Stopped after {iterations} iterations, before convergence: a larger --max-iter makes the topics sharper."


def about_fit(
    documents: Documents,
    facts: dict[str, Any],
    model: Any,
    choice: dict[str, Any],
    *,
    folder: Path,
    page_text: str,
    interrupted: bool,
    seconds: float,
) -> dict[str, Any]:
    """What run.json says. facts : of the documents; choice : of the number of topics, if it was not given."""
    return {
        **versions(),
        "command": ["polyseme", *sys.argv[1:]],
        **facts,
        "title": folder.resolve().name,
        "page_text": page_text,
        "model": {"class": "PLSA", **documents.fitting, "n_components": model.n_components},
        **({"selection": choice} if choice else {}),
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "interrupted": interrupted,
        "seconds": {**facts["seconds"], "fitting": round(seconds, 3)},
    }
