"""Times of documents, as they come, in a few equal periods."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MOST_PERIODS = 60
_UNITS = (("Y", 10), ("Y", 1), ("M", 3), ("M", 1), ("D", 7), ("D", 1))
"""decades, years, quarters, months, weeks, days"""
_FEW = 6
_ISO = re.compile(r"\s*(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?)?(?:[T\s].*)?$")


class Periods(NamedTuple):
    """`names` of the periods in order, none left out; `of`: that of each document, -1 without a time."""

    names: list[str]
    of: npt.NDArray[np.int32]


def periods(times: Sequence[Any]) -> Periods | None:
    """Documents by periods of the finest unit that gives at most MOST_PERIODS; None if no time can be read."""
    days = [_day(time) for time in times]
    known = np.array([day is not None for day in days], dtype=bool)
    if not known.any():
        return None
    stamps = np.array([day for day in days if day is not None], dtype="datetime64[D]")
    numbers, unit, step = _numbers(stamps)
    first = int(numbers.min())
    of = np.full(len(days), -1, dtype=np.int32)
    of[known] = numbers - first
    last = int(numbers.max())
    return Periods([_name(number, unit, step) for number in range(first, last + 1)], of)


def _numbers(stamps: Any) -> tuple[Any, str, int]:
    """The period of each day, with the finest unit that is coarse enough; years alone stay years."""
    whole_years = bool((stamps == stamps.astype("datetime64[Y]").astype("datetime64[D]")).all())
    units = _UNITS[:2] if whole_years else _UNITS
    best = None
    for unit, step in units:
        numbers = stamps.astype(f"datetime64[{unit}]").astype(np.int64) // step
        size = int(numbers.max() - numbers.min()) + 1
        if best is not None and size > MOST_PERIODS:
            break
        best = numbers, unit, step
        if size >= 2 * _FEW and not (unit == "Y" and step == 10):
            break
    assert best is not None
    return best


def _name(number: int, unit: str, step: int) -> str:
    start = str(np.array(number * step).astype(f"datetime64[{unit}]"))
    if (unit, step) == ("Y", 10):
        return f"{start}s"
    if (unit, step) == ("M", 3):
        return f"{start[:4]} Q{(int(start[5:7]) + 2) // 3}"
    return start


def _day(time: Any) -> date | None:
    """The day of a date, of a year as a number, or of a text that begins as ISO 8601 does."""
    if isinstance(time, datetime):
        return time.date()
    if isinstance(time, date):
        return time
    if isinstance(time, np.datetime64):
        return _day(time.astype("datetime64[D]").item())
    if isinstance(time, int | float | np.number) and not isinstance(time, bool):
        time = f"{time:.0f}" if np.isfinite(time) else ""
    found = _ISO.match(time) if isinstance(time, str) else None
    if found is None:
        return None
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return None
