"""Tables as text: comma, semicolon, tab or bar between the values, a header first.

Python's own csv module reads them a line at a time, so that one damaged row costs that row alone.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from polyseme.text.readers.columns import SAMPLE_ROWS, choose_columns
from polyseme.text.readers.documents import Document
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
        self._source = source
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
        self._source.problem("damaged row", why, first)
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
