"""Filters and levels in a browser: every view is narrowed, the address keeps them, and figures are those of Python."""

from dataclasses import replace

import numpy as np
import pytest

from explorer_corpora import themed_page_data
from polyseme import PLSA
from polyseme.explore import write_page
from polyseme.metrics import distinctive_words
from polyseme.runs.periods import periods

LEVEL = 8


@pytest.fixture(scope="module")
def data():
    """Themes with a finer level; its names are code."""
    coarse, fine = themed_page_data(), themed_page_data(PLSA(LEVEL, random_state=1))
    tops = (fine.topic_word @ coarse.topic_word.T).argmax(axis=1)
    nodes = [
        {"level": LEVEL, "topic": topic, "name": f"<b>fine</b> {topic}", "weight": float(fine.topic_weights[topic]),
         "parent_share": 0.5, "words": ["bank", "flour"], "children": []}
        for topic in range(LEVEL)
    ]  # fmt: skip
    finer = [[node for node, top in zip(nodes, tops, strict=True) if top == topic] for topic in range(4)]
    return replace(coarse, finer=finer, level_weights=[fine.doc_topic])


@pytest.fixture(scope="module")
def page(opened, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("filters") / "page.html"
    write_page(data, path, text="full")
    return opened(path)


@pytest.fixture(autouse=True)
def nothing_wrong(page):
    yield
    assert page.complaints == []
    assert page.requests == [page.address]
    assert page.page.locator("main b").count() == 0


def figures(page, selector):
    """Return numbers that the page shows, shares as fractions."""
    texts = page.page.locator(selector).all_text_contents()
    return [float(text.strip("×%,<").replace(",", "")) / (100 if "%" in text else 1) for text in texts]


def rows_with(data, label):
    return np.flatnonzero([label in names for names in data.labels])


def column(page, name):
    """Return the figures of a column of the table, by the first cell."""
    names = page.page.locator("table.topics tbody th a").evaluate_all("links => links.map((a) => a.hash)")
    values = figures(page, f"table.topics td[data-name='{name}'] > span:first-child")
    return dict(zip([address.split("?")[0] for address in dict.fromkeys(names)], values, strict=True))


def test_topics_of_a_label_have_the_shares_of_python(page, data):
    page.go("#/topics?label=music")
    rows = rows_with(data, "music")
    tokens = data.tokens[rows]
    shares = tokens @ data.doc_topic[rows] / tokens.sum()
    main = np.bincount(data.doc_topic[rows].argmax(axis=1), minlength=4)
    weights, documents, times = (column(page, name) for name in ("weight", "documents", "times"))
    for topic in range(4):
        assert weights[f"#/topic/{topic}"] == pytest.approx(shares[topic], abs=0.0051)
        assert documents[f"#/topic/{topic}"] == main[topic]
        assert times[f"#/topic/{topic}"] == pytest.approx(shares[topic] / data.topic_weights[topic], abs=0.051)
    assert f"{len(rows)} of 80 documents" in page.text("#bar")


def test_topics_of_a_finer_level_have_the_shares_of_python(page, data):
    page.go(f"#/topics?level={LEVEL}&from=2003&to=2008")
    found = periods(data.times)
    rows = np.flatnonzero([number >= 0 and "2003" <= found.names[number] <= "2008" for number in found.numbers])
    assert 0 < len(rows) < 80
    tokens, weights = data.tokens[rows], data.level_weights[0][rows]
    shares, main = tokens @ weights / tokens.sum(), np.bincount(weights.argmax(axis=1), minlength=LEVEL)
    shown, documents = column(page, "weight"), column(page, "documents")
    for topic in range(LEVEL):
        assert shown[f"#/finer/{LEVEL}.{topic}"] == pytest.approx(shares[topic], abs=0.0051)
        assert documents[f"#/finer/{LEVEL}.{topic}"] == main[topic]
    page.page.locator("table.topics tbody a").first.click()
    page.wait("document.querySelector('#main').dataset.view === 'finer'")
    assert f"of the words of these {len(rows)} documents" in page.text()
    assert "Part of" in page.text()
    assert "Words that set its documents apart" in page.text()


def test_words_of_a_subset_are_those_of_python(page, data):
    page.go("#/words?topic=1")
    chosen = data.doc_topic.argmax(axis=1) == 1
    found = distinctive_words(data.counts, chosen.astype(str))
    best = np.argsort(-found.scores[found.labels.index("True")], kind="stable")[:10]
    links = page.page.locator("table.topics tbody th a").all_text_contents()
    assert links[:10] == [data.vocabulary[word] for word in best]
    tokens = np.asarray(data.counts[np.flatnonzero(chosen)].sum(axis=0)).ravel()
    assert figures(page, "td[data-name='tokens']")[:10] == [tokens[word] for word in best]


def test_documents_of_all_filters(page, data):
    page.go("#/documents?label=money&topic=2&from=2001")
    found = periods(data.times)
    expected = [
        data.titles[d]
        for d in range(80)
        if "money" in data.labels[d] and data.doc_topic[d].argmax() == 2 and found.names[found.numbers[d]] >= "2001"
    ]
    assert page.page.locator("h1").inner_text() == f"{len(expected)} documents".replace("1 documents", "1 document")
    assert page.page.locator("ol.documents .line:first-child > a").all_text_contents() == expected[:40]
    page.page.locator("#sort").select_option(label="title")
    assert page.page.locator("ol.documents .line:first-child > a").all_text_contents() == sorted(expected)[:40]
    assert "sort=title" in page.page.url


def test_filters_stay_and_can_be_removed(page, data):
    page.go("#/labels?label=music&q=violin")
    names = ("Map", "Topics", "Words", "Time", "Documents")
    for name in names:
        page.page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
        page.wait(f"document.querySelector('nav [aria-current]').textContent === '{name}'")
        chips = page.page.locator("#bar .filter").all_text_contents()
        assert chips == ["Label: music ✕", "Words: violin ✕"]
        assert "label=music" in page.page.url
    having = data.counts[:, [data.vocabulary.index("violin")]].toarray().ravel() > 0
    size = len(set(rows_with(data, "music")) & set(np.flatnonzero(having)))
    assert f"{size} of 80 documents" in page.text("#bar")
    page.page.get_by_role("link", name="Remove the filter Label: music").click()
    page.wait("document.querySelectorAll('#bar .filter').length === 1")
    assert f"{having.sum()} of 80 documents" in page.text("#bar")
    assert page.page.evaluate("document.querySelector('#bar').contains(document.activeElement)")
    assert page.page.locator("#find-words").input_value() == "violin"


def test_filters_are_set_with_the_keyboard(page):
    page.go("#/topics")
    keys = page.page.keyboard
    page.page.locator("#bar summary").focus()
    keys.press("Enter")
    page.page.locator("#bar select[name=label]").focus()
    keys.type("music")
    page.wait("location.hash.includes('label=music')")
    page.wait("document.activeElement.name === 'label'")
    page.page.locator("#bar select[name=from]").select_option("2004")
    page.wait("location.hash.includes('from=2004')")
    assert page.page.locator("#bar .filter").all_text_contents() == ["Label: music ✕", "Time: 2004 and later ✕"]
    keys.press("Escape")
    assert page.page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.page.get_by_role("link", name="Clear all").click()
    page.wait("!document.querySelector('#bar .filter')")


def test_one_level_for_tables_and_map(page):
    page.go("#/map")
    page.wait("document.querySelector('.region')")
    page.page.locator("#bar select[name=level]").select_option(str(LEVEL))
    page.wait(f"location.hash.includes('level={LEVEL}')")
    page.wait("document.querySelector('.region[href^=\"#/finer\"]')")
    assert page.page.locator(".map-panel .shares li").count() == LEVEL
    page.page.get_by_role("navigation").get_by_role("link", name="Topics", exact=True).click()
    page.wait("document.querySelector('h1').textContent === '8 topics'")
    page.page.get_by_role("navigation").get_by_role("link", name="Labels", exact=True).click()
    page.wait("document.querySelectorAll('rect.shade').length === 32")


def test_the_map_narrows(page, data):
    page.go("#/map?label=music")
    page.wait("document.querySelector('.document-map.faded')")
    rows = rows_with(data, "music")
    assert page.page.locator(".map-panel h2").inner_text() == f"{len(rows)} documents"
    shares = data.tokens[rows] @ data.doc_topic[rows] / data.tokens[rows].sum()
    shown = figures(page, ".map-panel .shares:first-of-type .figure")[: (shares > 0.0005).sum()]
    np.testing.assert_allclose(shown, np.sort(shares)[::-1][: len(shown)], atol=0.0051)


def test_documents_before_and_after_pass_the_filters(page, data):
    rows = rows_with(data, "music")
    page.go(f"#/document/{rows[1]}?label=music")
    links = page.page.locator(".pager a").evaluate_all("links => links.map((a) => a.hash.split('?')[0])")
    assert links == [f"#/document/{rows[0]}", f"#/document/{rows[2]}"]
    similar = page.page.locator("ol.documents .line:first-child > a").evaluate_all(
        "links => links.map((a) => Number(a.hash.split('?')[0].split('/')[2]))"
    )
    assert similar
    assert set(similar) <= set(rows)


def test_a_filter_that_nothing_passes(page):
    for view in ("map", "topics", "documents", "words", "labels", "time", "topic/1", "labels/music", "word/bank"):
        page.go(f"#/{view}?label=nobody")
        assert "Label: nobody (there is none)" in page.text("#bar")
        assert "0 of 80 documents" in page.text("#bar")
        assert "This view failed" not in page.text()
        assert "NaN" not in page.text()


def test_a_misspelled_word_can_be_corrected(page, data):
    page.go("#/documents?q=violni%20melody")
    assert "Not in the vocabulary: violni; did you mean violin" in page.text()
    page.page.get_by_role("link", name="violin", exact=True).first.click()
    page.wait("document.querySelector('h1').textContent === 'Search: violin melody'")
    page.go("#/map?q=violni")
    page.page.locator(".map-panel").get_by_role("link", name="violin", exact=True).click()
    page.wait("location.hash.includes('q=violin')")


def test_the_heat_map_has_figures_and_leads_to_documents(page, data):
    page.go("#/labels?figures=on")
    names = page.page.locator("svg.chart a text.label").evaluate_all("texts => texts.map((t) => t.firstChild.data)")
    assert sorted(names[:4]) == sorted({name for found in data.labels for name in found})
    assert set(names[4:]) == {page_name for page_name in names[4:] if not page_name.endswith("…")}
    grid = page.page.locator("svg.chart")
    grid.focus()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowRight")
    reading = page.page.locator(".reading").inner_text()
    links = page.page.locator("svg.chart a").evaluate_all("links => links.map((a) => a.getAttribute('href'))")
    label, topic = links[1].split("/")[-1], int(links[4].split("/")[-1])
    rows = rows_with(data, label)
    share = data.tokens[rows] @ data.doc_topic[rows, topic] / data.tokens[rows].sum()
    main = int((data.doc_topic[rows].argmax(axis=1) == topic).sum())
    assert f"main topic of {main} of its {len(rows)} documents" in reading
    shown = float(reading.split(": ")[1].split("%")[0].strip("<")) / 100
    assert shown == pytest.approx(share, abs=0.0051)
    page.page.get_by_role("button", name="More or less than in all").click()
    assert "show=ratio" in page.page.url
    assert page.page.locator("text.cell").first.text_content().startswith("×")
    grid.focus()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    page.wait("document.querySelector('#main').dataset.view === 'documents'")
    assert page.page.locator("#bar .filter").count() == 2


def test_a_period_has_its_documents_words_and_topics(page, data):
    page.go("#/time")
    page.page.get_by_role("link", name="2005: 4 documents").click()
    page.wait("document.querySelector('h2 + .lead')")
    found = periods(data.times)
    rows = np.flatnonzero(found.numbers == found.names.index("2005"))
    mean = data.tokens[rows] @ data.doc_topic[rows]
    cosines = data.doc_topic[rows] @ mean / np.linalg.norm(data.doc_topic[rows], axis=1) / np.linalg.norm(mean)
    titles = [data.titles[row] for row in rows[np.argsort(-cosines)]]
    assert page.page.locator("ol.documents .line:first-child > a").all_text_contents() == titles
    page.wait("document.querySelector('text.tag-end')")
    names = page.page.locator("text.tag-end").all_text_contents()
    assert len(names) >= 4
    assert not [name for name in names if "…" in name]
    page.page.get_by_role("link", name="Its documents").click()
    page.wait("document.querySelector('h1').textContent === '4 documents'")


def test_the_tree_can_be_enlarged(page):
    page.go("#/tree")
    assert page.page.locator("svg.chart a[href^='#/topic/']").count() == 4
    page.page.locator("a.zoom").first.press("Enter")
    page.wait("location.hash.includes('at=')")
    page.wait("document.querySelectorAll('svg.chart a[href^=\"#/topic/\"]').length === 1")
    assert page.page.locator("svg.chart a[href^='#/finer/']").count() >= 1
    page.page.get_by_role("link", name="All topics").click()
    page.wait("document.querySelectorAll('svg.chart a[href^=\"#/topic/\"]').length === 4")


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_no_view_with_filters_is_wider_than_the_window(page, width):
    page.page.set_viewport_size({"width": width, "height": 800})
    for view in ("map", "topics", "words", "documents", "labels", "time", "tree", f"finer/{LEVEL}.1", "topic/0"):
        page.go(f"#/{view}?label=music&from=2001&to=2012&q=bank%20violin&level={LEVEL}&period=2003&figures=on")
        page.wait("document.documentElement.scrollWidth <= innerWidth")
    page.page.set_viewport_size({"width": 1000, "height": 800})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, page, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page.page.emulate_media(color_scheme=scheme)
    page.page.evaluate(axe.axe_script)
    for fragment in (
        "#/map?label=music", "#/topics?label=music", f"#/topics?level={LEVEL}", "#/words?topic=1", "#/tree",
        "#/labels?figures=on&show=ratio", "#/time?period=2003", f"#/finer/{LEVEL}.1?label=music", "#/topic/1?q=bank",
        "#/documents?q=violni%20bank&label=music",
    ):  # fmt: skip
        page.go(fragment)
        page.page.evaluate("document.querySelector('#bar details').open = true")
        page.wait("document.querySelector('#bar select[name=label]')")
        found = page.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            (violation["id"], violation["nodes"][0]["html"][:200])
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == [], fragment
        page.page.evaluate("document.querySelector('#bar details').open = false")
    page.page.emulate_media(color_scheme="light")
