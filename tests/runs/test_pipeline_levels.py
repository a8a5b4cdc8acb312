"""Finer levels of a run: written, read, kept up to date by changes of the run, and refused where there are none."""

import csv
import json

import numpy as np
import pytest

import polyseme
from cli_runner import tree_texts
from polyseme import InputError, ModelFileError, open_run
from polyseme.runs import fitting
from polyseme.runs.info import as_json
from polyseme.runs.store import STAGES_FILE, work_folder
from polyseme.selection import levels
from sealed_files import change_json, seal

TEXTS = tree_texts()


@pytest.fixture(scope="module", autouse=True)
def small_levels():
    """Limit levels to 2, 4 and 8 topics and few iterations, which are enough for these texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "MAX_TOPICS", 8)
        yield


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return polyseme.fit(TEXTS, 2, output=tmp_path_factory.mktemp("levels") / "run", page=False)


@pytest.fixture
def run(fitted, tmp_path):
    return fitted.save(tmp_path / "run")


def names(run):
    """Return the names of the files of a run; texts can be in one file or several."""
    found = (path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith("texts/"))


def subject_of(topic):
    """Return the subject of most of the words of a topic."""
    harbor = sum(word.startswith(("harbor", "ship", "fish")) for word in topic.words)
    return "harbor" if 2 * harbor > len(topic.words) else "garden"


def test_a_run_has_levels_of_the_same_documents(fitted):
    assert fitted.levels == [2, 4]  # four sides of two subjects
    fine = open_run(fitted.path).level(4)
    assert fine.levels == fitted.levels
    assert fine.level(2).fitted.n_topics == 2
    assert "PLSA with 4 topics of 240 documents" in repr(fine)
    assert fine.doc_topic.shape == (240, 4)
    assert fine.parents.level == 2
    subjects = [subject_of(topic) for topic in fitted.topics()]
    assert sorted(subjects) == ["garden", "harbor"]
    assert [subject_of(topic) for topic in fine.topics()] == [subjects[topic] for topic in fine.parents.topics]
    assert (fine.parents.shares > 0.9).all()
    np.testing.assert_allclose(fine.fitted.topic_weights.sum(), 1, rtol=1e-6)


def test_a_page_reads_the_model_of_each_level_once(run, tmp_path, monkeypatch):
    read, opened = [], open_run(run.path)
    load = opened.store.load_model
    monkeypatch.setattr(opened.store, "load_model", lambda n_topics: read.append(n_topics) or load(n_topics))
    fine = opened.level(4)
    assert opened.level(4) is fine
    assert fine.level(2) is opened.view
    opened.explore(tmp_path / "page.html")
    assert sorted(read) == [2, 4]


def test_a_level_answers_what_a_run_answers(fitted, tmp_path):
    fine = fitted.level(4)
    table = fine.transform(["fruitb fruitc fruitd fruitf gardenb", "shipb shipc harborb"])
    assert [name for name in table.columns if name[0].isdigit()] == [
        f"{topic} {title}" for topic, title in enumerate(fine.topic_titles)
    ]
    assert [subject_of(fine.topics()[topic]) for topic in table["topic"]] == ["garden", "harbor"]
    assert fine.documents.columns[-4:] == ["topic_0", "topic_1", "topic_2", "topic_3"]
    assert fine.documents["topic"].to_list() == np.asarray(fine.doc_topic).argmax(axis=1).tolist()
    assert fine.corpus.column("id") == fitted.view.corpus.column("id")
    assert len(fine.evaluate().topic_weights) == 4
    page = fine.explore(tmp_path / "page.html")
    assert page.stat().st_size > 10_000
    sample = fine.sample(50)
    assert sample.doc_topic.shape == (50, 4)
    assert sample.corpus.counts.shape[0] == 50
    assert sample.level(2).corpus is sample.corpus  # read once for all levels
    assert fine.naming_prompt() == fine.naming_prompt(10, 3) != fine.naming_prompt(10, 4)


def test_a_search_at_a_level_uses_its_topics(run):
    fine = run.level(4)
    topic = int(np.asarray(fine.doc_topic).argmax(axis=1)[0])
    hits = fine.search("gardenb", topic=topic)
    main = fine.documents["topic"].to_list()
    assert len(hits)
    assert {main[fine.corpus.ids.index(hit.id)] for hit in hits} == {topic}
    again = fine.search("gardenb", topic=topic)  # with the index that the first search stored
    assert [hit.id for hit in again] == [hit.id for hit in hits]
    with pytest.raises(InputError, match="topics 0 to 3"):
        fine.search("gardenb", topic=4)
    assert len(run.search("gardenb", topic=0)) + len(run.search("gardenb", topic=1))
    with pytest.raises(InputError, match="topics 0 to 1"):
        run.search("gardenb", topic=2)


def test_topics_of_finer_levels_are_renamed_only(run):
    named = run.edit(rename={3: "=Fruit", 1: "Ships"}, level=4)
    assert named.level(4).topic_names == {3: "=Fruit", 1: "Ships"}
    assert named.level(2).topic_names == {}
    table = (run.path / "topics_4.csv").read_text(encoding="utf-8")
    assert "'=Fruit" in table
    again = open_run(run.path).edit(rename={0: "Garden"})
    assert again.edit(rename={1: ""}, level=4).level(4).topic_names == {3: "=Fruit"}
    assert [entry.level for entry in open_run(run.path).info.edits] == [4, None, 4]
    np.testing.assert_array_equal(again.level(4).fitted.topic_word, run.level(4).fitted.topic_word)
    for change in ({"merge": [[0, 1]]}, {"rename": {0: "x"}, "delete": [1]}, {"rename": {0: "x"}, "refit": True}):
        with pytest.raises(InputError, match="level=: topics of a finer level can only be renamed"):
            run.edit(**change, level=4)
    with pytest.raises(InputError, match="There is no topic 4"):
        run.edit(rename={4: "x"}, level=4)
    with pytest.raises(InputError, match="level= must be one of the levels of the run, 2, 4, got 3"):
        run.edit(rename={0: "x"}, level=3)
    assert run.edit(rename={1: "Harbor"}, level=2).info.topic_names == {0: "Garden", 1: "Harbor"}


def test_tables_have_the_reading_level_and_the_others_beside_it(fitted):
    with (fitted.path / "topics.csv").open(encoding="utf-8") as file:
        assert sorted(int(row["topic"]) for row in csv.DictReader(file)) == [0, 1]
    with (fitted.path / "topics_4.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(int(row["topic"]) for row in rows) == [0, 1, 2, 3]
    parents = [int(row["parent"]) for row in rows]
    assert parents == sorted(parents, key=parents.index)  # children of one topic are together
    for row in rows:
        assert row["parent_title"] == fitted.topic_titles[int(row["parent"])]
        assert 0.9 < float(row["parent_share"]) <= 1
    documents = fitted.documents
    assert documents.columns[-3:] == ["topic_0", "topic_1", "level_4"]
    assert documents["level_4"].to_list() == fitted.level(4).documents["topic"].to_list()


def test_a_level_that_a_run_does_not_have_is_refused(fitted):
    with pytest.raises(InputError, match="level= must be one of the levels of the run, 2, 4, got 3"):
        fitted.level(3)
    with pytest.raises(InputError, match="got '4'"):
        fitted.level("4")


def test_levels_can_be_left_out_and_belong_to_plsa(tmp_path):
    run = polyseme.fit(TEXTS, 2, levels="none", output=tmp_path / "run", page=False)
    assert run.levels == [2]
    assert not (run.path / "levels").exists()
    assert run.edit(rename={0: "Garden"}).levels == [2]
    with pytest.raises(InputError, match=r"levels= must be auto or none, got 'few'"):
        polyseme.fit(TEXTS, 2, levels="few")
    with pytest.raises(InputError, match=r"levels=auto is for model=plsa; model=nmf has one level: leave levels= out"):
        polyseme.fit(TEXTS, 2, model="nmf", levels="auto")
    other = polyseme.fit(TEXTS, 2, model="nmf", levels="none")
    assert other.levels == [2]


def test_levels_from_shards_are_those_from_memory(fitted, tmp_path):
    run = polyseme.fit(TEXTS, 2, shards=True, output=tmp_path / "run", page=False)
    assert run.levels == fitted.levels
    np.testing.assert_allclose(run.level(4).fitted.topic_word, fitted.level(4).fitted.topic_word, atol=2e-3)
    assert names(run) == names(fitted)


def test_an_update_folds_new_documents_into_all_levels(run):
    before = run.level(4).fitted.topic_word
    new = run.update(tree_texts(30, seed=1))
    assert new.levels == [2, 4]
    fine = open_run(new.path).level(4)
    assert len(fine.doc_topic) == len(new.doc_topic) == 270
    np.testing.assert_allclose(fine.fitted.topic_word, before, atol=1e-3)
    np.testing.assert_array_equal(fine.parents.topics, run.level(4).parents.topics)
    assert new.documents["level_4"].to_list() == fine.documents["topic"].to_list()


def test_a_refit_makes_the_levels_again(run):
    new = run.update(tree_texts(60, seed=1), refit=True)
    assert new.levels == [2, 4]
    fine = open_run(new.path).level(4)
    assert len(fine.doc_topic) == 300
    assert (fine.parents.shares > 0.9).all()


def test_edits_of_topics_make_the_levels_again_and_names_keep_them(run):
    named = run.edit(rename={0: "=First"})
    assert named.levels == [2, 4]
    np.testing.assert_array_equal(named.level(4).fitted.topic_word, run.level(4).fitted.topic_word)
    assert "'=First" in (named.path / "topics_4.csv").read_text(encoding="utf-8")
    merged = named.edit(merge=[[0, 1]], rename={0: "=First"})
    assert merged.levels[0] == 1
    assert all(merged.level(n).parents.topics.max() < merged.levels[place] for place, n in enumerate(merged.levels[1:]))
    assert sorted(map(int, (path.name for path in (merged.path / "levels").iterdir()))) == merged.levels[1:]


def test_a_copy_has_the_levels(run, tmp_path):
    copy = run.save(tmp_path / "copy")
    assert copy.levels == open_run(tmp_path / "copy").levels == [2, 4]
    assert copy.level(4).doc_topic.shape == (240, 4)
    assert copy.level(2) is copy.view


def test_a_damaged_level_is_found(run):
    path = run.path / "levels" / "4" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    damaged = open_run(run.path)
    assert damaged.doc_topic.shape == (240, 2)  # other levels are not affected
    with pytest.raises(ModelFileError, match=r"levels/4/model.safetensors"):
        _ = damaged.level(4).model
    path.unlink()
    with pytest.raises(ModelFileError, match=r"levels/4/model.safetensors is missing"):
        open_run(run.path)


def test_a_run_without_the_tables_of_its_levels_is_complete(run):
    (run.path / "topics_4.csv").unlink()
    assert open_run(run.path).level(4).fitted.n_topics == 4


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("parents", [0, 1, 0], "levels must have as many"),
        ("parents", [0, 1, 0, 2], r"levels\.4\.parents must be topics of the level above"),
        ("parents", [0, 1, 0, -1], r"levels\.'4'\.parents\[3\] must be"),
        ("nesting", [0, 1, 0, 2], r"levels\.'4'\.nesting\[3\] must be"),
    ],
)
def test_levels_in_run_json_are_checked(run, field, value, message):
    stored = {**as_json(run.info.levels[4]), field: value}
    change_json(run.path / "run.json", levels={"4": stored})
    seal(run.path)
    with pytest.raises(ModelFileError, match=message):
        _ = open_run(run.path).level(4).parents


def test_a_fit_that_is_killed_while_levels_are_made_resumes_to_the_same_run(fitted, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    made = fitting.make_levels

    def killed(*arguments, **options):
        yield from made(*arguments, **options)
        raise Killed

    folder = tmp_path / "run"
    monkeypatch.setattr(fitting, "make_levels", killed)
    with pytest.raises(Killed):
        polyseme.fit(TEXTS, 2, output=folder, page=False)
    stages = json.loads((work_folder(folder) / STAGES_FILE).read_text(encoding="utf-8"))["stages"]
    assert stages == ["read", "counted", "chosen", "fitted"]
    assert (work_folder(folder) / "levels" / "4" / "model.safetensors").is_file()  # of the stage that starts again
    monkeypatch.setattr(fitting, "make_levels", made)
    with pytest.raises(InputError, match="levels= was None, now none"):
        polyseme.fit(TEXTS, 2, output=folder, page=False, resume=True, levels="none")
    run = polyseme.fit(TEXTS, 2, output=folder, page=False, resume=True)
    assert names(run) == names(fitted)
    np.testing.assert_array_equal(run.level(4).fitted.topic_word, fitted.level(4).fitted.topic_word)
    np.testing.assert_array_equal(run.level(4).doc_topic, fitted.level(4).doc_topic)


def test_an_interrupt_keeps_the_levels_that_are_complete(tmp_path, monkeypatch):
    made = fitting.make_levels

    def interrupted(*arguments, **options):
        yield next(made(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "make_levels", interrupted)
    run = polyseme.fit(TEXTS, 2, output=tmp_path / "run", page=False)
    assert run.levels == [2, 4]
    monkeypatch.setattr(fitting, "make_levels", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run.update(tree_texts(30, seed=1), refit=True).levels == [2]


def test_names_of_parts_do_not_repeat_the_name_of_the_whole(run):
    fine = open_run(run.path).level(4)
    assert fine.topic_titles == list(fine.level_info.automatic_names)
    assert len(set(fine.topic_titles)) == 4
    for name, parent in zip(fine.topic_titles, fine.parents.topics, strict=True):
        assert not set(name.split(", ")) & set(run.topic_titles[parent].split(", "))
    word = fine.topic_titles[0].split(", ")[-1].split()[-1]
    hidden = run.edit(ban=[word]).level(4)
    assert word not in hidden.topic_titles[0]
    assert hidden.topic_titles[3] == fine.topic_titles[3]
    assert all(word not in words for words in hidden.topic_words())
