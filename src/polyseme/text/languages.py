"""The languages of `Vectorizer(language=...)`: which characters make their words, and which stemmer is theirs.

The language of documents, from how their first ones begin.

How the documents of a Vectorizer become words, from its parameters.

Stems, computed once for each distinct word, and the name that each stem is shown by.

The totals of stems over many documents, added up batch by batch: memory holds the words, and one batch.

Phrases such as "san_francisco": neighbors that stand together far more often than by chance.

The measure is the normalized pointwise mutual information (Bouma 2009), from -1 over 0 (chance) to 1 (always together):

    NPMI(a, b) = log(P(a b) / (P(a) P(b))) / -log P(a b)

with probabilities per word of the corpus. Found phrases are joined, and the search is done once more, so that a
phrase has two to four words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Protocol

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.kernels import Floats
from polyseme.text.tokens import (
    CHARACTERS,
    PADDED_CHARACTERS,
    WORDS,
    Characters,
    Columns,
    Integers,
    Sequences,
    Splitting,
    Tally,
    by_language,
    by_pattern,
    one_by_one,
)

# Characters that are written without spaces between words and are counted by pairs of neighbors.
_HAN_AND_KANA = (
    (0x3005, 0x3008),  # iteration marks
    (0x3040, 0x3200),  # kana, bopomofo
    (0x3400, 0x4DC0),  # ideographs
    (0x4E00, 0xA000),
    (0xF900, 0xFB00),
    (0x1AFF0, 0x1B170),
    (0x20000, 0x40000),
)
_HANGUL = ((0x1100, 0x1200), (0x3130, 0x3190), (0xA960, 0xA980), (0xAC00, 0xD800))
_KANA = re.compile("[\u3040-\u30ff]")
_OTHER_APOSTROPHES = "\u2019\u02bc\uff07"


@dataclass(frozen=True)
class Language:
    """`stemmer` is the name of PyStemmer's algorithm; `joiners` stand inside words ("don't", Catalan "col·legi")."""

    name: str
    code: str = ""
    stemmer: str | None = None
    joiners: str = ""
    pairs: tuple[tuple[int, int], ...] = _HAN_AND_KANA

    def characters(self, lowercase: bool) -> Characters:
        return by_language(lowercase, self.joiners, self.pairs)

    def prepared(self, text: str, lowercase: bool = True) -> str:
        """The text in one form (NFKC): accents composed, ligatures and full-width letters as plain ones.

        Turkish has a dotless i, which str.lower does not know of.
        """
        if self.code == "tr" and lowercase:
            text = text.replace("I", "ı").replace("İ", "i")
        if text.isascii():
            return text
        text = unicodedata.normalize("NFKC", text)
        if "'" in self.joiners:
            for apostrophe in _OTHER_APOSTROPHES:
                text = text.replace(apostrophe, "'")
        return text

    @property
    def stop_words(self) -> frozenset[str]:
        """polyseme's own list of the language's function words; empty where there is none."""
        return _stop_words(_LISTS_OF.get(self.name, self.name))


@cache
def _stop_words(name: str) -> frozenset[str]:
    path = files("polyseme.text").joinpath("stopwords", f"{name}.txt")
    if not path.is_file():
        return frozenset()
    return frozenset(unicodedata.normalize("NFKC", path.read_text(encoding="utf-8")).split())


_STEMMED = {
    "arabic": "ar", "armenian": "hy", "basque": "eu", "catalan": "ca", "czech": "cs", "danish": "da", "dutch": "nl",
    "english": "en", "esperanto": "eo", "estonian": "et", "finnish": "fi", "french": "fr", "german": "de",
    "greek": "el", "hindi": "hi", "hungarian": "hu", "indonesian": "id", "irish": "ga", "italian": "it",
    "lithuanian": "lt", "nepali": "ne", "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt",
    "romanian": "ro", "russian": "ru", "serbian": "sr", "sesotho": "st", "spanish": "es", "swedish": "sv",
    "tamil": "ta", "turkish": "tr", "yiddish": "yi",
}  # fmt: skip
_JOINERS = {"english": "'", "dutch": "'", "catalan": "\u00b7", "yiddish": "\u05f3\u05f4"}

OTHER = Language("other")
"""Any other language: words whole, nothing stemmed, no stop words."""

LANGUAGES: dict[str, Language] = {
    **{name: Language(name, code, name, _JOINERS.get(name, "")) for name, code in _STEMMED.items()},
    "dutch_porter": Language("dutch_porter", "", "dutch_porter", "'"),
    "porter": Language("porter", "", "porter", "'"),
    "chinese": Language("chinese", "zh"),
    "japanese": Language("japanese", "ja"),
    "korean": Language("korean", "ko", pairs=_HAN_AND_KANA + _HANGUL),
    "thai": Language("thai", "th"),
    "other": OTHER,
}
"""every language that `Vectorizer(language=...)` knows, by its English name"""

_LISTS_OF = {"dutch_porter": "dutch", "porter": "english"}
_BY_CODE = {language.code: language for language in LANGUAGES.values() if language.code}


def language_of(name: str) -> Language:
    """A language by its English name or its ISO 639-1 code."""
    language = LANGUAGES.get(name) or _BY_CODE.get(name)
    if language is None:
        raise InputError(
            f"language must be 'auto', None or one of {', '.join(map(repr, sorted(LANGUAGES)))}, got {name!r}."
        )
    return language


# Guessing

_LEAST_SHARE = 0.3  # of a text's letters, for its script to decide
_LEAST_EVIDENCE = 0.04  # of a text's words, for its function words to decide
_SCRIPTS = {
    "korean": re.compile("[\uac00-\ud7a3]"),
    "thai": re.compile("[\u0e01-\u0e3a]"),
    "chinese": re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"),
}


def guess(texts: Sequence[str], words: Sequence[str], tokens: Sequence[int]) -> Language:
    """The language of some texts: by their script, else by whose function words they use most.

    `words` are the distinct words of the texts (by the rules of OTHER) and `tokens` how often each occurs. A word that
    several languages have is evidence for each in part.
    """
    text = "".join(texts)
    letters = sum(map(str.isalpha, text))
    for name, script in _SCRIPTS.items():
        if letters and len(script.findall(text)) > _LEAST_SHARE * letters:
            kana = len(_KANA.findall(text))
            return LANGUAGES["japanese" if name == "chinese" and kana > 0.05 * letters else name]
    evidence = dict.fromkeys(_STEMMED, 0.0)
    owners = _owners()
    for word, n in zip(words, tokens, strict=True):
        for name in owners.get(word, ()):
            evidence[name] += n / len(owners[word])
    best = max(evidence, key=lambda name: evidence[name])
    return LANGUAGES[best] if evidence[best] > _LEAST_EVIDENCE * sum(tokens) else OTHER


@cache
def _owners() -> dict[str, tuple[str, ...]]:
    """The languages that have a word among their function words."""
    owners: dict[str, tuple[str, ...]] = {}
    for name in _STEMMED:
        for word in _stop_words(name):
            owners[word] = (*owners.get(word, ()), name)
    return owners


_DOCUMENTS = 1000
_CHARACTERS = 2000


def detect_language(texts: list[str]) -> Language:
    """The language of the first texts, by their script and their most common words."""
    sample = [OTHER.prepared(text[:_CHARACTERS]) for text in texts[:_DOCUMENTS]]
    tally = Tally(Splitting(OTHER.characters(True)), n_threads=1)
    tally.add(sample)
    words = tally.words()
    return guess(sample, words, tally.totals(len(words))[0].tolist())


_UNITS = {"word": WORDS, "char": CHARACTERS, "char_wb": PADDED_CHARACTERS}


def splitting_of_scikit_learn(vectorizer: Any) -> Splitting:
    """The words that scikit-learn's analyzer gives, before runs of words are made of them.

    Compiled where the words are runs of one set of characters; a tokenizer or another pattern runs in Python.
    """
    unit = _UNITS[vectorizer.analyzer]
    prepare = _preprocessor(vectorizer)
    lowercase = vectorizer.lowercase and prepare is None
    if unit != WORDS:
        return Splitting(one_by_one(lowercase), unit, prepare=prepare)
    stops = frozenset(vectorizer.get_stop_words() or ())
    characters = by_pattern(vectorizer.token_pattern, lowercase) if vectorizer.tokenizer is None else None
    if characters is not None:
        return Splitting(characters, unit, stops, prepare)
    return Splitting(
        one_by_one(False), unit, stops, vectorizer.build_preprocessor(), vectorizer.build_tokenizer(),
        text_expected=vectorizer.tokenizer is None,
    )  # fmt: skip


def splitting_of_language(vectorizer: Any, language: Language) -> Splitting:
    """Words by the language's characters, or by a tokenizer; stop words of the language, or those given."""
    own_words = vectorizer.tokenizer is not None
    preprocess = vectorizer.build_preprocessor() if own_words else _preprocessor(vectorizer)

    def prepare(text: str) -> str:
        text = language.prepared(text, vectorizer.lowercase)
        return text if preprocess is None else preprocess(text)

    stops = language.stop_words if vectorizer.stop_words is None else frozenset(vectorizer.get_stop_words())
    if preprocess is not None:
        stops = frozenset(map(prepare, stops))
    lowercase = vectorizer.lowercase and preprocess is None
    return Splitting(
        language.characters(lowercase), WORDS, stops, prepare, vectorizer.tokenizer, text_expected=not own_words
    )


def takes_any_type(vectorizer: Any) -> bool:
    """Whether a function of the user sees each document first, so that documents need not be strings.

    A language looks at the text itself before any function of the user.
    """
    if vectorizer.language is not None:
        return False
    if vectorizer.preprocessor is not None:
        return True
    if vectorizer.lowercase:
        return False
    accents = vectorizer.strip_accents
    return callable(accents) or (accents is None and vectorizer.analyzer == "word" and vectorizer.tokenizer is not None)


def _preprocessor(vectorizer: Any) -> Callable[[str], str] | None:
    """scikit-learn's preprocessing, where it does more than to lower the text."""
    if vectorizer.preprocessor is None and not vectorizer.strip_accents:
        return None
    return vectorizer.build_preprocessor()


class Naming(NamedTuple):
    """`names` of all stems, sorted; `numbers`: the place among them of each form's stem; `stems`: that of each name."""

    names: list[str]
    numbers: Columns
    stems: list[str]


def stems_of(forms: Sequence[str], language: Language) -> list[str]:
    """The stem of each form (the form itself in a language without a stemmer)."""
    if language.stemmer is None or not forms:
        return list(forms)
    try:
        import Stemmer
    except ModuleNotFoundError:
        raise MissingExtraError("Stemming", "cli") from None
    stemmer = Stemmer.Stemmer(language.stemmer, 0)
    stems: list[str] = stemmer.stemWords(list(forms))
    if "" in stems:
        stems = [stem or form for stem, form in zip(stems, forms, strict=True)]
    return stems


def named(forms: Sequence[str], tokens: Integers, stems: Sequence[str]) -> Naming:
    """Each stem is shown by its most frequent form; of equally frequent ones by the shorter, then the first in order.

    `forms` must be sorted.
    """
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    order = np.lexsort((lengths, -tokens))
    distinct = dict.fromkeys(stems)
    stem_number = dict(zip(distinct, range(len(distinct)), strict=True))
    stem_of_form = np.fromiter(map(stem_number.__getitem__, stems), dtype=np.int64, count=len(forms))
    _, best = np.unique(stem_of_form[order], return_index=True)
    shown_form = order[best]  # of each stem, by its number
    is_shown = np.zeros(len(forms), dtype=bool)
    is_shown[shown_form] = True
    place = np.cumsum(is_shown) - 1
    shown = np.flatnonzero(is_shown).tolist()
    numbers = place[shown_form[stem_of_form]].astype(np.int32)
    return Naming([forms[form] for form in shown], numbers, [stems[form] for form in shown])


class Totals(Protocol):
    """What the choice of words needs to know."""

    n_documents: int

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        """The tokens, and the documents, of each word."""


class TotalsByStem:
    """Tokens of forms and documents of stems; a document with two forms of a stem has the stem once.

    stems_of : the stem of each of some forms.
    """

    def __init__(self, stems_of: Callable[[list[str]], list[str]]) -> None:
        self._stems_of = stems_of
        self._stem: dict[str, str] = {}
        self._tokens: dict[str, int] = {}
        self._documents: dict[str, int] = {}
        self._by_name: tuple[Integers, Integers] | None = None
        self.n_documents = 0

    def add(self, tally: Tally) -> None:
        """Adds the counts of some documents, which are used up."""
        forms = tally.words()
        for form, tokens in zip(forms, tally.totals(len(forms))[0].tolist(), strict=True):
            self._tokens[form] = self._tokens.get(form, 0) + tokens
        new = [form for form in forms if form not in self._stem]
        self._stem.update(zip(new, self._stems_of(new), strict=True))
        stems = [self._stem[form] for form in forms]
        place = {stem: number for number, stem in enumerate(dict.fromkeys(stems))}
        tally.renumber(np.fromiter((place[stem] for stem in stems), dtype=np.int32, count=len(stems)))
        for stem, documents in zip(place, tally.totals(len(place))[1].tolist(), strict=True):
            self._documents[stem] = self._documents.get(stem, 0) + documents
        self.n_documents += tally.n_documents

    def named(self) -> tuple[list[str], dict[str, str], dict[str, str]]:
        """The names of all stems, sorted; the name of each stem; the stem of each form."""
        forms = sorted(self._tokens)
        stems = [self._stem[form] for form in forms]
        tokens = np.fromiter((self._tokens[form] for form in forms), dtype=np.int64, count=len(forms))
        names, numbers, stems_of_names = named(forms, tokens, stems)
        documents = np.fromiter((self._documents[stem] for stem in stems_of_names), dtype=np.int64, count=len(names))
        self._by_name = np.bincount(numbers, tokens, len(names)).astype(np.int64), documents
        return names, dict(zip(stems_of_names, names, strict=True)), dict(zip(forms, stems, strict=True))

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        assert self._by_name is not None
        assert len(self._by_name[0]) == n_words
        return self._by_name


DEFAULT_THRESHOLD = 0.5
LEAST_COUNT = 10
ROUNDS = 2
JOINT = "_"

Pair = tuple[str, str]


def npmi(joint: Integers, first: Integers, second: Integers, n_tokens: int) -> Floats:
    """Normalized pointwise mutual information of pairs that occur `joint` times; 1 where nothing else occurs."""
    p_joint = joint / n_tokens
    information = np.log(p_joint) - np.log(first / n_tokens) - np.log(second / n_tokens)
    surprise = -np.log(p_joint)
    return np.divide(information, surprise, out=np.ones(len(joint)), where=surprise > 0)


def find_phrases(sequences: Sequences, names: list[str], threshold: float) -> tuple[list[str], list[list[Pair]]]:
    """Joins the phrases in the sequences; returns the names with theirs at the end, and each round's joined pairs."""
    rounds: list[list[Pair]] = []
    first_new = 0
    for _ in range(ROUNDS):
        tokens = sequences.totals(len(names))
        pairs = sequences.pairs(LEAST_COUNT)
        pairs = pairs[(pairs[:, :2] >= first_new).any(axis=1)]  # the others have had their turn
        first_new = len(names)
        scores = npmi(pairs[:, 2], tokens[pairs[:, 0]], tokens[pairs[:, 1]], int(tokens.sum()))
        found = ((names[a], names[b]) for a, b in pairs[scores >= threshold, :2])
        rounds.append([pair for pair in found if all(pair)])  # an empty token is counted, but is no part of a phrase
        names = join_phrases(sequences, names, rounds[-1])
    return names, rounds


def join_phrases(sequences: Sequences, names: Sequence[str], phrases: Sequence[Pair]) -> list[str]:
    """Joins given phrases once; returns the names with those of the phrases that were not among them at the end."""
    names = list(names)
    place = {name: number for number, name in enumerate(names)}
    rows = []
    for first, second in phrases:
        if first in place and second in place:
            joined = first + JOINT + second
            if joined not in place:
                place[joined] = len(names)
                names.append(joined)
            rows.append((place[first], place[second], place[joined]))
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    sequences.join(*(np.ascontiguousarray(column) for column in table.T))
    return names
