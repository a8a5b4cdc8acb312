"""The default method: its formula, its guarantee, filters, and explanations."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

import retrieval_corpus
from polyseme import PLSA
from polyseme.core.fitted import FittedTopics
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.retrieval import SearchIndex
from polyseme.retrieval import postings as constants

QUERIES = ["car engine road", "automobile jaguar", "jaguar jaguar time", "bank loan people year neverseen", "money"]


@pytest.fixture(scope="module")
def index():
    return retrieval_corpus.full_index()


def random_index(seed, n_docs=40, n_words=12, n_topics=4):
    """Return an index with random topics, so that topics and words contradict each other."""
    rng = np.random.default_rng(seed)
    counts = sp.csr_array(rng.poisson(rng.gamma(0.3, 1.5, size=n_words), size=(n_docs, n_words)))
    topics = rng.dirichlet(np.full(n_words, 0.3), size=n_topics)
    fitted = FittedTopics(
        topic_word=topics,
        topic_weights=np.full(n_topics, 1 / n_topics),
        unigram=np.full(n_words, 1 / n_words),
        active=np.ones(n_topics, dtype=bool),
        n_tokens=float(counts.sum()),
        n_documents=n_docs,
        inference=MaximumLikelihood(),
    )
    weights = rng.dirichlet(np.full(n_topics, 0.2), size=n_docs)
    return SearchIndex(counts, [f"w{word}" for word in range(n_words)]).set_model(fitted, weights)


def oracle(index, query, allowed=None, topics=None):
    """Return the scores of all documents by the formulas of the module, without its code."""
    counts, n = index.counts.toarray(), index.query_counts(query).toarray()[0]
    n_docs, lengths, frequency = len(counts), counts.sum(axis=1), (counts > 0).sum(axis=0)
    known = (n > 0) & (frequency > 0)
    i = n * known * np.log(1 + (n_docs - frequency + 0.5) / (frequency + 0.5))
    bm25 = counts / (counts + 1.2 * (0.25 + 0.75 * lengths / lengths.mean())[:, np.newaxis]) @ i
    covered = (counts > 0) @ i
    term = bm25 + constants.WEIGHT * covered
    if allowed is not None:
        term[~allowed] = 0
    first = [row for row in np.argsort(-term, kind="stable") if term[row] > 0]
    units = index.scoring.model.documents[:].astype(float)
    weights = units / np.maximum(units.sum(axis=1, keepdims=True), 1e-30)
    if topics is None:
        ten = first[: constants.FEEDBACK]
        topics = term[ten] @ weights[ten] / max(term[ten].sum(), 1e-30)
    candidates = set(first[: constants.POOL])
    for topic in np.argsort(-topics, kind="stable")[: constants.LEADING]:
        order = [row for row in np.argsort(-units[:, topic], kind="stable") if units[row, topic] > 0]
        order = [row for row in order if allowed is None or allowed[row]][: constants.TYPICAL]
        candidates |= set(order) if first else set()
    cosine = cosine_similarity(topics[np.newaxis], units)[0]
    score = term.copy()
    for row in candidates:
        score[row] += constants.WEIGHT * (i.sum() - covered[row]) * cosine[row]
    return score, bm25, (counts > 0)[:, known].all(axis=1) & known.any()


@pytest.mark.parametrize("k", [1, 10, 150, 400])
def test_leaving_out_candidates_and_documents_early_changes_nothing(k):
    """In a large corpus most documents are skipped by bounds; with a filter that allows all, by other code."""
    index = random_index(3, n_docs=3000, n_words=40, n_topics=12)
    for query in ("w1 w7 w20", "w3 w3 w11 w12 w30", " ".join(f"w{word}" for word in range(40))):
        hits = index.search(query, k)
        expected = np.sort(oracle(index, query)[0])[::-1][: len(hits)]
        np.testing.assert_allclose([hit.score for hit in hits], expected, rtol=1e-5)
        filtered = index.search(query, k, allowed=np.ones(3000, dtype=bool))
        assert [hit.row for hit in filtered] == [hit.row for hit in hits]
        np.testing.assert_allclose([hit.score for hit in filtered], [hit.score for hit in hits], rtol=1e-6)


@pytest.mark.parametrize("text", QUERIES)
def test_scores_are_those_of_the_formula(index, text):
    score, _, _ = oracle(index, text)
    np.testing.assert_allclose(index.scores(text)[0], score, rtol=2e-6, atol=1e-6)
    allowed = np.arange(60) % 3 != 1
    score, _, _ = oracle(index, text, allowed)
    found = index.search(text, 60, allowed=allowed)
    np.testing.assert_allclose([hit.score for hit in found], np.sort(score[score > 0])[::-1], rtol=2e-6)
    assert all(allowed[hit.row] for hit in found)
    rows = np.flatnonzero(allowed)[::-1]
    assert [hit.row for hit in index.search(text, 60, allowed=rows)] == [hit.row for hit in found]


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    words=st.lists(st.integers(0, 11), min_size=1, max_size=6),
    k=st.integers(1, 60),
    filtered=st.booleans(),
)
def test_no_document_overtakes_one_with_all_words_that_bm25_prefers(seed, words, k, filtered):
    """Also if candidates are few. Differences of scores in the last bits of float32 count as equal."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"POOL": 5, "TYPICAL": 4, "FEEDBACK": 3}.items():
            patch.setattr(constants, name, value)
        index = random_index(seed)
        allowed = np.random.default_rng(seed).random(40) < 0.6 if filtered else np.ones(40, dtype=bool)
        text = " ".join(f"w{word}" for word in words)
        score, bm25, has_all = oracle(index, text)
        ranks = {hit.row: hit.rank for hit in index.search(text, k, allowed=allowed if filtered else None)}
        for row in np.flatnonzero(has_all & allowed):
            for other, rank in ranks.items():
                if bm25[other] < bm25[row] - 1e-6 * score[row]:
                    assert rank > ranks.get(row, 1000)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), words=st.lists(st.integers(0, 11), min_size=1, max_size=4))
def test_the_best_documents_are_the_first_of_more(seed, words):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"POOL": 5, "TYPICAL": 4, "FEEDBACK": 3}.items():
            patch.setattr(constants, name, value)
        index, text = random_index(seed), " ".join(f"w{word}" for word in words)
        rows = [hit.row for hit in index.search(text, 60)]
        for k in (1, 4, 7, 20):
            assert [hit.row for hit in index.search(text, k)] == rows[:k]


def test_one_word_has_the_order_of_bm25_and_no_model_is_bm25(index):
    by_bm25 = [hit.row for hit in index.search("car", 60, method="bm25")]
    assert [hit.row for hit in index.search("car", 60)][: len(by_bm25)] == by_bm25
    plain = retrieval_corpus.index()
    for text in QUERIES:
        np.testing.assert_array_equal(plain.scores(text), plain.scores(text, method="bm25"))
        assert [hit.to_dict() for hit in plain.search(text)] == [
            hit.to_dict() for hit in plain.search(text, method="bm25")
        ]


def test_topics_add_documents_with_other_words(index):
    found = index.search("automobile", 60)
    other = [hit for hit in found if not index.counts[hit.row, index.column_of("automobile")]]
    assert len(other) >= 10
    assert all(hit.parts["term"] == 0 < hit.parts["latent"] for hit in other)
    assert {retrieval_corpus.theme_of(hit.row) for hit in other[:3]} == {"car"}


@pytest.mark.parametrize("text", QUERIES)
def test_the_weights_of_words_add_up_to_the_score(index, text):
    for hit in [*index.search(text, 30), *index.similar_documents("d4", 5)]:
        assert sum(found.weight for found in hit.words) == pytest.approx(hit.score, rel=1e-5)
        assert sum(hit.parts.values()) == pytest.approx(hit.score)


def test_documents_that_are_not_candidates_have_no_words_of_topics(index, monkeypatch):
    for name, value in {"POOL": 2, "TYPICAL": 1, "FEEDBACK": 2}.items():
        monkeypatch.setattr(constants, name, value)
    found = index.search("bank loan people year", 60)
    assert any(hit.parts["latent"] == 0 < len({w for w in hit.words if w.in_query}) for hit in found)
    for hit in found:
        assert sum(word.weight for word in hit.words) == pytest.approx(hit.score, rel=1e-5)


@pytest.mark.parametrize("together", [False, True])
def test_topics_count_the_same_whether_or_not_a_document_contains_the_query(together):
    """Two words, each in two documents, are in one document together, or not."""
    counts = np.array([[1, together, 0, 3], [0, 0, 1, 3], [0, not together, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1]])
    model = PLSA(1, random_state=0).fit(counts)  # all cosines are 1
    found = SearchIndex(counts, ["ab", "bc", "cd", "de"]).set_model(model).search("ab bc", 5)
    latent = next(hit.parts["latent"] for hit in found if hit.row == 1)
    assert latent == pytest.approx(constants.WEIGHT * 2 * np.log1p(3.5 / 2.5), rel=1e-6)


def test_similar_documents_use_the_topics_of_the_document(index):
    mask = np.ones(60, dtype=bool)
    mask[4] = False
    score, _, _ = oracle(index, index.counts[[4]], mask, index.scoring.model.weights_of(4).astype(float))
    found = index.similar_documents("d4", 60)
    np.testing.assert_allclose([hit.score for hit in found], np.sort(score[score > 0])[::-1], rtol=2e-6)


@pytest.mark.parametrize(
    "text", ["car " * 10_000, " ".join(retrieval_corpus.VOCABULARY * 400), "\x00\x1b[0m car \x7f\u202e"]
)
def test_long_queries_and_control_characters(index, text):
    found = index.search(text, 5)
    assert len(found) == 5
    assert all(np.isfinite(hit.score) and hit.score > 0 for hit in found)


@pytest.mark.parametrize("text", ["", "the", "qwertz 12345", "\x00", "neverseen"])
def test_queries_without_a_word_of_a_document_say_so(index, text):
    found = index.search(text)
    assert not found
    known = "No document matches the query." if text == "neverseen" else "The query has no words that the index knows."
    assert found.note == known
