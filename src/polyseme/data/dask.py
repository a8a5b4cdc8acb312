"""A corpus on disk whose shards are processed by the workers of a Dask cluster.

Every step is a pure task with its own key: the E-step of each shard, the nodes of the fixed tree that adds up the
statistics, and the M-step. If a worker is lost, its results are computed again on another worker, with the same bits.
theta stays on the workers. Every few iterations it is written to files and read back, so that the number of tasks that
must be repeated, and that the scheduler must remember, does not grow with the iterations. The kernel of a task uses one
thread.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np

from polyseme.core.fitted import FoldedPart, FoldIn
from polyseme.core.model import Extrapolate
from polyseme.core.shard import FAN_IN, merged
from polyseme.data.corpus import Point, Step, StepResult, StreamState, StreamStep
from polyseme.data.disk import DiskCorpus, ShardedCorpus, fold_shard
from polyseme.data.rows import Generation, RowsFile, read_rows
from polyseme.data.shard_files import Entry, MappedShard, open_shard, read_checked
from polyseme.errors import InputError, MissingExtraError, ShardError
from polyseme.io.arrays import map_npy, npy_parts
from polyseme.io.files import FileEntry, FileManifest, write_atomically, write_with_digest
from polyseme.kernels import Array, Floats

T = TypeVar("T")
WORKER_ENVIRONMENT = {"MALLOC_MMAP_MAX_": 0, "MALLOC_TRIM_THRESHOLD_": 1 << 46, "MALLOC_ARENA_MAX": 1}
"""Settings of the C library on Linux that keep freed memory in the process. A worker allocates arrays of the same sizes
again and again, and on a virtual machine the first access to new memory can take as long as the E-step."""
_LOOPBACK = "127.0.0.1"
_SETTINGS = {
    "distributed.scheduler.allowed-failures": 100,
    # Profiling and ticks take 5% of the time if all cores are busy.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    # distributed opens an HTTP port even without a dashboard. It must not serve logs, counts or controls.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    **{f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in WORKER_ENVIRONMENT.items()},
}


def is_own_cluster(cluster: Any) -> bool:
    """Return whether `connected` starts worker processes of this machine for this value."""
    return isinstance(cluster, int) or (isinstance(cluster, str) and cluster == "local")


@contextmanager
def connected(cluster: Any) -> Iterator[Any]:
    """Yield a client of a cluster as in `open_shards`; a client or cluster that is created here is closed at the end.

    Raise ShardError if the connection to the scheduler is lost in the block.
    """
    try:
        import distributed as library
    except ImportError:
        raise MissingExtraError("A fit on a cluster", "dask") from None
    distributed: Any = library  # distributed has no type annotations
    with _client(distributed, cluster) as client:
        address = client.scheduler.address
        try:
            yield client
        except (CancelledError, OSError) as error:
            # A new connection to a lost scheduler ends with a plain OSError, as a write to a full disk does.
            if client.status == "running" and not isinstance(error, CancelledError | distributed.comm.CommClosedError):
                raise
            raise ShardError(
                f"The connection to the Dask scheduler {address} was lost: repeat the call with a running cluster; "
                "a fit continues from its last stored state."
            ) from error


@contextmanager
def _client(distributed: Any, cluster: Any) -> Iterator[Any]:
    """Yield a client of a cluster."""
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if isinstance(cluster, str) and cluster != "local" and ":" not in cluster:
        raise InputError(
            "cluster must be 'local', a number of worker processes, the address of a scheduler or a client, "
            f"got {cluster!r}."
        )
    if is_own_cluster(cluster):
        n_workers = None if cluster == "local" else cluster
        with _local_cluster(distributed, n_workers) as local, distributed.Client(local) as client:
            yield client
        return
    with distributed.Client(cluster) as client:
        yield client


@contextmanager
def _local_cluster(distributed: Any, n_workers: int | None) -> Iterator[Any]:
    """Start worker processes of one thread each, one per core if `n_workers` is None.

    A worker runs any code that it receives. Therefore all ports are on the loopback interface and require the temporary
    certificate that this function creates, and files that workers spill and unpickle are in a private folder.
    """
    import dask.system

    if n_workers is not None and n_workers < 1:
        raise InputError(f"A cluster needs at least one worker, got {n_workers}.")
    try:
        security = distributed.Security.temporary()
    except ImportError:  # cryptography
        raise MissingExtraError("A cluster of worker processes of this machine", "dask") from None
    if n_workers is None:
        n_workers = dask.system.CPU_COUNT
    # LocalCluster cannot bind the HTTP port of a worker without a dashboard to one interface.
    common = {
        "host": _LOOPBACK,
        "protocol": "tls://",
        "security": security,
        "dashboard": False,
        "dashboard_address": f"{_LOOPBACK}:0",
    }
    with (
        TemporaryDirectory(prefix="polyseme-", dir=dask.config.get("temporary-directory", None)) as private,
        dask.config.set(_SETTINGS),
        distributed.SpecCluster(
            scheduler={"cls": distributed.Scheduler, "options": {**common, "port": 0}},
            workers={
                number: {
                    "cls": distributed.Nanny,
                    "options": {
                        **common,
                        "nthreads": 1,
                        "memory_limit": 1.0 / n_workers,
                        "local_directory": private,
                        "silence_logs": logging.WARNING,
                    },
                }
                for number in range(n_workers)
            },
            security=security,
            silence_logs=logging.WARNING,
        ) as local,
    ):
        yield local


_MAX_GENERATIONS = 6
_MAX_SHARED = 16
"""Number of tuples of shared parameters whose files are kept; a fit uses at most four at a time."""
_RETRIES = 100
_MAX_OPEN_SHARDS = 64
_CHAIN_LENGTH = 32
_LINEAGE = 10
"""Number of steps after which rows and shared parameters are written to files, so that the graph does not grow."""


class ClusterShards(DiskCorpus):
    """A corpus on disk for the workers of a cluster; returned by `open_shards(folder, cluster=...)`."""

    def __init__(self, folder: str | PathLike[str], cluster: Any) -> None:
        super().__init__(Path(folder).resolve())
        self._cluster = cluster

    @contextmanager
    def session(self, dtype: np.dtype[Any], n_threads: int) -> Iterator[Any]:
        with self._work_folder() as work, connected(self._cluster) as client:
            threads = kernel_threads(client, len(self.manifest.shards), here=is_own_cluster(self._cluster))
            yield DaskShards(self, dtype, n_threads, work, client=client, threads=threads, shared_folder=work)


class KernelThreads(NamedTuple):
    """Numbers of threads of the kernels in a task. Results do not depend on them."""

    per_shard: int = 1
    """Threads in the tasks of a shard, of which many run at once."""
    alone: int = 1
    """Threads in the M-step, for which all other tasks wait."""


def kernel_threads(client: Any, n_shards: int, *, here: bool) -> KernelThreads:
    """Return numbers of threads that leave no core idle: several per shard if there are fewer shards than workers.

    here : whether all workers are on this machine and have one thread each.
    """
    threads = list(client.nthreads().values())
    if not threads:
        return KernelThreads()
    if here:
        return KernelThreads(max(1, len(threads) // n_shards), len(threads))
    tasks_per_worker = -(-n_shards // len(threads))
    return KernelThreads(max(1, min(threads) // tasks_per_worker), min(threads))


class ShardRef(NamedTuple):
    """Location of a shard, for a worker."""

    folder: Path
    entry: Entry
    n_words: int
    dtype: str
    n_threads: int


@dataclass(eq=False)
class FutureRows:
    """Rows as one future per shard, and the files that they were read from, if any."""

    futures: list[Any]
    generation: Generation | None = None


@dataclass(eq=False)
class FutureShared:
    """Shared parameters as a future of a tuple of arrays."""

    future: Any
    n_arrays: int


@dataclass
class DaskShards(ShardedCorpus):
    """A corpus on disk whose shards are processed by Dask workers. The bits do not depend on the worker."""

    client: Any = None
    threads: KernelThreads = field(default_factory=KernelThreads)
    shared_folder: Path | None = None
    """Folder for files of shared parameters, which is removed after the fit; a checkpoint may keep `work`. None uses
    `work`."""
    _token: str = field(init=False, default_factory=lambda: uuid.uuid4().hex[:8])
    _tasks: int = field(init=False, default=0)
    _steps: int = field(init=False, default=0)
    _recent: deque[Generation] = field(init=False, default_factory=lambda: deque(maxlen=_MAX_GENERATIONS))
    _shared_files: deque[list[Path]] = field(init=False, default_factory=deque)

    # tasks

    def _ref(self, number: int) -> ShardRef:
        manifest = self.shards.manifest
        entry, threads = manifest.shards[number], self.threads.per_shard
        return ShardRef(self.shards.folder, entry, manifest.words, self.dtype.name, threads)

    def _submit(self, function: Callable[..., Any], *arguments: Any, **place: Any) -> Any:
        """Submit a task with its own key."""
        self._tasks += 1
        key = f"polyseme-{function.__name__.strip('_')}-{self._token}-{self._tasks}"
        return self.client.submit(function, *arguments, key=key, **place)

    def _preferred_workers(self) -> list[dict[str, Any]]:
        """Return the preferred worker of each shard: neighbors share a worker."""
        workers = sorted(self.client.nthreads())
        if not workers:
            return [{}] * self.n_shards
        chosen = (workers[i * len(workers) // self.n_shards] for i in range(self.n_shards))
        return [{"workers": [worker], "allow_other_workers": True} for worker in chosen]

    def _per_shard(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Submit function(ref, *arguments) for each shard; an argument that is a list has one item per shard."""
        tasks = []
        for i, place in enumerate(self._preferred_workers()):
            of_shard = [item[i] if isinstance(item, list) else item for item in arguments]
            tasks.append(self._submit(function, self._ref(i), *of_shard, **place))
        return tasks

    def _reduce(self, tasks: list[Any], add: Callable[..., Any]) -> Any:
        """Submit the tree of sums and return its root. A node runs on the worker of its first shard.

        add : function of the first level, which adds up the statistics in the results of tasks.
        """
        level = list(zip(tasks, self._preferred_workers(), strict=True))
        while True:
            nodes = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            level = [(self._submit(add, *(child for child, _ in node), **node[0][1]), node[0][1]) for node in nodes]
            add = _sum
            if len(level) == 1:
                return level[0][0]

    def _results(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures. Tasks whose workers died are repeated."""
        from distributed import KilledWorker

        for _ in range(_RETRIES):
            try:
                return list(self.client.gather(futures))
            except KilledWorker:
                self._retry([future.key for future in futures])
        return list(self.client.gather(futures))

    def _retry(self, keys: list[str]) -> None:
        """Do what `client.retry` does, without its KeyError for failed tasks that only the scheduler knows."""
        for key in self.client.sync(self.client.scheduler.retry, keys=keys, client=self.client.id):
            if key in self.client.futures:
                self.client.futures[key].retry()

    # methods of Corpus

    def map(self, function: Callable[..., T], rows: FutureRows | None = None, shared: Any = ()) -> list[T]:
        return self._results(self._calls(function, rows, shared))

    def total(self, function: Callable[..., Any], rows: FutureRows | None = None, shared: Any = ()) -> Any:
        """Return the sum of the statistics; the workers add, so the client receives one sum."""
        (total,) = self._results([self._reduce(self._calls(function, rows, shared), _sum)])
        return total

    def _calls(self, function: Callable[..., Any], rows: FutureRows | None, shared: tuple[Array, ...]) -> list[Any]:
        futures = [None] * self.n_shards if rows is None else rows.futures
        arrays = self.share(shared).future if shared else ()
        return self._per_shard(_call, function, futures, arrays)

    def scan_shards(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        """Run a chain of tasks. The client receives the state every few tasks, so a lost worker repeats only these."""
        order = rng.permutation(self.n_shards).tolist()
        for start in range(0, len(order), _CHAIN_LENGTH):
            names = tuple(state.arrays)
            arrays = self.share(tuple(state.arrays.values()))
            task = self._submit(_first_state, names, arrays.future, state.numbers)
            for number in order[start : start + _CHAIN_LENGTH]:
                task = self._submit(_next_state, self._ref(number), step, number, task)
            (state,) = self._results([task])
        return state

    def rows(self, function: Callable[..., Array], shared: tuple[Array, ...] = ()) -> FutureRows:
        return FutureRows(self._per_shard(_computed, function, self.share(shared).future if shared else ()))

    def split(self, array: Array) -> FutureRows:
        """Return the rows of an array, which the workers read from files."""
        generation = self.new_generation()
        for number, first in enumerate(self.first_documents):
            generation.write(number, array[first : first + self.shards.manifest.shards[number].documents])
        return self._read(generation)

    def share(self, arrays: tuple[Array, ...]) -> FutureShared:
        """Return arrays as a future that reads files, which every worker can read again."""
        paths = self._new_files(len(arrays))
        _write_arrays(paths, arrays)
        return FutureShared(self._submit(_read_arrays, paths), len(arrays))

    def _new_files(self, n_files: int) -> list[Path]:
        """Return the names of files for shared parameters, and remove old files, which no future reads any more."""
        folder = self.work if self.shared_folder is None else self.shared_folder
        paths = [folder / f"shared-{uuid.uuid4().hex[:8]}.npy" for _ in range(n_files)]
        self._shared_files.append(paths)
        while len(self._shared_files) > _MAX_SHARED:
            for path in self._shared_files.popleft():
                path.unlink(missing_ok=True)
        return paths

    def gather(self, shared: FutureShared) -> tuple[Array, ...]:
        (arrays,) = self._results([shared.future])
        return tuple(arrays)

    def run(self, step: Step, rows: FutureRows, shared: FutureShared) -> StepResult:
        if self._steps and self._steps % _LINEAGE == 0:
            self._restart_lineage((rows, shared))
        self._steps += 1
        places = self._preferred_workers()
        pairs = self._per_shard(_e_step, step, rows.futures, shared.future)
        next_rows = [self._submit(_first, pair, **place) for pair, place in zip(pairs, places, strict=True)]
        stats = self._reduce(pairs, _sum_of_pairs)
        del pairs
        entry = self.shards.manifest.word_totals
        assert entry is not None  # a complete manifest has it
        words = _WordTotals(self.shards.folder, entry, self.threads.alone)
        done = self._submit(_m_step, step, words, shared.future, stats, **places[0])
        next_shared, report_future = (self._submit(part, done, **places[0]) for part in (_first, _second))
        del stats, done
        (report,) = self._results([report_future])
        return StepResult(rows, shared, FutureRows(next_rows), FutureShared(next_shared, shared.n_arrays), report)

    def combine(self, step: Step, extrapolate: Extrapolate, new: Point, old: Point) -> Point:
        if self._steps % _LINEAGE == 0:
            for point in {id(pair[0]): pair for pair in (new, old)}.values():
                self._restart_lineage(point)
        rows = self._per_shard(_extrapolate_rows, step, extrapolate, new[0].futures, old[0].futures)
        place = self._preferred_workers()[0]
        shared = self._submit(_extrapolate_shared, step, extrapolate, new[1].future, old[1].future, **place)
        return FutureRows(rows), FutureShared(shared, new[1].n_arrays)

    # files

    def save_rows(self, rows: FutureRows) -> Generation:
        """Return rows as files that are flushed to disk."""
        generation = self._written(rows)
        generation.flush()
        return generation

    def restore_rows(self, saved: FileManifest) -> FutureRows:
        return self._read(self.checked_generation(saved))

    def _written(self, rows: FutureRows) -> Generation:
        """Return rows as files, which the workers write unless they exist."""
        if rows.generation is None:
            generation = self.new_generation()
            paths = [generation.path(i) for i in range(self.n_shards)]
            entries = self._results(self._per_shard(_write_rows, paths, rows.futures))
            generation.files.entries.update(zip((path.name for path in paths), entries, strict=True))
            rows.generation = generation
        return rows.generation

    def _read(self, generation: Generation) -> FutureRows:
        self._recent.append(generation)
        paths = [generation.path(i) for i in range(self.n_shards)]
        return FutureRows(self._per_shard(_rows_from, paths), generation)

    def _restart_lineage(self, point: Point) -> None:
        """Replace the futures of a point by futures that read files, so that the scheduler forgets earlier tasks."""
        rows, shared = point
        rows.futures = self._read(self._written(rows)).futures
        paths = self._new_files(shared.n_arrays)
        self._results([self._submit(_write_arrays, paths, shared.future)])
        shared.future = self._submit(_read_arrays, paths)

    def _fold_shards(
        self, job: FoldIn, files: list[RowsFile], arrays: tuple[Array, ...], rows: Any
    ) -> tuple[list[FoldedPart], Any]:
        shared = self.share(arrays)
        starts = [None] * self.n_shards if rows is None else rows.futures
        pairs = self._per_shard(_fold_shard, job, tuple(files), list(self.first_documents), shared.future, starts)
        parts = [self._submit(_first, pair) for pair in pairs]
        sums = [self._reduce(pairs, _sum_of_pairs)] if job.training else []
        del pairs
        results = self._results([*parts, *sums])
        return results[: len(parts)], results[-1] if job.training else None


# tasks of the workers


@lru_cache(maxsize=_MAX_OPEN_SHARDS)
def _shard(ref: ShardRef) -> MappedShard:
    return open_shard(ref.folder, ref.entry, ref.n_words, np.dtype(ref.dtype), ref.n_threads)


class _WordTotals(NamedTuple):
    """The part of a corpus that the M-step uses."""

    folder: Path
    entry: Entry
    n_threads: int

    @property
    def word_totals(self) -> Floats:
        return _read_word_totals(self.folder, self.entry)


@lru_cache(maxsize=1)
def _read_word_totals(folder: Path, entry: Entry) -> Floats:
    read_checked(folder, entry)
    return map_npy(folder / entry.name)


def _read_only(array: Array) -> Array:
    """Return a view that a task cannot overwrite, because other tasks may use the same array."""
    view = array.view()
    view.flags.writeable = False
    return view


def _call(ref: ShardRef, function: Callable[..., Any], rows: Array | None, shared: tuple[Array, ...]) -> Any:
    return function(_shard(ref), None if rows is None else _read_only(rows), *shared)


def _computed(ref: ShardRef, function: Callable[..., Array], shared: tuple[Array, ...]) -> Array:
    return function(_shard(ref), *shared)


def _e_step(ref: ShardRef, step: Step, rows: Array, shared: tuple[Array, ...]) -> tuple[Array, Any]:
    shard = _shard(ref)
    result = step.e_step(shard, _read_only(rows), step.prepare(shared, shard.n_threads))
    return result.next_rows, result.stats


def _m_step(step: Step, words: _WordTotals, shared: tuple[Array, ...], stats: Any) -> tuple[Any, Any]:
    return step.m_step(words, step.prepare(shared, words.n_threads), stats)


def _fold_shard(
    ref: ShardRef, job: FoldIn, files: tuple[RowsFile, ...], first: int, arrays: tuple[Array, ...], start: Array | None
) -> tuple[FoldedPart, Any]:
    return fold_shard(job, list(files), first, _shard(ref), arrays, None if start is None else _read_only(start))


def _first_state(names: tuple[str, ...], arrays: tuple[Array, ...], numbers: dict[str, float]) -> StreamState:
    return StreamState(dict(zip(names, arrays, strict=True)), numbers)


def _next_state(ref: ShardRef, step: StreamStep, number: int, state: StreamState) -> StreamState:
    copies = {name: array.copy() for name, array in state.arrays.items()}
    return step(number, _shard(ref), StreamState(copies, state.numbers))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _sum_of_pairs(*pairs: tuple[Any, Any]) -> Any:
    return merged([stats for _, stats in pairs])


def _sum(*stats: Any) -> Any:
    return merged(stats)


def _extrapolate_rows(ref: ShardRef, step: Step, extrapolate: Extrapolate, new: Array, old: Array) -> Array:
    return step.extrapolate_rows(extrapolate, _read_only(new), _read_only(old), _shard(ref))


def _extrapolate_shared(step: Step, extrapolate: Extrapolate, new: Any, old: Any) -> Any:
    return step.extrapolate_shared(extrapolate, new, old)


def _write_rows(ref: ShardRef, path: Path, rows: Array) -> FileEntry:
    return write_with_digest(path, npy_parts(rows), flush=False)


def _rows_from(ref: ShardRef, path: Path) -> Array:
    return read_rows(path, ref.entry.documents, np.dtype(ref.dtype)).copy()


def _write_arrays(paths: list[Path], arrays: tuple[Array, ...]) -> None:
    for path, array in zip(paths, map(np.ascontiguousarray, arrays), strict=True):
        write_atomically(path, npy_parts(array))


def _read_arrays(paths: list[Path]) -> tuple[Array, ...]:
    try:
        return tuple(map_npy(path) for path in paths)
    except (OSError, ValueError) as error:
        folder = paths[0].parents[1]
        raise ShardError(f"{paths[0]} is missing or damaged ({error}): remove the folder {folder}.") from None
