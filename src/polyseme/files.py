"""Files that appear whole or not at all, and folders that one process at a time writes to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from polyseme.locks import locked

LOCK_FILE = "lock"


def write_atomically(path: str | PathLike[str], content: bytes | Iterable[Any], *, flush: bool = True) -> None:
    """Writes a temporary file beside `path`, flushes it to disk, and renames it.

    content : bytes, or several buffers one after the other.
    flush : False for a file that nobody needs after a crash of the machine.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            parts: Iterable[Any] = (content,) if isinstance(content, bytes) else content
            for part in parts:
                file.write(part)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def flush_to_disk(path: Path) -> None:
    """Has the content of a file, or the names in a folder, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def umask() -> int:
    """What the process takes away from the permissions of new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def only_writer(folder: Path, doing: str) -> Iterator[None]:
    """Holds the folder's lock; InputError if another process, or another fit of this one, has it.

    The lock ends with the process that holds it, however that ends.
    """
    with locked(folder / LOCK_FILE, f"{folder} is in use by another {doing}: wait for it to end, or use a copy."):
        yield
