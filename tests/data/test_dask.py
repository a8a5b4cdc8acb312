"""Fits on a Dask cluster: the same bits as from disk, for any number of workers and after faults."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dask_cluster
from polyseme import LDA, PLSA, HierarchicalPLSA, InputError, ModelFileError
from polyseme.data.dask import WORKER_ENVIRONMENT, connected
from polyseme.data.disk import FIT_FOLDER
from polyseme.datasets import synthetic_corpus
from polyseme.errors import ShardError
from polyseme.scale import open_shards, write_dask_shards, write_shards
from polyseme.solvers import Checkpoint
from polyseme.solvers.checkpoints import read_checkpoint

dask = pytest.importorskip("dask", reason="needs polyseme[dask]")
distributed = pytest.importorskip("distributed", reason="needs polyseme[dask]")

pytestmark = dask_cluster.WARNINGS

X = sp.csr_array(
    synthetic_corpus(300, n_words=60, n_topics=4, length=25, topic_word_prior=0.05, random_state=1).counts()
)
SETTINGS = {"n_components": 4, "random_state": 0, "tol": 0.0, "max_iter": 8}


@pytest.fixture
def shards(tmp_path):
    return write_shards([X], tmp_path / "shards", shard_nonzeros=400)


@pytest.fixture(scope="module")
def client():
    with dask_cluster.two_workers() as client:
        yield client


def processes(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
    )


def same_bits(one, other):
    counted = ("word_documents_", "topic_documents_", "document_frequency_")
    for name in ("components_", "doc_topic_", "topic_weights_", *counted):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.log_likelihood_ == other.log_likelihood_
    assert one.history_.keys() == other.history_.keys()
    for column in one.history_.keys() - {"seconds"}:
        assert np.array_equal(one.history_[column], other.history_[column]), column


@pytest.mark.parametrize(
    "settings",
    [{"solver": "em"}, {"background": 0.2, "doc_topic_prior": 1.1}, {"solver": "online", "max_iter": 3}],
    ids=["em", "auto", "online"],
)
def test_workers_give_the_bits_of_one_process(shards, client, settings):
    settings = {**SETTINGS, **settings}
    from_disk = PLSA(**settings).fit(shards)
    cluster = open_shards(shards.folder, cluster=client)
    at_workers = PLSA(**settings).fit(cluster)
    same_bits(from_disk, at_workers)
    assert np.array_equal(at_workers.transform(cluster), from_disk.doc_topic_)
    if "background" in settings:
        assert np.array_equal(from_disk.word_background_, at_workers.word_background_)
    assert not (shards.folder / FIT_FOLDER).exists()


def test_an_online_pass_is_a_chain_of_tasks_that_restarts_every_few_shards(shards, client, monkeypatch):
    import polyseme.data.dask as at_workers

    settings = {**SETTINGS, "solver": "online", "max_iter": 2}
    chains, submit = [], at_workers.DaskShards._submit

    def counted(self, function, *arguments, **place):
        chains.append(function.__name__)
        return submit(self, function, *arguments, **place)

    monkeypatch.setattr(at_workers, "_CHAIN_LENGTH", 4)
    monkeypatch.setattr(at_workers.DaskShards, "_submit", counted)
    found = PLSA(**settings).fit(open_shards(shards.folder, cluster=client))
    n_shards = len(shards.manifest.shards)
    assert chains.count("_next_state") == 2 * n_shards
    assert chains.count("_first_state") == 2 * -(-n_shards // 4)
    same_bits(found, PLSA(**settings).fit(shards))


def test_the_graph_stays_bounded(shards, client):
    sizes = []
    scheduler = client.cluster.scheduler

    def callback(entry):
        sizes.append(len(scheduler.tasks))

    settings = {**SETTINGS, "max_iter": 24, "callback": callback}
    PLSA(**settings, solver="accelerated-em").fit(open_shards(shards.folder, cluster=client))
    assert max(sizes[12:]) <= 1.3 * max(sizes[:12])


def test_an_interrupted_fit_resumes_on_workers_and_on_disk(shards, client, tmp_path):
    settings = {**SETTINGS, "solver": "accelerated-em"}
    whole = PLSA(**settings).fit(shards)
    settings["checkpoint"] = Checkpoint(tmp_path / "states", 0)
    at_workers = open_shards(shards.folder, cluster=client)

    class Stop(Exception):
        pass

    for data, first, stop in ((at_workers, 0, 3), (shards, 3, 5), (at_workers, 5, 7)):
        seen = []

        def callback(entry, stop=stop, seen=seen):
            seen.append(entry["iteration"])
            if entry["iteration"] == stop:
                raise Stop

        with pytest.raises(Stop):
            PLSA(**settings, callback=callback).fit(data)
        assert seen == list(range(first, stop + 1))
    same_bits(PLSA(**settings).fit(shards), whole)


@pytest.mark.parametrize("written_at", ["workers", "disk"])
def test_damaged_rows_of_a_checkpoint_are_refused_on_workers_and_on_disk(shards, client, tmp_path, written_at):
    """Workers hash the rows while they write them."""
    settings = {**SETTINGS, "solver": "accelerated-em", "checkpoint": Checkpoint(tmp_path / "states", 0)}
    at_workers = open_shards(shards.folder, cluster=client)

    class Stop(Exception):
        pass

    def callback(entry):
        if entry["iteration"] == 5:
            raise Stop

    with pytest.raises(Stop):
        PLSA(**settings, callback=callback).fit(at_workers if written_at == "workers" else shards)
    (file,) = (tmp_path / "states").glob("*/checkpoint.safetensors")
    for files in read_checkpoint(file, file.parent.name).files.values():
        assert len(files.entries) == len(shards.manifest.shards)
        for path in (files.folder / name for name in files.entries):
            content = path.read_bytes()
            for changed in (content[:-4] + np.float32(np.nan).tobytes(), content[:-3] + b"\1\2\3", content[:-1]):
                path.write_bytes(changed)
                for data in (at_workers, shards):
                    with pytest.raises(ModelFileError, match=rf"{path.name} is damaged: .*; remove the folder"):
                        PLSA(**settings).fit(data)
            path.write_bytes(content)
    same_bits(PLSA(**settings).fit(at_workers), PLSA(**{**settings, "checkpoint": None}).fit(shards))


def test_a_fit_can_start_from_topics_alone(shards, client):
    online = PLSA(**{**SETTINGS, "max_iter": 1}, solver="online").fit(shards)
    settings = {**SETTINGS, "solver": "accelerated-em", "max_iter": 2, "init": (None, online.components_)}
    same_bits(PLSA(**settings).fit(shards), PLSA(**settings).fit(open_shards(shards.folder, cluster=client)))


def test_a_damaged_shard_raises_an_error_with_the_file(shards, client):
    path = shards.folder / shards.manifest.shards[1].name
    content = bytearray(path.read_bytes())
    content[-1] ^= 4
    path.write_bytes(content)
    with pytest.raises(ShardError, match=r"shard-000001.*damaged"):
        PLSA(**SETTINGS, solver="em").fit(open_shards(shards.folder, cluster=client))


def test_a_full_disk_is_not_a_lost_scheduler(shards, client, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyseme.data.dask.write_atomically", full)
    with pytest.raises(OSError, match="No space left on device"):
        PLSA(**SETTINGS, solver="em").fit(open_shards(shards.folder, cluster=client))


def test_collections_become_shards(tmp_path, client):
    array = pytest.importorskip("dask.array")
    bag = pytest.importorskip("dask.bag")
    text = pytest.importorskip("polyseme.text")
    counts = X.toarray()
    shards = write_dask_shards(array.from_array(counts, chunks=(80, 20)), tmp_path / "array", cluster=client)
    assert len(shards.manifest.shards) == 4
    np.testing.assert_array_equal(sp.vstack(list(shards)).toarray(), counts)
    PLSA(**{**SETTINGS, "max_iter": 2}).fit(shards)
    texts = [f"red green {'moon' if i % 3 else 'sun'}" for i in range(20)]
    shards = write_dask_shards(
        bag.from_sequence(texts, npartitions=3), tmp_path / "bag", cluster=client, vectorizer=text.Vectorizer()
    )
    assert shards.vocabulary == ["green", "moon", "red", "sun"]
    np.testing.assert_array_equal(sp.vstack(list(shards)).toarray(), text.Vectorizer().fit_transform(texts).toarray())
    with pytest.raises(InputError, match="use write_shards"):
        write_dask_shards(counts, tmp_path / "other", cluster=client)
    with pytest.raises(InputError, match="already has shards"):
        write_dask_shards(array.from_array(counts), tmp_path / "array", cluster=client)


class Frame:
    """Stand-in for a Dask data frame: column names, and partitions that are pandas frames."""

    def __init__(self, frame, npartitions):
        self.columns = frame.columns
        self._parts = [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), npartitions)]

    def to_delayed(self):
        return [dask.delayed(part) for part in self._parts]


@pytest.mark.parametrize("of_dask", [True, False])
def test_a_frame_becomes_shards(tmp_path, client, of_dask):
    pandas = pytest.importorskip("pandas")
    make = pytest.importorskip("dask.dataframe", reason="needs pyarrow").from_pandas if of_dask else Frame
    frame = pandas.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(60)])
    shards = write_dask_shards(make(frame, npartitions=3), tmp_path / "frame", cluster=client)
    assert shards.vocabulary == list(frame.columns)
    assert len(shards.manifest.shards) == 3
    np.testing.assert_array_equal(sp.vstack(list(shards)).toarray(), frame.to_numpy())


def test_an_invalid_cluster_is_refused(shards):
    with pytest.raises(InputError, match="cluster must be"):
        PLSA(**SETTINGS).fit(open_shards(shards.folder, cluster="nowhere"))
    with pytest.raises(InputError, match="at least one worker"):
        PLSA(**SETTINGS).fit(open_shards(shards.folder, cluster=0))


def test_local_workers_keep_freed_memory_and_end_with_the_block():
    with connected(2) as client:
        found = client.run(lambda: ({name: os.environ.get(name) for name in WORKER_ENVIRONMENT}, os.getpid()))
        assert len(found) == 2
        assert all(settings == {n: str(v) for n, v in WORKER_ENVIRONMENT.items()} for settings, _ in found.values())
        assert set(client.nthreads().values()) == {1}
    for _, pid in found.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_local_cluster_gives_the_same_bits(shards):
    settings = {**SETTINGS, "solver": "accelerated-em", "max_iter": 3}
    same_bits(PLSA(**settings).fit(shards), PLSA(**settings).fit(open_shards(shards.folder, cluster="local")))


# faults: worker processes


def fit_under(model, shards, client, fault, delay):
    """Run a fit, and call `fault(pid)` for a worker after its third iteration. Return the process ids."""
    affected = []

    def cause_fault():
        pids = [nanny.pid for nanny in client.cluster.workers.values() if getattr(nanny, "pid", None)]
        affected.append(pids[len(pids) // 2])
        fault(affected[0])

    def callback(entry):
        if entry["iteration"] == 3:
            threading.Timer(delay, cause_fault).start()

    model.set_params(callback=callback).fit(open_shards(shards.folder, cluster=client))
    return affected


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def pause(pid):
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2)
    os.kill(pid, signal.SIGCONT)


TREE = {"depth": 1, "branching": 3, "random_state": 0, "tol": 0.0, "max_iter": 8}
MODELS = {
    "em": PLSA(**SETTINGS, solver="em"),
    "accelerated-em": PLSA(**SETTINGS, solver="accelerated-em"),
    "online": PLSA(**SETTINGS, solver="online"),
    "variational": LDA(**{**SETTINGS, "max_iter": 12}),
    "online variational": LDA(**SETTINGS, solver="online"),
    "tree": HierarchicalPLSA(**TREE),
}
FAULTS = [
    *[("em", 100, kill, 0.01 + 0.03 * attempt) for attempt in range(10)],
    ("em", 0, kill, 0.05),
    ("em", 3, pause, 0.05),
    *[(model, 100, kill, 0.05) for model in MODELS if model != "em"],
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "allowed", "fault", "delay"), FAULTS)
def test_faults_of_a_worker_do_not_change_a_bit(shards, model, allowed, fault, delay):
    """Workers are killed, also if the scheduler allows no failures, or are slow."""
    whole, model = clone(MODELS[model]).fit(shards), clone(MODELS[model])
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed}),
        processes(2) as cluster,
        distributed.Client(cluster) as client,
    ):
        affected = fit_under(model, shards, client, fault, delay)
    assert affected
    same_bits(whole, model)


def test_workers_may_join_and_retire_during_a_fit(shards):
    whole = PLSA(**SETTINGS, solver="em").fit(shards)
    with dask_cluster.two_workers() as client:
        first = list(client.nthreads())

        def callback(entry):
            if entry["iteration"] == 2:
                client.cluster.scale(3)
                client.wait_for_workers(3)
            if entry["iteration"] == 4:
                client.retire_workers(first)

        model = PLSA(**SETTINGS, solver="em", callback=callback).fit(open_shards(shards.folder, cluster=client))
        assert not set(first) & set(client.nthreads())
    same_bits(whole, model)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [(1, 1), (1, 2), (2, 1), (4, 1)])
def test_layouts_do_not_change_a_bit(shards, layout):
    settings = {**SETTINGS, "solver": "accelerated-em"}
    whole = PLSA(**settings).fit(shards)
    n_workers, threads = layout
    with (
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=threads, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        same_bits(whole, PLSA(**settings).fit(open_shards(shards.folder, cluster=client)))


# faults: the process of the client and that of the scheduler

FIT = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore")
from polyseme import HierarchicalPLSA, LDA, PLSA
from polyseme.scale import ShardError, open_shards
from polyseme.solvers import checkpoints
# Every iteration is stored, beside the shards.
checkpoints.FitFolder.of = classmethod(lambda cls, checkpoint, default: cls(default, 0.0, keep=False))
folder, address, model, iteration, delay, pid = sys.argv[1:]
def kill():
    os.kill(int(pid) or os.getpid(), signal.SIGKILL)
def callback(entry):
    print(entry["iteration"], flush=True)
    if entry["iteration"] == int(iteration):
        threading.Timer(float(delay), kill).start()
if __name__ == "__main__":
    try:
        eval(model).set_params(callback=callback).fit(open_shards(folder, cluster=address))
    except ShardError as error:
        print(error)
        sys.exit(3)
"""
"""Fit whose client process (pid 0) or another process is killed some time after an iteration."""


def fit_and_kill(shards, address, model, iteration, delay, pid=0):
    """Run a fit in another process. Return its exit code, the iterations that it has recorded, and its last line."""
    command = [sys.executable, "-c", FIT, shards.folder, address, repr(model), iteration, delay, pid]
    command = [str(part) for part in command]
    ended = subprocess.run(command, check=False, timeout=120, capture_output=True, text=True)
    print(ended.stderr[-3000:])  # shown if the test fails
    lines = ended.stdout.splitlines()
    return ended.returncode, [int(line) for line in lines if line.isdecimal()], lines[-1]


def is_continued(before, iterations):
    """Return whether a fit began with the state after the last iteration of a fit before, or with the one before it."""
    first = max(before, default=-1)
    return iterations[0] in ((first, first + 1) if first > 1 else (0, 1, 2))


LONG = {"em": clone(MODELS["em"]).set_params(max_iter=36)} | {name: MODELS[name] for name in MODELS if name != "em"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "kills"),
    [("em", [(3 * n, 0.02 * n) for n in range(1, 11)]), *((name, [(2, 0), (4, 0.01), (5, 0.02)]) for name in LONG)],
)
def test_a_killed_client_is_resumed_with_the_same_bits(shards, model, kills):
    model, before = LONG[model], []
    whole = clone(model).fit(shards)
    with processes(2) as cluster, distributed.Client(cluster) as client:
        for iteration, delay in kills:
            code, iterations, _ = fit_and_kill(shards, cluster.scheduler_address, model, iteration, delay)
            assert code == -signal.SIGKILL
            assert is_continued(before, iterations)
            before = iterations
        assert list((shards.folder / FIT_FOLDER).glob("*/checkpoint.safetensors"))
        again = clone(model).set_params(callback=lambda entry: before.append(entry["iteration"]))
        before.clear()
        same_bits(again.fit(open_shards(shards.folder, cluster=client)), whole)
        assert before[0] > 2
    assert not (shards.folder / FIT_FOLDER).exists()


@contextmanager
def separate_cluster(folder):
    """Yield the process id and the address of a scheduler, with two workers, each in its own process."""
    folder.mkdir()
    found, common = folder / "scheduler.json", ["--host", "127.0.0.1", "--no-dashboard"]
    worker = ["dask_worker", *common, "--nthreads", "1", "--no-nanny", "--death-timeout", "60"]
    scheduler = ["dask_scheduler", *common, "--port", "0"]
    started = []
    try:
        for name, *arguments in (scheduler, worker, worker):
            command = [sys.executable, "-m", f"distributed.cli.{name}", *arguments, "--scheduler-file", str(found)]
            started.append(subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL))
        deadline = time.monotonic() + 60
        while not found.exists() or not found.read_text().rstrip().endswith("}"):  # it may not be complete yet
            assert time.monotonic() < deadline
            time.sleep(0.05)
        address = json.loads(found.read_text())["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        yield started[0].pid, address
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "kills"),
    [("em", [(3 * n, 0.015 * (n - 1)) for n in range(1, 11)]), ("variational", [(4, 0.01)]), ("tree", [(4, 0.01)])],
)
def test_a_lost_scheduler_ends_a_fit_that_another_cluster_resumes(shards, tmp_path, model, kills):
    model, before = LONG[model], []
    whole = clone(model).fit(shards)
    for iteration, delay in kills:
        with separate_cluster(tmp_path / f"cluster-{iteration}") as (pid, address):
            code, iterations, message = fit_and_kill(shards, address, model, iteration, delay, pid)
        assert code == 3
        assert message.startswith(f"The connection to the Dask scheduler {address} was lost: repeat the call with")
        assert is_continued(before, iterations)
        before = iterations
    again = clone(model).set_params(callback=lambda entry: before.append(entry["iteration"]))
    before.clear()
    with separate_cluster(tmp_path / "last") as (_, address):
        same_bits(again.fit(open_shards(shards.folder, cluster=address)), whole)
    assert before[0] > 2
    assert not (shards.folder / FIT_FOLDER).exists()
