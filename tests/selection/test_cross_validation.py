"""Cross-validation: folds, scores of documents, perplexities against a naive loop."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import LDA, LSA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, InputError, UnsupportedError
from polyseme.core.shard import sparse_counts, split_tokens
from polyseme.kernels import SparseCounts
from polyseme.selection import cross_validate
from polyseme.selection.cross_validation import DocumentScores, document_folds, score_documents, token_folds

X = oracles.mixed_counts(3, 60, 40, 3)


def as_counts(X) -> SparseCounts:
    return sparse_counts(sp.csr_array(X), np.dtype(np.float64))


def test_every_document_is_held_out_once_and_the_folds_are_even():
    folds = document_folds(23, 5, seed=1)
    assert np.array_equal(np.sort(np.concatenate([fold.test for fold in folds])), np.arange(23))
    assert {fold.test.size for fold in folds} == {4, 5}
    for fold in folds:
        assert np.array_equal(np.sort(np.concatenate(fold)), np.arange(23))
    again = document_folds(23, 5, seed=1)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(folds, again, strict=True))


@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_every_token_is_held_out_once(scale):
    counts = as_counts(X * scale)
    total = np.zeros(X.shape)
    for observed, held_out in token_folds(counts, 4, seed=2):
        together = observed.matrix().toarray() + held_out.matrix().toarray()
        np.testing.assert_allclose(together, X * scale, rtol=1e-12)
        total += held_out.matrix().toarray()
        assert 0.15 < held_out.values.sum() / counts.values.sum() < 0.35
    np.testing.assert_allclose(total, X * scale, rtol=1e-12)


def test_token_folds_do_not_depend_on_the_batch():
    whole = [part.matrix().toarray() for _, part in token_folds(as_counts(X), 3)]
    rows = [part.matrix().toarray() for _, part in token_folds(as_counts(X[10:11]), 3)]
    for a, b in zip(whole, rows, strict=True):
        np.testing.assert_array_equal(a[10:11], b)


def naive_logs(model, observed, scored, unigram, eps):
    theta = model.fold_in(observed, inference="posterior" if eps else "model").doc_topic
    p = (1 - eps) * theta @ model.components_ + eps * unigram
    scored_words = (scored > 0) & (unigram > 0)
    return np.where(scored_words, scored * np.log(np.where(scored_words, p, 1)), 0).sum(axis=1)


@pytest.mark.parametrize("kind", ["completion", "folded in"])
def test_scores_by_documents_equal_a_naive_loop(kind):
    model = PLSA(3, random_state=0, tol=1e-4)
    found = cross_validate(model, X, n_folds=5, kind=kind, random_state=7)
    logs, unigram_logs, tokens = np.zeros(60), np.zeros(60), np.zeros(60)
    for train, test in document_folds(60, 5, seed=7):
        fitted = PLSA(3, random_state=0, tol=1e-4).fit(X[train])
        unigram = X[train].sum(axis=0) / X[train].sum()
        observed = scored = X[test]
        if kind == "completion":
            counts = as_counts(X[test])
            observed, scored = (counts.with_values(part).matrix().toarray() for part in split_tokens(counts, 7))
        logs[test] = naive_logs(fitted, observed, scored, unigram, 0.01 if kind == "completion" else 0.0)
        seen = np.where(unigram > 0, scored, 0)
        unigram_logs[test] = (seen * np.log(np.where(unigram > 0, unigram, 1))).sum(axis=1)
        tokens[test] = seen.sum(axis=1)
    np.testing.assert_allclose(found.scores.logs, logs, rtol=1e-10)
    np.testing.assert_allclose(found.scores.unigram_logs, unigram_logs, rtol=1e-10)
    assert found.perplexity == pytest.approx(np.exp(-logs.sum() / tokens.sum()), rel=1e-10)
    assert found.unigram_perplexity == pytest.approx(np.exp(-unigram_logs.sum() / tokens.sum()), rel=1e-10)
    assert found.fold_perplexities.shape == found.seconds.shape == (5,)


def test_scores_by_words_equal_a_naive_loop():
    found = cross_validate(PLSA(3, random_state=0, tol=1e-4), X, by="words", n_folds=3, random_state=1)
    logs = np.zeros(60)
    for observed, scored in token_folds(as_counts(X), 3, seed=1):
        seen, held_out = observed.matrix().toarray(), scored.matrix().toarray()
        fitted = PLSA(3, random_state=0, tol=1e-4).fit(seen)
        logs += naive_logs(fitted, seen, held_out, seen.sum(axis=0) / seen.sum(), 0.01)
    np.testing.assert_allclose(found.scores.logs, logs, rtol=1e-10)
    assert found.scores.tokens.sum() + found.scores.unseen_tokens == pytest.approx(X.sum())


def test_true_topics_beat_the_unigram_and_more_topics_fold_in_better():
    three, eight = (cross_validate(PLSA(k, random_state=0), X, n_folds=4, kind="folded in") for k in (3, 8))
    assert eight.perplexity < three.perplexity < three.unigram_perplexity
    assert cross_validate(PLSA(3, random_state=0), X, n_folds=4).perplexity < three.unigram_perplexity


@pytest.mark.parametrize(
    "model",
    [
        LDA(3, random_state=0),
        LDA(3, solver="map", random_state=0),
        NMF(3, random_state=0),
        HierarchicalPLSA(branching=2, random_state=0),
        CorrelatedTopicModel(3, random_state=0),
    ],
    ids=["lda", "lda-map", "nmf", "tree", "correlated"],
)
@pytest.mark.parametrize("by", ["documents", "words"])
def test_other_models_can_be_cross_validated(model, by):
    found = cross_validate(model, sp.csr_array(X), by=by, n_folds=3)
    assert found.perplexity < found.unigram_perplexity
    assert not hasattr(model, "components_")


def test_the_standard_error_is_that_of_repeated_samples():
    rng = np.random.default_rng(0)
    means, errors = [], []
    for _ in range(400):
        tokens = rng.poisson(30, 200).astype(float)
        logs = -tokens * rng.gamma(4, 1, 200)
        scores = DocumentScores("completion", logs, logs, tokens, 0.0)
        means.append(scores.mean)
        errors.append(scores.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_paired_differences_have_a_smaller_error_than_either_score():
    folds = {k: cross_validate(PLSA(k, random_state=0), X, n_folds=4).scores for k in (2, 3)}
    gain, error = folds[3].gain_over(folds[2])
    assert gain == pytest.approx(folds[3].mean - folds[2].mean)
    assert error < folds[3].standard_error
    assert folds[3].gain_over(folds[3]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_folds": 61}, "n_folds=61 is more than the 60 documents: use at most 60 folds."),
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2"),
        ({"by": "pages"}, "by must be one of 'documents', 'words', 'entries'"),
        ({"kind": "training", "n_folds": 2}, "kind must be one of 'completion', 'folded in'"),
        ({"kind": "folded in", "by": "words"}, "kind must be 'completion' with by='words'"),
        ({"smoothing": 2}, "smoothing must be a number between 0 and 1"),
        ({"unseen": "guess"}, "unseen must be 'leave out' or 'raise'"),
    ],
)
def test_wrong_arguments_raise_one_sentence(arguments, sentence):
    with pytest.raises(InputError) as caught:
        cross_validate(PLSA(2, random_state=0), X, **arguments)
    assert str(caught.value).startswith(sentence)


def test_unseen_words_are_not_scored_or_raise():
    rare = np.hstack([X + 1, np.eye(60)[:, :2]])
    found = cross_validate(PLSA(2, random_state=0), rare, n_folds=3, kind="folded in")
    assert found.scores.unseen_tokens == 2
    with pytest.raises(InputError, match=r"tokens of words that its training documents do not contain: remove rare"):
        cross_validate(PLSA(2, random_state=0), rare, n_folds=3, kind="folded in", unseen="raise")


def test_a_fold_that_shares_no_word_with_the_others_raises():
    with pytest.raises(InputError, match="Fold 1 has no held-out word"):
        cross_validate(PLSA(1, random_state=0), np.eye(4), n_folds=4, kind="folded in")


def test_models_without_token_probabilities_raise():
    with pytest.raises(InputError, match=r"LSA has no P\(w\|d\)"):
        score_documents(LSA(2).fit(X), X)


@pytest.mark.parametrize(("by", "message"), [("documents", "NMF has no"), ("words", "NMF has no"), ("entries", "loss")])
def test_least_squares_have_no_likelihood_to_cross_validate(by, message):
    with pytest.raises(UnsupportedError, match=message):
        cross_validate(NMF(2, loss="squared", random_state=0), X, by=by, n_folds=3)


def test_progress_is_called_after_each_fold():
    calls = []
    cross_validate(PLSA(2, random_state=0), X, n_folds=3, progress=lambda done, of: calls.append((done, of)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
