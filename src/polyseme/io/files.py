"""Atomic writes of files, replacement of folders, and locks."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from polyseme.errors import InputError

LOCK_FILE = "lock"
"""Name of the lock file of a folder."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_POSIX = os.name == "posix"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | (os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK if _POSIX else 0)
"""A link in place of the lock file is not followed, and a pipe does not block."""


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
    if not _POSIX and path.is_dir():
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDONLY if _POSIX else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_all(folder: Path) -> None:
    """Flush all files below a folder, and their names, to disk. Links are not followed."""
    for parent, _, names in os.walk(folder):
        for name in names:
            if is_regular(Path(parent, name)):
                flush_to_disk(Path(parent, name))
        flush_to_disk(Path(parent))


def is_regular(path: Path) -> bool:
    """Return whether there is a regular file at `path` itself: not a link, a folder, a pipe or a device."""
    return _kind_is(path, stat.S_ISREG)


def umask() -> int:
    """Return the permissions that the process removes from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


# folders


def exchange_folders(new: Path, path: Path) -> Path | None:
    """Give the folder `new` the name `path`; return where the previous folder `path` is now, None if there was none.

    Linux exchanges the two names in one step. Other systems need two renames; `recover_folder` completes an exchange
    that was interrupted between them. Raises OSError if the names did not change.
    """
    if not path.exists():
        os.rename(new, path)
        return None
    if _exchange(new, path):
        return new
    old = old_name(path)
    remove_own(old)
    os.rename(path, old)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(old, path)
        raise
    return old


def is_interrupted(path: Path) -> bool:
    """Return whether an exchange was interrupted between the two renames, or is between them now."""
    return not path.exists() and is_own_folder(old_name(path))


def recover_folder(path: Path) -> None:
    """Restore the folder `path` if its exchange was interrupted. Only for a caller that holds the lock of `path`."""
    if is_interrupted(path):
        os.rename(old_name(path), path)


def old_name(path: Path) -> Path:
    """Return the name of the previous folder `path` during an exchange that needs two renames."""
    return path.with_name(f".{path.name}.old")


def is_own_folder(path: Path) -> bool:
    """Return whether there is a folder at `path` itself, not a link, that belongs to the user of this process."""
    return _kind_is(path, stat.S_ISDIR) and not _is_foreign(path)


def check_own(path: Path) -> None:
    """Raise InputError if there is a folder of another user at `path`, who could change its files at any time."""
    if _kind_is(path, stat.S_ISDIR) and _is_foreign(path):
        raise InputError(f"{path} belongs to another user: remove it, or choose another folder.")


def remove_own(path: Path) -> None:
    """Remove a folder, a file or a link, but not what the link points to. Raise InputError as `check_own`."""
    check_own(path)
    if _kind_is(path, stat.S_ISDIR):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _kind_is(path: Path, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(path.lstat().st_mode)
    except OSError:
        return False


def _is_foreign(path: Path) -> bool:
    return _POSIX and path.lstat().st_uid != os.geteuid()


def _exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders; return False if the system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if _POSIX else None
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
        handle = _open_lock(path)
        try:
            _lock(handle)
        except OSError:
            os.close(handle)
            raise InputError(busy) from None
        if _is_same_file(path, handle):
            return handle
        os.close(handle)  # the previous holder removed the file after it was opened here


def _open_lock(path: Path) -> int:
    """Open the lock file. Raise InputError if something else is in its place, for example a link to another file."""
    try:
        handle = os.open(path, _LOCK_FLAGS, 0o666)
    except OSError:
        if path.is_symlink() or (path.exists() and not is_regular(path)):
            raise InputError(f"{path} is not a lock file of polyseme: remove it.") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path} is not a lock file of polyseme: remove it.")
    return handle


def _is_same_file(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
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
