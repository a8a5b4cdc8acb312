"""Rules of a fitted vectorizer without scikit-learn: the same counts, from memory and from plain data."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, strip_accents_ascii, strip_accents_unicode

from polyseme import InputError, ModelFileError, UnsupportedError
from polyseme.text import LANGUAGES, Vectorizer
from polyseme.text.tokens import language_characters, pattern_characters, single_characters
from polyseme.text.words import (
    DEFAULT_PATTERN,
    TokenSettings,
    plain_rules,
    read_word_rules,
    rules_from_arrays,
    rules_to_arrays,
)

TEXTS = [
    *["The cats of San Francisco don't sit in été houses, 1987 12"] * 11,
    "STRASSE Straße İstanbul ΣΊΣΥΦΟΣ ﬁne ｆｕｌｌ o'clock col·legi",
    "日本語の文章 中文 한국어 ภาษาไทย ไทย",
    "run runs running; ran \u200eodd\u00ad words e\u0301te\u0301",
]
OPTIONS = [
    {},
    {"lowercase": False},
    {"stop_words": "english"},
    {"stop_words": ["the", "of"], "ngram_range": (1, 3)},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii", "lowercase": False},
    {"analyzer": "char", "ngram_range": (1, 2)},
    {"analyzer": "char_wb", "ngram_range": (2, 3)},
    {"token_pattern": r"[^\W\d_]{2,}"},
    {"token_pattern": r"\b[a-z]+\b", "binary": True},
    {"vocabulary": ["cats", "houses", "san"]},
    {"language": "english"},
    {"language": "english", "stem": False, "stop_words": []},
    {"language": "english", "phrases": True},
    {"language": "english", "phrases": 0.3, "ngram_range": (1, 2), "strip_accents": "unicode"},
    {"phrases": True},
    {"language": "auto"},
    {"language": "turkish"},
    {"language": "japanese"},
    {"language": "korean", "ngram_range": (2, 2)},
    {"language": "catalan", "extra_stop_words": ["cats"], "keep_numbers": True},
    {"dtype": np.float32, "min_df": 2},
]


def rules_of(vectorizer, **trust):
    return read_word_rules(json.loads(json.dumps(vectorizer.to_dict())), **trust)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_counts_are_those_of_the_vectorizer(options):
    vectorizer = Vectorizer(n_jobs=1, **options).fit(TEXTS)
    queries = [*TEXTS, "", "zebra unknown", "CATS THE cats"]
    expected, rules = vectorizer.transform(queries), rules_of(vectorizer)
    counts = rules.transform(queries)
    np.testing.assert_array_equal(counts.matrix().toarray(), expected.toarray())
    assert counts.values.dtype == expected.dtype
    header, arrays = rules_to_arrays(rules)
    again = rules_from_arrays(json.loads(json.dumps(header)), arrays, rules.columns)
    np.testing.assert_array_equal(again.transform(queries).matrix().toarray(), expected.toarray())


LETTERS = st.sampled_from("aAbBsSΣσςİiIıßẞéÉe\u0301ﬁｆ'’-_ .·0９日語한กา\u200d\u00ad\u0640\ud800𝒜\U0001e900ǅ\0")
ENGLISH = Vectorizer(n_jobs=1, language="english", stop_words=[]).fit(TEXTS)


@given(st.lists(st.text(LETTERS | st.characters(), max_size=20), max_size=4))
@settings(max_examples=200, deadline=None)
def test_a_table_of_the_characters_of_texts_finds_the_same_words(texts):
    for language in ("english", "japanese", "catalan"):
        for lowercase in (True, False):
            known = LANGUAGES[language]
            whole = language_characters(lowercase, known.joiners, known.pairs)
            check_entries(whole, texts)
    for lowercase in (True, False):
        check_entries(pattern_characters(DEFAULT_PATTERN, lowercase), texts)
        check_entries(pattern_characters("[^a-e ]+", lowercase), texts)
        check_entries(single_characters(lowercase), texts)


def check_entries(whole, texts):
    limited = whole.of_texts(texts)
    used = {ord(character) for text in texts for character in text + text.lower()}
    for code in used:
        assert limited.table[code] == whole.table[code]
        assert (code in limited.irregular) == (code in whole.irregular)
    assert limited.min_length == whole.min_length


@given(st.lists(st.text(LETTERS, max_size=30), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_any_text_is_counted_as_the_vectorizer_does(texts):
    expected = ENGLISH.transform(texts).toarray()
    np.testing.assert_array_equal(rules_of(ENGLISH).transform(texts).matrix().toarray(), expected)


@given(st.text(LETTERS | st.characters(exclude_categories=["Cs"]), max_size=30))
@settings(max_examples=200, deadline=None)
def test_accents_are_removed_as_in_scikit_learn(text):
    for accents, reference in (("unicode", strip_accents_unicode), ("ascii", strip_accents_ascii)):
        assert TokenSettings(lowercase=False, strip_accents=accents).build_preprocessor()(text) == reference(text)
        assert TokenSettings(strip_accents=accents).build_preprocessor()(text) == reference(text.lower())


def test_plain_rules_are_those_of_countvectorizer():
    assert CountVectorizer().token_pattern == DEFAULT_PATTERN
    words = ["cats", "été", "san"]
    expected = CountVectorizer(vocabulary=words).transform(TEXTS).toarray()
    rules = plain_rules({word: column for column, word in enumerate(words)})
    np.testing.assert_array_equal(rules.transform(TEXTS).matrix().toarray(), expected)


def test_a_string_instead_of_texts_raises():
    with pytest.raises(ValueError, match="Iterable over raw text documents expected"):
        plain_rules({"aa": 0}).transform("aa")


def test_a_pattern_must_be_trusted():
    vectorizer = Vectorizer(token_pattern=r"(?:a|b)+(c)", n_jobs=1).fit(["abc", "bc"])
    with pytest.raises(ModelFileError, match="trust_pattern=True"):
        rules_of(vectorizer)
    trusted = rules_of(vectorizer, trust_pattern=True)
    np.testing.assert_array_equal(
        trusted.transform(["abc c"]).matrix().toarray(), vectorizer.transform(["abc c"]).toarray()
    )
    assert rules_to_arrays(trusted) is None
    with pytest.raises(InputError, match="more than one group"):
        TokenSettings(token_pattern="(a)(b)").build_tokenizer()


def test_ngrams_of_length_zero_are_left_to_scikit_learn():
    with pytest.raises(UnsupportedError, match="length zero"):
        rules_of(Vectorizer(ngram_range=(0, 1)).fit(["a few words"]))


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {}},
        {"ngram_range": [0, 1]},
        {"ngram_range": [2, 1]},
        {"language": "klingon"},
        {"stem": 1},
        {"rounds": [5]},
        {"rounds": [-1, 1]},
        {"more": 1},
        {"settings": {"token_pattern": "(a+)+b"}},
        {"settings": {"token_pattern": None}},
        {"settings": {"stop_words": "english"}},
        {"settings": {"analyzer": "all"}},
    ],
    ids=str,
)
def test_stored_rules_are_checked(change):
    header, arrays = rules_to_arrays(rules_of(Vectorizer(language="english", n_jobs=1).fit(TEXTS)))
    settings_ = change.get("settings")
    if settings_:
        change = {"settings": header["settings"] | settings_}
    with pytest.raises(ValueError, match=r"."):
        rules_from_arrays(header | change, arrays, {"a": 0})


def test_counting_a_query_does_not_import_scikit_learn(tmp_path):
    vectorizer = Vectorizer(language="english", phrases=True, n_jobs=1).fit(TEXTS)
    (tmp_path / "vectorizer.json").write_text(json.dumps(vectorizer.to_dict()), encoding="utf-8")
    program = """
import json, sys
import polyseme.text
from polyseme.text.words import read_word_rules
counts = read_word_rules(json.load(open(sys.argv[1]))).transform(["cats of San Francisco"])
print(int(counts.values.sum()), sorted({"sklearn", "scipy", "joblib", "polars"} & set(sys.modules)))
"""
    arguments = [sys.executable, "-P", "-c", program, str(tmp_path / "vectorizer.json")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(int(vectorizer.transform(["cats of San Francisco"]).sum())), "[]"]
