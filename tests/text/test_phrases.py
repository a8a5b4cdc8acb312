"""Phrases of a corpus as they are written."""

import numpy as np
import pytest

from polyseme.errors import UnsupportedError
from polyseme.text import Vectorizer
from polyseme.text.phrases import Phrases, least_occurrences

WORDS = ("driver", "buyer", "critic", "reader", "owner", "seller", "maker", "user", "judge", "writer", "actor", "pilot")


def sentence(number: int, phrase: str) -> str:
    """Return a sentence with a phrase between words drawn at random."""
    before, after, last = np.random.default_rng(number).choice(WORDS, 3)
    return f"Every {before} {phrase} {after} and the {last}."


def found(texts: list[str], **settings: object) -> Phrases:
    vectorizer = Vectorizer(**{"language": "english", **settings})
    vectorizer.fit(texts)
    return vectorizer.find_phrases(texts)


def texts_with(*phrases: str, copies: int = 40) -> list[str]:
    return [
        " ".join(sentence(10 * number + place, phrase) for place, phrase in enumerate(phrases))
        for number in range(copies)
    ]


def test_phrases_are_written_as_in_the_texts() -> None:
    texts = texts_with("hard drive", "Tony Blair", "point of view", "X-ray image")
    texts = [
        text.replace("hard drive", "Hard drives") if number % 4 == 0 else text for number, text in enumerate(texts)
    ]
    phrases = found(texts)
    assert {"hard drive", "Tony Blair", "point of view", "X-ray image"} <= set(phrases.names)
    place = phrases.names.index("hard drive")
    assert phrases.occurrences[place] == 40  # forms of a stem are one word
    assert phrases.documents[[place]].sum() == 40
    words = Vectorizer(language="english").fit(texts).get_feature_names_out()
    assert {words[column] for column in phrases.columns[[place]].indices} == {"hard", "drive"}
    assert phrases.words[list(words).index("blair")] == "Blair"
    assert list(words).index("drive") not in phrases.words


@pytest.mark.parametrize(
    "text",
    [
        "hard, drive",
        "hard. Drive",
        "the drive",
        "hard the",
        "hard\n\ndrive",
        "a@hard.drive",
        "http://hard/drive",
    ],
)
def test_punctuation_addresses_and_stop_words_end_a_phrase(text: str) -> None:
    assert not [name for name in found(texts_with(text)).names if "drive" in name.lower() and "hard" in name.lower()]


def test_a_module_is_not_part_of_a_phrase_but_its_parts_are_words() -> None:
    phrases = found(texts_with("numpy.linalg import"))
    assert "linalg import" not in phrases.names
    words = list(Vectorizer(language="english").fit(texts_with("numpy.linalg import")).get_feature_names_out())
    assert phrases.word_tokens[words.index("linalg")] == 40


def test_a_signature_and_a_part_of_a_longer_phrase_are_left_out() -> None:
    texts = [f"{text} sincerely yours Henry Spencer at Toronto Zoology." for text in texts_with("Salt Lake City")]
    names = found(texts).names
    assert "Salt Lake City" in names
    assert "Salt Lake" not in names
    assert "Lake City" not in names
    assert not [name for name in names if "Henry" in name or "Toronto" in name]


def test_names_of_authors_are_left_out_unless_texts_are_lists_of_names() -> None:
    signed = [
        f"{text}\nThe view of Tony Blair. {WORDS[number % 12]}. Jane Doe, {WORDS[number % 11]}"
        for number, text in enumerate(texts_with("hard drive", "point of view"))
    ]
    names = found(signed).names
    assert "Jane Doe" not in names
    assert {"Tony Blair", "hard drive"} <= set(names)
    listed = [
        f"{WORDS[n % 12]}, Jane Doe, {WORDS[n % 11]}; {WORDS[n % 7]}, Tony Blair, {WORDS[n % 5]}" for n in range(60)
    ]
    assert {"Jane Doe", "Tony Blair"} <= set(found(listed).names)


def test_common_neighbors_are_not_a_phrase() -> None:
    """The words of a pair that occurs as often as expected by chance have an NPMI of about zero."""
    words = np.random.default_rng(0).choice(["stone", "river", "cloud", "mouse"], size=(200, 30))
    assert found([" ".join(row) for row in words], max_df=1.0).names == []
    assert found(texts_with("very very long long long")).names == []  # no word twice


def test_excluded_words_are_in_no_phrase() -> None:
    texts = texts_with("hard drive", "Tony Blair")
    names = found(texts, extra_stop_words=["Drives"]).names
    assert "hard drive" not in names
    assert "Tony Blair" in names


def test_words_that_follow_no_article_start_no_phrase() -> None:
    # Both pairs are frequent and in different contexts, but "contiene" never follows an article.
    rng = np.random.default_rng(0)
    fillers = [f"{first}arol{last}" for first in "bcdfglmnprst" for last in "aeiou"]
    texts = [
        "La {} contiene librerie {}. Le librerie statiche {} e la {}.".format(*rng.choice(fillers, 4))
        for _ in range(60)
    ]
    phrases = found(texts, language="italian")
    assert "contiene" in phrases.bare
    assert "librerie" not in phrases.bare
    assert "librerie statiche" in phrases.names
    assert not any(name.startswith("contiene") for name in phrases.names)
    assert "contiene librerie" in found(texts, language="romanian").names


@pytest.mark.parametrize(
    ("n_documents", "least"), [(4, (3, 2)), (100, (3, 2)), (400, (5, 3)), (1000, (8, 5)), (10**6, (8, 5))]
)
def test_small_corpora_need_fewer_occurrences(n_documents: int, least: tuple[int, int]) -> None:
    assert least_occurrences(n_documents) == least


@pytest.mark.parametrize("texts", [["", ""], ["one"], ["1 2 3"], ["机器学习的模型"] * 20])
def test_texts_without_phrases(texts: list[str]) -> None:
    vectorizer = Vectorizer(language="english", vocabulary=["hard", "drive"])
    vectorizer.fit(texts)
    phrases = vectorizer.find_phrases(texts)
    assert phrases.names == []
    assert phrases.columns.shape == (0, 2)
    assert phrases.documents.shape == (0, len(texts))


def test_a_long_text_without_spaces_takes_linear_time() -> None:
    assert found(["a." * 200_000 + "b@" * 100_000 + "c" * 500_000, "hard drive"], min_df=1).names == []


def test_only_words_have_phrases() -> None:
    vectorizer = Vectorizer(analyzer="char").fit(["abc"])
    with pytest.raises(UnsupportedError, match="Phrases consist of words"):
        vectorizer.find_phrases(["abc"])


def test_words_of_mail_headers_and_signatures_are_apart() -> None:
    texts = [
        f"Article {number} of jane@lab.example.org (Jane Doe):\nOn {WORDS[number % 12]} one. {text}\n\n"
        f"Jane\nWilliam Roe @ Institute of Zoology\n"
        for number, text in enumerate(texts_with("hard drive", "point of view"))
    ]
    phrases = found(texts)
    assert "hard drive" in phrases.names
    assert {"jane", "doe", "lab", "example", "roe", "zoology"} <= phrases.apart
    assert not {"drive", "view", "maker", "pilot"} & phrases.apart
    assert not any("Doe" in name or "Zoology" in name for name in phrases.names)


def test_words_that_are_always_between_the_same_words_are_apart() -> None:
    phrases = found([f"{text} This is on behalf of the {text}" for text in texts_with("hard drive")])
    assert "behalf" in phrases.apart
    assert "maker" not in phrases.apart
