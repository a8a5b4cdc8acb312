"""From the bytes of a file to its text: decompression with limits against bombs, encodings, XML with limits.

Compressed files are recognized by their first bytes and decompressed in pieces. Encodings are detected, and streams are
decoded in pieces and divided into lines. The XML parser is expat of Python's standard library.
"""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from io import StringIO
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol
from xml.parsers import expat

from polyseme.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from polyseme.text.readers.inputs import Limits

SUFFIXES = {".gz", ".bz2", ".xz", ".zst"}

PIECE = 2**20
"""Largest number of bytes that one step of a decompressor returns."""

RATIO_JUDGED_FROM = 64 * 2**20
"""The ratio is limited only beyond this many decompressed bytes, because small files may be very repetitive."""

_XZ_MEMORY = 256 * 2**20
"""Memory, in bytes, for an .xz file: four times that of the largest preset. A file may declare 4 GiB."""

MAX_DEPTH = 500
"""Largest depth of nested elements."""

_QUEUE_LENGTH = 4
_QUEUE_SECONDS = 0.1
"""Time after which a thread that waits for space in the queue checks whether it was stopped."""


class DamagedStream(Exception):
    """Compressed data that ends early or is not valid; the data before the damage is good."""


class Bomb(Exception):
    """A file whose content is larger than the limits allow."""


class Decompressor(Protocol):
    """The common interface of the decompressors in Python's bz2, lzma and zstd modules."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """The decompressor of zlib with the interface of the other decompressors."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self._has_output = False

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not (self._has_output or self._inflate.eof)

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self._has_output = len(piece) == max_length or bool(self._inflate.unconsumed_tail)
        return piece


class _Zstd:
    """The decompressor of Python's zstd (from 3.14 on) or its backport, which raises ValueError as the others do."""

    def __init__(self) -> None:
        self._zstd = _zstd_module()
        self._stream = self._zstd.ZstdDecompressor()

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return self._stream.needs_input

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        try:
            return self._stream.decompress(data, max_length)
        except self._zstd.ZstdError as error:
            raise ValueError(error) from None


def _zstd_module() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise MissingExtraError("Reading .zst text", "text")


_MAGIC: dict[bytes, Callable[[], Decompressor]] = {
    b"\x1f\x8b": _Gzip,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=_XZ_MEMORY),
    b"\x28\xb5\x2f\xfd": _Zstd,
}

_DAMAGE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
"""Exceptions of the decompressors for damaged data."""


def check_expansion(compressed: int, expanded: int, limits: Limits) -> None:
    """Raise Bomb if `compressed` bytes expand to more than the limits allow."""
    if expanded > limits.expanded or (expanded > RATIO_JUDGED_FROM and expanded > limits.ratio * compressed):
        raise Bomb(f"{compressed} bytes expand to {expanded} and more, beyond `limits`")


def decompressor_of(head: bytes) -> Callable[[], Decompressor] | None:
    """Return the constructor of the decompressor for a file that starts with these bytes; None if not compressed."""
    return next((make for magic, make in _MAGIC.items() if head.startswith(magic)), None)


def expand(chunks: Iterable[bytes], make: Callable[[], Decompressor], limits: Limits) -> Iterator[bytes]:
    """Yield the decompressed bytes of one or several compressed streams, one after the other.

    Raises DamagedStream or Bomb after all good bytes.
    """
    stream: Decompressor | None = None
    compressed = expanded = 0
    for chunk in chunks:
        compressed += len(chunk)
        while True:
            if stream is None:
                chunk = chunk.lstrip(b"\0")  # streams may be padded with zeros
                if not chunk:
                    break
                stream = make()
            try:
                piece = stream.decompress(chunk, PIECE)
            except _DAMAGE as error:
                raise DamagedStream(f"the compressed data is damaged ({error})") from None
            expanded += len(piece)
            check_expansion(compressed, expanded, limits)
            if piece:
                yield piece
            chunk = b""
            if stream.eof:
                chunk, stream = stream.unused_data, None
            elif stream.needs_input:
                break
    if stream is not None:
        raise DamagedStream("the compressed data ends early")


def prefetch(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same pieces, produced by a thread a few pieces in advance. Exceptions are passed on.

    This saves time because decompressors release the interpreter lock.
    """
    queue: Queue[bytes | Exception | None] = Queue(_QUEUE_LENGTH)
    stopped = Event()

    def put(item: bytes | Exception | None) -> bool:
        while not stopped.is_set():
            try:
                queue.put(item, timeout=_QUEUE_SECONDS)
            except Full:
                continue
            return True
        return False

    def produce() -> None:
        try:
            if all(map(put, pieces)):
                put(None)
        except Exception as error:
            put(error)

    thread = Thread(target=produce, daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()


# encodings

SAMPLE = 2**16
"""Number of bytes that the detection of an encoding uses."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
_MAX_CONTROLS, _MAX_CONTROLS_IN_UTF8 = 0.01, 0.1
"""Largest shares of control characters in a text."""
_FALLBACK = "cp1252"
_NOT_FOR_FILES = {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7"}


def check_encoding(name: str) -> str:
    """Return Python's name of an encoding. Raises InputError if it is unknown or not a text encoding."""
    try:
        encoding = codecs.lookup(name).name
        "".encode(name)
    except (LookupError, ValueError):
        encoding = ""
    if not encoding or encoding in _NOT_FOR_FILES:
        raise InputError(f"There is no text encoding called {name!r}: try 'utf-8', 'cp1252' or 'utf-16'.")
    return encoding


def with_byte_order(encoding: str, head: bytes) -> str:
    """Return the encoding, or its little-endian variant if it needs a byte order mark and there is none."""
    marks = tuple(mark for mark, marked in _BYTE_ORDER_MARKS if marked == encoding)
    return f"{encoding}-le" if encoding in {"utf-16", "utf-32"} and not head.startswith(marks) else encoding


def has_mark(head: bytes) -> bool:
    """Return whether the bytes start with a byte order mark."""
    return any(head.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS)


def detect(head: bytes) -> tuple[str, bool] | None:
    """Return the encoding of the first bytes of a file, and whether it is uncertain; None for a binary file."""
    sample = head[:SAMPLE]
    for mark, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return encoding, False
    if b"\0" in sample:
        wide = _wide_encoding(sample)
        return None if wide is None else (wide, False)
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if _is_utf8(sample):
        return None if controls > _MAX_CONTROLS_IN_UTF8 * len(sample) else ("utf-8", False)
    legacy = None if controls > _MAX_CONTROLS * len(sample) else _detect_legacy(sample)
    return None if legacy is None else (legacy, True)


def _is_utf8(sample: bytes) -> bool:
    """Return whether the bytes, which may end within a character, are UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _wide_encoding(sample: bytes) -> str | None:
    """Detect UTF-16 without a mark by the zero bytes of Latin letters, at even or at odd positions."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) < 0.3 * (len(sample) / 2) or min(even, odd) > 0.05 * max(even, odd):
        return None
    return "utf-16-be" if even > odd else "utf-16-le"


def _detect_legacy(sample: bytes) -> str | None:
    """Detect an 8-bit encoding with chardet; cp1252, the most common one, if chardet is not installed."""
    try:
        import chardet
    except ImportError:
        return _FALLBACK
    name = chardet.detect(sample)["encoding"]
    try:
        return check_encoding(name) if name else None
    except InputError:  # chardet knows encodings that Python does not have
        return None


def decode_all(content: bytes, encoding: str) -> tuple[str, int]:
    """Return the text, and the number of characters that could not be decoded."""
    try:
        return content.decode(encoding), 0
    except UnicodeDecodeError:
        text = content.decode(encoding, errors="replace")
        return text, max(1, text.count("\ufffd"))


def decode(chunks: Iterable[bytes], encoding: str, on_bad: Callable[[int, int], None]) -> Iterator[str]:
    """Yield the text of a stream. Invalid bytes become U+FFFD, and `on_bad` is called with their line and number."""
    strict = codecs.getincrementaldecoder(encoding)("strict")
    lenient = codecs.getincrementaldecoder(encoding)("replace")
    line = 1

    def step(chunk: bytes, final: bool) -> str:
        nonlocal line
        state = strict.getstate()
        try:
            text = strict.decode(chunk, final)
        except UnicodeDecodeError:
            lenient.setstate(state)
            text = lenient.decode(chunk, final)
            strict.setstate(lenient.getstate())
            before = text.partition("\ufffd")[0]
            on_bad(line + before.count("\n"), max(1, text.count("\ufffd")))
        line += text.count("\n")
        return text

    for chunk in chunks:
        yield step(chunk, False)
    yield step(b"", True)


def line_blocks(texts: Iterable[str], longest: int, on_long: Callable[[int], None]) -> Iterator[tuple[int, list[str]]]:
    """Yield lists of lines with their line feeds, each with the number of its first line.

    Only a line feed ends a line. A line longer than `longest` characters becomes an empty string, and `on_long` is
    called with its number.
    """
    number = 1
    pieces: list[str] = []
    length = 0

    def current_line() -> str:
        if length <= longest:
            return "".join(pieces)
        on_long(number)
        return ""

    for text in texts:
        block = list(StringIO(text, newline="\n"))
        if not block:
            continue
        rest = "" if block[-1].endswith("\n") else block.pop()
        if block:
            pieces.append(block[0])
            length += len(block[0])
            block[0] = current_line()
            if len(text) > longest:
                for place, line in enumerate(block):
                    if len(line) > longest:
                        on_long(number + place)
                        block[place] = ""
            yield number, block
            number += len(block)
            pieces, length = [], 0
        length += len(rest)
        if length <= longest:
            pieces.append(rest)
        else:
            pieces.clear()
    if length:
        yield number, [current_line()]


class RefusedXml(Exception):
    """XML that the readers do not accept."""


class XmlParser:
    """Incremental parser that refuses document types, entities, deep nesting and long tags.

    Nested elements need memory, so there are at most MAX_DEPTH levels. A tag or comment has at most `max_token` bytes,
    because expat before version 2.6 parses an unfinished tag again with each chunk, which takes quadratic time. Text
    between tags may have any length.

    `handlers` has the methods start(name, attributes), end(name) and characters(text). With `namespaces`, names
    have the form "namespace name".
    """

    def __init__(self, handlers: Any, max_token: int, *, encoding: str | None = None, namespaces: bool = False) -> None:
        self._handlers = handlers
        self._max_token = max_token
        self._depth = 0
        self._fed = 0
        self._token = 0
        self._parser = expat.ParserCreate(encoding, " " if namespaces else None)
        self._parser.buffer_text = True
        self._parser.buffer_size = 2**16
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = handlers.characters
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse

    def feed(self, chunk: bytes) -> None:
        """Parse a chunk.

        Raises expat.ExpatError for damaged XML, RefusedXml, LookupError for an unknown encoding, and the exceptions of
        the handlers.
        """
        self._parser.Parse(chunk, False)
        self._fed += len(chunk)
        # start of the unfinished token; -1 if expat has deferred the parsing
        self._token = max(self._token, self._parser.CurrentByteIndex)
        if self._fed - self._token > self._max_token:
            raise RefusedXml(f"a tag or a comment is longer than {self._max_token} bytes")

    def finish(self) -> None:
        """Parse the end of the document. Raises expat.ExpatError if it is not complete."""
        self._parser.Parse(b"", True)

    @property
    def error_position(self) -> int:
        """Position of the damage in the last chunk."""
        return self._parser.ErrorByteIndex - self._fed

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RefusedXml(f"its elements are nested deeper than {MAX_DEPTH}")
        self._handlers.start(name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handlers.end(name)

    def _refuse(self, *_: object) -> None:
        raise RefusedXml("it declares a document type or entities")
