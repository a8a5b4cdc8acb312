"""Check the docstrings of the public names against the NumPy style, with numpydoc.

Usage: python tools/check_docstrings.py [package ...]

Without arguments every public package is checked. Each failure is one line: file, line, name, check and message.
The exit code is 1 if there is a failure.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate
from public_packages import EXTENDING, PACKAGES, RESULT_CLASSES

CHECKS = {
    "GL05": "no tabs",
    "GL06": "only sections that numpydoc knows, also in the reference",
    "GL07": "sections in numpydoc's order",
    "GL08": "a docstring exists",
    "SS01": "a summary exists",
    "SS02": "the summary starts with a capital letter",
    "SS03": "the summary ends with a period",
    "SS05": "a function's summary starts with an infinitive (Return, not Returns)",
    "SS06": "the summary is one line: help pages and indexes show that line only",
    "PR01": "every parameter is documented",
    "PR02": "every documented parameter exists",
    "PR03": "parameters are in the order of the signature",
    "PR04": "every parameter has a type",
    "PR05": "a type does not end with a period",
    "PR06": "types are called int, bool and str",
    "PR07": "every parameter has a description",
    "PR08": "descriptions start with a capital letter",
    "PR09": "descriptions end with a period",
    "PR10": "a space precedes the colon; otherwise the type is not recognized",
    "RT01": "a function that returns a value has a section Returns",
    "RT03": "returned values are described",
    "RT04": "descriptions of returned values start with a capital letter",
    "RT05": "descriptions of returned values end with a period",
    "YD01": "a generator has a section Yields",
}
"""The checks of numpydoc.validate that must pass, with the reason.

Not used: GL01 to GL03 (placement of quotes and blank lines), ES01, SA01 and EX01 (an extended summary, a section See
Also and examples in every docstring, also where there is nothing to add), RT02 (a returned value may have a name).
"""


class PublicDocstring(Validator):
    """The docstring of one public object.

    The fields of a dataclass may be listed under Attributes, since most of them are results that no user constructs.
    """

    def __init__(self, obj_name: Any) -> None:
        super().__init__(get_doc_object(obj_name))
        self.fields_in_attributes = _is_record(self.obj) and not self.doc["Parameters"]

    @property
    def doc_all_parameters(self) -> dict[str, Any]:
        return self._doc_parameters(["Attributes"] if self.fields_in_attributes else ["Parameters", "Other Parameters"])

    @property
    def signature_parameters(self) -> tuple[str, ...]:
        if inspect.isclass(self.obj) and not _has_own_constructor(self.obj):
            return ()
        return tuple(name for name in super().signature_parameters if not name.lstrip("*").startswith("_"))

    @property
    def parameter_mismatches(self) -> list[tuple[str, str]]:
        # Attributes of a dataclass may also be properties and fields that the constructor does not take.
        errors = super().parameter_mismatches
        return [error for error in errors if error[0] == "PR01"] if self.fields_in_attributes else errors


def _is_record(value: Any) -> bool:
    return inspect.isclass(value) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))


def _has_own_constructor(cls: type) -> bool:
    if issubclass(cls, Enum):  # no user constructs a member
        return False
    constructor: Any = cls.__new__ if hasattr(cls, "_fields") else cls.__init__
    return hasattr(cls, "_fields") or getattr(constructor, "__module__", "").startswith("polyseme")


def public_objects(package: str) -> Iterator[tuple[str, Any]]:
    """Yield name and object of everything public in `package`: classes, their methods and properties, functions."""
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            yield f"{package}.{name}", value
            yield from _members(f"{package}.{name}", value)
        elif inspect.isfunction(inspect.unwrap(value)):
            yield f"{package}.{name}", value


def _members(name: str, cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class or a base class in polyseme defines.

    A method without a docstring inherits the docstring of the base class, as `help` shows it.
    """
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("polyseme"):
            continue
        for attribute, value in vars(base).items():
            if attribute.startswith("_") or attribute in seen:
                continue
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            if not inspect.isfunction(value) and not isinstance(value, property | functools.cached_property):
                continue
            if not value.__doc__ and inspect.getdoc(getattr(base, attribute)):
                continue
            seen.add(attribute)
            yield f"{name}.{attribute}", value


def failures(packages: tuple[str, ...]) -> list[str]:
    """Return one line for each failed check, without repeating objects that are public in two packages."""
    lines, seen = [], set()
    for package in packages:
        for name, value in public_objects(package):
            if id(value) in seen:
                continue
            seen.add(id(value))
            result = validate(value, validator_cls=PublicDocstring)
            file = Path(result["file"] or "").name
            lines += [
                f"{file}:{result['file_line']}: {name}: {code} {message}"
                for code, message in result["errors"]
                if code in CHECKS
            ]
    return lines


def main() -> int:
    packages = tuple(sys.argv[1:]) or (*PACKAGES, RESULT_CLASSES, EXTENDING)
    lines = failures(packages)
    print("\n".join(lines) if lines else f"Docstrings: {len(packages)} packages, no failure.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
