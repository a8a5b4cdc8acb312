"""Search in an index: scores of other packages and of naive formulas, results, explanations and bad input."""

import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics.pairwise import cosine_similarity

import retrieval_corpus
from polyseme import (
    LDA,
    LSA,
    NMF,
    PLSA,
    CorrelatedTopicModel,
    HierarchicalPLSA,
    InputError,
    TensorPLSA,
    UnsupportedError,
)
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.shard import sparse_counts
from polyseme.retrieval import SearchIndex
from polyseme.retrieval.queries import best_rows
from polyseme.retrieval.scores import METHODS

QUERIES = ["car engine road", "automobile", "jaguar jaguar time", "bank loan people year", "money"]


@pytest.fixture(scope="module")
def index():
    return retrieval_corpus.full_index()


@pytest.fixture(scope="module")
def queries(index):
    return index.query_counts(QUERIES)


# Scores compared with other packages


def test_tf_is_the_cosine_of_counts(index, queries):
    expected = cosine_similarity(queries, index.counts)
    np.testing.assert_allclose(index.scores(queries, method="tf"), expected, atol=1e-8)


def test_tfidf_is_that_of_scikit_learn(index, queries):
    transformer = TfidfTransformer().fit(index.counts)
    expected = cosine_similarity(transformer.transform(queries), transformer.transform(index.counts))
    np.testing.assert_allclose(index.scores(queries, method="tfidf"), expected, atol=1e-8)


def test_bm25_is_that_of_bm25s(index, queries):
    bm25s = pytest.importorskip("bm25s", reason="bm25s is not installed (dependency group test)")
    texts = [
        [word for word, n in zip(index.vocabulary, row, strict=True) for _ in range(int(n))] for row in dense(index)
    ]
    other = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    other.index(texts, show_progress=False)
    expected = [other.get_scores(text.split()) for text in QUERIES]
    np.testing.assert_allclose(index.scores(QUERIES, method="bm25"), expected, atol=1e-6)


@pytest.mark.parametrize("weighting", ["tf", "tfidf"])
def test_lsi_is_that_of_scikit_learn(index, queries, weighting):
    X, Q = index.counts, queries
    if weighting == "tfidf":
        transformer = TfidfTransformer(norm=None).fit(X)
        X, Q = transformer.transform(X), transformer.transform(Q)
    svd = TruncatedSVD(5, algorithm="arpack", random_state=1).fit(X)
    expected = cosine_similarity(svd.transform(Q), svd.transform(X))
    other = retrieval_corpus.index().fit_lsi(5, weighting=weighting)
    np.testing.assert_allclose(other.scores(queries, method="lsi"), expected, atol=1e-6)
    smaller = other.scoring.lsi.truncated(3)
    expected = cosine_similarity(svd.transform(Q)[:, :3], svd.transform(X)[:, :3])
    np.testing.assert_allclose(smaller.scores(queries), expected, atol=1e-6)


def test_lsi_ignores_directions_and_scores_that_rounding_makes():
    """Twenty copies of three documents have three singular values; the vectors of others are arbitrary."""
    texts = ["plums pears apples apples", "iron zinc copper", "iron zinc tin"] * 20
    words = CountVectorizer()
    counts = words.fit_transform(texts)
    index = SearchIndex(counts, words.get_feature_names_out()).fit_lsi(6)
    assert index.scoring.lsi.basis.shape[1] == 3
    fruit, copper = index.scores(["plums", "copper"], method="lsi")
    np.testing.assert_allclose(fruit[::3], 1, rtol=1e-6)
    assert not fruit[1::3].any()
    assert not fruit[2::3].any()
    assert not copper[::3].any()
    assert copper[1] > 0.5
    assert not copper[2::3].any()  # orthogonal in three dimensions, in which the documents are what they were
    assert {int(hit.id) % 3 for hit in index.search("plums", 60, method="lsi")} == {0}


def test_the_best_documents_by_lsi_are_those_with_the_largest_scores():
    """This holds whether they are found by codes (three of 27 documents) or among the scores of all documents (ten)."""
    index = retrieval_corpus.index().fit_lsi(5)
    for text, scores in zip(QUERIES, index.scores(QUERIES, method="lsi"), strict=True):
        for k in (1, 3, 10):
            hits = index.search(text, k, method="lsi")
            best = np.sort(scores[scores > 0])[::-1][:k]
            np.testing.assert_allclose([hit.score for hit in hits], best, atol=1e-6)


def test_plsi_q_is_the_cosine_of_folded_in_weights(index, queries):
    model = PLSA(3, random_state=0, n_init=5, n_jobs=1, tol=1e-3).fit(index.counts)
    expected = cosine_similarity(model.transform(queries), model.transform(index.counts))
    expected[:, -1] = 0  # the empty document
    actual = index.scores(queries, method="plsi-q", term_weight=0)
    np.testing.assert_allclose(actual, expected, atol=1e-4)
    mixed = index.scores(queries, method="plsi-q", term="tf", term_weight=0.25)
    np.testing.assert_allclose(mixed, 0.75 * actual + 0.25 * index.scores(queries, method="tf"), atol=1e-6)


def test_plsi_star_is_the_mean_over_its_models(index, queries):
    space = index.scoring.average
    expected = np.mean([space.only(i).scores(queries) for i in range(2)], axis=0)
    np.testing.assert_allclose(index.scores(queries, method="plsi*", term_weight=0), expected, atol=1e-6)
    tfidf = index.scores(queries, method="tfidf")
    np.testing.assert_allclose(index.scores(queries, method="plsi*"), 0.5 * expected + 0.5 * tfidf, atol=1e-6)


def test_bm25_is_divided_by_its_largest_value_in_a_sum_with_a_latent_score(index, queries):
    bm25 = index.scores(queries, method="bm25")
    expected = 0.5 * index.scores(queries, method="plsi*", term_weight=0) + 0.5 * bm25 / bm25.max(axis=1, keepdims=True)
    np.testing.assert_allclose(index.scores(queries, method="plsi*", term="bm25"), expected, atol=1e-6)


@pytest.mark.parametrize("weighting", ["tf", "tfidf"])
@pytest.mark.parametrize("term_weight", [0.0, 0.3, 0.5, 1.0])
def test_plsi_u_is_the_cosine_with_smoothed_documents(index, queries, weighting, term_weight):
    model = PLSA(3, random_state=0, n_init=5, n_jobs=1, tol=1e-3).fit(index.counts)
    X = dense(index)[:-1]
    smoothed = term_weight * X / X.sum(axis=1, keepdims=True)
    smoothed += (1 - term_weight) * model.transform(X) @ model.components_
    weights = TfidfTransformer().fit(index.counts).idf_ if weighting == "tfidf" else 1.0
    expected = cosine_similarity(queries.toarray() * weights, smoothed * weights)
    actual = index.scores(queries, method="plsi-u", term=weighting, term_weight=term_weight)
    np.testing.assert_allclose(actual[:, :-1], expected, atol=1e-5)
    assert (actual[:, -1] == 0).all()


def test_folding_in_equals_transform_of_the_model(index):
    """With a fitted temperature and without one; unknown words are ignored."""
    for model in (
        PLSA(4, solver="tempered", random_state=0, n_jobs=1, tol=1e-3, max_iter=500).fit(index.counts),
        PLSA(4, random_state=0, n_jobs=1, tol=1e-3).fit(index.counts),
    ):
        space = retrieval_corpus.index().set_model(model).scoring.model
        Q = index.query_counts([*QUERIES, "car neverseen"])
        np.testing.assert_allclose(space.fold(Q), model.transform(Q), atol=1e-3)
        alone = np.vstack([space.fold(Q[[i]]) for i in range(Q.shape[0])])
        # Words of other queries have their own rows in a batch, but are one sum for a single query: rounding differs.
        np.testing.assert_allclose(space.fold(Q), alone, atol=1e-4)
        np.testing.assert_array_equal(space.fold(index.query_counts("neverseen")), np.zeros((1, 4)))


def test_folding_in_uses_the_background(index):
    """Words that only the background generates do not change the topics of a query."""
    model = PLSA(3, background=0.3, random_state=0, n_jobs=1, tol=1e-3).fit(index.counts)
    with_background = retrieval_corpus.index().set_model(model)
    Q = with_background.query_counts([*QUERIES, "time", "neverseen"])
    folded = with_background.scoring.model.fold(Q)
    np.testing.assert_allclose(folded[:-1], model.transform(Q)[:-1], atol=2e-3)
    for text in QUERIES:
        for hit in with_background.search(text, 3, method="plsi-q"):
            assert sum(found.weight for found in hit.words) == pytest.approx(hit.score, rel=1e-4)


def dense(index):
    return index.counts.toarray()


# Models

MODELS = {
    "PLSA": PLSA(3, random_state=0, n_init=5, n_jobs=1, tol=1e-3),
    "NMF": NMF(3, random_state=0, n_init=5, n_jobs=1, tol=1e-3),
    "NMF-squared": NMF(3, loss="squared", random_state=0),
    "LDA": LDA(3, random_state=0, n_jobs=1, topic_word_prior=0.01),
    "LDA-map": LDA(3, solver="map", random_state=0, n_init=5, n_jobs=1, topic_word_prior=1.001),
    "HierarchicalPLSA": HierarchicalPLSA(depth=1, branching=3, silent=[0], random_state=0, n_init=5, n_jobs=1),
    "CorrelatedTopicModel": CorrelatedTopicModel(3, random_state=0, n_init=5, n_jobs=1),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request, index):
    return clone(MODELS[request.param]).fit(index.counts)


@pytest.fixture(scope="module")
def modeled(model):
    return retrieval_corpus.index().set_model(model)


@pytest.mark.parametrize("method", ["plsi-q", "plsi-u"])
def test_every_model_finds_the_documents_of_a_topic(modeled, method):
    for text, theme in (("car engine road", "car"), ("bank loan debt", "money"), ("fur prey paw", "animal")):
        found = modeled.search(text, 10, method=method)
        assert [retrieval_corpus.theme_of(hit.row) for hit in found] == [theme] * 10
        for hit in found[:3]:
            assert sum(word.weight for word in hit.words) == pytest.approx(hit.score, rel=1e-4)
    synonyms = modeled.search("car", 20, method=method)
    others = [hit for hit in synonyms if modeled.counts[hit.row, modeled.column_of("car")] == 0]
    assert {retrieval_corpus.theme_of(hit.row) for hit in others[:5]} == {"car"}


def test_documents_of_an_index_have_the_weights_of_the_model(modeled, model):
    expected = model._fitted.fold_in(sparse_counts(modeled.counts, model.components_.dtype)).doc_topic
    for row in range(59):
        np.testing.assert_allclose(modeled.scoring.model.weights_of(row), expected[row], atol=1e-5)
    assert not modeled.scoring.model.documents[-1].any()


def test_queries_are_folded_in_by_likelihood_whatever_the_model(modeled, model):
    """Without the prior of the model, so the query has the weights of a PLSA with the same topics."""
    Q = modeled.query_counts([*QUERIES, "car neverseen"])
    plain = replace(model._fitted, inference=MaximumLikelihood())
    weights = plain.fold_in(sparse_counts(Q, model.components_.dtype)).doc_topic
    np.testing.assert_allclose(modeled.scoring.model.fold(Q), weights, atol=2e-3)


def test_every_model_has_senses_related_words_and_topic_documents(modeled):
    assert len(modeled.senses("jaguar", least=0.2)) == 2
    (sense,) = modeled.senses("loan", least=0.2, n_words=3)
    assert set(sense.words) <= set(retrieval_corpus.THEMES["money"])
    assert {retrieval_corpus.theme_of(name.removeprefix("d")) for name, _ in sense.documents} == {"money"}
    assert "automobile" in [related.word for related in modeled.related_words("car", 8)]
    hits = modeled.topic_documents(sense.topic, 5)
    assert [retrieval_corpus.theme_of(hit.row) for hit in hits] == ["money"] * 5
    for hit in hits:  # a Dirichlet prior adds or takes about one token
        assert sum(word.weight for word in hit.words) == pytest.approx(hit.score, abs=1)


def test_every_model_is_saved_with_the_index(modeled, tmp_path):
    modeled.save(tmp_path / "index")
    loaded = SearchIndex.load(tmp_path / "index")
    for method in ("plsi-q", "plsi-u"):
        np.testing.assert_array_equal(loaded.scores(QUERIES, method=method), modeled.scores(QUERIES, method=method))
    assert loaded.senses("jaguar") == modeled.senses("jaguar")
    assert loaded.related_words("car") == modeled.related_words("car")
    assert loaded.topic_documents(1) == modeled.topic_documents(1)


def test_a_model_can_be_given_as_fitted_topics_and_with_the_weights_of_its_documents(modeled, model):
    others = [
        retrieval_corpus.index().set_model(model._fitted, n_jobs=1),
        retrieval_corpus.index().set_model(model, model._training.doc_topic),
    ]
    for other in others:
        for method in ("plsi-q", "plsi-u"):
            np.testing.assert_array_equal(other.scores(QUERIES, method=method), modeled.scores(QUERIES, method=method))


def test_a_loaded_index_takes_a_model(index, tmp_path):
    index.save(tmp_path / "index")
    model = LDA(3, random_state=0, n_jobs=1).fit(index.counts)
    loaded, other = SearchIndex.load(tmp_path / "index").set_model(model), retrieval_corpus.index().set_model(model)
    np.testing.assert_array_equal(loaded.scores(QUERIES, method="plsi-q"), other.scores(QUERIES, method="plsi-q"))


@pytest.mark.parametrize(
    "model",
    [PLSA(2), LSA(2).fit(np.eye(4)), TensorPLSA(2), TruncatedSVD(2), None, "plsa"],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_refused(model):
    message = "needs a fitted PLSA, NMF, LDA, HierarchicalPLSA or CorrelatedTopicModel, got"
    with pytest.raises(InputError, match=f"{message} {type(model).__name__}"):
        retrieval_corpus.index().set_model(model)


@pytest.mark.parametrize(
    ("doc_topic", "message"),
    [
        (np.ones((59, 3)), r"a row for each of the 60 documents .* 3 topics, got the shape \(59, 3\)"),
        (np.ones((60, 2)), r"got the shape \(60, 2\)"),
        (np.ones(60), r"got the shape \(60,\)"),
        (np.full((60, 3), np.nan), "finite numbers of at least 0"),
        (np.full((60, 3), -1.0), "finite numbers of at least 0"),
        (np.full((60, 3), "a"), "finite numbers of at least 0"),
    ],
)
def test_wrong_weights_of_documents_raise(index, doc_topic, message):
    model = PLSA(3, random_state=0, n_jobs=1).fit(index.counts)
    with pytest.raises(InputError, match=message):
        retrieval_corpus.index().set_model(model, doc_topic)


def test_counts_that_the_model_cannot_hold_raise():
    model = PLSA(2, random_state=0, dtype="float32").fit(np.eye(3) + 1)
    with pytest.raises(InputError, match="Every count must be 0 or between"):
        SearchIndex(1e30 * np.eye(3), ["a", "b", "c"]).set_model(model)


# Results


@pytest.mark.parametrize("method", METHODS)
def test_search_returns_the_best_documents_in_order(index, method):
    scores = index.scores(QUERIES, method=method)
    for text, row in zip(QUERIES, scores, strict=True):
        found = index.search(text, 7, method=method)
        assert found.method == method
        assert [hit.rank for hit in found] == list(range(1, len(found) + 1))
        np.testing.assert_allclose([hit.score for hit in found], np.sort(row[row > 0])[::-1][:7], rtol=1e-5)
        for hit in found:
            assert hit.id == f"d{hit.row}"
            assert hit.title == f"Title {hit.row}"
            assert hit.score == pytest.approx(sum(hit.parts.values()))


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_has_the_results_of_single_queries(index, method):
    texts = QUERIES * 20
    for text, found in zip(texts, index.search_many(texts, 5, method=method), strict=True):
        alone = index.search(text, 5, method=method)
        assert [hit.id for hit in found] == [hit.id for hit in alone]
        np.testing.assert_allclose([h.score for h in found], [h.score for h in alone], rtol=1e-5)


def test_no_queries_have_no_results(index):
    assert index.search_many([]) == []
    assert index.scores([], method="tf").shape == (0, 60)


@pytest.mark.parametrize("method", ["lsi", "plsi-u", "plsi-q", "plsi*"])
def test_latent_methods_find_documents_with_the_synonym_only(index, method):
    """`car` and `automobile` never occur in the same document, but with the same other words."""
    found = index.search("car", 20, method=method)
    others = [hit for hit in found if index.counts[hit.row, index.column_of("car")] == 0]
    assert len(others) >= 5
    assert {retrieval_corpus.theme_of(hit.row) for hit in others[:5]} == {"car"}
    assert all(hit.parts["latent"] > 0 for hit in others)
    terms = index.search("car", 100, method="tfidf")
    assert all(index.counts[hit.row, index.column_of("car")] > 0 for hit in terms)


WITH_BM25 = [("lsi", "bm25"), ("plsi-q", "bm25"), ("plsi*", "bm25")]


@pytest.mark.parametrize(("method", "term"), [*((method, None) for method in METHODS), *WITH_BM25])
def test_word_scores_add_up_to_the_score(index, method, term):
    weight = 0.5 if term else None
    for text in QUERIES:
        for hit in index.search(text, 4, method=method, term=term, term_weight=weight):
            assert sum(found.weight for found in hit.words) == pytest.approx(hit.score, rel=1e-4)
            for found in hit.words:
                assert found.in_document == (index.counts[hit.row, index.column_of(found.word)] > 0)
                assert found.in_query == (found.word in text.split())
            weights = [found.weight for found in hit.words]
            assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("method", ["plsi-u", "plsi-q", "plsi*"])
def test_word_scores_include_words_that_the_document_does_not_contain(index, method):
    hits = index.search("automobile brake", 30, method=method)
    without = next(hit for hit in hits if index.counts[hit.row, index.column_of("automobile")] == 0)
    found = next(found for found in without.words if found.word == "automobile")
    assert found.weight > 0
    assert found.in_query
    assert not found.in_document


def test_results_are_a_sequence_and_convert_to_plain_values(index):
    found = index.search("car brake", 3)
    assert len(found) == 3
    assert found[0] is found.hits[0]
    assert list(found[:2]) == list(found.hits[:2])
    plain = found.to_dict(n_words=2)
    assert plain["method"] == "bm25+topics"
    assert [len(hit["words"]) for hit in plain["hits"]] == [2, 2, 2]
    assert set(plain["hits"][0]["words"][0]) == {"word", "weight", "in_query", "in_document"}


def test_printed_results_show_the_id_of_a_document_without_a_title():
    index = SearchIndex(np.eye(2), ["one", "two"], ids=["first", "second"], titles=["A title", ""])
    rows = repr(index.search("one two")).splitlines()[-2:]
    assert [row.split(maxsplit=2)[2] for row in rows] == ["A title", "second"]


@pytest.mark.parametrize("method", METHODS)
def test_results_are_the_same_after_pickle(index, method):
    found = index.search("jaguar engine", 3, method=method)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.to_dict() == found.to_dict()
    assert len(pickle.dumps(found)) < 20_000  # without the index
    assert pickle.loads(pickle.dumps(again)).to_dict() == found.to_dict()


def test_hits_of_a_topic_are_the_same_after_pickle(index):
    hits = index.topic_documents(0, 2)
    assert [hit.to_dict() for hit in pickle.loads(pickle.dumps(hits))] == [hit.to_dict() for hit in hits]


@pytest.mark.slow
def test_joblib_can_search_in_other_processes(index):
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(index.search)(query, 3) for query in QUERIES)
    assert [results.to_dict() for results in found] == [index.search(query, 3).to_dict() for query in QUERIES]


@pytest.mark.parametrize("method", METHODS)
def test_similar_documents_exclude_the_document_itself(index, method):
    found = index.similar_documents("d4", 5, method=method)
    assert "d4" not in [hit.id for hit in found]
    assert {retrieval_corpus.theme_of(hit.row) for hit in found} == {retrieval_corpus.theme_of(4)}
    expected = [hit.id for hit in index.search(index.counts[[4]], 6, method=method) if hit.id != "d4"][:5]
    assert [hit.id for hit in found] == expected


def test_documents_of_a_topic(index):
    model = PLSA(3, random_state=0, n_init=5, n_jobs=1, tol=1e-3).fit(index.counts)
    for topic in range(3):
        hits = index.topic_documents(topic, 4)
        tokens = dense(index).sum(axis=1) * model.transform(index.counts)[:, topic]
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(tokens)[::-1][:4], rtol=1e-3)
        assert sum(found.weight for found in hits[0].words) == pytest.approx(hits[0].score, rel=1e-2)
        assert len({retrieval_corpus.theme_of(hit.row) for hit in hits}) == 1


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_best_rows_are_those_of_a_full_stable_sort(scores, k):
    values = np.array(scores, dtype=np.float64)
    expected = [row for row in np.argsort(-values, kind="stable") if values[row] > 0][:k]
    assert best_rows(values, k).tolist() == expected


# Queries and bad input.


def test_a_given_vectorizer_turns_texts_into_counts():
    texts = ["Cars and cars", "the bank"]
    vectorizer = CountVectorizer(
        preprocessor=lambda text: text.lower().replace("cars", "car"), stop_words=["and", "the"]
    )
    X = vectorizer.fit_transform(texts)
    index = SearchIndex(X, vectorizer.get_feature_names_out(), vectorizer=vectorizer)
    assert [hit.id for hit in index.search("CARS", method="tf")] == ["0"]
    without = SearchIndex(X, vectorizer.get_feature_names_out())
    assert not without.search("CARS", method="tf")
    assert [hit.id for hit in without.search("CAR", method="tf")] == ["0"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", ["", "   ", "zebra quagga", "the and of", "!?", "\x00", "neverseen" * 3])
def test_a_query_without_known_words_finds_nothing_and_says_why(index, method, text):
    found = index.search(text, method=method)
    assert len(found) == 0
    assert found.note == "The query has no words that the index knows."
    assert found.to_dict()["hits"] == []


@pytest.mark.parametrize("method", METHODS)
def test_a_query_of_a_word_that_no_document_has_finds_nothing(index, method):
    found = index.search("neverseen", method=method)
    assert len(found) == 0
    assert found.note == "No document matches the query."


@pytest.mark.parametrize("method", METHODS)
def test_a_query_of_a_megabyte_is_answered(index, method):
    text = "car engine jaguar nonsense " * 40_000
    assert len(text) > 1_000_000
    expected = index.search("car engine jaguar", 3, method=method)
    assert [hit.id for hit in index.search(text, 3, method=method)] == [hit.id for hit in expected]


def test_a_document_without_words_is_never_found(index):
    for method in METHODS:
        found = index.search("time year people", 100, method=method)
        assert "d59" not in [hit.id for hit in found]
        assert index.similar_documents("d59", method=method).note == "The query has no words that the index knows."


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i: i.similar_documents("nobody"), "no document with the id 'nobody'"),
        (lambda i: i.senses("zebra"), "does not know the word 'zebra'"),
        (lambda i: i.related_words("zebra"), "does not know the word 'zebra'"),
        (lambda i: i.related_words("car", 0), "n_words must be a whole number of at least 1"),
        (lambda i: i.search("car", 0), "n_documents must be a whole number of at least 1"),
        (lambda i: i.search("car", method="magic"), "method must be one of 'bm25.topics'"),
        (lambda i: i.search("car", method="lsi", term="magic"), "term must be one of 'tf'"),
        (lambda i: i.search("car", method="lsi", term_weight=2), "term_weight must be a number between 0 and 1"),
        (lambda i: i.search("car", method="bm25", term="tf"), "'bm25' has its own term score"),
        (lambda i: i.search("car", method="plsi-u", term="bm25"), "its term must be 'tf' or 'tfidf'"),
        (lambda i: i.search(["car", "cat"]), "search takes one query, got 2"),
        (
            lambda i: i.search("car", allowed=[True, False]),
            "a mask with a bool for each of the 60 documents, or row indices",
        ),
        (lambda i: i.search("car", allowed=[0.5]), "a mask with a bool for each of the 60 documents, or row indices"),
        (lambda i: i.search("car", allowed=[60]), "allowed must be row indices from 0 to 59"),
        (lambda i: i.search(np.ones(3)), "a column for each of the 27 words"),
        (lambda i: i.search(-np.ones(27)), "every number finite and at least 0"),
        (lambda i: i.search(np.full(27, np.nan)), "every number finite and at least 0"),
        (lambda i: i.search(None), "must be counts"),
        (lambda i: i.search(["car", 3]), "must be counts"),
        (lambda i: i.topic_documents(3), "topic must be a number from 0 to 2"),
        (lambda i: i.topic_documents("x"), "topic must be a whole number"),
        (lambda i: SearchIndex(np.eye(2), ["a", "a"]), "must not contain a word twice"),
        (lambda i: i.fit_lsi(60), "n_components of LSI must be from 1 to 26"),
        (lambda i: i.fit_lsi(0), "n_components must be a whole number of at least 1"),
        (lambda i: i.fit_lsi(3, weighting="bm25"), "weighting must be one of 'tf', 'tfidf'"),
        (lambda i: i.fit_models(()), "at least one number of topics"),
        (lambda i: i.fit_models((3, 0)), "n_components must be a whole number of at least 1"),
        (
            lambda i: i.set_model(PLSA(2, random_state=0).fit(np.eye(4))),
            "The model has 4 words, but the index has 27",
        ),
        (lambda i: SearchIndex(np.eye(3), ["a", "b"]), "The corpus must have a column for each of the 2 words"),
        (lambda i: SearchIndex(np.eye(2), ["a", "b"], ids=["x", "x"]), "ids must differ"),
        (
            lambda i: SearchIndex(np.eye(2), ["a", "b"], ids=["x"]),
            "ids must have one entry for each of the 2 documents",
        ),
        (lambda i: SearchIndex(np.eye(2), ["a", "b"], titles=["x"]), "titles must have one entry for each"),
        (lambda i: SearchIndex(-np.eye(2), ["a", "b"]), "every number finite and at least 0"),
        (lambda i: SearchIndex([["a", "b"]], ["a", "b"]), "The corpus must be counts"),
    ],
)
def test_bad_input_is_refused_with_one_sentence(index, call, message):
    with pytest.raises(InputError, match=message):
        call(index)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i: i.search("car", method="plsi*"), r"call fit_models\(\) first"),
        (lambda i: i.search("car", method="plsi-q"), r"call set_model\(model\) first"),
        (lambda i: i.search("car", method="plsi-u"), r"call set_model\(model\) first"),
        (lambda i: i.search("car", method="lsi"), r"call fit_lsi\(\) first"),
        (lambda i: i.senses("car"), r"set_model\(model\) or fit_models\(\)"),
        (lambda i: i.topic_documents(0), r"set_model\(model\) or fit_models\(\)"),
    ],
)
def test_the_message_for_a_missing_model_names_the_call(call, message):
    with pytest.raises(UnsupportedError, match=message):
        call(retrieval_corpus.index())


def test_counts_may_be_dense_unsorted_or_have_stored_zeros():
    dense_counts = retrieval_corpus.counts().toarray()
    plain = SearchIndex(dense_counts, retrieval_corpus.VOCABULARY)
    rows, columns = np.nonzero(dense_counts)
    values = dense_counts[rows, columns]
    twice = sp.coo_array(
        (np.concatenate([values, [0]]), (np.concatenate([rows[::-1], [0]]), np.concatenate([columns[::-1], [1]]))),
        shape=dense_counts.shape,
    )
    twice.data[: len(values)] = values[::-1]
    other = SearchIndex(twice, retrieval_corpus.VOCABULARY)
    for method in ("tf", "tfidf", "bm25"):
        np.testing.assert_array_equal(plain.scores(QUERIES, method=method), other.scores(QUERIES, method=method))
