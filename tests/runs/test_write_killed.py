"""A run folder is the old or the new one, whatever happens: kills, other writers, systems without atomic exchange."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_runner import write_texts
from polyseme import InputError
from polyseme.io import files
from polyseme.io.files import locked
from polyseme.runs import open_run
from polyseme.runs.store import CHECKPOINT_FOLDER, atomic_folder, check_is_run, work_folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "polyseme.cli", *arguments]


def fingerprint(run: Path) -> str:
    model = open_run(run).model
    return hashlib.sha256(model.components_.tobytes() + model.doc_topic_.tobytes()).hexdigest()


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def states(run: Path) -> list[Path]:
    """Return the checkpoints of the unfinished fit of a run."""
    return list((work_folder(run) / CHECKPOINT_FOLDER).glob("*/checkpoint.safetensors"))


def stored(run: Path) -> list[int]:
    """Return the times when the states of the unfinished fit of a run were written."""
    return [path.stat().st_mtime_ns for path in states(run)]


def wait_for_a_state(process: subprocess.Popen, run: Path, before: list[int]) -> None:
    """Wait until a fit has stored a state after those of `before`, or has ended."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if stored(run) not in ([], before):
                return
        except FileNotFoundError:  # replaced at this moment
            continue
        time.sleep(0.002)


FIT = ("fit", "lines.txt", "-k", "12", "-o", "run", "--checkpoint", "0", "-q", "--max-iter", "60")


@pytest.mark.slow
def test_a_fit_killed_at_random_moments_resumes_to_the_same_model(tmp_path):
    write_texts(tmp_path, 3000)
    start = time.monotonic()
    subprocess.run(command(*FIT), cwd=tmp_path, check=True)
    lasted = time.monotonic() - start
    wanted, new_names = fingerprint(tmp_path / "run"), names_in(tmp_path / "run")
    subprocess.run(command("fit", "lines.txt", "-k", "3", "-o", "run", "-q", "--overwrite"), cwd=tmp_path, check=True)
    old, old_names = fingerprint(tmp_path / "run"), names_in(tmp_path / "run")
    moments = random.Random(0)
    checkpoints = 0
    for number in range(20):
        before = stored(tmp_path / "run")
        process = subprocess.Popen(command(*FIT, "--overwrite", "--resume"), cwd=tmp_path)
        if number % 2:
            time.sleep(moments.uniform(0.2, 1.1) * lasted)
        else:
            wait_for_a_state(process, tmp_path / "run", before)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = fingerprint(tmp_path / "run"), names_in(tmp_path / "run")
        assert found in ((old, old_names), (wanted, new_names))
        checkpoints += len(states(tmp_path / "run")) == 1
    assert checkpoints, "no kill met a fit at work"
    subprocess.run(command(*FIT, "--overwrite", "--resume"), cwd=tmp_path, check=True)
    assert fingerprint(tmp_path / "run") == wanted
    assert names_in(tmp_path) == {"lines.txt", "run"}


def test_a_fit_killed_once_resumes_from_its_checkpoint(tmp_path):
    write_texts(tmp_path, 800)
    subprocess.run(command(*FIT), cwd=tmp_path, check=True)
    wanted = fingerprint(tmp_path / "run")
    process = subprocess.Popen(command(*FIT, "--overwrite"), cwd=tmp_path)
    wait_for_a_state(process, tmp_path / "run", [])
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert fingerprint(tmp_path / "run") == wanted  # the old one, or the new one if it was that fast
    other = subprocess.run(
        command(*FIT, "--overwrite", "--resume", "-k", "9"), cwd=tmp_path, check=False, capture_output=True, text=True
    )
    if work_folder(tmp_path / "run").exists():
        assert other.returncode == 1
        assert "-k was 12, now 9" in other.stderr
    subprocess.run(command(*FIT, "--overwrite", "--resume"), cwd=tmp_path, check=True)
    assert fingerprint(tmp_path / "run") == wanted


def test_a_second_writer_is_refused(tmp_path):
    def write_at_once() -> None:
        with atomic_folder(tmp_path / "run"), atomic_folder(tmp_path / "run"):
            pass

    with pytest.raises(InputError, match="being written by another polyseme"):
        write_at_once()
    with atomic_folder(tmp_path / "run"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_lock_does_not_outlive_its_holder(tmp_path):
    path = tmp_path / "lock"
    program = (
        "import os, pathlib, sys\nfrom polyseme.io.files import locked\n"
        f"with locked(pathlib.Path({str(path)!r}), 'busy'): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    assert path.exists()
    with locked(path, "busy"):
        pass
    assert not path.exists()


def test_a_replacement_killed_between_two_renames_is_completed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    with atomic_folder(tmp_path / "run") as work:
        (work / "run.json").write_text("{}", encoding="utf-8")
    rename = os.rename

    def killed_after_the_first(source, target):
        rename(source, target)
        raise SystemExit

    monkeypatch.setattr(files.os, "rename", killed_after_the_first)

    def replace() -> None:
        with atomic_folder(tmp_path / "run", overwrite=True):
            pass

    with pytest.raises(SystemExit):
        replace()
    monkeypatch.undo()
    assert not (tmp_path / "run").exists()
    check_is_run(tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_text(encoding="utf-8") == "{}"


KILLER = """
import json, os, random, signal, sys, time
import polars
import polyseme.cli.app, polyseme.explore, polyseme.text.readers.reader
import polyseme.runs.pipeline, polyseme.runs.update, polyseme.runs.edit

def child(arguments):
    '''Run a command in a new process without new imports.'''
    pid = os.fork()
    if pid == 0:
        sys.argv = ["polyseme", *arguments]
        sys.stdout = sys.stderr = open(os.devnull, "w")
        try:
            polyseme.cli.app.app()
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(1)
    return pid

for line in sys.stdin:
    seconds, seed, arguments = json.loads(line)
    pid = child(arguments)
    began = time.monotonic()
    if seconds:
        time.sleep(random.Random(seed).uniform(0, 1.1) * seconds)
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(code, time.monotonic() - began, flush=True)
"""
OPERATIONS = {
    "fit": ("fit", "lines.txt", "-k", "4", "-o", "run", "--overwrite", "--resume", "--checkpoint", "0", "-q"),
    "shards": ("fit", "lines.txt", "-k", "4", "-o", "run", "--overwrite", "--resume", "--shards", "-q"),
    "update": ("update", "run", "new.txt", "-q"),
    "edit": ("edit", "run", "--merge", "0,1", "--ban", "waax", "--rename", "2=Third", "-q"),
    "undo": ("edit", "run", "--undo", "-q"),
    "explore": ("explore", "run", "--text", "full", "-q"),
}
PREPARATION = {"undo": ("edit", "run", "--merge", "0,1", "--ban", "waax", "--refit", "-q")}
"""Commands before an operation."""
KILLS = int(os.environ.get("POLYSEME_KILLS", "5"))
"""Kills of each operation through a plain path, and as many through a link."""


def state_of(run: Path) -> tuple[object, ...]:
    """Return the content of a complete run; raise if a file is missing or damaged."""
    opened = open_run(run)
    texts, rows = opened.texts, opened.documents.drop("topic", "share").hash_rows().to_list()
    names = sorted(opened.info.topic_names.items())
    return (
        opened.info.documents,
        fingerprint(run),
        len(texts),
        tuple(rows),
        tuple(names),
        opened.info.page_text,
    )


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Return a process that runs commands in the folder `place`, and kills them."""
    (tmp_path / "place").mkdir()
    program = [sys.executable, "-c", KILLER]
    with subprocess.Popen(
        program, cwd=tmp_path / "place", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("through", ["path", "link"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_killed_at_a_random_moment_leaves_the_old_or_the_new_run(tmp_path, killer, operation, through):
    place = tmp_path / "place"
    write_texts(place, 400)
    lines = (place / "lines.txt").read_text(encoding="utf-8").split("\n")
    (place / "new.txt").write_text("\n".join(lines[:50]), encoding="utf-8")
    target = place / "run"
    if through == "link":
        (tmp_path / "elsewhere").mkdir()
        target = tmp_path / "elsewhere" / "real"
        (place / "run").symlink_to(target)
    first = ("fit", "lines.txt", "-k", "3", "-o", str(target), "-q", "--seed", "1")

    def perform(arguments: tuple[str, ...], seconds: float = 0.0, seed: int = 0) -> tuple[int, float]:
        killer.stdin.write(json.dumps([seconds, seed, arguments]) + "\n")
        killer.stdin.flush()
        code, lasted = killer.stdout.readline().split()
        return int(code), float(lasted)

    def fresh() -> None:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(tmp_path / "original", target)

    assert perform(first)[0] == 0
    if operation in PREPARATION:
        assert perform(PREPARATION[operation])[0] == 0
    shutil.copytree(target, tmp_path / "original")
    old = state_of(place / "run")
    code, lasted = perform(OPERATIONS[operation])
    assert code == 0
    new = state_of(place / "run")
    names = names_in(target)
    killed = number = 0
    while number < KILLS or (not killed and number < 10 * KILLS):
        fresh()
        code, seconds = perform(OPERATIONS[operation], lasted, number)
        killed += code == -signal.SIGKILL
        lasted = min(lasted, seconds) if code == 0 else lasted  # the machine may have been busier before
        number += 1
        assert state_of(place / "run") in (old, new)
        if code == -signal.SIGKILL and state_of(place / "run") == old:
            assert perform(OPERATIONS[operation])[0] == 0
            assert state_of(place / "run") == new
            assert names_in(target) == names
        assert (place / "run").is_symlink() == (through == "link")
        left = {path.name for folder in {place, target.parent} for path in folder.iterdir()}
        if code == -signal.SIGKILL and state_of(place / "run") == new:  # killed while it removed the old run
            left -= {f".{target.name}.part", f".{target.name}.lock"}  # the next write removes them
        assert left == {"lines.txt", "new.txt", "run", target.name}
    assert perform(("explore", str(target), "-q"))[0] == 0
    assert {path.name for path in target.parent.iterdir()} <= {"lines.txt", "new.txt", "run", target.name}
    assert killed, "no kill met the operation at work"
