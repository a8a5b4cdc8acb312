"""Work on a stream in a thread of its own, a few pieces ahead of who takes them.

Compressed files, recognized by their first bytes and expanded a piece at a time.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Protocol

from polyseme.errors import MissingExtraError
from polyseme.text.readers.documents import Limits

_DEPTH = 4
_PATIENCE = 0.1
"""Seconds after which a thread that nobody takes from looks whether it is still wanted."""


def prefetch(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces and the same exception, made while the taker is busy; decompressors let other threads run."""
    made: Queue[bytes | Exception | None] = Queue(_DEPTH)
    unwanted = Event()

    def hand_over(item: bytes | Exception | None) -> bool:
        while not unwanted.is_set():
            try:
                made.put(item, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            if all(map(hand_over, pieces)):
                hand_over(None)
        except Exception as error:
            hand_over(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        unwanted.set()
        thread.join()


PIECE = 2**20
"""Most bytes that one step of a decompressor gives."""

RATIO_JUDGED_FROM = 64 * 2**20
"""Small files may be very repetitive: the ratio counts from here on."""


XZ_MEMORY = 256 * 2**20
"""Bytes that expanding an .xz file may take: four times those of the largest preset. A file may declare 4 GiB."""


class DamagedStream(Exception):
    """The compressed bytes end early or are no longer valid; what came before them is good."""


class Bomb(Exception):
    """The file expands beyond the limits."""


class Decompressor(Protocol):
    """The interface that Python's bz2, lzma and zstd modules share."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's decompressor with that interface."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self._holds_back = False

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not (self._holds_back or self._inflate.eof)

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self._holds_back = len(piece) == max_length or bool(self._inflate.unconsumed_tail)
        return piece


class _Zstd:
    """The zstd of Python's own library (from 3.14 on) or of its backport, with errors as the others have them."""

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
    b"\xfd7zXZ\x00": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=XZ_MEMORY),
    b"\x28\xb5\x2f\xfd": _Zstd,
}

_DAMAGE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)

SUFFIXES = {".gz", ".bz2", ".xz", ".zst"}


def check_expansion(taken: int, given: int, limits: Limits) -> None:
    """Raises Bomb where so many bytes expand to more than the limits allow."""
    if given > limits.expanded or (given > RATIO_JUDGED_FROM and given > limits.ratio * taken):
        raise Bomb(f"{taken} bytes expand to {given} and more, beyond `limits`")


def decompressor_of(head: bytes) -> Callable[[], Decompressor] | None:
    """What expands a file that starts with these bytes; None for a file that is not compressed."""
    return next((make for magic, make in _MAGIC.items() if head.startswith(magic)), None)


def expand(chunks: Iterable[bytes], make: Callable[[], Decompressor], limits: Limits) -> Iterator[bytes]:
    """The bytes of a compressed stream, which may be several compressed streams one after another.

    Raises DamagedStream or Bomb after all good bytes have been given.
    """
    stream: Decompressor | None = None
    taken = given = 0
    for chunk in chunks:
        taken += len(chunk)
        while True:
            if stream is None:
                chunk = chunk.lstrip(b"\0")  # zeros may pad a stream
                if not chunk:
                    break
                stream = make()
            try:
                piece = stream.decompress(chunk, PIECE)
            except _DAMAGE as error:
                raise DamagedStream(f"the compressed data is damaged ({error})") from None
            given += len(piece)
            check_expansion(taken, given, limits)
            if piece:
                yield piece
            chunk = b""
            if stream.eof:
                chunk, stream = stream.unused_data, None
            elif stream.needs_input:
                break
    if stream is not None:
        raise DamagedStream("the compressed data ends early")
