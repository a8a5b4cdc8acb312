"""Corpora larger than memory, and fits on a cluster: shards on disk, for `PLSA` in place of an array."""

from __future__ import annotations

from os import PathLike
from typing import Any

from polyseme.data.dask import write_dask_shards
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import write_shards
from polyseme.errors import InputError, ShardError


def open_shards(folder: str | PathLike[str], *, cluster: Any = None, checkpoint_every: int = 5) -> DiskCorpus:
    """Open a folder of shards for `PLSA.fit` and `PLSA.transform`; iterate over it for `PLSA.partial_fit`.

    The same shards give the same bits in this process and on any cluster.

    Parameters
    ----------
    folder : str or PathLike
        Folder that `write_shards` or `write_dask_shards` wrote.
    cluster : str, int, Client, cluster or None, default=None
        None: this process. "local" or a number: worker processes on this machine (one per core, or this many), which
        end with the fit. Otherwise the address of a Dask scheduler, a `distributed.Client` or a cluster object; all
        workers must see the folder under the same name.
    checkpoint_every : int, default=5
        Iterations between two checkpoints of a fit. The same fit resumes from the last one after a crash.

    Returns
    -------
    DiskCorpus
        The corpus.
    """
    if checkpoint_every < 1:
        raise InputError(f"checkpoint_every must be at least 1, got {checkpoint_every!r}.")
    if cluster is None:
        return DiskCorpus(folder, checkpoint_every=checkpoint_every)
    from polyseme.data.dask import ClusterShards

    return ClusterShards(folder, cluster, checkpoint_every=checkpoint_every)


__all__ = ["DiskCorpus", "ShardError", "open_shards", "write_dask_shards", "write_shards"]
