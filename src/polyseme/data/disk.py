"""A corpus on disk, processed shard by shard: memory holds the topics, and the documents of one shard.

Rows are not an array here, but an object that returns the rows of each shard: computed rows, a folder with one file per
shard (a generation), or an extrapolation of two of these. Every iteration writes the next generation. Generations
without references are removed.

A shard is a safetensors file with the CSR arrays of its documents, the same counts in word order (so that a pass over
words needs no transpose), and the lengths of the documents. The manifest has the size and SHA-256 of each file, and a
digest of its own content. It is replaced after every shard that is written, so it always describes complete files.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import os
import shutil
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

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
from polyseme.errors import InputError, ShardError
from polyseme.io.arrays import arrays_in, bytes_of, map_npy, npy_header, npy_parts, safetensors_parts
from polyseme.io.files import (
    COUNT,
    FLAG,
    NULL,
    TEXT,
    FileManifest,
    check_fields,
    either,
    file_digest,
    flush_to_disk,
    list_of,
    object_with,
    one_of,
    only_writer,
    parse_json,
    read_json,
    umask,
    whole_number,
    write_atomically,
    write_with_digest,
)
from polyseme.io.files import number as finite_number
from polyseme.kernels import Array, Floats, SparseCounts, find_counts_error

FIT_FOLDER = "fit"
"""Folder beside the shards for the files of fits."""
_SESSION = "session-"
"""Start of the names of folders that only one session uses."""
T = TypeVar("T")


class ShardRows(Protocol):
    """Rows of all documents as an object that returns the rows of a shard."""

    def of(self, number: int, shard: Shard) -> Array: ...


@dataclass(frozen=True)
class ComputedRows:
    """Rows that a function computes for each shard."""

    function: Callable[..., Array]
    shared: tuple[Array, ...]

    def of(self, number: int, shard: Shard) -> Array:
        return self.function(shard, *self.shared)


@dataclass(frozen=True)
class ArrayRows:
    """Rows of an array with one row for each document, in memory or mapped."""

    array: Array
    first: list[int]
    """Index of the first document of each shard."""

    def of(self, number: int, shard: Shard) -> Array:
        rows = self.array[self.first[number] : self.first[number] + shard.n_docs]
        rows.flags.writeable = False
        return rows


@dataclass(frozen=True)
class ExtrapolatedRows:
    """Extrapolation of two steps, computed when it is used."""

    step: Step
    extrapolate: Extrapolate
    new: ShardRows
    old: ShardRows

    def of(self, number: int, shard: Shard) -> Array:
        return self.step.extrapolate_rows(
            self.extrapolate, self.new.of(number, shard), self.old.of(number, shard), shard
        )


class Generation:
    """Rows as a folder with one file per shard.

    The folder is removed after the last reference to this object is gone, unless `keep` was called. No finalizer
    removes it: Python only prints an exception in a finalizer, so a Ctrl-C during the removal would be lost. Instead
    the garbage collector appends the reference to a list, without running Python code, and `remove_unused` removes the
    folder later.
    """

    def __init__(self, folder: Path, files: FileManifest | None = None, *, kept: bool = False) -> None:
        self.folder = folder
        self.files = FileManifest(folder) if files is None else files
        """Sizes and digests of the files, known after `flush`."""
        if not kept:
            self.remove_when_unused()

    def of(self, number: int, shard: Shard) -> Array:
        return read_rows(self.path(number), shard.n_docs, shard.dtype)

    def write(self, number: int, rows: Array) -> None:
        write_atomically(self.path(number), npy_parts(rows), flush=False)

    def flush(self) -> None:
        """Flush the files to disk, and compute their digests, unless they are known."""
        for path in self.folder.glob("*.npy"):
            if path.name in self.files.entries:
                flush_to_disk(path)
            else:
                self.files.add(path.name)
        flush_to_disk(self.folder)

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(map_npy(self.path(0)).shape[1])

    def keep(self) -> None:
        """Do not remove the folder, not even when the process exits."""
        _removable.pop(weakref.ref(self), None)

    def remove_when_unused(self) -> None:
        """Remove the folder when this object is garbage-collected or the process exits."""
        _removable[weakref.ref(self, _unused.append)] = self.folder

    def path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npy"


_removable: dict[weakref.ref[Generation], Path] = {}
_unused: deque[weakref.ref[Generation]] = deque()
_removing = threading.Lock()


def remove_unused() -> None:
    """Remove the folders of generations without references."""
    with _removing:
        while _unused:
            if _unused[0] in _removable:
                shutil.rmtree(_removable[_unused[0]], ignore_errors=True)
                # After rmtree, so that after a Ctrl-C in it the next call removes the rest of the folder.
                del _removable[_unused[0]]
            _unused.popleft()


@atexit.register
def _remove_all() -> None:
    """Remove the folders of all generations that are not kept."""
    for folder in list(_removable.values()):
        shutil.rmtree(folder, ignore_errors=True)


def read_rows(path: Path, n_docs: int, dtype: np.dtype[Any]) -> Array:
    """Return the rows of a shard, mapped from a .npy file."""
    try:
        rows = map_npy(path)
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} is missing or damaged ({error}): remove the folder {path.parents[1]}.") from None
    if rows.ndim != 2 or rows.shape[0] != n_docs or rows.dtype != dtype:
        raise ShardError(f"{path} does not belong to these shards: remove the folder {path.parents[1]}.")
    return rows


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
        """Return a shard, mapped, after a check of its digest.

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
        return open_shard(self.folder, self.manifest.shards[number], self.manifest.words, dtype, n_threads)

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


@dataclass(frozen=True)
class RowsFile:
    """A .npy file with one row for each document, which is written a shard at a time."""

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def part(self) -> Path:
        """Name of the file until it is complete."""
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def _header(self) -> bytes:
        return npy_header(np.broadcast_to(np.zeros(1, dtype=self.dtype), self.shape))

    @property
    def _row_size(self) -> int:
        return self.shape[1] * self.dtype.itemsize

    def allocate(self) -> None:
        self.part.unlink(missing_ok=True)  # left by a process that was killed, or a planted link
        with self.part.open("xb") as file:
            file.write(self._header)
            file.truncate(len(self._header) + self.shape[0] * self._row_size)

    def write(self, first: int, rows: Array) -> None:
        """Write the rows of consecutive documents, starting with document `first`."""
        with self.part.open("r+b") as file:
            file.seek(len(self._header) + first * self._row_size)
            file.write(bytes_of(np.ascontiguousarray(rows, dtype=self.dtype)))

    def fill(self, documents: Array, row: Array) -> None:
        """Write the same row for several documents."""
        content = row.astype(self.dtype).tobytes()
        with self.part.open("r+b") as file:
            for number in documents.tolist():
                file.seek(len(self._header) + number * self._row_size)
                file.write(content)

    def publish(self) -> Array:
        """Rename the complete file to `path`, and return its rows, mapped."""
        os.chmod(self.part, 0o666 & ~umask())
        os.replace(self.part, self.path)
        return np.load(self.path, mmap_mode="r").view(np.ndarray)


def fold_shard(
    job: FoldIn, files: list[RowsFile], first: int, shard: Shard, arrays: tuple[Array, ...], start: Array | None
) -> tuple[FoldedPart, Any]:
    """Fold in one shard, write its rows, and return the other results. None as `start` means uniform weights."""
    given = None if start is None else GivenDocuments(start)
    part, sums = job(shard.by_doc, None, shard.totals, arrays, shard.n_threads, given)
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
        """Run a step; the E-step of every shard writes its rows of the next generation."""
        generation, tree = self.new_generation(), ReductionTree[Any](self._buffers)
        prepared = step.prepare(shared, self.n_threads)
        for number in range(self.n_shards):
            shard = self.shard(number)
            result = step.e_step(shard, rows.of(number, shard), prepared, tree.spare())
            generation.write(number, result.next_rows)
            tree.add(result.stats)
        stats = tree.total()
        next_shared, report = step.m_step(self, prepared, stats)
        self._buffers.append(stats.word_sums)
        return StepResult(rows, shared, generation, next_shared, report)

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
            part, sums = fold_shard(job, files, first, shard, arrays, start)
            parts.append(part)
            if sums is not None:
                tree.add(sums)
        return parts, tree.total() if job.training else None


# files

FORMAT_VERSION = 2
"""Version of the shards that this version of polyseme writes and reads. Version 1 was never released."""
MANIFEST, WORD_TOTALS, VOCABULARY = "manifest.json", "word_totals.npy", "vocabulary.json"
_MAX_INT32 = np.iinfo(np.int32).max
_FIELDS = {
    "name": TEXT,
    "size": COUNT,
    "sha256": TEXT,
    "documents": whole_number(0, _MAX_INT32),
    "nonzeros": whole_number(0, _MAX_INT32),
    "tokens": finite_number(0, 1e300),
}
_ENTRY = object_with(_FIELDS, required=_FIELDS)
_MANIFEST = {
    "format_version": COUNT,
    "words": whole_number(0, _MAX_INT32),
    "dtype": one_of("float32", "float64"),
    "shard_nonzeros": COUNT,
    "shards": list_of(_ENTRY),
    "word_totals": either(NULL, _ENTRY),
    "vocabulary": either(NULL, _ENTRY),
    "complete": FLAG,
}


@dataclass(frozen=True)
class Entry:
    """Description of a file in the manifest."""

    name: str
    size: int
    sha256: str
    documents: int = 0
    nonzeros: int = 0
    tokens: float = 0.0


@dataclass(frozen=True)
class Manifest:
    """Content of a folder of shards."""

    words: int
    dtype: str
    """Type of the counts, float32 or float64."""
    shard_nonzeros: int
    shards: tuple[Entry, ...] = ()
    word_totals: Entry | None = None
    vocabulary: Entry | None = None
    complete: bool = False
    format_version: int = field(default=FORMAT_VERSION)

    @property
    def files(self) -> list[Entry]:
        """All files that the manifest lists."""
        return [*self.shards, *(entry for entry in (self.word_totals, self.vocabulary) if entry is not None)]

    @property
    def documents(self) -> int:
        return sum(entry.documents for entry in self.shards)

    @property
    def tokens(self) -> float:
        return sum(entry.tokens for entry in self.shards)

    @property
    def digest(self) -> str:
        """Digest of the content, which changes with any count."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        content = {**asdict(self), "digest": self.digest}
        write_atomically(folder / MANIFEST, json.dumps(content, indent=1).encode())


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a folder. Raise ShardError if it is damaged."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder} has no {MANIFEST}: write shards there with polyseme.scale.write_shards.")
    try:
        content = read_json(path)
        check_fields(content, _MANIFEST, required=("format_version",), others=True)
        if content["format_version"] == FORMAT_VERSION:
            content["shards"] = tuple(Entry(**entry) for entry in content["shards"])
            for name in ("word_totals", "vocabulary"):
                content[name] = None if content[name] is None else Entry(**content[name])
            digest = content.pop("digest", None)
            manifest = Manifest(**content)
            if manifest.digest != digest:
                raise ValueError("its digest does not match its content")
            if any(Path(entry.name).name != entry.name for entry in manifest.files):
                raise ValueError("a file name contains a folder")
            return manifest
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ShardError(f"{path} is damaged ({error}): write the shards again.") from None
    if content["format_version"] < FORMAT_VERSION:
        raise ShardError(f"{path} was written by an early version of polyseme: write the shards again.")
    raise ShardError(f"{path} was written by a newer polyseme: update polyseme to read it.")


def write_shard(folder: Path, number: int, counts: SparseCounts, file: int | None = None) -> Entry:
    """Write counts to a shard file, atomically. Return its description for the manifest.

    file : index of the input file, if shards are numbered within files. The name of the shard then has both numbers.
    """
    if counts.values.size >= _MAX_INT32 or counts.n_words >= _MAX_INT32:
        raise InputError("A shard must have fewer than 2^31 counts and words: choose a smaller shard_nonzeros.")
    by_word = counts.transposed(None)
    totals = counts.totals
    arrays: dict[str, Array] = {
        "totals": totals,
        "indptr": counts.indptr.astype(np.int32, copy=False),
        "indices": counts.indices.astype(np.int32, copy=False),
        "values": counts.values,
        "word_indptr": by_word.indptr.astype(np.int32, copy=False),
        "word_indices": by_word.indices.astype(np.int32, copy=False),
        "word_values": by_word.values,
    }
    name = f"shard-{number:06d}.safetensors" if file is None else f"shard-{file:06d}-{number:06d}.safetensors"
    entry = write_checked(folder / name, safetensors_parts(arrays))
    return replace(entry, documents=counts.n_docs, nonzeros=int(counts.values.size), tokens=float(totals.sum()))


def write_checked(path: Path, parts: Iterable[Any]) -> Entry:
    """Write a file from buffers, atomically. Return its name, size and digest."""
    return Entry(path.name, *write_with_digest(path, parts))


def read_checked(folder: Path, entry: Entry) -> memoryview:
    """Return the mapped bytes of a file, after a check of its size and digest."""
    check_size(folder, entry)
    # Use one handle, so that the file that is mapped is the one whose digest was checked.
    with (folder / entry.name).open("rb") as file:
        if file_digest(file) != entry.sha256:
            raise ShardError(
                f"{folder / entry.name} is damaged: its digest differs from the manifest; write the shards again."
            )
        content: Array = np.memmap(file, dtype=np.uint8, mode="r") if entry.size else np.empty(0, dtype=np.uint8)
    return content.data


def check_size(folder: Path, entry: Entry) -> None:
    """Raise ShardError if a file is missing or does not have the size in the manifest."""
    path = folder / entry.name
    if not path.is_file():
        raise ShardError(f"{path} is missing: restore it, or write the shards again.")
    if path.stat().st_size != entry.size:
        raise ShardError(
            f"{path} has {path.stat().st_size} bytes where the manifest says {entry.size}: write the shards again."
        )


class MappedShard(Shard):
    """A shard in a memory-mapped file. The operating system loads its pages when needed and may drop them again."""

    def __init__(self, counts: SparseCounts, totals: Floats, n_threads: int) -> None:
        super().__init__(counts, None, n_threads)
        self.totals = totals


def open_shard(folder: Path, entry: Entry, n_words: int, dtype: np.dtype[Any], n_threads: int) -> MappedShard:
    """Return a shard, after a check of its digest. `dtype` is the type of the factors."""
    content = read_checked(folder, entry)
    try:
        arrays = arrays_in(np.asarray(content))
        shape, transposed = (entry.documents, n_words), (n_words, entry.documents)
        by_word = _csr(arrays, "word_", transposed, entry.nonzeros, dtype)
        counts = _csr(arrays, "", shape, entry.nonzeros, dtype, by_word)
        totals = arrays["totals"]
        if (
            totals.shape != (entry.documents,)
            or totals.dtype != np.float64
            or not (np.isfinite(totals) & (totals >= 0)).all()
            or not math.isclose(totals.sum(), entry.tokens, rel_tol=1e-9)
        ):
            raise ValueError("the lengths of the documents do not match the manifest")
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ShardError(f"{folder / entry.name} is not a shard ({error}): write the shards again.") from None
    return MappedShard(counts, totals, n_threads)


def _csr(
    arrays: dict[str, Array],
    prefix: str,
    shape: tuple[int, int],
    nonzeros: int,
    dtype: np.dtype[Any],
    transpose: SparseCounts | None = None,
) -> SparseCounts:
    """Return counts from CSR arrays. Raise ValueError if the arrays are not valid."""
    indptr, indices, values = (arrays[prefix + name] for name in ("indptr", "indices", "values"))
    if (
        indptr.dtype != np.int32
        or indices.dtype != np.int32
        or values.dtype.kind != "f"
        or indices.shape != (nonzeros,)
    ):
        raise ValueError("its arrays do not match the manifest")
    fault = find_counts_error(indptr, indices, values, shape)
    if fault is not None:
        raise ValueError(fault)
    transposes: list[tuple[Floats | None, SparseCounts]] = [] if transpose is None else [(None, transpose)]
    return SparseCounts(indptr, indices, values.astype(dtype, copy=False), *shape, transposes)
