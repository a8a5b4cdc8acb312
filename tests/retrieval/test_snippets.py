"""Phrases of a query, and snippets with the words that a query matched."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from polyseme import InputError
from polyseme.retrieval.snippets import WIDTH, QueryFinder, parse_query, plain_text
from polyseme.text import Vectorizer

TEXT = (
    "The banks of the river were flooded in spring. Nobody was hurt, said the mayor. "
    "Banking, by contrast: a bank's loan-rates rose! Nothing else was reported. "
    "Don’t stop; the hard\ndrive failed in New York City today. 我们在银行工作。 Straße nach Köln, cafe\u0301 au lait."
)


def finder(query, phrases=(), text=TEXT, **options):
    options = {"language": "english", **options}
    return QueryFinder([query], phrases, Vectorizer(**options).fit([text] * 3)._word_rules())


def marked(snippet):
    return [snippet.text[start:end] for start, end in snippet.marks]


def test_a_query_has_words_and_phrases():
    assert parse_query('phone "hard  drive" “New York” x') == (
        "phone hard drive New York x",
        ("hard drive", "New York"),
        (),
        (),
    )
    assert parse_query("no phrase").phrases == ()
    with pytest.raises(InputError, match="a quotation mark without a partner: close the phrase"):
        parse_query('5" disk')
    for empty in ('""', 'a " . "', "“”"):
        with pytest.raises(InputError, match="a phrase without words: put words between"):
            parse_query(empty)
    with pytest.raises(InputError, match="query must be a text, got int"):
        parse_query(5)


def test_a_query_has_beginnings_of_words_and_excluded_words():
    asked = parse_query('hard* well-rea* -winter -5 k-means NOT Rain* "a -b c*" not a - b NOT -snow')
    assert asked.words.split() == ["well-", "-5", "k-means", "a", "-b", "c*", "not", "a", "-", "b"]
    assert asked.phrases == ("a -b c*",)
    assert asked.prefixes == ("hard*", "rea*")
    assert asked.excluded == ("winter", "Rain*", "snow")
    for query, message in {
        "rain NOT": "ends with NOT: write the word",
        "-rain NOT snow": "only excludes words: add a word",
        'rain -"new york"': "excludes a phrase: exclude single words",
        'rain NOT "new york"': "excludes a phrase: exclude single words",
    }.items():
        with pytest.raises(InputError, match=message):
            parse_query(query)
    assert parse_query('rain - "new york"').phrases == ("new york",)


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("hard drive failed", True),
        ("HARD   DRIVE", True),
        ("drive hard", False),
        ("hard drives", False),  # the exact words, not their stems
        ("ard drive", False),
        ("New York", True),
        ("don't stop", True),
        ("don", False),
        ("银行", True),
        ("straße NACH köln", True),
        ("caf\u00e9 au", True),
        ("loan-rates rose!", True),
        ("spring. Nobody", True),
        (".*", False),
    ],
)
def test_phrases_are_found_as_written(phrase, found):
    assert finder("", [phrase]).has_phrases(TEXT) is found


def test_the_forms_of_a_word_are_marked():
    assert marked(finder("bank").snippet(TEXT)) == ["banks", "Banking", "bank's"]
    assert marked(finder("bank", stem=False, stop_words=[]).snippet(TEXT)) == []
    assert marked(finder("rates", stem=False).snippet(TEXT)) == ["rates"]
    assert marked(finder("the and of").snippet(TEXT)) == []  # stop words
    assert marked(finder("银行", language="chinese").snippet(TEXT)) == ["银行"]
    words = CountVectorizer().fit([TEXT])
    assert marked(QueryFinder(["river mayor"], [], words).snippet(TEXT)) == ["river", "mayor"]


def test_a_snippet_has_most_words_of_the_query():
    found = finder("bank drive new york").snippet(TEXT, 80)
    assert marked(found) == ["drive", "New", "York"]
    assert found.text.startswith("… Don’t stop; the hard drive failed in New York City")
    assert found.text.endswith(" …")
    assert len(found.text) <= 84
    assert finder("zebra").snippet(TEXT, 30) == finder("").snippet(TEXT, 30)
    assert finder("zebra").snippet(TEXT, 30).text == "The banks of the river were …"
    assert finder("bank").snippet("") == finder("bank").snippet("  \n ")
    assert finder("bank").snippet("A bank.").text == "A bank."


def test_phrases_are_marked_as_a_whole():
    found = finder("hard drive failed in", ["hard drive failed in"]).snippet(TEXT, 60)
    assert marked(found) == ["hard drive failed in"]


@given(
    st.lists(
        st.sampled_from(["bank", "Banks.", "river-bank", "銀行で", "\x1b[31m", "<b>", "x" * 90, "é", "İi", "\n"]),
        max_size=60,
    ),
    st.integers(1, 90),
)
@settings(max_examples=60, deadline=None)
def test_snippets_are_parts_of_the_text(words, width):
    text = " ".join(words)
    found = FINDER.snippet(text, width)
    inner = found.text.removeprefix("… ").removesuffix(" …")
    assert inner in plain_text(text)
    assert len(inner) <= max(width, 12)
    places = [place for mark in found.marks for place in mark]
    assert places == sorted(places)
    assert all("bank" in part.lower() for part in marked(found))
    if "bank" in plain_text(text).lower() and width >= 12:
        assert found.marks


FINDER = QueryFinder(["bank"], [], Vectorizer(language="english").fit(["bank banks"] * 3)._word_rules())


def test_a_long_text_takes_little_time():
    found = finder("drive").snippet(("word " * 100_000) + TEXT)
    assert marked(found) == ["drive"]
    assert len(found.text) <= WIDTH + 4
