"""A folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polyseme.errors import InputError
from polyseme.storage import umask

RUN_FILE = "run.json"
"""the file that marks a folder as a run"""


def check_free(path: Path, *, overwrite: bool) -> None:
    """Raises InputError if a run cannot be written to `path`; only another run may be overwritten."""
    if not path.exists():
        return
    is_run = (path / RUN_FILE).is_file()
    if is_run and not overwrite:
        raise InputError(f"{path} is a run already: choose another folder with -o, or replace it with --overwrite.")
    if not is_run and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists and is not a run: choose another folder with -o.")


@contextmanager
def whole_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A new folder beside `path` to write into, which takes the place of `path` when the block ends well.

    If the block fails, nothing is left of it, and what was at `path` stays.
    """
    check_free(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
    try:
        yield new
        os.chmod(new, 0o777 & ~umask())
        _flush(new)
        _take_place(new, path)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _take_place(new: Path, path: Path) -> None:
    if not path.exists():
        os.rename(new, path)
        return
    old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".old"))
    os.rename(path, old)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(old, path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Has the content on the disk before the folder gets its name."""
    for file in folder.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
