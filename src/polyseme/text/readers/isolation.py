"""Reading files in a child process with limits on memory and time.

PDF, Word, HTML, Parquet and mail files are parsed by large libraries, some of them compiled. A damaged or hostile file
can make them crash, use all memory or never end, which no check can exclude in advance; but a process can be ended. One
child process reads file after file, and is replaced if a file made it end. It imports only the readers, so that it
starts in a fraction of a second. It answers in JSON, and all values are checked: nothing that it sends is executed.

A message is its length in eight bytes, then its content. `read_isolated` is called by the parent, `answer_requests` in
the child process.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate, chain
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread, Timer
from typing import IO, Any

from polyseme.errors import InputError, MissingExtraError
from polyseme.options import flags_used, naming_flags
from polyseme.text.readers.inputs import (
    ColumnNames,
    Document,
    File,
    Input,
    Limits,
    Problem,
    Problems,
    ReadProgress,
    Settings,
)

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ISOLATED = {"parquet", "spreadsheet", "pdf", "docx", "html", "eml", "mbox"}
"""Formats that are read in a child process."""

_START = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import json, sys
sys.path[:] = json.loads(sys.stdin.buffer.readline())
from polyseme.text.readers import isolation
isolation.answer_requests()
"""
"""Code of the child process. It ignores Ctrl-C, which the parent handles."""

NO_MEMORY = 76
"""Exit code of a child process that needs more memory than the limit."""
MISSING_EXTRA = "extra"
"""Kind of error in an answer that is raised as MissingExtraError."""
_TIME, _MEMORY = "time", "memory"

_CANNOT_START = "PDF, Word, HTML, Parquet and mail files are read in a separate process, which cannot be started"
_BYTES_PER_CHARACTER, _MORE_BYTES = 6, 2**24
"""Limit on the size of an answer: JSON needs up to six bytes per character, and the last document may be a long one."""
_WATCH_SECONDS = 0.05
_IDLE_SECONDS = 60.0
"""Time after which a child process without work is ended."""
_BYTES_OF_LENGTH = 8


def read_isolated(format: str, source: Input) -> Iterator[Document]:
    """Yield the documents of one file, read by the child process. If that fails, the file is reported as a problem."""
    content = None
    if not source.is_plain():
        content = source.whole()
        if content is None:
            return
    child = _spare.take()
    again = False
    try:
        child.request(format, source, content)
        while True:
            answer = child.answer(source.settings.limits, source.name)
            source.current.problems.merge(answer.problems)
            source.current.dropped.update(answer.dropped)
            source.current.notes.update(answer.notes)
            source.current.bytes_read += answer.bytes_read if content is None else 0
            yield from answer.documents
            if answer.end:
                break
        again = answer.again
        if answer.raised is not None:
            raise answer.raised
    except _Ended as ended:
        source.problem("refused file", str(ended))
    finally:
        if again:
            _spare.store(child)
        else:
            child.end()


def write_message(stream: IO[bytes], content: bytes) -> None:
    """Write a message. Raises OSError if the other process has ended."""
    stream.write(len(content).to_bytes(_BYTES_OF_LENGTH, "little"))
    stream.write(content)
    stream.flush()


def read_message(stream: IO[bytes], max_length: int | None = None) -> bytes | None:
    """Return the next message, or None if there is none or if it has more than `max_length` bytes."""
    head = stream.read(_BYTES_OF_LENGTH)
    length = int.from_bytes(head, "little")
    if len(head) < _BYTES_OF_LENGTH or (max_length is not None and length > max_length):
        return None
    content = stream.read(length)
    return content if len(content) == length else None


def data_size(process: int | str) -> int | None:
    """Return the memory, in bytes, that a process has for data (as RLIMIT_DATA counts it); None except on Linux."""
    return status_size(process, "VmData:")


def status_size(process: int | str, name: str) -> int | None:
    """Return a size, in bytes, from Linux's status file of a process ("self" for this one)."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(name)), None)
    except OSError:
        return None


class _Ended(Exception):
    """The child process has ended or sent an invalid answer; the message is the reason for the user."""


@dataclass(frozen=True)
class _Answer:
    """What the child process has read since its last answer."""

    documents: list[Document]
    problems: Problems
    dropped: Counter[str]
    notes: Counter[str]
    bytes_read: int
    raised: Exception | None
    """An error that the parent raises."""
    end: bool
    """Whether this is the last answer for the file."""
    again: bool
    """Whether the process can read another file."""

    @classmethod
    def of(cls, content: bytes, texts: bytes, source: str) -> _Answer:
        """Parse and check an answer. Raises _Ended if it is not valid, because a hostile file may have changed it."""
        try:
            message = json.loads(content)
            raised = message["raised"]
            return cls(
                documents=_parse_documents(message["documents"], texts.decode("utf-8", "surrogatepass"), source),
                problems=Problems.of(
                    {_check_text(kind): int(count) for kind, count in message["counts"].items()},
                    [Problem(*map(_check_text, problem)) for problem in message["problems"]],
                ),
                dropped=Counter({_check_text(why): int(count) for why, count in message["dropped"].items()}),
                notes=Counter({_check_text(note): int(count) for note, count in message["notes"].items()}),
                bytes_read=int(message["bytes_read"]),
                raised=None if raised is None else _make_error(*map(_check_text, raised)),
                end=bool(message["end"]),
                again=bool(message["again"]),
            )
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise _Ended("the process that read it gave an unknown answer") from None


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _parse_documents(columns: dict[str, list[Any]], texts: str, source: str) -> list[Document]:
    """Return documents from their fields and their joined texts, which `columns["length"]` divides."""
    ids, titles, labels, times, lengths = (columns[name] for name in ("id", "title", "labels", "time", "length"))
    _check_types(chain(ids, *labels), str)
    _check_types(chain(titles, times), str, type(None))
    _check_types(labels, list)
    _check_types(lengths, int)
    if min(lengths, default=0) < 0 or sum(lengths) != len(texts):
        raise ValueError("the lengths do not match the texts")
    split = [texts[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]
    rows = zip(ids, split, titles, map(tuple, labels), times, [source] * len(ids), strict=True)
    return list(map(Document._make, rows))


def _check_types(values: Iterable[Any], *types: type) -> None:
    if not set(map(type, values)) <= set(types):
        raise TypeError("a value of another type")


def _make_error(kind: str, *arguments: str) -> Exception:
    return MissingExtraError(*arguments) if kind == MISSING_EXTRA else InputError(*arguments)


class _Child:
    """One child process."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable or "", "-P", "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise InputError(f"{_CANNOT_START}: {error}.") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands, self._answers = self._process.stdin, self._process.stdout
        self._killed_for = ""
        self._data_size_before: int | None = None
        try:
            self._commands.write(json.dumps(sys.path).encode() + b"\n")
            self._commands.flush()
            ready = read_message(self._answers, 2**10) is not None
        except BrokenPipeError:
            ready = False
        except BaseException:
            self.end()
            raise
        if not ready:
            self.end()
            raise InputError(f"{_CANNOT_START}: {sys.executable} ended with code {self._process.returncode}.")

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def request(self, format: str, source: Input, content: bytes | None) -> None:
        """Request the documents of a file. `content` is None for a file that the child process opens by its path."""
        self._data_size_before = data_size(self._process.pid)
        file = source.file
        command = {
            "format": format,
            "path": None if content is not None or file.path is None else os.path.abspath(file.path),
            "name": file.name,
            "label": file.label,
            "size": file.size,
            "settings": asdict(source.settings),
            "flags": flags_used(),
        }
        with suppress(BrokenPipeError):  # `answer` finds out why the process has ended
            write_message(self._commands, json.dumps(command).encode())
            write_message(self._commands, content or b"")

    def answer(self, limits: Limits, source: str) -> _Answer:
        """Return the next answer. Raises _Ended if the process ends or exceeds a limit."""
        answered = Event()
        watch = Thread(target=self._watch, args=(limits, answered), daemon=True)
        watch.start()
        max_length = _BYTES_PER_CHARACTER * limits.document + _MORE_BYTES
        try:
            content, texts = read_message(self._answers, max_length), read_message(self._answers, max_length)
        finally:
            answered.set()
        if content is not None and texts is not None:
            return _Answer.of(content, texts, source)
        watch.join()
        self.end()
        code = self._process.returncode
        memory = f"{limits.memory / 2**20:,.0f} MiB of memory"
        if self._killed_for == _TIME:
            raise _Ended(f"reading it takes more than {limits.seconds:g} seconds")
        if self._killed_for == _MEMORY or code == NO_MEMORY:
            raise _Ended(f"reading it takes more than {memory}")
        reason = _exit_reason(code)
        raise _Ended(f"the process that read it ended ({reason}): it is damaged or takes more than {memory}")

    def _watch(self, limits: Limits, answered: Event) -> None:
        """Kill the process if it needs more time or, on Linux, more memory than the limits allow."""
        end = time.monotonic() + limits.seconds
        while not answered.wait(min(_WATCH_SECONDS, max(0.0, end - time.monotonic()))):
            if time.monotonic() >= end:
                self._killed_for = _TIME
            elif self._data_size_before is not None:
                now = data_size(self._process.pid)
                if now is not None and now - self._data_size_before > limits.memory:
                    self._killed_for = _MEMORY
            if self._killed_for:
                self._process.kill()
                return

    def disown(self) -> None:
        """Close the pipes without ending the process, which belongs to the parent of a forked process."""
        self._answers.close()
        self._commands.close()
        self._process.returncode = 0  # so that Popen does not wait for it

    def end(self) -> None:
        """Kill the process and wait for its end."""
        self._answers.close()
        with suppress(BrokenPipeError):
            self._commands.close()
        self._process.kill()
        self._process.wait()


def _exit_reason(code: int) -> str:
    """Return an exit code as text; a negative code is the name of a signal."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"code {code}"


class _Spare:
    """A child process that waits for the next file. It is ended after some time without work."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._child: _Child | None = None
        self._since = 0.0
        self._timer: Timer | None = None

    def take(self) -> _Child:
        """Return the waiting process, or a new one."""
        child = self._pop()
        if child is not None:
            if child.is_alive():
                return child
            child.end()
        return _Child()

    def store(self, child: _Child) -> None:
        """Store a process for the next file."""
        with self._lock:
            before, self._child, self._since = self._child, child, time.monotonic()
            if self._timer is None:
                self._start_timer(_IDLE_SECONDS)
        if before is not None:
            before.end()

    def end(self) -> None:
        """End the waiting process."""
        child = self._pop()
        if child is not None:
            child.end()

    def forget(self) -> None:
        """Forget the process in a fork, because it belongs to the parent."""
        self._lock = Lock()
        if self._child is not None:
            self._child.disown()
        self._child = self._timer = None

    def _pop(self) -> _Child | None:
        with self._lock:
            child, self._child = self._child, None
            return child

    def _start_timer(self, seconds: float) -> None:
        self._timer = Timer(seconds, self._end_if_idle)
        self._timer.daemon = True
        self._timer.start()

    def _end_if_idle(self) -> None:
        """End the process if it has waited long enough; otherwise start the timer again."""
        child = None
        with self._lock:
            self._timer = None
            remaining = self._since + _IDLE_SECONDS - time.monotonic()
            if self._child is not None and remaining > 0:
                self._start_timer(remaining)
            else:
                child, self._child = self._child, None
        if child is not None:
            child.end()


_spare = _Spare()
atexit.register(_spare.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_spare.forget)


# the child process

_CHARACTERS_PER_MESSAGE = 2**20
"""A message is sent when its documents have at least this many characters."""
_COST_OF_A_DOCUMENT = 32
_SYSTEM_LIMIT_RATIO = 1.25
"""Ratio between the limit of the operating system and the limit that the parent enforces."""


def answer_requests() -> None:
    """Read a file for each command until the parent ends."""
    from polyseme.text.readers.reader import FORMATS  # reader imports this file

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
            with naming_flags(command["flags"]):
                _read_file(FORMATS[command["format"]], source, answers, memory)
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


def _read_file(read: Callable[[Input], Iterator[Document]], source: Input, answers: IO[bytes], memory: _Memory) -> None:
    """Read one file, and send its documents and problems."""
    documents: list[Document] = []
    size = 0
    raised: list[str] | None = None
    try:
        for document in read(source):
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
        "notes": progress.notes,
        "bytes_read": progress.bytes_read,
        "raised": raised,
        "end": end,
        "again": again,
    }
    write_message(answers, json.dumps(message).encode())
    texts = "".join([document.text for document in documents])  # much faster than JSON strings
    write_message(answers, texts.encode("utf-8", "surrogatepass"))
    documents.clear()
    progress.problems, progress.dropped, progress.notes = Problems(), Counter(), Counter()
    progress.bytes_read = 0


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
