"""Rows with the parameters of the documents of a corpus on disk.

Rows are not an array here, but an object that returns the rows of each shard: computed rows, a folder with one file per
shard (a generation), or an extrapolation of two of these. Every iteration writes the next generation. Generations
without references are removed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from polyseme.core.model import Extrapolate
from polyseme.core.shard import Shard
from polyseme.data.corpus import Step
from polyseme.errors import ShardError
from polyseme.io.arrays import bytes_of, map_npy, npy_header, npy_parts
from polyseme.io.files import (
    FileManifest,
    flush_to_disk,
    umask,
    write_atomically,
)
from polyseme.kernels import Array


class ShardRows(Protocol):
    """Rows of all documents as an object that returns the rows of a shard."""

    def of(self, number: int, shard: Shard) -> Array: ...

    def paths(self, number: int) -> list[Path]:
        """Return the files from which the rows of a shard are read."""


@dataclass(frozen=True)
class ComputedRows:
    """Rows that a function computes for each shard."""

    function: Callable[..., Array]
    shared: tuple[Array, ...]

    def of(self, number: int, shard: Shard) -> Array:
        return self.function(shard, *self.shared)

    def paths(self, number: int) -> list[Path]:
        return []


@dataclass(frozen=True)
class ArrayRows:
    """Rows of an array with one row for each document, in memory or mapped."""

    array: Array
    first: list[int]
    """Index of the first document of each shard."""

    def of(self, number: int, shard: Shard) -> Array:
        rows = self.array[self.first[number] : self.first[number] + shard.n_docs]
        rows.flags.writeable = False
        return rows

    def paths(self, number: int) -> list[Path]:
        return []


@dataclass(frozen=True)
class ExtrapolatedRows:
    """Extrapolation of two steps, computed when it is used."""

    step: Step
    extrapolate: Extrapolate
    new: ShardRows
    old: ShardRows

    def of(self, number: int, shard: Shard) -> Array:
        return self.step.extrapolate_rows(
            self.extrapolate, self.new.of(number, shard), self.old.of(number, shard), shard
        )

    def paths(self, number: int) -> list[Path]:
        return [*self.new.paths(number), *self.old.paths(number)]


class Generation:
    """Rows as a folder with one file per shard.

    The folder is removed after the last reference to this object is gone, unless `keep` was called. No finalizer
    removes it: Python only prints an exception in a finalizer, so a Ctrl-C during the removal would be lost. Instead
    the garbage collector appends the reference to a list, without running Python code, and `remove_unused` removes the
    folder later.
    """

    def __init__(self, folder: Path, files: FileManifest | None = None, *, kept: bool = False) -> None:
        self.folder = folder
        self.files = FileManifest(folder) if files is None else files
        """Sizes and digests of the files, known after `flush`."""
        if not kept:
            self.remove_when_unused()

    def of(self, number: int, shard: Shard) -> Array:
        return read_rows(self.path(number), shard.n_docs, shard.dtype)

    def paths(self, number: int) -> list[Path]:
        return [self.path(number)]

    def write(self, number: int, rows: Array) -> None:
        write_atomically(self.path(number), npy_parts(rows), flush=False)

    def flush(self) -> None:
        """Flush the files to disk, and compute their digests, unless they are known."""
        for path in self.folder.glob("*.npy"):
            if path.name in self.files.entries:
                flush_to_disk(path)
            else:
                self.files.add(path.name)
        flush_to_disk(self.folder)

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(map_npy(self.path(0)).shape[1])

    def keep(self) -> None:
        """Do not remove the folder, not even when the process exits."""
        _removable.pop(weakref.ref(self), None)

    def remove_when_unused(self) -> None:
        """Remove the folder when this object is garbage-collected or the process exits."""
        _removable[weakref.ref(self, _unused.append)] = self.folder

    def path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npy"


_removable: dict[weakref.ref[Generation], Path] = {}
_unused: deque[weakref.ref[Generation]] = deque()
_removing = threading.Lock()


def remove_unused() -> None:
    """Remove the folders of generations without references."""
    with _removing:
        while _unused:
            if _unused[0] in _removable:
                shutil.rmtree(_removable[_unused[0]], ignore_errors=True)
                # After rmtree, so that after a Ctrl-C in it the next call removes the rest of the folder.
                del _removable[_unused[0]]
            _unused.popleft()


@atexit.register
def _remove_all() -> None:
    """Remove the folders of all generations that are not kept."""
    for folder in list(_removable.values()):
        shutil.rmtree(folder, ignore_errors=True)


def read_rows(path: Path, n_docs: int, dtype: np.dtype[Any]) -> Array:
    """Return the rows of a shard, mapped from a .npy file."""
    try:
        rows = map_npy(path)
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} is missing or damaged ({error}): remove the folder {path.parents[1]}.") from None
    if rows.ndim != 2 or rows.shape[0] != n_docs or rows.dtype != dtype:
        raise ShardError(f"{path} does not belong to these shards: remove the folder {path.parents[1]}.")
    return rows


@dataclass(frozen=True)
class RowsFile:
    """A .npy file with one row for each document, which is written a shard at a time."""

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def part(self) -> Path:
        """Name of the file until it is complete."""
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def _header(self) -> bytes:
        return npy_header(np.broadcast_to(np.zeros(1, dtype=self.dtype), self.shape))

    @property
    def _row_size(self) -> int:
        return self.shape[1] * self.dtype.itemsize

    def allocate(self) -> None:
        self.part.unlink(missing_ok=True)  # left by a process that was killed, or a planted link
        with self.part.open("xb") as file:
            file.write(self._header)
            file.truncate(len(self._header) + self.shape[0] * self._row_size)

    def write(self, first: int, rows: Array) -> None:
        """Write the rows of consecutive documents, starting with document `first`."""
        with self.part.open("r+b") as file:
            file.seek(len(self._header) + first * self._row_size)
            file.write(bytes_of(np.ascontiguousarray(rows, dtype=self.dtype)))

    def fill(self, documents: Array, row: Array) -> None:
        """Write the same row for several documents."""
        content = row.astype(self.dtype).tobytes()
        with self.part.open("r+b") as file:
            for number in documents.tolist():
                file.seek(len(self._header) + number * self._row_size)
                file.write(content)

    def publish(self) -> Array:
        """Rename the complete file to `path`, and return its rows, mapped."""
        os.chmod(self.part, 0o666 & ~umask())
        os.replace(self.part, self.path)
        return np.load(self.path, mmap_mode="r").view(np.ndarray)
