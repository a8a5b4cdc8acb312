"""Every view in a browser: its content, without network requests and console errors."""

import numpy as np
import pytest

from explorer_corpora import themed_page_data
from polyseme import fit
from polyseme.explore import write_page
from polyseme.metrics import top_words

VIEWS = {
    "#/map": ["80 documents", "4 topics", "Labels", "Time"],
    "#/map?color=label": ["kitchen", "25 documents"],
    "#/map?color=time": ["2000", "2019"],
    "#/map?q=ship": ["with words of “ship”", "Results with texts", "harbour"],
    "#/map?q=zebra": ["0 documents", "Not in the vocabulary: zebra"],
    "#/topics": ["4 topics", "80 documents", "Distances", "weight", "fit"],
    "#/topics?sort=fit&order=up": ["fit ↑"],
    "#/topic/2": ["Relevance", "Typical documents", "Nearest topics", "Labels", "Over time"],
    "#/documents": ["80 documents", "kitchen", "Show more"],
    "#/documents?filter=harbour": ["of 80 documents", "harbour"],
    "#/document/3": ["Text", "Topics", "Similar documents", "counted tokens"],
    "#/words": ["bank", "most frequent", "tokens ↓"],
    "#/words?filter=ban": ["1 of 44 words", "bank"],
    "#/word/bank": ["Senses", "Neighbors", "tokens in"],
    "#/word/banks": ["bank"],
    "#/documents?q=ship%20loan": ["Documents", "Topics of the query", "The number is the score"],
    "#/paste": ["Nothing pasted yet", "not sent anywhere"],
    "#/labels": ["4 labels", "Topics by label", "80 documents with a label"],
    "#/labels/music": ["Words that set its documents apart", "violin", "share of all documents"],
    "#/time": ["Topics over time", "2000", "Choose topics"],
    "#/time?period=2003": ["4 documents", "Typical documents", "share of all documents"],
    "#/fit": ["training perplexity", "Log-likelihood", "4 topics were chosen"],
    "#/topic/99": ["There is no topic 99"],
    "#/document/x": ["There is no document x"],
    "#/word/zebra": ["no word “zebra”"],
    "#/labels/nobody": ["no label “nobody”"],
    "#/documents?q=zebra": ["None of these words"],
    "#/nonsense/%E0%A4%A": ["4 topics", "Drag to move"],
}


@pytest.fixture(autouse=True)
def nothing_wrong(themes_page):
    yield
    assert themes_page.complaints == []
    assert themes_page.requests == [themes_page.address]


@pytest.mark.parametrize("fragment", VIEWS)
def test_view_shows(themes_page, fragment):
    themes_page.go(fragment)
    shown = themes_page.text()
    # charts are text too, but only the text that is drawn
    for expected in VIEWS[fragment]:
        assert expected in shown or expected in themes_page.page.locator("main").text_content()


def test_words_of_a_topic_follow_the_slider(themes_page, themes):
    labels = themes_page.page.locator("main svg").first.locator("text.label")
    for value in (0, 0.35, 0.5, 1):
        themes_page.go(f"#/topic/1?relevance={value}")
        words = top_words(themes.word_documents, 30, relevance=value)[1]
        assert labels.all_text_contents() == [themes.vocabulary[w] for w in words if themes.topic_word[1, w] > 0]
    frequent = labels.all_text_contents()
    slider = themes_page.page.get_by_label("Relevance λ")
    slider.focus()
    for _ in range(20):
        themes_page.page.keyboard.press("ArrowLeft")
    assert slider.input_value() == "0"
    assert labels.all_text_contents() != frequent
    assert themes_page.page.evaluate("location.hash") == "#/topic/1?relevance=0"


def test_reproducibility_is_shown_with_its_interval(opened, tmp_path):
    shares = {"": [1, 0.9, 0.5, 0], "_least": [0.8, 0.7, 0.3, 0], "_most": [1, 0.97, 0.7, 0.2]}
    measures = {f"reproducibility{end}": np.array(values) for end, values in shares.items()}
    write_page(themed_page_data(measures=measures), tmp_path / "page.html")
    shown = opened(tmp_path / "page.html", "#/topics")
    assert "90% (70% to 97%)" in shown.text()
    assert "reproducibility_least" not in shown.text()
    shown.go("#/topic/2")
    assert "reproducibility 50% (30% to 70%)" in shown.text()


def test_names_and_typical_documents_are_those_of_python(themes_page, themes):
    words = top_words(themes.word_documents, 3)
    expected = themes.topic_documents(10).documents
    quotes = themes.document_quotes(themes.topic_documents(10))
    for topic in range(4):
        themes_page.go(f"#/topic/{topic}")
        heading = themes_page.page.locator("h1").inner_text()
        assert heading.endswith(", ".join(themes.vocabulary[w] for w in words[topic]))
        links = themes_page.page.locator("ol.documents").first.locator("li a[href^='#/document/']")
        shown = [int(href.rpartition("/")[2]) for href in links.evaluate_all("a => a.map((e) => e.hash)")]
        assert shown == expected[topic]
        assert len(shown) > 3
        assert themes_page.page.locator("ol.documents").first.locator("p.snippet").all_text_contents() == quotes[topic]


def test_words_of_a_text_have_the_topic_that_python_gives(themes_page, themes):
    document = 4
    themes_page.go(f"#/document/{document}")
    spans = themes_page.page.eval_on_selector_all(
        ".text .w", "spans => spans.map((s) => [s.textContent, Number(s.dataset.word), Number(s.dataset.topic)])"
    )
    assert len(spans) == 30
    for text, word, topic in spans:
        joint = themes.doc_topic[document] * themes.topic_word[:, word]
        assert topic == joint.argmax()
        assert themes.vectorizer.transform([text]).indices.tolist() == [word]


def test_one_topic_of_a_text_can_be_highlighted(themes_page):
    themes_page.go("#/document/0")
    button = themes_page.page.locator(".pick").first
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert themes_page.page.locator(".w:not(.out)").count() > 0
    button.click()
    assert themes_page.page.locator(".w.out").count() == 0


def test_senses_are_those_of_the_index(themes_page, themes):
    from polyseme import PLSA
    from polyseme.retrieval import SearchIndex

    model = PLSA(4, random_state=0, tol=1e-4).fit(themes.counts)
    index = SearchIndex(themes.counts, themes.vocabulary, titles=themes.titles).set_model(model)
    themes_page.go("#/word/bank")
    senses = index.senses("bank")
    assert len(senses) >= 2
    shown = [block.inner_text() for block in themes_page.page.locator(".sense").all()]
    assert len(shown) == len(senses)
    for block, sense in zip(shown, senses, strict=True):
        assert str(sense.topic) in block
        assert all(word in block for word in sense.words[:10])
        assert all(title in block for _, title in sense.documents)
    neighbors = {neighbor.word for neighbor in index.related_words("bank", 20)}
    assert set(themes_page.page.locator("main svg").nth(1).locator("text.label").all_text_contents()) == neighbors


def test_deep_links_and_history(opened, themes_file):
    page = opened(themes_file, "#/word/bank").page
    assert page.locator("h1").inner_text() == "bank"
    page.locator(".sense a.topic").first.click()
    page.wait_for_selector("text=Typical documents")
    topic = page.evaluate("location.hash")
    assert topic.startswith("#/topic/")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.go_back()
    page.wait_for_selector("text=Senses")
    page.goto(page.url.split("#")[0] + topic)
    page.reload()
    page.wait_for_selector("text=Typical documents")


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_no_view_is_wider_than_the_window(themes_page, width):
    themes_page.page.set_viewport_size({"width": width, "height": 800})
    for fragment in VIEWS:
        themes_page.go(fragment)
        assert themes_page.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), fragment
    themes_page.page.set_viewport_size({"width": 1000, "height": 800})


def test_charts_follow_the_width(themes_page):
    themes_page.go("#/topic/0")
    before = themes_page.page.locator("svg.chart").first.bounding_box()["width"]
    themes_page.page.set_viewport_size({"width": 600, "height": 800})
    themes_page.wait(f"document.querySelector('svg.chart').getBoundingClientRect().width !== {before}")
    themes_page.page.set_viewport_size({"width": 1000, "height": 800})


def test_tables_and_charts_can_be_saved(themes_page, themes):
    themes_page.go("#/topics")
    page = themes_page.page
    with page.expect_download() as download:
        page.get_by_role("button", name="Save topics as CSV").click()
    rows = download.value.path().read_text(encoding="utf-8").splitlines()
    assert rows[0] == "topic,name,weight,documents,fit,coherence,words"
    assert len(rows) == 5
    topic, weight = rows[1].split(",")[0], float(rows[1].split('",')[1].split(",")[0])
    assert weight == pytest.approx(themes.topic_weights[int(topic)])
    with page.expect_download() as download:
        page.get_by_role("button", name="Save map of topics as SVG").click()
    drawn = download.value.path().read_text(encoding="utf-8")
    assert drawn.count("<circle") == 4
    assert "var(" not in drawn
    with page.expect_download() as download:
        page.get_by_role("button", name="Save map of topics as PNG").click()
    assert download.value.suggested_filename == "map-of-topics.png"
    picture = download.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5000


def test_the_map_can_be_used_with_the_keyboard(themes_page):
    themes_page.go("#/topics")
    page = themes_page.page
    page.locator("svg.chart a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Typical documents")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_time_remembers_the_chosen_topics(themes_page):
    themes_page.go("#/time?topics=1,3")
    assert themes_page.page.locator("svg.chart").first.locator("path.line").count() == 2
    themes_page.page.locator(".small-chart[aria-pressed=false]").first.click()
    assert themes_page.page.locator("svg.chart").first.locator("path.line").count() == 3
    assert themes_page.page.evaluate("location.hash").startswith("#/time?topics=1%2C3%2C")


def test_hits_have_snippets_with_marked_words(themes_page):
    """One field for queries, the words of the query marked in all their forms, and no markup from a text."""
    themes_page.go("#/documents?q=river%20loans")
    page = themes_page.page
    assert page.locator("input[type=search]").count() == 1
    marks = {mark.lower() for mark in page.locator(".snippet mark").all_text_contents()}
    assert marks
    assert marks <= {"river", "rivers", "loan", "loans"}
    assert {"river", "loan"} <= marks
    assert page.locator(".snippet").count() == page.locator("[data-score]").count()
    assert page.locator(".parts").count() == 0


PHRASES = (
    '"apple pears" on a hill',
    "«THE farmer’s   apples»",
    '"farmer\'s apples"',
    '"on the" hill',
    'orchard "pears" hill',
)
FRUIT = [
    "Apple pears grow on a hill. The farmer's apples are red.",
    "On a hill there are apple\npears, and the orchard is near. The farmer’s  Apples are green.",
    "Apple and pears: they grow on the other hill of the orchard.",
    f"The orchard of {'very ' * 120} old apple pears on the hill.",
    "Pineapple pears, a hill, an orchard, farmer's applesauce.",
    "The loans of the bank have an interest rate.",
    "A bank lends money at a rate, and loans are money.",
]


@pytest.fixture(scope="module")
def fruit_run(tmp_path_factory):
    place = tmp_path_factory.mktemp("fruit") / "run"
    return fit(FRUIT, 2, random_state=0, language="english", min_df=1, max_df=1.0, page=False, output=place)


def test_the_page_of_a_large_corpus_says_why_it_has_excerpts(opened, fruit_run, tmp_path, monkeypatch):
    monkeypatch.setattr("polyseme.explore.page.MAX_FULL_TEXT", 1)
    write_page(fruit_run, tmp_path / "page.html")
    page = opened(tmp_path / "page.html")
    page.go("#/document/0")
    assert "polyseme explore RUN --text full shows all of it" in page.text()


@pytest.mark.parametrize(("text", "having", "words"), [("full", 3, 0), ("excerpt", 2, 2), ("none", 0, 4)])
def test_phrases_are_looked_up_in_the_texts_that_the_page_has(opened, fruit_run, tmp_path, text, having, words):
    """With complete texts the hits are those of the run. Otherwise documents with the words alone are a second list."""
    write_page(fruit_run, tmp_path / "page.html", text=text)
    page = opened(tmp_path / "page.html")
    for query in PHRASES:
        expected = [hit.row for hit in fruit_run.search(query, 10)]
        found = [hit["document"] for hit in page.page.evaluate("query => window.polyseme.search(query, 10)", query)]
        assert expected
        assert found == expected if text == "full" else set(found) >= set(expected)
    page.go("#/documents?q=%22apple%20pears%22")
    for title, size in (("Documents with the phrase", having), ("Documents with the words of the phrase", words)):
        card = page.page.locator("section.card").filter(has=page.page.get_by_role("heading", name=title, exact=True))
        assert card.locator("[data-score]").count() == size
    limit = {"full": "score", "excerpt": "It may occur later.", "none": "written without texts, so the phrase"}[text]
    assert limit in page.text()
    assert ("polyseme search looks for phrases in full texts" in page.text()) == (text != "full")
    if having:
        marks = "".join(page.page.locator(".snippet").first.locator("mark").all_text_contents())
        assert "apple pears" in marks.lower()
    wrong = (("apple%20%22pears", "without a partner"), ("%22..%22%20apple", "a phrase without words"))
    for query, message in (*wrong, ("%22hill%20apple%22", "")):
        page.go(f"#/documents?q={query}")
        assert message in page.text()
    assert ("No document contains the phrase" in page.text()) == (text == "full")
    assert not page.complaints
