"""The number of topics: planted topics are found, a unigram corpus has none, and the choice has a reason."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import LDA, NMF, PLSA, InputError, MissingExtraError, UnsupportedError
from polyseme.core.edits import merge_costs, merge_topics
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import coherence
from polyseme.plots import plot_selection
from polyseme.selection import reading_n_topics, select_n_topics, suggest_merges, suggest_splits, suggestions
from polyseme.selection.cross_validation import DocumentScores, combine_scores, document_folds
from polyseme.selection.n_topics import (
    FoldFits,
    _compare,
    _Comparison,
    _reason,
    default_values,
    spread_values,
    start_variance,
)
from polyseme.solvers import Tempered


def planted(n_topics, seed, n_documents=400, n_words=400):
    topics = np.random.default_rng([seed, 7]).dirichlet(np.full(n_words, 0.05), n_topics)
    return synthetic_corpus(n_documents, topic_word=topics, length=100, random_state=seed).counts()


@pytest.fixture(scope="module")
def six():
    return planted(6, 50)


@pytest.fixture(scope="module")
def found(six):
    return select_n_topics(six, range(2, 25), n_jobs=1)


def test_planted_topics_are_found(found):
    assert found.chosen_to_predict == 6
    assert found.structured
    assert found.reason_to_predict.startswith(f"{found.best} topics predict held-out words best")
    by_number = {row.n_topics: row for row in found.rows}
    assert by_number[6].perplexity < by_number[2].perplexity < found.unigram_perplexity
    assert by_number[found.best].behind == 0


def test_the_table_has_a_row_for_each_number_and_plain_values(found):
    to_predict, to_read = set(found.fits) - {1}, {row.n_topics for row in found.reading.rows}
    assert list(found.table["n_topics"]) == [row.n_topics for row in found.rows] == sorted(to_predict | to_read)
    for row in found.rows:
        assert (row.perplexity == row.perplexity) == (row.n_topics in to_predict)
        assert (row.agreement == row.agreement) == (row.n_topics in to_read)
    values = json.loads(json.dumps(found.as_dict()))
    assert (values["chosen_to_read"], values["chosen_to_predict"]) == (found.chosen_to_read, 6)
    assert values["rows"][0]["n_topics"] == 2
    assert values["rows"][0]["agreement"] is None
    assert values["reason_to_read"] == found.reading.reason
    assert values["interval_to_read"] == list(found.reading.interval)


def test_both_questions_are_answered(six, found):
    assert found.reading == replace(reading_n_topics(six, n_jobs=1), reason=found.reading.reason)
    assert found.chosen_to_read == found.reading.chosen
    assert abs(found.chosen_to_read - 6) <= 1  # the rule prefers a larger number if it agrees almost as well
    assert found.reason.splitlines() == [found.reading.reason, found.reason_to_predict]
    alone = select_n_topics(six, [6], folds_run=1, refine=False, reading=False, n_jobs=1)
    assert alone.chosen_to_read is None
    assert alone.reason == alone.reason_to_predict
    assert alone.as_dict()["reason_to_read"] is None


def test_coherence_and_stability_fall_beyond_the_planted_number(found):
    by_number = {row.n_topics: row for row in found.rows}
    assert by_number[6].stability > 0.9 > by_number[24].stability
    assert by_number[6].coherence > by_number[2].coherence


def test_information_criteria_are_their_formulas(six):
    fits = select_n_topics(six, [1, 6], folds_run=1, refine=False, n_jobs=1, reading=False).fits
    train = six[document_folds(400, 5)[0].train]
    for n_topics, fit in fits.items():
        parameters = 320 * (n_topics - 1) + n_topics * (np.count_nonzero(train.sum(axis=0)) - 1)
        assert fit.aic == pytest.approx(2 * parameters - 2 * fit.log_likelihood)
        assert fit.bic == pytest.approx(parameters * np.log(train.sum()) - 2 * fit.log_likelihood)
    assert sorted(fits) == [1, 6]


def test_the_same_seed_gives_the_same_figures_for_any_number_of_threads(six, found):
    again = select_n_topics(six, range(2, 25), n_jobs=2, reading=False)
    assert [(row.n_topics, row.perplexity) for row in again.rows] == [
        (row.n_topics, row.perplexity) for row in found.rows if row.perplexity == row.perplexity
    ]


def test_a_unigram_has_no_structure():
    unigram = np.random.default_rng(5).dirichlet(np.full(300, 0.3))[np.newaxis]
    X = synthetic_corpus(300, topic_word=unigram, length=60, random_state=5).counts()
    found = select_n_topics(X, range(2, 12), n_jobs=1, reading=False)
    assert found.chosen_to_predict == 1
    assert not found.structured
    assert found.reason_to_predict.startswith("No structure")
    assert found.rows[0].n_topics == 1
    assert found.rows[0].perplexity == pytest.approx(found.unigram_perplexity)


@pytest.mark.parametrize("estimator", [PLSA(random_state=0), NMF(random_state=0), LDA(random_state=0)])
def test_other_estimators_find_the_planted_number(six, estimator):
    assert (
        select_n_topics(
            six, [3, 6, 12], estimator=estimator, folds_run=1, refine=False, n_jobs=1, reading=False
        ).chosen_to_predict
        == 6
    )
    assert estimator.n_components == 10


def test_max_documents_draws_documents_at_random(six):
    found = select_n_topics(six, [3, 6, 9], folds_run=1, max_documents=200, n_jobs=1, reading=False)
    assert found.chosen_to_predict in (5, 6, 7)
    assert found.fits[6].scores.tokens.size == 40
    assert np.isnan(found.rows[0].stability)
    rows = np.sort(np.random.default_rng(0).choice(400, 200, replace=False))
    drawn = select_n_topics(six[rows], [3, 6, 9], folds_run=1, n_jobs=1, reading=False)
    assert drawn.unigram_perplexity == found.unigram_perplexity
    assert [row.perplexity for row in drawn.rows] == [row.perplexity for row in found.rows]


def test_max_documents_above_the_number_of_documents_changes_nothing(six):
    settings = {"folds_run": 1, "refine": False, "reading": False, "n_jobs": 1}
    found = select_n_topics(six, [6], max_documents=400, **settings)
    assert found.rows[0].perplexity == select_n_topics(six, [6], **settings).rows[0].perplexity


def test_the_reason_names_the_ends_of_the_range(six):
    low = select_n_topics(six, [2, 3], folds_run=1, n_jobs=1, reading=False)
    assert low.chosen_to_predict == 3
    assert low.reason_to_predict.endswith("3 is the largest number tried: more may be better still.")
    high = select_n_topics(six, [9, 11], folds_run=1, refine=False, n_jobs=1, reading=False)
    assert high.chosen_to_predict == 9
    assert high.reason_to_predict.endswith("9 is the smallest number tried: fewer may do as well.")


@pytest.mark.parametrize(
    ("error", "within"), [(0.0007, "one standard error"), (0.0001, "1% of what topics gain over none")]
)
def test_the_reason_of_a_number_below_the_best(six, error, within):
    top = select_n_topics(six, [9, 11], folds_run=1, refine=False, n_jobs=1, reading=False).fits[11].scores
    behind = {9: (0.0003, error), 11: (0.0, 0.0)}
    assert f"9 topics do as well within {within} (0.0003" in _reason(9, _Comparison(11, 9, behind, (1.0, 0.1)), top)


def test_the_reason_says_when_the_curve_is_flat(six):
    top = select_n_topics(six, [9, 11], folds_run=1, refine=False, reading=False, n_jobs=1).fits[11].scores
    behind = {5: (0.02, 0.001), 9: (0.003, 0.001), 18: (0.0, 0.0), 30: (0.02, 0.03)}
    assert "flat: 9 to 30 topics predict about equally well" in _reason(9, _Comparison(18, 9, behind, (1.0, 0.1)), top)
    steep = behind | {30: (0.2, 0.03), 9: (0.03, 0.001)}
    assert "flat" not in _reason(18, _Comparison(18, 18, steep, (1.0, 0.1)), top)


def scores_of(differences, seed):
    """Return scores of two folds of 200 documents of 10 tokens, with mean log-probabilities that are given."""
    noise = np.random.default_rng(seed).normal(0, 0.1, (2, 200))
    tokens = np.full(200, 10.0)
    return [
        DocumentScores("completion", tokens * (value + e), 0 * e, tokens, 0.0)
        for value, e in zip(differences, noise, strict=True)
    ]


def fold_fits(n_topics, differences, seed):
    scores = scores_of(differences, seed)
    return FoldFits(n_topics, combine_scores(scores, [np.arange(200), np.arange(200, 400)]), scores, [], [], 0, 0, 0, 0)


def test_the_standard_error_contains_the_spread_over_starts():
    """Folds whose differences vary with a standard deviation of 0.05 add this variance to that of documents."""
    rng = np.random.default_rng(1)
    spread = 0.05
    fits = {k: fold_fits(k, rng.normal(0, spread / 2**0.5, 2), k) for k in range(20, 60)}
    documents = 0.1 * 2**0.5 / 200**0.5
    assert start_variance(fits.values()) == pytest.approx(spread**2, rel=0.5)
    comparison = _compare(fits, sorted(fits))
    for value, (_, error) in comparison.behind.items():
        if value != comparison.best:
            assert error == pytest.approx(np.hypot(documents / 2**0.5, spread / 2**0.5), rel=0.3)
    same = {k: fold_fits(k, (0.0, 0.0), k) for k in range(20, 60)}
    assert start_variance(same.values()) < 0.2 * documents**2
    one = [replace(fit, fold_scores=fit.fold_scores[:1]) for fit in fits.values()]
    assert start_variance(one) == 0


def test_every_fold_has_its_own_start(six, monkeypatch):
    seeds = []
    fit = PLSA.fit
    monkeypatch.setattr(PLSA, "fit", lambda self, *given: (seeds.append(self.random_state), fit(self, *given))[1])
    select_n_topics(six, [3, 4], folds_run=2, refine=False, n_jobs=1, random_state=5, reading=False)
    assert seeds[:2] == [5, 6]


@pytest.mark.parametrize("length", [10, 30])
def test_topics_of_short_documents_are_found(length):
    topics = np.random.default_rng([1, 7]).dirichlet(np.full(300, 0.05), 5)
    X = synthetic_corpus(600, topic_word=topics, length=length, random_state=1).counts()
    assert select_n_topics(X, [2, 3, 4, 5, 6, 8, 12], n_jobs=1, reading=False).chosen_to_predict == 5


@pytest.mark.parametrize("length", [5, 30])
def test_short_documents_without_structure_are_recognized(length):
    unigram = np.random.default_rng(2).dirichlet(np.full(300, 0.3), 1)
    X = synthetic_corpus(600, topic_word=unigram, length=length, random_state=2).counts()
    assert select_n_topics(X, [2, 4, 8], refine=False, n_jobs=1, reading=False).chosen_to_predict == 1


def test_one_topic_is_a_row_if_it_is_among_the_numbers(six):
    found = select_n_topics(six, [1, 6], folds_run=1, n_jobs=1, refine=False, reading=False)
    assert [row.n_topics for row in found.rows] == [1, 6]
    assert found.rows[0].perplexity == pytest.approx(found.unigram_perplexity)
    seen = np.asarray(six[:10].sum(axis=0)).ravel()
    assert found.fits[1].components[0].shape == (1, seen.size)


def test_progress_is_called_before_each_fit_and_at_the_end(six):
    calls = []
    select_n_topics(six, [2, 3], folds_run=1, n_jobs=1, progress=lambda *state: calls.append(state), reading=False)
    assert calls[0] == (0, 6, "fitting 3 topics")
    assert calls[-1] == (2, 2, "done")


def test_without_matplotlib_the_message_names_the_extra(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"Plots needs the extra 'plots': pip install"):
        plot_selection(found)


def test_the_plot_shows_the_curve_and_the_choice(found, tmp_path):
    ax = plot_selection(found)
    lines = {line.get_label(): line for axes in ax.figure.axes for line in axes.get_lines()}
    assert list(lines["to predict: 6"].get_xdata()) == [6]
    assert list(lines[f"to read: {found.chosen_to_read}"].get_xdata()) == [found.chosen_to_read]
    assert len(ax.get_legend().get_texts()) == 5
    alone = plot_selection(replace(found, reading=None))
    assert len(alone.figure.axes) == 1
    ax.figure.savefig(tmp_path / "choice.png")
    assert (tmp_path / "choice.png").stat().st_size > 5000


def test_values_grow_by_a_constant_factor():
    assert spread_values(5, 60) == [5, 7, 9, 11, 15, 20, 26, 35, 46, 60]
    assert spread_values(3, 3) == [3]
    assert default_values(2000, 5000)[0] == 2
    assert default_values(2000, 5000)[-1] == 89
    assert default_values(10**6, 10**5)[-1] == 100
    assert max(default_values(6, 50)) < 6


@pytest.mark.parametrize(
    ("numbers", "arguments", "sentence"),
    [
        ([], {}, "n_topics is empty: give at least one number of topics."),
        (range(9, 3), {}, "n_topics is empty: give at least one number of topics."),
        ([0, 2], {}, "a number of topics must be a whole number of at least 1, got 0."),
        ([2], {"n_folds": 500}, "n_folds=500 is more than the 400 documents: use at most 400 folds."),
        ([2], {"max_documents": 1}, "max_documents must be a whole number of at least 2, got 1."),
        ([2], {"folds_run": 0}, "folds_run must be a whole number of at least 1"),
        ([2], {"estimator": "plsa"}, "estimator must be a topic model such as PLSA()"),
    ],
)
def test_wrong_arguments_raise_one_sentence(six, numbers, arguments, sentence):
    with pytest.raises(InputError) as caught:
        select_n_topics(six, numbers, **arguments)
    assert str(caught.value).startswith(sentence)


def test_an_empty_range_of_values_raises():
    with pytest.raises(InputError, match="is empty: 3 is less than 9"):
        spread_values(9, 3)


def test_documents_without_a_common_word_raise():
    with pytest.raises(InputError, match="share no word"):
        select_n_topics(sp.csr_array(2 * np.eye(10)), [2], n_jobs=1, reading=False)


def naive_cost(phi, tokens, i, j):
    m = (tokens[i] * phi[i] + tokens[j] * phi[j]) / (tokens[i] + tokens[j])
    return sum(tokens[k] * (phi[k] * np.log(phi[k] / m)).sum() for k in (i, j))


def test_the_pair_with_the_smallest_loss_is_merged_first():
    rng = np.random.default_rng(0)
    phi, theta = rng.dirichlet(np.full(12, 0.5), 5) + 1e-9, rng.dirichlet(np.ones(5), 7)
    phi /= phi.sum(axis=1, keepdims=True)
    tokens = rng.uniform(10, 90, 5)
    counts = phi * tokens[:, np.newaxis]
    costs = merge_costs(counts)
    pairs = {(i, j): naive_cost(phi, tokens, i, j) for j in range(5) for i in range(j)}
    for (i, j), cost in pairs.items():
        assert costs[i, j] == pytest.approx(cost, rel=1e-9)
    i, j = min(pairs, key=pairs.get)
    fewer, doc_topic = merge_topics(counts, theta, 4)
    np.testing.assert_allclose(doc_topic[:, i], theta[:, i] + theta[:, j])
    np.testing.assert_allclose(fewer[i], tokens[i] * phi[i] + tokens[j] * phi[j])
    assert fewer.sum() == pytest.approx(tokens.sum())
    np.testing.assert_allclose(merge_topics(counts, theta, 1)[0][0], tokens @ phi)


def test_merges_are_suggested_for_too_many_topics_and_splits_for_too_few(six):
    """Topics of one subject gain at most 0.007 nats per token, one of two at least 0.2; the limit is 0.02."""
    right = PLSA(6, random_state=0, n_init=3, n_jobs=1).fit(six)
    assert suggest_merges(right) == []
    assert suggest_splits(right, six, n_jobs=1) == []
    few = PLSA(5, random_state=0, n_init=3, n_jobs=1).fit(six)
    (split,) = suggest_splits(few, six, n_jobs=1)
    assert split.gain > max(0.1, 3 * split.standard_error)
    assert suggest_splits(few, six, min_gain=split.gain, n_jobs=1) == []
    assert split.components.shape == (2, 400)
    right.components_[1] = right.components_[0]
    (merge,) = suggest_merges(right)
    assert (merge.first, merge.second) == (0, 1)
    assert merge.divergence == pytest.approx(0, abs=1e-6)


def test_splits_need_the_documents_of_the_fit(six):
    model = PLSA(2, random_state=0, n_jobs=1).fit(six)
    with pytest.raises(InputError, match="X must be the 400 documents of the fit, got 10"):
        suggest_splits(model, six[:10])
    stream = PLSA(2, random_state=0).partial_fit(six)
    assert suggest_merges(stream) == []
    with pytest.raises(UnsupportedError, match="not known after partial_fit"):
        suggest_splits(stream, six)


@pytest.mark.parametrize("settings", [{"background": 0.3}, {"solver": Tempered(0.7)}, {}], ids=str)
def test_the_tokens_of_a_topic_that_is_split_are_expected_counts(six, settings, monkeypatch):
    corpora = []

    def record(X, *arguments, **options):
        corpora.append(X.toarray())
        return select_n_topics(X, *arguments, **options)

    monkeypatch.setattr(suggestions, "select_n_topics", record)
    model = PLSA(2, random_state=0, n_jobs=1, dtype="float64", **settings).fit(six[:60])
    suggest_splits(model, six[:60], n_jobs=1)
    X = six[:60].toarray()
    beta, share = model.temperature_, model.background_weight_
    joint = ((1 - share) * model.doc_topic_[:, :, np.newaxis] * model.components_) ** beta
    rest = 0.0 if share == 0 else (share * model.background_) ** beta
    tokens = X[:, np.newaxis] * joint / np.maximum(joint.sum(axis=1, keepdims=True) + rest, 1e-300)
    for topic, found in enumerate(corpora):
        own = tokens[:, topic][tokens[:, topic].sum(axis=1) >= 2]
        np.testing.assert_allclose(found, own, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["separated", "overlapping", "unigram"])
def test_the_planted_number_is_found(kind, monkeypatch):
    """The table of benchmarks/planted_topics.py: within 20% in at least 80% of the runs."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    from planted_topics import select

    cases = (
        [(1, seed) for seed in range(5)] if kind == "unigram" else [(k, s) for k in (5, 10, 20, 40) for s in range(5)]
    )
    chosen = [select(kind, k, seed)[0].chosen_to_predict for k, seed in cases]
    good = [abs(number - k) <= 0.2 * k for number, (k, _) in zip(chosen, cases, strict=True)]
    assert np.mean(good) >= (1.0 if kind == "unigram" else 0.8), chosen


@pytest.mark.parametrize(("noise", "least"), [(2.0, 3), (0.02, 9)])
def test_a_smaller_number_within_one_standard_error_is_as_good(noise, least):
    """Nine topics are 0.05 nats ahead of three, which is 5% of their gain over the unigram."""
    rng, tokens = np.random.default_rng(0), np.full(200, 10.0)
    differences = noise * rng.normal(size=200)
    differences += 0.05 - differences.mean()
    scores = {
        number: DocumentScores("completion", tokens * logs, tokens * -6.0, tokens, 0.0)
        for number, logs in ((9, np.full(200, -5.0)), (3, -5.0 - differences), (2, np.full(200, -5.9)))
    }
    fits = {number: SimpleNamespace(scores=score, fold_scores=[score]) for number, score in scores.items()}
    comparison = _compare(fits, [2, 3, 9])
    assert comparison.best == 9
    assert (comparison.behind[3][1] > 0.05) == (least == 3)
    assert comparison.least == least


def test_the_coherence_of_a_number_is_the_mean_over_the_folds(found, six):
    for row in found.rows:
        if row.n_topics not in found.fits:
            continue
        folds = [coherence(words, six).mean for words in found.fits[row.n_topics].words]
        assert len(folds) == 2
        assert row.coherence == pytest.approx(np.mean(folds))
    assert folds[0] != folds[1]
