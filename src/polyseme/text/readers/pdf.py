"""Reader of PDF files, with PDFium.

PDFium gives characters with their boxes, in reading order and divided into lines. A PDF file often has no characters
for spaces, so words are divided where the gap between two characters is wide enough. Then lines that repeat at the top
or bottom of pages are removed, lines are joined to paragraphs, and words that were divided at the ends of lines are
joined.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise, takewhile
from statistics import median
from typing import Any, NamedTuple

from polyseme.errors import MissingExtraError
from polyseme.text.readers.decoding import Bomb
from polyseme.text.readers.inputs import SCANNED_PAGES, Document, Input, printable
from polyseme.text.readers.text import file_document

_WORD_GAP, _SPACE = 0.1, 0.05
"""Smallest gaps between two words without and with a space in the file, as shares of the height of a line.

Some programs write spaces and move back over them.
"""
_HYPHENS = "-\u2010\xad"
_PDFIUM_HYPHENS = {"\x02", "\ufffe"}
"""What PDFium returns for a hyphen at the end of a line; it then leaves out the end of the line."""
_LIGATURES = ("ff", "fi", "fl", "ffi", "ffl", "st", "st")
_CLEANED = dict(enumerate(_LIGATURES, 0xFB00)) | dict.fromkeys((*range(9), *range(11, 32), 127), " ")
"""Ligatures to letters, and control characters to spaces."""
_EDGE_LINES = 3
"""Number of lines at the top and at the bottom of a page that can be headers and footers."""
_LEADING, _HEIGHT = 1.2, 0.15
"""Lines of a paragraph are at most this times the usual distance apart, and differ at most by this share in height."""
_DIVIDED = re.compile(rf"(?P<start>[^\W\d_]+)(?P<hyphen>[{_HYPHENS}])\n(?P<end>[^\W\d_]+)")
_WORD = re.compile(rf"[^\W\d_]+(?:[{_HYPHENS}][^\W\d_]+)*")
_NUMBER = re.compile(r"\d+")
_SENTENCE_END = (".", "!", "?", ":", ";", "”", '"', ")")
_SCANNED = "(scanned images; recognize them with an OCR program, for example ocrmypdf)"


class _Line(NamedTuple):
    """A line of a page with its place."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    first_word: float
    """Width of the first word."""


def read_pdf(source: Input) -> Iterator[Document]:
    """Yield all pages as one document."""
    try:
        import pypdfium2
    except ImportError:
        raise MissingExtraError("Reading PDF files", "text") from None

    pages: list[list[_Line]] = []
    shows_something: list[bool] = []
    with source.seekable() as stream:
        if stream is None:
            return
        try:
            with closing(pypdfium2.PdfDocument(stream)) as file:
                size = 0
                for page in file:
                    lines = _read_page(page)
                    shows_something.append(pypdfium2.raw.FPDFPage_CountObjects(page) > 0)
                    page.close()
                    size += sum(len(line.text) for line in lines)
                    if size > source.settings.limits.document:
                        raise Bomb(f"its text is longer than {source.settings.limits.document} characters")
                    pages.append(lines)
                title = file.get_metadata_value("Title")
        except Bomb as error:
            source.problem("refused file", str(error))
            return
        except pypdfium2.PdfiumError as error:
            if "password" in str(error).lower():
                source.problem("refused file", "it is locked by a password")
            else:
                source.problem("damaged file", f"PDFium cannot read it ({str(error).rstrip('.')})")
            return
    number = len(pages)
    kept = _without_running_lines(pages)
    pictures = sum(shows and not _has_words(page) for shows, page in zip(shows_something, kept, strict=True))
    if any(map(_has_words, kept)):
        if pictures:
            have = "has" if pictures == 1 else "have"
            source.problem(SCANNED_PAGES, f"{pictures} of {number} pages {have} no text {_SCANNED}")
        yield file_document(source, printable(_join_lines(kept)), title)
    elif pictures:
        pages_have = "its only page has no text" if number == 1 else f"none of its {number} pages has text"
        source.problem("scanned file", f"{pages_have} {_SCANNED}")
    else:
        source.drop("empty file")


def _read_page(page: Any) -> list[_Line]:
    """Return the lines of a page."""
    from pypdfium2 import raw

    text_page = page.get_textpage()
    lines: list[_Line] = []
    characters: list[tuple[str, Any]] = []
    for place in range(raw.FPDFText_CountChars(text_page)):
        character = chr(raw.FPDFText_GetUnicode(text_page, place))
        if character == "\n":
            lines += _make_line(characters)
            characters = []
        elif character.isspace():
            characters.append(("", None) if raw.FPDFText_IsGenerated(text_page, place) else (" ", None))
        else:
            box = raw.FS_RECTF()
            raw.FPDFText_GetLooseCharBox(text_page, place, box)
            if character in _PDFIUM_HYPHENS:
                lines += _make_line([*characters, ("-", box)])
                characters = []
            else:
                characters.append((character, box))
    lines += _make_line(characters)
    text_page.close()
    return lines


def _has_words(page: Sequence[_Line]) -> bool:
    """Return whether a page has letters or digits."""
    return any(map(str.isalnum, "".join(line.text for line in page)))


def _make_line(characters: Sequence[tuple[str, Any]]) -> Iterator[_Line]:
    """Yield the line of these characters, divided into words by the gaps between them, if there are any.

    A character without a box is a space: " " if the file has it, "" if PDFium guesses it. Guesses are used only where
    text is not horizontal.
    """
    pieces: list[str] = []
    boxes: list[Any] = []
    first_word = 0.0
    spaces: set[str] = set()
    for character, box in characters:
        if box is None:
            spaces.add(character)
            continue
        if boxes:
            last = boxes[-1]
            is_horizontal = box.left >= last.left and min(box.top, last.top) > max(box.bottom, last.bottom)
            least = (_SPACE if " " in spaces else _WORD_GAP) * max(box.top - box.bottom, last.top - last.bottom)
            if box.left - last.right > least if is_horizontal else spaces:
                pieces.append(" ")
                first_word = first_word or last.right - boxes[0].left
        pieces.append(character)
        boxes.append(box)
        spaces = set()
    text = "".join(pieces).translate(_CLEANED).strip()
    if text:
        left, right = min(box.left for box in boxes), max(box.right for box in boxes)
        bottom, top = min(box.bottom for box in boxes), max(box.top for box in boxes)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield _Line(text, left, bottom, right, top, first_word or right - left)


def _join_lines(pages: Sequence[Sequence[_Line]]) -> str:
    """Return the text of pages: lines are joined to paragraphs, and divided words to words."""
    pieces: list[str] = []
    last: _Line | None = None
    for page in pages:
        for block in _blocks(page):
            edge = max(line.right for line in block)
            for place, line in enumerate(block):
                if last is not None:
                    is_divided = last.text[-1] in _HYPHENS and line.text[0].isalpha()
                    if place:  # the first word had no room in the line before
                        continues = is_divided or last.right + line.first_word > edge
                    else:
                        continues = line.text[0].islower() and not last.text.endswith(_SENTENCE_END)
                    pieces.append("\n\n" if not continues else "\n" if is_divided else " ")
                pieces.append(line.text)
                last = line
    return _join_words("".join(pieces))


def _blocks(page: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield lines of about the same height that lie below each other at the usual distance or less."""
    distances = [upper.bottom - lower.bottom for upper, lower in pairwise(page) if upper.bottom > lower.bottom]
    farthest = _LEADING * median(distances) if distances else 0.0
    block: list[_Line] = []
    for line in page:
        if block:
            last = block[-1]
            height, last_height = line.top - line.bottom, last.top - last.bottom
            is_below = last.bottom - farthest <= line.bottom < last.bottom
            is_beside = line.left >= last.right or last.left >= line.right
            if not is_below or is_beside or abs(height - last_height) > _HEIGHT * max(height, last_height):
                yield block
                block = []
        block.append(line)
    if block:
        yield block


def _without_running_lines(pages: Sequence[Sequence[_Line]]) -> Sequence[Sequence[_Line]]:
    """Return pages without headers and footers; all lines if nothing else is left.

    These are lines at the top or bottom that are, apart from their numbers, on at least half of the odd or of the even
    pages, and on at least two pages.
    """
    kept = [list(page) for page in pages]
    for is_top in (True, False):
        edges = [sorted(page, key=lambda line: line.bottom, reverse=is_top)[:_EDGE_LINES] for page in pages]
        keys = [{_NUMBER.sub("#", line.text) for line in edge} for edge in edges]
        everywhere = Counter(key for page in keys for key in page)
        running: set[str] = set()
        for same_side in (keys[::2], keys[1::2]):
            counts = Counter(key for page in same_side for key in page)
            running |= {key for key in counts if everywhere[key] > 1 and 2 * counts[key] >= len(same_side)}
        for place, edge in enumerate(edges):
            lines = {line for line in edge if _NUMBER.sub("#", line.text) in running}
            removed = set(takewhile(lines.__contains__, edge))
            kept[place] = [line for line in kept[place] if line not in removed]
    return kept if any(kept) else pages


def _join_words(text: str) -> str:
    """Join words that are divided by a hyphen and the end of a line; a hyphen of the word itself is kept.

    The rest of the document shows which is right. If it has neither form, a hyphen between two words of the document
    and one before a capital letter are kept.
    """
    words = {word.casefold() for word in _WORD.findall(_DIVIDED.sub(" ", text))}

    def join(match: re.Match[str]) -> str:
        start, end = match["start"], match["end"]
        joined, compound = f"{start}{end}", f"{start}-{end}"
        if joined.casefold() in words:
            return joined
        is_name = end[0].isupper() and not start.isupper()
        if compound.casefold() in words or is_name or {start.casefold(), end.casefold()} <= words:
            return compound
        return joined

    return _DIVIDED.sub(join, text).replace("\xad", "")
