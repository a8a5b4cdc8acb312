"""Each model recovers its parameters from synthetic data better than plain PLSA does.

The error is the total variation distance between true and fitted topics, matched one to one
(polyseme.metrics.align), as mean over topics and median over five seeds. Both fits use the same solver, tolerance
and start. The settings are those where the assumption of the model matters; a prior has the strength that the data were
drawn with, if there is one. `pytest -s` prints the medians, which docs/priors_and_background.md quotes.
"""

import numpy as np
import pytest

from polyseme import PLSA, Background
from polyseme.metrics import align
from polyseme.priors import Decorrelation, Dirichlet, Entropic, SeedWords, TopicSelection

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SEEDS = range(5)


def draw(rng, theta, phi, length):
    """Return documents of `length` tokens each."""
    return np.array([rng.multinomial(length, p) for p in theta @ phi], dtype=np.float64)


def topics_and_weights(rng, *, n_docs, n_words, K, doc_alpha, word_alpha):
    return rng.dirichlet(np.full(K, doc_alpha), n_docs), rng.dirichlet(np.full(n_words, word_alpha), K)


def fit(X, K, seed, **parameters):
    return PLSA(K, random_state=seed, solver="em", max_iter=60, tol=1e-3, **parameters).fit(X)


def error(topics, model):
    return align(topics, model.components_)[1].mean()


def medians(problem, measure, parameters):
    """Return the median errors of plain PLSA and of PLSA with these parameters (a function of the problem)."""
    errors = []
    for seed in SEEDS:
        truth = problem(np.random.default_rng(seed))
        K = truth.get("fitted_topics", len(truth["topics"]))
        errors.append([measure(truth, fit(truth["X"], K, seed, **given)) for given in ({}, parameters(truth))])
    plain, ours = np.median(errors, axis=0)
    print(f"\n{problem.__name__}: plain {plain:.3f}, {ours:.3f} with {parameters(truth)}"[:100])
    return plain, ours


def topic_error(truth, model):
    return error(truth["topics"], model)


# a background

SHARE, BACKGROUND_TOKENS = 0.5, 80


def with_background(rng):
    theta, phi = topics_and_weights(rng, n_docs=150, n_words=60, K=4, doc_alpha=0.3, word_alpha=0.1)
    background = rng.dirichlet(np.full(60, 0.2))
    mixed = np.hstack([(1 - SHARE) * theta, np.full((150, 1), SHARE)])
    return {"X": draw(rng, mixed, np.vstack([phi, background]), BACKGROUND_TOKENS), "topics": phi, "B": background}


def test_a_known_background():
    plain, ours = medians(
        with_background, topic_error, lambda truth: {"background": Background(SHARE, truth["B"] + 1e-9)}
    )
    assert ours < 0.3 * plain


def test_the_unigram_as_background():
    """The unigram of the corpus is the background mixed with the topics, so it helps less than the true background."""
    plain, ours = medians(with_background, topic_error, lambda truth: {"background": SHARE})
    assert ours < 0.9 * plain


# flat topics seen in few tokens

FLAT = 2.0


def flat_topics(rng):
    theta, phi = topics_and_weights(rng, n_docs=60, n_words=80, K=3, doc_alpha=0.2, word_alpha=FLAT)
    return {"X": draw(rng, theta, phi, 25), "topics": phi}


def test_dirichlet_above_one():
    plain, ours = medians(flat_topics, topic_error, lambda truth: {"topic_word_prior": FLAT})
    assert ours < 0.75 * plain


# documents with mostly one topic

SPARSE, BETA = 0.03, 3.0


def sparse_documents(rng):
    theta, phi = topics_and_weights(rng, n_docs=200, n_words=60, K=4, doc_alpha=SPARSE, word_alpha=1.0)
    return {"X": draw(rng, theta, phi, 20), "topics": phi}


@pytest.mark.parametrize("prior", [Dirichlet(SPARSE), Entropic(BETA)], ids=["dirichlet", "entropic"])
def test_sparse_priors(prior):
    plain, ours = medians(sparse_documents, topic_error, lambda truth: {"doc_topic_prior": prior})
    assert ours < 0.9 * plain


# topics without common words, in mixed documents with some random words

NOISE, OWN_WORDS, MIXED, LENGTH = 0.1, 12, 1.0, 30
DECORRELATION = 0.5
"""Strength in tokens of a topic."""


def disjoint_topics(rng, K=5, n_docs=200):
    phi = np.zeros((K, K * OWN_WORDS))
    for k in range(K):
        phi[k, k * OWN_WORDS : (k + 1) * OWN_WORDS] = rng.dirichlet(np.ones(OWN_WORDS))
    theta = rng.dirichlet(np.full(K, MIXED), n_docs)
    noisy = (1 - NOISE) * phi + NOISE / phi.shape[1]
    return {"X": draw(rng, theta, noisy, LENGTH), "topics": phi}


def test_decorrelation():
    plain, ours = medians(
        disjoint_topics,
        topic_error,
        lambda truth: {"topic_word_prior": Decorrelation(DECORRELATION * truth["X"].sum() / len(truth["topics"]))},
    )
    assert ours < 0.9 * plain


# seed words: topics have numbers

SEEDS_PER_TOPIC, SEED_STRENGTH = 3, 10.0


def numbered_topics(rng):
    theta, phi = topics_and_weights(rng, n_docs=120, n_words=60, K=5, doc_alpha=0.3, word_alpha=0.2)
    return {"X": draw(rng, theta, phi, 20), "topics": phi}


def own_words(topics):
    """Return, for each topic, the frequent words that are most specific to it."""
    own = np.where(topics > 0.02, topics / topics.sum(axis=0), 0)
    return {k: [int(word) for word in np.argsort(-row)[:SEEDS_PER_TOPIC]] for k, row in enumerate(own)}


def unmatched_error(truth, model):
    """Return the error of topic k compared with topic k."""
    return 0.5 * np.abs(truth["topics"] - model.components_).sum(axis=1).mean()


def test_seed_words():
    plain, ours = medians(
        numbered_topics,
        unmatched_error,
        lambda truth: {"topic_word_prior": SeedWords(own_words(truth["topics"]), strength=SEED_STRENGTH)},
    )
    assert ours < 0.4 * plain


def test_every_guided_topic_has_its_number():
    truth = numbered_topics(np.random.default_rng(0))
    prior = SeedWords(own_words(truth["topics"]), strength=SEED_STRENGTH)
    model = fit(truth["X"], 5, 0, topic_word_prior=prior)
    assert align(truth["topics"], model.components_)[0].tolist() == [0, 1, 2, 3, 4]


# too many topics

TRUE_TOPICS, TOO_MANY, SELECTION = 4, 12, 0.3


def few_topics(rng):
    theta, phi = topics_and_weights(rng, n_docs=200, n_words=60, K=TRUE_TOPICS, doc_alpha=0.3, word_alpha=0.1)
    return {"X": draw(rng, theta, phi, 60), "topics": phi, "fitted_topics": TOO_MANY}


def topics_too_many(truth, model):
    return abs(int(model.active_topics_.sum()) - TRUE_TOPICS)


def test_topic_selection_finds_the_number_of_topics():
    plain, ours = medians(few_topics, topics_too_many, lambda truth: {"doc_topic_prior": TopicSelection(SELECTION)})
    assert plain >= 4
    assert ours <= 1
