"""``polyseme search``: hits with their words, all methods, and queries without a hit."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cli_runner import FRUIT, METAL, here
from polyseme.retrieval.scores import METHODS
from polyseme.runs.documents import unique_ids
from polyseme.runs.search_index import INDEX_FILE, read_run_index
from polyseme.runs.store import RunStore


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
    assert sum(1 + hit["n_duplicates"] for hit in found["hits"]) >= 10
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


BUILDING = "Building the search index, once for this run"


def test_the_index_is_built_once(finished: Path) -> None:
    first = here("search", "run", "plums", "--json")
    assert BUILDING in first.stderr
    second = here("search", "run", "plums", "--json")
    assert second.stderr == ""
    assert second.stdout == first.stdout
    assert second.stdout == here("search", "run", "plums", "--json", "-q").stdout
    assert json.loads(first.stdout)["hits"][0]["excerpt"] == FRUIT
    table = here("search", "run", "plums").stdout
    (finished / INDEX_FILE).unlink()
    again = here("search", "run", "plums", "-q")
    assert (again.stdout, again.stderr) == (table, "")


def test_lsi_is_added_to_a_stored_index(finished: Path) -> None:
    here("search", "run", "plums", "-q")
    first = here("search", "run", "plums", "--method", "lsi", "--json")
    assert "once for this run" in first.stderr
    assert BUILDING not in first.stderr
    second = here("search", "run", "plums", "--method", "lsi", "--json")
    assert (second.stdout, second.stderr) == (first.stdout, "")
    found = read_run_index(RunStore.open(finished), finished / INDEX_FILE)
    assert found.words.supports("plsi-u")


def test_a_damaged_index_is_built_again(finished: Path) -> None:
    expected = here("search", "run", "plums", "--json").stdout
    content = (finished / INDEX_FILE).read_bytes()
    for place in range(0, len(content), len(content) // 12):
        damaged = bytearray(content)
        damaged[place : place + 200] = bytes(200)
        (finished / INDEX_FILE).write_bytes(damaged)
        again = here("search", "run", "plums", "--json")
        assert again.exit_code == 0, again.output
        assert again.stdout == expected
        if BUILDING in again.stderr:
            assert (finished / INDEX_FILE).read_bytes() == content
    for wrong in (b"", b"text", content[:-1]):
        (finished / INDEX_FILE).write_bytes(wrong)
        assert here("search", "run", "plums", "--json").stdout == expected
        assert (finished / INDEX_FILE).read_bytes() == content


def test_the_index_of_an_older_state_is_built_again(finished: Path) -> None:
    assert here("search", "run", "plums").exit_code == 0
    assert here("edit", "run", "--rename", "0=Fruit").exit_code == 0
    assert BUILDING in here("search", "run", "plums").stderr
    assert BUILDING not in here("search", "run", "plums").stderr
    store = RunStore.open(finished)
    store.info = replace(store.info, written="later")
    store.write()
    assert BUILDING in here("search", "run", "plums").stderr


def test_a_damaged_run_beside_a_good_index_is_reported(finished: Path) -> None:
    assert here("search", "run", "plums").exit_code == 0
    (finished / "run.json").write_text("{", encoding="utf-8")
    ended = here("search", "run", "plums")
    assert ended.exit_code == 1
    assert "run.json is damaged" in " ".join(ended.stderr.split())


PROGRAM = """
import json, sys
from polyseme.cli.app import main
sys.argv = ["polyseme", "search", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    print(json.dumps([ended.code, sorted(sys.modules)]), file=sys.stderr)
"""
SLOW = ("sklearn", "scipy", "polars", "pandas", "joblib", "polyseme.estimators", "polyseme.solvers", "polyseme.metrics")


@pytest.mark.parametrize("method", METHODS)
def test_a_stored_index_answers_without_slow_imports(finished: Path, method: str) -> None:
    first = here("search", "run", "plums", "--method", method, "--json")
    for more in (["plums", "--json"], ["plums"], ["1", "--like"]):
        arguments = [sys.executable, "-P", "-c", PROGRAM, "run", *more, "--method", method]
        done = subprocess.run(arguments, cwd=finished.parent, capture_output=True, text=True, check=True)
        code, modules = json.loads(done.stderr.splitlines()[-1])
        assert code == 0
        assert not {name for name in modules if name.startswith(SLOW)}
        if "--json" in more:
            found, expected = json.loads(done.stdout), json.loads(first.stdout)
            assert [hit["id"] for hit in found["hits"]] == [hit["id"] for hit in expected["hits"]]
            scores = [hit["score"] for hit in expected["hits"]]
            assert [hit["score"] for hit in found["hits"]] == pytest.approx(scores, rel=1e-6)


def test_documents_like_a_document() -> None:
    hits = json.loads(here("search", "run", "1", "--like", "--json", "-n", "3").stdout)["hits"]
    assert "1" not in [hit["id"] for hit in hits]
    assert len(hits) == 2  # one of the copies of each of two texts


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
