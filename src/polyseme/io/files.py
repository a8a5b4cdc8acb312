"""Files and folders: atomic writes, replacement of folders, locks, and checks of files that are read.

Files that are read may be damaged or hostile. The functions that check them raise ValueError with a reason; callers add
the name of the file and raise their own type of error. A manifest has the sizes and digests of all files of a folder.
The sizes are checked when a folder is opened, and the digest of a file when the file is first used, so that opening a
large folder is fast and no damaged file is read.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedIOBase
from os import PathLike
from pathlib import Path, PurePosixPath
from reprlib import Repr
from typing import Any, NamedTuple

from polyseme.errors import InputError, ModelFileError

LOCK_FILE = "lock"
"""Name of the lock file of a folder."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_POSIX = os.name == "posix"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | (os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK if _POSIX else 0)
"""A link in place of the lock file is not followed, and a pipe does not block."""
MAX_BYTES = 1 << 30
"""Largest JSON file. A vocabulary of ten million words takes a fifth of it."""
MAX_DEPTH = 32
"""Deepest nesting of a JSON file."""
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60
shortened = _short.repr
"""Function that returns a short description of a value, for messages."""


# writing


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


def write_output(path: str | PathLike[str], content: bytes) -> None:
    """Write a file that a user has asked for, atomically, and its folder if it does not exist."""
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{path} cannot be written, because {folder} is not a folder: choose another file.") from None
    write_atomically(path, content)


def read_ahead(path: Path) -> None:
    """Let the operating system read a file into its cache, where it can, without waiting for it."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


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
    """Rename the folder `new` to `path`. Return the new name of the previous folder `path`; None if there was none.

    Linux exchanges the two names in one step. Other systems need two renames; `recover_folder` completes an exchange
    that was interrupted between them. Raise OSError if the names did not change.
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
    """Restore the folder `path` if its exchange was interrupted. The caller must hold the lock of `path`."""
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
    """Remove a folder, a file or a link, but not what the link points to. Raise InputError as `check_own` does."""
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
    """Hold the lock file `path` while the block runs; raise InputError with the message `busy` if it is already held.

    The system releases the lock when the process ends, even after a crash.
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


# JSON


def parse_json(text: str | bytes, *, infinite: bool = False) -> Any:
    """Return the content of a JSON text. Raise ValueError for values that JSON does not define and for repeated names.

    infinite : whether NaN and Infinity, which Python's json writes, are allowed.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    hooks: dict[str, Any] = {} if infinite else {"parse_constant": _raise_for_constant, "parse_float": _finite}
    try:
        content = json.loads(text, object_pairs_hook=_without_repeated_names, **hooks)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_depth(content)
    if _ESCAPED_SURROGATE.search(text):
        # raises UnicodeEncodeError, a ValueError, for an unpaired surrogate
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raise OSError or ValueError."""
    check_regular(path)
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 30} GiB")
    content = parse_json(path.read_bytes())
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    return content


def check_regular(path: Path) -> None:
    """Raise OSError for a missing file, and ValueError for a folder, a pipe or a device, which could block.

    The message of the operating system says whether the file is missing or cannot be read.
    """
    path.stat()
    if not path.is_file():
        raise ValueError("it is not a regular file")


def _raise_for_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {shortened(text)} is too large")
    return value


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return content


def _check_depth(content: Any) -> None:
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")


# checks of fields


class Check(NamedTuple):
    """A condition on a value."""

    holds: Callable[[Any], bool]
    wanted: str
    """The condition in words, after "must be"."""

    def require(self, name: str, value: Any) -> None:
        """Raise ValueError unless the condition holds."""
        if not self.holds(value):
            raise ValueError(f"{name} must be {self.wanted}, got {shortened(value)}")


def check_fields(
    data: Any, table: Mapping[str, Check], *, required: Collection[str] = (), others: bool = False
) -> None:
    """Raise ValueError unless the fields of an object pass the checks of a table.

    others : whether the object may have fields that the table does not have.
    """
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    missing = [name for name in required if name not in data]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    for name, value in data.items():
        if name in table:
            table[name].require(name, value)
        elif not others:
            raise ValueError(f"{shortened(name)} is not a known field")


def whole_number(least: int, most: int) -> Check:
    """Return a check for an integer; true and false do not pass."""

    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Check(holds, f"a whole number from {least} to {most}")


def number(least: float, most: float) -> Check:
    """Return a check for an integer or a floating-point number, not NaN."""

    def holds(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most

    return Check(holds, f"a number from {least:g} to {most:g}")


def one_of(*values: str) -> Check:
    """Return a check for one of some strings."""
    return Check(lambda value: isinstance(value, str) and value in values, "one of " + ", ".join(map(repr, values)))


def either(*checks: Check) -> Check:
    """Return a check that passes if one of several checks passes."""
    return Check(
        lambda value: any(check.holds(value) for check in checks), " or ".join(check.wanted for check in checks)
    )


def list_of(check: Check, *, most: int | None = None, distinct: bool = False) -> Check:
    """Return a check for a list. distinct : whether repeated entries are refused (only for hashable entries)."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, list)
            and (most is None or len(value) <= most)
            and all(map(check.holds, value))
            and not (distinct and len(set(value)) < len(value))
        )

    limit = "" if most is None else f" of at most {most} entries"
    return Check(holds, f"a list{limit}, each {check.wanted}{', without repetitions' if distinct else ''}")


def mapping_to(check: Check) -> Check:
    """Return a check for an object with any names and values that pass a check."""

    def holds(value: Any) -> bool:
        return isinstance(value, dict) and all(map(check.holds, value.values()))

    return Check(holds, f"an object, each value {check.wanted}")


def object_with(table: Mapping[str, Check], *, required: Collection[str] = ()) -> Check:
    """Return a check for an object whose fields pass the checks of a table; it may have other fields."""

    def holds(value: Any) -> bool:
        try:
            check_fields(value, table, required=required, others=True)
        except ValueError:
            return False
        return True

    fields = (f"{name} ({check.wanted})" if len(check.wanted) <= 80 else name for name, check in table.items())
    return Check(holds, "an object with " + ", ".join(fields))


NULL = Check(lambda value: value is None, "null")
"""The value null."""
FLAG = Check(lambda value: isinstance(value, bool), "true or false")
"""The value true or false."""
NOT_A_NUMBER = Check(lambda value: isinstance(value, float) and value != value, "NaN")
"""The floating-point value NaN."""
TEXT = Check(lambda value: isinstance(value, str), "a text")
"""Any string."""
OBJECT = Check(lambda value: isinstance(value, dict), "an object")
"""Any JSON object."""
COUNT = whole_number(0, 2**63 - 1)
"""A non-negative whole number of at most 63 bits."""


# sizes and digests


class FileEntry(NamedTuple):
    """Size and SHA-256 of a file."""

    size: int
    sha256: str


def _is_name(value: Any) -> bool:
    return (
        isinstance(value, str)
        and not set(value) & {"\\", ":", "\0"}  # Windows: folders, drives and streams
        and all(part not in ("", ".", "..") for part in value.split("/"))
    )


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


FILE_NAME = Check(_is_name, "a path inside the folder, with / between its parts")
"""Name of a file below a folder: relative, without "..", backslashes and colons."""
SHA256 = Check(_is_digest, "a SHA-256 in hexadecimal digits")
_ENTRY = {"size": COUNT, "sha256": SHA256}


def _is_listing(value: Any) -> bool:
    try:
        _check_listing(value)
    except ValueError:
        return False
    return True


FILES = Check(_is_listing, "an object from names of files to their size and sha256")
"""The files of a folder as `FileManifest.to_json` returns them."""


def _check_listing(value: Any) -> None:
    OBJECT.require("files", value)
    for name, entry in value.items():
        FILE_NAME.require("the name of a file", name)
        try:
            check_fields(entry, _ENTRY, required=_ENTRY)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def file_digest(file: BufferedIOBase) -> str:
    """Return the SHA-256 of the rest of an open file, which is read in blocks."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file)


def write_with_digest(path: str | PathLike[str], parts: Iterable[Any], *, flush: bool = True) -> FileEntry:
    """Write a file from buffers, atomically, and return its size and digest."""
    digest, size = hashlib.sha256(), 0

    def hashed() -> Iterator[Any]:
        nonlocal size
        for part in parts:
            digest.update(part)
            size += memoryview(part).nbytes
            yield part

    write_atomically(path, hashed(), flush=flush)
    return FileEntry(size, digest.hexdigest())


class FileManifest:
    """Sizes and digests of the files of a folder, by their names relative to the folder.

    The files of a run are listed in its run.json, and the files of shards in a manifest.json that run.json lists, so
    that every file has a digest. Errors name the file with the list (`listed_in`) and say what to do (`remedy`).
    """

    def __init__(
        self,
        folder: Path,
        entries: Mapping[str, FileEntry] | None = None,
        *,
        listed_in: str = "run.json",
        remedy: str = "restore it, or fit again",
    ) -> None:
        self.folder = folder
        self.entries = dict(entries or {})
        self._listed_in, self._remedy = listed_in, remedy
        self._checked: set[str] = set()
        self.is_replaced: Callable[[], bool] | None = None
        """Whether the folder has been written again since it was opened; None if nobody knows."""

    def add(self, name: str) -> None:
        """Add a file, or update its entry after it was written again. Also flush it to disk."""
        FILE_NAME.require("the name of a file", name)
        size = self._size(name)
        with (self.folder / name).open("rb") as file:
            self.entries[name] = FileEntry(size, file_digest(file))
        flush_to_disk(self.folder / name)
        self._checked.add(name)

    def with_folder(self, folder: Path) -> FileManifest:
        """Return the manifest of the same files after the folder was renamed."""
        moved = FileManifest(folder, self.entries, listed_in=self._listed_in, remedy=self._remedy)
        moved._checked = set(self._checked)
        return moved

    def to_json(self) -> dict[str, Any]:
        """Return the entries as JSON values, sorted by name."""
        return {name: self.entries[name]._asdict() for name in sorted(self.entries)}

    @classmethod
    def from_json(cls, folder: Path, value: Any, **texts: str) -> FileManifest:
        """Return the manifest that `to_json` returned. Raise ValueError if a field is not valid.

        texts : `listed_in` and `remedy`.
        """
        _check_listing(value)
        return cls(folder, {name: FileEntry(**entry) for name, entry in value.items()}, **texts)

    def check_sizes(self, *, skip: Collection[str] = ()) -> None:
        """Raise ModelFileError if a file is missing, has another size, or is a link or another kind of file.

        skip : names of files that are not needed.
        """
        for name in self.entries:
            if name not in skip:
                self._check_size(name)

    def path(self, name: str) -> Path:
        """Return the path of a file, whose digest is checked the first time. Raise ModelFileError if it is damaged."""
        path = self.folder / name
        if name not in self.entries:
            raise self._error(name, f"is not listed in {self._listed_in}")
        if name not in self._checked:
            self._check_size(name)
            try:
                with path.open("rb") as file:
                    digest = file_digest(file)
            except OSError as error:
                raise self._error(name, f"cannot be read ({error.strerror})") from None
            if digest != self.entries[name].sha256:
                raise self._error(name, f"is damaged: its digest differs from {self._listed_in}")
            self._checked.add(name)
        return path

    def sized(self, name: str) -> Path:
        """Return the path of a file, of which only the size is checked, because its parts have their own checksums."""
        if name not in self.entries:
            raise self._error(name, f"is not listed in {self._listed_in}")
        self._check_size(name)
        return self.folder / name

    def _check_size(self, name: str) -> None:
        size, listed = self._size(name), self.entries[name].size
        if size != listed:
            raise self._error(name, f"is damaged: it has {size} bytes where {self._listed_in} says {listed}")

    def _size(self, name: str) -> int:
        try:
            status = (self.folder / name).lstat()
        except OSError as error:
            raise self._error(name, f"is missing ({error.strerror})") from None
        folders = [self.folder / parent for parent in PurePosixPath(name).parents if parent.name]
        if not stat.S_ISREG(status.st_mode) or any(folder.is_symlink() for folder in folders):
            raise self._error(name, "is not a regular file, or is behind a link")
        return status.st_size

    def damage(self, message: str) -> ModelFileError:
        """Return the error with this message, or with another one if the folder has been written again."""
        if self.is_replaced is not None and self.is_replaced():
            message = (
                f"{self.folder} has been written again since it was opened: use the result of that call, or open it "
                "again."
            )
        return ModelFileError(message)

    def _error(self, name: str, problem: str) -> ModelFileError:
        return self.damage(f"{self.folder / name} {problem}; {self._remedy}.")
