"""A line that shows how far a fit is: rich's bar where it is installed, else plain lines on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from polyseme.solvers.loop import Callback, Entry


@contextmanager
def fit_progress(verbose: int, max_iter: int, what: str, callback: Callback | None) -> Iterator[list[Callback]]:
    """Gives a fit's listeners while the block runs: one that shows the progress unless verbose = 0, and the user's."""
    others = [] if callback is None else [callback]
    if not verbose:
        yield others
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield [lambda entry: _print_line(entry, max_iter, what), *others]
        return
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=verbose < 2) as progress:
        task = progress.add_task(what, total=max_iter, state="")

        def show(entry: Entry) -> None:
            progress.update(task, completed=int(entry["iteration"]), state=_state(entry))

        yield [show, *others]


def _state(entry: Entry) -> str:
    if "bound" in entry:
        return f"bound {entry['bound']:.4f} a token, last gain {entry['gain']:.1e}"
    return f"log-likelihood {entry['log_likelihood']:.4f} a token, possible gain {entry['residual']:.1e}"


def _print_line(entry: Entry, max_iter: int, what: str) -> None:
    iteration = int(entry["iteration"])
    if iteration % 10 == 0 or iteration == max_iter:
        print(f"{what} {iteration}/{max_iter}: {_state(entry)}", file=sys.stderr)
