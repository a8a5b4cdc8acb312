"""Languages of `Vectorizer`: characters of words, stop words, stemmers, language detection and phrases.

Phrases are adjacent words that occur together much more often than by chance. The measure is the normalized pointwise
mutual information (Bouma 2009) from -1 to 1, which is 0 for independent words and 1 for words that always occur
together:

    NPMI(a, b) = log(P(a b) / (P(a) P(b))) / -log P(a b)

with probabilities per word of the corpus. There are two rounds: phrases of the first round are joined into one word, so
that the second round finds phrases of up to four words.

References
----------
- Bouma (2009). Normalized (pointwise) mutual information in collocation extraction. Proceedings of GSCL.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    TokenRules,
    WordCounter,
    WordSequences,
    language_characters,
    pattern_characters,
    single_characters,
)

Pair = tuple[str, str]

DEFAULT_PHRASE_THRESHOLD = 0.5
_MIN_PHRASE_COUNT = 10
_N_PHRASE_ROUNDS = 2
PHRASE_SEPARATOR = "_"

# Characters that are written without spaces between words, and are counted in pairs of neighbors.
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
_OTHER_APOSTROPHES = "\u2019\u02bc\uff07"

# Codes of the languages that have a stemmer.
_STEMMED = {
    "arabic": "ar", "armenian": "hy", "basque": "eu", "catalan": "ca", "czech": "cs", "danish": "da", "dutch": "nl",
    "english": "en", "esperanto": "eo", "estonian": "et", "finnish": "fi", "french": "fr", "german": "de",
    "greek": "el", "hindi": "hi", "hungarian": "hu", "indonesian": "id", "irish": "ga", "italian": "it",
    "lithuanian": "lt", "nepali": "ne", "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt",
    "romanian": "ro", "russian": "ru", "serbian": "sr", "sesotho": "st", "spanish": "es", "swedish": "sv",
    "tamil": "ta", "turkish": "tr", "yiddish": "yi",
}  # fmt: skip
_JOINERS = {"english": "'", "dutch": "'", "catalan": "\u00b7", "yiddish": "\u05f3\u05f4"}

_STOP_WORD_LISTS = {"dutch_porter": "dutch", "porter": "english"}
"""Languages that use the list of stop words of another language."""

_UNITS = {"word": WORDS, "char": CHARACTERS, "char_wb": PADDED_CHARACTERS}

LANGUAGE_SEPARATOR = "+"
"""Between the names of several languages."""
MIN_LANGUAGE_SHARE = 0.05
"""Share of the documents of a corpus in a language for its stop words to be left out."""
DETECTION_SIZE = 2**25
"""Characters of the first documents of a corpus, from which the sample is drawn that decides its languages."""
_DETECTION_DOCUMENTS = 1000
_DETECTION_CHARACTERS = 2000
_MIN_WORDS = 20
"""Words of a document whose language should be recognized."""
_MIN_STOP_WORDS = 2  # different ones of a text, for a language that the corpus may not have
_MIXED = 0.5
_MAIN_SHARE = 0.6  # of the documents, for the rules of a language to be those of the corpus
_MIN_NEW_STOP_WORDS = 0.03
_MAX_WORD_SHARE = 0.8
_MIN_SCRIPT_SHARE = 0.3  # of the letters of a text, for its script to decide
_MIN_KANA_SHARE = 0.05  # of the letters of a text, to distinguish Japanese from Chinese
_MIN_STOP_WORD_SHARE = 0.08  # of the words of a text, for its stop words to decide
_SCRIPTS = {
    "korean": re.compile("[\uac00-\ud7a3]"),
    "thai": re.compile("[\u0e01-\u0e3a]"),
    "chinese": re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"),
}
_KANA = re.compile("[\u3040-\u30ff]")
_WORD = re.compile(
    "[^\\s\\d_\\x21-\\x40\\x5b-\\x60\\x7b-\\x7e\\xa1-\\xbf\u2010-\u2027\u2039\u203a\u0964\u3001\u3002]{2,}"
)
"""Two characters or more, because single letters are often initials, as in I/O; combining marks belong to words."""


@dataclass(frozen=True)
class Language:
    """A language and its rules for words."""

    name: str
    code: str = ""
    """ISO 639-1 code."""
    stemmer: str | None = None
    """Name of the algorithm in PyStemmer."""
    joiners: str = ""
    """Characters that may be inside a word, as in "don't" and Catalan "col·legi"."""
    pairs: tuple[tuple[int, int], ...] = _HAN_AND_KANA
    """Ranges of code points that are counted in pairs of neighbors."""

    def characters(self, lowercase: bool) -> Characters:
        """Return the table of characters that finds the words."""
        return language_characters(lowercase, self.joiners, self.pairs)

    def normalize(self, text: str, lowercase: bool = True) -> str:
        """Return the text in Unicode's form NFKC: composed accents, plain letters for ligatures and full width.

        For Turkish, the letters I and İ are converted to lower case here, because `str.lower` does not know the
        dotless i.
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
        """Function words of the language, or of several, from the lists of polyseme; empty if there is no list."""
        lists = (_STOP_WORD_LISTS.get(name, name) for name in self.name.split(LANGUAGE_SEPARATOR))
        return frozenset().union(*map(_read_stop_words, lists))

    @property
    def main(self) -> str:
        """Name of the language whose rules apply."""
        return self.name.partition(LANGUAGE_SEPARATOR)[0]


OTHER = Language("other")
"""Any other language: whole words, no stemmer, no stop words."""

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
"""Languages of `Vectorizer(language=...)` by their English names."""

_BY_CODE = {language.code: language for language in LANGUAGES.values() if language.code}


def get_language(name: str) -> Language:
    """Return the language with an English name or an ISO 639-1 code.

    "english+italian" has the rules of English and the stop words of both.
    """
    language, *others = [LANGUAGES.get(part) or _BY_CODE.get(part) for part in name.split(LANGUAGE_SEPARATOR)]
    if language is None or None in others:
        raise InputError(
            f"language must be 'auto', None or one of {', '.join(map(repr, sorted(LANGUAGES)))}, got {name!r}."
        )
    if not others:
        return language
    names = [language.name, *(other.name for other in others if other is not None)]
    return replace(language, name=LANGUAGE_SEPARATOR.join(dict.fromkeys(names)))


def is_language(name: Any) -> bool:
    """Return whether a value is the name that `get_language` gives to a language, or to several."""
    parts = name.split(LANGUAGE_SEPARATOR) if isinstance(name, str) else []
    return 0 < len(parts) == len(set(parts)) and all(part in LANGUAGES for part in parts)


def detect_language(texts: Sequence[str]) -> tuple[Language, dict[str, float]]:
    """Return the language of a corpus and the shares of its documents in each language; "other" is not known.

    A language is present if it has MIN_LANGUAGE_SHARE of the documents. The language of the corpus has the rules of the
    one with _MAIN_SHARE of the documents, and the stop words of all that are present. Short documents of unknown
    language do not count for this.
    """
    sample = [texts[place] for place in _spread(len(texts), _DETECTION_DOCUMENTS)]
    number = Counter(name for text in sample for name in document_language(text))  # with two languages, for both
    possible = set(_languages_in(sample))
    most = max((number[name] for name in possible), default=0)
    present = [name for name, n in number.most_common() if name in possible and n >= MIN_LANGUAGE_SHARE * most]
    found = [document_language(text, present) for text in sample]
    is_judged = [
        bool(names) or len(text[:_DETECTION_CHARACTERS].split()) >= _MIN_WORDS
        for names, text in zip(found, sample, strict=True)
    ]
    n_judged = sum(is_judged)
    number = Counter(name for names in found for name in names)
    present = sorted(name for name, n in number.items() if n >= MIN_LANGUAGE_SHARE * n_judged)
    present.sort(key=lambda name: -number[name])
    clear = [names[0] if len(names) == 1 and names[0] in present else OTHER.name for names in found]
    shares = {name: clear.count(name) / len(clear) for name in (*present, OTHER.name) if name in clear}
    main = present[0] if present and clear.count(present[0]) >= _MAIN_SHARE * n_judged else OTHER.name
    return get_language(LANGUAGE_SEPARATOR.join([main, *(name for name in present if name != main)])), shares


def document_language(text: str, among: Collection[str] | None = None) -> list[str]:
    """Return the language of a text, or two if it is written in two; [] if it is not known.

    The language is that of its script, or the one with the most stop words in the text. If words that are not stop
    words of this language are stop words of another one, at least _MIXED as many, the text is in both.

    among : languages of the corpus, for which one stop word is enough; None: all languages.
    """
    words, name = _evidence(text)
    if name:
        return [name] if among is None or name in among else []
    covered = _covered(words, among)
    best = max(covered, key=lambda name: (_rank(name, covered), name), default=None)
    if best is None or covered[best] < _MIN_STOP_WORD_SHARE * words.total():
        return []
    stops = _read_stop_words(best)
    if among is None and len(stops & words.keys()) < _MIN_STOP_WORDS:
        return []
    others = _covered(Counter({word: n for word, n in words.items() if word not in stops}), among)
    second = max(others, key=lambda name: (others[name], name), default=None)
    if second is None or others[second] < _MIXED * covered[best]:
        return [best]
    return [best, second] if others[second] >= _MIN_STOP_WORD_SHARE * words.total() else []


def _spread(size: int, most: int) -> list[int]:
    """Return at most `most` positions, spread evenly over `size` places."""
    return [place * size // most for place in range(most)] if size > most else list(range(size))


def _languages_in(texts: Iterable[str]) -> list[str]:
    """Return the languages that may be in texts: by script, and one after the other by stop words.

    The next language is the one that explains most of the stop words that are not explained yet, at least
    _MIN_NEW_STOP_WORDS of all. If one word makes up most of them, such as the "Re" of replies, which is Sesotho for
    "we", it is no language.
    """
    words, names = Counter[str](), dict[str, None]()
    for text in texts:
        counts, name = _evidence(text)
        words += counts
        if name:
            names[name] = None
    words = Counter({word: n for word, n in words.items() if word in _languages_by_stop_word()})
    least = _MIN_NEW_STOP_WORDS * words.total()
    while words:
        covered = _covered(words, None)
        best = max(covered, key=lambda name: (_rank(name, covered), name))
        if covered[best] < least:
            break
        own = Counter({word: n for word, n in words.items() if word in _read_stop_words(best)})
        if own.total() < _MIN_WORDS or max(own.values()) <= _MAX_WORD_SHARE * own.total():
            names[best] = None
        words -= own
    return list(names)


def _evidence(text: str) -> tuple[Counter[str], str]:
    """Return the words at the beginning of a text and "", or no words and the language of its script."""
    text = OTHER.normalize(text[:_DETECTION_CHARACTERS]).lower()
    if not text.isascii():
        letters = sum(map(str.isalpha, text))
        for name, script in _SCRIPTS.items():
            if len(script.findall(text)) > _MIN_SCRIPT_SHARE * letters:
                kana = name == "chinese" and len(_KANA.findall(text)) > _MIN_KANA_SHARE * letters
                return Counter(), "japanese" if kana else name
    return Counter(_WORD.findall(text)), ""


def _covered(words: Counter[str], among: Collection[str] | None) -> dict[str, int]:
    """Return the number of stop words of each language among these words."""
    covered: dict[str, int] = {}
    languages = _languages_by_stop_word()
    for word, n in words.items():
        for name in languages.get(word, ()):
            if among is None or name in among:
                covered[name] = covered.get(name, 0) + n
    return covered


def _rank(name: str, covered: Mapping[str, int]) -> float:
    """Return the number of stop words of a language, less for a long list, which has more of them by chance."""
    return covered[name] / float(len(_read_stop_words(name)) ** 0.5)


def scikit_learn_token_rules(vectorizer: Any) -> TokenRules:
    """Return rules for the words that scikit-learn's analyzer finds, before n-grams are made.

    Words that are runs of one set of characters are found by compiled code; a tokenizer or another pattern runs in
    Python.
    """
    unit = _UNITS[vectorizer.analyzer]
    prepare = _preprocessor(vectorizer)
    lowercase = vectorizer.lowercase and prepare is None
    if unit != WORDS:
        return TokenRules(single_characters(lowercase), unit, prepare=prepare)
    stops = frozenset(vectorizer.get_stop_words() or ())
    characters = pattern_characters(vectorizer.token_pattern, lowercase) if vectorizer.tokenizer is None else None
    if characters is not None:
        return TokenRules(characters, unit, stops, prepare)
    return TokenRules(
        single_characters(False), unit, stops, vectorizer.build_preprocessor(), vectorizer.build_tokenizer(),
        text_expected=vectorizer.tokenizer is None,
    )  # fmt: skip


def language_token_rules(vectorizer: Any, language: Language) -> TokenRules:
    """Return rules for the words of a language, found by its characters or by a tokenizer of the user."""
    has_tokenizer = vectorizer.tokenizer is not None
    preprocess = vectorizer.build_preprocessor() if has_tokenizer else _preprocessor(vectorizer)

    def prepare(text: str) -> str:
        text = language.normalize(text, vectorizer.lowercase)
        return text if preprocess is None else preprocess(text)

    stops = language.stop_words if vectorizer.stop_words is None else frozenset(vectorizer.get_stop_words())
    if preprocess is not None:
        stops = frozenset(map(prepare, stops))
    lowercase = vectorizer.lowercase and preprocess is None
    return TokenRules(
        language.characters(lowercase), WORDS, stops, prepare, vectorizer.tokenizer, text_expected=not has_tokenizer
    )


def accepts_any_type(vectorizer: Any) -> bool:
    """Return whether a function of the user gets each document first, so that documents need not be strings.

    With a language they must be strings, because its normalization comes before any function of the user.
    """
    if vectorizer.language is not None:
        return False
    if vectorizer.preprocessor is not None:
        return True
    if vectorizer.lowercase:
        return False
    accents = vectorizer.strip_accents
    return callable(accents) or (accents is None and vectorizer.analyzer == "word" and vectorizer.tokenizer is not None)


def stem_words(forms: Sequence[str], language: Language) -> list[str]:
    """Return the stem of each form, or the form itself if the language has no stemmer."""
    if language.stemmer is None or not forms:
        return list(forms)
    try:
        import Stemmer
    except ModuleNotFoundError:
        raise MissingExtraError("Stemming", "text") from None
    stemmer = Stemmer.Stemmer(language.stemmer, 0)
    stems: list[str] = stemmer.stemWords(list(forms))
    if "" in stems:
        stems = [stem or form for stem, form in zip(stems, forms, strict=True)]
    return stems


class StemNames(NamedTuple):
    """The names by which stems are shown."""

    names: list[str]
    """Names of all stems, sorted."""
    numbers: Columns
    """Position in `names` of the stem of each form."""
    stems: list[str]
    """Stem of each name."""


def name_stems(forms: Sequence[str], tokens: Integers, stems: Sequence[str]) -> StemNames:
    """Name each stem after its most frequent form; among equally frequent forms, after the shortest, then the first.

    `forms` must be sorted; `tokens` says how often each of them occurs, and `stems` are their stems.
    """
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    order = np.lexsort((lengths, -tokens))
    unique_stems = dict.fromkeys(stems)
    stem_number = dict(zip(unique_stems, range(len(unique_stems)), strict=True))
    stem_of_form = np.fromiter(map(stem_number.__getitem__, stems), dtype=np.int64, count=len(forms))
    _, best = np.unique(stem_of_form[order], return_index=True)
    form_of_stem = order[best]
    is_name = np.zeros(len(forms), dtype=bool)
    is_name[form_of_stem] = True
    place = np.cumsum(is_name) - 1
    named_forms = np.flatnonzero(is_name).tolist()
    numbers = place[form_of_stem[stem_of_form]].astype(np.int32)
    return StemNames([forms[form] for form in named_forms], numbers, [stems[form] for form in named_forms])


class VocabularyTotals(Protocol):
    """Totals of words over all documents, which the choice of the vocabulary needs."""

    n_documents: int

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        """Return the numbers of tokens and of documents of each word."""


class StemTotals:
    """Totals of stems over all documents, added up batch by batch.

    A document with two forms of a stem counts once for the stem. `stem_words` returns the stems of some forms.
    """

    def __init__(self, stem_words: Callable[[list[str]], list[str]]) -> None:
        self._stem_words = stem_words
        self._stem: dict[str, str] = {}
        self._tokens: dict[str, int] = {}
        self._documents: dict[str, int] = {}
        self._totals: tuple[Integers, Integers] | None = None
        self.n_documents = 0

    def add(self, counter: WordCounter) -> None:
        """Add the counts of some documents. The counter cannot be used afterwards."""
        forms = counter.words()
        for form, tokens in zip(forms, counter.totals(len(forms))[0].tolist(), strict=True):
            self._tokens[form] = self._tokens.get(form, 0) + tokens
        new = [form for form in forms if form not in self._stem]
        self._stem.update(zip(new, self._stem_words(new), strict=True))
        stems = [self._stem[form] for form in forms]
        place = {stem: number for number, stem in enumerate(dict.fromkeys(stems))}
        counter.renumber(np.fromiter((place[stem] for stem in stems), dtype=np.int32, count=len(stems)))
        for stem, documents in zip(place, counter.totals(len(place))[1].tolist(), strict=True):
            self._documents[stem] = self._documents.get(stem, 0) + documents
        self.n_documents += counter.n_documents

    def name_stems(self) -> tuple[list[str], dict[str, str], dict[str, str]]:
        """Return the sorted names of all stems, the name of each stem, and the stem of each form."""
        forms = sorted(self._tokens)
        stems = [self._stem[form] for form in forms]
        tokens = np.fromiter((self._tokens[form] for form in forms), dtype=np.int64, count=len(forms))
        names, numbers, stems_of_names = name_stems(forms, tokens, stems)
        documents = np.fromiter((self._documents[stem] for stem in stems_of_names), dtype=np.int64, count=len(names))
        self._totals = np.bincount(numbers, tokens, len(names)).astype(np.int64), documents
        return names, dict(zip(stems_of_names, names, strict=True)), dict(zip(forms, stems, strict=True))

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        """Return the numbers of tokens and of documents of each name; `name_stems` must be called first."""
        assert self._totals is not None
        assert len(self._totals[0]) == n_words
        return self._totals


def npmi(joint: Integers, first: Integers, second: Integers, n_tokens: int) -> Floats:
    """Return the NPMI of pairs that occur `joint` times; 1 if the corpus contains nothing else."""
    p_joint = joint / n_tokens
    pmi = np.log(p_joint) - np.log(first / n_tokens) - np.log(second / n_tokens)
    self_information = -np.log(p_joint)
    return np.divide(pmi, self_information, out=np.ones(len(joint)), where=self_information > 0)


def find_phrases(sequences: WordSequences, names: list[str], threshold: float) -> tuple[list[str], list[list[Pair]]]:
    """Find phrases and join them in the sequences.

    Returns the names of all words, with the new phrases at the end, and the joined pairs of each round.
    """
    rounds: list[list[Pair]] = []
    first_new = 0
    for _ in range(_N_PHRASE_ROUNDS):
        tokens = sequences.totals(len(names))
        pairs = sequences.pairs(_MIN_PHRASE_COUNT)
        pairs = pairs[(pairs[:, :2] >= first_new).any(axis=1)]  # pairs of old words were tested in the round before
        first_new = len(names)
        scores = npmi(pairs[:, 2], tokens[pairs[:, 0]], tokens[pairs[:, 1]], int(tokens.sum()))
        phrases = ((names[a], names[b]) for a, b in pairs[scores >= threshold, :2])
        rounds.append([pair for pair in phrases if all(pair)])  # an empty token cannot be part of a phrase
        names = join_phrases(sequences, names, rounds[-1])
    return names, rounds


def join_phrases(sequences: WordSequences, names: Sequence[str], phrases: Sequence[Pair]) -> list[str]:
    """Join given phrases in the sequences, and return the names of all words, with the new phrases at the end."""
    names = list(names)
    place = {name: number for number, name in enumerate(names)}
    rows = []
    for first, second in phrases:
        if first in place and second in place:
            joined = first + PHRASE_SEPARATOR + second
            if joined not in place:
                place[joined] = len(names)
                names.append(joined)
            rows.append((place[first], place[second], place[joined]))
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    sequences.join(*(np.ascontiguousarray(column) for column in table.T))
    return names


@cache
def _read_stop_words(name: str) -> frozenset[str]:
    path = files("polyseme.text").joinpath("stopwords", f"{name}.txt")
    if not path.is_file():
        return frozenset()
    return frozenset(unicodedata.normalize("NFKC", path.read_text(encoding="utf-8")).split())


@cache
def _languages_by_stop_word() -> dict[str, tuple[str, ...]]:
    """Return the languages that have each word among their stop words."""
    languages: dict[str, tuple[str, ...]] = {}
    for name in _STEMMED:
        for word in _read_stop_words(name):
            languages[word] = (*languages.get(word, ()), name)
    return languages


def _preprocessor(vectorizer: Any) -> Callable[[str], str] | None:
    """Return scikit-learn's preprocessor, or None if it would only convert the text to lower case."""
    if vectorizer.preprocessor is None and not vectorizer.strip_accents:
        return None
    return vectorizer.build_preprocessor()
