"""Sizes and digests of files: of one that is written or read, and of all files of a folder (a manifest).

The sizes are checked when a folder is opened, and the digest of a file when the file is first used, so that opening a
large folder is fast and no damaged file is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from io import BufferedIOBase
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from polyseme.errors import ModelFileError
from polyseme.io.checks import COUNT, OBJECT, Check, check_fields
from polyseme.io.files import flush_to_disk, is_regular, write_atomically


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
    """Sizes and digests of the files of a folder, by their names relative to it.

    The files of a run are listed in its run.json, and the files of shards in a manifest.json that run.json lists, so
    that every file has a digest. Errors name the file that lists them (`listed_in`) and say what to do (`remedy`).
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

    def add(self, name: str) -> None:
        """Add a file, or its new content after it was written again. It is also flushed to disk."""
        FILE_NAME.require("the name of a file", name)
        size = self._size(name)
        with (self.folder / name).open("rb") as file:
            self.entries[name] = FileEntry(size, file_digest(file))
        flush_to_disk(self.folder / name)
        self._checked.add(name)

    def add_all(self, *, skip: Collection[str] = ()) -> None:
        """Add all regular files below the folder. skip : names, or patterns as in fnmatch ("*" matches "/")."""
        for parent, _, names in os.walk(self.folder):
            for name in names:
                path = Path(parent, name)
                relative = path.relative_to(self.folder).as_posix()
                if is_regular(path) and not any(fnmatchcase(relative, pattern) for pattern in skip):
                    self.add(relative)

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
                    found = file_digest(file)
            except OSError as error:
                raise self._error(name, f"cannot be read ({error.strerror})") from None
            if found != self.entries[name].sha256:
                raise self._error(name, f"is damaged: its digest differs from {self._listed_in}")
            self._checked.add(name)
        return path

    def _check_size(self, name: str) -> None:
        found, wanted = self._size(name), self.entries[name].size
        if found != wanted:
            raise self._error(name, f"is damaged: it has {found} bytes where {self._listed_in} says {wanted}")

    def _size(self, name: str) -> int:
        try:
            found = (self.folder / name).lstat()
        except OSError as error:
            raise self._error(name, f"is missing ({error.strerror})") from None
        folders = [self.folder / parent for parent in PurePosixPath(name).parents if parent.name]
        if not stat.S_ISREG(found.st_mode) or any(folder.is_symlink() for folder in folders):
            raise self._error(name, "is not a regular file, or is behind a link")
        return found.st_size

    def _error(self, name: str, problem: str) -> ModelFileError:
        return ModelFileError(f"{self.folder / name} {problem}; {self._remedy}.")
