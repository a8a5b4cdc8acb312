"""``polyseme fit --shards``: the same run as from memory, and runs that are too large for memory."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from cli_runner import TEXTS, run, write_folder, write_texts
from polyseme import PLSA, ModelFileError
from polyseme.data import shard_writer as writing
from polyseme.data.disk import LocalShards
from polyseme.estimators import likelihood
from polyseme.runs import choosing, open_run
from polyseme.runs import documents as storing
from polyseme.runs.store import SHARDS_FOLDER
from polyseme.scale import open_shards
from polyseme.selection.reading import shared_topics
from shard_runs import MODEL, fitted, make_loading_small, make_small, same_files


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_small(monkeypatch)
    write_texts(tmp_path, 300)
    return tmp_path


# The same run as from memory


def test_a_run_of_shards_has_the_content_of_a_run_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr(writing, "_MIN_NONZEROS", 40)
    monkeypatch.setattr(storing, "BLOCK", 500)
    write_folder(tmp_path)
    for name, more in (("plain", ()), ("run", ("--shards",))):
        result = run("fit", "docs", "-k", "2", "-o", name, "--max-df", "1", *more, cwd=tmp_path)
        assert result.exit_code == 0, result.output
    plain, found = open_run(tmp_path / "plain"), open_run(tmp_path / "run")
    assert {path.name for path in found.path.iterdir()} == {
        "model.safetensors", "doc_topic.npy", "doc_weights.npy", "vectorizer.json", "shards", "topics.csv",
        "documents.index", "documents.blocks", "places.npy", "run.json", "explorer.html",
    } == {path.name for path in plain.path.iterdir()}  # fmt: skip
    assert {path.name for path in (found.path / "shards").iterdir()} == {
        path.name for path in (plain.path / "shards").iterdir()
    }
    assert len(found.store.shards.manifest.shards) > 3
    assert found.info.shards == len(found.store.shards.manifest.shards)
    assert found.vocabulary == plain.vocabulary
    assert (found.counts != plain.counts).nnz == 0
    assert found.texts == plain.texts
    columns = ["id", "title", "label", "time", "source", "excerpt", "tokens"]
    assert found.documents.columns == plain.documents.columns
    assert found.documents.select(columns).equals(plain.documents.select(columns))
    np.testing.assert_array_equal(found.documents.select("topic_0", "topic_1").to_numpy(), found.model.doc_topic_)
    for name in ("documents", "words", "tokens", "counting", "left_out", "problems"):
        assert getattr(found.info, name) == getattr(plain.info, name)
    table, other = (run("topics", name, "--json", cwd=tmp_path) for name in ("run", "plain"))
    assert {row["coherence"] for row in json.loads(table.stdout)["topics"]} == {
        row["coherence"] for row in json.loads(other.stdout)["topics"]
    }


def test_a_small_corpus_is_loaded_and_has_the_topics_of_a_fit_in_memory(place: Path) -> None:
    found = fitted(place)
    assert len(found.store.shards.manifest.shards) > 3
    assert found.model.solver_ == "scd"
    result = run("fit", "lines.txt", *MODEL, "-o", "plain", cwd=place)
    assert result.exit_code == 0, result.output
    plain = open_run(place / "plain")
    assert plain.vocabulary == found.vocabulary
    np.testing.assert_array_equal(found.model.components_, plain.model.components_)
    np.testing.assert_array_equal(found.model.history_["objective"], plain.model.history_["objective"])
    np.testing.assert_allclose(found.model.doc_topic_, plain.model.doc_topic_, atol=1e-6)
    np.testing.assert_allclose(found.model.topic_weights_, plain.model.topic_weights_, rtol=1e-6)


def test_topics_are_those_of_the_same_solver_in_memory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_loading_small(monkeypatch)
    monkeypatch.setattr(likelihood, "_fitted_to_sample", lambda settings, corpus, model, rng, phi: phi)
    found = fitted(place)
    assert len(found.store.shards.manifest.shards) > 3
    assert found.model.solver_ == "em"
    start = (None, shared_topics(found.counts, 3))
    in_memory = PLSA(3, init=start, solver="em", random_state=0, max_iter=5)
    with pytest.warns(match="max_iter"):
        in_memory.fit(found.counts)
    # The counts are equal; float32 factors that are summed in another order differ by rounding.
    np.testing.assert_allclose(found.model.components_, in_memory.components_, rtol=2e-3, atol=1e-7)
    np.testing.assert_allclose(found.model.log_likelihood_, in_memory.log_likelihood_, rtol=1e-6)
    np.testing.assert_allclose(found.model.doc_topic_, found.model.transform(found.counts), atol=2e-4)
    with pytest.warns(match="max_iter"):
        again = PLSA(3, init=start, random_state=0, max_iter=5).fit(open_shards(found.path / SHARDS_FOLDER))
    np.testing.assert_array_equal(found.model.components_, again.components_)


def test_the_number_of_topics_is_chosen_with_a_sample(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "MAX_DOCUMENTS", 60)
    result = run("fit", "lines.txt", "-o", "run", "--shards", "--no-page", "--max-iter", "3", cwd=place)
    assert result.exit_code == 0, result.output
    found = open_run(place / "run")
    note = f"Chosen with 60 of {found.info.documents} documents, drawn at random."
    assert note in run("evaluate", "run", "-q", cwd=place).stdout
    assert found.info.selection.n_documents == 60
    assert found.info.selection.reason.endswith(note)
    assert found.info.selection.n_topics == found.model.n_components


def test_standard_input_the_number_of_topics_and_no_texts(tmp_path: Path) -> None:
    result = run("fit", "-", "--shards", "--no-texts", "--no-page", cwd=tmp_path, stdin="\n".join(TEXTS))
    assert result.exit_code == 0, result.output
    found = open_run(tmp_path / "polyseme-run")
    assert found.info.model.n_topics == found.info.selection.n_topics == found.model.n_components
    assert found.texts is None
    assert not {"texts", "metadata", "explorer.html", "stages.json"} & {path.name for path in found.path.iterdir()}


def test_a_folder_that_spark_wrote(tmp_path: Path) -> None:
    for part, folder in enumerate(("texts", "texts/lang=en")):
        name = f"part-{part:05d}-6f3a-c000.snappy.parquet"
        (tmp_path / folder).mkdir()
        frame = pl.DataFrame({"id": [f"{part}-{row}" for row in range(30)], "body": TEXTS})
        frame.write_parquet(tmp_path / folder / name, compression="snappy")
        (tmp_path / folder / f".{name}.crc").write_bytes(b"crc\0\1")
    (tmp_path / "texts" / "_SUCCESS").touch()
    result = run("fit", "texts", "--text", "body", "--shards", "-k", "2", "-q", "--no-page", cwd=tmp_path)
    assert result.exit_code == 0, result.output
    found = open_run(tmp_path / "texts-run")
    assert found.view.corpus.column("id") == [f"{part}-{row}" for part in range(2) for row in range(30)]
    assert found.texts == TEXTS * 2


def test_a_small_run_of_shards_can_be_edited_and_searched(place: Path) -> None:
    fitted(place)
    assert run("search", "run", "waax", cwd=place).exit_code == 0
    assert run("edit", "run", "--rename", "1=One", cwd=place).exit_code == 0
    assert open_run(place / "run").info.topic_names == {1: "One"}


@pytest.mark.parametrize("refit", [(), ("--refit",)])
@pytest.mark.parametrize("texts", [(), ("--no-texts",)])
def test_an_update_appends_shards(refit: Any, texts: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fitted(place, *texts)
    parts, topics, old = len(before.store.shards.manifest.shards), before.model.components_, before.counts
    lines = (place / "lines.txt").read_text(encoding="utf-8").split("\n")
    (place / "new.txt").write_text("\n".join(lines[:100]), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("polyseme.runs.corpus.MAX_NUMBERS_IN_MEMORY", 10)  # no step may load all documents
        result = run("update", "run", "new.txt", *refit, cwd=place)
    assert result.exit_code == 0, result.output
    assert "100 documents added; 0 already in the run." in result.stdout
    found = open_run(place / "run")
    assert len(found.store.shards.manifest.shards) > parts
    assert (found.counts != sp.vstack([old, old[:100]])).nnz == 0
    assert found.texts == (None if texts else [*lines, *lines[:100]])
    assert found.view.corpus.column("id") == [*map(str, range(1, 301)), *map(str, range(1, 101))]
    assert found.info.documents == len(found.documents) == 400
    assert [entry.documents for entry in found.info.updates] == [100]
    assert np.allclose(found.model.components_, topics, rtol=1e-5, atol=0) == (not refit)
    np.testing.assert_array_equal(found.documents["topic_0"], found.model.doc_topic_[:, 0])
    if not refit:
        in_memory = found.model.with_topics(topics, found.counts)
        np.testing.assert_allclose(found.model.doc_topic_, in_memory.doc_topic_, atol=1e-5)
        np.testing.assert_allclose(found.model.topic_weights_, in_memory.topic_weights_, atol=1e-6)
        np.testing.assert_allclose(found.model.unigram_, in_memory.unigram_, rtol=1e-12)
    again = run("update", "run", "new.txt", cwd=place)
    assert "nothing has changed" in again.stdout
    assert sorted(path.name for path in place.iterdir()) == ["lines.txt", "new.txt", "run"]


def test_an_update_that_fails_changes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(place)
    shutil.copytree(place / "run", place / "wanted")
    (place / "new.txt").write_text("\n".join(["waax wabx wacx"] * 5), encoding="utf-8")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyseme.runs.write.topics_csv", full)
    assert "No space left" in run("update", "run", "new.txt", cwd=place).stderr
    same_files(place / "run", place / "wanted")
    assert sorted(path.name for path in place.iterdir()) == ["lines.txt", "new.txt", "run", "wanted"]


def test_ctrl_c_writes_what_is_fitted_so_far(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_loading_small(monkeypatch)
    run_step, steps = LocalShards.run, []

    def interrupted(self: Any, *arguments: Any) -> Any:
        steps.append(1)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return run_step(self, *arguments)

    monkeypatch.setattr(LocalShards, "run", interrupted)
    result = run("fit", "lines.txt", *MODEL, "--shards", cwd=place)
    assert result.exit_code == 130, result.output
    found = open_run(place / "run")
    assert found.info.interrupted is True
    assert found.info.iterations == 4
    assert not (found.path / SHARDS_FOLDER / "fit").exists()


# Runs that are too large for memory


@pytest.fixture
def large(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fitted(place)
    monkeypatch.setattr("polyseme.runs.corpus.MAX_NUMBERS_IN_MEMORY", 10)
    monkeypatch.setattr("polyseme.runs.view.SAMPLE_SIZE", 40)
    return place


def test_commands_that_work_for_a_large_run(large: Path) -> None:
    before = run("topics", "run", "--json", cwd=large)
    (large / "new.txt").write_text("\n".join(["waax wabx wacx"] * 5), encoding="utf-8")
    assert [len(row["documents"]) for row in json.loads(before.stdout)["topics"]] == [2, 2, 2]
    assert run("transform", "run", "new.txt", cwd=large).stdout.count("\n") == 6
    evaluated = run("evaluate", "run", cwd=large)
    assert "Evaluated on 40 of the run's documents, drawn at random." in evaluated.stderr
    assert "Evaluated on 40 documents" in evaluated.stdout
    assert "Evaluated on 5 documents" in run("evaluate", "run", "new.txt", cwd=large).stdout
    assert (
        "300 documents in both runs; 0 (0%) have another main topic" in run("compare", "run", "run", cwd=large).stdout
    )
    assert run("explore", "run", "--text", "full", cwd=large).exit_code == 0
    assert "run (40 of 300 documents)" in (large / "run" / "explorer.html").read_text(encoding="utf-8")


def test_a_sample_is_some_of_the_documents(large: Path) -> None:
    whole = open_run(large / "run")
    sample = whole.view.in_memory()
    rows = sample.corpus.rows
    assert len(rows) == 40
    assert (np.diff(rows) > 0).all()
    texts = (large / "lines.txt").read_text(encoding="utf-8").split("\n")
    assert sample.corpus.texts == [texts[row] for row in rows]
    assert list(sample.corpus.names) == [whole.view.corpus.names[row] for row in rows] == [str(row + 1) for row in rows]
    np.testing.assert_array_equal(sample.model.doc_topic_, whole.model.doc_topic_[rows])
    assert (sample.corpus.counts != whole.vectorizer.transform(sample.corpus.texts)).nnz == 0
    with pytest.raises(IndexError):
        whole.view.corpus.names[300]


def test_a_large_run_is_edited_without_loading_it(large: Path) -> None:
    word = open_run(large / "run").vocabulary[0]
    assert run("edit", "run", "--delete", "1", "--ban", word, "--rename", "2=Last", cwd=large).exit_code == 0
    edited = open_run(large / "run")
    assert edited.model.doc_topic_.shape == (300, 2)
    assert edited.info.topic_names == {1: "Last"}
    assert edited.info.hidden_words == (word,)
    assert any(part[:, [0]].nnz for part in edited.store.shards)
    assert run("edit", "run", "--ban", word, "--refit", cwd=large).exit_code == 0
    edited = open_run(large / "run")
    assert (edited.info.hidden_words, edited.info.banned_words) == ((), (word,))
    assert all(part[:, [0]].nnz == 0 for part in edited.store.shards)
    assert edited.info.tokens == sum(int(part.sum()) for part in edited.store.shards)


def test_a_large_run_is_searched_without_loading_it(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index has the bytes of that of a small run. Other methods and similar documents work as well.

    An update does not build the index again; the next search does.
    """
    found = run("search", "run", "waax wabx", "--json", cwd=large)
    assert found.exit_code == 0, found.output
    content = (large / "run" / "search.safetensors").read_bytes()
    assert run("search", "run", "1", "--like", cwd=large).exit_code == 0
    assert run("search", "run", "waax", "--method", "plsi-u", cwd=large).exit_code == 0
    assert sorted(path.name for path in large.iterdir() if path.name.startswith(".")) == []
    (large / "run" / "search.safetensors").unlink()
    monkeypatch.setattr("polyseme.runs.corpus.MAX_NUMBERS_IN_MEMORY", 1 << 27)
    assert run("search", "run", "waax wabx", "--json", cwd=large).stdout == found.stdout
    assert (large / "run" / "search.safetensors").read_bytes() == content
    monkeypatch.setattr("polyseme.runs.corpus.MAX_NUMBERS_IN_MEMORY", 10)
    (large / "new.txt").write_text("waax wabx wacx\n", encoding="utf-8")
    updated = run("update", "run", "new.txt", cwd=large)
    assert "The next search builds the search index again." in updated.stderr
    assert not (large / "run" / "search.safetensors").exists()
    assert "Building the search index" in run("search", "run", "waax", cwd=large).stderr


def test_a_damaged_file_is_named(place: Path) -> None:
    found = fitted(place)
    for name in ("doc_topic.npy", "documents.index"):
        path = found.path / name
        content = path.read_bytes()
        path.write_bytes(content[:40])
        with pytest.raises(ModelFileError, match=path.name):
            open_run(found.path)
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        opened = open_run(found.path)
        with pytest.raises(ModelFileError, match=path.name):
            _ = (opened.model, opened.documents)
        path.write_bytes(content)
    shard = found.path / SHARDS_FOLDER / found.store.shards.manifest.shards[1].name
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    result = run("topics", "run", cwd=place)
    assert result.exit_code == 1
    assert result.stderr.startswith("polyseme: ")
    assert "shard-000001.safetensors is damaged" in result.stderr
