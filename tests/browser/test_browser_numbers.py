"""Search and pasted texts: the page computes the same numbers as Python."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from explorer_corpora import themed_page_data, themed_texts
from polyseme import LDA, PLSA, CorrelatedTopicModel, HierarchicalPLSA, fit
from polyseme.explore import from_sklearn, page_data, write_page
from polyseme.retrieval import SearchIndex
from polyseme.solvers import Tempered
from polyseme.text import Vectorizer

CLOSE = 1e-3
QUERIES = (
    "ship",
    "bank loan interest",
    "Baking bread, at sea: waves of violins",
    "orchestra zebra",
    "kneaded doughs rate",
)


def counted(page, text):
    found = page.page.evaluate("text => window.polyseme.fold(text)", text)
    return dict(map(tuple, found["counts"])), np.array(found["topics"])


def by_python(vectorizer, text):
    row = vectorizer.transform([text])
    names = vectorizer.get_feature_names_out()
    return {names[j]: n for j, n in zip(row.indices, row.data, strict=True)}


MODELS = {
    "plain": lambda: PLSA(4, random_state=0, tol=1e-4),
    "background": lambda: PLSA(4, random_state=0, background=0.3),
    "tempered": lambda: PLSA(4, random_state=0, solver=Tempered(0.8), max_iter=1000),
    "variational": lambda: LDA(4, random_state=0),
    "logistic-normal": lambda: CorrelatedTopicModel(4, random_state=0),
    "tree": lambda: HierarchicalPLSA(branching=2, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def case(request, opened, tmp_path_factory):
    """Return a fitted model, the data of its page, and the page."""
    model = MODELS[request.param]()
    parts = themed_page_data(model)
    path = tmp_path_factory.mktemp("numbers") / "page.html"
    write_page(parts, path, text="none")
    return model, parts, opened(path)


def test_pasted_texts_have_the_topics_that_the_posterior_gives(case):
    model, parts, page = case
    for text in (*themed_texts(12, seed=5)[0], *QUERIES[1:]):
        counts, topics = counted(page, text)
        assert counts == by_python(parts.vectorizer, text)
        expected = model.fold_in(parts.vectorizer.transform([text]), inference="posterior").doc_topic[0]
        np.testing.assert_allclose(topics, expected, atol=CLOSE)


@pytest.mark.parametrize("background", [0.0, 0.3])
def test_topics_that_are_off_get_no_weight(opened, tmp_path, background):
    parts = themed_page_data(model := PLSA(4, random_state=0, background=background))
    model.fitted_ = replace(model.fitted_, active=np.array([True, False, True, True]))
    path = tmp_path / "page.html"
    write_page(page_data(model, parts.counts, vectorizer=parts.vectorizer), path, text="none")
    page = opened(path)
    texts = themed_texts(12, seed=5)[0]
    for text in (" ".join(texts[:6]), " ".join(texts[6:])):  # without a known word a text would get P(z)
        expected = model.fold_in(parts.vectorizer.transform([text]), inference="posterior").doc_topic[0]
        assert expected[1] < 1e-3
        np.testing.assert_allclose(counted(page, text)[1], expected, atol=CLOSE)


def test_search_gives_the_ranking_and_the_reasons_of_the_index(case):
    """By the default method. The page rounds P(z|d), so documents with nearly equal scores may change places."""
    model, parts, page = case
    index = SearchIndex(parts.counts, parts.vocabulary, vectorizer=parts.vectorizer).set_model(model)
    for query in QUERIES:
        expected = index.search(query, k=10)
        found = page.page.evaluate("query => window.polyseme.search(query, 10)", query)
        scores = index.scores([query])[0]
        assert len(found) == len(expected)
        for hit, other in zip(found, expected, strict=True):
            assert hit["score"] == pytest.approx(other.score, abs=CLOSE)
            assert hit["score"] == pytest.approx(scores[hit["document"]], abs=CLOSE)
            assert hit["term"] + hit["latent"] == pytest.approx(hit["score"])
        same = [(hit, other) for hit in found for other in expected if hit["document"] == other.row]
        assert len(same) >= 8
        for hit, other in same:
            weights = dict(map(tuple, hit["words"]))
            for reason in other.words:
                assert weights.get(reason.word, 0) == pytest.approx(reason.weight, abs=CLOSE)


def test_the_page_of_a_run_ranks_as_the_run_does(opened, tmp_path):
    texts = themed_texts()[0]
    run = fit(
        texts, 4, random_state=0, language="english", min_df=1, max_df=1.0, page_text="full", output=tmp_path / "run"
    )
    page = opened(run.path / "explorer.html")
    for query in (*QUERIES, "harbour ships wind", "the loans of banks"):
        hits = page.page.evaluate("query => window.polyseme.search(query, 10)", query)
        scores = [hit.score for hit in run.search(query, 10)]
        np.testing.assert_allclose([hit["score"] for hit in hits], scores, atol=CLOSE)
        clear = len(scores) == len({round(score, 2) for score in scores})
        rows = [hit.row for hit in run.search(query, 10)]
        assert not clear or [hit["document"] for hit in hits] == rows


def test_what_the_page_shows_are_these_numbers(themes_page, themes):
    model = PLSA(4, random_state=0, tol=1e-4).fit(themes.counts)
    index = SearchIndex(themes.counts, themes.vocabulary, vectorizer=themes.vectorizer).set_model(model)
    page = themes_page.page
    page.get_by_label("Search documents").fill("river boats")
    page.keyboard.press("Enter")
    themes_page.wait("document.querySelectorAll('.documents [data-score]').length")
    shown = [float(text) for text in page.locator(".documents [data-score]").all_text_contents()]
    expected = [hit.score for hit in index.search("river boats", 20)]
    np.testing.assert_allclose(shown, expected, atol=0.006)  # two decimals

    themes_page.go("#/paste")
    text = "The orchestra of the bank, a melody about loans and interest rates"
    page.get_by_label("Text").fill(text)
    themes_page.wait("document.querySelector('main svg.chart')")
    bars = page.locator("main svg.chart a").evaluate_all("links => links.map((a) => a.getAttribute('aria-label'))")
    theta = model.fold_in(themes.vectorizer.transform([text]), inference="posterior").doc_topic[0]
    top = int(theta.argmax())
    assert bars[0].startswith(f"{top} ")
    assert bars[0].endswith(f", {theta[top]:.0%}")
    similar = [float(text) for text in page.locator(".documents [data-score]").all_text_contents()]
    np.testing.assert_allclose(similar, [hit.score for hit in index.search(text, 10)], atol=0.006)


TONGUES = [
    "Don't stop: the baker's well-known bread — O’Neill’s, naïve café; x86_64 ﬁle state-of-the-art",
    "İstanbul'da IŞIK ve ılık; ΟΔΥΣΣΕΥΣ Σίσυφος ΣΑΣ ς Straße GROSSE ǅ",
    "我们在银行工作，银行在河边。東京タワーへ行きます。 한국어 텍스트 입니다 ภาษาไทยง่ายนิดเดียว",
    "हिन्दी में शब्द, বাংলা; ကမ္ဘာ العَرَبِيّة كتـــاب עִבְרִית don\u00adt zero\u200dwidth 𝒜𝓁𝓅𝒽𝒶 😀 ½ ① e\u0301te\u0301",
    "bank bank, loan rates of the bank. Bank loan; san francisco and new york city, new york city",
]
RULES = {
    "scikit-learn": lambda: CountVectorizer(),
    "defaults": lambda: Vectorizer(),
    "english": lambda: Vectorizer(language="english"),
    "no stems": lambda: Vectorizer(language="english", stem=False, stop_words=[]),
    "turkish": lambda: Vectorizer(language="turkish"),
    "other": lambda: Vectorizer(language="other"),
    "korean": lambda: Vectorizer(language="korean"),
    "runs of words": lambda: Vectorizer(ngram_range=(1, 3), stop_words="english"),
    "runs of stems": lambda: Vectorizer(language="english", ngram_range=(2, 2)),
    "phrases": lambda: Vectorizer(language="english", phrases=0.2),
    "letters": lambda: Vectorizer(token_pattern=r"\b[^\W\d_]{3,}\b", lowercase=False),
    "accents": lambda: Vectorizer(strip_accents="unicode"),
    "ascii": lambda: Vectorizer(strip_accents="ascii", binary=True),
}


@pytest.mark.parametrize("name", RULES)
def test_words_are_those_of_the_vectorizer(opened, tmp_path, name):
    vectorizer = RULES[name]()
    texts = TONGUES * 12  # phrases must occur ten times
    counts = vectorizer.fit_transform(texts)
    path = tmp_path / "page.html"
    write_page(PLSA(2, random_state=0).fit(counts), path, text="none", counts=counts, vectorizer=vectorizer)
    page = opened(path)
    for text in (*TONGUES, " ".join(TONGUES), ".".join(reversed(TONGUES)), ""):
        assert counted(page, text)[0] == by_python(vectorizer, text)
    page.context.close()


def test_a_python_tokenizer_switches_pasting_off(opened, tmp_path):
    vectorizer = Vectorizer(tokenizer=str.split, token_pattern=None)
    counts = vectorizer.fit_transform(["red green", "green blue", "blue red"])
    path = tmp_path / "page.html"
    write_page(PLSA(2, random_state=0).fit(counts), path, counts=counts, vectorizer=vectorizer)
    page = opened(path, "#/paste")
    assert "tokenizer written in Python" in page.text()
    assert page.page.locator("textarea").count() == 0
    page.go("#/search/green")
    assert "looked up as they are" in page.text()
    assert page.page.locator("[data-score]").count() == 3  # the last one by its topics


def test_topics_of_scikit_learn(opened, tmp_path):
    texts, titles, *_ = themed_texts()
    vectorizer = CountVectorizer(stop_words="english")
    counts = vectorizer.fit_transform(texts)
    lda = LatentDirichletAllocation(4, random_state=0, max_doc_update_iter=1000, mean_change_tol=1e-6).fit(counts)
    path = tmp_path / "page.html"
    write_page(from_sklearn(lda, counts, vectorizer, titles=titles, texts=texts), path)
    page = opened(path)
    for text in QUERIES[:3]:
        expected = lda.transform(vectorizer.transform([text]))[0]
        np.testing.assert_allclose(counted(page, text)[1], expected, atol=CLOSE)


def test_counts_that_are_not_whole_numbers(opened, tmp_path):
    counts = np.array([[0.5, 0, 2.25], [0, 1.5, 0], [3.0, 0, 0.125]])
    model = PLSA(2, random_state=0).fit(counts)
    path = tmp_path / "page.html"
    write_page(page_data(model, counts, ["ab", "bc", "cd"]), path)
    page = opened(path, "#/document/0")
    assert "2.8 counted tokens" in page.text() or "3 counted tokens" in page.text()


def test_forms_that_the_corpus_does_not_have_are_named(themes_page):
    """The page has the forms of the corpus, but not the stemmer."""
    themes_page.go("#/search/violins%20orchestras")
    assert "Not in the vocabulary: orchestras." in themes_page.text()
