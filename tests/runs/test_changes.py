"""Edits: bans hold everywhere, an edit can be tried and undone, and a merged topic gets no name by chance."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme import InputError
from polyseme.runs.edit import edit_changes
from polyseme.runs.info import Edit
from polyseme.runs.names import level_names

WORDS = {
    "hard drive": ["disk", "controller", "monitor", "keyboard", "printer", "cable", "screen", "cartridge"],
    "Prime Minister": ["election", "vote", "party", "parliament", "senate", "law", "budget", "campaign"],
    "San Francisco": ["garden", "tree", "flower", "soil", "bridge", "water", "plant", "leaf"],
    "rock music": ["guitar", "drum", "bass", "song", "band", "stage", "concert", "melody"],
}
"""Words of subjects by their phrases."""


def text_of(phrase: str, number: int) -> str:
    a, b, c, d = np.random.default_rng(number).choice(WORDS[phrase], 4)
    return f"The {a} {phrase} {b}. A {c} {phrase} and the {d}."


TEXTS = [text_of(phrase, number) for number in range(60) for phrase in WORDS]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    run = polyseme.fit(TEXTS, 2, output=tmp_path_factory.mktemp("changes") / "run", max_df=1.0)
    assert run.levels == [2, 4]
    return run


@pytest.fixture
def run(fitted: polyseme.Run, tmp_path: Path) -> polyseme.Run:
    return fitted.save(tmp_path / "run")


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# bans


def shown(run: polyseme.Run) -> str:
    """Return all names and words of all levels."""
    levels = [run.level(n_topics) for n_topics in run.levels]
    lists = [part for level in levels for part in (*level.topic_titles, *map(" ".join, level.topic_words(50)))]
    return " ".join(lists).lower()


def states(run: polyseme.Run, ban: list[str]) -> Iterator[tuple[str, polyseme.Run]]:
    """Yield the run after a ban and after what can follow it."""
    yield "ban", run.edit(ban=ban)
    yield "update", polyseme.open_run(run.path).update(["A San Francisco hard drive of the garden"])
    yield "update with a refit", polyseme.open_run(run.path).update(["A hard drive in San Francisco"], refit=True)
    yield "refit", polyseme.open_run(run.path).edit(refit=True)
    yield "update after it", polyseme.open_run(run.path).update(["San Francisco has the hard drive"])
    yield "refit after it", polyseme.open_run(run.path).update(["The hard drive of San Francisco"], refit=True)


@pytest.mark.parametrize("options", [{}, {"phrases": True}, {"model": "lda", "max_iter": 20}])
def test_a_banned_word_is_in_no_name_phrase_and_level(options: dict[str, object], tmp_path: Path) -> None:
    run = polyseme.fit(TEXTS, 2, output=tmp_path / "run", max_df=1.0, page=False, **options)
    assert "francisco" in shown(run)
    assert "drive" in shown(run)
    for state, banned in states(run, ["Francisco", "drive"]):
        assert "francisco" not in shown(banned), state
        assert "drive" not in shown(banned), state


def test_a_topic_that_is_not_split_gets_the_new_name_of_its_parent(run: polyseme.Run) -> None:
    levels = dict(run.info.levels or {})
    levels[4] = replace(levels[4], parents=(0, 1, 1, 1), automatic_names=("", "a", "b", "c"))
    run.store.info = replace(run.info, levels=levels)
    assert level_names(run.level(4)) == (run.topic_titles[0], "a", "b", "c")


# undo


EDITS: dict[str, dict[str, object]] = {
    "rename": {"rename": {0: "First", 1: "Second"}},
    "rename a level": {"rename": {2: "Third"}, "level": 4},
    "ban": {"ban": ["drive"]},
    "merge": {"merge": [[0, 1]]},
    "delete": {"delete": [0]},
    "refit": {"ban": ["drive"], "refit": True},
}


@pytest.mark.parametrize("edit", EDITS)
def test_undo_restores_every_byte(edit: str, run: polyseme.Run) -> None:
    before = content(run.path)
    edited = run.edit(**EDITS[edit])
    assert content(run.path) != before
    restored = edited.undo()
    assert content(run.path) == before
    assert restored.topic_titles == run.topic_titles
    np.testing.assert_array_equal(restored.doc_topic, run.doc_topic)
    with pytest.raises(InputError, match="Nothing to undo"):
        restored.undo()
    assert content(run.path) == before


def test_undo_restores_the_state_before_the_last_edit_only(run: polyseme.Run) -> None:
    run.edit(delete=[0])
    first = polyseme.open_run(run.path)
    titles, weights = first.topic_titles, np.array(first.doc_topic)
    first.edit(rename={0: "Only"})
    undone = polyseme.open_run(run.path).undo()
    assert undone.topic_titles == titles
    np.testing.assert_array_equal(undone.doc_topic, weights)
    assert [entry.delete for entry in undone.info.edits] == [(0,)]
    assert not (run.path / "before").exists()
    with pytest.raises(InputError, match="Nothing to undo"):
        undone.undo()


def test_names_of_a_function_are_undone(run: polyseme.Run) -> None:
    run.edit(delete=[0])
    titles = polyseme.open_run(run.path).topic_titles
    named = polyseme.open_run(run.path).name_topics({0: "Named"})
    assert named.topic_titles == ["Named"]
    assert not (run.path / "before").exists()
    assert named.undo().topic_titles == titles


def test_a_new_page_and_a_search_can_be_followed_by_an_undo(run: polyseme.Run) -> None:
    from polyseme.progress import SilentReporter
    from polyseme.runs.changes import refresh_run

    before = content(run.path)
    run.edit(merge=[[0, 1]]).search("garden")
    refresh_run(run.path, SilentReporter(), page="full")
    polyseme.open_run(run.path).undo()
    assert content(run.path) == before


def test_an_update_cannot_be_undone(run: polyseme.Run) -> None:
    updated = run.edit(merge=[[0, 1]]).update(["A new garden with a tree"])
    with pytest.raises(InputError, match="only until the next update"):
        updated.undo()
    assert not (run.path / "before").exists()
    assert polyseme.open_run(run.path).info.documents == len(TEXTS) + 1


def test_a_copy_of_an_edited_run_can_be_undone(run: polyseme.Run, tmp_path: Path) -> None:
    copy = run.edit(ban=["drive"], refit=True).save(tmp_path / "copy")
    shutil.rmtree(run.path)
    restored = copy.undo()
    assert restored.topic_titles == run.topic_titles
    assert restored.counts.sum() == run.info.tokens


def test_a_damaged_file_of_the_state_before_is_not_restored(run: polyseme.Run) -> None:
    run.edit(merge=[[0, 1]])
    file = run.path / "before" / "doc_topic.npy"
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.unlink()
    file.write_bytes(damaged)
    state = content(run.path)
    with pytest.raises(polyseme.ModelFileError, match=r"doc_topic\.npy is damaged"):
        polyseme.open_run(run.path).undo()
    assert content(run.path) == state


def test_an_edit_shares_the_files_that_it_does_not_change(run: polyseme.Run) -> None:
    model = (run.path / "model.safetensors").stat().st_ino
    run.edit(merge=[[0, 1]])
    assert (run.path / "before" / "model.safetensors").stat().st_ino == model
    assert set(os.listdir(run.path / "before")) == {
        "model.safetensors", "doc_topic.npy", "doc_weights.npy", "places.npy", "levels",
    }  # fmt: skip


# dry runs


@pytest.mark.parametrize("edit", EDITS)
def test_a_dry_run_shows_the_edited_run_and_writes_nothing(edit: str, run: polyseme.Run) -> None:
    before, beside = content(run.path), set(run.path.parent.iterdir())
    tried = run.edit(**EDITS[edit], dry_run=True)
    assert content(run.path) == before
    assert set(run.path.parent.iterdir()) == beside
    done = run.edit(**EDITS[edit])
    assert tried.path != done.path
    for n_topics in done.levels:
        one, other = tried.level(n_topics), done.level(n_topics)
        assert one.topic_titles == other.topic_titles
        np.testing.assert_array_equal(one.doc_topic, other.doc_topic)


def test_changes_are_described(run: polyseme.Run) -> None:
    first, second = run.topic_titles
    merged = run.edit(merge=[[0, 1]], rename={0: "All"}, dry_run=True)
    assert edit_changes(run, merged) == [
        f"Topics 0 ({first}) and 1 ({second}) become topic 0 (All).",
        "The finer levels are made again.",
    ]
    deleted = run.edit(delete=[0], rename={1: "B"}, ban=["leaf"], dry_run=True)
    assert edit_changes(run, deleted) == [
        f"Topic 1 ({second}) becomes topic 0 (B).",
        f"Topic 0 ({first}) is deleted.",
        "Words that are hidden: leaf.",
        "The finer levels are made again.",
    ]
    assert edit_changes(run, run.edit(rename={1: "B"}, dry_run=True)) == [f"Topic 1 ({second}) gets the name B."]
    moved = run.edit(delete=[0], dry_run=True)
    assert edit_changes(run, moved)[0] == f"Topic 1 ({second}) becomes topic 0."
    assert edit_changes(run, run.edit(rename={1: ""}, dry_run=True)) == ["Nothing changes."]


# merges


def test_topics_of_different_names_are_merged_under_a_new_one() -> None:
    def merged(names: dict[int, str], **rename: str) -> dict[int, str]:
        edit = Edit.of({int(topic[1:]): name for topic, name in rename.items()}, merge=[[1, 0]])
        assert edit.origin(3) == [[0, 1], [2]]
        return edit.names(edit.origin(3), names)

    assert merged({}) == {}
    assert merged({2: "c"}) == {1: "c"}
    assert merged({0: "a", 1: "a"}) == {0: "a"}
    assert merged({0: "a"}, t0="b") == merged({0: "a"}, t1="b") == merged({0: "a", 1: "c"}, t1="b") == {0: "b"}
    assert merged({0: "a"}, t0="") == {}
    for names, listed in (({0: "a"}, "0 'a', 1 none"), ({1: "b"}, "0 none, 1 'b'"), ({0: "a", 1: "b"}, "0 'a', 1 'b'")):
        with pytest.raises(InputError) as error:
            merged(names)
        assert str(error.value) == (
            f"merge=: the topics have different names ({listed}): name topic 0 with rename= in the same edit."
        )


# hidden topics


def test_a_hidden_topic_is_out_of_lists_and_names_but_in_the_model(run: polyseme.Run) -> None:
    hidden = run.edit(hide=[0])
    below = {topic for topic, parent in enumerate(run.level(4).parents.topics.tolist()) if parent == 0}
    assert hidden.hidden_topics == {0}
    assert hidden.level(4).hidden_topics == below
    np.testing.assert_array_equal(hidden.doc_topic, run.doc_topic)
    assert run.topic_titles[0] not in str(hidden.topics())
    assert "Hidden topics: 0." in str(hidden.topics())
    assert len(hidden.topics()) == 2
    table = (run.path / "topics.csv").read_text(encoding="utf-8")
    assert [line.split(",")[0] for line in table.splitlines()[1:]] == ["1"]
    shown = hidden.view.document_map
    assert {name.top for name in shown.names} == {1}
    assert shown.gray == {0}
    assert polyseme.open_run(run.path).hidden_topics == {0}


def test_hidden_topics_move_with_merges_and_refits(run: polyseme.Run) -> None:
    finest = run.edit(hide=[1]).edit(rename={0: "First"}, refit=True)
    assert finest.hidden_topics == {1 - finest.topic_titles.index("First")}
    with pytest.raises(InputError, match="would leave no topic to show"):
        finest.edit(hide=[0, 1])
    with pytest.raises(InputError, match="appears in hide= and delete="):
        finest.edit(hide=[0], delete=[0])
    with pytest.raises(InputError, match="can only be renamed"):
        finest.edit(hide=[0], level=finest.levels[1])
    with pytest.raises(InputError, match="would leave no topic to show"):
        finest.edit(delete=[finest.topic_titles.index("First")])
    merged = finest.edit(merge=[[0, 1]], rename={0: "Both"})
    assert merged.hidden_topics == set()
