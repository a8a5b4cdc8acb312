"""Parsing of JSON files that may be damaged or hostile, and checks of their fields.

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

MAX_BYTES = 1 << 30
"""Largest JSON file. A vocabulary of ten million words takes a fifth of it."""
MAX_DEPTH = 32
"""Deepest nesting of a JSON file."""
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60


# JSON


def parse_json(text: str | bytes, *, infinite: bool = False) -> Any:
    """Return the content of a JSON text. Raise ValueError for values that JSON does not define and for repeated names.

    infinite : whether NaN and Infinity, which Python's json writes, are allowed.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    hooks: dict[str, Any] = {} if infinite else {"parse_constant": _raise_for_constant, "parse_float": _finite}
    try:
        content = json.loads(text, object_pairs_hook=_without_repeated_names, **hooks)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_depth(content)
    if _ESCAPED_SURROGATE.search(text):
        json.dumps(content, ensure_ascii=False).encode(
            "utf-8"
        )  # raises UnicodeEncodeError, a ValueError, for an unpaired surrogate
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raise OSError or ValueError."""
    check_regular(path)
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 30} GiB")
    content = parse_json(path.read_bytes())
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    return content


def check_regular(path: Path) -> None:
    """Raise OSError for a missing file, and ValueError for a folder, a pipe or a device, which could block.

    The message of the operating system says whether the file is missing or cannot be read.
    """
    path.stat()
    if not path.is_file():
        raise ValueError("it is not a regular file")


def _raise_for_constant(name: str) -> Any:
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


def _check_depth(content: Any) -> None:
    level = [content]
    for _ in range(MAX_DEPTH):
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
    """A condition on a value."""

    holds: Callable[[Any], bool]
    wanted: str
    """The condition in words, after "must be"."""

    def require(self, name: str, value: Any) -> None:
        """Raise ValueError unless the condition holds."""
        if not self.holds(value):
            raise ValueError(f"{name} must be {self.wanted}, got {_short.repr(value)}")


def check_fields(
    data: Any, table: Mapping[str, Check], *, required: Collection[str] = (), others: bool = False
) -> None:
    """Raise ValueError unless the fields of an object pass the checks of a table.

    others : whether the object may have fields that the table does not have.
    """
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
    """Return a check for an integer; true and false do not pass."""

    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Check(holds, f"a whole number from {least} to {most}")


def number(least: float, most: float) -> Check:
    """Return a check for an integer or a floating number, not NaN."""

    def holds(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most

    return Check(holds, f"a number from {least:g} to {most:g}")


def one_of(*values: str) -> Check:
    """Return a check for one of some strings."""
    return Check(lambda value: isinstance(value, str) and value in values, "one of " + ", ".join(map(repr, values)))


def either(*checks: Check) -> Check:
    """Return a check that passes if one of several checks passes."""
    return Check(
        lambda value: any(check.holds(value) for check in checks), " or ".join(check.wanted for check in checks)
    )


def list_of(check: Check, *, most: int | None = None, distinct: bool = False) -> Check:
    """Return a check for a list. distinct : whether repeated entries are refused (only for hashable entries)."""

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
    """Return a check for an object with any names and values that pass a check."""

    def holds(value: Any) -> bool:
        return isinstance(value, dict) and all(map(check.holds, value.values()))

    return Check(holds, f"an object, each value {check.wanted}")


def object_with(table: Mapping[str, Check], *, required: Collection[str] = ()) -> Check:
    """Return a check for an object whose fields pass a table; it may have other fields."""

    def holds(value: Any) -> bool:
        try:
            check_fields(value, table, required=required, others=True)
        except ValueError:
            return False
        return True

    fields = (f"{name} ({check.wanted})" if len(check.wanted) <= 80 else name for name, check in table.items())
    return Check(holds, "an object with " + ", ".join(fields))


NULL = Check(lambda value: value is None, "null")
"""The value null."""
FLAG = Check(lambda value: isinstance(value, bool), "true or false")
"""The value true or false."""
NOT_A_NUMBER = Check(lambda value: isinstance(value, float) and value != value, "NaN")
"""The floating number NaN."""
TEXT = Check(lambda value: isinstance(value, str), "a text")
"""Any string."""
OBJECT = Check(lambda value: isinstance(value, dict), "an object")
"""Any JSON object."""
COUNT = whole_number(0, 2**63 - 1)
"""A non-negative whole number of at most 63 bits."""
