"""Arrays in a mapped safetensors file with a checksum for each block, which is checked when the block is first used.

A large file opens at once, and a reader that needs a few rows reads and checks only the blocks of these rows. Damage is
found before it can change a result. CRC-32 finds every flipped bit and every burst of damage up to 32 bits, and is
computed faster than a file is read. It does not protect against a file that somebody wrote on purpose: the readers of
the arrays must check whatever could do harm, such as indices. Floating numbers are finite, which is checked with each
block.

The array CHECKSUMS has one number for the header of the file, then one for each block of each array in the order of
their places in the file, and at last one for these numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from polyseme.errors import ModelFileError
from polyseme.io.checks import (
    OBJECT,
    TEXT,
    check_fields,
    check_regular,
    list_of,
    mapping_to,
    one_of,
    parse_json,
    whole_number,
)
from polyseme.io.tensors import DTYPES, bytes_of, safetensors_parts
from polyseme.kernels import Array

CHECKSUMS = "checksums"
"""Name of the array of checksums."""
BLOCK = 1 << 16
"""Bytes of a block: reading and checking one takes some 20 microseconds."""
_CHECKED_AT_ONCE = 1 << 20
"""Arrays of at most this many bytes are checked as a whole, which takes less time than to find out what is needed."""
_MAX_HEADER = 1 << 24
_ENTRY_FIELDS = {
    "dtype": one_of(*DTYPES),
    "shape": list_of(whole_number(0, 2**62), most=4),
    "data_offsets": list_of(whole_number(0, 2**62), most=2),
}


class CheckedArray:
    """An array in a file. Its blocks are checked when an index first needs them."""

    def __init__(self, array: Array, checksums: Array, name: str, path: Path) -> None:
        self.shape, self.dtype, self.nbytes = array.shape, array.dtype, array.nbytes
        self._array = array
        self._bytes = array.reshape(-1).view(np.uint8)
        self._checksums = checksums
        self._unchecked = np.ones(len(checksums), dtype=bool)
        self._n_unchecked = len(checksums)
        self._name, self._path = name, path

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> Any:
        """Return an entry, rows or any other part of the array, after a check of the rows that it needs."""
        if self._n_unchecked:
            self._check(self._blocks_of(key[0] if isinstance(key, tuple) else key))
        return self._array[key]

    def _blocks_of(self, rows: Any) -> Any:
        """Return the blocks of some rows, as an index; all blocks if the array is small."""
        row_bytes = self.nbytes // max(1, len(self))
        if self.nbytes > _CHECKED_AT_ONCE and isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return slice(start * row_bytes // BLOCK, -(-max(start, stop) * row_bytes // BLOCK))
        if self.nbytes > _CHECKED_AT_ONCE and row_bytes <= BLOCK and _are_numbers(rows):
            first = np.asarray(rows, dtype=np.int64) % len(self) * row_bytes
            return np.append(first // BLOCK, (first + row_bytes - 1) // BLOCK)
        return slice(None)

    def _check(self, blocks: Any) -> None:
        """Check those of some blocks that were not used before."""
        needed = np.zeros(len(self._unchecked), dtype=bool)
        needed[blocks] = True
        for block in np.flatnonzero(needed & self._unchecked).tolist():
            content = self._bytes[block * BLOCK : (block + 1) * BLOCK]
            if crc32(content.data) != self._checksums[block]:
                raise self.damage("some of its bytes have changed")
            if self.dtype.kind == "f" and not np.isfinite(content.view(self.dtype)).all():
                raise self.damage("it has a number that is not finite")
            self._unchecked[block] = False
            self._n_unchecked -= 1

    def damage(self, problem: str) -> ModelFileError:
        """Return the error for an array whose content is wrong."""
        return ModelFileError(f"{self._path} is damaged ({self._name}: {problem}): restore it, or remove it.")


def checked_parts(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> list[Any]:
    """Return the buffers of a safetensors file of these arrays and their checksums."""
    table = np.zeros(2 + sum(_n_blocks(array.nbytes) for array in arrays.values()), dtype=np.uint32)
    length, header, *contents = parts = safetensors_parts({**arrays, CHECKSUMS: table}, metadata)
    own = bytes_of(table)
    found = [crc32(header, crc32(length))]
    for content in contents:
        if not np.shares_memory(np.frombuffer(content, dtype=np.uint8), table):
            found += [crc32(content[start : start + BLOCK]) for start in range(0, len(content), BLOCK)]
    table[:-1] = found
    table[-1] = crc32(own[: 4 * len(found)])
    return parts


def map_checked(path: Path) -> tuple[dict[str, str], dict[str, CheckedArray]]:
    """Return the metadata and the arrays of a file.

    Raises OSError or ValueError if the header, the sizes or the places of the arrays are wrong. The contents are
    checked later.
    """
    check_regular(path)
    if path.stat().st_size < 8:
        raise ValueError("it is too short")
    content = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(content[:8].tobytes(), "little")
    start = 8 + length
    if length > min(_MAX_HEADER, len(content) - 8):
        raise ValueError("its header is longer than the file")
    header = parse_json(content[8:start].tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    mapping_to(TEXT).require("__metadata__", metadata)
    mapping_to(OBJECT).require("its header", header)
    arrays = _place_arrays(header, content[start:])
    table = arrays.pop(CHECKSUMS, None)
    n_blocks = sum(_n_blocks(array.nbytes) for array in arrays.values())
    if table is None or table.dtype != np.uint32 or table.shape != (n_blocks + 2,):
        raise ValueError("its checksums are missing")
    if table[-1] != crc32(bytes_of(table[:-1])) or table[0] != crc32(bytes_of(content[:start])):
        raise ValueError("its header has changed")
    checked, place = {}, 1
    for name, array in arrays.items():
        end = place + _n_blocks(array.nbytes)
        checked[name] = CheckedArray(array, table[place:end], name, path)
        place = end
    return metadata, checked


def _place_arrays(header: dict[str, Any], data: Array) -> dict[str, Array]:
    """Return the arrays in the order of their places, which must follow each other from the start to the end."""
    for entry in header.values():
        check_fields(entry, _ENTRY_FIELDS, required=_ENTRY_FIELDS)
        if len(entry["data_offsets"]) != 2:
            raise ValueError("an array has no place")
    arrays, place = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype = np.dtype(DTYPES[entry["dtype"]])
        first, end = entry["data_offsets"]
        if first != place or end - first != math.prod(entry["shape"]) * dtype.itemsize or end > len(data):
            raise ValueError(f"{name} has another size or place than the header says")
        part = data[first:end]
        if part.size and part.ctypes.data % dtype.itemsize:
            raise ValueError(f"{name} starts at an odd place")
        arrays[name] = part.view(dtype).reshape(entry["shape"])
        place = end
    if place != len(data):
        raise ValueError("it does not end where its arrays end")
    return arrays


def _are_numbers(rows: Any) -> bool:
    return bool(np.ndim(rows) <= 1 and np.asarray(rows).dtype.kind in "iu")


def _n_blocks(n_bytes: int) -> int:
    return -(-n_bytes // BLOCK)
