"""The languages of `Vectorizer(language=...)`: which characters make their words, and which stemmer is theirs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from polyseme.errors import InputError
from polyseme.text.characters import Characters, by_language

# Characters that are written without spaces between words and are counted by pairs of neighbours.
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
