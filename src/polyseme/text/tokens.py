"""From documents to word counts: tables of characters, and the Python interface of the compiled counter.

`Characters` is a table over all code points. An entry holds the code point to count (usually the lower case of the
character) in the low 24 bits and a kind in the bits above, as `_native/text/characters.hpp` reads it. The tables are
made from Python's own `re`, `str.lower` and `unicodedata`, so that counts follow the Unicode version of the running
Python.

`WordCounter` counts words or n-grams; `WordSequences` stores the words of each document in their order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from polyseme.errors import InputError
from polyseme.kernels import SparseCounts
from polyseme.text._counting import Counter
from polyseme.text._counting import Sequences as CompiledSequences

if TYPE_CHECKING:
    from polyseme.metrics.coherence import TokenSequences

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]
Columns = npt.NDArray[np.int32]

SEPARATOR, SPACE, WORD, SPOILER, GRAM, JOINER, IGNORED = range(7)
"""Kinds of characters; `_native/text/characters.hpp` explains them and has the same numbers."""
WORDS, CHARACTERS, PADDED_CHARACTERS = range(3)
"""Units that are counted, with the numbers of `Unit` in `_native/text/counter.hpp`."""

_N_CODES = 0x110000
_KIND_SHIFT = 24
_LAST_SCRIPTS = 0x20000  # code points above are ideographs or belong to no word
_CAPITAL_SIGMA = ord("Σ")  # its lower case depends on the neighboring characters
_HYPHENS = "-\u2010\u2011"
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

_ATOM = r"\\w|\[\^?(?:[^\]\[\\]|\\.)+\]"
_SIMPLE_PATTERN = re.compile(rf"(?:\(\?u\))?(\\b)?({_ATOM})((?:{_ATOM})*)(\+|\{{\d+,\}})(\\b)?")

_CHARACTERS_AT_ONCE = 1 << 23
_COST_OF_A_DOCUMENT = 64
_COST_OF_AN_OBJECT = 1 << 13
"""Assumed size, in characters, of a document that is not a string."""
_WRITABLE_DTYPES = (np.int32, np.int64, np.float32, np.float64)
"""Types that the compiled counter can write; counts of other types are converted afterwards."""


@dataclass(frozen=True)
class Characters:
    """A table of characters, the length of the shortest word, and characters that need `str.lower`."""

    table: Codes
    min_length: int = 1
    irregular: tuple[int, ...] = ()
    """Characters whose lower case is not one character, or depends on neighbors. Texts with them are lowered first."""


@cache
def pattern_characters(pattern: str, lowercase: bool) -> Characters | None:
    r"""Return the table that finds the words of `re.findall(pattern, text)`, or None if no table can.

    A table exists for patterns that repeat one set of characters C ([...] or \w). The matches of C+, CC+, C{3,} and
    similar patterns are the runs of C. With \b at both ends, and if C is a subset of \w, they are the runs of \w that
    have only characters of C.
    """
    shape = _SIMPLE_PATTERN.fullmatch(pattern)
    if shape is None:
        return None
    boundary_before, atom, more, repeat, boundary_after = shape.groups()
    n_more, remainder = divmod(len(more), len(atom))
    if (boundary_before is None) != (boundary_after is None) or remainder or more != atom * n_more:
        return None
    members = _word_characters() if atom == r"\w" else _matching(atom)
    min_length = n_more + (1 if repeat == "+" else int(repeat[1:-2]))
    if min_length < 1 or (boundary_before and (members & ~_word_characters()).any()):
        return None
    kinds = _kinds_between_words()
    if boundary_before:
        kinds[_word_characters()] = SPOILER
    kinds[members] = WORD
    return _characters(kinds, lowercase, min_length)


@cache
def single_characters(lowercase: bool) -> Characters:
    """Return the table for n-grams of characters, in which only white space is special."""
    return _characters(np.where(_white_space(), SPACE, SEPARATOR).astype(np.uint8), lowercase)


@cache
def language_characters(lowercase: bool, joiners: str, pairs: tuple[tuple[int, int], ...]) -> Characters:
    """Return the table of a language: words of two or more letters, marks and digits; pairs of some characters.

    `joiners` are part of a word between two of its characters. The code points in the ranges `pairs` are
    counted by pairs of neighbors.
    """
    kinds = _kinds_between_words()
    kinds[_word_characters() | _combining_marks()] = WORD
    kinds[ord("_")] = SEPARATOR
    kinds[_mask(pairs) & _word_characters()] = GRAM
    kinds[_mask(_FORMAT_CHARACTERS)] = IGNORED
    kinds[[ord(joiner) for joiner in _ZERO_WIDTH_JOINERS + joiners]] = JOINER
    return _characters(kinds, lowercase, min_length=2)


@dataclass(frozen=True)
class TokenRules:
    """How a document is split into words."""

    characters: Characters
    """Table that splits a document, unless `words` does."""
    unit: int = WORDS
    """WORDS, CHARACTERS or PADDED_CHARACTERS."""
    stops: frozenset[str] = frozenset()
    """Stop words, which are not counted."""
    prepare: Callable[[Any], Any] | None = None
    """Function that is applied to each document first."""
    words: Callable[[Any], Iterable[str]] | None = None
    """Tokenizer that runs in Python, from a prepared document to its words."""
    text_expected: bool = True
    """Whether `prepare` must return a string. A tokenizer of the user may accept other types."""


class WordCounter:
    """Counts of words or n-grams in documents, which are added in batches.

    With `per_document=False` only the totals over all documents are stored.
    """

    def __init__(
        self, rules: TokenRules, ngram_range: tuple[int, int] = (1, 1), *, per_document: bool = True, n_threads: int
    ) -> None:
        characters = rules.characters
        self.n_documents = 0
        self._rules = rules
        self._n_threads = n_threads
        self._counter = Counter(
            characters.table, list(characters.irregular), rules.unit, characters.min_length, *ngram_range,
            sorted(rules.stops), per_document,
        )  # fmt: skip

    def add(self, batch: list[Any]) -> None:
        """Count the words of some documents."""
        _add(self._counter, batch, self._rules, self._n_threads)
        self.n_documents += len(batch)

    def add_sequences(self, sequences: WordSequences, names: Sequence[str]) -> None:
        """Count documents that are given as numbers of words, with a name for each number."""
        sequences.compiled.count_into(self._counter, list(names), self._n_threads)
        self.n_documents += sequences.n_documents

    def words(self) -> list[str]:
        """Return the words, sorted; their positions are their numbers. No documents can be added afterwards."""
        return self._counter.words(self._n_threads)

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        """Return the numbers of tokens and of documents of each word."""
        tokens, documents = np.zeros(n_words, dtype=np.int64), np.zeros(n_words, dtype=np.int64)
        self._counter.totals(tokens, documents)
        return tokens, documents

    def renumber(self, columns: Columns) -> None:
        """Change the number of word i to columns[i]. Counts of equal numbers are added; -1 removes a word."""
        self._counter.renumber(np.ascontiguousarray(columns, dtype=np.int32), self._n_threads)

    def counts(self, n_columns: int, dtype: Any, *, binary: bool = False) -> SparseCounts:
        """Return the counts (documents x columns) with sorted rows, and release those of the counter.

        binary : whether every count is 1.
        """
        n_rows, n_counts = self._counter.rows, self._counter.nonzeros
        indptr = np.empty(n_rows + 1, dtype=np.int64)
        indices = np.empty(n_counts, dtype=np.int32)
        values = np.empty(n_counts, dtype=dtype if np.dtype(dtype).type in _WRITABLE_DTYPES else np.int64)
        self._counter.write(indptr, indices, values, self._n_threads)
        if n_counts <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        values = values.astype(dtype, copy=False)
        if binary:
            values.fill(1)
        return SparseCounts(indptr, indices, values, n_rows, n_columns)


class WordSequences:
    """The words of each document in their order, stored as 32-bit numbers."""

    def __init__(self, rules: TokenRules, *, n_threads: int) -> None:
        characters = rules.characters
        self.n_documents = 0
        self._rules = rules
        self._n_threads = n_threads
        self.compiled = CompiledSequences(
            characters.table, list(characters.irregular), characters.min_length, sorted(rules.stops)
        )

    def add(self, batch: list[Any]) -> None:
        """Add the words of some documents."""
        _add(self.compiled, batch, self._rules, self._n_threads)
        self.n_documents += len(batch)

    def words(self) -> list[str]:
        """Return the words, sorted. From then on their positions are their numbers."""
        return self.compiled.words(self._n_threads)

    def totals(self, n_words: int) -> Integers:
        """Return the number of tokens of each word."""
        tokens = np.zeros(n_words, dtype=np.int64)
        self.compiled.totals(tokens)
        return tokens

    def renumber(self, numbers: Columns) -> None:
        """Change the number of word i to numbers[i]."""
        self.compiled.renumber(np.ascontiguousarray(numbers, dtype=np.int32), self._n_threads)

    def columns(self, columns: Columns) -> TokenSequences:
        """Return columns[number] of each word in the order of the documents; -1 marks a word without a column."""
        from polyseme.metrics.coherence import TokenSequences  # imports scipy, which a query does not need

        numbers = np.empty(self.compiled.size, dtype=np.int32)
        indptr = np.empty(self.n_documents + 1, dtype=np.int64)
        self.compiled.write(numbers, indptr)
        return TokenSequences(np.ascontiguousarray(columns, dtype=np.int32)[numbers], indptr)

    def pairs(self, min_count: int) -> npt.NDArray[np.int64]:
        """Return sorted rows (first, second, count) of the neighbors that occur at least min_count times."""
        return np.array(self.compiled.pairs(min_count, self._n_threads), dtype=np.int64).reshape(-1, 3)

    def join(self, first: Columns, second: Columns, joined: Columns) -> None:
        """Replace neighbors first[i], second[i] by the one word joined[i], from left to right."""
        self.compiled.join(first, second, joined, self._n_threads)

    def count(self, names: Sequence[str], ngram_range: tuple[int, int], *, per_document: bool) -> WordCounter:
        """Return the counts of the n-grams of all documents, with a name for each number."""
        counter = WordCounter(_given_words(), ngram_range, per_document=per_document, n_threads=self._n_threads)
        counter.add_sequences(self, names)
        return counter


def check_not_one_string(documents: Any) -> None:
    """Raise ValueError, with scikit-learn's message, if one string was given instead of many documents."""
    if isinstance(documents, str):
        raise ValueError("Iterable over raw text documents expected, string object received.")


def batches(
    documents: Iterable[Any], decode: Callable[[Any], Any], *, strings_are_texts: bool = True, any_type: bool = False
) -> Iterator[list[Any]]:
    """Yield the documents in lists of a few megabytes. `decode` is applied to what is not a text itself.

    `any_type` allows documents that are not strings, for a preprocessor or tokenizer of the user.
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
            raise InputError(f"Document {number} must be a string, got an object of type {type(text).__name__}.")
        batch.append(text)
        if size >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _add(compiled: Any, batch: list[Any], rules: TokenRules, n_threads: int) -> None:
    """Add a batch of documents to a compiled Counter or Sequences."""
    if rules.prepare is not None:
        batch = [rules.prepare(document) for document in batch]
        other = next((text for text in batch if not isinstance(text, str)), None) if rules.text_expected else None
        if other is not None:
            raise InputError(f"The preprocessor must return strings, not {type(other).__name__}.")
    if rules.words is None:
        compiled.add(batch, n_threads)
        return
    words = [list(rules.words(text)) for text in batch]
    try:
        compiled.add_words(words, n_threads)
    except TypeError as error:
        raise InputError(f"The tokenizer must return strings: {error}.") from None


def _characters(kinds: npt.NDArray[np.uint8], lowercase: bool, min_length: int = 1) -> Characters:
    """Return a table in which each character has the kind of its lower case."""
    codes, irregular = _lower_case() if lowercase else (np.arange(_N_CODES, dtype=np.uint32), ())
    table = codes | kinds[codes].astype(np.uint32) << np.uint32(_KIND_SHIFT)
    table.flags.writeable = False
    return Characters(table, min_length, irregular)


def _kinds_between_words() -> npt.NDArray[np.uint8]:
    """Return the kinds for a text without words: a phrase may contain white space and hyphens, but no separator."""
    kinds = np.full(_N_CODES, SEPARATOR, dtype=np.uint8)
    kinds[_white_space()] = SPACE
    kinds[[ord(hyphen) for hyphen in _HYPHENS]] = SPACE
    return kinds


@cache
def _every_character() -> str:
    return np.arange(_N_CODES, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _mask(spans: Iterable[tuple[int, int]]) -> Mask:
    mask = np.zeros(_N_CODES, dtype=bool)
    for start, end in spans:
        mask[start:end] = True
    return mask


def _matching(atom: str) -> Mask:
    """Return a mask of the characters that match a regular expression of one character."""
    return _mask(found.span() for found in re.finditer(f"(?:{atom})+", _every_character()))


@cache
def _word_characters() -> Mask:
    return _matching(r"\w")


@cache
def _white_space() -> Mask:
    return _matching(r"\s")


@cache
def _combining_marks() -> Mask:
    r"""Return a mask of the combining marks, which \w does not match."""
    return _mask((c, c + 1) for c in range(_LAST_SCRIPTS) if unicodedata.category(chr(c)).startswith("M"))


@cache
def _lower_case() -> tuple[Codes, tuple[int, ...]]:
    """Return the lower case of each character, and the characters whose lower case is irregular."""
    codes = np.arange(_N_CODES, dtype=np.uint32)
    irregular = [_CAPITAL_SIGMA]
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
                irregular.append(code)
    return codes, tuple(sorted(irregular))



@cache
def _given_words() -> TokenRules:
    """Return the rules of a counter whose words are already known."""
    return TokenRules(single_characters(False))
