"""From wikitext to prose: what a reader of the page would read, without tables, references and pictures.

Every step is one pass that cannot go back over what it has read, so that time stays linear in the page's length,
however its brackets are nested or left open.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

CATEGORY, FILE = "Category", "File"

_COMMENT = "!--"

_UNREAD_ELEMENTS = (
    "ref|math|chem|ce|gallery|timeline|source|syntaxhighlight|score|imagemap|hiero|graph|templatedata|templatestyles|"
    "mapframe|maplink|section|inputbox|categorytree|dynamicpagelist|references|style|script"
)
_HIDDEN = re.compile(rf"<!--|<(?:({_UNREAD_ELEMENTS})|(nowiki|pre))\b[^<>]*+>", re.IGNORECASE)
_CLOSING = {
    name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in (*_UNREAD_ELEMENTS.split("|"), "nowiki", "pre")
}
_MARKUP_TO_SPACES = str.maketrans(dict.fromkeys("[]{}|<>='*#", " "))

_BRACES = re.compile(r"(\{\{)|\}\}")
_TABLE = re.compile(r"^[ \t:]*+(?:(\{\|)|\|\}(?!\}))", re.MULTILINE)

_LONE_BRACKET = r"(?:\[(?!\[)|\](?!\])|\](?=\]\](?!\])))"
_LINK = re.compile(rf"\[\[([^\[\]|\n]*+)(?:\|([^\[\]]*+(?:{_LONE_BRACKET}[^\[\]]*+)*+))?+\]\]")
_DEEPEST_LINK = 6
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
    """What is left of a page: its words, and the categories it names."""

    text: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Wikitext:
    """The markup of one wiki, whose own names of the namespaces matter: Italian pages are in a "Categoria".

    category_names, file_names : the wiki's names; the English ones are always known.
    """

    category_names: Collection[str] = ()
    file_names: Collection[str] = ()
    _categories: frozenset[str] = field(init=False)
    _unread: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        categories = {_folded(name) for name in (CATEGORY, *self.category_names)}
        files = {_folded(name) for name in (FILE, "Image", "Media", *self.file_names)}
        object.__setattr__(self, "_categories", frozenset(categories))
        object.__setattr__(self, "_unread", frozenset(files))

    def prose(self, source: str) -> Prose:
        """The text of a page and its categories, in the order of the page, each once."""
        categories: dict[str, None] = {}

        def shown(link: re.Match[str]) -> str:
            target, label = link.groups()
            space, colon, name = target.partition(":")
            if colon:
                space = _folded(space)
                if space in self._categories:
                    categories[_tidy(name)] = None
                    return ""
                if space in self._unread or _PICTURE.search(name):
                    return ""
                if label is None and _INTERWIKI.fullmatch(space):
                    return ""
                target = target.lstrip(":")
            return target if label is None else label.rpartition("|")[2]

        text = _without_tables(_without_templates(_without_hidden(source)))
        if "//" in text:
            text = _WEB_ADDRESS.sub("", _WEB_LINK.sub(r"\1", text))
        for _ in range(_DEEPEST_LINK):
            text, found = _LINK.subn(shown, text)
            if not found:
                break
        return Prose(_plain(text), tuple(filter(None, categories)))


def _without_hidden(text: str) -> str:
    """Without comments, references and other elements whose content is no prose; raw text loses its markup."""
    pieces = []
    kept_to = at = 0
    never_closed: set[str] = set()
    while tag := _HIDDEN.search(text, at):
        unread, raw = tag.groups()
        name = (unread or raw or _COMMENT).lower()
        inner_end = at = tag.end()
        if not tag.group().endswith("/>"):
            inner_end, end = _closed(text, at, name) if name not in never_closed else (-1, -1)
            if end < 0:
                never_closed.add(name)
                continue
            at = end
        pieces.append(text[kept_to : tag.start()])
        if raw:
            pieces.append(text[tag.end() : inner_end].translate(_MARKUP_TO_SPACES))
        kept_to = at
    pieces.append(text[kept_to:])
    return "".join(pieces)


def _closed(text: str, start: int, name: str) -> tuple[int, int]:
    """Where the element's content and the element end; (-1, -1) for one that is never closed."""
    if name == _COMMENT:
        at = text.find("-->", start)
        return (at, at + 3) if at >= 0 else (-1, -1)
    closing = _CLOSING[name].search(text, start)
    return closing.span() if closing else (-1, -1)


def _without_templates(text: str) -> str:
    """Without whatever stands between {{ and its }}; brackets that have no partner stay."""
    return _without_spans(text, _BRACES)


def _without_tables(text: str) -> str:
    """The same for {| and |} at the starts of lines."""
    return _without_spans(text, _TABLE)


def _without_spans(text: str, bracket: re.Pattern[str]) -> str:
    """Without the spans between brackets that match; a pattern's first group is the opening one."""
    waiting: list[int] = []
    spans: list[tuple[int, int]] = []
    for found in bracket.finditer(text):
        if found.group(1):
            waiting.append(found.start())
        elif waiting:
            start = waiting.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, found.end()))
    if not spans:
        return text
    pieces = []
    at = 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _plain(text: str) -> str:
    """Without the small signs: tags, quotes, headings, bullets, entities."""
    for run in _RUNS:  # one by one: a pattern that starts with a letter is searched for many times faster
        text = run.sub("", text)
    for bracket in _BRACKETS:
        text = text.replace(bracket, "")
    text = _LINE_START.sub("\n", f"\n{text}")
    if "<" in text:
        text = _TAG.sub("", _BREAKING_TAG.sub(" ", text))
    if "&" in text:
        text = _ENTITY.sub(_character, text)
    text = _BLANKS.sub(" ", text.replace("\xa0", " ").replace("\t", " "))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _character(entity: re.Match[str]) -> str:
    return html.unescape(entity.group())


def _folded(name: str) -> str:
    return _tidy(name).casefold()


def _tidy(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
