"""Reader of Word files (.docx), which are XML in a zip archive.

They are read with the standard library, so that the sizes of their parts and the depth of their XML are limited while
they are decompressed. (python-docx reads complete parts into memory.)
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

from polyseme.text.readers.decoding import PIECE, Bomb, RefusedXml, XmlParser, check_expansion
from polyseme.text.readers.inputs import Document, Input, printable
from polyseme.text.readers.text import file_document

_ARCHIVE_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    expat.ExpatError,
    RefusedXml,
    OSError,
    EOFError,
    LookupError,  # a missing part, or an encoding that Python does not have
    ValueError,
    RuntimeError,
    NotImplementedError,
)
_COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods that Word files use. Python decompresses other methods without a limit on the memory."""
_MAX_TOKEN = 2**24
"""Largest size of a tag in bytes; attributes in old Word files can contain pictures."""
_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_PROPERTIES, _TITLE = "docProps/core.xml", "http://purl.org/dc/elements/1.1/ title"
_HEADINGS = ("Tit", "Ttulo", "Heading", "berschrift")
"""How the ids of styles of headings start in English, German, French, Spanish and Italian versions of Word."""


def read_docx(source: Input) -> Iterator[Document]:
    """Yield one document: the paragraphs, lists and tables in order, then footnotes and endnotes."""
    with source.seekable() as stream:
        if stream is None:
            return
        try:
            with zipfile.ZipFile(stream) as archive:
                present = {_PARTS[0], *archive.namelist()}  # a file without its main part is damaged
                size = stream.seek(0, os.SEEK_END)
                parts = [_WordPart(source, archive, part, size) for part in _PARTS if part in present]
                text = _join(source, (part.text() for part in parts))
                title = _WordPart(source, archive, _PROPERTIES, size).text() if _PROPERTIES in present else ""
        except Bomb as error:
            source.problem("refused file", str(error))
            return
        except _ARCHIVE_DAMAGE as error:
            source.problem("damaged file", f"it is not a complete Word file ({error})")
            return
    if text.isspace() or not text:
        source.drop("empty file")
    else:
        yield file_document(source, printable(text).strip(), title, parts[0].heading)


def _join(source: Input, parts: Iterator[str]) -> str:
    """Join the parts of a text. Raises Bomb if it exceeds the limit of a document."""
    pieces, size = [], 0
    for part in parts:
        size += len(part)
        if size > source.settings.limits.document:
            raise Bomb(f"its text is longer than {source.settings.limits.document} characters")
        pieces.append(part)
    return "\n\n".join(pieces)


class _WordPart:
    """Text of one XML part of a Word file, without deleted text and without fallbacks for older programs.

    heading : the first paragraph with the style of a heading.
    """

    def __init__(self, source: Input, archive: zipfile.ZipFile, part: str, file_size: int) -> None:
        self._source = source
        self._archive = archive
        self._part = part
        self._file_size = file_size
        self._pieces: list[str] = []
        self._size = 0
        self._in_text = False
        self._fallbacks = 0
        self._heading_from: int | None = None
        self.heading = ""

    def text(self) -> str:
        """Parse the part and return its text."""
        if self._archive.getinfo(self._part).compress_type not in _COMPRESSION_METHODS:
            raise zipfile.BadZipFile("it is compressed by a method that Word files do not use")
        parser = XmlParser(self, _MAX_TOKEN, namespaces=True)
        with self._archive.open(self._part) as stream:
            for chunk in self._chunks(stream):
                parser.feed(chunk)
        parser.finish()
        return "".join(self._pieces)

    def _chunks(self, stream: IO[bytes]) -> Iterator[bytes]:
        # the archive may declare any size for its parts, but no part is larger than the file
        compressed = min(self._archive.getinfo(self._part).compress_size, self._file_size)
        expanded = 0
        while chunk := stream.read(PIECE):
            expanded += len(chunk)
            check_expansion(compressed, expanded, self._source.settings.limits)
            yield chunk

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        namespace, _, tag = name.rpartition(" ")
        if tag == "Fallback":
            self._fallbacks += 1
        elif name == _TITLE:
            self._in_text = True
        elif "wordprocessingml" not in namespace or self._fallbacks:
            return
        elif tag == "t":
            self._in_text = True
        elif tag == "pStyle" and not self.heading and attributes.get(f"{namespace} val", "").startswith(_HEADINGS):
            self._heading_from = len(self._pieces)
        elif tag == "tab":
            self._add("\t")
        elif tag in ("br", "cr"):
            self._add("\n")

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        namespace, _, tag = name.rpartition(" ")
        if tag == "Fallback":
            self._fallbacks -= 1
        elif name == _TITLE:
            self._in_text = False
        elif "wordprocessingml" in namespace and not self._fallbacks:
            self._in_text = False
            if tag == "p":
                if self._heading_from is not None:
                    self.heading, self._heading_from = "".join(self._pieces[self._heading_from :]).strip(), None
                self._add("\n")

    def characters(self, text: str) -> None:
        """Handle text."""
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        self._size += len(text)
        if self._size > self._source.settings.limits.document:
            raise Bomb(f"its text is longer than {self._source.settings.limits.document} characters")
        self._pieces.append(text)
