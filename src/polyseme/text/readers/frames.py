"""Messages through a pipe: the length in eight bytes, then so many bytes."""

from __future__ import annotations

from typing import IO

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
