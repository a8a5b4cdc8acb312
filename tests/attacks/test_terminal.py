"""Control characters in titles, labels, ids and file names are shown, not sent to the terminal."""

import ast
import io
import json
import re
import unicodedata
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the extra 'cli' is not installed")

import rich.console
from rich.table import Table
from rich.text import Text

import polyseme.cli
from cli_runner import FRUIT, METAL, run
from polyseme.cli import console
from polyseme.cli.console import Console
from polyseme.progress import TerminalReporter, visible

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
"""OSC 52 makes the terminal copy a text to the clipboard."""
HOSTILE = f"{CLIPBOARD}\x9b31m[red]\u202eevil[/]\x1b[2J:smile:\x08\r\u2066\x7f\x00"
TAME = r"\x1b]52;c;cm0gLXJmIH4=\x07\x9b31m[red]\u202eevil[/]\x1b[2J:smile:\x08\x0d\u2066\x7f\x00"


def unsafe(text):
    """Return the characters of a text that must not reach a terminal."""
    return {
        character
        for character in text
        if character not in "\n\t"
        and (
            unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(character) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
        )
    }


def assert_safe(result):
    assert not unsafe(result.output), repr(result.output)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def test_control_characters_are_shown():
    assert visible(HOSTILE) == TAME
    assert visible("naïve – 東京 नमस्ते 👩‍👩‍👧\ttab\nline") == "naïve – 東京 नमस्ते 👩‍👩‍👧\ttab\nline"
    assert visible("a\n\tb\udc80", one_line=True) == r"a\n\tb\udc80"
    every = "".join(map(chr, range(0x110000)))
    assert not unsafe(visible(every))


def test_a_reporter_shows_control_characters():
    """Calls in Python report to a plain console of rich."""
    file = io.StringIO()
    report = TerminalReporter(rich.console.Console(file=file, width=200, markup=False, emoji=False))
    report.note(HOSTILE)
    with report.stage(HOSTILE) as update:
        update(1, 2, "half")
    assert file.getvalue() == f"{TAME}\n{TAME} ...\n"


def printed(*objects, width=200, **options):
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=True, color_system="standard").print(*objects, **options)
    return file.getvalue()


def test_rich_passes_no_control_characters_on():
    """Strings, styled text, and cells, title and headings of a table."""
    assert TAME in printed(HOSTILE)
    table = Table(HOSTILE, title=HOSTILE, caption=HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(HOSTILE))
    for object in (HOSTILE, Text(HOSTILE), table):
        output = printed(object)
        without_styles = re.sub(r"\x1b\[[0-9;]*m", "", output)
        assert not unsafe(without_styles), repr(output)
        assert r"\x1b]52;c;cm0gLXJmIH4=" in without_styles
        assert r"\x9b31m[red]\u202eevil[/]\x1b[2J:smile:" in without_styles


def test_styles_stay_on_their_words():
    text = Text("one ")
    text.append("a\x1bb\x9b", style="red")
    text.append(" end")
    text.append("\x1b", style="bold")
    assert printed(text) == "one \x1b[31ma\\x1bb\\x9b\x1b[0m end\x1b[1m\\x1b\x1b[0m\n"


def test_shown_characters_stay_within_the_table():
    table = Table()
    table.add_column("title", overflow="fold")
    table.add_row(Text("\x1b" * 30))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", printed(table, width=40)).splitlines()
    assert {len(line) for line in lines} == {len(lines[0])}
    assert re.sub(r"[│ ]", "", "".join(lines)).count("x1b") == 30


def test_long_titles_of_control_characters_take_linear_time():
    text = Text("a\x1b" * 200_000)
    text.stylize("bold", 5, 100_000)
    changed = console._visible_text(text)
    assert changed.plain == r"a\x1b" * 200_000
    assert [(span.start, span.end) for span in changed.spans] == [(5 + 3 * 2, 100_000 + 3 * 50_000)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return documents with hostile titles, labels and ids, and runs of them."""
    place = tmp_path_factory.mktemp("terminal")
    rows = [
        {
            "id": f"{HOSTILE}{i}",
            "text": FRUIT if i % 3 else METAL,
            "title": f"t{i}{HOSTILE}",
            "label": f"l{i % 3}{HOSTILE}",
        }
        for i in range(30)
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows) + "no JSON \x1b]52;c;x\x07\n"
    (place / f"docs{CLIPBOARD.replace('/', '')}.jsonl").write_text(content, encoding="utf-8")
    for name in ("run", "edited"):
        assert_safe(fit(place, name))
    return place


def fit(place, name):
    file = next(place.glob("docs*"))
    return run("fit", file.name, "-k", "2", "-o", name, "--no-page", "--max-iter", "5", cwd=place)


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "run"],
        ["topics", "run", "--json"],
        ["search", "run", "metal"],
        ["search", "run", "metal", "--json"],
        ["search", "run", '"is a metal"'],
        ["search", "run", f"{HOSTILE}3", "--like"],
        ["evaluate", "run"],
        ["evaluate", "run", "--json"],
        ["compare", "run", "edited"],
        ["compare", "run", "edited", "--json"],
    ],
    ids=" ".join,
)
def test_commands_show_control_characters(place, arguments):
    result = run(*arguments, cwd=place)
    assert_safe(result)
    assert result.exit_code == 0, result.output
    if arguments[0] in ("topics", "search"):
        assert r"\u001b]52" in result.output if "--json" in arguments else r"\x1b]52" in result.output


def test_json_is_the_same_data(place):
    documents = json.loads(run("topics", "run", "--json", cwd=place).stdout)["topics"][0]["documents"]
    assert documents
    assert all(document["title"].endswith(HOSTILE) for document in documents)


def test_fit_and_edit(place):
    fitted = fit(place, "another")
    assert_safe(fitted)
    assert r"\x1b]52" in fitted.output
    edited = run("edit", "edited", "--rename", f"0={HOSTILE}", cwd=place)
    assert_safe(edited)
    assert r"\x1b]52" in edited.output
    assert_safe(run("topics", "edited", cwd=place))
    assert_safe(run("compare", "run", "edited", cwd=place))


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_tables_are_printed_unchanged_except_to_a_terminal(place, monkeypatch, is_terminal, more):
    """The output to a pipe is the unchanged data."""
    monkeypatch.setattr(console, "_is_terminal", lambda: is_terminal)
    result = run("transform", "run", next(place.glob("docs*")).name, "--quiet", *more, cwd=place)
    assert result.exit_code == 0
    assert bool(unsafe(result.stdout)) != is_terminal
    if is_terminal:
        assert r"\x9b31m" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", f"absent{CLIPBOARD}"],
        ["fit", "there", "--text", f"column{CLIPBOARD}"],
        ["topics", f"absent{CLIPBOARD}\nWritten to run."],
        ["topics", f"there{CLIPBOARD}"],
        ["search", "run", f"unknown{CLIPBOARD}", "--like"],
        ["search", "run", "fruit", "--method", f"m{CLIPBOARD}"],
        ["search", "run", "[red]nothing[/]"],
        ["transform", "run", "there", "-o", f"x{CLIPBOARD}"],
        ["edit", "run", "--rename", f"x{CLIPBOARD}"],
        ["compare", "run", f"absent{CLIPBOARD}"],
        ["evaluate", "run", f"absent{CLIPBOARD}"],
        ["demo", "-o", f"there{CLIPBOARD}"],
        [f"command{CLIPBOARD}"],
        ["fit", f"--option{CLIPBOARD}"],
    ],
    ids=lambda arguments: repr(" ".join(arguments)),
)
def test_errors_that_quote_names(place, arguments):
    file = next(place.glob("docs*")).name
    (place / f"there{CLIPBOARD}").write_text("words", encoding="utf-8")
    result = run(*(file if argument == "there" else argument for argument in arguments), cwd=place)
    assert_safe(result)
    if "[red]" not in arguments[-1]:
        assert result.exit_code not in (0, None)
        assert result.stderr.splitlines()[-1].startswith("polyseme: ")
        assert r"\x1b]52" in result.stderr.splitlines()[-1]
    else:
        assert "Traceback" not in result.output


def test_everything_is_printed_by_the_console():
    """A command with its own rich console, or one that echoes a text, would print control characters."""
    folder = Path(polyseme.cli.__file__).parent
    allowed = {"console.py": {"echo"}, "app.py": {"echo"}}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module == "rich.console":
                assert "Console" not in [alias.name for alias in node.names], path.name
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == "echo" or (name == "print" and isinstance(node.func, ast.Name)):
                    assert name in allowed.get(path.name, ()), f"{path.name}, line {node.lineno}"
