"""Fits with hidden entries: naive formulas, a likelihood that never decreases, unbiased predictions."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import LDA, NMF, PLSA, InputError, UnsupportedError
from polyseme.core.holdout import DiagonalMask, SparseMask, diagonal_masks, split_hidden
from polyseme.core.shard import sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.selection import cross_validate, fit_masked
from polyseme.solvers.coordinate import fit_seen

X = oracles.mixed_counts(5, 40, 30, 3)
K = 3


def random_mask(shape, share=0.2, seed=0):
    return np.random.default_rng(seed).random(shape) < share


MASKS = {
    "sparse": lambda: (SparseMask(random_mask(X.shape)), random_mask(X.shape)),
    "diagonal": lambda: (lambda mask: (mask, dense(mask, X.shape)))(diagonal_masks(*X.shape, 5, 3)[2]),
}
EVERY_MASK = pytest.mark.parametrize("kind", MASKS)


def dense(mask, shape):
    rows, columns = np.indices(shape)
    return mask.hides(rows.ravel(), columns.ravel()).reshape(shape)


def fitted(X, mask, iterations, *, extrapolate, seed=0, dtype=np.float64):
    theta, phi = oracles.random_factors(seed, *X.shape, K)
    corpus = MemoryCorpus(split_hidden(sparse_counts(sp.csr_array(X), np.dtype(dtype)), mask)[0])
    theta, phi = padded(theta, dtype), padded(phi.T, dtype)
    return fit_seen(corpus, mask, theta, phi, max_iter=iterations, tol=0.0, extrapolate=extrapolate)


def naive_steps(X, hidden, W, H, steps):
    """Update one factor after the other over the visible entries; return them and the Poisson likelihood."""
    seen, values = ~hidden, []
    for _ in range(steps):
        Q = W @ H
        log_q = np.log(np.where(X > 0, Q, 1))
        values.append((np.where(seen, X * log_q - Q, 0)).sum())
        R = np.where(seen & (X > 0), X / np.where(X > 0, Q, 1), 0)
        W = W * (R @ H.T) / (seen @ H.T)
        R = np.where(seen & (X > 0), X / np.where(X > 0, W @ H, 1), 0)
        H = H * (W.T @ R) / (W.T @ seen)
    return W, H, np.array(values)


@EVERY_MASK
def test_sums_of_a_mask_equal_those_of_a_dense_mask(kind):
    mask, hidden = MASKS[kind]()
    rng = np.random.default_rng(1)
    words, docs = rng.random((30, 4)), rng.random((40, 4))
    assert np.array_equal(dense(mask, X.shape), hidden)
    np.testing.assert_allclose(mask.sums_over_words(words), hidden @ words, rtol=1e-12)
    np.testing.assert_allclose(mask.sums_over_docs(docs), hidden.T @ docs, rtol=1e-12)


def test_diagonal_masks_hide_every_entry_once_and_equally_often_per_row_and_column():
    masks = [dense(mask, X.shape) for mask in diagonal_masks(*X.shape, 5, 0)]
    assert (np.sum(masks, axis=0) == 1).all()
    for mask in masks:
        assert (mask.sum(axis=1) == 6).all()
        assert (mask.sum(axis=0) == 8).all()


@EVERY_MASK
def test_iterates_are_those_of_the_formula(kind):
    mask, hidden = MASKS[kind]()
    theta, phi = oracles.random_factors(0, *X.shape, K)
    W, H, values = naive_steps(X, hidden, theta * np.where(hidden, 0, X).sum(axis=1, keepdims=True), phi, 12)
    fit = fitted(X, mask, 12, extrapolate=False)
    docs, words = fit.run.point
    np.testing.assert_allclose((docs @ words.T), W @ H, rtol=1e-9)
    tokens = X[~hidden].sum()
    np.testing.assert_allclose(fit.history["objective"][:12] * tokens, values, rtol=1e-11)


@EVERY_MASK
@pytest.mark.parametrize("extrapolate", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_never_decreases(kind, extrapolate, seed):
    fit = fitted(X, MASKS[kind]()[0], 150, extrapolate=extrapolate, seed=seed)
    objective = fit.history["objective"]
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[1:])).all()
    assert fit.history["residual"][-1] < 0.05 * fit.history["residual"][1]


def test_extrapolation_is_faster():
    plain, longer = (fitted(X, MASKS["sparse"]()[0], 60, extrapolate=flag) for flag in (False, True))
    assert longer.history["objective"][-1] > plain.history["objective"][-1]


def test_an_empty_mask_changes_nothing():
    free = fit_masked(X, np.zeros_like(X), K, tol=1e-5, max_iter=2000)
    plain = PLSA(K, solver="em", random_state=0, tol=1e-5, max_iter=2000, n_init=1, init=_as_pair(free)).fit(X)
    assert free.log_likelihood == pytest.approx(plain.log_likelihood_, abs=1e-4)
    np.testing.assert_allclose(free.components.sum(axis=1), 1)
    assert free.converged


def _as_pair(fit):
    return fit.doc_factor / fit.doc_factor.sum(axis=1, keepdims=True) + 1e-9, fit.components + 1e-9


def test_hidden_counts_do_not_change_the_fit():
    hidden = random_mask(X.shape)
    other = np.where(hidden, 77.0, X)
    fits = [fit_masked(data, hidden, K, max_iter=30) for data in (X, other)]
    assert np.array_equal(fits[0].components, fits[1].components)


def drawn(seed, n_docs=1500, n_words=300, length=120.0):
    """Return counts of a known model: x ~ Poisson(n_d theta phi)."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.full(4, 0.3), n_docs), rng.dirichlet(np.full(n_words, 0.2), 4)
    return rng.poisson(rng.gamma(4, length / 4, n_docs)[:, np.newaxis] * (theta @ phi)).astype(np.float32)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_predictions_of_masked_counts_are_unbiased(share):
    data = drawn(0)
    hidden = random_mask(data.shape, share, seed=1)
    fit = fit_masked(data, hidden, 4, tol=1e-3)
    rows, columns = np.nonzero(hidden)
    assert fit.predict(rows, columns).sum() / data[hidden].sum() == pytest.approx(1.0, abs=0.02)
    zeroed = NMF(4, random_state=0, tol=1e-3).fit(np.where(hidden, 0, data))
    wrong = (zeroed.doc_factor_ @ zeroed.components_)[hidden].sum() / data[hidden].sum()
    assert wrong < 1 - 0.9 * share


def test_cross_validation_by_entries():
    data = drawn(1, n_docs=400)
    found = {k: cross_validate(PLSA(k, random_state=0), data, by="entries", n_folds=5) for k in (1, 4, 30)}
    for k in (1, 4):
        assert found[k].predicted_ratio == pytest.approx(1.0, abs=0.02)
    assert found[4].perplexity < found[1].perplexity
    assert found[4].perplexity < found[30].perplexity
    assert found[1].perplexity == pytest.approx(found[1].unigram_perplexity, rel=0.01)
    assert found[4].scores.tokens.sum() + found[4].scores.unseen_tokens == pytest.approx(data.sum())
    same = cross_validate(NMF(4, random_state=0), sp.csr_array(data), by="entries", n_folds=5)
    assert same.perplexity == pytest.approx(found[4].perplexity, rel=1e-4)


def test_the_same_bits_for_any_number_of_threads():
    hidden = random_mask(X.shape)
    one, two = (fit_masked(X, hidden, K, max_iter=40, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.components, two.components)
    assert np.array_equal(one.doc_factor, two.doc_factor)


def test_documents_and_words_without_visible_entries():
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[3], hidden[:, 7] = True, True
    fit = fit_masked(X, hidden, K)
    assert np.isfinite(fit.doc_factor).all()
    assert not fit.components[:, 7].any()
    assert fit.doc_factor[3].sum() == 0


@pytest.mark.parametrize(
    ("hidden", "sentence"),
    [
        (np.zeros((2, 2)), r"hidden must have the shape of X, \(40, 30\), got \(2, 2\)\."),
        (np.ones(X.shape), "There is nothing to fit: every count is hidden or zero."),
    ],
)
def test_wrong_masks_raise_one_sentence(hidden, sentence):
    with pytest.raises(InputError, match=sentence):
        fit_masked(X, hidden, K)


@pytest.mark.parametrize("model", [LDA(2), PLSA(2, solver="em"), PLSA(2, doc_topic_prior=1.1), PLSA(2, background=0.1)])
def test_entries_are_masked_for_plain_likelihood_only(model):
    with pytest.raises(UnsupportedError, match="by='entries' fits plain maximum likelihood"):
        cross_validate(model, X, by="entries", n_folds=3)


def test_too_many_folds_of_entries():
    with pytest.raises(InputError, match="40 documents of 30 words cannot be divided into 31 folds"):
        cross_validate(PLSA(2), X, by="entries", n_folds=31)


def test_a_diagonal_mask_hides_the_entries_of_its_diagonal():
    mask = DiagonalMask(np.array([0, 1]), np.array([0, 1, 0]), 2, 1)
    assert dense(mask, (2, 3)).tolist() == [[False, True, False], [True, False, True]]
