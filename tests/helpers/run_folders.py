"""Folders that are written as runs: with one file, which has the given content."""

from pathlib import Path

from polyseme.runs.store import RUN_FILE, atomic_folder


def write(path: Path, content: str, **options: bool) -> None:
    with atomic_folder(path, **options) as work:
        (work / RUN_FILE).write_text(content, encoding="utf-8")


def content(path: Path) -> str:
    return (path / RUN_FILE).read_text(encoding="utf-8")


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}
