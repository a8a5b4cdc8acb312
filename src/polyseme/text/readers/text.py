"""Readers of plain text: one document per file, or one document per line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from polyseme.text.readers.encodings import decode_all
from polyseme.text.readers.inputs import Document, Input

_GENERIC_NAMES = frozenset({
    "article", "case", "comment", "doc", "document", "email", "entry", "file", "item", "letter", "line", "mail",
    "message", "msg", "note", "number", "page", "paper", "para", "part", "post", "record", "report", "sample", "scan",
    "speech", "story", "text", "txt", "untitled",
})  # fmt: skip
_LETTERS = re.compile(r"[^\W\d_]+")
_HEADER_LINE = re.compile(r"[A-Za-z][A-Za-z-]*:(?:\s|$)")
_TITLE_LINE = re.compile(r"(?i)(?:subject|title):\s*(\S.*)")
_HEADER_CHARACTERS = 4000
_MAX_TITLE_LENGTH = 80


def read_file(source: Input) -> Iterator[Document]:
    """Yield the whole file as one document. Its title is the name of the file, its label the folder."""
    content = source.whole()
    if content is None:
        return
    encoding = source.encoding_of(content)
    if encoding is None:
        return
    text, bad = decode_all(content, encoding)
    if bad:
        source.problem("undecodable bytes", f"bytes that are not {encoding} were replaced by U+FFFD", times=bad)
    if not text or text.isspace():
        source.drop("empty file")
        return
    yield file_document(source, text)


def file_document(source: Input, text: str, title: str | None = None) -> Document:
    """Return the document of a whole file."""
    label = source.file.label
    return Document(
        id=source.name,
        text=text,
        title=title or title_of(source.name, text),
        labels=() if label is None else (label,),
        source=source.name,
    )


def title_of(name: str, text: str) -> str:
    """Return the file name without its suffix; the first line of the text if the name is generic ("491", "doc_12")."""
    stem = PurePath(name).stem
    if any(len(word) > 1 and word.lower() not in _GENERIC_NAMES for word in _LETTERS.findall(stem)):
        return stem
    return _first_line(text[:_HEADER_CHARACTERS]) or stem


def _first_line(text: str) -> str:
    """Return the first line with a letter, or the subject of a message with headers, cut to the maximum length."""
    lines = [line.strip() for line in text.splitlines()]
    first = next((number for number, line in enumerate(lines) if _LETTERS.search(line)), None)
    if first is None:
        return ""
    line = lines[first]
    for header in lines[first:]:
        if not _HEADER_LINE.match(header):
            break
        if found := _TITLE_LINE.match(header):
            line = found[1]
            break
    if len(line) <= _MAX_TITLE_LENGTH:
        return line
    return f"{line[: _MAX_TITLE_LENGTH - 1].rsplit(maxsplit=1)[0]}…"


def read_lines(source: Input) -> Iterator[Document]:
    """Yield each line as a document with its number as id. Blank lines are dropped."""
    name = source.name
    for number, line in source.lines():
        text = line.strip()
        if text:
            yield Document(str(number), text, source=name)
        elif line:
            source.drop("blank line")
