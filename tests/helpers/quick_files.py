"""Faster files for tests: one process reads all Parquet files, and nothing waits until the disk has stored a file."""

import os
import subprocess
from collections.abc import Callable
from typing import Any

from polyseme.io import parquet


def reuse_the_reading_process(replace: Callable[[Any, str, Any], None] = setattr) -> Callable[[], None]:
    """Let all readers of Parquet files use one process, because starting a process takes most of the time.

    The process continues after a reader that has read its files and after one that refuses a file. Otherwise an answer
    may be unread, and the process ends. A forked child starts its own process. `replace` sets an attribute,
    and may restore it later. Returns a function that ends the process.
    """
    program, start, end = parquet._CHILD, parquet.ParquetReader.__enter__, parquet.ParquetReader.__exit__
    waiting: list[subprocess.Popen[bytes]] = []
    os.register_at_fork(after_in_child=waiting.clear)

    def enter(self: Any) -> Any:
        if waiting and program == parquet._CHILD:
            self._process = waiting.pop()
            closed = self._process.stdin.closed  # with the reader, by the garbage collector
            if self._process.poll() is None and not closed:
                return self
        return start(self)

    def leave(self: Any, kind: Any = None, *error: object) -> None:
        is_clean = kind is None or (kind is ValueError and _is_running(self._process))
        if is_clean and not waiting and program == parquet._CHILD:
            waiting.append(self._process)
        else:
            end(self, kind, *error)

    replace(parquet.ParquetReader, "__enter__", enter)
    replace(parquet.ParquetReader, "__exit__", leave)

    def end_process() -> None:
        for process in waiting:
            process.kill()
            process.communicate()
        waiting.clear()

    return end_process


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process that has just answered is still running; a stopped one takes a moment to end."""
    try:
        process.wait(0.02)
    except subprocess.TimeoutExpired:
        return True
    return False


def do_not_wait_for_the_disk(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Do not wait until files are on disk, because tests do not have to survive a power failure."""
    replace(os, "fsync", lambda handle: None)
