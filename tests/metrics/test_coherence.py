"""Coherence against plain loops over the definitions, and against gensim's CoherenceModel on the same reference."""

import importlib
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from polyseme import PLSA, InputError
from polyseme.metrics import coherence, top_words
from polyseme.metrics.coherence import (
    Cooccurrence,
    TokenSequences,
    coherence_of,
    cooccurrence_in_documents,
    cooccurrence_in_windows,
    token_sequences,
)

coherence_module = importlib.import_module("polyseme.metrics.coherence")  # the package has a function of this name

MEASURES = ("umass", "uci", "npmi", "c_v")
GENSIM_NAMES = {"umass": "u_mass", "uci": "c_uci", "npmi": "c_npmi", "c_v": "c_v"}
EPSILON = 1e-12


def random_texts(seed, n_texts=60, n_words=40, longest=70):
    """Return texts of word numbers, with repetitions, some shorter than a window and one empty."""
    rng = np.random.default_rng(seed)
    popularity = rng.permutation(1.0 / np.arange(2, n_words + 2))
    popularity /= popularity.sum()
    texts = [list(rng.choice(n_words, rng.integers(1, longest), p=popularity)) for _ in range(n_texts)]
    texts[3] = []
    return texts


def sequences(texts):
    return TokenSequences(
        np.array([word for text in texts for word in text], dtype=np.int32), np.cumsum([0, *map(len, texts)])
    )


def all_windows(texts, window):
    """Return every sequence of `window` tokens, or the whole text if it is shorter, as a set of words."""
    return [set(text[s : s + window]) for text in texts for s in range(max(1, len(text) - window + 1))]


def naive_coherence(topic, windows, measure):
    """Return the coherence by loops, for words that all occur but never in all windows."""

    def share(*words):
        return sum(all(word in window for word in words) for window in windows) / len(windows)

    def npmi(a, b):
        pmi = math.log((share(a, b) + EPSILON) / (share(a) * share(b)))
        return pmi / -math.log(share(a, b) + EPSILON)

    n = len(topic)
    if measure == "c_v":
        vectors = [[npmi(a, b) for b in topic] for a in topic]
        whole = [sum(column) for column in zip(*vectors, strict=True)]
        cosines = []
        for vector in vectors:
            product = sum(x * y for x, y in zip(vector, whole, strict=True))
            cosines.append(product / math.sqrt(sum(x * x for x in vector) * sum(y * y for y in whole)))
        return sum(cosines) / n
    pairs = [(topic[i], topic[j]) for i in range(n) for j in range(i)]
    if measure == "umass":
        values = [math.log((share(a, b) + EPSILON) / share(b)) for a, b in pairs]
    elif measure == "uci":
        values = [math.log((share(a, b) + EPSILON) / (share(a) * share(b))) for a, b in pairs]
    else:
        values = [npmi(a, b) for a, b in pairs]
    return sum(values) / len(values)


def some_topics(seed, n_words=40, n_topics=6, n_top=7):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n_words, n_top, replace=False) for _ in range(n_topics)])


# counting


@pytest.mark.parametrize("window", [1, 2, 5, 20, 1000])
def test_windows_are_counted_as_defined(window):
    texts, topics = random_texts(0), some_topics(1)
    counted = cooccurrence_in_windows(topics, sequences(texts), window)
    windows = all_windows(texts, window)
    assert counted.n_windows == len(windows)
    assert (counted.reference, counted.window) == ("windows", window)
    for topic, words in enumerate(topics):
        for i, a in enumerate(words):
            for j, b in enumerate(words):
                assert counted.together[topic, i, j] == sum(a in window and b in window for window in windows)


@given(
    texts=st.lists(st.lists(st.integers(-1, 4), max_size=12), max_size=5),
    topic=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    window=st.integers(1, 14),
)
@settings(max_examples=200, deadline=None)
def test_any_texts_are_counted_as_defined_and_have_finite_coherence(texts, topic, window):
    counted = cooccurrence_in_windows([topic], sequences(texts), window)
    windows = all_windows(texts, window)
    wanted = [[sum(a in one and b in one for one in windows) for b in topic] for a in topic]
    assert np.array_equal(counted.together[0], wanted)
    assert counted.n_windows == len(windows)
    for measure in MEASURES:
        assert np.isfinite(coherence_of(counted, measure).topics).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_documents_are_counted_as_defined(form):
    X, topics = oracles.random_counts(2, 50, 40, empty_rows=[4], empty_words=[7]), some_topics(3)
    counted = cooccurrence_in_documents(topics, form(X))
    present = X > 0
    wanted = np.array([[[(present[:, a] & present[:, b]).sum() for b in words] for a in words] for words in topics])
    assert np.array_equal(counted.together, wanted)
    assert (counted.n_windows, counted.reference, counted.window) == (50, "documents", None)


def test_blocks_and_the_bit_count_of_numpy_1_change_nothing(monkeypatch):
    X, topics = oracles.random_counts(2, 500, 40), some_topics(3)
    wanted = cooccurrence_in_documents(topics, X).together
    monkeypatch.setattr(coherence_module, "_BLOCK_FLAGS", 3000)
    assert np.array_equal(cooccurrence_in_documents(topics, X).together, wanted)
    monkeypatch.setattr(coherence_module, "_bits_set", coherence_module._bits_by_table)
    assert np.array_equal(cooccurrence_in_documents(topics, X).together, wanted)


def test_explicit_zeros_are_not_occurrences():
    X = sp.csr_array(([1.0, 0.0, 2.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert np.array_equal(cooccurrence_in_documents([[0, 1]], X).together, [[[1, 0], [0, 1]]])
    assert X.nnz == 3


def test_words_outside_the_vocabulary_take_a_place_in_a_window():
    texts = token_sequences([["a", "x", "y", "b"], ["b"], []], ["a", "b"])
    assert texts.tokens.tolist() == [0, -1, -1, 1, 1]
    assert texts.indptr.tolist() == [0, 4, 5, 5]
    assert cooccurrence_in_windows([[0, 1]], texts, 3).together[0, 0, 1] == 0
    assert cooccurrence_in_windows([[0, 1]], texts, 4).together[0, 0, 1] == 1


# measures


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("window", [3, 10])
def test_coherence_in_windows_equals_naive_loops(measure, window):
    texts, topics = random_texts(4), some_topics(5)
    windows = all_windows(texts, window)
    report = coherence(topics, sequences(texts), measure, window=window)
    for value, topic in zip(report.topics, topics, strict=True):
        assert all(0 < sum(word in w for w in windows) < len(windows) for word in topic)
        assert value == pytest.approx(naive_coherence(topic, windows, measure), rel=1e-10, abs=1e-12)
    assert report.mean == pytest.approx(report.topics.mean())
    assert (report.measure, report.reference, report.window) == (measure, "windows", window)
    assert (report.n_windows, report.absent_words) == (len(windows), 0)


@pytest.mark.parametrize("measure", MEASURES)
def test_coherence_in_documents_equals_naive_loops(measure):
    X, topics = oracles.random_counts(6, 80, 40), some_topics(7)
    report = coherence(topics, X, measure)
    windows = [set(np.flatnonzero(row)) for row in X]
    for value, topic in zip(report.topics, topics, strict=True):
        assert value == pytest.approx(naive_coherence(topic, windows, measure), rel=1e-10, abs=1e-12)
    assert (report.reference, report.window, report.n_windows) == ("documents", None, 80)


def test_each_measure_has_its_usual_window():
    texts, topics = sequences(random_texts(8)), some_topics(9)
    assert [coherence(topics, texts, measure).window for measure in MEASURES] == [None, 10, 10, 110]
    in_documents = coherence(topics, texts, "umass")
    counts = np.array([np.bincount(text, minlength=40) for text in random_texts(8)])
    assert in_documents.reference == "documents"
    np.testing.assert_allclose(in_documents.topics, coherence(topics, counts, "umass").topics, rtol=1e-14)


def test_coherence_equals_a_value_computed_by_hand():
    """Two words in 2 of 4 documents each, once together: PMI = log(1/4 / (1/2 * 1/2)) = 0."""
    X = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    assert coherence([[0, 1]], X, "npmi").mean == pytest.approx(0, abs=1e-11)
    assert coherence([[0, 1]], X, "uci").mean == pytest.approx(0, abs=1e-11)
    assert coherence([[0, 1]], X, "umass").mean == pytest.approx(math.log(1 / 2), abs=1e-11)
    assert coherence([[0, 1]], X, "c_v").mean == pytest.approx(math.sqrt(1 / 2), abs=1e-6)
    always_together = np.array([[1, 1], [1, 1], [0, 0]])
    for measure in ("npmi", "c_v"):
        assert coherence([[0, 1]], always_together, measure).mean == pytest.approx(1, abs=1e-9)
    assert coherence([[0, 1]], np.array([[1, 0], [0, 1]]), "npmi").mean == pytest.approx(-1, abs=0.06)


def test_topics_of_a_model_are_more_coherent_than_random_words():
    X = oracles.mixed_counts(10, 300, 60, 5)
    rng = np.random.default_rng(11)
    phi = rng.dirichlet(np.full(60, 0.1), 5)
    from polyseme import PLSA

    model = PLSA(5, random_state=0).fit(X)
    fitted, by_chance = (coherence(top_words(components, 6), X).mean for components in (model.components_, phi))
    assert fitted > by_chance + 0.1


# every case has a value


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((3, 5)),
        np.ones((3, 5)),
        np.zeros((0, 5)),
        np.array([[1, 0, 0, 0, 0]]),
        np.array([[1, 1, 0, 0, 1], [0, 1, 0, 0, 1]]),
    ],
)
def test_no_reference_gives_nan(measure, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for topics in (
            [[0, 1, 2], [2, 3, 4]],
            [[0]],
            [[1, 1]],
            np.zeros((2, 0), dtype=int),
            np.zeros((0, 3), dtype=int),
        ):
            report = coherence(topics, X, measure)
            assert np.isfinite(report.topics).all()
            assert math.isfinite(report.mean)
            assert len(report.topics) == len(topics)
            texts = sequences([list(np.flatnonzero(row)) for row in X])
            for window in (None, 2):
                assert np.isfinite(coherence(topics, texts, measure, window=window).topics).all()


def test_absent_words_count_nothing_and_are_reported():
    X = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0]])
    with_absent, without = coherence([[0, 1, 2]], X), coherence([[0, 1]], X)
    assert with_absent.absent_words == 1
    assert with_absent.mean == pytest.approx(without.mean / 3)


def test_words_in_all_documents_are_together_by_chance():
    assert coherence([[0, 1]], np.ones((5, 2)), "npmi").mean == 0
    assert coherence([[0, 1]], np.ones((5, 2)), "c_v").mean == 0


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([[0, 1]], np.ones((2, 2)), "cv"), {}, "measure must be one of umass, uci, npmi, c_v, got 'cv'."),
        (([[0, 2]], np.ones((2, 2))), {}, "topic_words must be at least 0 and below the reference's 2 words."),
        (([[0.5, 1.0]], np.ones((2, 2))), {}, "topic_words must be an array of column indices, topics x n"),
        (([0, 1], np.ones((2, 2))), {}, "topic_words must be an array of column indices, topics x n"),
        (([[0, 1]], np.ones((2, 2))), {"window": 5}, "window: counts have no word order."),
        (([[0, 1]], sequences([[0, 1]])), {"window": 0}, "window must be at least 1 token, got 0."),
    ],
)
def test_wrong_arguments_raise(arguments, options, sentence):
    with pytest.raises(InputError, match=sentence.replace(".", r"\.")):
        coherence(*arguments, **options)


def test_texts_that_are_strings_raise():
    with pytest.raises(InputError, match="not a string: split it first"):
        token_sequences(["a b"], ["a", "b"])


@pytest.mark.parametrize(
    ("tokens", "indptr", "sentence"),
    [
        ([0, -2], [0, 2], "tokens must be a one-dimensional array of column indices"),
        ([0.5, 1.0], [0, 2], "tokens must be a one-dimensional array of column indices"),
        ([[0, 1]], [0, 2], "tokens must be a one-dimensional array of column indices"),
        ([0, 1], [0, 3], "indptr must increase from 0 to the number of tokens, 2"),
        ([0, 1], [1, 2], "indptr must increase from 0 to the number of tokens, 2"),
        ([0, 1], [0, 2, 1, 2], "indptr must increase from 0 to the number of tokens, 2"),
        ([0, 1], [], "indptr must increase from 0 to the number of tokens, 2"),
    ],
)
def test_wrong_sequences_raise(tokens, indptr, sentence):
    with pytest.raises(InputError, match=sentence):
        TokenSequences(np.array(tokens), np.array(indptr))


# gensim


def gensim_coherence(topics, texts, measure, window=None):
    """Return the value of CoherenceModel for each topic; words are their numbers, as strings."""
    gensim = pytest.importorskip("gensim", reason="gensim is not installed")
    from gensim.models import CoherenceModel

    texts = [[str(word) for word in text] for text in texts]
    dictionary = gensim.corpora.Dictionary(texts)
    known = {"texts": texts, "dictionary": dictionary, "coherence": GENSIM_NAMES[measure], "processes": 1}
    model = CoherenceModel(topics=[[str(w) for w in topic] for topic in topics], window_size=window, **known)
    return np.array(model.get_coherence_per_topic())


def count_windows_as_defined(monkeypatch):
    """Correct gensim 4.4, which drops a word when its first token leaves the window, even if another one is inside."""
    pytest.importorskip("gensim", reason="gensim is not installed")
    from gensim.topic_coherence.text_analysis import WordOccurrenceAccumulator

    def slide(self, window, doc_num):
        self._uniq_words[:] = False
        self._uniq_words[np.unique(window)] = True

    monkeypatch.setattr(WordOccurrenceAccumulator, "_slide_window", slide)


@pytest.mark.parametrize("measure", MEASURES)
def test_whole_documents_equal_gensim(measure):
    """Windows longer than any text."""
    texts, topics = random_texts(20), some_topics(21)
    ours = coherence(topics, sequences(texts), measure, window=100)
    np.testing.assert_allclose(ours.topics, gensim_coherence(topics, texts, measure, 100), rtol=0, atol=1e-6)
    counts = np.array([np.bincount(text, minlength=40) for text in texts])
    np.testing.assert_allclose(coherence(topics, counts, measure).topics, ours.topics, rtol=0, atol=1e-12)


@pytest.mark.parametrize("measure", ["uci", "npmi", "c_v"])
@pytest.mark.parametrize("window", [2, 10, 110])
def test_windows_without_repeated_words_equal_gensim(measure, window):
    """The texts are shuffled vocabularies, longer than the windows, in which no word occurs twice within a window."""
    rng = np.random.default_rng(22)
    texts = [list(rng.permutation(400)[: rng.integers(20, 300)]) for _ in range(40)]
    topics = some_topics(23, n_words=400)
    ours = coherence(topics, sequences(texts), measure, window=window)
    np.testing.assert_allclose(ours.topics, gensim_coherence(topics, texts, measure, window), rtol=0, atol=1e-6)


@pytest.mark.parametrize("measure", ["uci", "npmi", "c_v"])
def test_windows_with_repeated_words_differ_from_gensim_as_defined(measure, monkeypatch):
    texts, topics = random_texts(24, longest=300), some_topics(25)
    theirs = gensim_coherence(topics, texts, measure)
    count_windows_as_defined(monkeypatch)
    corrected = gensim_coherence(topics, texts, measure)
    ours = coherence(topics, sequences(texts), measure).topics
    np.testing.assert_allclose(ours, corrected, rtol=0, atol=1e-6)
    assert np.abs(theirs - corrected).max() > 1e-3


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_equal_gensim_on_its_own_counts(measure):
    """This compares only the measures, with the counts of gensim."""
    pytest.importorskip("gensim", reason="gensim is not installed")
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel

    texts, topics = random_texts(26, longest=300), some_topics(27)
    words = [[str(word) for word in text] for text in texts]
    dictionary = Dictionary(words)
    model = CoherenceModel(
        topics=[[str(word) for word in topic] for topic in topics], texts=words, dictionary=dictionary,
        coherence=GENSIM_NAMES[measure], processes=1,
    )  # fmt: skip
    theirs = model.get_coherence_per_topic()
    seen = model._accumulator
    number = dictionary.token2id
    together = [
        [[seen[number[str(a)], number[str(b)]] if a != b else seen[number[str(a)]] for b in topic] for a in topic]
        for topic in topics
    ]
    counted = Cooccurrence(np.array(together, dtype=float), seen.num_docs, "windows", model.window_size)
    np.testing.assert_allclose(coherence_of(counted, measure).topics, theirs, rtol=0, atol=1e-6)


# words


TOPICS = [["oak", "elm", "ash"], ["saw", "log", "oak"], ["elm", "absent", "saw"]]
TEXTS = [
    ["ash", "oak", "elm", "a", "oak"], ["oak", "the", "elm", "log", "saw"], ["saw", "log"], [], ["ash", "elm"],
    ["the", "log"],
]  # fmt: skip
NAMES = ["ash", "the", "elm", "log", "oak", "saw", "a"]
COUNTS = np.array([[text.count(word) for word in NAMES] for text in TEXTS])


def loops(measure, windows, topic):
    """Return the coherence by loops over pairs; pairs with a word that never occurs count as 0."""
    values = []
    for i, a in enumerate(topic):
        for b in topic[:i]:
            pair = naive_coherence([a, b], windows, measure) if {a, b} <= set().union(*windows) else 0.0
            values.append(pair)
    return sum(values) / len(values)


@pytest.mark.parametrize("measure", ["uci", "npmi"])
@pytest.mark.parametrize("window", [2, 3, 10])
def test_words_and_lists_of_words(measure, window):
    windows = all_windows(TEXTS, window)
    wanted = [loops(measure, windows, topic) for topic in TOPICS]
    found = coherence(TOPICS, TEXTS, measure, window=window)
    assert np.allclose(found.topics, wanted, rtol=1e-12)
    assert (found.absent_words, found.reference, found.n_windows) == (1, "windows", len(windows))
    assert np.array_equal(coherence(np.array(TOPICS), tuple(map(tuple, TEXTS)), measure, window=window).topics, wanted)
    sequences = token_sequences(TEXTS, NAMES)
    named = coherence(TOPICS, sequences, measure, window=window, vocabulary=NAMES)
    assert np.array_equal(named.topics, found.topics)
    frame = pytest.importorskip("pandas").DataFrame(TOPICS, columns=["first", "second", "third"])
    assert np.array_equal(coherence(frame, TEXTS, measure, window=window).topics, found.topics)
    columns = [[NAMES.index(word) for word in topic] for topic in TOPICS[:2]]
    of_columns = coherence(columns, TEXTS, measure, window=window, vocabulary=NAMES)
    assert np.array_equal(of_columns.topics, found.topics[:2])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.coo_array, np.ndarray.tolist])
@pytest.mark.parametrize("measure", ["uci", "npmi"])
def test_words_and_counts(form, measure):
    counts = form(COUNTS)
    found = coherence(TOPICS, counts, measure, vocabulary=NAMES)
    assert np.allclose(found.topics, [loops(measure, list(map(set, TEXTS)), topic) for topic in TOPICS], rtol=1e-12)
    assert (found.absent_words, found.reference) == (1, "documents")
    assert np.shape(counts) == COUNTS.shape


def test_the_words_of_a_table_of_topics():
    from polyseme import PLSA
    from polyseme.text import Vectorizer

    vectorizer = Vectorizer()
    counts = vectorizer.fit_transform([" ".join(text) for text in TEXTS])
    model = PLSA(2, random_state=0).fit(counts, feature_names=vectorizer)
    words = [topic.words for topic in model.topics(n_words=3)]
    columns = [[vectorizer.vocabulary_[word] for word in of_topic] for of_topic in words]
    assert np.array_equal(coherence(words, counts, vocabulary=vectorizer).topics, coherence(columns, counts).topics)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((TOPICS, COUNTS), "topic_words are words, but the reference has columns"),
        ((TOPICS, token_sequences(TEXTS, NAMES)), "topic_words are words, but the reference has columns"),
        (([[0, 1]], TEXTS), "topic_words are columns, but the reference has words"),
        ((PLSA(2), COUNTS), "topic_words must be a list of words for each topic, got a PLSA: pass "),
        ((["oak elm", "saw log"], TEXTS), "Each topic must be a list of words, not a string: split it first."),
        ((TOPICS, ["oak elm", "saw log"]), "Each text must be a list of words, not a string: split it first."),
        (([["oak", "elm"], ["saw"]], TEXTS), "topic_words must have the same number of words for each topic."),
    ],
)
def test_words_without_columns(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        coherence(*arguments)
    with pytest.raises(InputError, match="vocabulary must have one name for each of the 7 words, got 6"):
        coherence(TOPICS, COUNTS, vocabulary=NAMES[:6])
