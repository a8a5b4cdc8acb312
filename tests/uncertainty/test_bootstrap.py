"""Resampled fits. Benchmarks measure the coverage (benchmarks/interval_coverage.py); these tests have wide margins."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import LDA, NMF, PLSA
from polyseme.core.shard import sparse_counts
from polyseme.datasets import synthetic_corpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.uncertainty import bootstrap
from polyseme.uncertainty.bootstrap import intervals_of
from polyseme.uncertainty.resampling import Resampling, pair_concentration, posterior_draws

TOPICS = np.random.default_rng(3).dirichlet(np.full(60, 0.2), 3)


def drawn(n_docs=300, seed=0, prior=0.2, length=60.0):
    return synthetic_corpus(n_docs, topic_word=TOPICS, length=length, doc_topic_prior=prior, random_state=seed)


def fitted(X, n_topics=3, topics=TOPICS):
    return PLSA(n_topics, init=(None, topics), random_state=0, n_jobs=1).fit(X)


@pytest.fixture(scope="module")
def corpus():
    return drawn()


@pytest.fixture(scope="module")
def found(corpus):
    return bootstrap(
        fitted(corpus.counts()), corpus.counts(), 30, groups=["a", "b", None] * 100, n_simulations=10, n_jobs=1
    )


def test_intervals_contain_the_known_topics(found):
    seen = TOPICS > 1e-3
    inside = (found.topic_word.low <= TOPICS) & (found.topic_word.high >= TOPICS)
    assert inside[seen].mean() > 0.85
    assert (found.topic_word.low <= found.topic_word.estimate).all()
    assert (found.topic_word.estimate <= found.topic_word.high).all()
    weights = found.topic_weights
    assert ((weights.low <= 1 / 3) & (weights.high >= 1 / 3)).sum() >= 2
    assert (weights.high - weights.low < 0.2).all()
    assert found.returned.tolist() == [1, 1, 1]
    assert (found.moved < 0.1).all()


def test_a_word_that_a_topic_never_has_gets_an_interval(found, corpus):
    used = np.asarray(corpus.counts().sum(axis=0)).ravel() > 0
    assert (found.topic_word.high[:, used] > 0).all()
    assert (found.topic_word.estimate == 0).any()


def test_groups_of_the_same_documents_do_not_differ(found):
    groups = found.groups
    assert groups.names == ["a", "b"]
    assert groups.documents.tolist() == [100, 100]
    np.testing.assert_allclose(groups.shares.estimate.sum(axis=1), 1, rtol=1e-5)
    difference = groups.compare("a", "b")
    assert (difference.p_values > 0.001).all()
    np.testing.assert_allclose(difference.estimate, groups.shares.estimate[0] - groups.shares.estimate[1])
    np.testing.assert_allclose(groups.compare("a").estimate, difference.estimate, atol=1e-6)
    assert groups.compare_all().q_values.shape == (2, 3)
    with pytest.raises(InputError, match="no group 'c'"):
        groups.compare("c")


def test_shares_of_groups_are_means_of_the_weights_of_documents():
    priors = np.array([[0.6, 0.2, 0.1], [0.1, 0.2, 0.6]])
    parts = [drawn(400, seed, prior, 25.0) for seed, prior in enumerate(priors)]
    X = sp.vstack([part.counts() for part in parts], format="csr")
    result = bootstrap(fitted(X), X, 20, groups=np.repeat([0, 1], 400), n_simulations=5, n_jobs=1)
    means = np.array([part.doc_topic().mean(axis=0) for part in parts])
    np.testing.assert_allclose(result.groups.shares.estimate, means, atol=0.03)
    difference = result.groups.compare(0, 1)
    assert difference.p_values[0] < 1e-4
    assert difference.p_values[2] < 1e-4
    assert difference.low[0] < means[0, 0] - means[1, 0] < difference.high[0]


def test_the_spread_of_one_topic_is_that_of_a_ratio_of_sums():
    X = drawn(400, 5).counts()
    result = bootstrap(PLSA(1, n_jobs=1).fit(X), X, 200, n_simulations=0, n_jobs=1)
    p, lengths = np.asarray(X.sum(axis=0)).ravel() / X.sum(), np.asarray(X.sum(axis=1)).reshape(-1, 1)
    linear = (X.toarray() - lengths * p) / X.sum()
    frequent = p > 0.01
    half = (result.topic_word.high - result.topic_word.low)[0, frequent] / 2
    np.testing.assert_allclose(half, 1.96 * np.sqrt((linear**2).sum(axis=0))[frequent], rtol=0.35)
    assert abs(np.log(half / (1.96 * np.sqrt((linear**2).sum(axis=0))[frequent])).mean()) < 0.12


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(corpus):
    model = fitted(corpus.counts())
    one, two = (bootstrap(model, corpus.counts(), 5, n_simulations=2, n_jobs=jobs, random_state=4) for jobs in (1, 3))
    assert (one.topic_word.low == two.topic_word.low).all()
    assert (one.topic_weights.high == two.topic_weights.high).all()
    other = bootstrap(model, corpus.counts(), 5, n_simulations=2, n_jobs=1, random_state=5)
    assert (one.topic_word.low != other.topic_word.low).any()


def test_copies_of_documents_count_once_if_they_are_clusters():
    X = drawn(150, 7).counts()
    copies = sp.vstack([X] * 4, format="csr")
    model = fitted(X)
    single = bootstrap(model, X, 40, n_simulations=0, n_jobs=1).topic_weights.error
    apart = bootstrap(model, copies, 40, n_simulations=0, n_jobs=1).topic_weights.error
    together = bootstrap(
        model, copies, 40, clusters=np.tile(np.arange(150), 4), n_simulations=0, n_jobs=1
    ).topic_weights.error
    np.testing.assert_allclose(together, single, rtol=1e-3)
    assert (apart < 0.75 * single).all()


def test_a_sample_of_many_documents_gives_the_same_errors(corpus):
    X = drawn(1200).counts()
    model, groups = fitted(X), ["a", "b"] * 600
    every, part = (
        intervals_of(Resampling(model, X, 60, n_simulations=4, n_jobs=1, most_documents=most), model, groups, 5)
        for most in (None, 400)
    )
    seen = TOPICS > 5e-3
    ratios = part.topic_word.error[seen] / every.topic_word.error[seen]
    assert 0.8 < np.median(ratios) < 1.25
    assert 0.7 < np.median(part.groups.shares.error / every.groups.shares.error) < 1.4
    assert np.abs(part.topic_word.estimate - every.topic_word.estimate).max() < 0.01


def test_a_topic_that_does_not_come_back_is_reported():
    X = drawn(150, 2).counts()
    result = bootstrap(
        fitted(X, 8, np.random.default_rng(0).dirichlet(np.ones(60), 8)), X, 20, n_simulations=2, n_jobs=1
    )
    assert result.returned.min() < 1
    assert "came back" in str(result)


def test_documents_that_are_too_short_are_reported():
    topics = np.random.default_rng(5).dirichlet(np.full(200, 0.5), 12)
    found = {}
    for length in (12.0, 150.0):
        X = synthetic_corpus(1500, topic_word=topics, length=length, doc_topic_prior=0.2, random_state=0).counts()
        found[length] = bootstrap(fitted(X, 12, topics), X, 3, n_simulations=3, n_jobs=1)
    assert found[150.0].notes == []
    (note,) = found[12.0].notes
    assert "too short for 12 topics (12 words on average)" in note
    assert note in str(found[12.0])


def test_pairs_of_tokens_show_the_concentration():
    for prior in (0.1, 1.0):
        counts = sparse_counts(drawn(2000, 1, prior, 20.0).counts(), np.dtype(np.float32))
        assert pair_concentration(counts, TOPICS) == pytest.approx(3 * prior, rel=0.25)


def test_draws_of_posteriors_match_an_exact_sum():
    topics, prior = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0.5, 0.8])
    counts = sparse_counts(sp.csr_array([[2.0, 1.0], [0.0, 0.0]]), np.dtype(np.float32))
    gamma = np.array([[1.0, 1.0], [0.5, 0.8]])
    draws = posterior_draws(counts, topics, prior, gamma, 20000, np.random.default_rng(0))
    share = (np.arange(20000) + 0.5) / 20000
    density = share ** (prior[0] - 1) * (1 - share) ** (prior[1] - 1)
    density *= (share * 0.7 + (1 - share) * 0.2) ** 2 * (share * 0.3 + (1 - share) * 0.8)
    exact = (share * density).sum() / density.sum()
    assert draws[:, 0, 0].mean() == pytest.approx(exact, abs=0.02)
    assert draws[:, 1, 0].mean() == pytest.approx(0.5 / 1.3, abs=0.02)


def test_documents_have_intervals(found, corpus):
    documents = found.doc_topic(corpus.counts()[:40])
    inside = (documents.low <= corpus.doc_topic()[:40]) & (corpus.doc_topic()[:40] <= documents.high)
    assert inside.mean() > 0.75
    np.testing.assert_allclose(documents.estimate.sum(axis=1), 1)


def test_ranks_and_coherence_have_intervals(found):
    assert (found.word_ranks.low >= 1).all()
    assert (found.word_ranks.low <= found.word_ranks.estimate).all()
    assert (found.coherence.low < found.coherence.estimate).all()


def test_a_run_and_nmf_have_intervals(corpus):
    class Opened:
        model, counts = NMF(3, init="random", random_state=0, n_jobs=1).fit(corpus.counts()), corpus.counts()

    assert bootstrap(Opened(), n_resamples=3, n_simulations=1, n_jobs=1).topic_word.low.shape == (3, 60)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"n_resamples": 1}, "n_resamples must be"),
        ({"clusters": ["a"] * 299 + [None]}, "a value for every document"),
        ({"clusters": ["a"] * 300}, "at least two"),
        ({"groups": ["a"]}, "one entry for each of the 300"),
        ({"groups": sp.csr_array((2, 5))}, "a column for each of the 300"),
    ],
)
def test_bad_options_are_errors(corpus, options, message):
    with pytest.raises(InputError, match=message):
        bootstrap(
            fitted(corpus.counts()), corpus.counts(), **{"n_resamples": 3, "n_simulations": 1, "n_jobs": 1, **options}
        )


def test_models_that_cannot_be_resampled_are_refused(corpus):
    X = corpus.counts()
    for model in (LDA(2, tol=0.1), PLSA(2, background=0.3), PLSA(2, doc_topic_prior=1.5, tol=0.1)):
        with pytest.raises(UnsupportedError, match="maximum likelihood"):
            bootstrap(model.set_params(n_jobs=1, random_state=0).fit(X), X, 3)
    with pytest.raises(InputError, match="columns"):
        bootstrap(fitted(X), X[:, :10], 3)
    with pytest.raises(InputError, match="call fit"):
        bootstrap(PLSA(2), X, 3)
