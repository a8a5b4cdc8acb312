"""Reader of HTML files: the main text of a page, parsed by lxml, which accepts malformed HTML.

Navigation, cookie notices, footers, forms and the like are recognized by their elements, roles and classes, and by how
much of their text is links. A page without such elements is read completely. `benchmarks/documents.py` compares the
result with that of libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polyseme.errors import InputError, MissingExtraError
from polyseme.text.readers.decoding import check_encoding, decode_all, has_mark
from polyseme.text.readers.inputs import Document, Input
from polyseme.text.readers.text import file_document, stated_title

_DECLARED = re.compile(rb"<meta[^<>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._-]{1,40})", re.IGNORECASE)
_WITHOUT_TEXT = {"script", "style", "template", "svg", "math", "head"}
_INLINE_ELEMENTS = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt",
    "u", "var", "wbr",
}  # fmt: skip
"""Elements that do not start a new line."""
_ESSENTIAL = {"html", "body", "main", "article", "h1"}
"""Elements that are never left out, and neither are elements around them."""
_HEADINGS = {"h1", "h2"}
_BESIDE_THE_TEXT = {"nav", "aside", "footer", "dialog", "button", "select", "textarea", "datalist", "noscript"}
_ROLES = {
    "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar",
    "toolbar", "button",
}  # fmt: skip
_NOTICE_CLASSES = {
    "ad", "ads", "advert", "advertisement", "advertising", "consent", "cookie", "cookies", "gdpr", "newsletter",
    "promo", "sponsored", "subscribe",
}  # fmt: skip
"""Words in classes and ids of elements that are left out, unless they have half of the text of the page."""
_LAYOUT_CLASSES = {
    "breadcrumb", "breadcrumbs", "comments", "footer", "modal", "popup", "recommended", "related", "share",
    "sharedaddy", "sharing", "sidebar", "social",
}  # fmt: skip
"""Words in classes and ids of elements that are left out, unless they have half of the prose of the page."""
_LINK_CLASSES = {
    "actions", "banner", "header", "masthead", "menu", "nav", "navbar", "navigation", "pager", "pagination", "skip",
    "tags", "toc", "toolbar", "topbar", "widget",
}  # fmt: skip
"""Words in classes and ids of elements that are left out if most of their text is links."""
_ABOUT_OTHERS = {"has", "with", "no", "without", "show", "hide"}
"""First words of classes that speak of other elements, such as "has-sidebar"."""
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PROSE = 30
"""Smallest number of characters in a row, outside links, that are prose."""
_MAIN_SHARE, _SMALLEST_SHARE = 0.5, 0.95
"""Smallest shares of the prose of a page in its main element, and in another one that is taken for the main one."""
_LIST_ELEMENTS = {"ul", "ol", "div", "section", "table"}
_MIN_LINKS, _LINK_SHARE = 3, 0.8
"""Smallest number of links in a list of links, and smallest share of its text in them."""


def read_html(source: Input) -> Iterator[Document]:
    """Yield the main text of the page as one document. Elements that are not inline start a new line."""
    try:
        from lxml import etree
    except ImportError:
        raise MissingExtraError("Reading HTML files", "text") from None

    content = source.whole()
    if content is None:
        return
    encoding = _declared_encoding(content) if source.settings.encoding is None else None
    encoding = encoding or source.encoding_of(content)
    if encoding is None:
        return
    markup, bad = decode_all(content, encoding)
    if bad:
        source.problem("undecodable bytes", f"bytes that are not {encoding} were replaced by U+FFFD", times=bad)
    page = _Page()
    parser = etree.HTMLParser(target=page, no_network=True, huge_tree=False)
    try:
        parser.feed(markup.replace("\0", " "))
        parser.close()
    except (etree.LxmlError, ValueError) as error:
        source.problem("damaged file", str(error))
        return
    text = page.main_text()
    if not text:
        source.drop("empty file")
        return
    document = file_document(source, text)
    yield document._replace(title=stated_title(*page.titles()) or document.title)


def _declared_encoding(content: bytes) -> str | None:
    """Return the encoding that the page declares, unless it has a byte order mark or declares UTF-16 or UTF-32.

    A page in a wide encoding cannot declare it in ASCII, so such a declaration is wrong.
    """
    declared = _DECLARED.search(content[:4096])
    if declared is None or has_mark(content):
        return None
    try:
        encoding = check_encoding(declared.group(1).decode("ascii"))
    except InputError:
        return None
    return None if encoding.startswith(("utf-16", "utf-32")) else encoding


@dataclass(slots=True, eq=False)
class _Element:
    """An element with the numbers of characters in it, in its links and in its prose, of its links and headings."""

    tag: str
    names: str
    """Classes and id."""
    role: str
    is_hidden: bool
    is_essential: bool
    """Whether it is or contains an essential element."""
    size: int = 0
    size_in_links: int = 0
    links: int = 0
    prose: int = 0
    headings: int = 0

    @property
    def is_list_of_links(self) -> bool:
        """Whether nearly all of the text is links."""
        return self.tag in _LIST_ELEMENTS and self.links >= _MIN_LINKS and self.size_in_links > _LINK_SHARE * self.size

    def is_beside_the_text(self, size: int, prose: int) -> bool:
        """Return whether this is navigation, a notice, a form or the like on a page with this much text."""
        if self.is_essential:
            return False
        if self.tag in _BESIDE_THE_TEXT or self.role in _ROLES or self.is_hidden:
            return True
        names = self._class_words()
        if 2 * self.size_in_links > self.size and (self.tag == "header" or names & _LINK_CLASSES):
            return True
        if 2 * self.size < size and names & _NOTICE_CLASSES:
            return True
        return (
            2 * self.prose <= prose and 2 * self.size < size and (self.tag == "form" or bool(names & _LAYOUT_CLASSES))
        )

    def _class_words(self) -> set[str]:
        found: set[str] = set()
        for name in self.names.split():
            parts = [part.lower() for part in _NAME_PART.findall(name)]
            if parts and parts[0] not in _ABOUT_OTHERS:
                found.update(parts)
        return found


class _Page:
    """Target of the parser of lxml, which limits the depth of trees but not that of events."""

    def __init__(self) -> None:
        self._events: list[_Element | str | None] = []
        """Start of an element, text, or the end of the innermost element."""
        self._open: list[_Element] = []
        self._skipped: str | None = None
        self._depth = 0
        self._links = self._verbatim = 0
        self._stated = ""
        self._headings: dict[str, list[str]] = {"title": [], "h1": []}
        self._heading: str | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        if tag == "meta" and attributes.get("property") == "og:title":
            self._stated = self._stated or attributes.get("content", "")
        if tag in self._headings and not self._headings[tag]:
            self._heading = tag
        if self._skipped is None and tag in _WITHOUT_TEXT:
            self._skipped = tag
            self._events.append("\n")
        if tag == self._skipped:
            self._depth += 1
        if self._skipped is None:
            role = attributes.get("role", "")
            is_essential = tag in _ESSENTIAL or role == "main"
            names = f"{attributes.get('class', '')} {attributes.get('id', '')}"
            element = _Element(tag, names, role, "hidden" in attributes, is_essential)
            self._open.append(element)
            self._events.append(element)
            element.links = int(tag == "a")
            self._links += tag == "a"
            self._verbatim += tag == "pre"

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        if tag == self._heading:
            self._heading = None
        if self._skipped is None:
            self._close_element()
        elif tag == self._skipped:
            self._depth -= 1
            if not self._depth:
                self._skipped = None

    def _close_element(self) -> None:
        if not self._open:
            return
        element = self._open.pop()
        self._events.append(None)
        self._links -= element.tag == "a"
        self._verbatim -= element.tag == "pre"
        if self._open:
            outer = self._open[-1]
            outer.size += element.size
            outer.size_in_links += element.size_in_links
            outer.links += element.links
            outer.prose += element.prose
            outer.headings += element.headings + (element.tag in _HEADINGS)
            outer.is_essential |= element.is_essential

    def data(self, text: str) -> None:
        """Handle text."""
        if self._heading is not None:
            self._headings[self._heading].append(text)
        if self._skipped is None and self._heading != "title":
            self._events.append(text if self._verbatim else text.replace("\n", " "))
            if self._open:
                size = len(text.strip())
                self._open[-1].size += size
                if self._links:
                    self._open[-1].size_in_links += size
                elif size >= _PROSE:
                    self._open[-1].prose += size

    def close(self) -> None:
        """Close the elements that are still open."""
        while self._open:
            self._close_element()

    def titles(self) -> list[str]:
        """Return the titles of the page, the best first: the name of a site often follows in the title element."""
        title, heading = (" ".join("".join(self._headings[tag]).split()) for tag in ("title", "h1"))
        return [self._stated, heading, title] if heading in title else [self._stated, title, heading]

    def main_text(self) -> str:
        """Return the text of the page without what stands beside its main text; all text if there is nothing else."""
        elements = [event for event in self._events if isinstance(event, _Element)]
        size = max((element.size for element in elements), default=0)
        prose = max((element.prose for element in elements), default=0)
        left_out = {element for element in elements if element.is_beside_the_text(size, prose)}
        whole = self._text(left_out)
        if not left_out:
            return whole
        links = {element for element in elements if not element.is_essential and element.is_list_of_links}
        text = self._text(left_out | links)
        if 2 * len(text) > len(whole):
            left_out, whole = left_out | links, text
        main = self._main_element(elements, left_out)
        return (self._text(left_out, main) if main else whole) or self._text(set())

    def _main_element(self, elements: Sequence[_Element], left_out: set[_Element]) -> _Element | None:
        """Return the only main element or article, or the smallest element with nearly all prose."""
        mains = [element for element in elements if element.tag == "main" or element.role == "main"]
        mains = mains or [element for element in elements if element.tag == "article"]
        prose = self._prose(left_out)
        total = max(prose.values(), default=0)
        if len(mains) == 1 and prose.get(mains[0], 0) >= _MAIN_SHARE * total:
            return mains[0]
        found = [element for element, own in prose.items() if own >= _SMALLEST_SHARE * total > 0]
        return next((element for element in found if element.headings), found[0] if found else None)

    def _prose(self, left_out: set[_Element]) -> dict[_Element, int]:
        """Return the prose in elements, inner ones first, without that in elements that are left out."""
        prose: dict[_Element, int] = {}
        open_elements: list[_Element] = []
        removed = [0]
        hidden = 0
        for event in self._events:
            if isinstance(event, _Element):
                open_elements.append(event)
                removed.append(0)
                hidden += event in left_out
            elif event is None:
                element, within = open_elements.pop(), removed.pop()
                removed[-1] += element.prose if element in left_out else within
                if not hidden:
                    prose[element] = element.prose - within
                hidden -= element in left_out
        return prose

    def _text(self, left_out: set[_Element], within: _Element | None = None) -> str:
        """Return the text of the page, or within an element, without others: one line for each block."""
        pieces: list[str] = []
        ends: list[tuple[str, bool, bool]] = []  # of open elements: their separator, and the two variables
        is_shown, is_within = True, within is None
        for event in self._events:
            if isinstance(event, _Element):
                separator = "" if event.tag in _INLINE_ELEMENTS else "\n"
                ends.append((separator, is_shown, is_within))
                is_shown, is_within = is_shown and event not in left_out, is_within or event is within
                pieces.append(separator)
            elif event is None:
                separator, is_shown, is_within = ends.pop()
                pieces.append(separator)
            elif is_shown and is_within:
                pieces.append(event)
        return "\n".join(line for part in "".join(pieces).split("\n") if (line := " ".join(part.split())))
