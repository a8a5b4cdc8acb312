"""Parquet files, read by polars in a child process, and documents in them.

A damaged Parquet file can make polars panic, or allocate so much memory that the process is aborted, which no exception
handler can prevent. In a child process, with limits on memory and time where the system supports them, this becomes an
ordinary error.

`ParquetFiles` are documents in local or remote Parquet files, as input for shards. fsspec finds the files. A remote
file is copied to a private temporary file, so that every file is read by the child process, a few rows at a time.
"""

from __future__ import annotations

import copy
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.spawn import get_executable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError, MissingExtraError
from polyseme.io.files import check_regular
from polyseme.kernels import Array

_CHILD = """
import io, json, sys
sys.path[:] = json.loads(sys.argv[1])
import polars as pl
try:
    import resource
except ImportError:  # Windows
    resource = None

def limit(most):
    if resource is None:
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    except (ValueError, OSError):  # macOS refuses it
        pass

def slice_of(path, columns, start, n_rows):
    table = pl.scan_parquet(path, glob=False)
    names = table.collect_schema().names()
    missing = [name for name in columns if name not in names]
    if missing:
        raise ValueError(f"it has no column {missing[0]!r}, but {', '.join(map(repr, names[:20])) or 'none'}")
    return table.select(columns).slice(start, n_rows).collect()

def read(path, size, columns, rows):
    limit(2**32 + 64 * size)
    try:
        path.encode()
    except UnicodeEncodeError:  # polars takes no path with bytes that are not valid UTF-8
        path = open(path, "rb")
    frame = slice_of(path, columns, *rows)
    length = 0
    for name, kind in frame.schema.items():
        if kind == pl.String:
            length += frame[name].str.len_bytes().cast(pl.UInt64).sum() or 0
        elif isinstance(kind, pl.List) and (kind.inner.is_numeric() or kind.inner == pl.Null):
            length += 8 * (frame[name].list.len().cast(pl.UInt64).sum() or 0)
        elif not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
            raise ValueError(f"the column {name!r} is neither of texts nor of numbers")
    if length > max(2**30, 200 * size):
        raise ValueError("its values are too large for the size of the file")
    content = io.BytesIO()
    frame.write_ipc(content)
    return content.getvalue()

requests, answers = sys.stdin.buffer, sys.stdout.buffer
for line in requests:
    try:
        kind, content = b"F", read(*json.loads(line))
    except Exception as error:
        kind, content = b"E", str(error).encode("utf-8", "replace")
    except pl.exceptions.PanicException as error:
        kind, content = b"E", str(error).encode("utf-8", "replace")
    answers.write(kind + len(content).to_bytes(8, "little"))
    answers.write(content)
    answers.flush()
"""
_PATTERN = set("*?[")
"""Characters of a path that make it a pattern."""
_HEAD = 9
"""Bytes before an answer: F for a frame or E for an error, and its size."""
_SECONDS, _BYTES_PER_SECOND = 60.0, 1e6
"""Time limit to read a file: a constant, plus the size divided by a rate."""
_FIRST_ROWS, _MAX_ROWS, _BYTES_AT_A_TIME = 1000, 50_000, 2**25
"""Rows of the first slice of a file, largest number of rows of a slice, and bytes of the later slices."""
_BYTES_PER_ROW, _MAX_BYTES, _MAX_RATIO = 8, 2**30, 200
"""Limit on the size of all slices of a file, with some bytes per row: a constant, or a ratio to the size of the file. A
small file may declare a billion empty rows."""


class ParquetReader:
    """Child process that reads Parquet files inside a `with` block."""

    def __enter__(self) -> ParquetReader:
        environment = {"POLARS_MAX_THREADS": "4", **os.environ, "RUST_BACKTRACE": "0"}
        self._process = subprocess.Popen(
            [get_executable(), "-I", "-S", "-c", _CHILD, json.dumps([os.path.abspath(place) for place in sys.path])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # output of a panic
            env=environment,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def slices(self, path: Path, columns: Sequence[str]) -> Iterator[Any]:
        """Yield at least one frame of consecutive rows. Columns may have lists of numbers.

        The child process reads the next frame while the caller uses one.
        """
        start, n_rows, total = 0, _FIRST_ROWS, 0
        size = self._request(path, columns, (start, n_rows))
        while True:
            frame = self._frame(size)
            total += frame.estimated_size() + _BYTES_PER_ROW * frame.height
            if total > max(_MAX_BYTES, _MAX_RATIO * size):
                raise ValueError("its values are too large for the size of the file")
            if frame.height < n_rows:
                yield frame
                return
            start += n_rows
            n_rows = min(max(1, _BYTES_AT_A_TIME * frame.height // max(frame.estimated_size(), 1)), _MAX_ROWS)
            size = self._request(path, columns, (start, n_rows))
            yield frame

    def _request(self, path: Path, columns: Sequence[str], rows: tuple[int, int]) -> int:
        """Ask for some rows: the first row and the number of rows. Return the size of the file."""
        check_regular(path)
        size = path.stat().st_size
        requests = self._process.stdin
        assert requests is not None
        with suppress(BrokenPipeError):  # the child has ended, which its answer shows
            requests.write(json.dumps([str(path.absolute()), size, list(columns), rows]).encode() + b"\n")
            requests.flush()
        return size

    def _frame(self, size: int) -> Any:
        """Return the rows that were asked for. size : that of the file, which limits the time."""
        import polars as pl

        stop = Timer(_SECONDS + size / _BYTES_PER_SECOND, self._process.kill)
        stop.start()
        try:
            kind, content = self._answer()
        finally:
            stop.cancel()
        if kind == b"E":
            raise ValueError(content.decode("utf-8", "replace").partition("\n")[0])
        return pl.read_ipc(io.BytesIO(content))

    def _answer(self) -> tuple[bytes, bytes]:
        """Return the kind of the answer and its content."""
        answers = self._process.stdout
        assert answers is not None
        head = answers.read(_HEAD)
        size = int.from_bytes(head[1:], "little")
        content = answers.read(size)
        if len(head) < _HEAD or len(content) < size:
            raise ValueError("reading it took too much memory or time, or stopped the reader")
        return head[:1], content


class ParquetFiles:
    """Parquet files with one document per row, as the documents of `write_shards`.

    Iterating yields texts, or matrices with the counts of consecutive rows. A row without a text or without lists
    (null) is an empty document.

    Parameters
    ----------
    paths : str, PathLike or sequence of these
        Files, folders or patterns such as ``"s3://bucket/counts/*.parquet"``, with any protocol of fsspec. The files of
        a folder or pattern are read in the order of their names. Files and folders whose names start with ``_`` or
        ``.`` are skipped, as Spark does.
    text : str or None, default=None
        Column of texts, which a vectorizer counts.
    indices : str or None, default=None
        Column of lists of word indices, from 0. Used with `values`, instead of `text`.
    values : str or None, default=None
        Column of lists of counts, as long as those of `indices`.
    n_words : int or None, default=None
        Number of words for `indices`. None uses that of the vocabulary given to `write_shards`.
    storage_options : mapping or None, default=None
        Options of the file system, such as credentials, as in `fsspec.open`. Workers receive them, too.

    Examples
    --------
    >>> import polars
    >>> from polyseme.scale import ParquetFiles
    >>> polars.DataFrame({"text": ["red wine", "bass guitar"]}).write_parquet("texts.parquet")
    >>> list(ParquetFiles("texts.parquet", text="text"))
    ['red wine', 'bass guitar']
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        text: str | None = None,
        indices: str | None = None,
        values: str | None = None,
        n_words: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if (indices is None) != (values is None) or (text is None) == (indices is None):
            raise InputError("ParquetFiles: name a column of texts (text), or two columns of lists (indices, values).")
        if n_words is not None and (indices is None or n_words < 1):
            raise InputError(f"n_words must be at least 1 and needs the columns indices and values, got {n_words!r}.")
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given:
            raise InputError("ParquetFiles: give at least one path.")
        self.text, self.indices, self.values, self.n_words = text, indices, values, n_words
        self._files = [file for path in given for file in _find(os.fspath(path), dict(storage_options or {}))]
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InputError(f"paths: {twice} occurs twice: give every file once.")

    @property
    def names(self) -> list[str]:
        """The files in the order in which they are read."""
        return [file.name for file in self._files]

    def prepared(self, vectorizer: Any, vocabulary: Sequence[str] | None) -> ParquetFiles:
        """Return the files with the number of words. Raise InputError unless the columns can be counted.

        Parameters
        ----------
        vectorizer : Vectorizer or None
            Vectorizer, for a column of texts.
        vocabulary : sequence of str or None
            Words, for columns of lists.

        Returns
        -------
        ParquetFiles
            The same files.
        """
        if self.text is not None:
            if vectorizer is None:
                raise InputError(f"A vectorizer must count the texts of the column {self.text!r}: give vectorizer=.")
            return self
        if vectorizer is not None:
            raise InputError("A vectorizer counts texts: name a column of texts, or leave vectorizer out.")
        if self.n_words is None and vocabulary is None:
            raise InputError("The number of words is not known: give ParquetFiles(..., n_words=...) or a vocabulary.")
        n_words = self.n_words if vocabulary is None else len(vocabulary)
        if self.n_words not in (None, n_words):
            raise InputError(f"vocabulary has {n_words} words, but n_words is {self.n_words}.")
        prepared = copy.copy(self)
        prepared.n_words = n_words
        return prepared

    def split(self) -> list[ParquetFiles]:
        """Return one object for each file.

        Returns
        -------
        list of ParquetFiles
            The files, in the order in which they are read.
        """
        parts = [copy.copy(self) for _ in self._files]
        for part, file in zip(parts, self._files, strict=True):
            part._files = [file]
        return parts

    def __iter__(self) -> Iterator[Any]:
        try:
            import polars  # noqa: F401
        except ImportError:
            raise MissingExtraError("Reading Parquet files", "text") from None
        with ParquetReader() as reader:
            for file in self._files:
                for frame in self._frames(reader, file):
                    if self.text is not None:
                        yield from _texts(frame[self.text], file.name)
                    elif frame.height:
                        yield self._counts(frame, file.name)

    def _frames(self, reader: ParquetReader, file: _ParquetFile) -> Iterator[Any]:
        columns = [name for name in (self.text, self.indices, self.values) if name is not None]
        with file.local_path() as path:
            try:
                yield from reader.slices(path, columns)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"{file.name} cannot be read ({_first_line(error)}): write it again, or leave it out."
                ) from None

    def _counts(self, frame: Any, name: str) -> sp.csr_array:
        """Return the counts of some rows. Raise InputError with the file if they are not valid."""
        assert self.indices is not None
        assert self.values is not None
        if self.n_words is None:
            raise InputError("The number of words is not known: give ParquetFiles(..., n_words=...).")
        lengths, indices = _flat(frame[self.indices], name)
        others, values = _flat(frame[self.values], name)
        if not np.array_equal(lengths, others):
            raise InputError(f"{name}: the lists of {self.indices!r} and {self.values!r} must have the same lengths.")
        if indices.dtype.kind not in "iu":
            raise InputError(f"{name}: the column {self.indices!r} must have lists of whole numbers.")
        if indices.size and not (indices.min() >= 0 and indices.max() < self.n_words):
            wrong = indices.min() if indices.min() < 0 else indices.max()
            raise InputError(
                f"{name}: the column {self.indices!r} must have numbers from 0 to {self.n_words - 1}, got {wrong}."
            )
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError(f"{name}: the column {self.values!r} must have finite and non-negative numbers.")
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return sp.csr_array((values, indices.astype(np.int64), starts), (frame.height, self.n_words))


class _ParquetFile(NamedTuple):
    """A file of an fsspec file system."""

    system: Any
    path: str

    @property
    def is_local(self) -> bool:
        from fsspec.implementations.local import LocalFileSystem

        return isinstance(self.system, LocalFileSystem)

    @property
    def name(self) -> str:
        return self.path if self.is_local else str(self.system.unstrip_protocol(self.path))

    @contextmanager
    def local_path(self) -> Iterator[Path]:
        """Yield the path of the file, or of a private copy that is removed at the end of the block."""
        if self.is_local:
            yield Path(self.path)
            return
        with TemporaryDirectory(prefix="polyseme-") as folder:
            copied = Path(folder, "copy.parquet")
            try:
                self.system.get_file(self.path, str(copied))
            except Exception as error:  # every file system has its own classes of errors
                raise InputError(f"{self.name} cannot be copied ({_first_line(error)}).") from error
            yield copied


def _find(path: str, options: dict[str, Any]) -> list[_ParquetFile]:
    """Return the files of a path, folder or pattern in the order of their names."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("Finding Parquet files", "dask") from None
    try:
        system, root = url_to_fs(path, **options)
        parts = root.rstrip("/").split("/")
        if system.exists(root):
            n_given, files = len(parts), system.find(root)
        else:
            n_given = next((i for i, part in enumerate(parts) if _PATTERN & set(part)), len(parts))
            files = {name for match in system.glob(root) for name in system.find(match)}
    except Exception as error:  # every file system has its own classes of errors
        raise InputError(f"{path!r} cannot be listed ({_first_line(error)}).") from error
    names = sorted(name for name in files if not any(map(_is_hidden, name.split("/")[n_given:])))
    if not names:
        raise InputError(f"No Parquet file matches {path!r}: give a file, a folder or a pattern.")
    return [_ParquetFile(system, name) for name in names]


def _is_hidden(name: str) -> bool:
    """Return whether Spark ignores a file or folder; _name=value is a partition."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _texts(column: Any, name: str) -> Iterable[str]:
    import polars as pl

    if column.dtype not in (pl.String, pl.Null):
        raise InputError(f"{name}: the column {column.name!r} must have texts.")
    return list(column.cast(pl.String).fill_null(""))


def _flat(column: Any, name: str) -> tuple[Array, Array]:
    """Return the lengths of the lists of a column, and their numbers one after the other."""
    import polars as pl

    if not isinstance(column.dtype, pl.List | pl.Null):
        raise InputError(f"{name}: the column {column.name!r} must have lists of numbers.")
    if column.dtype in (pl.Null, pl.List(pl.Null)):  # all lists are empty, or missing, or have missing numbers
        column = column.cast(pl.List(pl.Int64))
    lengths = column.list.len().fill_null(0).to_numpy()
    numbers = column.filter(column.list.len() > 0).explode()
    if numbers.null_count():
        raise InputError(f"{name}: a list of the column {column.name!r} has a missing number.")
    if not (numbers.dtype.is_integer() or numbers.dtype.is_float()):
        raise InputError(f"{name}: the column {column.name!r} must have lists of integers or floating-point numbers.")
    return lengths, numbers.to_numpy()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".")
