"""A run written anew in its own place, with what belongs to it."""

from __future__ import annotations

from typing import Any

from polyseme.cli.console import Console
from polyseme.cli.explore import PAGE_FILE, write_explorer
from polyseme.runs import Counted, Run, open_run, whole_folder
from polyseme.runs.write import write_into


def rewrite(
    run: Run,
    model: Any,
    counted: Counted,
    about: dict[str, Any],
    texts: list[str] | None,
    notes: Console,
    *,
    quiet: bool,
) -> None:
    """Replaces a run by one with another model or other documents."""
    about = {name: value for name, value in about.items() if name not in ("format_version", "stability", "shards")}
    sizes = {"documents": counted.counts.shape[0], "tokens": int(counted.counts.sum())}
    with whole_folder(run.path, overwrite=True) as folder:
        write_into(folder, model, counted, {**about, **sizes}, texts)
        if (run.path / PAGE_FILE).is_file():
            new = open_run(folder, trust_pattern=run.trust_pattern)
            write_explorer(new, folder / PAGE_FILE, about.get("page_text", "excerpt"), notes, quiet=quiet)
