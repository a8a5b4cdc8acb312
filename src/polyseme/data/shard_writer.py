"""From a stream of documents to shards."""

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
from polyseme.kernels import checked_sparse
from polyseme.utils import check_range

_LEAST_NONZEROS = 1 << 22
_NONZEROS_A_WORD = 64
_TEXTS_AT_ONCE, _CHARACTERS_AT_ONCE = 4096, 1 << 23


def write_shards(
    documents: Iterable[Any],
    folder: str | PathLike[str],
    *,
    vectorizer: Any = None,
    vocabulary: Iterable[str] | None = None,
    shard_nonzeros: int | None = None,
    checkpoint_every: int = 5,
) -> DiskCorpus:
    """Writes documents to a folder of shards, in the memory of one shard, and opens it.

    Parameters
    ----------
    documents : matrices of counts (some documents x all words, sparse or dense), one after the other; or, with a
        vectorizer, texts (or documents of `polyseme.text.read`).
    folder : new, or one that an interrupted call left: given the same documents again, the call goes on after the last
        whole shard.
    vectorizer : counts the texts. If it is not fitted it is, in a pass of its own; the texts must then be a list or a
        reader, which can be read twice.
    vocabulary : the words in the order of the columns; with a vectorizer, its own.
    shard_nonzeros : most counts other than zero in a shard (None: 64 for each word, and at least 4 million, so that
        adding up what the shards send home stays a small part of the work). The same number gives the same shards,
        however the stream is cut, and only the same shards give the same bits.
    checkpoint_every : as in `open_shards`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, "writer or fit"):
        done = read_manifest(folder) if (folder / MANIFEST).exists() else None
        if done is not None and done.complete:
            raise InputError(f"{folder} has shards already: choose another folder, or remove it.")
        if vectorizer is not None:
            chunks, vocabulary = _counted(documents, vectorizer, 0 if done is None else done.documents)
        else:
            chunks = _after(iter(documents), 0 if done is None else done.documents)
        _Writer(folder, done, shard_nonzeros).write(chunks, None if vocabulary is None else list(vocabulary))
    return DiskCorpus(folder, checkpoint_every=checkpoint_every)


def append_to_shards(texts: Iterable[Any], folder: str | PathLike[str], vectorizer: Any) -> DiskCorpus:
    """Adds texts to a folder of shards, as more shards; the words stay those of the vectorizer."""
    folder = Path(folder)
    with only_writer(folder, "writer or fit"):
        done = replace(read_manifest(folder), word_totals=None, vocabulary=None, complete=False)
        chunks, vocabulary = _counted(texts, vectorizer, 0)
        _Writer(folder, done, None).write(chunks, vocabulary)
    return DiskCorpus(folder)


def _counted(documents: Iterable[Any], vectorizer: Any, skip: int) -> tuple[Iterator[Any], list[str]]:
    """Counts of texts, a few thousand at a time, and the words."""
    if not hasattr(vectorizer, "vocabulary_"):
        if iter(documents) is documents:
            raise InputError("An unfitted vectorizer reads the texts twice: give a list or a reader, or fit it first.")
        vectorizer.fit(map(_text_of, documents))
    texts = islice(map(_text_of, documents), skip, None)

    return map(vectorizer.transform, _batches(texts)), [str(word) for word in vectorizer.get_feature_names_out()]


def _batches(texts: Iterator[Any]) -> Iterator[list[Any]]:
    """A few thousand texts at a time, fewer where they are long."""
    batch: list[Any] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) if isinstance(text, str | bytes) else 0
        if len(batch) == _TEXTS_AT_ONCE or size >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _text_of(document: Any) -> Any:
    return getattr(document, "text", document)


def _after(chunks: Iterator[Any], skip: int) -> Iterator[Any]:
    """The chunks without their first `skip` documents."""
    for chunk in chunks:
        rows = chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)
        if skip < rows:
            yield chunk if skip == 0 else sp.csr_array(chunk)[skip:]
        skip = max(0, skip - rows)


class _Writer:
    """Cuts a stream of rows into shards; the manifest is replaced after each."""

    def __init__(self, folder: Path, done: Manifest | None, shard_nonzeros: int | None) -> None:
        self._folder, self._manifest, self._asked = folder, done, shard_nonzeros
        self._waiting: list[Any] = []
        self._nonzeros = 0

    def write(self, chunks: Iterable[Any], vocabulary: list[str] | None) -> None:
        for chunk in chunks:
            self._take(self._checked(chunk))
        if self._manifest is None:
            raise InputError("There are no documents to write.")
        if self._waiting:
            self._put()
        manifest = self._manifest
        complete(self._folder, manifest, vocabulary)

    def _checked(self, chunk: Any) -> sp.csr_array:
        """Counts of the dtype of all; the first chunk says how many words there are, and whether counts are float64."""
        matrix = checked_counts(chunk)
        if self._manifest is None:
            dtype = dtype_of(matrix)
            size = self._asked or max(_LEAST_NONZEROS, _NONZEROS_A_WORD * matrix.shape[1])
            self._manifest = Manifest(int(matrix.shape[1]), dtype, size)
        if matrix.shape[1] != self._manifest.words:
            raise InputError(f"A chunk has {matrix.shape[1]} columns where the first has {self._manifest.words}.")
        counts = sparse_counts(matrix, np.dtype(self._manifest.dtype))
        return sp.csr_array(counts.matrix())

    def _take(self, rows: sp.csr_array) -> None:
        """Puts rows to those that wait, and writes a shard whenever the next row would make it too large."""
        assert self._manifest is not None
        begin = 0
        while begin < rows.shape[0]:
            room = self._manifest.shard_nonzeros - self._nonzeros
            fits = int(np.searchsorted(rows.indptr, rows.indptr[begin] + room, side="right")) - 1
            if fits <= begin and not self._waiting:
                fits = begin + 1  # a document with more than a shard is a shard
            if fits > begin:
                self._waiting.append(rows[begin:fits])
                self._nonzeros += int(rows.indptr[fits] - rows.indptr[begin])
                begin = fits
            if begin < rows.shape[0]:
                self._put()

    def _put(self) -> None:
        assert self._manifest is not None
        matrix = sp.vstack(self._waiting, format="csr")
        self._waiting, self._nonzeros = [], 0
        counts = sparse_counts(matrix, np.dtype(self._manifest.dtype))
        entry = write_shard(self._folder, len(self._manifest.shards), counts)
        self._manifest = replace(self._manifest, shards=(*self._manifest.shards, entry))
        self._manifest.write(self._folder)


def checked_counts(chunk: Any) -> sp.csr_array:
    """Counts of some documents, if they are finite, not negative, and within the range of a fit."""
    if getattr(chunk, "dtype", None) == np.float16:  # which scipy refuses
        chunk = chunk.astype(np.float32)
    matrix = sp.csr_array(checked_sparse(chunk, "A chunk"))
    if matrix.data.dtype.kind not in "fiub" or not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise InputError("Every count must be a finite number of at least 0.")
    check_range("Every count", matrix.data, np.dtype(dtype_of(matrix)))
    return matrix


def dtype_of(matrix: sp.csr_array) -> str:
    """What counts are stored as: float64 if they are that, else float32."""
    return "float64" if matrix.dtype == np.float64 else "float32"


def complete(folder: Path, manifest: Manifest, vocabulary: list[str] | None) -> None:
    """Adds the words and their totals, and says in the manifest that all is there."""
    if vocabulary is not None:
        if len(vocabulary) != manifest.words:
            raise InputError(f"vocabulary has {len(vocabulary)} words where the counts have {manifest.words}.")
        manifest = replace(manifest, vocabulary=write_checked(folder / VOCABULARY, [json.dumps(vocabulary).encode()]))
    totals = np.zeros(manifest.words)
    for entry in manifest.shards:  # from the files, so that a call that went on and one that did not give the same
        shard = open_shard(folder, entry, manifest.words, np.dtype(manifest.dtype), 1)
        totals += shard.counts.sparse().transposed(None).totals
    entry = write_checked(folder / WORD_TOTALS, [npy_header(totals), bytes_of(totals)])
    replace(manifest, word_totals=entry, complete=True).write(folder)
