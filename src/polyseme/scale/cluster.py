"""From Dask collections to shards: every partition becomes a shard, written by the worker that has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.files import only_writer
from polyseme.scale.writing import checked_counts, complete, dtype_of
from polyseme.sources.disk import Shards
from polyseme.sources.memory import sparse_counts
from polyseme.sources.shards import MANIFEST, Entry, Manifest, write_shard


def write_dask_shards(
    data: Any,
    folder: str | PathLike[str],
    *,
    cluster: Any = "local",
    vectorizer: Any = None,
    vocabulary: Iterable[str] | None = None,
    checkpoint_every: int = 5,
) -> Shards:
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
    from polyseme.sources.connection import connected
    from polyseme.sources.dask import ClusterShards

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
            client.submit(_write, part, folder, number, vectorizer, pure=False)
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


def _write(part: Any, folder: Path, number: int, vectorizer: Any) -> tuple[Entry, int, str]:
    """A partition as a shard; what the manifest needs to know."""
    matrix = checked_counts(part if vectorizer is None else vectorizer.transform(part))
    dtype = dtype_of(matrix)
    counts = sparse_counts(matrix, np.dtype(dtype))
    return write_shard(folder, number, counts), counts.n_words, dtype
