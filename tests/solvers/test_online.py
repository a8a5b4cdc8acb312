"""Stepwise EM: formula, streams, warm starts, and quality after one pass."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import PLSA, Background, InputError, JointBackground, UnsupportedError, load
from polyseme.core.model import Model, m_step_docs
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus, uniform_rows
from polyseme.datasets import synthetic_corpus
from polyseme.kernels import add_rows, padded, take_rows
from polyseme.priors import TopicSelection
from polyseme.scale import write_shards
from polyseme.solvers import Checkpoint, StepwiseEM
from polyseme.solvers.ascent import EM
from polyseme.solvers.online import RunningMean, Schedule, Stream

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CORPUS = synthetic_corpus(1500, n_words=120, n_topics=5, length=40, topic_word_prior=0.05, random_state=3)
X = sp.csr_array(CORPUS.counts().astype(np.float64))
TRAIN, TEST = X[:1200], X[1200:]
SETTINGS = {"n_components": 5, "random_state": 0}


def naive_stream(data, joint, settings, size):
    """Return the result of the formula with dense arrays; joint is words x K."""
    seen = 0
    for start in range(0, len(data), size):
        batch = data[start : start + size]
        phi = joint / joint.sum(axis=0)
        theta = np.full((len(batch), joint.shape[1]), 1 / joint.shape[1])
        for _ in range(settings.doc_steps):
            theta, _ = oracles.em_step(batch, theta, phi.T)
        counts = np.einsum("dw,dwk->wk", batch, oracles.posterior(theta, phi.T))
        rho = 1 - (1 - (settings.offset + seen / size) ** -settings.decay) ** (len(batch) / size)
        joint = (1 - rho) * joint + rho * counts / batch.sum()
        seen += len(batch)
    return joint


@pytest.mark.parametrize("settings", [StepwiseEM(), StepwiseEM(offset=2.0, decay=0.6, doc_steps=3)])
def test_a_stream_follows_the_formula(settings):
    data = oracles.random_counts(0, 40, 25)
    data = data[data.sum(axis=1) > 0]
    start = oracles.random_factors(1, 2, 25, 3)[1].T / 3
    stream = Stream(settings, Model(3), padded(start, np.float64), 0.0, 2)
    stream.read(
        as_counts(sp.csr_array(data), np.dtype(np.float64)),
        None,
        np.arange(len(data)),
        Schedule(settings.offset, settings.decay, 7, 0.0),
    )
    expected = naive_stream(data, start, settings, 7)
    np.testing.assert_allclose(stream.joint[:, :3], expected, rtol=1e-11, atol=1e-15)
    assert stream.joint.sum() == pytest.approx(1)


def test_a_running_mean_is_exact_after_many_steps():
    rng = np.random.default_rng(0)
    plain = rng.random((6, 16))
    mean = RunningMean(plain.copy())
    for step in range(300):
        words = np.flatnonzero(rng.random(6) < 0.5)
        B, sums, tokens = rng.random((words.size, 16)), rng.random((words.size, 16)), rng.uniform(1, 9)
        new = B * sums / tokens
        new[:, 14:] = 0
        rate = (1.5 + step) ** -0.6 if step else 1.0
        plain *= 1 - rate
        plain[words] += rate * new
        mean.step(rate, words, B, sums, 14, tokens)
        np.testing.assert_allclose(mean.totals, plain.sum(axis=0), rtol=1e-10)
        if step > 20:
            topics = plain[:, :14]
            np.testing.assert_allclose(mean.shares(np.arange(6))[:, :14], topics / topics.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(mean.apply_scale(), plain, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_taking_and_adding_rows_equals_numpy_for_any_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    table, factors = rng.random((900, 32)).astype(dtype), rng.random(32)
    rows = rng.permutation(900)[:700]
    B, sums = rng.random((700, 32)).astype(dtype), rng.random((700, 32))
    near = {"rtol": 1e-5 if dtype == np.float32 else 1e-12}
    taken = take_rows(table, rows, factors, n_threads=2)
    np.testing.assert_allclose(taken, table[rows] * factors, **near)
    expected = table.astype(np.float64)
    expected[rows, :20] += 0.3 * (B * sums)[:, :20]
    totals = np.pad((B * sums)[:, :20].sum(axis=0), (0, 12))
    found = []
    for n_threads in (1, 3):
        changed = table.copy()
        added = add_rows(changed, rows, B, sums, 20, 0.3, n_threads=n_threads)
        np.testing.assert_allclose(changed, expected, **near)
        np.testing.assert_allclose(added, totals, rtol=1e-12)
        found.append((changed, added))
    assert all(np.array_equal(one, three) for one, three in zip(*found, strict=True))


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("temperature", [1.0, 0.8])
def test_em_steps_per_row_equal_em_steps_by_sweeps(share, temperature):
    data = oracles.random_counts(5, 30, 20)
    phi = oracles.random_factors(6, 2, 20, 3)[1].T
    background = Background(share, np.full(20, 1 / 20)) if share else None
    model = Model(3, temperature=temperature, background=background)
    corpus = MemoryCorpus(as_counts(sp.csr_array(data), np.dtype(np.float64)))
    B = model.word_operand(padded(phi, np.float64, model.n_columns))
    theta = uniform_rows(model, corpus)
    for _ in range(6):
        A = model.doc_operand(theta)
        row_sums = corpus.sums(A, B).row_sums
        row_sums[:, 3:] = 0
        theta = m_step_docs(model, corpus, theta, A, row_sums)
    filled = data.sum(axis=1) > 0
    found = corpus.by_doc.em_steps(B, 3, 6, n_threads=2, background=share, temperature=temperature)
    np.testing.assert_allclose(found[filled], theta[filled, :3], rtol=1e-10)


def test_one_pass_is_as_good_as_several_sweeps():
    online = PLSA(**SETTINGS, solver="online", max_iter=1).fit(TRAIN)
    batch = PLSA(**SETTINGS, solver="em", max_iter=20, tol=0).fit(TRAIN)
    assert online.completion_perplexity(TEST) < 1.03 * batch.completion_perplexity(TEST)


def test_a_batch_solver_continues_from_the_online_topics():
    online = PLSA(**SETTINGS, solver="online", max_iter=1).fit(TRAIN)
    finished = PLSA(**SETTINGS, solver="em", init=(None, online.components_), max_iter=5, tol=0).fit(TRAIN)
    assert finished.history_["log_likelihood"][0] == pytest.approx(online.log_likelihood_, rel=1e-12)
    assert (np.diff(finished.history_["log_likelihood"]) > 0).all()
    afresh = PLSA(**SETTINGS, solver="em", max_iter=20, tol=0).fit(TRAIN)
    assert finished.log_likelihood_ > afresh.log_likelihood_


def test_threads_do_not_change_a_bit_but_seeds_do():
    def components(n_jobs=1, seed=0):
        return PLSA(**SETTINGS, solver=StepwiseEM(random_state=seed), max_iter=2, n_jobs=n_jobs).fit(TRAIN).components_

    assert np.array_equal(components(1), components(3))
    assert not np.array_equal(components(seed=0), components(seed=1))


def test_shards_give_the_same_stream(tmp_path):
    shards = write_shards([TRAIN], tmp_path / "one", shard_nonzeros=10**6)
    from_disk = PLSA(**SETTINGS, solver="online", max_iter=2).fit(shards)
    several = write_shards([TRAIN], tmp_path / "several", shard_nonzeros=3000)
    assert len(several.manifest.shards) > 4
    cut = PLSA(**SETTINGS, solver="online", max_iter=2).fit(several)
    assert cut.completion_perplexity(TEST) == pytest.approx(from_disk.completion_perplexity(TEST), rel=0.05)


def test_the_report_of_a_pass_is_the_mean_over_the_tokens_of_all_shards(tmp_path):
    """With tiny steps the topics stay at their start, so the order and the shards of documents do not matter."""
    still = {**SETTINGS, "solver": StepwiseEM(offset=1e12, decay=1.0), "max_iter": 2, "tol": 0.0}
    expected = PLSA(**still).fit(TRAIN).history_["log_likelihood"]
    shards = write_shards([TRAIN], tmp_path, shard_nonzeros=3000)
    np.testing.assert_allclose(PLSA(**still).fit(shards).history_["log_likelihood"], expected, rtol=1e-6)
    assert -np.log(TRAIN.shape[1]) < expected[1] < 0


def test_an_interrupted_pass_starts_again(tmp_path):
    shards = write_shards([TRAIN], tmp_path / "s", shard_nonzeros=5000)
    settings = {**SETTINGS, "solver": "online", "max_iter": 4, "tol": 0}
    whole = PLSA(**settings).fit(shards)
    stored = Checkpoint(tmp_path / "states", 0)

    class Stop(Exception):
        pass

    def callback(entry):
        if entry["iteration"] == 2:
            raise Stop

    with pytest.raises(Stop):
        PLSA(**settings, checkpoint=stored, callback=callback).fit(shards)
    seen = []
    again = PLSA(**settings, checkpoint=stored, callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    assert seen == [2, 3, 4]
    assert np.array_equal(whole.components_, again.components_)
    assert np.array_equal(whole.history_["log_likelihood"], again.history_["log_likelihood"])


# partial_fit


def streamed(parts, **settings):
    model = PLSA(**{**SETTINGS, **settings})
    for part in parts:
        model.partial_fit(part)
    return model


def test_a_stream_of_documents():
    model = streamed([TRAIN[i : i + 100] for i in range(0, 1200, 100)])
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.topic_weights_.sum(), 1)
    np.testing.assert_allclose(model.unigram_, TRAIN.sum(axis=0) / TRAIN.sum())
    assert model.n_documents_seen_ == 1200
    assert model.n_tokens_ == TRAIN.sum()
    batch = PLSA(**SETTINGS, solver="em", max_iter=20, tol=0).fit(TRAIN)
    assert model.completion_perplexity(TEST) < 1.03 * batch.completion_perplexity(TEST)
    assert model.transform(TEST).shape == (300, 5)
    assert len(model.topics()) == 5


def test_partial_fit_continues_after_a_fit_and_after_loading(tmp_path):
    parts = [TRAIN[i : i + 300] for i in range(0, 1200, 300)]
    whole = streamed(parts)
    first = streamed(parts[:2])
    first.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for part in parts[2:]:
        loaded.partial_fit(part)
    np.testing.assert_allclose(loaded.components_, whole.components_, rtol=1e-12)
    fitted = PLSA(**SETTINGS).fit(TRAIN)
    before = fitted.completion_perplexity(TEST)
    fitted.partial_fit(TEST[:100])
    assert fitted.n_documents_seen_ == 1300
    assert fitted.completion_perplexity(TEST) < 1.02 * before
    assert not hasattr(fitted, "doc_topic_")


def test_words_may_first_occur_in_a_later_batch():
    early, late = TRAIN[:600].tolil(), TRAIN[600:]
    early[:, 60:] = 0
    model = streamed([sp.csr_array(early), late, late])
    share = model.components_[:, 60:].sum(axis=1) @ model.topic_weights_
    assert share > 0.2 * late[:, 60:].sum() / late.sum()
    fitted = PLSA(**SETTINGS).fit(sp.csr_array(early)).partial_fit(late).partial_fit(late)
    assert (fitted.components_[:, 60:].sum(axis=0) > 0).all()


def test_the_background_of_a_stream():
    unigram = np.asarray(TRAIN.sum(axis=0)).ravel() / TRAIN.sum()
    model = streamed([TRAIN[:600], TRAIN[600:]], background=Background(0.3, tuple(unigram)))
    assert model.background_weight_ == 0.3
    assert model.completion_perplexity(TEST) < model.completion_report(TEST).unigram_perplexity


def test_document_weights_apply():
    weights = np.ones(1200)
    weights[::2] = 0
    weighted = PLSA(**SETTINGS, solver=StepwiseEM(batch_size=100)).partial_fit(TRAIN, sample_weight=weights)
    np.testing.assert_allclose(weighted.unigram_, TRAIN[1::2].sum(axis=0) / TRAIN[1::2].sum())
    assert weighted.n_documents_seen_ == 600


def test_unsupported_models_and_wrong_settings_are_refused():
    for settings in ({"topic_word_prior": 1.1}, {"background": JointBackground(0.1)}):
        with pytest.raises(UnsupportedError, match="solver='online'"):
            PLSA(**SETTINGS, solver="online", **settings).fit(TRAIN)
        assert not hasattr(PLSA(**SETTINGS, **settings), "partial_fit")
    with pytest.raises(UnsupportedError, match="priors that couple documents"):
        PLSA(**SETTINGS, solver="online", doc_topic_prior=TopicSelection(0.1)).fit(TRAIN)
    with pytest.raises(UnsupportedError, match="to_nmf needs the training documents"):
        PLSA(**SETTINGS).partial_fit(TRAIN).to_nmf()
    assert not hasattr(PLSA(**SETTINGS, init="nndsvd"), "partial_fit")
    assert hasattr(PLSA(**SETTINGS, init="nndsvd").fit(TRAIN), "partial_fit")  # continues, so no start is needed
    for wrong in ({"batch_size": 0}, {"doc_steps": 0}, {"decay": 0.5}, {"offset": 1.0}):
        with pytest.raises(InputError, match="StepwiseEM: "):
            StepwiseEM(**wrong)
    with pytest.raises(InputError, match="topic_word must be an array of shape"):
        PLSA(**SETTINGS, init=(None, np.ones((2, 3)))).fit(TRAIN)
    for number in (np.nan, np.inf, -1.0):
        topics = np.ones((SETTINGS["n_components"], TRAIN.shape[1]))
        topics[1, 2] = number
        with pytest.raises(InputError, match="of finite, non-negative numbers"):
            PLSA(**SETTINGS, init=(None, topics)).fit(TRAIN)
        with pytest.raises(InputError, match="of finite, non-negative numbers"):
            PLSA(**SETTINGS, init=(None, topics)).partial_fit(TRAIN)
    with pytest.raises(InputError, match="topic_word must be an array of shape"):
        PLSA(**SETTINGS, init=(None, np.ones((2, 3)))).partial_fit(TRAIN)
    with pytest.raises(InputError, match=r"init must be .* a pair"):
        PLSA(**SETTINGS, init=3).partial_fit(TRAIN)


def test_empty_documents_and_tiny_corpora():
    model = PLSA(2, random_state=0, solver="online", max_iter=2).fit(np.array([[0, 0, 0], [1, 0, 2]]))
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-6)
    model.partial_fit(np.array([[0, 0, 1]]))
    with pytest.raises(InputError, match="nothing to fit"):
        model.partial_fit(np.zeros((2, 3)))
    assert EM().name != StepwiseEM().name
