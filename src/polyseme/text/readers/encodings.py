"""Encodings: detection, decoding of a stream in pieces, and division into lines."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from io import StringIO

from polyseme.errors import InputError

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
        found = codecs.lookup(name).name
        "".encode(name)
    except (LookupError, ValueError):
        found = ""
    if not found or found in _NOT_FOR_FILES:
        raise InputError(f"There is no text encoding called {name!r}: try 'utf-8', 'cp1252' or 'utf-16'.")
    return found


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
