"""The documentation site builds without warnings, is complete and accessible, and works without a network."""

import re
import shutil
import subprocess
import sys
import tomllib
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx_gallery", reason="the site needs the dependency group docs")
pytest.importorskip("pydata_sphinx_theme", reason="the site needs the dependency group docs")

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site and return its folder."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "tools" / "build_site.py"), str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """Return the links and the ids of each page."""
    found = sorted(path for path in site.rglob("*.html") if path.relative_to(site).parts[0] != "_static")
    return {path: Page.of(path) for path in found}


class Page(HTMLParser):
    """Links, ids and first heading of a page."""

    def __init__(self):
        super().__init__()
        self.links, self.ids, self.heading, self.in_heading = [], set(), "", False

    @classmethod
    def of(cls, path):
        page = cls()
        page.feed(path.read_text(encoding="utf-8"))
        return page

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        self.in_heading = tag == "h1" and not self.heading

    def handle_data(self, data):
        if self.in_heading:
            self.heading, self.in_heading = data, False


def test_each_public_name_has_a_page(site, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from build_site import reference

    names = {f"{module}.{name}" for module, names in reference().items() for name in names}
    assert {"polyseme.PLSA", "polyseme.priors.Dirichlet", "polyseme.text.Vectorizer", "polyseme.typing.Hit"} <= names
    inventory = (site / "objects.inv").read_bytes()
    known = {line.split()[0] for line in zlib.decompress(inventory.split(b"zlib.\n", 1)[1]).decode().splitlines()}
    assert sorted(names - known) == []
    assert sorted(name for name in names if not (site / "reference" / f"{name}.html").is_file()) == []


def test_examples_come_before_the_parameters(site):
    page = (site / "reference" / "polyseme.PLSA.html").read_text(encoding="utf-8")
    assert 0 < page.index(">Examples<") < page.index(">Parameters<") < page.index(">References<")


def test_every_page_has_its_place(pages, site):
    """A page of the theme, such as search.html, must not replace a page of the documentation."""
    contents = tomllib.loads((ROOT / "docs" / "contents.toml").read_text(encoding="utf-8"))
    listed = {page for groups in contents.values() for group in groups.values() for page in group}
    written = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written - listed == {"index", "names"}
    for name in written:
        first = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0]
        assert pages[site / f"{name}.html"].heading == first.removeprefix("# ").replace("`", "")


def test_examples_of_the_gallery_have_pictures(site):
    examples = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    assert len(examples) > 5
    for example in examples:
        page = (site / "gallery" / f"{example.stem}.html").read_text(encoding="utf-8")
        assert f"sphx_glr_{example.stem}_001.png" in page


def test_internal_links_have_targets(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            if not target.exists() or (fragment and target in pages and fragment not in pages[target].ids):
                broken.append((path.name, link))
    assert broken == []


def test_pages_load_nothing_from_the_network(site, pages):
    loads = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*\bhref=\"?(?:https?:)?//"
    )
    assert len(pages) > 200
    assert [page.name for page in pages if loads.search(page.read_text(encoding="utf-8"))] == []
    styles = [sheet.read_text(encoding="utf-8") for sheet in site.rglob("*.css")]
    assert not any(re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", style) for style in styles)


@pytest.fixture(scope="module")
def browser():
    """Start Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    command = next(filter(None, map(shutil.which, BROWSERS)), None)
    if command is None:
        pytest.skip("no Chromium (make browser)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=command, args=["--no-sandbox"])
        yield started
        started.close()


def test_search_works_from_the_disk(site, browser):
    page = browser.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q=decorrelation")
    page.wait_for_selector("#search-results a[href*='polyseme.priors.Decorrelation.html']")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_axe_finds_nothing_serious(site, browser, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)
    for name in (
        "index.html", "guides.html", "groups.html", "gallery/index.html", "gallery/plot_1_folder_of_texts.html",
        "names.html", "reference/polyseme.priors.html", "reference/polyseme.PLSA.html", "search.html?q=decorrelation",
    ):  # fmt: skip
        page.goto(f"{site.as_uri()}/{name}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.evaluate(axe.axe_script)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        serious = [violation for violation in found if violation["impact"] in ("serious", "critical")]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in serious] == [], name
