"""Sentences of texts, by rules for punctuation and lines that hold in many languages.

A sentence ends at a full stop, a question or an exclamation mark. An abbreviation or an initial does not end it, and
neither does a mark before a word in lower case, unless the text begins most sentences in lower case. Scripts without
spaces have their own marks. A line break is a space where lines are wrapped, and ends a sentence after a short line
(headings, verses), before an item of a list, beside a line of a table and at an empty line. Lines that a message quotes
are left out if there are others.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

ELLIPSIS = "…"
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Characters of scripts that do not separate all words by spaces."""
_CLOSING = "(?:\\s?\u00bb|[)\\]\"'\u2019\u201d\u300d\u300f\uff09])*"
_END = re.compile(
    f"[.!?\u2026\u061f\u06d4\u0964\u0965\u1362\u104b\u17d4]+{_CLOSING}(?=\\s|$)|[\u3002\uff01\uff1f\uff61]+{_CLOSING}"
)
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\w+",
        """adm al approx apr art assn assoc aug ave bd bros bzw ca cap capt cf ch chap co col corp cpl dec dept dipl dir
        dist dott dr ecc ed eds eg eq eqs esp est etc evtl ex ext feb fig figs fr ft gen gov hon hr hrsg ibid ie inc ing
        jan jr jul jun lt ltd maj mar max min mlle mm mme mr mrs ms mt nat no nos nov nr num oct op orig pag par ph pl
        pp prof pt rd ref refs rep rev resp rt sec sen sep sept sgt sig sigg sq sr sra srta ss st str suppl tel th univ
        usw vgl viz vol vols vs zb zt гг им проф ул""",
    )
)
"""Words that end with a full stop inside a sentence, in lower case and without stops."""
_LONGEST_ABBREVIATION = 40
_INITIALS = re.compile(r"(?:^|[\W\d_])(?:[^\W\d_]\.)*[^\W\d_]$")
"""An initial, or letters with stops between them, at the end of a text: J, U.S, e.g."""
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_NUMBER = re.compile(r"\W*\w{1,3}[.)]?$")
_QUOTED_LINE = re.compile(r"\w{0,12}\s?[>|\]]")
_ITEM = re.compile(r"(?:[-*+\u2022\u25e6\u2013\u2014\u00b7]|\d{1,3}[.)]|\(?\w{1,3}\))\s+")
_TABLE_LINE = re.compile(r"\t|\S {3,}\S.*\S {3,}\S|\s\|\s")
_ADDRESS = re.compile(r"\S@\S|://")
_MAX_WRAPPED, _FULL_LINE = 120, 0.6
"""Longest line of a wrapped text, and the length of a full line as a share of the longest one."""
_MIN_WORDS, _MIN_LETTERS = 6, 0.8
"""Words and share of letters and spaces of a sentence that can be read alone."""
_MIN_LETTERS_OF_PART, _LONGEST_WORD = 0.8, 40
"""Share of letters and spaces of a readable part of a text, and characters of a word that may be encoded data."""


class Sentence(NamedTuple):
    """A sentence, or a part of a text that is not a sentence, such as a heading."""

    text: str
    """On one line."""
    complete: bool
    """Whether it begins and ends as sentences do, and consists of words."""


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text in their order."""
    blocks = list(_blocks(text, quoted=False)) or list(_blocks(text, quoted=True))
    lower = _is_lower(text, [block for block, _ in blocks])
    sentences = []
    for block, is_table in blocks:
        start = 0
        for match in _END.finditer(block):
            if _ends_sentence(block, start, match, lower):
                sentences.append(_sentence(block[start : match.end()], lower, is_table))
                start = match.end()
        sentences.append(_sentence(block[start:], lower, is_table))
    return [sentence for sentence in sentences if sentence.text]


def shortened(text: str, width: int) -> str:
    """Return the beginning of a text on one line, which has at most half more characters than `width`.

    It ends with the last sentence that ends in the second half of `width`, else with the first sentence that ends after
    it, else at a word.
    """
    text = " ".join(text[: 4 * width].split())
    if len(text) <= width:
        return text
    lower, longest = _is_lower(text, [text]), width + width // 2
    found = (match for match in _END.finditer(text) if width / 2 <= match.end() <= longest)
    ends = [match.end() for match in found if _ends_sentence(text, 0, match, lower)]
    inside = [end for end in ends if end <= width]
    return text[: (inside[-1:] or ends)[0]] if ends else cut_at_word(text, width)


def cut_at_word(text: str, width: int) -> str:
    """Return a text of at most `width` characters, with an ellipsis after the last whole word if it is longer."""
    return text if len(text) <= width else _cut(text, 0, width)


def split_parts(text: str, width: int) -> list[str]:
    """Return overlapping parts of a text on one line, cut at words, with ellipses; the text itself if it fits."""
    if len(text) <= width:
        return [text]
    parts, start, step = [], 0, width // 4
    while True:
        parts.append(_cut(text, start, width))
        if start + width >= len(text) + len(ELLIPSIS) + 1:
            return parts
        start = min(start + step, len(text) - width + 2)
        space = text.find(" ", start, start + step)
        start = start if space < 0 or WITHOUT_SPACES.match(text[start]) else space + 1


def count_words(text: str) -> float:
    """Return the number of words; two characters of a script without spaces are a word."""
    return len(text.split()) + len(WITHOUT_SPACES.findall(text)) / 2


def is_readable(text: str) -> bool:
    """Return whether a text is made of words, and not of figures, code or data encoded as text."""
    longest = [word for word in text.split() if len(word) > _LONGEST_WORD and not WITHOUT_SPACES.search(word)]
    encoded = sum(len(word) for word in longest if not _ADDRESS.search(word))
    return _share_of_letters(text) >= _MIN_LETTERS_OF_PART and encoded <= len(text) / 2


def _share_of_letters(text: str) -> float:
    """Return the share of letters and spaces."""
    return sum(unicodedata.category(character)[0] in "LMZ" for character in text) / max(len(text), 1)


def _cut(text: str, start: int, width: int) -> str:
    """Return the words from `start` on that fit into `width` characters with an ellipsis at each end that is cut."""
    before = f"{ELLIPSIS} " if start else ""
    end = start + width - len(before)
    if end >= len(text):
        return before + text[start:]
    end -= 2
    space = text.rfind(" ", start + width // 4, end + 1)
    if space < 0 or WITHOUT_SPACES.match(text[end]):
        return f"{before}{text[start:end].rstrip()}{ELLIPSIS}"
    return f"{before}{text[start:space].rstrip()} {ELLIPSIS}"


def _blocks(text: str, *, quoted: bool) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text that are divided by its lines, each on one line, and whether it is from a table."""
    lines = [line.strip() for line in text.splitlines()]
    width = max(map(len, lines), default=0)
    block, last, last_is_table = "", "", False
    for line in lines:
        is_table = _TABLE_LINE.search(line) is not None
        item = _ITEM.match(line)
        skipped = not any(map(str.isalnum, line)) or (not quoted and _QUOTED_LINE.match(line) is not None)
        short = width > _MAX_WRAPPED or len(last) < _FULL_LINE * width
        if block and (
            skipped or is_table or last_is_table or item or (short and not line[:1].islower())
        ):  # fmt: skip
            yield block, last_is_table
            block = ""
        if not skipped:
            joint = "" if not block or (WITHOUT_SPACES.match(block[-1]) and WITHOUT_SPACES.match(line[0])) else " "
            block += joint + " ".join(line[item.end() if item else 0 :].split())
        last, last_is_table = line, is_table
    if block:
        yield block, last_is_table


def _is_lower(text: str, blocks: list[str]) -> bool:
    """Return whether most sentences of a text begin in lower case."""
    nexts = [_next_character(block, end.end()) for block in blocks for end in _END.finditer(block)]
    return text.islower() or sum(map(str.islower, nexts)) > sum(map(str.isupper, nexts))


def _ends_sentence(block: str, start: int, match: re.Match[str], lower: bool) -> bool:
    """Return whether a mark ends the sentence that begins at `start`."""
    after = _next_character(block, match.end())
    if match[0][0] != "." or match[0].startswith(".."):
        return not after.islower() or lower or WITHOUT_SPACES.match(after) is not None
    before = block[max(start, match.start() - _LONGEST_ABBREVIATION) : match.start()].lstrip()
    word = _LAST_WORD.search(before)
    if _INITIALS.search(before) or (word and word[0].lower() in _ABBREVIATIONS) or _NUMBER.fullmatch(before):
        return False
    return lower or not after.islower()


def _next_character(block: str, place: int) -> str:
    """Return the character after a place in a text with single spaces, or after the space there."""
    return block[place : place + 2].lstrip()[:1]


def _sentence(text: str, lower: bool, is_table: bool) -> Sentence:
    text = text.strip()
    end = _END.search(text, max(0, len(text) - 8))
    inner = text.lstrip("\"'\u2018\u201c\u00ab\u300c([ ")
    begins = inner[:1].isalnum() and (lower or not inner[0].islower())
    is_prose = (
        not is_table
        and not _ADDRESS.search(text)
        and count_words(text) >= _MIN_WORDS
        and _share_of_letters(text) >= _MIN_LETTERS
    )
    return Sentence(text, begins and end is not None and is_prose)
