"""Dates in the forms that files have.

    1987   1987-02   1987-02-26T15:01:01Z   1987/2/26   19870226   1987年2月26日
    26-FEB-1987   26 February 1987   February 26th, 1987   Feb 1987   5. März 2020   (months in six languages)
    Thu, 26 Feb 1987 15:01:01 +0000   Thu Feb 26 15:01:01 1987
    2/26/1987   26.2.87   (the order of day and month is decided for a column, see `DateOrder`)
    541350061   541350061000   (Unix times in seconds and in finer units)

A date is written as "1987-02-26", or "1987-02" or "1987" if the rest is not known. The time of day and the time zone
are ignored: the day is the day as written, and that of a Unix time the one in UTC.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import lru_cache
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

from polyseme.text.calendar_names import MONTHS, WEEKDAYS

_MAX_LENGTH = 100
_ENOUGH = 100
"""The order of day and month is decided when this many dates can be read in only one order."""

_LANGUAGES = ("english", "german", "french", "spanish", "italian", "portuguese", "dutch")


def _plain(text: str) -> str:
    """Return a text without accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


_MONTHS = [_plain(MONTHS[language]).split() for language in _LANGUAGES]
_SHORT_WORDS = "st nd rd th of the de del do le er am den mon tue tues wed thu thur thurs fri sat sun mo di mi fr sa so"
_WEEKDAYS = " ".join(_plain(WEEKDAYS[language]).replace("-", " ") for language in _LANGUAGES)
_OTHER_WORDS = frozenset(f"{_SHORT_WORDS} {_WEEKDAYS}".split())
"""Words in a date with the name of a month."""

_TIME_OF_DAY = re.compile(
    r"(?:^|[T\s,])\s*(?:at\s+)?\d{1,2}(?::\d{2}){1,2}(?:[.,]\d+)?\s*(?:[ap]\.?m\.?)?\s*(?:[A-Z]{1,5}\b)?"
    r"(?:[+-]\d{2}:?\d{2})?(?:\[[\w/]+\])?(?:\s*\([\w\s]+\))?",
    re.IGNORECASE | re.ASCII,
)
_YEAR_FIRST = re.compile(r"(\d{4})(?:([-/.])(\d{1,2})(?:\2(\d{1,2}))?)?(?:Z|[+-]\d{2}:\d{2})?", re.ASCII)
_EAST_ASIAN = re.compile(r"(\d{4})\s*[年년](?:\s*(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日일])?)?", re.ASCII)
_COMPACT = re.compile(r"((?:1[89]|2[01])\d\d)(0[1-9]|1[0-2])(?:([0-2]\d|3[01])(?:T?\d{4}(?:\d\d)?Z?)?)?", re.ASCII)
_UNIX = re.compile(r"-?(?:\d{9,10}(?:\.\d+)?|\d{12,13}|\d{15,16}|\d{18,19})", re.ASCII)
_NUMERIC = re.compile(r"(\d{1,2})\s?([-/. ])\s?(\d{1,2})\s?\2\s?(\d{4}|\d{2})\.?", re.ASCII)
_PARTS = re.compile(r"[^\W\d_]+|\d+")
_BETWEEN = re.compile(r"[\s\w.,/'’-]+")


class Days(NamedTuple):
    """First and last day of a date, a month or a year."""

    first: date
    last: date


class DateOrder(NamedTuple):
    """Order of day and month in the dates of a column such as 3/13/1987, which is month, day, year."""

    day_first: bool | None = None
    """None if it is not decided; then such dates are not read."""
    note: str = ""
    """The order and the reason for it, in words; empty if the column has no such dates."""

    @classmethod
    def of(cls, values: Iterable[Any]) -> DateOrder:
        """Decide the order from all values of a column, or, if many of them agree, from the first ones.

        A date with a number above 12 has only one order. If there is none, and one of the two numbers is always the
        same, it is the day; else dates with a slash are in the American order, others are not.
        """
        matches = (_NUMERIC.fullmatch(text) for text in map(_date_part, values))
        pairs, decided, slashes = set(), [0, 0], 0
        for match in matches:
            if match is None:
                continue
            first, second = int(match[1]), int(match[3])
            if first > 31:  # 87/03/13
                continue
            pairs.add((first, second))
            slashes += match[2] == "/"
            if (first > 12) != (second > 12):
                decided[first > 12] += 1
                if sum(decided) >= _ENOUGH:
                    break
        if not pairs:
            return cls()
        if decided[0] != decided[1]:
            day_first = decided[1] > decided[0]
            examples = sorted(pair for pair in pairs if (pair[0] > 12) == day_first and max(pair) > 12)
            return cls(day_first, f"{_order_name(day_first)}, as in {examples[0][0]}/{examples[0][1]}")
        firsts, seconds = ({pair[place] for pair in pairs} for place in (0, 1))
        if (len(firsts) == 1) != (len(seconds) == 1) and len(pairs) > 2:
            day_first = len(firsts) == 1
            day = (firsts if day_first else seconds).pop()
            return cls(day_first, f"{_order_name(day_first)}, because the day is always {day}")
        day_first = not slashes
        return cls(day_first, f"{_order_name(day_first)}, a guess: no date has a day above 12")


def _order_name(day_first: bool) -> str:
    return "day/month/year" if day_first else "month/day/year"


def iso_date(value: Any, order: DateOrder | None = None) -> str | None:
    """Return a date, a number or a text as a date in ISO 8601 form; None if it is not a date.

    A text that has this form is returned as it is, with its time of day.
    """
    day_first = None if order is None else order.day_first
    if isinstance(value, str):
        return None if len(value) > _MAX_LENGTH else _parse(value.strip(), day_first)
    if type(value).__name__ == "datetime64":  # numpy is not imported: the command line checks paths here
        return iso_date(str(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Real) and not isinstance(value, bool) and isfinite(value):
        return _parse(f"{float(value):.0f}", day_first)
    return None


def days_of(time: Any, order: DateOrder | None = None) -> Days | None:
    """Return the days of a date in any form of this module; None for any other value."""
    text = iso_date(time, order)
    match = None if text is None else _YEAR_FIRST.match(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[3] or 0), int(match[4] or 0)
    first = date(year, month or 1, day or 1)
    return Days(first, first if day else date(year, month or 12, monthrange(year, month or 12)[1]))


def looks_like_date(value: Any) -> bool:
    """Return whether a value can only be a date: it has a month, and is not a number."""
    if isinstance(value, date):
        return True
    if not isinstance(value, str) or value.strip().isdecimal():
        return False
    text = date_in_any_order(value)
    return text is not None and len(text) > 4 and not _UNIX.fullmatch(value.strip())


def date_in_any_order(value: Any) -> str | None:
    """Return a value as a date, with the month before the day if both orders are possible."""
    return iso_date(value, DateOrder(day_first=False)) or iso_date(value, DateOrder(day_first=True))


@lru_cache(maxsize=4096)
def _parse(text: str, day_first: bool | None) -> str | None:
    """Return a text as a date in ISO form."""
    if len(text) == 6:
        text = text.removesuffix(".0")  # a year in a column of floats
    rest = _date_part(text)
    if match := _YEAR_FIRST.fullmatch(rest):
        found = _iso(match[1], match[3], match[4])
        return text if found and match[2] in (None, "-") else found
    if match := _EAST_ASIAN.fullmatch(rest) or _COMPACT.fullmatch(rest):
        return _iso(*match.groups())
    if _UNIX.fullmatch(rest):
        return _unix_date(rest)
    if match := _NUMERIC.fullmatch(rest):
        first, second, year = match[1], match[3], _century(match[4])
        if int(first) > 31 and len(match[4]) == 2:  # 87/03/13
            return _iso(_century(first), second, match[4])
        if day_first is None:
            return None
        return _iso(year, second, first) if day_first else _iso(year, first, second)
    return _named_month(rest)


def _date_part(value: Any) -> str:
    """Return a text without its time of day; an empty string for other values."""
    if not isinstance(value, str) or len(value) > _MAX_LENGTH:
        return ""
    return _TIME_OF_DAY.sub(" ", value, count=1).strip() if ":" in value else value.strip()


def _named_month(text: str) -> str | None:
    """Return a date in which the month is a name, such as "26-FEB-1987"."""
    if not _BETWEEN.fullmatch(text):
        return None
    parts = _PARTS.findall(_plain(text))
    words, numbers = [part.lower() for part in parts if not part.isdecimal()], [p for p in parts if p.isdecimal()]
    months = [(word, number) for word in words if (number := _month_number(word))]
    if len(months) != 1 or not all(word == months[0][0] or word in _OTHER_WORDS for word in words):
        return None
    month = str(months[0][1])
    if len(numbers) == 1:
        year = numbers[0]
        return _iso(_century(year), month, None) if len(year) == 4 or (len(year) == 2 and int(year) > 31) else None
    if len(numbers) != 2:
        return None
    day, year = numbers if len(numbers[0]) < 3 and int(numbers[0]) <= 31 else reversed(numbers)
    return _iso(_century(year), month, day)


@lru_cache(maxsize=256)
def _month_number(word: str) -> int | None:
    """Return the number of a month by its name or an abbreviation of it with at least three letters."""
    if len(word) < 3:
        return None
    if word == "mrz":
        return 3
    found = {n for names in _MONTHS for n, name in enumerate(names, 1) if name.startswith(word)}
    if word == "sept":
        found = {9}
    return found.pop() if len(found) == 1 else None


def _unix_date(text: str) -> str | None:
    whole = text.partition(".")[0]
    seconds = int(whole) // 10 ** (3 * ((len(whole.lstrip("-")) - 9) // 3))
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _century(year: str) -> str:
    """Return a year with four digits; those with two are from 1969 to 2068."""
    return year if len(year) != 2 else f"{'20' if int(year) < 69 else '19'}{year}"


def _iso(year: str, month: str | None, day: str | None) -> str | None:
    """Return a valid date in ISO form."""
    try:
        date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    return "-".join([f"{int(year):04}", *(f"{int(part):02}" for part in (month, day) if part)])
