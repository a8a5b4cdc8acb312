"""A Chromium that all browser tests share; they are skipped if it or playwright is not installed."""

import shutil

import pytest

from explorer_corpora import themed_page_data
from polyseme.explore import write_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium here (make browser installs one)")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Opened:
    """A page with its network requests, errors and console messages."""

    def __init__(self, browser, path, fragment="", **context):
        self.context = browser.new_context(viewport={"width": 1000, "height": 800}, **context)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self.note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.address = path.as_uri()
        self.page.goto(self.address + fragment)
        self.wait("document.documentElement.dataset.ready === 'all'")

    def note(self, message):
        """Keep errors and warnings, except those of a browser that draws without a graphics card about its speed."""
        if message.type in ("error", "warning") and "GL Driver Message (OpenGL, Performance" not in message.text:
            self.complaints.append(message.text)

    def wait(self, expression):
        """Wait until an expression is true; playwright's own wait uses eval in the page, which its policy forbids."""
        loop = "for (let i = 0; i < 1000 && !(EXPRESSION); i++) await new Promise((r) => setTimeout(r, 10));"
        assert self.page.evaluate(
            f"async () => {{ {loop} return Boolean(EXPRESSION); }}".replace("EXPRESSION", expression)
        )

    def go(self, fragment):
        """Show a view, and wait until it is there."""
        self.page.evaluate("document.getElementById('main').dataset.view = ''")
        if self.page.evaluate("location.hash") == fragment:
            self.page.evaluate("location.hash = '#/nowhere'")
        self.page.evaluate("fragment => { location.hash = fragment; }", fragment)
        self.wait("document.getElementById('main').dataset.view !== ''")
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")

    def text(self, selector="main"):
        return self.page.locator(selector).first.inner_text()


@pytest.fixture(scope="session")
def opened(browser):
    """Return a function opened(path, fragment, **context) whose pages are closed at the end."""
    all_opened = []

    def opens(path, fragment="", **context):
        all_opened.append(Opened(browser, path, fragment, **context))
        return all_opened[-1]

    yield opens
    for one in all_opened:
        one.context.close()


@pytest.fixture(scope="session")
def themes():
    return themed_page_data(
        selection=[{"k": k, "perplexity": 50 + (k - 4) ** 2, "error": 1.0} for k in range(2, 8)], chosen_size=4
    )


@pytest.fixture(scope="session")
def themes_file(themes, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "themes.html"
    write_page(themes, path, text="full")
    return path


@pytest.fixture(scope="module")
def themes_page(opened, themes_file):
    return opened(themes_file)
