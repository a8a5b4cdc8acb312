"""``polyseme select``: the table, the plot and the choice of the number of topics."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_runner import run
from polyseme import InputError
from polyseme.cli.commands.select import default_plot, parse_n_topics
from polyseme.datasets import synthetic_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """Return a folder with letters.txt: 200 documents of four themes, one per line."""
    place = tmp_path_factory.mktemp("select")
    topics = np.random.default_rng(8).dirichlet(np.full(200, 0.05), 4)
    corpus = synthetic_corpus(200, topic_word=topics, length=60, random_state=8)
    (place / "letters.txt").write_text("\n".join(document.text for document in corpus), encoding="utf-8")
    return place


OPTIONS = ("--language", "none", "--max-df", "1")


def test_select_prints_a_table_and_writes_a_plot(folder: Path) -> None:
    result = run("select", "letters.txt", "-k", "2:12", *OPTIONS, cwd=folder)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines() if line.strip().startswith(">")]
    assert [(row[1], row[-2:]) for row in rows] == [("4", ["to", "predict"]), ("5", ["to", "read"])]
    assert "5 topics to read, the most at which fits to samples agree. Numbers between 5 and 25 were" in " ".join(
        result.output.split()
    )
    assert "Plot: letters-topics.png" in result.output
    assert (folder / "letters-topics.png").read_bytes().startswith(b"\x89PNG")
    assert not list(folder.glob("*.part"))


def test_json_contains_the_whole_choice(folder: Path) -> None:
    result = run(
        "select", "letters.txt", "-k", "2,4,8", "--runs", "1", "--no-refine", "--plot", "choice.svg", "--json", "-q",
        *OPTIONS, cwd=folder,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["chosen_to_predict"] == 4
    assert found["chosen_to_read"] == 5
    assert found["plot"] == "choice.svg"
    assert [row["n_topics"] for row in found["rows"] if row["perplexity"] is not None] == [2, 4, 8]
    assert [row["n_topics"] for row in found["rows"] if row["agreement"] is not None][:4] == [5, 6, 7, 8]
    assert found["rows"][0]["stability"] is None
    assert "<svg" in (folder / "choice.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (None, None),
        ("5:60", [5, 7, 9, 11, 15, 20, 26, 35, 46, 60]),
        ("5:20:5", [5, 10, 15, 20]),
        ("7", [7]),
        ("3, 9,27", [3, 9, 27]),
    ],
)
def test_ranges(text: str | None, numbers: list[int] | None) -> None:
    assert parse_n_topics(text) == numbers


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("60:5", "The range of numbers of topics is empty: 5 is less than 60."),
        ("60:5:5", "-k 60:5:5: give numbers"),
        ("5:60:0", "The step of -k must be at least 1."),
        ("0,2", "-k 0,2: give numbers"),
        ("many", "-k must be a range such as 5:60"),
        ("-3:5", "-k must be a range such as 5:60"),
    ],
)
def test_wrong_ranges(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_n_topics(text)
    assert str(caught.value).startswith(sentence)


def test_errors_are_one_line(folder: Path) -> None:
    (folder / "few.txt").write_text("one line of words\nanother line of words\nwords again", encoding="utf-8")
    result = run("select", "few.txt", "-k", "2:3", *OPTIONS, cwd=folder)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == ("polyseme: --folds 5 is more than the 3 documents: use at most 3 folds.")
    result = run("select", "letters.txt", "--plot", "nowhere/choice.png", cwd=folder)
    assert result.exit_code == 1
    assert "--plot: the folder nowhere does not exist." in result.stderr
    result = run("select", "letters.txt", "--plot", "choice.xyz", "-k", "2", "--runs", "1", *OPTIONS, cwd=folder)
    assert result.exit_code == 1
    assert "polyseme: --plot cannot write the format 'xyz': use .png, .svg or .pdf." in result.stderr


def test_the_plot_is_named_after_the_input() -> None:
    assert default_plot(["news.csv.gz"]) == Path("news-topics.png")
    assert default_plot(["-"]) == Path("polyseme-topics.png")
