"""What every reader gives: documents.

How much a reader takes before it refuses.

What a reader could not read: counted by kind, and named, in bounded memory.

Random samples in one pass, and chosen categories with noise around them.

Which columns of a table hold the text, the id, the title, the labels and the time.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyseme.errors import InputError


class Document(NamedTuple):
    """One document of a corpus, as it stands in its file."""

    id: str
    """Unique within its file: the id column, the page's number, the line's number or the file's relative path."""
    text: str
    title: str | None = None
    labels: tuple[str, ...] = ()
    """Categories of a wiki page, values of a label column, or the subfolder that a file lies in."""
    time: str | None = None
    """As it stands in the file; dates of a typed table in ISO form."""
    source: str = ""
    """The file it came from."""

    @property
    def label(self) -> str | None:
        """The first label."""
        return self.labels[0] if self.labels else None


@dataclass(frozen=True)
class Limits:
    """Bounds against damaged and hostile files; each refusal is counted and named among the reader's problems.

    document : most bytes (characters, once decoded) of one document, row or page.
    ratio : most bytes that a byte of a compressed file may expand to, judged once 64 MiB have come out.
    expanded : most bytes that one compressed file may expand to.
    memory, seconds : PDF, Word, HTML and Parquet files are read in a process of their own: most bytes of memory that
        it may take for a file, and most seconds for a document, or for the next rows of a table. The memory is
        bounded on Linux and macOS, not on Windows.
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


EXAMPLES_KEPT = 10
"""Problems of one kind that are kept by name; the others are counted."""

LONGEST_DESCRIPTION = 300

REMARKS = frozenset({"guessed encoding", "undecodable bytes"})
"""Kinds of problems of files that were read all the same."""


class Problem(NamedTuple):
    """One thing that could not be read."""

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Problems:
    """All problems of one pass over the input: ``counts`` by kind, and the first few of each kind by name.

    ``len`` is the number of all problems; iterating gives those that were kept by name.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kept: dict[str, list[Problem]] = {}

    def add(self, kind: str, where: str, what: str, times: int = 1) -> None:
        self.counts[kind] += times
        kept = self._kept.setdefault(kind, [])
        if len(kept) < EXAMPLES_KEPT:
            kept.append(Problem(kind, where, what[:LONGEST_DESCRIPTION]))

    @classmethod
    def of(cls, counts: Mapping[str, int], kept: Iterable[Problem]) -> Problems:
        """From what `counts` and iterating give."""
        problems = cls()
        for problem in kept:
            problems.add(*problem, times=0)
        problems.counts = Counter(counts)
        return problems

    def merge(self, other: Problems) -> None:
        """Adds the problems of another reader."""
        for problem in other:
            self.add(*problem, times=0)
        self.counts.update(other.counts)

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Problem]:
        return (problem for kept in self._kept.values() for problem in kept)

    def __str__(self) -> str:
        lines = []
        for kind, count in self.counts.items():
            kept = self._kept.get(kind, [])
            more = " ..." if count > len(kept) else ""
            lines.append(f"{kind} ({count}): " + "; ".join(map(str, kept)) + more)
        return "\n".join(lines) or "no problems"

    def __repr__(self) -> str:
        return f"<Problems {dict(self.counts)}>"


class Reservoir:
    """A uniform sample of ``size`` of the documents offered, by Vitter's Algorithm R; None keeps all of them."""

    def __init__(self, size: int | None, seed: str) -> None:
        self._size = size
        self._random = random.Random(seed)
        self._offered = 0
        self._kept: list[tuple[int, Document]] = []

    def offer(self, order: int, document: Document) -> bool:
        """Whether no document had to go, neither this one nor one that it replaces."""
        self._offered += 1
        if self._size is None or len(self._kept) < self._size:
            self._kept.append((order, document))
            return True
        place = self._random.randrange(self._offered)
        if place < self._size:
            self._kept[place] = (order, document)
        return False

    def __iter__(self) -> Iterator[tuple[int, Document]]:
        return iter(self._kept)


def sample(
    documents: Iterable[Document],
    size: int | None,
    categories: Sequence[str] | None,
    noise: int,
    seed: int,
    on_drop: Callable[[str], None],
) -> Iterator[Document]:
    """``size`` random documents; with ``categories``, that many of these, and ``noise`` of the others.

    The result does not depend on the file's chunks or on time, and comes in the order of the input.
    """
    if size is None and categories is None:
        yield from documents
        return
    belongs = _matcher(categories)
    chosen, others = Reservoir(size, f"chosen {seed}"), Reservoir(noise, f"noise {seed}")
    for order, document in enumerate(documents):
        if belongs(document):
            if not chosen.offer(order, document):
                on_drop("not in the sample")
        elif not others.offer(order, document):
            on_drop("not of the categories")
    for _, document in sorted([*chosen, *others]):
        yield document


def _matcher(categories: Sequence[str] | None) -> Callable[[Document], bool]:
    """Whether one of a document's labels holds one of the names as whole words, in any case."""
    if categories is None:
        return lambda document: True
    names = "|".join(re.escape(name) for name in categories)
    pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)
    return lambda document: any(map(pattern.search, document.labels))


SAMPLE_ROWS = 100
"""Rows that the choice of a text column looks at."""

_TEXT = ("text", "body", "content", "contents", "document", "abstract", "article", "message", "review", "comment")
_ID = ("id", "_id", "doc_id", "docid", "document_id", "uuid")
_TITLE = ("title", "headline", "subject")
_LABEL = ("label", "labels", "category", "categories", "class")
_TIME = ("time", "date", "datetime", "timestamp", "created_at", "published", "year")

_SHORTEST_TEXT = 20
_CLEARLY_LONGER = 2.0


@dataclass(frozen=True)
class ColumnNames:
    """The columns that the user named; None leaves the choice to the well-known names."""

    text: tuple[str, ...] | None = None
    id: str | None = None
    title: str | None = None
    label: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of one table; several text columns are joined."""

    text: tuple[str, ...]
    id: str | None
    title: str | None
    label: str | None
    time: str | None

    def document(self, row: Mapping[str, Any], number: int, source: str) -> Document:
        """The row as a document; KeyError where a text column is absent."""
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
        """All columns in use, each once."""
        used = (*self.text, self.id, self.title, self.label, self.time)
        return list(dict.fromkeys(name for name in used if name is not None))  # a column's name may be empty


def choose_columns(wanted: ColumnNames, rows: Sequence[Mapping[str, Any]], names: Sequence[str], where: str) -> Columns:
    """The columns to read, from the names that the user gave, the well-known names and a sample of rows."""
    by_folded = {name.strip().casefold(): name for name in reversed(names)}

    def found(given: str | None, known: Sequence[str]) -> str | None:
        if given is not None:
            if given not in names:
                raise InputError(f"{where} has no column {given!r}: it has {_listed(names)}.")
            return given
        return next((by_folded[name] for name in known if name in by_folded), None)

    if wanted.text is not None:
        text = tuple(name for given in wanted.text if (name := found(given, ())))
    else:
        text = (found(None, _TEXT) or _longest_column(rows, names, where),)
    return Columns(
        text=text,
        id=found(wanted.id, _ID),
        title=found(wanted.title, _TITLE),
        label=found(wanted.label, _LABEL),
        time=found(wanted.time, _TIME),
    )


def _longest_column(rows: Sequence[Mapping[str, Any]], names: Sequence[str], where: str) -> str:
    """The one column whose values are clearly longer than those of all others."""
    if len(names) == 1:
        return names[0]
    lengths = {
        name: sum(len(value) for row in rows if isinstance(value := row.get(name), str)) / max(len(rows), 1)
        for name in names
    }
    ranked = sorted(names, key=lengths.__getitem__, reverse=True)
    if not ranked or lengths[ranked[0]] < _SHORTEST_TEXT or lengths[ranked[0]] < _CLEARLY_LONGER * lengths[ranked[1]]:
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
