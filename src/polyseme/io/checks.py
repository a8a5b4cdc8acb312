"""Reads JSON and NumPy files that may be damaged or hostile, and checks the fields in them.

The functions raise ValueError with a reason; callers add the name of the file and raise their own type of error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MOST_BYTES = 1 << 30
"""of a JSON file; a vocabulary of ten million words has a fifth of it"""
MOST_NESTED = 32
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|]?[biuf][0-9])', 'fortran_order': (False|True), "
    rb"'shape': \(((?:[0-9]{1,18}(?:, ?[0-9]{1,18})*,?)?)\),? *\} *\n"
)
_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60


# JSON


def parse_json(text: str | bytes, *, infinite: bool = False) -> Any:
    """The content of a JSON text. Values that JSON does not define, or that have two meanings, are errors.

    infinite : whether NaN and Infinity, which Python's json writes, are numbers.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    refused: dict[str, Any] = {} if infinite else {"parse_constant": _refuse_constant, "parse_float": _finite}
    try:
        content = json.loads(text, object_pairs_hook=_without_repeated_names, **refused)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _refuse_deep(content)
    if _ESCAPED_SURROGATE.search(text):
        json.dumps(content, ensure_ascii=False).encode("utf-8")  # UnicodeEncodeError, a ValueError, for half a pair
    return content


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises OSError or ValueError."""
    check_regular(path)
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 30} GiB")
    content = parse_json(path.read_bytes())
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    return content


def check_regular(path: Path) -> None:
    """Raises OSError for a missing file, and ValueError for a folder, a pipe or a device, which could block or not end.

    A missing file and one that cannot be read are told apart by the message of the operating system.
    """
    path.stat()
    if not path.is_file():
        raise ValueError("it is not a regular file")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {_short.repr(text)} is too large")
    return value


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return content


def _refuse_deep(content: Any) -> None:
    level = [content]
    for _ in range(MOST_NESTED):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")


# checks of fields


class Check(NamedTuple):
    """What a value must be."""

    holds: Callable[[Any], bool]
    wanted: str
    """the same in words, after "must be" """

    def require(self, name: str, value: Any) -> None:
        if not self.holds(value):
            raise ValueError(f"{name} must be {self.wanted}, got {_short.repr(value)}")


def check_fields(
    data: Any, table: Mapping[str, Check], *, required: Collection[str] = (), others: bool = False
) -> None:
    """Checks each field of an object by a table. others : whether it may have fields that the table does not have."""
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    missing = [name for name in required if name not in data]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    for name, value in data.items():
        if name in table:
            table[name].require(name, value)
        elif not others:
            raise ValueError(f"{_short.repr(name)} is not a known field")


def whole_number(least: int, most: int) -> Check:
    """An integer; true and false are none."""

    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Check(holds, f"a whole number from {least} to {most}")


def number(least: float, most: float) -> Check:
    """An integer or a floating number, not NaN."""

    def holds(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most

    return Check(holds, f"a number from {least:g} to {most:g}")


def one_of(*values: str) -> Check:
    """One of some texts."""
    return Check(lambda value: isinstance(value, str) and value in values, "one of " + ", ".join(map(repr, values)))


def either(*checks: Check) -> Check:
    """What passes at least one of several checks."""
    return Check(
        lambda value: any(check.holds(value) for check in checks), " or ".join(check.wanted for check in checks)
    )


def list_of(check: Check, *, most: int | None = None, distinct: bool = False) -> Check:
    """A list of such entries, at most so many. distinct : whether none may occur twice; only for strings."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, list)
            and (most is None or len(value) <= most)
            and all(map(check.holds, value))
            and not (distinct and len(set(value)) < len(value))
        )

    limit = "" if most is None else f" of at most {most} entries"
    return Check(holds, f"a list{limit}, each {check.wanted}{', without repetitions' if distinct else ''}")


def mapping_to(check: Check) -> Check:
    """An object with any names and such values."""

    def holds(value: Any) -> bool:
        return isinstance(value, dict) and all(map(check.holds, value.values()))

    return Check(holds, f"an object, each value {check.wanted}")


def object_with(table: Mapping[str, Check], *, required: Collection[str] = ()) -> Check:
    """An object whose fields pass a table; it may have others."""

    def holds(value: Any) -> bool:
        try:
            check_fields(value, table, required=required, others=True)
        except ValueError:
            return False
        return True

    return Check(holds, "an object with " + ", ".join(f"{name} ({check.wanted})" for name, check in table.items()))


NULL = Check(lambda value: value is None, "null")
"""what JSON calls null"""
FLAG = Check(lambda value: isinstance(value, bool), "true or false")
"""a truth value"""
NOT_A_NUMBER = Check(lambda value: isinstance(value, float) and value != value, "NaN")
"""the floating number NaN"""
TEXT = Check(lambda value: isinstance(value, str), "a text")
"""any string"""
OBJECT = Check(lambda value: isinstance(value, dict), "an object")
"""any JSON object"""
COUNT = whole_number(0, 2**63 - 1)
"""a whole number that fits 64 bits"""


# arrays


def map_npy(path: Path) -> npt.NDArray[Any]:
    """The array in a .npy file, mapped read-only. Raises OSError or ValueError.

    The header must be as NumPy writes it, of a boolean, an integer or a floating type, and the file must end where the
    array ends. (numpy.load evaluates the header as a Python literal, and raises many types of errors for damaged ones.)
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
