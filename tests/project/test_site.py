"""The documentation site builds without warnings, is complete, and works without a network."""

import importlib
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the site needs the dependency group docs")
pytest.importorskip("mkdocstrings", reason="the site needs the dependency group docs")

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site and return its folder."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture
def tool(monkeypatch):
    """Return a function that imports a module of the folder tools."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module


def documented(site):
    """Return the full names that have an entry in the reference."""
    inventory = (site / "objects.inv").read_bytes()
    lines = zlib.decompress(inventory.split(b"zlib.\n", 1)[1]).decode().splitlines()
    return {line.split()[0] for line in lines}


def test_each_public_name_has_a_page(site, tool):
    found = tool("site_pages").reference()
    names = {f"{module}.{name}" for module, pages in found.items() for name in pages if name != "Overview"}
    assert {"polyseme.PLSA", "polyseme.priors.Dirichlet", "polyseme.text.Vectorizer", "polyseme.typing.Hit"} <= names
    known = documented(site)
    known |= {name.rpartition(".")[0] for name in known if name.split(".")[-1] == name.split(".")[-2]}  # see _name_page
    assert sorted(names - known) == []  # a name without a docstring has no entry
    assert sorted(name for name in names if not (site / "reference" / f"{name}.html").is_file()) == []


def test_examples_come_before_the_parameters(site, tool):
    page = (site / "reference" / "polyseme.PLSA.html").read_text(encoding="utf-8")
    assert 0 < page.index("Examples:") < page.index("Parameters:") < page.index("References")
    moved = tool("examples_first").examples_first
    assert moved("A.\n\nParameters\n----------\na\n\nExamples\n--------\n>>> 1\n\n>>> 2\n\nNotes\n-----\nb") == (
        "A.\n\nExamples\n--------\n>>> 1\n\n>>> 2\n\nParameters\n----------\na\n\nNotes\n-----\nb"
    )
    assert moved("A.\n\nExamples\n--------\n>>> 1") == "A.\n\nExamples\n--------\n>>> 1"
    assert moved("A.") == "A."


def test_every_page_is_in_the_navigation(site):
    front = (site / "index.html").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if f'href="{page.as_posix()}"' not in front] == []


def test_pages_load_nothing_from_the_network(site):
    loads = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*\bhref=\"?(?:https?:)?//"
    )
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    assert [page.name for page in pages if loads.search(page.read_text(encoding="utf-8"))] == []
    styles = [sheet.read_text(encoding="utf-8") for sheet in site.rglob("*.css")]
    assert not any(re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", style) for style in styles)


def test_search_works_from_the_disk(site):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium (make browser)")
    page = f"{(site / 'index.html').as_uri()}?q=decorrelation"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    dom = subprocess.run([browser, *options, page], capture_output=True, text=True, timeout=120).stdout
    assert re.search(r"\d+ matching documents", dom)
    assert "reference/polyseme.priors.Decorrelation.html" in dom.replace("%20", " ")
