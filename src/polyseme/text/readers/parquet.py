"""Parquet tables, by polars, some thousand rows at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

from polyseme.errors import MissingExtraError
from polyseme.text.readers.columns import SAMPLE_ROWS, choose_columns
from polyseme.text.readers.compressed import Bomb, check_expansion
from polyseme.text.readers.documents import Document
from polyseme.text.readers.inputs import Input

_BYTES_AT_A_TIME = 2**25
_FIRST_ROWS = 1000
_MOST_ROWS = 50_000
"""in a slice: rows may be much longer than those before them"""
_ROWS_AS_PYTHON = 512
_COST_OF_A_ROW = 8
"""Bytes, for the limits: a file of a few bytes may declare a billion rows without text."""


def read_parquet(source: Input) -> Iterator[Document]:
    """Each row as a document; of a damaged file, the rows before the damage.

    Slices of a lazy scan need less than half of the memory of polars' own batches, at nearly the same speed.
    """
    try:
        import polars
        from polars.exceptions import PanicException, PolarsError
    except ImportError:
        raise MissingExtraError("Reading Parquet files", "cli") from None

    damage = (PolarsError, PanicException, OSError)
    with source.seekable() as stream:
        if stream is None:
            return
        file_size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        try:
            table = polars.scan_parquet(_scannable(source, stream), glob=False)
            names = table.collect_schema().names()
            total = table.select(polars.len()).collect().item()
            sample = [row for _, row in _rows(source, table.head(SAMPLE_ROWS).collect(), 1, report=False)]
        except damage as error:
            source.problem("damaged file", _first_line(error))
            return
        columns = choose_columns(source.settings.columns, sample, names, source.name)
        table = table.select(columns.names)
        limits = source.settings.limits
        start, size, given = 0, _FIRST_ROWS, 0
        while start < total:
            try:
                rows = table.slice(start, size).collect()
            except damage as error:
                source.problem("damaged file", f"rows {start + 1} to {total} are lost: {_first_line(error)}")
                return
            if not rows.height:
                source.problem("damaged file", f"it declares {total} rows and has {start}")
                return
            for number, row in _rows(source, rows, start + 1):
                document = columns.document(row, number, source.name)
                length = _length(document)
                if length > limits.document:
                    source.problem("damaged row", f"it is longer than {limits.document} characters", number)
                    continue
                given += length + _COST_OF_A_ROW
                try:
                    check_expansion(file_size, given, limits)
                except Bomb as error:
                    source.problem("refused file", str(error))
                    return
                yield document
            start += rows.height
            bytes_of_a_row = max(rows.estimated_size() / rows.height, 1.0)
            size = min(max(1, int(_BYTES_AT_A_TIME / bytes_of_a_row)), _MOST_ROWS)


def _rows(source: Input, frame: Any, first: int, *, report: bool = True) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with their numbers, without those that Python has no values for: it has no dates beyond year 9999."""
    from polars.exceptions import PanicException

    unknown = (ValueError, OverflowError, PanicException)
    for part in frame.iter_slices(_ROWS_AS_PYTHON):
        try:
            rows = part.to_dicts()
        except unknown:
            rows = None
        for place in range(part.height):
            try:
                yield first + place, rows[place] if rows is not None else part.row(place, named=True)
            except unknown as error:
                if report:
                    source.problem("damaged row", _first_line(error), first + place)
        first += part.height


def _length(document: Document) -> int:
    """Characters of all its fields."""
    fields = (document.id, document.text, document.title or "", document.time or "", *document.labels)
    return sum(map(len, fields))


def _scannable(source: Input, stream: Any) -> Any:
    return stream if isinstance(stream, io.BytesIO) else source.file.path


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
