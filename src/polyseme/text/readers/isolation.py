"""Messages through a pipe: the length in eight bytes, then so many bytes.

Reading in a process of its own, with bounds on its memory and its time.

PDF, Word, HTML and Parquet files are parsed by large libraries, some of them compiled. A damaged or hostile file can
make them crash, take all memory or never end, and no check before can exclude that; a process can be ended. One process
reads file after file, and is replaced after a file that ended it. It imports the readers alone, so that it starts in a
fraction of a second, and it answers in JSON, whose values are checked: nothing that it sends is run.
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
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate, chain
from threading import Event, Lock, Thread, Timer
from typing import IO, Any

from polyseme.errors import InputError, MissingExtraError
from polyseme.text.readers.documents import Document, Limits, Problem, Problems
from polyseme.text.readers.inputs import Input

_BYTES_OF_LENGTH = 8


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """Raises OSError where nobody reads any more."""
    stream.write(len(content).to_bytes(_BYTES_OF_LENGTH, "little"))
    stream.write(content)
    stream.flush()


def read_frame(stream: IO[bytes], longest: int | None = None) -> bytes | None:
    """The next message; None where there is none, or where it is longer than `longest` bytes."""
    head = stream.read(_BYTES_OF_LENGTH)
    length = int.from_bytes(head, "little")
    if len(head) < _BYTES_OF_LENGTH or (longest is not None and length > longest):
        return None
    content = stream.read(length)
    return content if len(content) == length else None


ISOLATED = {"parquet", "pdf", "docx", "html"}
"""The formats that are read so."""

_START = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import json, sys
sys.path[:] = json.loads(sys.stdin.buffer.readline())
from polyseme.text.readers import child
child.main()
"""
"""Ctrl-C is left to the parent."""

NO_MEMORY = 76
"""The exit code of a process that needs more memory than it may have."""
MISSING_EXTRA = "extra"
_TIME, _MEMORY = "time", "memory"

_CANNOT_START = "PDF, Word, HTML and Parquet files are read in a process of their own, which cannot be started"
_BYTES_OF_A_CHARACTER, _MORE_BYTES = 6, 2**24
"""Most bytes of an answer: JSON writes a character in up to six, and an answer may end with a whole document."""
_WATCH_SECONDS = 0.05
_IDLE_SECONDS = 60.0
"""after which a process that has nothing to read is ended"""


def read_isolated(format: str, source: Input) -> Iterator[Document]:
    """The documents of one file, read by another process; if that crashes or takes too much, the file is a problem."""
    content = None
    if not source.is_plain():
        content = source.whole()
        if content is None:
            return
    child = _spare.take()
    again = False
    try:
        child.ask(format, source, content)
        while True:
            answer = child.answer(source.settings.limits, source.name)
            source.current.problems.merge(answer.problems)
            source.current.dropped.update(answer.dropped)
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
            _spare.keep(child)
        else:
            child.end()


class _Ended(Exception):
    """The process is gone, or did not answer as it should; the reason for people."""


@dataclass(frozen=True)
class _Answer:
    """What has been read since the answer before."""

    documents: list[Document]
    problems: Problems
    dropped: Counter[str]
    bytes_read: int
    raised: Exception | None
    """An error that ends the reading of all files."""
    end: bool
    """Whether this is the last answer about the file."""
    again: bool
    """Whether the process can read another one."""

    @classmethod
    def of(cls, content: bytes, texts: bytes, source: str) -> _Answer:
        """Checked: the process has read what somebody else wrote."""
        try:
            message = json.loads(content)
            raised = message["raised"]
            return cls(
                documents=_documents(message["documents"], texts.decode("utf-8", "surrogatepass"), source),
                problems=Problems.of(
                    {_text(kind): int(count) for kind, count in message["counts"].items()},
                    [Problem(*map(_text, problem)) for problem in message["problems"]],
                ),
                dropped=Counter({_text(why): int(count) for why, count in message["dropped"].items()}),
                bytes_read=int(message["bytes_read"]),
                raised=None if raised is None else _error(*map(_text, raised)),
                end=bool(message["end"]),
                again=bool(message["again"]),
            )
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise _Ended("the process that read it gave an unknown answer") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _documents(columns: dict[str, list[Any]], texts: str, source: str) -> list[Document]:
    """columns : the fields of all documents but the text, and the length of each text in `texts`."""
    ids, titles, labels, times, lengths = (columns[name] for name in ("id", "title", "labels", "time", "length"))
    _check_types(chain(ids, *labels), str)
    _check_types(chain(titles, times), str, type(None))
    _check_types(labels, list)
    _check_types(lengths, int)
    if min(lengths, default=0) < 0 or sum(lengths) != len(texts):
        raise ValueError("the lengths are not those of the texts")
    cut = [texts[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)]
    rows = zip(ids, cut, titles, map(tuple, labels), times, [source] * len(ids), strict=True)
    return list(map(Document._make, rows))


def _check_types(values: Iterable[Any], *types: type) -> None:
    if not set(map(type, values)) <= set(types):
        raise TypeError("a value of another type")


def _error(kind: str, *arguments: str) -> Exception:
    return MissingExtraError(*arguments) if kind == MISSING_EXTRA else InputError(*arguments)


class _Child:
    """One process."""

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
        self._data_before: int | None = None
        try:
            self._commands.write(json.dumps(sys.path).encode() + b"\n")
            self._commands.flush()
            ready = read_frame(self._answers, 2**10) is not None
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

    def ask(self, format: str, source: Input, content: bytes | None) -> None:
        """content : of a file that is compressed or piped; None for a path."""
        self._data_before = data_size(self._process.pid)
        file = source.file
        command = {
            "format": format,
            "path": None if content is not None or file.path is None else os.path.abspath(file.path),
            "name": file.name,
            "label": file.label,
            "size": file.size,
            "settings": asdict(source.settings),
        }
        with suppress(BrokenPipeError):  # the answer, which is none, says why
            write_frame(self._commands, json.dumps(command).encode())
            write_frame(self._commands, content or b"")

    def answer(self, limits: Limits, source: str) -> _Answer:
        """The next answer, if it comes in time."""
        answered = Event()
        watch = Thread(target=self._watch, args=(limits, answered), daemon=True)
        watch.start()
        longest = _BYTES_OF_A_CHARACTER * limits.document + _MORE_BYTES
        try:
            content, texts = read_frame(self._answers, longest), read_frame(self._answers, longest)
        finally:
            answered.set()
        if content is not None and texts is not None:
            return _Answer.of(content, texts, source)
        watch.join()
        self.end()
        code, memory = self._process.returncode, f"{limits.memory / 2**20:,.0f} MiB of memory"
        if self._killed_for == _TIME:
            raise _Ended(f"reading it takes more than {limits.seconds:g} seconds")
        if self._killed_for == _MEMORY or code == NO_MEMORY:
            raise _Ended(f"reading it takes more than {memory}")
        raise _Ended(f"the process that read it ended ({_named(code)}): it is damaged or takes more than {memory}")

    def _watch(self, limits: Limits, answered: Event) -> None:
        """Ends the process where it takes too long or, as far as the system tells, too much memory."""
        end = time.monotonic() + limits.seconds
        while not answered.wait(min(_WATCH_SECONDS, max(0.0, end - time.monotonic()))):
            if time.monotonic() >= end:
                self._killed_for = _TIME
            elif self._data_before is not None:
                now = data_size(self._process.pid)
                if now is not None and now - self._data_before > limits.memory:
                    self._killed_for = _MEMORY
            if self._killed_for:
                self._process.kill()
                return

    def disown(self) -> None:
        """Leaves the process to another one, which has the same pipes."""
        self._answers.close()
        self._commands.close()
        self._process.returncode = 0  # nothing to wait for

    def end(self) -> None:
        self._answers.close()
        with suppress(BrokenPipeError):
            self._commands.close()
        self._process.kill()
        self._process.wait()


def data_size(process: int | str) -> int | None:
    """Bytes of memory that a process has for its data (what RLIMIT_DATA counts); only Linux tells."""
    return status_size(process, "VmData:")


def status_size(process: int | str, name: str) -> int | None:
    """A size, in bytes, that Linux tells about a process ("self" for this one)."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(name)), None)
    except OSError:
        return None


def _named(code: int) -> str:
    """An exit code, or the signal that a negative one is."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"code {code}"


class _Spare:
    """The process that has read a file, for the next one; it is ended after a while without."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._child: _Child | None = None
        self._since = 0.0
        self._timer: Timer | None = None

    def take(self) -> _Child:
        child = self._out()
        if child is not None:
            if child.is_alive():
                return child
            child.end()
        return _Child()

    def keep(self, child: _Child) -> None:
        with self._lock:
            before, self._child, self._since = self._child, child, time.monotonic()
            if self._timer is None:
                self._look_in(_IDLE_SECONDS)
        if before is not None:
            before.end()

    def end(self) -> None:
        child = self._out()
        if child is not None:
            child.end()

    def forget(self) -> None:
        """In a process that was forked: the other process belongs to the parent."""
        self._lock = Lock()
        if self._child is not None:
            self._child.disown()
        self._child = self._timer = None

    def _out(self) -> _Child | None:
        with self._lock:
            child, self._child = self._child, None
            return child

    def _look_in(self, seconds: float) -> None:
        self._timer = Timer(seconds, self._em_step)
        self._timer.daemon = True
        self._timer.start()

    def _em_step(self) -> None:
        child = None
        with self._lock:
            self._timer = None
            left = self._since + _IDLE_SECONDS - time.monotonic()
            if self._child is not None and left > 0:
                self._look_in(left)
            else:
                child, self._child = self._child, None
        if child is not None:
            child.end()


_spare = _Spare()
atexit.register(_spare.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_spare.forget)
