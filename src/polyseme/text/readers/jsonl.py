"""JSON lines, one object a line, and small JSON arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
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
    lines = source.lines()
    first = next((numbered for numbered in lines if not numbered[1].isspace()), None)
    if first is None:
        return
    array = first[1].lstrip().startswith("[")
    for number, row in _array(source, first[1], lines) if array else _parsed(source, chain([first], lines)):
        if isinstance(row, dict):
            yield number, row
        else:
            source.problem("damaged row", "it is not a JSON object with named values", number)


def _parsed(source: Input, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """The values of lines that are JSON, with the numbers of the lines."""
    for number, line in lines:
        try:
            row = _loaded(line)
        except (ValueError, RecursionError) as error:
            if line and not line.isspace():
                source.problem("damaged row", f"it is not JSON ({error})", number)
            continue
        yield number, row


def _array(source: Input, first: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """The values of one JSON array, which must fit in a document, with their own numbers."""
    pieces, size = [first], len(first)
    for _, line in lines:
        size += len(line)
        if size > source.settings.limits.document:
            source.problem("refused file", "it is one large JSON array: write each object on a line of its own")
            return
        pieces.append(line)
    try:
        rows = _loaded("".join(pieces))
    except (ValueError, RecursionError) as error:
        source.problem("damaged file", f"it is neither a JSON array nor JSON lines ({error})")
        return
    yield from enumerate(rows, 1)


def _loaded(content: str) -> Any:
    """The value; ValueError for what is not JSON, RecursionError for one that is nested too deeply."""
    value = json.loads(content)
    return _without_lone_surrogates(value) if _SURROGATE.search(content) else value


def _without_lone_surrogates(value: Any) -> Any:
    """JSON can spell half a character, which no encoding can write."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_lone_surrogates(name): _without_lone_surrogates(item) for name, item in value.items()}
    return [_without_lone_surrogates(item) for item in value] if isinstance(value, list) else value


def _document(source: Input, columns: Columns, number: int, row: dict[str, Any]) -> Document | None:
    try:
        return columns.document(row, number, source.name)
    except KeyError as error:
        source.problem("damaged row", f"it has no {error}", number)
    except RecursionError:
        source.problem("damaged row", "its values are nested too deeply", number)
    return None
