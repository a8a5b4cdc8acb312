"""Places of the documents of a run on the map: stored by a fit, extended by an update, computed again after edits."""

from pathlib import Path

import numpy as np
import pytest

import polyseme
from cli_runner import FRUIT, METAL, TEXTS, tree_texts
from polyseme import ModelFileError, open_run
from polyseme.layout.places import document_layout
from polyseme.runs import corpus
from polyseme.runs.store import PLACES_FILE


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> polyseme.Run:
    return polyseme.fit(TEXTS, 3, output=tmp_path_factory.mktemp("places") / "run", max_df=1.0, page=False)


@pytest.fixture
def run(fitted: polyseme.Run, tmp_path: Path) -> polyseme.Run:
    return fitted.save(tmp_path / "run")


def stored(run: polyseme.Run) -> np.ndarray:
    return np.load(run.path / PLACES_FILE)


def test_a_fit_stores_the_places(fitted: polyseme.Run) -> None:
    places = open_run(fitted.path).places
    np.testing.assert_array_equal(places, document_layout([fitted.doc_topic], fitted.counts))
    np.testing.assert_array_equal(places, stored(fitted))
    assert places.shape == (30, 2)
    sample = fitted.sample(7)
    np.testing.assert_array_equal(sample.places, places[sample.corpus.rows])


def test_the_finest_level_with_enough_documents_is_used() -> None:
    run = polyseme.fit(tree_texts(), 2)
    assert run.levels == [2, 4]  # of 240 documents, so both levels are used
    weights = [run.level(n_topics).doc_topic for n_topics in run.levels]
    np.testing.assert_array_equal(run.places, document_layout(weights, run.counts))
    assert (run.places != document_layout(weights[:1], run.counts)).any()


def test_an_update_does_not_move_documents(run: polyseme.Run) -> None:
    before = run.places
    updated = run.update([f"{METAL} and more", f"{FRUIT} and other words"])
    assert updated.places.shape == (32, 2)
    np.testing.assert_array_equal(updated.places[:30], before)
    np.testing.assert_array_equal(open_run(run.path).places, stored(updated))
    again = updated.update([f"{FRUIT} and more"])
    np.testing.assert_array_equal(again.places[:32], updated.places)


def test_a_refit_computes_the_places_again(run: polyseme.Run) -> None:
    updated = run.update([f"{METAL} and more"], refit=True)
    np.testing.assert_array_equal(updated.places, document_layout([updated.doc_topic], updated.counts))


def test_edits_of_names_keep_the_places_and_edits_of_topics_change_them(tmp_path: Path) -> None:
    run = polyseme.fit(tree_texts(), 4, output=tmp_path / "run", levels="none", page=False)
    before = run.places
    renamed = run.edit(rename={0: "Ore"})
    np.testing.assert_array_equal(stored(renamed), before)
    named = renamed.name_topics({1: "Fruit"})
    np.testing.assert_array_equal(stored(named), before)
    merged = named.edit(merge=[[0, 1]], rename={0: "Ore and fruit"})
    np.testing.assert_array_equal(merged.places, document_layout([merged.doc_topic], merged.counts))
    assert (merged.places != before).any()
    np.testing.assert_array_equal(stored(merged.undo()), before)


def test_a_run_that_is_too_large_for_memory_has_places_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(corpus, "MAX_NUMBERS_IN_MEMORY", 10)
        run = polyseme.fit(TEXTS, 3, max_df=1.0, shards=True)
    assert not (run.path / PLACES_FILE).exists()
    sample = run.sample(9)
    np.testing.assert_array_equal(sample.places, document_layout([sample.doc_topic], sample.corpus.counts))


@pytest.mark.parametrize("change", [lambda content: content[:40], lambda content: content[:-1] + b"~"])
def test_a_damaged_file_is_named(run: polyseme.Run, change) -> None:
    content = (run.path / PLACES_FILE).read_bytes()
    (run.path / PLACES_FILE).write_bytes(change(content))
    with pytest.raises(ModelFileError, match=r"places\.npy"):
        _ = open_run(run.path).places
