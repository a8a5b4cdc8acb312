"""The number of topics of a fit that was asked for none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyseme.cli.bars import bar
from polyseme.cli.console import Console
from polyseme.errors import InputError
from polyseme.files import write_atomically
from polyseme.runs.counted import read_json
from polyseme.runs.fields import CHOICE
from polyseme.selection import choose_n_topics

_CHOICE_FILE = "choice.json"
"""keeps the choice for a fit that is killed later"""
FEW_DOCUMENTS = 20
"""with fewer, there are too few to hold any out"""


def chosen_number(
    counts: Any, work: Path, notes: Console, *, seed: int, resume: bool, quiet: bool
) -> tuple[int, dict[str, Any]]:
    """The number of topics, and what run.json says of how it was chosen."""
    kept = work / _CHOICE_FILE
    if resume and kept.is_file():
        choice = read_json(kept, CHOICE, required=("n_topics", "reason"))
    else:
        choice = _choose(counts, notes, seed=seed, quiet=quiet)
        write_atomically(kept, json.dumps(choice).encode())
    if not quiet:
        notes.print(f"{choice['reason']} (-k says otherwise.)")
    return int(choice["n_topics"]), choice


def check_number(number: int, n_documents: int) -> None:
    """Raises InputError for more topics than documents, which no documents can tell apart."""
    if number > n_documents:
        raise InputError(f"There are {n_documents:,} documents, too few for {number:,} topics: choose a smaller -k.")


def forget_choice(work: Path) -> None:
    """Removes the file, once run.json has what it says."""
    (work / _CHOICE_FILE).unlink(missing_ok=True)


def _choose(counts: Any, notes: Console, *, seed: int, quiet: bool) -> dict[str, Any]:
    n_documents = counts.shape[0]
    if n_documents < FEW_DOCUMENTS:
        number = max(1, min(n_documents // 2, counts.shape[1]))
        return {
            "n_topics": number,
            "reason": f"Number of topics: {number}. With fewer than {FEW_DOCUMENTS} documents none can be held out.",
        }
    with bar(notes, "Choosing the number of topics", quiet=quiet) as update:
        selection = choose_n_topics(counts, random_state=seed, progress=update)
    choice = selection.as_dict()
    if selection.structured:
        return {**choice, "n_topics": selection.chosen}
    return {
        **choice,
        "n_topics": selection.best,
        "reason": f"{selection.reason} The {selection.best} topics that follow may be chance.",
    }
