"""Progress bars, which vanish when done; where there is no terminal, a line says what has begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from polyseme.cli.console import Console

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
