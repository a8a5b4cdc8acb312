"""The texts of a run: Parquet files of some megabytes, written while the documents pass by."""

from __future__ import annotations

import shutil
from pathlib import Path

from polyseme.errors import ModelFileError

_FOLDER = "texts"
_CHARACTERS_A_FILE = 2**25


class TextWriter:
    """Takes texts one by one; `close` writes what is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        self._texts: list[str] = []
        self._characters = self._files = 0

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._characters += len(text)
        if self._characters >= _CHARACTERS_A_FILE:
            self.close()

    def close(self) -> None:
        import polars as pl

        if self._texts or not self._files:
            frame = pl.DataFrame({"text": self._texts}, schema={"text": pl.String})
            frame.write_parquet(self._folder / f"{self._files:05d}.parquet", compression="zstd", compression_level=3)
        self._files += 1
        self._texts, self._characters = [], 0


def read_texts(folder: Path) -> list[str] | None:
    """The texts in the order of the documents; None where the run keeps none."""
    import polars as pl

    files = sorted((folder / _FOLDER).glob("*.parquet"))
    if not files:
        return None
    try:
        return [text for file in files for text in pl.read_parquet(file, columns=["text"])["text"].to_list()]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ModelFileError(f"{folder / _FOLDER} is damaged ({error}).") from None
