"""MediaWiki XML dumps: the articles, as prose with their categories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from xml.parsers import expat

from polyseme.errors import InputError
from polyseme.text.readers.documents import Document
from polyseme.text.readers.encodings import check_encoding, decode, with_byte_order
from polyseme.text.readers.inputs import Input
from polyseme.text.readers.wikitext import Wikitext
from polyseme.text.readers.xml_parser import RefusedXml, XmlParser

ARTICLES, FILES, CATEGORIES = 0, 6, 14
"""Numbers of namespaces, the same in every wiki."""

_MOST_DAMAGED_PAGES = 1000
_MOST_NAMESPACES = 1000
_LONGEST_TOKEN = 2**20
_REDIRECT = re.compile(r"\s*+#redirect\b", re.IGNORECASE)
_REDIRECT_IN_ANY_LANGUAGE = re.compile(r"\s*+#\s?+\w++\s*+:?\s*+\[\[[^\[\]\n]++\]\]")
_KNOWN_TO_EXPAT = {"utf-8", "utf-16-le", "utf-16-be"}
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_DECLARED = re.compile(rb"<\?xml[^<>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_WORD = re.compile(r"\w")


def read_wiki(source: Input) -> Iterator[Document]:
    """The articles of a dump that are no redirects, have words and have a category; the others are counted."""
    dump = _Dump(source)
    markup: Wikitext | None = None
    for page in dump.pages():
        if page.namespace(dump.namespaces) != ARTICLES:
            source.drop("page of another namespace")
        elif page.is_redirect():
            source.drop("redirect")
        elif page.model not in ("", "wikitext"):
            source.drop("page that is no wikitext")
        else:
            if markup is None:
                markup = Wikitext(dump.names_of(CATEGORIES), dump.names_of(FILES))
            text, categories = markup.prose(page.text)
            if not _WORD.search(text):
                source.drop("empty page")
            elif not (categories or source.settings.uncategorized):
                source.drop("page without a category")
            else:
                yield Document(page.id, text, page.title, categories, page.timestamp or None, source.name)


@dataclass
class _WikiPage:
    title: str = ""
    ns: str = ""
    id: str = ""
    text: str = ""
    timestamp: str = ""
    model: str = ""
    redirect: bool = False
    too_large: bool = False

    def namespace(self, names: dict[str, int]) -> int:
        """By its number, or by its title where the dump is older than the numbers."""
        if self.ns:
            return _number(self.ns)
        prefix, colon, _ = self.title.partition(":")
        return names.get(prefix.casefold(), ARTICLES) if colon else ARTICLES

    def is_redirect(self) -> bool:
        """By its own element; dumps that are older than the numbers of namespaces have only the text to tell."""
        pattern = _REDIRECT if self.ns else _REDIRECT_IN_ANY_LANGUAGE
        return self.redirect or pattern.match(self.text) is not None


def _number(text: str) -> int:
    """The number of a namespace; what is none counts as an article's."""
    return int(text) if _NUMBER.fullmatch(text) else ARTICLES


@dataclass
class _Dump:
    """The pages of a dump, by an XML parser that is fed a chunk at a time.

    After XML that is damaged, reading goes on at the next page.
    """

    source: Input
    namespaces: dict[str, int] = field(default_factory=dict)

    def names_of(self, number: int) -> list[str]:
        return [name for name, key in self.namespaces.items() if key == number]

    def pages(self) -> Iterator[_WikiPage]:
        try:
            yield from self._pages()
        except RefusedXml as error:
            self.source.problem("refused file", str(error))

    def _pages(self) -> Iterator[_WikiPage]:
        limit = self.source.settings.limits.document
        chunks, encoding = self._decoded()
        parser: _Parser | None = _Parser(encoding, self.namespaces, limit)
        lost = b""
        damaged = 0
        for chunk in chunks:
            while chunk:
                if parser is None:
                    chunk = lost + chunk
                    at = chunk.find("<page>".encode(encoding))
                    if at < 0:
                        lost = chunk[-64:]
                        break
                    parser = _Parser(encoding, self.namespaces, limit)
                    parser.feed("<mediawiki>".encode(encoding))
                    chunk, lost = chunk[at:], b""
                error = parser.feed(chunk)
                yield from self._whole(parser.take())
                if error is None:
                    break
                damaged += 1
                self.source.problem("damaged page", error.what)
                if damaged == _MOST_DAMAGED_PAGES:
                    self.source.problem("damaged file", f"it was given up after {damaged} damaged pages")
                    return
                chunk, parser = chunk[error.at :], None
        if parser is not None and (error := parser.finish()):
            self.source.problem("damaged file", f"it ends early ({error.what})")

    def _decoded(self) -> tuple[Iterator[bytes], str]:
        """The dump in an encoding that expat knows by itself, and its name."""
        chunks = self.source.chunks()
        head = next(chunks, b"")
        chunks = chain([head], chunks)
        encoding = self.source.settings.encoding or _encoding_of(head)
        if encoding in _KNOWN_TO_EXPAT:
            return chunks, encoding

        def bad_bytes(line: int, count: int) -> None:
            self.source.problem("undecodable bytes", f"bytes that are no {encoding} became U+FFFD", line, count)

        texts = decode(chunks, with_byte_order(encoding, head), bad_bytes)
        return (text.encode() for text in texts), "utf-8"

    def _whole(self, pages: list[_WikiPage]) -> Iterator[_WikiPage]:
        for page in pages:
            if page.too_large:
                self.source.problem("damaged page", f"{page.title!r} is larger than a document may be")
            else:
                yield page


def _encoding_of(head: bytes) -> str:
    """By the first bytes or by what they declare."""
    if head.startswith((b"\xff\xfe", b"<\0")):
        return "utf-16-le"
    if head.startswith((b"\xfe\xff", b"\0<")):
        return "utf-16-be"
    declared = _DECLARED.match(head.removeprefix(b"\xef\xbb\xbf"))
    try:
        return check_encoding(declared.group(1).decode("ascii")) if declared else "utf-8"
    except InputError as error:
        raise RefusedXml(f"it declares an encoding that is unknown: {error}") from None


@dataclass(frozen=True)
class _XmlError:
    what: str
    at: int
    """The place in the chunk."""


_WANTED = {
    ("page", "title"): "title",
    ("page", "ns"): "ns",
    ("page", "id"): "id",
    ("revision", "text"): "text",
    ("revision", "timestamp"): "timestamp",
    ("revision", "model"): "model",
    ("namespaces", "namespace"): "",
}
"""The elements whose text is kept, by the names of their parent and their own, and where a page keeps it."""


class _Parser:
    """Handlers for the few elements that matter. Of a page's revisions the last one counts."""

    def __init__(self, encoding: str, namespaces: dict[str, int], limit: int) -> None:
        self._namespaces = namespaces
        self._limit = limit
        self._path: list[str] = []
        self._page = _WikiPage()
        self._pages: list[_WikiPage] = []
        self._pieces: list[str] | None = None
        self._size = 0
        self._key = 0
        self._parser = XmlParser(self, _LONGEST_TOKEN, encoding=encoding.replace("utf-16-", "utf-16"))

    def feed(self, chunk: bytes) -> _XmlError | None:
        try:
            self._parser.feed(chunk)
        except expat.ExpatError as error:
            return _XmlError(str(error), min(max(self._parser.error_position, 0), len(chunk)))
        return None

    def finish(self) -> _XmlError | None:
        try:
            self._parser.finish()
        except expat.ExpatError as error:
            return _XmlError(str(error), 0)
        return None

    def take(self) -> list[_WikiPage]:
        pages, self._pages = self._pages, []
        return pages

    def start(self, name: str, attributes: dict[str, str]) -> None:
        path = self._path
        parent = path[-1] if path else ""
        if not path and name != "mediawiki":
            raise RefusedXml(f"it is not a MediaWiki dump: its root is <{name[:50]}>")
        path.append(name)
        if (parent, name) in _WANTED:
            self._pieces, self._size = [], 0
            if name == "namespace":
                self._key = _number(attributes.get("key", ""))
        elif name == "page":
            self._page = _WikiPage()
        elif name == "redirect" and parent == "page":
            self._page.redirect = True

    def characters(self, text: str) -> None:
        if self._pieces is None:
            return
        self._size += len(text)
        if self._size <= self._limit:
            self._pieces.append(text)
        else:
            self._pieces.clear()
            self._page.too_large = True

    def end(self, name: str) -> None:
        self._path.pop()
        if self._pieces is not None:
            text, self._pieces = "".join(self._pieces), None
            if name == "namespace":
                if text and len(self._namespaces) < _MOST_NAMESPACES:
                    self._namespaces[text.casefold()] = self._key
            elif (parent := self._path[-1] if self._path else "") and (parent, name) in _WANTED:
                setattr(self._page, _WANTED[parent, name], text)
        if name == "page":
            self._pages.append(self._page)
            self._page = _WikiPage()
