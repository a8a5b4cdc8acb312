"""Arrays in safetensors and NumPy files: written in parts, read or memory-mapped, with checks of the headers.

The functions raise OSError or ValueError with a reason; callers add the name of the file and raise their own type of
error. Nothing in a file is executed: there is no pickle, and headers are parsed as JSON or by a regular expression.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from polyseme.io.checks import check_regular, parse_json
from polyseme.io.files import is_regular, write_atomically
from polyseme.io.manifest import digest_of_file, write_with_digest
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
_BLOCK = 1 << 22
"""Bytes of an array that are written or checked at a time."""
_ALIGNMENT = 64
"""The arrays in a file start at a multiple of this, the size of a cache line."""


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


def safetensors_parts(arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> list[Any]:
    """Return the buffers of a safetensors file, without the copy of the arrays that safetensors' own writer makes."""
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
    return [len(text).to_bytes(8, "little"), text, *(bytes_of(array) for _, array in ordered)]


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the metadata of a file, and its arrays in memory."""
    try:
        with safe_open(path, framework="np") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from None


def map_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the metadata of a file, and its arrays mapped read-only. safetensors checks sizes and offsets."""
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    return metadata, arrays_in(np.memmap(path, dtype=np.uint8, mode="r"))


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
    """Yield the rows of an array in blocks of about `_BLOCK` bytes."""
    step = max(1, _BLOCK // max(array[:1].nbytes, 1))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def write_npy(path: Path, array: Array) -> str:
    """Write an array to a .npy file, atomically, and return the SHA-256 of the file.

    A regular file that has the same content already, such as the one that the array is mapped from, is not written.
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

    The header must have the form that NumPy writes, with a boolean, integer or floating type, and the file must end
    where the array ends. (numpy.load evaluates the header as a Python literal and raises many types of errors.)
    """
    check_regular(path)
    with path.open("rb") as file:
        start = file.read(len(_NPY_MAGIC) + 2)
        length = int.from_bytes(start[len(_NPY_MAGIC) :], "little")
        found = _NPY_HEADER.fullmatch(file.read(length))
    if not start.startswith(_NPY_MAGIC) or found is None:
        raise ValueError("it is not a .npy file of numbers")
    try:
        dtype = np.dtype(found[1].decode())
    except TypeError:
        raise ValueError("its numbers are of an unknown type") from None
    shape = tuple(int(size) for size in found[3].split(b",") if size.strip())
    offset, size = len(start) + length, math.prod(shape) * dtype.itemsize
    if path.stat().st_size != offset + size:
        raise ValueError("its size does not match its header")
    if size == 0:
        return np.empty(shape, dtype)
    order: Any = "F" if found[2] == b"True" else "C"
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order=order).view(np.ndarray)
