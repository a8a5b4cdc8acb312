"""Readers of text files, one document per file or per line, and titles of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from polyseme.text.readers.decoding import decode_all
from polyseme.text.readers.inputs import Document, Input, printable

_GENERIC_NAMES = frozenset({
    "article", "case", "comment", "doc", "document", "email", "entry", "file", "item", "letter", "line", "mail",
    "message", "msg", "note", "number", "page", "paper", "para", "part", "post", "record", "report", "sample", "scan",
    "speech", "story", "text", "txt", "untitled",
})  # fmt: skip
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBERED = re.compile(r"[^\W\d_]+[\W_]*(?!(?:1[89]|20)\d\d$)(?:\d{3,}|0\d+)")
"""A word and a running number, such as "business_007", but not "harvest-17" or "budget 2020"."""
_FILE_NAME = re.compile(
    r"(?i)^(?:microsoft (?:word|powerpoint|excel)\b|(?:powerpoint presentation|slide) ?\d*$)|"
    r"\.(?:docx?|dotx?|odt|rtf|txt|pptx?|xlsx?|pdf|tex|dvi|ps|indd|qxd|pmd|pages|html?|md|wpd|fm)$"
)
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


def file_document(source: Input, text: str, *titles: str) -> Document:
    """Return the document of a whole file. The titles are used where the name of the file says nothing."""
    label = source.file.label
    return Document(
        id=source.name,
        text=text,
        title=title_of(source.name, text, *titles),
        labels=() if label is None else (label,),
        source=source.name,
    )


def title_of(name: str, text: str, *titles: str) -> str:
    """Return the file name without its suffix, the first title, or the first line: the first that says something.

    Names that say nothing are numbers ("491"), generic words ("doc_12"), and a word with a number ("business_007").
    Titles that say nothing are such names, and names of files ("Microsoft Word - draft.doc").
    """
    stem = PurePath(name).stem
    if _says_something(stem):
        return stem
    return stated_title(*titles) or _first_line(text[:_HEADER_CHARACTERS]) or stem


def stated_title(*titles: str) -> str:
    """Return the first title that says something and is not the name of a file; empty if there is none."""
    for title in titles:
        title = " ".join(printable(title).split())
        if _says_something(title) and not _FILE_NAME.search(title):
            return _shortened(title)
    return ""


def _says_something(name: str) -> bool:
    """Return whether a name has a word that is not generic, and is not just a word with a running number."""
    return not _NUMBERED.fullmatch(name) and any(
        len(word) > 1 and word.lower() not in _GENERIC_NAMES for word in _LETTERS.findall(name)
    )


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
        if match := _TITLE_LINE.match(header):
            line = match[1]
            break
    return _shortened(line)


def _shortened(title: str) -> str:
    """Return a title, cut at a word to the maximum length."""
    if len(title) <= _MAX_TITLE_LENGTH:
        return title
    return f"{title[: _MAX_TITLE_LENGTH - 1].rsplit(maxsplit=1)[0]}…"


def read_lines(source: Input) -> Iterator[Document]:
    """Yield each line as a document with its number as id. Blank lines are dropped."""
    name = source.name
    for number, line in source.lines():
        text = line.strip()
        if text:
            yield Document(str(number), text, source=name)
        elif line:
            source.drop("blank line")
