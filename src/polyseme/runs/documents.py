"""Documents of a run: ids, titles, labels, times, sources, texts and near-duplicates, in one file of blocks.

documents.blocks has blocks of about BLOCK bytes, each with the values of one column for some documents, compressed. A
value is read without the other blocks. documents.index, which is small and has a digest in run.json, has the places and
the checksums of the blocks, and what filters use:

    labels       number of the label of each document; the metadata has the labels, "" for no label
    days         day of each document as the ordinal of its date, 0 if it has no date; empty if there are no dates
    firsts       row of the first document in each document's group of near-duplicates; empty if there are none
    COLUMN.rows  first row of each block, and the number of rows
    COLUMN.blocks  for each block, its first byte, its size and its CRC-32

The excerpt of a document is stored only if its text is not.
"""

from __future__ import annotations

import json
import shutil
import zlib
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import numpy as np

from polyseme.errors import InputError, ModelFileError
from polyseme.io.arrays import CheckedArray, map_checked, read_safetensors, safetensors_parts, text_hashes
from polyseme.io.files import TEXT as STRING
from polyseme.io.files import FileManifest, list_of, parse_json, write_atomically
from polyseme.kernels import Array
from polyseme.options import named
from polyseme.runs.store import damage_error
from polyseme.text.dates import Days, days_of
from polyseme.text.readers.inputs import LABEL_SEPARATOR, Document
from polyseme.text.sentences import shortened

STORE, TEXTS = "documents", "texts"
"""Names of the two files, without the suffix: of a run, and of the texts that an unfinished run will not store."""
COLUMNS = ("id", "title", "label", "time", "source", "excerpt")
"""Metadata of each document."""
TEXT = "text"
EXCERPT_LENGTH = 300
_ALWAYS = ("id", "title", "time", "source")
"""Columns that every store of documents has."""
BLOCK = 1 << 16
"""Bytes of the values of a block, before compression."""
_LEVEL = 2
"""Level of compression. Level 5 takes twice the time, and saves 8% of the size."""
_MAX_WAITING = 32
"""Blocks that wait for their compression at most."""
_MAX_BLOCK, _MAX_RATIO = 1 << 28, 200
"""Bytes of a block after decompression: this number, or a multiple of its size in the file."""
_LABELS_SHOWN = 8
_LABEL_NAMES = "labels"
"""Name of the labels in the metadata of the index."""


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line, which ends at a sentence or a word."""
    return shortened(text, EXCERPT_LENGTH)


def metadata(document: Document) -> tuple[Any, ...]:
    """Return the values of COLUMNS of a document."""
    label = LABEL_SEPARATOR.join(document.labels) or None
    return document.id, document.title, label, document.time, document.source, excerpt(document.text)


def unique_ids(ids: list[str], sources: list[str | None]) -> list[str]:
    """Return the ids; if some of them repeat, put the names of their files before all ids.

    An id that repeats within one file gets a number: a:7, a:7#2.
    """
    if len(set(ids)) == len(ids):
        return ids
    named = list(map(id_with_source, ids, sources))
    seen: Counter[str] = Counter()
    unique = []
    for name in named:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return unique


def id_with_source(name: str, source: str | None) -> str:
    """Return an id with the name of its file before it, unless both are equal."""
    return name if name == source else f"{source or ''}:{name}"


class Labels(NamedTuple):
    """Labels of documents as numbers."""

    names: list[str]
    """Sorted names; "" for no label."""
    numbers: Array
    """Number of the label of each document."""

    @classmethod
    def of(cls, names: Sequence[str], numbers: Array) -> Labels:
        """Sort the names that occur; several names may be equal."""
        used = sorted({names[number] for number in np.unique(numbers).tolist()})
        place = {name: number for number, name in enumerate(used)}
        return cls(used, np.array([place.get(name, 0) for name in names], dtype=np.int32)[numbers])


class Column(Sequence[Any]):
    """Values of a column, strings or None, in the order of the documents. A block is read when a value is needed."""

    def __init__(self, store: DocumentStore, name: str) -> None:
        self._store, self._name = store, name
        self._rows: list[int] = store.arrays[f"{name}.rows"].tolist()
        self._blocks: list[list[int]] = store.arrays[f"{name}.blocks"].tolist()
        self._last: tuple[int, tuple[list[int], list[int], bytes]] = (-1, ([], [], b""))

    def __len__(self) -> int:
        return self._rows[-1]

    @overload
    def __getitem__(self, row: int) -> Any: ...
    @overload
    def __getitem__(self, row: slice) -> list[Any]: ...
    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not 0 <= row < len(self):
            raise IndexError(row)
        number = bisect_right(self._rows, row) - 1
        last = self._last  # another thread may replace it
        if last[0] != number:
            self._last = last = (number, self._read(number))
        return self._value(*last[1], row - self._rows[number])

    def __iter__(self) -> Iterator[Any]:
        for number in range(len(self._blocks)):
            block = self._read(number)
            yield from (self._value(*block, place) for place in range(len(block[0])))

    def take(self, rows: Any) -> list[Any]:
        """Return the values of some documents."""
        return [self[row] for row in np.asarray(rows).tolist()]

    def hashes(self) -> Array:
        """Return a hash of each value (uint64)."""
        blocks = (self._content(number) for number in range(len(self._blocks)))
        parts = [text_hashes(content, lengths) for lengths, content in blocks]
        return np.concatenate([*parts, np.empty(0, np.uint64)])

    def _value(self, lengths: list[int], starts: list[int], content: bytes, place: int) -> str | None:
        """Return a value of a block."""
        start, length = starts[place], lengths[place]
        try:
            return None if length < 0 else content[start : start + length].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self._store.damage(f"{self._name} has bytes that are not text") from None

    def _read(self, number: int) -> tuple[list[int], list[int], bytes]:
        """Return the lengths of the values of a block, -1 for a missing value, their first bytes, and all bytes."""
        lengths, content = self._content(number)
        ends = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
        return lengths.tolist(), [0, *ends.tolist()], content

    def _content(self, number: int) -> tuple[Array, bytes]:
        """Return the lengths of the values of a block, -1 for a missing value, and their bytes."""
        start, size, checksum = self._blocks[number]
        packed = self._store.blocks[start : start + size].tobytes()
        if len(packed) != size or zlib.crc32(packed) != checksum:
            raise self._store.damage("some of its bytes have changed")
        head, most = 4 * (self._rows[number + 1] - self._rows[number]), max(_MAX_BLOCK, _MAX_RATIO * size)
        try:
            content = zlib.decompressobj().decompress(packed, most)
        except zlib.error:
            content = b""
        lengths = np.frombuffer(content[:head].ljust(head, b"\0"), dtype="<i4")
        if (lengths < -1).any() or head + np.maximum(lengths, 0).sum(dtype=np.int64) != len(content):
            raise self._store.damage(f"a block of {self._name} cannot be read")
        return lengths, content[head:]


class _Excerpts(Sequence[Any]):
    """Excerpts of stored texts."""

    def __init__(self, texts: Column) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, row: Any) -> Any:
        return excerpt(self._texts[row])

    def __iter__(self) -> Iterator[str]:
        return map(excerpt, self._texts)

    def take(self, rows: Any) -> list[str]:
        return [excerpt(text) for text in self._texts.take(rows)]


class _Names(Sequence[str]):
    """Names of documents: the title, or the id if there is no title."""

    def __init__(self, titles: Sequence[Any], ids: Sequence[Any]) -> None:
        self._titles, self._ids = titles, ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        return self._titles[row] or self._ids[row]

    def __iter__(self) -> Iterator[str]:
        return (title or name for title, name in zip(self._titles, self._ids, strict=True))


class DocumentStore:
    """Documents in a file of blocks.

    arrays : the index. path : the file of blocks, whose size fits the index. label_names : the labels by number.
    """

    def __init__(self, arrays: Mapping[str, Array], path: Path, label_names: list[str]) -> None:
        self.arrays, self.path, self.label_names = arrays, path, label_names
        self.blocks = np.memmap(path, np.uint8, "r").view(np.ndarray) if path.stat().st_size else np.empty(0, np.uint8)
        self.has_texts = f"{TEXT}.rows" in arrays

    @classmethod
    def open(cls, files: FileManifest, name: str = STORE, *, table: Array | None = None) -> DocumentStore:
        """Read the index. Raise ModelFileError if it is missing or damaged.

        table : checksums of the index (`polyseme.io.arrays.checksums_of`), which was read before. Its arrays are then
        mapped, and checked when they are used.
        """
        path = files.path(f"{name}.index") if table is None else files.sized(f"{name}.index")
        blocks = files.sized(f"{name}.blocks")
        try:
            if table is not None:
                metadata, checked = map_checked(path, table)
                return cls(_Mapped(checked), blocks, parse_json(metadata[_LABEL_NAMES]))
            metadata, arrays = read_safetensors(path)
            label_names = parse_json(metadata[_LABEL_NAMES])
            list_of(STRING).require("the labels", label_names)
            _check_index(arrays, blocks.stat().st_size, len(label_names))
            for column in _ALWAYS if name == STORE else ():
                _ = arrays[f"{column}.rows"]
            return cls(arrays, blocks, label_names)
        except (OSError, ValueError) as error:
            raise damage_error(path, error) from None
        except KeyError as error:
            raise damage_error(path, ValueError(f"it has no {error}")) from None

    def __len__(self) -> int:
        return int(next(self.arrays[name][-1] for name in self.arrays if name.endswith(".rows")))

    def column(self, name: str) -> Any:
        """Return the values of a column as a sequence with a method `take`."""
        if name == "label":
            names = [label or None for label in self.label_names]
            return _Taken([names[number] for number in self.arrays["labels"].tolist()])
        if name == "excerpt" and self.has_texts:
            return _Excerpts(self.texts)
        return Column(self, name)

    @cached_property
    def texts(self) -> Column:
        """Texts of the documents; only if `has_texts`."""
        return Column(self, TEXT)

    @cached_property
    def names(self) -> Sequence[str]:
        """Name of each document: its title, or its id if it has no title."""
        return _Names(self.column("title"), self.column("id"))

    def labels(self, most: int | None = None) -> Labels:
        """Return the labels as numbers; with `most`, only the most frequent ones."""
        names, numbers = list(self.label_names), self.arrays["labels"]
        counts = np.bincount(numbers, minlength=len(names))
        if most is not None and len(names) > most:
            for number in np.argsort(-counts, kind="stable")[most:].tolist():
                names[number] = ""
        return Labels.of(names, numbers)

    @property
    def groups(self) -> Array:
        """For each document, the row of the first document in its group of near-duplicates."""
        firsts = self.arrays["firsts"]
        return firsts.astype(np.int64) if len(firsts) else np.arange(len(self))

    def with_labels(self, labels: Sequence[str]) -> Array:
        """Return a mask of the documents that have one of some labels."""
        names = self.label_names
        parts = [{name, *name.split(LABEL_SEPARATOR)} for name in names]
        known = sorted(set().union(*(name.split(LABEL_SEPARATOR) for name in names)) - {""})
        if not known:
            raise InputError(
                f"{named('label')}: the documents of this run have no labels; a fit reads them with "
                f"{named('label', 'COLUMN')}."
            )
        for label in labels:
            if label not in known and label not in names:
                near = get_close_matches(label, known, _LABELS_SHOWN) or known[:_LABELS_SHOWN]
                listed = ", ".join(map(repr, near))
                raise InputError(
                    f"{named('label')}: no document has the label {label!r}; the run has labels such as {listed}."
                )
        wanted = np.array([not names_of_label.isdisjoint(labels) for names_of_label in parts], dtype=bool)
        return wanted[self.arrays["labels"]]

    def between(self, since: Days | None = None, until: Days | None = None) -> Array:
        """Return a mask of the documents from the first day of `since` to the last day of `until`."""
        days = self.arrays["days"]
        mask = days > 0
        if not mask.any():
            name = named("until" if since is None else "since")
            raise InputError(
                f"{name}: no document of this run has a date; a fit reads dates with {named('time', 'COLUMN')}."
            )
        if since is not None:
            mask &= days >= since.first.toordinal()
        if until is not None:
            mask &= days <= until.last.toordinal()
        return mask

    def damage(self, problem: str) -> ModelFileError:
        """Return the error for damaged blocks."""
        return damage_error(self.path, ValueError(problem))


class _Mapped(Mapping[str, Array]):
    """Arrays in a file, which are checked when they are used."""

    def __init__(self, arrays: Mapping[str, CheckedArray]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> Array:
        array: Array = self._arrays[name][:]
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class _Taken(list[Any]):
    """A list with the method `take` of a column."""

    def take(self, rows: Any) -> list[Any]:
        return [self[row] for row in np.asarray(rows).tolist()]


def _check_index(arrays: dict[str, Array], size: int, n_labels: int) -> None:
    """Raise KeyError or ValueError unless the arrays of an index fit together and to the size of the blocks."""
    labels, days, firsts = (arrays[name] for name in ("labels", "days", "firsts"))
    n = labels.size
    for name, values in (("labels", labels), ("days", days), ("firsts", firsts)):
        if values.dtype.kind != "i" or values.shape not in (((n,),) if name == "labels" else ((n,), (0,))):
            raise ValueError(f"{name} has another type or size")
    if n and not 0 <= labels.min() <= labels.max() < n_labels:
        raise ValueError("a label has no name")
    if firsts.size and ((firsts < 0).any() or (firsts > np.arange(n)).any() or (firsts[firsts] != firsts).any()):
        raise ValueError("a near-duplicate does not belong to the first document of a group")
    stored = [name.removesuffix(".rows") for name in arrays if name.endswith(".rows")]
    if not {"excerpt", TEXT} & set(stored):
        raise ValueError("it has neither texts nor excerpts")
    for name in stored:
        rows, blocks = arrays[f"{name}.rows"], arrays[f"{name}.blocks"]
        if rows.dtype != np.int64 or blocks.dtype != np.int64 or rows.ndim != 1 or blocks.shape != (len(rows) - 1, 3):
            raise ValueError(f"{name} has arrays of other types or sizes")
        if rows[0] != 0 or rows[-1] != n or (np.diff(rows) <= 0).any():
            raise ValueError(f"{name} does not have a value for each document")
        if (blocks < 0).any() or (blocks[:, :2] > size).any() or (blocks[:, 0] + blocks[:, 1] > size).any():
            raise ValueError(f"{name} has a block outside the file")


class _ColumnWriter:
    """Values of a column that are not written yet, and the places of the blocks that are."""

    def __init__(self, store: DocumentStore | None, name: str) -> None:
        self.rows = [0] if store is None else store.arrays[f"{name}.rows"].tolist()
        self.blocks = [] if store is None else store.arrays[f"{name}.blocks"].tolist()
        self._values: list[bytes | None] = []
        self._size = 0

    def add(self, value: str | None) -> bool:
        """Add a value, and return whether there are enough for a block."""
        content = None if value is None else value.encode("utf-8", "surrogatepass")
        self._values.append(content)
        self._size += 4 + len(content or b"")
        return self._size >= BLOCK

    def block(self) -> bytes:
        """Return the values as the content of a block, and start the next one; empty without values."""
        values, self._values, self._size = self._values, [], 0
        if not values:
            return b""
        self.rows.append(self.rows[-1] + len(values))
        lengths = np.array([-1 if value is None else len(value) for value in values], dtype="<i4")
        return lengths.tobytes() + b"".join(filter(None, values))


def _integers(values: Array) -> array[int]:
    """Return a list that takes four bytes for each integer."""
    return array("i", values.astype(np.intc).tobytes())


class DocumentWriter:
    """Writer of documents, one at a time. The index is written at the end of a `with` block.

    A thread compresses the blocks, which are written in the order in which they were filled.

    texts : whether to store the texts. after : documents that come first, whose blocks are copied.
    """

    def __init__(
        self, folder: Path, *, texts: bool = True, after: DocumentStore | None = None, name: str = STORE
    ) -> None:
        self._path = folder / f"{name}.blocks"
        if after is not None:
            shutil.copyfile(after.path, self._path)
        self._file = self._path.open("wb" if after is None else "ab")
        stored = (*_ALWAYS, TEXT if texts else "excerpt") if name == STORE else (TEXT,)
        self._columns = {column: _ColumnWriter(after, column) for column in stored}
        self._compressor = ThreadPoolExecutor(1)
        self._waiting = deque[tuple[_ColumnWriter, Future[bytes]]]()
        none, zeros = np.empty(0), np.zeros(0 if after is None else len(after))
        self._labels = _integers(none if after is None else after.arrays["labels"])
        self._days = _integers(zeros if after is None or not len(after.arrays["days"]) else after.arrays["days"])
        self._firsts = _integers(none if after is None else after.groups)
        known = () if after is None else after.label_names
        self._label_numbers = {label: number for number, label in enumerate(known)}

    def add(self, document: Document, first: int | None = None) -> None:
        """Add a document. first : row of the first document in its group of near-duplicates."""
        for name, column in self._columns.items():
            if column.add(excerpt(document.text) if name == "excerpt" else getattr(document, name)):
                self._compress(column)
                self._write(_MAX_WAITING)
        days, label = days_of(document.time), LABEL_SEPARATOR.join(document.labels)
        self._days.append(0 if days is None else days.first.toordinal())
        self._labels.append(self._label_numbers.setdefault(label, len(self._label_numbers)))
        self._firsts.append(len(self._firsts) if first is None else first)

    def written(self) -> DocumentStore:
        """Write the values that are in memory, and return the documents so far."""
        for column in self._columns.values():
            self._compress(column)
        self._write()
        self._file.flush()
        firsts = np.array(self._firsts, dtype=np.int32)
        arrays: dict[str, Array] = {
            "labels": np.array(self._labels, dtype=np.int32),
            "days": np.array(self._days if any(self._days) else [], dtype=np.int32),
            "firsts": firsts if (firsts < np.arange(len(firsts))).any() else firsts[:0],
        }
        for name, column in self._columns.items():
            arrays[f"{name}.rows"] = np.array(column.rows, dtype=np.int64)
            arrays[f"{name}.blocks"] = np.array(column.blocks, dtype=np.int64).reshape(-1, 3)
        return DocumentStore(arrays, self._path, list(self._label_numbers))

    def _compress(self, column: _ColumnWriter) -> None:
        """Hand the values of a column to the thread."""
        content = column.block()
        if content:
            self._waiting.append((column, self._compressor.submit(zlib.compress, content, _LEVEL)))

    def _write(self, most: int = 0) -> None:
        """Write blocks until at most `most` of them wait."""
        while len(self._waiting) > most:
            column, block = self._waiting.popleft()
            content = block.result()
            column.blocks.append([self._file.tell(), len(content), zlib.crc32(content)])
            self._file.write(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        with self._file, self._compressor:
            if error is None:
                store = self.written()
                parts = safetensors_parts(store.arrays, {_LABEL_NAMES: json.dumps(store.label_names)})
                write_atomically(self._path.with_suffix(".index"), parts, flush=False)
