"""A client of a Dask cluster: one that is there, or worker processes of this machine for as long as they are needed.

Shards at the workers of a Dask cluster.

Every step is a pure task with a key of its own, so that what a lost worker had is computed again, elsewhere, with the
same bits: a visit of each shard, the fixed tree that adds up their statistics (stats.py), and the step of the topics.
theta stays at the workers. Every few iterations it is written to files and read back, so that what must be computed
again, and what the scheduler must remember, does not grow with the iterations. One thread in each task's kernel.

From Dask collections to shards: every partition becomes a shard, written by the worker that has it.
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

from polyseme.core.factors import columns_to_one
from polyseme.core.model import EMStepResult, Model, Quality, background_sums, e_step, m_step
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
from polyseme.kernels import Array, Floats

WORKER_ENVIRONMENT = {"MALLOC_MMAP_MAX_": 0, "MALLOC_TRIM_THRESHOLD_": 1 << 46, "MALLOC_ARENA_MAX": 1}
"""has the C library of Linux keep the memory that a worker frees: a worker makes arrays of the same sizes again and
again, and to touch memory that is new can take, on a virtual machine, as long as the visit that fills it"""
_LOOPBACK = "127.0.0.1"
_SETTINGS = {
    "distributed.scheduler.allowed-failures": 100,
    # What workers do beside their tasks takes a twentieth of a machine all of whose cores are at work.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    # distributed opens an HTTP port even without a dashboard: it must serve no logs, counts or controls.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    **{f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in WORKER_ENVIRONMENT.items()},
}


@contextmanager
def connected(cluster: Any) -> Iterator[Any]:
    """A client of anything that `ClusterShards` takes for a cluster; what this makes ends with the block."""
    try:
        import distributed as library
    except ImportError:
        raise MissingExtraError("A fit on a cluster", "dask") from None
    distributed: Any = library  # has no types
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if isinstance(cluster, str) and cluster != "local" and ":" not in cluster:
        raise InputError(
            "cluster must be 'local', a number of workers of this machine, the address of a scheduler or a client, "
            f"got {cluster!r}."
        )
    if cluster == "local" or isinstance(cluster, int):
        n_workers = None if cluster == "local" else cluster
        with _workers_here(distributed, n_workers) as here, distributed.Client(here) as client:
            yield client
        return
    with distributed.Client(cluster) as client:
        yield client


@contextmanager
def _workers_here(distributed: Any, n_workers: int | None) -> Iterator[Any]:
    """Starts this many worker processes of one thread each; one for each core if None.

    A worker runs whatever code it is sent. Therefore all ports are on the loopback interface and demand the temporary
    certificate that this function makes, and files that workers spill, which they unpickle, are in a private folder.
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
        ) as here,
    ):
        yield here


_GENERATIONS_KEPT = 6
_RETRIES = 100
_SHARDS_OPEN = 64
_LINKS_OF_A_CHAIN = 32


class ClusterShards(DiskCorpus):
    """Shards that the workers of a cluster visit; `open_shards(folder, cluster=...)` makes it.

    cluster : "local" for worker processes of this machine, one for each core, that live as long as a fit, or a number
        of them; the address of a scheduler; a `distributed.Client` or a cluster object. All workers must see the
        folder by the same name.
    """

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
    """Where a worker finds a shard."""

    folder: Path
    entry: Entry
    n_words: int
    dtype: str


@dataclass(eq=False)
class FutureRows:
    """theta: a future for each shard, and the files that they were read from, if any."""

    futures: list[Any]
    generation: Generation | None = None

    @property
    def folder(self) -> Path:
        assert self.generation is not None
        return self.generation.folder

    def keep(self) -> None:
        assert self.generation is not None
        self.generation.keep()

    def let_go(self) -> None:
        assert self.generation is not None
        self.generation.let_go()


@dataclass(eq=False)
class FutureWords:
    """phi: a future."""

    future: Any


@dataclass
class DaskSource(ShardFolder):
    """Shards, each visited by whichever worker the scheduler chooses; the same bits for any."""

    client: Any = None
    _token: str = field(init=False, default_factory=lambda: uuid.uuid4().hex[:8])
    _tasks: int = field(init=False, default=0)
    _looks: int = field(init=False, default=0)
    _recent: deque[Generation] = field(init=False, default_factory=lambda: deque(maxlen=_GENERATIONS_KEPT))

    # tasks

    def _ref(self, number: int) -> ShardRef:
        manifest = self.shards.manifest
        return ShardRef(self.shards.folder, manifest.shards[number], manifest.words, self.dtype.name)

    def _submit(self, function: Callable[..., Any], *arguments: Any, **place: Any) -> Any:
        """A task."""
        self._tasks += 1
        key = f"polyseme-{function.__name__.strip('_')}-{self._token}-{self._tasks}"
        return self.client.submit(function, *arguments, key=key, **place)

    def _places(self) -> list[dict[str, Any]]:
        """Where each shard is best visited: neighbors at one worker."""
        workers = sorted(self.client.nthreads())
        if not workers:
            return [{}] * self.n_shards
        chosen = (workers[i * len(workers) // self.n_shards] for i in range(self.n_shards))
        return [{"workers": [worker], "allow_other_workers": True} for worker in chosen]

    def _per_shard(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """function(ref, *arguments) of each shard; an argument that is a list has one item for each shard."""
        tasks = []
        for i, place in enumerate(self._places()):
            own = [item[i] if isinstance(item, list) else item for item in arguments]
            tasks.append(self._submit(function, self._ref(i), *own, **place))
        return tasks

    def _added_up(self, stats: list[Any]) -> Any:
        """The root of the tree of sums; a node is where its first shard is, which spares sums the way to a worker."""
        level = list(zip(stats, self._places(), strict=True))
        while len(level) > 1:
            nodes = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            level = [(self._submit(_merged, *(child for child, _ in node), **node[0][1]), node[0][1]) for node in nodes]
        return level[0][0]

    def _results(self, futures: list[Any]) -> list[Any]:
        """Their results; a task whose workers died is tried again."""
        from distributed import KilledWorker

        for _ in range(_RETRIES):
            try:
                return list(self.client.gather(futures))
            except KilledWorker:
                self._retry([future.key for future in futures])
        return list(self.client.gather(futures))

    def _retry(self, keys: list[str]) -> None:
        """`client.retry`, which raises KeyError where a failed task is one that only the scheduler remembers."""
        for key in self.client.sync(self.client.scheduler.retry, keys=keys, client=self.client.id):
            if key in self.client.futures:
                self.client.futures[key].retry()

    # what a fit asks for

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return self._results(self._per_shard(_mapped, function, list(range(self.n_shards)), arguments))

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """As `DiskSource.total`; the workers add, so that the client receives one sum."""
        stats = self._per_shard(_mapped, function, list(range(self.n_shards)), arguments)
        (found,) = self._results([self._added_up(stats)])
        return found

    def in_turn(self, step: StreamStep, state: StreamState, rng: np.random.Generator) -> StreamState:
        """A chain of tasks; every few links the client has the state, so a lost worker costs no more than those."""
        order = rng.permutation(self.n_shards).tolist()
        for start in range(0, len(order), _LINKS_OF_A_CHAIN):
            link = self._submit(_with_topics, self.resident(state.joint).future, state._replace(joint=np.empty(0)))
            for number in order[start : start + _LINKS_OF_A_CHAIN]:
                link = self._submit(_turn, self._ref(number), step, number, link)
            (state,) = self._results([link])
        return state

    def uniform(self, model: Model) -> FutureRows:
        return FutureRows(self._per_shard(_uniform, model))

    def rows(self, function: Callable[[Shard], Array]) -> FutureRows:
        return FutureRows(self._per_shard(_made, function))

    def em_step(self, model: Model, theta: FutureRows, phi: FutureWords) -> EMStepResult:
        if self._looks and self._looks % self.shards.checkpoint_every == 0:
            self._restart_lineage(phi, theta)
        self._looks += 1
        visits = self._per_shard(_visit, model, theta.futures, phi.future)
        next_theta = [self._submit(_first, pair) for pair in visits]
        stats = self._added_up([self._submit(_second, pair) for pair in visits])
        del visits
        done = self._submit(_finish, model, self.shards.folder, self.n_words, phi.future, stats)
        next_phi, quality = self._submit(_first, done), self._submit(_second, done)
        del stats, done
        (found,) = self._results([quality])
        return EMStepResult(theta, phi, FutureRows(next_theta), FutureWords(next_phi), found)

    def extrapolate(
        self,
        model: Model,
        extrapolate: Extrapolate,
        step: tuple[Any, Any],
        last: tuple[Any, Any],
    ) -> tuple[FutureRows, FutureWords]:
        if self._looks % self.shards.checkpoint_every == 0:
            for theta, phi in {id(pair[0]): pair for pair in (step, last)}.values():
                self._restart_lineage(phi, theta)
        theta = FutureRows(self._per_shard(_extrapolate_rows, model, extrapolate, step[0].futures, last[0].futures))
        return theta, FutureWords(self._submit(_extrapolate_words, extrapolate, step[1].future, last[1].future))

    def resident(self, phi: Array) -> FutureWords:
        """phi from a file, which every worker can read again."""
        assert self.work is not None
        path = self.work / f"phi-{uuid.uuid4().hex[:8]}.npy"
        write_atomically(path, [npy_header(phi), bytes_of(phi)])
        return FutureWords(self._submit(_words_from, path))

    def topics(self, phi: Any) -> Array:
        if not isinstance(phi, FutureWords):
            return np.asarray(phi)
        return np.asarray(self._results([phi.future])[0])

    def column_max(self, theta: FutureRows) -> Array:
        return np.asarray(np.max(self._results(self._per_shard(_largest, theta.futures)), axis=0))

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
        """From here on both come from files: what made them is forgotten."""
        if theta.generation is None:
            theta.generation = self._written(theta)
        theta.futures = self._read(theta.generation).futures
        phi.future = self.resident(self.topics(phi)).future


# what workers do


@lru_cache(maxsize=_SHARDS_OPEN)
def _shard(ref: ShardRef) -> MappedShard:
    return open_shard(ref.folder, ref.entry, ref.n_words, np.dtype(ref.dtype), 1)


class _WordTotals(NamedTuple):
    word_totals: Floats
    n_threads: int


def _mapped(ref: ShardRef, function: Callable[..., Any], number: int, arguments: tuple[Any, ...]) -> Any:
    return function(number, _shard(ref), *arguments)


def _uniform(ref: ShardRef, model: Model) -> Array:
    return uniform_rows(model, ref.entry.documents, np.dtype(ref.dtype))


def _made(ref: ShardRef, function: Callable[[Shard], Array]) -> Array:
    return function(_shard(ref))


def _visit(ref: ShardRef, model: Model, theta: Array, phi: Array) -> tuple[Array, SufficientStatistics]:
    visited = e_step(model, _shard(ref), theta, phi)
    return visited.next_theta, visited.stats


def _with_topics(joint: Array, state: StreamState) -> StreamState:
    return state._replace(joint=joint)


def _turn(ref: ShardRef, step: StreamStep, number: int, state: StreamState) -> StreamState:
    return step(number, _shard(ref), state._replace(joint=state.joint.copy()))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _merged(*stats: Any) -> Any:
    return merged(stats)


def _finish(model: Model, folder: Path, n_words: int, phi: Array, stats: SufficientStatistics) -> tuple[Array, Quality]:
    totals = np.load(folder / "word_totals.npy", allow_pickle=False)
    return m_step(model, _WordTotals(totals, 1), phi, stats)


def _extrapolate_rows(ref: ShardRef, model: Model, extrapolate: Extrapolate, new: Array, old: Array) -> Array:
    return model.normalized_docs(extrapolate(new, old), _shard(ref))


def _extrapolate_words(extrapolate: Extrapolate, new: Array, old: Array) -> Array:
    return columns_to_one(extrapolate(new, old))


def _largest(ref: ShardRef, theta: Array) -> Array:
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
    """Writes a Dask collection to shards, one for each partition, and opens them on the same cluster.

    Parameters
    ----------
    data : a bag of texts (with a vectorizer), an array of counts (documents x words; its blocks of rows are the
        partitions), or a data frame of counts whose columns are the words.
    folder : new or empty; all workers must see it by the same name.
    cluster : as in `open_shards`.
    vectorizer : counts the texts. If it is not fitted it is, by this process, which reads one partition after the
        other; fit it on a sample first where that is too slow.
    vocabulary : the words of an array, in the order of its columns.
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
            raise InputError(f"The partitions have {sorted(words)} columns: all must have the same.")
        dtype = "float64" if "float64" in dtypes else "float32"
        if len(dtypes) > 1:
            raise InputError("Some partitions are float64 and some are not: give all the same dtype.")
        entries = tuple(found[0] for found in written)
        manifest = Manifest(words.pop(), dtype, max(entry.nonzeros for entry in entries), entries)
        complete(folder, manifest, None if vocabulary is None else [str(word) for word in vocabulary])
    return ClusterShards(folder, cluster, checkpoint_every=checkpoint_every)


def _partitions(data: Any) -> list[Any]:
    """The partitions as delayed objects; those of an array are blocks of whole rows."""
    if not hasattr(data, "to_delayed"):
        raise InputError("data must be a Dask bag, array or data frame; for others use write_shards.")
    if hasattr(data, "rechunk"):
        if data.ndim != 2:
            raise InputError(f"An array of counts has two dimensions, documents and words, not {data.ndim}.")
        data = data.rechunk({1: -1})
    return list(np.ravel(np.asarray(data.to_delayed(), dtype=object)))


def _texts(client: Any, parts: list[Any]) -> Iterator[Any]:
    for part in parts:
        yield from client.compute(part).result()


def _write_partition(part: Any, folder: Path, number: int, vectorizer: Any) -> tuple[Entry, int, str]:
    """A partition as a shard; what the manifest needs to know."""
    matrix = checked_counts(part if vectorizer is None else vectorizer.transform(part))
    dtype = dtype_of(matrix)
    counts = sparse_counts(matrix, np.dtype(dtype))
    return write_shard(folder, number, counts), counts.n_words, dtype
