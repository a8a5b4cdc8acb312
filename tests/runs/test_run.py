"""`Run`: its output, and the results of edits and updates that it keeps."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import polyseme
from cli_runner import FRUIT, METAL, TEXTS
from polyseme import InputError, ModelFileError
from polyseme.runs.info import as_json


@pytest.fixture
def run(tmp_path: Path) -> polyseme.Run:
    return polyseme.fit(TEXTS, 3, output=tmp_path / "run", max_df=1.0)


def test_a_notebook_shows_the_topics(run: polyseme.Run) -> None:
    assert "PLSA with 3 topics of 30 documents" in repr(run)
    named = run.edit(rename={0: "<b>Ore</b>"})
    assert "&lt;b&gt;Ore&lt;/b&gt;" in named._repr_html_()
    assert "<b>Ore</b>: " in str(named.topics())


def test_edits_are_recorded_and_survive_an_update(run: polyseme.Run) -> None:
    edited = run.edit(rename={2: "Last"}, ban=["copper"], refit=True).edit(merge=[[0, 1]])
    assert edited.info.topic_names == {1: "Last"}
    updated = edited.update([f"{METAL} copper copper", FRUIT])
    assert updated.info.topic_names == {1: "Last"}
    assert updated.info.banned_words == ("copper",)
    assert [sorted(set(as_json(entry)) - {"when"}) for entry in updated.info.edits] == [
        ["ban", "refit", "rename"],
        ["merge"],
    ]
    column = updated.vocabulary.index("copper")
    assert updated.counts[:, [column]].nnz == 0
    assert (updated.model.components_[:, column] == 0).all()
    refitted = updated.update([f"{METAL} copper and more copper"], refit=True)
    assert refitted.info.topic_names == {1: "Last"}
    assert (refitted.model.components_[:, column] == 0).all()
    assert "copper" not in {word for topic in refitted.topics() for word in topic.words}


def test_a_banned_word_is_hidden_and_removed_by_a_refit(run: polyseme.Run) -> None:
    column = run.vocabulary.index("copper")
    hidden = run.edit(ban=["Copper"])
    assert hidden.info.hidden_words == ("copper",)
    assert hidden.info.banned_words == ()
    assert hidden.counts[:, [column]].nnz > 0
    np.testing.assert_array_equal(hidden.model.components_, run.model.components_)
    assert [topic.words for topic in hidden.topics()] == [
        [word for word in words if word != "copper"][:10] for words in run.topic_words(11)
    ]
    assert not any("copper" in name for name in hidden.topic_titles)
    with (hidden.path / "topics.csv").open(encoding="utf-8", newline="") as file:
        assert not any("copper" in row["name"] + row["words"] for row in csv.DictReader(file))
    assert "copper" not in str(hidden.update([f"{METAL} copper copper"]).topics())
    removed = polyseme.open_run(run.path).edit(refit=True)
    assert (removed.info.hidden_words, removed.info.banned_words) == ((), ("copper",))
    assert removed.counts[:, [column]].nnz == 0
    with pytest.raises(InputError, match="ban= would hide all words of the run: ban fewer"):
        removed.edit(ban=[word for word in removed.vocabulary if word != "copper"])
    assert polyseme.open_run(run.path).info.hidden_words == ()


def test_an_edit_or_update_during_another_one_is_refused(run: polyseme.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from polyseme.runs import update

    def meanwhile(*arguments, **options):
        with pytest.raises(InputError, match="is being written by another polyseme process"):
            run.edit(rename={0: "Lost"})
        return appended(*arguments, **options)

    appended = update.append_to_shards
    monkeypatch.setattr(update, "append_to_shards", meanwhile)
    updated = run.update([f"{METAL} and more"])
    assert updated.info.documents == 31
    assert polyseme.open_run(run.path).info.topic_names == {}


def test_the_object_before_an_edit_describes_the_run_before(run: polyseme.Run) -> None:
    before = run.doc_topic.copy()
    edited = run.edit(delete=[0])
    assert edited.doc_topic.shape == (30, 2)
    np.testing.assert_array_equal(run.doc_topic, before)
    opened = polyseme.open_run(run.path)
    mapped = opened.doc_topic
    opened.edit(delete=[1])
    np.testing.assert_array_equal(mapped, edited.doc_topic)


def test_an_object_whose_run_was_written_again_says_so_and_not_that_files_are_damaged(run: polyseme.Run) -> None:
    opened = polyseme.open_run(run.path)
    edited = run.edit(delete=[0])
    for stale in (run, opened):
        vars(stale.store).pop("model", None)
        with pytest.raises(ModelFileError, match=r"has been written again since it was opened: use the result"):
            stale.store.model  # noqa: B018
    model = edited.path / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="is damaged"):
        edited.store.load_model(2)


def test_the_model_file_of_a_run_is_loaded_with_its_documents(run: polyseme.Run) -> None:
    model = polyseme.load(run.path / "model.safetensors")
    np.testing.assert_array_equal(model.doc_topic_, run.model.doc_topic_)


def test_another_fit_to_the_shards_of_a_run_leaves_the_run_as_it_is(run: polyseme.Run) -> None:
    from polyseme.scale import open_shards

    shards = open_shards(run.path / "shards")
    other = polyseme.PLSA(2, random_state=1).fit(shards)
    other.transform(shards)
    again = polyseme.open_run(run.path)
    assert again.doc_topic.shape == (30, 3)
    np.testing.assert_array_equal(again.model.transform(again.counts), again.doc_topic)


def test_every_file_has_a_digest(run: polyseme.Run) -> None:
    about = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    shards = json.loads((run.path / "shards" / "manifest.json").read_text(encoding="utf-8"))
    listed = set(about["files"]) | {"run.json"}
    listed |= {f"shards/{entry['name']}" for entry in [*shards["shards"], shards["word_totals"], shards["vocabulary"]]}
    found = {path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()}
    assert found == listed
    assert len(about["digest"]) == 64


def test_files_for_people_may_be_removed_or_changed(run: polyseme.Run) -> None:
    (run.path / "explorer.html").unlink()
    (run.path / "topics.csv").write_text("changed", encoding="utf-8")
    opened = polyseme.open_run(run.path)
    assert opened.topics()[0].words
    assert not (opened.edit(rename={0: "x"}).path / "explorer.html").exists()


@pytest.mark.parametrize("name", ["documents", "words", "tokens", "model"])
def test_a_changed_number_in_run_json_is_found(name: str, run: polyseme.Run) -> None:
    path = run.path / "run.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    about[name] = {"0": "other"} if isinstance(about[name], dict) else about[name] + 1
    path.write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(ModelFileError, match="digest"):
        polyseme.open_run(run.path)


def test_a_run_of_version_1_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format_version": 1}', encoding="utf-8")
    with pytest.raises(ModelFileError, match="early version of polyseme: fit again"):
        polyseme.open_run(tmp_path)


def test_a_copy_does_not_share_files(run: polyseme.Run, tmp_path: Path) -> None:
    copy = run.save(tmp_path / "copy")
    with pytest.raises(InputError, match="is already a run"):
        run.save(tmp_path / "copy")
    for path in copy.path.rglob("*"):
        if path.is_file():
            assert path.stat().st_nlink == 1
    assert copy.edit(delete=[0]).doc_topic.shape[1] == 2
    assert polyseme.open_run(run.path).doc_topic.shape[1] == 3


def test_views_of_a_run_read_its_model_once(run: polyseme.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, load = [], polyseme.estimators.base.load
    monkeypatch.setattr("polyseme.estimators.base.load", lambda path: (loaded.append(path), load(path))[1])
    opened = polyseme.open_run(run.path)
    assert len(opened.topics()) == len(opened.sample(20).topics()) == 3
    assert opened.sample(20).doc_topic.shape == (20, 3)
    assert len(opened.search("plums and metal", 2)) == 2  # builds the index
    assert len(loaded) == 1


def test_search_from_python(run: polyseme.Run) -> None:
    first = run.search("plums and metal", 2)
    assert [hit.rank for hit in first] == [1, 2]
    assert (run.path / "search.safetensors").is_file()
    again = polyseme.open_run(run.path).search("plums and metal", 2)
    assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in first]
    assert run.search("2", 2, like=True)[0].id != "2"
    run.update(["plums and cherries and plums"])
    built = (run.path / "search.safetensors").read_bytes()
    assert run.search("plums and cherries", 1)[0].excerpt == "plums and cherries and plums"
    assert (run.path / "search.safetensors").read_bytes() == built  # update has built the index of all documents
    edited = polyseme.open_run(run.path).edit(delete=[0])
    assert not (edited.path / "search.safetensors").exists()
    assert len(edited.search("plums", 2)) == 2
