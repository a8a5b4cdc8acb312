"""What a search needs of the documents of a run beside its index: texts for phrases and snippets, and what filters use.

Parquet files are made to be read as a whole and need polars, so the first search stores a copy that is mapped and read
block by block. It is derived from the other files and has checksums of its own: one that is missing, damaged or of
another state of the run is built again. Texts are compressed in blocks of at least TEXT_BLOCK bytes, of which a search
reads those of its hits.

    topics       main topic of each document
    days         day of each document as the ordinal of its date, 0 without one
    labels       number of the label of each document; label_names has the labels
    groups       row of the first of the documents that are near-duplicates of each other; empty if there are none
    text_starts  first byte of each text among all texts
    first_texts  first text of each block
    block_starts first byte of each block among the compressed blocks
    blocks       compressed blocks
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.errors import InputError, ModelFileError
from polyseme.io.arrays import StringTable, checked_parts, map_checked, string_arrays
from polyseme.io.files import TEXT, check_fields, parse_json, whole_number, write_atomically
from polyseme.kernels import Array
from polyseme.text.readers.inputs import LABEL_SEPARATOR, Days, days_of

DOCUMENTS_FILE = "search_documents.safetensors"
"""File in the run folder that stores the copy."""
TEXT_BLOCK = 1 << 16
_ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 22
_LABELS_SHOWN = 8
_FORMAT_VERSION = 2
_METADATA_KEY = "polyseme_search_documents"
_HEADER_FIELDS = {"format_version": whole_number(_FORMAT_VERSION, _FORMAT_VERSION), "identity": TEXT}
_TEXT_ARRAYS = ("text_starts", "first_texts", "block_starts", "blocks")


class SearchDocuments:
    """Texts, labels, days and main topics of the documents of a run."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        """Check that the sizes of the arrays fit together. Raises KeyError or ValueError if they do not."""
        self._arrays = dict(arrays)
        self.n_documents = len(arrays["topics"])
        for name, kind in (("topics", np.int32), ("labels", np.int32), ("days", np.int32), ("groups", np.int64)):
            sizes = (0, self.n_documents) if name == "groups" else (self.n_documents,)
            if len(arrays[name].shape) != 1 or arrays[name].shape[0] not in sizes or arrays[name].dtype != kind:
                raise ValueError(f"{name} has another type or size")
        self.label_names = StringTable(arrays, "label_names")
        self.has_texts = _TEXT_ARRAYS[0] in arrays
        self._first_texts: Array | None = None
        if self.has_texts:
            texts, firsts, starts, blocks = (arrays[name] for name in _TEXT_ARRAYS)
            if blocks.dtype != np.uint8 or any(array.dtype != np.int64 for array in (texts, firsts, starts)):
                raise ValueError("the texts have arrays of other types")
            if texts.shape != (self.n_documents + 1,) or firsts.shape != starts.shape or len(blocks.shape) != 1:
                raise ValueError("the texts have arrays of other sizes")

    def __len__(self) -> int:
        return self.n_documents

    def __getitem__(self, row: int) -> str:
        """Return the text of a document. Raise ModelFileError if the file is damaged."""
        if self._first_texts is None:
            self._first_texts = np.asarray(self._arrays["first_texts"][:])
        block = int(np.searchsorted(self._first_texts, row, side="right")) - 1
        bounds = self._first_texts[block : block + 2].tolist()
        if block < 0 or len(bounds) < 2 or not 0 <= bounds[0] <= row < bounds[1] <= self.n_documents:
            raise self._damage("a text has no block")
        first, last = bounds
        places = np.asarray(self._arrays["text_starts"][first : last + 1])
        start, end = self._arrays["block_starts"][block : block + 2].tolist()
        size = int(places[-1] - places[0])
        if not 0 <= start <= end <= len(self._arrays["blocks"]) or (np.diff(places) < 0).any():
            raise self._damage("a block is outside of its array")
        try:
            content = zlib.decompressobj().decompress(self._arrays["blocks"][start:end].tobytes(), size + 1)
            a, b = (places[row - first : row - first + 2] - places[0]).tolist()
            if len(content) != size:
                raise ValueError
            return content[a:b].decode("utf-8", "surrogatepass")
        except (zlib.error, ValueError):
            raise self._damage("a block cannot be read") from None

    def with_labels(self, labels: Sequence[str]) -> Array:
        """Return a mask of the documents that have one of some labels."""
        names = list(self.label_names)
        parts = [{name, *name.split(LABEL_SEPARATOR)} for name in names]
        known = sorted({part for name in names for part in name.split(LABEL_SEPARATOR)} - {""})
        if not known:
            raise InputError("label=: the documents of this run have no labels; label= of a fit names their column.")
        for label in labels:
            if label not in known and label not in names:
                near = get_close_matches(label, known, _LABELS_SHOWN) or known[:_LABELS_SHOWN]
                raise InputError(f"label=: no document has the label {label!r}; there is {', '.join(map(repr, near))}.")
        wanted = np.array([not found.isdisjoint(labels) for found in parts], dtype=bool)
        numbers = np.asarray(self._arrays["labels"][:])
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(names):
            raise self._damage("a label has no name")
        return wanted[numbers]

    def with_topics(self, topics: Sequence[int]) -> Array:
        """Return a mask of the documents whose main topic is one of these."""
        main = np.asarray(self._arrays["topics"][:])
        found = np.zeros(len(main), dtype=bool)
        for topic in topics:
            found |= main == topic
        return found

    def with_weights(self, doc_topic: Array) -> SearchDocuments:
        """Return the same documents with the main topics of other P(z|d)."""
        return SearchDocuments({**self._arrays, "topics": _main_topics(doc_topic)})

    def between(self, since: Days | None = None, until: Days | None = None) -> Array:
        """Return a mask of the documents from the first day of `since` to the last day of `until`."""
        days = np.asarray(self._arrays["days"][:])
        found = days > 0
        if not found.any():
            name = "until=" if since is None else "since="
            raise InputError(f"{name}: no document of this run has a date; time= of a fit names their column.")
        if since is not None:
            found &= days >= since.first.toordinal()
        if until is not None:
            found &= days <= until.last.toordinal()
        return found

    def groups(self) -> Array:
        """Return the row of the first document of each document's group of near-duplicates; empty without any."""
        groups = np.asarray(self._arrays["groups"][:])
        if groups.size and not 0 <= groups.min() <= groups.max() < len(groups):
            raise self._damage("a group has no document")
        return groups

    def save(self, path: Path, identity: str) -> None:
        """Write a file, completely or not at all. `identity` names the state of the run."""
        header = json.dumps({"format_version": _FORMAT_VERSION, "identity": identity})
        write_atomically(path, checked_parts(self._arrays, {_METADATA_KEY: header}))

    @classmethod
    def load(cls, path: Path, identity: str) -> SearchDocuments:
        """Map a file. Raise OSError, ValueError or ModelFileError if it is not a file of this state of the run."""
        metadata, arrays = map_checked(path)
        if _METADATA_KEY not in metadata:
            raise ValueError("it has no header of documents")
        header = parse_json(metadata[_METADATA_KEY])
        check_fields(header, _HEADER_FIELDS, required=_HEADER_FIELDS)
        if header["identity"] != identity:
            raise ValueError("it belongs to another state of the run")
        try:
            return cls(arrays)
        except KeyError as error:
            raise ValueError(f"it has no {error}") from None

    @classmethod
    def of_run(cls, run: Any, before: SearchDocuments | None = None, n_files: int = 0) -> SearchDocuments:
        """Read the documents of a run, one file at a time; the compressed texts are in a temporary file.

        before : the copy of an earlier state of the run, to which documents were added since. Its blocks are copied,
        and only the texts after the first `n_files` files are read and compressed. The result is the same.
        """
        from polyseme.runs.documents import Labels

        days: list[int] = []

        def labels_of_documents() -> Iterator[str]:
            for label, time in run.table.values("label", "time"):
                days.append(_ordinal(time))
                yield label

        labels = Labels.of(labels_of_documents())
        weights = run.doc_topic
        groups = run.groups
        arrays: dict[str, Array] = {
            "topics": _main_topics(weights),
            "days": np.array(days, dtype=np.int32),
            "labels": labels.numbers.astype(np.int32),
            "groups": groups.astype(np.int64) if (groups < np.arange(len(groups))).any() else np.empty(0, np.int64),
            **string_arrays("label_names", labels.names),
        }
        if not len(days) == len(weights) == run.n_documents:
            raise run.damaged("documents are missing")
        stored = run.stored_texts
        if not stored:
            return cls(arrays)
        with tempfile.TemporaryFile() as file:
            if before is not None and before.has_texts:
                found = _write_blocks(stored.after(n_files), file, before)
            else:
                found = _write_blocks(stored, file)
            if len(found[0]) - 1 != len(days):
                raise run.damaged("texts of documents are missing")
            size = found[-1][-1]
            blocks = np.memmap(file, dtype=np.uint8, mode="r", shape=(size,)) if size else np.empty(0, np.uint8)
        arrays |= {
            name: np.array(values, dtype=np.int64) for name, values in zip(_TEXT_ARRAYS[:-1], found, strict=True)
        }
        return cls({**arrays, _TEXT_ARRAYS[-1]: blocks})

    def copy_full_blocks(self, file: Any) -> tuple[tuple[list[int], list[int], list[int]], list[str]]:
        """Write the blocks to a file, except a last one that has room for more texts.

        Returns the starts of texts, the first texts and the starts of these blocks, and the texts of the last one.
        """
        texts, firsts, starts = (np.asarray(self._arrays[name][:]) for name in _TEXT_ARRAYS[:-1])
        blocks, n_blocks = self._arrays[_TEXT_ARRAYS[-1]], len(firsts) - 1
        increase = all(places[0] == 0 and (np.diff(places) >= 0).all() for places in (texts, firsts, starts))
        if not increase or firsts[-1] != self.n_documents or starts[-1] != len(blocks):
            raise self._damage("the blocks do not have their places")
        if n_blocks and texts[firsts[n_blocks]] - texts[firsts[n_blocks - 1]] < TEXT_BLOCK:
            n_blocks -= 1
        size = int(starts[n_blocks])
        for start in range(0, size, _BYTES_AT_ONCE):
            file.write(blocks[start : min(start + _BYTES_AT_ONCE, size)].data)
        first = int(firsts[n_blocks])
        places = texts[: first + 1].tolist(), firsts[: n_blocks + 1].tolist(), starts[: n_blocks + 1].tolist()
        return places, [self[row] for row in range(first, self.n_documents)]

    def _damage(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{DOCUMENTS_FILE} is damaged ({problem}): remove it.")


def _main_topics(doc_topic: Array) -> Array:
    """Return the topic of the largest weight of each document; the weights may be mapped."""
    parts = [
        np.asarray(doc_topic[start : start + _ROWS_AT_ONCE]).argmax(axis=1)
        for start in range(0, len(doc_topic), _ROWS_AT_ONCE)
    ]
    return np.concatenate(parts).astype(np.int32)


def _write_blocks(
    texts: Iterable[str], file: Any, before: SearchDocuments | None = None
) -> tuple[list[int], list[int], list[int]]:
    """Write compressed blocks of texts to a file, and return the starts of texts, first texts and starts of blocks.

    before : the blocks of the texts before these, which are written first.
    """
    text_starts, first_texts, block_starts = [0], [0], [0]
    if before is not None:
        (text_starts, first_texts, block_starts), rest = before.copy_full_blocks(file)
        texts = chain(rest, texts)
    waiting: list[bytes] = []
    size = 0

    def write() -> None:
        content = zlib.compress(b"".join(waiting), 1)
        file.write(content)
        first_texts.append(len(text_starts) - 1)
        block_starts.append(block_starts[-1] + len(content))
        waiting.clear()

    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        text_starts.append(text_starts[-1] + len(content))
        waiting.append(content)
        size += len(content)
        if size >= TEXT_BLOCK:
            write()
            size = 0
    if waiting:
        write()
    file.flush()
    return text_starts, first_texts, block_starts


def _ordinal(time: Any) -> int:
    days = days_of(time)
    return 0 if days is None else days.first.toordinal()


def check_day(name: str, value: Any) -> Days | None:
    """Return the days of `since` or `until`. Raise InputError if the value is not a date."""
    if value is None:
        return None
    days = days_of(value)
    if days is None:
        raise InputError(f"{name}= must be a year or a date such as 1871, 1871-06 or 1871-06-30, got {value!r}.")
    return days
