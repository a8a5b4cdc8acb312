"""`read`: the documents of files, all or a random sample. The format of each file is detected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from polyseme.errors import InputError
from polyseme.options import named
from polyseme.text.encoded import without_encoded
from polyseme.text.readers.decoding import check_encoding
from polyseme.text.readers.html import read_html
from polyseme.text.readers.inputs import (
    STANDARD_INPUT,
    ColumnNames,
    Document,
    File,
    Input,
    InputPath,
    Limits,
    Paths,
    Problems,
    ReadProgress,
    Settings,
    files_of,
    places,
)
from polyseme.text.readers.isolation import ISOLATED, read_isolated
from polyseme.text.readers.mail import read_eml, read_mbox
from polyseme.text.readers.office import read_docx
from polyseme.text.readers.pdf import read_pdf
from polyseme.text.readers.sampling import Choose, choice
from polyseme.text.readers.tables import (
    read_csv,
    read_jsonl,
    read_parquet,
    read_spreadsheet,
    read_tsv,
)
from polyseme.text.readers.text import read_file, read_lines
from polyseme.text.readers.wiki import read_wiki

FORMATS: dict[str, Callable[[Input], Iterator[Document]]] = {
    "files": read_file,
    "lines": read_lines,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "spreadsheet": read_spreadsheet,
    "wiki": read_wiki,
    "pdf": read_pdf,
    "docx": read_docx,
    "html": read_html,
    "eml": read_eml,
    "mbox": read_mbox,
}

_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "spreadsheet",
    ".xlsm": "spreadsheet",
    ".xls": "spreadsheet",
    ".ods": "spreadsheet",
    ".xml": "wiki",
    ".pdf": "pdf",
    ".docx": "docx",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".eml": "eml",
    ".mbox": "mbox",
    ".mbx": "mbox",
}


def read(
    paths: Paths,
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
    """Read documents from files, folders or standard input, one by one, in constant memory.

    Parameters
    ----------
    paths : str, path or list of them
        A file, a folder (with its subfolders), "-" for standard input, or several of them. Files may be compressed
        (.gz, .bz2, .xz, .zst).
    format : str, default=None
        A name of `polyseme.text.readers.FORMATS` for all files. None uses the suffix of each file: .csv, .tsv, .jsonl,
        .parquet, .xlsx and .ods are tables, .xml is a MediaWiki dump, .pdf, .docx and .html are documents, .eml and
        .mbox are e-mail. Any other file is text. It is one document, or, if the file is the only input or standard
        input, has one document per line.
    text : str or list of str, default=None
        Text column of a table, or several columns to join. None uses well-known names, or the column whose values are
        clearly the longest.
    id : str, default=None
        Column of ids. None uses well-known names.
    title : str, default=None
        Column of titles. None uses well-known names.
    label : str, default=None
        Column of labels. None uses well-known names.
    time : str, default=None
        Column of times. None uses well-known names.
    encoding : str, default=None
        Encoding of text files. None detects it for each file.
    sample : int, default=None
        Number of documents to draw at random in one pass. They are stored in memory.
    categories : list of str, default=None
        Read only documents with a label that contains one of these names, as whole words, ignoring case. `sample`
        applies to these documents.
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
    >>> from pathlib import Path
    >>> from polyseme.text import read
    >>> folder = Path("letters")
    >>> folder.mkdir()
    >>> for name, text in {"a.txt": "Dear Ann", "b.txt": "Dear Bob"}.items():
    ...     size = (folder / name).write_text(text)
    >>> [(document.id, document.text) for document in read(folder)]
    [('a.txt', 'Dear Ann'), ('b.txt', 'Dear Bob')]
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"There is no format {format!r}: choose one of {', '.join(FORMATS)}.")
    choose = choice(sample, categories, noise, random_state)
    settings = Settings(
        columns=column_names(text, id, title, label, time),
        encoding=None if encoding is None else check_encoding(encoding),
        limits=limits or Limits(),
        uncategorized=uncategorized,
    )
    return Reader(_Files(places(paths), settings, format), choose)


def column_names(
    text: str | Sequence[str] | None, id: str | None, title: str | None, label: str | None, time: str | None
) -> ColumnNames:
    """Return the columns that the user named. Raises InputError for a name that is not a string."""
    texts = None if text is None else (text,) if isinstance(text, str) else tuple(text)
    if texts == ():
        raise InputError(f"{named('text')} names no column: name one, or leave it out to have it chosen.")
    for option, name in (
        *(("text", name) for name in texts or ()),
        ("id", id),
        ("title", title),
        ("label", label),
        ("time", time),
    ):
        if name is not None and not isinstance(name, str):
            raise InputError(f"{named(option)} must be the name of a column, not {name!r}.")
    return ColumnNames(texts, id, title, label, time)


class DocumentStream(Protocol):
    """The documents of an input, before a sample is drawn: files, or data in memory."""

    @property
    def name(self) -> str:
        """Name of the input in messages."""

    @property
    def names(self) -> list[str]:
        """The inputs as a run records them."""

    @property
    def rereadable(self) -> bool:
        """Whether the documents can be read more than once."""

    @property
    def total_bytes(self) -> int | None:
        """Size of the input in bytes, None if it is unknown."""

    def documents(self, progress: ReadProgress) -> Iterator[Document]:
        """Yield all documents; count bytes, problems and dropped documents in `progress`."""


class Reader:
    """The documents of an input, as an iterable. Use `read` or `open_source` to construct it.

    Each iteration reads the input again. The properties describe the iteration that was started last, also while it
    runs.

    Parameters
    ----------
    stream : DocumentStream
        All documents of the input.
    choose : callable
        Function from all documents to the chosen ones.
    """

    def __init__(self, stream: DocumentStream, choose: Choose) -> None:
        self._stream = stream
        self._choose = choose
        self._progress = ReadProgress()
        self._used_up = False

    @property
    def names(self) -> list[str]:
        """The paths as they were given, or a short description of data in memory."""
        return self._stream.names

    @property
    def rereadable(self) -> bool:
        """Whether the documents can be read more than once: not from standard input, a pipe or a generator."""
        return self._stream.rereadable

    @property
    def documents(self) -> int:
        """Number of documents that were yielded."""
        return self._progress.documents

    @property
    def problems(self) -> Problems:
        """What could not be read."""
        return self._progress.problems

    @property
    def notes(self) -> Counter[str]:
        """Sentences about how files were read, such as the order of day and month; each with its number of files."""
        return self._progress.notes

    @property
    def dropped(self) -> Counter[str]:
        """Number of documents that were skipped on purpose, by reason."""
        return self._progress.dropped

    @property
    def encoded(self) -> tuple[int, int]:
        """Number of documents with parts that were left out as encoded files, and characters of these parts."""
        return self._progress.encoded_documents, self._progress.encoded_characters

    @property
    def bytes_read(self) -> int:
        """Number of bytes that were read from disk, before decompression; of data in memory, the texts in UTF-8."""
        return self._progress.bytes_read

    @property
    def total_bytes(self) -> int | None:
        """Value of `bytes_read` after all documents; None for standard input, pipes and generators."""
        return self._stream.total_bytes if self.rereadable else None

    def __iter__(self) -> Iterator[Document]:
        if self._used_up:
            raise InputError(
                "Standard input, pipes and generators can be read only once: use a file or a list to read them again."
            )
        self._used_up = not self.rereadable
        self._progress = ReadProgress()
        return self._chosen_documents(self._progress)

    def _chosen_documents(self, progress: ReadProgress) -> Iterator[Document]:
        def on_drop(why: str) -> None:
            progress.dropped[why] += 1

        for document in self._choose(self._stream.documents(progress), on_drop):
            text = without_encoded(document.text)
            if text != document.text:
                progress.encoded_documents += 1
                progress.encoded_characters += len(document.text) - len(text)
                document = document._replace(text=text)
            progress.documents += 1
            yield document
        if not progress.documents:
            raise InputError(f"No documents were found in {self._stream.name}: {_why_empty(progress)}.")


@dataclass(frozen=True)
class _Files:
    """The documents of files, folders and standard input."""

    paths: list[InputPath]
    settings: Settings
    format: str | None
    """Format of all files. None uses their suffixes."""

    @property
    def name(self) -> str:
        names = [path.name for path in self.paths]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    @property
    def names(self) -> list[str]:
        return [STANDARD_INPUT if path.path is None else path.name for path in self.paths]

    @property
    def rereadable(self) -> bool:
        return all(path.rereadable for path in self.paths)

    @property
    def total_bytes(self) -> int:
        return sum(file.size for path in self.paths for file in files_of(path, lambda *_: None))

    def documents(self, progress: ReadProgress) -> Iterator[Document]:
        alone = len(self.paths) == 1
        for path in self.paths:
            for file in files_of(path, progress.problems.add, alone=alone):
                source, format = Input(file, self.settings, progress), self._format_of(file, path)
                try:
                    yield from read_isolated(format, source) if format in ISOLATED else FORMATS[format](source)
                except InputError as error:
                    if self._is_only_file(path):
                        raise
                    source.problem("refused file", str(error))

    def _format_of(self, file: File, path: InputPath) -> str:
        """Return the format by the suffix; a text file has one document per line if it is the only input."""
        if self.format is not None:
            return self.format
        return _BY_SUFFIX.get(file.suffix, "lines" if self._is_only_file(path) or file.path is None else "files")

    def _is_only_file(self, path: InputPath) -> bool:
        return len(self.paths) == 1 and not path.is_folder


def _why_empty(progress: ReadProgress) -> str:
    """Return the reasons why there are no documents, for a message."""
    reasons = [f"{kind} ({count})" for kind, count in progress.dropped.items()]
    reasons += [f"{problem.kind}, {problem}" for problem in progress.problems][:3]
    return "; ".join(reasons) or "there is nothing in it"
