"""Reading a run folder.

A run whose counts are shards on disk: what is asked of it one document, or one shard, at a time needs no memory.

Opening a run folder, of either kind.
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

import polyseme
from polyseme.errors import InputError, ModelFileError
from polyseme.io.tensors import map_npy
from polyseme.kernels import Array
from polyseme.runs.documents import (
    COLUMNS,
    Counted,
    Names,
    Pieces,
    Texts,
    damaged,
    document_names,
    in_parts,
    read_counts,
    read_documents,
    read_json,
    read_texts,
    read_vectorizer,
    unique_ids,
)
from polyseme.runs.fields import RUN
from polyseme.runs.folder import RUN_FILE, SHARDS_FOLDER, check_is_run
from polyseme.runs.topic_documents import Labels
from polyseme.scale import DiskCorpus, open_shards
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
        """A polars frame: id, title, label, time, corpus, excerpt, tokens, topic, share, topic_0 ..."""
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

    def in_memory(self) -> Run:
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


DOC_TOPIC, DOC_WEIGHTS = "doc_topic.npy", "doc_weights.npy"
"""beside the shards: P(z|d), documents x K, and P(d)"""
MOST_NUMBERS = 1 << 27
"""counts, and weights of topics in documents, that are taken into memory at once"""
SAMPLE = 10_000
"""documents that stand for all of a larger run"""
MOST_LABELS = 1000
"""the most frequent ones; others count as none"""


@dataclass(frozen=True)
class ShardedRun(Run):
    """A run folder with its counts in shards, and its documents in pieces."""

    @cached_property
    def shards(self) -> DiskCorpus:
        shards = open_shards(self.path / SHARDS_FOLDER)
        self._require(shards.shape[1] == len(self.vocabulary), "its shards are of other words")
        return shards

    @cached_property
    def pieces(self) -> Pieces:
        return Pieces(self.path)

    @cached_property
    def model(self) -> Any:
        """The fitted estimator; what it has of each document is mapped to memory."""
        model = polyseme.load(self.path / MODEL_FILE)
        self._check_words(model)
        return with_documents(model, self.shards)

    @cached_property
    def documents(self) -> Any:
        import polars as pl

        self._refuse_if_large()
        documents = pl.concat(list(self.pieces))
        self._require(len(documents) == self.shards.shape[0], "its documents are not those of its shards")
        return documents

    @cached_property
    def counts(self) -> Any:
        self._refuse_if_large()
        return sp.csr_array(sp.vstack([_whole_numbers(part) for part in self.count_parts()], format="csr"))

    @cached_property
    def texts(self) -> list[str] | None:
        self._refuse_if_large()
        return super().texts

    @cached_property
    def names(self) -> Sequence[str]:
        return super().names if self._fits else Names(self.pieces, self.shards.shape[0])

    @cached_property
    def label_numbers(self) -> Labels:
        if self._fits:
            return super().label_numbers
        tally = Counter(label or "" for label in self.pieces.column("label"))
        frequent = {name for name, _ in tally.most_common(MOST_LABELS)}
        return Labels.of(label if label in frequent else "" for label in self.pieces.column("label"))

    def count_parts(self) -> Iterator[Any]:
        return iter(self.shards)

    def column(self, name: str) -> list[Any]:
        return list(self.pieces.column(name))

    def in_memory(self) -> Run:
        return self if self._fits else self.sample(SAMPLE)

    def sample(self, size: int, seed: int = 0) -> SampledRun:
        """So many of the documents, drawn at random, as a run of their own."""
        documents = self.shards.shape[0]
        title = f"{self.about.get('title') or self.path.resolve().name} ({size:,} of {documents:,} documents)"
        rows = drawn_rows(documents, size, seed)
        return SampledRun(self.path, {**self.about, "title": title}, self, rows, trust_pattern=self.trust_pattern)

    @property
    def _fits(self) -> bool:
        manifest = self.shards.manifest
        nonzeros = sum(entry.nonzeros for entry in manifest.shards)
        return nonzeros + manifest.documents * len(self.model.components_) <= MOST_NUMBERS

    def _refuse_if_large(self) -> None:
        if not self._fits:
            raise InputError(
                f"{self.path} has {self.shards.shape[0]:,} documents in shards, too many to take into memory as this "
                "command does: fit a sample of them with polyseme fit --sample."
            )


@dataclass(frozen=True)
class SampledRun(Run):
    """Some documents of a larger run, which are held in memory."""

    whole: ShardedRun
    rows: Array
    """their numbers in the whole, rising"""

    @cached_property
    def model(self) -> Any:
        model = copy(self.whole.model)
        weights = np.asarray(model.doc_weights_[self.rows])
        model.doc_topic_ = np.asarray(model.doc_topic_[self.rows])
        model.doc_weights_ = weights / weights.sum() if weights.sum() > 0 else weights
        model.doc_background_ = np.asarray(model.doc_background_[self.rows])
        return model

    @cached_property
    def documents(self) -> Any:
        documents = self.whole.pieces.take(self.rows.tolist())
        self._require(len(documents) == len(self.rows), "its documents are not those of its shards")
        return documents

    @cached_property
    def counts(self) -> Any:
        return sampled_counts(self.whole.shards, self.rows)

    @cached_property
    def texts(self) -> list[str] | None:
        kept = Texts(self.path)
        texts = kept.take(self.rows.tolist()) if kept else None
        self._require(texts is None or len(texts) == len(self.rows), "it has not one text for each document")
        return texts


def drawn_rows(n_documents: int, size: int, seed: int) -> Array:
    """Numbers of documents, rising, drawn without replacement; all where there are no more."""
    if n_documents <= size:
        return np.arange(n_documents)
    return np.sort(np.random.default_rng(seed).choice(n_documents, size, replace=False, shuffle=False))


def sampled_counts(shards: DiskCorpus, rows: Array) -> Any:
    """The counts of these documents (rising), CSR."""
    parts = [_whole_numbers(sp.csr_array(part)[here]) for part, here in in_parts(shards, rows)]
    return sp.csr_array(sp.vstack(parts, format="csr"))


def without_documents(model: Any) -> Any:
    """The model without what it has of each document, which may be too much for one file."""
    small = copy(model)
    for name in ("doc_topic_", "doc_weights_", "doc_background_"):
        delattr(small, name)
    return small


def with_documents(model: Any, shards: DiskCorpus) -> Any:
    """The model with what files beside the shards say of each document, mapped to memory."""
    documents, K = shards.shape[0], len(model.components_)
    model.doc_topic_ = _mapped(shards.folder / DOC_TOPIC, (documents, K))
    model.doc_weights_ = _mapped(shards.folder / DOC_WEIGHTS, (documents,))
    model.doc_background_ = np.broadcast_to(np.float64(model.background_weight_), (documents,))
    return model


def _mapped(path: Path, shape: tuple[int, ...]) -> Array:
    try:
        array = map_npy(path)
    except (OSError, ValueError) as error:
        raise damaged(path, error) from None
    if array.shape != shape or array.dtype.kind != "f":
        raise ModelFileError(f"{path} does not belong to this run.")
    return array


def _whole_numbers(counts: Any) -> Any:
    """Counts of words as a run in memory has them: integers."""
    return sp.csr_array((counts.data.astype(np.int32), counts.indices, counts.indptr), counts.shape)


def open_run(path: str | PathLike[str], *, trust_pattern: bool = False) -> Run:
    """The run in a folder, checked to be one that this version can read.

    trust_pattern : whether a `token_pattern` in the run may be any regular expression, which can take exponential time
        (see `Vectorizer.from_dict`); True is for runs of people that you trust.
    """
    path = Path(path)
    check_is_run(path)
    newer = read_json(path / RUN_FILE, {"format_version": RUN["format_version"]}, required=("format_version",))
    if newer["format_version"] > FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
    about = read_json(path / RUN_FILE, RUN)
    kind = ShardedRun if (path / SHARDS_FOLDER).is_dir() else Run
    return kind(path, about, trust_pattern=trust_pattern)
