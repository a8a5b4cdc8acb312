"""Word rules of a page: rules that it can apply, and the reasons why it cannot apply others."""

import pytest
from sklearn.feature_extraction.text import CountVectorizer, strip_accents_unicode

from explorer_corpora import themed_texts
from polyseme.explore.page import word_rules
from polyseme.text import Vectorizer

TEXTS = themed_texts()[0]

REFUSED = {
    "an analyzer written in Python": CountVectorizer(analyzer=str.split),
    "a tokenizer written in Python": CountVectorizer(tokenizer=str.split, token_pattern=None),
    "a preprocessor written in Python": CountVectorizer(preprocessor=str.upper),
    "parts of words, not of words": CountVectorizer(analyzer="char"),
    "a function written in Python": CountVectorizer(strip_accents=strip_accents_unicode),
    "needs Python's regular expressions": CountVectorizer(token_pattern=r"\b\w+(?:-\w+)*\b"),
    "not fitted, so its language is not known": Vectorizer(language="english"),
    "counted with object, which only runs in Python": object(),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_rules_that_a_page_cannot_apply_have_a_reason(reason):
    vectorizer = REFUSED[reason]
    if type(vectorizer) is CountVectorizer:
        vectorizer.fit(TEXTS)
    values, arrays = word_rules(vectorizer)
    assert reason in values["reason"]
    plain, plain_arrays = word_rules(None)
    assert values == {**plain, "reason": values["reason"]}
    assert [arrays[name].tolist() for name in arrays] == [plain_arrays[name].tolist() for name in arrays]


def test_rules_contain_the_settings_of_the_vectorizer():
    vectorizer = CountVectorizer(strip_accents="unicode", lowercase=False, binary=True, stop_words=["of", "the"])
    values, _ = word_rules(vectorizer.fit(TEXTS))
    assert (values["reason"], values["lowercase"], values["binary"]) == ("", False, True)
    assert values["accents"] == "unicode"
    assert "\u0301" in values["marks"]
    assert "a" not in values["marks"]
    assert values["stops"] == ["of", "the"]


def test_stems_are_pairs_of_a_form_and_the_word_it_counts_for():
    vectorizer = Vectorizer(language="english").fit(TEXTS)
    values, _ = word_rules(vectorizer)
    names = dict(zip(values["forms"], values["names"], strict=True))
    assert names
    for form, name in names.items():
        assert vectorizer.forms_[form] == vectorizer.forms_[name]
        assert form != name
        assert name in vectorizer.vocabulary_
