"""Damage to any file of a run is one clear error, or does not change the answer of a command."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_runner import TEXTS, run
from polyseme import PLSA
from polyseme.errors import InputError, ModelFileError, ShardError
from polyseme.io.arrays import read_safetensors
from polyseme.progress import SilentReporter
from polyseme.runs import open_run, store
from polyseme.runs.info import ModelInfo, RunInfo
from polyseme.runs.search_index import read_run_index
from polyseme.runs.store import STAGES_FILE, work_folder
from polyseme.runs.write import RunDraft
from run_answers import answer, difference

FIT = ("fit", "docs.jsonl", "-k", "2", "-o", "run", "--max-df", "0.9", "-q")
COMMANDS = {
    "topics": ("topics", "run", "--json"),
    "transform": ("transform", "run", "new.txt", "-q"),
    "search": ("search", "run", "metal", "--json", "-q"),
    "evaluate": ("evaluate", "run", "--json", "-q"),
    "explore": ("explore", "run", "-q", "--text", "full"),
    "update": ("update", "run", "new.txt", "-q"),
    "edit names": ("edit", "run", "--rename", "0=Fruit", "-q"),
    "edit topics": ("edit", "run", "--ban", "iron", "--refit", "-q"),
    "compare": ("compare", "run", "whole", "--json"),
}
WRITING = ("explore", "update", "edit names", "edit topics")
FOR_PEOPLE = ("topics.csv", "explorer.html")
DERIVED = ("search.safetensors",)


def documents(place: Path, texts: list[str]) -> None:
    rows = ({"id": f"d{number}", "text": f"{text} {'extra' * (number % 2)}"} for number, text in enumerate(texts))
    (place / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (place / "new.txt").write_text("apples are fruit\niron is a metal\n", encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run that has all kinds of files, and a twin: a run of the same shapes."""
    place = tmp_path_factory.mktemp("made")
    for name, texts in (("twin", TEXTS[::-1]), ("run", TEXTS)):
        documents(place, texts)
        for command in (FIT, COMMANDS["search"]):
            done = run(*command, cwd=place)
            assert done.exit_code == 0, done.output
        if name != "run":
            (place / "run").rename(place / name)
    shutil.copytree(place / "run", place / "whole")
    return place


@pytest.fixture(scope="module")
def answers(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the correct answer of every command."""
    return {name: answered(copied(made, tmp_path_factory.mktemp("whole")), name) for name in COMMANDS}


def copied(made: Path, place: Path) -> Path:
    """Return a folder with a copy of the run."""
    for name in ("run", "whole"):
        shutil.rmtree(place / name, ignore_errors=True)
        shutil.copytree(made / name, place / name)
    for name in ("docs.jsonl", "new.txt"):
        shutil.copyfile(made / name, place / name)
    return place


def answered(place: Path, name: str) -> dict[str, Any]:
    """Return the answer of a command; raise unless it succeeds or ends with one line."""
    result = run(*COMMANDS[name], cwd=place)
    check_end(result)
    if name not in WRITING:
        return answer(result)
    return answer(result, run=place / "run", before=place / "whole" / "run.json")


def check_end(result: Any) -> None:
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code != 0:
        assert result.exit_code == 1, result.output
        lines = result.stderr.strip().splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("polyseme: ")


def files_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# kinds of damage


def flip(path: Path, place: float = 0.5) -> None:
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 2)  # the last byte of run.json is the end of its line


def enlarge(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def fold(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    """Put a link in place of a file, to a file of the same size with other content."""
    place = next(folder for folder in path.parents if (folder / "docs.jsonl").exists())
    elsewhere = place / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    flip(elsewhere)
    path.symlink_to(elsewhere.absolute())


def link_to_a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a bit": flip,
    "the first byte": lambda path: flip(path, 0.0),
    "the last byte": lambda path: flip(path, 1.0),
    "truncated": truncate,
    "enlarged": enlarge,
    "empty": empty,
    "missing": Path.unlink,
    "a folder": fold,
    "a link": link,
    "a device": link_to_a_device,
}


GONE = ("missing", "a folder", "a device")
"""Damages after which there is no file of the name."""


def is_right(place: Path, command: str, answers: dict[str, Any], what: str) -> bool:
    """Return whether a command gave the correct answer; raise if it succeeded with another one."""
    found = answered(place, command)
    problem = difference(found, answers[command])
    assert found["code"] == 1 or problem is None, f"{command} after damage to {what}: {problem}"
    if found["code"] == 0 and command in WRITING:
        everything(place / "run")  # the digests in run.json do not show whether the files that were kept can be read
    return found["code"] == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_flipped_bit_of_any_file(made, answers, tmp_path, command):
    refused = set()
    for name in files_of(made / "run"):
        place = copied(made, tmp_path)
        flip(place / "run" / name)
        if not is_right(place, command, answers, name):
            refused.add(name)
    read = {"run.json"} if command == "search" else {"run.json", "model.safetensors", "vectorizer.json"}
    assert refused >= read
    assert not refused & {*FOR_PEOPLE, *DERIVED}


def everything(folder: Path) -> list[Any]:
    """Return the content of all files of a run, except those for people and the index."""
    found = open_run(folder)
    model, counts = found.model, found.counts
    shards = found.store.shards
    with shards.session(np.dtype(np.float32), 1) as corpus:
        totals = corpus.word_totals.tolist()
    documents = model._training
    arrays = (model.components_, documents.doc_topic, documents.doc_weights, counts.toarray(), found.places)
    return [*(array.tolist() for array in arrays), totals, shards.vocabulary, found.vocabulary, found.texts,
            found.documents.rows(), found.info]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_any_damage_to_any_file(made, tmp_path, damage):
    whole = everything(made / "run")
    for name in files_of(made / "run"):
        place = copied(made, tmp_path)
        DAMAGES[damage](place / "run" / name)
        if name in (*FOR_PEOPLE, *DERIVED):
            assert everything(place / "run") == whole
            continue
        with pytest.raises((ModelFileError, ShardError, InputError)) as refused:
            everything(place / "run")
        assert "\n" not in str(refused.value)
        assert Path(name).name in str(refused.value) or name == "run.json"


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_command_after_every_damage(made, answers, tmp_path, damage, command):
    for name in files_of(made / "run"):
        place = copied(made, tmp_path)
        DAMAGES[damage](place / "run" / name)
        expected = answers
        if name == "explorer.html" and damage in GONE and command == "edit names":
            expected = deepcopy(answers)  # a run without a page stays without one
            del expected[command]["run"]["files"][name]
        is_right(place, command, expected, f"{name} ({damage})")


@pytest.mark.parametrize("command", ["topics", "search", "edit names"])
def test_a_file_of_another_run_of_the_same_shape(made, answers, tmp_path, command):
    for name in files_of(made / "run"):
        place = copied(made, tmp_path)
        shutil.copyfile(made / "twin" / name, place / "run" / name)
        is_right(place, command, answers, name)


def test_the_files_of_the_twin_differ(made):
    same = {
        name
        for name in files_of(made / "run")
        if (made / "run" / name).read_bytes() == (made / "twin" / name).read_bytes()
    }
    assert same <= {"vectorizer.json", "doc_weights.npy", "shards/vocabulary.json", "shards/word_totals.npy"}
    for name in ("doc_topic.npy", "shards/manifest.json", "shards/shard-000000.safetensors"):
        assert (made / "run" / name).stat().st_size == (made / "twin" / name).stat().st_size


@pytest.mark.parametrize("damage", ["missing", "a folder", "a link"])
def test_a_run_is_complete_without_its_page(made, tmp_path, damage):
    place = copied(made, tmp_path)
    DAMAGES[damage](place / "run" / "explorer.html")
    done = run("explore", "run", "--stability", "2", "-o", "page.html", "-q", cwd=place)
    assert done.exit_code == 0, done.output
    assert (place / "page.html").is_file()
    assert len(open_run(place / "run").info.stability) == 2
    assert not os.path.lexists(place / "run" / "explorer.html")


def test_a_damaged_index_is_built_again(made, answers, tmp_path):
    place = copied(made, tmp_path)
    path = place / "run" / DERIVED[0]
    for damage in ("the first byte", "truncated", "missing", "a device"):
        DAMAGES[damage](path)
        assert is_right(place, "search", answers, path.name)
        assert not path.is_symlink()
        assert read_run_index(open_run(place / "run").store, path).words.supports("plsi-q")


# numbers in JSON


def numbers_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of every number, flag and text."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        if isinstance(part, dict | list):
            yield from numbers_in(part)
        elif part is not None:
            yield value, key


def changed_values(text: bytes) -> Iterator[str]:
    """Yield a JSON text with one value changed, for every value."""
    content = json.loads(text)
    for container, key in numbers_in(content):
        old = container[key]
        container[key] = not old if isinstance(old, bool) else old + 1 if not isinstance(old, str) else f"{old}x"
        yield json.dumps(content)
        container[key] = old


def test_every_changed_value_of_run_json_is_noticed(made, tmp_path):
    place = copied(made, tmp_path)
    path = place / "run" / "run.json"
    good = path.read_bytes()
    changes = 0
    for text in changed_values(good):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ModelFileError, match=r"run\.json (is damaged|was written by a newer)"):
            open_run(place / "run")
        changes += 1
    assert changes > 40
    path.write_text(json.dumps(json.loads(good), sort_keys=True), encoding="utf-8")  # the same values
    assert open_run(place / "run").info.documents == 30


# an interrupted fit


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a fit that was cut after the documents were counted, after the fit, or before the end."""
    place = tmp_path_factory.mktemp("cut")
    documents(place, TEXTS)

    def fail(*_: object, **__: object) -> None:
        raise OSError("cut")

    for name, target, method in (
        ("counted", PLSA, "fit"),
        ("fitted", RunDraft, "finish"),
        ("written", store, "flush_all"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(target, method, fail)
            done = run(*FIT, "--no-page", cwd=place)
        assert "--resume" in done.stderr
        work_folder(place / "run").rename(place / name)
    return place


def resumed(cut: Path, place: Path, name: str, file: str | None, damage: str | None) -> dict[str, Any]:
    """Return the answer of fit --resume after damage to a file of the work folder."""
    work = work_folder(place / "run")
    for folder in (work, place / "run"):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cut / name, work)
    for other in ("docs.jsonl", "new.txt"):
        shutil.copyfile(cut / other, place / other)
    if file is not None and damage is not None:
        DAMAGES[damage](work / file)
    result = run(*FIT, "--no-page", "--resume", cwd=place)
    check_end(result)
    return answer(result, run=place / "run")


@pytest.mark.parametrize("name", ["counted", "fitted"])
@pytest.mark.parametrize("damage", ["a bit", "truncated", "missing", "a link"])
def test_damage_to_an_interrupted_fit(cut, tmp_path, name, damage):
    right = resumed(cut, tmp_path, name, None, None)
    assert right["code"] == 0
    refused = set()
    for file in files_of(cut / name):
        found = resumed(cut, tmp_path, name, file, damage)
        assert found["code"] == 1 or difference(found, right) is None, (file, difference(found, right))
        if found["code"] == 1:
            refused.add(file)
    assert "vectorizer.json" in refused
    assert damage in ("missing", "a link") or STAGES_FILE in refused  # without the file, the fit starts again


@pytest.mark.parametrize("name", ["fitted", "written"])
def test_a_damaged_block_that_no_stage_reads_does_not_become_part_of_a_run(cut, tmp_path, name):
    _, arrays = read_safetensors(cut / name / "documents.index")
    start, size, _ = arrays["source.blocks"][0].tolist()
    place = shutil.copytree(cut, tmp_path / "changed")
    content = bytearray((place / name / "documents.blocks").read_bytes())
    content[start + size // 2] ^= 1
    (place / name / "documents.blocks").write_bytes(content)
    assert resumed(cut, tmp_path, name, None, None)["code"] == 0
    assert resumed(place, tmp_path, name, None, None)["code"] == 1


def test_every_changed_value_of_stages_json_is_noticed(cut, tmp_path):
    work = shutil.copytree(cut / "fitted", tmp_path / "work")
    path = work / STAGES_FILE
    good = path.read_bytes()
    settings, info = json.loads(good)["settings"], RunInfo(ModelInfo("PLSA", "plsa"), 0, 0)
    changes = 0
    for text in changed_values(good):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ModelFileError, match=r"stages\.json (is damaged|was written by a newer)"):
            RunDraft(work, info, settings, SilentReporter(), resume=True)
        changes += 1
    assert changes > 40
    path.write_bytes(good)
    assert RunDraft(work, info, settings, SilentReporter(), resume=True).info.iterations > 0
