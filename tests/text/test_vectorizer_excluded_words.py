"""Words that a Vectorizer does not count: numbers, and stop words that the user adds."""

import json

import pytest

from polyseme import InputError, UnsupportedError
from polyseme.text import Vectorizer

pytest.importorskip("Stemmer")

TEXTS = [
    "In 1984 the 12 players played 300 games",
    "A player of 12 games won 45000 dollars in 2024",
    "Windows 95 and MP3 files since 1066 or 999",
]


def vocabulary(**parameters):
    return set(Vectorizer(**parameters).fit(TEXTS).vocabulary_)


def numerals(words):
    return {word for word in words if word.isdecimal()}


def test_a_language_excludes_numbers_but_not_years():
    words = vocabulary(language="english")
    assert numerals(words) == {"1984", "2024", "1066"}
    assert "mp3" in words


def test_keep_numbers_overrides_the_default():
    assert numerals(vocabulary(language="english", keep_numbers=True)) >= {"12", "300", "45000", "95", "999"}
    assert numerals(vocabulary()) >= {"12", "300", "45000", "95", "999"}
    assert numerals(vocabulary(keep_numbers=False)) == {"1984", "2024", "1066"}


def test_numbers_may_have_any_script_and_length():
    texts = ["total ١٢٣ and " + "9" * 5000, "total ١٩٨٤"]
    assert set(Vectorizer(language="other").fit(texts).vocabulary_) == {"and", "total", "١٩٨٤"}


def test_a_phrase_may_contain_a_number():
    texts = ["windows 95 crashed", "windows 95 again", "install windows 95"] * 8
    assert "windows_95" in Vectorizer(language="english", phrases=True).fit(texts).vocabulary_


def test_max_features_applies_to_the_remaining_words():
    words = Vectorizer(keep_numbers=False, max_features=2).fit(["7 7 7 apple apple pear pear 77 plum 7777"] * 2)
    assert set(words.get_feature_names_out()) == {"apple", "pear"}


def test_an_extra_stop_word_excludes_all_forms_of_its_stem():
    both = vocabulary(language="english")
    assert both & {"player", "players"}
    left = vocabulary(language="english", extra_stop_words=["Player"])
    assert not left & {"player", "players"}
    assert "the" not in left  # the stop words of the language are excluded as well


def test_extra_stop_words_without_a_language_are_exact_words():
    words = vocabulary(extra_stop_words={"PLAYER", "missing"})
    assert "player" not in words
    assert "players" in words


def test_transform_excludes_the_same_words():
    counter = Vectorizer(language="english", extra_stop_words=["game"]).fit(TEXTS)
    assert counter.transform(["games and the game 12 77"]).sum() == 0


def test_fit_learns_the_words_of_fit_transform():
    settings = {"language": "english", "extra_stop_words": ["game"]}
    whole = Vectorizer(**settings)
    whole.fit_transform(TEXTS)
    assert Vectorizer(**settings).fit(iter(TEXTS)).vocabulary_ == whole.vocabulary_


def test_json_restores_the_settings():
    fitted = Vectorizer(language="english", keep_numbers=True, extra_stop_words=["game"]).fit(TEXTS)
    again = Vectorizer.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again.keep_numbers is True
    assert again.extra_stop_words == ["game"]
    assert again.fit(TEXTS).vocabulary_ == fitted.vocabulary_


@pytest.mark.parametrize("settings", [{"keep_numbers": False}, {"extra_stop_words": ["game"]}])
def test_a_vocabulary_or_characters_cannot_be_combined_with_exclusions(settings):
    with pytest.raises(InputError, match="change the vocabulary"):
        Vectorizer(vocabulary=["game"], **settings).fit(TEXTS)
    with pytest.raises(UnsupportedError, match="keep analyzer='word'"):
        Vectorizer(analyzer="char", **settings).fit(TEXTS)


@pytest.mark.parametrize("given", ["game", [1, 2]])
def test_extra_stop_words_must_be_strings(given):
    with pytest.raises(ValueError, match="extra_stop_words"):
        Vectorizer(extra_stop_words=given).fit(TEXTS)


def test_documents_with_only_numbers_have_an_empty_vocabulary():
    with pytest.raises(ValueError, match="only contain numbers and stop words"):
        Vectorizer(language="english").fit(["12 13", "14"])
