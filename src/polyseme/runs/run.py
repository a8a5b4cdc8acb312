"""Reading a run folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polyseme
from polyseme.errors import ModelFileError
from polyseme.runs.counted import (
    COLUMNS,
    Counted,
    document_names,
    read_counts,
    read_documents,
    read_vectorizer,
    unique_ids,
)
from polyseme.runs.texts import read_texts
from polyseme.runs.typical import Labels
from polyseme.text import Vectorizer

FORMAT_VERSION = 1
MODEL_FILE = "model.safetensors"


@dataclass(frozen=True)
class Run:
    """A run folder; its files are read when they are first asked for."""

    path: Path
    about: dict[str, Any]
    """what run.json says: settings, versions, seed, timings, edits"""
    trust_pattern: bool = field(default=False, kw_only=True)
    """whether the token pattern of the vectorizer may be any regular expression"""

    @cached_property
    def model(self) -> Any:
        """The fitted estimator."""
        model = polyseme.load(self.path / MODEL_FILE)
        self._check_words(model)
        for name in ("doc_topic_", "doc_weights_"):
            self._require(hasattr(model, name), f"its model has no {name}")
        self._require(len(model.doc_topic_) == len(self.documents), "its model has another number of documents")
        return model

    @cached_property
    def vectorizer(self) -> Vectorizer:
        """Counts new texts as those of the run were counted."""
        return read_vectorizer(self.path, trust_pattern=self.trust_pattern)

    @cached_property
    def vocabulary(self) -> list[str]:
        return [str(word) for word in self.vectorizer.get_feature_names_out()]

    @cached_property
    def documents(self) -> Any:
        """A polars frame: id, title, label, time, source, excerpt, tokens, topic, share, topic_0 ..."""
        return read_documents(self.path)

    @cached_property
    def ids(self) -> list[str]:
        """The id of each document, with the name of its file where several files use the same ids."""
        return unique_ids(self.column("id"), self.column("source"))

    @cached_property
    def names(self) -> Sequence[str]:
        """What a reader calls each document: its title, or else its id."""
        return document_names(self.documents["title"].to_list(), self.documents["id"].to_list())

    @cached_property
    def labels(self) -> list[str]:
        """The label of each document, "" without one."""
        return [label or "" for label in self.documents["label"].to_list()]

    @cached_property
    def label_numbers(self) -> Labels:
        return Labels.of(self.labels)

    @cached_property
    def counts(self) -> Any:
        """The counts that the model was fitted to (documents x words, CSR)."""
        counts = read_counts(self.path)
        shape = len(self.documents), len(self.vocabulary)
        self._require(counts.shape == shape, "its counts are of other documents or words")
        return counts

    def count_parts(self) -> Iterator[Any]:
        """The counts, the documents of a part after those of the one before."""
        yield self.counts

    def column(self, name: str) -> list[Any]:
        """A column of `documents`."""
        values: list[Any] = self.documents[name].to_list()
        return values

    def at_hand(self) -> Run:
        """This run, or a sample of one that is too large for memory."""
        return self

    @cached_property
    def counted(self) -> Counted:
        """The documents as they were before the fit."""
        return Counted(self.counts, {name: self.documents[name].to_list() for name in COLUMNS}, self.vectorizer)

    @cached_property
    def texts(self) -> list[str] | None:
        """The whole texts, where the run keeps them."""
        texts = read_texts(self.path)
        self._require(texts is None or len(texts) == len(self.documents), "it has not one text for each document")
        return texts

    @property
    def topic_names(self) -> dict[int, str]:
        """The names that people gave to topics."""
        return {int(topic): str(name) for topic, name in self.about.get("topic_names", {}).items()}

    def _check_words(self, model: Any) -> None:
        for name in ("components_", "topic_weights_", *(("log_likelihood_",) if type(model) is polyseme.PLSA else ())):
            self._require(hasattr(model, name), f"its model has no {name}")
        self._require(model.components_.shape[1] == len(self.vocabulary), "its model has another number of words")

    def _require(self, condition: bool, otherwise: str) -> None:
        if not condition:
            raise ModelFileError(f"{self.path} is damaged: {otherwise}; restore it, or fit again.")
