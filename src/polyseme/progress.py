"""Progress of long calls: of a fit on standard error (a progress bar on a terminal, else plain lines), and of a run."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

Entry = dict[str, float]
"""A row of the history."""
Callback = Callable[[Entry], Any]
"""Function that is called with each row of the history."""

ProgressUpdate = Callable[[float, float | None, str], None]
"""Signature of ``update(completed, total, detail)``; `total` is None while it is not known."""

_LINE_EVERY = 10
"""Iterations between two lines."""

_bar = threading.Lock()
"""Lock of the fit that shows a bar, because a terminal can show only one."""


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


def pluralize(number: int, noun: str) -> str:
    """Return for example "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def fit_progress(verbose: int, max_iter: int, what: str, callback: Callback | None) -> Iterator[list[Callback]]:
    """Yield the listeners of a fit: the progress display, unless verbose is 0, and the callback of the user."""
    user = [] if callback is None else [callback]
    if not verbose:
        yield user
        return
    console = _terminal()
    if console is None or not _bar.acquire(blocking=False):
        lines = _Lines(max_iter, what)
        try:
            yield [lines, *user]
        finally:
            lines.end()
        return
    try:
        with _progress_bar(console, verbose, max_iter, what) as show:
            yield [show, *user]
    finally:
        _bar.release()


def _terminal() -> Any:
    """Return a console on standard error if it is a terminal or a notebook and this is the main process, else None."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True)
    is_main = multiprocessing.parent_process() is None
    return console if is_main and (console.is_terminal or console.is_jupyter) else None


@contextmanager
def _progress_bar(console: Any, verbose: int, max_iter: int, what: str) -> Iterator[Callback]:
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


class _Lines:
    """Listener that prints a line every few iterations and one for the last."""

    def __init__(self, max_iter: int, what: str) -> None:
        self._max_iter, self._what = max_iter, what
        self._unprinted: Entry | None = None

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
            # A single write, because other threads may print too.
            sys.stderr.write(f"{done}: {_state(self._unprinted)}\n")
            self._unprinted = None


def _state(entry: Entry) -> str:
    if "bound" in entry:
        return f"bound {entry['bound']:.4f} per token, last gain {entry['gain']:.1e}"
    if "loss" in entry:
        return f"loss {entry['loss']:.6g}, last decrease {entry['residual']:.1e} %"
    return f"log-likelihood {entry['log_likelihood']:.4f} per token, possible gain {entry['residual']:.1e}"
