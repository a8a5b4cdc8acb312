"""``--json``: what every command prints has the schema that ``polyseme schema`` prints, and nothing beside it."""

import json
from pathlib import Path

import pytest

from cli_runner import FRUIT, METAL, run
from polyseme.cli import console
from polyseme.cli.app import COMMANDS, app
from polyseme.cli.schemas import COMMANDS as SCHEMAS
from polyseme.cli.schemas import command_schema

jsonschema = pytest.importorskip("jsonschema")

WITHOUT = {"mcp", "schema"}
"""Commands that print JSON in any case."""
RESAMPLES = "--resamples", "3"
CALLS = {
    "compare": ["compare", "run", "run"],
    "edit": ["edit", "run", "--rename", "0=Zero"],
    "edit and refit": ["edit", "run", "--ban", "plums", "--refit", "--dry-run"],
    "edit --undo": ["edit", "run", "--undo"],
    "effects": ["effects", "run", "~ label", *RESAMPLES],
    "evaluate": ["evaluate", "run"],
    "evaluate residuals": ["evaluate", "run", "--residuals"],
    "evaluate new": ["evaluate", "run", "new.txt", "-q"],
    "explore": ["explore", "run"],
    "explore a picture": ["explore", "run", "--picture", "map.png"],
    "export": ["export", "run", "-o", "table.csv"],
    "fit": ["fit", "docs.csv", "-k", "2", "-o", "other", "--max-df", "1", "--page"],
    "fit with levels": [
        "fit",
        "docs.csv",
        "-k",
        "2",
        "-o",
        "third",
        "--max-df",
        "1",
        "--levels",
        "auto",
        "--consensus",
    ],
    "groups": ["groups", "run", *RESAMPLES],
    "merge": ["merge", "run", "run", "-o", "both"],
    "report": ["report", "run", "-o", "report.md"],
    "search": ["search", "run", "metal", "plums", "unknown"],
    "search without hits": ["search", "run", "unknown"],
    "select": ["select", "docs.csv", "-k", "2,3", "--runs", "1", "--no-refine", "--plot", "choice.svg", "-q"],
    "time": ["time", "run", "--every", "month", *RESAMPLES],
    "topics": ["topics", "run"],
    "transform": ["transform", "run", "new.txt", "-o", "weights.csv"],
    "update": ["update", "run", "new.txt", "--new-topics", "auto"],
    "update with nothing": ["update", "run", "new.txt"],
}
"""Commands in an order in which they can be called."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("schemas")
    rows = ["text,label,time"]
    for number in range(60):
        text, label = ((FRUIT, "orchard"), (METAL, "mine"))[number % 2]
        rows.append(f'"{text} {"extra" if number % 3 else "more"}",{label},1871-{1 + number % 12:02d}-01')
    (place / "docs.csv").write_text("\n".join(rows), encoding="utf-8")
    (place / "new.txt").write_text("\n".join([METAL] * 5 + [f"{FRUIT} grow"] * 5), encoding="utf-8")
    assert run("fit", "docs.csv", "-k", "2", "-o", "run", "--max-df", "1", "--no-page", "-q", cwd=place).exit_code == 0
    return place


def closed(schema):
    """Return a schema that refuses fields that it does not list."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if "properties" in schema else {}
    return {**{name: closed(part) for name, part in schema.items()}, **more}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_the_output_of_every_command_has_its_schema(place: Path, name: str) -> None:
    arguments = CALLS[name]
    result = run(*arguments, "--json", cwd=place)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    assert content["schema"] == f"{arguments[0]}/{console.SCHEMA_VERSION}"
    schema = command_schema(arguments[0])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(closed(schema)).validate(content)
    if "file" in content:
        assert (place / content["file"]).stat().st_size == content["bytes"]


def test_every_command_has_json_a_schema_and_a_call_above() -> None:
    import typer

    commands = typer.main.get_command(app).commands
    assert set(commands) == {command.__name__ for group in COMMANDS.values() for command in group}
    taking = {name for name, command in commands.items() if any("--json" in each.opts for each in command.params)}
    assert taking == set(SCHEMAS) == set(commands) - WITHOUT
    assert {call[0] for call in CALLS.values()} == taking - {"demo"}  # which test_app.py calls


def test_the_command_schema_prints_the_schema(place: Path) -> None:
    assert json.loads(run("schema", "time", cwd=place).stdout) == command_schema("time")
    result = run("schema", "tme", cwd=place)
    assert result.exit_code == console.FAILED
    assert "There is no schema 'tme': give one of compare," in result.stderr


def test_numbers_that_json_does_not_have_are_null() -> None:
    assert console.finite({"a": [1.0, float("nan"), (float("inf"), 2)]}) == {"a": [1.0, None, [None, 2]]}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["topics", "run"], 0),
        (["topics", "absent"], console.FAILED),
        (["topics", "run", "--level", "99", "--json"], console.FAILED),
        (["topics", "run", "--absent"], 2),
        (["absent"], 2),
    ],
)
def test_exit_codes_and_errors_on_standard_error(place: Path, arguments: list[str], code: int) -> None:
    """130, after Ctrl-C, is tested with fits that are interrupted."""
    result = run(*arguments, cwd=place)
    assert result.exit_code == code
    if code:
        assert result.stdout == ""
        assert result.stderr.startswith("polyseme: ")
        assert result.stderr.count("\n") == 1
