"""Documents of a run: counts, metadata and texts, and the files that store them.

A run in memory stores its metadata in one file documents.parquet. A run of shards stores it in a folder of that name
with one Parquet file for every DOCUMENTS_PER_PIECE documents. The texts are Parquet files of some megabytes in texts/.
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
from polyseme.kernels import Array, find_counts_error
from polyseme.text import Vectorizer

COUNTS_FILE, VECTORIZER_FILE, DOCUMENTS_FILE = "counts.safetensors", "vectorizer.json", "documents.parquet"
COLUMNS = ("id", "title", "label", "time", "source", "excerpt")
"""Metadata of each document."""
EXCERPT_LENGTH = 300
TEXTS_FOLDER = "texts"
DOCUMENTS_PER_PIECE = 1 << 16
_CACHED_PIECES = 8
_CHARACTERS_PER_FILE = 2**25

Part = TypeVar("Part")


@dataclass
class Counted:
    """Counts and metadata of documents, with the vectorizer that counted them."""

    counts: Any
    """Documents x words, CSR."""
    columns: dict[str, list[Any]]
    """The values of each document, by the names of COLUMNS."""
    vectorizer: Vectorizer

    @property
    def vocabulary(self) -> list[str]:
        return [str(word) for word in self.vectorizer.get_feature_names_out()]

    @property
    def names(self) -> list[str]:
        return document_names(self.columns["title"], self.columns["id"])

    @property
    def labels(self) -> list[str]:
        """Label of each document, "" without one."""
        return [label or "" for label in self.columns["label"]]

    @property
    def tokens(self) -> Any:
        """Number of tokens of each document."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel()

    def save(self, folder: Path) -> None:
        """Write the vectorizer, the counts and the metadata. The fit adds topics to the metadata."""
        write_vectorizer(folder, self.vectorizer)
        write_atomically(folder / COUNTS_FILE, to_safetensors(_arrays(self.counts)))
        write_frame(folder / DOCUMENTS_FILE, column_frame(self.columns))

    @classmethod
    def load(cls, folder: Path) -> Counted:
        frame, counts, vectorizer = read_documents(folder), read_counts(folder), read_vectorizer(folder)
        if counts.shape != (frame.height, len(vectorizer.vocabulary_)):
            raise damage_error(folder / COUNTS_FILE, ValueError("its shape does not match the documents and words"))
        return cls(counts, {name: frame[name].to_list() for name in COLUMNS}, vectorizer)


def document_names(titles: list[str | None], ids: list[str]) -> list[str]:
    """Return the name of each document: its title, or its id without one."""
    return [title or name for title, name in zip(titles, ids, strict=True)]


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text[: 2 * EXCERPT_LENGTH].split())[:EXCERPT_LENGTH]


def unique_ids(ids: list[str], sources: list[str | None]) -> list[str]:
    """Return the ids; if some of them repeat, put the names of their files before all ids.

    An id that repeats within one file gets a number: a:7, a:7#2.
    """
    if len(set(ids)) == len(ids):
        return ids
    named = [name if name == source else f"{source or ''}:{name}" for source, name in zip(sources, ids, strict=True)]
    seen: Counter[str] = Counter()
    unique = []
    for name in named:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return unique


def column_frame(columns: dict[str, list[Any]]) -> Any:
    """Return the columns as a polars frame of strings, even if a column is empty."""
    import polars as pl

    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def read_documents(folder: Path) -> Any:
    path = folder / DOCUMENTS_FILE
    try:
        return check_documents(read_frame(path), COLUMNS)
    except (ValueError, OSError) as error:
        raise damage_error(path, error) from None


def check_documents(frame: Any, columns: Sequence[str]) -> Any:
    """Return the frame; raise ValueError if one of these columns is missing or has another type."""
    import polars as pl

    for name in columns:
        if name not in frame.columns or frame.schema[name] not in (pl.String, pl.Null):
            raise ValueError(f"it has no column {name!r} of strings")
    if "id" in columns and frame["id"].null_count():
        raise ValueError("a document has no id")
    return frame


def damage_error(path: Path, error: Exception) -> ModelFileError:
    """Return the error for a file that is missing or damaged, with the first line of the reason."""
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
        fault = find_counts_error(indptr, indices, values, (rows, columns))
        if fault is not None:
            raise ValueError(fault)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise damage_error(path, error) from None
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
    """Return the object in a JSON file of a run. `table` has the checks of fields; other fields are not checked."""
    try:
        content = checks.read_json(path)
        checks.check_fields(content, table or {}, required=required, others=True)
    except (OSError, ValueError) as error:
        raise damage_error(path, error) from None
    return content


def _arrays(counts: Any) -> dict[str, Any]:
    return {
        "data": np.ascontiguousarray(counts.data, dtype=np.int32),
        "indices": np.ascontiguousarray(counts.indices, dtype=np.int32),
        "indptr": np.ascontiguousarray(counts.indptr, dtype=np.int64),
        "shape": np.array(counts.shape, dtype=np.int64),
    }


class DocumentWriter:
    """Writer of the metadata of documents in pieces. `close` writes the last piece.

    append : whether to continue after the documents that are in the folder.
    """

    def __init__(self, folder: Path, *, append: bool = False) -> None:
        self._folder = folder / DOCUMENTS_FILE
        self._rows: list[Sequence[Any]] = []
        if not append:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
            self._files = 0
            return
        pieces = Pieces(folder)
        last = pieces.frame(len(pieces) - 1, COLUMNS).select(COLUMNS)
        if len(last) < DOCUMENTS_PER_PIECE:
            self._rows = last.rows()
        self._files = len(pieces) - (len(last) < DOCUMENTS_PER_PIECE)

    def add(self, row: Sequence[Any]) -> None:
        """Add a document, with one value for each of COLUMNS."""
        self._rows.append(row)
        if len(self._rows) == DOCUMENTS_PER_PIECE:
            self.close()

    def close(self) -> None:
        if self._rows:
            columns = {name: [row[column] for row in self._rows] for column, name in enumerate(COLUMNS)}
            path = self._folder / f"{self._files:06d}.parquet"
            write_frame(path, column_frame(columns))
            self._files, self._rows = self._files + 1, []


class Pieces:
    """Metadata that a DocumentWriter wrote, one frame per piece."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / DOCUMENTS_FILE
        self._paths = sorted(self.folder.glob("*.parquet"))
        if not self._paths:
            raise ModelFileError(f"{self.folder} is missing or empty: restore it, or fit again.")

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the frames, with all columns."""
        return self._frames(self._paths, None)

    def frame(self, number: int, columns: Sequence[str] | None = None) -> Any:
        """Return one piece, with these columns (None: all)."""
        return next(self._frames([self._paths[number]], columns))

    def column(self, name: str) -> Iterator[Any]:
        """Iterate over the values of a column of all documents."""
        for frame in self._frames(self._paths, [name]):
            yield from frame[name].to_list()

    def take(self, rows: Sequence[int]) -> Any:
        """Return one frame of these documents; `rows` increase."""
        import polars as pl

        return pl.concat([frame[here.tolist()] for frame, here in split_rows(self, rows)])

    def replace(self, number: int, frame: Any) -> None:
        """Write a piece again, atomically."""
        write_frame(self._paths[number], frame, flush=False)

    def _frames(self, paths: Sequence[Path], columns: Sequence[str] | None) -> Iterator[Any]:
        frames = read_frames(paths, columns)
        for path in paths:
            try:
                frame = check_documents(next(frames), columns or COLUMNS)
            except (ValueError, OSError) as error:
                raise damage_error(path, error) from None
            yield frame


def split_rows(parts: Iterable[Part], rows: Any) -> Iterator[tuple[Part, Array]]:
    """Yield each part with those of the rows that it contains, counted from its first row; `rows` increase."""
    numbers = np.asarray(rows, dtype=np.int64)
    start = 0
    for part in parts:
        sized: Any = part
        end = start + (sized.shape[0] if hasattr(sized, "shape") else len(sized))
        first, last = np.searchsorted(numbers, [start, end])
        yield part, numbers[first:last] - start
        start = end


class DocumentNames(Sequence[str]):
    """Names of documents, read from the pieces on demand."""

    def __init__(self, pieces: Pieces, n_documents: int) -> None:
        self._pieces = pieces
        self._n_documents = n_documents
        self._cache: dict[int, list[str]] = {}

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
        number, place = divmod(row, DOCUMENTS_PER_PIECE)
        if number >= len(self._pieces):
            raise self._missing()
        if number not in self._cache:
            if len(self._cache) == _CACHED_PIECES:
                del self._cache[next(iter(self._cache))]
            frame = self._pieces.frame(number, ["title", "id"])
            self._cache[number] = document_names(frame["title"].to_list(), frame["id"].to_list())
        if place >= len(self._cache[number]):
            raise self._missing()
        return self._cache[number][place]

    def _missing(self) -> ModelFileError:
        return damage_error(self._pieces.folder, ValueError("documents are missing"))


class TextWriter:
    """Writer of texts. `close` writes the last file; `append` continues after the texts that are in the folder."""

    def __init__(self, folder: Path, *, append: bool = False) -> None:
        self._folder = folder / TEXTS_FOLDER
        if not append:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
        self._texts: list[str] = []
        self._characters = 0
        self._files = len(list(self._folder.glob("*.parquet")))

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._characters += len(text)
        if self._characters >= _CHARACTERS_PER_FILE:
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
    """Texts that a TextWriter wrote, in the order of the documents; read one file at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / TEXTS_FOLDER
        self._paths = sorted(self._folder.glob("*.parquet"))

    def __bool__(self) -> bool:
        """Return whether the run has texts."""
        return bool(self._paths)

    def __iter__(self) -> Iterator[str]:
        for part in self._parts():
            yield from part

    def take(self, rows: Sequence[int]) -> list[str]:
        """Return the texts of these documents; `rows` increase."""
        return [part[row] for part, here in split_rows(self._parts(), rows) for row in here.tolist()]

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _parts(self) -> Iterator[list[str]]:
        frames = read_frames(self._paths, ["text"])
        for path in self._paths:
            try:
                frame = check_documents(next(frames), ["text"])
                if frame["text"].null_count():
                    raise ValueError("a text is missing")
            except (ValueError, OSError) as error:
                raise damage_error(path, error) from None
            yield frame["text"].to_list()


def read_texts(folder: Path) -> list[str] | None:
    """Return the texts in the order of the documents; None if the run has none."""
    texts = Texts(folder)
    return list(texts) if texts else None
