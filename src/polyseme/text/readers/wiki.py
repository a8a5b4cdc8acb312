"""Reader of MediaWiki XML dumps: articles as plain text with their categories.

`Wikitext` removes templates, tables, references and pictures. Every step of it is one pass without backtracking, so
that the time is linear in the length of the page for any nesting of brackets, also if they are never closed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple
from xml.parsers import expat

from polyseme.errors import InputError
from polyseme.text.readers.decoding import RefusedXml, XmlParser, check_encoding, decode, with_byte_order
from polyseme.text.readers.inputs import Document, Input

ARTICLES, FILES, CATEGORIES = 0, 6, 14
"""Numbers of namespaces, which are the same in every wiki."""

_MAX_DAMAGED_PAGES = 1000
_MAX_NAMESPACES = 1000
_MAX_TOKEN = 2**20
_REDIRECT = re.compile(r"\s*+#redirect\b", re.IGNORECASE)
_REDIRECT_IN_ANY_LANGUAGE = re.compile(r"\s*+#\s?+\w++\s*+:?\s*+\[\[[^\[\]\n]++\]\]")
_EXPAT_ENCODINGS = {"utf-8", "utf-16-le", "utf-16-be"}
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_DECLARED = re.compile(rb"<\?xml[^<>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_WORD = re.compile(r"\w")


def read_wiki(source: Input) -> Iterator[Document]:
    """Yield the articles that are not redirects and have words and a category; count the other pages."""
    dump = _Dump(source)
    markup: Wikitext | None = None
    for page in dump.pages():
        if page.namespace(dump.namespaces) != ARTICLES:
            source.drop("page of another namespace")
        elif page.is_redirect():
            source.drop("redirect")
        elif page.model not in ("", "wikitext"):
            source.drop("page that is not wikitext")
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
    """The fields of a page that are used."""

    title: str = ""
    ns: str = ""
    id: str = ""
    text: str = ""
    timestamp: str = ""
    model: str = ""
    redirect: bool = False
    too_large: bool = False

    def namespace(self, names: dict[str, int]) -> int:
        """Return the number of the namespace; dumps of old versions have only the prefix of the title."""
        if self.ns:
            return _namespace_number(self.ns)
        prefix, colon, _ = self.title.partition(":")
        return names.get(prefix.casefold(), ARTICLES) if colon else ARTICLES

    def is_redirect(self) -> bool:
        """Return whether the page has an element for a redirect; dumps of old versions have only the text."""
        pattern = _REDIRECT if self.ns else _REDIRECT_IN_ANY_LANGUAGE
        return self.redirect or pattern.match(self.text) is not None


def _namespace_number(text: str) -> int:
    """Return the number of a namespace; that of articles if the text is not a number."""
    return int(text) if _NUMBER.fullmatch(text) else ARTICLES


@dataclass
class _Dump:
    """The pages of a dump. After damaged XML, reading continues at the next page."""

    source: Input
    namespaces: dict[str, int] = field(default_factory=dict)

    def names_of(self, number: int) -> list[str]:
        """Return the names of a namespace."""
        return [name for name, key in self.namespaces.items() if key == number]

    def pages(self) -> Iterator[_WikiPage]:
        """Yield the pages, and report XML that is refused."""
        try:
            yield from self._pages()
        except RefusedXml as error:
            self.source.problem("refused file", str(error))

    def _pages(self) -> Iterator[_WikiPage]:
        limit = self.source.settings.limits.document
        chunks, encoding = self._decode()
        parser: _PageParser | None = _PageParser(encoding, self.namespaces, limit)
        skipped = b""
        damaged = 0
        for chunk in chunks:
            while chunk:
                if parser is None:
                    chunk = skipped + chunk
                    at = chunk.find("<page>".encode(encoding))
                    if at < 0:
                        skipped = chunk[-64:]
                        break
                    parser = _PageParser(encoding, self.namespaces, limit)
                    parser.feed("<mediawiki>".encode(encoding))
                    chunk, skipped = chunk[at:], b""
                error = parser.feed(chunk)
                yield from self._check_size(parser.take())
                if error is None:
                    break
                damaged += 1
                self.source.problem("damaged page", error.reason)
                if damaged == _MAX_DAMAGED_PAGES:
                    self.source.problem("damaged file", f"reading stopped after {damaged} damaged pages")
                    return
                chunk, parser = chunk[error.position :], None
        if parser is not None and (error := parser.finish()):
            self.source.problem("damaged file", f"it ends early ({error.reason})")

    def _decode(self) -> tuple[Iterator[bytes], str]:
        """Return the chunks of the dump in an encoding that expat supports, and the name of the encoding."""
        chunks = self.source.chunks()
        head = next(chunks, b"")
        chunks = chain([head], chunks)
        encoding = self.source.settings.encoding or _encoding_of(head)
        if encoding in _EXPAT_ENCODINGS:
            return chunks, encoding

        def bad_bytes(line: int, count: int) -> None:
            what = f"bytes that are not {encoding} were replaced by U+FFFD"
            self.source.problem("undecodable bytes", what, line, count)

        texts = decode(chunks, with_byte_order(encoding, head), bad_bytes)
        return (text.encode() for text in texts), "utf-8"

    def _check_size(self, pages: list[_WikiPage]) -> Iterator[_WikiPage]:
        """Yield the pages that do not exceed the limit, and report the others."""
        for page in pages:
            if page.too_large:
                self.source.problem("damaged page", f"{page.title!r} is larger than a document may be")
            else:
                yield page


def _encoding_of(head: bytes) -> str:
    """Return the encoding that the first bytes show or declare."""
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
    """Damage in a chunk of XML."""

    reason: str
    position: int
    """Position in the chunk."""


_FIELDS = {
    ("page", "title"): "title",
    ("page", "ns"): "ns",
    ("page", "id"): "id",
    ("revision", "text"): "text",
    ("revision", "timestamp"): "timestamp",
    ("revision", "model"): "model",
    ("namespaces", "namespace"): "",
}
"""Attribute of `_WikiPage` for the text of each element that is used, by the names of its parent and of the element."""


class _PageParser:
    """Parser of the elements that are used. If a page has several revisions, the last one is used."""

    def __init__(self, encoding: str, namespaces: dict[str, int], limit: int) -> None:
        self._namespaces = namespaces
        self._limit = limit
        self._path: list[str] = []
        self._page = _WikiPage()
        self._complete_pages: list[_WikiPage] = []
        self._pieces: list[str] | None = None
        self._size = 0
        self._key = 0
        self._parser = XmlParser(self, _MAX_TOKEN, encoding=encoding.replace("utf-16-", "utf-16"))

    def feed(self, chunk: bytes) -> _XmlError | None:
        """Parse a chunk, and return the damage, if any."""
        try:
            self._parser.feed(chunk)
        except expat.ExpatError as error:
            return _XmlError(str(error), min(max(self._parser.error_position, 0), len(chunk)))
        return None

    def finish(self) -> _XmlError | None:
        """Parse the end of the dump, and return the damage, if any."""
        try:
            self._parser.finish()
        except expat.ExpatError as error:
            return _XmlError(str(error), 0)
        return None

    def take(self) -> list[_WikiPage]:
        """Return the pages that are complete since the last call."""
        pages, self._complete_pages = self._complete_pages, []
        return pages

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        path = self._path
        parent = path[-1] if path else ""
        if not path and name != "mediawiki":
            raise RefusedXml(f"it is not a MediaWiki dump: its root is <{name[:50]}>")
        path.append(name)
        if (parent, name) in _FIELDS:
            self._pieces, self._size = [], 0
            if name == "namespace":
                self._key = _namespace_number(attributes.get("key", ""))
        elif name == "page":
            self._page = _WikiPage()
        elif name == "redirect" and parent == "page":
            self._page.redirect = True

    def characters(self, text: str) -> None:
        """Handle text."""
        if self._pieces is None:
            return
        self._size += len(text)
        if self._size <= self._limit:
            self._pieces.append(text)
        else:
            self._pieces.clear()
            self._page.too_large = True

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        self._path.pop()
        if self._pieces is not None:
            text, self._pieces = "".join(self._pieces), None
            if name == "namespace":
                if text and len(self._namespaces) < _MAX_NAMESPACES:
                    self._namespaces[text.casefold()] = self._key
            elif (parent := self._path[-1] if self._path else "") and (parent, name) in _FIELDS:
                setattr(self._page, _FIELDS[parent, name], text)
        if name == "page":
            self._complete_pages.append(self._page)
            self._page = _WikiPage()


# wikitext

CATEGORY, FILE = "Category", "File"

_COMMENT = "!--"

_SKIPPED_ELEMENTS = (
    "ref|math|chem|ce|gallery|timeline|source|syntaxhighlight|score|imagemap|hiero|graph|templatedata|templatestyles|"
    "mapframe|maplink|section|inputbox|categorytree|dynamicpagelist|references|style|script"
)
_SKIPPED = re.compile(rf"<!--|<(?:({_SKIPPED_ELEMENTS})|(nowiki|pre))\b[^<>]*+>", re.IGNORECASE)
_CLOSING = {
    name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in (*_SKIPPED_ELEMENTS.split("|"), "nowiki", "pre")
}
_MARKUP_TO_SPACES = str.maketrans(dict.fromkeys("[]{}|<>='*#", " "))

_BRACES = re.compile(r"(\{\{)|\}\}")
_TABLE = re.compile(r"^[ \t:]*+(?:(\{\|)|\|\}(?!\}))", re.MULTILINE)

_LONE_BRACKET = r"(?:\[(?!\[)|\](?!\])|\](?=\]\](?!\])))"
_LINK = re.compile(rf"\[\[([^\[\]|\n]*+)(?:\|([^\[\]]*+(?:{_LONE_BRACKET}[^\[\]]*+)*+))?+\]\]")
_MAX_LINK_DEPTH = 6
_PICTURE = re.compile(r"\.(?:jpe?g|png|svg|gif|tiff?|og[gv]|webm|webp|pdf|djvu)\s*+$", re.IGNORECASE)
_WEB_LINK = re.compile(r"\[(?:[a-zA-Z]{3,9}:)?//[^\s\[\]]*+([^\[\]\n]*+)\]")
_WEB_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s\[\]<>|]*+")
_INTERWIKI = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?|simple|w|wikt|commons")

_BREAKING_TAG = re.compile(r"</?(?:br|p|div|li|td|th|tr|dd|dt|h[1-6]|blockquote|hr|center|table|ul|ol)\b[^<>]*+>", re.I)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*+>")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_RUNS = re.compile(r"''++"), re.compile(r"==++"), re.compile(r"__[A-Z]{3,}+__")
_BRACKETS = "[[", "]]", "{{", "}}", "{|", "|}"
_LINE_START = re.compile(r"\n(?:[*#:;]++|[|!].*+)")
_BLANKS = re.compile(r"  ++")
_BLANK_LINES = re.compile(r"\n ?\n[\n ]*+")


class Prose(NamedTuple):
    """Plain text and categories of a page."""

    text: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Wikitext:
    """Markup of one wiki, whose namespaces have names in its language ("Categoria" in Italian).

    `category_names` and `file_names` are the names in the language of the wiki; the English names are always known.
    """

    category_names: Collection[str] = ()
    file_names: Collection[str] = ()
    _categories: frozenset[str] = field(init=False)
    _files: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        categories = {_fold(name) for name in (CATEGORY, *self.category_names)}
        files = {_fold(name) for name in (FILE, "Image", "Media", *self.file_names)}
        object.__setattr__(self, "_categories", frozenset(categories))
        object.__setattr__(self, "_files", frozenset(files))

    def prose(self, source: str) -> Prose:
        """Return the plain text of a page and its categories, in order and without repetitions."""
        categories: dict[str, None] = {}

        def link_text(link: re.Match[str]) -> str:
            """Return the text that a link shows, and collect categories."""
            target, label = link.groups()
            namespace, colon, name = target.partition(":")
            if colon:
                namespace = _fold(namespace)
                if namespace in self._categories:
                    categories[_tidy(name)] = None
                    return ""
                if namespace in self._files or _PICTURE.search(name):
                    return ""
                if label is None and _INTERWIKI.fullmatch(namespace):
                    return ""
                target = target.lstrip(":")
            return target if label is None else label.rpartition("|")[2]

        text = _remove_spans(_remove_spans(_remove_elements(source), _BRACES), _TABLE)
        if "//" in text:
            text = _WEB_ADDRESS.sub("", _WEB_LINK.sub(r"\1", text))
        for _ in range(_MAX_LINK_DEPTH):
            text, n_links = _LINK.subn(link_text, text)
            if not n_links:
                break
        return Prose(_remove_marks(text), tuple(filter(None, categories)))


def _remove_elements(text: str) -> str:
    """Remove comments, references and other elements that are not prose, and the markup in raw text."""
    pieces = []
    copied_to = at = 0
    never_closed: set[str] = set()
    while tag := _SKIPPED.search(text, at):
        skipped, raw = tag.groups()
        name = (skipped or raw or _COMMENT).lower()
        inner_end = at = tag.end()
        if not tag.group().endswith("/>"):
            inner_end, end = _find_closing(text, at, name) if name not in never_closed else (-1, -1)
            if end < 0:
                never_closed.add(name)
                continue
            at = end
        pieces.append(text[copied_to : tag.start()])
        if raw:
            pieces.append(text[tag.end() : inner_end].translate(_MARKUP_TO_SPACES))
        copied_to = at
    pieces.append(text[copied_to:])
    return "".join(pieces)


def _find_closing(text: str, start: int, name: str) -> tuple[int, int]:
    """Return where the content and the element end; (-1, -1) if the element is never closed."""
    if name == _COMMENT:
        at = text.find("-->", start)
        return (at, at + 3) if at >= 0 else (-1, -1)
    closing = _CLOSING[name].search(text, start)
    return closing.span() if closing else (-1, -1)


def _remove_spans(text: str, bracket: re.Pattern[str]) -> str:
    """Remove the text between matching brackets. The first group of the pattern matches an opening bracket."""
    open_at: list[int] = []
    spans: list[tuple[int, int]] = []
    for match in bracket.finditer(text):
        if match.group(1):
            open_at.append(match.start())
        elif open_at:
            start = open_at.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, match.end()))
    if not spans:
        return text
    pieces = []
    at = 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _remove_marks(text: str) -> str:
    """Remove tags, quotes, headings and bullets, and replace entities by characters."""
    for run in _RUNS:  # separate patterns, because one that starts with a literal is searched much faster
        text = run.sub("", text)
    for bracket in _BRACKETS:
        text = text.replace(bracket, "")
    text = _LINE_START.sub("\n", f"\n{text}")
    if "<" in text:
        text = _TAG.sub("", _BREAKING_TAG.sub(" ", text))
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    text = _BLANKS.sub(" ", text.replace("\xa0", " ").replace("\t", " "))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _fold(name: str) -> str:
    return _tidy(name).casefold()


def _tidy(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
