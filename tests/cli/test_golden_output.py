"""What the commands print at 80 columns, compared with stored text: words and layout, with every number as #.

After a deliberate change, POLYSEME_GOLDEN=write python -m pytest tests/cli/test_golden_output.py stores the new output.
"""

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyseme.cli.app import app

GOLDEN = Path(__file__).parents[1] / "golden"
THEMES = {
    "orchard": "Apples and pears grow in the orchard; the farmer picks cherries, plums and apples in autumn.",
    "harbor": "The ship leaves the harbor with a cargo of grain, and the sailors hoist the sail at dawn.",
    "kitchen": "The cook heats butter in a pan, adds onions and garlic, and stirs the soup with a spoon.",
}
SIZES = {"orchard": 18, "harbor": 12, "kitchen": 6}
"""Of different sizes, so that the order of the topics is certain."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("golden")
    for theme, text in THEMES.items():
        (place / "texts" / theme).mkdir(parents=True)
        for number in range(SIZES[theme]):
            (place / "texts" / theme / f"{number}.txt").write_text(
                f"{text} Note {number} of {theme}.", encoding="utf-8"
            )
    return place


def printed(place, *arguments):
    """Return standard output at 80 columns, with numbers as # and without spaces at the ends of lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("sys.argv", ["polyseme", *arguments])
        result = CliRunner().invoke(app, arguments, prog_name="polyseme", env={"COLUMNS": "80", "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    lines = [re.sub(r"[-+]?\d[\d,.]*\d|\d|\bnan\b", "#", line).rstrip() for line in result.stdout.splitlines()]
    return "\n".join(re.sub(" {2,}", "  ", line) for line in lines) + "\n"


COMMANDS = {
    "fit": ("fit", "texts", "-k", "3", "-o", "run", "--overwrite", "--max-df", "1"),
    "topics": ("topics", "run"),
    "search": ("search", "run", "apples", "and", "plums", "-n", "2"),
    "select": ("select", "texts", "-k", "2,3", "--no-refine", "--max-df", "1"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_as_stored(place, name):
    if name in ("topics", "search") and not (place / "run").exists():
        printed(place, *COMMANDS["fit"])
    found, stored = printed(place, *COMMANDS[name]), GOLDEN / f"{name}.txt"
    if os.environ.get("POLYSEME_GOLDEN") == "write":
        stored.write_text(found, encoding="utf-8")
    assert found == stored.read_text(encoding="utf-8")
