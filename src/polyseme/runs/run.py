"""Reading a run folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import polyseme
from polyseme.errors import InputError, ModelFileError
from polyseme.runs.counted import (
    COLUMNS,
    Counted,
    document_names,
    read_counts,
    read_documents,
    read_json,
    read_vectorizer,
)
from polyseme.runs.exchange import recover
from polyseme.runs.folder import RUN_FILE
from polyseme.runs.texts import read_texts
from polyseme.text import Vectorizer

FORMAT_VERSION = 1
MODEL_FILE = "model.safetensors"


@dataclass(frozen=True)
class Run:
    """A run folder; its files are read when they are first asked for."""

    path: Path
    about: dict[str, Any]
    """what run.json says: settings, versions, seed, timings, edits"""

    @cached_property
    def model(self) -> Any:
        """The fitted estimator."""
        return polyseme.load(self.path / MODEL_FILE)

    @cached_property
    def vectorizer(self) -> Vectorizer:
        """Counts new texts as those of the run were counted."""
        return read_vectorizer(self.path)

    @cached_property
    def vocabulary(self) -> list[str]:
        return [str(word) for word in self.vectorizer.get_feature_names_out()]

    @cached_property
    def documents(self) -> Any:
        """A polars frame: id, title, label, time, source, excerpt, tokens, topic, share, topic_0 ..."""
        return read_documents(self.path)

    @cached_property
    def names(self) -> list[str]:
        """What a reader calls each document: its title, or else its id."""
        return document_names(self.documents["title"].to_list(), self.documents["id"].to_list())

    @cached_property
    def labels(self) -> list[str]:
        """The label of each document, "" without one."""
        return [label or "" for label in self.documents["label"].to_list()]

    @cached_property
    def counts(self) -> Any:
        """The counts that the model was fitted to (documents x words, CSR)."""
        return read_counts(self.path)

    @cached_property
    def counted(self) -> Counted:
        """The documents as they were before the fit."""
        return Counted(self.counts, {name: self.documents[name].to_list() for name in COLUMNS}, self.vectorizer)

    @cached_property
    def texts(self) -> list[str] | None:
        """The whole texts, where the run keeps them."""
        return read_texts(self.path)

    @property
    def topic_names(self) -> dict[int, str]:
        """The names that people gave to topics."""
        return {int(topic): str(name) for topic, name in self.about.get("topic_names", {}).items()}


def open_run(path: str | PathLike[str]) -> Run:
    """The run in a folder, checked to be one that this version can read."""
    path = Path(path)
    recover(path.absolute())
    if not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is not a run: make one with polyseme fit.")
    about = read_json(path / RUN_FILE)
    if not isinstance(about.get("format_version"), int):
        raise ModelFileError(f"{path / RUN_FILE} is damaged: it names no format.")
    if about["format_version"] > FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
    return Run(path, about)
