"""The map of documents in a browser: what it shows, and what pointers, fingers and keys do."""

import re
from pathlib import Path

import numpy as np
import pytest

from polyseme.explore import write_page


class Map:
    """A page that shows the map, with the pixels of its documents."""

    def __init__(self, opened, themes):
        self.opened, self.themes, self.page = opened, themes, opened.page
        self.show()

    def show(self, fragment="#/map"):
        self.opened.go(fragment)
        self.opened.wait("document.querySelector('.document-map')?.dataset.drawn")
        self.page.wait_for_timeout(250)

    def pixels(self):
        """Return left, top, width and height of the map in the window."""
        return self.page.evaluate("""() => {
            const chart = document.querySelector('.document-map');
            const box = chart.getBoundingClientRect();
            return [box.left, box.top, box.width, box.height];
        }""")


@pytest.fixture
def shown(opened, themes_file, themes):
    page = Map(opened(themes_file), themes)
    yield page
    assert page.opened.complaints == []
    assert page.opened.requests == [page.opened.address]


def sweep(page, corners):
    """Draw a lasso with the mouse."""
    page.keyboard.down("Shift")
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")


def everything(shown):
    left, top, width, height = shown.pixels()
    return [
        (left + 2, top + 2),
        (left + width - 2, top + 2),
        (left + width - 2, top + height - 2),
        (left + 2, top + height - 2),
    ]


def test_every_topic_has_a_name_in_its_color(shown, themes):
    names = shown.page.locator(".region").evaluate_all(
        "links => links.map((a) => [a.getAttribute('href'), a.getAttribute('aria-label')])"
    )
    expected = {f"#/topic/{name.topic}": name.name for name in themes.document_map.names}
    assert names
    assert {tuple(name) for name in names} <= set(expected.items())
    shown.page.locator(".region").first.click()
    shown.opened.wait("document.getElementById('main').dataset.view === 'topic'")


def test_the_panel_has_the_weights_of_python(shown, themes):
    figures = shown.page.locator(".map-panel .shares .figure").all_text_contents()
    expected = sorted(themes.topic_weights, reverse=True)
    np.testing.assert_allclose([float(text.rstrip("%")) / 100 for text in figures], expected, atol=0.0051)


def test_a_selection_has_the_numbers_of_python(shown, themes):
    page = shown.page
    page.mouse.move(5, 5)
    shown.show()
    sweep(page, everything(shown))
    page.get_by_role("heading", name="Documents, from the middle outward").wait_for()
    chosen = [
        int(href.rsplit("/", 1)[1])
        for href in page.locator(".titles a").evaluate_all("links => links.map((a) => a.getAttribute('href'))")
    ]
    assert page.locator(".map-panel h2").inner_text() == f"{themes.counts.shape[0]} documents"
    assert len(chosen) == len(set(chosen)) == 60
    figures = page.locator(".map-panel .shares").first.locator(".figure").all_text_contents()
    expected = sorted(themes.topic_weights, reverse=True)
    np.testing.assert_allclose([float(text.rstrip("%")) / 100 for text in figures], expected, atol=0.0051)
    page.get_by_role("button", name="Clear").click()
    page.locator(".map-panel .ways").wait_for()


def test_part_of_the_map_can_be_selected_and_saved(shown, themes):
    page = shown.page
    left, top, width, height = shown.pixels()
    page.get_by_role("button", name="Select an area: box").click()
    page.mouse.move(left + 4, top + 4)
    page.mouse.down()
    page.mouse.move(left + width / 2, top + height - 4, steps=4)
    page.mouse.up()
    page.get_by_role("heading", name="Topics").wait_for()
    size = int(page.locator(".map-panel h2").inner_text().split()[0])
    assert 0 < size < themes.counts.shape[0]
    with page.expect_download() as download:
        page.locator(".map-panel").get_by_role("button", name="CSV").click()
    rows = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert rows[0] == "document,id,title,topic,name"
    assert len(rows) == 1 + size
    for row in rows[1:]:
        number, _, title, topic, *_ = row.split(",")
        assert themes.titles[int(number)] == title
        assert int(topic) == themes.doc_topic[int(number)].argmax()


def test_a_document_under_the_pointer_is_described_and_opens(shown, themes):
    page = shown.page
    left, top, width, height = shown.pixels()
    for x in np.linspace(left + 30, left + width - 330, 60):
        for y in np.linspace(top + 80, top + height - 40, 25):
            page.mouse.move(x, y)
            if page.locator(".map-card").is_visible():
                break
        else:
            continue
        break
    number = int(page.locator(".map-card").get_attribute("data-document"))
    assert page.locator(".map-card > a").inner_text() == themes.titles[number]
    shown.opened.wait("document.querySelector('.map-card .quote').textContent")
    assert page.locator(".map-card .quote").inner_text().split()[:4] == themes.texts[number].split()[:4]
    page.mouse.down()
    page.mouse.up()
    shown.opened.wait("document.getElementById('main').dataset.view === 'document'")
    assert page.url.endswith(f"#/document/{number}")


def test_keys_and_buttons_move_the_map_and_the_address_keeps_it(shown):
    page, place = shown.page, "document.querySelector('.region').style.transform"

    def near(transform):
        x, y = re.findall(r"-?[\d.]+", transform)
        return f"Math.hypot(new DOMMatrix({place}).e - {x}, new DOMMatrix({place}).f - {y}) < 0.1"

    before = page.evaluate(place)
    page.locator(".document-map").focus()
    page.keyboard.press("ArrowRight")
    shown.opened.wait(f"!({near(before)}) && location.hash.includes('at=')")
    page.keyboard.press("0")
    shown.opened.wait(f"{near(before)} && !location.hash.includes('at=')")
    page.get_by_role("button", name="Enlarge").click()
    shown.opened.wait(f"!({near(before)}) && location.hash.includes('at=')")
    enlarged = page.evaluate(place)
    shown.show("#" + page.url.split("#")[1])
    shown.opened.wait(near(enlarged))


DOT_PIXEL = """() => {
    const chart = document.querySelector(".document-map");
    const canvas = chart.querySelectorAll("canvas")[1];
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext("2d");
    context.drawImage(canvas, 0, 0);
    const box = chart.getBoundingClientRect();
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] < 200) continue;
        const x = box.left + ((at / 4) % copy.width) * (box.width / copy.width);
        const y = box.top + Math.floor(at / 4 / copy.width) * (box.height / copy.height);
        if (document.elementFromPoint(x, y) === chart) return [x, y];
    }
    return null;
}"""


def frame(shown):
    """Return the middle and the scale of the map in the address; None if all is shown."""
    at = re.search(r"at=([^&]*)", shown.page.evaluate("decodeURIComponent(location.hash)"))
    return at and [float(value) for value in at[1].split(",")]


def test_the_wheel_zooms_and_dragging_moves(shown):
    page = shown.page
    left, top, width, height = shown.pixels()
    page.mouse.move(left + width / 3, top + height / 2)
    page.mouse.wheel(0, -300)
    shown.opened.wait("location.hash.includes('at=')")
    x, y, enlarged = frame(shown)
    assert enlarged > 1.3
    page.mouse.down()
    page.mouse.move(left + width / 3 + 60, top + height / 2 - 40, steps=4)
    page.mouse.up()
    shown.opened.wait(f"!decodeURIComponent(location.hash).includes('at={x:.7f}')")
    moved = frame(shown)
    assert moved[0] < x
    assert moved[1] > y
    assert moved[2] == pytest.approx(enlarged)
    assert page.locator(".map-panel .titles").count() == 0  # nothing is selected


def test_two_fingers_zoom_and_a_touch_describes(opened, themes_file, themes):
    page = opened(themes_file, "#/map", has_touch=True)
    shown = Map(page, themes)
    touch = page.context.new_cdp_session(page.page)

    def fingers(kind, *points):
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    left, top, width, height = shown.pixels()
    x, y = left + width / 3, top + height / 2
    fingers("touchStart", (x - 40, y), (x + 40, y))
    for reach in (50, 65, 80, 100):
        fingers("touchMove", (x - reach, y), (x + reach, y))
    fingers("touchEnd")
    page.wait("location.hash.includes('at=')")
    assert frame(shown)[2] == pytest.approx(2.5, rel=0.15)
    page.page.get_by_role("button", name="Show all").click()
    page.wait("!location.hash.includes('at=')")
    found = page.page.evaluate(DOT_PIXEL)
    page.page.touchscreen.tap(*found)
    page.page.locator(".map-card").wait_for()
    number = page.page.locator(".map-card").get_attribute("data-document")
    assert "#/map" in page.page.url
    page.page.touchscreen.tap(*found)
    page.wait("document.getElementById('main').dataset.view === 'document'")
    assert page.page.url.endswith(f"#/document/{number}")
    assert page.complaints == []


def test_search_lights_up_documents(shown, themes):
    page = shown.page
    page.get_by_label("Search documents").fill("violin")
    page.keyboard.press("Enter")
    page.locator(".document-map.faded").wait_for()
    column = themes.vocabulary.index("violin")
    having = int((themes.counts[:, [column]].toarray() > 0).sum())
    assert page.locator(".map-panel h2").inner_text() == f"{having} documents"
    assert "q=violin" in page.url
    page.get_by_role("link", name="Remove the filter Words: violin").click()
    page.locator(".document-map:not(.faded)").wait_for()


WITHOUT_WEBGL = """() => {
    const get = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind === "webgl" ? null : get.call(this, kind, ...rest);
    };
}"""
OPAQUE_PIXELS = """() => {
    const from = document.querySelectorAll(".document-map canvas")[1];
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [from.width, from.height];
    const context = copy.getContext("2d");
    context.drawImage(from, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let count = 0;
    for (let i = 3; i < data.length; i += 4) count += data[i] > 100;
    return count;
}"""


@pytest.mark.parametrize("script", ["() => {}", WITHOUT_WEBGL], ids=["as it is", "without WebGL"])
def test_dots_are_drawn(opened, themes_file, script):
    page = opened(themes_file, "#/topics")
    page.page.evaluate(script)
    page.go("#/map")
    page.wait("document.querySelector('.document-map')?.dataset.drawn")
    page.page.wait_for_timeout(250)
    assert page.page.evaluate(OPAQUE_PIXELS) > 80 * 10
    assert page.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_names_are_in_the_window_and_apart(opened, themes_file, width):
    page = opened(themes_file, "#/map").page
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_timeout(400)
    boxes = page.locator(".region, .on-map").evaluate_all(
        "all => all.map((one) => { const box = one.getBoundingClientRect(); return [box.left, box.top, box.right, "
        "box.bottom, one.classList.contains('region')]; })"
    )
    regions = [box[:4] for box in boxes if box[4]]
    assert regions
    for left, top, right, bottom in regions:
        assert left >= 0
        assert right <= width
        over = [
            box
            for box in boxes
            if box[0] < right - 1 and left < box[2] - 1 and box[1] < bottom - 1 and top < box[3] - 1
        ]
        assert len(over) == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_large_corpus_is_a_stated_sample(opened, tmp_path, monkeypatch):
    from explorer_corpora import themed_page_data

    monkeypatch.setattr("polyseme.layout.document_map.MAX_POINTS", 30)
    data = themed_page_data()
    assert len(data.document_map.places) == 30
    write_page(data, tmp_path / "sample.html")
    page = opened(tmp_path / "sample.html", "#/map")
    page.wait("document.querySelector('.document-map')?.dataset.drawn")
    assert page.page.locator(".document-map").get_attribute("data-drawn") == "30"
    assert "the map shows 30 documents" in page.text(".map-title")
    figures = page.page.locator(".map-panel .shares .figure").all_text_contents()
    expected = sorted(data.topic_weights, reverse=True)  # of all documents
    np.testing.assert_allclose([float(text.rstrip("%")) / 100 for text in figures], expected, atol=0.0051)
    assert page.complaints == []


def test_hostile_names_of_regions_are_text(opened, tmp_path):
    from explorer_corpora import HOSTILE, themed_page_data

    data = themed_page_data(topic_names=dict(enumerate(HOSTILE)))
    write_page(data, tmp_path / "hostile.html")
    page = opened(tmp_path / "hostile.html", "#/map")
    page.wait("document.querySelector('.region')")
    names = page.page.locator(".region").evaluate_all("links => links.map((a) => a.getAttribute('aria-label'))")
    assert set(names) <= set(HOSTILE)
    assert page.page.evaluate("window.hacked") is None
