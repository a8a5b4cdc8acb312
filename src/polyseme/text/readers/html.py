"""HTML files, by lxml's parser of real-world HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from polyseme.errors import InputError, MissingExtraError
from polyseme.text.readers.documents import Document
from polyseme.text.readers.encodings import check_encoding, decode_all, has_mark
from polyseme.text.readers.inputs import Input
from polyseme.text.readers.text import file_document

_DECLARED = re.compile(rb"<meta[^<>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._-]{1,40})", re.IGNORECASE)
_UNREAD = {"script", "style", "noscript", "template", "svg", "math", "head"}
_WITHIN_A_LINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins"),
    *(
        "kbd",
        "label",
        "mark",
        "nobr",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
    ),
    *("tt", "u", "var", "wbr"),
}


def read_html(source: Input) -> Iterator[Document]:
    """The page as one document, without scripts and styles; an element that is not within a line starts a new one."""
    try:
        from lxml import etree
    except ImportError:
        raise MissingExtraError("Reading HTML files", "files") from None

    content = source.whole()
    if content is None:
        return
    encoding = _declared_encoding(content) if source.settings.encoding is None else None
    encoding = encoding or source.encoding_of(content)
    if encoding is None:
        return
    markup, bad = decode_all(content, encoding)
    if bad:
        source.problem("undecodable bytes", f"bytes that are no {encoding} became U+FFFD", times=bad)
    page = _Page()
    parser = etree.HTMLParser(target=page, no_network=True, huge_tree=False)
    try:
        parser.feed(markup.replace("\0", " "))
        parser.close()
    except (etree.LxmlError, ValueError) as error:
        source.problem("damaged file", str(error))
        return
    text = "\n".join(line for part in "".join(page.pieces).split("\n") if (line := " ".join(part.split())))
    if not text:
        source.drop("empty file")
        return
    yield file_document(source, text, " ".join("".join(page.title).split()))


def _declared_encoding(content: bytes) -> str | None:
    """What the page says of itself, unless its first bytes say otherwise: a wide encoding cannot be declared."""
    declared = _DECLARED.search(content[:4096])
    if declared is None or has_mark(content):
        return None
    try:
        encoding = check_encoding(declared.group(1).decode("ascii"))
    except InputError:
        return None
    return None if encoding.startswith(("utf-16", "utf-32")) else encoding


class _Page:
    """What lxml tells its findings to."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._unread: str | None = None
        self._depth = 0
        self._in_title = False

    def start(self, tag: str, attributes: object) -> None:
        self._in_title = tag == "title" and not self.title
        if self._unread is None and tag in _UNREAD:
            self._unread = tag
        if tag == self._unread:
            self._depth += 1
        if tag not in _WITHIN_A_LINE:
            self.pieces.append("\n")

    def end(self, tag: str) -> None:
        self._in_title = False
        if tag == self._unread:
            self._depth -= 1
            if not self._depth:
                self._unread = None
        if tag not in _WITHIN_A_LINE:
            self.pieces.append("\n")

    def data(self, text: str) -> None:
        if self._in_title:
            self.title.append(text)
        elif self._unread is None:
            self.pieces.append(text)

    def close(self) -> None:
        pass
