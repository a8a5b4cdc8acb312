"""Accessibility: axe finds no serious violation in any view, light or dark."""

import pytest

FRAGMENTS = (
    "#/map", "#/map?color=label", "#/map?q=ship",
    "#/topics", "#/topic/1", "#/documents", "#/document/0", "#/words", "#/word/bank", "#/documents?q=ship%20loan",
    "#/documents?q=zebra", "#/help", "#/paste", "#/labels", "#/labels/music", "#/time", "#/fit", "#/topic/99",
)  # fmt: skip


RULES = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}
"""In the dark scheme only the colors differ."""


@pytest.fixture(scope="module")
def axe():
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()


def serious(page, options):
    """Return (rule, elements) of the serious and critical violations that axe finds in the page."""
    found = page.evaluate("options => axe.run(document, options)", {"resultTypes": ["violations"], **options})
    return [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", RULES)
def test_axe_finds_nothing_serious(opened, themes_file, axe, scheme):
    shown = opened(themes_file, color_scheme=scheme)
    shown.page.evaluate(axe.axe_script)
    for fragment in FRAGMENTS:
        shown.go(fragment)
        if fragment == "#/paste":
            shown.page.get_by_label("Text").fill("bread and violins of the bank")
            shown.wait("document.querySelector('main svg.chart')")
        assert serious(shown.page, RULES[scheme]) == [], fragment


def test_axe_finds_an_injected_violation(opened, themes_file, axe):
    page = opened(themes_file, "#/topics").page
    page.evaluate(axe.axe_script)
    page.evaluate("document.querySelector('.lead').style.color = '#ddd'")
    assert [rule for rule, _ in serious(page, RULES["dark"])] == ["color-contrast"]


def test_a_view_announces_itself(themes_page):
    themes_page.go("#/topics")
    themes_page.page.get_by_role("navigation").get_by_role("link", name="Fit").click()
    themes_page.wait("document.activeElement.tagName === 'H1'")
    assert themes_page.page.title().startswith("How the fit went")
    assert themes_page.page.locator("nav [aria-current=page]").inner_text() == "Fit"


def test_skip_link(opened, themes_file):
    page = opened(themes_file).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
