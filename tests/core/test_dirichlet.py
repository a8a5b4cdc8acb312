"""The prior of P(z|d) that is learned: its parts against plain loops, the posterior under it, and its use."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import psi

import oracles
from polyseme import LDA, NMF, PLSA, InputError, UnsupportedError, load
from polyseme.core.dirichlet import DirichletPosterior, HeldOutHalves, LearnedPosterior, with_posterior
from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import DocumentSample, LearnedPrior
from polyseme.core.shard import sample_documents, sparse_counts
from polyseme.datasets import synthetic_corpus
from polyseme.scale import open_shards, write_shards
from polyseme.selection.cross_validation import score_documents

TOPICS = np.random.default_rng([3, 7]).dirichlet(np.full(300, 0.05), 5)


def drawn(n_documents, length, seed):
    return synthetic_corpus(n_documents, topic_word=TOPICS, length=length, random_state=seed).counts()


TRAIN = drawn(300, 60, 0)


@pytest.fixture(scope="module")
def model():
    return PLSA(5, random_state=0, dtype=np.float64).fit(TRAIN)


def as_counts(X):
    return sparse_counts(sp.csr_array(X), np.dtype(np.float64))


def posterior_weights(x, phi, alpha):
    """Iterate n_k = sum_w x a_k phi_kw / sum_j a_j phi_jw with a = exp psi(alpha + n), for one document."""
    n = np.full(alpha.size, x.sum() / alpha.size)
    for _ in range(5000):
        a = np.exp(psi(alpha + n))
        n = np.array([sum(x[w] * a[k] * phi[k, w] / (a @ phi[:, w]) for w in np.flatnonzero(x)) for k in range(n.size)])
    return (alpha + n) / (alpha + n).sum()


@pytest.mark.parametrize("background", [0.0, 0.3])
def test_the_posterior_is_that_of_plain_loops(background):
    model = PLSA(3, random_state=0, background=background, dtype=np.float64).fit(drawn(80, 20, 1))
    new = drawn(3, 8, 2).toarray().astype(np.float64)
    alpha, phi = model._fitted.document_prior, model.components_
    assert alpha.shape == (3 + (background > 0),)
    if background:
        phi = np.vstack([phi, model._fitted.inference.background.word_probabilities])
    found = model.fold_in(new, inference="posterior")
    known = phi.max(axis=0) > 0
    for x, theta, share in zip(new, found.doc_topic, found.background, strict=True):
        expected = posterior_weights(np.where(known, x, 0), phi, alpha)
        np.testing.assert_allclose(theta * (1 - share), expected[:3], atol=2e-3)
    empty = model.fold_in(np.zeros((1, 300)), inference="posterior").doc_topic[0]
    np.testing.assert_allclose(empty, alpha[:3] / alpha[:3].sum(), atol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.8])
def test_a_document_is_taken_out_of_the_topics_that_score_it(model, temperature):
    """The probabilities without a document equal those of plain loops over its words and topics."""
    inference = replace(model._fitted.inference, temperature=temperature)
    fitted = replace(model._fitted, inference=inference)
    sample = TRAIN[:2].toarray().astype(np.float64)
    folded = fitted.fold_in(as_counts(sample))
    theta, topic_sums = folded.doc_topic, fitted.word_documents.topics
    halves = HeldOutHalves(fitted, topic_sums, DocumentSample(folded, np.ones(2)))
    phi, sizes, n = fitted.topic_word, fitted.topic_weights * fitted.n_tokens, fitted.n_tokens
    rows = iter(halves._probabilities)
    for x, weights in zip(sample, theta, strict=True):
        own = np.zeros_like(phi)
        for w in np.flatnonzero(x):
            joint = (weights * phi[:, w]) ** temperature
            own[:, w] = x[w] * joint / joint.sum()
        left = np.maximum(phi * sizes[:, np.newaxis] - own, 0) / (sizes - own.sum(axis=1))[:, np.newaxis]
        unigram = (fitted.unigram * n - x) / (n - x.sum())
        for w in np.flatnonzero(x):
            np.testing.assert_allclose(next(rows), 0.99 * left[:, w] + 0.01 * unigram[w], rtol=1e-6, atol=1e-12)


def test_the_prior_is_near_the_best_for_new_documents(model):
    """New documents choose nearly the concentration that the training documents chose."""
    new, alpha = drawn(400, 60, 9), model._fitted.document_prior
    gains = {}
    for factor in (1 / 8, 1 / 4, 1, 4, 8):
        other = PLSA(5)
        other._fitted, other._training = replace(model._fitted, learned_prior=LearnedPrior(factor * alpha)), None
        gains[factor] = score_documents(other, new).mean
    assert gains[1] > max(gains[1 / 8], gains[8])
    assert gains[1] > max(gains.values()) - 0.01


@pytest.mark.parametrize("length", [3, 10, 30, 100])
def test_the_posterior_predicts_better_than_maximum_likelihood(model, length):
    new = drawn(500, length, 5)
    likelihood, posterior = (score_documents(model, new, inference=name) for name in ("model", "posterior"))
    gain = posterior.gain_over(likelihood)[0]
    assert gain > (0.1 if length <= 10 else 0)
    assert score_documents(model, new).mean == posterior.mean
    assert posterior.gain_over_unigram()[0] > 0


def test_three_words_give_no_certainty(model):
    new = drawn(50, 3, 6)
    assert (model.transform(new).max(axis=1) > 0.999).any()
    weights = model.fold_in(new, inference="posterior").doc_topic
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert weights.max() < 0.99
    assert weights.min() > 0


def test_the_prior_does_not_depend_on_the_order_or_place_of_documents(model, tmp_path):
    order = np.random.default_rng(0).permutation(TRAIN.shape[0])
    rows = sample_documents(as_counts(TRAIN), 2000)
    assert 0 < rows.size < TRAIN.shape[0]
    assert set(order[sample_documents(as_counts(TRAIN[order]), 2000)]) == set(rows)
    write_shards([TRAIN], tmp_path / "shards", shard_nonzeros=4000)
    stored = model.with_documents(open_shards(tmp_path / "shards"))._fitted
    again = model.with_documents(TRAIN)._fitted
    np.testing.assert_allclose(stored.document_prior, again.document_prior, rtol=1e-6)


def test_weights_are_repeated_documents():
    X = drawn(60, 30, 3)
    repeats = np.arange(60) % 3
    weighted = PLSA(3, random_state=0, dtype=np.float64, tol=1e-5, max_iter=2000).fit(X, sample_weight=repeats)
    repeated = weighted.with_documents(X[np.repeat(np.arange(60), repeats)])
    np.testing.assert_allclose(weighted._fitted.document_prior, repeated._fitted.document_prior, rtol=1e-3)


def test_who_learns_a_prior():
    X = oracles.random_counts(1, 30, 20)
    assert LDA(2, random_state=0).fit(X)._fitted.document_prior is None
    assert NMF(2, random_state=0).fit(X)._fitted.document_prior.shape == (2,)
    assert NMF(2, random_state=0, loss="squared").fit(X)._fitted.document_prior is None
    assert PLSA(1).fit(X)._fitted.document_prior.shape == (1,)
    lda = LDA(2, random_state=0).fit(X)
    assert with_posterior(lda._fitted) is lda._fitted
    np.testing.assert_array_equal(lda.fold_in(X, inference="posterior").doc_topic, lda.transform(X))


def test_documents_without_two_usable_words_leave_the_first_concentration():
    model = PLSA(2, random_state=0).fit(np.eye(6))
    assert model._fitted.document_prior.sum() == pytest.approx(4)


def test_the_name_of_an_inference_is_checked(model):
    with pytest.raises(InputError, match="inference must be 'posterior' or 'model', got 'map'"):
        model.completion_perplexity(TRAIN, inference="map")
    stream = PLSA(3, random_state=0).partial_fit(TRAIN)
    assert stream.completion_perplexity(TRAIN) == stream.completion_perplexity(TRAIN, inference="model")
    for use in (stream.completion_perplexity, stream.fold_in):
        with pytest.raises(UnsupportedError, match="The model has no prior of P"):
            use(TRAIN, inference="posterior")


def test_the_prior_is_that_of_the_inference(model):
    inference = with_posterior(model._fitted).inference
    assert isinstance(inference, LearnedPosterior)
    assert inference.alpha is model._fitted.document_prior


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_without_its_prior_has_a_bounded_sample_of_its_documents():
    """Until the prior is learned the model has at most 2^15 non-zeros of its data, and none afterwards."""
    X = drawn(1500, 100, 4)
    assert X.nnz > 1.5 * 2**15
    model = PLSA(5, random_state=0, max_iter=2, tol=0).fit(X)
    counts = [sample.folded.counts for sample in model._fitted.learned_prior._evidence.samples]
    assert 2**14 < sum(part.values.size for part in counts) <= 2**15
    assert not any(np.shares_memory(part.values, X.data) for part in counts)
    assert not any(part.values.base is not None and part.values.base.size > 2**15 for part in counts)
    unpickled = pickle.loads(pickle.dumps(model))
    prior = model._fitted.document_prior
    assert model._fitted.document_prior is prior
    assert model._fitted.learned_prior._evidence is None
    np.testing.assert_array_equal(unpickled._fitted.document_prior, prior)


def test_a_saved_model_has_the_prior_that_the_model_in_memory_learns(tmp_path):
    saved, asked = (PLSA(3, random_state=0, background=0.2).fit(TRAIN) for _ in range(2))
    saved.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded._fitted.document_prior, asked._fitted.document_prior)
    new = drawn(5, 8, 1)
    posteriors = [model.fold_in(new, inference="posterior").doc_topic for model in (loaded, asked)]
    np.testing.assert_array_equal(*posteriors)


def test_other_topics_do_not_change_a_prior_that_is_learned_later():
    """A model that is copied with other topics has the prior of the fit."""
    first, second = (PLSA(3, random_state=0).fit(TRAIN)._fitted for _ in range(2))
    changed = replace(first, topic_word=np.roll(first.topic_word, 1, axis=1), word_documents=None)
    np.testing.assert_array_equal(changed.document_prior, second.document_prior)


def test_a_topic_that_is_off_gets_no_weight_from_the_prior(model):
    """The parameters of the other topics, and the learned prior itself, stay as they are."""
    active = np.array([True, True, False, True, True])
    changed = with_posterior(replace(model._fitted, active=active))
    prior = model._fitted.document_prior
    np.testing.assert_array_equal(changed.inference.alpha[active], prior[active])
    assert prior[2] > 1e-3
    weights = changed.fold_in(as_counts(drawn(20, 5, 8))).doc_topic
    assert weights[:, 2].max() < 1e-5
    np.testing.assert_allclose(weights.sum(axis=1), 1)


@pytest.mark.parametrize("rows", [False, True], ids=["one-eta", "eta-of-topics"])
def test_topics_that_are_not_merged_keep_their_parameters(rows):
    eta = np.array([0.5, 0.1, 0.3, 0.2])
    below = np.array([[0.4, 3.0, 0.3, 1.0], [2.0, 0.05, 0.31, 0.2], [0.45, 0.06, 5.0, 0.1]])  # some are below eta
    posterior = DirichletPosterior(below, np.array([0.1, 0.2, 0.3]), np.array([eta, eta, eta]) if rows else eta)
    moved = posterior.edited(TopicEdit.of([[2], [0], [1]], [], 3, 4))
    np.testing.assert_array_equal(moved.topic_word, below[[2, 0, 1]])
    merged = posterior.edited(TopicEdit.of([[0, 2], [1]], [3], 3, 4))
    np.testing.assert_array_equal(merged.topic_word[1, :3], below[1, :3])
    expected = below[0] + below[2] if rows else np.maximum(below[0] + below[2] - eta, eta)
    np.testing.assert_allclose(merged.topic_word[0, :3], expected[:3])
    assert (merged.topic_word[:, 3] < 1e-6).all()
