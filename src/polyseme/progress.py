"""What long calls show while they run: a bar or lines on standard error for a fit, stages and notes for a run.

Control characters in file names and texts are printed in escaped form (\\x1b), so that a document cannot control the
terminal. rich is imported only to show a bar, because a fit does not need it.
"""

from __future__ import annotations

import math
import multiprocessing
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from numbers import Integral
from typing import Any, Protocol

from polyseme.errors import InputError, MissingExtraError

Entry = dict[str, float]
"""A row of the history."""
Callback = Callable[[Entry], Any]
"""Function that is called with each row of the history."""

ProgressUpdate = Callable[[float, float | None, str], None]
"""Signature of ``update(completed, total, detail)``; `total` is None while it is not known."""

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters of ASCII and Latin-1, except tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that reorder the text of a line
    "\u2028\u2029\ufff9-\ufffb"  # other line separators, and hidden annotations
    "\ud800-\udfff]"  # surrogates, which cannot be encoded
)
"""Characters that a document must not send to a terminal."""

_LINE_EVERY = 10
"""Iterations between two lines."""

_bar = threading.Lock()
"""Lock of the fit that shows a bar, because a terminal can show only one bar."""


class Reporter(Protocol):
    """Receiver of the progress and the notes of a call with several stages, such as `polyseme.fit`."""

    def stage(self, name: str, *, unit: str = "", size: float = 1.0) -> AbstractContextManager[ProgressUpdate]:
        """Show the progress of a stage, with the rate in units of `size` per second if `unit` is given."""

    def note(self, text: str) -> None:
        """Show a sentence to the user."""


class SilentReporter:
    """Reporter that shows nothing."""

    @contextmanager
    def stage(self, name: str, *, unit: str = "", size: float = 1.0) -> Iterator[ProgressUpdate]:
        yield lambda completed, total, detail: None

    def note(self, text: str) -> None:
        pass


class TerminalReporter:
    """Reporter that shows the progress of a long call as bars, and its notes as lines.

    console : a console of rich.
    """

    def __init__(self, console: Any, *, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet

    def stage(self, name: str, *, unit: str = "", size: float = 1.0) -> AbstractContextManager[ProgressUpdate]:
        return _stage_bar(self._console, visible(name), unit, size, quiet=self._quiet)

    def note(self, text: str) -> None:
        if not self._quiet:
            print_line(self._console, text)


def print_line(console: Any, text: str) -> None:
    """Print a text on a console of rich: as one line into a file, broken between words in a terminal.

    A word that is longer than a line, such as a path, is not broken.
    """
    text = visible(text)
    if console.is_terminal:
        text = "\n".join(_broken(line, console.width) for line in text.split("\n"))
    console.print(text, soft_wrap=True)


def _broken(line: str, width: int) -> str:
    """Return a line with line feeds instead of the spaces at which it has to be broken."""
    from rich.cells import cell_len

    first, *words = line.split(" ")
    broken, used = first, cell_len(first)
    for word in words:
        size = cell_len(word)
        fits = used + 1 + size <= width
        broken, used = f"{broken}{' ' if fits else chr(10)}{word}", used + 1 + size if fits else size
    return broken


def reporter(verbose: int) -> Reporter:
    """Return the reporter of a call with this verbosity."""
    if not _checked(verbose):
        return SilentReporter()
    try:
        from rich.console import Console
    except ImportError:
        raise MissingExtraError("Progress of a run", "cli") from None

    terminal = False if _in_notebook() else None
    console = Console(
        stderr=True, force_jupyter=False, force_terminal=terminal, markup=False, emoji=False, highlight=False
    )
    return TerminalReporter(console)


def _checked(verbose: Any) -> int:
    """Return the verbosity. Raise InputError for anything but a number or a bool."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise InputError(f"verbose must be 0, 1 or 2, got {verbose!r}.")
    return int(verbose)


def pluralize(number: int, noun: str) -> str:
    """Return for example "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible(text: str, *, one_line: bool = False) -> str:
    r"""Return the text with control characters as \x1b or \u202e; with `one_line`, also escape line feeds and tabs."""
    text = UNSAFE.sub(escape_character, text)
    return text.replace("\n", "\\n").replace("\t", "\\t") if one_line else text


def escape_character(match: re.Match[str]) -> str:
    """Return the escaped form of a character that UNSAFE matches."""
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


@contextmanager
def fit_progress(verbose: int, max_iter: int, what: str, callback: Callback | None) -> Iterator[list[Callback]]:
    """Yield the listeners of a fit: the progress display, unless verbose is 0, and the callback of the user."""
    if not (callback is None or callable(callback)):
        raise InputError(f"callback must be None or a function of one argument, got {callback!r}.")
    user = [] if callback is None else [callback]
    if not _checked(verbose):
        yield user
        return
    console = _terminal()
    if console is None or not _bar.acquire(blocking=False):
        lines = _Lines(max_iter, what)
        try:
            yield [lines, *user]
        finally:
            lines.close()
        return
    try:
        with _fit_bar(console, verbose, max_iter, what) as show:
            yield [show, *user]
    finally:
        _bar.release()


def _in_notebook() -> bool:
    """Return whether standard error is a notebook, which shows bars of a terminal as new lines."""
    return type(sys.stderr).__module__.startswith("ipykernel.")


def _terminal() -> Any:
    """Return a console on standard error if it is a terminal and this is the main process, else None."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True, force_jupyter=False, force_terminal=False if _in_notebook() else None)
    is_main = multiprocessing.parent_process() is None
    return console if is_main and console.is_terminal else None


@contextmanager
def _fit_bar(console: Any, verbose: int, max_iter: int, what: str) -> Iterator[Callback]:
    """Show a bar while the block runs; yield the function that updates it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=verbose < 2) as progress:
        task = progress.add_task(what, total=max_iter, state="")
        yield lambda entry: progress.update(task, completed=int(entry["iteration"]), state=_state(entry))


@contextmanager
def _stage_bar(console: Any, name: str, unit: str, size: float, *, quiet: bool) -> Iterator[ProgressUpdate]:
    """Show a bar that is removed at the end; without a terminal, print one line at the start."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    if not console.is_terminal and not quiet:
        console.print(f"{name} ...")
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, detail="", rate="")

        def update(completed: float, total: float | None, detail: str) -> None:
            progress.update(task, completed=completed, total=total, detail=detail)
            progress.update(task, rate=_rate(progress.tasks[0].speed, unit, size))

        yield update


def _rate(speed: float | None, unit: str, size: float) -> str:
    return "" if not unit or speed is None else f"{speed / size:,.1f} {unit}/s"


class _Lines:
    """Listener that prints a line every few iterations and one for the last."""

    def __init__(self, max_iter: int, what: str) -> None:
        self._max_iter, self._what = max_iter, what
        self._unprinted: Entry | None = None
        self._replaces = _in_notebook()

    def __call__(self, entry: Entry) -> None:
        if entry["iteration"] == 0:
            self.end()  # the last line of the previous start
        self._unprinted = entry
        if int(entry["iteration"]) % _LINE_EVERY == 0:
            self.end()

    def end(self) -> None:
        """Print the last entry, unless it is already printed."""
        if self._unprinted is not None:
            done = f"{self._what} {int(self._unprinted['iteration'])}/{self._max_iter}"
            line = f"{done}: {_state(self._unprinted)}"
            # A single write, because other threads may print too. In a notebook each line replaces the one before.
            sys.stderr.write(f"\r{line}" if self._replaces else f"{line}\n")
            self._unprinted = None

    def close(self) -> None:
        """Print the last entry, and end the line that a notebook shows."""
        self.end()
        if self._replaces:
            sys.stderr.write("\n")


def _state(entry: Entry) -> str:
    if "loss" in entry:
        return f"loss {entry['loss']:.6g}, last decrease {entry['remaining']:.1e} %"
    name, value = ("bound", entry["bound"]) if "bound" in entry else ("log-likelihood", entry["log_likelihood"])
    gain = f", possible gain {entry['remaining']:.1e}" if math.isfinite(entry["remaining"]) else ""
    return f"{name} {value:.4f} per token{gain}"
