"""Shards on disk: reading returns the written counts, fits equal those in memory, and damage is noticed."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import oracles
from polyseme import (
    LDA,
    PLSA,
    HierarchicalPLSA,
    InputError,
    JointBackground,
    ModelFileError,
    UnsupportedError,
)
from polyseme.core.shard import FAN_IN, ReductionTree
from polyseme.data import disk
from polyseme.data.corpus import MemoryCorpus, as_counts
from polyseme.data.disk import FIT_FOLDER, LocalShards
from polyseme.data.shard_files import read_checked, read_manifest
from polyseme.datasets import synthetic_corpus
from polyseme.errors import ShardError
from polyseme.estimators import likelihood
from polyseme.io import files
from polyseme.priors import TopicSelection
from polyseme.scale import open_shards, write_shards
from polyseme.selection import select_n_topics
from polyseme.solvers import Checkpoint, EarlyStopping, base, checkpoints

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = (
    synthetic_corpus(300, n_words=60, n_topics=4, length=25, topic_word_prior=0.05, random_state=1)
    .counts()
    .astype(np.float64)
)
X = sp.csr_array(X)
SETTINGS = {"n_components": 4, "random_state": 0, "tol": 0.0, "max_iter": 12}


@pytest.fixture
def shards(tmp_path):
    return write_shards([X], tmp_path / "shards", shard_nonzeros=400)


def same_bits(one, other):
    for name in ("components_", "doc_topic_", "topic_weights_", "doc_weights_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.log_likelihood_ == other.log_likelihood_
    for column in ("iteration", "objective", "log_likelihood", "residual"):
        assert np.array_equal(one.history_[column], other.history_[column]), column


# files


def test_shards_hold_the_counts(shards):
    assert shards.shape == X.shape
    assert len(shards.manifest.shards) > FAN_IN + 1
    assert (sp.vstack(list(shards)) != X).nnz == 0
    with shards.session(np.dtype(np.float64), 1) as corpus:
        np.testing.assert_array_equal(corpus.totals, X.sum(axis=1))
        np.testing.assert_array_equal(corpus.word_totals, X.sum(axis=0))
        loaded, whole = corpus.load()
        assert whole
        assert (loaded.counts.matrix() != X).nnz == 0
        for number in range(corpus.n_shards):
            counts = corpus.shard(number).by_doc
            known = counts.transposed(None)
            counts.release()
            again = counts.transposed(None)
            for name in ("indptr", "indices", "values"):
                assert np.array_equal(getattr(known, name), getattr(again, name))


@pytest.mark.parametrize("cuts", [[], [1, 2, 150], list(range(0, 300, 7))])
def test_the_chunks_of_the_stream_do_not_change_a_file(shards, tmp_path, cuts):
    edges = [0, *cuts, X.shape[0]]
    chunks = (X[a:b] for a, b in pairwise(edges))
    other = write_shards(chunks, tmp_path / "other", shard_nonzeros=400)
    assert other.manifest == shards.manifest


def test_the_digest_of_a_shard_is_checked_once(shards, monkeypatch):
    """Later passes check sizes only, also in fits; a copy and a folder that is opened again check the digests."""
    opened, checked = open_shards(shards.folder), []
    monkeypatch.setattr(
        disk, "read_checked", lambda folder, entry: checked.append(entry) or read_checked(folder, entry)
    )
    first = [part.toarray() for part in opened]
    assert checked == list(shards.manifest.shards)
    PLSA(2, random_state=0, solver="em", max_iter=2, tol=0).fit(opened)
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate([part.toarray() for part in opened]))
    assert len([entry for entry in checked if entry in shards.manifest.shards]) == len(first)
    _ = list(pickle.loads(pickle.dumps(opened)))
    assert len([entry for entry in checked if entry in shards.manifest.shards]) == 2 * len(first)
    path = shards.folder / shards.manifest.shards[1].name
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])
    with pytest.raises(ShardError, match="bytes where the manifest says"):
        list(opened)
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ShardError, match="is damaged"):
        list(open_shards(shards.folder))


def test_empty_and_long_documents_stay_in_order(tmp_path):
    counts = np.zeros((6, 40))
    counts[2], counts[4, :3] = 1, 1
    shards = write_shards([counts[:1], counts[1:]], tmp_path / "s", shard_nonzeros=10)
    assert [entry.documents for entry in shards.manifest.shards] == [2, 1, 3]
    np.testing.assert_array_equal(sp.vstack(list(shards)).toarray(), counts)
    model = PLSA(2, random_state=0, max_iter=3).fit(shards)
    np.testing.assert_allclose(model.doc_topic_[0], model.topic_weights_, rtol=1e-6)
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1, rtol=1e-6)


def test_texts_are_counted_by_a_vectorizer(tmp_path):
    text = pytest.importorskip("polyseme.text")
    texts = [f"red green blue {'moon' if i % 3 else 'sun'}" for i in range(50)]
    shards = write_shards(texts, tmp_path / "s", vectorizer=text.Vectorizer(), shard_nonzeros=40)
    assert shards.vocabulary == ["blue", "green", "moon", "red", "sun"]
    expected = text.Vectorizer().fit_transform(texts)
    np.testing.assert_array_equal(sp.vstack(list(shards)).toarray(), expected.toarray())
    model = PLSA(2, random_state=0, max_iter=3).fit(shards)
    assert list(model.vocabulary_) == shards.vocabulary
    with pytest.raises(InputError, match="reads the texts twice"):
        write_shards(iter(texts), tmp_path / "t", vectorizer=text.Vectorizer())


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([], "no documents"),
        ([np.ones((2, 3)), np.ones((2, 4))], "4 columns where the first has 3"),
        ([-np.ones((2, 3))], "finite and non-negative"),
        ([np.full((2, 3), np.nan)], "finite"),
    ],
)
def test_invalid_documents_are_refused(tmp_path, chunks, message):
    with pytest.raises(InputError, match=message):
        write_shards(chunks, tmp_path / "s")


def test_a_finished_folder_is_not_written_again(shards):
    with pytest.raises(InputError, match="already has shards"):
        write_shards([X], shards.folder)


# fits


@pytest.mark.parametrize("solver", ["em", "accelerated-em", "auto", "tempered"])
def test_a_fit_from_disk_equals_a_fit_in_memory(shards, solver):
    from_disk, in_memory = (PLSA(**SETTINGS, solver=solver).fit(data) for data in (shards, X))
    assert from_disk.solver_ == in_memory.solver_ == ("scd" if solver == "auto" else solver)
    for name in ("components_", "doc_topic_", "topic_weights_", "doc_weights_", "unigram_", "log_likelihood_"):
        np.testing.assert_allclose(getattr(from_disk, name), getattr(in_memory, name), rtol=1e-11, atol=1e-12)
    for column in ("objective", "log_likelihood", "residual"):
        np.testing.assert_allclose(from_disk.history_[column], in_memory.history_[column], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(from_disk.transform(shards), in_memory.transform(X), rtol=1e-11, atol=1e-12)
    assert np.array_equal(from_disk.transform(shards), from_disk.doc_topic_)
    assert not (shards.folder / FIT_FOLDER).exists()


def test_background_and_priors(shards):
    settings = {**SETTINGS, "background": 0.2, "doc_topic_prior": 1.1, "topic_word_prior": 1.05}
    from_disk, in_memory = PLSA(**settings).fit(shards), PLSA(**settings).fit(X)
    for name in ("components_", "doc_topic_", "word_background_", "doc_background_"):
        np.testing.assert_allclose(getattr(from_disk, name), getattr(in_memory, name), rtol=1e-10, atol=1e-12)


def test_statistics_equal_those_in_memory(shards):
    from polyseme.core.model import Model, e_step
    from polyseme.kernels import padded

    model = Model(4)
    theta, phi = oracles.random_factors(1, X.shape[0], 60, 4)
    theta, phi = padded(theta, np.float64), padded(phi.T, np.float64)
    whole = e_step(model, MemoryCorpus(as_counts(X, np.dtype(np.float64))), theta, phi).stats
    tree, start = ReductionTree(), 0
    with shards.session(np.dtype(np.float64), 2) as corpus:
        for number in range(corpus.n_shards):
            shard = corpus.shard(number)
            tree.add(e_step(model, shard, theta[start : start + shard.n_docs], phi).stats)
            start += shard.n_docs
    total = tree.total()
    for name in ("word_sums", "log_operands", "log_likelihood", "tokens", "topic_mass", "doc_gain"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-12, atol=1e-12)


def test_memory_does_not_grow_with_the_number_of_shards(tmp_path):
    n_words, K = 20_000, 16
    counts = sp.random_array((240, n_words), density=5e-4, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    shards = write_shards([counts], tmp_path / "s", shard_nonzeros=1 + counts.nnz // 60)
    assert len(shards.manifest.shards) >= 60
    tracemalloc.start()
    PLSA(K, solver="em", init="random", max_iter=2, tol=0, random_state=0).fit(shards)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 8 * K * n_words  # the topics, and a few sums of float64 numbers per topic and word


@pytest.mark.parametrize("solver", ["auto", "accelerated-em"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(tmp_path, dtype, solver):
    shards = write_shards([X.astype(dtype)], tmp_path / "s", shard_nonzeros=1500)
    fits = [PLSA(**SETTINGS, solver=solver, n_jobs=n_jobs).fit(shards) for n_jobs in (1, 3)]
    assert fits[0].components_.dtype == dtype
    same_bits(*fits)


def test_solvers_that_need_all_documents_are_refused_if_these_are_too_many(shards, monkeypatch):
    monkeypatch.setattr(base, "LOADED_NONZEROS", 1000)
    refused = [
        ({"solver": "scd"}, "needs all counts in memory, where .* are loaded. Solvers that read shards: auto, em"),
        ({"solver": "annealed"}, "needs all counts in memory"),
        ({"early_stopping": EarlyStopping()}, "are loaded. Solvers that read shards, without early_stopping: auto, em"),
        ({"init": "lsa"}, "init='random'"),
        ({"init": (np.ones((300, 4)), np.ones((4, 60)))}, "takes a name"),
    ]
    for settings, message in refused:
        with pytest.raises(UnsupportedError, match=message):
            PLSA(**{**SETTINGS, **settings}).fit(shards)
    assert PLSA(**SETTINGS).fit(shards).solver_ == "em"


@pytest.mark.parametrize("init", ["random", "topics"])
def test_a_fit_of_too_many_documents_for_memory_starts_from_a_fit_to_a_sample(shards, monkeypatch, init):
    topics = np.random.default_rng(0).dirichlet(np.ones(60), 4)
    settings = {**SETTINGS, "solver": "em", "init": init if init == "random" else (None, topics)}
    without = PLSA(**settings).fit(shards)
    monkeypatch.setattr(base, "LOADED_NONZEROS", 1000)
    monkeypatch.setattr(likelihood, "_SAMPLED_WEIGHTS", 100 * 16)  # 100 of 300 documents
    fits = [PLSA(**settings, n_jobs=n_jobs).fit(shards) for n_jobs in (1, 2)]
    same_bits(*fits)
    first, final = (model.history_["log_likelihood"] for model in (without, fits[0]))
    assert final[0] > first[0]
    assert (np.diff(final) > -1e-6).all()
    assert (fits[0].components_[:, np.asarray(X.sum(axis=0)).ravel() > 0].max(axis=0) > 0).all()


def test_models_that_compare_documents_are_refused(shards):
    refused = [
        ({"background": JointBackground(0.1)}, "no JointBackground"),
        ({"doc_topic_prior": TopicSelection(0.1)}, "no prior that compares or names documents"),
    ]
    for settings, message in refused:
        with pytest.raises(UnsupportedError, match=message):
            PLSA(**{**SETTINGS, **settings}).fit(shards)
    with pytest.raises(UnsupportedError, match="sample_weight"):
        PLSA(2).fit(shards, sample_weight=np.ones(300))
    with pytest.raises(InputError, match="60 words, but the model has 5"):
        PLSA(2, max_iter=1).fit(np.ones((3, 5))).transform(shards)


# faults


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_flipped_bit_raises_an_error_with_the_file(shards):
    path = shards.folder / shards.manifest.shards[2].name
    for position in (9, path.stat().st_size // 2, -1):
        flip(path, position)
        with pytest.raises(ShardError, match=r"shard-000002.*damaged"):
            PLSA(**SETTINGS).fit(open_shards(shards.folder))
        flip(path, position)
    PLSA(**SETTINGS).fit(open_shards(shards.folder))


def test_a_short_or_missing_shard_raises_an_error_with_the_file(shards):
    path = shards.folder / shards.manifest.shards[1].name
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(ShardError, match=r"shard-000001.*bytes"):
        open_shards(shards.folder)
    path.unlink()
    with pytest.raises(ShardError, match=r"shard-000001.*missing"):
        open_shards(shards.folder)


def test_a_damaged_manifest_is_refused(shards, tmp_path):
    path = shards.folder / "manifest.json"
    content = json.loads(path.read_text())
    for change in ({"dtype": "int8"}, {"shards": 3}, {"more": 1}, {"format_version": None}):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(ShardError, match="damaged"):
            open_shards(shards.folder)
    content["shards"][0]["name"] = "../other"
    path.write_text(json.dumps(content))
    with pytest.raises(ShardError, match="damaged"):
        open_shards(shards.folder)
    path.write_text(json.dumps({**content, "format_version": 99}))
    with pytest.raises(ShardError, match="newer"):
        open_shards(shards.folder)
    with pytest.raises(InputError, match="has no manifest"):
        open_shards(tmp_path)


def full_disk_after(monkeypatch, writes):
    """Make os.replace work a number of times and then fail as on a full disk."""
    left, replace = [writes], os.replace

    def failing(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(*arguments)

    monkeypatch.setattr(files.os, "replace", failing)


def test_writing_continues_after_a_full_disk(shards, tmp_path, monkeypatch):
    folder = tmp_path / "other"
    with monkeypatch.context() as patch:
        full_disk_after(patch, 6)
        with pytest.raises(OSError, match="No space"):
            write_shards([X], folder, shard_nonzeros=400)
    assert len(read_manifest(folder).shards) == 3
    assert not list(folder.glob("*.part"))
    with pytest.raises(ShardError, match="is not complete"):
        open_shards(folder)
    with pytest.raises(InputError, match="the interrupted call wrote shards of 400 non-zeros"):
        write_shards([X], folder, shard_nonzeros=500)
    again = write_shards([X[:50], X[50:]], folder)
    assert again.manifest == shards.manifest


@pytest.mark.parametrize("solver", ["em", "accelerated-em", "scd"])
@pytest.mark.parametrize("seconds", [0, 10])
def test_a_fit_resumes_after_a_full_disk(shards, solver, seconds, monkeypatch, tmp_path):
    whole = PLSA(**SETTINGS, solver=solver).fit(shards)
    settings = {**SETTINGS, "solver": solver, "checkpoint": Checkpoint(tmp_path / "states", seconds)}
    n_writes = 1 if solver == "scd" else len(shards.manifest.shards) + 2
    with monkeypatch.context() as patch:
        full_disk_after(patch, 6 * n_writes if seconds == 0 or solver != "scd" else 0)
        with pytest.raises(OSError, match="No space"):
            PLSA(**settings).fit(shards)
    iterations = []
    again = PLSA(**settings, callback=lambda entry: iterations.append(entry["iteration"])).fit(shards)
    same_bits(again, whole)
    assert (iterations[0] > 0) == (seconds == 0)
    assert not (shards.folder / FIT_FOLDER).exists()


class Stop(Exception):
    pass


def stop_at(iteration):
    """Return a callback that ends a fit."""

    def callback(entry):
        if entry["iteration"] == iteration:
            raise Stop

    return callback


def stopped(settings, shards, iteration):
    """Run a fit that ends in an iteration, before its state is stored."""
    with pytest.raises(Stop):
        PLSA(**settings, callback=stop_at(iteration)).fit(shards)


def states(shards):
    """Return the checkpoints in the default place."""
    return list((shards.folder / FIT_FOLDER).glob("*/checkpoint.safetensors"))


def set_clock(monkeypatch, seconds=11.0):
    """Let an iteration of every fit take some seconds on the clock of checkpoints. Return a callback of a fit."""
    now = [0.0]

    def callback(entry):
        now[0] += seconds

    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return callback


@pytest.mark.parametrize("solver", ["em", "accelerated-em", "tempered"])
@pytest.mark.parametrize("stops", [(3,), (2, 7, 11)])
def test_an_interrupted_fit_resumes_with_the_same_bits(shards, solver, stops, monkeypatch, tmp_path):
    whole = PLSA(**SETTINGS, solver=solver).fit(shards)
    settings = {**SETTINGS, "solver": solver, "checkpoint": Checkpoint(tmp_path / "states", 0)}
    steps = count_steps(monkeypatch)
    for stop in stops:
        stopped(settings, shards, stop)
    before = len(steps)
    same_bits(PLSA(**settings).fit(shards), whole)
    assert len(steps) - before == 1 + SETTINGS["max_iter"] - (stops[-1] - 1)
    assert list((tmp_path / "states").glob("*/checkpoint.safetensors"))  # the states of an explicit folder stay
    assert not (shards.folder / FIT_FOLDER).exists()


def test_a_checkpoint_is_written_after_the_given_time(shards, monkeypatch, tmp_path):
    settings = {**SETTINGS, "solver": "em"}
    whole = PLSA(**settings).fit(shards)
    settings["checkpoint"] = Checkpoint(tmp_path / "states", 30)
    take_time = set_clock(monkeypatch)

    def callback(entry):
        take_time(entry)
        stop_at(8)(entry)

    with pytest.raises(Stop):
        PLSA(**settings, callback=callback).fit(shards)
    steps, seen = count_steps(monkeypatch), []
    same_bits(PLSA(**settings, callback=lambda entry: seen.append(entry["iteration"])).fit(shards), whole)
    # The callback of the start and of each iteration takes 11 s: 33 s have passed after iteration 2, then after 5.
    assert len(steps) == 1 + 12 - 5
    assert seen == list(range(6, 13))


def test_a_fit_in_the_default_place_resumes_and_removes_its_state(shards, monkeypatch):
    settings = {**SETTINGS, "solver": "em"}
    whole = PLSA(**settings).fit(shards)
    take_time = set_clock(monkeypatch)

    def callback(entry):
        take_time(entry)
        stop_at(6)(entry)

    with pytest.raises(Stop):
        PLSA(**settings, callback=callback).fit(shards)
    assert len(states(shards)) == 1
    steps = count_steps(monkeypatch)
    same_bits(PLSA(**settings).fit(shards), whole)
    assert len(steps) == 1 + 12 - 5
    assert not (shards.folder / FIT_FOLDER).exists()


@pytest.mark.parametrize("checkpoint", [3, True, ["folder"]])
def test_a_checkpoint_is_a_folder(shards, checkpoint):
    with pytest.raises(InputError, match="checkpoint must be None, a folder or"):
        PLSA(**SETTINGS, checkpoint=checkpoint).fit(shards)


def test_a_checkpoint_needs_a_seed(shards, tmp_path):
    for random_state in (None, np.random.RandomState(0)):
        with pytest.raises(InputError, match="set random_state to an int"):
            PLSA(**{**SETTINGS, "random_state": random_state}, checkpoint=tmp_path / "states").fit(shards)


def count_steps(monkeypatch):
    """Return a list that grows with each step over all shards."""
    steps, run = [], LocalShards.run

    def counted(self, *arguments):
        steps.append(1)
        return run(self, *arguments)

    monkeypatch.setattr(LocalShards, "run", counted)
    return steps


@pytest.mark.parametrize("change", [{"random_state": 1}, {"dtype": np.float32}, {"tol": 1e-9}, {"background": 0.1}])
def test_another_fit_does_not_resume_from_the_checkpoint(shards, tmp_path, change):
    settings = {**SETTINGS, "solver": "em", "checkpoint": Checkpoint(tmp_path / "states", 0)}
    stopped(settings, shards, 6)
    other, seen = {**settings, **change}, []
    found = PLSA(**other, callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    assert seen[0] == 0
    same_bits(found, PLSA(**{**other, "checkpoint": None}).fit(shards))
    same_bits(PLSA(**settings).fit(shards), PLSA(**{**settings, "checkpoint": None}).fit(shards))
    assert len(list((tmp_path / "states").iterdir())) == 2


def test_every_start_has_its_own_state(shards, tmp_path, monkeypatch):
    settings = {**SETTINGS, "solver": "em", "n_init": 3}
    whole = PLSA(**settings).fit(shards)
    settings["checkpoint"] = Checkpoint(tmp_path / "states", 0)
    seen = []

    def callback(entry):
        seen.append(entry["iteration"])
        if len(seen) == 13 + 5:
            raise Stop

    with pytest.raises(Stop):
        PLSA(**settings, callback=callback).fit(shards)
    seen.clear()
    same_bits(PLSA(**settings, callback=lambda entry: seen.append(entry["iteration"])).fit(shards), whole)
    assert seen == [*range(4, 13), *range(13)]  # the first start is done, the second one resumes
    assert len(list((tmp_path / "states").iterdir())) == 3


def test_two_fits_in_one_folder_are_refused(shards):
    def callback(entry):
        with pytest.raises(InputError, match="in use by another fit"):
            PLSA(**SETTINGS).fit(open_shards(shards.folder))
        raise Stop

    with pytest.raises(Stop):
        PLSA(**SETTINGS, callback=callback).fit(shards)
    PLSA(**SETTINGS).fit(shards)


KILLED = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
from polyseme import HierarchicalPLSA, LDA, PLSA
from polyseme.scale import open_shards
from polyseme.solvers import checkpoints
# Every iteration is stored, beside the shards.
checkpoints.FitFolder.of = classmethod(lambda cls, checkpoint, default: cls(default, 0.0, keep=False))
def callback(entry):
    if entry["iteration"] == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
model = eval(sys.argv[2])
model.set_params(callback=callback).fit(open_shards(sys.argv[1]))
"""


def kill_in(iteration, model, shards):
    """Fit a model in another process, which is killed in an iteration before its state is stored."""
    command = [sys.executable, "-c", KILLED, str(shards.folder), repr(model), str(iteration)]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL


def test_a_killed_fit_resumes_with_the_same_bits(shards, monkeypatch):
    model = PLSA(**SETTINGS, solver="accelerated-em")
    whole = clone(model).fit(shards)
    kill_in(7, model, shards)
    steps = count_steps(monkeypatch)
    same_bits(model.fit(shards), whole)
    assert len(steps) == 1 + 12 - 6
    assert not (shards.folder / FIT_FOLDER).exists()


TREE = {"depth": 1, "branching": 3, "random_state": 0, "tol": 0.0, "max_iter": 12}
KILLED_MODELS = {
    "em": PLSA(**SETTINGS, solver="em"),
    "accelerated-em": PLSA(**SETTINGS, solver="accelerated-em"),
    "online": PLSA(**SETTINGS, solver="online"),
    "coordinate ascent": PLSA(**SETTINGS),
    "variational": LDA(**{**SETTINGS, "max_iter": 24}),
    "learned priors": LDA(
        **{**SETTINGS, "max_iter": 24}, doc_topic_prior="asymmetric-learned", topic_word_prior="symmetric-learned"
    ),
    "online variational": LDA(**SETTINGS, solver="online"),
    "online, learned priors": LDA(**SETTINGS, solver="online", doc_topic_prior="asymmetric-learned"),
    "tree": HierarchicalPLSA(**TREE),
    "tree by EM": HierarchicalPLSA(**TREE, solver="em"),
    "grown tree": HierarchicalPLSA(**{**TREE, "branching": 2}, growth=4),
}


def every_number(model):
    """Return the arrays and numbers of a fitted model by name, except the times of its iterations."""
    shown = ("components_", "doc_topic_", "topic_weights_", "log_likelihood_", "word_documents_", "bound_", "n_iter_")
    shown += ("node_word_", "leaf_node_", "parents_", "node_word_documents_", "held_out_", "topic_word_dirichlet_")
    shown += ("doc_topic_prior_", "topic_word_prior_", "doc_topic_dirichlet_")
    found = {name: getattr(model, name) for name in shown if hasattr(model, name)}
    return found | {name: column for name, column in model.history_.items() if name != "seconds"}


@pytest.mark.slow
@pytest.mark.parametrize("model", KILLED_MODELS.values(), ids=KILLED_MODELS)
def test_a_fit_that_is_killed_again_and_again_ends_with_the_same_bits(shards, model):
    whole = every_number(clone(model).fit(shards))
    last = whole["n_iter_"]  # the bound of an online pass may decrease, which ends the fit
    for iteration in sorted({1, 2, 5, 8, 9, last - 1, last}):
        kill_in(iteration, model, shards)
        assert len(states(shards)) == (iteration > 1)
    seen = []
    found = every_number(clone(model).set_params(callback=lambda entry: seen.append(entry["iteration"])).fit(shards))
    assert seen == [last]
    assert found.keys() == whole.keys()
    for name, value in whole.items():
        assert value is None or np.array_equal(found[name], value), name
    assert not (shards.folder / FIT_FOLDER).exists()


def test_a_damaged_checkpoint_raises_an_error_with_the_file(shards, tmp_path):
    settings = {**SETTINGS, "solver": "em", "checkpoint": Checkpoint(tmp_path / "states", 0)}
    stopped(settings, shards, 6)
    (state,) = (tmp_path / "states").glob("*/checkpoint.safetensors")
    content = state.read_bytes()
    for damaged in (b"{", content[:-9], content[:-1] + bytes([content[-1] ^ 1])):
        state.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"checkpoint.safetensors is damaged"):
            PLSA(**settings).fit(shards)
    state.write_bytes(content)
    rows = checkpoints.read_checkpoint(state, state.parent.name).files["point"].path("000003.npy")
    rows.write_bytes(rows.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match=r"000003.npy is damaged: .* remove the folder .* to start again"):
        PLSA(**settings).fit(shards)


# functions that do not support shards (for estimators see tests/conformance/test_corpora.py)


def test_functions_without_support_for_shards_refuse_them_before_any_work(shards, monkeypatch):
    steps = count_steps(monkeypatch)
    model = PLSA(2, random_state=0, max_iter=2).fit(X)
    for method in (model.partial_fit, model.perplexity, model.score, select_n_topics):
        with pytest.raises(UnsupportedError, match="one shard after the other"):
            method(shards)
    assert not steps
    nmf = PLSA(**SETTINGS).fit(shards).to_nmf()
    np.testing.assert_allclose(nmf.doc_factor_.sum(axis=1), X.sum(axis=1), rtol=1e-9)
