"""Search and pasted texts show the numbers of Python; tests/explore/test_scripts.py compares the numbers themselves."""

import numpy as np

from polyseme import PLSA
from polyseme.retrieval import SearchIndex


def test_what_the_page_shows_are_these_numbers(themes_page, themes):
    model = PLSA(4, random_state=0, tol=1e-4).fit(themes.counts)
    index = SearchIndex(themes.counts, themes.vocabulary, vectorizer=themes.vectorizer).set_model(model)
    page = themes_page.page
    themes_page.go("#/topics")
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


def test_forms_that_the_corpus_does_not_have_are_named(themes_page):
    """The page has the forms of the corpus, but not the stemmer."""
    themes_page.go("#/documents?q=violins%20orchestras")
    assert "Not in the vocabulary: orchestras; did you mean orchestra" in themes_page.text()


def test_the_explained_shares_are_those_of_python(themes_page, themes):
    explained = themes.explained
    themes_page.go("#/fit")
    card = themes_page.page.locator("section.card", has_text="Documents explained worst")
    assert card.locator("dd").all_text_contents() == [f"{explained.total:.1%}", f"{explained.median_dispersion:.2f}"]
    worst = explained.worst_documents()
    assert card.locator(".figure").all_text_contents() == [f"{explained.documents[row]:.1%}" for row in worst]
    links = card.locator(".documents a[href^='#/document/']").evaluate_all("all => all.map((a) => a.hash)")
    assert links == [f"#/document/{row}" for row in worst]
