"""Documents once they are counted, as a run keeps them.

The documents of a run in pieces: documents.parquet as a folder of Parquet files, as other tools write it too.

The texts of a run: Parquet files of some megabytes, written while the documents pass by.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as to_safetensors

from polyseme.errors import ModelFileError
from polyseme.io import checks
from polyseme.io.checks import Check
from polyseme.io.files import write_atomically
from polyseme.io.parquet import read_frame, read_frames, write_frame
from polyseme.kernels import Array, counts_fault
from polyseme.text import Vectorizer

COUNTS_FILE, VECTORIZER_FILE, DOCUMENTS_FILE = "counts.safetensors", "vectorizer.json", "documents.parquet"
COLUMNS = ("id", "title", "label", "time", "source", "excerpt")
"""what a run knows of each document"""
EXCERPT_LENGTH = 300


@dataclass
class Counted:
    """What is left of documents when they are counted."""

    counts: Any
    """documents x words, CSR"""
    columns: dict[str, list[Any]]
    """id, title, label, time, corpus, excerpt of each document"""
    vectorizer: Vectorizer

    @property
    def vocabulary(self) -> list[str]:
        return [str(word) for word in self.vectorizer.get_feature_names_out()]

    @property
    def names(self) -> list[str]:
        return document_names(self.columns["title"], self.columns["id"])

    @property
    def labels(self) -> list[str]:
        """The label of each document, "" without one."""
        return [label or "" for label in self.columns["label"]]

    @property
    def tokens(self) -> Any:
        """of each document"""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel()

    def save(self, folder: Path) -> None:
        """Writes all three files; those of the documents get their topics later."""
        write_vectorizer(folder, self.vectorizer)
        write_atomically(folder / COUNTS_FILE, to_safetensors(_arrays(self.counts)))
        write_frame(folder / DOCUMENTS_FILE, column_frame(self.columns))

    @classmethod
    def load(cls, folder: Path) -> Counted:
        frame, counts, vectorizer = read_documents(folder), read_counts(folder), read_vectorizer(folder)
        if counts.shape != (frame.height, len(vectorizer.vocabulary_)):
            raise damaged(folder / COUNTS_FILE, ValueError("its shape is not that of the documents and words"))
        return cls(counts, {name: frame[name].to_list() for name in COLUMNS}, vectorizer)


def document_names(titles: list[str | None], ids: list[str]) -> list[str]:
    """What a reader calls each document: its title, or else its id."""
    return [title or name for title, name in zip(titles, ids, strict=True)]


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text[: 2 * EXCERPT_LENGTH].split())[:EXCERPT_LENGTH]


def unique_ids(ids: list[str], sources: list[str | None]) -> list[str]:
    """The ids or, if some of them repeat, the ids with the names of their files before them.

    An id that repeats within one file gets a number: a:7, a:7#2.
    """
    if len(set(ids)) == len(ids):
        return ids
    named = [name if name == corpus else f"{corpus or ''}:{name}" for corpus, name in zip(sources, ids, strict=True)]
    met: Counter[str] = Counter()
    unique = []
    for name in named:
        met[name] += 1
        unique.append(name if met[name] == 1 else f"{name}#{met[name]}")
    return unique


def column_frame(columns: dict[str, list[Any]]) -> Any:
    """The columns as a polars frame of strings, also where a column is empty."""
    import polars as pl

    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def read_documents(folder: Path) -> Any:
    path = folder / DOCUMENTS_FILE
    try:
        return checked_documents(read_frame(path), COLUMNS)
    except (ValueError, OSError) as error:
        raise damaged(path, error) from None


def checked_documents(frame: Any, columns: Sequence[str]) -> Any:
    """A frame of documents; ValueError where one of these columns is missing or is of another type."""
    import polars as pl

    for name in columns:
        if name not in frame.columns or frame.schema[name] not in (pl.String, pl.Null):
            raise ValueError(f"it has no column {name!r} of texts")
    if "id" in columns and frame["id"].null_count():
        raise ValueError("a document has no id")
    return frame


def damaged(path: Path, error: Exception) -> ModelFileError:
    """The error of a file that is missing, damaged or foreign; the reason is cut to one line."""
    if isinstance(error, FileNotFoundError):
        return ModelFileError(f"{path} is missing: restore it, or fit again.")
    reason = str(error).partition("\n")[0].rstrip(".")
    return ModelFileError(f"{path} is damaged ({reason}): restore it, or fit again.")


def read_counts(folder: Path) -> Any:
    path = folder / COUNTS_FILE
    try:
        checks.check_regular(path)
        parts = load_file(path)
        rows, columns = (int(size) for size in parts["shape"].ravel())
        values, indices, indptr = parts["data"], parts["indices"], parts["indptr"]
        fault = counts_fault(indptr, indices, values, (rows, columns))
        if fault is not None:
            raise ValueError(fault)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise damaged(path, error) from None
    return sp.csr_array((values, indices, indptr), (rows, columns))


def write_vectorizer(folder: Path, vectorizer: Vectorizer) -> None:
    write_atomically(folder / VECTORIZER_FILE, json.dumps(vectorizer.to_dict()).encode())


def read_vectorizer(folder: Path, *, trust_pattern: bool = False) -> Vectorizer:
    path = folder / VECTORIZER_FILE
    content = read_json(path)
    try:
        return Vectorizer.from_dict(content, trust_pattern=trust_pattern)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def read_json(path: Path, table: Mapping[str, Check] | None = None, *, required: Collection[str] = ()) -> Any:
    """The object in a JSON file of a run. table : the checks of its fields; fields that it does not name are left."""
    try:
        content = checks.read_json(path)
        checks.check_fields(content, table or {}, required=required, others=True)
    except (OSError, ValueError) as error:
        raise damaged(path, error) from None
    return content


def _arrays(counts: Any) -> dict[str, Any]:
    return {
        "data": np.ascontiguousarray(counts.data, dtype=np.int32),
        "indices": np.ascontiguousarray(counts.indices, dtype=np.int32),
        "indptr": np.ascontiguousarray(counts.indptr, dtype=np.int64),
        "shape": np.array(counts.shape, dtype=np.int64),
    }


DOCUMENTS_A_PIECE = 1 << 16
_PIECES_AT_HAND = 8
Part = TypeVar("Part")


class DocumentWriter:
    """Takes what a run knows of documents, one by one; `close` writes what is left.

    more : whether to go on after the documents that are there.
    """

    def __init__(self, folder: Path, *, more: bool = False) -> None:
        self._folder = folder / DOCUMENTS_FILE
        self._rows: list[Sequence[Any]] = []
        if not more:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
            self._files = 0
            return
        pieces = Pieces(folder)
        last = pieces.frame(len(pieces) - 1, COLUMNS).select(COLUMNS)
        if len(last) < DOCUMENTS_A_PIECE:
            self._rows = last.rows()
        self._files = len(pieces) - (len(last) < DOCUMENTS_A_PIECE)

    def add(self, row: Sequence[Any]) -> None:
        """row : a value for each of COLUMNS."""
        self._rows.append(row)
        if len(self._rows) == DOCUMENTS_A_PIECE:
            self.close()

    def close(self) -> None:
        if self._rows:
            columns = {name: [row[place] for row in self._rows] for place, name in enumerate(COLUMNS)}
            path = self._folder / f"{self._files:06d}.parquet"
            write_frame(path, column_frame(columns))
            self._files, self._rows = self._files + 1, []


class Pieces:
    """The pieces that a DocumentWriter wrote to a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / DOCUMENTS_FILE
        self._paths = sorted(self.folder.glob("*.parquet"))
        if not self._paths:
            raise ModelFileError(f"{self.folder} is missing or empty.")

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Any]:
        """All frames, with all columns."""
        return self._frames(self._paths, None)

    def frame(self, number: int, columns: Sequence[str] | None = None) -> Any:
        """A piece, with these columns (None: all)."""
        return next(self._frames([self._paths[number]], columns))

    def column(self, name: str) -> Iterator[Any]:
        """The values of a column, of all documents."""
        for frame in self._frames(self._paths, [name]):
            yield from frame[name].to_list()

    def take(self, rows: Sequence[int]) -> Any:
        """One frame of these documents, in rising order."""
        import polars as pl

        return pl.concat([frame[here.tolist()] for frame, here in in_parts(self, rows)])

    def replace(self, number: int, frame: Any) -> None:
        """Writes a piece anew, whole."""
        write_frame(self._paths[number], frame, flush=False)

    def _frames(self, paths: Sequence[Path], columns: Sequence[str] | None) -> Iterator[Any]:
        frames = read_frames(paths, columns)
        for path in paths:
            try:
                frame = checked_documents(next(frames), columns or COLUMNS)
            except (ValueError, OSError) as error:
                raise damaged(path, error) from None
            yield frame


def in_parts(parts: Iterable[Part], rows: Any) -> Iterator[tuple[Part, Array]]:
    """Each part, and which of these rows it has: rows are rising and counted through all parts, here from its first."""
    numbers = np.asarray(rows, dtype=np.int64)
    start = 0
    for part in parts:
        sized: Any = part
        end = start + (sized.shape[0] if hasattr(sized, "shape") else len(sized))
        first, last = np.searchsorted(numbers, [start, end])
        yield part, numbers[first:last] - start
        start = end


class Names(Sequence[str]):
    """What a reader calls each document, looked up when it is asked for."""

    def __init__(self, pieces: Pieces, n_documents: int) -> None:
        self._pieces = pieces
        self._n_documents = n_documents
        self._at_hand: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return self._n_documents

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not 0 <= row < len(self):
            raise IndexError(row)
        number, place = divmod(row, DOCUMENTS_A_PIECE)
        if number >= len(self._pieces):
            raise self._missing()
        if number not in self._at_hand:
            if len(self._at_hand) == _PIECES_AT_HAND:
                del self._at_hand[next(iter(self._at_hand))]
            frame = self._pieces.frame(number, ["title", "id"])
            self._at_hand[number] = document_names(frame["title"].to_list(), frame["id"].to_list())
        if place >= len(self._at_hand[number]):
            raise self._missing()
        return self._at_hand[number][place]

    def _missing(self) -> ModelFileError:
        return damaged(self._pieces.folder, ValueError("documents are missing"))


FOLDER = "texts"
_CHARACTERS_A_FILE = 2**25


class TextWriter:
    """Takes texts one by one; `close` writes what is left. more : whether to go on after the texts that are there."""

    def __init__(self, folder: Path, *, more: bool = False) -> None:
        self._folder = folder / FOLDER
        if not more:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
        self._texts: list[str] = []
        self._characters = 0
        self._files = len(list(self._folder.glob("*.parquet")))

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._characters += len(text)
        if self._characters >= _CHARACTERS_A_FILE:
            self.close()

    def close(self) -> None:
        import polars as pl

        if self._texts or not self._files:
            frame = pl.DataFrame({"text": self._texts}, schema={"text": pl.String})
            path = self._folder / f"{self._files:05d}.parquet"
            write_frame(path, frame, flush=False, compression="zstd", compression_level=3)
        self._files += 1
        self._texts, self._characters = [], 0


class Texts:
    """The texts that a TextWriter wrote to a run, in the order of the documents; read a file at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._paths = sorted(self._folder.glob("*.parquet"))

    def __bool__(self) -> bool:
        """Whether the run keeps texts."""
        return bool(self._paths)

    def __iter__(self) -> Iterator[str]:
        for part in self._parts():
            yield from part

    def take(self, rows: Sequence[int]) -> list[str]:
        """Those of some documents, in rising order."""
        return [part[row] for part, here in in_parts(self._parts(), rows) for row in here.tolist()]

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _parts(self) -> Iterator[list[str]]:
        frames = read_frames(self._paths, ["text"])
        for path in self._paths:
            try:
                frame = checked_documents(next(frames), ["text"])
                if frame["text"].null_count():
                    raise ValueError("a text is missing")
            except (ValueError, OSError) as error:
                raise damaged(path, error) from None
            yield frame["text"].to_list()


def read_texts(folder: Path) -> list[str] | None:
    """The texts in the order of the documents; None where the run keeps none."""
    texts = Texts(folder)
    return list(texts) if texts else None
