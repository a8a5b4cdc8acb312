"""Documents of a command: reading and counting with a progress bar, and the settings of a fit.

`FitSettings.counted` reads and counts the documents of ``polyseme fit`` and records in the work folder what it did, so
that ``--resume`` does not read them again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from polyseme.cli.console import Console, ProgressUpdate, progress_bar, with_option_names
from polyseme.errors import InputError
from polyseme.io.files import write_atomically
from polyseme.runs import Counted
from polyseme.runs.documents import COLUMNS, TextWriter, damage_error, excerpt, read_json
from polyseme.runs.folder import COUNTED_FIELDS, FACT_FIELDS, STAGES_FILE
from polyseme.text import Document, Reader, Vectorizer, read
from polyseme.text.readers.inputs import REMARKS

FEW_DOCUMENTS = 20
"""With fewer documents, `min_df` and `max_df` are not applied and no documents are held out to choose K."""
_UPDATE_EVERY = 64
"""Documents between two updates of the progress bar."""
_EXAMPLES = 3
_OPTIONS = {
    "inputs": "INPUT",
    "n_components": "-k",
    "categories": "--category",
    "extra_stop_words": "--stop-words",
    "keep_texts": "--texts",
}
"""Options whose names differ from those of the settings."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of ``polyseme fit``. Stored with an unfinished run, to compare them on ``--resume``."""

    inputs: list[str]
    reading: dict[str, Any]
    """Arguments of `polyseme.text.read`."""
    counting: dict[str, Any]
    """Arguments of `Vectorizer`."""
    fitting: dict[str, Any]
    """n_components, background, seed and max_iter."""
    keep_texts: bool
    shards: bool
    """Whether the counts are written to shards instead of being held in memory."""

    def counted(self, work: Path, notes: Console, *, resume: bool, quiet: bool) -> tuple[Counted, dict[str, Any]]:
        """Return the counted documents and the fields of run.json about them; with `resume`, load stored ones."""
        facts = self.load_facts(work) if resume else None
        if facts is not None:
            return Counted.load(work), facts
        start = time.perf_counter()
        reader, vectorizer = self.reader(), self.vectorizer()
        texts = TextWriter(work) if self.keep_texts else None
        counted = fit_counts(reader, vectorizer, notes, texts=texts, quiet=quiet)
        counted.save(work)
        sizes = {
            "documents": counted.counts.shape[0],
            "words": counted.counts.shape[1],
            "tokens": int(counted.counts.sum()),
        }
        return counted, self.store_facts(work, reader, vectorizer, sizes, time.perf_counter() - start)

    def reader(self) -> Reader:
        return read(self.inputs, **self.reading)

    def vectorizer(self) -> Vectorizer:
        return Vectorizer(**self.counting)

    def load_facts(self, work: Path) -> dict[str, Any] | None:
        """Return what `store_facts` wrote, None if there is nothing; raise InputError if the settings differ."""
        if not (work / STAGES_FILE).is_file():
            return None
        found = read_json(work / STAGES_FILE, COUNTED_FIELDS, required=tuple(COUNTED_FIELDS))
        _check_facts(found["facts"], work / STAGES_FILE)
        if found["settings"] != self._as_json():
            difference = _first_difference(found["settings"], self._as_json())
            raise InputError(
                f"--resume: the interrupted fit had other settings ({difference}). "
                "Repeat its command with --resume, or start again without --resume."
            )
        facts: dict[str, Any] = found["facts"]
        return facts

    def store_facts(
        self, work: Path, reader: Reader, vectorizer: Vectorizer, sizes: dict[str, int], seconds: float
    ) -> dict[str, Any]:
        """Write the fields of run.json about the documents. From here on --resume does not read them again."""
        facts = {
            "inputs": self.inputs,
            "reading": self.reading,
            "counting": {**self.counting, "language": vectorizer.language_},
            **sizes,
            "left_out": dict(reader.dropped),
            "problems": dict(reader.problems.counts),
            "seconds": {"reading": round(seconds, 3)},
        }
        write_atomically(work / STAGES_FILE, json.dumps({"settings": self._as_json(), "facts": facts}).encode())
        return facts

    def _as_json(self) -> dict[str, Any]:
        """Return the fields as they are after writing and reading JSON, where tuples are lists."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return settings


class RowWriter(Protocol):
    """Receiver of the metadata of documents."""

    def add(self, row: Sequence[Any]) -> None:
        """Add a document, with one value for each of COLUMNS."""

    def close(self) -> None: ...


class ColumnLists:
    """Metadata of documents in memory, one list for each of COLUMNS."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def add(self, row: Sequence[Any]) -> None:
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class DocumentRecorder:
    """Records the metadata and, if wanted, the texts of documents while they are counted."""

    rows: RowWriter
    texts: TextWriter | None = None

    def record(self, documents: Iterable[Document], reader: Reader, update: ProgressUpdate) -> Iterator[str]:
        """Record each document, then yield its text."""
        total = reader.total_bytes
        for number, document in enumerate(documents, start=1):
            label = "; ".join(document.labels) or None
            self.rows.add((document.id, document.title, label, document.time, document.source, excerpt(document.text)))
            if self.texts is not None:
                self.texts.add(document.text)
            if number % _UPDATE_EVERY == 0:
                update(reader.bytes_read, total, f"{number:,} documents, {reader.bytes_read / 1e6:,.0f} MB")
            yield document.text
        self.rows.close()
        if self.texts is not None:
            self.texts.close()


def fit_counts(
    reader: Reader, vectorizer: Vectorizer, notes: Console, *, texts: TextWriter | None = None, quiet: bool = False
) -> Counted:
    """Read the documents, learn their words and count them."""
    rows = ColumnLists()
    recorder = DocumentRecorder(rows, texts)
    counts = learn_words(vectorizer.fit_transform, reader, vectorizer, recorder, notes, quiet=quiet)
    return Counted(counts, rows.columns, vectorizer)


def transform_counts(
    reader: Reader, vectorizer: Vectorizer, notes: Console, *, texts: TextWriter | None = None, quiet: bool = False
) -> Counted:
    """Read the documents and count the words that a fitted vectorizer knows."""
    rows = ColumnLists()
    with progress_bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
        counts = vectorizer.transform(DocumentRecorder(rows, texts).record(reader, reader, update))
    if not quiet:
        print_problems(reader, notes)
    return Counted(counts, rows.columns, vectorizer)


def learn_words(
    learn: Callable[[Iterator[str]], Any],
    reader: Reader,
    vectorizer: Vectorizer,
    recorder: DocumentRecorder,
    notes: Console,
    *,
    quiet: bool,
) -> Any:
    """Return the result of `learn`, which is `fit` or `fit_transform` of the vectorizer, for the texts of the reader.

    With fewer than FEW_DOCUMENTS documents all words are counted, whatever `min_df` and `max_df` are.
    """
    with progress_bar(notes, "Reading and counting", unit="MB", size=1e6, quiet=quiet) as update:
        documents = iter(reader)
        first = list(islice(documents, FEW_DOCUMENTS))
        if len(first) < FEW_DOCUMENTS:
            vectorizer.set_params(min_df=1, max_df=1.0)
        try:
            learned = learn(recorder.record(chain(first, documents), reader, update))
        except InputError:
            raise
        except ValueError as error:  # scikit-learn raises it when no word is left
            reason = str(error).rstrip(".")
            raise InputError(f"The documents have no words to count: {reason}; try --min-df 1 --max-df 1.") from None
    if not quiet:
        print_problems(reader, notes)
    return learned


def print_problems(reader: Reader, notes: Console) -> None:
    """Print which documents were left out, not read, or read with a warning, with a few examples of each kind."""
    if reader.dropped:
        dropped = ", ".join(f"{reason} ({count:,})" for reason, count in reader.dropped.items())
        notes.print(f"Left out: {dropped}.")
    for kind, count in reader.problems.counts.items():
        examples = [problem for problem in reader.problems if problem.kind == kind][:_EXAMPLES]
        heading = "Read with a warning" if kind in REMARKS else "Not read"
        notes.print(f"{heading}: {kind} ({count:,})")
        for problem in examples:
            notes.print(f"  {with_option_names(str(problem))}", soft_wrap=True)
        if count > len(examples):
            notes.print(f"  and {count - len(examples):,} more")


def _first_difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the first setting that differs, with both values."""
    before, now = ({**each, **each["reading"], **each["counting"], **each["fitting"]} for each in (old, new))
    differing = [name for name in now if not isinstance(now[name], dict) and before.get(name) != now[name]]
    if not differing:
        return "of another version of polyseme"
    name = differing[0]
    option = _OPTIONS.get(name, "--" + name.replace("_", "-"))
    return f"{option}: {before.get(name)}, now {now[name]}"


def _check_facts(facts: dict[str, Any], path: Path) -> None:
    """Raise ModelFileError if a field is missing that the rest of the fit needs."""
    missing = [name for name in FACT_FIELDS if name not in facts]
    if missing or "language" not in facts["counting"]:
        raise damage_error(path, ValueError(f"{(missing or ['language'])[0]} is missing"))
