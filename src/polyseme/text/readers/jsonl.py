"""JSON lines: one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from polyseme.text.readers.columns import SAMPLE_ROWS, Columns, choose_columns
from polyseme.text.readers.documents import Document
from polyseme.text.readers.inputs import Input

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_jsonl(source: Input) -> Iterator[Document]:
    """Each object as a document; a line that is no JSON object, or that lacks the text, is a problem."""
    rows = _objects(source)
    sample = list(islice(rows, SAMPLE_ROWS))
    if not sample:
        return
    names = list(dict.fromkeys(name for _, row in sample for name in row))
    columns = choose_columns(source.settings.columns, [row for _, row in sample], names, source.name)
    for number, row in chain(sample, rows):
        document = _document(source, columns, number, row)
        if document is not None:
            yield document


def _objects(source: Input) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in source.lines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if line and not line.isspace():
                source.problem("damaged row", f"it is not JSON ({error})", number)
            continue
        if not isinstance(row, dict):
            source.problem("damaged row", "it is not a JSON object with named values", number)
            continue
        if _SURROGATE.search(line):
            row = {name: _without_lone_surrogates(value) for name, value in row.items()}
        yield number, row


def _without_lone_surrogates(value: Any) -> Any:
    """JSON can spell half a character, which no encoding can write."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return [_without_lone_surrogates(item) for item in value] if isinstance(value, list) else value


def _document(source: Input, columns: Columns, number: int, row: dict[str, Any]) -> Document | None:
    try:
        return columns.document(row, number, source.name)
    except KeyError as error:
        source.problem("damaged row", f"it has no {error}", number)
    except RecursionError:
        source.problem("damaged row", "its values are nested too deeply", number)
    return None
