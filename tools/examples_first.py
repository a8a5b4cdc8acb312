"""Order of the sections in the reference: examples come before the parameters (mkdocs.yml, `extensions`)."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLES = re.compile(r"\nExamples\n-+\n.*?(?=\n\w[\w ]*\n---|\Z)", re.DOTALL)
SECTION = re.compile(r"\n\w[\w ]*\n---")


class ExamplesFirst(griffe.Extension):
    """Extension of griffe that moves the examples of each docstring before its other sections."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Reorder the docstring of an object that griffe has read."""
        if obj.docstring is not None:
            obj.docstring.value = examples_first(obj.docstring.value)


def examples_first(text: str) -> str:
    """Return a docstring in the NumPy style whose examples precede the other sections."""
    found = EXAMPLES.search(text)
    if found is None:
        return text
    rest = text[: found.start()].rstrip() + "\n" + text[found.end() :]
    first = SECTION.search(rest)
    place = len(rest) if first is None else first.start()
    return f"{rest[:place].rstrip()}\n{found.group().rstrip()}\n{rest[place:]}".rstrip()
