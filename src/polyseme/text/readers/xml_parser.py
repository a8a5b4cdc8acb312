"""expat, the XML parser of Python's standard library, with bounds against hostile XML."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

DEEPEST = 500
"""Most elements within each other."""


class RefusedXml(Exception):
    """XML that no program writes into the files that are read here."""


class XmlParser:
    """Feeds expat a chunk at a time.

    A document type and entities are refused. So is nesting beyond DEEPEST, which costs memory, and a tag or comment
    longer than `longest_token` bytes: expat before version 2.6 reads an unfinished one again with each chunk, which
    takes quadratic time. Text between tags may have any length.
    """

    def __init__(self, handlers: Any, longest_token: int, *, encoding: str | None = None, spaces: bool = False) -> None:
        """handlers : has the methods start(name, attributes), end(name) and characters(text).

        spaces : whether names have the namespace and a blank before them.
        """
        self._handlers = handlers
        self._longest_token = longest_token
        self._depth = 0
        self._fed = 0
        self._token = 0
        self._parser = expat.ParserCreate(encoding, " " if spaces else None)
        self._parser.buffer_text = True
        self._parser.buffer_size = 2**16
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = handlers.characters
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse

    def feed(self, chunk: bytes) -> None:
        """Raises expat.ExpatError for damaged XML, RefusedXml, LookupError for an unknown encoding, and what handlers
        raise."""
        self._parser.Parse(chunk, False)
        self._fed += len(chunk)
        # where the token begins that is being read; -1 if expat has put the parsing off
        self._token = max(self._token, self._parser.CurrentByteIndex)
        if self._fed - self._token > self._longest_token:
            raise RefusedXml(f"a tag or a comment is longer than {self._longest_token} bytes")

    def finish(self) -> None:
        self._parser.Parse(b"", True)

    @property
    def error_position(self) -> int:
        """Where in the last chunk the XML is damaged."""
        return self._parser.ErrorByteIndex - self._fed

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise RefusedXml(f"its elements are nested deeper than {DEEPEST}")
        self._handlers.start(name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handlers.end(name)

    def _refuse(self, *_: object) -> None:
        raise RefusedXml("it declares a document type or entities")
