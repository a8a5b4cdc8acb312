"""`WordRules`: the rules of a fitted Vectorizer, with which a query is counted without importing scikit-learn.

`Vectorizer.transform` counts with these rules; `read_word_rules` reads them from the file of a vectorizer, which
contains plain data. The file may be written by somebody else: every field is checked, and nothing in it is executed.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any, Protocol

import numpy as np

from polyseme.errors import InputError, ModelFileError, UnsupportedError
from polyseme.io.arrays import StringMapping, StringTable, string_arrays
from polyseme.io.files import (
    FLAG,
    NULL,
    OBJECT,
    TEXT,
    Check,
    check_fields,
    either,
    list_of,
    mapping_to,
    number,
    one_of,
    whole_number,
)
from polyseme.kernels import Array, SparseCounts
from polyseme.text.languages import (
    Language,
    Pair,
    get_language,
    is_language,
    join_phrases,
    language_token_rules,
    scikit_learn_token_rules,
    stem_words,
)
from polyseme.text.tokens import TokenRules, WordCounter, WordSequences, check_not_one_string, pattern_characters

DEFAULT_PATTERN = r"(?u)\b\w\w+\b"
"""Regular expression of a word in scikit-learn."""


class ColumnLookup(Protocol):
    """Columns of words: a dict, or a table in a file."""

    def __len__(self) -> int: ...
    def get(self, word: Any, default: int, /) -> int: ...


@dataclass(frozen=True)
class WordRules:
    """Rules that split a text into words, join the forms of a word, and give the column of each word."""

    tokens: TokenRules
    """Rules that split a document into words."""
    columns: ColumnLookup
    """Column of each word of the vocabulary."""
    ngram_range: tuple[int, int] = (1, 1)
    language: Language | None = None
    stem: bool = False
    """Whether all forms of a stem are one word."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """Stem of each form in the documents of the fit."""
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
        rules, prepared = self.of_short_texts(texts)
        return rules.count(iter([prepared]))

    def of_short_texts(self, texts: Iterable[str]) -> tuple[WordRules, list[str]]:
        """Return the rules for the characters of some texts only, which are built faster, and the prepared texts."""
        prepare, characters = self.tokens.prepare, self.tokens.characters
        prepared = [text if prepare is None else prepare(text) for text in texts]
        return replace(
            self, tokens=replace(self.tokens, prepare=None, characters=characters.of_texts(prepared))
        ), prepared

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

    def word_keys(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the words of some short texts in a comparable form: as stems, if words are stemmed."""
        rules, prepared = self.of_short_texts(texts)
        sequences = WordSequences(rules.tokens, n_threads=self.n_threads)
        sequences.add(prepared)
        forms = sequences.words()
        keys = stem_words(forms, self.language) if self.stem and self.language is not None else forms
        numbers, starts = sequences.numbers()
        return [[keys[number] for number in numbers[a:b]] for a, b in pairwise(starts)]

    def _names_of_forms(self, forms: list[str]) -> Sequence[str | None]:
        """Return the word that each form is counted as, or None if its stem is unknown."""
        if self.language is None:
            return forms
        return [self.shown.get(stem) for stem in self.stems(forms)]

    def _join_forms(self, sequences: WordSequences) -> list[str]:
        """Give all forms of a known stem one number, and return the names. An unknown word keeps its own name."""
        forms = sequences.words()
        if self.language is None:
            return forms
        stems = self.stems(forms)
        names_of_forms = [self.shown.get(stem, form) for form, stem in zip(forms, stems, strict=True)]
        names = sorted(set(names_of_forms))
        place = {name: number for number, name in enumerate(names)}
        sequences.renumber(np.fromiter((place[name] for name in names_of_forms), dtype=np.int32, count=len(forms)))
        return names

    def stems(self, forms: list[str]) -> list[str]:
        """Return the stem of each form, or the form itself if words are not stemmed."""
        return known_stems(forms, self.language, self.forms) if self.stem and self.language is not None else forms


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
    """Parameters of CountVectorizer that split a text, and the functions made from them, without scikit-learn.

    There is no tokenizer and no preprocessor of the user, because a file cannot contain them.
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
        """Return the function that converts a text to lower case and removes its accents."""
        return partial(_prepare, lowercase=self.lowercase, accents=self.strip_accents)

    def build_tokenizer(self) -> Callable[[str], list[str]]:
        """Return the function from a prepared text to its words."""
        pattern = re.compile(self.token_pattern or DEFAULT_PATTERN)
        if pattern.groups > 1:
            raise InputError("token_pattern has more than one group: keep at most one, which is the word.")
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


# files

FORMAT_VERSION = 1
_OPTIONAL_ATTRIBUTES = ("language_", "forms_", "shown_")
_MAX_PATTERN_LENGTH = 200
_MAX_WORD_LENGTH = 1000
"""Largest minimum length of words in a token pattern."""
_MAX_INT = 2**31 - 1


def _is_encoding(value: Any) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_.:-]{1,40}", value):
        return False
    try:
        return bool(codecs.lookup(value)._is_text_encoding)
    except LookupError:
        return False


def _is_language(value: Any) -> bool:
    try:
        return isinstance(value, str) and (value == "auto" or bool(get_language(value)))
    except InputError:
        return False


def _is_range(value: Any) -> bool:
    limits = list_of(whole_number(0, 100))
    return limits.holds(value) and len(value) == 2 and value[0] <= value[1]


_WORDS = list_of(TEXT, distinct=True)
_PAIR = Check(lambda value: list_of(TEXT).holds(value) and len(value) == 2, "a pair of words")
_DTYPES = tuple(np.dtype(kind).name for kind in "?bBhHiIlLqQefd")
_PARAMETERS = {
    "input": one_of("content"),
    "encoding": Check(_is_encoding, "the name of an encoding"),
    "decode_error": one_of("strict", "ignore", "replace"),
    "strip_accents": either(NULL, one_of("ascii", "unicode")),
    "lowercase": FLAG,
    "preprocessor": NULL,
    "tokenizer": NULL,
    "stop_words": either(NULL, one_of("english"), list_of(TEXT)),
    "token_pattern": either(NULL, TEXT),
    "ngram_range": Check(_is_range, "two whole numbers from 0 to 100, the smaller one first"),
    "analyzer": one_of("word", "char", "char_wb"),
    "max_df": either(number(0, 1), whole_number(1, _MAX_INT)),
    "min_df": either(number(0, 1), whole_number(1, _MAX_INT)),
    "max_features": either(NULL, whole_number(1, _MAX_INT)),
    "vocabulary": either(NULL, _WORDS),
    "binary": FLAG,
    "dtype": one_of(*dict.fromkeys(_DTYPES)),
    "language": either(NULL, Check(_is_language, 'a language or "auto"')),
    "stem": FLAG,
    "phrases": either(FLAG, number(0, 1)),
    "keep_numbers": either(NULL, FLAG),
    "extra_stop_words": either(NULL, list_of(TEXT)),
    "n_jobs": either(NULL, whole_number(1, 1024), whole_number(-1024, -1)),
}
_FIELDS = {
    "format_version": whole_number(1, _MAX_INT),
    "parameters": Check(lambda value: isinstance(value, dict), "an object"),
    "vocabulary": _WORDS,
    "language": either(NULL, Check(is_language, "a language")),
    "forms": mapping_to(TEXT),
    "shown": mapping_to(TEXT),
    "phrases": list_of(list_of(_PAIR)),
}


_SETTINGS = ("analyzer", "lowercase", "strip_accents", "stop_words", "token_pattern")
"""Parameters that split a text into words."""
_RULES_FIELDS = {
    "settings": OBJECT,
    "ngram_range": _PARAMETERS["ngram_range"],
    "language": _FIELDS["language"],
    "stem": FLAG,
    "ordered": FLAG,
    "binary": FLAG,
    "rounds": list_of(whole_number(0, _MAX_INT), most=16),
}
_PAIR_TABLES = ("phrases.first", "phrases.second")


def to_dict(vectorizer: Any) -> dict[str, Any]:
    """Return the parameters and fitted attributes of a Vectorizer as JSON values."""
    parameters = {name: _to_plain(name, value) for name, value in vectorizer.get_params(deep=False).items()}
    names = [name for name, _ in sorted(vectorizer.vocabulary_.items(), key=lambda item: item[1])]
    if not all(isinstance(name, str) for name in names):
        raise InputError("Only a vocabulary of strings can be saved.")
    data = {"format_version": FORMAT_VERSION, "parameters": parameters, "vocabulary": names}
    data |= {name.rstrip("_"): getattr(vectorizer, name) for name in _OPTIONAL_ATTRIBUTES if hasattr(vectorizer, name)}
    if hasattr(vectorizer, "phrases_"):
        data["phrases"] = [[list(pair) for pair in pairs] for pairs in vectorizer.phrases_]
    try:
        check_fields(parameters, _PARAMETERS)
    except ValueError as error:
        raise InputError(f"This Vectorizer cannot be saved: {error}.") from None
    return data


def from_dict(vectorizer_class: Any, data: dict[str, Any], *, trust_pattern: bool = False) -> Any:
    """Return the fitted vectorizer that `to_dict` described. Raises ModelFileError if the data is not valid."""
    parameters = _checked_parameters(data, trust_pattern=trust_pattern)
    vectorizer = vectorizer_class(**parameters)
    vectorizer.fixed_vocabulary_ = parameters["vocabulary"] is not None
    vectorizer.vocabulary_ = _columns(data)
    for name in _OPTIONAL_ATTRIBUTES:
        if name.rstrip("_") in data:
            setattr(vectorizer, name, data[name.rstrip("_")])
    if "phrases" in data:
        vectorizer.phrases_ = _phrases(data)
    return vectorizer


def read_word_rules(data: dict[str, Any], *, trust_pattern: bool = False) -> WordRules:
    """Return the rules of the vectorizer that `to_dict` described, for counts in one thread and without scikit-learn.

    The columns are a StringTable, because a vocabulary can have millions of words.

    Raises ModelFileError as `from_dict` does, and UnsupportedError for n-grams of length zero, which only scikit-learn
    counts.
    """
    parameters = _checked_parameters(data, trust_pattern=trust_pattern)
    ngram_range = parameters["ngram_range"]
    if ngram_range[0] < 1:
        raise UnsupportedError("n-grams of length zero are counted by scikit-learn: use Vectorizer.from_dict.")
    if parameters["stop_words"] == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        parameters["stop_words"] = sorted(ENGLISH_STOP_WORDS)
    settings = TokenSettings(**{name: parameters[name] for name in _SETTINGS})
    joined = parameters["phrases"] is not False
    name = data["language"] if joined or parameters["language"] is not None else None
    return settings_rules(
        settings, StringTable.of(data["vocabulary"]), None if name is None else get_language(name),
        ngram_range=ngram_range,
        stem=parameters["stem"], forms=data.get("forms", {}), shown=data.get("shown", {}), phrases=_phrases(data),
        ordered=joined or (name is not None and ngram_range != (1, 1)),
        binary=parameters["binary"], dtype=parameters["dtype"],
    )  # fmt: skip


def rules_to_arrays(rules: WordRules) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """Return rules as JSON values and named arrays, without the columns of the words.

    Return None if a file cannot contain them, or if they have a pattern that would have to be trusted.
    """
    settings = rules.settings
    if settings is None or not (settings.token_pattern is None or is_plain_pattern(settings.token_pattern)):
        return None
    header = {
        "settings": {name: value for name, value in asdict(settings).items() if name in _SETTINGS},
        "ngram_range": list(rules.ngram_range),
        "language": None if rules.language is None else rules.language.name,
        "stem": rules.stem,
        "ordered": rules.ordered,
        "binary": rules.binary,
        "rounds": [len(pairs) for pairs in rules.phrases],
    }
    pairs = [pair for round_pairs in rules.phrases for pair in round_pairs]
    arrays: dict[str, Array] = {}
    for name, strings in zip(_PAIR_TABLES, (zip(*pairs, strict=True) if pairs else ((), ())), strict=True):
        arrays |= string_arrays(name, list(strings))
    for name, mapping in (("forms", rules.forms), ("shown", rules.shown)):
        arrays |= StringMapping.arrays(name, mapping)
    return header, arrays


def rules_from_arrays(header: Any, arrays: Mapping[str, Any], columns: ColumnLookup) -> WordRules:
    """Return the rules that `rules_to_arrays` described. Raises ValueError or KeyError if they are not valid."""
    check_fields(header, _RULES_FIELDS, required=_RULES_FIELDS)
    settings = header["settings"]
    check_fields(settings, {name: _PARAMETERS[name] for name in _SETTINGS}, required=_SETTINGS)
    pattern = settings["token_pattern"]
    if not (is_plain_pattern(pattern) if pattern is not None else settings["analyzer"] != "word"):
        raise ValueError("token_pattern is not plain")
    if settings["stop_words"] == "english":
        raise ValueError("stop_words must be a list")
    if header["ngram_range"][0] < 1:
        raise ValueError("ngram_range must start at 1 or above")
    first, second = (StringTable(arrays, name) for name in _PAIR_TABLES)
    if not sum(header["rounds"]) == len(first) == len(second):
        raise ValueError("the number of phrases does not match the rounds")
    pairs = iter(zip(first, second, strict=True))
    return settings_rules(
        TokenSettings(**settings), columns, None if header["language"] is None else get_language(header["language"]),
        ngram_range=tuple(header["ngram_range"]), stem=header["stem"], ordered=header["ordered"],
        binary=header["binary"], forms=StringMapping(arrays, "forms"), shown=StringMapping(arrays, "shown"),
        phrases=[list(islice(pairs, size)) for size in header["rounds"]],
    )  # fmt: skip


def _checked_parameters(data: dict[str, Any], *, trust_pattern: bool) -> dict[str, Any]:
    """Return the parameters of the vectorizer, after checks of all data."""
    try:
        version = data.get("format_version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise ModelFileError("This vectorizer was written by a newer polyseme: update polyseme to read it.")
        check_fields(data, _FIELDS, required=("format_version", "parameters", "vocabulary"))
        parameters = dict(data["parameters"])
        check_fields(parameters, _PARAMETERS, required=_PARAMETERS)
        _check_consistency(data, parameters)
    except ValueError as error:
        raise ModelFileError(f"This is not a saved Vectorizer: {error}.") from None
    pattern = parameters["token_pattern"]
    if not (trust_pattern or pattern is None or is_plain_pattern(pattern)):
        raise ModelFileError(
            f"The token pattern {pattern[:_MAX_PATTERN_LENGTH]!r} is not known to be fast on every text: fit again "
            "or, if you trust it, use Vectorizer.from_dict(data, trust_pattern=True)."
        )
    return parameters | {
        "ngram_range": tuple(parameters["ngram_range"]),
        "dtype": np.dtype(parameters["dtype"]).type,
    }


def _columns(data: dict[str, Any]) -> dict[str, int]:
    return {name: column for column, name in enumerate(data["vocabulary"])}


def _phrases(data: dict[str, Any]) -> list[list[Pair]]:
    return [[(first, second) for first, second in pairs] for pairs in data.get("phrases", ())]


def is_plain_pattern(pattern: str) -> bool:
    r"""Return whether a pattern repeats one set of characters (`\b\w\w+\b`, `[a-z]{3,}`), which takes linear time.

    Other regular expressions can take exponential time for a short text.
    """
    if len(pattern) > _MAX_PATTERN_LENGTH:
        return False
    try:
        characters = pattern_characters(pattern, True)
    except (re.error, ValueError, OverflowError):
        return False
    return characters is not None and characters.min_length <= _MAX_WORD_LENGTH


def _check_consistency(data: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Raise ValueError if fields that are valid by themselves contradict each other."""
    if not data["vocabulary"]:
        raise ValueError("the vocabulary is empty")
    if parameters["analyzer"] == "word" and parameters["token_pattern"] is None:
        raise ValueError("token_pattern is missing")
    if parameters["vocabulary"] is not None and parameters["vocabulary"] != data["vocabulary"]:
        raise ValueError("the vocabulary differs from that of the parameters")
    if (parameters["language"] is not None or parameters["phrases"] is not False) and "language" not in data:
        raise ValueError("language is missing")
    if data.get("language") is not None and not ("forms" in data and "shown" in data):
        raise ValueError("the forms of the language's words are missing")


def _to_plain(name: str, value: Any) -> Any:
    """Return the value of a parameter as a JSON value."""
    if name == "dtype":
        return np.dtype(value).name
    if name == "vocabulary" and value is not None:
        if hasattr(value, "items"):
            return [term for term, _ in sorted(value.items(), key=lambda item: item[1])]
        if not hasattr(value, "__len__"):
            raise InputError("vocabulary is an iterator, which cannot be saved: give a list or a mapping.")
        return sorted(value) if isinstance(value, set) else list(value)
    if name in ("stop_words", "extra_stop_words", "ngram_range") and value is not None and not isinstance(value, str):
        return list(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"{name} is a {type(value).__name__}, which cannot be saved: only plain settings can.")
