"""The XML parser expat of Python's standard library, with limits against hostile XML."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

MAX_DEPTH = 500
"""Largest depth of nested elements."""


class RefusedXml(Exception):
    """XML that the readers do not accept."""


class XmlParser:
    """Incremental parser that refuses document types, entities, deep nesting and long tags.

    Nested elements need memory, so there are at most MAX_DEPTH levels. A tag or comment has at most `max_token` bytes,
    because expat before version 2.6 parses an unfinished one again with each chunk, which takes quadratic time. Text
    between tags may have any length.

    `handlers` has the methods start(name, attributes), end(name) and characters(text). With `namespaces`, names
    have the form "namespace name".
    """

    def __init__(self, handlers: Any, max_token: int, *, encoding: str | None = None, namespaces: bool = False) -> None:
        self._handlers = handlers
        self._max_token = max_token
        self._depth = 0
        self._fed = 0
        self._token = 0
        self._parser = expat.ParserCreate(encoding, " " if namespaces else None)
        self._parser.buffer_text = True
        self._parser.buffer_size = 2**16
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = handlers.characters
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse

    def feed(self, chunk: bytes) -> None:
        """Parse a chunk.

        Raises expat.ExpatError for damaged XML, RefusedXml, LookupError for an unknown encoding, and the exceptions of
        the handlers.
        """
        self._parser.Parse(chunk, False)
        self._fed += len(chunk)
        # start of the unfinished token; -1 if expat has deferred the parsing
        self._token = max(self._token, self._parser.CurrentByteIndex)
        if self._fed - self._token > self._max_token:
            raise RefusedXml(f"a tag or a comment is longer than {self._max_token} bytes")

    def finish(self) -> None:
        """Parse the end of the document. Raises expat.ExpatError if it is not complete."""
        self._parser.Parse(b"", True)

    @property
    def error_position(self) -> int:
        """Position of the damage in the last chunk."""
        return self._parser.ErrorByteIndex - self._fed

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RefusedXml(f"its elements are nested deeper than {MAX_DEPTH}")
        self._handlers.start(name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handlers.end(name)

    def _refuse(self, *_: object) -> None:
        raise RefusedXml("it declares a document type or entities")
