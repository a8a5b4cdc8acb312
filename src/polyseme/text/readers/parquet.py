"""Parquet tables, by polars, some thousand rows at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from polyseme.errors import MissingExtraError
from polyseme.text.readers.columns import SAMPLE_ROWS, choose_columns
from polyseme.text.readers.documents import Document
from polyseme.text.readers.inputs import Input

_BYTES_AT_A_TIME = 2**25
_FIRST_ROWS = 1000


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
        try:
            table = polars.scan_parquet(_scannable(source, stream), glob=False)
            names = table.collect_schema().names()
            total = table.select(polars.len()).collect().item()
            sample = table.head(SAMPLE_ROWS).collect().to_dicts()
        except damage as error:
            source.problem("damaged file", _first_line(error))
            return
        columns = choose_columns(source.settings.columns, sample, names, source.name)
        table = table.select(columns.names)
        start, size = 0, _FIRST_ROWS
        while start < total:
            try:
                rows = table.slice(start, size).collect()
            except damage as error:
                source.problem("damaged file", f"rows {start + 1} to {total} are lost: {_first_line(error)}")
                return
            for number, row in enumerate(rows.iter_rows(named=True), start + 1):
                yield columns.document(row, number, source.name)
            start += size
            size = max(1, int(_BYTES_AT_A_TIME / max(rows.estimated_size() / max(rows.height, 1), 1.0)))


def _scannable(source: Input, stream: Any) -> Any:
    return stream if isinstance(stream, io.BytesIO) else source.file.path


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
