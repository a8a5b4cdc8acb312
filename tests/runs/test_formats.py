"""Runs, shards and indexes that an earlier version wrote: they open, and give the same results."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.runs import searching
from polyseme.scale import open_shards

FILES = Path(__file__).parents[1] / "files"


@pytest.fixture
def run(tmp_path: Path) -> polyseme.Run:
    shutil.copytree(FILES / "run_v3", tmp_path / "run")
    return polyseme.open_run(tmp_path / "run")


@pytest.fixture(scope="module")
def expected() -> dict:
    return json.loads((FILES / "run_v3_expected.json").read_text(encoding="utf-8"))


def test_a_run_of_version_3_opens(run: polyseme.Run, expected: dict) -> None:
    assert run.texts == expected["texts"]
    assert run.vocabulary == expected["vocabulary"]
    assert run.counts.toarray().tolist() == expected["counts"]
    assert {str(topic): name for topic, name in run.info.topic_names.items()} == expected["topic_names"]
    np.testing.assert_array_equal(run.model.components_, np.float32(expected["components"]))
    np.testing.assert_array_equal(run.doc_topic, np.float32(expected["doc_topic"]))
    assert run.documents.height == len(expected["texts"])
    again = run.transform(expected["texts"])
    assert again.columns[-2:] == ["0 First", f"1 {run.topic_titles[1]}"]
    # machines round differently
    np.testing.assert_allclose(again[:, -2:].to_numpy(), expected["transformed"], atol=0.02)
    assert run.view.fitted.document_prior.tolist() == expected["document_prior"]
    assert run.update(["a new text about gold"]).info.documents == 7


def test_shards_of_version_2_open(expected: dict) -> None:
    shards = open_shards(FILES / "run_v3" / "shards")
    assert np.concatenate([part.toarray() for part in shards]).tolist() == expected["counts"]
    assert shards.vocabulary == expected["vocabulary"]


def test_an_index_of_version_3_answers(run: polyseme.Run, expected: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_new_index", lambda *_, **__: pytest.fail("the index was built again"))
    assert [hit.id for hit in run.search(expected["query"], 3)] == expected["hits"]
