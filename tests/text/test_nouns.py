"""Words that can name a subject, and ends of noun phrases."""

import pytest

from polyseme.text import Vectorizer
from polyseme.text.languages import get_language
from polyseme.text.nouns import NameWords

CODE = {"def": 0}


def rules(language: str, *capitals: str, known: dict[str, int] | None = None) -> NameWords:
    return NameWords(get_language(language), {word.lower(): word for word in capitals}, known or {})


@pytest.mark.parametrize(
    ("language", "word"),
    [
        ("english", "april"), ("english", "friday"), ("english", "1986"), ("english", "1e"), ("english", "three"),
        ("english", "pct"), ("english", "years"), ("english", "inc"), ("english", "plc"), ("english", "told"),
        ("english", "x"), ("english", "elif"), ("english", "using"), ("english", "provides"), ("english", "thanks"),
        ("english", "safely"), ("english", "solved"), ("german", "dezember"), ("french", "juillet"), ("italian", "kg"),
        ("other", "gmbh"), ("japanese", "で起"),
        ("other+japanese", "で起"), ("japanese", "ンス"), ("french", "consultez"),
    ],
)  # fmt: skip
def test_some_words_do_not_name_a_subject(language: str, word: str) -> None:
    assert not rules(language).can_name(word)


@pytest.mark.parametrize(
    ("language", "word"),
    [
        ("english", "bank"), ("english", "family"), ("english", "speed"), ("english", "provider"),
        ("english", "import"), ("english", "x11"), ("italian", "family"),
        ("other", "april"), ("japanese", "翻訳"),
        ("chinese", "水"), ("french", "rez"),
    ],
)  # fmt: skip
def test_other_words_do(language: str, word: str) -> None:
    assert rules(language).can_name(word)


def test_capitals_tell_names_from_participles_and_german_nouns_from_other_words() -> None:
    assert rules("english", "United").can_end("united")
    assert not rules("english").can_end("treated")
    assert rules("english").can_start("distributed")
    assert rules("english", "Go").can_name("go")  # the language
    assert not rules("english").can_name("go")
    assert rules("german", "Prozess").can_end("prozess")
    assert not rules("german", "Prozess").can_end("durchführen")
    assert rules("german", "Prozess").can_name("prozess")
    assert not rules("german", "Prozess").can_name("finden")


def test_words_that_follow_no_article_are_no_nouns() -> None:
    words = NameWords(get_language("italian"), {"java": "Java"}, {}, {"contiene", "statiche", "java"})
    assert words.can_name("libreria")
    assert not words.can_name("contiene")
    assert not words.can_start("contiene")
    assert words.can_end("statiche")  # an adjective after a noun
    assert words.can_name("java")


def test_words_of_other_languages_and_of_code_depend_on_the_texts() -> None:
    assert rules("german", "Are").can_name("are")
    assert not rules("german", "Are", known={"the": 0}).can_name("are")
    assert not rules("english", known=CODE).can_name("import")
    assert not rules("english", known=CODE).can_link("import", "datetime", stop=False)


@pytest.mark.parametrize(
    "text",
    [
        "told Reuters", "patients treated", "last year", "started the fire", "expressed in terms", "matplotlib as mpl",
        "March shipments", "safely stored", "Barclays plc",
    ],
)  # fmt: skip
def test_a_phrase_is_a_noun_phrase(text: str) -> None:
    names = {name.lower() for name in phrases(text)}
    assert text.lower() not in names
    assert "interest rate" in names


@pytest.mark.parametrize("text", ["point of view", "signal processing", "distributed systems", "family planning"])
def test_noun_phrases_stay(text: str) -> None:
    assert text in phrases(text)


def phrases(text: str) -> list[str]:
    """Return the phrases of texts that contain a phrase and "interest rate" between different words."""
    words = [f"{a}{b}" for a in ("stone", "river", "cloud", "mouse", "grass", "metal") for b in "abcdefg"]
    texts = [f"Every {words[n]} {text} {words[n + 1]}. The {words[n + 1]} interest rate {words[n]}." for n in range(40)]
    vectorizer = Vectorizer(language="english", max_df=1.0)
    vectorizer.fit(texts)
    return vectorizer.find_phrases(texts).names
