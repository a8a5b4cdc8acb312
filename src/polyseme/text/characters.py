"""What each character is to the counter: a table over all code points, made by asking the running Python.

An entry is the code point to count (the character's lower case, say) and a kind, as `_native/text/characters.hpp`
reads it. Nothing about Unicode is written down here that Python can tell, so the counts follow its version of Unicode.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint32]

SEPARATOR, SPACE, WORD, SPOILER, GRAM, JOINER, IGNORED = range(7)

_N_CODES = 0x110000
_KIND_SHIFT = 24
_LAST_SCRIPTS = 0x20000  # beyond are ideographs, and characters that are part of no word
_CAPITAL_SIGMA = ord("Σ")  # its lower case depends on its neighbours
_HYPHENS = "-\u2010\u2011"

_ATOM = r"\\w|\[\^?(?:[^\]\[\\]|\\.)+\]"
_SIMPLE_PATTERN = re.compile(rf"(?:\(\?u\))?(\\b)?({_ATOM})((?:{_ATOM})*)(\+|\{{\d+,\}})(\\b)?")


@dataclass(frozen=True)
class Characters:
    """A table for the counter, the shortest word, and the characters that only Python's str.lower can lower."""

    table: Codes
    min_length: int = 1
    peculiar: tuple[int, ...] = ()


@cache
def _every_character() -> str:
    return np.arange(_N_CODES, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _mask(spans: Iterable[tuple[int, int]]) -> Mask:
    mask = np.zeros(_N_CODES, dtype=bool)
    for start, end in spans:
        mask[start:end] = True
    return mask


def matched(atom: str) -> Mask:
    """The characters that a regular expression of one character matches."""
    return _mask(found.span() for found in re.finditer(f"(?:{atom})+", _every_character()))


@cache
def word_characters() -> Mask:
    r"""Python's \w."""
    return matched(r"\w")


@cache
def white_space() -> Mask:
    return matched(r"\s")


@cache
def marks() -> Mask:
    """Combining marks, which Python's \\w does not match."""
    return _mask((c, c + 1) for c in range(_LAST_SCRIPTS) if unicodedata.category(chr(c)).startswith("M"))


@cache
def lower_case() -> tuple[Codes, tuple[int, ...]]:
    """The lower case of each character, and those characters whose lower case is not one character by itself."""
    codes = np.arange(_N_CODES, dtype=np.uint32)
    peculiar = [_CAPITAL_SIGMA]
    characters = _every_character()
    for start in range(0, _N_CODES, 256):
        block = characters[start : start + 256]
        lowered = block.lower()
        if lowered == block:
            continue
        for code, character in enumerate(block, start):
            lowered = character.lower()
            if len(lowered) == 1:
                codes[code] = ord(lowered)
            else:
                peculiar.append(code)
    return codes, tuple(sorted(peculiar))


def _characters(kinds: npt.NDArray[np.uint8], lowercase: bool, min_length: int = 1) -> Characters:
    """Each character is of the kind that its lower case is of."""
    codes, peculiar = lower_case() if lowercase else (np.arange(_N_CODES, dtype=np.uint32), ())
    table = codes | kinds[codes].astype(np.uint32) << np.uint32(_KIND_SHIFT)
    table.flags.writeable = False
    return Characters(table, min_length, peculiar)


def _gaps() -> npt.NDArray[np.uint8]:
    """Kinds of a text without words: what may stand inside a phrase, and what may not."""
    kinds = np.full(_N_CODES, SEPARATOR, dtype=np.uint8)
    kinds[white_space()] = SPACE
    kinds[[ord(hyphen) for hyphen in _HYPHENS]] = SPACE
    return kinds


@cache
def by_pattern(pattern: str, lowercase: bool) -> Characters | None:
    r"""The words that `re.findall(pattern, text)` gives, for patterns of one set of characters; else None.

    With C a set ([...] or \w): C+, CC+, C{3,} and the like are the runs of C; with \b before and behind, and C within
    \w, they are the runs of \w that have only characters of C.
    """
    shape = _SIMPLE_PATTERN.fullmatch(pattern)
    if shape is None:
        return None
    before, atom, more, repeat, behind = shape.groups()
    n_more, remainder = divmod(len(more), len(atom))
    if (before is None) != (behind is None) or remainder or more != atom * n_more:
        return None
    members = word_characters() if atom == r"\w" else matched(atom)
    min_length = n_more + (1 if repeat == "+" else int(repeat[1:-2]))
    if min_length < 1 or (before and (members & ~word_characters()).any()):
        return None
    kinds = _gaps()
    if before:
        kinds[word_characters()] = SPOILER
    kinds[members] = WORD
    return _characters(kinds, lowercase, min_length)


@cache
def one_by_one(lowercase: bool) -> Characters:
    """For n-grams of characters: only white space is special."""
    return _characters(np.where(white_space(), SPACE, SEPARATOR).astype(np.uint8), lowercase)


@cache
def by_language(lowercase: bool, joiners: str, grams: tuple[tuple[int, int], ...]) -> Characters:
    """Words of two and more letters, marks and digits, whole; the characters of `grams` by pairs."""
    kinds = _gaps()
    kinds[word_characters() | marks()] = WORD
    kinds[ord("_")] = SEPARATOR
    kinds[_mask(grams) & word_characters()] = GRAM
    kinds[_mask(_FORMAT_CHARACTERS)] = IGNORED
    kinds[[ord(joiner) for joiner in _ZERO_WIDTH_JOINERS + joiners]] = JOINER
    return _characters(kinds, lowercase, min_length=2)


_ZERO_WIDTH_JOINERS = "\u200c\u200d"
_FORMAT_CHARACTERS = (
    (0x00AD, 0x00AE),  # soft hyphen
    (0x0640, 0x0641),  # tatweel, which stretches Arabic words
    (0x200E, 0x2010),  # direction of writing
    (0x202A, 0x202F),
    (0x2060, 0x2065),  # word joiner
    (0x2066, 0x206A),
    (0xFE00, 0xFE10),  # variants of a character's form
    (0xFEFF, 0xFF00),  # byte order mark
    (0xE0100, 0xE01F0),
)
