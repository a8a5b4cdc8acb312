"""The number of topics to read: planted topics are found, a unigram corpus has none, the choice has a reason."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_mutual_info_score

from polyseme import PLSA, InputError
from polyseme.core.model import Model
from polyseme.core.shard import sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.datasets import synthetic_corpus
from polyseme.kernels import padded
from polyseme.selection import reading, reading_n_topics, reading_topics
from polyseme.selection.reading import ReadingRow, shared_topics
from polyseme.solvers import Tempered


def planted(n_topics, seed, n_documents=400, n_words=400, length=100):
    topics = np.random.default_rng([seed, 7]).dirichlet(np.full(n_words, 0.05), n_topics)
    return synthetic_corpus(n_documents, topic_word=topics, length=length, random_state=seed).counts()


def unigram(seed, n_documents, length):
    words = np.random.default_rng(seed).dirichlet(np.full(300, 0.3), 1)
    return synthetic_corpus(n_documents, topic_word=words, length=length, random_state=seed).counts()


@pytest.fixture(scope="module")
def six():
    return planted(6, 52, n_documents=300)


@pytest.fixture(scope="module")
def found(six):
    return reading_n_topics(six, n_jobs=1)


def test_planted_topics_are_found(found):
    assert found.chosen == 6
    assert found.structured
    assert not found.flat
    assert found.interval == (6, 6)
    agreement = {row.n_topics: row.agreement for row in found.rows}
    assert list(agreement) == [*range(5, 13), 14, 16, 18, 20, 22, 25]
    assert agreement[6] > 0.9 > agreement[8] > agreement[25]
    assert found.reason == (
        "6 topics to read, the most at which fits to samples agree. Numbers between 5 and 25 were tried; the agreement "
        f"about the topics of documents is {agreement[6]:.2f}, the best (1 is perfect, 0 is chance). Each half of the "
        "10 fits alone gives 6."
    )


def test_the_largest_of_many_topics_are_found():
    assert reading_n_topics(planted(14, 3, n_documents=500, n_words=600), n_jobs=1).chosen in (12, 14, 16)


def test_the_same_seed_gives_the_same_figures_for_any_number_of_threads(six, found):
    assert reading_n_topics(six, n_jobs=12) == found


def test_the_result_is_plain_data(found):
    values = json.loads(json.dumps(found.as_dict()))
    assert values["chosen"] == 6
    assert values["n_documents"] == 300
    assert values["interval"] == [6, 6]
    assert ReadingRow(**values["rows"][0]) == found.rows[0]


@pytest.mark.parametrize(("n_documents", "length"), [(300, 5), (60, 60)])
def test_a_unigram_has_no_structure(n_documents, length):
    """Fits of short or few documents agree (0.2 to 0.4), although topics do not predict anything."""
    found = reading_n_topics(unigram(2, n_documents, length), n_jobs=1)
    assert not found.structured
    assert found.chosen == 1
    assert found.reason.startswith("No structure: ")


def test_agreement_by_chance_needs_no_held_out_words(six, monkeypatch):
    monkeypatch.setattr(reading, "_predicts", lambda *_: pytest.fail("held-out words were scored"))
    size = len(reading.path_values(300, 400))
    monkeypatch.setattr(reading, "_agreements", lambda *_: np.full((size, 10, 10), 0.01))
    found = reading_n_topics(six)
    assert (found.chosen, found.structured) == (1, False)
    assert "no more than by chance (agreement at most 0.01)" in found.reason


def test_agreements_are_the_adjusted_mutual_information_of_the_largest_topics(monkeypatch):
    rng = np.random.default_rng(0)
    partitions = [[rng.integers(0, 3, 50), np.zeros(50, dtype=int)] for _ in range(10)]
    paths = (zip([4, 3], [None, None], found[::-1], strict=True) for found in partitions)
    monkeypatch.setattr(reading, "_fit_path", lambda *_: next(paths))
    monkeypatch.setattr(reading, "_largest_topics", lambda counts, n_topics, found, n_threads: found)
    counts = sparse_counts(sp.csr_array(np.ones((50, 2))), np.dtype(np.float32))
    found = reading._agreements(counts, [3, 4], 1, 0, None)
    expected = adjusted_mutual_info_score(partitions[0][0], partitions[1][0])
    assert found[0, 0, 1] == pytest.approx(expected)
    assert not found[1].any()  # fits that do not divide the documents have no agreement


def test_the_iterations_are_those_of_the_tempered_solver(six):
    rng = np.random.default_rng(0)
    theta, phi = rng.dirichlet(np.ones(4), 60), rng.dirichlet(np.ones(400), 4)
    model = PLSA(4, solver=Tempered(0.85), init=(theta, phi), max_iter=3, tol=0, n_jobs=1, dtype="float64")
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model.fit(six[:60])
    corpus = MemoryCorpus(sparse_counts(six[:60], np.dtype(np.float64)))
    _, words = reading._tempered_em(
        Model(4, temperature=0.85), corpus, padded(theta, np.float64), padded(phi.T, np.float64), 3
    )
    np.testing.assert_allclose(words[:, :4].T, model.components_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "chosen", "reason"),
    [
        (np.eye(4, 6) + 1, 2, "Number of topics: 2, because 4 documents are too few to compare fits on parts of them."),
        (np.ones((1, 3)), 1, "Number of topics: 1, because 1 document is too few to compare fits on parts of them."),
        (np.ones((30, 5)), 1, "Number of topics: 1, because all 30 documents have the same words."),
        (2 * np.eye(30), 1, "No structure: only 0 of 30 documents share a word with another one."),
        (
            np.eye(30, 12)[np.arange(30) % 12] + 1,
            3,
            "Number of topics: 3, because 12 different documents are too few to compare fits on parts of them.",
        ),
    ],
    ids=["4 documents", "1 document", "equal", "apart", "12 different"],
)
def test_few_different_documents_are_not_compared(X, chosen, reason):
    found = reading_n_topics(X)
    assert found.chosen == chosen
    assert found.reason == reason
    assert found.rows == []
    assert found.structured == (chosen > 1)


def test_few_documents_may_have_two_topics():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.poisson(3, (40, 20)), np.zeros((40, 20))])
    X[20:] = np.roll(X[20:], 20, axis=1)
    found = reading_n_topics(X, n_jobs=1)
    assert [row.n_topics for row in found.rows] == list(range(2, 11))
    assert found.chosen == 2


def test_numbers_depend_on_the_size_of_the_corpus():
    assert reading.path_values(20, 1000) == [2, 3, 4, 5]
    assert reading.path_values(99, 1000)[-1] == 24
    assert reading.path_values(100, 1000) == [*range(5, 13), 14, 16, 18, 20, 22, 25]
    assert reading.path_values(500, 3) == [3]


def test_the_largest_number_with_96_percent_of_the_best_is_taken():
    values, noisy, sure = [5, 6, 8, 10], np.full(4, 0.1), np.full(4, 0.01)
    peak = np.array([0.5, 0.6, 0.54, 0.5])
    assert reading._largest_enough(values, peak, noisy) == 8  # the smoothed best is 0.56, and 96% of it 0.538
    assert reading._largest_enough(values, peak, sure) == 6  # the best is 0.58
    assert reading._largest_enough(values, np.array([0.9, 0.5, 0.5, 0.5]), noisy) == 5


def test_the_error_of_an_agreement_is_that_of_its_pairs_over_the_fits():
    agreements = np.triu(np.arange(16.0).reshape(1, 4, 4), 1)
    means, errors = reading._means_and_errors(agreements, range(4))
    pairs = [1, 2, 3, 6, 7, 11]
    assert means == pytest.approx(np.mean(pairs))
    assert errors == pytest.approx(np.std(pairs, ddof=1) / 2)
    assert reading._means_and_errors(agreements, range(1, 4))[0] == pytest.approx(8)


def test_the_typical_fit_is_the_one_that_agrees_best_with_the_others():
    agreements = agreements_of([0.5, 0.9, 0.3])
    agreements[1, 3, :] += 0.05
    agreements[1, :3, 3] += 0.05
    agreements[0, 7, :] += 0.1  # at another number
    choice = reading._choice([5, 6, 8], agreements, True, (500, 500))
    assert (choice.chosen, choice.typical_fit) == (6, 3)
    assert reading._choice([5, 6, 8], agreements, False, (500, 500)).typical_fit is None


def test_topics_of_a_fit_give_documents_the_topics_that_were_compared(six, found):
    topics = reading_topics(six, found.chosen, found.typical_fit, n_jobs=1)
    assert topics.shape == (found.chosen, six.shape[1])
    assert 0 < topics.min() < 0.1 / six.shape[1]  # words that a topic does not have
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    model = PLSA(found.chosen, init=(None, topics), n_jobs=1).fit(six)
    other = PLSA(found.chosen, init=(None, reading_topics(six, found.chosen, 1 - (found.typical_fit == 1))), n_jobs=1)
    agreement = adjusted_mutual_info_score(model.doc_topic_.argmax(axis=1), other.fit(six).doc_topic_.argmax(axis=1))
    assert agreement > 0.8
    np.testing.assert_array_equal(reading_topics(six, found.chosen, found.typical_fit, n_jobs=3), topics)


@pytest.mark.parametrize(("n_topics", "fit"), [(3, 0), (6, 10), (26, 0)])
def test_topics_of_fits_that_were_not_made_are_refused(six, n_topics, fit):
    with pytest.raises(InputError, match="pass the numbers of a ReadingChoice"):
        reading_topics(six, n_topics, fit)


def test_a_fit_from_the_topics_that_fits_share_does_not_depend_on_the_seed():
    X = planted(6, 52, n_documents=200)

    def likelihood(seed, init):
        return PLSA(6, init=init, random_state=seed, n_jobs=1).fit(X).log_likelihood_

    plain = [likelihood(seed, "random") for seed in range(8)]
    shared = [likelihood(seed, (None, shared_topics(X, 6, random_state=seed, n_jobs=1))) for seed in range(3)]
    assert min(plain) < max(plain) - 0.05
    assert min(shared) > max(plain) - 1e-3


def test_the_topics_that_fits_share_are_distributions_and_have_the_same_bits_for_any_number_of_threads(six):
    progress = []
    topics = shared_topics(six, 7, max_documents=150, n_jobs=1, progress=lambda *report: progress.append(report))
    assert progress[-1] == (10, 10, "10 of 10 starts")
    assert topics.shape == (7, six.shape[1])
    assert topics.min() > 0
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    np.testing.assert_array_equal(shared_topics(six, 7, max_documents=150, n_jobs=3), topics)
    np.testing.assert_array_equal(shared_topics(reading.sample_rows(six, 150, 0), 7, n_jobs=1), topics)


def test_few_documents_words_and_very_many_topics_start_at_random(six):
    assert shared_topics(six[:19], 2) is None
    assert shared_topics(six[:, :5], 6) is None
    assert shared_topics(six[:30], 31) is None
    assert shared_topics(six, 101) is None


def agreements_of(means, half=0.0):
    """Return agreements of ten fits; those of the last five are larger at the largest number by `half`."""
    found = np.broadcast_to(np.array(means)[:, np.newaxis, np.newaxis], (len(means), 10, 10)).copy()
    found[-1, 5:, 5:] += half
    return found


@pytest.mark.parametrize(
    ("means", "half", "interval", "flat", "words"),
    [
        ([0.8, 0.5, 0.3, 0.2], 0, (5, 5), False, "5 is the smallest number tried: fewer may agree better."),
        ([0.2, 0.3, 0.5, 0.8], 0, (10, 10), False, "10 is the largest number tried: more may be as good."),
        ([0.44, 0.43, 0.4, 0.38], 0, (6, 6), True, "The curve is flat (agreement 0.38 to 0.44 for all numbers), so"),
        ([0.3, 0.8, 0.5, 0.5], 0.3, (6, 10), True, "gives 6, the other half 10. So the number is weakly determined"),
    ],
)
def test_the_reason_says_what_is_uncertain(means, half, interval, flat, words):
    choice = reading._choice([5, 6, 8, 10], agreements_of(means, half), True, (500, 500))
    assert (choice.interval, choice.flat) == (interval, flat)
    assert words in choice.reason
    assert ("weakly determined" in choice.reason) == flat


def test_max_documents_draws_documents_at_random(six):
    found = reading_n_topics(six, max_documents=50, n_jobs=1, random_state=1)
    assert found.n_documents == 50
    assert found.reason.endswith(" Chosen with 50 of 300 documents, drawn at random.")
    rows = np.sort(np.random.default_rng(1).choice(300, 50, replace=False))
    assert reading_n_topics(six[rows], n_jobs=1, random_state=1).rows == found.rows
    assert reading_n_topics(six[rows], n_jobs=1).rows != found.rows
    with pytest.raises(InputError, match="max_documents must be a whole number of at least 2, got 1"):
        reading_n_topics(six, max_documents=1)


def test_progress_ends_with_all_fits(six):
    calls = []
    reading_n_topics(six[:60], n_jobs=1, progress=lambda *state: calls.append(state))
    assert calls[0] == (1, 10 * 13, "15 topics")
    assert calls[-1] == (10 * 13, 10 * 13, "2 topics")


def test_documents_whose_words_a_part_lacks_do_no_harm():
    """A word of two documents is unknown to a fit on a part with neither of them."""
    X = sp.lil_array((60, 40))
    X[:, :20] = np.random.default_rng(0).poisson(2, (60, 20))
    X[:2] = 0
    X[:2, 39] = 1
    with np.errstate(invalid="raise", divide="raise"):
        found = reading_n_topics(X.tocsr(), n_jobs=1, structured=True)
    assert np.isfinite([row.agreement for row in found.rows]).all()
