"""The table of cases: a name, and a function that gets an empty folder and returns the values to compare."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Run = Callable[[Path], Any]

CASES: dict[str, Run] = {}
MODULES = ("estimators", "corpora", "results")


class Skip(Exception):
    """Raised by a case that cannot run in this environment."""


def add(name: str, run: Run) -> None:
    """Add a case. The first two parts of its name, separated by slashes, are its group in the report."""
    if name in CASES:
        raise ValueError(f"there are two cases {name!r}")
    CASES[name] = run


def case(name: str) -> Callable[[Run], Run]:
    """Add the decorated function as a case."""

    def register(run: Run) -> Run:
        add(name, run)
        return run

    return register


def all_cases() -> dict[str, Run]:
    """Return all cases by name."""
    for module in MODULES:
        import_module(f"{__package__}.{module}")
    return CASES
