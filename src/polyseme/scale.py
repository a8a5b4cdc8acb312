"""Corpora larger than memory, and fits on a cluster: shards on disk, which estimators take in place of an array."""

from __future__ import annotations

from os import PathLike
from typing import Any

from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import write_dask_shards, write_shards
from polyseme.io.parquet import ParquetFiles


def open_shards(folder: str | PathLike[str], *, cluster: Any = None) -> DiskCorpus:
    """Open a folder of shards for `fit` and `transform` of a model; iterate over it for `partial_fit`.

    The same shards give the same bits in this process and on any cluster.

    Parameters
    ----------
    folder : str or PathLike
        Folder that `write_shards` or `write_dask_shards` wrote.
    cluster : str, int, Client, cluster or None, default=None
        None: this process. "local" or a number: worker processes on this machine (one per core, or this many), which
        end with the fit. Otherwise the address of a Dask scheduler, a `distributed.Client` or a cluster object; all
        workers must see the folder under the same name.

    Returns
    -------
    DiskCorpus
        The corpus.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.scale import open_shards, write_shards
    >>> corpus = write_shards([[[4, 3, 0], [5, 2, 1]], [[0, 1, 6]]], "shards")
    >>> PLSA(2, random_state=0).fit(open_shards("shards")).doc_topic_.shape
    (3, 2)
    """
    if cluster is None:
        return DiskCorpus(folder)
    from polyseme.data.dask import ClusterShards

    return ClusterShards(folder, cluster)


__all__ = ["ParquetFiles", "open_shards", "write_dask_shards", "write_shards"]
