"""What all readers share: documents, limits, problems, random samples, and the choice of table columns."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyseme.errors import InputError

MAX_EXAMPLES = 10
"""Number of problems of one kind that are stored with their descriptions; further ones are only counted."""

REMARKS = frozenset({"guessed encoding", "undecodable bytes"})
"""Kinds of problems of files that were read nevertheless."""

SAMPLE_ROWS = 100
"""Number of rows that the choice of a text column uses."""

_MAX_DESCRIPTION_LENGTH = 300

# Well-known column names, the preferred ones first.
_TEXT = ("text", "body", "content", "contents", "document", "abstract", "article", "message", "review", "comment")
_ID = ("id", "_id", "doc_id", "docid", "document_id", "uuid")
_TITLE = ("title", "headline", "subject")
_LABEL = ("label", "labels", "category", "categories", "class")
_TIME = ("time", "date", "datetime", "timestamp", "created_at", "published", "year")

_MIN_TEXT_LENGTH = 20
_MIN_LENGTH_RATIO = 2.0
"""The text column must be at least this many times as long as the second longest column."""


class Document(NamedTuple):
    """One document of a corpus.

    Attributes
    ----------
    id : str
        Identifier that is unique within its file: the id column, the number of the page or line, or the relative path.
    text : str
        The text.
    title : str or None
        The title.
    labels : tuple of str
        Categories of a wiki page, values of a label column, or the subfolder of a file.
    time : str or None
        The time as written in the file; dates of a typed table in ISO format.
    source : str
        Name of the file.
    """

    id: str
    text: str
    title: str | None = None
    labels: tuple[str, ...] = ()
    time: str | None = None
    source: str = ""

    @property
    def label(self) -> str | None:
        """The first label, or None."""
        return self.labels[0] if self.labels else None


@dataclass(frozen=True)
class Limits:
    """Limits for damaged and hostile files. What exceeds a limit is reported among the problems of the reader.

    Parameters
    ----------
    document : int, default=2**26
        Largest size of one document, row or page, in bytes or, after decoding, characters.
    ratio : float, default=250.0
        Largest ratio between the decompressed and the compressed size of a file, once 64 MiB are decompressed.
    expanded : int, default=2**40
        Largest decompressed size of a file, in bytes.
    memory : int, default=2**31
        Memory, in bytes, that the child process may use for one PDF, Word, HTML or Parquet file. There is no limit on
        Windows.
    seconds : float, default=300.0
        Time that the child process may use for one document, or for the next rows of a table.
    """

    document: int = 64 * 2**20
    ratio: float = 250.0
    expanded: int = 2**40
    memory: int = 2 * 2**30
    seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("document", "ratio", "expanded", "memory", "seconds"):
            if not getattr(self, name) > 0:
                raise InputError(f"Limits: {name} must be above 0, not {getattr(self, name)!r}.")


class Problem(NamedTuple):
    """One thing that could not be read.

    Attributes
    ----------
    kind : str
        Kind of the problem, such as "damaged row".
    where : str
        Name of the file, with the number of the line if it is known.
    what : str
        Description.
    """

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Problems:
    """Problems of one pass over the input: counts by kind, and the first few of each kind with descriptions.

    `len(problems)` is the number of all problems. Iterating yields those that are stored with a description.

    Attributes
    ----------
    counts : Counter
        Number of problems of each kind.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[Problem]] = {}

    @classmethod
    def of(cls, counts: Mapping[str, int], examples: Iterable[Problem]) -> Problems:
        """Construct the object from counts and examples.

        Parameters
        ----------
        counts : mapping
            Number of problems of each kind.
        examples : iterable of Problem
            Problems with descriptions.

        Returns
        -------
        Problems
            The problems.
        """
        problems = cls()
        for problem in examples:
            problems.add(*problem, times=0)
        problems.counts = Counter(counts)
        return problems

    def add(self, kind: str, where: str, what: str, times: int = 1) -> None:
        """Add a problem.

        Parameters
        ----------
        kind : str
            Kind of the problem, such as "damaged row".
        where : str
            Name of the file, with the number of the line if it is known.
        what : str
            Description.
        times : int, default=1
            How often it occurred.
        """
        self.counts[kind] += times
        examples = self._examples.setdefault(kind, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(Problem(kind, where, what[:_MAX_DESCRIPTION_LENGTH]))

    def merge(self, other: Problems) -> None:
        """Add the problems of another object.

        Parameters
        ----------
        other : Problems
            The problems to add.
        """
        for problem in other:
            self.add(*problem, times=0)
        self.counts.update(other.counts)

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Problem]:
        return (problem for examples in self._examples.values() for problem in examples)

    def __str__(self) -> str:
        lines = []
        for kind, count in self.counts.items():
            examples = self._examples.get(kind, [])
            more = " ..." if count > len(examples) else ""
            lines.append(f"{kind} ({count}): " + "; ".join(map(str, examples)) + more)
        return "\n".join(lines) or "no problems"

    def __repr__(self) -> str:
        return f"<Problems {dict(self.counts)}>"


def sample_documents(
    documents: Iterable[Document],
    size: int | None,
    categories: Sequence[str] | None,
    noise: int,
    seed: int,
    on_drop: Callable[[str], None],
) -> Iterator[Document]:
    """Yield `size` random documents of the categories, and `noise` random other documents, in the order of the input.

    `categories=None` means all documents. `on_drop` is called with the reason for each document that is not chosen.
    """
    if size is None and categories is None:
        yield from documents
        return
    belongs = _category_filter(categories)
    chosen, others = _Reservoir(size, f"chosen {seed}"), _Reservoir(noise, f"noise {seed}")
    for order, document in enumerate(documents):
        if belongs(document):
            if not chosen.add(order, document):
                on_drop("not in the sample")
        elif not others.add(order, document):
            on_drop("not of the categories")
    for _, document in sorted([*chosen, *others]):
        yield document


class _Reservoir:
    """A uniform sample of `size` of the added documents, by Vitter's Algorithm R. None stores all of them."""

    def __init__(self, size: int | None, seed: str) -> None:
        self._size = size
        self._random = random.Random(seed)
        self._n_added = 0
        self._sample: list[tuple[int, Document]] = []

    def add(self, order: int, document: Document) -> bool:
        """Add a document, and return whether the sample grew. If not, this document or an older one was dropped."""
        self._n_added += 1
        if self._size is None or len(self._sample) < self._size:
            self._sample.append((order, document))
            return True
        place = self._random.randrange(self._n_added)
        if place < self._size:
            self._sample[place] = (order, document)
        return False

    def __iter__(self) -> Iterator[tuple[int, Document]]:
        return iter(self._sample)


def _category_filter(categories: Sequence[str] | None) -> Callable[[Document], bool]:
    """Return whether a label of a document contains one of the names as whole words, ignoring case."""
    if categories is None:
        return lambda document: True
    names = "|".join(re.escape(name) for name in categories)
    pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)
    return lambda document: any(map(pattern.search, document.labels))


@dataclass(frozen=True)
class ColumnNames:
    """The columns that the user named. None means that a well-known name is used."""

    text: tuple[str, ...] | None = None
    id: str | None = None
    title: str | None = None
    label: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class TableColumns:
    """The columns of one table that are read. Several text columns are joined."""

    text: tuple[str, ...]
    id: str | None
    title: str | None
    label: str | None
    time: str | None

    def document(self, row: Mapping[str, Any], number: int, source: str) -> Document:
        """Return a row as a document. Raises KeyError if a text column is missing."""
        texts = [_as_text(row[name]) for name in self.text]
        return Document(
            id=(_as_text(row.get(self.id)) if self.id else "") or str(number),
            text=texts[0] if len(texts) == 1 else "\n\n".join(filter(None, texts)),
            title=(_as_text(row.get(self.title)) or None) if self.title else None,
            labels=_as_labels(row.get(self.label)) if self.label else (),
            time=(_as_text(row.get(self.time)) or None) if self.time else None,
            source=source,
        )

    @property
    def names(self) -> list[str]:
        """The names of all columns, without repetitions. A name may be empty."""
        used = (*self.text, self.id, self.title, self.label, self.time)
        return list(dict.fromkeys(name for name in used if name is not None))


def choose_columns(
    wanted: ColumnNames, rows: Sequence[Mapping[str, Any]], names: Sequence[str], where: str
) -> TableColumns:
    """Return the columns to read: those that the user named, or those with well-known names.

    If no name of a text column is known, the sample of rows must have one column with clearly the longest values.
    """
    by_folded = {name.strip().casefold(): name for name in reversed(names)}

    def find(given: str | None, known: Sequence[str]) -> str | None:
        if given is not None:
            if given not in names:
                raise InputError(f"{where} has no column {given!r}: it has {_listed(names)}.")
            return given
        return next((by_folded[name] for name in known if name in by_folded), None)

    if wanted.text is not None:
        text = tuple(name for given in wanted.text if (name := find(given, ())))
    else:
        text = (find(None, _TEXT) or _longest_column(rows, names, where),)
    return TableColumns(
        text=text,
        id=find(wanted.id, _ID),
        title=find(wanted.title, _TITLE),
        label=find(wanted.label, _LABEL),
        time=find(wanted.time, _TIME),
    )


def _longest_column(rows: Sequence[Mapping[str, Any]], names: Sequence[str], where: str) -> str:
    """Return the column whose values are clearly longer than those of all others."""
    if len(names) == 1:
        return names[0]
    lengths = {
        name: sum(len(value) for row in rows if isinstance(value := row.get(name), str)) / max(len(rows), 1)
        for name in names
    }
    ranked = sorted(names, key=lengths.__getitem__, reverse=True)
    if (
        not ranked
        or lengths[ranked[0]] < _MIN_TEXT_LENGTH
        or lengths[ranked[0]] < _MIN_LENGTH_RATIO * lengths[ranked[1]]
    ):
        raise InputError(
            f"It is not clear which column of {where} holds the text: name it with text=; it has {_listed(names)}."
        )
    return ranked[0]


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
