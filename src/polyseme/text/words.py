"""`WordRules`: what a fitted Vectorizer knows, without scikit-learn, so that a query is counted without importing it.

`Vectorizer.transform` counts with these rules; `saving.read_word_rules` reads them from the file of a vectorizer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import SparseCounts
from polyseme.text.languages import (
    Language,
    Pair,
    join_phrases,
    language_token_rules,
    scikit_learn_token_rules,
    stem_words,
)
from polyseme.text.tokens import TokenRules, WordCounter, WordSequences, check_not_one_string

DEFAULT_PATTERN = r"(?u)\b\w\w+\b"
"""Regular expression of a word in scikit-learn."""


class ColumnLookup(Protocol):
    """Columns of words: a dict, or a table in a file."""

    def __len__(self) -> int: ...
    def get(self, word: Any, default: int, /) -> int: ...


@dataclass(frozen=True)
class WordRules:
    """How the words of a text are found, which forms are one word, and the column of each word."""

    tokens: TokenRules
    """How a document is split into words."""
    columns: ColumnLookup
    """Column of each word of the vocabulary."""
    ngram_range: tuple[int, int] = (1, 1)
    language: Language | None = None
    stem: bool = False
    """Whether all forms of a stem are one word."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """Stem of each form of the documents of the fit."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """The word that each stem is counted as. Only with a language."""
    phrases: Sequence[Sequence[Pair]] = ()
    """Pairs of words that are joined, in each round."""
    ordered: bool = False
    """Whether the order of the words matters until stems and phrases are joined."""
    binary: bool = False
    dtype: Any = np.int64
    n_threads: int = 1
    settings: TokenSettings | None = None
    """The settings that `tokens` was made from; None if a function of the user is part of it."""

    def transform(self, texts: Iterable[str]) -> SparseCounts:
        """Return the counts of some short texts, such as queries (texts x words)."""
        check_not_one_string(texts)
        prepare, characters = self.tokens.prepare, self.tokens.characters
        prepared = [text if prepare is None else prepare(text) for text in texts]
        limited = replace(self.tokens, prepare=None, characters=characters.of_texts(prepared))
        return replace(self, tokens=limited).count(iter([prepared]))

    def count(self, documents: Iterator[list[Any]]) -> SparseCounts:
        """Return the counts of documents that come in batches. Unknown words are not counted."""
        words: Sequence[str | None]
        if self.ordered:
            sequences, names = self.known_sequences(documents)
            counter = sequences.count(names, self.ngram_range, per_document=True)
            words = counter.words()
        else:
            counter = WordCounter(self.tokens, self.ngram_range, n_threads=self.n_threads)
            for batch in documents:
                counter.add(batch)
            words = self._names_of_forms(counter.words())
        columns = (self.columns.get(word, -1) for word in words)
        counter.renumber(np.fromiter(columns, dtype=np.int32, count=len(words)))
        return counter.counts(len(self.columns), self.dtype, binary=self.binary)

    def known_sequences(self, documents: Iterator[list[Any]]) -> tuple[WordSequences, list[str]]:
        """Return the words of new documents with the known phrases joined, and the name of each number."""
        sequences = WordSequences(self.tokens, n_threads=self.n_threads)
        for batch in documents:
            sequences.add(batch)
        names = self._join_forms(sequences)
        for pairs in self.phrases:
            names = join_phrases(sequences, names, pairs)
        return sequences, names

    def _names_of_forms(self, forms: list[str]) -> Sequence[str | None]:
        """Return the word that each form is counted as, or None if its stem is unknown."""
        if self.language is None:
            return forms
        return [self.shown.get(stem) for stem in self._stems(forms, self.language)]

    def _join_forms(self, sequences: WordSequences) -> list[str]:
        """Give all forms of a known stem one number, and return the names. An unknown word keeps its own name."""
        forms = sequences.words()
        if self.language is None:
            return forms
        stems = self._stems(forms, self.language)
        names_of_forms = [self.shown.get(stem, form) for form, stem in zip(forms, stems, strict=True)]
        names = sorted(set(names_of_forms))
        place = {name: number for number, name in enumerate(names)}
        sequences.renumber(np.fromiter((place[name] for name in names_of_forms), dtype=np.int32, count=len(forms)))
        return names

    def _stems(self, forms: list[str], language: Language) -> list[str]:
        return known_stems(forms, language, self.forms) if self.stem else forms


def settings_rules(
    settings: TokenSettings, columns: ColumnLookup, language: Language | None, **rules: Any
) -> WordRules:
    """Return the rules of plain settings."""
    tokens = scikit_learn_token_rules(settings) if language is None else language_token_rules(settings, language)
    return WordRules(tokens, columns, language=language, settings=settings, **rules)


def plain_rules(columns: ColumnLookup) -> WordRules:
    """Return rules that split texts as CountVectorizer of scikit-learn does by default."""
    return settings_rules(TokenSettings(), columns, None)


def known_stems(forms: list[str], language: Language, known: Mapping[str, str]) -> list[str]:
    """Return the stem of each form. Only forms that are not known need the stemmer."""
    if not known:
        return stem_words(forms, language)
    new = [form for form in forms if form not in known]
    stems = dict(zip(new, stem_words(new, language), strict=True))
    return [known[form] if form in known else stems[form] for form in forms]


@dataclass(frozen=True)
class TokenSettings:
    """Parameters of CountVectorizer that split a text, and the functions that it makes of them, without scikit-learn.

    There is no tokenizer and no preprocessor of the user, because a file cannot hold them.
    """

    analyzer: str = "word"
    lowercase: bool = True
    strip_accents: str | None = None
    stop_words: Sequence[str] | None = None
    token_pattern: str | None = DEFAULT_PATTERN
    tokenizer: None = None
    preprocessor: None = None

    def get_stop_words(self) -> frozenset[str] | None:
        """Return the stop words."""
        return None if self.stop_words is None else frozenset(self.stop_words)

    def build_preprocessor(self) -> Callable[[str], str]:
        """Return the function that lowers a text and removes its accents."""
        return partial(_prepare, lowercase=self.lowercase, accents=self.strip_accents)

    def build_tokenizer(self) -> Callable[[str], list[str]]:
        """Return the function from a prepared text to its words."""
        pattern = re.compile(self.token_pattern or DEFAULT_PATTERN)
        if pattern.groups > 1:
            raise InputError("token_pattern has more than one group: leave at most one, which is the word.")
        return pattern.findall


def _prepare(text: str, *, lowercase: bool, accents: str | None) -> str:
    if lowercase:
        text = text.lower()
    if accents is None or text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    if accents == "ascii":
        return decomposed.encode("ascii", "ignore").decode("ascii")
    return "".join(character for character in decomposed if not unicodedata.combining(character))
