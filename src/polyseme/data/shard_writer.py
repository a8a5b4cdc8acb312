"""Writing a stream of documents, Parquet files or a Dask collection to shards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.shard import sparse_counts
from polyseme.data.dask import ClusterShards, connected
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_files import (
    MANIFEST,
    VOCABULARY,
    WORD_TOTALS,
    Entry,
    Manifest,
    open_shard,
    read_manifest,
    write_checked,
    write_shard,
)
from polyseme.errors import InputError
from polyseme.io.arrays import npy_parts
from polyseme.io.files import only_writer
from polyseme.io.parquet import ParquetFiles
from polyseme.kernels import Floats, SparseCounts, check_sparse
from polyseme.utils import check_range

_MIN_NONZEROS = 1 << 22
"""Smallest default number of non-zeros per shard."""
_NONZEROS_PER_WORD = 64
"""Default number of non-zeros per shard and word."""
_MAX_TEXTS, _MAX_CHARACTERS = 1 << 16, 1 << 24
"""Limits of a batch of texts that is counted at once. Each batch looks up all of its distinct words once."""
_RETRIES = 10
"""Number of times that a task is repeated after the scheduler gave up because its workers died."""
_MAX_TOTALS = 64
"""Largest number of arrays of word totals that workers send to the client. It fixes the order of the sums."""
_SHARD_OF_A_FILE = re.compile(r"shard-(\d+)-\d+\.safetensors")


def write_shards(
    documents: Iterable[Any],
    folder: str | PathLike[str],
    *,
    vectorizer: Any = None,
    vocabulary: Iterable[str] | None = None,
    shard_nonzeros: int | None = None,
    cluster: Any = None,
) -> DiskCorpus:
    """Write documents to a folder of shards, with one shard in memory at a time, and open the folder.

    Parameters
    ----------
    documents : iterable
        Matrices of counts (some documents x all words, sparse or dense), or `ParquetFiles`. With a vectorizer: texts,
        documents of `polyseme.text.read`, or `ParquetFiles`.
    folder : str or PathLike
        New folder, or the folder of an interrupted call. A call with the same documents continues after the last
        complete shard.
    vectorizer : Vectorizer or None, default=None
        Vectorizer that counts the texts. If it is not fitted, it is fitted first; the texts must then be a list or a
        reader, which can be read twice. With a cluster it must be fitted.
    vocabulary : iterable of str or None, default=None
        Words in the order of the columns. Ignored if there is a vectorizer, which has its own vocabulary.
    shard_nonzeros : int or None, default=None
        Largest number of non-zeros per shard. None uses 64 per word and at least 4 million, so that adding up the
        statistics of the shards is a small part of the work. The same value gives the same shards, for any chunks of
        documents, and only the same shards give the same bits. A call that continues uses the value of the interrupted
        one.
    cluster : str, int, Client, cluster or None, default=None
        Cluster whose workers read `ParquetFiles`, as in `open_shards`; the corpus is opened on the same cluster. Every
        file is one task, and its documents become shards of their own, for any number of workers. All workers must see
        the folder under the same name, and the files under the same paths. With None, this process reads the documents.

    Returns
    -------
    DiskCorpus
        The corpus, for `fit` and `transform`.

    Examples
    --------
    >>> from polyseme.scale import write_shards
    >>> from polyseme.text import Vectorizer
    >>> corpus = write_shards(["red wine", "wine and cheese", "bass guitar"], "shards", vectorizer=Vectorizer())
    >>> corpus.shape
    (3, 6)
    >>> corpus.vocabulary
    ['and', 'bass', 'cheese', 'guitar', 'red', 'wine']
    """
    folder = Path(folder) if cluster is None else Path(folder).resolve()
    vocabulary = None if vocabulary is None else list(vocabulary)
    if isinstance(documents, ParquetFiles):
        documents = documents.prepared(vectorizer, vocabulary)
    if cluster is not None:
        _check_readable_by_workers(documents, vectorizer)
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, "writer or fit"):
        done = read_manifest(folder) if (folder / MANIFEST).exists() else None
        if done is not None and done.complete:
            raise InputError(f"{folder} already has shards: choose another folder, or remove it.")
        if done is not None and shard_nonzeros not in (None, done.shard_nonzeros):
            raise InputError(
                f"shard_nonzeros: the interrupted call wrote shards of {done.shard_nonzeros} non-zeros. Leave "
                f"shard_nonzeros out to continue, or remove {folder}."
            )
        if cluster is not None:
            with connected(cluster) as client:
                _write_files(client, documents, folder, done, vectorizer, vocabulary, shard_nonzeros)
            return ClusterShards(folder, cluster)
        if vectorizer is not None:
            chunks, vocabulary = _counted(documents, vectorizer, 0 if done is None else done.documents)
        else:
            chunks = _skip_documents(iter(documents), 0 if done is None else done.documents)
        _write(chunks, folder, done, shard_nonzeros, vocabulary)
    return DiskCorpus(folder)


def append_to_shards(texts: Iterable[Any], folder: str | PathLike[str], vectorizer: Any) -> DiskCorpus:
    """Add texts to a folder of shards, as additional shards, with the vocabulary of the vectorizer."""
    folder = Path(folder)
    with only_writer(folder, "writer or fit"):
        done = replace(read_manifest(folder), word_totals=None, vocabulary=None, complete=False)
        chunks, vocabulary = _counted(texts, vectorizer, 0)
        _write(chunks, folder, done, None, vocabulary)
    return DiskCorpus(folder)


def _counted(documents: Iterable[Any], vectorizer: Any, skip: int) -> tuple[Iterator[Any], list[str]]:
    """Return an iterator over the counts of batches of texts, and the vocabulary."""
    if not hasattr(vectorizer, "vocabulary_"):
        if iter(documents) is documents:
            raise InputError("An unfitted vectorizer reads the texts twice: give a list or a reader, or fit it first.")
        vectorizer.fit(map(_text_of, documents))
    texts = islice(map(_text_of, documents), skip, None)
    return map(vectorizer.transform, _batches(texts)), [str(word) for word in vectorizer.get_feature_names_out()]


def _batches(texts: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield batches of some thousand texts, or fewer if they are long."""
    batch: list[Any] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) if isinstance(text, str | bytes) else 0
        if len(batch) == _MAX_TEXTS or size >= _MAX_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _text_of(document: Any) -> Any:
    return getattr(document, "text", document)


def _skip_documents(chunks: Iterator[Any], skip: int) -> Iterator[Any]:
    """Yield the chunks without the first `skip` documents."""
    for chunk in chunks:
        rows = chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)
        if skip < rows:
            yield chunk if skip == 0 else sp.csr_array(chunk)[skip:]
        skip = max(0, skip - rows)


def _write(
    chunks: Iterable[Any],
    folder: Path,
    done: Manifest | None,
    shard_nonzeros: int | None,
    vocabulary: list[str] | None,
) -> None:
    """Write chunks of counts to shards after those that are done, and replace the manifest after each.

    A thread writes a shard while the next one is counted.
    """
    splitter = _Splitter(shard_nonzeros, done)
    shards = () if done is None else done.shards

    def write(counts: SparseCounts) -> None:
        nonlocal shards
        shards = (*shards, write_shard(folder, len(shards), counts))
        replace(splitter.known_layout, shards=shards).write(folder)

    with ThreadPoolExecutor(1) as writer:
        written: Future[None] | None = None
        for counts in splitter.split(chunks):
            if written is not None:
                written.result()
            written = writer.submit(write, counts)
        if written is not None:
            written.result()
    if splitter.layout is None:
        raise InputError("There are no documents to write.")
    complete(folder, replace(splitter.layout, shards=shards), vocabulary)


class _Splitter:
    """Splitter of a stream of rows into shards."""

    def __init__(self, shard_nonzeros: int | None, layout: Manifest | None = None) -> None:
        self.layout = layout
        """Number of words, type and size of the shards, which the first chunk determines."""
        self._shard_nonzeros = shard_nonzeros
        self._pending: list[Any] = []
        self._nonzeros = 0

    @property
    def known_layout(self) -> Manifest:
        assert self.layout is not None
        return self.layout

    def split(self, chunks: Iterable[Any]) -> Iterator[SparseCounts]:
        """Yield the counts of each shard."""
        for chunk in chunks:
            yield from self._add(self._checked(chunk))
        if self._pending:
            yield self._shard()

    def _checked(self, chunk: Any) -> sp.csr_array:
        """Return a checked chunk, with counts in the type of the layout."""
        matrix = checked_counts(chunk)
        if self.layout is None:
            size = self._shard_nonzeros or max(_MIN_NONZEROS, _NONZEROS_PER_WORD * matrix.shape[1])
            self.layout = Manifest(int(matrix.shape[1]), dtype_of(matrix), size)
        if matrix.shape[1] != self.layout.words:
            raise InputError(f"A chunk has {matrix.shape[1]} columns where the first has {self.layout.words}.")
        counts = sparse_counts(matrix, np.dtype(self.layout.dtype))
        return sp.csr_array(counts.matrix())

    def _add(self, rows: sp.csr_array) -> Iterator[SparseCounts]:
        """Add rows to the pending ones, and yield a shard when the next row would make it too large."""
        begin = 0
        while begin < rows.shape[0]:
            space = self.known_layout.shard_nonzeros - self._nonzeros
            fits = int(np.searchsorted(rows.indptr, rows.indptr[begin] + space, side="right")) - 1
            if fits <= begin and not self._pending:
                fits = begin + 1  # a document larger than a shard becomes a shard
            if fits > begin:
                self._pending.append(rows[begin:fits])
                self._nonzeros += int(rows.indptr[fits] - rows.indptr[begin])
                begin = fits
            if begin < rows.shape[0]:
                yield self._shard()

    def _shard(self) -> SparseCounts:
        matrix = sp.vstack(self._pending, format="csr")
        self._pending, self._nonzeros = [], 0
        return sparse_counts(matrix, np.dtype(self.known_layout.dtype))


def checked_counts(chunk: Any) -> sp.csr_array:
    """Return counts as CSR. Raise InputError unless they are finite, non-negative and in the range of a fit."""
    if getattr(chunk, "dtype", None) == np.float16:  # scipy refuses this type
        chunk = chunk.astype(np.float32)
    matrix = sp.csr_array(check_sparse(chunk, "A chunk"))
    if matrix.data.dtype.kind not in "fiub" or not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise InputError("Every count must be finite and non-negative.")
    check_range("Every count", matrix.data, np.dtype(dtype_of(matrix)))
    return matrix


def dtype_of(matrix: sp.csr_array) -> str:
    """Return the type in which counts are stored: float64 for float64 counts, else float32."""
    return "float64" if matrix.dtype == np.float64 else "float32"


def complete(folder: Path, manifest: Manifest, vocabulary: list[str] | None, totals: Floats | None = None) -> None:
    """Write the vocabulary and the word totals, and mark the manifest as complete.

    totals : the word totals, if they are known; None computes them from the files.
    """
    if vocabulary is not None:
        if len(vocabulary) != manifest.words:
            raise InputError(f"vocabulary has {len(vocabulary)} words where the counts have {manifest.words}.")
        manifest = replace(manifest, vocabulary=write_checked(folder / VOCABULARY, [json.dumps(vocabulary).encode()]))
    if totals is None:
        totals = _word_totals(folder, manifest)
    entry = write_checked(folder / WORD_TOTALS, npy_parts(totals))
    replace(manifest, word_totals=entry, complete=True).write(folder)


def _word_totals(folder: Path, manifest: Manifest) -> Floats:
    """Return the word totals of the shards, read from the files so that a resumed call gives the same totals."""
    totals = np.zeros(manifest.words)
    for entry in manifest.shards:
        shard = open_shard(folder, entry, manifest.words, np.dtype(manifest.dtype), 1)
        totals += shard.counts.sparse().transposed(None).totals
    return totals


# Parquet files that workers read


def _check_readable_by_workers(documents: Any, vectorizer: Any) -> None:
    if not isinstance(documents, ParquetFiles):
        raise InputError("cluster: workers read ParquetFiles only: leave cluster out, or use write_dask_shards.")
    if vectorizer is not None and not hasattr(vectorizer, "vocabulary_"):
        raise InputError("With a cluster the vectorizer must be fitted: fit it on ParquetFiles of a few files first.")


def _write_files(
    client: Any,
    files: Any,
    folder: Path,
    done: Manifest | None,
    vectorizer: Any,
    vocabulary: list[str] | None,
    shard_nonzeros: int | None,
) -> None:
    """Let the workers write the files to shards. The manifest lists the shards of the first files that are complete."""
    if vectorizer is not None:
        vocabulary = [str(word) for word in vectorizer.get_feature_names_out()]
        vectorizer = client.submit(_unchanged, vectorizer, pure=False)  # sent once, and again if its worker dies
    manifest, first = done, _first_file_to_write(folder, done)
    if done is not None:
        shard_nonzeros = done.shard_nonzeros
    futures = [
        client.submit(_write_file, part, folder, number, vectorizer, shard_nonzeros, pure=False)
        for number, part in enumerate(files.split())
        if number >= first
    ]
    for number, future in enumerate(futures, first):
        written: Manifest | None = _result(future)
        if written is None:  # a file without rows
            continue
        if manifest is not None and written.dtype != manifest.dtype:
            raise InputError(
                f"{files.names[number]} has {written.dtype} counts where the files before have {manifest.dtype}: "
                "convert all to the same type."
            )
        manifest = replace(written, shards=(*(() if manifest is None else manifest.shards), *written.shards))
        manifest.write(folder)
    if manifest is None:
        raise InputError("There are no documents to write.")
    runs = np.array_split(np.arange(len(manifest.shards)), min(_MAX_TOTALS, len(manifest.shards)))
    totals = [
        client.submit(_word_totals, folder, replace(manifest, shards=manifest.shards[run[0] : run[-1] + 1]), pure=False)
        for run in runs
    ]
    complete(folder, manifest, vocabulary, np.asarray(sum(map(_result, totals))))


def _first_file_to_write(folder: Path, done: Manifest | None) -> int:
    """Return the index of the file after the last one in the manifest of an interrupted call."""
    if done is None or not done.shards:
        return 0
    last = _SHARD_OF_A_FILE.fullmatch(done.shards[-1].name)
    if last is None:
        raise InputError(f"The interrupted call had no cluster: leave cluster out to continue, or remove {folder}.")
    return int(last[1]) + 1


def _result(future: Any) -> Any:
    """Return the result of a task. A task whose workers died is repeated, up to a limit."""
    from distributed import KilledWorker

    for _ in range(_RETRIES):
        try:
            return future.result()
        except KilledWorker:
            future.retry()
    return future.result()


def _unchanged(value: Any) -> Any:
    return value


def _write_file(
    part: ParquetFiles, folder: Path, number: int, vectorizer: Any, shard_nonzeros: int | None
) -> Manifest | None:
    """Write a file to shards whose names and content depend only on the file. Return their manifest."""
    splitter = _Splitter(shard_nonzeros)
    chunks = iter(part) if vectorizer is None else _counted(part, vectorizer, 0)[0]
    shards = [write_shard(folder, i, counts, number) for i, counts in enumerate(splitter.split(chunks))]
    return None if splitter.layout is None else replace(splitter.layout, shards=tuple(shards))


# Dask collections


def write_dask_shards(
    data: Any,
    folder: str | PathLike[str],
    *,
    cluster: Any = "local",
    vectorizer: Any = None,
    vocabulary: Iterable[str] | None = None,
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

    Returns
    -------
    DiskCorpus
        The corpus, for `fit` and `transform`.

    Examples
    --------
    >>> import dask.bag  # doctest: +SKIP
    >>> from polyseme.scale import write_dask_shards
    >>> from polyseme.text import Vectorizer
    >>> texts = dask.bag.read_text("letters/*.txt")  # doctest: +SKIP
    >>> corpus = write_dask_shards(texts, "shards", vectorizer=Vectorizer())  # doctest: +SKIP
    """
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, "writer or fit"), connected(cluster) as client:
        if (folder / MANIFEST).exists():
            raise InputError(f"{folder} already has shards: choose another folder, or remove it.")
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
        words, dtypes = {n_words for _, n_words, _ in written}, {dtype for _, _, dtype in written}
        if len(words) != 1:
            raise InputError(f"data: the partitions must have the same number of columns, got {sorted(words)}.")
        dtype = "float64" if "float64" in dtypes else "float32"
        if len(dtypes) > 1:
            raise InputError("data: some partitions are float64 and some are not: convert all to the same dtype.")
        entries = tuple(entry for entry, _, _ in written)
        manifest = Manifest(words.pop(), dtype, max(entry.nonzeros for entry in entries), entries)
        complete(folder, manifest, None if vocabulary is None else [str(word) for word in vocabulary])
    return ClusterShards(folder, cluster)


def _partitions(data: Any) -> list[Any]:
    """Return the partitions as delayed objects. The partitions of an array are blocks of complete rows."""
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
