"""Writing a stream of documents to shards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.shard import sparse_counts
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_files import (
    MANIFEST,
    VOCABULARY,
    WORD_TOTALS,
    Manifest,
    open_shard,
    read_manifest,
    write_checked,
    write_shard,
)
from polyseme.errors import InputError
from polyseme.io.files import only_writer
from polyseme.io.tensors import bytes_of, npy_header
from polyseme.kernels import check_sparse
from polyseme.utils import check_range

_MIN_NONZEROS = 1 << 22
"""Least default number of non-zeros per shard."""
_NONZEROS_PER_WORD = 64
"""Default number of non-zeros per shard and word."""
_MAX_TEXTS, _MAX_CHARACTERS = 4096, 1 << 23
"""Limits of a batch of texts that is counted at once."""


def write_shards(
    documents: Iterable[Any],
    folder: str | PathLike[str],
    *,
    vectorizer: Any = None,
    vocabulary: Iterable[str] | None = None,
    shard_nonzeros: int | None = None,
    checkpoint_every: int = 5,
) -> DiskCorpus:
    """Write documents to a folder of shards, with the memory of one shard, and open it.

    Parameters
    ----------
    documents : iterable
        Matrices of counts (some documents x all words, sparse or dense). With a vectorizer: texts, or documents of
        `polyseme.text.read`.
    folder : str or PathLike
        New folder, or the folder of an interrupted call. With the same documents the call then continues after the last
        complete shard.
    vectorizer : Vectorizer or None, default=None
        Vectorizer that counts the texts. If it is not fitted, it is fitted first; the texts must then be a list or a
        reader, which can be read twice.
    vocabulary : iterable of str or None, default=None
        Words in the order of the columns. Ignored with a vectorizer, which has a vocabulary.
    shard_nonzeros : int or None, default=None
        Most non-zeros per shard. None: 64 per word and at least 4 million, so that adding up the statistics of the
        shards is a small part of the work. The same value gives the same shards, for any chunks of documents, and only
        the same shards give the same bits. A call that continues uses the value of the interrupted one.
    checkpoint_every : int, default=5
        Iterations between two checkpoints of a fit, as in `open_shards`.

    Returns
    -------
    DiskCorpus
        The corpus, for `PLSA.fit`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, "writer or fit"):
        done = read_manifest(folder) if (folder / MANIFEST).exists() else None
        if done is not None and done.complete:
            raise InputError(f"{folder} has shards already: choose another folder, or remove it.")
        if done is not None and shard_nonzeros not in (None, done.shard_nonzeros):
            raise InputError(
                f"shard_nonzeros: the interrupted call wrote shards of {done.shard_nonzeros} non-zeros. Leave "
                f"shard_nonzeros out to continue, or remove {folder}."
            )
        if vectorizer is not None:
            chunks, vocabulary = _counted(documents, vectorizer, 0 if done is None else done.documents)
        else:
            chunks = _skip_documents(iter(documents), 0 if done is None else done.documents)
        _Writer(folder, done, shard_nonzeros).write(chunks, None if vocabulary is None else list(vocabulary))
    return DiskCorpus(folder, checkpoint_every=checkpoint_every)


def append_to_shards(texts: Iterable[Any], folder: str | PathLike[str], vectorizer: Any) -> DiskCorpus:
    """Add texts to a folder of shards, as further shards, with the vocabulary of the vectorizer."""
    folder = Path(folder)
    with only_writer(folder, "writer or fit"):
        done = replace(read_manifest(folder), word_totals=None, vocabulary=None, complete=False)
        chunks, vocabulary = _counted(texts, vectorizer, 0)
        _Writer(folder, done, None).write(chunks, vocabulary)
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
    """Yield batches of a few thousand texts, or fewer if they are long."""
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


class _Writer:
    """Splits a stream of rows into shards, and replaces the manifest after each."""

    def __init__(self, folder: Path, done: Manifest | None, shard_nonzeros: int | None) -> None:
        self._folder, self._manifest, self._shard_nonzeros = folder, done, shard_nonzeros
        self._pending: list[Any] = []
        self._nonzeros = 0

    def write(self, chunks: Iterable[Any], vocabulary: list[str] | None) -> None:
        for chunk in chunks:
            self._add(self._checked(chunk))
        if self._manifest is None:
            raise InputError("There are no documents to write.")
        if self._pending:
            self._write_shard()
        complete(self._folder, self._manifest, vocabulary)

    def _checked(self, chunk: Any) -> sp.csr_array:
        """Return a chunk with the type of all counts. The first chunk decides the type and the number of words."""
        matrix = checked_counts(chunk)
        if self._manifest is None:
            dtype = dtype_of(matrix)
            size = self._shard_nonzeros or max(_MIN_NONZEROS, _NONZEROS_PER_WORD * matrix.shape[1])
            self._manifest = Manifest(int(matrix.shape[1]), dtype, size)
        if matrix.shape[1] != self._manifest.words:
            raise InputError(f"A chunk has {matrix.shape[1]} columns where the first has {self._manifest.words}.")
        counts = sparse_counts(matrix, np.dtype(self._manifest.dtype))
        return sp.csr_array(counts.matrix())

    def _add(self, rows: sp.csr_array) -> None:
        """Add rows to the pending ones, and write a shard when the next row would make it too large."""
        assert self._manifest is not None
        begin = 0
        while begin < rows.shape[0]:
            space = self._manifest.shard_nonzeros - self._nonzeros
            fits = int(np.searchsorted(rows.indptr, rows.indptr[begin] + space, side="right")) - 1
            if fits <= begin and not self._pending:
                fits = begin + 1  # a document larger than a shard becomes a shard
            if fits > begin:
                self._pending.append(rows[begin:fits])
                self._nonzeros += int(rows.indptr[fits] - rows.indptr[begin])
                begin = fits
            if begin < rows.shape[0]:
                self._write_shard()

    def _write_shard(self) -> None:
        assert self._manifest is not None
        matrix = sp.vstack(self._pending, format="csr")
        self._pending, self._nonzeros = [], 0
        counts = sparse_counts(matrix, np.dtype(self._manifest.dtype))
        entry = write_shard(self._folder, len(self._manifest.shards), counts)
        self._manifest = replace(self._manifest, shards=(*self._manifest.shards, entry))
        self._manifest.write(self._folder)


def checked_counts(chunk: Any) -> sp.csr_array:
    """Return counts as CSR. Raise InputError unless they are finite, non-negative and in the range of a fit."""
    if getattr(chunk, "dtype", None) == np.float16:  # which scipy refuses
        chunk = chunk.astype(np.float32)
    matrix = sp.csr_array(check_sparse(chunk, "A chunk"))
    if matrix.data.dtype.kind not in "fiub" or not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise InputError("Every count must be finite and non-negative.")
    check_range("Every count", matrix.data, np.dtype(dtype_of(matrix)))
    return matrix


def dtype_of(matrix: sp.csr_array) -> str:
    """Return the type in which counts are stored: float64 if they have it, else float32."""
    return "float64" if matrix.dtype == np.float64 else "float32"


def complete(folder: Path, manifest: Manifest, vocabulary: list[str] | None) -> None:
    """Write the vocabulary and the word totals, and mark the manifest as complete."""
    if vocabulary is not None:
        if len(vocabulary) != manifest.words:
            raise InputError(f"vocabulary has {len(vocabulary)} words where the counts have {manifest.words}.")
        manifest = replace(manifest, vocabulary=write_checked(folder / VOCABULARY, [json.dumps(vocabulary).encode()]))
    totals = np.zeros(manifest.words)
    for entry in manifest.shards:  # from the files, so that a resumed call gives the same totals
        shard = open_shard(folder, entry, manifest.words, np.dtype(manifest.dtype), 1)
        totals += shard.counts.sparse().transposed(None).totals
    entry = write_checked(folder / WORD_TOTALS, [npy_header(totals), bytes_of(totals)])
    replace(manifest, word_totals=entry, complete=True).write(folder)
