"""One writer at a time: a lock that the system takes away when its holder ends, however it ends.

Files that appear whole or not at all, and folders that one process at a time writes to.

Putting a new folder in the place of an old one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from polyseme.errors import InputError


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Holds the lock file `path` while the block runs; raises InputError with the sentence `busy` if another has it."""
    handle = _held(path, busy)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _held(path: Path, busy: str) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(handle)
        except OSError:
            os.close(handle)
            raise InputError(busy) from None
        if _is_still(path, handle):
            return handle
        os.close(handle)  # the last holder removed the file after it was opened here


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]

else:

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


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


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def take_place(new: Path, path: Path) -> None:
    """Gives the folder `new` the name `path`; what had that name is removed.

    Linux exchanges the two names in one step. Elsewhere there is a moment between two renames, which `recover` mends.
    """
    if not path.exists():
        os.rename(new, path)
    elif _exchange(new, path):
        shutil.rmtree(new, ignore_errors=True)
    else:
        old = _aside(path)
        shutil.rmtree(old, ignore_errors=True)
        os.rename(path, old)
        os.rename(new, path)
        shutil.rmtree(old, ignore_errors=True)
    if os.name == "posix":
        flush_to_disk(path.parent)


def recover(path: Path) -> None:
    """Gives back its name to a folder whose replacement was cut between the two renames."""
    if not path.exists() and _aside(path).is_dir():
        os.rename(_aside(path), path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _exchange(first: Path, second: Path) -> bool:
    """Whether the system could exchange the two names."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_OFFERED:
        return False
    raise OSError(code, os.strerror(code), str(second))
