"""Arrays in safetensors and NumPy files: written in parts, read or memory-mapped, with checks of the headers.

The functions raise OSError or ValueError with a reason; callers add the name of the file and raise their own type of
error. Nothing in a file is executed: there is no pickle, and headers are parsed as JSON or by a regular expression.

A `CheckedArray` has a checksum for each block, which is checked when the block is first used. A large file opens at
once, and a reader that needs a few rows reads and checks only the blocks of these rows. Damage is detected before it
can change a result. CRC-32 detects every flipped bit and every burst of damage up to 32 bits, and is computed faster
than a file is read. It does not protect against a file that was changed on purpose: the readers of the arrays must
check everything that could do harm, such as indices. The check of a block also requires that floating-point numbers are
finite. The array CHECKSUMS has one checksum for the header of the file, then one for each block of each array in the
order of the file, and finally one for these checksums themselves. A file can also have its checksums in another file,
which was written when the first one was known to be right.

A `StringTable` has the UTF-8 bytes of all strings, one after the other, and the position where each one starts, so that
only the strings that are needed are decoded. To find a string, the table can have sorted hashes of all strings with
their indices; a search reads only a few of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, overload
from zlib import crc32

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from polyseme.errors import ModelFileError
from polyseme.io.files import (
    OBJECT,
    TEXT,
    check_fields,
    check_regular,
    digest_of_file,
    is_regular,
    list_of,
    mapping_to,
    one_of,
    parse_json,
    whole_number,
    write_atomically,
    write_with_digest,
)
from polyseme.kernels import Array

DTYPES = {
    "F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "U8": np.uint8, "U32": np.uint32
}  # fmt: skip
"""Types of arrays by their names in safetensors."""
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|]?[biuf][0-9])', 'fortran_order': (False|True), "
    rb"'shape': \(((?:[0-9]{1,18}(?:, ?[0-9]{1,18})*,?)?)\),? *\} *\n"
)
_WRITTEN_AT_ONCE = 1 << 22
"""Bytes of an array that are written or checked at a time."""
_ALIGNMENT = 64
"""The data in a file start at a multiple of this, the size of a cache line."""


def bytes_of(array: Array) -> memoryview:
    """Return the memory of an array in C order, as a file stores it."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def digest_of(text: str, arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of a text and of arrays with their names, types and shapes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


# safetensors: 8 bytes with the length of the header, the header (JSON: type, shape and offsets of each array), the data


def write_safetensors(path: str | PathLike[str], arrays: Mapping[str, Array], metadata: dict[str, str]) -> None:
    """Write arrays and metadata to a file, atomically."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_atomically(path, to_safetensors(contiguous, metadata=metadata))


@dataclass(frozen=True)
class ArrayParts:
    """An array that is written in parts, because it does not have to be in memory as a whole."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    parts: Callable[[], Iterable[Array]]
    """Returns consecutive parts of the array."""

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def safetensors_parts(arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> list[Any]:
    """Return the buffers of a safetensors file, without the copy of the arrays that safetensors' own writer makes."""
    length, header, ordered = _safetensors_header(arrays, metadata)
    return [length, header, *(bytes_of(arrays[name]) for name in ordered)]


def _safetensors_header(
    arrays: Mapping[str, Array | ArrayParts], metadata: Mapping[str, str] | None
) -> tuple[bytes, bytes, list[str]]:
    """Return the length of the header, the header, and the names of the arrays in the order of the file."""
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name, array in ordered:
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [end, end + array.nbytes],
        }
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    return len(text).to_bytes(8, "little"), text, [name for name, _ in ordered]


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the metadata of a file, and its arrays in memory."""
    try:
        with safe_open(path, framework="np") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from None


def arrays_in(content: Array) -> dict[str, Array]:
    """Return the arrays of a safetensors file from its bytes (an array of uint8, possibly mapped), without a copy."""
    length = int.from_bytes(content[:8].tobytes(), "little")
    header = parse_json(content[8 : 8 + length].tobytes())
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        start, end = (8 + length + int(offset) for offset in entry["data_offsets"])
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"{name} is of the type {entry['dtype']}")
        arrays[name] = content[start:end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


# NumPy


def npy_header(array: Array) -> bytes:
    """Return the header that numpy.save writes for an array in C order."""
    text = repr({"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}).encode()
    text += b" " * (-(len(text) + 11) % _ALIGNMENT) + b"\n"
    return _NPY_MAGIC + len(text).to_bytes(2, "little") + text


def npy_parts(array: Array) -> Iterator[Any]:
    """Yield the buffers of a .npy file: the header, and the rows in blocks, so that no second array is in memory."""
    yield npy_header(array)
    for rows in row_blocks(array):
        yield bytes_of(rows)


def row_blocks(array: Array) -> Iterator[Array]:
    """Yield the rows of an array in blocks of about `_WRITTEN_AT_ONCE` bytes."""
    step = max(1, _WRITTEN_AT_ONCE // max(array[:1].nbytes, 1))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def write_npy(path: Path, array: Array) -> str:
    """Write an array to a .npy file, atomically, and return the SHA-256 of the file.

    A regular file that already has the same content, such as the one that the array is mapped from, is not written.
    """
    if is_regular(path) and path.stat().st_size == len(npy_header(array)) + array.nbytes:
        digest = hashlib.sha256()
        for part in npy_parts(array):
            digest.update(part)
        if digest.hexdigest() == digest_of_file(path):
            return digest.hexdigest()
    return write_with_digest(path, npy_parts(array)).sha256


def map_npy(path: Path) -> Array:
    """Return the array in a .npy file, mapped read-only.

    The header must have the form that NumPy writes, with a boolean, integer or floating-point type, and the file must
    end where the array ends. (numpy.load evaluates the header as a Python literal and raises many types of errors.)
    """
    check_regular(path)
    with path.open("rb") as file:
        start = file.read(len(_NPY_MAGIC) + 2)
        length = int.from_bytes(start[len(_NPY_MAGIC) :], "little")
        header = _NPY_HEADER.fullmatch(file.read(length))
    if not start.startswith(_NPY_MAGIC) or header is None:
        raise ValueError("it is not a .npy file of numbers")
    try:
        dtype = np.dtype(header[1].decode())
    except TypeError:
        raise ValueError("its numbers are of an unknown type") from None
    shape = tuple(int(size) for size in header[3].split(b",") if size.strip())
    offset, size = len(start) + length, math.prod(shape) * dtype.itemsize
    if path.stat().st_size != offset + size:
        raise ValueError("its size does not match its header")
    if size == 0:
        return np.empty(shape, dtype)
    order: Any = "F" if header[2] == b"True" else "C"
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order=order).view(np.ndarray)


# arrays with checksums

CHECKSUMS = "checksums"
"""Name of the array of checksums."""
_CRC_BYTES = 4
BLOCK = 1 << 16
"""Bytes of a block: reading and checking one takes about 20 microseconds."""
_CHECKED_AT_ONCE = 1 << 20
"""Arrays of at most this many bytes are checked completely, which is faster than finding the blocks that are needed."""
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

    def checked(self, rows: Any) -> Array:
        """Check these rows, and return the whole array. Other rows must not be read."""
        if self._n_unchecked:
            self._check(self._blocks_of(rows))
        return self._array

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
        """Check the given blocks, except those that were checked before."""
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


def checked_rows(array: Any, rows: Any) -> Array:
    """Return the whole array; if it is in a file, check these rows first."""
    return array.checked(rows) if isinstance(array, CheckedArray) else array


def checked_parts(arrays: Mapping[str, Array | ArrayParts], metadata: Mapping[str, str]) -> Iterator[Any]:
    """Yield the buffers of a safetensors file of these arrays and, at its end, their checksums."""
    n_blocks = sum(_n_blocks(array.nbytes) for array in arrays.values())
    table = np.zeros((2 + n_blocks) * _CRC_BYTES, dtype=np.uint8)  # bytes, which can follow arrays of any size
    length, header, ordered = _safetensors_header({**arrays, CHECKSUMS: table}, metadata)
    yield length
    yield header
    checksums = [crc32(header, crc32(length))]
    for name in ordered[:-1]:
        array = arrays[name]
        yield from _checked(array.parts() if isinstance(array, ArrayParts) else [array], checksums)
    yield _sealed(checksums).data


def _checked(parts: Iterable[Array], checksums: list[int]) -> Iterator[memoryview]:
    """Yield the bytes of the parts of an array, and add the checksums of its blocks."""
    checksum, room = 0, BLOCK
    for part in map(bytes_of, parts):
        start = 0
        while start < len(part):
            piece = part[start : start + room]
            checksum, start, room = crc32(piece, checksum), start + len(piece), room - len(piece)
            if not room:
                checksums.append(checksum)
                checksum, room = 0, BLOCK
        yield part
    if room < BLOCK:
        checksums.append(checksum)


def _sealed(checksums: list[int]) -> Array:
    """Return the table of checksums, which ends with its own checksum, as bytes."""
    table = np.array([*checksums, 0], dtype="<u4")
    table[-1] = crc32(bytes_of(table[:-1]))
    return table.view(np.uint8)


def checksums_of(path: Path) -> Array:
    """Return checksums of the header and the arrays of a safetensors file that has none, for `map_checked`."""
    header, arrays = _mapped_arrays(path)
    checksums = [crc32(bytes_of(header))]
    for array in arrays.values():
        for _ in _checked([array], checksums):
            pass
    return _sealed(checksums)


def npy_checksums(path: Path) -> Array:
    """Return checksums of a .npy file, for `map_checked_npy`."""
    checksums: list[int] = []
    for _ in _checked([map_npy(path)], checksums):
        pass
    return _sealed(checksums)


def map_checked_npy(path: Path, table: Array) -> CheckedArray:
    """Return the array of a .npy file, with the checksums that `npy_checksums` returned for it."""
    array = map_npy(path)
    return CheckedArray(array, _checksums_in(table, _n_blocks(array.nbytes)), "its array", path)


def map_checked(path: Path, table: Array | None = None) -> tuple[dict[str, str], dict[str, CheckedArray]]:
    """Return the metadata and the arrays of a file.

    Raise OSError or ValueError if the header, the sizes or the positions of the arrays are wrong. The contents are
    checked later.

    table : checksums that `checksums_of` returned for the file; None: the file has them.
    """
    start, arrays = _mapped_arrays(path)
    metadata = parse_json(start[8:].tobytes()).pop("__metadata__", {})
    if table is None:
        table = arrays.pop(CHECKSUMS, np.empty(0, np.uint8))
    checksums = _checksums_in(table, 1 + sum(_n_blocks(array.nbytes) for array in arrays.values()))
    if checksums[0] != crc32(bytes_of(start)):
        raise ValueError("its header has changed")
    checked, place = {}, 1
    for name, array in arrays.items():
        end = place + _n_blocks(array.nbytes)
        checked[name] = CheckedArray(array, checksums[place:end], name, path)
        place = end
    return metadata, checked


def _checksums_in(table: Array, n_blocks: int) -> Array:
    """Return the checksums in a table. Raise ValueError if they are not those of a file with so many blocks."""
    if table.dtype != np.uint8 or table.shape != ((n_blocks + 1) * _CRC_BYTES,):
        raise ValueError("its checksums are missing")
    checksums = np.frombuffer(table.tobytes(), dtype="<u4")
    if checksums[-1] != crc32(bytes_of(checksums[:-1])):
        raise ValueError("its checksums have changed")
    return checksums[:-1]


def _mapped_arrays(path: Path) -> tuple[Array, dict[str, Array]]:
    """Return the bytes of the header of a safetensors file and its arrays, mapped, in the order of the file."""
    check_regular(path)
    if path.stat().st_size < 8:
        raise ValueError("it is too short")
    content = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)  # slices of a memmap take ten times as long
    length = int.from_bytes(content[:8].tobytes(), "little")
    start = 8 + length
    if length > min(_MAX_HEADER, len(content) - 8):
        raise ValueError("its header is longer than the file")
    header = parse_json(content[8:start].tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    mapping_to(TEXT).require("__metadata__", header.pop("__metadata__", {}))
    mapping_to(OBJECT).require("its header", header)
    return content[:start], _place_arrays(header, content[start:])


def _place_arrays(header: dict[str, Any], data: Array) -> dict[str, Array]:
    """Return the arrays in the order of the file. They must fill the file from start to end without gaps."""
    for entry in header.values():
        check_fields(entry, _ENTRY_FIELDS, required=_ENTRY_FIELDS)
        if len(entry["data_offsets"]) != 2:
            raise ValueError("an array does not have two offsets")
    arrays, place = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype = np.dtype(DTYPES[entry["dtype"]])
        first, end = entry["data_offsets"]
        if first != place or end - first != math.prod(entry["shape"]) * dtype.itemsize or end > len(data):
            raise ValueError(f"{name} does not have the size and position that the header requires")
        part = data[first:end]
        if part.size and part.ctypes.data % dtype.itemsize:
            raise ValueError(f"{name} is not aligned")
        arrays[name] = part.view(dtype).reshape(entry["shape"])
        place = end
    if place != len(data):
        raise ValueError("it does not end where its arrays end")
    return arrays


def _are_numbers(rows: Any) -> bool:
    return bool(np.ndim(rows) <= 1 and np.asarray(rows).dtype.kind in "iu")


def _n_blocks(n_bytes: int) -> int:
    return -(-n_bytes // BLOCK)


_HASH_FACTOR = 0x9E3779B97F4A7C15


def text_hashes(content: bytes, lengths: Array) -> Array:
    """Return a 64-bit hash of each of several byte strings, which follow each other in `content`.

    The hash is a polynomial of the bytes modulo 2^64, whose bits are mixed. Strings with equal hashes can differ.
    """
    sizes = np.maximum(lengths, 0).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    powers = np.full(int(sizes.max(initial=0)) + 1, _HASH_FACTOR, dtype=np.uint64)
    powers[0] = 1
    np.multiply.accumulate(powers, out=powers)
    places = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    terms = (np.frombuffer(content, dtype=np.uint8).astype(np.uint64) + np.uint64(1)) * powers[places]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    hashes = sums[starts + sizes] - sums[starts] + lengths.astype(np.int64).view(np.uint64)
    for shift in (31, 29):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(_HASH_FACTOR)
    return hashes ^ (hashes >> np.uint64(32))


_BYTES, _STARTS, _HASHES, _ORDER = "bytes", "starts", "hashes", "order"


# strings


class StringTable(Sequence[str]):
    """Strings that are stored in arrays of a file (`string_arrays`). The arrays are checked when they are used."""

    def __init__(self, arrays: Mapping[str, Any], name: str, *, find: bool = False) -> None:
        """Find the arrays of the table `name`. Raise KeyError or ValueError if they do not fit together.

        find : whether the table must have hashes.
        """
        self._bytes, self._starts = arrays[f"{name}.{_BYTES}"], arrays[f"{name}.{_STARTS}"]
        self._hashes = arrays[f"{name}.{_HASHES}"] if find else np.empty(0, dtype=np.int64)
        self._order = arrays[f"{name}.{_ORDER}"] if find else self._hashes
        of_whole_numbers = (self._starts, self._hashes, self._order)
        if self._bytes.dtype != np.uint8 or any(array.dtype != np.int64 for array in of_whole_numbers):
            raise ValueError(f"the strings of {name} have arrays of wrong types")
        if any(len(array.shape) != 1 for array in (self._bytes, *of_whole_numbers)) or not len(self._starts):
            raise ValueError(f"the strings of {name} have no positions")
        if find and not len(self._hashes) == len(self._order) == len(self):
            raise ValueError(f"the strings of {name} have a wrong number of hashes")

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no string {index}")
        start, end = self._starts[number : number + 2].tolist()
        if not 0 <= start <= end <= len(self._bytes):
            raise self._damage()
        return self._decoded(self._bytes[start:end].tobytes())

    def __iter__(self) -> Iterator[str]:
        """Iterate over all strings, with one read of each array."""
        starts, content = self._starts[:].tolist(), self._bytes[:].tobytes()
        for start, end in pairwise(starts):
            if not 0 <= start <= end <= len(content):
                raise self._damage()
            yield self._decoded(content[start:end])

    @classmethod
    def of(cls, strings: Sequence[str]) -> StringTable:
        """Return a table with hashes in memory, which takes a fraction of the memory of a list and a dict."""
        return cls(string_arrays("", strings, find=True), "", find=True)

    def arrays(self, name: str) -> dict[str, Any]:
        """Return the arrays of a table with hashes, as `string_arrays` does."""
        parts = {_BYTES: self._bytes, _STARTS: self._starts, _HASHES: self._hashes, _ORDER: self._order}
        return {f"{name}.{part}": array for part, array in parts.items()}

    def get(self, text: Any, default: int, /) -> int:
        """Return the index of a string, or the default. Only tables with hashes can find strings."""
        if not isinstance(text, str):
            return default
        key = _hash(_encoded(text))
        for place in range(bisect_left(self._hashes, key), len(self._hashes)):
            if self._hashes[place] != key:
                break
            number = int(self._order[place])
            if not 0 <= number < len(self):
                raise self._damage()
            if self[number] == text:
                return number
        return default

    def _decoded(self, content: bytes) -> str:
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self._damage() from None

    def _damage(self) -> ModelFileError:
        damage: ModelFileError = self._bytes.damage("the positions of its strings are inconsistent")
        return damage


class StringMapping(Mapping[str, str]):
    """Mapping from strings to strings that is stored in arrays of a file (`StringMapping.arrays`)."""

    def __init__(self, arrays: Mapping[str, Any], name: str) -> None:
        """Find the arrays of the mapping `name`. Raise KeyError or ValueError if they do not fit together."""
        self._keys, self._values = StringTable(arrays, f"{name}.keys", find=True), StringTable(arrays, f"{name}.values")
        if len(self._keys) != len(self._values):
            raise ValueError(f"{name} has different numbers of keys and values")

    @staticmethod
    def arrays(name: str, mapping: Mapping[str, str]) -> dict[str, Array]:
        """Return the arrays of a mapping."""
        keys = string_arrays(f"{name}.keys", list(mapping), find=True)
        return keys | string_arrays(f"{name}.values", list(mapping.values()))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __getitem__(self, key: str) -> str:
        number = self._keys.get(key, -1)
        if number < 0:
            raise KeyError(key)
        return self._values[number]


def string_arrays(name: str, strings: Sequence[str], *, find: bool = False) -> dict[str, Array]:
    """Return the arrays of a table. find : whether strings can be found by `StringTable.get`."""
    content, starts = bytearray(), np.zeros(len(strings) + 1, dtype=np.int64)
    hashes = np.empty(len(strings) if find else 0, dtype=np.int64)
    for place, text in enumerate(strings):  # a list of the encoded strings would take several times their size
        encoded = _encoded(text)
        content += encoded
        starts[place + 1] = len(content)
        if find:
            hashes[place] = _hash(encoded)
    arrays: dict[str, Array] = {f"{name}.{_BYTES}": np.frombuffer(content, dtype=np.uint8), f"{name}.{_STARTS}": starts}
    if find:
        order = np.argsort(hashes, kind="stable")
        arrays |= {f"{name}.{_HASHES}": hashes[order], f"{name}.{_ORDER}": order.astype(np.int64, copy=False)}
    return arrays


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _hash(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little", signed=True)
