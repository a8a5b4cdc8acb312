"""The progress of a fit: a bar of rich on a terminal, else plain lines; both on standard error."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Entry = dict[str, float]
Callback = Callable[[Entry], Any]

_LINE_EVERY = 10

_bar = threading.Lock()
"""held by the fit that shows a bar: a terminal has room for one"""


@contextmanager
def fit_progress(verbose: int, max_iter: int, what: str, callback: Callback | None) -> Iterator[list[Callback]]:
    """Gives a fit's listeners while the block runs: one that shows the progress unless verbose = 0, and the user's."""
    others = [] if callback is None else [callback]
    if not verbose:
        yield others
        return
    console = _terminal()
    if console is None or not _bar.acquire(blocking=False):
        lines = _Lines(max_iter, what)
        try:
            yield [lines, *others]
        finally:
            lines.end()
        return
    try:
        with _shown_bar(console, verbose, max_iter, what) as show:
            yield [show, *others]
    finally:
        _bar.release()


def _terminal() -> Any:
    """A console on standard error, if it is a terminal or a notebook that this process alone writes to; else None."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True)
    alone = multiprocessing.parent_process() is None
    return console if alone and (console.is_terminal or console.is_jupyter) else None


@contextmanager
def _shown_bar(console: Any, verbose: int, max_iter: int, what: str) -> Iterator[Callback]:
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


class _Lines:
    """Prints a line every few iterations and one for the last."""

    def __init__(self, max_iter: int, what: str) -> None:
        self._max_iter, self._what = max_iter, what
        self._unprinted: Entry | None = None

    def __call__(self, entry: Entry) -> None:
        if entry["iteration"] == 0:
            self.end()  # of the start before
        self._unprinted = entry
        if int(entry["iteration"]) % _LINE_EVERY == 0:
            self.end()

    def end(self) -> None:
        """Prints the last entry, unless it was printed."""
        if self._unprinted is not None:
            done = f"{self._what} {int(self._unprinted['iteration'])}/{self._max_iter}"
            # One write, since other threads may print too.
            sys.stderr.write(f"{done}: {_state(self._unprinted)}\n")
            self._unprinted = None


def _state(entry: Entry) -> str:
    if "bound" in entry:
        return f"bound {entry['bound']:.4f} a token, last gain {entry['gain']:.1e}"
    return f"log-likelihood {entry['log_likelihood']:.4f} a token, possible gain {entry['residual']:.1e}"
