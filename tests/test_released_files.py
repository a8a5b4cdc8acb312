"""Files that version 0.2.0 wrote: they load, and give the same results. `tests/files/make_files.py` shows how."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.retrieval import SearchIndex
from polyseme.scale import open_shards
from polyseme.text import Vectorizer

FILES = Path(__file__).parent / "files"
V0_2 = FILES / "v0_2"
MODELS = sorted(path.stem for path in V0_2.glob("*.safetensors") if path.stem not in ("pipeline", "search"))
QUERY = "gold from a mine"


@pytest.fixture(scope="module")
def expected() -> dict:
    return dict(np.load(FILES / "v0_2_expected.npz"))


def assert_similar(found: np.ndarray, expected: np.ndarray) -> None:
    """Fail unless the weights of documents are equal up to the tolerance of folding in: machines round differently."""
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
def test_a_model(name: str, expected: dict) -> None:
    model = polyseme.load(V0_2 / f"{name}.safetensors")
    if f"{name}.components" in expected:
        np.testing.assert_array_equal(model.components_, expected[f"{name}.components"])
    if hasattr(model, "feature_names_in_"):
        assert list(model.feature_names_in_) == list(expected["words"])
    data = expected["counts"] - 1 if name == "real" else expected["counts"]
    transformed = model.transform(data)
    assert transformed.dtype == expected[f"{name}.transformed"].dtype
    assert_similar(transformed, expected[f"{name}.transformed"])


def test_there_is_a_file_of_every_estimator() -> None:
    from polyseme import estimators

    stored = {type(polyseme.load(V0_2 / f"{name}.safetensors")).__name__ for name in MODELS}
    assert stored == {name for name in polyseme.__all__ if hasattr(estimators, name)}


def test_the_settings_of_a_model() -> None:
    model = polyseme.load(V0_2 / "plsa.safetensors")
    assert (model.n_components, model.solver, model.max_iter, model.random_state) == (3, "em", 50, 7)
    assert model.n_iter_ == len(model.history_["iteration"]) - 1
    prior = polyseme.load(V0_2 / "plsa_prior.safetensors").topic_word_prior
    assert prior == polyseme.priors.SeedWords({0: ["ant"], 1: ["gold"]}, list(model.feature_names_in_))


def test_a_pipeline(expected: dict) -> None:
    pipeline = polyseme.load(V0_2 / "pipeline.safetensors")
    assert_similar(pipeline.transform(list(expected["texts"])), expected["pipeline.transformed"])


def test_a_vectorizer(expected: dict) -> None:
    text = (V0_2 / "vectorizer.json").read_text(encoding="utf-8")
    counts = Vectorizer.from_dict(json.loads(text)).transform(list(expected["texts"]))
    np.testing.assert_array_equal(counts.toarray(), expected["vectorizer.counts"])


def test_shards(expected: dict) -> None:
    shards = open_shards(V0_2 / "shards")
    counts = np.concatenate([part.toarray() for part in shards])
    np.testing.assert_array_equal(counts, expected["vectorizer.counts"])
    vectorizer = Vectorizer.from_dict(json.loads((V0_2 / "vectorizer.json").read_text(encoding="utf-8")))
    assert list(shards.vocabulary) == list(vectorizer.get_feature_names_out())


def test_a_search_index(expected: dict) -> None:
    found = SearchIndex.load(V0_2 / "search.safetensors")
    assert [hit.row for hit in found.search(QUERY, 5)] == list(expected["search.rows"])


class TestRun:
    """A run with a finer level, an edit and a search index."""

    @pytest.fixture
    def run(self, tmp_path: Path) -> polyseme.Run:
        pytest.importorskip("polars", reason="runs need the extra text")
        shutil.copytree(V0_2 / "run", tmp_path / "run")
        return polyseme.open_run(tmp_path / "run")

    def test_its_content(self, run: polyseme.Run, expected: dict) -> None:
        assert run.documents.height == len(run.texts) == 200
        assert run.texts[:60] == list(expected["texts"])
        assert run.vocabulary == list(expected["run.vocabulary"])
        assert run.topic_titles[0] == "First"
        np.testing.assert_array_equal(run.counts.toarray(), expected["run.counts"])
        np.testing.assert_array_equal(run.model.components_, expected["run.components"])
        np.testing.assert_array_equal(run.doc_topic, expected["run.doc_topic"])
        np.testing.assert_array_equal(run.level(max(run.levels)).doc_topic, expected["run.level"])
        assert_similar(run.transform(list(expected["texts"]))[:, -2:].to_numpy(), expected["run.transformed"])

    def test_its_index(self, run: polyseme.Run, expected: dict, monkeypatch: pytest.MonkeyPatch) -> None:
        from polyseme.runs import searching

        monkeypatch.setattr(searching, "write_run_index", lambda *_, **__: pytest.fail("the index was built again"))
        assert [hit.id for hit in run.search(QUERY, 5)] == list(expected["run.ids"])

    def test_it_can_be_changed(self, run: polyseme.Run) -> None:
        assert run.update(["a new text about gold"]).info.documents == 201
        assert polyseme.open_run(run.path).edit(file=V0_2 / "edits.json").topic_titles[1] == "Second"

    def test_its_edit_can_be_taken_back(self, run: polyseme.Run) -> None:
        assert run.undo().model.n_components == 3
