"""Reading and counting documents under a progress bar, as commands do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from rich.console import Console

from polyseme.cli.bars import Update, bar
from polyseme.errors import InputError
from polyseme.runs import Counted
from polyseme.runs.counted import COLUMNS
from polyseme.runs.texts import TextWriter
from polyseme.text import Document, Reader, Vectorizer

EXCERPT_LENGTH = 300
FEW_DOCUMENTS = 20
"""in fewer documents than these, rare and frequent words are kept"""
_SHOW_EVERY = 64


def excerpt(text: str) -> str:
    """How a text begins, on one line."""
    return " ".join(text[: 2 * EXCERPT_LENGTH].split())[:EXCERPT_LENGTH]


@dataclass
class Kept:
    """What is kept of documents while their texts pass by."""

    texts: TextWriter | None = None
    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in COLUMNS})

    def passing(self, documents: Iterable[Document], reader: Reader, update: Update) -> Iterator[str]:
        """The texts of the documents, one by one."""
        total = reader.total_bytes
        for number, document in enumerate(documents, start=1):
            row = (
                document.id, document.title, "; ".join(document.labels) or None, document.time, document.source,
                excerpt(document.text),
            )  # fmt: skip
            for column, value in zip(self.columns.values(), row, strict=True):
                column.append(value)
            if self.texts is not None:
                self.texts.add(document.text)
            if number % _SHOW_EVERY == 0:
                update(reader.bytes_read, total, f"{number:,} documents, {reader.bytes_read / 1e6:,.0f} MB")
            yield document.text
        if self.texts is not None:
            self.texts.close()


def count_anew(
    reader: Reader, vectorizer: Vectorizer, notes: Console, *, texts: TextWriter | None = None, quiet: bool = False
) -> Counted:
    """Learns the words of the documents and counts them.

    The limits on rare and frequent words (`min_df`, `max_df`) are for many documents: a few are counted without.
    """
    kept = Kept(texts)
    with bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
        documents = iter(reader)
        first = list(islice(documents, FEW_DOCUMENTS))
        if len(first) < FEW_DOCUMENTS:
            vectorizer.set_params(min_df=1, max_df=1.0)
        try:
            counts = vectorizer.fit_transform(kept.passing(chain(first, documents), reader, update))
        except InputError:
            raise
        except ValueError as error:  # scikit-learn's own, when no word is left
            reason = str(error).rstrip(".")
            raise InputError(f"The documents have no words to count: {reason}; try --min-df 1 --max-df 1.") from None
    if not quiet:
        tell_problems(reader, notes)
    return Counted(counts, kept.columns, vectorizer)


def count_as_before(
    reader: Reader, vectorizer: Vectorizer, notes: Console, *, texts: TextWriter | None = None, quiet: bool = False
) -> Counted:
    """Counts the words that a fitted vectorizer knows."""
    kept = Kept(texts)
    with bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
        counts = vectorizer.transform(kept.passing(reader, reader, update))
    if not quiet:
        tell_problems(reader, notes)
    return Counted(counts, kept.columns, vectorizer)


def tell_problems(reader: Reader, notes: Console) -> None:
    """What was left out, and what could not be read."""
    if reader.dropped:
        dropped = ", ".join(f"{why} ({count:,})" for why, count in reader.dropped.items())
        notes.print(f"Left out: {dropped}.", highlight=False, markup=False)
    if len(reader.problems):
        notes.print(f"Could not be read: {reader.problems}", highlight=False, markup=False)
