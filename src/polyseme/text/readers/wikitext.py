"""Conversion of wikitext to plain text without templates, tables, references and pictures.

Every step is one pass without backtracking, so that the time is linear in the length of the page for any nesting of
brackets, also if they are never closed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

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

    `category_names` and `file_names` are those of the wiki; the English names are always known.
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
        """Return the plain text of a page and its categories, without repetitions, in their order."""
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
            text, found = _LINK.subn(link_text, text)
            if not found:
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
    for found in bracket.finditer(text):
        if found.group(1):
            open_at.append(found.start())
        elif open_at:
            start = open_at.pop()
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
        text = _ENTITY.sub(_character, text)
    text = _BLANKS.sub(" ", text.replace("\xa0", " ").replace("\t", " "))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _character(entity: re.Match[str]) -> str:
    return html.unescape(entity.group())


def _fold(name: str) -> str:
    return _tidy(name).casefold()


def _tidy(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
