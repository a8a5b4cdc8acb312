"""Words that distinguish labels: moments over all permutations, calibration, effect sizes and degenerate cases."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import false_discovery_control, norm

import oracles
from polyseme import InputError
from polyseme.metrics import distinctive_words
from polyseme.metrics.distinctive import _moments, _standardized


def excesses(X, rows):
    """Return the sums of e over some documents, one document and word after the other."""
    share = X.sum(axis=0) / X.sum()
    return np.array([sum(X[d, w] - X[d].sum() * share[w] for d in rows) for w in range(X.shape[1])])


def test_mean_variance_and_skewness_are_those_of_all_permutations():
    X = oracles.random_counts(14, 9, 5).astype(float)
    sums = np.array([excesses(X, rows) for rows in combinations(range(9), 3)])
    moments = _moments(sp.csr_array(X), X.sum(axis=1), X.sum(axis=0))
    z, skewness = _standardized(np.stack([sums[0], -sums[0]]), np.array([3.0, 6.0]), *moments)
    deviation = sums.std(axis=0)
    np.testing.assert_allclose(sums.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(z[0], sums[0] / deviation, rtol=1e-9)
    np.testing.assert_allclose(skewness[0], ((sums / deviation) ** 3).mean(axis=0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(skewness[1], -skewness[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_effect_sizes_equal_naive_loops(form):
    X = oracles.random_counts(14, 40, 15, empty_rows=[3], empty_words=[6])
    labels = ["a", "b", "c", "b"] * 10
    found = distinctive_words(form(X), labels, prior=0.05)
    assert found.labels == ["a", "b", "c"]
    pseudo = 0.05 * np.count_nonzero(X.sum(axis=0)) * X.sum(axis=0) / X.sum()
    for label, ratios in zip(found.labels, found.ratios, strict=True):
        chosen = np.array(labels) == label
        rates = [(Y.sum(axis=0) + pseudo) / (Y.sum() + pseudo.sum()) for Y in (X[chosen], X[~chosen])]
        present = X.sum(axis=0) > 0
        np.testing.assert_allclose(ratios[present], rates[0][present] / rates[1][present], rtol=1e-10)
        assert (ratios[~present] == 1).all()


def test_one_document_that_repeats_a_word_is_no_evidence():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (200, 20))
    X[0, 3] = 100
    found = distinctive_words(X, np.arange(200) % 2)
    assert found.p_values[0, 3] > 0.05
    assert found.ratios[0, 3] > 1.5


def test_planted_words_are_distinctive():
    rng = np.random.default_rng(15)
    X = rng.poisson(1.0, (100, 30))
    labels = np.repeat(["x", "y"], 50)
    X[:50, 7] += rng.poisson(2.0, 50)
    X[50:, 21] += rng.poisson(2.0, 50)
    found = distinctive_words(X, labels)
    vocabulary = [f"word{w}" for w in range(30)]
    assert {label: words[0] for label, words in found.words(vocabulary).items()} == {"x": "word7", "y": "word21"}
    assert found.words(vocabulary, 1, max_q=1.0) == {"x": ["word7"], "y": ["word21"]}
    assert np.abs(np.delete(found.scores, [7, 21], axis=1)).max() < 4 < found.scores[0, 7]
    np.testing.assert_allclose(found.q_values, false_discovery_control(found.p_values, axis=1))
    assert repr(found).startswith("DistinctiveWords: words more frequent with a label (q at most 0.05): x ")


@pytest.mark.parametrize("sizes", [(0.5, 0.5), (0.05, 0.95)])
def test_five_percent_of_the_words_have_p_below_five_percent_at_random_labels(sizes):
    """Counts come in bursts: a document has a word often or not at all, and documents differ in length."""
    rng = np.random.default_rng(1)
    lengths = rng.lognormal(0, 1, (1000, 1))
    occurs = rng.random((1000, 4000)) < np.minimum(np.geomspace(0.01, 0.4, 4000) * lengths, 1)
    X = occurs * rng.geometric(0.3, occurs.shape)
    found = distinctive_words(X, rng.choice(["a", "b"], 1000, p=sizes))
    assert 0.035 < np.mean(found.p_values[0] < 0.05) < 0.065
    assert 0.004 < np.mean(found.p_values[0] < 0.01) < 0.016
    assert np.mean(found.q_values[0] < 0.05) < 0.002
    rare = occurs.sum(axis=0) < 20
    assert rare.sum() > 200
    assert 0.025 < np.mean(found.p_values[0, rare] < 0.05) < 0.07


def test_scores_and_p_values_agree_for_labels_of_the_same_size():
    """Without skewness the score is z, and p is that of the normal distribution."""
    X = oracles.random_counts(3, 30, 10)
    found = distinctive_words(X, list("ab") * 15)
    np.testing.assert_allclose(found.p_values, 2 * norm.sf(np.abs(found.scores)), rtol=1e-6)
    np.testing.assert_allclose(found.scores[0], -found.scores[1], rtol=1e-9)


def test_every_case_is_defined():
    X = oracles.random_counts(16, 6, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found in (
            distinctive_words(X, ["a"] * 6),
            distinctive_words(np.zeros((6, 5)), list("aabbcc")),
            distinctive_words(X, list("aabbcc"), min_documents=7),
            distinctive_words(np.ones((4, 1)), ["a", "b", "a", "b"], min_documents=1),
            distinctive_words(np.eye(2), ["a", "b"], min_documents=1),
        ):
            assert not found.scores.any()
            assert (found.p_values == 1).all()
            assert (found.q_values == 1).all()
        some = distinctive_words(X, [None, "", "a", "b", "b", float("nan")], min_documents=1)
        alone = distinctive_words(X[2:5], ["a", "b", "b"], min_documents=1)
        assert some.labels == ["a", "b"]
        np.testing.assert_array_equal(some.scores, alone.scores)
        for array in (alone.scores, alone.ratios, alone.p_values, alone.q_values):
            assert np.isfinite(array).all()
    with pytest.raises(InputError, match="labels must have one entry for each of the 6 documents, got 3"):
        distinctive_words(X, ["a", "b", "c"])
    with pytest.raises(InputError, match="prior must be above 0, got 0"):
        distinctive_words(X, list("aabbcc"), prior=0)
