"""The one door: ``read`` finds out what the input is, and gives its documents one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from polyseme.errors import InputError
from polyseme.text.readers.documents import ColumnNames, Document, Limits, Problems
from polyseme.text.readers.documents import sample as sampled
from polyseme.text.readers.encodings import check_encoding
from polyseme.text.readers.html import read_html
from polyseme.text.readers.inputs import File, Input, Pass, Paths, Place, Settings, files_of, places
from polyseme.text.readers.isolation import ISOLATED, read_isolated
from polyseme.text.readers.office import read_docx, read_pdf
from polyseme.text.readers.tables import read_csv, read_jsonl, read_parquet, read_tsv
from polyseme.text.readers.text import read_file, read_lines
from polyseme.text.readers.wiki import read_wiki

FORMATS: dict[str, Callable[[Input], Iterator[Document]]] = {
    "files": read_file,
    "lines": read_lines,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "wiki": read_wiki,
    "pdf": read_pdf,
    "docx": read_docx,
    "html": read_html,
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
    ".xml": "wiki",
    ".pdf": "pdf",
    ".docx": "docx",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}


class Reader:
    """The documents of an input; made by ``read``.

    Iterating reads the files anew each time, a piece at a time. While it runs and afterwards, the reader tells about
    the pass that was begun last:

    documents : how many it has given.
    problems : what could not be read.
    dropped : how many documents were left out on purpose, by reason.
    bytes_read, total_bytes : for a progress bar, as on the disk; total_bytes is None where it cannot be known.
    """

    def __init__(
        self,
        inputs: list[Place],
        settings: Settings,
        format: str | None,
        choose: Callable[[Iterator[Document], Callable[[str], None]], Iterator[Document]],
    ) -> None:
        self._places = inputs
        self._settings = settings
        self._format = format
        self._choose = choose
        self._pass = Pass()
        self._used_up = False

    @property
    def documents(self) -> int:
        return self._pass.documents

    @property
    def problems(self) -> Problems:
        return self._pass.problems

    @property
    def dropped(self) -> Counter[str]:
        return self._pass.dropped

    @property
    def bytes_read(self) -> int:
        return self._pass.bytes_read

    @property
    def total_bytes(self) -> int | None:
        if not self._rereadable:
            return None
        return sum(file.size for place in self._places for file in files_of(place, lambda *_: None))

    @property
    def _rereadable(self) -> bool:
        return all(place.rereadable for place in self._places)

    def __iter__(self) -> Iterator[Document]:
        if self._used_up:
            raise InputError("Standard input and pipes can be read only once: save them to a file to read them again.")
        self._used_up = not self._rereadable
        self._pass = Pass()
        return self._documents(self._pass)

    def _documents(self, current: Pass) -> Iterator[Document]:
        def drop(why: str) -> None:
            current.dropped[why] += 1

        for document in self._choose(self._all(current), drop):
            current.documents += 1
            yield document
        if not current.documents:
            raise InputError(f"No documents were found in {self._named()}: {_reasons(current)}.")

    def _all(self, current: Pass) -> Iterator[Document]:
        alone = len(self._places) == 1
        for place in self._places:
            for file in files_of(place, current.problems.add, alone=alone):
                source, format = Input(file, self._settings, current), self._format_of(file, place)
                try:
                    yield from read_isolated(format, source) if format in ISOLATED else FORMATS[format](source)
                except InputError as error:
                    if self._is_alone(place):
                        raise
                    source.problem("refused file", str(error))

    def _format_of(self, file: File, place: Place) -> str:
        """By the suffix; a text file is a document, but one that is given alone holds a document a line."""
        if self._format is not None:
            return self._format
        return _BY_SUFFIX.get(file.suffix, "lines" if self._is_alone(place) or file.path is None else "files")

    def _is_alone(self, place: Place) -> bool:
        """Whether a file is all that there is to read."""
        return len(self._places) == 1 and not place.is_folder

    def _named(self) -> str:
        names = [place.name for place in self._places]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _reasons(current: Pass) -> str:
    found = [*(f"{kind} ({count})" for kind, count in current.dropped.items())]
    found += [f"{problem.kind}, {problem}" for problem in current.problems][:3]
    return "; ".join(found) or "there is nothing in it"


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
    seed: int = 0,
    uncategorized: bool = False,
    limits: Limits | None = None,
) -> Reader:
    """Documents from files, folders or standard input, one by one, in constant memory.

    Parameters
    ----------
    paths : a file, a folder (with its subfolders), "-" for standard input, or several of them. Files may be compressed
        (.gz, .bz2, .xz, .zst).
    format : a name of ``FORMATS`` for all files. None goes by the file names: .csv .tsv .jsonl .parquet are tables,
        .xml is a MediaWiki dump, .pdf .docx .html are documents. Any other file is text: one document, or one
        document a line where the file is given alone, as standard input is.
    text, id, title, label, time : columns of a table. None takes the well-known names, and for the text else the
        column whose values are clearly the longest; several text columns are joined.
    encoding : of text files; None detects it in each file.
    sample : so many documents, drawn at random in one pass. They are held in memory.
    categories : only documents with a label that holds one of these names, as whole words in any case; ``sample``
        then is of these.
    noise : with ``categories``, so many random other documents too.
    seed : of the random choices.
    uncategorized : whether to keep the articles of a dump that name no category themselves.
    limits : see ``Limits``.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"There is no format {format!r}: choose one of {', '.join(FORMATS)}.")
    for name, size in (("sample", sample), ("noise", noise)):
        if size is not None and size < 0:
            raise InputError(f"{name} must be a number of documents, not {size}.")
    if noise and categories is None:
        raise InputError("noise is the number of documents of other categories: name some with categories=.")
    if isinstance(categories, str):
        categories = [categories]
    if categories is not None and not (categories and all(name.strip() for name in categories)):
        raise InputError("categories= names no category: name one or more, or leave it out.")
    texts = (text,) if isinstance(text, str) else None if text is None else tuple(text)
    if texts == ():
        raise InputError("text= names no column: name one, or leave it out to have it chosen.")
    settings = Settings(
        columns=ColumnNames(texts, id, title, label, time),
        encoding=None if encoding is None else check_encoding(encoding),
        limits=limits or Limits(),
        uncategorized=uncategorized,
    )

    def choose(documents: Iterator[Document], drop: Callable[[str], None]) -> Iterator[Document]:
        return sampled(documents, sample, categories, noise, seed, drop)

    return Reader(places(paths), settings, format, choose)
