"""Options: the declarations, the signatures that repeat them, and the names of options in messages."""

import ast
import inspect
from pathlib import Path

import pytest
import typer

import polyseme
from polyseme import InputError, Run, options
from polyseme.cli.app import app
from polyseme.options import EDITING, FIT, OPTIONS, RANDOM_STATE, READING, SAMPLING, SEARCHING, named, naming_flags
from polyseme.text import read
from polyseme.text.readers.sources import open_source

SOURCES = Path(options.__file__).parent


@pytest.mark.parametrize(
    ("function", "declared", "others"),
    [
        (polyseme.fit, FIT, {"source", "namer", "verbose"}),
        (read, (*READING, *SAMPLING, RANDOM_STATE), {"paths", "limits"}),
        (open_source, (*READING, *SAMPLING, RANDOM_STATE), {"source", "limits"}),
        (Run.search, SEARCHING, {"self", "query", "n_documents"}),
        (Run.edit, EDITING, {"self", "level", "verbose"}),
    ],
)
def test_signatures_have_the_declared_options_and_defaults(function, declared, others):
    parameters = inspect.signature(function).parameters
    assert set(parameters) == {option.name for option in declared} | others
    for option in declared:
        assert (parameters[option.name].default or None) == (option.default or None), option.name


def test_options_of_the_same_name_have_the_same_flag():
    for option in (*FIT, *SEARCHING, *EDITING):
        assert option.declared_flags == OPTIONS[option.name].declared_flags


def test_messages_name_only_options_that_commands_have():
    """`named` falls back to the Python name, so a misspelled name would go unseen."""
    calls = [
        node
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "named"
    ]
    names = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert len(names) > 20
    assert names <= set(OPTIONS)
    commands = typer.main.get_command(app).commands.values()
    flags = {flag for command in commands for each in command.params for flag in (*each.opts, *each.secondary_opts)}
    with naming_flags():
        assert {named(name) for name in names} <= flags


def test_an_option_is_named_in_the_words_of_the_interface():
    values = ("n_topics", None), ("n_topics", 7), ("resume", True), ("shards", False), ("categories", None)
    python = ["n_topics=", "n_topics=7", "resume=True", "shards=False", "categories="]
    assert [named(*each) for each in values] == python
    with naming_flags():
        assert [named(*each) for each in values] == ["-k", "-k 7", "--resume", "--in-memory", "--category"]
        with pytest.raises(InputError, match="-k must be"):
            OPTIONS["n_topics"].check(0)
    assert [named(*each) for each in values] == python


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_topics", 2.5, "n_topics= must be a whole number of at least 1, got 2.5"),
        ("n_topics", True, "n_topics= must be a whole number of at least 1, got True"),
        ("random_state", None, "random_state= must be a whole number from 0 to 4294967295, got None"),
        ("max_df", float("nan"), "max_df= must be a number from 0.0 to 1.0, got nan"),
        ("page_text", "all", "page_text= must be auto, full, excerpt or none, got 'all'"),
        ("sample", 0, "sample= must be a whole number of at least 1, got 0"),
    ],
)
def test_python_calls_are_checked_by_the_declarations_before_any_work(name, value, message):
    with pytest.raises(InputError, match=message):
        polyseme.fit(iter([]), **{name: value})


def test_a_share_of_1_is_not_a_number_of_documents():
    """scikit-learn reads max_df=1 as one document, and the message about too few words recommends it."""
    texts = ["red wine cheese", "red wine bread", "red guitar drums"] * 10
    run = polyseme.fit(texts, 2, max_df=1, levels="none")
    assert "red" in run.vocabulary


def test_help_has_groups_and_rare_options_last(capsys):
    with pytest.raises(SystemExit):
        app(["fit", "--help"], prog_name="polyseme")
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Arguments:", "Input:", "Words:", "Topics:", "Output:", "Long fits:"]
    first = [lines[lines.index(heading) + 1].split()[0] for heading in headings[1:]]
    assert first == ["--text", "--language", "-k", "-o,", "--resume"]


def test_messages_of_the_process_that_reads_untrusted_files_have_the_words_of_the_interface(tmp_path):
    pl = pytest.importorskip("polars")
    pl.DataFrame({"one": ["a"], "two": ["b"]}).write_parquet(tmp_path / "table.parquet")
    with naming_flags(), pytest.raises(InputError, match="name it with --text; it has"):
        list(read(tmp_path / "table.parquet"))
    with pytest.raises(InputError, match="name it with text=; it has"):
        list(read(tmp_path / "table.parquet"))
