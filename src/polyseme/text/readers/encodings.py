"""From bytes to text: which encoding, and decoding a stream a piece at a time."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from io import StringIO

from polyseme.errors import InputError

SAMPLE = 2**16
"""Bytes that an encoding is judged by."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
_MOST_CONTROLS, _MOST_CONTROLS_IN_UTF8 = 0.01, 0.1
_FALLBACK = "cp1252"
_NOT_OF_FILES = {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7"}


def check_encoding(name: str) -> str:
    """The encoding's own name; one that Python does not know, or that is no text, is refused."""
    try:
        found = codecs.lookup(name).name
        "".encode(name)
    except (LookupError, ValueError):
        found = ""
    if not found or found in _NOT_OF_FILES:
        raise InputError(f"There is no text encoding called {name!r}: try 'utf-8', 'cp1252' or 'utf-16'.")
    return found


def with_byte_order(encoding: str, head: bytes) -> str:
    """The encoding itself, but little-endian where it asks for a byte order mark that is not there."""
    marks = tuple(mark for mark, marked in _BYTE_ORDER_MARKS if marked == encoding)  # that of UTF-16 is none of UTF-32
    return f"{encoding}-le" if encoding in {"utf-16", "utf-32"} and not head.startswith(marks) else encoding


def has_mark(head: bytes) -> bool:
    """Whether the bytes start with a byte order mark."""
    return any(head.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS)


def detect(head: bytes) -> tuple[str, bool] | None:
    """The encoding that a file's first bytes are in, and whether that is a guess; None for a binary file."""
    sample = head[:SAMPLE]
    for mark, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return encoding, False
    if b"\0" in sample:
        wide = _wide_encoding(sample)
        return None if wide is None else (wide, False)
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if _is_utf8(sample):
        return None if controls > _MOST_CONTROLS_IN_UTF8 * len(sample) else ("utf-8", False)
    guess = None if controls > _MOST_CONTROLS * len(sample) else _guess(sample)
    return None if guess is None else (guess, True)


def _is_utf8(sample: bytes) -> bool:
    """Whether these bytes, which may end within a character, are UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _wide_encoding(sample: bytes) -> str | None:
    """UTF-16 without a mark: the zeros of its Latin letters stand at even places or at odd ones."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) < 0.3 * (len(sample) / 2) or min(even, odd) > 0.05 * max(even, odd):
        return None
    return "utf-16-be" if even > odd else "utf-16-le"


def _guess(sample: bytes) -> str | None:
    """By chardet where it is installed, else the commonest of the old encodings."""
    try:
        import chardet
    except ImportError:
        return _FALLBACK
    name = chardet.detect(sample)["encoding"]
    try:
        return check_encoding(name) if name else None
    except InputError:  # an encoding that this Python does not have
        return None


def decode_all(content: bytes, encoding: str) -> tuple[str, int]:
    """A whole text, and how many characters of it could not be decoded."""
    try:
        return content.decode(encoding), 0
    except UnicodeDecodeError:
        text = content.decode(encoding, errors="replace")
        return text, max(1, text.count("\ufffd"))


def decode(chunks: Iterable[bytes], encoding: str, on_bad: Callable[[int, int], None]) -> Iterator[str]:
    """The text of a stream; bytes that are no text become U+FFFD: ``on_bad`` is told about which line, and how many."""
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
    """The lines, with their line feeds, in lists as long as the pieces of text, each with its first line's number.

    Only a line feed ends a line. A line longer than ``longest`` characters becomes an empty string, and ``on_long`` is
    told its number.
    """
    number = 1
    pieces: list[str] = []
    length = 0

    def finished() -> str:
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
            block[0] = finished()
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
        yield number, [finished()]
