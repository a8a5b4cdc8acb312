"""The texts of a run: Parquet files of some megabytes, written while the documents pass by."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from polyseme.parquet import read_frames, write_frame
from polyseme.runs.counted import checked_documents, damaged
from polyseme.runs.pieces import in_parts

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
