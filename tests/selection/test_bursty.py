"""Documents that repeat their words have no topics, and topics are found although documents repeat their words."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import PLSA
from polyseme.core.dirichlet import with_inference
from polyseme.core.shard import sparse_counts
from polyseme.selection import reading_n_topics, select_n_topics
from polyseme.selection.cross_validation import score_other_words, scored_topics
from polyseme.selection.n_topics import OtherWordsGain


def drawn(means, concentration, seed, length=60):
    """Return documents whose distributions of words are drawn around the means."""
    rng = np.random.default_rng(seed)
    shares = rng.standard_gamma(concentration * means)
    return sp.csr_array(rng.multinomial(length, shares / shares.sum(axis=1, keepdims=True)))


def unigram(n_documents, n_words=300):
    words = 1 / np.arange(1, n_words + 1)
    return np.tile(words / words.sum(), (n_documents, 1))


@pytest.mark.parametrize("concentration", [10, 30, 100])
def test_repeated_words_are_not_structure(concentration):
    X = drawn(unigram(600, 200), concentration, 1, length=200)
    found = select_n_topics(X, [5, 10], refine=False, reading=False, n_jobs=1)
    assert found.chosen_to_predict == 1
    assert found.reason_to_predict.startswith("No structure: ")


def test_words_that_are_repeated_more_than_others_are_not_structure():
    rng = np.random.default_rng(0)
    means = 100 * unigram(600)
    shapes = 0.3 * means * np.exp(rng.normal(0, 1.5, 300))  # every word has its own burstiness
    X = rng.poisson(rng.standard_gamma(shapes) * means / shapes)
    found = select_n_topics(X, [2, 4], refine=False, reading=False, n_jobs=1)
    assert found.reason_to_predict.startswith("No structure: documents repeat their words")


def test_repeated_words_are_not_topics_to_read():
    found = reading_n_topics(drawn(unigram(30, 100), 3, 2), n_jobs=1)
    assert max(row.agreement for row in found.rows) > 0.3  # fits agree about repeated words
    assert (found.chosen, found.structured) == (1, False)


def test_topics_are_found_although_documents_repeat_their_words():
    rng = np.random.default_rng(3)
    means = rng.dirichlet(np.full(4, 0.1), 300) @ rng.dirichlet(np.full(300, 0.05), 4)
    found = select_n_topics(drawn(means, 30, 3), [4, 8], refine=False, reading=False, n_jobs=1)
    assert found.structured


def test_words_of_one_half_of_the_vocabulary_are_predicted_from_the_other_half():
    rng = np.random.default_rng(6)
    X = rng.poisson(0.7, (9, 12)).astype(float)
    X[:, 3] *= np.arange(9) < 6  # does not occur in the documents of the fit from row 6 on
    fitted = PLSA(3, random_state=0, max_iter=20).fit(X[6:])
    topics = with_inference(scored_topics(fitted), None)
    found = score_other_words(topics, X[:6], seed=4, n_threads=1)
    first = np.random.default_rng(4).permutation(12) % 2 == 0
    logs, base, tokens = np.zeros(6), np.zeros(6), np.zeros(6)
    for half in (first, ~first):
        p = topics.fold_in(sparse_counts(X[:6] * ~half, np.dtype(np.float64))).doc_topic @ fitted.components_
        for d, w in zip(*np.nonzero(X[:6] * half * (fitted.unigram_ > 0)), strict=True):
            unigram = fitted.unigram_[w] / fitted.unigram_[half].sum()
            logs[d] += X[d, w] * np.log(0.1 * p[d, w] / p[d, half].sum() + 0.9 * unigram)
            base[d] += X[d, w] * np.log(unigram)
            tokens[d] += X[d, w]
    np.testing.assert_allclose(found.logs, logs, rtol=1e-12)
    np.testing.assert_allclose(found.unigram_logs, base, rtol=1e-12)
    np.testing.assert_array_equal(found.tokens, tokens)
    assert found.unseen_tokens == X[:6, fitted.unigram_ == 0].sum() > 0


def test_a_small_gain_in_other_words_is_structure_if_it_is_significant():
    assert OtherWordsGain(1e-4, 1e-5, 2).sure
    assert not OtherWordsGain(1e-2, 1e-2, 2).sure


def test_half_of_the_vocabulary_may_be_unknown():
    fitted = scored_topics(PLSA(1).fit(np.array([[2.0, 0.0], [1.0, 0.0]])))
    found = score_other_words(fitted, np.array([[1.0, 1.0]]), seed=0, n_threads=1)
    assert (found.logs.tolist(), found.tokens.tolist(), found.unseen_tokens) == ([0.0], [1.0], 1.0)
