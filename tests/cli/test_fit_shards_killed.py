"""``polyseme fit --shards`` that is killed, interrupted or out of disk space resumes to the same bits."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_runner import run, write_texts
from polyseme.data import shard_writer as writing
from polyseme.data.disk import LocalShards
from polyseme.data.shard_files import read_manifest
from polyseme.runs import open_run
from polyseme.runs.store import SHARDS_FOLDER, atomic_folder, work_folder
from shard_runs import MODEL, fitted, make_loading_small, make_small, same_files


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_small(monkeypatch)
    make_loading_small(monkeypatch)
    write_texts(tmp_path, 300)
    return tmp_path


def test_a_second_fit_of_the_same_folder_is_refused(place: Path) -> None:
    with atomic_folder(place / "run"):
        result = run("fit", "lines.txt", *MODEL, "--shards", cwd=place)
    assert result.exit_code == 1
    assert "being written by another polyseme" in result.stderr


KILLED = """
import importlib, os, signal, sys
from polyseme.data import shard_writer
from polyseme.estimators import likelihood
from polyseme.runs import documents
from polyseme.solvers import base
shard_writer._MIN_NONZEROS, shard_writer._NONZEROS_PER_WORD, documents.BLOCK = 4000, 1, 2000
base.LOADED_NONZEROS, likelihood._SAMPLED_WEIGHTS = 1000, 1
module, name, calls = sys.argv[1].split(":")
owner = importlib.import_module(module)
*path, last = name.split(".")
for part in path:
    owner = getattr(owner, part)
plain, left = getattr(owner, last), [int(calls)]
def killing(*arguments, **more):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*arguments, **more)
setattr(owner, last, killing)
sys.argv[1:] = sys.argv[2:]
from polyseme.cli.app import main
main()
"""
PHASES = {
    "reading": "polyseme.runs.documents:DocumentWriter.add:200",
    "sharding": "polyseme.data.shard_writer:write_shard:2",
    "fitting": "polyseme.data.disk:LocalShards.run:4",
    "folding": "polyseme.data.disk:fold_shard:2",
    "levels": "polyseme.runs.write:RunDraft.save_level:0",
    "writing": "polyseme.runs.write:topics_csv:1",
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_fit_killed_in_any_step_resumes_to_the_same_bits(phase: str, place: Path, monkeypatch: Any) -> None:
    fitted(place, "--no-page")
    (place / "run").rename(place / "wanted")
    command = [sys.executable, "-c", KILLED, PHASES[phase], "fit", "lines.txt", *MODEL, "--shards", "--no-page"]
    command += ["--checkpoint", "0"]
    assert subprocess.run(command, cwd=place, check=False).returncode == -signal.SIGKILL
    assert not (place / "run").exists()
    work = work_folder(place / "run")
    done = len(read_manifest(work / SHARDS_FOLDER).shards) if phase != "reading" else 0
    assert done == {"reading": 0, "sharding": 2}.get(phase, done)
    if phase != "reading":
        (place / "lines.txt").unlink()  # the rest of the fit reads the work folder only
        other = run("fit", "lines.txt", *MODEL, "-k", "4", "--shards", "--resume", cwd=place)
        assert "-k was 3, now 4" in other.stderr
        mixed = run("fit", "lines.txt", *MODEL, "--resume", cwd=place)
        assert "--shards was True, now None" in mixed.stderr
    written, steps = counted_calls(monkeypatch)
    fitted(place, "--no-page", "--resume")
    same_files(place / "run", place / "wanted")
    assert sorted(path.name for path in place.iterdir() if path.name != "lines.txt") == ["run", "wanted"]
    n_shards = len(open_run(place / "run").store.shards.manifest.shards)
    assert len(written) == n_shards - done
    # The fifth step, of iteration 4, is killed. A resumed fit repeats the step at the point of the last iteration.
    # The levels of 6 and 12 topics have one iteration over all shards each.
    assert open_run(place / "run").levels == [3, 6, 12]
    assert len(steps) == {"fitting": 1 + 5 - 3 + 4, "folding": 1 + 4, "levels": 4, "writing": 0}.get(phase, 6 + 4)


def counted_calls(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """Return two lists that grow with each shard written and with each step over all shards."""
    written: list[int] = []
    steps: list[int] = []
    write_shard, run_step = writing.write_shard, LocalShards.run

    def counted_write(*arguments: Any) -> Any:
        written.append(1)
        return write_shard(*arguments)

    def counted_step(*arguments: Any) -> Any:
        steps.append(1)
        return run_step(*arguments)

    monkeypatch.setattr(writing, "write_shard", counted_write)
    monkeypatch.setattr(LocalShards, "run", counted_step)
    return written, steps


@pytest.mark.slow
def test_a_fit_killed_at_random_moments_ends_with_the_same_bits(place: Path) -> None:
    rng = np.random.default_rng(0)
    start = time.monotonic()
    command = [sys.executable, "-c", KILLED, "polyseme.data.shard_writer:write_shard:1000000"]
    command += ["fit", "lines.txt", *MODEL, "--shards", "--no-page", "--checkpoint", "0"]
    subprocess.run(command, cwd=place, check=True)
    lasted = time.monotonic() - start
    (place / "run").rename(place / "wanted")
    for _ in range(15):
        process = subprocess.Popen([*command, "--resume", "--overwrite"], cwd=place)
        time.sleep(rng.uniform(0.3, 1.0) * lasted)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([*command, "--resume", "--overwrite"], cwd=place, check=True)
    same_files(place / "run", place / "wanted")


def stopped_at_the_third_shard(place: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Any:
    """Run a fit that raises `error` at the third shard; the folder `wanted` holds the run of an undisturbed fit."""
    fitted(place, "--no-page")
    (place / "run").rename(place / "wanted")
    with monkeypatch.context() as patch:
        write_shard = writing.write_shard

        def stopped(folder: Path, number: int, counts: Any) -> Any:
            if number == 2:
                raise error
            return write_shard(folder, number, counts)

        patch.setattr(writing, "write_shard", stopped)
        settings = [option for option in MODEL if option != "-q"]
        return run("fit", "lines.txt", *settings, "--shards", "--no-page", cwd=place)


def test_ctrl_c_while_shards_are_written_keeps_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = stopped_at_the_third_shard(place, monkeypatch, KeyboardInterrupt())
    assert result.exit_code == 130
    assert "the same call with --resume continues it" in result.stderr
    fitted(place, "--no-page", "--resume")
    same_files(place / "run", place / "wanted")


def test_a_full_disk_keeps_the_shards_that_are_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = stopped_at_the_third_shard(place, monkeypatch, OSError(28, "No space left on device"))
    assert result.exit_code == 1
    assert "No space left on device; the work so far is stored: repeat the call with --resume." in result.stderr
    fitted(place, "--no-page", "--resume")
    same_files(place / "run", place / "wanted")
