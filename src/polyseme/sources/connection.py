"""A client of a Dask cluster: one that is there, or worker processes of this machine for as long as they are needed."""

from __future__ import annotations

import logging
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
