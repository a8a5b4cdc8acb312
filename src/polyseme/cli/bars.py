"""Progress bars, which vanish when done; where there is no terminal, a line says what has begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Update = Callable[[float, float | None, str], None]


@contextmanager
def bar(console: Console, name: str, *, quiet: bool = False) -> Iterator[Update]:
    """Gives ``update(completed, total, detail)``; total is None while it is not known."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    if not console.is_terminal and not quiet:
        console.print(f"{name} ...")
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, detail="")
        yield lambda completed, total, detail: progress.update(task, completed=completed, total=total, detail=detail)
