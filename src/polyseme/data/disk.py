"""A corpus on disk, processed shard by shard: memory holds the topics, and the documents of one shard.

theta is not an array here, but an object that returns the rows of each shard: uniform rows, a folder with one file per
shard (a generation), or an extrapolation of two of these. Every iteration writes the next generation. Generations
without references are removed.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from polyseme.core.model import EMStepResult, Model, background_sums, e_step, m_step
from polyseme.core.shard import Shard
from polyseme.core.statistics import ReductionTree, SufficientStatistics
from polyseme.data.corpus import Extrapolate, StreamState, StreamStep, uniform_rows
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
from polyseme.io.checks import TEXT, list_of, parse_json
from polyseme.io.files import flush_to_disk, only_writer, write_atomically
from polyseme.io.tensors import bytes_of, map_npy, npy_header
from polyseme.kernels import Array, Floats, normalize_columns

FIT_FOLDER = "fit"
"""Folder beside the shards for the files of fits."""


class ShardRows(Protocol):
    """theta as an object that returns the rows of a shard."""

    def of(self, number: int, shard: MappedShard) -> Array: ...


@dataclass(frozen=True)
class UniformRows:
    """theta with equal weights of all topics."""

    model: Model

    def of(self, number: int, shard: MappedShard) -> Array:
        return uniform_rows(self.model, shard.n_docs, shard.dtype)


@dataclass(frozen=True)
class ComputedRows:
    """theta from a function that computes the rows of a shard."""

    function: Callable[[Shard], Array]

    def of(self, number: int, shard: MappedShard) -> Array:
        return self.function(shard)


@dataclass(frozen=True)
class ExtrapolatedRows:
    """Extrapolation of two thetas, computed when it is used."""

    model: Model
    extrapolate: Extrapolate
    new: ShardRows
    old: ShardRows

    def of(self, number: int, shard: MappedShard) -> Array:
        rows = self.extrapolate(self.new.of(number, shard), self.old.of(number, shard))
        return self.model.normalize_docs(rows, shard)


class Generation:
    """theta as a folder with one file per shard.

    The folder is removed after the last reference to this object is gone, unless `keep` was called. No finalizer
    removes it: Python only prints an exception in a finalizer, so a Ctrl-C during the removal would be lost. Instead
    the garbage collector appends the reference to a list, without running Python code, and `remove_unused` removes the
    folder later.
    """

    def __init__(self, folder: Path, *, kept: bool = False) -> None:
        self.folder = folder
        if not kept:
            self.remove_when_unused()

    def of(self, number: int, shard: MappedShard) -> Array:
        return read_rows(self.path(number), shard.n_docs, shard.dtype)

    def write(self, number: int, rows: Array, *, flush: bool = False) -> None:
        write_rows(self.path(number), rows, flush=flush)

    def flush(self) -> None:
        """Flush the files to disk."""
        for path in [*self.folder.iterdir(), self.folder]:
            flush_to_disk(path)

    def keep(self) -> None:
        """Do not remove the folder, also when the process exits."""
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


def write_rows(path: Path, rows: Array, *, flush: bool = False) -> None:
    """Write rows of theta to a .npy file, atomically."""
    write_atomically(path, [npy_header(rows), bytes_of(rows)], flush=flush)


def read_rows(path: Path, n_docs: int, dtype: np.dtype[Any]) -> Array:
    """Return rows of theta, mapped from a .npy file."""
    try:
        rows = map_npy(path)
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} is missing or damaged ({error}): remove the folder {path.parents[1]}.") from None
    if rows.ndim != 2 or rows.shape[0] != n_docs or rows.dtype != dtype:
        raise ShardError(f"{path} does not belong to these shards: remove the folder {path.parents[1]}.")
    return rows


class DiskCorpus:
    """A corpus on disk, for `PLSA.fit` and `PLSA.transform` in place of an array; returned by `open_shards`.

    Iterating yields the counts of each shard as a SciPy CSR array, for `partial_fit`.

    Parameters
    ----------
    folder : str or PathLike
        Folder of shards.
    checkpoint_every : int, default=5
        Iterations between two checkpoints of a fit.

    Attributes
    ----------
    folder : Path
        Folder of shards.
    manifest : Manifest
        Names, sizes and digests of the files.
    """

    def __init__(self, folder: str | PathLike[str], *, checkpoint_every: int = 5) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest = read_manifest(self.folder)
        self.checkpoint_every = checkpoint_every
        if not self.manifest.complete:
            raise ShardError(
                f"{self.folder} is not complete: call write_shards again with the same documents to finish it."
            )
        for entry in self.manifest.shards:
            check_size(self.folder, entry)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of documents and words."""
        return self.manifest.documents, self.manifest.words

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the counts."""
        return np.dtype(self.manifest.dtype)

    @cached_property
    def vocabulary(self) -> list[str] | None:
        """Return the words in the order of the columns; None if the shards have no vocabulary."""
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
            Number of the shard, from 0.
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

    def corpus(self, dtype: np.dtype[Any], n_threads: int) -> Any:
        """Return the corpus with the methods that a fit uses.

        Parameters
        ----------
        dtype : numpy.dtype
            Type of the factors.
        n_threads : int
            Number of threads of the kernels.

        Returns
        -------
        DiskSource
            The corpus.
        """
        return DiskSource(self, dtype, n_threads)

    def only_writer(self) -> AbstractContextManager[None]:
        """Return a context manager that holds the lock of the folder, because a fit writes beside the shards.

        Returns
        -------
        context manager
            Raises InputError on entry if another fit or writer holds the lock.
        """
        return only_writer(self.folder, "fit")


@dataclass
class ShardFolder:
    """Base class of `DiskSource` and `DaskSource`: sizes, totals, and the folder that a fit writes to."""

    shards: DiskCorpus
    dtype: np.dtype[Any]
    n_threads: int
    work: Path | None = None
    """Folder for generations of theta."""
    _open: dict[int, MappedShard] = field(default_factory=dict, repr=False)

    in_memory: ClassVar[bool] = False

    @property
    def n_docs(self) -> int:
        return self.shards.shape[0]

    @property
    def n_words(self) -> int:
        return self.shards.shape[1]

    @property
    def tokens(self) -> float:
        return self.shards.manifest.tokens

    @cached_property
    def word_totals(self) -> Floats:
        """Return n_w over all shards."""
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

    @cached_property
    def totals(self) -> Floats:
        """Return n_d of all documents."""
        return np.concatenate([self.shard(number).totals for number in range(self.n_shards)])

    def shard(self, number: int) -> MappedShard:
        """Return a shard, mapped. Its digest is checked the first time."""
        if number not in self._open:
            self._open[number] = self.shards.shard(number, self.dtype, self.n_threads)
        return self._open[number]

    @property
    def n_shards(self) -> int:
        return len(self.shards.manifest.shards)

    # files of a fit

    def with_work_folder(self, name: str) -> Self:
        """Return the same corpus with its own folder for generations."""
        work = self.shards.folder / FIT_FOLDER / name
        work.mkdir(parents=True, exist_ok=True)
        return replace(self, work=work)

    def forget(self) -> None:
        """Remove the files of all fits."""
        shutil.rmtree(self.shards.folder / FIT_FOLDER, ignore_errors=True)

    def new_generation(self) -> Generation:
        assert self.work is not None
        remove_unused()
        return Generation(Path(tempfile.mkdtemp(dir=self.work, prefix="theta-")))


class DiskSource(ShardFolder):
    """A corpus on disk whose shards this process reads one after the other."""

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return function(number, shard, *arguments) of every shard."""
        return [function(number, self.shard(number), *arguments) for number in range(self.n_shards)]

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum over all shards of the statistics function(number, shard, *arguments).

        The function takes a keyword `memory`, an array that its word sums may use, or None.
        """
        tree = ReductionTree[Any]()
        for number in range(self.n_shards):
            tree.add(function(number, self.shard(number), *arguments, memory=tree.spare()))
        return tree.total()

    def saved(self, theta: ShardRows) -> Generation:
        """Return theta as files that are flushed to disk."""
        if isinstance(theta, Generation):
            theta.flush()
            return theta
        generation = self.new_generation()
        for number in range(self.n_shards):
            generation.write(number, theta.of(number, self.shard(number)), flush=True)
        return generation

    def restored(self, folder: Path) -> Generation:
        return Generation(folder, kept=True)

    # methods of Corpus

    def in_turn(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        for number in rng.permutation(self.n_shards).tolist():
            state = step(number, self.shard(number), state)
        return state

    def uniform(self, model: Model) -> ShardRows:
        return UniformRows(model)

    def rows(self, function: Callable[[Shard], Array]) -> ShardRows:
        return ComputedRows(function)

    def em_step(self, model: Model, theta: ShardRows, phi: Array) -> EMStepResult:
        """Run an iteration of EM: the E-step of every shard, which writes the next generation, and the M-step."""
        generation, tree = self.new_generation(), ReductionTree[SufficientStatistics]()
        for number in range(self.n_shards):
            shard = self.shard(number)
            result = e_step(model, shard, theta.of(number, shard), phi, tree.spare())
            generation.write(number, result.next_theta)
            tree.add(result.stats)
        next_phi, report = m_step(model, self, phi, tree.total())
        return EMStepResult(theta, phi, generation, next_phi, report)

    def extrapolate(
        self, model: Model, extrapolate: Extrapolate, step: tuple[ShardRows, Array], last: tuple[ShardRows, Array]
    ) -> tuple[ShardRows, Array]:
        return ExtrapolatedRows(model, extrapolate, step[0], last[0]), normalize_columns(extrapolate(step[1], last[1]))

    def resident(self, phi: Array) -> Array:
        """Return phi in the form that `em_step` takes."""
        return phi

    def topics(self, phi: Array) -> Array:
        return phi

    def column_max(self, theta: ShardRows) -> Array:
        return np.max([theta.of(number, self.shard(number)).max(axis=0) for number in range(self.n_shards)], axis=0)

    def background_sums(self, model: Model, theta: ShardRows, phi: Array) -> Floats:
        return np.sum(
            [
                background_sums(model, self.shard(number), theta.of(number, self.shard(number)), phi)
                for number in range(self.n_shards)
            ],
            axis=0,
        )
