"""A corpus on disk whose shards are processed by the workers of a Dask cluster, and shards from Dask collections.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from polyseme.core.model import EMStepResult, Model, Report, background_sums, e_step, m_step
from polyseme.core.shard import Shard, sparse_counts
from polyseme.core.statistics import FAN_IN, SufficientStatistics, merged
from polyseme.data.corpus import Extrapolate, StreamState, StreamStep, uniform_rows
from polyseme.data.disk import DiskCorpus, Generation, ShardFolder, read_rows, write_rows
from polyseme.data.shard_files import (
    MANIFEST,
    Entry,
    Manifest,
    MappedShard,
    open_shard,
    write_shard,
)
from polyseme.data.shard_writer import checked_counts, complete, dtype_of
from polyseme.errors import InputError, MissingExtraError, ShardError
from polyseme.io.files import only_writer, write_atomically
from polyseme.io.tensors import bytes_of, map_npy, npy_header
from polyseme.kernels import Array, Floats, normalize_columns

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


@contextmanager
def connected(cluster: Any) -> Iterator[Any]:
    """Yield a client of a cluster as in `open_shards`; a client or cluster that is created here ends with the block."""
    try:
        import distributed as library
    except ImportError:
        raise MissingExtraError("A fit on a cluster", "dask") from None
    distributed: Any = library  # distributed has no type annotations
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if isinstance(cluster, str) and cluster != "local" and ":" not in cluster:
        raise InputError(
            "cluster must be 'local', a number of worker processes, the address of a scheduler or a client, "
            f"got {cluster!r}."
        )
    if cluster == "local" or isinstance(cluster, int):
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
_RETRIES = 100
_MAX_OPEN_SHARDS = 64
_CHAIN_LENGTH = 32


class ClusterShards(DiskCorpus):
    """A corpus on disk for the workers of a cluster; returned by `open_shards(folder, cluster=...)`."""

    def __init__(self, folder: str | PathLike[str], cluster: Any, *, checkpoint_every: int = 5) -> None:
        super().__init__(Path(folder).resolve(), checkpoint_every=checkpoint_every)
        self._cluster = cluster
        self._client: Any = None

    def corpus(self, dtype: np.dtype[Any], n_threads: int) -> DaskSource:
        return DaskSource(self, dtype, n_threads, client=self._client)

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        with super().only_writer(), connected(self._cluster) as self._client:
            yield


class ShardRef(NamedTuple):
    """Location of a shard, for a worker."""

    folder: Path
    entry: Entry
    n_words: int
    dtype: str


@dataclass(eq=False)
class FutureRows:
    """theta as one future per shard, and the files that they were read from, if any."""

    futures: list[Any]
    generation: Generation | None = None

    @property
    def folder(self) -> Path:
        assert self.generation is not None
        return self.generation.folder

    def keep(self) -> None:
        assert self.generation is not None
        self.generation.keep()

    def remove_when_unused(self) -> None:
        assert self.generation is not None
        self.generation.remove_when_unused()


@dataclass(eq=False)
class FutureWords:
    """phi as a future."""

    future: Any


@dataclass
class DaskSource(ShardFolder):
    """A corpus on disk whose shards are processed by Dask workers. The bits do not depend on the worker."""

    client: Any = None
    _token: str = field(init=False, default_factory=lambda: uuid.uuid4().hex[:8])
    _tasks: int = field(init=False, default=0)
    _em_steps: int = field(init=False, default=0)
    _recent: deque[Generation] = field(init=False, default_factory=lambda: deque(maxlen=_MAX_GENERATIONS))

    # tasks

    def _ref(self, number: int) -> ShardRef:
        manifest = self.shards.manifest
        return ShardRef(self.shards.folder, manifest.shards[number], manifest.words, self.dtype.name)

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
            own = [item[i] if isinstance(item, list) else item for item in arguments]
            tasks.append(self._submit(function, self._ref(i), *own, **place))
        return tasks

    def _reduce(self, stats: list[Any]) -> Any:
        """Submit the tree of sums and return its root. A node runs on the worker of its first shard."""
        level = list(zip(stats, self._preferred_workers(), strict=True))
        while len(level) > 1:
            nodes = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            level = [(self._submit(_sum, *(child for child, _ in node), **node[0][1]), node[0][1]) for node in nodes]
        return level[0][0]

    def _results(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures; tasks whose workers died are repeated."""
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

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return self._results(self._per_shard(_call, function, list(range(self.n_shards)), arguments))

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum as `DiskSource.total`; the workers add, so the client receives one sum."""
        stats = self._per_shard(_call, function, list(range(self.n_shards)), arguments)
        (found,) = self._results([self._reduce(stats)])
        return found

    def in_turn(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        """Run a chain of tasks. The client receives the state every few tasks, so a lost worker repeats only these."""
        order = rng.permutation(self.n_shards).tolist()
        for start in range(0, len(order), _CHAIN_LENGTH):
            task = self._submit(_with_topics, self.resident(state.joint).future, state._replace(joint=np.empty(0)))
            for number in order[start : start + _CHAIN_LENGTH]:
                task = self._submit(_next_state, self._ref(number), step, number, task)
            (state,) = self._results([task])
        return state

    def uniform(self, model: Model) -> FutureRows:
        return FutureRows(self._per_shard(_uniform, model))

    def rows(self, function: Callable[[Shard], Array]) -> FutureRows:
        return FutureRows(self._per_shard(_computed, function))

    def em_step(self, model: Model, theta: FutureRows, phi: FutureWords) -> EMStepResult:
        if self._em_steps and self._em_steps % self.shards.checkpoint_every == 0:
            self._restart_lineage(phi, theta)
        self._em_steps += 1
        results = self._per_shard(_e_step, model, theta.futures, phi.future)
        next_theta = [self._submit(_first, pair) for pair in results]
        stats = self._reduce([self._submit(_second, pair) for pair in results])
        del results
        done = self._submit(_m_step, model, self.shards.folder, self.n_words, phi.future, stats)
        next_phi, report = self._submit(_first, done), self._submit(_second, done)
        del stats, done
        (found,) = self._results([report])
        return EMStepResult(theta, phi, FutureRows(next_theta), FutureWords(next_phi), found)

    def extrapolate(
        self,
        model: Model,
        extrapolate: Extrapolate,
        step: tuple[Any, Any],
        last: tuple[Any, Any],
    ) -> tuple[FutureRows, FutureWords]:
        if self._em_steps % self.shards.checkpoint_every == 0:
            for theta, phi in {id(pair[0]): pair for pair in (step, last)}.values():
                self._restart_lineage(phi, theta)
        theta = FutureRows(self._per_shard(_extrapolate_rows, model, extrapolate, step[0].futures, last[0].futures))
        return theta, FutureWords(self._submit(_extrapolate_words, extrapolate, step[1].future, last[1].future))

    def resident(self, phi: Array) -> FutureWords:
        """Return phi as a future that reads a file, which every worker can read again."""
        assert self.work is not None
        path = self.work / f"phi-{uuid.uuid4().hex[:8]}.npy"
        write_atomically(path, [npy_header(phi), bytes_of(phi)])
        return FutureWords(self._submit(_words_from, path))

    def topics(self, phi: Any) -> Array:
        if not isinstance(phi, FutureWords):
            return np.asarray(phi)
        return np.asarray(self._results([phi.future])[0])

    def column_max(self, theta: FutureRows) -> Array:
        return np.asarray(np.max(self._results(self._per_shard(_column_max, theta.futures)), axis=0))

    def background_sums(self, model: Model, theta: FutureRows, phi: FutureWords) -> Floats:
        jobs = self._per_shard(_background, model, theta.futures, phi.future)
        return np.asarray(np.sum(self._results(jobs), axis=0))

    # files

    def saved(self, theta: FutureRows) -> Generation:
        if theta.generation is None:
            theta.generation = self._written(theta)
        return theta.generation

    def restored(self, folder: Path) -> FutureRows:
        return self._read(Generation(folder, kept=True))

    def _written(self, theta: FutureRows) -> Generation:
        generation = self.new_generation()
        jobs = self._per_shard(_write_rows, [generation.path(i) for i in range(self.n_shards)], theta.futures)
        self._results(jobs)
        return generation

    def _read(self, generation: Generation) -> FutureRows:
        self._recent.append(generation)
        paths = [generation.path(i) for i in range(self.n_shards)]
        return FutureRows(self._per_shard(_rows_from, paths), generation)

    def _restart_lineage(self, phi: FutureWords, theta: FutureRows) -> None:
        """Replace the futures of both by futures that read files, so that the scheduler forgets the earlier tasks."""
        if theta.generation is None:
            theta.generation = self._written(theta)
        theta.futures = self._read(theta.generation).futures
        phi.future = self.resident(self.topics(phi)).future


# tasks of the workers


@lru_cache(maxsize=_MAX_OPEN_SHARDS)
def _shard(ref: ShardRef) -> MappedShard:
    return open_shard(ref.folder, ref.entry, ref.n_words, np.dtype(ref.dtype), 1)


class _WordTotals(NamedTuple):
    """The part of a corpus that the M-step uses."""

    word_totals: Floats
    n_threads: int


def _call(ref: ShardRef, function: Callable[..., Any], number: int, arguments: tuple[Any, ...]) -> Any:
    return function(number, _shard(ref), *arguments)


def _uniform(ref: ShardRef, model: Model) -> Array:
    return uniform_rows(model, ref.entry.documents, np.dtype(ref.dtype))


def _computed(ref: ShardRef, function: Callable[[Shard], Array]) -> Array:
    return function(_shard(ref))


def _e_step(ref: ShardRef, model: Model, theta: Array, phi: Array) -> tuple[Array, SufficientStatistics]:
    result = e_step(model, _shard(ref), theta, phi)
    return result.next_theta, result.stats


def _with_topics(joint: Array, state: StreamState) -> StreamState:
    return state._replace(joint=joint)


def _next_state(ref: ShardRef, step: StreamStep, number: int, state: StreamState) -> StreamState:
    return step(number, _shard(ref), state._replace(joint=state.joint.copy()))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _sum(*stats: Any) -> Any:
    return merged(stats)


def _m_step(model: Model, folder: Path, n_words: int, phi: Array, stats: SufficientStatistics) -> tuple[Array, Report]:
    totals = np.load(folder / "word_totals.npy", allow_pickle=False)
    return m_step(model, _WordTotals(totals, 1), phi, stats)


def _extrapolate_rows(ref: ShardRef, model: Model, extrapolate: Extrapolate, new: Array, old: Array) -> Array:
    return model.normalize_docs(extrapolate(new, old), _shard(ref))


def _extrapolate_words(extrapolate: Extrapolate, new: Array, old: Array) -> Array:
    return normalize_columns(extrapolate(new, old))


def _column_max(ref: ShardRef, theta: Array) -> Array:
    return np.asarray(theta.max(axis=0))


def _background(ref: ShardRef, model: Model, theta: Array, phi: Array) -> Floats:
    return background_sums(model, _shard(ref), theta, phi)


def _write_rows(ref: ShardRef, path: Path, theta: Array) -> None:
    write_rows(path, theta, flush=True)


def _rows_from(ref: ShardRef, path: Path) -> Array:
    return read_rows(path, ref.entry.documents, np.dtype(ref.dtype)).copy()


def _words_from(path: Path) -> Array:
    try:
        return map_npy(path)
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} is missing or damaged ({error}): remove the folder {path.parents[1]}.") from None


def write_dask_shards(
    data: Any,
    folder: str | PathLike[str],
    *,
    cluster: Any = "local",
    vectorizer: Any = None,
    vocabulary: Iterable[str] | None = None,
    checkpoint_every: int = 5,
) -> DiskCorpus:
    """Write a Dask collection to shards, one per partition, and open them on the same cluster.

    Parameters
    ----------
    data : dask Bag, Array or DataFrame
        Bag of texts (with a vectorizer), array of counts (documents x words; its blocks of rows are the partitions), or
        data frame of counts whose columns are the words.
    folder : str or PathLike
        New or empty folder, which all workers must see under the same name.
    cluster : str, int, Client or cluster, default="local"
        Cluster, as in `open_shards`.
    vectorizer : Vectorizer or None, default=None
        Vectorizer that counts the texts. If it is not fitted, this process fits it and reads one partition after the
        other; fit it on a sample first if that is too slow.
    vocabulary : iterable of str or None, default=None
        Words in the order of the columns of an array.
    checkpoint_every : int, default=5
        Iterations between two checkpoints of a fit, as in `open_shards`.

    Returns
    -------
    DiskCorpus
        The corpus, for `PLSA.fit`.
    """
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, "writer or fit"), connected(cluster) as client:
        if (folder / MANIFEST).exists():
            raise InputError(f"{folder} has shards already: choose another folder, or remove it.")
        parts = _partitions(data)
        if vectorizer is not None and not hasattr(vectorizer, "vocabulary_"):
            vectorizer.fit(_texts(client, parts))
        if vectorizer is not None:
            vocabulary = vectorizer.get_feature_names_out()
        elif hasattr(data, "columns"):
            vocabulary = data.columns
        futures = [
            client.submit(_write_partition, part, folder, number, vectorizer, pure=False)
            for number, part in enumerate(client.compute(parts))
        ]
        written: list[tuple[Entry, int, str]] = client.gather(futures)
        words, dtypes = {found[1] for found in written}, {found[2] for found in written}
        if len(words) != 1:
            raise InputError(f"data: the partitions must have the same number of columns, got {sorted(words)}.")
        dtype = "float64" if "float64" in dtypes else "float32"
        if len(dtypes) > 1:
            raise InputError("data: some partitions are float64 and some are not: convert all to the same dtype.")
        entries = tuple(found[0] for found in written)
        manifest = Manifest(words.pop(), dtype, max(entry.nonzeros for entry in entries), entries)
        complete(folder, manifest, None if vocabulary is None else [str(word) for word in vocabulary])
    return ClusterShards(folder, cluster, checkpoint_every=checkpoint_every)


def _partitions(data: Any) -> list[Any]:
    """Return the partitions as delayed objects; those of an array are blocks of complete rows."""
    if not hasattr(data, "to_delayed"):
        raise InputError("data must be a Dask bag, array or data frame: use write_shards for other data.")
    if hasattr(data, "rechunk"):
        if data.ndim != 2:
            raise InputError(
                f"data: an array of counts must have two dimensions, documents and words, got {data.ndim}."
            )
        data = data.rechunk({1: -1})
    return list(np.ravel(np.asarray(data.to_delayed(), dtype=object)))


def _texts(client: Any, parts: list[Any]) -> Iterator[Any]:
    for part in parts:
        yield from client.compute(part).result()


def _write_partition(part: Any, folder: Path, number: int, vectorizer: Any) -> tuple[Entry, int, str]:
    """Write a partition as a shard. Return its description, the number of words and the type."""
    matrix = checked_counts(part if vectorizer is None else vectorizer.transform(part))
    dtype = dtype_of(matrix)
    counts = sparse_counts(matrix, np.dtype(dtype))
    return write_shard(folder, number, counts), counts.n_words, dtype
