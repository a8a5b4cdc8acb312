"""Output of the commands: text, JSON, errors, progress bars and exit codes.

Control characters in titles and texts are printed in escaped form (\\x1b), so that a document cannot control the
terminal.
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

FAILED = 1
"""Exit code of an error in the input, a file or the machine. Exit code 2 means wrong arguments."""
INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, as in shells."""

_ARGUMENTS = (
    "categories", "encoding", "format", "id", "label", "language", "max_df", "max_iter", "min_df", "n_components",
    "n_folds", "noise", "random_state", "sample", "text", "time", "title",
)  # fmt: skip
"""Python arguments that are also options of commands."""
_OPTIONS = {"categories": "--category", "n_components": "-k", "n_folds": "--folds", "random_state": "--seed"}
"""Options with a name other than that of the argument."""
_ARGUMENT = re.compile(rf"(?<![\w-])({'|'.join(_ARGUMENTS)})=(?!=)(?=(\w?))")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters of ASCII and Latin-1, except tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that reorder the text of a line
    "\u2028\u2029\ufff9-\ufffb"  # other line separators, and hidden annotations
    "\ud800-\udfff]"  # surrogates, which cannot be encoded
)

ProgressUpdate = Callable[[float, float | None, str], None]
"""Signature of ``update(completed, total, detail)``; `total` is None while it is not known."""


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
            if segment.control is None and _UNSAFE.search(segment.text):
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


def print_json(value: Any) -> None:
    r"""Print a value as JSON, with control characters as \u escapes."""
    typer.echo(
        _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False, indent=2))
    )


def print_data(text: str) -> None:
    """Print a table for files and other programs unchanged; in a terminal, escape control characters."""
    typer.echo(visible(text) if _is_terminal() else text, nl=False)


def print_error(message: str) -> None:
    """Print one line on standard error."""
    typer.echo(f"polyseme: {visible(message.rstrip('.'), one_line=True)}.", err=True)


def visible(text: str, *, one_line: bool = False) -> str:
    r"""Return the text with control characters as \x1b or \u202e; with `one_line`, escape line feeds and tabs, too."""
    text = _UNSAFE.sub(_escape, text)
    return text.replace("\n", "\\n").replace("\t", "\\t") if one_line else text


def with_option_names(message: str) -> str:
    """Return a message of the library with the names of options: `encoding=` becomes `--encoding`."""

    def option(found: re.Match[str]) -> str:
        name = _OPTIONS.get(found[1], f"--{found[1].replace('_', '-')}")
        return f"{name} " if found[2] else name  # a value follows

    return _ARGUMENT.sub(option, message)


def pluralize(number: int, noun: str) -> str:
    """Return for example "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def version_info() -> dict[str, Any]:
    """Return the fields of run.json that say when and with which versions the run was written."""
    packages = ("polyseme", "numpy", "scipy", "scikit-learn")
    return {
        "written": timestamp(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def timestamp() -> str:
    """Return the present time in UTC as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _visible_text(text: Text) -> Text:
    """Escape control characters and move the styles with the characters that they belong to."""
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


def _is_terminal() -> bool:
    return sys.stdout.isatty()
