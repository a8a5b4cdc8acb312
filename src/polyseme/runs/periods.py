"""Calendar periods of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polyseme.errors import InputError
from polyseme.options import named
from polyseme.text.dates import DateOrder, days_of

MAX_PERIODS = 60
_UNITS = {
    "decade": ("Y", 10),
    "year": ("Y", 1),
    "quarter": ("M", 3),
    "month": ("M", 1),
    "week": ("D", 7),
    "day": ("D", 1),
}
_MIN_PERIODS = 12
"""A unit with at least this many periods is fine enough."""
_DOCUMENTS, _FEW = 2, 6
"""Mean number of documents of the periods that have any, and number of such periods that may have fewer."""
_MOST = 400
"""Largest number of periods of a given unit."""
_EPOCH = 719163
"""Ordinal of 1970-01-01."""


class Periods(NamedTuple):
    """Consecutive periods of time and the period of each document."""

    names: list[str]
    """Names of all periods from the first to the last."""
    numbers: npt.NDArray[np.int32]
    """Period of each document; -1 if it has no time."""
    unit: str = "year"


def periods(times: Sequence[Any]) -> Periods | None:
    """Group documents by periods; return None if no time can be parsed."""
    order = DateOrder.of(times)
    days = [days_of(time, order) for time in times]
    return periods_of_days(np.array([0 if day is None else day.first.toordinal() for day in days], dtype=np.int64))


def periods_of_days(days: npt.NDArray[Any], every: str | None = None) -> Periods | None:
    """Group documents by the ordinals of their days, 0 if they have none; return None if none has a day.

    Start with decades, and try finer units until there are _MIN_PERIODS periods, but never more than MAX_PERIODS, and
    never more than _FEW that have documents if these have fewer than _DOCUMENTS on average. `every` is a unit to use
    instead.
    """
    known = days > 0
    if not known.any():
        return None
    stamps = (days[known].astype(np.int64) - _EPOCH).astype("datetime64[D]")
    numbers, name = _period_numbers(stamps, every)
    first, last = int(numbers.min()), int(numbers.max())
    if last - first >= _MOST:
        raise InputError(f"{named('every', every)} gives {last - first + 1:,} periods: use a longer one.")
    of_documents = np.full(len(days), -1, dtype=np.int32)
    of_documents[known] = numbers - first
    return Periods([_period_name(number, name) for number in range(first, last + 1)], of_documents, name)


def _period_numbers(stamps: Any, every: str | None) -> tuple[npt.NDArray[np.int64], str]:
    """Return the number of the period of each day, and the unit. If all dates are years, so are the units."""
    if every is not None:
        unit, step = _UNITS[every]
        return stamps.astype(f"datetime64[{unit}]").astype(np.int64) // step, every
    only_years = bool((stamps == stamps.astype("datetime64[Y]").astype("datetime64[D]")).all())
    best = None
    for name, (unit, step) in list(_UNITS.items())[: 2 if only_years else None]:
        numbers = stamps.astype(f"datetime64[{unit}]").astype(np.int64) // step
        size = int(numbers.max() - numbers.min()) + 1
        filled = len(np.unique(numbers))
        if best is not None and (size > MAX_PERIODS or (filled > _FEW and len(stamps) < _DOCUMENTS * filled)):
            break
        best = numbers, name
        if size >= _MIN_PERIODS and name != "decade":
            break
    assert best is not None
    return best


def _period_name(number: int, name: str) -> str:
    unit, step = _UNITS[name]
    start = str(np.array(number * step).astype(f"datetime64[{unit}]"))
    if name == "decade":
        return f"{start}s"
    if name == "quarter":
        return f"{start[:4]} Q{(int(start[5:7]) + 2) // 3}"
    return start
