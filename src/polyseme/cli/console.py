"""The one place that prints. Texts of others cannot command the terminal: control characters are shown as \\x1b."""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import rich.console
import typer
from rich.segment import Segment
from rich.text import Span, Text

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
