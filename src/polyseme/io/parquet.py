"""Parquet files, read by polars in a child process.

A damaged Parquet file can make polars panic, or allocate so much memory that the process is aborted, which no exception
handler can prevent. In a child process, with limits on memory and time where the system supports them, this becomes an
ordinary error.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.spawn import get_executable
from pathlib import Path
from threading import Timer
from typing import Any

from polyseme.io.checks import check_regular

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
    if rows is None:
        frame = pl.read_parquet(path, columns=columns, glob=False)
    else:
        frame = slice_of(path, columns, *rows)
    length = 0
    for name, kind in frame.schema.items():
        if kind == pl.String:
            length += frame[name].str.len_bytes().cast(pl.UInt64).sum() or 0
        elif rows is not None and isinstance(kind, pl.List) and (kind.inner.is_numeric() or kind.inner == pl.Null):
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
_HEAD = 9
"""Bytes before an answer: F for a frame or E for an error, and its size."""
_SECONDS, _BYTES_PER_SECOND = 60.0, 1e6
"""Time limit to read a file: a constant, plus the size divided by a rate."""
_FIRST_ROWS, _MAX_ROWS, _BYTES_AT_A_TIME = 1000, 50_000, 2**25
"""Rows of the first slice of a file, most rows of a slice, and bytes of the later slices."""
_BYTES_PER_ROW, _MAX_BYTES, _MAX_RATIO = 8, 2**30, 200
"""Limit on the size of all slices of a file, with some bytes per row: a constant, or a ratio to the size of the file. A
small file may declare a billion empty rows."""


def read_frame(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return some columns of a Parquet file (None: all) as a polars frame. Raise OSError or ValueError."""
    with ParquetReader() as reader:
        return reader.read(path, columns)


def read_frames(paths: Iterable[Path], columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the frames of several files, read by one child process."""
    with ParquetReader() as reader:
        for path in paths:
            yield reader.read(path, columns)


class ParquetReader:
    """A child process that reads Parquet files while the block runs."""

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
        """Yield frames of consecutive rows, at least one, with the memory of one. Columns may have lists of numbers."""
        start, n_rows, total = 0, _FIRST_ROWS, 0
        while True:
            frame = self.read(path, columns, (start, n_rows))
            total += frame.estimated_size() + _BYTES_PER_ROW * frame.height
            if total > max(_MAX_BYTES, _MAX_RATIO * path.stat().st_size):
                raise ValueError("its values are too large for the size of the file")
            yield frame
            if frame.height < n_rows:
                return
            start += n_rows
            n_rows = min(max(1, _BYTES_AT_A_TIME * frame.height // max(frame.estimated_size(), 1)), _MAX_ROWS)

    def read(self, path: Path, columns: Sequence[str] | None, rows: tuple[int, int] | None = None) -> Any:
        """Return a frame. rows : the first row and the number of rows, or None for all."""
        import polars as pl

        check_regular(path)
        size = path.stat().st_size
        stop = Timer(_SECONDS + size / _BYTES_PER_SECOND, self._process.kill)
        stop.start()
        try:
            kind, content = self._answer([str(path.absolute()), size, None if columns is None else list(columns), rows])
        finally:
            stop.cancel()
        if kind == b"E":
            raise ValueError(content.decode("utf-8", "replace").partition("\n")[0])
        return pl.read_ipc(io.BytesIO(content))

    def _answer(self, request: list[Any]) -> tuple[bytes, bytes]:
        """Return the kind of the answer and its content."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        head, content, size = b"", b"", 0
        try:
            requests.write(json.dumps(request).encode() + b"\n")
            requests.flush()
            head = answers.read(_HEAD)
            size = int.from_bytes(head[1:], "little")
            content = answers.read(size)
        except BrokenPipeError:
            pass  # the child has ended
        if len(head) < _HEAD or len(content) < size:
            raise ValueError("reading it took too much memory or time, or stopped the reader")
        return head[:1], content
