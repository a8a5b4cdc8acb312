"""Every estimator that takes shards, on every corpus: memory, disk and the workers of a cluster.

One shard on disk gives the bits of a fit in memory. Several shards give the same bits in this process and on a cluster,
and the numbers of a fit in memory up to the order of sums.
"""

import ast
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import dask_cluster
import polyseme
from polyseme import (
    LDA,
    LSA,
    NMF,
    PLSA,
    CorrelatedTopicModel,
    HierarchicalPLSA,
    RealTopicModel,
    TensorPLSA,
    UnsupportedError,
)
from polyseme.core.model import Model
from polyseme.core.shard import FAN_IN
from polyseme.data import dask as dask_module
from polyseme.data import disk as disk_module
from polyseme.data.corpus import LOADED_NONZEROS, MemoryCorpus
from polyseme.data.disk import ShardedCorpus
from polyseme.datasets import synthetic_corpus
from polyseme.priors import Dirichlet, Sparsing
from polyseme.scale import open_shards, write_shards
from polyseme.solvers import base as base_module
from polyseme.solvers.base import SOLVERS, FitProblem, check_solver

dask = pytest.importorskip("dask", reason="needs polyseme[dask]")
distributed = pytest.importorskip("distributed", reason="needs polyseme[dask]")

pytestmark = dask_cluster.WARNINGS

X = synthetic_corpus(300, n_words=60, n_topics=4, length=25, topic_word_prior=0.05, random_state=1).counts().toarray()
X[[0, 150, 299]] = 0  # documents without words
X[:, 7] = 0
X = sp.csr_array(X.astype(np.float64))
TOPICS = np.random.default_rng(0).dirichlet(np.ones(60), 4)

SETTINGS = {"random_state": 0, "tol": 0.0, "max_iter": 4, "n_jobs": 1}
plsa = partial(PLSA, 4, **SETTINGS)
nmf = partial(NMF, 4, **SETTINGS)
lda = partial(LDA, 4, **{**SETTINGS, "max_iter": 10})
tree = partial(HierarchicalPLSA, depth=1, branching=3, **SETTINGS)
LEARNED = {"doc_topic_prior": "asymmetric-learned", "topic_word_prior": "symmetric-learned"}
SPARSE = {"doc_topic_prior": Sparsing(30, (0, 0, 0, 0, 1, 1)), "topic_word_prior": Sparsing(2)}
"""Priors that turn off two of six topics."""

ESTIMATORS = {
    "PLSA": plsa,
    "PLSA, EM": partial(plsa, solver="em"),
    "PLSA, accelerated EM": partial(plsa, solver="accelerated-em"),
    "PLSA, tempered": partial(plsa, solver="tempered"),
    "PLSA, online": partial(plsa, solver="online"),
    "PLSA, coordinate ascent": partial(plsa, solver="scd"),
    "PLSA, background": partial(plsa, background=0.2),
    "PLSA, online with background": partial(plsa, solver="online", background=0.2, doc_topic_prior=1.1),
    "PLSA, priors": partial(plsa, doc_topic_prior=1.1, topic_word_prior=Dirichlet(1.05)),
    "PLSA, priors that are not monotone": partial(plsa, doc_topic_prior=0.9, topic_word_prior=0.95),
    "PLSA, sparse priors": partial(PLSA, 6, **SETTINGS, **SPARSE),
    "PLSA, given topics": partial(plsa, init=(None, TOPICS)),
    "PLSA, EM from given topics": partial(plsa, solver="em", init=(None, TOPICS)),
    "PLSA, two starts": partial(plsa, solver="em", n_init=2),
    "NMF": nmf,
    "NMF, EM": partial(nmf, solver="accelerated-em"),
    "LDA": lda,
    "LDA, random start": partial(lda, init="random"),
    "LDA, learned priors": partial(LDA, 4, **{**SETTINGS, "max_iter": 14}, **LEARNED),
    "LDA, online": partial(lda, solver="online"),
    "LDA, online, learned priors": partial(lda, solver="online", **LEARNED),
    "LDA, map": partial(lda, solver="map"),
    "tree": tree,
    "tree, EM": partial(tree, solver="em"),
    "tree, random start": partial(tree, init="random"),
    "tree, EM from a random start": partial(tree, init="random", solver="em"),
    "tree that grows": partial(tree, branching=2, growth=4),
}
ONLINE = [name for name in ESTIMATORS if "online" in name]
EVERY = pytest.mark.parametrize("name", ESTIMATORS)
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])

ATTRIBUTES = (
    "components_", "doc_topic_", "doc_factor_", "topic_weights_", "doc_weights_", "unigram_", "log_likelihood_",
    "bound_", "word_documents_", "topic_documents_", "document_frequency_", "node_word_documents_", "node_word_",
    "leaf_node_", "parents_", "node_weights_", "labels_", "held_out_", "reconstruction_err_", "active_topics_",
    "word_background_", "doc_background_", "topic_word_dirichlet_", "doc_topic_dirichlet_", "n_iter_", "n_tokens_",
    "solver_", "converged_",
)  # fmt: skip


class Fit(NamedTuple):
    """Numbers of a fitted estimator that must not depend on where the corpus is stored."""

    values: dict
    history: dict
    transformed: np.ndarray


def fitted(estimator, data, dtype):
    """Return the numbers of a fit. Arrays that are mapped from files beside the shards are copied."""
    estimator.set_params(dtype=dtype).fit(data)
    found = {name: getattr(estimator, name) for name in ATTRIBUTES if hasattr(estimator, name)}
    if isinstance(estimator, LDA):
        found |= {name: getattr(estimator, name) for name in ("doc_topic_prior_", "topic_word_prior_")}
    values = {name: np.array(value) for name, value in found.items() if value is not None}
    history = {name: column for name, column in estimator.history_.items() if name != "seconds"}
    return Fit(values, history, np.array(estimator.transform(data)))


def same_bits(one, other):
    for mine, its in ((one.values, other.values), (one.history, other.history)):
        assert mine.keys() == its.keys()
        for name, value in mine.items():
            assert value.dtype == its[name].dtype, name
            assert np.array_equal(value, its[name]), name
    assert np.array_equal(one.transformed, other.transformed)


def close(one, other, tolerance):
    for mine, its in ((one.values, other.values), (one.history, other.history)):
        assert mine.keys() == its.keys()
        for name, value in mine.items():
            if value.dtype.kind in "USb":
                assert np.array_equal(value, its[name]), name
            else:
                # word_documents_ has float32, and a residual is a difference of large sums
                rtol = max(tolerance, 1e-6 if value.dtype == np.float32 else 0, 1e-7 if name == "residual" else 0)
                np.testing.assert_allclose(value, its[name], rtol=rtol, atol=tolerance, err_msg=name)
    np.testing.assert_allclose(one.transformed, other.transformed, atol=tolerance)


@pytest.fixture(scope="module")
def client():
    """Yield a client with two workers that are threads of this process. Rows are read back from files often."""
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}),
        dask_cluster.two_workers() as client,
    ):
        patch.setattr(dask_module, "_LINEAGE", 2)
        yield client


@pytest.fixture(scope="module")
def corpora(tmp_path_factory, client):
    """Return the same counts in memory, in one shard and in several shards, and both kinds of shards on a cluster."""
    folder = tmp_path_factory.mktemp("corpora")
    one = write_shards([X], folder / "one")
    several = write_shards([X], folder / "several", shard_nonzeros=1 + X.nnz // (FAN_IN + 1))
    assert len(one.manifest.shards) == 1
    assert len(several.manifest.shards) > FAN_IN  # sums of sums
    return {
        "memory": X,
        "one": one,
        "several": several,
        "cluster": open_shards(several.folder, cluster=client),
        "one on a cluster": open_shards(one.folder, cluster=client),
    }


@pytest.fixture(scope="module")
def fit(corpora):
    """Return a function that returns the numbers of an estimator on a corpus, computed once."""
    known = {}

    def fit(name, place, dtype, **parameters):
        key = (name, place, dtype, *parameters.items())
        if key not in known:
            known[key] = fitted(ESTIMATORS[name](**parameters), corpora[place], dtype)
        return known[key]

    return fit


@EVERY
@DTYPES
def test_one_shard_has_the_bits_of_memory(name, dtype, fit):
    same_bits(fit(name, "memory", dtype), fit(name, "one", dtype))


STEPS = ["PLSA, accelerated EM", "PLSA, online", "PLSA, sparse priors", "NMF, EM", "LDA", "LDA, online", "tree"]
"""One estimator for each kind of step."""


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in ESTIMATORS), *((name, "float32") for name in STEPS)]
)
def test_a_cluster_has_the_bits_of_the_same_shards_on_disk(name, dtype, fit):
    same_bits(fit(name, "several", dtype), fit(name, "cluster", dtype))


@pytest.mark.parametrize("name", STEPS)
def test_one_shard_on_a_cluster_has_the_bits_of_memory(name, fit):
    same_bits(fit(name, "memory", "float64"), fit(name, "one on a cluster", "float64"))


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in ONLINE])
def test_several_shards_have_the_numbers_of_memory(name, fit):
    close(fit(name, "several", "float64"), fit(name, "memory", "float64"), 1e-9)


@pytest.mark.parametrize("name", ONLINE)
def test_an_online_solver_finds_as_good_a_model_in_another_order(name, corpora):
    """Batches do not cross shards, and shards are read in random order. The start decides which optimum is found."""
    topics = PLSA(4, random_state=0).fit(X).components_
    init = "plsa" if name.startswith("LDA") else (None, 0.9 * topics + 0.1 * TOPICS)
    several, memory = (ESTIMATORS[name](max_iter=10, init=init).fit(corpora[place]) for place in ("several", "memory"))
    assert not np.array_equal(several.components_, memory.components_)
    assert several.log_likelihood_ == pytest.approx(memory.log_likelihood_, rel=0.01)
    np.testing.assert_allclose(several.components_, memory.components_, atol=0.02)
    assert several.n_tokens_ == memory.n_tokens_


@EVERY
@pytest.mark.parametrize("place", ["memory", "several"])
def test_threads_do_not_change_a_bit(name, place, fit):
    same_bits(fit(name, place, "float32"), fit(name, place, "float32", n_jobs=3))


@DTYPES
def test_topics_that_sparse_priors_turn_off(dtype, fit):
    places = ("memory", "one", "several", "cluster", "one on a cluster")
    found = [fit("PLSA, sparse priors", place, dtype).values for place in places]
    active = [values["active_topics_"] for values in found]
    for values, other in zip(found, active, strict=True):
        assert other.tolist() == [True] * 4 + [False] * 2
        assert (values["topic_weights_"][~other] == 0).all()


@pytest.mark.parametrize("place", ["one", "several", "cluster"])
def test_a_fit_leaves_only_the_rows_of_its_documents(place, fit, corpora):
    for name in ("PLSA, accelerated EM", "LDA", "tree that grows"):
        fit(name, place, "float64")
    names = {path.name for path in corpora[place].folder.iterdir() if not path.name.startswith("shard-")}
    assert names == {"manifest.json", "word_totals.npy", "doc_topic.npy", "gamma.npy", "transformed.npy"}


# the solver


@pytest.fixture
def small_limit(monkeypatch):
    """Make the counts too many for a solver in memory."""
    monkeypatch.setattr(base_module, "LOADED_NONZEROS", X.nnz // 3)


@pytest.mark.parametrize(
    ("parameters", "small", "large"),
    [
        ({}, "scd", "em"),
        ({"background": 0.2}, "accelerated-em", "em"),
        ({"doc_topic_prior": 0.9}, "em", "em"),
        ({"solver": "em"}, "em", "em"),
    ],
)
@pytest.mark.parametrize("place", ["several", "cluster"])
def test_auto_chooses_by_the_model_and_the_size_of_the_data(corpora, place, parameters, small, large, small_limit):
    assert PLSA(2, **SETTINGS, **parameters).fit(corpora[place]).solver_ == large
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_module, "LOADED_NONZEROS", X.nnz)
        assert PLSA(2, **SETTINGS, **parameters).fit(corpora[place]).solver_ == small


def test_the_choice_uses_the_number_of_counts_and_no_other_property_of_a_corpus():
    for n_nonzeros, solver in ((LOADED_NONZEROS, "scd"), (LOADED_NONZEROS + 1, "em")):
        problem = FitProblem(Model(2), SimpleNamespace(in_memory=False, n_nonzeros=n_nonzeros, entries=None))
        assert check_solver(SOLVERS["auto"](), problem, checkpoint=False).name == solver


@pytest.mark.parametrize("place", ["several", "cluster"])
@pytest.mark.parametrize("solver", ["scd", "annealed"])
def test_a_solver_that_needs_memory_is_refused_for_large_shards(corpora, place, solver, small_limit):
    with pytest.raises(UnsupportedError) as error:
        PLSA(2, **SETTINGS, solver=solver).fit(corpora[place])
    assert f"solver={solver!r} needs all counts in memory" in str(error.value)
    assert "\n" not in str(error.value)
    names = str(error.value)[:-1].rpartition("Solvers that read shards: ")[2].split(", ")
    assert names == ["auto", "em", "accelerated-em", "online", "tempered"]
    for name in names:
        PLSA(2, **{**SETTINGS, "max_iter": 1}, solver=name).fit(corpora["several"])


# starts that need counts in memory

SAMPLED = ["LDA", "tree", "tree, random start", "tree that grows"]


@contextmanager
def samples():
    """Make the counts too many for a start in memory."""
    sizes, limit = [], X.nnz // 3
    with pytest.MonkeyPatch.context() as patch:
        for corpus in (MemoryCorpus, ShardedCorpus):

            def load(self, rng, most=None, load=corpus.load):
                found, whole = load(self, rng, limit if most is None else min(most, limit))
                assert not whole
                sizes.append(found.n_nonzeros)
                return found, whole

            patch.setattr(corpus, "load", load)
        yield
    assert len(sizes) > 1
    assert len(set(sizes)) == 1
    assert 0.9 * limit < sizes[0] <= limit


@pytest.mark.parametrize("name", SAMPLED)
def test_a_start_from_a_sample_does_not_depend_on_the_place(name, corpora, fit):
    whole = fit(name, "memory", "float64").values["log_likelihood_"]
    places = ("memory", "one", "several", "cluster")
    with samples():
        found = {place: fitted(ESTIMATORS[name](), corpora[place], "float64") for place in places}
    same_bits(found["memory"], found["one"])
    same_bits(found["several"], found["cluster"])
    close(found["several"], found["memory"], 1e-9)
    assert found["several"].values["log_likelihood_"] > whole - 0.02 * abs(whole)


@pytest.mark.parametrize("name", SAMPLED)
def test_words_that_a_sample_does_not_have_get_a_probability(name, tmp_path):
    rare = sp.csr_array(sp.hstack([X, sp.eye_array(300, 100, k=-150)]))  # a hundred words of one document each
    shards = write_shards([rare], tmp_path / "rare", shard_nonzeros=1000)
    with samples():
        models = [ESTIMATORS[name]().fit(data) for data in (rare, shards)]
    for model in models:
        assert (model.components_.max(axis=0)[60:] > 0).all()
        np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-9)


# estimators that do not accept shards

OTHERS = {
    "LSA": LSA(2),
    "CorrelatedTopicModel": CorrelatedTopicModel(2),
    "TensorPLSA": TensorPLSA(2),
    "RealTopicModel": RealTopicModel(),
    "NMF": NMF(2, loss="squared"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("cluster", [None, "tcp://127.0.0.1:1"])
def test_other_estimators_refuse_shards_before_any_work(name, cluster, corpora, monkeypatch):
    def read(*_):
        raise AssertionError("a shard is read")

    monkeypatch.setattr(disk_module, "open_shard", read)
    shards = open_shards(corpora["several"].folder, cluster=cluster)
    before = sorted(path.name for path in shards.folder.iterdir())
    for method in ("fit", "fit_transform"):
        with pytest.raises(UnsupportedError) as error:
            getattr(OTHERS[name], method)(shards)
        message = str(error.value)
        general = f"This method of {name} takes no shards, which are for fit and transform of PLSA, "
        assert message.startswith("NMF with loss='squared' takes no shards: give " if name == "NMF" else general)
        assert message.endswith(".")
        assert "\n" not in message
    assert sorted(path.name for path in shards.folder.iterdir()) == before


# the same code for all corpora

PLACES = {"DiskCorpus", "ClusterShards", "StoredCorpus", "MemoryCorpus", "ShardedCorpus", "LocalShards", "DaskShards"}


def test_no_estimator_and_no_solver_asks_for_the_class_of_a_corpus():
    root = Path(polyseme.__file__).parent
    files = [file for package in ("estimators", "solvers") for file in (root / package).rglob("*.py")]
    assert len(files) > 20
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if called and node.func.id in ("isinstance", "issubclass", "type"):
                names = {getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(node)}
                assert not names & PLACES, f"{file.name}:{node.lineno}"
