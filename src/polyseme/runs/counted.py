"""Documents once they are counted, as a run keeps them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as to_safetensors

from polyseme.errors import ModelFileError
from polyseme.kernels import counts_fault
from polyseme.text import Vectorizer

COUNTS_FILE, VECTORIZER_FILE, DOCUMENTS_FILE = "counts.safetensors", "vectorizer.json", "documents.parquet"
COLUMNS = ("id", "title", "label", "time", "source", "excerpt")
"""what a run knows of each document"""


@dataclass
class Counted:
    """What is left of documents when they are counted."""

    counts: Any
    """documents x words, CSR"""
    columns: dict[str, list[Any]]
    """id, title, label, time, source, excerpt of each document"""
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
        (folder / VECTORIZER_FILE).write_text(json.dumps(self.vectorizer.to_dict()), encoding="utf-8")
        (folder / COUNTS_FILE).write_bytes(to_safetensors(_arrays(self.counts)))
        column_frame(self.columns).write_parquet(folder / DOCUMENTS_FILE)

    @classmethod
    def load(cls, folder: Path) -> Counted:
        frame = read_documents(folder)
        return cls(read_counts(folder), {name: frame[name].to_list() for name in COLUMNS}, read_vectorizer(folder))


def document_names(titles: list[str | None], ids: list[str]) -> list[str]:
    """What a reader calls each document: its title, or else its id."""
    return [title or name for title, name in zip(titles, ids, strict=True)]


def unique_ids(ids: list[str], sources: list[str]) -> list[str]:
    """The ids or, if some of them repeat, the ids with the names of their files before them.

    An id that repeats within one file gets a number: a:7, a:7#2.
    """
    if len(set(ids)) == len(ids):
        return ids
    named = [name if name == source else f"{source}:{name}" for source, name in zip(sources, ids, strict=True)]
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
    import polars as pl

    path = folder / DOCUMENTS_FILE
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ModelFileError(f"{path} is missing or damaged ({error}).") from None


def read_counts(folder: Path) -> Any:
    path = folder / COUNTS_FILE
    try:
        parts = load_file(path)
        rows, columns = (int(size) for size in parts["shape"].ravel())
        values, indices, indptr = parts["data"], parts["indices"], parts["indptr"]
    except (SafetensorError, OSError, KeyError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} is missing or damaged ({error}).") from None
    fault = counts_fault(indptr, indices, values, (rows, columns))
    if fault is not None:
        raise ModelFileError(f"{path} is damaged ({fault}): restore it from a copy, or fit the run again.")
    return sp.csr_array((values, indices, indptr), (rows, columns))


def read_vectorizer(folder: Path) -> Vectorizer:
    return Vectorizer.from_dict(read_json(folder / VECTORIZER_FILE))


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} is missing or damaged ({error}).") from None
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is damaged.")
    return content


def _arrays(counts: Any) -> dict[str, Any]:
    return {
        "data": np.ascontiguousarray(counts.data, dtype=np.int32),
        "indices": np.ascontiguousarray(counts.indices, dtype=np.int32),
        "indptr": np.ascontiguousarray(counts.indptr, dtype=np.int64),
        "shape": np.array(counts.shape, dtype=np.int64),
    }
