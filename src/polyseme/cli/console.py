"""Messages of the library in the words of the command line: options instead of Python arguments.

What the command line tells the shell.

The one place that prints. Texts of others cannot command the terminal: control characters are shown as \\x1b.

Progress bars, which vanish when done; where there is no terminal, a line says what has begun.

What a run says of how it was made.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import rich.console
import typer
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

_OTHER_NAMES = {"categories": "--category", "n_components": "-k", "random_state": "--seed"}
_ARGUMENTS = (
    "categories", "encoding", "format", "id", "label", "language", "max_df", "max_iter", "min_df", "n_components",
    "noise", "random_state", "sample", "text", "time", "title",
)  # fmt: skip
_ARGUMENT = re.compile(rf"(?<![\w-])({'|'.join(_ARGUMENTS)})=(?!=)")


def in_options(message: str) -> str:
    """The message with `encoding=` as `--encoding`, and so on for all arguments that are options too."""
    return _ARGUMENT.sub(lambda found: _OTHER_NAMES.get(found[1], f"--{found[1].replace('_', '-')}"), message)


FAILED = 1
"""The input, a file or the machine did not allow it; the message says what to do. (2 is for wrong arguments.)"""

INTERRUPTED = 130
"""Stopped by Ctrl-C, as shells count it: 128 + SIGINT."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # the controls of ASCII and of Latin-1, but the tab and the line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # which reorder the text on the line
    "\u2028\u2029\ufff9-\ufffb"  # other line ends, and hidden annotations
    "\ud800-\udfff]"  # halves of characters, which cannot be encoded
)


def visible(text: str, *, one_line: bool = False) -> str:
    r"""The text with its control characters written as \x1b or \u202e; with `one_line`, line feeds and tabs, too."""
    text = _UNSAFE.sub(_escape, text)
    return text.replace("\n", "\\n").replace("\t", "\\t") if one_line else text


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Console(rich.console.Console):
    """rich's console without markup, emoji names and colored numbers, which a title may look like by chance."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Also for parts of tables: rich renders each of them by this method."""
        for segment in super().render(
            _visible_text(renderable) if isinstance(renderable, Text) else renderable, options
        ):
            if segment.control is None and _UNSAFE.search(segment.text):
                segment = Segment(visible(segment.text), segment.style)
            yield segment


def _visible_text(text: Text) -> Text:
    """The same with the styles where they were."""
    places, added = [], [0]
    for found in _UNSAFE.finditer(text.plain):
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


def in_words(number: int, noun: str) -> str:
    """For example "1 document" and "2,000 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    """The value for other programs; a character that is unsafe in a terminal is written as JSON's own escape."""
    typer.echo(
        _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False, indent=2))
    )


def print_data(text: str) -> None:
    """A table for files and other programs, as it is; only a terminal gets control characters shown."""
    typer.echo(visible(text) if _is_terminal() else text, nl=False)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def print_error(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"polyseme: {visible(message.rstrip('.'), one_line=True)}.", err=True)


Update = Callable[[float, float | None, str], None]


class Rate(ProgressColumn):
    """How much is done in a second."""

    def __init__(self, unit: str, size: float) -> None:
        super().__init__()
        self._unit = unit
        self._size = size

    def render(self, task: Task) -> Text:
        if not self._unit or task.speed is None:
            return Text("")
        return Text(f"{task.speed / self._size:,.1f} {self._unit}/s")


@contextmanager
def bar(console: Console, name: str, *, unit: str = "", size: float = 1.0, quiet: bool = False) -> Iterator[Update]:
    """Gives ``update(completed, total, detail)``; total is None while it is not known.

    The rate is shown in units of `size` a second, if they have a name.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        Rate(unit, size),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    if not console.is_terminal and not quiet:
        console.print(f"{name} ...")
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, detail="")
        yield lambda completed, total, detail: progress.update(task, completed=completed, total=total, detail=detail)


def versions() -> dict[str, Any]:
    """When, and by which versions."""
    packages = ("polyseme", "numpy", "scipy", "scikit-learn")
    return {
        "written": now(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
