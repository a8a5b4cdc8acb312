"""Updates with new topics: old topics keep everything, numbers are not reused, all parts of a run follow."""

import json
from pathlib import Path

import numpy as np
import pytest

import polyseme
from cli_runner import run as run_command
from polyseme import InputError
from polyseme.datasets import synthetic_corpus
from polyseme.errors import UnsupportedError

PLANTED = synthetic_corpus(1, n_topics=7, n_words=400, random_state=0).topic_word


def texts_of(topics: list[int], n_documents: int, seed: int) -> list[str]:
    corpus = synthetic_corpus(n_documents, topic_word=PLANTED[topics], doc_topic_prior=0.15, random_state=seed)
    return [document.text for document in corpus]


OLD, WITH_NEW = texts_of(list(range(5)), 400, 1), texts_of([0, 1, 2, 3, 5], 120, 2)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    run = polyseme.fit(OLD, 5, output=tmp_path_factory.mktemp("living") / "run", language=None)
    return run.name_topics({0: "Zero", 4: "Four"})


@pytest.fixture
def run(fitted: polyseme.Run, tmp_path: Path) -> polyseme.Run:
    return fitted.save(tmp_path / "run")


def test_old_topics_keep_numbers_names_and_words(run: polyseme.Run) -> None:
    before = run.model.components_
    updated = run.update(WITH_NEW, new_topics="auto")
    update = updated.info.updates[-1]
    assert [topic.topic for topic in update.new_topics] == [5]
    assert update.p_value is not None
    assert update.p_value <= 0.001
    assert np.array_equal(updated.model.components_[:5], before)
    assert updated.topic_titles[:5] == run.topic_titles
    assert updated.topic_titles[5] not in updated.topic_titles[:5]
    assert updated.info.topic_names == {0: "Zero", 4: "Four"}
    main = updated.doc_topic.argmax(axis=1)
    assert update.new_topics[0].documents == (main[400:] == 5).sum() > 10
    assert set(update.new_topics[0].typical) <= set(updated.view.corpus.ids[400:])


def test_everything_in_the_folder_follows(run: polyseme.Run) -> None:
    run.search(OLD[0].split()[0])
    places, width = run.places, run.transform(WITH_NEW[:1]).width
    updated = run.update(WITH_NEW, new_topics="auto")
    again = polyseme.open_run(run.path)
    assert again.doc_topic.shape == (520, 6)
    assert again.levels[0] == 6
    assert again.info.page_text == run.info.page_text
    assert (run.path / "explorer.html").is_file()
    assert updated.topic_titles[5] in (run.path / "topics.csv").read_text(encoding="utf-8")
    word = again.topic_words(1)[5][0]
    assert again.search(word, topic=5).hits
    assert np.array_equal(again.places[:400], places)
    assert again.transform(WITH_NEW[:1]).width == width + 1


def test_numbers_are_not_reused_and_nothing_is_found_twice(run: polyseme.Run) -> None:
    run = run.update(WITH_NEW, new_topics="auto")
    run = run.update(texts_of([0, 1, 2, 3, 5], 120, 3), new_topics="auto")
    assert run.levels[0] == 6
    run = run.update(texts_of([0, 1, 2, 3, 6], 120, 4), new_topics="auto")
    assert [topic.topic for topic in run.info.updates[-1].new_topics] == [6]
    assert run.info.fitted_to == ((0, 400),) * 5 + ((400, 520), (640, 760))
    assert len(run.info.updates[-1].faded) == 1


def test_documents_without_anything_new_get_no_topic(run: polyseme.Run) -> None:
    before = run.model.components_
    updated = run.update(texts_of(list(range(5)), 120, 5), new_topics="auto")
    assert updated.info.updates[-1].new_topics == ()
    assert updated.info.updates[-1].p_value > 0.05
    assert updated.levels[0] == 5
    assert np.array_equal(updated.model.components_, before)


def test_a_number_of_topics_can_be_given(run: polyseme.Run) -> None:
    updated = run.update(WITH_NEW, new_topics=2)
    assert [topic.topic for topic in updated.info.updates[-1].new_topics] == [5, 6]
    assert updated.info.updates[-1].p_value is None


def test_too_few_documents_are_added_without_a_test(run: polyseme.Run) -> None:
    updated = run.update(WITH_NEW[:5], new_topics="auto")
    assert updated.info.documents == 405
    assert updated.info.updates[-1].p_value is None


def test_edits_and_refits_follow_the_documents_of_topics(run: polyseme.Run) -> None:
    updated = run.update(WITH_NEW, new_topics="auto")
    merged = updated.edit(merge=[[1, 2]], delete=[3], rename={1: "Both"})
    assert merged.info.fitted_to == ((0, 400),) * 3 + ((400, 520),)
    assert merged.update(texts_of([0, 6], 60, 6), new_topics="auto").levels[0] >= 4
    refitted = polyseme.open_run(run.path).update(texts_of([0, 1], 30, 7), refit=True)
    assert refitted.info.fitted_to == ()


def test_finer_levels_get_children_of_the_new_topic(tmp_path: Path) -> None:
    run = polyseme.fit(OLD, 2, output=tmp_path / "run", language=None)
    levels = [run.level(size) for size in run.levels]
    assert len(levels) > 1
    before = [(level.model.components_, level.topic_titles, level.parents) for level in levels]
    updated = run.update(WITH_NEW, new_topics=1)
    assert updated.levels[0] == 3
    for (components, titles, parents), size in zip(before[1:], updated.levels[1:], strict=True):
        after, n_old = updated.level(size), len(titles)
        assert size > n_old
        assert np.array_equal(after.model.components_[:n_old], components)
        assert after.topic_titles[:n_old] == titles
        assert np.array_equal(after.parents.topics[:n_old], parents.topics)
    assert set(updated.level(updated.levels[1]).parents.topics[len(before[1][1]) :]) == {2}


def test_what_does_not_go_together_is_refused(run: polyseme.Run) -> None:
    with pytest.raises(InputError, match="choose one of them"):
        run.update(WITH_NEW, new_topics=1, refit=True)
    for value in (0, "many", 1.5):
        with pytest.raises(InputError, match="new_topics"):
            run.update(WITH_NEW, new_topics=value)
    with pytest.raises(InputError, match="choose a smaller number"):
        run.update(WITH_NEW[:3], new_topics=4)
    lda = polyseme.fit(OLD[:60], 2, model="lda", language=None)
    with pytest.raises(UnsupportedError, match="cannot be added"):
        lda.update(WITH_NEW, new_topics=1)
    assert polyseme.open_run(run.path).info.documents == 400


def test_the_command_says_what_is_new(run: polyseme.Run, tmp_path: Path) -> None:
    (tmp_path / "later.txt").write_text("\n".join(WITH_NEW), encoding="utf-8")
    result = run_command("update", "run", "later.txt", "--new-topics", "auto", "--json", cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["added"] == 120
    assert [topic["topic"] for topic in found["new_topics"]] == [5]
    assert len(found["faded"]) == 1
    assert found["p_value"] <= 0.001
    (tmp_path / "old.txt").write_text("\n".join(texts_of(list(range(5)), 60, 8)), encoding="utf-8")
    shown = run_command("update", "run", "old.txt", "--new-topics", "auto", cwd=tmp_path).stdout
    assert "60 documents added" in shown
    assert "No new topic: p = " in shown
    refused = run_command("update", "run", "old.txt", "--new-topics", "some", cwd=tmp_path)
    assert refused.exit_code == 1
    assert "must be auto or a whole number" in refused.stderr
