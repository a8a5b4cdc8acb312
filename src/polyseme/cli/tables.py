"""Tables that commands write: CSV, Parquet, JSON lines and Excel files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from polyseme.errors import InputError, MissingExtraError

FORMATS = ("csv", "parquet", "jsonl", "xlsx")
TABLE_HELP = "File to write: .csv, .parquet, .jsonl or .xlsx."


def check_table(path: Path) -> str:
    """Return the format of a table by the name of its file. Raise InputError for another one."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(f"--output: {path} must end with .csv, .parquet, .jsonl or .xlsx.")
    return kind


def encode_table(frame: Any, kind: str) -> bytes:
    """Return a polars frame as the content of a file. Texts that a spreadsheet would read as formulas are quoted."""
    import polars as pl

    from polyseme.runs.tables import escape_formula

    if kind == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in frame.iter_rows(named=True)).encode()
    content = io.BytesIO()
    if kind == "parquet":
        frame.write_parquet(content)
        return content.getvalue()
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    frame = frame.with_columns(pl.col(name).map_elements(escape_formula, return_dtype=pl.String) for name in texts)
    if kind == "csv":
        frame.write_csv(content)
        return content.getvalue()
    try:
        frame.write_excel(content)
    except ModuleNotFoundError:
        raise MissingExtraError("A table in .xlsx", "report") from None
    return content.getvalue()
