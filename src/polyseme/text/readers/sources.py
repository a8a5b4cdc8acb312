"""`open_source`: the documents of anything that users pass: paths, texts, documents, data frames.

Texts and rows without an id get their number as id, like the lines of a file. A run considers two documents with equal
`source` and `id` the same, and numbers start at 1 in every list, so the `source` of such a document is a digest of its
text: a different text is a different document, and the same list always has the same documents.

Data frames are recognized by the names of their types, because neither pandas nor polars is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from polyseme.errors import InputError, MissingExtraError
from polyseme.options import named
from polyseme.text.dates import DateOrder, iso_date
from polyseme.text.readers.inputs import (
    BAD_DATE,
    STANDARD_INPUT,
    ColumnNames,
    Document,
    File,
    Input,
    Limits,
    ReadProgress,
    Settings,
)
from polyseme.text.readers.reader import Reader, column_names, read
from polyseme.text.readers.sampling import choice
from polyseme.text.readers.tables import (
    SAMPLE_ROWS,
    TableColumns,
    announce,
    choose_columns,
    python_rows,
    replace_lone_surrogates,
    with_order,
)

_WHAT_TO_PASS = "pass a path, a list of paths, a list of texts, a data frame of pandas, polars or Arrow, or documents"
_MAX_NAME = 255
"""A longer string cannot be the name of a file."""
_SHOWN = 40
"""Number of characters of a text in a message."""
_ROWS_AT_A_TIME = 512
_FRAMES = {"DataFrame", "LazyFrame", "Table"}
"""Types of other libraries that are refused, because iterating some of them yields the names of the columns."""


def open_source(
    source: str | os.PathLike[str] | Iterable[Any],
    *,
    format: str | None = None,
    text: str | Sequence[str] | None = None,
    id: str | None = None,
    title: str | None = None,
    label: str | None = None,
    time: str | None = None,
    encoding: str | None = None,
    sample: int | None = None,
    categories: Sequence[str] | None = None,
    noise: int = 0,
    random_state: Any = 0,
    uncategorized: bool = False,
    limits: Limits | None = None,
) -> Reader:
    """Read documents from files or from data in memory.

    Each item of a list and each row of a data frame is one document, even if its text is missing (None or NaN) or
    empty, so that documents and rows have the same order. A source without any text raises InputError.

    Parameters
    ----------
    source : path, list of paths, texts, data frame or documents
        A str or path object is a file, a folder, or "-" for standard input; a list of path objects is several of them.
        An iterable of str (a list, a Series, an array, a generator) is texts. An iterable of `Document` is read as it
        is. Each row of a pandas or polars DataFrame, of a table of Arrow or of a Hugging Face Dataset is a document. A
        `Reader` is returned as it is.
    format : str, default=None
        Format of all files, as in `read`.
    text : str or list of str, default=None
        Text column of a table or data frame, or several columns to join. None uses well-known names, or the column
        whose values are clearly the longest.
    id : str, default=None
        Column of ids. None uses well-known names. Without such a column, ids are numbers from 1 on.
    title : str, default=None
        Column of titles. None uses well-known names.
    label : str, default=None
        Column of labels. None uses well-known names.
    time : str, default=None
        Column of times. None uses well-known names.
    encoding : str, default=None
        Encoding of text files. None detects it for each file.
    sample : int, default=None
        Number of documents to draw at random in one pass.
    categories : list of str, default=None
        Read only documents with a label that contains one of these names, as whole words, ignoring case.
    noise : int, default=0
        Number of random other documents in addition to those of `categories`.
    random_state : int, RandomState or Generator, default=0
        Seed of the random choices.
    uncategorized : bool, default=False
        Whether to read the articles of a MediaWiki dump that have no category.
    limits : Limits, default=None
        Limits for damaged and hostile files. None uses the defaults.

    Returns
    -------
    Reader
        An iterable over the documents.

    Examples
    --------
    >>> from polyseme.text import open_source
    >>> [document.text for document in open_source(["red fish", "blue fish"])]
    ['red fish', 'blue fish']
    """
    for_files: dict[str, Any] = {
        "format": format,
        "encoding": encoding,
        "uncategorized": uncategorized,
        "limits": limits,
    }
    for_tables: dict[str, Any] = {"text": text, "id": id, "title": title, "label": label, "time": time}
    for_samples: dict[str, Any] = {"sample": sample, "categories": categories, "noise": noise}
    if isinstance(source, Reader):
        _refuse(for_files | for_tables | for_samples, "a Reader", "pass it to the function that made the Reader")
        return source
    paths = _paths_of(source)
    if paths is not None:
        return read(paths, random_state=random_state, **for_files, **for_tables, **for_samples)
    choose = choice(sample, categories, noise, random_state)
    _refuse(for_files, "data in memory", "leave it out")
    kinds = _type_names(source)
    frame = _polars_frame(source, kinds)
    if frame is not None:
        return Reader(_frame_stream(frame, column_names(**for_tables)), choose)
    if kinds & {"pandas.DataFrame", "polars.DataFrame"}:
        return Reader(_frame_stream(source, column_names(**for_tables)), choose)
    items = source.to_pylist() if hasattr(source, "to_pylist") else _items_of(source, kinds)  # an array of Arrow
    _refuse(for_tables, "texts and documents", "leave it out, or pass a data frame")
    return Reader(_item_stream(items), choose)


def _polars_frame(source: Any, kinds: set[str]) -> Any:
    """Return a table of Arrow (its stream protocol) or a Hugging Face dataset as a polars frame; None for others."""
    of_arrow = hasattr(source, "__arrow_c_stream__") and "schema" in dir(type(source))
    if kinds & {"pandas.DataFrame", "polars.DataFrame"} or not (of_arrow or "datasets.Dataset" in kinds):
        return None
    try:
        import polars
    except ImportError:
        raise MissingExtraError(f"Reading a {type(source).__name__}", "cli") from None
    return polars.DataFrame(source) if of_arrow else source.to_polars()


def _refuse(options: Mapping[str, Any], source: str, advice: str) -> None:
    """Raise InputError if an option is set that has no meaning for a source."""
    for name, value in options.items():
        if value not in (None, False, 0):
            raise InputError(f"{named(name)} does not apply to {source}: {advice}.")


def _type_names(source: Any) -> set[str]:
    """Return the names of the classes of an object with their libraries, such as "pandas.DataFrame"."""
    return {f"{each.__module__.partition('.')[0]}.{each.__qualname__}" for each in type(source).__mro__}


def _is_of(value: Any, *libraries: str) -> bool:
    """Return whether a class of an object is defined in one of the libraries."""
    return any(name.startswith(tuple(f"{library}." for library in libraries)) for name in _type_names(value))


def _paths_of(source: Any) -> str | os.PathLike[str] | list[os.PathLike[str]] | None:
    """Return the paths that a source consists of, or None for data in memory."""
    if isinstance(source, str):
        _check_is_not_text(source)
        return source
    if isinstance(source, os.PathLike):
        return source
    if not isinstance(source, list | tuple) or isinstance(source, Document):
        return None
    paths = [item for item in source if isinstance(item, os.PathLike)]
    if not paths:
        return None
    if len(paths) < len(source):
        raise InputError(f"{len(paths)} of the {len(source)} items are paths: pass only paths, or only texts.")
    return paths


def _check_is_not_text(name: str) -> None:
    """Raise InputError if a string does not name a file and is probably a text."""
    looks_like_text = len(name) > _MAX_NAME or any(map(str.isspace, name))
    if looks_like_text and name != STANDARD_INPUT and not os.path.lexists(name):
        raise InputError(f"There is no file or folder {_shown(name)}; if it is a text, pass a list of texts.")


def _items_of(source: Any, kinds: set[str]) -> Iterable[Any]:
    """Return the source. Raises InputError if it is not an iterable over items in a fixed order."""
    name = type(source).__name__
    if isinstance(source, bytes | bytearray | memoryview):
        raise InputError(f"The source is {name}: decode it, and pass a list of texts.")
    if isinstance(source, Document):
        raise InputError("The source is one Document: pass a list of documents.")
    if isinstance(source, Mapping):
        if hasattr(source, "column_names"):  # the splits of a Hugging Face dataset
            raise InputError(f"The source is a {name}: pass one of its tables, source[{next(iter(source), '')!r}].")
        raise InputError(f"The source is a {name}: pass its texts, list(source.values()), or a data frame.")
    if isinstance(source, Set):
        raise InputError(f"The source is a {name}, which has no order: pass a sorted list.")
    if "polars.LazyFrame" in kinds:
        raise InputError("The source is a polars LazyFrame: pass source.collect().")
    if _FRAMES & {kind.rpartition(".")[2] for kind in kinds}:
        raise InputError(f"A {name} of {type(source).__module__} cannot be read: convert it to pandas or polars.")
    if ("numpy.ndarray" in kinds and source.ndim != 1) or _is_of(source, "scipy"):
        raise InputError(f"The source is a {name} with {source.ndim} dimensions: {_advice_for(source)}.")
    if not isinstance(source, Iterable):
        raise InputError(f"Documents cannot be read from {_article(name)}: {_WHAT_TO_PASS}.")
    if isinstance(source, Sized) and not len(source):
        raise InputError(f"The {name} is empty: {_WHAT_TO_PASS}.")
    return source


@dataclass(frozen=True)
class _MemoryStream:
    """Documents of data in memory."""

    kind: str
    names: list[str]
    rereadable: bool
    read: Callable[[ReadProgress], Iterator[Document]]

    @property
    def name(self) -> str:
        return f"the {self.kind}"

    @property
    def total_bytes(self) -> int:
        progress = ReadProgress()
        for _ in self.documents(progress):
            pass
        return progress.bytes_read

    def documents(self, progress: ReadProgress) -> Iterator[Document]:
        number, has_text = 0, False
        for document in map(_encodable, self.read(progress)):
            number += 1
            progress.bytes_read += len(document.text if document.text.isascii() else document.text.encode())
            has_text = has_text or bool(document.text and not document.text.isspace())
            yield document
        if not number and not self.rereadable:
            raise InputError(f"The {self.kind} yields nothing; if it was used before, make a new one.")
        if number and not has_text:
            raise InputError(f"All texts of {self.name} are empty ({number} documents): pass texts with words.")


def _item_stream(source: Iterable[Any]) -> _MemoryStream:
    """Return the documents of an iterable over texts or over documents."""
    if isinstance(source, Sized) and all(isinstance(item, str) and os.path.exists(item) for item in source):
        raise InputError(
            f"The items ({_shown(next(iter(source)))} ...) are names of files: pass pathlib.Path objects, "
            "or open the files and pass their texts."
        )
    kind = type(source).__name__
    described = f"{kind} of {len(source)}" if isinstance(source, Sized) else kind

    rereadable = not isinstance(source, Iterator)

    def documents(progress: ReadProgress) -> Iterator[Document]:
        order = DateOrder.of(item.time for item in source if isinstance(item, Document)) if rereadable else DateOrder()
        if order.note:
            progress.notes[f"Dates are {order.note}"] += 1
        for number, item in enumerate(source, 1):
            document = _item_document(item, number)
            date = iso_date(document.time, order) if document.time else None
            if document.time and date is None:
                progress.problems.add(BAD_DATE, f"item {number}", repr(document.time[:_SHOWN]))
            yield document if date is None else document._replace(time=date)

    return _MemoryStream(kind, [described], rereadable, documents)


def _item_document(item: Any, number: int) -> Document:
    """Return an item as a document. Raises InputError with its position if it is neither a text nor a document."""
    if isinstance(item, str):
        return _numbered(Document(str(number), str(item)))
    if isinstance(item, Document):
        _check_document(item, number)
        return item
    if _is_missing(item):
        return _numbered(Document(str(number), ""))
    raise InputError(f"Item {number} is {_article(type(item).__name__)}, not a text: {_advice_for(item)}.")


def _check_document(document: Document, number: int) -> None:
    """Raise InputError if a field has a type that files cannot have."""
    strings = {"id": document.id, "text": document.text, "source": document.source}
    optional = {"title": document.title, "time": document.time}
    strings |= {name: value for name, value in optional.items() if value is not None}
    for name, value in strings.items():
        if not isinstance(value, str):
            raise InputError(
                f"Item {number}: {name} of a Document must be a str, not {_article(type(value).__name__)}."
            )
    labels = document.labels
    if not isinstance(labels, tuple) or not all(isinstance(label, str) for label in labels):
        raise InputError(f"Item {number}: labels of a Document must be a tuple of str, not {labels!r}.")


def _numbered(document: Document) -> Document:
    """Return a document that has a number as id, with a digest of its text as source."""
    digest = blake2b(document.text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return document._replace(source=f"memory:{digest}")


def _encodable(document: Document) -> Document:
    """Return the document without lone surrogates, which no file can contain."""
    fields = list(document._replace(labels=()))
    try:
        for field in (*fields, *document.labels):
            if isinstance(field, str) and not field.isascii():
                field.encode()
    except UnicodeEncodeError:
        labels = tuple(replace_lone_surrogates(list(document.labels)))
        return Document(*replace_lone_surrogates(fields))._replace(labels=labels)
    return document


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    if value is None:
        return True
    if isinstance(value, float):
        return value != value
    return bool(_type_names(value) & {"pandas.NAType", "pandas.NaTType"})


def _advice_for(item: Any) -> str:
    """Return what to pass instead of an item or array of another type."""
    if isinstance(item, os.PathLike):
        return "put paths in a list"
    if isinstance(item, bytes | bytearray):
        return "decode it"
    if isinstance(item, list | tuple):
        return "pass each document as one str; ' '.join(item) joins words"
    if isinstance(item, Mapping):
        return "pass a data frame, or polyseme.text.Document objects"
    if _is_of(item, "numpy", "scipy"):
        return "pass texts; word counts are for the estimators, such as polyseme.PLSA().fit(counts)"
    return "pass texts (str) or polyseme.text.Document objects"


def _frame_stream(frame: Any, wanted: ColumnNames) -> _MemoryStream:
    """Return the documents of a pandas or polars frame."""
    is_pandas = "pandas.DataFrame" in _type_names(frame)
    names = [str(name) for name in frame.columns]
    all_rows = _pandas_rows if is_pandas else _polars_rows
    if not len(frame):
        raise InputError("The data frame has no rows: pass one with a row for each document.")
    sample = [row for _, row in all_rows(frame.head(SAMPLE_ROWS), names, ReadProgress())]
    columns = choose_columns(wanted, sample, names, "the data frame")
    for name in columns.names:
        if names.count(name) > 1:
            raise InputError(
                f"The data frame has {names.count(name)} columns {name!r}: rename them, or drop all but one."
            )

    def documents(progress: ReadProgress) -> Iterator[Document]:
        source = Input(File(None, "the data frame"), Settings(wanted), progress, b"")
        dated = with_order(source, columns, sample, lambda again: all_rows(frame, columns.names, again.current))
        announce(source, columns, sample, names)
        for number, row in all_rows(frame, columns.names, progress):
            yield _row_document(row, number, dated, source)

    library = "pandas" if is_pandas else "polars"
    described = f"{library} {type(frame).__name__} of {len(frame)}"
    return _MemoryStream("data frame", [described], True, documents)


def _row_document(row: Mapping[str, Any], number: int, columns: TableColumns, source: Input) -> Document:
    """Return a row as a document. Raises InputError if a text column has values that are not texts."""
    for name in columns.text:
        value = row[name]
        parts = value if isinstance(value, list) else [value]
        if not all(part is None or isinstance(part, str) for part in parts):
            raise InputError(
                f"Column {name!r} contains {_article(type(value).__name__)} in row {number}, not a text: "
                f"name a column of texts with {named('text')}, or convert this one."
            )
    document = columns.document(row, number, source)._replace(source="")
    return document if columns.id_of(row) else _numbered(document)


def _polars_rows(frame: Any, names: Sequence[str], progress: ReadProgress) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the named columns of each row, with its number."""

    def damaged_row(what: str, number: int) -> None:
        progress.problems.add("damaged row", f"row {number}", what)

    return python_rows(frame.select(list(names)), 1, damaged_row)


def _pandas_rows(frame: Any, names: Sequence[str], progress: ReadProgress) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the named columns of each row, with its number. The index is not used."""
    places = {str(name): place for place, name in enumerate(frame.columns)}
    for start in range(0, len(frame), _ROWS_AT_A_TIME):
        part = frame.iloc[start : start + _ROWS_AT_A_TIME]
        values = [map(_pandas_value, part.iloc[:, places[name]].tolist()) for name in names]
        for number, row in enumerate(zip(*values, strict=True), start + 1):
            yield number, dict(zip(names, row, strict=True))


def _pandas_value(value: Any) -> Any:
    """Return a value as polars gives it: None if it is missing, and a list for a tuple or an array."""
    if isinstance(value, str):
        return value
    if "numpy.ndarray" in _type_names(value):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [None if _is_missing(item) else item for item in value]
    return None if _is_missing(value) else value


def _article(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def _shown(text: str) -> str:
    text = str(text)  # NumPy shows its strings as np.str_(...)
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
