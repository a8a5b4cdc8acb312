"""Reading of run folders: `open_run` returns a Run, or a ShardedRun if the counts are shards on disk.

A ShardedRun reads documents and counts piece by piece where it can. What needs all of them works up to
MAX_NUMBERS_IN_MEMORY numbers; `in_memory` returns a random sample of a larger run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme import PLSA, load
from polyseme.core.fitted import TrainingDocuments
from polyseme.errors import InputError, ModelFileError
from polyseme.estimators.base import FittedDecomposition
from polyseme.io.tensors import map_npy
from polyseme.kernels import Array
from polyseme.runs.documents import (
    COLUMNS,
    Counted,
    DocumentNames,
    Pieces,
    Texts,
    damage_error,
    document_names,
    read_counts,
    read_documents,
    read_json,
    read_texts,
    read_vectorizer,
    split_rows,
    unique_ids,
)
from polyseme.runs.folder import RUN_FIELDS, RUN_FILE, SHARDS_FOLDER, check_is_run
from polyseme.runs.topic_documents import Labels
from polyseme.scale import DiskCorpus, open_shards
from polyseme.text import Vectorizer

FORMAT_VERSION = 1
MODEL_FILE = "model.safetensors"
DOC_TOPIC, DOC_WEIGHTS = "doc_topic.npy", "doc_weights.npy"
"""Files beside the shards: P(z|d), documents x K, and P(d)."""
MAX_NUMBERS_IN_MEMORY = 1 << 27
"""Largest number of non-zero counts and topic weights that are loaded into memory at once."""
SAMPLE_SIZE = 10_000
"""Number of documents in the sample of a run that is too large for memory."""
MAX_LABELS = 1000
"""Number of labels of a large run; less frequent labels are ignored."""


@dataclass(frozen=True)
class Run:
    """A run folder. Files are read when they are first used."""

    path: Path
    about: dict[str, Any]
    """Content of run.json: settings, versions, seed, timings, edits."""
    trust_pattern: bool = field(default=False, kw_only=True)
    """Whether the token pattern of the vectorizer may be any regular expression."""

    @cached_property
    def model(self) -> Any:
        """Fitted estimator."""
        model = load(self.path / MODEL_FILE)
        self._check_model(model)
        documents = model.documents_
        self._require(documents is not None, "its model has no training documents")
        self._require(len(documents.doc_topic) == len(self.documents), "its model has a different number of documents")
        return model

    @cached_property
    def vectorizer(self) -> Vectorizer:
        """Vectorizer that counted the documents of the run."""
        return read_vectorizer(self.path, trust_pattern=self.trust_pattern)

    @cached_property
    def vocabulary(self) -> list[str]:
        return [str(word) for word in self.vectorizer.get_feature_names_out()]

    @cached_property
    def documents(self) -> Any:
        """Polars frame with id, title, label, time, source, excerpt, tokens, topic, share, topic_0 ..."""
        return read_documents(self.path)

    @cached_property
    def ids(self) -> list[str]:
        """Id of each document, after the name of its file if ids repeat."""
        return unique_ids(self.column("id"), self.column("source"))

    @cached_property
    def names(self) -> Sequence[str]:
        """Name of each document: its title, or its id without one."""
        return document_names(self.documents["title"].to_list(), self.documents["id"].to_list())

    @cached_property
    def labels(self) -> list[str]:
        """Label of each document, "" without one."""
        return [label or "" for label in self.documents["label"].to_list()]

    @cached_property
    def label_numbers(self) -> Labels:
        return Labels.of(self.labels)

    @cached_property
    def counts(self) -> Any:
        """Counts that the model was fitted to (documents x words, CSR)."""
        counts = read_counts(self.path)
        shape = len(self.documents), len(self.vocabulary)
        self._require(counts.shape == shape, "the shape of its counts does not match its documents and words")
        return counts

    def count_parts(self) -> Iterator[Any]:
        """Yield the counts in parts, in the order of the documents."""
        yield self.counts

    def column(self, name: str) -> list[Any]:
        """Return a column of `documents` as a list."""
        values: list[Any] = self.documents[name].to_list()
        return values

    def in_memory(self) -> Run:
        """Return this run, or a random sample of it if it is too large for memory."""
        return self

    @cached_property
    def counted(self) -> Counted:
        """Counts and metadata of the documents, without topics."""
        return Counted(self.counts, {name: self.documents[name].to_list() for name in COLUMNS}, self.vectorizer)

    @cached_property
    def texts(self) -> list[str] | None:
        """Full texts, or None if the run does not have them."""
        texts = read_texts(self.path)
        self._require(texts is None or len(texts) == len(self.documents), "texts of documents are missing")
        return texts

    @property
    def topic_names(self) -> dict[int, str]:
        """Names given to topics with polyseme edit."""
        return {int(topic): str(name) for topic, name in self.about.get("topic_names", {}).items()}

    def _check_model(self, model: Any) -> None:
        """Check that the model has topics over the words of the run and, if it is a PLSA, its log-likelihood."""
        has_topics = isinstance(model, FittedDecomposition)
        self._require(has_topics, f"its model is of the class {type(model).__name__}, which has no topics")
        if isinstance(model, PLSA):
            self._require("log_likelihood_" in vars(model), "its model has no log_likelihood_")
        n_words = model.fitted_.topic_word.shape[1]
        self._require(n_words == len(self.vocabulary), "its model has a different number of words")

    def _require(self, condition: bool, problem: str) -> None:
        if not condition:
            raise ModelFileError(f"{self.path} is damaged: {problem}; restore it, or fit again.")


@dataclass(frozen=True)
class ShardedRun(Run):
    """A run folder with its counts in shards and its metadata in pieces."""

    @cached_property
    def shards(self) -> DiskCorpus:
        shards = open_shards(self.path / SHARDS_FOLDER)
        self._require(shards.shape[1] == len(self.vocabulary), "its shards have a different number of words")
        return shards

    @cached_property
    def pieces(self) -> Pieces:
        return Pieces(self.path)

    @cached_property
    def model(self) -> Any:
        """Fitted estimator; its arrays with a row per document are memory-mapped."""
        model = load(self.path / MODEL_FILE)
        self._check_model(model)
        return with_documents(model, self.shards)

    @cached_property
    def documents(self) -> Any:
        import polars as pl

        self._check_fits_in_memory()
        documents = pl.concat(list(self.pieces))
        self._require(len(documents) == self.shards.shape[0], "the number of its documents is not that of its shards")
        return documents

    @cached_property
    def counts(self) -> Any:
        self._check_fits_in_memory()
        return sp.csr_array(sp.vstack([_as_integers(part) for part in self.count_parts()], format="csr"))

    @cached_property
    def texts(self) -> list[str] | None:
        self._check_fits_in_memory()
        return super().texts

    @cached_property
    def names(self) -> Sequence[str]:
        return super().names if self._fits_in_memory else DocumentNames(self.pieces, self.shards.shape[0])

    @cached_property
    def label_numbers(self) -> Labels:
        if self._fits_in_memory:
            return super().label_numbers
        tally = Counter(label or "" for label in self.pieces.column("label"))
        frequent = {name for name, _ in tally.most_common(MAX_LABELS)}
        return Labels.of(label if label in frequent else "" for label in self.pieces.column("label"))

    def count_parts(self) -> Iterator[Any]:
        return iter(self.shards)

    def column(self, name: str) -> list[Any]:
        return list(self.pieces.column(name))

    def in_memory(self) -> Run:
        return self if self._fits_in_memory else self.sample(SAMPLE_SIZE)

    def sample(self, size: int, seed: int = 0) -> SampledRun:
        """Return a run of `size` documents, drawn at random."""
        documents = self.shards.shape[0]
        title = f"{self.about.get('title') or self.path.resolve().name} ({size:,} of {documents:,} documents)"
        rows = sample_rows(documents, size, seed)
        return SampledRun(self.path, {**self.about, "title": title}, self, rows, trust_pattern=self.trust_pattern)

    @property
    def _fits_in_memory(self) -> bool:
        manifest = self.shards.manifest
        nonzeros = sum(entry.nonzeros for entry in manifest.shards)
        return nonzeros + manifest.documents * self.model.fitted_.n_topics <= MAX_NUMBERS_IN_MEMORY

    def _check_fits_in_memory(self) -> None:
        if not self._fits_in_memory:
            raise InputError(
                f"{self.path} has {self.shards.shape[0]:,} documents in shards, too many to load into memory, which "
                "this command needs: fit a sample of them with polyseme fit --sample."
            )


@dataclass(frozen=True)
class SampledRun(Run):
    """Some documents of a larger run, held in memory."""

    whole: ShardedRun
    rows: Array
    """Increasing row numbers in the whole run."""

    @cached_property
    def model(self) -> Any:
        model = copy(self.whole.model)
        documents = model.documents_
        weights = np.asarray(documents.doc_weights[self.rows])
        model.documents_ = TrainingDocuments(
            weights / weights.sum() if weights.sum() > 0 else weights,
            np.asarray(documents.doc_topic[self.rows]),
            np.asarray(documents.background[self.rows]),
        )
        return model

    @cached_property
    def documents(self) -> Any:
        documents = self.whole.pieces.take(self.rows.tolist())
        self._require(len(documents) == len(self.rows), "the number of its documents is not that of its shards")
        return documents

    @cached_property
    def counts(self) -> Any:
        return take_counts(self.whole.shards, self.rows)

    @cached_property
    def texts(self) -> list[str] | None:
        stored = Texts(self.path)
        texts = stored.take(self.rows.tolist()) if stored else None
        self._require(texts is None or len(texts) == len(self.rows), "texts of documents are missing")
        return texts


def sample_rows(n_documents: int, size: int, seed: int) -> Array:
    """Draw `size` increasing row numbers without replacement; all rows if there are no more."""
    if n_documents <= size:
        return np.arange(n_documents)
    return np.sort(np.random.default_rng(seed).choice(n_documents, size, replace=False, shuffle=False))


def take_counts(shards: DiskCorpus, rows: Array) -> Any:
    """Return the counts of these documents, CSR; `rows` increase."""
    parts = [_as_integers(sp.csr_array(part)[here]) for part, here in split_rows(shards, rows)]
    return sp.csr_array(sp.vstack(parts, format="csr"))


def without_documents(model: PLSA) -> PLSA:
    """Return a copy of the model without the arrays that have a row per document."""
    small = copy(model)
    small.documents_ = None
    return small


def with_documents(model: Any, shards: DiskCorpus) -> PLSA:
    """Attach the memory-mapped arrays with a row per document to the model and return it."""
    if not isinstance(model, PLSA):
        raise ModelFileError(
            f"{shards.folder} belongs to a PLSA, not to a model of the class {type(model).__name__}: restore the model "
            "of the run, or fit again."
        )
    n_documents = shards.shape[0]
    model.documents_ = TrainingDocuments(
        _map_array(shards.folder / DOC_WEIGHTS, (n_documents,)),
        _map_array(shards.folder / DOC_TOPIC, (n_documents, model.fitted_.n_topics)),
        np.broadcast_to(np.float64(model.background_weight_), (n_documents,)),
    )
    return model


def _map_array(path: Path, shape: tuple[int, ...]) -> Array:
    try:
        array = map_npy(path)
    except (OSError, ValueError) as error:
        raise damage_error(path, error) from None
    if array.shape != shape or array.dtype.kind != "f":
        raise ModelFileError(f"{path} does not belong to this run: restore it, or fit again.")
    return array


def _as_integers(counts: Any) -> Any:
    """Return counts as integers, as a run in memory has them."""
    return sp.csr_array((counts.data.astype(np.int32), counts.indices, counts.indptr), counts.shape)


def open_run(path: str | PathLike[str], *, trust_pattern: bool = False) -> Run:
    """Open a run folder.

    Parameters
    ----------
    path : str or PathLike
        Folder that ``polyseme fit`` wrote.
    trust_pattern : bool, default=False
        Whether the token pattern of the run may be any regular expression, which can take exponential time (see
        `Vectorizer.from_dict`). Use True only for runs that you trust.

    Returns
    -------
    Run
        The run; its files are read when they are first used.

    Raises
    ------
    InputError
        If the folder is not a run.
    ModelFileError
        If run.json is damaged or was written by a newer version.
    """
    path = Path(path)
    check_is_run(path)
    newer = read_json(path / RUN_FILE, {"format_version": RUN_FIELDS["format_version"]}, required=("format_version",))
    if newer["format_version"] > FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
    about = read_json(path / RUN_FILE, RUN_FIELDS)
    kind = ShardedRun if (path / SHARDS_FOLDER).is_dir() else Run
    return kind(path, about, trust_pattern=trust_pattern)
