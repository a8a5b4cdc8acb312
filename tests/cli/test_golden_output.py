"""Output of the commands at 80 columns, compared with stored text: words and layout, with every number as #.

After a deliberate change, POLYSEME_GOLDEN=write python -m pytest tests/cli/test_golden_output.py stores the new output.
"""

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyseme.cli.app import app

GOLDEN = Path(__file__).parents[1] / "golden"
MODELS = ("plsa", "lda", "ctm", "hierarchical", "nmf", "mixture")
THEMES = {
    "orchard": "apples pears orchard farmer cherries plums",
    "harbor": "ship harbor cargo grain sailors dawn",
    "kitchen": "butter pan onions garlic soup spoon",
}
SIZES = {"orchard": 18, "harbor": 12, "kitchen": 6}
"""Themes of different sizes, so that the order of the topics is certain."""


def text_of(theme: str, number: int) -> str:
    """Return a text. The words of a theme are in different numbers of documents, so that their order is certain."""
    size = SIZES[theme]
    words = [word for place, word in enumerate(THEMES[theme].split()) if number % size < size - place * size // 6]
    return f"Letter {number} from the {theme}\n\n{' '.join(words * 3)}."


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("golden")
    for theme, size in SIZES.items():
        for folder, numbers in (("texts", range(size)), ("more", range(size, size + 2))):
            (place / folder / theme).mkdir(parents=True)
            for number in numbers:
                path = place / folder / theme / f"{number}.txt"
                path.write_text(text_of(theme, number), encoding="utf-8")
    (place / "answer.txt").write_text("Here are the names:\n0. **Fruit**\n2. Ships\n", encoding="utf-8")
    return place


def printed(place, *arguments):
    """Return the output of a command at 80 columns, with numbers as # and without spaces at the ends of lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("sys.argv", ["polyseme", *arguments])
        result = CliRunner().invoke(app, arguments, prog_name="polyseme", env={"COLUMNS": "80", "TERM": "dumb"})
    assert result.exit_code in (0, 1), result.output
    shown = result.stdout if result.exit_code == 0 else result.stderr
    if "--names" in arguments:
        shown = result.stderr + shown
    if result.exit_code == 0 and arguments[0] != "transform":  # which prints CSV
        assert max(map(len, shown.splitlines()), default=0) <= 80
    lines = [re.sub(r"[-+]?\d[\d,.]*\d|\d|\bnan\b", "#", line).rstrip() for line in shown.splitlines()]
    return "\n".join(re.sub(" {2,}", "  ", line) for line in lines) + "\n"


COMMANDS = {
    "fit": ("fit", "texts", "-k", "3", "-o", "{run}", "--overwrite", "--max-df", "1", "--seed", "1"),
    "topics": ("topics", "{run}"),
    "search": ("search", "{run}", "apples", "and", "plums", "-n", "2"),
    "transform": ("transform", "{run}", "more", "-q"),
    "evaluate": ("evaluate", "{run}"),
    "compare": ("compare", "{run}", "plsa"),
    "explore": ("explore", "{run}"),
    "update": ("update", "{run}", "more"),
    "rename": ("edit", "{run}", "--rename", "0=First topic"),
    "merge": ("edit", "{run}", "--merge", "0,1", "--rename", "0=First topic"),
    "refit": ("update", "{run}", "more", "--refit"),
}
"""Commands in the order in which they run, because the last ones change the run."""
EDITS = {
    "names": ("--names", "answer.txt"),
    "unnamed": ("--merge", "1,2"),
    "dry": ("--merge", "1,2", "--rename", "1=Both", "--ban", "plums", "--dry-run"),
    "merge": ("--merge", "1,2", "--rename", "1=Both", "-q"),
    "undo": ("--undo",),
    "nothing": ("--undo",),
}
"""Options of edits, in the order in which they are made."""


@pytest.fixture(scope="module")
def outputs(place):
    """Return a function that runs all commands with a model, once, and returns their output."""
    known = {}

    def run(model):
        if model not in known:
            if model != "plsa":
                run("plsa")
            fit = (*COMMANDS["fit"], "--model", model)
            commands = {**COMMANDS, "fit": fit}
            known[model] = {
                name: printed(place, *(part.format(run=model) for part in command))
                for name, command in commands.items()
            }
        return known[model]

    return run


def check(found, stored):
    if os.environ.get("POLYSEME_GOLDEN") == "write":
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(found, encoding="utf-8")
    assert found == stored.read_text(encoding="utf-8")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_as_stored(outputs, model, name):
    check(outputs(model)[name], GOLDEN / model / f"{name}.txt")


def test_the_output_of_edits_is_as_stored(place):
    printed(place, *(part.format(run="edits") for part in COMMANDS["fit"]))
    for name, options in EDITS.items():
        check(printed(place, "edit", "edits", *options), GOLDEN / "edits" / f"{name}.txt")


def test_the_output_of_select_is_as_stored(place):
    check(printed(place, "select", "texts", "-k", "2,3", "--no-refine", "--max-df", "1"), GOLDEN / "select.txt")


def test_help_groups_the_commands(place):
    """Only the groups: the rest of the help is laid out by typer, whose versions differ."""
    shown = printed(place, "--help")
    groups = re.findall(r"^(\w[\w ]*):\n((?: +\w+ .*\n?)+)", shown.partition("Options:")[2], re.M)
    found = {heading: re.findall(r"^ +(\w+)", commands, re.M) for heading, commands in groups}
    assert found == {
        "Start": ["demo", "fit", "select"],
        "Look": ["topics", "explore", "search", "report"],
        "Measure": ["evaluate", "compare", "groups", "effects", "time"],
        "Use and change": ["transform", "update", "edit", "merge", "export"],
        "For programs": ["mcp", "schema"],
    }
