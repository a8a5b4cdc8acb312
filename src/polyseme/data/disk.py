"""A corpus on disk, processed shard by shard: memory holds the topics, and the documents of one shard.

`data.shard_files` describes the files of the shards, `data.rows` those of the parameters of the documents.
"""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from polyseme.core.fitted import FoldedDocuments, FoldedPart, FoldIn, GivenDocuments, topic_weights_of
from polyseme.core.model import Extrapolate
from polyseme.core.shard import ReductionTree, Shard
from polyseme.data.corpus import (
    LOADED_NONZEROS,
    MemoryCorpus,
    Point,
    Step,
    StepResult,
    StoredCorpus,
    StreamState,
    StreamStep,
    sampled_documents,
    stacked,
)
from polyseme.data.rows import ArrayRows, ComputedRows, ExtrapolatedRows, Generation, RowsFile, ShardRows, remove_unused
from polyseme.data.shard_files import (
    WORD_TOTALS,
    Manifest,
    MappedShard,
    check_size,
    open_shard,
    read_checked,
    read_manifest,
)
from polyseme.errors import ShardError
from polyseme.io.arrays import map_npy
from polyseme.io.files import (
    TEXT,
    FileManifest,
    list_of,
    only_writer,
    parse_json,
    read_ahead,
)
from polyseme.kernels import Array, Floats

FIT_FOLDER = "fit"
"""Folder beside the shards for the files of fits."""
_SESSION = "session-"
"""Start of the names of folders that only one session uses."""
T = TypeVar("T")


class DiskCorpus(StoredCorpus):
    """A corpus on disk, for `fit` and `transform` in place of an array; returned by `open_shards`.

    Iterating yields the counts of each shard as a SciPy CSR array, for `partial_fit`.

    Parameters
    ----------
    folder : str or PathLike
        Folder of shards.

    Attributes
    ----------
    folder : Path
        Folder of shards.
    manifest : Manifest
        Names, sizes and digests of the files.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest = read_manifest(self.folder)
        if not self.manifest.complete:
            raise ShardError(
                f"{self.folder} is not complete: call write_shards again with the same documents to finish it."
            )
        for entry in self.manifest.shards:
            check_size(self.folder, entry)
        self._checked: dict[int, memoryview] = {}
        """Bytes of the shards whose digests this object has checked, mapped."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the mapped files: a copy checks them again."""
        return {**vars(self), "_checked": {}}

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Numbers of documents and words."""
        return self.manifest.documents, self.manifest.words

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the counts."""
        return np.dtype(self.manifest.dtype)

    @cached_property
    def vocabulary(self) -> list[str] | None:  # type: ignore[override]
        """Words in the order of the columns; None if the shards have no vocabulary."""
        if self.manifest.vocabulary is None:
            return None
        content = read_checked(self.folder, self.manifest.vocabulary)
        try:
            words: list[str] = parse_json(bytes(content))
            list_of(TEXT).require("vocabulary", words)
        except ValueError as error:
            path = self.folder / self.manifest.vocabulary.name
            raise ShardError(f"{path} is damaged ({error}): write the shards again.") from None
        return words

    def __iter__(self) -> Iterator[Any]:
        for number in range(len(self.manifest.shards)):
            yield self.shard(number, self.dtype, 1).counts.matrix()

    def shard(self, number: int, dtype: np.dtype[Any], n_threads: int) -> MappedShard:
        """Return a shard, mapped. Its digest is checked the first time.

        Parameters
        ----------
        number : int
            Index of the shard.
        dtype : numpy.dtype
            Type of the factors.
        n_threads : int
            Number of threads of the kernels.

        Returns
        -------
        MappedShard
            Counts of the documents of the shard.
        """
        entry = self.manifest.shards[number]
        check_size(self.folder, entry)
        if number not in self._checked:
            self._checked[number] = read_checked(self.folder, entry)
        return open_shard(self.folder, entry, self.manifest.words, dtype, n_threads, self._checked[number])

    @contextmanager
    def session(self, dtype: np.dtype[Any], n_threads: int) -> Iterator[Any]:
        """Hold the lock of the folder, because a fit writes beside the shards, and yield the corpus of a fit.

        Parameters
        ----------
        dtype : numpy.dtype
            Type of the factors.
        n_threads : int
            Number of threads of the kernels.

        Yields
        ------
        LocalShards
            The corpus.

        Raises
        ------
        InputError
            If another fit or writer holds the lock.
        """
        with self._work_folder() as work:
            yield LocalShards(self, dtype, n_threads, work)

    @contextmanager
    def _work_folder(self) -> Iterator[Path]:
        """Hold the lock of the folder, and yield a folder for files that are removed at the end."""
        with only_writer(self.folder, "fit"):
            fits = self.folder / FIT_FOLDER
            for left in fits.glob(f"{_SESSION}*"):  # left by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            fits.mkdir(exist_ok=True)
            work = Path(tempfile.mkdtemp(dir=fits, prefix=_SESSION))
            try:
                yield work
            finally:
                remove_unused()
                shutil.rmtree(work, ignore_errors=True)
                with suppress(OSError):  # not empty if a fit can be resumed
                    fits.rmdir()


@dataclass
class ShardedCorpus(ABC):
    """Base class of the corpora that read shards: sizes, totals, and the folder that a fit writes to."""

    shards: DiskCorpus
    dtype: np.dtype[Any]
    n_threads: int
    work: Path
    """Folder for generations of rows."""
    _open: dict[int, MappedShard] = field(default_factory=dict, repr=False)
    _buffers: list[Floats] = field(init=False, default_factory=list, repr=False)
    """Memory of word sums, which the next iteration reuses."""

    in_memory: ClassVar[bool] = False
    kept: ClassVar[None] = None
    entries: ClassVar[None] = None

    @property
    def n_docs(self) -> int:
        return self.shards.shape[0]

    @property
    def documents(self) -> float:
        return float(self.n_docs)

    @property
    def n_words(self) -> int:
        return self.shards.shape[1]

    @property
    def n_nonzeros(self) -> int:
        return sum(entry.nonzeros for entry in self.shards.manifest.shards)

    @property
    def n_shards(self) -> int:
        return len(self.shards.manifest.shards)

    @property
    def tokens(self) -> float:
        return self.shards.manifest.tokens

    @property
    def digest(self) -> str:
        return self.shards.manifest.digest

    @cached_property
    def word_totals(self) -> Floats:
        """n_w, the number of tokens of each word in all shards."""
        entry = self.shards.manifest.word_totals
        path = self.shards.folder / WORD_TOTALS
        totals = None
        if entry is not None:
            read_checked(self.shards.folder, entry)
            try:
                totals = map_npy(path)
            except (OSError, ValueError) as error:
                raise ShardError(f"{path} is damaged ({error}): write the shards again.") from None
        if totals is None or totals.shape != (self.n_words,) or totals.dtype != np.float64:
            raise ShardError(f"{path} does not match the manifest: write the shards again.")
        return np.asarray(totals)

    @property
    def unigram(self) -> Floats:
        return self.word_totals / self.word_totals.sum()

    @property
    def all_documents(self) -> Self:
        return self

    @property
    def fit_folder(self) -> Path:
        return self.shards.folder / FIT_FOLDER

    @property
    def doc_weights(self) -> Floats:
        return self.totals / self.tokens

    @cached_property
    def totals(self) -> Floats:
        """n_d, the number of tokens of each document."""
        return np.concatenate([self.shard(number).totals for number in range(self.n_shards)])

    @cached_property
    def first_documents(self) -> list[int]:
        """Index of the first document of each shard."""
        sizes = [entry.documents for entry in self.shards.manifest.shards]
        return [0, *np.cumsum(sizes).tolist()[:-1]]

    def shard(self, number: int) -> MappedShard:
        """Return a shard, mapped. Its digest is checked the first time."""
        if number not in self._open:
            self._open[number] = self.shards.shard(number, self.dtype, self.n_threads)
        return self._open[number]

    def load(self, rng: np.random.Generator | None = None, most: int | None = None) -> tuple[MemoryCorpus, bool]:
        """Read all documents, or a sample of them, into memory."""
        most = LOADED_NONZEROS if most is None else most
        shards = [self.shard(number).counts.matrix() for number in range(self.n_shards)]
        if rng is None or self.n_nonzeros <= most:
            return stacked(shards, self.dtype, self.n_threads), True
        rows = sampled_documents(np.concatenate([np.diff(matrix.indptr) for matrix in shards]), rng, most)
        cuts = np.searchsorted(rows, [*self.first_documents, self.n_docs])
        parts = [
            matrix[rows[begin:end] - first]
            for matrix, first, begin, end in zip(shards, self.first_documents, cuts[:-1], cuts[1:], strict=True)
        ]
        return stacked(parts, self.dtype, self.n_threads), False

    def release(self) -> None:  # noqa: B027, both corpora do nothing
        """Do nothing: the shards are mapped, and folding in needs them."""

    # files of a fit

    def with_work_folder(self, work: Path) -> Self:
        """Return the same corpus with its own folder for generations of rows."""
        work.mkdir(parents=True, exist_ok=True)
        return replace(self, work=work)

    def new_generation(self) -> Generation:
        remove_unused()
        return Generation(Path(tempfile.mkdtemp(dir=self.work, prefix="theta-")))

    def checked_generation(self, saved: FileManifest) -> Generation:
        """Return stored rows. Raise ModelFileError or ValueError if a file is damaged or belongs to other documents."""
        generation, widths = Generation(saved.folder, saved, kept=True), set()
        for number, shard in enumerate(self.shards.manifest.shards):
            rows = map_npy(saved.path(generation.path(number).name))
            if rows.ndim != 2 or len(rows) != shard.documents or rows.dtype != self.dtype:
                raise ValueError("its rows do not belong to these documents")
            if not np.isfinite(rows).all():
                raise ValueError("its rows have a number that is not finite")
            widths.add(rows.shape[1])
        if len(widths) > 1:
            raise ValueError("its rows have different widths")
        return generation

    def fold_in(self, job: FoldIn, arrays: tuple[Array, ...], rows: Any = None) -> FoldedDocuments:
        """Fold in every shard. The rows of all documents become files beside the shards, which are mapped."""
        remove_unused()  # the rows of the fit, which would take more of the disk than the result
        self._buffers.clear()
        shape, dtype = (self.n_docs, len(arrays[0])), arrays[0].dtype
        names = ["doc_topic", *job.inference.parameter_names] if job.training else [TRANSFORMED]
        files = {name: RowsFile(self.shards.folder / f"{name}.npy", shape, dtype) for name in names}
        try:
            for file in files.values():
                file.allocate()
            parts, sums = self._fold_shards(job, list(files.values()), arrays, rows)
            if job.training:
                unknown = np.concatenate([part.unknown for part in parts])
                files["doc_topic"].fill(unknown, topic_weights_of(parts))
            mapped = {name: file.publish() for name, file in files.items()}
        finally:
            for file in files.values():
                file.part.unlink(missing_ok=True)
        if not job.training:
            mapped = {"doc_topic": mapped[TRANSFORMED]}
        return FoldedDocuments(parts, sums, mapped)

    @abstractmethod
    def _fold_shards(
        self, job: FoldIn, files: list[RowsFile], arrays: tuple[Array, ...], rows: Any
    ) -> tuple[list[FoldedPart], Any]:
        """Fold in every shard, write its rows, and return the parts and the sum of their statistics."""


TRANSFORMED = "transformed"
"""Name of the file with the weights that `transform` returns. Those of the training documents have another file."""


def fold_shard(
    job: FoldIn,
    files: list[RowsFile],
    first: int,
    shard: Shard,
    arrays: tuple[Array, ...],
    start: Array | None,
    memory: Floats | None = None,
) -> tuple[FoldedPart, Any]:
    """Fold in one shard, write its rows, and return the other results. None as `start` means uniform weights."""
    given = None if start is None else GivenDocuments(start)
    part, sums = job(shard.by_doc, None, shard.totals, arrays, shard.n_threads, given, memory)
    for file, rows in zip(files, part.rows.values(), strict=True):
        file.write(first, rows)
    return part._replace(rows={}, unknown=first + part.unknown), sums


class LocalShards(ShardedCorpus):
    """A corpus on disk whose shards this process reads one after the other."""

    def map(self, function: Callable[..., T], rows: ShardRows | None = None, shared: Any = ()) -> list[T]:
        return [self._call(function, number, rows, shared) for number in range(self.n_shards)]

    def total(self, function: Callable[..., Any], rows: ShardRows | None = None, shared: Any = ()) -> Any:
        tree = ReductionTree[Any]()
        for number in range(self.n_shards):
            tree.add(self._call(function, number, rows, shared))
            tree.spare()  # the function would not reuse it
        return tree.total()

    def _call(self, function: Callable[..., T], number: int, rows: ShardRows | None, shared: Any) -> T:
        shard = self.shard(number)
        return function(shard, None if rows is None else rows.of(number, shard), *shared)

    def scan_shards(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        for number in rng.permutation(self.n_shards).tolist():
            state = step(number, self.shard(number), state)
        return state

    def rows(self, function: Callable[..., Array], shared: tuple[Array, ...] = ()) -> ShardRows:
        return ComputedRows(function, shared)

    def split(self, array: Array) -> ShardRows:
        return ArrayRows(array, self.first_documents)

    def share(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        return arrays

    def gather(self, shared: tuple[Array, ...]) -> tuple[Array, ...]:
        return shared

    def run(self, step: Step, rows: ShardRows, shared: tuple[Array, ...]) -> StepResult:
        """Run a step; the E-step of every shard writes its rows of the next generation.

        While a shard is swept, the system reads the next one, and a thread writes the rows of the one before.
        """
        generation, tree = self.new_generation(), ReductionTree[Any](self._buffers)
        prepared = step.prepare(shared, self.n_threads)
        with ThreadPoolExecutor(1) as writer:
            written: Future[None] | None = None
            for number in range(self.n_shards):
                self._read_ahead(number + 1, rows)
                shard = self.shard(number)
                result = step.e_step(shard, rows.of(number, shard), prepared, tree.spare())
                if written is not None:
                    written.result()
                written = writer.submit(generation.write, number, result.next_rows)
                tree.add(result.stats)
            if written is not None:
                written.result()
        stats = tree.total()
        next_shared, report = step.m_step(self, prepared, stats)
        self._buffers.append(stats.word_sums)
        return StepResult(rows, shared, generation, next_shared, report)

    def _read_ahead(self, number: int, rows: ShardRows) -> None:
        if number < self.n_shards:
            for path in (self.shards.folder / self.shards.manifest.shards[number].name, *rows.paths(number)):
                read_ahead(path)

    def combine(self, step: Step, extrapolate: Extrapolate, new: Point, old: Point) -> Point:
        rows = ExtrapolatedRows(step, extrapolate, new[0], old[0])
        return rows, step.extrapolate_shared(extrapolate, new[1], old[1])

    def save_rows(self, rows: ShardRows) -> Generation:
        """Return rows as files that are flushed to disk."""
        if isinstance(rows, Generation):
            generation = rows
        else:
            generation = self.new_generation()
            for number in range(self.n_shards):
                generation.write(number, rows.of(number, self.shard(number)))
        generation.flush()
        return generation

    def restore_rows(self, saved: FileManifest) -> Generation:
        return self.checked_generation(saved)

    def _fold_shards(
        self, job: FoldIn, files: list[RowsFile], arrays: tuple[Array, ...], rows: Any
    ) -> tuple[list[FoldedPart], Any]:
        parts, tree = [], ReductionTree[Any]()
        for number, first in enumerate(self.first_documents):
            shard = self.shard(number)
            start = None if rows is None else rows.of(number, shard)
            part, sums = fold_shard(job, files, first, shard, arrays, start, tree.spare())
            parts.append(part)
            if sums is not None:
                tree.add(sums)
        return parts, tree.total() if job.training else None
