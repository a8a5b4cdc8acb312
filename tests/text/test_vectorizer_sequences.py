"""`Vectorizer.sequences`: the words of documents in their order."""

import numpy as np
import pytest

from polyseme.errors import UnsupportedError
from polyseme.metrics import coherence, top_words
from polyseme.metrics.coherence import token_sequences
from polyseme.text import Vectorizer

TEXTS = [
    "The cats sat on the mat; a cat sat, and dogs ran.",
    "Dogs and cats: dogs run, cats sit!",
    "",
    "San Francisco is a city. In San Francisco dogs run.",
    "zebra",
] * 6


def counted(sequences, n_words):
    """Return the counts of sequences."""
    indptr = sequences.indptr
    rows = [sequences.tokens[indptr[d] : indptr[d + 1]] for d in range(len(indptr) - 1)]
    return np.array([np.bincount(row[row >= 0], minlength=n_words) for row in rows])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"language": "english"},
        {"language": "english", "stem": False},
        {"language": "english", "phrases": 0.3},
        {"phrases": 0.3},
        {"stop_words": "english", "min_df": 7},
        {"tokenizer": str.split, "token_pattern": None},
        {"language": "english", "n_jobs": 1},
    ],
)
def test_sequences_have_the_counts_of_transform(options):
    vectorizer = Vectorizer(**options)
    counts = vectorizer.fit_transform(TEXTS)
    sequences = vectorizer.sequences(iter(TEXTS))
    assert len(sequences.indptr) == len(TEXTS) + 1
    assert np.array_equal(counted(sequences, counts.shape[1]), counts.toarray())


def test_the_order_is_that_of_the_text():
    vectorizer = Vectorizer(stop_words=["the"]).fit(["the big cat, the small cat"])
    names = vectorizer.get_feature_names_out()
    sequences = vectorizer.sequences(["The small dog, the big dog; the cat."])
    words = [names[number] if number >= 0 else None for number in sequences.tokens]
    assert words == ["small", None, "big", None, "cat"]


def test_forms_of_a_stem_are_one_word():
    vectorizer = Vectorizer(language="english").fit(["a cat and many cats", "dogs"])
    tokens = vectorizer.sequences(["Cats, cat; dog!"]).tokens
    assert tokens[0] == tokens[1] >= 0
    assert tokens[2] >= 0


def test_sequences_are_those_of_the_analyzer():
    vectorizer = Vectorizer(min_df=7)
    counts = vectorizer.fit_transform(TEXTS)
    analyzer = vectorizer.build_analyzer()
    wanted = token_sequences([analyzer(text) for text in TEXTS], list(vectorizer.get_feature_names_out()))
    found = vectorizer.sequences(TEXTS)
    assert np.array_equal(found.tokens, wanted.tokens)
    assert np.array_equal(found.indptr, wanted.indptr)
    topics = top_words(counts.toarray()[:2].astype(float), 4)
    assert np.array_equal(coherence(topics, found, "c_v").topics, coherence(topics, wanted, "c_v").topics)


@pytest.mark.parametrize("options", [{"ngram_range": (1, 2)}, {"analyzer": "char"}, {"analyzer": str.split}])
def test_only_single_words_have_sequences(options):
    with pytest.raises(UnsupportedError, match="Sequences consist of single words"):
        Vectorizer(**options).fit(TEXTS).sequences(TEXTS)
