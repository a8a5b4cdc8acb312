"""Readers of PDF files, with pypdf, and of Word files (.docx), which are XML in a zip archive.

Word files are read with the standard library, so that the sizes of their parts and the depth of their XML are limited
while they are decompressed. (python-docx reads complete parts into memory.)
"""

from __future__ import annotations

import logging
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any
from xml.parsers import expat

from polyseme.errors import MissingExtraError
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
_MOST_OBJECTS, _SEARCHED_BYTES = 1000, 2**30
"""Limits on the search for the root of a damaged PDF file: its objects, and their number times the size of the file."""
_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")


def read_pdf(source: Input) -> Iterator[Document]:
    """Yield all pages as one document."""
    try:
        import pypdf
    except ImportError:
        raise MissingExtraError("Reading PDF files", "files") from None

    with source.seekable() as stream:
        if stream is None:
            return
        try:
            with _silenced("pypdf"):
                reader = pypdf.PdfReader(stream)
                _limit_objects(reader, stream.seek(0, os.SEEK_END))
                if reader.is_encrypted and not reader.decrypt(""):
                    source.problem("refused file", "it is locked by a password")
                    return
                text = _join(source, (page.extract_text() for page in reader.pages))
                title = reader.metadata.title if reader.metadata else None
        except Bomb as error:
            source.problem("refused file", str(error))
            return
        except Exception as error:  # pypdf raises nearly any exception for damaged files; it is reported
            source.problem("damaged file", f"pypdf cannot read it ({type(error).__name__}: {error})")
            return
    yield from _document(source, text, title)


def _limit_objects(reader: Any, size: int) -> None:
    """Limit the number of objects that a PDF file of this size claims to have.

    If a file has no valid root, pypdf searches the whole file for each of them, for example ten thousand times.
    """
    from pypdf.generic import NameObject, NumberObject

    most = min(_MOST_OBJECTS, _SEARCHED_BYTES // max(1, size))
    claimed = reader.trailer.get("/Size")
    if isinstance(claimed, int) and claimed > most:
        reader.trailer[NameObject("/Size")] = NumberObject(most)


def read_docx(source: Input) -> Iterator[Document]:
    """Yield one document: the paragraphs, lists and tables in order, then footnotes and endnotes."""
    with source.seekable() as stream:
        if stream is None:
            return
        try:
            with zipfile.ZipFile(stream) as archive:
                present = {_PARTS[0], *archive.namelist()}  # a file without its main part is damaged
                size = stream.seek(0, os.SEEK_END)
                texts = (_WordPart(source, archive, part, size).text() for part in _PARTS if part in present)
                text = _join(source, texts)
        except Bomb as error:
            source.problem("refused file", str(error))
            return
        except _ARCHIVE_DAMAGE as error:
            source.problem("damaged file", f"it is not a complete Word file ({error})")
            return
    yield from _document(source, text, None)


def _document(source: Input, text: str, title: object) -> Iterator[Document]:
    """Yield the document, or nothing if the text is blank."""
    if text.isspace() or not text:
        source.drop("empty file")
    else:
        yield file_document(source, printable(text).strip(), title if isinstance(title, str) else None)


def _join(source: Input, parts: Iterator[str]) -> str:
    """Join the parts of a text. Raises Bomb if it exceeds the limit of a document."""
    pieces, size = [], 0
    for part in parts:
        size += len(part)
        if size > source.settings.limits.document:
            raise Bomb(f"its text is longer than {source.settings.limits.document} characters")
        pieces.append(part)
    return "\n\n".join(pieces)


@contextmanager
def _silenced(name: str) -> Iterator[None]:
    """Turn off the log of a library, because damage is reported as a problem."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


class _WordPart:
    """Text of one XML part of a Word file, without deleted text and without fallbacks for older programs."""

    def __init__(self, source: Input, archive: zipfile.ZipFile, part: str, file_size: int) -> None:
        self._source = source
        self._archive = archive
        self._part = part
        self._file_size = file_size
        self._pieces: list[str] = []
        self._size = 0
        self._in_text = False
        self._fallbacks = 0

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
        elif "wordprocessingml" not in namespace or self._fallbacks:
            return
        elif tag == "t":
            self._in_text = True
        elif tag == "tab":
            self._add("\t")
        elif tag in ("br", "cr"):
            self._add("\n")

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        namespace, _, tag = name.rpartition(" ")
        if tag == "Fallback":
            self._fallbacks -= 1
        elif "wordprocessingml" in namespace and not self._fallbacks:
            self._in_text = False
            if tag == "p":
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
