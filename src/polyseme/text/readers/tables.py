"""Tables as text: comma, semicolon, tab or bar between the values, a header first.

Python's own csv module reads them a line at a time, so that one damaged row costs that row alone.

JSON lines, one object a line, and small JSON arrays.

Parquet tables, by polars, some thousand rows at a time.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from polyseme.errors import MissingExtraError
from polyseme.text.readers.compressed import Bomb, check_expansion
from polyseme.text.readers.documents import SAMPLE_ROWS, Columns, Document, choose_columns
from polyseme.text.readers.inputs import Input

_SEPARATORS = ",;\t|"
_LARGEST_FIELD = 2**31 - 1
"""That the csv module can be told on every machine."""

_REREADING = 2**23
"""Characters that may be read again after damaged rows, beyond twice the characters of the file."""


def read_csv(source: Input) -> Iterator[Document]:
    """Each row as a document; a row with too many or too few values, or with an open quote, is a problem."""
    return _read(source, None)


def read_tsv(source: Input) -> Iterator[Document]:
    """The same with tabs."""
    return _read(source, "\t")


def _read(source: Input, separator: str | None) -> Iterator[Document]:
    records = _Records(source, separator)
    names = next(iter(records), (0, []))[1]
    if not names:
        return
    names = [name.strip() for name in names]
    records.width = len(names)
    rows = ((number, dict(zip(names, row, strict=True))) for number, row in records)
    sample = list(islice(rows, SAMPLE_ROWS))
    columns = choose_columns(source.settings.columns, [row for _, row in sample], names, source.name)
    for number, row in chain(sample, rows):
        yield columns.document(row, number, source.name)


def _separator_of(header: str) -> str:
    """The separator that the header has most of; the first one wins a draw."""
    return max(_SEPARATORS, key=header.count)


class _Records:
    """The rows of a table, each with the number of its first line; those that do not have ``width`` values are damaged.

    A quote that is never closed swallows the lines after it. When such a row proves to be damaged, its first line is
    given up and the others are read again, at a bounded cost in all.
    """

    def __init__(self, source: Input, separator: str | None) -> None:
        self.width: int | None = None
        self._corpus = source
        self._separator = separator
        self._feed = _Feed(source.line_blocks(), source.settings.limits.document)
        self._reread = 0
        longest = min(source.settings.limits.document, _LARGEST_FIELD)
        if csv.field_size_limit() < longest:  # one limit for the whole process: only raised
            csv.field_size_limit(longest)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        feed = self._feed
        rows, before = self._restart()
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                rescued = self._give_up(before + rows.line_num, str(error))
                rows, before = self._restart()
                if rescued is not None:
                    yield rescued
                continue
            first, feed.record = feed.record, before + rows.line_num + 1
            if len(row) == self.width or (self.width is None and row):
                yield first, row
            elif row:
                feed.record = first
                rescued = self._give_up(before + rows.line_num, f"it has {len(row)} values, the header {self.width}")
                if feed.record <= before + rows.line_num:
                    rows, before = self._restart()
                if rescued is not None:
                    yield rescued

    def _restart(self) -> tuple[Any, int]:
        """A new parser from the record in hand on, and the number of lines before it."""
        lines = self._feed.lines()
        if self._separator is None:
            head = list(islice(lines, 10))
            self._separator = _separator_of(next((line for line in head if line.strip()), ""))
            lines = chain(head, lines)
        return csv.reader(lines, delimiter=self._separator, strict=True), self._feed.record - 1

    def _give_up(self, last: int, why: str) -> tuple[int, list[str]] | None:
        """Counts a damaged row and goes back to the line after its first, where that is not too much work in all.

        A row with tabs may be whole where quotes are but letters.
        """
        feed = self._feed
        first = feed.record
        line, *swallowed = feed.kept(first, last)
        feed.record = last + 1
        size = sum(map(len, swallowed))
        if self._reread + size <= _REREADING + 2 * feed.characters:
            self._reread += size
            feed.record = first + 1
        if self._separator == "\t" and self.width is not None:
            values = line.rstrip("\r\n").split("\t")
            if len(values) == self.width:
                return first, values
        self._corpus.problem("damaged row", why, first)
        return None


class _Feed:
    """Lines for the csv module; those from the record in hand on are kept, to be read again.

    record : the number of the first line of the record in hand.
    characters : how many have been read from the file.
    """

    def __init__(self, blocks: Iterator[tuple[int, list[str]]], longest: int) -> None:
        self.record = 1
        self.characters = 0
        self._blocks = blocks
        self._longest = longest
        self._kept: deque[_Block] = deque()

    def lines(self) -> Iterator[str]:
        """From the record in hand on."""
        return chain.from_iterable(self._lists())

    def kept(self, first: int, last: int) -> list[str]:
        """The lines from number ``first`` to number ``last``."""
        lines: list[str] = []
        for block in self._kept:
            if block.first > last:
                break
            lines += block.lines[max(first - block.first, 0) : max(last + 1 - block.first, 0)]
        return lines

    def _lists(self) -> Iterator[list[str]]:
        for block in list(self._kept):
            self._let_go()
            yield block.lines[max(self.record - block.first, 0) :]
        for first, lines in self._blocks:
            self._let_go()
            too_long = self._is_too_long(first)
            self._kept.append(_Block(first, lines, sum(map(len, lines))))
            self.characters += self._kept[-1].characters
            if too_long:
                raise csv.Error(f"it is longer than {self._longest} characters")
            yield lines

    def _is_too_long(self, end: int) -> bool:
        """Whether the record in hand, before line ``end``, is longer than a document may be."""
        if sum(block.characters for block in self._kept) <= self._longest:
            return False
        return sum(map(len, self.kept(self.record, end - 1))) > self._longest

    def _let_go(self) -> None:
        """Forgets the lines before the record in hand."""
        while self._kept and self._kept[0].first + len(self._kept[0].lines) <= self.record:
            self._kept.popleft()


class _Block(NamedTuple):
    """Some lines of the file, from number ``first`` on."""

    first: int
    lines: list[str]
    characters: int


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
