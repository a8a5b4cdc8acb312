"""Priors of single topics in LDA, K x words and seed words, against a naive fit and the posterior of a shared prior."""

import numpy as np
import pytest
from scipy.special import gammaln, psi

import oracles
import polyseme
from polyseme import LDA, InputError, UnsupportedError
from polyseme.priors import SeedWords
from polyseme.solvers import Variational

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
K, ALPHA = 3, 0.3
X = oracles.mixed_counts(0, 40, 15, K)
ETA = np.random.default_rng(1).gamma(0.5, 1, (K, 15)) + 0.01
WORDS = [f"w{column}" for column in range(15)]


def naive_bound(lambda_, eta):
    """Return the bound and the expected counts of the topics by loops, with the best q of each document."""
    logs = psi(lambda_) - psi(lambda_.sum(axis=1, keepdims=True))
    bound, expected = 0.0, np.zeros(lambda_.shape)
    for x in X.astype(float):
        best = None
        gamma = ALPHA + np.full(K, x.sum() / K)
        for _ in range(3000):
            a = np.exp(psi(gamma) - psi(gamma.sum()))
            q = a[:, None] * np.exp(logs)
            r = q / q.sum(axis=0)
            new = ALPHA + (x * r).sum(axis=1)
            if np.abs(new - gamma).max() < 1e-12:
                break
            gamma = new
        best = (x * np.log(q.sum(axis=0))).sum()
        best += gammaln(K * ALPHA) - K * gammaln(ALPHA) - gammaln(gamma.sum()) + gammaln(gamma).sum()
        best += ((ALPHA - gamma) * (psi(gamma) - psi(gamma.sum()))).sum()
        bound += best
        expected += x * r
    for k in range(K):
        bound += gammaln(eta[k].sum()) - gammaln(eta[k]).sum() - gammaln(lambda_[k].sum()) + gammaln(lambda_[k]).sum()
        bound += ((eta[k] - lambda_[k]) * logs[k]).sum()
    return bound, expected


def test_the_fit_is_a_fixed_point_of_the_naive_updates_and_has_their_bound():
    plain = Variational(extrapolate=False)
    model = LDA(K, solver=plain, doc_topic_prior=ALPHA, topic_word_prior=ETA, random_state=0, tol=1e-9, max_iter=2000)
    model.fit(X.astype(np.float64))
    assert np.array_equal(model.topic_word_prior_, ETA)
    bound, expected = naive_bound(model.topic_word_dirichlet_, ETA)
    assert model.bound_ == pytest.approx(bound, rel=1e-6)
    gain = naive_bound(ETA + expected, ETA)[0] - bound
    assert -1e-9 * abs(bound) <= gain <= 1e-5 * X.sum()
    other = naive_bound(np.roll(ETA, 1, axis=0) + expected, ETA)[0]  # the priors of other topics are worse
    assert other < bound - 1e-3 * X.sum()
    assert (np.diff(model.history_["bound"]) > -1e-9).all()


@pytest.mark.parametrize("solver", ["variational", "online"])
def test_equal_rows_have_the_bound_of_a_shared_prior(solver):
    """The start differs only where rows differ, so that the fits are the same up to rounding."""
    settings = {"solver": solver, "random_state": 0, "max_iter": 5, "init": "random", "dtype": "float64"}
    shared = LDA(K, topic_word_prior=ETA[0], **settings).fit(X)
    rows = LDA(K, topic_word_prior=np.tile(ETA[0], (K, 1)), **settings).fit(X)
    assert np.allclose(rows.components_, shared.components_, rtol=1e-6)
    assert rows.bound_ == pytest.approx(shared.bound_, rel=1e-8)
    assert np.allclose(rows.transform(X), shared.transform(X), atol=1e-6)


@pytest.mark.parametrize("K_wide", [1, 2, 9])
def test_the_terms_of_the_topics_for_any_number_of_topics(K_wide):
    rng = np.random.default_rng(K_wide)
    eta = rng.gamma(1, 1, (K_wide, 15)) + 0.01
    model = LDA(K_wide, topic_word_prior=eta, random_state=0, max_iter=3, dtype="float64").fit(X)
    lambda_, posterior = model.topic_word_dirichlet_, model._fitted.inference
    logs = psi(lambda_) - psi(lambda_.sum(axis=1, keepdims=True))
    wanted = (gammaln(eta.sum(1)) - gammaln(eta).sum(1) - gammaln(lambda_.sum(1)) + gammaln(lambda_).sum(1)).sum()
    wanted += ((eta - lambda_) * logs).sum()
    assert posterior.topics_term(n_threads=2) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("solver", ["variational", "online", "map"])
def test_seed_words_give_their_topic(solver):
    """Each topic of data with three blocks of words gets the block of its seed word, in the order of the seeds."""
    rng = np.random.default_rng(3)
    blocks = rng.integers(3, size=150)
    counts = np.zeros((150, 15), dtype=int)
    for document, block in enumerate(blocks):
        counts[document, 5 * block : 5 * block + 5] = rng.poisson(3, 5)
    counts += rng.poisson(0.1, counts.shape)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        seeds = SeedWords({topic: [f"w{5 * block}"] for topic, block in enumerate(order)}, strength=20)
        model = LDA(3, solver=solver, topic_word_prior=seeds, random_state=0).fit(counts, feature_names=WORDS)
        found = model.components_.reshape(3, 3, 5).sum(axis=2).argmax(axis=1)
        assert found.tolist() == order


def test_seed_words_are_an_array_of_pseudo_counts():
    eta = np.full((K, 15), 1 / K)
    eta[1, [4, 7]] += 5
    settings = {"random_state": 0, "max_iter": 5}
    by_words = LDA(K, topic_word_prior=SeedWords({1: ["w4", "w7"]}, strength=5), **settings)
    by_words.fit(X, feature_names=WORDS)
    assert np.array_equal(by_words.components_, LDA(K, topic_word_prior=eta, **settings).fit(X).components_)
    assert np.allclose(by_words.topic_word_prior_, eta)


def test_partial_fit_continues_with_the_prior(tmp_path):
    model = LDA(K, topic_word_prior=ETA, random_state=0)
    model.partial_fit(X[:20]).partial_fit(X[20:])
    assert np.allclose(model.topic_word_prior_, ETA)
    assert (model.topic_word_dirichlet_ >= ETA * (1 - 1e-6)).all()
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert np.array_equal(loaded.topic_word_prior_, model.topic_word_prior_)
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert np.array_equal(loaded.partial_fit(X).components_, model.partial_fit(X).components_)


def test_edits_merge_the_priors():
    plain = Variational(extrapolate=False)  # extrapolated parameters can be below the prior
    model = LDA(K, solver=plain, topic_word_prior=ETA, random_state=0, max_iter=5).fit(X)
    before = model.topic_word_dirichlet_.astype(np.float64)
    edited = model.with_edited_topics([[0, 2], [1]], [], X)
    assert np.allclose(edited.topic_word_prior_, [ETA[0] + ETA[2], ETA[1]])
    assert np.allclose(edited.topic_word_dirichlet_, [before[0] + before[2], before[1]], rtol=1e-5)
    assert np.array_equal(edited.topic_word_prior, edited.topic_word_prior_)
    seeded = LDA(K, topic_word_prior=SeedWords({2: [4], 1: [7]}), random_state=0, max_iter=5).fit(X)
    edited = seeded.with_edited_topics([[0, 2], [1]], [7], X)
    assert edited.topic_word_prior == SeedWords({0: [4]})


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_results_do_not_depend_on_threads(n_jobs):
    one = LDA(K, topic_word_prior=ETA, random_state=0, max_iter=6, n_jobs=1).fit(X)
    assert np.array_equal(LDA(K, topic_word_prior=ETA, random_state=0, max_iter=6, n_jobs=n_jobs).fit(X).components_,
                          one.components_)  # fmt: skip


@pytest.mark.parametrize(
    ("prior", "solver", "error", "sentence"),
    [
        (ETA.T, "variational", InputError, r"\(15,\) or \(3, 15\), got the shape \(15, 3\)"),
        (-ETA, "variational", InputError, "topic_word_prior must be finite and greater than 0"),
        ([[1.0, 2.0], [1.0]], "variational", InputError, "topic_word_prior must be None, a number, an array"),
        (ETA, "map", UnsupportedError, "solver='map' has one prior for all topics"),
        (SeedWords({0: ["w1"]}), "online", InputError, "SeedWords needs the vocabulary"),
        (SeedWords({5: [1]}), "variational", InputError, "there are seeds for topic 5"),
    ],
)
def test_wrong_priors_are_one_line(prior, solver, error, sentence):
    with pytest.raises(error, match=sentence) as raised:
        LDA(K, solver=solver, topic_word_prior=prior).fit(X)
    assert "\n" not in str(raised.value)
