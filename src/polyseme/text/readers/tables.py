"""Readers of tables: CSV and TSV, JSON Lines, Parquet, and spreadsheets.

CSV and TSV files have a header and are read with Python's csv module, line by line, so that a damaged row does not
affect the rows after it. JSON Lines files have one object per line; a small JSON array is read as well. Parquet files
are read with polars, some thousand rows at a time, spreadsheets with calamine. `choose_columns` finds
the columns of text, ids, titles, labels and times in all of them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from polyseme.errors import InputError, MissingExtraError
from polyseme.options import named
from polyseme.text.dates import DateOrder, date_in_any_order, iso_date, looks_like_date
from polyseme.text.readers.decoding import Bomb, check_expansion
from polyseme.text.readers.inputs import BAD_DATE, ColumnNames, Document, Input, printable

_SEPARATORS = ",;\t|"
_MAX_FIELD = 2**31 - 1
"""Largest field size that the csv module accepts on every machine."""

_REREAD_CHARACTERS = 2**23
"""Characters that may be read again after damaged rows, in addition to twice the characters of the file."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_BYTES_AT_A_TIME = 2**25
_FIRST_ROWS = 1000
_MAX_ROWS = 50_000
"""Largest number of Parquet rows that are read at once, because rows may be much longer than earlier rows."""
_ROWS_AS_PYTHON = 512
_COST_OF_A_ROW = 8
"""Bytes that count for the limits in addition to the text, because a small file may declare a billion empty rows."""

SAMPLE_ROWS = 100
"""Number of rows that the choice of a text column uses."""

# Well-known column names, the preferred ones first.
_TEXT = ("text", "body", "content", "contents", "document", "abstract", "article", "message", "review", "comment")
_ID = ("id", "_id", "doc_id", "docid", "document_id", "uuid")
_TITLE = ("title", "headline", "subject")
_LABEL = ("label", "labels", "category", "categories", "class", "group", "section", "genre")
_TIME = ("time", "date", "datetime", "timestamp", "created_at", "published", "year")
_TIME_WORDS = frozenset({*_TIME, "created", "posted", "day", "month", "datum", "fecha", "pubdate"})
"""Words in the names of columns of dates, such as "Date of review"."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MIN_NAMED, _MIN_UNNAMED = 0.5, 0.9
"""Smallest share of dates in a column whose name has such a word, and in any other column of dates."""

_MAX_SHOWN = 60
"""Number of characters of a value in a message."""
_MIN_TEXT_LENGTH = 20
_MIN_SPACES = 3
"""Smallest mean number of spaces in the values of a column of texts."""
_MIN_LENGTH_RATIO = 2.0
"""The text column must be at least this many times as long as the second longest column."""


def read_csv(source: Input) -> Iterator[Document]:
    """Yield each row as a document. A row with a wrong number of values or an open quote is reported as a problem."""
    return _read_rows(source, None)


def read_tsv(source: Input) -> Iterator[Document]:
    """Yield each row of a tab-separated file as a document."""
    return _read_rows(source, "\t")


def _read_rows(source: Input, separator: str | None) -> Iterator[Document]:
    names, rows = _named_rows(source, separator)
    if not names:
        return
    sample = list(islice(rows, SAMPLE_ROWS))
    columns = columns_of(source, [row for _, row in sample], names, lambda again: _named_rows(again, separator)[1])
    announce(source, columns, [row for _, row in sample], names)
    for number, row in chain(sample, rows):
        yield columns.document(row, number, source)


def _named_rows(source: Input, separator: str | None) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the names of the columns, and the rows with the numbers of their lines."""
    parser = _RowParser(source, separator)
    names = [name.strip() for name in next(iter(parser), (0, []))[1]]
    parser.width = len(names)
    return names, ((number, dict(zip(names, row, strict=True))) for number, row in parser)


class _RowParser:
    """Parser of a CSV file: yields rows with the numbers of their first lines, and reports damaged rows.

    A row is damaged if it does not have `width` values. A quote that is never closed turns the lines after it into one
    row. After such a damaged row only its first line is skipped, and the other lines are read again, up to a limit on
    the characters that are read twice.
    """

    def __init__(self, source: Input, separator: str | None) -> None:
        self.width: int | None = None
        self._source = source
        self._separator = separator
        self._lines = _LineBuffer(source.line_blocks(), source.settings.limits.document)
        self._reread = 0
        max_field = min(source.settings.limits.document, _MAX_FIELD)
        if csv.field_size_limit() < max_field:  # the limit is global, so it is never lowered
            csv.field_size_limit(max_field)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        lines = self._lines
        rows, before = self._restart()
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                rescued = self._skip_damaged(before + rows.line_num, str(error))
                rows, before = self._restart()
                if rescued is not None:
                    yield rescued
                continue
            first, lines.row_start = lines.row_start, before + rows.line_num + 1
            if len(row) == self.width or (self.width is None and row):
                yield first, row
            elif row:
                lines.row_start = first
                last = before + rows.line_num
                rescued = self._skip_damaged(last, f"it has {len(row)} values, the header {self.width}")
                if lines.row_start <= last:
                    rows, before = self._restart()
                if rescued is not None:
                    yield rescued

    def _restart(self) -> tuple[Any, int]:
        """Return a new csv reader that starts at the current row, and the number of lines before that."""
        lines = self._lines.from_row_start()
        if self._separator is None:
            head = list(islice(lines, 10))
            header = next((line for line in head if line.strip()), "")
            self._separator = max(_SEPARATORS, key=header.count)  # of ties, the first one
            lines = chain(head, lines)
        return csv.reader(lines, delimiter=self._separator, strict=True), self._lines.row_start - 1

    def _skip_damaged(self, last: int, why: str) -> tuple[int, list[str]] | None:
        """Report the current row, which ends at line `last`, and continue after its first line if the limit allows.

        In tab-separated files a quote character may be ordinary text: if the first line has the right number of values
        without regard to quotes, it is returned as a row.
        """
        lines = self._lines
        first = lines.row_start
        line, *others = lines.between(first, last)
        lines.row_start = last + 1
        size = sum(map(len, others))
        if self._reread + size <= _REREAD_CHARACTERS + 2 * lines.characters:
            self._reread += size
            lines.row_start = first + 1
        if self._separator == "\t" and self.width is not None:
            values = line.rstrip("\r\n").split("\t")
            if len(values) == self.width:
                return first, values
        self._source.problem("damaged row", why, first)
        return None


class _LineBuffer:
    """Lines for the csv module. The lines of the current row are stored, so that they can be read again."""

    def __init__(self, blocks: Iterator[tuple[int, list[str]]], max_length: int) -> None:
        self.row_start = 1
        """Number of the first line of the current row."""
        self.characters = 0
        """Number of characters that have been read from the file."""
        self._unread = blocks
        self._max_length = max_length
        self._blocks: deque[_Block] = deque()

    def from_row_start(self) -> Iterator[str]:
        """Yield the lines from the start of the current row on."""
        return chain.from_iterable(self._lists())

    def between(self, first: int, last: int) -> list[str]:
        """Return the stored lines from number `first` to number `last`."""
        lines: list[str] = []
        for block in self._blocks:
            if block.first > last:
                break
            lines += block.lines[max(first - block.first, 0) : max(last + 1 - block.first, 0)]
        return lines

    def _lists(self) -> Iterator[list[str]]:
        for block in list(self._blocks):
            self._drop_old_blocks()
            yield block.lines[max(self.row_start - block.first, 0) :]
        for first, lines in self._unread:
            self._drop_old_blocks()
            too_long = self._is_too_long(first)
            self._blocks.append(_Block(first, lines, sum(map(len, lines))))
            self.characters += self._blocks[-1].characters
            if too_long:
                raise csv.Error(f"it is longer than {self._max_length} characters")
            yield lines

    def _is_too_long(self, end: int) -> bool:
        """Return whether the current row, up to the line before `end`, exceeds the limit of a document."""
        if sum(block.characters for block in self._blocks) <= self._max_length:
            return False
        return sum(map(len, self.between(self.row_start, end - 1))) > self._max_length

    def _drop_old_blocks(self) -> None:
        """Drop blocks that end before the current row."""
        while self._blocks and self._blocks[0].first + len(self._blocks[0].lines) <= self.row_start:
            self._blocks.popleft()


class _Block(NamedTuple):
    """Some lines of the file; `first` is the number of the first one."""

    first: int
    lines: list[str]
    characters: int


def read_jsonl(source: Input) -> Iterator[Document]:
    """Yield each object as a document. A line that is not a JSON object, or has no text, is reported as a problem."""
    rows = _json_objects(source)
    sample = list(islice(rows, SAMPLE_ROWS))
    if not sample:
        return
    names = list(dict.fromkeys(name for _, row in sample for name in row))
    columns = columns_of(source, [row for _, row in sample], names, _json_objects)
    announce(source, columns, [row for _, row in sample], names)
    for number, row in chain(sample, rows):
        document = _json_document(source, columns, number, row)
        if document is not None:
            yield document


def _json_objects(source: Input) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects with the numbers of their lines, or with their positions in an array."""
    lines = source.lines()
    first = next((numbered for numbered in lines if not numbered[1].isspace()), None)
    if first is None:
        return
    is_array = first[1].lstrip().startswith("[")
    for number, row in _json_array(source, first[1], lines) if is_array else _json_lines(source, chain([first], lines)):
        if isinstance(row, dict):
            yield number, row
        else:
            source.problem("damaged row", "it is not a JSON object with named values", number)


def _json_lines(source: Input, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """Yield the values of lines that are valid JSON, with the numbers of the lines."""
    for number, line in lines:
        try:
            row = _parse_json(line)
        except (ValueError, RecursionError) as error:
            if line and not line.isspace():
                source.problem("damaged row", f"it is not JSON ({error})", number)
            continue
        yield number, row


def _json_array(source: Input, first: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """Yield the values of one JSON array with their positions. The array may not exceed the limit of a document."""
    pieces, size = [first], len(first)
    for _, line in lines:
        size += len(line)
        if size > source.settings.limits.document:
            source.problem("refused file", "it is one large JSON array: write each object on its own line")
            return
        pieces.append(line)
    try:
        rows = _parse_json("".join(pieces))
    except (ValueError, RecursionError) as error:
        source.problem("damaged file", f"it is neither a JSON array nor JSON lines ({error})")
        return
    yield from enumerate(rows, 1)


def _parse_json(content: str) -> Any:
    """Return the value. Raises ValueError for invalid JSON, RecursionError for JSON that is nested too deeply."""
    value = json.loads(content)
    return replace_lone_surrogates(value) if _SURROGATE.search(content) else value


def replace_lone_surrogates(value: Any) -> Any:
    """Replace surrogates without a partner, which JSON and Python can express but no encoding can write, by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {replace_lone_surrogates(name): replace_lone_surrogates(item) for name, item in value.items()}
    return [replace_lone_surrogates(item) for item in value] if isinstance(value, list) else value


def _json_document(source: Input, columns: TableColumns, number: int, row: dict[str, Any]) -> Document | None:
    """Return an object as a document, or None and report a problem."""
    try:
        return columns.document(row, number, source)
    except KeyError as error:
        source.problem("damaged row", f"it has no {error}", number)
    except RecursionError:
        source.problem("damaged row", "its values are nested too deeply", number)
    return None


def read_parquet(source: Input) -> Iterator[Document]:
    """Yield each row as a document; in a damaged file, the rows before the damage.

    Slices of a lazy scan need less than half of the memory of the batches of polars, at nearly the same speed.
    """
    try:
        import polars
        from polars.exceptions import PanicException, PolarsError
    except ImportError:
        raise MissingExtraError("Reading Parquet files", "text") from None

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
            sample = [row for _, row in python_rows(table.head(SAMPLE_ROWS).collect())]
        except damage as error:
            source.problem("damaged file", _first_line(error))
            return

        def dates(again: Input) -> Iterator[tuple[int, dict[str, Any]]]:
            for start in range(0, total, _MAX_ROWS):
                yield from python_rows(table.select(columns.time).slice(start, _MAX_ROWS).collect(), start + 1)

        columns = choose_columns(source.settings.columns, sample, names, source.name)
        with suppress(*damage):  # reported when the rows are read
            columns = with_order(source, columns, sample, dates)
        announce(source, columns, sample, names)
        table = table.select(columns.names)
        limits = source.settings.limits
        start, size, expanded = 0, _FIRST_ROWS, 0

        def damaged_row(what: str, number: int) -> None:
            source.problem("damaged row", what, number)

        while start < total:
            try:
                rows = table.slice(start, size).collect()
            except damage as error:
                source.problem("damaged file", f"rows {start + 1} to {total} cannot be read: {_first_line(error)}")
                return
            if not rows.height:
                source.problem("damaged file", f"it declares {total} rows and has {start}")
                return
            for number, row in python_rows(rows, start + 1, damaged_row):
                document = columns.document(row, number, source)
                length = _length(document)
                if length > limits.document:
                    source.problem("damaged row", f"it is longer than {limits.document} characters", number)
                    continue
                expanded += length + _COST_OF_A_ROW
                try:
                    check_expansion(file_size, expanded, limits)
                except Bomb as error:
                    source.problem("refused file", str(error))
                    return
                yield document
            start += rows.height
            bytes_of_a_row = max(rows.estimated_size() / rows.height, 1.0)
            size = min(max(1, int(_BYTES_AT_A_TIME / bytes_of_a_row)), _MAX_ROWS)


def read_spreadsheet(source: Input) -> Iterator[Document]:
    """Yield each row of the first sheet that is not empty; its first row that has more than one value is the header."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise MissingExtraError("Reading spreadsheets", "text") from None

    with source.seekable() as stream:
        if stream is None:
            return
        try:
            _check_archive(stream, source)
            book = CalamineWorkbook.from_filelike(stream)
            sheets = ((name, book.get_sheet_by_name(name)) for name in book.sheet_names)
            name, sheet = next(((name, sheet) for name, sheet in sheets if sheet.height), ("", None))
            if sheet is None:
                source.drop("empty file")
                return
            others = [other for other in book.sheet_names if other != name]
            rows = enumerate(sheet.to_python(skip_empty_area=False), 1)
        except Bomb as error:
            source.problem("refused file", str(error))
            return
        except (CalamineError, ValueError, OverflowError, zipfile.BadZipFile) as error:
            source.problem("damaged file", f"it is not a spreadsheet that can be read ({_first_line(error)})")
            return
    if others:
        source.note(f"Only the sheet {name!r} is read, not {_listed(others)}")
    header = next((row for _, row in rows if sum(map(_has_value, row)) > 1), None)
    if header is None:
        source.problem("damaged file", "it has no table: no row has more than one value")
        return
    names = _unique_names(header)
    table = [
        (number, dict(zip(names, map(_cell_value, row), strict=False)))
        for number, row in rows
        if any(map(_has_value, row))
    ]
    sample = [row for _, row in table[:SAMPLE_ROWS]]
    columns = columns_of(source, sample, names, lambda again: table)
    announce(source, columns, sample, names)
    for number, row in table:
        document = columns.document(row, number, source)
        if _length(document) > source.settings.limits.document:
            source.problem("damaged row", f"it is longer than {source.settings.limits.document} characters", number)
        else:
            yield document


def _check_archive(stream: IO[bytes], source: Input) -> None:
    """Raise Bomb if the parts of a zip archive, by their declared sizes, exceed the limits. Other files pass."""
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as archive:
            parts = archive.infolist()
            size = sum(part.compress_size for part in parts)
            check_expansion(size, sum(part.file_size for part in parts), source.settings.limits)
    stream.seek(0)


def _has_value(value: Any) -> bool:
    return value is not None and value != ""


def _unique_names(header: Sequence[Any]) -> list[str]:
    """Return the names of columns; those without a name get their number, and equal ones a number after the name."""
    names: list[str] = []
    for number, value in enumerate(header, 1):
        name = _as_text(_cell_value(value)).strip() or f"column {number}"
        names.append(f"{name} ({number})" if name in names else name)
    return names


def _cell_value(value: Any) -> Any:
    """Return whole numbers, which spreadsheets store as floats, as integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def python_rows(
    frame: Any, first: int = 1, on_problem: Callable[[str, int], None] = lambda what, number: None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a polars frame with their numbers.

    A row that Python cannot represent, such as one with a date after 9999, is skipped, and `on_problem` is called with
    the reason and its number.
    """
    from polars.exceptions import PanicException

    not_representable = (ValueError, OverflowError, PanicException)
    for part in frame.iter_slices(_ROWS_AS_PYTHON):
        try:
            rows = part.to_dicts()
        except not_representable:
            rows = None
        for place in range(part.height):
            try:
                yield first + place, rows[place] if rows is not None else part.row(place, named=True)
            except not_representable as error:
                on_problem(_first_line(error), first + place)
        first += part.height


def _length(document: Document) -> int:
    """Return the number of characters in all fields."""
    fields = (document.id, document.text, document.title or "", document.time or "", *document.labels)
    return sum(map(len, fields))


def _scannable(source: Input, stream: Any) -> Any:
    """Return the path of a file on disk, which polars can map if it is valid Unicode, or the stream."""
    path = str(source.file.path)
    return stream if isinstance(stream, io.BytesIO) or path != printable(path) else path


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


@dataclass(frozen=True)
class TableColumns:
    """The columns of one table that are read. Several text columns are joined."""

    text: tuple[str, ...]
    id: str | None
    title: str | None
    label: str | None
    time: str | None
    order: DateOrder | None = None

    def document(self, row: Mapping[str, Any], number: int, source: Input) -> Document:
        """Return a row as a document. Raises KeyError if a text column is missing."""
        texts = [_as_text(row[name]) for name in self.text]
        time = _as_text(row.get(self.time)).strip() if self.time else ""
        date = iso_date(time, self.order)
        if time and date is None:
            source.problem(BAD_DATE, f"{time[:_MAX_SHOWN]!r} in column {self.time!r}", number)
        return Document(
            id=self.id_of(row) or str(number),
            text=texts[0] if len(texts) == 1 else "\n\n".join(filter(None, texts)),
            title=(_as_text(row.get(self.title)) or None) if self.title else None,
            labels=_as_labels(row.get(self.label)) if self.label else (),
            time=date or time or None,
            source=source.name,
        )

    def id_of(self, row: Mapping[str, Any]) -> str:
        """Return the value of the id column; an empty string if there is none."""
        return _as_text(row.get(self.id)) if self.id else ""

    @property
    def names(self) -> list[str]:
        """The names of all columns, without repetitions. A name may be empty."""
        used = (*self.text, self.id, self.title, self.label, self.time)
        return list(dict.fromkeys(name for name in used if name is not None))


def columns_of(
    source: Input,
    sample: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    rows: Callable[[Input], Iterable[tuple[int, Mapping[str, Any]]]],
) -> TableColumns:
    """Return the columns of a file to read. `rows` reads all rows again, if dates require it."""
    return with_order(source, choose_columns(source.settings.columns, sample, names, source.name), sample, rows)


def announce(source: Input, columns: TableColumns, sample: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Say which columns are read as what and which are ignored, and offer other columns with texts."""
    roles = {
        "text": columns.text,
        "id": columns.id,
        "title": columns.title,
        "label": columns.label,
        "time": columns.time,
    }
    read = [
        f"{role} {_listed([name] if isinstance(name, str) else name)}"
        for role, name in roles.items()
        if name is not None
    ]
    ignored = [name for name in names if name not in columns.names]
    note = f"Columns: {', '.join(read)}; ignored: {_listed(ignored) if ignored else 'none'}"
    others = [name for name in _text_columns(sample, names) if name in ignored]
    if others and source.settings.columns.text is None:
        note += f". Texts are also in {_listed(others)}: {named('text')} chooses a column or joins several"
    source.note(note)


def _text_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the columns whose values have several words, on average."""
    lengths = _mean_lengths(rows, names)
    spaces = {name: sum(_as_text(row.get(name)).count(" ") for row in rows) / max(len(rows), 1) for name in names}
    return [name for name in names if lengths[name] >= _MIN_TEXT_LENGTH and spaces[name] >= _MIN_SPACES]


def with_order(
    source: Input,
    columns: TableColumns,
    sample: Sequence[Mapping[str, Any]],
    rows: Callable[[Input], Iterable[tuple[int, Mapping[str, Any]]]],
) -> TableColumns:
    """Decide the order of day and month in the column of dates: from all rows if the file can be read again."""
    name = columns.time
    if name is None:
        return columns
    order = DateOrder.of(_as_text(row.get(name)) for row in sample)
    if not order.note:
        return columns
    again = source.again()
    if again is not None:
        order = DateOrder.of(_as_text(row.get(name)) for _, row in rows(again))
    source.note(f"Dates in column {name!r} are {order.note}")
    return replace(columns, order=order)


def choose_columns(
    wanted: ColumnNames, rows: Sequence[Mapping[str, Any]], names: Sequence[str], where: str
) -> TableColumns:
    """Return the columns to read: the ones that the user named, or the ones with well-known names.

    If no name of a text column is known, the sample of rows must have one column with clearly the longest values.
    """
    by_folded = {name.strip().casefold(): name for name in reversed(names)}

    def find(given: str | None, known: Sequence[str]) -> str | None:
        if given is not None:
            if given not in names:
                raise InputError(f"There is no column {given!r} in {where}: it has {_listed(names)}.")
            return given
        return next((by_folded[name] for name in known if name in by_folded), None)

    if wanted.text is not None:
        text = tuple(name for given in wanted.text if (name := find(given, ())))
    else:
        text = (find(None, _TEXT) or _longest_column(rows, names, where),)
    columns = TableColumns(
        text=text,
        id=find(wanted.id, _ID),
        title=find(wanted.title, _TITLE),
        label=find(wanted.label, _LABEL),
        time=find(wanted.time, ()),
    )
    if wanted.time is not None:
        return columns
    known = [by_folded[name] for name in _TIME if name in by_folded]
    return replace(columns, time=_time_column(rows, [name for name in names if name not in columns.names], known))


def _time_column(rows: Sequence[Mapping[str, Any]], names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return a column of dates by its name or by its values. `known` are the columns with well-known names."""

    def share(name: str, is_date: Callable[[Any], Any]) -> float:
        values = [value for row in rows if _as_text(value := row.get(name)).strip()]
        return sum(bool(is_date(value)) for value in values) / max(len(values), 1)

    known = [name for name in known if name in names]
    named = [name for name in names if name not in known and _TIME_WORDS & set(map(str.lower, _WORDS.findall(name)))]
    shares = {name: share(name, date_in_any_order) for name in (*known, *named)}
    best = max(shares, key=shares.__getitem__, default=None)
    if best is not None and shares[best] >= _MIN_NAMED:
        return best
    return next((name for name in names if share(name, looks_like_date) >= _MIN_UNNAMED), known[0] if known else None)


def _longest_column(rows: Sequence[Mapping[str, Any]], names: Sequence[str], where: str) -> str:
    """Return the column whose values are clearly longer than those of all other columns."""
    if len(names) == 1:
        return names[0]
    lengths = _mean_lengths(rows, names)
    ranked = sorted(names, key=lengths.__getitem__, reverse=True)
    if (
        not ranked
        or lengths[ranked[0]] < _MIN_TEXT_LENGTH
        or lengths[ranked[0]] < _MIN_LENGTH_RATIO * lengths[ranked[1]]
    ):
        texts = _text_columns(rows, names)
        join = f"; those with texts, {_listed(texts)}, can be joined" if len(texts) > 1 else ""
        raise InputError(
            f"It is not clear which column of {where} contains the text: name it with {named('text')}; it has "
            f"{_listed(names)}{join}."
        )
    return ranked[0]


def _mean_lengths(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, float]:
    """Return the mean length of the strings in each column."""
    return {
        name: sum(len(value) for row in rows if isinstance(value := row.get(name), str)) / max(len(rows), 1)
        for name in names
    }


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:50]) for name in names[:20])
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "no columns"


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(map(_as_text, value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _as_labels(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(filter(None, map(_as_text, values)))
