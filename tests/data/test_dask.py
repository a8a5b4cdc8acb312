"""Fits on a Dask cluster: the same bits as from disk, for any number of workers and after faults."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import PLSA, InputError
from polyseme.data.dask import WORKER_ENVIRONMENT, connected
from polyseme.data.disk import FIT_FOLDER
from polyseme.datasets.synthetic import sample_corpus
from polyseme.scale import ShardError, open_shards, write_dask_shards, write_shards

dask = pytest.importorskip("dask", reason="needs polyseme[dask]")
distributed = pytest.importorskip("distributed", reason="needs polyseme[dask]")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
    pytest.mark.filterwarnings("ignore:Port \\d+ is already in use"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

X = sp.csr_array(sample_corpus(300, n_words=60, n_topics=4, doc_length=25, seed=1).counts)
SETTINGS = {"n_components": 4, "random_state": 0, "tol": 0.0, "max_iter": 8}


@pytest.fixture
def shards(tmp_path):
    return write_shards([X], tmp_path / "shards", shard_nonzeros=400)


@pytest.fixture(scope="module")
def client():
    """Yield a client with two workers that are threads of this process."""
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
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
    for column in ("objective", "log_likelihood", "residual"):
        assert np.array_equal(one.history_[column], other.history_[column]), column


@pytest.mark.parametrize(
    "settings",
    [{"solver": "em"}, {"background": 0.2, "doc_topic_prior": 1.1}, {"solver": "online", "max_iter": 3}],
    ids=["em", "auto", "online"],
)
def test_workers_give_the_bits_of_one_process(shards, client, settings):
    settings = {**SETTINGS, **settings}
    from_disk = PLSA(**settings).fit(shards)
    cluster = open_shards(shards.folder, cluster=client, checkpoint_every=3)
    at_workers = PLSA(**settings).fit(cluster)
    same_bits(from_disk, at_workers)
    assert np.array_equal(at_workers.transform(cluster), from_disk.doc_topic_)
    if "background" in settings:
        assert np.array_equal(from_disk.word_background_, at_workers.word_background_)
    assert not (shards.folder / FIT_FOLDER).exists()


def test_an_online_pass_is_a_chain_of_tasks_that_restarts_every_few_shards(shards, client, monkeypatch):
    import polyseme.data.dask as at_workers

    settings = {**SETTINGS, "solver": "online", "max_iter": 2}
    chains, submit = [], at_workers.DaskSource._submit

    def counted(self, function, *arguments, **place):
        chains.append(function.__name__)
        return submit(self, function, *arguments, **place)

    monkeypatch.setattr(at_workers, "_CHAIN_LENGTH", 4)
    monkeypatch.setattr(at_workers.DaskSource, "_submit", counted)
    found = PLSA(**settings).fit(open_shards(shards.folder, cluster=client))
    n_shards = len(shards.manifest.shards)
    assert chains.count("_next_state") == 2 * n_shards
    assert chains.count("_with_topics") == 2 * -(-n_shards // 4)
    same_bits(found, PLSA(**settings).fit(shards))


def test_the_graph_stays_bounded(shards, client):
    sizes = []
    scheduler = client.cluster.scheduler

    def callback(entry):
        sizes.append(len(scheduler.tasks))

    settings = {**SETTINGS, "max_iter": 14, "callback": callback}
    PLSA(**settings, solver="accelerated-em").fit(open_shards(shards.folder, cluster=client, checkpoint_every=2))
    assert max(sizes[8:]) <= 1.3 * max(sizes[:8])


def test_an_interrupted_fit_resumes_on_workers_and_on_disk(shards, client):
    whole = PLSA(**SETTINGS).fit(shards)

    class Stop(Exception):
        pass

    def callback(entry):
        if entry["iteration"] == 5:
            raise Stop

    with pytest.raises(Stop):
        PLSA(**SETTINGS, callback=callback).fit(open_shards(shards.folder, cluster=client, checkpoint_every=2))
    assert list((shards.folder / FIT_FOLDER).glob("*/checkpoint.safetensors"))
    same_bits(PLSA(**SETTINGS).fit(open_shards(shards.folder, checkpoint_every=2)), whole)


def test_a_fit_can_start_from_topics_alone(shards, client):
    online = PLSA(**{**SETTINGS, "max_iter": 1}, solver="online").fit(shards)
    settings = {**SETTINGS, "max_iter": 2, "init": (None, online.components_)}
    same_bits(PLSA(**settings).fit(shards), PLSA(**settings).fit(open_shards(shards.folder, cluster=client)))


def test_a_damaged_shard_raises_an_error_with_the_file(shards, client):
    path = shards.folder / shards.manifest.shards[1].name
    content = bytearray(path.read_bytes())
    content[-1] ^= 4
    path.write_bytes(content)
    with pytest.raises(ShardError, match=r"shard-000001.*damaged"):
        PLSA(**SETTINGS).fit(open_shards(shards.folder, cluster=client))


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
    with pytest.raises(InputError, match="has shards already"):
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
    with pytest.raises(InputError, match="checkpoint_every"):
        open_shards(shards.folder, checkpoint_every=0)


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
    settings = {**SETTINGS, "max_iter": 3}
    same_bits(PLSA(**settings).fit(shards), PLSA(**settings).fit(open_shards(shards.folder, cluster="local")))


# faults: worker processes


def fit_under(shards, client, solver, fault, delay):
    """Run a fit, and call `fault(pid)` for a worker in its fourth iteration. Return the model and the process ids."""
    affected = []

    def cause_fault():
        pids = [nanny.pid for nanny in client.cluster.workers.values() if getattr(nanny, "pid", None)]
        affected.append(pids[len(pids) // 2])
        fault(affected[0])

    def callback(entry):
        if entry["iteration"] == 3:
            threading.Timer(delay, cause_fault).start()

    model = PLSA(**SETTINGS, solver=solver, callback=callback)
    model.fit(open_shards(shards.folder, cluster=client, checkpoint_every=4))
    return model, affected


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def pause(pid):
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2)
    os.kill(pid, signal.SIGCONT)


FAULTS = [
    *[("em", 100, kill, 0.01 + 0.03 * attempt) for attempt in range(10)],
    ("em", 0, kill, 0.05),
    ("em", 3, pause, 0.05),
    ("online", 100, kill, 0.05),
    ("accelerated-em", 100, kill, 0.05),
]


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "allowed", "fault", "delay"), FAULTS)
def test_faults_of_a_worker_change_no_bit(shards, solver, allowed, fault, delay):
    """Workers are killed, also if the scheduler allows no failures, or are slow."""
    import dask

    whole = PLSA(**SETTINGS, solver=solver).fit(shards)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed}),
        processes(2) as cluster,
        distributed.Client(cluster) as client,
    ):
        model, affected = fit_under(shards, client, solver, fault, delay)
    assert affected
    same_bits(whole, model)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [(1, 1), (1, 2), (2, 1), (4, 1)])
def test_layouts_change_no_bit(shards, layout):
    whole = PLSA(**SETTINGS).fit(shards)
    n_workers, threads = layout
    with (
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=threads, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        same_bits(whole, PLSA(**SETTINGS).fit(open_shards(shards.folder, cluster=client)))


KILLED_CLIENT = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
from polyseme import PLSA
from polyseme.scale import open_shards
def callback(entry):
    if entry["iteration"] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    shards = open_shards(sys.argv[1], cluster=sys.argv[2], checkpoint_every=2)
    PLSA(4, random_state=0, tol=0.0, max_iter=8, callback=callback).fit(shards)
"""


@pytest.mark.slow
def test_a_killed_client_is_resumed_with_the_same_bits(shards, tmp_path):
    whole = PLSA(**SETTINGS).fit(shards)
    script = tmp_path / "killed.py"
    script.write_text(KILLED_CLIENT)
    with processes(2) as cluster, distributed.Client(cluster) as client:
        address = cluster.scheduler_address
        ended = subprocess.run([sys.executable, str(script), str(shards.folder), address], check=False)
        assert ended.returncode == -signal.SIGKILL
        assert list((shards.folder / FIT_FOLDER).glob("*/checkpoint.safetensors"))
        again = open_shards(shards.folder, cluster=client, checkpoint_every=2)
        same_bits(PLSA(**SETTINGS).fit(again), whole)
