"""Reading and counting documents under a progress bar, as commands do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol

from polyseme.cli.bars import Update, bar
from polyseme.cli.console import Console
from polyseme.cli.wording import in_options
from polyseme.errors import InputError
from polyseme.runs import Counted
from polyseme.runs.counted import COLUMNS
from polyseme.runs.texts import TextWriter
from polyseme.text import Document, Reader, Vectorizer
from polyseme.text.readers.problems import REMARKS

EXCERPT_LENGTH = 300
FEW_DOCUMENTS = 20
"""in fewer documents than these, rare and frequent words are kept"""
_SHOW_EVERY = 64
_EXAMPLES = 3


def excerpt(text: str) -> str:
    """How a text begins, on one line."""
    return " ".join(text[: 2 * EXCERPT_LENGTH].split())[:EXCERPT_LENGTH]


class Rows(Protocol):
    """What is kept of each document."""

    def add(self, row: Sequence[Any]) -> None:
        """row : a value for each of COLUMNS."""

    def close(self) -> None: ...


class Columns:
    """Rows in memory."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def add(self, row: Sequence[Any]) -> None:
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Kept:
    """Keeps what there is to keep of documents while their texts pass by."""

    rows: Rows
    texts: TextWriter | None = None

    def passing(self, documents: Iterable[Document], reader: Reader, update: Update) -> Iterator[str]:
        """The texts of the documents, one by one."""
        total = reader.total_bytes
        for number, document in enumerate(documents, start=1):
            label = "; ".join(document.labels) or None
            about = (document.id, document.title, label, document.time, document.source, excerpt(document.text))
            self.rows.add(about)
            if self.texts is not None:
                self.texts.add(document.text)
            if number % _SHOW_EVERY == 0:
                update(reader.bytes_read, total, f"{number:,} documents, {reader.bytes_read / 1e6:,.0f} MB")
            yield document.text
        self.rows.close()
        if self.texts is not None:
            self.texts.close()


def count_anew(
    reader: Reader, vectorizer: Vectorizer, notes: Console, *, texts: TextWriter | None = None, quiet: bool = False
) -> Counted:
    """Learns the words of the documents and counts them."""
    rows = Columns()
    counts = learn_words(vectorizer.fit_transform, reader, vectorizer, Kept(rows, texts), notes, quiet=quiet)
    return Counted(counts, rows.columns, vectorizer)


def learn_words(
    learn: Callable[[Iterator[str]], Any],
    reader: Reader,
    vectorizer: Vectorizer,
    kept: Kept,
    notes: Console,
    *,
    quiet: bool,
) -> Any:
    """What `learn`, a method of the vectorizer, gives for the texts.

    The limits on rare and frequent words (`min_df`, `max_df`) are for many documents: a few are counted without.
    """
    with bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
        documents = iter(reader)
        first = list(islice(documents, FEW_DOCUMENTS))
        if len(first) < FEW_DOCUMENTS:
            vectorizer.set_params(min_df=1, max_df=1.0)
        try:
            learned = learn(kept.passing(chain(first, documents), reader, update))
        except InputError:
            raise
        except ValueError as error:  # scikit-learn's own, when no word is left
            reason = str(error).rstrip(".")
            raise InputError(f"The documents have no words to count: {reason}; try --min-df 1 --max-df 1.") from None
    if not quiet:
        show_problems(reader, notes)
    return learned


def count_as_before(
    reader: Reader, vectorizer: Vectorizer, notes: Console, *, texts: TextWriter | None = None, quiet: bool = False
) -> Counted:
    """Counts the words that a fitted vectorizer knows."""
    rows = Columns()
    with bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
        counts = vectorizer.transform(Kept(rows, texts).passing(reader, reader, update))
    if not quiet:
        show_problems(reader, notes)
    return Counted(counts, rows.columns, vectorizer)


def show_problems(reader: Reader, notes: Console) -> None:
    """Print what was left out, what could not be read, and what was read with a doubt; a few examples of each."""
    if reader.dropped:
        dropped = ", ".join(f"{why} ({count:,})" for why, count in reader.dropped.items())
        notes.print(f"Left out: {dropped}.")
    for kind, count in reader.problems.counts.items():
        examples = [problem for problem in reader.problems if problem.kind == kind][:_EXAMPLES]
        heading = "Read with a doubt" if kind in REMARKS else "Not read"
        notes.print(f"{heading}: {kind} ({count:,})")
        for problem in examples:
            notes.print(f"  {in_options(str(problem))}", soft_wrap=True)
        if count > len(examples):
            notes.print(f"  and {count - len(examples):,} more")
