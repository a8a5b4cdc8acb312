"""Documents that are read into a run or for its topics: progress, notes, and the counts of the words of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyseme.core.shard import without_words
from polyseme.errors import InputError
from polyseme.options import named
from polyseme.progress import Reporter, pluralize
from polyseme.runs.documents import COLUMNS, metadata
from polyseme.runs.store import RunStore
from polyseme.text.readers.inputs import REMARKS
from polyseme.text.readers.reader import Reader

_UPDATE_EVERY = 64
"""Documents between two updates of the progress bar."""
_EXAMPLES = 3


def reading_progress(reader: Reader, update: Any) -> Iterator[Any]:
    """Iterate over the documents of a reader, and update a progress bar."""
    total = reader.total_bytes
    for number, document in enumerate(reader, start=1):
        if number % _UPDATE_EVERY == 0:
            update(reader.bytes_read, total, f"{number:,} documents, {reader.bytes_read / 1e6:,.0f} MB")
        yield document


def reader_notes(reader: Reader) -> Iterator[str]:
    """Yield sentences about how documents were read, left out, not read, or read with a warning, with examples."""
    for note, count in reader.notes.most_common(_EXAMPLES):
        yield f"{note}." if count == 1 else f"{note} ({count:,} files)."
    if len(reader.notes) > _EXAMPLES:
        yield f"Files of {len(reader.notes) - _EXAMPLES:,} other kinds were read."
    if reader.dropped:
        dropped = ", ".join(f"{reason} ({count:,})" for reason, count in reader.dropped.items())
        yield f"Left out: {dropped}."
    in_documents, characters = reader.encoded
    if in_documents:
        yield (f"Left out of {pluralize(in_documents, 'document')}: encoded files or keys, {characters:,} characters.")
    for kind, count in reader.problems.counts.items():
        examples = [problem for problem in reader.problems if problem.kind == kind][:_EXAMPLES]
        heading = "Read with a warning" if kind in REMARKS else "Not read"
        yield f"{heading}: {kind} ({count:,})"
        yield from (f"  {problem}" for problem in examples)
        if count > len(examples):
            yield f"  and {count - len(examples):,} more"


def count_words(store: RunStore, reader: Reader, report: Reporter) -> tuple[Any, Any]:
    """Read documents and count the words of a run in them; return their metadata (polars) and counts."""
    rows: list[Any] = []

    def texts() -> Iterator[str]:
        for document in reading_progress(reader, update):
            rows.append(metadata(document))
            yield document.text

    with report.stage("Reading and counting", unit="MB", size=1e6) as update:
        counts = store.vectorizer.transform(texts())
    for note in reader_notes(reader):
        report.note(note)
    import polars as pl

    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    return frame, without_banned(store, counts)


def without_banned(store: RunStore, counts: Any) -> Any:
    """Return counts without the words that an edit has removed from a run."""
    banned = columns_of(store.info.banned_words, store.vocabulary)
    return without_words(counts, np.asarray(banned)) if banned else counts


def columns_of(words: Sequence[str], vocabulary: Sequence[str]) -> list[int]:
    """Return the columns of words. Raise InputError if the vocabulary does not have one of them."""
    column_of = {word: column for column, word in enumerate(vocabulary)} if words else {}
    unknown = [word for word in words if word not in column_of]
    if unknown:
        raise InputError(f"{named('ban')}: the run has no word {unknown[0]!r}; write words as its topics show them.")
    return sorted({column_of[word] for word in words})


def main_labels(labels: Sequence[str | None]) -> list[str]:
    """Return one label per document. Of several labels ("a; b") choose the most frequent one, of ties the first."""
    split = [[part for part in (label or "").split("; ") if part] for label in labels]
    documents = Counter(part for parts in split for part in set(parts))
    return [max(parts, key=lambda part: documents[part]) if parts else "" for parts in split]
