"""Corpora larger than memory, and fits on a cluster: shards on disk that `PLSA` takes in place of an array."""

from __future__ import annotations

from os import PathLike
from typing import Any

from polyseme.data.dask import write_dask_shards
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import write_shards
from polyseme.errors import InputError, ShardError


def open_shards(folder: str | PathLike[str], *, cluster: Any = None, checkpoint_every: int = 5) -> DiskCorpus:
    """The shards in a folder, for `PLSA.fit`, `PLSA.transform` and, one after the other, for `PLSA.partial_fit`.

    Parameters
    ----------
    cluster : None to visit them in this process; "local" for a Dask cluster of this machine that lives as long as the
        fit, with a worker process for each core, or a number of them; the address of a Dask scheduler, a
        `distributed.Client` or a cluster object. Workers must see the folder by the same name. The same shards give the
        same bits on any of them.
    checkpoint_every : iterations after which the state of a fit is put on disk; the same fit goes on from there after
        a crash.
    """
    if checkpoint_every < 1:
        raise InputError(f"checkpoint_every must be at least 1, got {checkpoint_every!r}.")
    if cluster is None:
        return DiskCorpus(folder, checkpoint_every=checkpoint_every)
    from polyseme.data.dask import ClusterShards

    return ClusterShards(folder, cluster, checkpoint_every=checkpoint_every)


__all__ = ["DiskCorpus", "ShardError", "open_shards", "write_dask_shards", "write_shards"]
