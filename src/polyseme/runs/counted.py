"""Documents once they are counted, as a run keeps them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as to_safetensors

from polyseme import untrusted
from polyseme.errors import ModelFileError
from polyseme.files import write_atomically
from polyseme.kernels import counts_fault
from polyseme.parquet import read_frame, write_frame
from polyseme.text import Vectorizer
from polyseme.untrusted import Check

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


def unique_ids(ids: list[str], sources: list[str | None]) -> list[str]:
    """The ids or, if some of them repeat, the ids with the names of their files before them.

    An id that repeats within one file gets a number: a:7, a:7#2.
    """
    if len(set(ids)) == len(ids):
        return ids
    named = [name if name == source else f"{source or ''}:{name}" for source, name in zip(sources, ids, strict=True)]
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
        untrusted.check_regular(path)
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
        content = untrusted.read_json(path)
        untrusted.check_fields(content, table or {}, required=required, others=True)
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
