"""Words that can name a subject, and ends of noun phrases, by cheap rules.

A name consists of nouns and noun phrases. Without a tagger, some words are recognized by their form: numbers, single
letters, English adverbs and participles, German nouns by their capitals. In languages whose nouns have articles and
come before their adjectives, a word that hardly ever follows an article is no noun. Others belong to closed classes,
which are
listed: months and weekdays, numerals, units, legal forms of companies, interjections, parts of addresses, keywords of
programming languages, and the commonest verbs of English. Nothing else is judged, so a language without rules keeps
all of its phrases.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cache

from polyseme.text.calendar_names import MONTHS, WEEKDAYS
from polyseme.text.languages import LANGUAGE_SEPARATOR, LANGUAGES, Language

_OTHER_CALENDAR = {
    "english": "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri",
    "german": "jänner",
    "polish": "styczeń stycznia luty lutego marzec marca kwiecień kwietnia maj maja czerwiec czerwca lipiec lipca "
    "sierpień sierpnia wrzesień września październik października listopad listopada grudzień grudnia "
    "poniedziałek wtorek środa czwartek piątek sobota niedziela",
    "russian": "январь января февраль февраля март марта апрель апреля май мая июнь июня июль июля август августа "
    "сентябрь сентября октябрь октября ноябрь ноября декабрь декабря понедельник вторник среда четверг "
    "пятница суббота воскресенье",
}
"""Abbreviations, and months and weekdays of languages with cases."""
_DETERMINERS = {
    "italian": "il lo la i gli le l un uno una del dello della dei degli delle dell al allo alla ai agli alle all dal "
    "dallo dalla dai dagli dalle dall nel nello nella nei negli nelle nell sul sullo sulla sui sugli sulle sull questo "
    "questa questi queste",
    "french": "le la les l un une des du au aux ce cet cette ces son sa ses leur leurs chaque",
    "spanish": "el la los las un una unos unas del al este esta estos estas su sus cada",
    "portuguese": "o a os as um uma uns umas do da dos das ao aos no na nos nas pelo pela pelos pelas este esta estes "
    "estas",
    "catalan": "el la els les l un una uns unes del dels al als pel pels aquest aquesta aquests aquestes",
}
"""Articles, with prepositions or without, and other words before nouns."""
MIN_DETERMINED, MIN_TOKENS = 0.03, 30
"""A word that occurs MIN_TOKENS times is a noun only if at least MIN_DETERMINED of them follow a determiner."""
_EVERY_LANGUAGE = (
    "mm cm km ml kg mg ghz mhz khz kb mb gb tb kib mib gib kbit mbit kwh mph pct mln bln dlr dlrs cts usd eur gbp "
    "inc ltd llc plc corp gmbh srl sarl pty llp www https com org edu gov mil def elif isinstance kwargs args argv "
    "const struct typedef printf sizeof enum nullptr bool int str argc endif ifdef eof stdin stdout stderr etc"
)
_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty hundred "
    "thousand million billion trillion dozen first second third fourth fifth percent per millisecond milliseconds "
    "seconds minute minutes hour hours day days week weeks month months year years decade decades today yesterday "
    "tomorrow tonight inch inches feet mile miles meters kilometers kg pounds tonnes tons last next ago now then "
    "such same other own several various certain many much more most less least yes no ok okay hey hi hello thanks "
    "thank please sorry regards bye blah welcome told said says saying according quoted made given gave took taken "
    "went gone came knew known thought found saw seen got gotten kept became written wrote done based"
)
_ENGLISH_VERBS = (
    "use make take give say tell see find get know think want need look go come provide allow contain include let "
    "become seem keep try ask add follow describe discuss consider require enable create perform obtain"
)
_CODE_MARKS = frozenset({
    "def", "elif", "isinstance", "kwargs", "const", "struct", "typedef", "printf", "sizeof", "nullptr", "ifdef",
})  # fmt: skip
_KEYWORDS = frozenset({
    "import", "return", "yield", "raise", "assert", "except", "lambda", "print", "static", "void", "public",
    "private",
})  # fmt: skip
"""Words of programs that are also words of other texts; they are keywords where there are words of _CODE_MARKS."""
_LINKS = frozenset({
    "of", "and", "in", "for", "on", "to", "with", "at", "by", "from", "de", "du", "des", "la", "le", "del",
    "di", "da", "von", "van", "der",
})  # fmt: skip
_NO_ADVERBS = frozenset({
    "ally", "anomaly", "apply", "assembly", "belly", "bully", "butterfly", "daily", "early", "elderly",
    "family", "friendly", "italy", "jelly", "july", "lily", "monopoly", "monthly", "quarterly", "rally",
    "reply", "supply", "weekly", "yearly",
})  # fmt: skip


class NameWords:
    """Rules of a language for the words of names.

    written : how words are written that usually have capitals, by their lower case. known : words of the vocabulary.
    bare : words that hardly ever follow a determiner, in a language in which nouns do. In a language without English
    rules, the function words of English are no names if the texts contain "the".
    """

    def __init__(
        self, language: Language, written: Mapping[str, str], known: Container[str], bare: Container[str] = ()
    ) -> None:
        self._name, self._written = language.main, written
        self._english = language.main in ("english", "porter")
        self._closed = frozenset().union(*map(_closed_words, language.name.split(LANGUAGE_SEPARATOR)))
        if not self._english and "the" in known:
            self._closed |= LANGUAGES["english"].stop_words
        self._bare, self._japanese = bare, "japanese" in language.name.split(LANGUAGE_SEPARATOR)
        self._keywords = _KEYWORDS if any(mark in known for mark in _CODE_MARKS) else frozenset[str]()

    def can_name(self, word: str) -> bool:
        """Return whether a word, in lower case, can be a name by itself."""
        return self.can_start(word) and self.can_end(word)

    def can_start(self, word: str) -> bool:
        """Return whether a noun phrase can begin with a word."""
        return self._is_possible(word) and (word not in self._bare or word in self._written)

    def _is_possible(self, word: str) -> bool:
        """Return whether a word can be at an end of a noun phrase."""
        if word[:1].isdigit() or word in self._closed or word in self._keywords:
            return False
        if len(word) == 1 and word < "\u1100":
            return False
        if self._japanese and len(word) == 2 and any("\u3040" <= letter < "\u3100" for letter in word):
            return False  # a pair of characters: kana are an ending, a particle, or a part of a longer word
        return (
            not self._is_adverb(word)
            and not self._is_verb(word)
            and not (self._name == "french" and _is_french_verb(word))
        )

    def can_end(self, word: str) -> bool:
        """Return whether a noun phrase can end with a word: not with a participle, in German with a noun."""
        is_noun = self._name != "german" or self._written.get(word, word) != word
        return is_noun and self._is_possible(word) and not self._is_participle(word)

    def can_link(self, word: str, first: str, *, stop: bool) -> bool:
        """Return whether a word, which may be a stop word, can be inside a noun phrase that begins with `first`."""
        if word in self._keywords:
            return False
        return not (stop and self._english) or (word in _LINKS and not self._is_participle(first))

    def _is_adverb(self, word: str) -> bool:
        ends = self._english and word.endswith("ly") and len(word) > 4 and word not in _NO_ADVERBS
        return ends and word not in self._written

    def _is_verb(self, word: str) -> bool:
        return self._english and word in _english_verbs() and word not in self._written

    def _is_participle(self, word: str) -> bool:
        ends = (
            self._english and word.endswith("ed") and not word.endswith("eed") and len(word) > 4 and word != "hundred"
        )
        return ends and word not in self._written


def determiners(language: Language) -> frozenset[str]:
    """Return the words that nouns follow, in a language whose nouns have articles; empty for other languages."""
    return frozenset(_DETERMINERS.get(language.main, "").split())


@cache
def _closed_words(language: str) -> frozenset[str]:
    """Return the words of closed classes in a language."""
    name = "english" if language == "porter" else language
    words = set(_EVERY_LANGUAGE.split())
    for names in (MONTHS, WEEKDAYS, _OTHER_CALENDAR):
        words.update(names.get(name, "").split())
    if name == "english":
        words.update(_ENGLISH.split())
    return frozenset(words)


@cache
def _english_verbs() -> frozenset[str]:
    """Return the forms of the commonest verbs."""
    return frozenset().union(*map(_forms, _ENGLISH_VERBS.split()))


def _forms(verb: str) -> set[str]:
    """Return the regular forms of an English verb."""
    root = verb.removesuffix("e")
    ends = {verb + "s", root + "ing", root + "ed"}
    return {verb, *ends, *({verb[:-1] + "ies", verb[:-1] + "ied"} if verb.endswith("y") else ())}


def _is_french_verb(word: str) -> bool:
    """Return whether a word has the ending of the second person, as in "consultez"."""
    return word.endswith("ez") and len(word) > 4 and word not in ("assez", "suez")
