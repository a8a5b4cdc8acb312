"""Synonyms, polysemy, overfitting and annealing: the measures on small cases, and the verdicts of the README."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from verdicts import verdicts

HERE = Path(__file__).parents[2] / "reproductions"
EXPECTED = {
    "Synonyms (sect. 3.1)": "true; without such documents PLSA is closer",
    "Polysemy (sect. 3.1)": "true for its words, not for its document vectors",
    "Overfitting grows with the corpus (sect. 4.1)": "false at a fixed K: it falls, and grows with K",
    "A larger sample fits better (ch. 6)": "true for new documents and for the true topics",
    "Inverse annealing (ch. 4)": (
        "false for the likelihood; to EM's best held-out probability as fast as EM and faster than annealing"
    ),
}


@pytest.fixture
def words(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module("saastamoinen_words")


@pytest.fixture
def claims(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module("saastamoinen_claims")


def test_quick_run_has_the_expected_verdicts(tmp_path):
    command = [sys.executable, "-W", "error::RuntimeWarning", str(HERE / "saastamoinen_claims.py"), "--quick"]
    environment = {**os.environ, "POLYSEME_DATA": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert verdicts(done.stdout.split("## Verdicts\n")[1]) == EXPECTED


def test_readme_has_the_verdicts():
    readme = (HERE / "README.md").read_text()
    block = readme.split("<!-- saastamoinen_claims -->\n")[1].split("<!-- end of saastamoinen_claims -->")[0]
    assert verdicts(block) == EXPECTED


@pytest.fixture
def counts():
    return sp.csr_array(np.random.default_rng(0).poisson(2.0, (40, 6)).astype(float))


@pytest.mark.parametrize("by", ["tokens", "documents"])
def test_halves_of_a_word_add_up_to_it(words, counts, by):
    X = words.split_words(counts, np.array([1, 4]), by, seed=0).toarray()
    first, second = X[:, -4:-2], X[:, -2:]
    np.testing.assert_array_equal(X[:, :4], counts[:, [0, 2, 3, 5]].toarray())
    np.testing.assert_array_equal(first + second, counts[:, [1, 4]].toarray())
    assert first.any(axis=0).all()
    assert second.any(axis=0).all()
    assert np.any((first > 0) & (second > 0)) == (by == "tokens")


def test_the_nearest_word_has_rank_one(words):
    vectors = np.array([[1.0, 0.0], [2.0, 0.1], [1.0, 1.0], [0.0, 1.0]])
    assert words.ranks(vectors, np.array([0, 0, 0]), np.array([1, 2, 3])).tolist() == [1, 2, 3]


def test_area_is_the_share_of_pairs_in_order(words):
    scores, relevant = np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False])
    assert words.auc(scores, relevant) == 0.75
    assert words.auc(np.ones(4), relevant) == 0.5


def test_a_label_stands_for_the_word_of_most_of_its_documents(words):
    truth = np.array([True, True, False, False, False])
    assert words.right_share(np.array([0, 0, 0, 1, 1]), truth) == (0.8, True)
    assert words.right_share(np.zeros(5), truth) == (0.6, False)


def test_merged_words_have_different_subjects(words):
    corpus = words.planted_words(150)
    pairs = words.word_pairs(corpus, 5, seed=0)
    assert len(set(np.ravel(pairs))) == 10
    assert all(corpus.subject[u] != corpus.subject[v] for u, v in pairs)


def test_held_out_tokens_are_taken_from_the_fit(claims, counts):
    parts = claims.hold_out(counts, 0.3, seed=0)
    np.testing.assert_array_equal((parts.fit + parts.held_out).toarray(), counts.toarray())
    assert 0.15 < parts.held_out.sum() / counts.sum() < 0.45


def test_mean_log_is_that_of_a_dense_product(claims, counts):
    rng = np.random.default_rng(1)
    theta, phi = rng.dirichlet(np.ones(3), 40), rng.dirichlet(np.ones(6), 3).T
    X, unigram = counts.toarray(), np.full(6, 1 / 6)
    expected = (X * np.log(0.99 * theta @ phi.T + 0.01 / 6)).sum() / X.sum()
    assert claims.mean_log(counts, theta, phi, unigram) == pytest.approx(expected, rel=1e-12)


def test_iterations_to_a_level(claims):
    assert claims.first_reach(np.array([-3.0, -2.0, -1.0, -2.0]), -2.0) == 2
    assert claims.times(claims.first_reach(np.array([-3.0]), -2.0)) == "never"


@pytest.mark.parametrize(("overfits", "expected"), [((0.5, 0.2, 0.9), True), ((0.2, 0.5, 1.9), False)])
def test_the_verdict_on_overfitting_follows_the_figures(claims, monkeypatch, overfits, expected):
    figures = iter(overfits)
    monkeypatch.setattr(
        claims, "fit_sample", lambda sample, n, K, seed: claims.Fitted(n, K, 1.0, next(figures), 100.0 - n, 1.0, 0.1)
    )
    size = claims.Size(documents=(10, 20), seeds=1)
    sample = claims.Sample("planted", None, None, 2)
    found = claims.sample_sizes([sample], size)[0].verdict
    assert (found == EXPECTED["Overfitting grows with the corpus (sect. 4.1)"]) == expected
