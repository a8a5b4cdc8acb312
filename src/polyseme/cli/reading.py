"""Reading and counting documents under a progress bar, as commands do it.

What a fit was asked for, and its documents: counted into its folder, or found there after a kill.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from polyseme.cli.console import Console, Update, bar, in_options
from polyseme.errors import InputError
from polyseme.io.files import write_atomically
from polyseme.runs import Counted
from polyseme.runs.documents import COLUMNS, TextWriter, damaged, read_json
from polyseme.runs.fields import COUNTED, FACTS
from polyseme.runs.folder import UNFINISHED_FILE
from polyseme.text import Document, Reader, Vectorizer, read
from polyseme.text.readers.documents import REMARKS

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


@dataclass(frozen=True)
class Documents:
    """What a command says of its documents, and of the fit that they are for."""

    inputs: list[str]
    reading: dict[str, Any]
    """arguments of `polyseme.text.read`"""
    counting: dict[str, Any]
    """arguments of `Vectorizer`"""
    fitting: dict[str, Any]
    """n_components, background, seed, max_iter"""
    keep_texts: bool
    shards: bool
    """whether the counts go to files"""

    def counted(self, work: Path, notes: Console, *, resume: bool, quiet: bool) -> tuple[Counted, dict[str, Any]]:
        """The counted documents, and what run.json says of them. With `resume` they may be in the folder already."""
        facts = self.facts_in(work) if resume else None
        if facts is not None:
            return Counted.load(work), facts
        start = time.perf_counter()
        reader, vectorizer = self.reader(), self.vectorizer()
        texts = TextWriter(work) if self.keep_texts else None
        counted = count_anew(reader, vectorizer, notes, texts=texts, quiet=quiet)
        counted.save(work)
        sizes = {
            "documents": counted.counts.shape[0],
            "words": counted.counts.shape[1],
            "tokens": int(counted.counts.sum()),
        }
        return counted, self.keep_facts(work, reader, vectorizer, sizes, time.perf_counter() - start)

    def reader(self) -> Reader:
        return read(self.inputs, **self.reading)

    def vectorizer(self) -> Vectorizer:
        return Vectorizer(**self.counting)

    def facts_in(self, work: Path) -> dict[str, Any] | None:
        """What `keep_facts` put there; None if it did not, InputError if it was asked for something else."""
        if not (work / UNFINISHED_FILE).is_file():
            return None
        found = read_json(work / UNFINISHED_FILE, COUNTED, required=tuple(COUNTED))
        check_facts(found["facts"], work / UNFINISHED_FILE)
        if found["asked"] != self._asked:
            raise InputError(
                f"The fit that was cut had other settings ({_difference(found['asked'], self._asked)}): "
                "repeat its command with --resume, or begin anew without."
            )
        facts: dict[str, Any] = found["facts"]
        return facts

    def keep_facts(
        self, work: Path, reader: Reader, vectorizer: Vectorizer, sizes: dict[str, int], seconds: float
    ) -> dict[str, Any]:
        """What run.json says of the documents; from now on a fit that is killed does not read them again."""
        facts = {
            "inputs": self.inputs,
            "reading": self.reading,
            "counting": {**self.counting, "language": vectorizer.language_},
            **sizes,
            "left_out": dict(reader.dropped),
            "problems": dict(reader.problems.counts),
            "seconds": {"reading": round(seconds, 3)},
        }
        write_atomically(work / UNFINISHED_FILE, json.dumps({"asked": self._asked, "facts": facts}).encode())
        return facts

    @property
    def _asked(self) -> dict[str, Any]:
        asked: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return asked


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first setting that differs."""
    flat = [{**asked, **asked["reading"], **asked["counting"], **asked["fitting"]} for asked in (before, now)]
    differing = [name for name in flat[1] if not isinstance(flat[1][name], dict) and flat[0].get(name) != flat[1][name]]
    if not differing:
        return "of another version"
    return f"{differing[0]}: {flat[0].get(differing[0])}, now {flat[1][differing[0]]}"


def check_facts(facts: dict[str, Any], path: Path) -> None:
    """Raises ModelFileError if the file does not say all that the rest of the fit needs to know."""
    missing = [name for name in FACTS if name not in facts]
    if missing or "language" not in facts["counting"]:
        raise damaged(path, ValueError(f"{(missing or ['language'])[0]} is missing"))
