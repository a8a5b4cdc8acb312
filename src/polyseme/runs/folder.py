"""Folders of runs: their files and fields, which folders are runs, and how a run is written as a whole or not at all.

Each JSON file of a run has a table of its fields with the check of each value. Fields that are not listed are read by
no code.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from polyseme.errors import InputError
from polyseme.io.checks import (
    COUNT,
    FLAG,
    NULL,
    OBJECT,
    TEXT,
    Check,
    either,
    list_of,
    mapping_to,
    number,
    object_with,
    one_of,
    whole_number,
)
from polyseme.io.files import flush_to_disk, locked, recover_folder, replace_folder, umask

RUN_FILE = "run.json"
"""File that makes a folder a run."""
UNFINISHED_FILE = "counted.json"
"""File of a work folder whose documents are counted and whose fit is not finished."""
CHECKPOINT_FOLDER = "fit"
"""Checkpoint of an unfinished fit."""
SHARDS_FOLDER = "shards"
"""Folder with the counts of a run that is not held in memory."""
FITTED_FILE = "fitted.json"
"""File of a work folder whose fit from shards is finished, but not all files are written."""

_NUMBER = number(-1e300, 1e300)
_PLAIN = either(NULL, FLAG, TEXT, _NUMBER)
_TOPICS = whole_number(1, 2**31 - 1)
_ROW = mapping_to(_PLAIN)
RUN_FIELDS = {
    "format_version": whole_number(0, 2**31 - 1),
    "written": TEXT,
    "versions": mapping_to(TEXT),
    "command": list_of(TEXT),
    "inputs": list_of(TEXT),
    "reading": OBJECT,
    "counting": object_with({"language": either(NULL, TEXT)}),
    "documents": COUNT,
    "words": COUNT,
    "tokens": COUNT,
    "shards": COUNT,
    "left_out": mapping_to(COUNT),
    "problems": mapping_to(COUNT),
    "seconds": mapping_to(_NUMBER),
    "title": either(NULL, TEXT),
    "page_text": one_of("excerpt", "full", "none"),
    "model": object_with({"class": TEXT, "n_components": either(NULL, _TOPICS), "seed": either(NULL, COUNT)}),
    "selection": object_with({"rows": list_of(_ROW), "reason": TEXT, "n_topics": _TOPICS}),
    "solver": TEXT,
    "iterations": COUNT,
    "converged": FLAG,
    "interrupted": FLAG,
    "topic_names": Check(
        lambda value: mapping_to(TEXT).holds(value) and all(map(_is_topic, value)), "an object from topics to names"
    ),
    "stability": list_of(_NUMBER),
    "edits": list_of(OBJECT),
    "updates": list_of(OBJECT),
}
"""Fields of run.json."""
COUNTED_FIELDS = {
    "settings": object_with(
        {"reading": OBJECT, "counting": OBJECT, "fitting": OBJECT}, required=("reading", "counting", "fitting")
    ),
    "facts": object_with(RUN_FIELDS),
}
"""Fields of counted.json, of a fit that is not finished."""
FACT_FIELDS = ("inputs", "reading", "counting", "documents", "words", "seconds")
"""Fields that counted.json must have about the documents."""
CHOICE_FIELDS = {"n_topics": _TOPICS, "reason": TEXT, "rows": list_of(_ROW)}
"""Fields of choice.json: the number of topics that was chosen."""
FITTED_FIELDS = {"interrupted": FLAG, "seconds": number(0, 1e12)}
"""Fields of fitted.json."""


def check_is_run(path: Path) -> None:
    """Raise InputError if the folder is not a run."""
    recover_folder(path.absolute())
    if not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is not a run: make one with polyseme fit.")


def check_target(path: Path, *, overwrite: bool) -> None:
    """Raise InputError if a run cannot be written to `path`; only a run may be overwritten."""
    recover_folder(path)
    if not path.exists():
        return
    is_run = (path / RUN_FILE).is_file()
    if is_run and not overwrite:
        raise InputError(f"{path} is a run already: choose another folder with -o, or replace it with --overwrite.")
    if not is_run and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists and is not a run: choose another folder with -o.")


def work_folder(path: Path) -> Path:
    """Return the folder in which the run `path` is written; it remains if the process is killed."""
    return path.with_name(f".{path.name}.part")


def run_lock(path: Path) -> AbstractContextManager[None]:
    """Return the lock that a process holds while it writes the run `path`."""
    path = path.absolute()
    busy = f"{path} is being written by another polyseme process: wait until it ends, or choose another folder."
    return locked(path.with_name(f".{path.name}.lock"), busy)


@contextmanager
def atomic_folder(path: Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[Path]:
    """Yield a work folder next to `path` that replaces `path` when the block succeeds.

    If the block fails, `path` does not change and the work folder is removed, unless it contains a checkpoint or shards
    of an unfinished fit. With `resume`, the work folder of an unfinished fit is used again; otherwise it starts empty.
    """
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    with run_lock(path):
        check_target(path, overwrite=overwrite)
        work = work_folder(path)
        if not (resume and (work / UNFINISHED_FILE).exists()):
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(exist_ok=True)
        for half_written in work.rglob("*.part"):  # left by a process that was killed
            half_written.unlink()
        try:
            yield work
            for name in (UNFINISHED_FILE, FITTED_FILE):
                (work / name).unlink(missing_ok=True)
            shutil.rmtree(work / CHECKPOINT_FOLDER, ignore_errors=True)
            os.chmod(work, 0o777 & ~umask())
            flush_all(work)
            replace_folder(work, path)
        except BaseException as error:
            resumable = (work / SHARDS_FOLDER).exists() or any((work / CHECKPOINT_FOLDER).glob("*/*"))
            if not (resumable and (work / UNFINISHED_FILE).exists()):
                shutil.rmtree(work, ignore_errors=True)
            elif isinstance(error, OSError):
                raise OSError(f"{error}; the work so far is stored: repeat the command with --resume") from error
            raise


def flush_all(folder: Path) -> None:
    """Flush all files of a folder to the disk."""
    for file in folder.rglob("*"):
        if file.is_file():
            flush_to_disk(file)


def _is_topic(name: Any) -> bool:
    return isinstance(name, str) and name.isdecimal() and len(name) < 10
