"""Perplexities against plain loops, and the split behind the completion perplexity."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import oracles
from polyseme import PLSA, InputError
from polyseme.core.shard import sparse_counts, split_tokens
from polyseme.metrics.evaluation import PerplexityReport, score_tokens
from polyseme.metrics.topics import topic_fit
from polyseme.utils import perplexity_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CORPUS = oracles.mixed_counts(0, 120, 50, 4)
CORPUS[:, [7, 30]] = 0
TRAINING = CORPUS[:80]
SEEN = TRAINING.any(axis=0)
TEST = CORPUS[80:] * SEEN
TEST[5] = 0


@pytest.fixture(scope="module")
def model():
    return PLSA(4, random_state=0, max_iter=60).fit(TRAINING)


@pytest.fixture(scope="module")
def unseen_words():
    """Return TEST with tokens of words that the training corpus does not have."""
    X = TEST.copy()
    X[::2, 7] = 3
    X[::3, 30] = 1
    return X


def counts(X, dtype=np.float64):
    return sparse_counts(sp.csr_array(X), np.dtype(dtype))


def split(X, seed=0, share=0.5):
    """Return the two halves as dense arrays."""
    source = counts(X)
    halves = []
    for part in split_tokens(source, seed, share):
        halves.append(sp.csr_array((part, source.indices, source.indptr), X.shape).toarray())
    return halves


def naive_split(X, rng):
    """Toss a coin for every token."""
    held_out = np.array([[sum(rng.random() < 0.5 for _ in range(int(x))) for x in row] for row in X])
    return X - held_out, held_out


def scored(model, observed, held_out):
    """Return held-out counts of known words, and their probabilities."""
    return held_out * SEEN, np.where(SEEN, smoothed(model, posterior(model, observed), 0.01), 1.0)


def posterior(model, X):
    return model.fold_in(X, inference="posterior").doc_topic


def smoothed(model, theta, eps):
    return (1 - eps) * theta @ model.components_ + eps * model.unigram_


# perplexities


def test_perplexity_equals_naive_loops(model):
    wanted = oracles.perplexity(TEST, model.transform(TEST) @ model.components_)
    assert model.perplexity(TEST) == pytest.approx(wanted, rel=1e-10)
    assert model.perplexity(sp.csr_array(TEST)) == pytest.approx(wanted, rel=1e-10)


def test_the_report_has_the_perplexity_of_the_unigram(model):
    wanted = oracles.perplexity(TEST, np.tile(TRAINING.sum(axis=0) / TRAINING.sum(), (len(TEST), 1)))
    report = model.perplexity_report(TEST)
    assert report.kind == "folded in"
    assert report.unigram_perplexity == pytest.approx(wanted, rel=1e-10)
    assert report.tokens == TEST.sum()
    assert report.unseen_tokens == 0
    assert report.smoothed_share == 0


def test_one_topic_is_the_unigram():
    report = PLSA(1).fit(TRAINING).perplexity_report(TEST)
    assert report.perplexity == pytest.approx(report.unigram_perplexity, rel=1e-10)


def test_training_perplexity_is_folded_in_perplexity_of_the_training_documents(model):
    assert model.training_perplexity_ == pytest.approx(model.perplexity(TRAINING), rel=1e-10)


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 1.0])
def test_the_perplexity_of_a_uniform_model_is_the_size_of_the_vocabulary(model, smoothing):
    uniform = copy.copy(model)
    uniform._fitted = replace(model._fitted, topic_word=np.full((4, 50), 1 / 50), unigram=np.full(50, 1 / 50))
    assert uniform.perplexity(TEST) == pytest.approx(50, rel=1e-12)
    assert uniform.completion_perplexity(TEST, smoothing) == pytest.approx(50, rel=1e-12)
    assert uniform.completion_report(TEST).unigram_perplexity == pytest.approx(50, rel=1e-12)


@pytest.mark.parametrize("smoothing", [1e-6, 0.01, 0.5, 1.0])
def test_completion_equals_naive_loops(model, smoothing):
    observed, held_out = split(TEST)
    p = smoothed(model, model.transform(observed), smoothing)
    report = model.completion_report(TEST, smoothing, inference="model")
    assert report.perplexity == pytest.approx(oracles.perplexity(held_out, p), rel=1e-10)
    p = smoothed(model, posterior(model, observed), smoothing)
    report = model.completion_report(TEST, smoothing)
    assert report.kind == "completion"
    assert report.perplexity == pytest.approx(oracles.perplexity(held_out, p), rel=1e-10)
    assert report.perplexity == model.completion_perplexity(TEST, smoothing)
    assert report.tokens == held_out.sum()
    unigram = oracles.perplexity(held_out, np.tile(model.unigram_, (len(TEST), 1)))
    assert report.unigram_perplexity == pytest.approx(unigram, rel=1e-10)


def test_smoothing_of_one_is_the_unigram(model):
    report = model.completion_report(TEST, 1.0)
    assert report.perplexity == pytest.approx(report.unigram_perplexity, rel=1e-12)
    assert report.smoothed_share == 1


def test_the_report_has_the_share_of_smoothed_tokens(model):
    smoothing = 0.3
    observed, held_out = split(TEST)
    from_topics = (1 - smoothing) * (posterior(model, observed) @ model.components_)
    leaning = sum(
        held_out[d, w]
        for d in range(len(TEST))
        for w in range(50)
        if held_out[d, w] > 0 and smoothing * model.unigram_[w] > from_topics[d, w]
    )
    report = model.completion_report(TEST, smoothing)
    assert 0 < report.smoothed_share < 1
    assert report.smoothed_share == pytest.approx(leaning / held_out.sum(), rel=1e-12)


def test_a_report_prints_its_figures():
    none = np.empty(0)
    report = PerplexityReport("completion", 412.34, 6.04, 982.1, 49611.0, 2.0, 0.125, none, none)
    assert re.split(r"\s{2,}|\n", repr(report)) == [
        "Perplexity (completion) of 49,611 tokens", "value", "model", "412.3", "standard error 6.0",
        "unigram", "982.1", "smoothed tokens", "12.5%", "unseen tokens", "2",
    ]  # fmt: skip
    alone = PerplexityReport("folded in", 3.0, np.nan, 4.0, 1.0, 0.0, 0.0, none, none)
    assert [line.split() for line in repr(alone).splitlines()[1:]] == [["value"], ["model", "3.0"], ["unigram", "4.0"]]


def test_score_is_minus_the_log_of_the_completion_perplexity(model):
    assert model.score(TEST) == pytest.approx(-np.log(model.completion_perplexity(TEST)), rel=1e-15)


def test_the_standard_error_is_that_of_the_documents_of_all_splits(model):
    splits = [split(TEST, seed) for seed in (3, 3 + 2**32)]
    logs, tokens = np.zeros(len(TEST)), np.zeros(len(TEST))
    for observed, held_out in splits:
        p = smoothed(model, posterior(model, observed), 0.01)
        for d, w in zip(*np.nonzero(held_out), strict=True):
            logs[d] += held_out[d, w] * np.log(p[d, w])
            tokens[d] += held_out[d, w]
    mean, n = logs.sum() / tokens.sum(), np.count_nonzero(tokens)
    error = np.sqrt(n / (n - 1) * ((logs - mean * tokens) ** 2).sum()) / tokens.sum()
    report = model.completion_report(TEST, random_state=3, n_splits=2)
    assert report.perplexity == pytest.approx(np.exp(-mean), rel=1e-10)
    assert report.standard_error == pytest.approx(np.exp(-mean) * error, rel=1e-8)
    assert report.tokens == tokens.sum()
    unigram = oracles.perplexity(splits[0][1] + splits[1][1], np.tile(model.unigram_, (len(TEST), 1)))
    assert report.unigram_perplexity == pytest.approx(unigram, rel=1e-10)
    assert model.completion_perplexity(TEST, random_state=3, n_splits=2) == report.perplexity
    assert model.score(TEST, random_state=3, n_splits=2) == -np.log(report.perplexity)


def test_other_seeds_and_more_splits_are_other_halves(model):
    first = model.completion_report(TEST)
    assert model.completion_report(TEST, random_state=0) == first
    assert model.score(TEST, random_state=1) != model.score(TEST)
    more = model.completion_report(TEST, n_splits=20)
    assert more.standard_error < first.standard_error
    assert abs(more.perplexity - first.perplexity) < 3 * first.standard_error


def test_two_standard_errors_contain_the_perplexity_of_all_documents_in_95_percent_of_samples():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.2), 3)
    theta = rng.dirichlet(np.full(3, 0.3), 12_100)
    lengths = rng.lognormal(3, 0.8, len(theta)).astype(int) + 1  # long documents count more
    X = rng.multinomial(lengths, theta @ topics)
    model = PLSA(3, random_state=0, max_iter=50).fit(X[:100])
    reports = [model.completion_report(part, n_splits=2) for part in np.split(X[100:], 300)]
    everything = PerplexityReport.pool(reports).perplexity
    covered = [abs(report.perplexity - everything) < 2 * report.standard_error for report in reports]
    assert 0.91 < np.mean(covered) < 0.98


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"random_state": -1}, "random_state must be None, a whole number from 0 to .*, got -1"),
        ({"random_state": 2**32}, "random_state must be None, a whole number from 0 to .*, got 4294967296"),
        ({"n_splits": 0}, "n_splits must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_seeds_and_numbers_of_splits(model, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        model.score(TEST, **settings)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_completion_does_not_depend_on_batches(dtype):
    model = PLSA(4, random_state=0, max_iter=30).fit(TRAINING.astype(dtype))
    X = TEST.astype(dtype)
    whole = model.completion_report(X)
    for size in (1, 10, 13):
        reports = [model.completion_report(X[start : start + size]) for start in range(0, len(X), size)]
        together = PerplexityReport.pool(reports)
        for name in ("tokens", "unseen_tokens"):
            assert getattr(together, name) == getattr(whole, name)
        for name in ("perplexity", "standard_error", "unigram_perplexity", "smoothed_share"):
            assert getattr(together, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    order = np.random.default_rng(1).permutation(len(X))
    assert model.completion_perplexity(X[order]) == pytest.approx(whole.perplexity, rel=1e-12)


def test_only_reports_of_one_kind_are_pooled(model):
    with pytest.raises(InputError, match="Only reports of one kind can be pooled, got completion and folded in"):
        PerplexityReport.pool([model.perplexity_report(TEST), model.completion_report(TEST)])
    with pytest.raises(InputError, match="got none"):
        PerplexityReport.pool([])
    nothing = PerplexityReport.pool([model.perplexity_report(np.zeros((1, 50)))])
    assert (nothing.tokens, nothing.smoothed_share) == (0, 0)


def test_completion_does_not_depend_on_the_layout(model):
    whole = model.completion_perplexity(TEST)
    wide = sp.csr_array(TEST)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    for X in (sp.csr_array(TEST), sp.csc_array(TEST), wide, TEST.astype(np.float32), TEST.astype(int)):
        assert model.completion_perplexity(X) == whole


def test_the_seed_of_the_split_is_random_state(model):
    other = copy.deepcopy(model).set_params(random_state=1)
    unset = copy.deepcopy(model).set_params(random_state=None)
    assert other.completion_perplexity(TEST) != model.completion_perplexity(TEST)
    assert unset.completion_perplexity(TEST) == model.completion_perplexity(TEST)


# unseen words


def test_unseen_words_are_ignored_and_counted(model, unseen_words):
    seen_alone = unseen_words * SEEN
    report = model.perplexity_report(unseen_words)
    assert report.unseen_tokens == unseen_words[:, ~SEEN].sum() > 0
    assert report.tokens == seen_alone.sum()
    assert report.perplexity == pytest.approx(model.perplexity(seen_alone), rel=1e-12)


def test_unseen_words_can_have_a_probability(model, unseen_words):
    unseen = 1e-4
    p = model.transform(unseen_words) @ model.components_ * (1 - unseen * (~SEEN).sum())
    p[:, ~SEEN] = unseen
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    report = model.perplexity_report(unseen_words, unseen=unseen)
    assert report.perplexity == pytest.approx(oracles.perplexity(unseen_words, p), rel=1e-10)
    assert report.tokens == unseen_words.sum()
    assert report.unseen_tokens == unseen_words[:, ~SEEN].sum()
    assert model.perplexity(unseen_words, unseen=unseen) == report.perplexity


def test_completion_ignores_and_counts_unseen_words(model, unseen_words):
    observed, held_out = split(unseen_words)
    assert held_out[:, ~SEEN].any()
    report = model.completion_report(unseen_words)
    assert report.unseen_tokens == held_out[:, ~SEEN].sum()
    p = smoothed(model, posterior(model, observed), 0.01)
    assert report.perplexity == pytest.approx(oracles.perplexity(held_out * SEEN, p), rel=1e-10)
    unseen = 1e-4
    p *= 1 - unseen * (~SEEN).sum()
    p[:, ~SEEN] = unseen
    wanted = oracles.perplexity(held_out, p)
    assert model.completion_perplexity(unseen_words, unseen=unseen) == pytest.approx(wanted, rel=1e-10)


def test_the_perplexity_of_no_tokens_is_nan(model):
    assert np.isnan(model.perplexity(np.zeros((2, 50))))
    assert np.isnan(perplexity_of(0.0, 0.0))
    assert perplexity_of(-1e6) == np.inf  # without a warning, which is an error here
    report = model.completion_report(np.zeros((2, 50)))
    assert np.isnan(report.perplexity)
    assert (report.tokens, report.smoothed_share) == (0, 0)


def test_a_probability_of_zero_gives_an_infinite_perplexity():
    report = score_tokens("test", counts(np.ones((1, 2))), np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert report.perplexity == np.inf
    assert np.isnan(report.standard_error)
    assert report.to_dict()["perplexity"] is None
    assert report.unigram_perplexity == pytest.approx(2)


# the split


def test_halves_of_whole_counts_add_up():
    X = oracles.random_counts(2, 200, 60, largest=12)
    observed, held_out = split(X)
    assert np.array_equal(observed + held_out, X)
    assert np.array_equal(observed, np.floor(observed))
    assert abs((observed - held_out).sum()) < 5 * np.sqrt(X.sum())
    for share in (0.1, 0.5, 0.9):
        parts = split_tokens(counts(X), 0, share)
        assert np.array_equal(parts[0] + parts[1], X[X > 0])
        assert parts[1].sum() == pytest.approx(share * X.sum(), abs=5 * np.sqrt(X.sum() * share * (1 - share)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("tokens", [1, 2, 7, 30, 1000, 3000])
def test_held_out_counts_are_binomial(tokens, share):
    """Chi-square over bins of the binomial distribution, whose 0.9999 quantile is not exceeded."""
    X = np.full((40, 100), float(tokens))
    X[:, 0] += np.arange(40)  # so that the documents differ
    held_out = split(X, share=share)[1][:, 1:].ravel()
    binomial = scipy.stats.binom(tokens, share)
    edges = np.unique(binomial.ppf(np.linspace(0.05, 0.95, 10)))
    expected = np.diff(binomial.cdf(edges), prepend=0, append=1) * held_out.size
    observed = np.bincount(np.searchsorted(edges, held_out), minlength=edges.size + 1)
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < scipy.stats.chi2(max(1, kept.sum() - 1)).ppf(0.9999)


def test_the_halves_are_independent():
    """Counts of independent Poisson variables fall into independent halves, as those of a naive random split do."""
    X = np.random.default_rng(0).poisson(1.5, (400, 300)).astype(float)
    rng = np.random.default_rng(1)
    for observed, held_out in (split(X), split(X, seed=1), naive_split(X, rng)):
        products = (observed - 0.75) * (held_out - 0.75)
        assert abs(products.mean()) < 4 * products.std() / np.sqrt(X.size)
        assert abs(held_out[observed == 0].mean() - held_out[observed > 0].mean()) < 0.02


def test_the_score_is_that_of_a_naive_random_split(model):
    """Completion log-probabilities differ from those of naive splits by no more than these differ from each other."""
    rng = np.random.default_rng(2)
    ours = [np.log(oracles.perplexity(*scored(model, *split(TEST, seed)))) for seed in range(12)]
    naive = [np.log(oracles.perplexity(*scored(model, *naive_split(TEST, rng)))) for _ in range(12)]
    error = np.sqrt((np.var(ours, ddof=1) + np.var(naive, ddof=1)) / 12)
    assert abs(np.mean(ours) - np.mean(naive)) < 4 * error


def test_halves_of_fractions_add_up():
    X = oracles.random_counts(3, 100, 40) * np.random.default_rng(4).exponential(size=(100, 40))
    observed, held_out = split(X)
    assert (observed >= 0).all()
    assert (held_out >= 0).all()
    np.testing.assert_allclose(observed + held_out, X, rtol=1e-15)
    below_one = (X > 0) & (X < 1)
    assert below_one.any()
    assert ((observed[below_one] == 0) | (held_out[below_one] == 0)).all()
    rest = X - np.floor(X)
    whole = [np.abs(part - np.rint(part)) < 1e-12 for part in (observed, held_out)]
    assert (whole[0] | whole[1]).all()
    share = rest[~whole[1]].sum() / rest.sum()
    assert 0.4 < share < 0.6


def test_documents_of_one_word_are_split():
    """A single token goes to one half; which one depends on the document, so that both occur."""
    X = np.eye(200)
    observed, held_out = split(X)
    assert np.array_equal(observed + held_out, X)
    assert 60 < observed.sum() < 140
    observed, held_out = split(np.full((1, 1), 5.0))
    assert observed.item() + held_out.item() == 5


def test_every_number_is_split():
    X = np.array([[1e-300, 0.25, 1e15 + 0.5, 1e40, 1e300]])
    for share in (0.0, 0.5, 1.0):
        observed, held_out = split(X, share=share)
        assert np.array_equal(observed + held_out, X)
        assert held_out.sum() == pytest.approx(share * X.sum(), rel=1e-6)


def test_completion_of_documents_of_one_token(model):
    X = np.eye(50)[SEEN]
    observed, held_out = split(X)
    assert observed.any()
    assert held_out.any()
    report = model.completion_report(X)
    assert report.tokens == held_out.sum()
    prior = model._fitted.document_prior
    p = smoothed(model, np.tile(prior / prior.sum(), (len(X), 1)), 0.01)
    assert report.perplexity == pytest.approx(oracles.perplexity(held_out, p), rel=1e-6)


def test_the_split_depends_only_on_the_seed_and_the_document():
    X = oracles.random_counts(5, 60, 40)
    observed, _ = split(X)
    order = np.random.default_rng(6).permutation(60)
    assert np.array_equal(split(X[order])[0], observed[order])
    for d in range(60):
        assert np.array_equal(split(X[d : d + 1])[0][0], observed[d])
    assert np.array_equal(split(np.hstack([X, np.zeros((60, 5))]))[0][:, :40], observed)
    assert not np.array_equal(split(X, seed=1)[0], observed)


def test_the_split_depends_on_the_whole_content_of_a_document():
    X = np.ones((2, 40))
    X[1, 0] = 2
    observed, _ = split(X)
    assert np.array_equal(split(X[:1].repeat(2, axis=0))[0][0], observed[0])
    assert not np.array_equal(observed[0, 1:], observed[1, 1:])


def test_the_split_is_the_same_for_both_dtypes():
    X = oracles.random_counts(7, 60, 40)
    for one, other in zip(split_tokens(counts(X), 0), split_tokens(counts(X, np.float32), 0), strict=True):
        assert np.array_equal(one, other)


def test_topic_fit_is_the_mean_share_of_a_topic_in_its_own_documents():
    doc_topic = np.array([[1.0, 0.0], [0.5, 0.5]])
    topic_doc = np.array([[0.75, 0.25], [0.0, 1.0]])
    np.testing.assert_allclose(topic_fit(doc_topic, topic_doc), [0.875, 0.5])


def test_topics_beat_the_unigram_on_real_documents(real_counts):
    X = real_counts("counts/newsgroups_fasttopics.npz")
    rows = np.arange(X.shape[0])
    training, test = X[rows % 4 == 0], X[rows % 40 == 1]
    model = PLSA(10, random_state=0, max_iter=15).fit(training)
    report = model.completion_report(test)
    assert report.unseen_tokens > 0
    assert report.tokens > 10_000
    assert report.perplexity < 0.9 * report.unigram_perplexity
    for size in (1, 10):
        batches = [model.completion_report(test[start : start + size]) for start in range(0, test.shape[0], size)]
        assert PerplexityReport.pool(batches).perplexity == pytest.approx(report.perplexity, rel=1e-12)
        assert PerplexityReport.pool(batches).tokens == report.tokens


def test_unseen_words_cost_the_unigram_as_much_as_the_model(model, unseen_words):
    """The probability of unseen words is subtracted from the seen words of both distributions."""
    unseen = 1e-3
    report = model.completion_report(unseen_words, unseen=unseen)
    counts = sparse_counts(sp.csr_array(unseen_words), np.dtype(np.float64))
    held_out = counts.with_values(split_tokens(counts, 0)[1]).matrix().toarray()
    unigram = model.unigram_
    p = np.where(unigram > 0, (1 - unseen * (unigram == 0).sum()) * unigram, unseen)
    assert p.sum() == pytest.approx(1)
    expected = perplexity_of((held_out * np.log(p)).sum(), held_out.sum())
    assert report.unigram_perplexity == pytest.approx(expected, rel=1e-6)
