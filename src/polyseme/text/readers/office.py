"""PDF files, by pypdf, and Word files (.docx), which are XML in a zip archive."""

from __future__ import annotations

import logging
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO
from xml.parsers import expat

from polyseme.errors import MissingExtraError
from polyseme.text.readers.compressed import PIECE, Bomb, check_expansion
from polyseme.text.readers.documents import Document
from polyseme.text.readers.inputs import Input
from polyseme.text.readers.text import file_document
from polyseme.text.readers.xml_parser import RefusedXml, XmlParser

_ARCHIVE_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    expat.ExpatError,
    RefusedXml,
    OSError,
    EOFError,
    LookupError,  # a part that is not there, or an encoding that Python does not have
    ValueError,
    RuntimeError,
    NotImplementedError,
)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Those of Word files. Python expands the others without a bound on the memory."""
_LONGEST_TOKEN = 2**24
"""Bytes; pictures can be in attributes of old Word files."""


def read_pdf(source: Input) -> Iterator[Document]:
    """All pages as one document."""
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
                if reader.is_encrypted and not reader.decrypt(""):
                    source.problem("refused file", "it is locked by a password")
                    return
                text = _joined(source, (page.extract_text() for page in reader.pages))
                title = reader.metadata.title if reader.metadata else None
        except Bomb as error:
            source.problem("refused file", str(error))
            return
        except Exception as error:  # a damaged PDF makes pypdf raise nearly anything; it is named, not hidden
            source.problem("damaged file", f"pypdf cannot read it ({type(error).__name__}: {error})")
            return
    yield from _document(source, text, title)


def read_docx(source: Input) -> Iterator[Document]:
    """The paragraphs, lists and tables of a Word file in their order, and its notes after them."""
    with source.seekable() as stream:
        if stream is None:
            return
        try:
            with zipfile.ZipFile(stream) as archive:
                parts = ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml"]
                present = set(archive.namelist())
                size = stream.seek(0, os.SEEK_END)
                words = (
                    _Words(source, archive, part, size).text() for part in parts if part in present or part == parts[0]
                )
                text = _joined(source, words)
        except Bomb as error:
            source.problem("refused file", str(error))
            return
        except _ARCHIVE_DAMAGE as error:
            source.problem("damaged file", f"it is no whole Word file ({error})")
            return
    yield from _document(source, text, None)


def _document(source: Input, text: str, title: object) -> Iterator[Document]:
    if text.isspace() or not text:
        source.drop("empty file")
    else:
        # a PDF may hold half characters, which no encoding can write
        text = text.encode("utf-8", "replace").decode("utf-8")
        yield file_document(source, text.strip(), title if isinstance(title, str) else None)


def _joined(source: Input, parts: Iterator[str]) -> str:
    pieces, size = [], 0
    for part in parts:
        size += len(part)
        if size > source.settings.limits.document:
            raise Bomb(f"its text is longer than {source.settings.limits.document} characters")
        pieces.append(part)
    return "\n\n".join(pieces)


@contextmanager
def _silenced(name: str) -> Iterator[None]:
    """What a library logs about a damaged file is told once, as a problem."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Words:
    """The text of one part of a Word file, without deleted text and without what older programs would show instead."""

    def __init__(self, source: Input, archive: zipfile.ZipFile, part: str, file_size: int) -> None:
        self._corpus = source
        self._archive = archive
        self._part = part
        self._file_size = file_size
        self._pieces: list[str] = []
        self._size = 0
        self._in_text = False
        self._fallbacks = 0

    def text(self) -> str:
        if self._archive.getinfo(self._part).compress_type not in _METHODS:
            raise zipfile.BadZipFile("it is compressed by a method that Word files do not use")
        parser = XmlParser(self, _LONGEST_TOKEN, spaces=True)
        with self._archive.open(self._part) as stream:
            for chunk in self._chunks(stream):
                parser.feed(chunk)
        parser.finish()
        return "".join(self._pieces)

    def _chunks(self, stream: IO[bytes]) -> Iterator[bytes]:
        # the archive may declare any size for its parts: none is larger than the file
        packed = min(self._archive.getinfo(self._part).compress_size, self._file_size)
        given = 0
        while chunk := stream.read(PIECE):
            given += len(chunk)
            check_expansion(packed, given, self._corpus.settings.limits)
            yield chunk

    def start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, tag = name.rpartition(" ")
        if tag == "Fallback":
            self._fallbacks += 1
        elif "wordprocessingml" not in space or self._fallbacks:
            return
        elif tag == "t":
            self._in_text = True
        elif tag == "tab":
            self._add("\t")
        elif tag in ("br", "cr"):
            self._add("\n")

    def end(self, name: str) -> None:
        space, _, tag = name.rpartition(" ")
        if tag == "Fallback":
            self._fallbacks -= 1
        elif "wordprocessingml" in space and not self._fallbacks:
            self._in_text = False
            if tag == "p":
                self._add("\n")

    def characters(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        self._size += len(text)
        if self._size > self._corpus.settings.limits.document:
            raise Bomb(f"its text is longer than {self._corpus.settings.limits.document} characters")
        self._pieces.append(text)
