"""The documentation runs: every block of a page, in order, in an empty folder.

Python blocks are executed. In `console` blocks the lines after `$` are commands of polyseme, which must succeed; the
other lines are what they print, in that order; `...` leaves lines out.
"""

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cli_runner import here

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """The blocks of a page, each with the lines before it left blank, so that tracebacks name its own lines."""
    text = page.read_text(encoding="utf-8")
    return [(found[1], "\n" * text.count("\n", 0, found.start(2)) + found[2]) for found in BLOCK.finditer(text)]


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if blocks(page)]


def test_there_are_pages():
    assert PAGES


def run_console(block, monkeypatch):
    """Runs the commands of a block, and looks for what it says they print."""
    printed = []
    for line in filter(str.strip, block.splitlines()):
        if line.startswith("$ "):
            command = shlex.split(line.removeprefix("$ "), comments=True)
            assert command[0] == "polyseme", line
            monkeypatch.setattr(sys, "argv", command)
            result = here(*command[1:])
            assert result.exit_code == 0, f"{line}\n{result.output}"
            printed = [words(line) for line in result.output.splitlines()]
        elif line.strip() != "...":
            assert words(line) in printed, f"{line}\nis not printed, but\n" + "\n".join(printed)
            printed = printed[printed.index(words(line)) + 1 :]


def words(line):
    """A line of output without its spaces and the lines of a table."""
    return " ".join(re.sub(r"[│┃|]", " ", line).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_runs(page, tmp_path, monkeypatch):
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    for kind, block in blocks(page):
        if kind == "python":
            exec(compile(block, str(page), "exec"), module.__dict__)
        else:
            run_console(block, monkeypatch)
