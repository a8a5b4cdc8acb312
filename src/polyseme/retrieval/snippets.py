"""Matches of a query in a text: exact phrases, and snippets with the matched words.

A query may contain phrases in quotation marks. A text matches a phrase if it contains the phrase as written and not
inside a longer word. Upper and lower case, white space and the kind of apostrophe are ignored. Outside of phrases,
`comput*` stands for all words that begin with comput, and `-word` and `NOT word` exclude documents with the word
(`-comput*`: with one of these words).

A snippet is the part of a text with the most words of the query. A word of the text is marked if it has the same stem
as a word of the query (the same form, if words are not stemmed): these are the forms that were counted as one word.
Texts are in Unicode's composed form (NFC), with single spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from polyseme.errors import InputError
from polyseme.text.sentences import WITHOUT_SPACES
from polyseme.text.words import WordRules

WIDTH = 240
"""Length of a snippet in characters."""
_MOST_CHARACTERS = 1 << 20
"""Number of characters of a text that are searched for a snippet."""
_QUOTES = re.compile("[\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02]")
_APOSTROPHES = "'\u2019\u02bc\uff07"
_PREFIX = re.compile(r"(.*?)(\w+\*)")
_EXCLUSION = re.compile(r"-[^\W\d_]")
_PIECE = re.compile(r"\S+")
_PART = re.compile(rf"\w+(?:[{_APOSTROPHES}]\w+)*")
_OUTER = re.compile(r"^[\W_]+|[\W_]+$")
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f][)\"'\u2019\u201d]* ")


@dataclass(frozen=True)
class Snippet:
    """Part of a text with the positions of the words that a query matched.

    Attributes
    ----------
    text : str
        The part on one line, with an ellipsis where the text was cut.
    marks : tuple of (int, int)
        Start and end of each matched word or phrase in `text`, in increasing order.
    """

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


class QueryText(NamedTuple):
    """The text of a query."""

    words: str
    """The words, including those of the phrases."""
    phrases: tuple[str, ...] = ()
    """The parts in quotation marks."""
    prefixes: tuple[str, ...] = ()
    """Beginnings of words, each with a * at its end."""
    excluded: tuple[str, ...] = ()
    """Words that a document must not contain, and beginnings of such words with a * at the end."""


class _Mark(NamedTuple):
    start: int
    end: int
    key: Any
    """What was matched: equal for all forms of a word."""


def parse_query(query: Any) -> QueryText:
    """Return the parts of a query. Raise InputError if a quotation mark, a phrase or an exclusion is incomplete."""
    if not isinstance(query, str):
        raise InputError(f"query must be a text, got {type(query).__name__}.")
    parts = _QUOTES.sub('"', query).split('"')
    if len(parts) % 2 == 0:
        raise InputError('The query has a quotation mark without a partner: close the phrase, or remove the ".')
    phrases = tuple(" ".join(part.split()) for part in parts[1::2])
    for phrase in phrases:
        if not re.search(r"\w", phrase):
            raise InputError("The query has a phrase without words: put words between the quotation marks.")
    words: list[str] = []
    prefixes: list[str] = []
    excluded: list[str] = []
    for plain, phrase in zip_longest(parts[::2], phrases, fillvalue=""):
        tokens = plain.split()
        if phrase and tokens and (tokens[-1] == "NOT" or (tokens[-1] == "-" and plain.endswith("-"))):
            raise InputError("The query excludes a phrase: exclude single words, such as -word.")
        negate = False
        for token in tokens:
            if token == "NOT":
                negate = True
                continue
            begins = _PREFIX.fullmatch(token)
            if negate or _EXCLUSION.match(token):
                excluded.append(token.lstrip("-"))
            elif begins:
                words.append(begins[1])
                prefixes.append(begins[2])
            else:
                words.append(token)
            negate = False
        if negate:
            raise InputError("The query ends with NOT: write the word to exclude after it.")
        words.append(phrase)
    if excluded and not prefixes and not any(words):
        raise InputError("The query only excludes words: add a word to search for.")
    return QueryText(" ".join(filter(None, words)), phrases, tuple(prefixes), tuple(excluded))


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Return the regular expression that finds a phrase in the output of `plain_text`, with straight apostrophes."""
    words = _straight(plain_text(phrase)).split(" ")
    before = "" if WITHOUT_SPACES.match(words[0][0]) or not _is_in_word(words[0][0]) else r"(?<!\w)"
    after = "" if WITHOUT_SPACES.match(words[-1][-1]) or not _is_in_word(words[-1][-1]) else r"(?!\w|'\w)"
    return re.compile(before + " ".join(map(re.escape, words)) + after, re.IGNORECASE)


def plain_text(text: str) -> str:
    """Return a text on one line, in composed form."""
    return " ".join(unicodedata.normalize("NFC", text).split())


class QueryFinder:
    """Finder of the words and phrases of a query in texts.

    words : texts whose words are searched for.
    phrases : exact phrases.
    vectorizer : WordRules, or any object with a method transform, which counts queries.
    """

    def __init__(self, words: Sequence[str], phrases: Sequence[str], vectorizer: Any) -> None:
        self._patterns = [phrase_pattern(phrase) for phrase in phrases]
        self._vectorizer = vectorizer
        self._keys = {key for keys in self._word_keys(words) for key in keys}

    def has_phrases(self, text: str) -> bool:
        """Return whether a text contains all phrases."""
        straight = _straight(plain_text(text))
        return all(pattern.search(straight) for pattern in self._patterns)

    def snippet(self, text: str, width: int = WIDTH) -> Snippet:
        """Return the part of a text, of about `width` characters, with the most words of the query."""
        text = plain_text(text[:_MOST_CHARACTERS])
        marks = self._marks(text)
        start, end = _window(text, marks, width)
        shown = text[start:end].strip()
        start += len(text[start:end]) - len(text[start:end].lstrip())
        before = "… " if start else ""
        after = " …" if start + len(shown) < len(text) else ""
        shift = len(before) - start
        inside = [(mark.start + shift, mark.end + shift) for mark in marks if mark.start >= start and mark.end <= end]
        return Snippet(f"{before}{shown}{after}", _joined(inside))

    def _marks(self, text: str) -> list[_Mark]:
        """Return the positions of the words and phrases of the query in a text on one line, sorted."""
        straight = _straight(text)
        marks = [
            _Mark(*match.span(), ("phrase", i))
            for i, pattern in enumerate(self._patterns)
            for match in pattern.finditer(straight)
        ]
        pieces = list(_PIECE.finditer(text))
        distinct = list(dict.fromkeys(piece[0] for piece in pieces))
        marks_of = {
            piece: self._piece_marks(piece)
            for piece, keys in zip(distinct, self._word_keys(distinct), strict=True)
            if not self._keys.isdisjoint(keys)
        }
        for piece in pieces:
            marks += [
                _Mark(piece.start() + start, piece.start() + end, key) for start, end, key in marks_of.get(piece[0], ())
            ]
        return sorted(marks, key=lambda mark: mark[:2])

    def _piece_marks(self, piece: str) -> list[_Mark]:
        """Return the positions of the words of the query in a piece without spaces that contains at least one."""
        marks = []
        parts = list(_PART.finditer(piece))
        for part, keys in zip(parts, self._word_keys([part[0] for part in parts]), strict=True):
            known = self._keys.intersection(keys)
            if known and not WITHOUT_SPACES.search(part[0]):
                marks.append(_Mark(*part.span(), min(known)))
        lowered = piece.lower()
        if not marks and WITHOUT_SPACES.search(piece) and len(lowered) == len(piece):
            texts = [key for key in self._keys if isinstance(key, str) and key in lowered]
            marks = [_Mark(*match.span(), key) for key in texts for match in re.finditer(re.escape(key), lowered)]
        if not marks:
            inner = _OUTER.sub("", piece)
            start = piece.index(inner)
            marks = [_Mark(start, start + len(inner), min(self._keys.intersection(*self._word_keys([piece]))))]
        return marks

    def _word_keys(self, texts: Sequence[str]) -> list[Iterable[Any]]:
        """Return the keys of the words of each text. All forms of a word have the same key."""
        if not texts:
            return []
        if isinstance(self._vectorizer, WordRules):
            return list(self._vectorizer.word_keys(texts))
        counts = self._vectorizer.transform(list(texts)).tocsr()
        return [counts.indices[start:end].tolist() for start, end in pairwise(counts.indptr)]


def _window(text: str, marks: Sequence[_Mark], width: int) -> tuple[int, int]:
    """Return the start and the end of the part with the most distinct words; of these, with the most words."""
    if len(text) <= width:
        return 0, len(text)
    if not marks:
        return 0, _space_before(text, width, 0)
    best, chosen, last = (0, 0), (0, 0), 0
    inside: dict[Any, int] = {}
    for first, mark in enumerate(marks):
        while last < len(marks) and marks[last].end <= mark.start + width:
            inside[marks[last].key] = inside.get(marks[last].key, 0) + 1
            last += 1
        if last == first:  # a mark longer than a snippet
            last, score = first + 1, (1, 1)
        else:
            score = len(inside), last - first
            inside[mark.key] -= 1
            if not inside[mark.key]:
                del inside[mark.key]
        if score > best:
            best, chosen = score, (mark.start, min(marks[last - 1].end, mark.start + width))
    first_place, end_place = chosen
    slack = width - (end_place - first_place)
    start = max(0, first_place - slack // 2)
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start, first_place)]
    if start <= slack // 4 and not ends:
        start = 0
    elif ends:
        start = ends[0]
    elif start:
        space = text.find(" ", start, first_place)
        start = start if space < 0 else space + 1
    end = min(len(text), start + width)
    return start, _space_before(text, end, end_place)


def _space_before(text: str, end: int, least: int) -> int:
    """Return the end of the last whole word before `end`, but not before `least`."""
    if end >= len(text) or text[end] == " ":
        return end
    space = text.rfind(" ", max(least, end - 40), end)
    return end if space <= 0 else space


def _joined(marks: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join overlapping marks; `marks` are sorted."""
    joined: list[tuple[int, int]] = []
    for start, end in marks:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return tuple(joined)


def _straight(text: str) -> str:
    return text.translate(_STRAIGHT)


_STRAIGHT = dict.fromkeys(map(ord, _APOSTROPHES), "'")


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
