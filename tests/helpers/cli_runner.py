"""Calls of the command line in a folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from polyseme.cli.app import app

FRUIT = "apples and pears are fruit, plums are fruit too, and cherries"
METAL = "iron is a metal, copper is a metal, and zinc is mined"
TEXTS = [FRUIT if number % 3 else METAL for number in range(30)]


def run(*arguments: str, cwd: Path, stdin: str | None = None) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr("sys.argv", ["polyseme", *arguments])
        return here(*arguments, stdin=stdin)


def here(*arguments: str, stdin: str | None = None) -> Any:
    """Run a command in the current folder."""
    return CliRunner().invoke(app, arguments, prog_name="polyseme", input=stdin, env={"COLUMNS": "120", "TERM": "dumb"})


def write_folder(place: Path) -> Path:
    """Write thirty small text files to two subfolders of docs/, which are their labels."""
    for number, text in enumerate(TEXTS):
        folder = place / "docs" / ("orchard" if text == FRUIT else "mine")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:02d}.txt").write_text(f"{text} {'extra' if number % 2 else 'more'}", encoding="utf-8")
    return place


def write_texts(folder: Path, documents: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    words = np.array([f"w{chr(97 + i // 26)}{chr(97 + i % 26)}x" for i in range(600)])
    lines = []
    for _ in range(documents):
        subject = rng.integers(6)
        lines.append(
            " ".join(words[np.r_[rng.integers(100 * subject, 100 * subject + 100, 30), rng.integers(0, 600, 30)]])
        )
    (folder / "lines.txt").write_text("\n".join(lines), encoding="utf-8")


def tree_texts(documents: int = 240, seed: int = 0) -> list[str]:
    """Return texts about two subjects with two aspects each, with words of the subject and words of the aspect."""
    rng = np.random.default_rng(seed)
    subjects = {"garden": ("fruit", "tree"), "harbor": ("ship", "fish")}
    texts = []
    for number in range(documents):
        subject = "garden" if number % 5 < 3 else "harbor"
        side = subjects[subject][rng.integers(2)]
        of_subject, of_side = ([f"{start}{letter}" for letter in "bcdfghjklmnpqrstvwxz"] for start in (subject, side))
        texts.append(" ".join(np.r_[rng.choice(of_subject, 20), rng.choice(of_side, 15)]))
    return texts
