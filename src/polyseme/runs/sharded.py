"""A run whose counts are shards on disk: what is asked of it one document, or one shard, at a time needs no memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import polyseme
from polyseme.errors import InputError, ModelFileError
from polyseme.kernels import Array
from polyseme.runs.counted import damaged
from polyseme.runs.folder import SHARDS_FOLDER
from polyseme.runs.pieces import Names, Pieces, in_parts
from polyseme.runs.run import MODEL_FILE, Run
from polyseme.runs.texts import Texts
from polyseme.runs.typical import Labels
from polyseme.scale import Shards, open_shards
from polyseme.untrusted import map_npy

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
    def shards(self) -> Shards:
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

    def at_hand(self) -> Run:
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


def sampled_counts(shards: Shards, rows: Array) -> Any:
    """The counts of these documents (rising), CSR."""
    parts = [_whole_numbers(sp.csr_array(part)[here]) for part, here in in_parts(shards, rows)]
    return sp.csr_array(sp.vstack(parts, format="csr"))


def without_documents(model: Any) -> Any:
    """The model without what it has of each document, which may be too much for one file."""
    small = copy(model)
    for name in ("doc_topic_", "doc_weights_", "doc_background_"):
        delattr(small, name)
    return small


def with_documents(model: Any, shards: Shards) -> Any:
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
