"""Folders of runs: which folders are runs, and how a run is written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from polyseme.errors import InputError
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
