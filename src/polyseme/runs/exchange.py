"""Putting a new folder in the place of an old one."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path

from polyseme.files import flush_to_disk

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
