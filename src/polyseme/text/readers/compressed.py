"""Compressed files: recognized by their first bytes, decompressed in pieces, with limits against bombs."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol

from polyseme.errors import MissingExtraError

if TYPE_CHECKING:
    from polyseme.text.readers.inputs import Limits

SUFFIXES = {".gz", ".bz2", ".xz", ".zst"}

PIECE = 2**20
"""Largest number of bytes that one step of a decompressor returns."""

RATIO_JUDGED_FROM = 64 * 2**20
"""Decompressed bytes from which on the ratio is limited, because small files may be very repetitive."""

_XZ_MEMORY = 256 * 2**20
"""Memory, in bytes, for an .xz file: four times that of the largest preset. A file may declare 4 GiB."""

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
    """The decompressor of zlib with the interface of the others."""

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
    """The decompressor of Python's zstd (from 3.14 on) or of its backport, with the exceptions of the others."""

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
    raise MissingExtraError("Reading .zst files", "files")


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
    """Return what makes a decompressor for a file that starts with these bytes; None if it is not compressed."""
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
