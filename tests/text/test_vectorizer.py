"""Vectorizer against scikit-learn's CountVectorizer: the same counts, vocabulary, errors and conventions."""

import copy
import gzip
import io
import json
import pickle
import re
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import polyseme
from polyseme.text import Vectorizer, tokens
from polyseme.text.tokens import pattern_characters
from real_data import DATA

TEXTS = [
    "The car is driven on the road, the CAR!",
    "The truck is driven on the highway; it's Ευρώπη και ΟΔΟΣ ΣΑΣ",
    "Straße ÉCOLE naïve Ǆ İstanbul e\u0301te\u0301 x_1 __ 42 \x00nul\x00byte",
    "",
    "a b c d",
    "東京 tower ค่ะ नमस्ते don't re-use 10% ½ ² a\u00adb\u200cc",
]


def assert_same(texts, more_texts=(), *, phrases=False, **parameters):
    """Check for equal matrices, vocabularies and types, or equal errors.

    `phrases=1.0` makes Vectorizer count in the order of the words, which must not change the result.
    """
    theirs, ours = CountVectorizer(**parameters), Vectorizer(phrases=phrases, **parameters)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            ours.fit_transform(texts)
        return
    counts = ours.fit_transform(texts)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert_equal_counts(counts, expected)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert_equal_counts(ours.transform([*texts, *more_texts]), theirs.transform([*texts, *more_texts]))
    assert Vectorizer(phrases=phrases, **parameters).fit(texts).vocabulary_ == theirs.vocabulary_


def assert_equal_counts(counts, expected):
    assert type(counts) is type(expected)
    assert counts.shape == expected.shape
    assert counts.dtype == expected.dtype
    assert counts.has_sorted_indices
    assert counts.indices.dtype == np.int32
    expected.sort_indices()
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(counts, part), getattr(expected, part)), part


SETTINGS = [
    {},
    {"lowercase": False},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 3)},
    {"stop_words": ["the", "is", "driven"], "ngram_range": (1, 3)},
    {"stop_words": "english"},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii", "lowercase": False},
    {"token_pattern": r"(?u)\b\w+\b"},
    {"token_pattern": r"\w+"},
    {"token_pattern": r"\b[^\W\d_]{3,}\b"},
    {"token_pattern": r"[a-z]{2,}"},
    {"token_pattern": r"[^\s]+"},
    {"token_pattern": r"(?u)\b\w[\w'-]*\b"},
    {"token_pattern": r"(\w)\w+", "ngram_range": (1, 2)},
    {"token_pattern": r"\b\w+"},
    {"analyzer": "char"},
    {"analyzer": "char", "ngram_range": (2, 4)},
    {"analyzer": "char_wb", "ngram_range": (1, 2)},
    {"analyzer": "char_wb", "ngram_range": (3, 5), "strip_accents": "unicode"},
    {"binary": True, "dtype": np.float32},
    {"min_df": 2},
    {"max_df": 0.3},
    {"max_features": 5},
    {"dtype": np.float64, "max_features": 3, "ngram_range": (1, 2)},
    {"vocabulary": ["road", "car", "nothing"]},
    {"vocabulary": {"road": 1, "car": 0, "the": 2}, "ngram_range": (1, 2)},
    {"preprocessor": str.upper},
    {"preprocessor": str.swapcase, "analyzer": "char", "ngram_range": (1, 2)},
    {"strip_accents": str.title},
]


@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_counts_are_those_of_count_vectorizer(parameters):
    assert_same(TEXTS, ["the unseen car road", "\u03a3"], **parameters)


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
def test_tokenizer_and_analyzer_of_the_user():
    assert_same(TEXTS, tokenizer=str.split, stop_words=["the"], ngram_range=(1, 2))
    assert_same(TEXTS, tokenizer=lambda text: text.split(" "))  # also the empty word
    assert_same(TEXTS, analyzer=lambda text: [len(word) for word in text.split()])
    with pytest.raises(polyseme.InputError, match="The tokenizer must return strings: a string was expected, not int"):
        Vectorizer(tokenizer=lambda text: [1]).fit(TEXTS)


SPACED = ["ship  sail", "sea  storm ship", "", " ", "sail ship  ", "sea storm  sail sea  "]
"""Texts that have empty tokens if they are split at single blanks."""


@pytest.mark.parametrize(
    "parameters",
    [
        {"tokenizer": lambda text: text.split(" "), "token_pattern": None},
        {"tokenizer": lambda text: [""] * len(text), "token_pattern": None},
        {"token_pattern": r"\w*"},
        {"token_pattern": r"(\w?)\w+"},
    ],
    ids=["blanks", "only empty", "pattern", "group"],
)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"ngram_range": (1, 3)},
        {"ngram_range": (2, 2)},
        {"max_df": 0.5},
        {"min_df": 2, "max_features": 3},
        {"stop_words": ["", "sea"], "ngram_range": (1, 2)},
        {"vocabulary": ["", "ship", "sea "]},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Your stop_words may be inconsistent")
def test_empty_tokens_are_counted_as_count_vectorizer_does(parameters, more):
    assert_same(SPACED, ["", "  ", "ship  sea"], **parameters, **more)
    assert_same(SPACED, ["", "  ", "ship  sea"], phrases=1.0, **parameters, **more)


def test_a_phrase_has_no_empty_token():
    texts = ["new york", " ship"] * 20
    counter = Vectorizer(phrases=True, tokenizer=lambda text: text.split(" "), token_pattern=None)
    counts = counter.fit_transform([*texts, "", " "])
    assert counter.phrases_ == [[("new", "york")], []]
    assert dict(zip(counter.get_feature_names_out(), counts.sum(axis=0).tolist()[0], strict=True)) == {
        "": 23,
        "new_york": 20,
        "ship": 20,
    }


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2)])
def test_empty_tokens_with_a_language(ngram_range):
    pieces = {"tokenizer": lambda text: text.split(" "), "token_pattern": None, "ngram_range": ngram_range}
    counter = Vectorizer(language="english", stop_words=[], stem=False, **pieces)
    assert_equal_counts(counter.fit_transform(SPACED), CountVectorizer(**pieces).fit_transform(SPACED))
    stemmed = Vectorizer(language="english", stop_words=[], **pieces).fit(SPACED)
    assert "" in stemmed.vocabulary_


DOCUMENTS_AS_WORDS = [["Ship", "sail"], [], ("sea", "", "Ship"), ["sea"]]


@pytest.mark.parametrize("more", [{}, {"ngram_range": (1, 2)}, {"stop_words": ["sea"]}, {"phrases": 1.0}], ids=str)
def test_functions_of_the_user_accept_documents_of_other_types(more):
    rows = [{"text": "Ship sail"}, {"text": ""}, {"text": "sea ship"}]
    words = {"tokenizer": lambda words: words, "token_pattern": None, "lowercase": False}
    assert_same(DOCUMENTS_AS_WORDS, [["sail"]], **words, **more)
    assert_same(rows, [{"text": "sail"}], preprocessor=lambda row: row["text"], **more)
    assert_same(rows, preprocessor=lambda row: row["text"], tokenizer=str.split, token_pattern=None, **more)
    assert_same(rows, preprocessor=lambda row: row["text"], token_pattern=r"(\w)\w*", **more)


def test_documents_of_other_types_with_char_analyzer_and_strip_accents():
    rows = [{"text": "Ship sail"}, {"text": ""}, {"text": "sea ship"}]
    assert_same(rows, preprocessor=lambda row: row["text"], analyzer="char", ngram_range=(2, 3))
    assert_same(rows, strip_accents=lambda row: row["text"], lowercase=False)


def test_documents_of_other_types_are_refused_if_no_function_accepts_them():
    refused = "Document 0 must be a string, got an object of type list"
    with pytest.raises(polyseme.InputError, match=refused):
        Vectorizer(tokenizer=lambda words: words, token_pattern=None).fit(DOCUMENTS_AS_WORDS)  # lowercase is True
    with pytest.raises(polyseme.InputError, match=refused):
        Vectorizer(tokenizer=list, token_pattern=None, lowercase=False, language="english").fit(DOCUMENTS_AS_WORDS)
    with pytest.raises(polyseme.InputError, match="The preprocessor must return strings, not list"):
        Vectorizer(preprocessor=lambda words: words).fit(DOCUMENTS_AS_WORDS)
    with pytest.raises(polyseme.InputError, match="The preprocessor must return strings, not list"):
        Vectorizer(preprocessor=lambda words: words, token_pattern=r"(\w)\w*").fit(DOCUMENTS_AS_WORDS)


# all characters

CHARACTERS = st.one_of(
    st.characters(),
    st.characters(categories=["Lu", "Lt", "Mn", "Mc", "Nd", "Zs", "Cf"]),
    st.sampled_from("aAbZ09_ \t\n\x00\x1cİIıſΣσςΟß'’-.·\u0307\u0345\u200c\u00adẞǅŉ"),
)
DOCUMENTS = st.lists(st.text(CHARACTERS, max_size=40), min_size=1, max_size=5)
CHOICES = st.fixed_dictionaries(
    {
        "lowercase": st.booleans(),
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 4)]),
        "binary": st.booleans(),
        "strip_accents": st.sampled_from([None, None, "unicode", "ascii"]),
        "max_features": st.sampled_from([None, None, 1, 4]),
    },
    optional={
        "analyzer": st.sampled_from(["word", "char", "char_wb"]),
        "min_df": st.sampled_from([1, 2, 0.5]),
        "max_df": st.sampled_from([2, 0.5, 1.0]),
    },
)


@given(DOCUMENTS, CHOICES)
@settings(max_examples=300, deadline=None)
def test_any_text_has_equal_counts(texts, parameters):
    assert_same(texts, ["a Σ İ"], **parameters)


@given(
    DOCUMENTS,
    st.sampled_from(
        [r"(?u)\b\w+\b", r"\w\w\w+", r"\b[^\W\d_]{2,}\b", r"[a-zà-ÿ]+", r"\b[\w.]+\b", r"\b\d{2,}\b", r"\S+"]
    ),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_any_pattern_has_equal_matches(texts, pattern, lowercase):
    assert_same(texts, token_pattern=pattern, lowercase=lowercase)


@pytest.mark.parametrize("also", ["", "Σ"])
def test_every_code_point_has_equal_counts(also):
    """Each document has 256 code points, alone, doubled and between letters; Python lowers a text that has a Σ."""
    blocks = [range(start, start + 256) for start in range(0, 0x110000, 256)]
    texts = [" ".join(f"{chr(c)}{chr(c)} a{chr(c)}B {also}{chr(c)}" for c in block) for block in blocks]
    theirs, ours = CountVectorizer(), Vectorizer()
    assert_equal_counts(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.vocabulary_ == theirs.vocabulary_


def test_simple_patterns_are_compiled():
    for pattern in (r"(?u)\b\w\w+\b", r"\w+", r"\b[^\W\d_]{3,}\b", r"[a-z][a-z]+"):
        assert pattern_characters(pattern, True) is not None
    for pattern in (r"\b\w+", r"\b[\w-]+\b", r"\w*", r"\w{0,}", r"\w+?", r"\w{2,3}", r"(\w+)", r"\w[a-z]+", "[a-z]"):
        assert pattern_characters(pattern, True) is None


def test_20_newsgroups_have_equal_counts():
    path = DATA / "text" / "news20.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path} (set POLYSEME_DATA to the data folder)")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    theirs, ours = CountVectorizer(), Vectorizer()
    assert_equal_counts(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.vocabulary_ == theirs.vocabulary_
    assert_same(texts[::40], ngram_range=(1, 2), min_df=2, stop_words="english", max_features=5000)


# threads, streams, sizes


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    words = np.array([f"word{i:x}é" if i % 7 == 0 else f"w{i:x}" for i in range(5000)])
    return [" ".join(words[rng.zipf(1.3, n) % 5000]) for n in rng.integers(0, 400, 2000)]


@pytest.mark.parametrize("parameters", [{}, {"ngram_range": (1, 2)}, {"phrases": 0.1}, {"language": "english"}])
def test_the_number_of_threads_changes_nothing(corpus, parameters):
    fits = [Vectorizer(n_jobs=n, **parameters) for n in (1, 2, 5)]
    first, *others = [fit.fit_transform(corpus) for fit in fits]
    for fit, other in zip(fits[1:], others, strict=True):
        assert list(fit.vocabulary_.items()) == list(fits[0].vocabulary_.items())
        assert_equal_counts(other, first)


@pytest.mark.parametrize("parameters", [{}, {"phrases": True}, {"language": "auto"}])
def test_a_stream_has_the_counts_of_a_list(corpus, parameters):
    one, other = Vectorizer(**parameters), Vectorizer(**parameters)
    assert_equal_counts(one.fit_transform(text for text in corpus), other.fit_transform(corpus))
    assert_equal_counts(one.transform(iter(corpus)), other.transform(tuple(corpus)))
    assert one.vocabulary_ == other.vocabulary_


def test_a_stream_is_not_stored(monkeypatch):
    class Document(str):
        __slots__ = ("__weakref__",)

    monkeypatch.setattr(tokens, "_CHARACTERS_AT_ONCE", 1000)
    alive, most = weakref.WeakSet(), 0

    def stream():
        nonlocal most
        for number in range(500):
            document = Document(f"text number {number} of many")
            alive.add(document)
            most = max(most, len(alive))
            yield document
            del document

    counts = Vectorizer().fit_transform(stream())
    assert counts.shape[0] == 500
    assert most < 50


def test_many_tiny_documents_and_a_long_one():
    assert_same(["tiny", "", "text"] * 5000)
    words = " ".join(f"word{i % 999}" for i in range(200_000))
    assert_same([words + " end", "x" * 300_000 + " " + "é" * 10_000])


# conventions of scikit-learn estimators


def test_parameters_have_the_defaults_of_count_vectorizer():
    theirs, ours = CountVectorizer().get_params(), Vectorizer().get_params()
    assert {name: ours[name] for name in theirs} == theirs
    assert set(ours) - set(theirs) == {
        "language", "stem", "phrases", "keep_numbers", "extra_stop_words", "n_jobs",
    }  # fmt: skip


BAD_PARAMETERS = [
    {"min_df": -1}, {"max_df": 2.5}, {"max_features": 0}, {"ngram_range": (2, 1)}, {"ngram_range": [1, 1]},
    {"analyzer": "words"}, {"stop_words": "german"}, {"strip_accents": "all"}, {"lowercase": "yes"},
    {"token_pattern": r"(\w)(\w)"}, {"vocabulary": ["a", "a"]}, {"vocabulary": {"a": 0, "b": 2}}, {"vocabulary": []},
    {"vocabulary": {"a": 0, "b": 0}}, {"min_df": 5, "max_df": 2}, {"min_df": 7}, {"input": "url"},
]  # fmt: skip


@pytest.mark.parametrize("parameters", BAD_PARAMETERS, ids=str)
def test_errors_are_those_of_count_vectorizer(parameters):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        CountVectorizer(**parameters).fit(TEXTS)
    with pytest.raises(type(theirs.value).__mro__[1], match=r".") as ours:
        Vectorizer(**parameters).fit(TEXTS)
    assert str(ours.value) == str(theirs.value).replace("CountVectorizer", "Vectorizer")


@pytest.mark.parametrize("texts", ["one string", [""], [], ["a b c"]])
def test_errors_for_documents_are_those_of_count_vectorizer(texts):
    with pytest.raises(ValueError, match=r".") as theirs:
        CountVectorizer().fit(texts)
    with pytest.raises(ValueError, match=re.escape(str(theirs.value))):
        Vectorizer().fit(texts)


@pytest.mark.parametrize("document", [None, 3, ["words"]])
def test_a_document_that_is_not_a_text_is_refused(document):
    expected = f"Document 1 must be a string, got an object of type {type(document).__name__}"
    with pytest.raises(polyseme.InputError, match=expected):
        Vectorizer().fit(["text", document])
    with pytest.raises(ValueError, match=r"np.nan is an invalid document"):
        Vectorizer().fit(["text", np.nan])


def test_warnings_are_those_of_count_vectorizer():
    for make in (CountVectorizer, Vectorizer):
        with pytest.warns(UserWarning, match="stop_words may be inconsistent"):
            make(stop_words=["don't"]).fit(TEXTS)
        with pytest.warns(UserWarning, match="Upper case characters found in vocabulary while 'lowercase' is True"):
            make(vocabulary=["Car"]).fit(TEXTS)
        with pytest.warns(UserWarning, match="The parameter 'token_pattern' will not be used"):
            make(tokenizer=str.split).fit(TEXTS)


def test_bytes_files_and_file_names(tmp_path):
    texts = [text.encode("utf-16") for text in TEXTS]
    assert_same(texts, encoding="utf-16")
    names = [str(tmp_path / f"{number}.txt") for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (tmp_path / name).write_bytes(text)
    assert_same(names, input="filename", encoding="utf-16")
    expected = CountVectorizer().fit_transform(TEXTS)
    files = [io.BytesIO(text) for text in texts]
    assert_equal_counts(Vectorizer(input="file", encoding="utf-16").fit_transform(files), expected)
    with pytest.raises(UnicodeDecodeError):
        Vectorizer().fit([b"\xff\xfe\xfa"])
    assert_same([b"ok \xff\xfe"], decode_error="ignore")


def test_documents_in_arrays_series_and_dicts():
    pandas = pytest.importorskip("pandas")
    expected = Vectorizer().fit_transform(TEXTS)
    for texts in (
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pandas.Series(TEXTS, index=range(10, 16)),
        dict.fromkeys(TEXTS),
    ):
        assert_equal_counts(Vectorizer().fit_transform(texts), expected)


def test_clones_pickles_and_copies_count_equally():
    fitted = Vectorizer(min_df=2, language="english").fit(TEXTS)
    assert clone(fitted).get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "vocabulary_")
    for twin in (copy.copy(fitted), copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert_equal_counts(twin.transform(TEXTS), fitted.transform(TEXTS))


def test_pipelines_and_grid_search_work():
    texts = ["ant bee ant", "bee ant cow", "iron zinc", "zinc iron gold zinc", "ant cow cow", "gold iron"] * 4
    pipeline = make_pipeline(Vectorizer(), polyseme.PLSA(2, random_state=1))
    assert pipeline.fit_transform(texts).shape == (24, 2)
    search = GridSearchCV(pipeline, {"vectorizer__min_df": [1, 2]}, cv=2, error_score="raise").fit(texts)
    assert search.best_params_["vectorizer__min_df"] in (1, 2)
    topics = polyseme.text.make_pipeline(Vectorizer(), polyseme.PLSA(2, random_state=1))
    frame = topics.set_output(transform="polars").fit_transform(texts)
    assert frame.columns == ["plsa0", "plsa1"]
    np.testing.assert_array_equal(frame.to_numpy(), pipeline.fit_transform(texts))


def test_the_names_of_columns_and_splits_are_not_counted():
    frame = SimpleNamespace(columns=["text"])
    splits = type("Splits", (dict,), {"column_names": ["text"]})(train=["one", "two"])
    for source in (frame, splits):
        with pytest.raises(polyseme.InputError, match=r"^Documents are an object .* the column data\['text'\]\.$"):
            Vectorizer().fit(source)


def test_rows_of_a_table_are_refused_with_advice():
    with pytest.raises(polyseme.InputError, match=r"dict: pass the texts, such as the column data\['text'\]\.$"):
        Vectorizer().fit([{"text": "one"}])


class ArrowArray:
    """Texts as scalars, with the names of pyarrow."""

    def __init__(self, texts):
        self._texts = texts

    def __iter__(self):
        return (Scalar(text) for text in self._texts)

    def to_pylist(self):
        return list(self._texts)


class Scalar:
    def __init__(self, text):
        self._text = text

    def as_py(self):
        return self._text


@pytest.mark.parametrize("library", ["the protocol", "pyarrow"])
def test_arrays_of_arrow_are_texts(library):
    array = ArrowArray(TEXTS) if library == "the protocol" else pytest.importorskip("pyarrow").chunked_array([TEXTS])
    assert_equal_counts(Vectorizer().fit_transform(array), Vectorizer().fit_transform(TEXTS))
    assert [document.text for document in polyseme.text.open_source(array)] == list(TEXTS)


def test_inverse_transform():
    theirs, ours = CountVectorizer(), Vectorizer()
    counts = ours.fit_transform(TEXTS)
    expected = theirs.inverse_transform(theirs.fit_transform(TEXTS))
    for one, other in zip(ours.inverse_transform(counts), expected, strict=True):
        assert sorted(one) == sorted(other)


def test_transform_without_fit():
    with pytest.raises(NotFittedError, match="Vocabulary not fitted or provided"):
        Vectorizer().transform(TEXTS)
    expected = CountVectorizer(vocabulary=["car", "road"]).transform(TEXTS)
    assert_equal_counts(Vectorizer(vocabulary=["car", "road"]).transform(TEXTS), expected)
    assert Vectorizer(vocabulary=["car"]).transform([]).shape == (0, 1)


def test_a_fit_that_fails_leaves_the_vectorizer_as_it_was():
    fitted = Vectorizer(language="english").fit(["running shoes"])
    with pytest.raises(ValueError, match="empty vocabulary"):
        fitted.fit(["the"])
    with pytest.raises(polyseme.InputError, match="n_jobs must be None or a whole number other than 0, got 0"):
        fitted.set_params(n_jobs=0).fit(["new text"])
    assert fitted.set_params(n_jobs=1).transform(["run"]).sum() == 1


def test_n_grams_do_not_change_if_no_phrase_is_found(corpus):
    plain = Vectorizer(ngram_range=(1, 3), stop_words=["w1", "w2"])
    in_order = Vectorizer(ngram_range=(1, 3), stop_words=["w1", "w2"], phrases=1.0)
    assert_equal_counts(in_order.fit_transform(corpus[:300]), plain.fit_transform(corpus[:300]))
    assert in_order.vocabulary_ == plain.vocabulary_
    assert in_order.phrases_ == [[], []]


def test_the_analyzer_is_that_of_scikit_learn():
    assert Vectorizer().build_analyzer()("Two words") == ["two", "words"]
