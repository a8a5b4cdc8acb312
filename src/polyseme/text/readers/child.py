"""What runs in the process that reads files for another one; `isolation` starts it and says why."""

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
from polyseme.text.readers.documents import ColumnNames, Document, Limits, Problems
from polyseme.text.readers.inputs import File, Input, Pass, Settings
from polyseme.text.readers.isolation import MISSING_EXTRA, NO_MEMORY, data_size, read_frame, status_size, write_frame
from polyseme.text.readers.reader import FORMATS

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_AT_ONCE = 2**20
"""Characters of documents that one message has, or more by one document."""
_COST_OF_A_DOCUMENT = 32
_WATCH_SECONDS = 0.05
_MORE_THAN_ALLOWED = 1.25


def main() -> None:
    """Reads a file for each command, until the parent is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    write_frame(answers, b"ready")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what libraries print is no answer
    os.dup2(nowhere, 2)
    commands: SimpleQueue[tuple[dict[str, Any], bytes]] = SimpleQueue()
    Thread(target=_receive, args=(commands,), daemon=True).start()
    memory = _Memory()
    while True:
        command, content = commands.get()
        source = _corpus(command, content)
        memory.allow(source.settings.limits.memory)
        try:
            _answer(command["format"], source, answers, memory)
        except MemoryError:
            os._exit(NO_MEMORY)


def _receive(commands: SimpleQueue[tuple[dict[str, Any], bytes]]) -> None:
    """In a thread of its own, so that a parent that goes away ends the work on a file, too."""
    while True:
        command, content = read_frame(sys.stdin.buffer), read_frame(sys.stdin.buffer)
        if command is None or content is None:
            os._exit(0)
        commands.put((json.loads(command), content))


def _corpus(command: dict[str, Any], content: bytes) -> Input:
    path, settings = command["path"], command["settings"]
    columns = settings["columns"]
    columns["text"] = None if columns["text"] is None else tuple(columns["text"])
    file = File(None if path is None else Path(path), command["name"], command["label"], command["size"])
    asked = Settings(
        ColumnNames(**columns), settings["encoding"], Limits(**settings["limits"]), settings["uncategorized"]
    )
    return Input(file, asked, Pass(), content if path is None else None)


def _answer(format: str, source: Input, answers: IO[bytes], memory: _Memory) -> None:
    """Sends the documents and problems of one file."""
    documents: list[Document] = []
    size = 0
    raised: list[str] | None = None
    try:
        for document in FORMATS[format](source):
            documents.append(document)
            size += len(document.text) + _COST_OF_A_DOCUMENT
            if size >= _AT_ONCE:
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
    except Exception as error:  # the libraries raise nearly anything for a damaged file; it is named, not hidden
        source.problem("damaged file", f"it cannot be read ({type(error).__name__}: {error})")
    again = not memory.is_kept(source.settings.limits.memory)
    _send(answers, documents, source.current, end=True, again=again, raised=raised)


def _send(
    answers: IO[bytes],
    documents: list[Document],
    current: Pass,
    *,
    end: bool = False,
    again: bool = True,
    raised: list[str] | None = None,
) -> None:
    """Sends what has been found since the last time, and forgets it."""
    message = {
        "documents": {
            "id": [document.id for document in documents],
            "title": [document.title for document in documents],
            "labels": [document.labels for document in documents],
            "time": [document.time for document in documents],
            "length": [len(document.text) for document in documents],
        },
        "problems": [[problem.kind, problem.where, problem.what] for problem in current.problems],
        "counts": current.problems.counts,
        "dropped": current.dropped,
        "bytes_read": current.bytes_read,
        "raised": raised,
        "end": end,
        "again": again,
    }
    write_frame(answers, json.dumps(message).encode())
    texts = "".join([document.text for document in documents])  # much faster than as strings of JSON
    write_frame(answers, texts.encode("utf-8", "surrogatepass"))
    documents.clear()
    current.problems, current.dropped, current.bytes_read = Problems(), Counter(), 0


class _Memory:
    """Bounds the memory of this process where the system can.

    On Linux the parent sees how much there is, and ends the process in time; a limit of the system, which is a little
    higher, refuses a large piece at once. (At that limit small pieces are refused in the middle of anything, and
    polars may then wait forever.) Elsewhere a thread looks, and ends the process.
    """

    def __init__(self) -> None:
        self._start = _data_size()
        self._most_resident = float("inf")
        if resource is not None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if self._start is None:
                Thread(target=self._watch, daemon=True).start()

    def allow(self, size: int) -> None:
        """From now on, so many bytes more than there are."""
        if resource is None:
            return
        now = _data_size()
        if now is None:
            self._most_resident = _most_resident() + size
            return
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = now + int(_MORE_THAN_ALLOWED * size)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))

    def is_kept(self, size: int) -> bool:
        """Whether a large part of what was allowed has not been given back."""
        now = _data_size()
        return self._start is not None and now is not None and now - self._start > size / 4

    def _watch(self) -> None:
        while _most_resident() <= self._most_resident:
            time.sleep(_WATCH_SECONDS)
        os._exit(NO_MEMORY)


def _data_size() -> int | None:
    return data_size("self")


def _most_resident() -> int:
    """Most bytes of memory that this process has had."""
    peak = status_size("self", "VmHWM:")
    if peak is None:  # not on Linux, where this would begin with the peak of the parent
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak
