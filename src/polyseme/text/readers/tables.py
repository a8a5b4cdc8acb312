"""Tables as text: comma, semicolon, tab or bar between the values, a header first.

Python's own csv module reads them a line at a time, so that one damaged row costs that row alone.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice

from polyseme.text.readers.columns import SAMPLE_ROWS, choose_columns
from polyseme.text.readers.documents import Document
from polyseme.text.readers.inputs import Input

_SEPARATORS = ",;\t|"
_REREADING = 2**23
"""Characters that may be read again after damaged rows, beyond twice the characters of the file."""

NumberedLine = tuple[int, str]


def read_csv(source: Input) -> Iterator[Document]:
    """Each row as a document; a row with too many or too few values, or with an open quote, is a problem."""
    return _read(source, None)


def read_tsv(source: Input) -> Iterator[Document]:
    """The same with tabs."""
    return _read(source, "\t")


def _read(source: Input, separator: str | None) -> Iterator[Document]:
    lines = source.lines()
    header = next((line for line in lines if line[1].strip()), None)
    if header is None:
        return
    records = _Records(source, chain([header], lines), separator or _separator_of(header[1]))
    names = next((row for _, row in records), [])
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
    """The rows of a table, each with the number of its first line.

    A quote that is never closed swallows the lines after it. When such a row proves to be damaged, its first line is
    given up and the others are read again, at a bounded cost in all.
    """

    def __init__(self, source: Input, lines: Iterator[NumberedLine], separator: str) -> None:
        self.width: int | None = None
        self._source = source
        self._feed = _Feed(lines, source.settings.limits.document)
        self._separator = separator
        self._reread = 0
        if csv.field_size_limit() < source.settings.limits.document:  # one limit for the whole process: only raised
            csv.field_size_limit(source.settings.limits.document)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        rows = self._fresh()
        while True:
            self._feed.taken.clear()
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                rescued = self._give_up(str(error))
                rows = self._fresh()
                if rescued is not None:
                    yield rescued
                continue
            if not row:
                continue
            if self.width is None or len(row) == self.width:
                yield self._feed.taken[0][0], row
                continue
            rescued = self._give_up(f"it has {len(row)} values where the header has {self.width}")
            if self._feed.waiting:
                rows = self._fresh()
            if rescued is not None:
                yield rescued

    def _fresh(self) -> Iterator[list[str]]:
        return csv.reader(self._feed, delimiter=self._separator, strict=True)

    def _give_up(self, why: str) -> tuple[int, list[str]] | None:
        """Counts a damaged row and puts back the lines that it swallowed; a tabbed row may be whole without quotes."""
        (number, line), *swallowed = self._feed.taken
        size = sum(len(text) for _, text in swallowed)
        if self._reread + size <= _REREADING + 2 * self._feed.characters:
            self._reread += size
            self._feed.waiting.extendleft(reversed(swallowed))
        if self._separator == "\t" and self.width is not None:
            values = line.rstrip("\r\n").split("\t")
            if len(values) == self.width:
                return number, values
        self._source.problem("damaged row", why, number)
        return None


class _Feed:
    """Lines for the csv module, which remembers those of the row in hand."""

    def __init__(self, lines: Iterator[NumberedLine], longest: int) -> None:
        self.taken: list[NumberedLine] = []
        self.waiting: deque[NumberedLine] = deque()
        self.characters = 0
        self._lines = lines
        self._longest = longest
        self._size = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if self.waiting:
            line = self.waiting.popleft()
        else:
            number, text = next(self._lines)
            line = number, text + "\n"
            self.characters += len(text)
        self._size = len(line[1]) + (self._size if self.taken else 0)
        self.taken.append(line)
        if self._size > self._longest:
            raise csv.Error(f"it is longer than {self._longest} characters")
        return line[1]
