"""Comparison of the results of two builds, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Value = Any
"""an array, a string or None"""


@dataclass(frozen=True)
class Outcome:
    """Result of a case with one build: its values, or its error."""

    values: Mapping[str, Value] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    """texts for people: they may be rewritten, so a difference is listed and does not count"""
    error: str = ""
    """type of an error of polyseme; its message is messages["error"]"""
    failure: str = ""
    """any other error: the case itself does not work with this build"""
    skipped: str = ""


@dataclass(frozen=True)
class Comparison:
    """The differences of one case."""

    n_values: int
    differences: list[str]
    messages: list[tuple[str, str]]
    """pairs of an old and a new text"""
    skipped: str = ""
    error: str = ""
    added: list[str] = field(default_factory=list)
    """names of values that only the new build has, such as a new attribute: they are listed and do not count"""


def compare_outcomes(old: Outcome | None, new: Outcome | None) -> Comparison:
    """Compare the outcomes of one case with two builds; None if a build does not have the case."""
    if old is None or new is None:
        return Comparison(0, [f"only the {'new' if old is None else 'old'} build has this case"], [])
    # A case that fails with both builds compares nothing, so it counts as a difference.
    failures = [
        f"fails with the {build} build: {outcome.failure}"
        for build, outcome in (("old", old), ("new", new))
        if outcome.failure
    ]
    if failures:
        return Comparison(0, failures, [])
    if old.skipped and new.skipped:
        return Comparison(0, [], [], skipped=new.skipped)
    if old.skipped or new.skipped:
        return Comparison(0, [f"only the {'old' if old.skipped else 'new'} build skips it"], [])
    messages = [
        (old.messages.get(name, ""), new.messages.get(name, ""))
        for name in {**old.messages, **new.messages}
        if old.messages.get(name) != new.messages.get(name)
    ]
    if old.error != new.error:
        difference = f"raises {old.error or 'nothing'} with the old build, {new.error or 'nothing'} with the new one"
        return Comparison(1, [difference], messages)
    if old.error:
        return Comparison(1, [], messages, error=old.error)
    added = [name for name in new.values if name not in old.values]
    return Comparison(len(old.values), compare_values(old.values, new.values), messages, added=added)


def compare_values(old: Mapping[str, Value], new: Mapping[str, Value]) -> list[str]:
    """Return one line for each value of the old build that differs."""
    found = []
    for name in old:
        if name not in new:
            found.append(f"{name}: only in the old build")
        elif difference := compare_value(old[name], new[name]):
            found.append(f"{name}: {difference}")
    return found


def compare_value(old: Value, new: Value) -> str:
    """Return a description of the difference between two values; empty if every bit is equal."""
    if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray):
        same = type(old) is type(new) and old == new
        return "" if same else f"{_shortened(old)} became {_shortened(new)}"
    if old.dtype != new.dtype:
        return f"dtype {old.dtype} became {new.dtype}"
    if old.shape != new.shape:
        return f"shape {old.shape} became {new.shape}"
    # The bytes are compared: NaN equals NaN of the same bits, and -0.0 differs from 0.0.
    if old.tobytes() == new.tobytes():
        return ""
    return _difference_of_arrays(old, new)


def _difference_of_arrays(old: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> str:
    """Return a description of the difference between two arrays of one dtype and shape."""
    first, second = np.ascontiguousarray(old).ravel(), np.ascontiguousarray(new).ravel()
    bits = f"V{first.dtype.itemsize}"
    changed = first.view(bits) != second.view(bits)
    count = f"{int(changed.sum())} of {first.size} differ"
    if first.dtype.kind not in "biuf":
        return f"{count}, first {_shortened(first[changed][0])} became {_shortened(second[changed][0])}"
    a, b = first[changed].astype(np.float64), second[changed].astype(np.float64)
    with np.errstate(all="ignore"):
        gaps = np.abs(a - b)
        relative = gaps / np.maximum(np.abs(a), np.abs(b))
    if not np.isfinite(gaps).all():
        place = int(np.argmin(np.isfinite(gaps)))
        return f"{count}, one of them from {a[place]:g} to {b[place]:g}"
    if not gaps.any():
        return f"{count}, in the sign of zero or in bits that float64 does not show"
    return f"{count}, by at most {gaps.max():.3g} (relative {np.nanmax(relative):.3g})"


def _shortened(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
