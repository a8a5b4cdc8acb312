"""Strings in a file, of which only those that are needed are decoded.

A table has the UTF-8 bytes of all strings, one after the other, and the place where each one starts. To find a string,
the table can have sorted hashes of all strings with their numbers; a search in them reads a few numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, overload

import numpy as np

from polyseme.errors import ModelFileError
from polyseme.kernels import Array

_BYTES, _STARTS, _HASHES, _ORDER = "bytes", "starts", "hashes", "order"


class StringTable(Sequence[str]):
    """Strings that are stored in arrays of a file (`string_arrays`). The arrays are checked when they are used."""

    def __init__(self, arrays: Mapping[str, Any], name: str, *, find: bool = False) -> None:
        """Find the arrays of the table `name`. Raises KeyError or ValueError if they do not fit together.

        find : whether the table must have hashes.
        """
        self._bytes, self._starts = arrays[f"{name}.{_BYTES}"], arrays[f"{name}.{_STARTS}"]
        self._hashes = arrays[f"{name}.{_HASHES}"] if find else np.empty(0, dtype=np.int64)
        self._order = arrays[f"{name}.{_ORDER}"] if find else self._hashes
        of_whole_numbers = (self._starts, self._hashes, self._order)
        if self._bytes.dtype != np.uint8 or any(array.dtype != np.int64 for array in of_whole_numbers):
            raise ValueError(f"the strings of {name} have arrays of other types")
        if any(len(array.shape) != 1 for array in (self._bytes, *of_whole_numbers)) or not len(self._starts):
            raise ValueError(f"the strings of {name} have no places")
        if find and not len(self._hashes) == len(self._order) == len(self):
            raise ValueError(f"the strings of {name} have another number of hashes")

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

    def get(self, text: Any, default: int, /) -> int:
        """Return the number of a string, or the default. Only tables with hashes find strings."""
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
        damage: ModelFileError = self._bytes.damage("its strings do not have their places")
        return damage


class StringMapping(Mapping[str, str]):
    """Strings by strings, stored in arrays of a file (`StringMapping.arrays`)."""

    def __init__(self, arrays: Mapping[str, Any], name: str) -> None:
        """Find the arrays of the mapping `name`. Raises KeyError or ValueError if they do not fit together."""
        self._keys, self._values = StringTable(arrays, f"{name}.keys", find=True), StringTable(arrays, f"{name}.values")
        if len(self._keys) != len(self._values):
            raise ValueError(f"there are not as many values as keys of {name}")

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
    encoded = [_encoded(text) for text in strings]
    starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=starts[1:])
    arrays: dict[str, Array] = {
        f"{name}.{_BYTES}": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}.{_STARTS}": starts,
    }
    if find:
        hashes = np.fromiter(map(_hash, encoded), dtype=np.int64, count=len(encoded))
        order = np.argsort(hashes, kind="stable")
        arrays |= {f"{name}.{_HASHES}": hashes[order], f"{name}.{_ORDER}": order.astype(np.int64)}
    return arrays


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _hash(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little", signed=True)
