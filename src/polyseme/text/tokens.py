"""From documents to word counts: tables of characters, and the Python interface of the compiled counter.

`Characters` is a table over all code points. An entry holds the code point to count (usually the lower case of the
character) in the low 24 bits and a kind in the bits above, as `_native/text/characters.hpp` reads it. The tables are
made from Python's own `re`, `str.lower` and `unicodedata`, so that counts follow the Unicode version of the running
Python.

`WordCounter` counts words or n-grams; `WordSequences` stores the words of each document in order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
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
Kinds = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Columns = npt.NDArray[np.int32]

SEPARATOR, SPACE, WORD, SPOILER, GRAM, JOINER, IGNORED = range(7)
"""Kinds of characters; `_native/text/characters.hpp` explains them and has the same numbers."""
WORDS, CHARACTERS, PADDED_CHARACTERS = range(3)
"""Units that are counted, with the numbers of `Unit` in `_native/text/counter.hpp`."""

_N_CODES = 0x110000
_KIND_SHIFT = 24
_LAST_SCRIPTS = 0x20000  # code points above are ideographs, or not part of words
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
_COLUMN = "such as the column data['text']"
_WRITABLE_DTYPES = (np.int32, np.int64, np.float32, np.float64)
"""Types that the compiled counter can write; counts of other types are converted afterwards."""


@dataclass(frozen=True)
class Alphabet:
    """A set of characters: sorted code points, and the same characters as a text."""

    codes: Codes
    text: str

    @classmethod
    def of(cls, characters: Iterable[str]) -> Alphabet:
        """Return the alphabet of some characters."""
        codes = np.array(sorted(map(ord, characters)), dtype="<u4")
        return cls(codes, codes.tobytes().decode("utf-32-le", "surrogatepass"))

    @property
    def is_complete(self) -> bool:
        """Whether these are all characters, so that the position of a code point is the code point itself."""
        return len(self.codes) == _N_CODES

    def matching(self, atom: str) -> Mask:
        """Return a mask of the characters that match a regular expression of one character."""
        mask = np.zeros(len(self.codes), dtype=bool)
        for match in re.finditer(f"(?:{atom})+", self.text):
            mask[match.start() : match.end()] = True
        return mask

    def between(self, spans: Iterable[tuple[int, int]]) -> Mask:
        """Return a mask of the characters in ranges of code points; a range ends before its second number."""
        mask = np.zeros(len(self.codes), dtype=bool)
        for span in spans:
            start, end = np.searchsorted(self.codes, span)
            mask[start:end] = True
        return mask

    def among(self, characters: str) -> Mask:
        """Return a mask of the characters that a text contains."""
        return self.between((ord(character), ord(character) + 1) for character in characters)

    @cached_property
    def in_words(self) -> Mask:
        return self.matching(r"\w")

    @cached_property
    def white_space(self) -> Mask:
        return self.matching(r"\s")

    @cached_property
    def combining_marks(self) -> Mask:
        r"""A mask of the combining marks, which \w does not match."""
        scripts = self.text[: int(np.searchsorted(self.codes, _LAST_SCRIPTS))]
        mask = np.zeros(len(self.codes), dtype=bool)
        mask[: len(scripts)] = [unicodedata.category(character).startswith("M") for character in scripts]
        return mask

    @cached_property
    def lower_case(self) -> tuple[Codes, tuple[int, ...]]:
        """The lower case of each character, and the characters whose lower case is irregular."""
        codes = self.codes.copy()
        irregular = [_CAPITAL_SIGMA]
        for start in range(0, len(codes), 256):
            block = self.text[start : start + 256]
            if block.lower() == block:
                continue
            for place, character in enumerate(block, start):
                lowered = character.lower()
                if len(lowered) == 1:
                    codes[place] = ord(lowered)
                else:
                    irregular.append(ord(character))
        return codes, tuple(sorted(set(irregular)))


@dataclass(frozen=True)
class Characters:
    """A table of characters, the length of the shortest word, and characters that need `str.lower`."""

    kinds: Callable[[Alphabet], Kinds]
    """Function that returns the kind of each character of an alphabet."""
    lowercase: bool
    min_length: int = 1

    @property
    def table(self) -> Codes:
        """The entry of each code point."""
        return self._table_and_irregular[0]

    @property
    def irregular(self) -> tuple[int, ...]:
        """Characters whose lower case is not one character, or depends on neighbors.

        Texts that contain them are converted to lower case first.
        """
        return self._table_and_irregular[1]

    def of_texts(self, texts: Sequence[str]) -> Characters:
        """Return the same rules with a table of only the characters of some texts, which is fast to make."""
        characters: set[str] = set().union(*texts, *(text.lower() for text in texts))
        size = -1
        while self.lowercase and len(characters) > size:
            size = len(characters)
            characters |= set().union(*map(str.lower, characters))
        limited = Characters(self.kinds, self.lowercase, self.min_length)
        vars(limited)["_table_and_irregular"] = limited._entries(Alphabet.of(characters))
        return limited

    @cached_property
    def _table_and_irregular(self) -> tuple[Codes, tuple[int, ...]]:
        return self._entries(_every_character())

    def _entries(self, alphabet: Alphabet) -> tuple[Codes, tuple[int, ...]]:
        """Return a table in which each character has the kind of its lower case, and the irregular characters."""
        kinds = self.kinds(alphabet).astype(np.uint32)
        codes, irregular = alphabet.lower_case if self.lowercase else (alphabet.codes, ())
        if self.lowercase:
            kinds = kinds[codes if alphabet.is_complete else np.searchsorted(alphabet.codes, codes)]
        entries = codes | kinds << np.uint32(_KIND_SHIFT)
        table = entries
        if not alphabet.is_complete:
            table = np.zeros(_N_CODES, dtype=np.uint32)
            table[alphabet.codes] = entries
        table.flags.writeable = False
        return table, irregular


@cache
def pattern_characters(pattern: str, lowercase: bool) -> Characters | None:
    r"""Return the table that finds the words of `re.findall(pattern, text)`, or None if there is no such table.

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
    min_length = n_more + (1 if repeat == "+" else int(repeat[1:-2]))
    if min_length < 1:
        return None
    if atom != r"\w":
        members = _every_character().matching(atom)
        if boundary_before and (members & ~_every_character().in_words).any():
            return None
    return Characters(partial(_pattern_kinds, atom=atom, bounded=bool(boundary_before)), lowercase, min_length)


@cache
def single_characters(lowercase: bool) -> Characters:
    """Return the table for n-grams of characters, in which only white space is special."""
    return Characters(_single_kinds, lowercase)


@cache
def language_characters(lowercase: bool, joiners: str, pairs: tuple[tuple[int, int], ...]) -> Characters:
    """Return the table of a language: words of two or more letters, marks and digits; pairs of some characters.

    `joiners` are part of a word if they are between two of its characters. The code points in the ranges `pairs` are
    counted in pairs of neighbors.
    """
    return Characters(partial(_language_kinds, joiners=joiners, pairs=pairs), lowercase, min_length=2)


@cache
def phrase_characters(joiners: str, pairs: tuple[tuple[int, int], ...]) -> Characters:
    """Return the table of the words of phrases as they are written: in upper and lower case, with hyphens inside.

    Characters that are counted in pairs of neighbors are not part of phrases.
    """
    return Characters(partial(_phrase_kinds, joiners=joiners, pairs=pairs), lowercase=False)


def _phrase_kinds(alphabet: Alphabet, *, joiners: str, pairs: tuple[tuple[int, int], ...]) -> Kinds:
    kinds = _language_kinds(alphabet, joiners=joiners, pairs=pairs)
    kinds[kinds == GRAM] = SEPARATOR
    kinds[alphabet.among(_HYPHENS)] = JOINER
    return kinds


def _pattern_kinds(alphabet: Alphabet, *, atom: str, bounded: bool) -> Kinds:
    kinds = _kinds_between_words(alphabet)
    if bounded:
        kinds[alphabet.in_words] = SPOILER
    kinds[alphabet.in_words if atom == r"\w" else alphabet.matching(atom)] = WORD
    return kinds


def _single_kinds(alphabet: Alphabet) -> Kinds:
    return np.where(alphabet.white_space, SPACE, SEPARATOR).astype(np.uint8)


def _language_kinds(alphabet: Alphabet, *, joiners: str, pairs: tuple[tuple[int, int], ...]) -> Kinds:
    kinds = _kinds_between_words(alphabet)
    kinds[alphabet.in_words | alphabet.combining_marks] = WORD
    kinds[alphabet.among("_")] = SEPARATOR
    kinds[alphabet.between(pairs) & alphabet.in_words] = GRAM
    kinds[alphabet.between(_FORMAT_CHARACTERS)] = IGNORED
    kinds[alphabet.among(_ZERO_WIDTH_JOINERS + joiners)] = JOINER
    return kinds


def _kinds_between_words(alphabet: Alphabet) -> Kinds:
    """Return the kinds for a text without words: a phrase may contain white space and hyphens, but no separator."""
    kinds = np.full(len(alphabet.codes), SEPARATOR, dtype=np.uint8)
    kinds[alphabet.white_space | alphabet.among(_HYPHENS)] = SPACE
    return kinds


@cache
def _every_character() -> Alphabet:
    codes = np.arange(_N_CODES, dtype="<u4")
    return Alphabet(codes, codes.tobytes().decode("utf-32-le", "surrogatepass"))


@dataclass(frozen=True)
class TokenRules:
    """Rules that split a document into words."""

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
        """Return the counts (documents x columns) with sorted rows, and release the memory of the counter.

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
    """The words of each document in order, stored as 32-bit numbers."""

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

    def numbers(self, *, barriers: bool = False) -> tuple[Columns, Integers]:
        """Return the numbers of the words of all documents in order, and the position where each document starts.

        barriers : whether -1 marks the positions across which no phrase extends.
        """
        numbers = np.empty(self.compiled.size(barriers), dtype=np.int32)
        indptr = np.empty(self.n_documents + 1, dtype=np.int64)
        self.compiled.write(numbers, indptr, barriers)
        return numbers, indptr

    def columns(self, columns: Columns) -> TokenSequences:
        """Return columns[number] of each word in the order of the documents; -1 marks a word without a column."""
        from polyseme.metrics.coherence import TokenSequences  # imports scipy, which a query does not need

        numbers, indptr = self.numbers()
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
    """Raise ValueError if one string (scikit-learn's message), or a table or mapping was given instead of documents."""
    if isinstance(documents, str):
        raise ValueError("Iterable over raw text documents expected, string object received.")
    is_splits = isinstance(documents, Mapping) and hasattr(documents, "column_names")  # of Hugging Face datasets
    if is_splits or hasattr(documents, "columns"):  # iterating yields names, not texts
        raise InputError(f"Documents are an object of type {type(documents).__name__}: pass its texts, {_COLUMN}.")


def batches(
    documents: Iterable[Any], decode: Callable[[Any], Any], *, strings_are_texts: bool = True, any_type: bool = False
) -> Iterator[list[Any]]:
    """Yield the documents in lists of a few megabytes. `decode` is applied to documents that are not texts.

    Scalars of an Arrow array become texts.

    `any_type` allows documents that are not strings, for a preprocessor or tokenizer of the user.
    """
    if hasattr(documents, "to_pylist"):
        documents = (scalar.as_py() for scalar in documents)
    batch: list[Any] = []
    size = 0
    for number, document in enumerate(documents):
        text = document if strings_are_texts and type(document) is str else decode(document)
        if isinstance(text, str):
            size += len(text) + _COST_OF_A_DOCUMENT
        elif any_type:
            size += _COST_OF_AN_OBJECT
        else:
            advice = f": pass the texts, {_COLUMN}" if isinstance(text, Mapping) else ""
            raise InputError(
                f"Document {number} must be a string, got an object of type {type(text).__name__}{advice}."
            )
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


@cache
def _given_words() -> TokenRules:
    """Return the rules of a counter whose words are already known, so that it needs no characters."""
    return TokenRules(single_characters(False).of_texts(()))
