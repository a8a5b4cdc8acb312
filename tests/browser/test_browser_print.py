"""Printed views are reports: no controls, nothing cut, the map as a picture; and the page explains itself."""

import pytest

CONTROLS = "nav a, .saves button, #find, .map-tools, input, select, .editor, .edit-bar, .ways, .pager"
INK = """() => {
    const canvas = document.querySelector(".map-picture");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 3; i < data.length; i += 4) count += data[i] > 100;
    return count;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["#/map", "#/topics", "#/topic/1", "#/document/3", "#/labels", "#/time", "#/help"])
def test_a_printed_view_is_dark_on_white_without_controls(opened, themes_file, fragment, scheme):
    page = opened(themes_file, fragment, color_scheme=scheme)
    page.page.emulate_media(media="print", color_scheme=scheme)
    for control in page.page.locator(CONTROLS).all():
        assert control.is_hidden()
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(0, 0, 0)"
    page.page.set_viewport_size({"width": 680, "height": 900})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 680
    clipped = page.page.evaluate("""() => Array.from(document.querySelectorAll('main *')).filter((one) =>
        one.clientHeight > 0 && one.scrollHeight > one.clientHeight + 2
        && ['auto', 'scroll'].includes(getComputedStyle(one).overflowY)).map((one) => one.className)""")
    assert clipped == []
    assert page.page.pdf(format="A4").startswith(b"%PDF")
    assert page.complaints == []
    assert page.requests == [page.address]


def test_the_map_is_printed_as_a_picture(opened, themes_file):
    page = opened(themes_file, "#/map")
    page.wait("document.querySelector('.document-map')?.dataset.drawn")
    page.page.wait_for_timeout(250)
    page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.page.emulate_media(media="print")
    assert page.page.locator(".map-picture").is_visible()
    assert page.page.locator(".document-map").is_hidden()
    assert page.page.evaluate(INK) > 2000
    page.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.page.locator(".map-picture").count() == 0


def test_the_page_says_how_to_read_it(opened, themes_file):
    page = opened(themes_file, "#/topics")
    page.page.get_by_role("link", name="How to read this page").click()
    page.wait("document.getElementById('main').dataset.view === 'help'")
    terms = page.page.locator(".help dt").all_inner_texts()
    assert {"Topic", "Fit", "Map", "Labels", "Time", "What it does not mean"} <= set(terms)
    assert "Edits" not in terms
    assert "Levels" not in terms
    for link in page.page.locator(".help a").all():
        assert link.get_attribute("href").startswith("#/")
    for width in (400, 900, 1600):
        page.page.set_viewport_size({"width": width, "height": 800})
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
