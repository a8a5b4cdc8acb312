"""``polyseme search``: hits with their words, all methods, and queries without a hit."""

import json
from pathlib import Path

import pytest

from cli_runner import FRUIT, METAL, here
from polyseme.cli.commands.search import INDEX_FILE
from polyseme.runs.documents import unique_ids


@pytest.fixture(autouse=True)
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run of sixty lines of two themes; only some of the lines about metals mention copper."""
    monkeypatch.chdir(tmp_path)
    lines = [FRUIT if number % 3 else METAL if number % 2 else METAL.replace("copper", "tin") for number in range(60)]
    Path("in.txt").write_text("\n".join(lines), encoding="utf-8")
    assert here("fit", "in.txt", "-k", "2", "-o", "run", "--max-df", "1", "-q").exit_code == 0
    return tmp_path / "run"


def test_the_table_shows_hits_with_their_words() -> None:
    result = here("search", "run", "copper", "-n", "12")
    assert result.exit_code == 0, result.output
    assert "iron is a metal" in result.stdout
    assert "(copper)" in result.stdout  # a document without the word, found by its topic
    assert "apples" not in result.stdout


@pytest.mark.parametrize("method", ["tf", "tfidf", "bm25", "lsi", "plsi-u", "plsi-q"])
def test_every_method(method: str) -> None:
    result = here("search", "run", "plums", "--method", method, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["method"] == method
    assert len(found["hits"]) == 10
    assert all((int(hit["id"]) - 1) % 3 for hit in found["hits"])  # the lines about fruit
    assert "plums" in {reason["word"] for reason in found["hits"][0]["words"]}


def test_the_models_of_plsi_star_are_fitted_once(finished: Path) -> None:
    first = here("search", "run", "plums", "--method", "plsi*", "--json")
    assert first.exit_code == 0, first.output
    assert (finished / INDEX_FILE).is_file()
    assert "Fitting the models" in first.stderr
    second = here("search", "run", "plums", "--method", "plsi*", "--json")
    assert "Fitting the models" not in second.stderr
    assert json.loads(second.stdout)["hits"] == json.loads(first.stdout)["hits"]


def test_documents_like_a_document() -> None:
    hits = json.loads(here("search", "run", "1", "--like", "--json", "-n", "3").stdout)["hits"]
    assert "1" not in [hit["id"] for hit in hits]
    assert len(hits) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("search", "run", "zebra"), 0, "The query has no words that the index knows."),
        (("search", "run", ""), 0, "The query has no words that the index knows."),
        (("search", "run", "the and"), 0, "The query has no words that the index knows."),
        (("search", "run", "nobody", "--like"), 1, "There is no document with the id 'nobody' in the index."),
        (("search", "run", "plums", "--method", "magic"), 1, "method must be one of"),
        (("search", "nowhere", "plums"), 1, "nowhere is not a run"),
    ],
)
def test_queries_without_a_hit(arguments: tuple[str, ...], code: int, sentence: str) -> None:
    result = here(*arguments)
    assert result.exit_code == code, result.output
    assert sentence in result.stdout + result.stderr


def test_equal_ids_of_different_files_get_the_file_name() -> None:
    assert unique_ids(["1", "2"], ["a", "a"]) == ["1", "2"]
    assert unique_ids(["1", "1"], ["x/a", "x/b"]) == ["x/a:1", "x/b:1"]
    assert unique_ids(["1", "1", "b"], ["a", "a", "b"]) == ["a:1", "a:1#2", "b"]
