"""A run written anew in its own place, with what belongs to it."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from polyseme.runs import Counted, Run, write_run


def rewrite(
    run: Run, model: Any, counted: Counted, about: dict[str, Any], texts: list[str] | None, notes: Console
) -> None:
    """Replaces a run by one with another model or other documents."""
    about = {name: value for name, value in about.items() if name != "format_version"}
    sizes = {"documents": counted.counts.shape[0], "tokens": int(counted.counts.sum())}
    write_run(run.path, model, counted, {**about, **sizes}, texts=texts, overwrite=True)
