"""Shards on disk: reading returns what was written, fits equal those in memory, and damage is noticed."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import oracles
from polyseme import (
    LDA,
    LSA,
    NMF,
    PLSA,
    CorrelatedTopicModel,
    HierarchicalPLSA,
    InputError,
    JointBackground,
    RealTopicModel,
    TensorPLSA,
    UnsupportedError,
)
from polyseme.core.statistics import FAN_IN, ReductionTree
from polyseme.data.corpus import MemoryCorpus, as_counts
from polyseme.data.disk import FIT_FOLDER
from polyseme.data.shard_files import read_manifest
from polyseme.datasets.synthetic import sample_corpus
from polyseme.io import files
from polyseme.priors import TopicSelection
from polyseme.scale import ShardError, open_shards, write_shards
from polyseme.selection import select_n_topics
from polyseme.solvers.checkpoints import Checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = sample_corpus(300, n_words=60, n_topics=4, doc_length=25, seed=1).counts.astype(np.float64)
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
    corpus = shards.corpus(np.dtype(np.float64), 1)
    np.testing.assert_array_equal(corpus.totals, X.sum(axis=1))
    np.testing.assert_array_equal(corpus.word_totals, X.sum(axis=0))
    for number in range(corpus.n_shards):
        counts = corpus.shard(number).by_doc
        known = counts.transposed(None)
        counts.release()
        again = counts.transposed(None)
        for name in ("indptr", "indices", "values"):
            assert np.array_equal(getattr(known, name), getattr(again, name))


@pytest.mark.parametrize("cuts", [[], [1, 2, 150], list(range(0, 300, 7))])
def test_the_chunks_of_the_stream_change_no_file(shards, tmp_path, cuts):
    edges = [0, *cuts, X.shape[0]]
    chunks = (X[a:b] for a, b in pairwise(edges))
    other = write_shards(chunks, tmp_path / "other", shard_nonzeros=400)
    assert other.manifest == shards.manifest


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
    with pytest.raises(InputError, match="has shards already"):
        write_shards([X], shards.folder)


# fits


@pytest.mark.parametrize("solver", ["em", "accelerated-em", "auto", "tempered"])
def test_a_fit_from_disk_equals_a_fit_in_memory(shards, solver):
    from_disk = PLSA(**SETTINGS, solver=solver).fit(shards)
    in_memory = PLSA(**SETTINGS, solver="accelerated-em" if solver == "auto" else solver).fit(X)
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
    corpus, tree, start = shards.corpus(np.dtype(np.float64), 2), ReductionTree(), 0
    for number in range(corpus.n_shards):
        shard = corpus.shard(number)
        tree.add(e_step(model, shard, theta[start : start + shard.n_docs], phi).stats)
        start += shard.n_docs
    total = tree.total()
    for name in ("word_sums", "log_operands", "log_likelihood", "tokens", "topic_mass", "doc_gain"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(tmp_path, dtype):
    shards = write_shards([X.astype(dtype)], tmp_path / "s", shard_nonzeros=1500)
    fits = [PLSA(**SETTINGS, n_jobs=n_jobs).fit(shards) for n_jobs in (1, 3)]
    assert fits[0].components_.dtype == dtype
    same_bits(*fits)


def test_models_and_solvers_that_need_all_documents_are_refused(shards):
    refused = [
        ({"solver": "scd"}, "needs all counts in memory. Solvers that read shards: auto, em"),
        ({"solver": "annealed"}, "needs all counts in memory"),
        ({"early_stopping": True}, "in memory. Solvers that read shards, without early_stopping: auto, em"),
        ({"checkpoint": "file"}, "Leave checkpoint out"),
        ({"background": JointBackground(0.1)}, "no JointBackground"),
        ({"doc_topic_prior": TopicSelection(0.1)}, "compares documents"),
        ({"init": "lsa"}, "init='random'"),
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


@pytest.mark.parametrize("solver", ["em", "accelerated-em"])
@pytest.mark.parametrize("every", [1, 5])
def test_a_fit_resumes_after_a_full_disk(shards, solver, every, monkeypatch):
    whole = PLSA(**SETTINGS, solver=solver).fit(shards)
    with monkeypatch.context() as patch:
        full_disk_after(patch, 9 * (len(shards.manifest.shards) + 2))
        with pytest.raises(OSError, match="No space"):
            PLSA(**SETTINGS, solver=solver).fit(open_shards(shards.folder, checkpoint_every=every))
    entries = []
    again = PLSA(**SETTINGS, solver=solver, callback=entries.append)
    same_bits(again.fit(open_shards(shards.folder, checkpoint_every=every)), whole)
    assert not (shards.folder / FIT_FOLDER).exists()


class Stop(Exception):
    pass


@pytest.mark.parametrize("solver", ["em", "accelerated-em", "tempered"])
@pytest.mark.parametrize("stops", [(3,), (2, 7, 11)])
def test_an_interrupted_fit_resumes_with_the_same_bits(shards, solver, stops, monkeypatch):
    whole = PLSA(**SETTINGS, solver=solver).fit(shards)
    shards = open_shards(shards.folder, checkpoint_every=2)
    em_steps = count_em_steps(monkeypatch)
    for stop in stops:

        def callback(entry, stop=stop):
            if entry["iteration"] == stop:
                raise Stop

        with pytest.raises(Stop):
            PLSA(**SETTINGS, solver=solver, callback=callback).fit(shards)
    before = len(em_steps)
    same_bits(PLSA(**SETTINGS, solver=solver).fit(shards), whole)
    done = stops[-1] // 2 * 2
    assert len(em_steps) - before == 1 + SETTINGS["max_iter"] - done


def test_a_checkpoint_is_written_after_the_given_time(shards, monkeypatch):
    whole = PLSA(**SETTINGS).fit(shards)
    shards = open_shards(shards.folder, checkpoint_every=100)

    def callback(entry):
        if entry["iteration"] == 4:
            raise Stop

    seen = []
    with pytest.raises(Stop):
        PLSA(**SETTINGS, checkpoint=Checkpoint(None, 0), callback=callback).fit(shards)
    em_steps = count_em_steps(monkeypatch)
    again = PLSA(**SETTINGS, callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    same_bits(again, whole)
    assert len(em_steps) == 1 + 12 - 3
    assert seen == list(range(4, 13))
    with pytest.raises(InputError, match="needs a path"):
        PLSA(**SETTINGS, checkpoint=Checkpoint(None)).fit(X)


def count_em_steps(monkeypatch):
    from polyseme.data.disk import DiskSource

    em_steps, em_step = [], DiskSource.em_step

    def counted(self, *arguments):
        em_steps.append(1)
        return em_step(self, *arguments)

    monkeypatch.setattr(DiskSource, "em_step", counted)
    return em_steps


def test_another_fit_does_not_resume_from_the_checkpoint(shards):
    def callback(entry):
        if entry["iteration"] == 6:
            raise Stop

    with pytest.raises(Stop):
        PLSA(**SETTINGS, callback=callback).fit(shards)
    other = {**SETTINGS, "random_state": 1}
    same_bits(PLSA(**other).fit(shards), PLSA(**other).fit(shards))


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
from polyseme import PLSA
from polyseme.scale import open_shards
def callback(entry):
    if entry["iteration"] == 7:
        os.kill(os.getpid(), signal.SIGKILL)
PLSA(4, random_state=0, tol=0.0, max_iter=12, callback=callback).fit(open_shards(sys.argv[1]))
"""


def test_a_killed_fit_resumes_with_the_same_bits(shards, monkeypatch):
    whole = PLSA(**SETTINGS).fit(shards)
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(shards.folder)], check=False)
    assert ended.returncode == -signal.SIGKILL
    em_steps = count_em_steps(monkeypatch)
    same_bits(PLSA(**SETTINGS).fit(shards), whole)
    assert len(em_steps) == 1 + 12 - 5


def test_a_damaged_checkpoint_raises_an_error_with_the_file(shards):
    def callback(entry):
        if entry["iteration"] == 6:
            raise Stop

    with pytest.raises(Stop):
        PLSA(**SETTINGS, callback=callback).fit(shards)
    (state,) = (shards.folder / FIT_FOLDER).glob("*/checkpoint.safetensors")
    content = state.read_bytes()
    for damaged in (b"{", content[:-9], content[:-1] + bytes([content[-1] ^ 1])):
        state.write_bytes(damaged)
        with pytest.raises(ShardError, match=r"checkpoint.safetensors is damaged"):
            PLSA(**SETTINGS).fit(shards)


# estimators and functions that do not support shards

OTHERS = [LDA(2), LSA(2), HierarchicalPLSA(), CorrelatedTopicModel(2), TensorPLSA(2), RealTopicModel()]


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda estimator: type(estimator).__name__)
def test_other_estimators_refuse_shards(estimator, shards):
    sentence = f"{type(estimator).__name__} takes no shards, which are for PLSA's fit and transform: give the counts of"
    with pytest.raises(UnsupportedError, match=sentence):
        clone(estimator).fit(shards)


def test_functions_without_support_for_shards_refuse_them_before_any_work(shards, monkeypatch):
    em_steps = count_em_steps(monkeypatch)
    with pytest.raises(UnsupportedError, match=r"fit PLSA to them, and take its to_nmf\(\)"):
        NMF(2).fit(shards)
    with pytest.raises(UnsupportedError, match="NMF takes no shards"):
        NMF(2, loss="frobenius").fit(shards)
    model = PLSA(2, random_state=0, max_iter=2).fit(X)
    for method in (model.partial_fit, model.perplexity, model.score, select_n_topics):
        with pytest.raises(UnsupportedError, match="one shard after the other"):
            method(shards)
    assert not em_steps
    nmf = PLSA(**SETTINGS).fit(shards).to_nmf()
    np.testing.assert_allclose(nmf.doc_factor_.sum(axis=1), X.sum(axis=1), rtol=1e-9)
