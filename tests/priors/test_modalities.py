"""Modalities: EM of several vocabularies with shared P(z|d), against a naive implementation; starts, solvers, files."""

from pathlib import Path

import numpy as np
import pytest

from polyseme import NMF, PLSA, InputError, UnsupportedError, load
from polyseme.priors import Dirichlet, Modalities
from polyseme.solvers.base import SOLVERS

SIZES = {"en": 60, "it": 40}
K = 5
SUPPORTED = {"auto", "em", "accelerated-em", "annealed", "tempered", "held-out-tempered"}


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    topics = {name: rng.dirichlet(np.full(size, 0.1), K) for name, size in SIZES.items()}
    theta = rng.dirichlet(np.full(K, 0.1), 300)
    counts = {name: np.array([rng.multinomial(120, row) for row in theta @ topic]) for name, topic in topics.items()}
    return topics, theta, counts


@pytest.fixture(scope="module")
def counts(planted):
    """Return counts in which two thirds of the documents are in one language only."""
    some = {name: array.copy() for name, array in planted[2].items()}
    some["en"][200:], some["it"][:100] = 0, 0
    return some


def naive_em(counts, weights, theta, topics, n):
    """Return the log-likelihoods of n iterations of EM with one P(w|z,m) for each modality, and the end."""
    logs = []
    for _ in range(n):
        log, expected, new = 0.0, np.zeros_like(theta), {}
        for name, x in counts.items():
            p = np.maximum(theta @ topics[name], 1e-300)
            log += weights[name] * (x * np.log(p)).sum()
            ratio = weights[name] * x / p
            expected += theta * (ratio @ topics[name].T)
            of_words = topics[name] * (theta.T @ ratio)
            new[name] = of_words / of_words.sum(axis=1, keepdims=True)
        logs.append(log)
        theta, topics = expected / expected.sum(axis=1, keepdims=True), new
    return np.array(logs), theta, topics


@pytest.mark.parametrize("weights", [None, {"en": 1.0, "it": 2.5}])
def test_em_is_that_of_separate_topics_with_shared_weights(counts, weights):
    modalities = Modalities(SIZES, weights)
    rng = np.random.default_rng(1)
    theta = rng.dirichlet(np.ones(K), 300)
    topics = {name: rng.dirichlet(np.ones(size), K) for name, size in SIZES.items()}
    X = modalities.stack(**counts)
    used = weights or dict.fromkeys(SIZES, 1.0)
    tokens = {name: used[name] * counts[name].sum() for name in SIZES}
    shares = {name: tokens[name] / sum(tokens.values()) for name in SIZES}
    start = np.hstack([shares[name] * topics[name] for name in SIZES])
    model = PLSA(K, topic_word_prior=modalities, solver="em", init=(theta, start), max_iter=30, tol=0, dtype=np.float64)
    with pytest.warns(match="max_iter=30"):
        model.fit(X)
    logs, _, _ = naive_em(counts, used, theta, topics, 31)
    of_shares = sum(tokens[name] * np.log(shares[name]) for name in SIZES)
    found = np.asarray(model.history_["log_likelihood"]) * X.sum() - of_shares
    np.testing.assert_allclose(found, logs[: len(found)], rtol=1e-12)
    _, _, expected = naive_em(counts, used, theta, topics, 30)
    for name, found in modalities.split(model.components_).items():
        np.testing.assert_allclose(found, expected[name], atol=1e-9)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_solvers_keep_the_shares_or_refuse(counts, name):
    modalities = Modalities(SIZES)
    model = PLSA(K, topic_word_prior=modalities, solver=name, random_state=0, max_iter=300, dtype=np.float64)
    X = modalities.stack(**counts)
    if name not in SUPPORTED:
        with pytest.raises(UnsupportedError):
            model.fit(X)
        return
    model.fit(X)
    shares = model.components_[:, : SIZES["en"]].sum(axis=1)
    assert np.ptp(shares) < 1e-10
    assert shares[0] == pytest.approx(counts["en"].sum() / X.sum(), rel=0.02)  # of the tokens that are not held out
    if name in ("auto", "em", "accelerated-em"):
        objective = np.asarray(model.history_["objective"])
        assert (np.diff(objective) >= -1e-12 * np.abs(objective[:-1])).all()


def test_documents_of_one_language_find_their_translation(planted, counts):
    modalities = Modalities(SIZES)
    model = PLSA(K, topic_word_prior=modalities, random_state=0).fit(modalities.stack(**counts))
    one, other = (model.transform(modalities.stack(**{name: planted[2][name]})) for name in SIZES)
    assert (one.argmax(axis=1) == other.argmax(axis=1)).mean() > 0.9
    plain = PLSA(K, random_state=0).fit(modalities.stack(**counts))
    one, other = (plain.transform(modalities.stack(**{name: planted[2][name]})) for name in SIZES)
    assert (one.argmax(axis=1) == other.argmax(axis=1)).mean() < 0.9  # topics of one language
    both = modalities.perplexity(model, planted[2])
    given = modalities.perplexity(model, {"it": planted[2]["it"]}, given={"en": planted[2]["en"]})
    unigram = counts["it"].sum(axis=0) / counts["it"].sum()
    with np.errstate(divide="ignore"):
        without = np.exp(-(planted[2]["it"] * np.log(np.where(unigram > 0, unigram, 1))).sum() / planted[2]["it"].sum())
    assert both["it"] < given["it"] < 0.7 * without
    topics = modalities.split(model.components_)["it"]
    theta = model.transform(modalities.stack(**planted[2]))
    logs = planted[2]["it"] * np.log(np.maximum(theta @ topics, 1e-300))
    assert both["it"] == pytest.approx(np.exp(-logs.sum() / planted[2]["it"].sum()), rel=1e-4)


def test_a_topic_without_words_of_a_modality_keeps_its_words():
    prior, rng = Modalities({"a": 3, "b": 2}), np.random.default_rng(0)
    counts, factor = rng.random((4, 5)), rng.dirichlet(np.ones(5), 4)
    counts[1, 3:] = 0
    found = prior.maximize(counts, factor)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[:, 3:].sum(axis=1), counts[:, 3:].sum() / counts.sum())
    np.testing.assert_allclose(found[1, 3] / found[1, 4], factor[1, 3] / factor[1, 4])
    np.testing.assert_array_equal(prior.maximize(np.zeros((4, 5)), factor).round(12), prior.restrict(factor).round(12))


def test_one_modality_is_plain_plsa(counts):
    X = counts["en"][:200]
    prior = Modalities({"en": 60})
    assert prior.neutral
    one, other = (PLSA(3, topic_word_prior=part, random_state=0).fit(X) for part in (prior, None))
    np.testing.assert_array_equal(one.components_, other.components_)


def test_saved_models_and_new_documents(counts, tmp_path: Path):
    modalities = Modalities(SIZES, {"en": 1, "it": 2})
    X = modalities.stack(**counts)
    model = PLSA(K, topic_word_prior=modalities, random_state=0, max_iter=50, tol=0.1).fit(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.topic_word_prior == modalities
    np.testing.assert_array_equal(again.transform(X[:5]), model.transform(X[:5]))
    edited = model.with_edited_topics([[0, 1], [2], [3], [4]], [], X)
    np.testing.assert_allclose(edited.components_[:, :60].sum(axis=1), model.components_[0, :60].sum(), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Modalities({}), "sizes must map names to numbers"),
        (lambda: Modalities({"en": 0}), "Modalities: en"),
        (lambda: Modalities(SIZES, {"en": 1}), "weights must have a number for each of en, it"),
        (lambda: Modalities(SIZES, {"en": 1, "it": 0}), "the weight of it must be a number above 0"),
        (lambda: Modalities(SIZES).stack(), "give the counts of at least one of en, it"),
        (lambda: Modalities(SIZES).stack(de=[[1]]), "There is no modality 'de'"),
        (lambda: Modalities(SIZES).stack(en=np.ones((2, 3))), r"the counts of en must have the shape \(2, 60\)"),
        (lambda: Modalities(SIZES).stack(en=np.ones((2, 60)), it=np.ones((3, 40))), r"the shape \(2, 40\)"),
        (lambda: PLSA(2, topic_word_prior=Modalities(SIZES)).fit(np.eye(4)), "have 100 words, but there are 4 columns"),
        (
            lambda: PLSA(2, topic_word_prior=[Modalities({"a": 2, "b": 2}), Dirichlet(2)]).fit(np.eye(4)),
            "has its own M-step",
        ),
        (lambda: PLSA(2, doc_topic_prior=Modalities({"a": 1, "b": 1})).fit(np.eye(4)), "doc_topic_prior"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_nmf_has_no_modalities():
    with pytest.raises(TypeError):
        NMF(2, topic_word_prior=Modalities({"a": 2, "b": 2}))
