"""Folders of runs: which folders are runs, and how a run is written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from polyseme.errors import InputError
from polyseme.io.files import flush_to_disk, locked, recover_folder, replace_folder, umask

RUN_FILE = "run.json"
"""File that makes a folder a run."""
UNFINISHED_FILE = "counted.json"
"""File of a work folder whose documents are counted and whose fit is not finished."""
CHECKPOINT_FILE = "checkpoint.safetensors"
"""Checkpoint of an unfinished fit."""
SHARDS_FOLDER = "shards"
"""Folder with the counts of a run that is not held in memory."""
FITTED_FILE = "fitted.json"
"""File of a work folder whose fit from shards is finished, but not all files are written."""


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
            for name in (UNFINISHED_FILE, CHECKPOINT_FILE, FITTED_FILE):
                (work / name).unlink(missing_ok=True)
            os.chmod(work, 0o777 & ~umask())
            flush_all(work)
            replace_folder(work, path)
        except BaseException as error:
            resumable = any((work / name).exists() for name in (CHECKPOINT_FILE, SHARDS_FOLDER))
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
