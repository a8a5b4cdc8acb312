"""Files of shards: counts of consecutive documents, and the manifest that lists them.

A shard is a safetensors file with the CSR arrays of its documents, the same counts in word order (so that a pass over
words needs no transpose), and the lengths of the documents. The manifest has the size and SHA-256 of each file, and a
digest of its own content. It is replaced after every shard that is written, so it always describes complete files.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.core.shard import Shard
from polyseme.errors import InputError, ShardError
from polyseme.io.arrays import arrays_in, safetensors_parts
from polyseme.io.files import (
    COUNT,
    FLAG,
    NULL,
    TEXT,
    check_fields,
    either,
    file_digest,
    list_of,
    object_with,
    one_of,
    read_json,
    whole_number,
    write_atomically,
    write_with_digest,
)
from polyseme.io.files import number as finite_number
from polyseme.kernels import Array, Floats, SparseCounts, find_counts_error

FORMAT_VERSION = 2
"""Version of the shards that this version of polyseme writes and reads. Version 1 was never released."""
MANIFEST, WORD_TOTALS, VOCABULARY = "manifest.json", "word_totals.npy", "vocabulary.json"
_MAX_INT32 = np.iinfo(np.int32).max
_FIELDS = {
    "name": TEXT,
    "size": COUNT,
    "sha256": TEXT,
    "documents": whole_number(0, _MAX_INT32),
    "nonzeros": whole_number(0, _MAX_INT32),
    "tokens": finite_number(0, 1e300),
}
_ENTRY = object_with(_FIELDS, required=_FIELDS)
_MANIFEST = {
    "format_version": COUNT,
    "words": whole_number(0, _MAX_INT32),
    "dtype": one_of("float32", "float64"),
    "shard_nonzeros": COUNT,
    "shards": list_of(_ENTRY),
    "word_totals": either(NULL, _ENTRY),
    "vocabulary": either(NULL, _ENTRY),
    "complete": FLAG,
}


@dataclass(frozen=True)
class Entry:
    """Description of a file in the manifest."""

    name: str
    size: int
    sha256: str
    documents: int = 0
    nonzeros: int = 0
    tokens: float = 0.0


@dataclass(frozen=True)
class Manifest:
    """Content of a folder of shards."""

    words: int
    dtype: str
    """Type of the counts, float32 or float64."""
    shard_nonzeros: int
    shards: tuple[Entry, ...] = ()
    word_totals: Entry | None = None
    vocabulary: Entry | None = None
    complete: bool = False
    format_version: int = field(default=FORMAT_VERSION)

    @property
    def files(self) -> list[Entry]:
        """All files that the manifest lists."""
        return [*self.shards, *(entry for entry in (self.word_totals, self.vocabulary) if entry is not None)]

    @property
    def documents(self) -> int:
        return sum(entry.documents for entry in self.shards)

    @property
    def tokens(self) -> float:
        return sum(entry.tokens for entry in self.shards)

    @property
    def digest(self) -> str:
        """Digest of the content, which changes with any count."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        content = {**asdict(self), "digest": self.digest}
        write_atomically(folder / MANIFEST, json.dumps(content, indent=1).encode())


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a folder. Raise ShardError if it is damaged."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder} has no {MANIFEST}: write shards there with polyseme.scale.write_shards.")
    try:
        content = read_json(path)
        check_fields(content, _MANIFEST, required=("format_version",), others=True)
        if content["format_version"] == FORMAT_VERSION:
            content["shards"] = tuple(Entry(**entry) for entry in content["shards"])
            for name in ("word_totals", "vocabulary"):
                content[name] = None if content[name] is None else Entry(**content[name])
            digest = content.pop("digest", None)
            manifest = Manifest(**content)
            if manifest.digest != digest:
                raise ValueError("its digest does not match its content")
            if any(Path(entry.name).name != entry.name for entry in manifest.files):
                raise ValueError("a file name contains a folder")
            return manifest
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ShardError(f"{path} is damaged ({error}): write the shards again.") from None
    if content["format_version"] < FORMAT_VERSION:
        raise ShardError(f"{path} was written by an early version of polyseme: write the shards again.")
    raise ShardError(f"{path} was written by a newer polyseme: update polyseme to read it.")


def write_shard(folder: Path, number: int, counts: SparseCounts, file: int | None = None) -> Entry:
    """Write counts to a shard file, atomically. Return its description for the manifest.

    file : index of the input file, if shards are numbered within files. The name of the shard then has both numbers.
    """
    if counts.values.size >= _MAX_INT32 or counts.n_words >= _MAX_INT32:
        raise InputError("A shard must have fewer than 2^31 counts and words: choose a smaller shard_nonzeros.")
    by_word = counts.transposed(None)
    totals = counts.totals
    arrays: dict[str, Array] = {
        "totals": totals,
        "indptr": counts.indptr.astype(np.int32, copy=False),
        "indices": counts.indices.astype(np.int32, copy=False),
        "values": counts.values,
        "word_indptr": by_word.indptr.astype(np.int32, copy=False),
        "word_indices": by_word.indices.astype(np.int32, copy=False),
        "word_values": by_word.values,
    }
    name = f"shard-{number:06d}.safetensors" if file is None else f"shard-{file:06d}-{number:06d}.safetensors"
    entry = write_checked(folder / name, safetensors_parts(arrays))
    return replace(entry, documents=counts.n_docs, nonzeros=int(counts.values.size), tokens=float(totals.sum()))


def write_checked(path: Path, parts: Iterable[Any]) -> Entry:
    """Write a file from buffers, atomically. Return its name, size and digest."""
    return Entry(path.name, *write_with_digest(path, parts))


def read_checked(folder: Path, entry: Entry) -> memoryview:
    """Return the mapped bytes of a file, after a check of its size and digest."""
    check_size(folder, entry)
    # Use one handle, so that the file that is mapped is the one whose digest was checked.
    with (folder / entry.name).open("rb") as file:
        if file_digest(file) != entry.sha256:
            raise ShardError(
                f"{folder / entry.name} is damaged: its digest differs from the manifest; write the shards again."
            )
        content: Array = np.memmap(file, dtype=np.uint8, mode="r") if entry.size else np.empty(0, dtype=np.uint8)
    return content.data


def check_size(folder: Path, entry: Entry) -> None:
    """Raise ShardError if a file is missing or does not have the size in the manifest."""
    path = folder / entry.name
    if not path.is_file():
        raise ShardError(f"{path} is missing: restore it, or write the shards again.")
    if path.stat().st_size != entry.size:
        raise ShardError(
            f"{path} has {path.stat().st_size} bytes where the manifest says {entry.size}: write the shards again."
        )


class MappedShard(Shard):
    """A shard in a memory-mapped file. The operating system loads its pages when needed and may drop them again."""

    def __init__(self, counts: SparseCounts, totals: Floats, n_threads: int) -> None:
        super().__init__(counts, None, n_threads)
        self.totals = totals


def open_shard(
    folder: Path, entry: Entry, n_words: int, dtype: np.dtype[Any], n_threads: int, content: memoryview | None = None
) -> MappedShard:
    """Return a shard, after a check of its digest. `dtype` is the type of the factors.

    content : the mapped bytes of its file, if the digest was checked before.
    """
    if content is None:
        content = read_checked(folder, entry)
    try:
        arrays = arrays_in(np.asarray(content))
        shape, transposed = (entry.documents, n_words), (n_words, entry.documents)
        by_word = _csr(arrays, "word_", transposed, entry.nonzeros, dtype)
        counts = _csr(arrays, "", shape, entry.nonzeros, dtype, by_word)
        totals = arrays["totals"]
        if (
            totals.shape != (entry.documents,)
            or totals.dtype != np.float64
            or not (np.isfinite(totals) & (totals >= 0)).all()
            or not math.isclose(totals.sum(), entry.tokens, rel_tol=1e-9)
        ):
            raise ValueError("the lengths of the documents do not match the manifest")
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ShardError(f"{folder / entry.name} is not a shard ({error}): write the shards again.") from None
    return MappedShard(counts, totals, n_threads)


def _csr(
    arrays: dict[str, Array],
    prefix: str,
    shape: tuple[int, int],
    nonzeros: int,
    dtype: np.dtype[Any],
    transpose: SparseCounts | None = None,
) -> SparseCounts:
    """Return counts from CSR arrays. Raise ValueError if the arrays are not valid."""
    indptr, indices, values = (arrays[prefix + name] for name in ("indptr", "indices", "values"))
    if (
        indptr.dtype != np.int32
        or indices.dtype != np.int32
        or values.dtype.kind != "f"
        or indices.shape != (nonzeros,)
    ):
        raise ValueError("its arrays do not match the manifest")
    fault = find_counts_error(indptr, indices, values, shape)
    if fault is not None:
        raise ValueError(fault)
    transposes: list[tuple[Floats | None, SparseCounts]] = [] if transpose is None else [(None, transpose)]
    return SparseCounts(indptr, indices, values.astype(dtype, copy=False), *shape, transposes)
