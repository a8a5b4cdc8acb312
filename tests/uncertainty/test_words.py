"""Words that distinguish topics: planted log ratios, and adaptive shrinkage."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest

from polyseme import PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.errors import InputError
from polyseme.plots import plot_volcano
from polyseme.uncertainty import word_contrasts
from polyseme.uncertainty.words import shrink

mpl.use("Agg")


def planted(seed):
    """Return a corpus, contrasts of its topics, and the true log ratios."""
    corpus = synthetic_corpus(600, n_topics=3, n_words=200, length=150, random_state=seed)
    X, topics = corpus.counts(), corpus.topic_word
    model = PLSA(3, init=(None, topics), n_jobs=1).fit(X)
    weights = corpus.doc_topic().mean(axis=0)
    rest = [np.delete(np.arange(3), k) for k in range(3)]
    truth = [np.log(topics[k] / (weights[r] @ topics[r] / weights[r].sum())) for k, r in enumerate(rest)]
    return X, model, np.array(truth)


def test_local_false_sign_rates_hold_on_planted_topics():
    wrong, sure, covered = 0.0, 0, []
    for seed in range(3):
        X, model, truth = planted(seed)
        found = word_contrasts(model, X)
        chosen = found.sign_rate < 0.05
        wrong += (np.sign(found.estimate) != np.sign(truth))[chosen].sum()
        sure += chosen.sum()
        frequent = np.asarray(X.sum(axis=0)).ravel() > 50
        moderate = (np.abs(truth) < 3) & frequent
        covered.append(((found.low <= truth) & (truth <= found.high))[moderate].mean())
    assert sure > 300
    assert wrong / sure < 0.05
    assert np.mean(covered) > 0.85


def test_the_next_topic_is_the_one_in_which_a_word_is_most_probable():
    X, model, _ = planted(0)
    found, others = word_contrasts(model, X, against="next"), word_contrasts(model, X)
    topics = model.components_.astype(float)
    for k in range(3):
        nearest = np.delete(topics, k, axis=0).max(axis=0)
        frequent = (topics[k] > 3e-3) & (nearest > 3e-3)
        assert frequent.sum() > 5
        np.testing.assert_allclose(
            found.log_ratio[k, frequent], np.log(topics[k, frequent] / nearest[frequent]), atol=0.1
        )
    assert (found.log_ratio <= others.log_ratio + 1e-9).all()


def test_words_of_one_document_are_not_sure():
    X, model, _ = planted(1)
    X = X.toarray()
    rare = int(X.sum(axis=0).argmin())
    X[0, rare] += 100
    model.fit(X)
    found = word_contrasts(model, X)
    assert found.sign_rate[:, rare].tolist() == [1, 1, 1]
    assert np.isinf(found.high[:, rare]).all()
    assert rare not in found.words(int(found.log_ratio[:, rare].argmax()), 200)


def test_shrinkage_matches_a_known_mixture():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(4000) < 0.5, 0, rng.normal(0, 2, 4000))
    errors = rng.uniform(0.3, 1, 4000)
    values = truth + errors * rng.standard_normal(4000)
    mean, deviation, rate = shrink(values, errors)
    variance = 4 + errors**2
    slab = np.exp(-(values**2) / (2 * variance)) / np.sqrt(variance)
    spike = np.exp(-(values**2) / (2 * errors**2)) / errors
    expected = slab / (slab + spike) * values * 4 / variance
    assert np.abs(mean - expected).max() < 0.25
    assert np.abs(mean - expected).mean() < 0.05
    chosen = rate < 0.05
    false_share = (np.sign(mean) != np.sign(truth))[chosen].mean()
    assert chosen.sum() > 500
    assert false_share < 0.05
    assert abs(false_share - rate[chosen].mean()) < 0.02
    np.testing.assert_array_less(0, deviation)


def test_values_that_are_noise_are_shrunk_to_zero():
    errors = np.full(500, 0.5)
    mean, _, rate = shrink(0.5 * np.random.default_rng(1).standard_normal(500), errors)
    assert np.abs(mean).max() < 0.2
    assert rate.min() > 0.3


def test_the_plot_has_a_point_for_each_word():
    X, model, _ = planted(0)
    found = word_contrasts(model, X)
    ax = plot_volcano(found, 1)
    assert len(ax.collections[0].get_offsets()) == 200
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert boxes
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_bad_options_are_errors():
    X, model, _ = planted(0)
    with pytest.raises(InputError, match="against must be"):
        word_contrasts(model, X, against="all")
    with pytest.raises(InputError, match="the model has one"):
        word_contrasts(PLSA(1, n_jobs=1).fit(X), X)
