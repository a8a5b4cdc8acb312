"""No text of a corpus becomes markup or code, and the page sends no requests."""

import html

import pytest

from explorer_corpora import HOSTILE, hostile_page_data
from polyseme.explore import write_page

FRAGMENTS = (
    "#/topics", "#/topic/0", "#/topic/1", "#/topic/2", "#/documents", "#/document/0", "#/document/1", "#/document/2",
    "#/words", "#/documents?q=%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E", "#/paste", "#/labels", "#/time", "#/fit",
    "#/word/%3Csvg%2Fonload%3Dwindow.hacked%3D1%3E", "#/labels/javascript%3Awindow.hacked%3D1",
    "#/map?label=%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E&q=javascript%3Awindow.hacked%3D1",
    "#/topics?label=%3C!--%3Cscript%3E", "#/words?label=%3Csvg%2Fonload%3Dwindow.hacked%3D1%3E", "#/time?period=2003",
    "#/labels?figures=on&from=2001&to=<b>x</b>", "#/documents?topic=<b>x</b>&label=<b>x</b>&from=<b>x</b>&q=<b>x</b>",
    "#/topic/0?label=%22%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E", "#/topics?level=<b>x</b>",
    "#/topic/<img src=x onerror=window.hacked=1>", "#/word/<b>x</b>", "#/labels/<b>x</b>", "#/document/<b>x</b>",
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile(opened, tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "page.html"
    write_page(hostile_page_data()[1], path, text="full")
    return opened(path)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_corpus_of_markup_injects_nothing(hostile, fragment):
    hostile.go(fragment)
    page = hostile.page
    assert page.evaluate("typeof window.hacked") == "undefined"
    page.evaluate("document.querySelector('#bar details').open = true")
    page.wait_for_timeout(20)
    inserted = ("script", "img", "iframe", "object", "b")
    assert page.locator(", ".join(f"main {tag}, #bar {tag}" for tag in inserted)).count() == 0
    page.evaluate("document.querySelector('#bar details').open = false")
    assert page.locator("[onerror], [onload], [onclick]").count() == 0
    addresses = page.eval_on_selector_all("main a", "links => links.map((a) => a.getAttribute('href'))")
    assert all(address.startswith("#/") for address in addresses)
    assert hostile.complaints == []
    assert hostile.requests == [hostile.address]


def test_hostile_names_are_shown_as_they_are(hostile):
    hostile.go("#/document/0")
    assert hostile.page.locator("h1").inner_text() == HOSTILE[0]
    hostile.page.locator(".tag").first.click()
    hostile.wait("document.querySelector('#main').dataset.view === 'labels'")
    assert hostile.page.locator("h1").inner_text() == HOSTILE[0]
    hostile.go("#/topics")
    assert HOSTILE[0] in hostile.text("table")
    assert hostile.page.title().endswith(HOSTILE[2])
    for number in range(10):  # every word's own link leads to that word
        hostile.go("#/words")
        link = hostile.page.locator("table.topics tbody a").nth(number)
        word = link.inner_text()
        link.click()
        hostile.wait("document.querySelector('#main').dataset.view === 'word'")
        assert hostile.page.locator("h1").inner_text() == word


def test_the_policy_holds(hostile):
    """Injected code would not run."""
    page = hostile.page
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.hacked = 1";
        document.body.append(script);
        const image = document.createElement("img");
        image.setAttribute("onerror", "window.hacked = 1");
        image.src = "data:image/png;base64,x";
        document.body.append(image);
    }""")
    blocked = page.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'blocked')")
    assert blocked == "blocked"
    page.wait_for_timeout(50)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in complaint for complaint in hostile.complaints)
    hostile.complaints.clear()
    hostile.requests[1:] = [url for url in hostile.requests[1:] if not url.startswith(("data:", "https://example.org"))]
    page.evaluate("document.querySelector('body > img').remove()")


def test_cells_of_a_table_are_not_formulas(hostile):
    hostile.go("#/topics")
    with hostile.page.expect_download() as download:
        hostile.page.get_by_role("button", name="Save map of topics as CSV").click()
    rows = download.value.path().read_text(encoding="utf-8").splitlines()
    hostile.go("#/word/%3DHYPERLINK(1)")
    with hostile.page.expect_download() as download:
        hostile.page.get_by_role("button", name="Save neighbors of =HYPERLINK(1) as CSV").click()
    rows += download.value.path().read_text(encoding="utf-8").splitlines()
    assert not [cell for row in rows for cell in row.split(",") if cell[:1] in "=@" and cell]


def test_the_page_in_a_notebook(browser, themes):
    """The page is in a frame: links stay inside, and it cannot reach the notebook."""
    frame = write_page(themes, height=500)._repr_html_()
    page = browser.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(f"<!doctype html><p>{html.escape('a notebook')}</p>{frame}")
    inside = page.frame_locator("iframe")
    inside.locator(".map-panel a.topic").first.click()
    inside.get_by_text("Typical documents").wait_for()
    inside.locator("ol.documents a").first.click()
    inside.get_by_text("Similar documents").wait_for()
    assert page.locator("iframe").get_attribute("sandbox") == "allow-scripts allow-downloads"
    assert complaints == []
    page.close()
