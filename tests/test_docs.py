"""The documentation runs: every Python block of a page, in order, in an empty folder."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """The Python blocks of a page, each with the lines before it left blank, so that tracebacks name its own lines."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, found.start(1)) + found.group(1) for found in BLOCK.finditer(text)]


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if blocks(page)]


def test_there_are_pages():
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_runs(page, tmp_path, monkeypatch):
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), module.__dict__)
