"""Reading a run folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError
from safetensors.numpy import load_file

import polyseme
from polyseme.errors import InputError, ModelFileError
from polyseme.runs.folder import RUN_FILE
from polyseme.text import Vectorizer

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Run:
    """A run folder; its files are read when they are first asked for."""

    path: Path
    about: dict[str, Any]
    """what run.json says: settings, versions, seed, timings"""

    @cached_property
    def model(self) -> Any:
        """The fitted estimator."""
        return polyseme.load(self.path / "model.safetensors")

    @cached_property
    def vectorizer(self) -> Vectorizer:
        """Counts new texts as those of the run were counted."""
        return Vectorizer.from_dict(_json(self.path / "vectorizer.json"))

    @cached_property
    def vocabulary(self) -> list[str]:
        return [str(word) for word in self.vectorizer.get_feature_names_out()]

    @cached_property
    def documents(self) -> Any:
        """A polars frame: id, title, label, time, source, excerpt, tokens, topic, share, topic_0 ..."""
        import polars as pl

        path = self.path / "documents.parquet"
        try:
            return pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ModelFileError(f"{path} is missing or damaged ({error}).") from None

    @cached_property
    def names(self) -> list[str]:
        """What a reader calls each document: its title, or else its id."""
        return document_names(self.documents["title"].to_list(), self.documents["id"].to_list())

    @cached_property
    def counts(self) -> Any:
        """The counts that the model was fitted to (documents x words, CSR)."""
        path = self.path / "counts.safetensors"
        try:
            parts = load_file(path)
            shape = tuple(int(size) for size in parts["shape"])
            return sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape)
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise ModelFileError(f"{path} is missing or damaged ({error}).") from None


def document_names(titles: list[str | None], ids: list[str]) -> list[str]:
    return [title or name for title, name in zip(titles, ids, strict=True)]


def open_run(path: str | PathLike[str]) -> Run:
    """The run in a folder, checked to be one that this version can read."""
    path = Path(path)
    if not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is not a run: make one with polyseme fit.")
    about = _json(path / RUN_FILE)
    if not isinstance(about.get("format_version"), int):
        raise ModelFileError(f"{path / RUN_FILE} is damaged: it names no format.")
    if about["format_version"] > FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
    return Run(path, about)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} is missing or damaged ({error}).") from None
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is damaged.")
    return content


def count_arrays(counts: Any) -> dict[str, Any]:
    """The arrays of counts.safetensors."""
    return {
        "data": np.ascontiguousarray(counts.data, dtype=np.int32),
        "indices": np.ascontiguousarray(counts.indices, dtype=np.int32),
        "indptr": np.ascontiguousarray(counts.indptr, dtype=np.int64),
        "shape": np.array(counts.shape, dtype=np.int64),
    }
