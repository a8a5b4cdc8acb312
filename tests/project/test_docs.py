"""The documentation: its code runs, its figures name their commands, and its links have targets.

The blocks of a page run in order in an empty folder. `python` blocks are executed. A `text` block right after one is
its output, which must be equal, unless the line before it is `<!-- varies: REASON -->`. In `console` blocks, lines
after `$` are polyseme commands, which must succeed; the other lines are their output in that order, and `...` skips
lines. `py` blocks are copies of sources (tools/include_source.py) and are compared with them.
"""

import importlib.util
import re
import shlex
import sys
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest

from cli_runner import here
from polyseme import datasets

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEXTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
MARKDOWN = [
    *TEXTS,
    *(ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(ROOT / folder / name for folder, name in (("reproductions", "README.md"), ("benchmarks", "RESULTS.md"))),
]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```python\n((?:(?!^```).)*?)^```\n\n(<!-- varies: .+? -->\n)?```text\n(.*?)^```$", re.M | re.S)


def blocks(page):
    """Return the kind and text of each block; blank lines before the text give tracebacks the page's line numbers."""
    text = page.read_text(encoding="utf-8")
    return [(found[1], "\n" * text.count("\n", 0, found.start(2)) + found[2]) for found in BLOCK.finditer(text)]


PAGES = [page for page in TEXTS if blocks(page)]


def test_there_are_pages():
    assert PAGES


def run_console(block, monkeypatch):
    """Run the commands of a block and check that they print the lines after them."""
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


def lines(text):
    """Return the lines of an output without spaces at their ends."""
    return [line.rstrip() for line in text.strip().splitlines()]


def words(line):
    """Return a line of output without the borders of a table and repeated spaces."""
    return " ".join(re.sub(r"[│┃|]", " ", line).split())


def name_of(page):
    return str(page.relative_to(ROOT if page.parent == ROOT else DOCS))


@pytest.fixture(scope="module")
def docstrings_of():
    """Return the function that parses a source file for the corpus of docstrings; it parses no file twice."""
    return cache(datasets._docstrings_of)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_runs(page, tmp_path, monkeypatch, docstrings_of):
    monkeypatch.setattr(datasets, "_docstrings_of", docstrings_of)
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    shown = {code: (varies, text) for code, varies, text in OUTPUT.findall(page.read_text(encoding="utf-8"))}
    for kind, block in blocks(page):
        if "\nimport mlflow\n" in block:
            pytest.importorskip("mlflow")  # no dependency: the rest of the page has run
        if kind == "python":
            with redirect_stdout(StringIO()) as printed:
                exec(compile(block, str(page), "exec"), module.__dict__)
            varies, text = shown.get(block.lstrip("\n"), ("yes", ""))
            assert printed.getvalue() or not text, f"nothing is printed, but the page shows\n{text}"
            assert varies or lines(printed.getvalue()) == lines(text)
        else:
            run_console(block, monkeypatch)


@pytest.fixture
def include_source():
    """Return the module tools/include_source.py."""
    spec = importlib.util.spec_from_file_location("include_source", ROOT / "tools" / "include_source.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_included_sources_are_up_to_date(include_source, capsys):
    assert all(include_source.INCLUDE.search(page.read_text(encoding="utf-8")) for page in include_source.PAGES)
    assert include_source.main(["--check"]) == 0, capsys.readouterr().out


def test_included_sources_are_found_by_name(include_source):
    start = "<!-- source: src/polyseme/errors.py InputError -->\n```py\n"
    page = include_source.updated(f"Text.\n\n{start}old\n```\n\nMore.\n")
    assert page.startswith(f"Text.\n\n{start}class InputError(")
    assert page.endswith("\n```\n\nMore.\n")
    with pytest.raises(LookupError, match=r"errors\.py has no top-level class or function Missing"):
        include_source.source_of(ROOT / "src" / "polyseme" / "errors.py", "Missing")


FIGURE = re.compile(
    r"(?<![\w.`])\d[\d.,]*"
    r"(?:\s?(?:ms|ns|s|seconds|minutes|MB/s|[kMGT]B|MiB|nats|points|times|GF/s)\b|\s?[%°]|x\b)"
    r"|(?<![\w`])0\.\d{3,}\b"
    r"|-\d\.\d{2,}"
    r"|\b\d+ (?:against|of) (?:the )?\d+"
)
"""A measured number: one with a unit, with three digits, or a count out of a total."""
SCRIPT = r"(?:benchmarks|examples|reproductions|tests|tools)/[\w/]+\.py"
COMMAND = re.compile(rf"(?:python|pytest) ({SCRIPT})([^`]*)`")
NAMED = re.compile(rf"`[^`]*(?:python |pytest|make |polyseme \w)[^`]*`|{SCRIPT}")
SETTINGS = (
    "`Limits` bounds the cost",
    "a topic is marked if its tokens",
    "The solver depends on the size of the data",
    "beat the unigram by three standard errors",
    "detects the language of each document of a sample",
    "mean interpolated precision at 9",
    "ten samples of 80% of them",
    "tempered EM on 90% of the tokens of every document",
    "under 99% of the model and 1% of independent modes",
)
"""Paragraphs whose numbers are settings and were not measured."""


def paragraphs(page):
    """Return the paragraphs of each section, without code and what it prints."""
    text = OUTPUT.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"^```(?:py|python|console)\n.*?^```$", "", text, flags=re.M | re.S)
    return [re.split(r"\n\s*\n", section) for section in re.split(r"^(?=#+ )", text, flags=re.M)]


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_figures_have_their_command_beside_them(page):
    """The command is in the same paragraph or table, or in the one before or after it."""
    alone = [
        here
        for section in paragraphs(page)
        for number, here in enumerate(section)
        if FIGURE.search(here)
        and not NAMED.search("\n".join(section[max(0, number - 1) : number + 2]))
        and not any(setting in " ".join(here.split()) for setting in SETTINGS)
    ]
    assert alone == []


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_named_commands_exist(page):
    """The scripts exist and have the options that they are called with."""
    for script, options in COMMAND.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / script).is_file(), script
        source = (ROOT / script).read_text(encoding="utf-8")
        for option in set(re.findall(r"--[a-z-]+", options)) - {"--help"}:
            assert f'"{option}"' in source, f"{script} {option}"


LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?)(?: +#+)?$", re.MULTILINE)


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Return the fragments of the headings of a page, as GitHub makes them."""
    names = [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(without_code(page))
    ]
    return {name if not (seen := names[:at].count(name)) else f"{name}-{seen}" for at, name in enumerate(names)}


def broken_links(page):
    """Return the relative links of a page to a missing file or heading."""
    found = []
    for link in LINK.findall(without_code(page)):
        path, _, fragment = link.partition("#")
        target = page if not path else (page.parent / path)
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (fragment and fragment not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_have_targets(page):
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# One: two\n\n## One two\n\n## One two\n", encoding="utf-8")
    page = tmp_path / "page.md"
    good = "[a](other.md) [b](other.md#one-two-2) [c](#here) ![d](https://example.org/d.png)"
    page.write_text(
        f"# Here\n{good}\n[e](none.md) [f](other.md#three) [g](#there)\n```\n[h](h.md)\n```\n", encoding="utf-8"
    )
    assert broken_links(page) == ["none.md", "other.md#three", "#there"]
