"""A folder that appears whole or not at all.

The fields of a run's JSON files, and what each of them must be. Other fields are data that no code reads.
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
from polyseme.io.files import flush_to_disk, locked, recover, take_place, umask

RUN_FILE = "run.json"
"""the file that marks a folder as a run"""
UNFINISHED_FILE = "counted.json"
"""marks a folder whose documents are all counted, and whose fit is not done"""
CHECKPOINT_FILE = "checkpoint.safetensors"
"""the fit so far"""
SHARDS_FOLDER = "shards"
"""the counts of a run whose documents are not all in memory"""
FITTED_FILE = "fitted.json"
"""marks a folder of shards whose fit is done, and whose files are not all written"""


def check_is_run(path: Path) -> None:
    """Raises InputError if the folder is not a run."""
    recover(path.absolute())
    if not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is not a run: make one with polyseme fit.")


def check_free(path: Path, *, overwrite: bool) -> None:
    """Raises InputError if a run cannot be written to `path`; only another run may be overwritten."""
    recover(path)
    if not path.exists():
        return
    is_run = (path / RUN_FILE).is_file()
    if is_run and not overwrite:
        raise InputError(f"{path} is a run already: choose another folder with -o, or replace it with --overwrite.")
    if not is_run and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists and is not a run: choose another folder with -o.")


def work_folder(path: Path) -> Path:
    """Where a run that will be `path` is made; it outlives a process that is killed."""
    return path.with_name(f".{path.name}.part")


def only_writer_of(path: Path) -> AbstractContextManager[None]:
    """Held by the one process that writes the run `path`."""
    path = path.absolute()
    busy = f"{path} is being written by another polyseme: wait until it has ended, or choose another folder."
    return locked(path.with_name(f".{path.name}.lock"), busy)


@contextmanager
def whole_folder(path: Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[Path]:
    """A folder beside `path` to write into, which takes the place of `path` when the block ends well.

    If the block fails, what was at `path` stays. What was written is removed, unless there is a checkpoint or there are
    shards in it; it is empty at the beginning, unless `resume` asks for what an earlier block left.
    """
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    with only_writer_of(path):
        check_free(path, overwrite=overwrite)
        work = work_folder(path)
        if not (resume and (work / UNFINISHED_FILE).exists()):
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(exist_ok=True)
        for half_written in work.rglob("*.part"):  # by a process that was killed
            half_written.unlink()
        try:
            yield work
            for name in (UNFINISHED_FILE, CHECKPOINT_FILE, FITTED_FILE):
                (work / name).unlink(missing_ok=True)
            os.chmod(work, 0o777 & ~umask())
            flush_all(work)
            take_place(work, path)
        except BaseException as error:
            begun = any((work / name).exists() for name in (CHECKPOINT_FILE, SHARDS_FOLDER))
            if not (begun and (work / UNFINISHED_FILE).exists()):
                shutil.rmtree(work, ignore_errors=True)
            elif isinstance(error, OSError):
                raise OSError(f"{error}; the fit so far is kept: repeat the command with --resume") from error
            raise


def flush_all(folder: Path) -> None:
    """Has the content of a folder on the disk."""
    for file in folder.rglob("*"):
        if file.is_file():
            flush_to_disk(file)


_NUMBER = number(-1e300, 1e300)
_PLAIN = either(NULL, FLAG, TEXT, _NUMBER)
_TOPICS = whole_number(1, 2**31 - 1)


def _is_topic(name: Any) -> bool:
    return isinstance(name, str) and name.isdecimal() and len(name) < 10


_ROW = mapping_to(_PLAIN)
RUN = {
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
"""run.json"""
COUNTED = {
    "asked": object_with({"reading": OBJECT, "counting": OBJECT, "fitting": OBJECT}),
    "facts": object_with(RUN),
}
"""counted.json, of a fit that is not finished"""
FACTS = ("inputs", "reading", "counting", "documents", "words", "seconds")
"""what counted.json must say of the documents"""
CHOICE = {"n_topics": _TOPICS, "reason": TEXT, "rows": list_of(_ROW)}
"""choice.json: the number of topics that was chosen"""
FITTED = {"interrupted": FLAG, "seconds": number(0, 1e12)}
"""fitted.json"""
