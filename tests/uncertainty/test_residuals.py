"""The test whether the number of topics is too small; benchmarks/residual_test.py has its level and power."""

import numpy as np
import pytest

from polyseme import PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.errors import InputError
from polyseme.uncertainty import residual_test

CORPUS = synthetic_corpus(300, n_topics=4, n_words=100, length=60, random_state=4)


def residuals(n_topics, **options):
    X = CORPUS.counts()
    model = PLSA(n_topics, init=(None, CORPUS.topic_word[:n_topics]), n_jobs=1).fit(X)
    return residual_test(model, X, **{"n_simulations": 19, "n_jobs": 1, **options})


def test_a_missing_topic_is_found_with_its_words():
    result = residuals(3)
    assert result.p_value == pytest.approx(1 / 20)
    assert result.ratio > 1.5
    assert result.statistic > result.expected.max()


def test_enough_topics_pass():
    result = residuals(4)
    assert result.p_value > 0.05
    assert 0.6 < result.ratio < 1.6


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads():
    one, two = (residuals(3, n_jobs=jobs, random_state=1) for jobs in (1, 3))
    assert one.statistic == two.statistic
    assert (one.expected == two.expected).all()
    assert (one.words == two.words).all()


def test_bad_options_are_errors():
    with pytest.raises(InputError, match="n_simulations must be"):
        residuals(3, n_simulations=0)
    X = np.ones((5, 1))
    with pytest.raises(InputError, match="two different words"):
        residual_test(PLSA(1, n_jobs=1).fit(X), X)
