"""A run folder is the old or the new one, whatever happens: kills, other writers, systems without atomic exchange."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_runner import write_texts
from polyseme import InputError
from polyseme.io import files
from polyseme.io.files import locked
from polyseme.runs import atomic_folder, open_run
from polyseme.runs.folder import CHECKPOINT_FOLDER, work_folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "polyseme.cli", *arguments]


def fingerprint(run: Path) -> str:
    model = open_run(run).model
    return hashlib.sha256(model.components_.tobytes() + model.doc_topic_.tobytes()).hexdigest()


def states(run: Path) -> list[Path]:
    """Return the checkpoints of the unfinished fit of a run."""
    return list((work_folder(run) / CHECKPOINT_FOLDER).glob("*/checkpoint.safetensors"))


FIT = ("fit", "lines.txt", "-k", "12", "-o", "run", "--checkpoint", "0", "-q", "--max-iter", "60")


@pytest.mark.slow
def test_a_fit_killed_at_random_moments_resumes_to_the_same_model(tmp_path):
    write_texts(tmp_path, 3000)
    start = time.monotonic()
    subprocess.run(command(*FIT), cwd=tmp_path, check=True)
    lasted = time.monotonic() - start
    wanted, names = fingerprint(tmp_path / "run"), {path.name for path in (tmp_path / "run").iterdir()}
    subprocess.run(command("fit", "lines.txt", "-k", "3", "-o", "run", "-q", "--overwrite"), cwd=tmp_path, check=True)
    old = fingerprint(tmp_path / "run")
    moments = random.Random(0)
    finished = checkpoints = 0
    for _ in range(20):
        process = subprocess.Popen(command(*FIT, "--overwrite", "--resume"), cwd=tmp_path)
        time.sleep(moments.uniform(0.2, 1.1) * lasted)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert {path.name for path in (tmp_path / "run").iterdir()} == names
        assert fingerprint(tmp_path / "run") in (old, wanted)
        finished += fingerprint(tmp_path / "run") == wanted
        checkpoints += len(states(tmp_path / "run")) == 1
    assert checkpoints, "no kill met a fit at work"
    subprocess.run(command(*FIT, "--overwrite", "--resume"), cwd=tmp_path, check=True)
    assert fingerprint(tmp_path / "run") == wanted
    assert {path.name for path in tmp_path.iterdir()} == {"lines.txt", "run"}


def test_a_fit_killed_once_resumes_from_its_checkpoint(tmp_path):
    write_texts(tmp_path, 800)
    subprocess.run(command(*FIT), cwd=tmp_path, check=True)
    wanted = fingerprint(tmp_path / "run")
    process = subprocess.Popen(command(*FIT, "--overwrite"), cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not states(tmp_path / "run") and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert fingerprint(tmp_path / "run") == wanted  # the old one, or the new one if it was that fast
    other = subprocess.run(
        command(*FIT, "--overwrite", "--resume", "-k", "9"), cwd=tmp_path, check=False, capture_output=True, text=True
    )
    if work_folder(tmp_path / "run").exists():
        assert other.returncode == 1
        assert "-k: 12, now 9" in other.stderr
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
        (work / "run.json").write_text('{"format_version": 1}', encoding="utf-8")
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
    assert open_run(tmp_path / "run").about == {"format_version": 1}
