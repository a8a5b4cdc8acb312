"""The cleanup of a fit from shards must not suppress Ctrl-C."""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import scipy.sparse as sp

from polyseme import PLSA
from polyseme.data import rows
from polyseme.data.disk import FIT_FOLDER
from polyseme.data.rows import Generation, remove_unused
from polyseme.datasets import synthetic_corpus
from polyseme.scale import write_shards
from polyseme.solvers import Checkpoint, checkpoints

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = sp.csr_array(
    synthetic_corpus(300, n_words=60, n_topics=4, length=25, topic_word_prior=0.05, random_state=1).counts()
)


@pytest.fixture(autouse=True)
def default_handler():
    """Restore the default handler, because a shell starts background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def shards(tmp_path):
    return write_shards([X], tmp_path / "shards", shard_nonzeros=400)


def generations(shards):
    return list((shards.folder / FIT_FOLDER).glob("*/theta-*"))


@pytest.mark.parametrize("solver", ["em", "accelerated-em"])
@pytest.mark.parametrize("which", [0, 3])
def test_an_interrupt_during_a_removal_ends_the_fit(shards, monkeypatch, solver, which):
    removals, iterations, rmtree = [], [], shutil.rmtree

    def interrupted_removal(path, *arguments, **options):
        if shards.folder in Path(path).parents:  # not a temporary folder of another library
            removals.append(path)
            if len(removals) == which + 1:
                signal.raise_signal(signal.SIGINT)
        rmtree(path, *arguments, **options)

    monkeypatch.setattr(rows.shutil, "rmtree", interrupted_removal)
    callback = lambda entry: iterations.append(entry["iteration"])  # noqa: E731
    model = PLSA(4, solver=solver, random_state=0, tol=0, max_iter=60, callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(shards)
    assert len(removals) > which
    assert max(iterations) < 60
    assert model.components_.shape == (4, 60)  # the best model so far
    assert removals.count(removals[which]) == 2  # the interrupted removal is repeated
    assert not removals[which].exists()


def test_no_python_code_runs_when_a_generation_is_deleted(tmp_path):
    """Python handles signals between Python instructions, and suppresses exceptions in a finalizer."""
    calls = []
    folder = tmp_path / "theta"
    folder.mkdir()
    generation = Generation(folder)
    sys.setprofile(lambda frame, event, _: calls.append((frame.f_code.co_name, event)))
    try:
        del generation
    finally:
        sys.setprofile(None)
    assert [call for call in calls if call[1] == "call"] == []
    assert folder.exists()
    remove_unused()
    assert not folder.exists()


@pytest.mark.parametrize("solver", ["em", "accelerated-em"])
def test_a_fit_leaves_only_the_folders_of_its_checkpoint(shards, solver, tmp_path):
    numbers, states = [], tmp_path / "states"

    def callback(entry):
        numbers.append(len([*generations(shards), *states.glob("*/theta-*")]))
        if entry["iteration"] == 7:
            raise KeyboardInterrupt

    settings = {"solver": solver, "random_state": 0, "tol": 0, "checkpoint": Checkpoint(states, 0)}
    with pytest.raises(KeyboardInterrupt):
        PLSA(4, max_iter=60, callback=callback, **settings).fit(shards)
    assert max(numbers) <= 4 + 2 * (solver == "accelerated-em")
    assert not (shards.folder / FIT_FOLDER).exists()
    in_checkpoint = 1 + (solver == "accelerated-em")
    assert len(list(states.glob("*/theta-*"))) == in_checkpoint
    resumed = PLSA(4, max_iter=60, **settings).fit(shards)
    whole = PLSA(4, max_iter=60, **{**settings, "checkpoint": None}).fit(shards)
    assert resumed.log_likelihood_ == whole.log_likelihood_
    assert len(list(states.glob("*/theta-*"))) == in_checkpoint
    assert not (shards.folder / FIT_FOLDER).exists()


def test_an_interrupted_fit_in_the_default_place_keeps_its_state(shards, monkeypatch):
    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=itertools.count(0, 20).__next__))
    settings = {"solver": "em", "random_state": 0, "tol": 0, "max_iter": 60}

    def callback(entry):
        if entry["iteration"] == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PLSA(4, callback=callback, **settings).fit(shards)
    assert len(generations(shards)) == 1
    PLSA(4, **settings).fit(shards)
    assert not (shards.folder / FIT_FOLDER).exists()


CHILD = """
import sys
from pathlib import Path
from polyseme.data.rows import Generation
for name in ("gone", "kept", "unkept"):
    (Path(sys.argv[1]) / name).mkdir()
gone = Generation(Path(sys.argv[1]) / "gone")
kept = Generation(Path(sys.argv[1]) / "kept", kept=True)
unkept = Generation(Path(sys.argv[1]) / "unkept")
unkept.keep()
unkept.remove_when_unused()
"""


def test_folders_that_are_not_kept_are_removed_when_the_process_ends(tmp_path):
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


class Interrupter:
    """Sends SIGINT some time after a fit has started, and again if the fit does not end."""

    def __init__(self, delay):
        self.started, self.ended, self.sent = threading.Event(), threading.Event(), 0
        self._delay = delay
        self._thread = threading.Thread(target=self._interrupt)

    def _interrupt(self):
        self.started.wait()
        self.ended.wait(self._delay)
        while not self.ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            self.sent += 1
            self.ended.wait(60)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.started.set()
        self.ended.set()
        self._thread.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # from files that were just opened
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no SIGINT there")
def test_no_interrupt_is_lost(shards):
    """Without the fix, one interrupt in ten was lost."""
    random_numbers = random.Random(0)
    for number in range(300):
        with Interrupter(random_numbers.uniform(0, 0.1)) as interrupter:
            model = PLSA(4, solver="em", random_state=number, tol=0, max_iter=10**6)
            model.callback = lambda _, interrupter=interrupter: interrupter.started.set()
            with pytest.raises(KeyboardInterrupt):
                model.fit(shards)
        assert interrupter.sent == 1
