"""Edits in the page: what they show, undo and redo, and that the exported file does the same to the run."""

import json
import re

import numpy as np
import pytest

import polyseme
from explorer_corpora import HOSTILE, themed_texts
from polyseme.explore.page_data import run_page_data
from polyseme.runs.edit_files import read_edits

AXE = "() => axe.run(document, {resultTypes: ['violations']})"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    texts, _, labels, times = themed_texts()
    rows = [
        {"text": text, "label": "; ".join(names), "time": time}
        for text, names, time in zip(texts, labels, times, strict=True)
    ]
    folder = tmp_path_factory.mktemp("edits")
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = {"text": "text", "label": "label", "time": "time"}
    return polyseme.fit(folder / "texts.jsonl", 4, output=folder / "run", language="english", max_df=1.0, **columns)


@pytest.fixture
def page(opened, run):
    page = opened(run.path / "explorer.html", "#/topics")
    yield page
    assert page.complaints == []
    assert page.requests == [page.address]


def editor(page, topic):
    page.go(f"#/topic/{topic}")
    unfold(page)
    return page.page.locator(".editor")


def unfold(page):
    if page.page.locator(".editor").count() and page.page.locator(".editor").get_attribute("open") is None:
        page.page.locator(".editor summary").click()


def shares(page):
    """Return the names and shares of the topics in the panel of the map."""
    page.go("#/map")
    page.wait("document.querySelector('.document-map')?.dataset.drawn")
    rows = page.page.locator(".map-panel .shares li")
    links = rows.locator("a").evaluate_all("links => links.map((a) => Number(a.hash.split('/').pop()))")
    figures = rows.locator(".figure").all_text_contents()
    return dict(zip(links, (float(figure.rstrip("%")) / 100 for figure in figures), strict=True))


def exported(page, tmp_path):
    with page.page.expect_download() as download:
        page.page.locator("#edits").get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "edits.json"
    path = tmp_path / "edits.json"
    download.value.save_as(path)
    return path


def test_a_new_name_is_everywhere_and_undone(page, run, tmp_path):
    form = editor(page, 2)
    form.get_by_label("Name").fill("Ships at sea")
    form.get_by_role("button", name="Rename").click()
    page.wait("document.querySelector('h1').textContent.includes('Ships at sea')")
    assert page.text("#edits").startswith("1 edit")
    page.go("#/topics")
    assert "Ships at sea" in page.text()
    page.go("#/map")
    page.wait("document.querySelector('.region[aria-label=\"Ships at sea\"]')")
    applied = run.save(tmp_path / "run").edit(file=exported(page, tmp_path))
    assert applied.topic_titles[2] == "Ships at sea"
    page.page.get_by_role("button", name="Undo").click()
    page.wait(f"document.querySelector('.region[aria-label={json.dumps(run.topic_titles[2])}]')")
    assert page.page.get_by_role("button", name="Undo").is_disabled()
    page.page.get_by_role("button", name="Redo").click()
    page.wait("document.querySelector('.region[aria-label=\"Ships at sea\"]')")


def test_a_name_that_python_refuses_is_refused(page):
    form = editor(page, 1)
    for name, problem in (("", "Write a name."), ("x" * 81, "at most 80"), ("<b>x", "no markup")):
        form.get_by_label("Name").fill(name)
        form.get_by_role("button", name="Rename").click()
        assert problem in form.get_by_role("alert").inner_text()
    assert page.page.locator("#edits").is_hidden()


def test_shares_of_merged_topics_are_sums(page, run, tmp_path):
    before = run_page_data(run).topic_weights
    form = editor(page, 3)
    form.get_by_label("Merge with").select_option("1")
    form.get_by_role("button", name="Merge").click()
    page.wait("location.hash === '#/topic/1' && document.querySelector('#main').dataset.view === 'topic'")
    page.wait("document.querySelector('#edits').textContent.includes('edit')")
    found = shares(page)
    assert set(found) == {0, 1, 2}
    np.testing.assert_allclose(found[1], before[1] + before[3], atol=0.0051)
    np.testing.assert_allclose(found[0], before[0], atol=0.0051)
    page.go("#/topic/3")
    assert "Topic 3 is merged" in page.text("h1")
    page.go("#/document/5")
    assert page.page.locator("svg.chart a").first.is_visible()
    file = exported(page, tmp_path)
    edit, _ = read_edits(file)
    assert edit.merge == ((1, 3),)
    assert set(edit.rename) == {1}
    applied = run.save(tmp_path / "run").edit(file=file)
    assert len(applied.topics()) == 3
    merged = applied.topics()[1]
    assert merged.name == edit.rename[1]
    np.testing.assert_allclose(merged.weight, before[1] + before[3], atol=0.02)  # folded in again


def test_hidden_and_deleted_topics_are_out_of_lists_and_the_map(page, run, tmp_path):
    editor(page, 0).get_by_role("button", name="Hide").click()
    page.wait("location.hash === '#/topics' && document.querySelector('#edits').textContent.includes('1 edit')")
    editor(page, 2).get_by_role("button", name="Delete").click()
    page.wait("location.hash === '#/topics' && document.querySelector('#edits').textContent.includes('2 edits')")
    assert set(shares(page)) == {1, 3}
    regions = page.page.locator(".region").evaluate_all("all => all.map((a) => a.getAttribute('aria-label'))")
    assert set(regions) == {run.topic_titles[1], run.topic_titles[3]}
    page.go("#/topic/0")
    assert "This topic is hidden" in page.text()
    applied = run.save(tmp_path / "run").edit(file=exported(page, tmp_path))
    assert len(applied.topics()) == 3
    assert applied.hidden_topics == {0}


def test_banned_words_vanish(page, run, tmp_path):
    word = run.topic_words(1)[0][0]
    name = f"Ban {word}: hide it in all lists and names"
    editor(page, 0).get_by_title(name).click()
    page.wait("document.querySelector('#edits').textContent.includes('1 edit')")
    page.wait(f"!document.querySelector('.bans').textContent.includes({json.dumps(word)})")
    assert word not in page.page.locator("main svg.chart").first.locator("text.label").all_text_contents()
    assert word not in page.text("h1").replace(",", " ").split()
    page.go("#/words")
    assert word not in page.page.locator("main a.word").all_text_contents()
    page.go(f"#/word/{word}")
    assert "This word is banned" in page.text()
    applied = run.save(tmp_path / "run").edit(file=exported(page, tmp_path))
    assert word not in {shown for words in applied.topic_words(30) for shown in words}
    ranked = [shown for shown in run.topic_words(6)[0] if shown != word]
    page.go("#/topic/0")
    assert page.page.locator("main svg.chart").first.locator("text.label").all_text_contents()[:5] == ranked[:5]


def test_the_list_of_edits_can_be_discarded(page, run):
    page.go("#/edits")
    assert "Open a topic or a word" in page.text()
    editor(page, 0).get_by_label("Name").fill("First")
    page.page.keyboard.press("Enter")
    page.wait("document.querySelector('#edits').textContent.includes('1 edit')")
    page.go("#/edits")
    assert "is called “First”" in page.text()
    assert "polyseme edit RUN --from edits.json" in page.text()
    page.page.get_by_role("button", name="Discard all").click()
    page.wait("document.querySelector('h1').textContent === '0 edits'")
    page.page.locator("#edits").get_by_role("button", name="Undo").click()
    page.wait("document.querySelector('h1').textContent === '1 edit'")


def test_the_browser_keeps_edits_of_the_same_topics(page, run):
    editor(page, 0).get_by_label("Name").fill("Kept")
    page.page.keyboard.press("Enter")
    page.wait("document.querySelector('#edits').textContent.includes('1 edit')")
    page.go("#/edits")
    assert "This browser keeps the edits" in page.text()
    page.page.reload()
    page.wait("document.documentElement.dataset.ready === 'all'")
    page.go("#/topic/0")
    assert "Kept" in page.text("h1")
    page.page.evaluate("""() => {
        const key = Object.keys(localStorage).find((name) => name.startsWith("polyseme edits"));
        const kept = JSON.parse(localStorage.getItem(key));
        localStorage.setItem(key, JSON.stringify({...kept, hide: [99], rename: {"0": "<img src=x>"}}));
    }""")
    page.page.reload()
    page.wait("document.documentElement.dataset.ready === 'all'")
    assert page.page.locator("#edits").is_hidden()  # edits that this page cannot have made
    page.requests[1:] = []


def test_without_storage_the_page_says_so(opened, run):
    page = opened(run.path / "explorer.html", "#/topics")
    page.page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('none'); }})")
    page.page.reload()
    page.wait("document.documentElement.dataset.ready === 'all'")
    editor(page, 0).get_by_label("Name").fill("Lost")
    page.page.keyboard.press("Enter")
    page.wait("document.querySelector('#edits').textContent.includes('1 edit')")
    page.go("#/edits")
    assert "does not keep the edits" in page.text()
    page.page.get_by_role("button", name="Undo").first.click()
    page.wait("document.querySelector('h1').textContent === '0 edits'")
    assert page.complaints == []


def test_hostile_names_and_words_stay_text(opened, tmp_path):
    words = ["javascript", "onerror", "constructor", "__proto__", "hasownproperty", "tostring"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words[3 * (i % 2) : 3 * (i % 2) + 3], 8)) for i in range(60)]
    run = polyseme.fit(texts, 2, output=tmp_path / "run", language="other", max_df=1.0, levels="none")
    page = opened(run.path / "explorer.html", "#/topics")
    for name in HOSTILE:
        page.go("#/topics")
        form = editor(page, 0)
        form.get_by_label("Name").fill(name)
        form.get_by_role("button", name="Rename").click()
        if re.search("<[a-z/!]", name):
            assert form.get_by_role("alert").inner_text()
            continue
        page.wait(f"document.querySelector('h1').textContent.includes({json.dumps(name)})")
    page.go("#/topics")
    for word in run.topic_words(1)[0]:
        editor(page, 0).get_by_title(f"Ban {word}:").click()
        page.wait("!document.querySelector('.bans').textContent.includes('" + word + "')")
    page.go("#/edits")
    edited = run.edit(file=exported(page, tmp_path))
    assert edited.topic_titles[0] == HOSTILE[-1]
    again = opened(run.path / "explorer.html", "#/map")
    again.wait("document.querySelector('.document-map')?.dataset.drawn")
    for shown in (page, again):
        assert shown.page.evaluate("typeof window.hacked") == "undefined"
        assert shown.page.locator("main script, main img, main iframe").count() == 0
        assert shown.complaints == []


def test_pages_without_a_run_are_not_edited(themes_page):
    themes_page.go("#/topic/1")
    assert themes_page.page.locator(".editor").count() == 0
    themes_page.go("#/edits")
    assert "cannot be edited" in themes_page.text()


def test_axe_finds_nothing_serious(opened, run):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    for scheme in ("light", "dark"):
        page = opened(run.path / "explorer.html", "#/topics", color_scheme=scheme)
        page.page.evaluate(axe.axe_script)
        form = editor(page, 0)
        form.get_by_role("button", name="Rename").click()
        page.wait("document.querySelector('#edits').textContent.includes('1 edit')")
        for fragment in ("#/topic/0", "#/edits", f"#/word/{run.topic_words(1)[0][0]}"):
            page.go(fragment)
            unfold(page)
            found = page.page.evaluate(AXE)["violations"]
            assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], fragment
