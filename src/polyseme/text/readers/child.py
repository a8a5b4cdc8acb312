"""Code of the child process that reads files; `isolation.py` starts it and explains why."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

from polyseme.errors import InputError, MissingExtraError
from polyseme.text.readers.inputs import (
    ColumnNames,
    Document,
    File,
    Input,
    Limits,
    Problems,
    ReadProgress,
    Settings,
)
from polyseme.text.readers.isolation import (
    MISSING_EXTRA,
    NO_MEMORY,
    data_size,
    read_message,
    status_size,
    write_message,
)
from polyseme.text.readers.reader import FORMATS

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_CHARACTERS_PER_MESSAGE = 2**20
"""A message is sent when its documents have at least this many characters."""
_COST_OF_A_DOCUMENT = 32
_WATCH_SECONDS = 0.05
_SYSTEM_LIMIT_RATIO = 1.25
"""Ratio between the limit of the operating system and the limit that the parent enforces."""


def main() -> None:
    """Read a file for each command until the parent ends."""
    answers = os.fdopen(os.dup(1), "wb")
    write_message(answers, b"ready")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # libraries may print, which must not be mixed with the answers
    os.dup2(null, 2)
    commands: SimpleQueue[tuple[dict[str, Any], bytes]] = SimpleQueue()
    Thread(target=_receive, args=(commands,), daemon=True).start()
    memory = _Memory()
    while True:
        command, content = commands.get()
        source = _make_input(command, content)
        memory.allow(source.settings.limits.memory)
        try:
            _read_file(command["format"], source, answers, memory)
        except MemoryError:
            os._exit(NO_MEMORY)


def _receive(commands: SimpleQueue[tuple[dict[str, Any], bytes]]) -> None:
    """Receive commands in a thread, so that the process ends with its parent even while it reads a file."""
    while True:
        command, content = read_message(sys.stdin.buffer), read_message(sys.stdin.buffer)
        if command is None or content is None:
            os._exit(0)
        commands.put((json.loads(command), content))


def _make_input(command: dict[str, Any], content: bytes) -> Input:
    """Return the file and the settings of a command."""
    path, settings = command["path"], command["settings"]
    columns = settings["columns"]
    columns["text"] = None if columns["text"] is None else tuple(columns["text"])
    file = File(None if path is None else Path(path), command["name"], command["label"], command["size"])
    options = Settings(
        ColumnNames(**columns), settings["encoding"], Limits(**settings["limits"]), settings["uncategorized"]
    )
    return Input(file, options, ReadProgress(), content if path is None else None)


def _read_file(format: str, source: Input, answers: IO[bytes], memory: _Memory) -> None:
    """Read one file, and send its documents and problems."""
    documents: list[Document] = []
    size = 0
    raised: list[str] | None = None
    try:
        for document in FORMATS[format](source):
            documents.append(document)
            size += len(document.text) + _COST_OF_A_DOCUMENT
            if size >= _CHARACTERS_PER_MESSAGE:
                _send(answers, documents, source.current)
                size = 0
    except InputError as error:
        raised = ["input", str(error)]
    except MissingExtraError as error:
        raised = [MISSING_EXTRA, error.what, error.extra]
    except OSError as error:
        source.problem("unreadable file", error.strerror or str(error))
    except MemoryError:
        raise
    except Exception as error:  # libraries raise nearly any exception for damaged files; it is reported
        source.problem("damaged file", f"it cannot be read ({type(error).__name__}: {error})")
    again = not memory.is_mostly_used(source.settings.limits.memory)
    _send(answers, documents, source.current, end=True, again=again, raised=raised)


def _send(
    answers: IO[bytes],
    documents: list[Document],
    progress: ReadProgress,
    *,
    end: bool = False,
    again: bool = True,
    raised: list[str] | None = None,
) -> None:
    """Send what was read since the last message, and clear it."""
    message = {
        "documents": {
            "id": [document.id for document in documents],
            "title": [document.title for document in documents],
            "labels": [document.labels for document in documents],
            "time": [document.time for document in documents],
            "length": [len(document.text) for document in documents],
        },
        "problems": [[problem.kind, problem.where, problem.what] for problem in progress.problems],
        "counts": progress.problems.counts,
        "dropped": progress.dropped,
        "bytes_read": progress.bytes_read,
        "raised": raised,
        "end": end,
        "again": again,
    }
    write_message(answers, json.dumps(message).encode())
    texts = "".join([document.text for document in documents])  # much faster than JSON strings
    write_message(answers, texts.encode("utf-8", "surrogatepass"))
    documents.clear()
    progress.problems, progress.dropped, progress.bytes_read = Problems(), Counter(), 0


class _Memory:
    """Limit on the memory of this process, where the operating system supports it.

    On Linux the parent watches the memory and ends the process. A slightly higher limit of the system refuses single
    large allocations at once. It is higher because polars may wait forever if a small allocation fails. On other
    systems a thread watches the memory and ends the process.
    """

    def __init__(self) -> None:
        self._start = _data_size()
        self._max_resident = float("inf")
        if resource is not None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if self._start is None:
                Thread(target=self._watch, daemon=True).start()

    def allow(self, size: int) -> None:
        """Allow `size` more bytes than are used now."""
        if resource is None:
            return
        now = _data_size()
        if now is None:
            self._max_resident = _peak_resident() + size
            return
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = now + int(_SYSTEM_LIMIT_RATIO * size)
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))

    def is_mostly_used(self, size: int) -> bool:
        """Return whether more than a quarter of `size` bytes is still in use, so that a new process is needed."""
        now = _data_size()
        return self._start is not None and now is not None and now - self._start > size / 4

    def _watch(self) -> None:
        while _peak_resident() <= self._max_resident:
            time.sleep(_WATCH_SECONDS)
        os._exit(NO_MEMORY)


def _data_size() -> int | None:
    return data_size("self")


def _peak_resident() -> int:
    """Return the peak of the resident memory of this process, in bytes."""
    peak = status_size("self", "VmHWM:")
    if peak is None:  # on Linux this would include the peak of the parent
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak
