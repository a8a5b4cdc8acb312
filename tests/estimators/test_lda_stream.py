"""LDA.partial_fit: against scikit-learn, the attributes it sets, files, and wrong input."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import psi
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation

import oracles
from polyseme import LDA, PLSA, InputError, UnsupportedError, load
from polyseme.core.dirichlet import Concentration, DirichletPosterior
from polyseme.core.shard import as_counts
from polyseme.datasets import synthetic_corpus
from polyseme.kernels import padded
from polyseme.solvers import OnlineVariational, Variational
from polyseme.solvers.dirichlet import Priors
from polyseme.solvers.online import PosteriorState, PosteriorStream, batches

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LENGTH = 40
CORPUS = sp.csr_array(
    synthetic_corpus(1500, n_words=80, n_topics=4, length=LENGTH, topic_word_prior=0.05, random_state=3).counts(),
    dtype=np.float64,
)
TRAIN, TEST = CORPUS[:1200], CORPUS[1200:]
PARTS = [TRAIN[start : start + 300] for start in range(0, 1200, 300)]


def streamed(parts=PARTS, **settings):
    model = LDA(4, **{"random_state": 0, **settings})
    for part in parts:
        model.partial_fit(part)
    return model


def test_the_posterior_equals_that_of_scikit_learn():
    """From the same start, with every document inferred to convergence."""
    K, total, size = 3, 5000, 50
    phi = np.random.default_rng(0).gamma(5.0, size=(K, 80))
    phi /= phi.sum(axis=1, keepdims=True)
    priors = {"doc_topic_prior": 1.0, "topic_word_prior": 0.2}
    settings = OnlineVariational(
        batch_size=size, offset=8.0, decay=0.8, doc_steps=2000, doc_tol=1e-10, total_documents=total
    )
    ours = LDA(K, solver=settings, init=(None, phi), **priors)
    theirs = LatentDirichletAllocation(
        K, learning_offset=7.0, learning_decay=0.8, total_samples=total, batch_size=size,
        max_doc_update_iter=2000, mean_change_tol=1e-10, random_state=0, **priors,
    )  # fmt: skip
    theirs.partial_fit(np.ones((1, 80)))  # makes its attributes
    tokens = TRAIN[: 2 * size].sum() / (2 * size) * total
    theirs.components_ = phi * (tokens / K) + priors["topic_word_prior"]
    sums = theirs.components_.sum(axis=1, keepdims=True)
    theirs.exp_dirichlet_component_ = np.exp(psi(theirs.components_) - psi(sums))
    theirs.n_batch_iter_ = 1
    for start in range(0, 400, 2 * size):
        ours.partial_fit(TRAIN[start : start + 2 * size])
        theirs.partial_fit(TRAIN[start : start + 2 * size])
        np.testing.assert_allclose(ours.topic_word_dirichlet_, theirs.components_, rtol=1e-5)
    np.testing.assert_allclose(ours.transform(TEST), theirs.transform(TEST), atol=2e-3)


def test_the_mean_logs_of_the_first_batch_do_not_depend_on_its_step_size():
    """There is no earlier mean to which the logarithms of the first batch could be added."""
    alpha, eta = Concentration(np.full(3, 0.5)), Concentration(np.full(80, 0.2))
    lambda_ = padded(np.random.default_rng(0).gamma(5.0, size=(80, 3)), np.float64)
    counts = as_counts(TRAIN[:50], np.dtype(np.float64))
    (batch,) = batches(counts, None, np.arange(50), 50)
    settings = OnlineVariational(doc_steps=2000, doc_tol=1e-12)

    def mean_logs(*rates):
        stream = PosteriorStream(settings, PosteriorState.of(Priors(alpha, eta), lambda_.copy()), 50.0, 1)
        for rho in rates:
            stream.take(batch, rho)
        return stream.state.mean_logs

    np.testing.assert_array_equal(mean_logs(0.5), mean_logs(1e-9))
    gamma = DirichletPosterior(lambda_[:, :3].T, alpha.values, eta.values)
    found = gamma.weights(counts, lambda_[:, :3].T, None, n_threads=1).parameters["gamma"]
    expected = (psi(found) - psi(found.sum(axis=1, keepdims=True))).mean(axis=0)
    np.testing.assert_allclose(mean_logs(1e-9), expected, rtol=1e-2)
    np.testing.assert_allclose(mean_logs(1e-9, 1e-9), expected, rtol=1e-2)


def test_partial_fit_sets_the_documented_attributes():
    model = streamed()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.topic_weights_.sum(), 1)
    np.testing.assert_allclose(model.unigram_, TRAIN.sum(axis=0) / TRAIN.sum())
    assert model.n_documents_seen_ == 1200
    assert model.n_tokens_ == TRAIN.sum()
    weights = model.transform(TEST)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert len(model.topics()) == 4
    assert not hasattr(model, "doc_topic_")
    assert not hasattr(model, "bound_")


def test_the_posterior_is_that_of_the_documents_seen():
    """Where all documents are equally long the expected counts add up to their tokens after every call."""
    rng = np.random.default_rng(0)
    parts = [rng.multinomial(LENGTH, np.full(80, 1 / 80), size=300) for _ in range(3)]
    model = LDA(4, random_state=0, dtype="float64")
    for number, part in enumerate(parts, start=1):
        model.partial_fit(part)
        expected = model.topic_word_dirichlet_.sum() - 4 * model.topic_word_prior_.sum()
        np.testing.assert_allclose(expected, 300 * number * LENGTH, rtol=1e-9)
    more = streamed(parts, solver=OnlineVariational(total_documents=10_000), dtype="float64")
    expected = more.topic_word_dirichlet_.sum() - 4 * more.topic_word_prior_.sum()
    np.testing.assert_allclose(expected, 10_000 * LENGTH, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_one_pass_finds_topics(seed):
    """Twelve seeds gave 0.51 to 0.71 of the perplexity of the unigram; a converged batch fit gives 0.43."""
    report = streamed(random_state=seed).completion_report(TEST)
    assert report.perplexity < 0.85 * report.unigram_perplexity


@pytest.mark.parametrize("estimator", [LDA, PLSA])
def test_one_call_finds_disjoint_topics(estimator):
    """All of 60 seeds of LDA and 53 of PLSA; from random topics 8 and 4."""
    blocks = np.kron(np.eye(3), np.full((3, 3), 3.0))
    found = 0
    for seed in range(20):
        topics = estimator(3, random_state=seed).partial_fit(blocks).components_
        found += len(set(topics.reshape(3, 3, 3).sum(axis=2).argmax(axis=1))) == 3
    assert found > 14


def test_a_stream_whose_topics_have_priors_starts_at_random():
    eta = np.full((4, 80), 0.2)
    eta[0, :5] = 2.0
    default, random, documents = (
        LDA(4, topic_word_prior=eta, random_state=0, init=init).partial_fit(PARTS[0]).components_
        for init in ("auto", "random", "documents")
    )
    np.testing.assert_array_equal(default, random)
    assert not np.array_equal(default, documents)


def test_results_depend_on_the_seed_but_not_on_threads():
    one = streamed(n_jobs=1)
    assert np.array_equal(one.components_, streamed(n_jobs=3).components_)
    assert not np.array_equal(one.components_, streamed(random_state=1).components_)
    dense = LDA(4, random_state=0)
    for part in PARTS:
        dense.partial_fit(part.toarray())
    np.testing.assert_allclose(dense.components_, one.components_, rtol=1e-9)


def test_partial_fit_continues_a_loaded_or_fitted_model(tmp_path):
    whole = streamed()
    streamed(PARTS[:2]).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for part in PARTS[2:]:
        loaded.partial_fit(part)
    assert np.array_equal(loaded.topic_word_dirichlet_, whole.topic_word_dirichlet_)
    fitted = LDA(4, random_state=0, max_iter=30).fit(TRAIN)
    before = fitted.completion_perplexity(TEST)
    assert fitted.n_documents_seen_ == 1200
    fitted.partial_fit(TEST[:100])
    assert fitted.n_documents_seen_ == 1300
    assert fitted.completion_perplexity(TEST) < 1.02 * before
    assert not hasattr(fitted, "doc_topic_")


def test_partial_fit_continues_a_fitted_model_and_a_clone_starts_again():
    model = streamed()
    assert clone(model).partial_fit(PARTS[0]).n_documents_seen_ == 300
    assert model.fit(PARTS[0]).n_documents_seen_ == 300


def test_words_may_appear_in_later_calls():
    early = PARTS[0].tolil()
    early[:, 60:] = 0
    model = streamed([sp.csr_array(early), *PARTS[1:]])
    share = model.components_[:, 60:].sum(axis=1) @ model.topic_weights_
    assert share > 0.5 * TRAIN[:, 60:].sum() / TRAIN.sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_count_as_numbers_of_documents(dtype):
    weights = np.ones(300)
    weights[::2] = 0
    settings = {"random_state": 0, "dtype": dtype, "solver": OnlineVariational(batch_size=300)}
    weighted = LDA(4, **settings).partial_fit(PARTS[0], sample_weight=weights)
    assert weighted.n_documents_seen_ == 150
    assert weighted.components_.dtype == dtype
    half = LDA(4, **settings).partial_fit(PARTS[0][1::2])
    np.testing.assert_allclose(weighted.components_, half.components_, rtol=1e-9 if dtype == "float64" else 1e-4)
    twice = LDA(4, **settings).partial_fit(PARTS[0], sample_weight=np.full(300, 2.0))
    assert twice.n_documents_seen_ == 600


def test_empty_documents_and_empty_parts():
    model = streamed()
    model.partial_fit(sp.vstack([PARTS[0][:1], sp.csr_array((40, 80))]))
    assert model.n_documents_seen_ == 1241
    assert np.isfinite(model.topic_word_dirichlet_).all()
    with pytest.raises(InputError, match="nothing to fit"):
        model.partial_fit(np.zeros((2, 80)))
    assert model.n_documents_seen_ == 1241


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"solver": "map"}, "use solver='online'"),
        ({"doc_topic_prior": "asymmetric-learned"}, "does not learn priors"),
        ({"topic_word_prior": "symmetric-learned"}, "does not learn priors"),
        ({"init": "nndsvd"}, "has no other starts"),
    ],
)
def test_unsupported_parameters_raise(settings, match):
    model = LDA(4, **settings)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as error:
        model.partial_fit(PARTS[0])
    assert match in str(error.value.__cause__)


def test_wrong_input_raises():
    with pytest.raises(UnsupportedError, match="cannot be continued by partial_fit"):
        LDA(4, solver="map", max_iter=3).fit(TRAIN).set_params(solver="online").partial_fit(TRAIN)
    with pytest.raises(ValueError, match="80 features"):
        streamed().partial_fit(np.ones((2, 79)))
    with pytest.raises(InputError, match="total_documents"):
        OnlineVariational(total_documents=0)
    with pytest.raises(InputError, match="topic_word must be an array of shape"):
        LDA(4, init=(None, np.ones((2, 80)))).partial_fit(TRAIN)
    with pytest.raises(InputError, match=r"init must be one of 'auto'.* or a pair .*, got 3"):
        LDA(4, init=3).partial_fit(TRAIN)
    with pytest.raises(InputError, match="solver must be"):
        LDA(4, solver="fast").partial_fit(TRAIN)
    assert hasattr(LDA(solver=Variational()), "partial_fit")


def test_online_weights_are_repeated_documents():
    """D and S, the numbers of documents in all and in a batch, count a document of weight 3 three times."""
    X = oracles.mixed_counts(2, 40, 30, 3)
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    solver = OnlineVariational(batch_size=1000, doc_steps=200, doc_tol=1e-6)
    start = (None, PLSA(3, random_state=0, max_iter=5).fit(X).components_)
    settings = {"solver": solver, "max_iter": 2, "init": start, "random_state": 0, "dtype": "float64"}
    weighted = LDA(3, **settings).fit(X, sample_weight=weights)
    repeated = LDA(3, **settings).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-4)
    plain = LDA(3, **settings).fit(X)
    assert np.abs(weighted.components_ - plain.components_).max() > 1e-3
