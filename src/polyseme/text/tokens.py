"""What each character is to the counter: a table over all code points, made by asking the running Python.

An entry is the code point to count (the character's lower case, say) and a kind, as `_native/text/characters.hpp`
reads it. Nothing about Unicode is written down here that Python can tell, so the counts follow its version of Unicode.

Documents in, counts out: the Python face of the compiled counter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.metrics.coherence import TokenSequences
from polyseme.text._counting import Counter
from polyseme.text._counting import Sequences as CompiledSequences

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint32]

SEPARATOR, SPACE, WORD, SPOILER, GRAM, JOINER, IGNORED = range(7)

_N_CODES = 0x110000
_KIND_SHIFT = 24
_LAST_SCRIPTS = 0x20000  # beyond are ideographs, and characters that are part of no word
_CAPITAL_SIGMA = ord("Σ")  # its lower case depends on its neighbors
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

Integers = npt.NDArray[np.int64]
Columns = npt.NDArray[np.int32]

WORDS, CHARACTERS, PADDED_CHARACTERS = range(3)

_CHARACTERS_AT_ONCE = 1 << 23
_COST_OF_A_DOCUMENT = 64
_COST_OF_AN_OBJECT = 1 << 13
"""A guess, for documents whose size in characters is not known."""
_DIRECT = (np.int32, np.int64, np.float32, np.float64)


@dataclass(frozen=True)
class Splitting:
    """How a document becomes words: prepared, then split by its characters, or by a function `words`.

    text_expected : whether `prepare` must return a string; a tokenizer may take anything.
    """

    characters: Characters
    unit: int = WORDS
    stops: frozenset[str] = frozenset()
    prepare: Callable[[Any], Any] | None = None
    words: Callable[[Any], Iterable[str]] | None = None
    text_expected: bool = True


GIVEN_WORDS = Splitting(one_by_one(False))
"""For words that come from elsewhere."""


def refuse_one_string(documents: Any) -> None:
    """A string is iterable, but hardly meant as documents of one character each; scikit-learn's own words."""
    if isinstance(documents, str):
        raise ValueError("Iterable over raw text documents expected, string object received.")


def batches(
    documents: Iterable[Any], decode: Callable[[Any], Any], *, strings_are_texts: bool = True, any_type: bool = False
) -> Iterator[list[Any]]:
    """The documents, a few megabytes at a time; what is not a text itself (bytes, the name of a file) is decoded.

    any_type : whether documents may be other objects than strings, for a preprocessor or tokenizer of the user.
    """
    batch: list[Any] = []
    size = 0
    for number, document in enumerate(documents):
        text = document if strings_are_texts and type(document) is str else decode(document)
        if isinstance(text, str):
            size += len(text) + _COST_OF_A_DOCUMENT
        elif any_type:
            size += _COST_OF_AN_OBJECT
        else:
            raise InputError(f"Document {number} is of type {type(text).__name__}, where a string belongs.")
        batch.append(text)
        if size >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _add(counter: Any, batch: list[Any], splitting: Splitting, n_threads: int) -> None:
    if splitting.prepare is not None:
        batch = [splitting.prepare(document) for document in batch]
        other = next((text for text in batch if not isinstance(text, str)), None) if splitting.text_expected else None
        if other is not None:
            raise InputError(f"The preprocessor must return strings, not {type(other).__name__}.")
    if splitting.words is None:
        counter.add(batch, n_threads)
        return
    words = [list(splitting.words(text)) for text in batch]
    try:
        counter.add_words(words, n_threads)
    except TypeError as error:
        raise InputError(f"The tokenizer must give strings: {error}.") from None


class Tally:
    """How often each word, or run of words, stands in each document. Documents go in, in batches.

    Without `keep` only the words' totals are kept.
    """

    def __init__(
        self, splitting: Splitting, ngram_range: tuple[int, int] = (1, 1), *, keep: bool = True, n_threads: int
    ) -> None:
        characters = splitting.characters
        self.splitting = splitting
        self.n_threads = n_threads
        self.n_documents = 0
        self.counter = Counter(
            characters.table, list(characters.peculiar), splitting.unit, characters.min_length, *ngram_range,
            sorted(splitting.stops), keep,
        )  # fmt: skip

    def add(self, batch: list[Any]) -> None:
        _add(self.counter, batch, self.splitting, self.n_threads)
        self.n_documents += len(batch)

    def words(self) -> list[str]:
        """The distinct words, sorted; their numbers are their places. No documents can be added after this."""
        return self.counter.words(self.n_threads)

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        """The tokens, and the documents, of each word."""
        tokens, documents = np.zeros(n_words, dtype=np.int64), np.zeros(n_words, dtype=np.int64)
        self.counter.totals(tokens, documents)
        return tokens, documents

    def renumber(self, columns: Columns) -> None:
        """Word i becomes columns[i]; those with the same column are added up, -1 drops a word."""
        self.counter.renumber(np.ascontiguousarray(columns, dtype=np.int32), self.n_threads)

    def matrix(self, n_columns: int, dtype: Any) -> sp.csr_array:
        """The counts (documents x columns) with sorted rows; this ends the tally."""
        n_rows, n_counts = self.counter.rows, self.counter.nonzeros
        indptr = np.empty(n_rows + 1, dtype=np.int64)
        indices = np.empty(n_counts, dtype=np.int32)
        values = np.empty(n_counts, dtype=dtype if np.dtype(dtype).type in _DIRECT else np.int64)
        self.counter.write(indptr, indices, values, self.n_threads)
        if n_counts <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        matrix = sp.csr_array((values.astype(dtype, copy=False), indices, indptr), (n_rows, n_columns))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix


class Sequences:
    """The words of each document in their order, four bytes a word."""

    def __init__(self, splitting: Splitting, *, n_threads: int) -> None:
        characters = splitting.characters
        self.splitting = splitting
        self.n_threads = n_threads
        self.n_documents = 0
        self.sequences = CompiledSequences(
            characters.table, list(characters.peculiar), characters.min_length, sorted(splitting.stops)
        )

    def add(self, batch: list[Any]) -> None:
        _add(self.sequences, batch, self.splitting, self.n_threads)
        self.n_documents += len(batch)

    def words(self) -> list[str]:
        """The distinct words, sorted; from now on their numbers are their places."""
        return self.sequences.words(self.n_threads)

    def totals(self, n_words: int) -> Integers:
        tokens = np.zeros(n_words, dtype=np.int64)
        self.sequences.totals(tokens)
        return tokens

    def renumber(self, numbers: Columns) -> None:
        self.sequences.renumber(np.ascontiguousarray(numbers, dtype=np.int32), self.n_threads)

    def columns(self, columns: Columns) -> TokenSequences:
        """The column of each word, in the documents' order; -1, for a word without one, keeps its place."""
        numbers = np.empty(self.sequences.size, dtype=np.int32)
        indptr = np.empty(self.n_documents + 1, dtype=np.int64)
        self.sequences.write(numbers, indptr)
        return TokenSequences(np.ascontiguousarray(columns, dtype=np.int32)[numbers], indptr)

    def pairs(self, min_count: int) -> npt.NDArray[np.int64]:
        """Neighbors that occur at least min_count times, sorted: rows (first, second, count)."""
        return np.array(self.sequences.pairs(min_count, self.n_threads), dtype=np.int64).reshape(-1, 3)

    def join(self, first: Columns, second: Columns, joined: Columns) -> None:
        """Neighbors first[i], second[i] become the one word joined[i], from left to right."""
        self.sequences.join(first, second, joined, self.n_threads)

    def tally(self, names: Sequence[str], ngram_range: tuple[int, int], *, keep: bool) -> Tally:
        """The counts of the documents, with a name for each number."""
        tally = Tally(GIVEN_WORDS, ngram_range, keep=keep, n_threads=self.n_threads)
        self.sequences.count_into(tally.counter, list(names), self.n_threads)
        tally.n_documents = self.n_documents
        return tally
