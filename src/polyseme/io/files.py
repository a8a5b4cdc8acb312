"""Atomic writes of files, replacement of folders, and locks."""

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

LOCK_FILE = "lock"
"""Name of the lock file of a folder."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


# files


def write_atomically(path: str | PathLike[str], content: bytes | Iterable[Any], *, flush: bool = True) -> None:
    """Write a temporary file beside `path`, flush it to disk, and rename it to `path`.

    content : bytes, or several buffers that are written one after the other.
    flush : whether the file must survive a crash of the machine.
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
    """Flush the content of a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def umask() -> int:
    """Return the permissions that the process removes from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


# folders


def replace_folder(new: Path, path: Path) -> None:
    """Replace the folder `path` by the folder `new`.

    Linux exchanges the two names in one step. Other systems need two renames; `recover` completes a replacement that
    was interrupted between them.
    """
    if not path.exists():
        os.rename(new, path)
    elif _exchange(new, path):
        shutil.rmtree(new, ignore_errors=True)
    else:
        old = _old_name(path)
        shutil.rmtree(old, ignore_errors=True)
        os.rename(path, old)
        os.rename(new, path)
        shutil.rmtree(old, ignore_errors=True)
    if os.name == "posix":
        flush_to_disk(path.parent)


def recover_folder(path: Path) -> None:
    """Restore the folder `path` if its replacement was interrupted between the two renames."""
    if not path.exists() and _old_name(path).is_dir():
        os.rename(_old_name(path), path)


def _old_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders; return False if the system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(second))


# locks


@contextmanager
def only_writer(folder: Path, doing: str) -> Iterator[None]:
    """Hold the lock of a folder; raise InputError if another process, or another thread of this one, holds it."""
    with locked(folder / LOCK_FILE, f"{folder} is in use by another {doing}: wait for it to end, or use a copy."):
        yield


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; raise InputError with the message `busy` if another holds it.

    The system releases the lock when the process ends, also after a crash.
    """
    handle = _acquire(path, busy)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _acquire(path: Path, busy: str) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(handle)
        except OSError:
            os.close(handle)
            raise InputError(busy) from None
        if _is_same_file(path, handle):
            return handle
        os.close(handle)  # the previous holder removed the file after it was opened here


def _is_same_file(path: Path, handle: int) -> bool:
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
