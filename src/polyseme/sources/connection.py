"""A client of a Dask cluster: one that is there, or worker processes of this machine for as long as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from polyseme.errors import InputError, MissingExtraError

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
    import dask

    if n_workers is not None and n_workers < 1:
        raise InputError(f"A cluster needs at least one worker, got {n_workers}.")
    try:
        security = distributed.Security.temporary()
    except ImportError:  # cryptography
        raise MissingExtraError("A cluster of worker processes of this machine", "dask") from None
    with (
        TemporaryDirectory(prefix="polyseme-", dir=dask.config.get("temporary-directory", None)) as private,
        dask.config.set(_SETTINGS),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            security=security,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": f"{_LOOPBACK}:0"},  # any free port rather than the default 8787
            local_directory=private,
        ) as here,
    ):
        yield here
