"""Which files there are to read: paths, folders and standard input."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.errors import InputError
from polyseme.text.readers.compressed import SUFFIXES

STANDARD_INPUT = "-"

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class File:
    """A file to read; ``path`` is None for standard input."""

    path: Path | None
    name: str
    """How the user knows it: the path as given, or the path within the folder. If several inputs were given, the path
    within a folder begins with the folder's name."""
    label: str | None = None
    """The subfolder of the given folder that it lies in."""
    size: int = 0

    @property
    def suffix(self) -> str:
        """In lower case, without that of a compression: ".xml" for "dump.XML.bz2"."""
        suffixes = [suffix.lower() for suffix in Path(self.name).suffixes]
        if suffixes and suffixes[-1] in SUFFIXES:
            suffixes.pop()
        return suffixes[-1] if suffixes else ""


@dataclass(frozen=True)
class Place:
    """One of the paths that the user gave."""

    path: Path | None
    name: str
    is_folder: bool = False
    rereadable: bool = True


def places(paths: Paths) -> list[Place]:
    """The given paths, checked."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InputError("There is nothing to read: give a file, a folder or '-' for standard input.")
    return [_place(os.fspath(path)) for path in given]


def _place(name: str) -> Place:
    if name == STANDARD_INPUT:
        return Place(None, "standard input", rereadable=False)
    if not name:
        raise InputError("A path is empty: give a file, a folder or '-' for standard input.")
    path = Path(name)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"There is no file or folder {name!r}.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name!r} cannot be read: {_reason(error)}.") from None
    is_folder = stat.S_ISDIR(mode)
    return Place(path, _printable(name), is_folder, rereadable=is_folder or stat.S_ISREG(mode))


def _printable(name: str) -> str:
    """A name that is not in the file system's encoding holds half characters, which cannot be written."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def files_of(place: Place, on_problem: Callable[[str, str, str], None], *, alone: bool = True) -> Iterator[File]:
    """The files of one place; those of a folder and of its subfolders in a fixed order, without hidden ones.

    alone : whether it is the only place. If not, names of files in a folder begin with the folder's name.
    """
    if place.path is None:
        yield File(None, place.name)
    elif place.is_folder:
        yield from _walk(place.path, on_problem, "" if alone else place.name)
    else:
        try:
            yield File(place.path, place.name, size=place.path.stat().st_size)
        except OSError as error:
            on_problem("unreadable file", place.name, _reason(error))


def _walk(folder: Path, on_problem: Callable[[str, str, str], None], prefix: str) -> Iterator[File]:
    def unreadable(error: OSError) -> None:
        on_problem("unreadable folder", str(error.filename), _reason(error))

    for root, subfolders, names in os.walk(folder, onerror=unreadable):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        within = Path(root).relative_to(folder)
        for name in sorted(names):
            if name.startswith("."):
                continue
            path, shown = Path(root, name), _printable(str(Path(prefix, within, name)))
            try:
                status = path.stat()
            except OSError as error:
                on_problem("unreadable file", shown, _reason(error))
                continue
            if stat.S_ISREG(status.st_mode):
                label = _printable(within.parts[0]) if within.parts else None
                yield File(path, shown, label, status.st_size)
            else:
                on_problem("unreadable file", shown, "it is not a regular file")
