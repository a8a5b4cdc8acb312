"""Odd arguments, a read-only run and a lack of memory end with one line and the correct exit code."""

import csv
import errno
import io
import json
import os
import shutil
import sys
from pathlib import Path

import polars
import pytest

import polyseme.text
from cli_runner import TEXTS, run, write_folder
from polyseme import PLSA
from polyseme.cli.app import main
from polyseme.cli.commands.select import parse_n_topics
from polyseme.errors import InputError
from polyseme.retrieval import files as index_files
from polyseme.runs.tables import escape_formula


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = write_folder(tmp_path_factory.mktemp("made"))
    assert run("fit", "docs", "-k", "2", "-o", "run", "-q", "--no-page", cwd=place).exit_code == 0
    return place


BILLION = "1000000000"
LONG = "9" * 5000
"""More digits than Python converts to a number."""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("fit", ""), 1, "A path is empty: give a file, a folder or '-' for standard input."),
        (("transform", "run", ""), 1, "A path is empty"),
        (("fit", "docs", "-k", BILLION, "-q"), 1, "There are 30 documents, too few for 1,000,000,000 topics"),
        (("fit", "docs", "-k", "31", "-q"), 1, "There are 30 documents, too few for 31 topics: choose a smaller -k."),
        (("fit", "docs", "-k", "31", "-q", "--shards"), 1, "too few for 31 topics"),
        (("fit", "docs", "-k", "9" * 30, "-q"), 1, "-k must be at most 2147483647"),
        (("fit", "docs", "-k", LONG, "-q"), 2, "Invalid value for '-k'"),
        (("fit", "docs", "-k", "0", "-q"), 2, "Invalid value for '-k'"),
        (("select", "docs", "-k", "2,31", "-q"), 1, "too few for 31 topics"),
        (
            ("select", "docs", "-k", f"1:{BILLION[:-1]}:1", "-q"),
            1,
            "contains 100,000,000 numbers: choose a larger step",
        ),
        (("select", "docs", "-k", f"1:{BILLION}:1", "-q"), 1, "-k must be a range such as 5:60"),
        (("select", "docs", "-k", LONG, "-q"), 1, "-k must be a range such as 5:60"),
        (("edit", "run", "--rename", "²=x"), 1, "--rename must be a topic and a name"),
        (("edit", "run", "--rename", f"{LONG}=x"), 1, "--rename must be a topic and a name"),
        (("edit", "run", "--merge", "0,²"), 1, "--merge must be topics separated by commas"),
        (("edit", "run", "--merge", f"0,{LONG}"), 1, "--merge must be topics separated by commas"),
        (("edit", "run", "--delete", "9" * 30), 1, "There is no topic"),
        (("edit", "run", "--rename", "٣=x"), 1, "There is no topic 3: the run has topics 0 to 1."),
        (("explore", "run", "--stability", "9" * 30), 2, "Invalid value for '--stability'"),
        (("fit", "docs", "--background", "nan", "-q"), 2, "Invalid value for '--background'"),
        (("topics", ""), 1, "is not a run"),
        (("topics", "docs"), 1, "docs is not a run"),
    ],
)
def test_an_odd_argument_is_one_line(made, arguments, code, says):
    done = run(*arguments, cwd=made)
    assert done.exit_code == code, done.output
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("polyseme: ")
    assert says in lines[0]
    assert not (made / "docs-run").exists()


@pytest.mark.parametrize("option", [("-w",), ("-d",)])
def test_more_words_and_documents_than_there_are(made, option):
    done = run("topics", "run", *option, "9" * 30, cwd=made)
    assert done.exit_code == 0, done.output


def test_the_step_of_a_range_may_not_be_zero():
    with pytest.raises(InputError, match="step of -k must be at least 1"):
        parse_n_topics("1:5:0")


def test_a_lack_of_memory_is_one_line(made, monkeypatch):
    def fit(self, counts, y=None):
        raise MemoryError("Unable to allocate 7.45 TiB")

    monkeypatch.setattr(PLSA, "fit", fit)
    done = run("fit", "docs", "-k", "2", "-o", "new", "-q", cwd=made)
    assert done.exit_code == 1
    assert done.stderr.startswith("polyseme: Out of memory (Unable to allocate 7.45 TiB): use a smaller -k")
    assert not (made / "new").exists()


NOT_UTF8 = os.fsdecode(b"caf\xe9")
"""A name as Linux allows it, in which Python represents a byte by a surrogate."""


@pytest.fixture(scope="module")
def oddly_named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with documents whose names, and whose run, are not valid UTF-8."""
    place = tmp_path_factory.mktemp("odd")
    try:
        (place / NOT_UTF8).mkdir()
    except OSError:
        pytest.skip("the file system allows Unicode names only")
    for number, text in enumerate(TEXTS[:12]):
        (place / NOT_UTF8 / f"{NOT_UTF8}{number}.txt").write_text(text, encoding="utf-8")
    done = run("fit", NOT_UTF8, "-k", "2", "-o", f"{NOT_UTF8}-run", "-q", cwd=place)
    assert done.exit_code == 0, done.output
    return place


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", f"{NOT_UTF8}-run", "--json"),
        ("search", f"{NOT_UTF8}-run", "iron"),
        ("edit", f"{NOT_UTF8}-run", "--rename", f"0={NOT_UTF8}"),
        ("transform", f"{NOT_UTF8}-run", NOT_UTF8),
    ],
)
def test_a_run_with_a_name_that_is_not_utf8_is_used(oddly_named, arguments):
    done = run(*arguments, cwd=oddly_named)
    assert done.exit_code == 0, done.output
    done.output.encode()  # without surrogates


def test_a_parquet_file_with_a_name_that_is_not_utf8_is_read(oddly_named):
    polars.DataFrame({"text": TEXTS}).write_parquet(oddly_named / "table.parquet")
    (oddly_named / "table.parquet").rename(oddly_named / f"{NOT_UTF8}.parquet")
    assert len(list(polyseme.text.read(oddly_named / f"{NOT_UTF8}.parquet"))) == len(TEXTS)


@pytest.mark.parametrize("arguments", [("fit", "-"), ("transform", "run", "-"), ("edit", "run", "--names", "-")])
def test_a_closed_standard_input_is_one_line(made, arguments, monkeypatch, capsys):
    monkeypatch.chdir(made)
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "argv", ["polyseme", *arguments, "-q"])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 1
    assert capsys.readouterr().err.startswith("polyseme: Standard input is closed: give a file")


@pytest.mark.parametrize("output", ["ascii", "latin-1", "closed"])
@pytest.mark.parametrize("command", ["topics", "topics --json"])
def test_words_that_standard_output_cannot_encode_are_printed(made, tmp_path, output, command, monkeypatch):
    monkeypatch.chdir(made)
    shutil.copytree("run", tmp_path / "run")
    assert run("edit", "run", "--rename", "0=größte 東京", "-q", cwd=tmp_path).exit_code == 0
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", None if output == "closed" else io.TextIOWrapper(content, encoding=output))
    monkeypatch.setattr(sys, "argv", ["polyseme", *command.split(), str(tmp_path / "run")])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    if output == "closed":
        return
    sys.stdout.flush()
    if "--json" in command:
        assert "größte 東京" in {topic["name"] for topic in json.loads(content.getvalue())["topics"]}
    else:
        assert "größte 東京".encode(output, "backslashreplace") in content.getvalue()


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_read_only_run_is_searched(made, tmp_path, monkeypatch, code):
    shutil.copytree(made / "run", tmp_path / "run")

    def refused(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(index_files, "write_atomically", refused)
    done = run("search", "run", "iron", "--method", "plsi*", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    assert "copper is a metal" in done.stdout
    assert f"could not be stored in the run ({os.strerror(code)})" in " ".join(done.stderr.split())
    assert not (tmp_path / "run" / "search.safetensors").exists()


STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


@pytest.mark.parametrize("start", STARTS)
def test_a_spreadsheet_gets_no_formula(made, tmp_path, start):
    cell = f"{start}HYPERLINK(1)"
    assert escape_formula(cell) == "'" + cell
    with (tmp_path / "new.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["title", "text"], [cell, "apples and pears are fruit"]])
    done = run("transform", str(made / "run"), "new.csv", "--text", "text", "--title", "title", "-q", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    title = next(csv.DictReader(io.StringIO(done.stdout)))["title"]
    assert not title.startswith(STARTS)
    assert "HYPERLINK" in title
