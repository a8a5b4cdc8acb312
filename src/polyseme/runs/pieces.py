"""The documents of a run in pieces: documents.parquet as a folder of Parquet files, as other tools write it too."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np

from polyseme.errors import ModelFileError
from polyseme.kernels import Array
from polyseme.parquet import read_frames, write_frame
from polyseme.runs.counted import COLUMNS, DOCUMENTS_FILE, checked_documents, column_frame, damaged, document_names

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
