"""Output to a terminal: text in which control characters are visible, and progress bars.

Control characters in titles and texts are printed in escaped form (\\x1b), so that a document cannot control the
terminal.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import rich.console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Span, Text

from polyseme.progress import ProgressUpdate

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters of ASCII and Latin-1, except tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that reorder the text of a line
    "\u2028\u2029\ufff9-\ufffb"  # other line separators, and hidden annotations
    "\ud800-\udfff]"  # surrogates, which cannot be encoded
)
"""Characters that a document must not send to a terminal."""


class Console(rich.console.Console):
    """Console of rich without markup, emoji names and highlighting, which a title may contain by chance."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape control characters; rich calls this method for every cell of a table, too."""
        for segment in super().render(
            _visible_text(renderable) if isinstance(renderable, Text) else renderable, options
        ):
            if segment.control is None and UNSAFE.search(segment.text):
                segment = Segment(visible(segment.text), segment.style)
            yield segment


class RateColumn(ProgressColumn):
    """Column of a progress bar that shows the units done per second."""

    def __init__(self, unit: str, size: float) -> None:
        super().__init__()
        self._unit = unit
        self._size = size

    def render(self, task: Task) -> Text:
        if not self._unit or task.speed is None:
            return Text("")
        return Text(f"{task.speed / self._size:,.1f} {self._unit}/s")


@contextmanager
def progress_bar(
    console: Console, name: str, *, unit: str = "", size: float = 1.0, quiet: bool = False
) -> Iterator[ProgressUpdate]:
    """Show a progress bar that is removed at the end; without a terminal, print one line at the start.

    The rate is shown in units of `size` per second, if `unit` is given.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        RateColumn(unit, size),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    if not console.is_terminal and not quiet:
        console.print(f"{name} ...")
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, detail="")
        yield lambda completed, total, detail: progress.update(task, completed=completed, total=total, detail=detail)


class TerminalReporter:
    """Shows the progress of a long call as bars, and its notes as lines.

    translate : function that is applied to each note, such as one that replaces arguments by options.
    """

    def __init__(self, console: Console, *, quiet: bool = False, translate: Callable[[str], str] = str) -> None:
        self._console, self._quiet, self._translate = console, quiet, translate

    def stage(self, name: str, *, unit: str = "", size: float = 1.0) -> AbstractContextManager[ProgressUpdate]:
        return progress_bar(self._console, name, unit=unit, size=size, quiet=self._quiet)

    def note(self, text: str) -> None:
        if not self._quiet:
            self._console.print(self._translate(text), soft_wrap=True)


def visible(text: str, *, one_line: bool = False) -> str:
    r"""Return the text with control characters as \x1b or \u202e; with `one_line`, escape line feeds and tabs, too."""
    text = UNSAFE.sub(_escape, text)
    return text.replace("\n", "\\n").replace("\t", "\\t") if one_line else text


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _visible_text(text: Text) -> Text:
    """Escape control characters and move the styles with the characters that they belong to."""
    places, added = [], [0]
    for found in UNSAFE.finditer(text.plain):
        places.append(found.start())
        added.append(added[-1] + len(_escape(found)) - 1)
    if not places:
        return text
    changed = text.copy()
    changed.plain = visible(text.plain)
    changed.spans = [
        Span(start + added[bisect_left(places, start)], end + added[bisect_left(places, end)], style)
        for start, end, style in text.spans
    ]
    return changed
