"""Files of edits that the explorer page exports: what they do, and that a bad one changes nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from cli_runner import run as command
from polyseme import InputError
from polyseme.runs.edit_files import topics_digest

SUBJECTS = ("disk cable screen printer", "vote party senate budget", "tree soil leaf flower", "drum bass song stage")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words.split(), 6)) for _ in range(40) for words in SUBJECTS]
    return polyseme.fit(texts, 4, output=tmp_path_factory.mktemp("edits") / "run", max_df=1.0, levels="none")


@pytest.fixture
def run(fitted: polyseme.Run, tmp_path: Path) -> polyseme.Run:
    return fitted.save(tmp_path / "run")


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def exported(run: polyseme.Run, **edits: Any) -> dict[str, Any]:
    return {"format": "polyseme edits 1", "topics": topics_digest(run.view.fitted.topic_word), **edits}


def write(tmp_path: Path, edits: Any) -> Path:
    path = tmp_path / "edits.json"
    path.write_text(edits if isinstance(edits, str) else json.dumps(edits), encoding="utf-8")
    return path


ALL = {"rename": {"0": "First", "1": "Both"}, "merge": [[1, 2]], "hide": [3], "ban": ["disk"]}


def test_a_file_does_what_the_arguments_do_and_is_undone(run: polyseme.Run, tmp_path: Path) -> None:
    before = content(run.path)
    edited = run.edit(file=write(tmp_path, exported(run, **ALL)))
    assert edited.topic_titles[:2] == ["First", "Both"]
    assert edited.hidden_topics == {2}
    assert "disk" not in {word for words in edited.topic_words() for word in words}
    entry = edited.info.edits[-1]
    assert (entry.merge, entry.hide, entry.ban) == (((1, 2),), (3,), ("disk",))
    edited.undo()
    assert content(run.path) == before


def test_the_command_applies_and_undoes_it(run: polyseme.Run, tmp_path: Path) -> None:
    before = content(run.path)
    write(tmp_path, exported(run, **ALL))
    tried = command("edit", "run", "--from", "edits.json", "--dry-run", "-q", cwd=tmp_path)
    assert "become topic 1 (Both)." in tried.output
    assert content(run.path) == before
    assert command("edit", "run", "--from", "edits.json", "-q", cwd=tmp_path).exit_code == 0
    assert polyseme.open_run(run.path).hidden_topics == {2}
    assert command("edit", "run", "--undo", "-q", cwd=tmp_path).exit_code == 0
    assert content(run.path) == before
    for others in (["--ban", "vote"], ["--hide", "1"], ["--level", "4"], ["--undo"]):
        refused = command("edit", "run", "--from", "edits.json", *others, cwd=tmp_path)
        assert refused.exit_code != 0
        assert len(refused.output.splitlines()) <= 2
    assert content(run.path) == before


DEEP = "[" * 50_000 + "]" * 50_000
BAD = {
    "nothing": ("", "Expecting value"),
    "not UTF-8": ("\udcff", "codec can't"),
    "a list": ("[]", "not a JSON object"),
    "deep": (DEEP, "nested too deeply"),
    "another JSON file": ('{"name": "x"}', "'name' is not a known field"),
    "another version": ({"format": "polyseme edits 2"}, "format must be"),
    "unknown field": ({"refit": True}, "'refit' is not a known field"),
    "command": ({"command": "rm"}, "'command' is not a known field"),
    "repeated name": ('{"merge": [], "merge": []}', "a name occurs twice"),
    "not a number": ('{"hide": [NaN]}', "NaN"),
    "a huge number": ({"hide": [10**30]}, "hide"),
    "negative": ({"delete": [-1]}, "delete"),
    "a fraction": ({"delete": [0.5]}, "delete"),
    "a truth value": ({"delete": [True]}, "delete"),
    "missing topic": ({"delete": [4]}, "There is no topic 4"),
    "missing level": ({"level": 7, "rename": {"0": "x"}}, "one of the levels"),
    "all topics": ({"delete": [0, 1, 2, 3]}, "would remove all topics"),
    "twice": ({"merge": [[0, 1], [1, 2]]}, "appears more than once"),
    "one topic": ({"merge": [[1, 1]]}, "at least two topics"),
    "unknown word": ({"ban": ["nosuchword"]}, "has no word"),
    "a name of several lines": ({"rename": {"0": "a\nb"}}, "several lines"),
    "control characters": ({"rename": {"0": "\x1b[2J"}}, "control characters"),
    "markup": ({"rename": {"0": "<img src=x onerror=alert(1)>"}}, "markup"),
    "a long name": ({"rename": {"0": "x" * 5000}}, "5000 characters"),
    "a name that is no text": ({"rename": {"0": ["x"]}}, "rename"),
    "a topic that is no number": ({"rename": {"__proto__": "x"}}, "whole numbers"),
    "nothing to do": ({}, "Nothing to edit"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_and_changes_nothing(case: str, run: polyseme.Run, tmp_path: Path) -> None:
    before = content(run.path)
    edits, message = BAD[case]
    if isinstance(edits, str):
        (tmp_path / "edits.json").write_bytes(edits.encode("utf-8", "surrogateescape"))
        file = tmp_path / "edits.json"
    else:
        file = write(tmp_path, {**exported(run), **edits})
    with pytest.raises(InputError, match=message) as raised:
        run.edit(file=file)
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) < 600
    assert content(run.path) == before


def test_files_that_cannot_be_read_are_refused(run: polyseme.Run, tmp_path: Path) -> None:
    before = content(run.path)
    for file, message in ((tmp_path / "none.json", "No such file"), (tmp_path, "not a regular file")):
        with pytest.raises(InputError, match=message):
            run.edit(file=file)
    large = write(tmp_path, exported(run, ban=["x" * 1_000_001]))
    with pytest.raises(InputError, match="larger than 1 MB"):
        run.edit(file=large)
    with pytest.raises(InputError, match="contains the edits"):
        run.edit(file=write(tmp_path, exported(run, hide=[0])), hide=[1])
    assert content(run.path) == before


def test_a_file_of_other_topics_is_refused(run: polyseme.Run, tmp_path: Path) -> None:
    file = write(tmp_path, exported(run, rename={"3": "Last"}))
    renamed = run.edit(rename={0: "First"})
    assert renamed.edit(file=file).topic_titles[3] == "Last"  # names do not change the topics
    merged = polyseme.open_run(run.path).edit(merge=[[1, 2]])
    before = content(run.path)
    with pytest.raises(InputError, match="for other topics"):
        merged.edit(file=file)
    assert content(run.path) == before


def test_a_file_for_a_finer_level_renames_its_topics(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words.split(), 6)) for _ in range(60) for words in SUBJECTS]
    run = polyseme.fit(texts, 2, output=tmp_path / "levels", max_df=1.0, page=False)
    level = run.level(run.levels[1])
    edits = exported(run, level=run.levels[1], rename={"1": "Finer"})
    edits["topics"] = topics_digest(level.fitted.topic_word)
    assert run.edit(file=write(tmp_path, edits)).level(run.levels[1]).topic_titles[1] == "Finer"
