"""Inputs and results of readers.

A reader gets an `Input`, one file with the settings of the user, and yields each `Document`. `places` and `files_of`
find the files of paths, folders and standard input.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from polyseme.errors import InputError
from polyseme.options import named
from polyseme.text.readers.decoding import (
    SAMPLE,
    SUFFIXES,
    Bomb,
    DamagedStream,
    decode,
    decompressor_of,
    detect,
    expand,
    line_blocks,
    prefetch,
    with_byte_order,
)

STANDARD_INPUT = "-"

MAX_EXAMPLES = 10
"""Number of problems of one kind that are stored with their descriptions; further ones are only counted."""

LABEL_SEPARATOR = "; "
"""Separator of the labels of a document in one string."""

BAD_DATE = "unknown form of date"
SCANNED_PAGES = "pages without text"
REMARKS = frozenset({"guessed encoding", "undecodable bytes", BAD_DATE, SCANNED_PAGES})
"""Kinds of problems with files and rows that were read anyway."""

_NOT_TEXT = {
    b"{\\rtf": "it is an RTF file: save it as .docx or .pdf",
    b"PK\x03\x04": "it is a zip archive or an office file: unpack it, or save it as .docx, .xlsx or .pdf",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "it is an old Office file: save it as .docx, .xlsx or .pdf",
}
"""First bytes of common files that cannot be read, with advice. RTF would be read with its markup."""

_MAX_DESCRIPTION_LENGTH = 300
_CHUNK = 2**16
_WORTH_A_THREAD = 2**20
"""Compressed files of at least this many bytes are decompressed in a separate thread."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Document(NamedTuple):
    """One document of a corpus.

    Attributes
    ----------
    id : str
        Identifier that is unique within its file: the id column, the number of the page or line, or the relative path.
    text : str
        The text.
    title : str or None
        The title.
    labels : tuple of str
        Categories of a wiki page, values of a label column, or the subfolder of a file.
    time : str or None
        The date in ISO 8601 form (see `polyseme.text.dates`); as written in the file if it is not a date.
    source : str
        Name of the file.

    Examples
    --------
    >>> from polyseme.text import Document, open_source
    >>> letters = [Document("1", "Dear Ann", labels=("Bob",)), Document("2", "Dear Bob", labels=("Ann",))]
    >>> [document.labels for document in open_source(letters)]
    [('Bob',), ('Ann',)]
    """

    id: str
    text: str
    title: str | None = None
    labels: tuple[str, ...] = ()
    time: str | None = None
    source: str = ""

    @property
    def label(self) -> str | None:
        """The first label, or None."""
        return self.labels[0] if self.labels else None


class Problem(NamedTuple):
    """One thing that could not be read.

    Attributes
    ----------
    kind : str
        Kind of the problem, such as "damaged row".
    where : str
        Name of the file, with the number of the line if it is known.
    what : str
        Description.
    """

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Problems:
    """Problems of one pass over the input: counts by kind, and the first few of each kind with descriptions.

    `len(problems)` is the number of all problems. Iterating yields those that are stored with a description.

    Attributes
    ----------
    counts : Counter
        Number of problems of each kind.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[Problem]] = {}

    @classmethod
    def of(cls, counts: Mapping[str, int], examples: Iterable[Problem]) -> Problems:
        """Construct the object from counts and examples.

        Parameters
        ----------
        counts : mapping
            Number of problems of each kind.
        examples : iterable of Problem
            Problems with descriptions.

        Returns
        -------
        Problems
            The problems.
        """
        problems = cls()
        for problem in examples:
            problems.add(*problem, times=0)
        problems.counts = Counter(counts)
        return problems

    def add(self, kind: str, where: str, what: str, times: int = 1) -> None:
        """Add a problem.

        Parameters
        ----------
        kind : str
            Kind of the problem, such as "damaged row".
        where : str
            Name of the file, with the number of the line if it is known.
        what : str
            Description.
        times : int, default=1
            How often it occurred.
        """
        self.counts[kind] += times
        examples = self._examples.setdefault(kind, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(Problem(kind, where, what[:_MAX_DESCRIPTION_LENGTH]))

    def merge(self, other: Problems) -> None:
        """Add the problems of another object.

        Parameters
        ----------
        other : Problems
            The problems to add.
        """
        for problem in other:
            self.add(*problem, times=0)
        self.counts.update(other.counts)

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Problem]:
        return (problem for examples in self._examples.values() for problem in examples)

    def __str__(self) -> str:
        lines = []
        for kind, count in self.counts.items():
            examples = self._examples.get(kind, [])
            more = " ..." if count > len(examples) else ""
            lines.append(f"{kind} ({count}): " + "; ".join(map(str, examples)) + more)
        return "\n".join(lines) or "no problems"

    def __repr__(self) -> str:
        return f"<Problems {dict(self.counts)}>"


@dataclass
class ReadProgress:
    """State of one pass over the input: problems, dropped documents by reason, documents and bytes read.

    notes : sentences about how files were read, such as the order of day and month, with the number of such files.
    encoded_documents, encoded_characters : documents with encoded files in their texts, and the characters left out.
    """

    problems: Problems = field(default_factory=Problems)
    notes: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    bytes_read: int = 0
    encoded_documents: int = 0
    encoded_characters: int = 0


@dataclass(frozen=True)
class Limits:
    """Limits for damaged and hostile files. What exceeds a limit is reported among the problems of the reader.

    Parameters
    ----------
    document : int, default=2**26
        Largest size of one document, row or page, in bytes or, after decoding, characters.
    ratio : float, default=250.0
        Largest ratio between the decompressed and the compressed size of a file, once 64 MiB are decompressed.
    expanded : int, default=2**40
        Largest decompressed size of a file, in bytes.
    memory : int, default=2**31
        Memory, in bytes, that the child process may use for one PDF, Word, HTML or Parquet file. There is no limit on
        Windows.
    seconds : float, default=300.0
        Time that the child process may use for one document, or for the next rows of a table.

    Examples
    --------
    >>> from pathlib import Path
    >>> from polyseme.text import Limits, read
    >>> size = Path("lines.txt").write_text("red fish\\n" + "blue fish " * 1000)
    >>> reader = read("lines.txt", limits=Limits(document=1000))
    >>> [document.text for document in reader]
    ['red fish']
    >>> [problem.kind for problem in reader.problems]
    ['damaged row']
    """

    document: int = 64 * 2**20
    ratio: float = 250.0
    expanded: int = 2**40
    memory: int = 2 * 2**30
    seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("document", "ratio", "expanded", "memory", "seconds"):
            if not getattr(self, name) > 0:
                raise InputError(f"Limits: {name} must be above 0, not {getattr(self, name)!r}.")


@dataclass(frozen=True)
class ColumnNames:
    """The columns that the user named. None means that a well-known name is used."""

    text: tuple[str, ...] | None = None
    id: str | None = None
    title: str | None = None
    label: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Settings:
    """Options of the user for all readers."""

    columns: ColumnNames = field(default_factory=ColumnNames)
    encoding: str | None = None
    limits: Limits = field(default_factory=Limits)
    uncategorized: bool = False


@dataclass(frozen=True)
class File:
    """A file to read."""

    path: Path | None
    """None for standard input."""
    name: str
    """The path as given, or the path within the folder. If several paths were given, it starts with the folder."""
    label: str | None = None
    """The subfolder of the given folder that contains the file."""
    size: int = 0

    @property
    def suffix(self) -> str:
        """The suffix in lower case, without that of a compression: ".xml" for "dump.XML.bz2"."""
        suffixes = [suffix.lower() for suffix in Path(self.name).suffixes]
        if suffixes and suffixes[-1] in SUFFIXES:
            suffixes.pop()
        return suffixes[-1] if suffixes else ""


@dataclass(frozen=True)
class InputPath:
    """One of the paths that the user gave."""

    path: Path | None
    name: str
    is_folder: bool = False
    rereadable: bool = True


def places(paths: Paths) -> list[InputPath]:
    """Return the given paths. Raises InputError if one does not exist or cannot be read."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InputError("There is nothing to read: give a file, a folder or '-' for standard input.")
    return [_input_path(os.fspath(path)) for path in given]


def _input_path(name: str) -> InputPath:
    if name == STANDARD_INPUT:
        return InputPath(None, "standard input", rereadable=False)
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
    return InputPath(path, printable(name), is_folder, rereadable=is_folder or stat.S_ISREG(mode))


def standard_input() -> IO[bytes]:
    """Return the bytes of standard input. Raises InputError if the shell has closed it."""
    if sys.stdin is None:
        raise InputError("Standard input is closed: give a file or a folder instead of '-', or send documents to it.")
    return sys.stdin.buffer


def printable(text: str) -> str:
    """Replace surrogates, which no encoding can write: bytes of names of files, damaged headers, PDF files."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def files_of(given: InputPath, on_problem: Callable[[str, str, str], None], *, alone: bool = True) -> Iterator[File]:
    """Yield the files of a path. Those of a folder and its subfolders come in a fixed order, without hidden files.

    If the path is not the only one (`alone=False`), the names of files in a folder start with the name of the folder.
    """
    if given.path is None:
        yield File(None, given.name)
    elif given.is_folder:
        yield from _walk(given.path, on_problem, "" if alone else given.name)
    else:
        try:
            yield File(given.path, given.name, size=given.path.stat().st_size)
        except OSError as error:
            on_problem("unreadable file", given.name, _reason(error))


def _walk(folder: Path, on_problem: Callable[[str, str, str], None], prefix: str) -> Iterator[File]:
    def unreadable(error: OSError) -> None:
        on_problem("unreadable folder", str(error.filename), _reason(error))

    above = _shared_depth(folder)
    for root, subfolders, names in os.walk(folder, onerror=unreadable):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        within = Path(root).relative_to(folder)
        for name in sorted(names):
            if name.startswith("."):
                continue
            path, shown = Path(root, name), printable(str(Path(prefix, within, name)))
            try:
                status = path.stat()
            except OSError as error:
                on_problem("unreadable file", shown, _reason(error))
                continue
            if stat.S_ISREG(status.st_mode):
                label = printable(within.parts[above]) if len(within.parts) > above else None
                yield File(path, shown, label, status.st_size)
            else:
                on_problem("unreadable file", shown, "it is not a regular file")


def _shared_depth(folder: Path) -> int:
    """Return the number of folders below this one that all files are in, such as 1 for news/news/sport of news."""
    depth = 0
    with suppress(OSError):  # the walk reports it
        while True:
            entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
            if len(entries) != 1 or not entries[0].is_dir(follow_symlinks=False):
                break
            folder, depth = Path(entries[0]), depth + 1
    return depth


@dataclass(frozen=True)
class Input:
    """One file as a reader sees it: bytes or text in pieces, and methods that report problems."""

    file: File
    settings: Settings
    current: ReadProgress
    content: bytes | None = None
    """All decompressed bytes of the file, if they are already in memory."""

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.file.name

    def problem(self, kind: str, what: str, line: int | None = None, times: int = 1) -> None:
        """Report something that could not be read."""
        where = self.name if line is None else f"{self.name}, line {line}"
        self.current.problems.add(kind, where, what, times)

    def note(self, what: str) -> None:
        """Say how the file is read."""
        self.current.notes[what] += 1

    def drop(self, why: str) -> None:
        """Count something that is skipped on purpose."""
        self.current.dropped[why] += 1

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file without decompressing it."""
        if self.file.path is None:
            yield standard_input()
            return
        with self.file.path.open("rb") as stream:
            yield stream

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes. Stop at damage, and report it as a problem."""
        if self.content is not None:
            yield self.content
            return
        try:
            with self.opened() as stream:
                raw = self._raw(stream)
                head = next(raw, b"")
                make = decompressor_of(head)
                everything = chain([head], raw)
                if make is None:
                    yield from everything
                else:
                    pieces = expand(everything, make, self.settings.limits)
                    yield from prefetch(pieces) if self.file.size > _WORTH_A_THREAD else pieces
        except DamagedStream as error:
            self.problem("damaged file", str(error))
        except Bomb as error:
            self.problem("refused file", str(error))
        except OSError as error:
            self.problem("unreadable file", error.strerror or str(error))

    def _raw(self, stream: IO[bytes]) -> Iterator[bytes]:
        while chunk := stream.read(_CHUNK):
            self.current.bytes_read += len(chunk)
            yield chunk

    def whole(self) -> bytes | None:
        """Return all decompressed bytes, or None and report a problem if the file exceeds the limit of a document."""
        pieces, size = [], 0
        for chunk in self.chunks():
            size += len(chunk)
            if size > self.settings.limits.document:
                self.problem("refused file", f"it is larger than {self.settings.limits.document} bytes")
                return None
            pieces.append(chunk)
        return b"".join(pieces)

    @contextmanager
    def seekable(self) -> Iterator[IO[bytes] | None]:
        """Open the file for random access; a compressed or piped file is read into memory (None if it is too large)."""
        if not self.is_plain():
            content = self.whole()
            yield None if content is None else io.BytesIO(content)
            return
        with self.opened() as stream:
            yield stream
        self.current.bytes_read += self.file.size

    def again(self) -> Input | None:
        """Return the file for a second pass, which reports nothing; None if it can be read only once."""
        if self.content is None and (self.file.path is None or not self.file.path.is_file()):
            return None
        return replace(self, current=ReadProgress())

    def is_plain(self) -> bool:
        """Return whether this is an uncompressed file on disk that can be opened."""
        path = self.file.path
        if path is None or not path.is_file():
            return False
        try:
            with path.open("rb") as stream:
                return decompressor_of(stream.read(8)) is None
        except OSError:
            return False

    def encoding_of(self, head: bytes) -> str | None:
        """Return the given or the detected encoding, or None and report a problem for a binary file."""
        if self.settings.encoding is not None:
            return with_byte_order(self.settings.encoding, head)
        for start, advice in _NOT_TEXT.items():
            if head.startswith(start):
                self.problem("binary file", advice)
                return None
        detected = detect(head)
        if detected is None:
            self.problem("binary file", f"it is not text; if it is, set {named('encoding')}")
            return None
        encoding, uncertain = detected
        if uncertain:
            self.problem(
                "guessed encoding", f"it is not UTF-8; read as {encoding}; set {named('encoding')} to choose another"
            )
        return encoding

    def line_blocks(self) -> Iterator[tuple[int, list[str]]]:
        """Yield lists of lines, each with the number of its first line. A binary file is reported as a problem."""
        chunks = self.chunks()
        head = b""
        for chunk in chunks:
            head += chunk
            if len(head) >= SAMPLE:
                break
        encoding = self.encoding_of(head)
        if encoding is None:
            return
        limit = self.settings.limits.document

        def bad_bytes(line: int, count: int) -> None:
            self.problem("undecodable bytes", f"bytes that are not {encoding} were replaced by U+FFFD", line, count)

        def too_long(line: int) -> None:
            self.problem("damaged row", f"it is longer than {limit} characters", line)

        yield from line_blocks(decode(chain([head], chunks), encoding, bad_bytes), limit, too_long)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each line of a text file."""
        for first, block in self.line_blocks():
            yield from enumerate(block, first)
