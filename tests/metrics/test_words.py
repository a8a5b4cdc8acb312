"""The words shown for a topic: expected documents, relevance, and where they are used."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.feature_extraction.text import CountVectorizer

import oracles
from estimator_cases import X_WITH_GAPS, X
from polyseme import (
    LDA,
    NMF,
    PLSA,
    Background,
    CorrelatedTopicModel,
    HierarchicalPLSA,
    InputError,
    JointBackground,
    load,
)
from polyseme.core.fitted import fold_in_training
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import normalize_rows
from polyseme.metrics import relevance, top_words
from polyseme.metrics.words import WordAmounts, token_amounts, word_amounts
from polyseme.scale import open_shards, write_shards
from polyseme.solvers import Tempered
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WEIGHTS = np.tile([1.0, 0.0, 2.5], 20)
SETTINGS = {"dtype": "float64", "random_state": 0}
MODELS = {
    "PLSA": PLSA(4, **SETTINGS),
    "background": PLSA(4, background=0.3, **SETTINGS),
    "given background": PLSA(4, background=Background(0.2, np.full(45, 1 / 45)), **SETTINGS),
    "joint background": PLSA(4, background=JointBackground(0.3), max_iter=30, **SETTINGS),
    "tempered": PLSA(4, solver=Tempered(0.7), max_iter=30, **SETTINGS),
    "LDA": LDA(4, max_iter=20, **SETTINGS),
    "LDA map": LDA(4, solver="map", max_iter=20, **SETTINGS),
    "tree": HierarchicalPLSA(depth=2, branching=2, max_iter=20, **SETTINGS),
    "correlated": CorrelatedTopicModel(4, max_iter=10, **SETTINGS),
}


def expected(model, data, weights=None):
    """Return n_zw from the fitted attributes, entry by entry."""
    background = getattr(model, "background_", None)
    shares = None if background is None else model.doc_background_
    return oracles.word_documents(
        data, model.doc_topic_, model.components_, weights, shares, background, getattr(model, "temperature_", 1.0)
    )


# expected documents


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", MODELS)
def test_expected_documents_are_sums_of_posteriors(name, layout, weights):
    model = MODELS[name].fit(layout(X_WITH_GAPS), sample_weight=weights)
    v = np.ones(60) if weights is None else weights
    filled = v * (X_WITH_GAPS.sum(axis=1) > 0)
    np.testing.assert_allclose(model.word_documents_, expected(model, X_WITH_GAPS, weights), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.topic_documents_, filled @ model.doc_topic_, rtol=1e-10)
    np.testing.assert_allclose(model.document_frequency_, v @ (X_WITH_GAPS > 0), rtol=1e-12)
    if getattr(model, "background_", None) is None:
        np.testing.assert_allclose(model.word_documents_.sum(axis=0), model.document_frequency_, rtol=1e-5)
    else:
        assert (model.word_documents_.sum(axis=0) <= model.document_frequency_ + 1e-5).all()


def test_nodes_of_a_tree_have_their_own_expected_documents():
    model = MODELS["tree"].fit(X_WITH_GAPS, sample_weight=WEIGHTS)
    doc_node = model.doc_topic_ @ model.leaf_node_
    n = oracles.word_documents(X_WITH_GAPS, doc_node, model.node_word_, WEIGHTS)
    np.testing.assert_allclose(model.node_word_documents_, n, rtol=1e-5, atol=1e-6)
    sizes = (WEIGHTS * (X_WITH_GAPS.sum(axis=1) > 0)) @ doc_node
    names = [f"w{i}" for i in range(45)]
    n = model.node_word_documents_.astype(np.float64)
    best = oracles.shown_words(n, sizes, model.document_frequency_, model.node_word_, 5)
    assert list(model.nodes(names, n_words=5)["words"]) == [", ".join(names[w] for w in row) for row in best]


def test_repeated_documents_and_weights_count_the_same():
    weighted = PLSA(4, **SETTINGS).fit(X, sample_weight=np.full(60, 2.0))
    twice = weighted.with_topics(weighted.components_, np.vstack([X, X]))
    np.testing.assert_allclose(twice.word_documents_, weighted.word_documents_, rtol=1e-6)
    np.testing.assert_allclose(twice.document_frequency_, weighted.document_frequency_)


def test_empty_documents_change_nothing():
    model = PLSA(4, **SETTINGS).fit(X)
    more = model.with_topics(model.components_, np.vstack([X, np.zeros((40, 45))]))
    np.testing.assert_array_equal(more.word_documents_, model.word_documents_)
    np.testing.assert_allclose(more.topic_documents_, model.topic_documents_, rtol=1e-12)


def test_a_topic_without_documents_shows_the_words_it_has():
    before = PLSA(2, **SETTINGS).fit(X)._fitted
    corpus = MemoryCorpus(as_counts(X, np.dtype(np.float64)))
    fitted = fold_in_training(
        corpus, np.vstack([before.topic_word, before.unigram]), before.inference,
        active=np.array([True, True, False]), unigram=before.unigram, n_tokens=corpus.tokens, n_documents=60.0,
    ).fitted  # fmt: skip
    assert not fitted.word_documents.amounts[2].any()
    assert top_words(fitted, 5)[2].tolist() == top_words(before.unigram[np.newaxis], 5)[0].tolist()


@pytest.mark.parametrize("background", [0.0, 0.3])
def test_shards_count_the_same_documents(tmp_path, background):
    write_shards([sp.csr_array(X_WITH_GAPS)], tmp_path, shard_nonzeros=70)
    shards = open_shards(tmp_path)
    assert len(shards.manifest.shards) > 5
    model = PLSA(4, background=background, max_iter=20, **SETTINGS).fit(shards)
    np.testing.assert_allclose(model.word_documents_, expected(model, X_WITH_GAPS), rtol=1e-5, atol=1e-6)
    filled = 1.0 * (X_WITH_GAPS.sum(axis=1) > 0)
    np.testing.assert_allclose(model.topic_documents_, filled @ model.doc_topic_, rtol=1e-10)
    np.testing.assert_array_equal(model.document_frequency_, (X_WITH_GAPS > 0).sum(axis=0))
    assert not list(tmp_path.glob("*.part"))


def test_results_do_not_depend_on_threads():
    one, two = (PLSA(4, random_state=0, n_jobs=n).fit(sp.csr_array(X)).word_documents_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_kl_nmf_has_the_expected_documents_of_its_plsa():
    model = NMF(4, **SETTINGS).fit(X)
    amounts = word_amounts(model)
    assert amounts.unit == "documents"
    np.testing.assert_allclose(amounts.amounts, expected(model.to_plsa(), X), rtol=1e-4, atol=1e-5)


def test_a_squared_nmf_has_the_expected_documents_of_its_normalized_factors():
    model = NMF(4, loss="squared", **SETTINGS).fit(X)
    joint = model.doc_factor_ * model.components_.sum(axis=1)
    theta, phi = joint / joint.sum(axis=1, keepdims=True), normalize_rows(model.components_)
    amounts = word_amounts(model)
    assert amounts.unit == "documents"
    np.testing.assert_allclose(amounts.amounts, oracles.word_documents(X, theta, phi), rtol=1e-4, atol=1e-5)


def test_words_of_a_model_of_another_library_are_ranked_by_their_weights():
    model = SklearnNMF(4, random_state=0).fit(X)
    assert word_amounts(model).unit == "weights"
    np.testing.assert_array_equal(top_words(model, 5), top_words(model.components_, 5))
    with pytest.raises(InputError, match="no topics yet: call fit first"):
        top_words(PLSA(2))


# relevance


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_relevance_is_the_formula(weight):
    model = PLSA(4, **SETTINGS).fit(X_WITH_GAPS)
    scores = relevance(model.word_documents_, model.topic_documents_, model.document_frequency_, weight=weight)
    arrays = (np.asarray(array, dtype=np.float64) for array in (model.word_documents_, model.topic_documents_))
    np.testing.assert_allclose(scores, oracles.relevance(*arrays, model.document_frequency_, weight), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_words_are_ranked_by_relevance(name, weight):
    model = MODELS[name].fit(X_WITH_GAPS)
    sizes, frequency = model.topic_documents_, model.document_frequency_
    best = oracles.shown_words(
        model.word_documents_.astype(np.float64), sizes, frequency, model.components_, 12, weight
    )
    assert top_words(model, 12, relevance=weight).tolist() == best
    names = [f"w{i}" for i in range(45)]
    table = model.topics(names, n_words=12, relevance=weight)
    positive = [[names[w] for w in row if phi[w] > 0] for row, phi in zip(best, model.components_, strict=True)]
    assert [row.words for row in table] == positive


def test_few_documents_still_give_words():
    """Four documents: no word is expected in three documents of a topic."""
    data = np.array([[4, 3, 0, 0, 0], [5, 2, 0, 0, 0], [0, 0, 3, 4, 0], [0, 1, 2, 6, 0]])
    model = PLSA(2, **SETTINGS).fit(data)
    assert (model.word_documents_ < 3).all()
    words = [set(row.words) for row in model.topics(list("abcde"), n_words=2)]
    assert sorted(map(sorted, words)) == [["a", "b"], ["c", "d"]]
    assert all("e" not in row.words for row in model.topics(list("abcde")))


def test_words_of_three_documents_come_before_rarer_ones():
    found = token_amounts(np.array([[0.5, 0.4, 0.1]]), np.ones(1), np.array([0.9, 0.0999, 0.0001]), 20.0)
    assert top_words(found, 3, relevance=0.0)[0].tolist() == [1, 0, 2]
    assert top_words(found, 2, relevance=1.0)[0].tolist() == [0, 1]


@pytest.mark.parametrize("error", [-1e-7, 0, 1e-7])
def test_three_expected_documents_may_have_a_rounding_error(error):
    amounts = np.array([[6.0, 3.0 + error, 1.0]])
    found = WordAmounts("documents", amounts, np.array([6.0]), np.array([36.0, 3.0, 1.0]), amounts)
    assert top_words(found, 3)[0].tolist() == [1, 0, 2]


def test_without_document_counts_words_are_ranked_by_tokens_and_the_table_says_so():
    model = PLSA(4, **SETTINGS).partial_fit(X)
    n = model.n_tokens_ * model.topic_weights_[:, np.newaxis] * model.components_
    sizes, frequency = model.n_tokens_ * model.topic_weights_, model.n_tokens_ * model.unigram_
    assert top_words(model, 6).tolist() == oracles.shown_words(n, sizes, frequency, model.components_, 6)
    assert "Words are ranked by tokens" in str(model.topics())
    fitted = PLSA(4, **SETTINGS).fit(X)
    assert "tokens" not in str(fitted.topics())
    assert not hasattr(fitted.partial_fit(X), "word_documents_")


@pytest.mark.parametrize("weight", [-0.1, 1.5, "half", True])
def test_relevance_outside_0_to_1_raises(weight):
    with pytest.raises(InputError, match=r"^relevance must be a number between 0 and 1") as error:
        PLSA(2, **SETTINGS).fit(X).topics(relevance=weight)
    sentence(error)


def test_a_model_file_stores_words_and_expected_documents(tmp_path):
    model = PLSA(4, **SETTINGS).fit(X, feature_names=[f"w{i}" for i in range(45)])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.word_documents_, model.word_documents_)
    assert str(again.topics()) == str(model.topics())
    assert "w1" in again.vocabulary_


# names of the words

TEXTS = ["ant bee ant", "bee ant cow", "iron zinc", "zinc iron gold zinc", "ant cow cow", "gold iron"] * 4


@pytest.mark.parametrize("make", [PLSA, NMF, LDA, CorrelatedTopicModel])
def test_names_given_to_fit_are_stored(make):
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(TEXTS)
    names = vectorizer.get_feature_names_out()
    for given in (names, list(names), vectorizer):
        model = make(2, random_state=0).fit(counts, feature_names=given)
        assert list(model.vocabulary_) == list(names)
    assert make(2, random_state=0).fit(counts).vocabulary_ is None
    assert model.fit(counts).vocabulary_ is None


@pytest.mark.filterwarnings("error")
def test_names_do_not_make_transform_warn():
    counts = CountVectorizer().fit_transform(TEXTS)
    model = PLSA(2, random_state=0).fit(counts, feature_names=list("abcdef"))
    model.transform(counts)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_columns_of_a_data_frame_are_the_names(library):
    frame = pytest.importorskip(library).DataFrame({f"w{i}": X[:, i] for i in range(45)})
    model = PLSA(2, random_state=0).fit(frame)
    assert model.topics()[0].words[0].startswith("w")
    assert model.with_topics(model.components_, frame).topics()[0].words == model.topics()[0].words


def test_a_pipeline_gives_the_names_to_its_model():
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline as plain_pipeline

    from polyseme.text import Vectorizer, make_pipeline

    for counter in (Vectorizer(), CountVectorizer()):
        pipe = make_pipeline(counter, PLSA(2, random_state=0))
        weights = pipe.fit(TEXTS).transform(TEXTS)
        words = {word for row in pipe[-1].topics() for word in row.words}
        assert words <= {"ant", "bee", "cow", "iron", "zinc", "gold"}
        np.testing.assert_array_equal(clone(pipe).fit_transform(TEXTS), weights)
        assert [name for name, _ in pipe.steps] == [type(counter).__name__.lower(), "plsa"]
    plain = plain_pipeline(CountVectorizer(), PLSA(2, random_state=0)).fit(TEXTS)
    assert [row.words for row in plain[-1].topics(plain[:-1])] == [row.words for row in pipe[-1].topics()]
    assert str(plain[-1].set_vocabulary(plain[:-1]).topics()) == str(pipe[-1].topics())


@pytest.mark.parametrize("names", [["ant"], ["ant"] * 46, "ant"])
def test_wrong_names_raise(names):
    with pytest.raises(InputError, match=r"^feature_names must have one name for each of the 45 words") as error:
        PLSA(2).fit(X, feature_names=names)
    sentence(error)
    with pytest.raises(InputError, match=r"^vocabulary must have one name for each of the 45 words") as error:
        PLSA(2, random_state=0).fit(X).set_vocabulary(names)
    sentence(error)


def test_seed_words_can_be_named_with_feature_names():
    from polyseme.priors import SeedWords

    counts = CountVectorizer().fit_transform(TEXTS)
    names = ["ant", "bee", "cow", "gold", "iron", "zinc"]
    prior = SeedWords({0: ["zinc"], 1: ["bee"]})
    model = PLSA(2, topic_word_prior=prior, random_state=0).fit(counts, feature_names=names)
    assert set(model.topics()[0].words[:3]) == {"gold", "iron", "zinc"}


# the table


@pytest.fixture(scope="module")
def table():
    words = [f"word{'o' * (i % 17)}{i}" for i in range(44)] + ["數學" * 40]
    return PLSA(4, random_state=0).fit(X, feature_names=words).topics(n_words=44)


def test_the_table_prints_every_word_within_80_columns(table):
    lines = str(table).split("\n")
    assert lines[0].split() == ["topic", "weight", "fit", "words"]
    assert all(len(line) <= 80 for line in lines if "數" not in line)
    printed = " ".join(line[19:] for line in lines[1:]).replace(",", "").split()
    assert sorted(printed) == sorted(word for row in table for word in row.words)
    shown = [int(line[:5]) for line in lines[1:] if line[:5].strip()]
    assert shown == sorted(range(4), key=lambda topic: -table[topic].weight)
    assert repr(table) == str(table)


def test_wide_characters_take_two_columns():
    from polyseme.metrics.words import Topic, TopicTable

    lines = str(TopicTable((Topic(0, "", 1.0, 0.5, ["數學數學"] * 12),))).split("\n")
    assert len(lines) == 3
    assert all(len(line) + sum(character > "\u2e80" for character in line) <= 80 for line in lines)


def test_the_table_is_a_sequence_and_converts(table):
    assert len(table) == 4
    assert [row.id for row in table] == [0, 1, 2, 3] == table["id"]
    assert table[-1] == table[3]
    assert table[1:3][0] == table[1]
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        frame = getattr(table, f"to_{library}")()
        assert type(frame).__module__.startswith(library)
        assert list(frame.columns) == ["id", "name", "weight", "fit", "words"]
        assert list(frame["words"]) == [", ".join(row.words) for row in table]
    assert table._repr_html_().count("<tr><td>") == 4
