"""What every reader gives: documents."""

from __future__ import annotations

from typing import NamedTuple


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
