"""How a fit of ``polyseme fit`` ended: what its run says of it, and what the screen shows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from polyseme.cli.documents import Documents
from polyseme.cli.topic_table import TopicRow, topic_table
from polyseme.cli.versions import versions


@dataclass(frozen=True)
class Ended:
    """What is left to tell when the run is written."""

    rows: list[TopicRow]
    summary: str
    language: str | None
    iterations: int
    converged: bool
    interrupted: bool

    def tell(self, screen: Console, notes: Console, *, guessed: bool) -> None:
        """guessed : whether the language was."""
        screen.print(topic_table(self.rows))
        screen.print(self.summary, highlight=False)
        if self.language is not None and guessed:
            notes.print(f"Language: {self.language} (guessed; --language says otherwise).", highlight=False)
        if not self.converged and not self.interrupted:
            notes.print(f"Cut at {self.iterations} iterations; a larger --max-iter makes the topics sharper.")


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
