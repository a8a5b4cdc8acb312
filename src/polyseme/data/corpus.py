"""The interface of a corpus, the steps that a corpus runs, and a corpus in memory.

A model whose documents are independent given shared parameters is written once, as a `Step`: an E-step of the documents
of a shard, which returns sums, and an M-step of the shared parameters from these sums. A corpus runs the step on all of
its shards: in memory, from files (`data.disk`) or on the workers of a cluster (`data.dask`).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import FoldedDocuments, FoldIn, GivenDocuments, topic_weights_of
from polyseme.core.model import EStepResult, Extrapolate, Model, WordTotals
from polyseme.core.shard import Shard, Stats, as_counts, row_batches
from polyseme.io.arrays import bytes_of
from polyseme.kernels import Array, Floats, padded
from polyseme.losses.entry_weights import EntryWeights

LOADED_NONZEROS = 1 << 26
"""Largest number of non-zeros of a corpus that is loaded into memory for a solver that needs all counts at once: 1 GB
with their transpose. The limit depends only on the data, so that the choice of a solver does not depend on the
machine."""

T = TypeVar("T")
Rows = Any
"""One array per shard with a row for each document. Its type depends on the corpus: an array, files or futures."""
Shared = Any
"""A tuple of arrays that all documents share, or a future of such a tuple."""
Point = tuple[Rows, Shared]


class Step(Protocol):
    """One iteration of a model on a corpus. It is sent to the workers of a cluster, so it has no large arrays.

    `prepared` is what `prepare` returns, computed once in an iteration. An E-step may overwrite rows that are writable.
    """

    def prepare(self, shared: Shared, n_threads: int) -> Any:
        """Return the shared parameters, and what the E-steps and the M-step compute from them."""

    def e_step(self, shard: Shard, rows: Array, prepared: Any, memory: Floats | None = None) -> EStepResult:
        """Run the E-step on one shard. `memory` is reused for the word sums of its statistics."""

    def m_step(self, words: WordTotals, prepared: Any, stats: Any) -> tuple[Shared, Any]:
        """Return the next shared parameters, and the report of the point that the statistics describe.

        It may overwrite the statistics, and must not return their arrays, which the next iteration reuses.
        """

    def extrapolate_rows(self, extrapolate: Extrapolate, new: Array, old: Array, shard: Shard) -> Array:
        """Return the rows of a shard that are extrapolated from an old and a new step."""

    def extrapolate_shared(self, extrapolate: Extrapolate, new: Shared, old: Shared) -> Shared:
        """Return the shared parameters that are extrapolated from an old and a new step."""


class StepResult(NamedTuple):
    """A point, its report, and the next point."""

    rows: Rows
    shared: Shared
    next_rows: Rows
    next_shared: Shared
    report: Any


class StreamState(NamedTuple):
    """State of an online solver that is passed from one shard to the next."""

    arrays: dict[str, Array]
    """Arrays, which a step may overwrite."""
    numbers: dict[str, float]


StreamStep = Callable[[int, Shard, StreamState], StreamState]
"""Function of the index of a shard, the shard, and the state after the previous shards."""


def uniform_rows(model: Model, shard: Shard) -> Array:
    """Return theta (documents x width) with equal weights of all topics."""
    K = model.n_topics
    return padded(np.full((shard.n_docs, K), 1.0 / K, dtype=shard.dtype), shard.dtype, model.n_columns)


class Corpus(Protocol):
    """Counts in memory, in files or on a cluster, as a sequence of shards."""

    in_memory: ClassVar[bool]
    """Whether the corpus is one shard of this process, a `MemoryCorpus`."""

    @property
    def n_docs(self) -> int: ...
    @property
    def n_words(self) -> int: ...
    @property
    def n_nonzeros(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def n_threads(self) -> int: ...
    @property
    def documents(self) -> float:
        """Number of documents, weighted."""

    @property
    def tokens(self) -> float: ...
    @property
    def totals(self) -> Floats: ...
    @property
    def word_totals(self) -> Floats: ...
    @property
    def unigram(self) -> Floats: ...
    @property
    def entries(self) -> EntryWeights | None:
        """Weights of the entries; None if all are one. Shards have no weights of entries."""

    @property
    def doc_weights(self) -> Floats:
        """P(d) of all documents."""

    @property
    def digest(self) -> str:
        """Digest of the counts, which identifies the data of a fit in a checkpoint."""

    @property
    def kept(self) -> Array | None:
        """Documents that a fit uses, those with a positive weight; None if it uses all."""

    @property
    def all_documents(self) -> Self:
        """Corpus of all documents, including those of weight zero, which are folded in after the fit."""

    @property
    def fit_folder(self) -> Path | None:
        """Folder where the states of fits are stored by default; None if they are not stored."""

    def rows(self, function: Callable[..., Array], shared: tuple[Array, ...] = ()) -> Rows:
        """Return the rows function(shard, *shared) of every shard."""

    def split(self, array: Array) -> Rows:
        """Return the rows of an array that has one row for each document."""

    def share(self, arrays: tuple[Array, ...]) -> Shared:
        """Return arrays in the form that `run` takes."""

    def gather(self, shared: Shared) -> tuple[Array, ...]:
        """Return shared parameters as arrays of this process."""

    def run(self, step: Step, rows: Rows, shared: Shared) -> StepResult:
        """Run a step at a point: the E-step of every shard, the sum of the statistics in a fixed order, the M-step."""

    def combine(self, step: Step, extrapolate: Extrapolate, new: Point, old: Point) -> Point:
        """Return the point that is extrapolated from an old and a new step."""

    def map(self, function: Callable[..., T], rows: Rows = None, shared: tuple[Array, ...] = ()) -> list[T]:
        """Return function(shard, rows, *shared) of every shard, with rows=None if there are none."""

    def total(self, function: Callable[..., Any], rows: Rows = None, shared: tuple[Array, ...] = ()) -> Any:
        """Return the sum of the statistics function(shard, rows, *shared) of all shards."""

    def scan_shards(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        """Run state = step(number, shard, state) for each shard, in random order. Return the last state."""

    def fold_in(self, job: FoldIn, arrays: tuple[Array, ...], rows: Rows = None) -> FoldedDocuments:
        """Fold in the documents. `arrays` are (P(w|z), *inference.arrays), `rows` weights to start from."""

    def load(self, rng: np.random.Generator | None = None, most: int | None = None) -> tuple[MemoryCorpus, bool]:
        """Return the counts in memory, and whether these are all documents.

        With `rng`, a corpus of more than `most` non-zeros is sampled: the result has random documents with at most
        `most` non-zeros in total. None uses `LOADED_NONZEROS` for `most`.
        """

    def with_work_folder(self, work: Path) -> Self:
        """Return the corpus with a folder for files of a fit; a corpus in memory needs none."""

    def save_rows(self, rows: Rows) -> Any:
        """Return rows as an array, or as a folder of files (`data.rows.Generation`), for a checkpoint."""

    def restore_rows(self, saved: Any) -> Rows:
        """Return rows from an array, or from the `Generation.files` of a folder, after a check of its files.

        Raise ValueError if they have another form, and ModelFileError if a file is damaged.
        """

    def release(self) -> None:
        """Free memory that only a fit needs."""


class StoredCorpus(ABC):
    """Base class of corpora in files, which estimators accept in place of an array."""

    shape: tuple[int, int]
    dtype: Any
    vocabulary: list[str] | None
    """The word of each column; None if the words are not known."""

    @abstractmethod
    def session(self, dtype: np.dtype[Any], n_threads: int) -> AbstractContextManager[Any]:
        """Return a context manager that locks the files and yields the corpus of a fit, with factors of this type."""


def is_stored(X: Any) -> bool:
    """Return whether X is a corpus in files."""
    return isinstance(X, StoredCorpus)


class MemoryCorpus(Shard):
    """A corpus in the memory of this process: a single shard.

    A fit uses only documents of positive weight; `all_documents` of a corpus from `MemoryCorpus.of` also has those of
    weight zero.
    """

    in_memory: ClassVar[bool] = True
    fit_folder: ClassVar[None] = None
    kept: Array | None = None
    _complete: MemoryCorpus | None = None

    @classmethod
    def of(
        cls, X: Any, dtype: np.dtype[Any], weights: Floats | None, n_threads: int, entries: EntryWeights | None = None
    ) -> MemoryCorpus:
        """Return the corpus of the documents with a positive weight. With weights v of the entries, X is v x."""
        complete = cls(as_counts(X, dtype), weights, n_threads, entries)
        if weights is None or (weights > 0).all():
            return complete
        kept = np.flatnonzero(weights)
        kept_entries = None if entries is None else entries.take(kept)
        corpus = cls(as_counts(X[kept], dtype), weights[kept], n_threads, kept_entries)
        corpus.kept, corpus._complete = kept, complete
        return corpus

    @property
    def all_documents(self) -> MemoryCorpus:
        return self if self._complete is None else self._complete

    @property
    def n_nonzeros(self) -> int:
        return self.by_doc.values.size

    @property
    def doc_weights(self) -> Floats:
        return self.weighted_totals / self.tokens

    @property
    def digest(self) -> str:
        counts, digest = self.by_doc, hashlib.sha256(f"{self.counts.n_words}".encode())
        # The type of the indices does not change the data.
        for array in (counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.values, self.weights):
            if array is not None:
                digest.update(bytes_of(array))
        return digest.hexdigest()

    def rows(self, function: Callable[..., Array], shared: tuple[Array, ...] = ()) -> Array:
        return function(self, *shared)

    def split(self, array: Array) -> Array:
        return array

    def share(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        return arrays

    def gather(self, shared: tuple[Array, ...]) -> tuple[Array, ...]:
        return shared

    def run(self, step: Step, rows: Array, shared: tuple[Array, ...]) -> StepResult:
        prepared = step.prepare(shared, self.n_threads)
        result = step.e_step(self, rows, prepared)
        next_shared, report = step.m_step(self, prepared, result.stats)
        return StepResult(result.rows, shared, result.next_rows, next_shared, report)

    def combine(self, step: Step, extrapolate: Extrapolate, new: Point, old: Point) -> Point:
        rows = step.extrapolate_rows(extrapolate, new[0], old[0], self)
        return rows, step.extrapolate_shared(extrapolate, new[1], old[1])

    def map(self, function: Callable[..., T], rows: Array | None = None, shared: tuple[Array, ...] = ()) -> list[T]:
        return [function(self, rows, *shared)]

    def total(self, function: Callable[..., Any], rows: Array | None = None, shared: tuple[Array, ...] = ()) -> Any:
        return function(self, rows, *shared)

    def scan_shards(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        return step(0, self, state)

    def fold_in(self, job: FoldIn, arrays: tuple[Array, ...], rows: Array | None = None) -> FoldedDocuments:
        """Fold in the documents, a block of rows at a time, because the rows of a dense array become CSR."""
        parts, blocks, sums, start = [], [], None, 0
        for counts in row_batches(self.counts.matrix(), self.dtype):
            block = slice(start, start + counts.n_docs)
            weights = None if self.weights is None else self.weights[block]
            given = None
            if rows is not None or self.entries is not None:
                entries = None if self.entries is None else self.entries.take(block)
                given = GivenDocuments(None if rows is None else rows[block], entries)
            part, added = job.of_rows(block)(
                counts, weights, self.weighted_totals[block], arrays, self.n_threads, given
            )
            if added is not None:
                sums = accumulated(sums, added)
            parts.append(part._replace(rows={}, unknown=start + part.unknown))
            blocks.append(part.rows)
            start = block.stop
        folded = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        if job.training:
            doc_topic, unknown = folded["doc_topic"], np.concatenate([part.unknown for part in parts])
            doc_topic[unknown] = topic_weights_of(parts)
            if job.prior is not None:
                doc_topic[unknown] = job.prior.with_rows(unknown).adapt_start(doc_topic[unknown])
        return FoldedDocuments(parts, sums, folded)

    def load(self, rng: np.random.Generator | None = None, most: int | None = None) -> tuple[MemoryCorpus, bool]:
        most = LOADED_NONZEROS if most is None else most
        if rng is None or self.n_nonzeros <= most:
            return self, True
        rows = sampled_documents(np.diff(self.by_doc.indptr), rng, most)
        weights = None if self.weights is None else self.weights[rows]
        return MemoryCorpus(self.by_doc.take(rows), weights, self.n_threads), False

    def with_work_folder(self, work: Path) -> MemoryCorpus:
        return self

    def save_rows(self, rows: Array) -> Array:
        return rows

    def restore_rows(self, saved: Array) -> Array:
        shape = saved.shape[:1] if saved.ndim == 2 else None
        if shape != (self.n_docs,) or saved.dtype != self.dtype or not np.isfinite(saved).all():
            raise ValueError("its rows do not belong to these documents")
        return saved


def sampled_documents(nonzeros: Array, rng: np.random.Generator, most: int) -> Array:
    """Return random documents, in their order, with at most `most` non-zeros in total; at least one document."""
    order = rng.permutation(nonzeros.size)
    fits = np.cumsum(nonzeros[order], dtype=np.int64) <= most
    fits[0] = True
    return np.sort(order[fits])


def stacked(matrices: list[Any], dtype: np.dtype[Any], n_threads: int) -> MemoryCorpus:
    """Return the corpus of several matrices of counts, one below the other."""
    return MemoryCorpus(as_counts(sp.csr_array(sp.vstack(matrices, format="csr")), dtype), None, n_threads)


def accumulated(total: Stats | None, added: Stats) -> Stats:
    """Add a part to the total, in the memory of the first part, for which `total` is None. Return the new total."""
    return added if total is None else total.merge_into(total.word_sums, added)
