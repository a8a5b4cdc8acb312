"""Counts on disk, visited shard by shard: memory holds the topics, and of the documents one shard at a time.

theta is not an array here, but something that knows the rows of each shard: uniform, a folder with a file for each
shard (a generation), or what lies further along the way from one generation to the next. Every visit writes the next
generation; what nobody refers to anymore is removed.
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

from polyseme.core.factors import columns_to_one
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
from polyseme.kernels import Array, Floats

FIT_FOLDER = "fit"


class ShardRows(Protocol):
    """theta: the rows of any shard."""

    def of(self, number: int, shard: MappedShard) -> Array: ...


@dataclass(frozen=True)
class UniformRows:
    """Every topic the same weight."""

    model: Model

    def of(self, number: int, shard: MappedShard) -> Array:
        return uniform_rows(self.model, shard.n_docs, shard.dtype)


@dataclass(frozen=True)
class MadeRows:
    """What a function makes of a shard."""

    function: Callable[[Shard], Array]

    def of(self, number: int, shard: MappedShard) -> Array:
        return self.function(shard)


@dataclass(frozen=True)
class ExtrapolatedRows:
    """Further along the way from one theta to another, made when it is asked for."""

    model: Model
    extrapolate: Extrapolate
    new: ShardRows
    old: ShardRows

    def of(self, number: int, shard: MappedShard) -> Array:
        longer = self.extrapolate(self.new.of(number, shard), self.old.of(number, shard))
        return self.model.normalized_docs(longer, shard)


class Generation:
    """theta as a folder of files, one for each shard, which is removed after the last reference, unless it is kept.

    No finalizer removes the folder: Python only prints an exception that is raised in a finalizer, so a Ctrl-C that
    arrived during the removal would be lost. When a generation dies it is only noted, by a function that runs no Python
    code; `remove_unused` removes its folder later.
    """

    def __init__(self, folder: Path, *, kept: bool = False) -> None:
        self.folder = folder
        if not kept:
            self.let_go()

    def of(self, number: int, shard: MappedShard) -> Array:
        return read_rows(self.path(number), shard.n_docs, shard.dtype)

    def write(self, number: int, rows: Array, *, flush: bool = False) -> None:
        write_rows(self.path(number), rows, flush=flush)

    def flush(self) -> None:
        """Has the files on the disk."""
        for path in [*self.folder.iterdir(), self.folder]:
            flush_to_disk(path)

    def keep(self) -> None:
        """From now on the folder stays, also when this process ends."""
        _removable.pop(weakref.ref(self), None)

    def let_go(self) -> None:
        """From now on the folder is removed after the last reference, or when this process ends."""
        _removable[weakref.ref(self, _unused.append)] = self.folder

    def path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npy"


_removable: dict[weakref.ref[Generation], Path] = {}
_unused: deque[weakref.ref[Generation]] = deque()
_removing = threading.Lock()


def remove_unused() -> None:
    """Removes the folders of generations that nobody refers to anymore."""
    with _removing:
        while _unused:
            if _unused[0] in _removable:
                shutil.rmtree(_removable[_unused[0]], ignore_errors=True)
                # Only now: after a Ctrl-C in rmtree the next call removes the rest of the folder.
                del _removable[_unused[0]]
            _unused.popleft()


@atexit.register
def _remove_all() -> None:
    """Removes all folders that are not kept."""
    for folder in list(_removable.values()):
        shutil.rmtree(folder, ignore_errors=True)


def write_rows(path: Path, rows: Array, *, flush: bool = False) -> None:
    """Rows of theta as a .npy file, whole."""
    write_atomically(path, [npy_header(rows), bytes_of(rows)], flush=flush)


def read_rows(path: Path, n_docs: int, dtype: np.dtype[Any]) -> Array:
    """Rows of theta, mapped."""
    try:
        rows = map_npy(path)
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} is missing or damaged ({error}): remove the folder {path.parents[1]}.") from None
    if rows.ndim != 2 or rows.shape[0] != n_docs or rows.dtype != dtype:
        raise ShardError(f"{path} does not belong to these shards: remove the folder {path.parents[1]}.")
    return rows


class DiskCorpus:
    """A corpus on disk that `PLSA.fit` and `PLSA.transform` take in place of an array; `open_shards` makes it.

    Iterating gives the counts of one shard after the other as scipy CSR, for `partial_fit`.
    """

    def __init__(self, folder: str | PathLike[str], *, checkpoint_every: int = 5) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest = read_manifest(self.folder)
        self.checkpoint_every = checkpoint_every
        if not self.manifest.complete:
            raise ShardError(f"{self.folder} was not finished: run write_shards again to go on with it.")
        for entry in self.manifest.shards:
            check_size(self.folder, entry)

    @property
    def shape(self) -> tuple[int, int]:
        return self.manifest.documents, self.manifest.words

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.manifest.dtype)

    @cached_property
    def vocabulary(self) -> list[str] | None:
        """The words, if the shards were written with them."""
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
        return open_shard(self.folder, self.manifest.shards[number], self.manifest.words, dtype, n_threads)

    def corpus(self, dtype: np.dtype[Any], n_threads: int) -> Any:
        """Where a fit finds the counts."""
        return DiskSource(self, dtype, n_threads)

    def only_writer(self) -> AbstractContextManager[None]:
        """For a fit, which writes beside the shards."""
        return only_writer(self.folder, "fit")


@dataclass
class ShardFolder:
    """What sources of shards share: sizes, totals, and the folder that a fit writes to."""

    shards: DiskCorpus
    dtype: np.dtype[Any]
    n_threads: int
    work: Path | None = None
    """where generations of theta are written"""
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
        """n_w over all shards."""
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
            raise ShardError(f"{path} does not fit the manifest: write the shards again.")
        return np.asarray(totals)

    @property
    def unigram(self) -> Floats:
        return self.word_totals / self.word_totals.sum()

    @cached_property
    def totals(self) -> Floats:
        """n_d of all documents."""
        return np.concatenate([self.shard(number).totals for number in range(self.n_shards)])

    def shard(self, number: int) -> MappedShard:
        """A shard, mapped; its digest is checked the first time."""
        if number not in self._open:
            self._open[number] = self.shards.shard(number, self.dtype, self.n_threads)
        return self._open[number]

    @property
    def n_shards(self) -> int:
        return len(self.shards.manifest.shards)

    # where a fit writes

    def working_in(self, name: str) -> Self:
        """The same corpus with a folder of its own for generations."""
        work = self.shards.folder / FIT_FOLDER / name
        work.mkdir(parents=True, exist_ok=True)
        return replace(self, work=work)

    def forget(self) -> None:
        """Removes all that fits have written, but for their results."""
        shutil.rmtree(self.shards.folder / FIT_FOLDER, ignore_errors=True)

    def new_generation(self) -> Generation:
        assert self.work is not None
        remove_unused()
        return Generation(Path(tempfile.mkdtemp(dir=self.work, prefix="theta-")))


class DiskSource(ShardFolder):
    """Shards, visited one after the other by the threads of this process."""

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """function(number, shard, *arguments) of every shard."""
        return [function(number, self.shard(number), *arguments) for number in range(self.n_shards)]

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The sum of the statistics (stats.py) function(number, shard, *arguments) of all shards.

        The function takes `memory`, an array that its word sums may use, or None.
        """
        tree = ReductionTree[Any]()
        for number in range(self.n_shards):
            tree.add(function(number, self.shard(number), *arguments, memory=tree.spare()))
        return tree.total()

    def saved(self, theta: ShardRows) -> Generation:
        """theta as files that outlive this process."""
        if isinstance(theta, Generation):
            theta.flush()
            return theta
        generation = self.new_generation()
        for number in range(self.n_shards):
            generation.write(number, theta.of(number, self.shard(number)), flush=True)
        return generation

    def restored(self, folder: Path) -> Generation:
        return Generation(folder, kept=True)

    # what a fit asks for

    def in_turn(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        for number in rng.permutation(self.n_shards).tolist():
            state = step(number, self.shard(number), state)
        return state

    def uniform(self, model: Model) -> ShardRows:
        return UniformRows(model)

    def rows(self, function: Callable[[Shard], Array]) -> ShardRows:
        return MadeRows(function)

    def em_step(self, model: Model, theta: ShardRows, phi: Array) -> EMStepResult:
        """An iteration of EM: visits every shard, and writes the next generation."""
        generation, tree = self.new_generation(), ReductionTree[SufficientStatistics]()
        for number in range(self.n_shards):
            shard = self.shard(number)
            visited = e_step(model, shard, theta.of(number, shard), phi, tree.spare())
            generation.write(number, visited.next_theta)
            tree.add(visited.stats)
        next_phi, quality = m_step(model, self, phi, tree.total())
        return EMStepResult(theta, phi, generation, next_phi, quality)

    def extrapolate(
        self, model: Model, extrapolate: Extrapolate, step: tuple[ShardRows, Array], last: tuple[ShardRows, Array]
    ) -> tuple[ShardRows, Array]:
        return ExtrapolatedRows(model, extrapolate, step[0], last[0]), columns_to_one(extrapolate(step[1], last[1]))

    def resident(self, phi: Array) -> Array:
        """phi as `look` takes it."""
        return phi

    def topics(self, phi: Array) -> Array:
        """phi as an array."""
        return phi

    def column_max(self, theta: ShardRows) -> Array:
        return np.max([theta.of(number, self.shard(number)).max(axis=0) for number in range(self.n_shards)], axis=0)

    def background_sums(self, model: Model, theta: ShardRows, phi: Array) -> Floats:
        """See model.py; over all shards."""
        return np.sum(
            [
                background_sums(model, self.shard(number), theta.of(number, self.shard(number)), phi)
                for number in range(self.n_shards)
            ],
            axis=0,
        )
