"""Which columns of a table hold the text, the id, the title, the labels and the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyseme.errors import InputError
from polyseme.text.readers.documents import Document

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
        return list(dict.fromkeys(filter(None, (*self.text, self.id, self.title, self.label, self.time))))


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
