"""One writer at a time: a lock that the system takes away when its holder ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
