"""The conversion between NMF factors and PLSA parameters (Gaussier and Goutte 2005)."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import NMF, PLSA
from polyseme.estimators.nmf import PLSAParameters, nmf_to_plsa, plsa_to_nmf

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 25, 3)
X[5] = 0
X[:, 7] = 0


def random_pair(seed, n_docs=12, n_words=9, K=4):
    """Return W and H with random scales of the components."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-3, 3, K)
    W, H = rng.exponential(size=(n_docs, K)), rng.exponential(size=(K, n_words))
    return W * scale, H / rng.permutation(scale)[:, np.newaxis]


def product(parameters):
    """Return total * sum_z P(z) P(d|z) P(w|z), by a loop over z."""
    return parameters.total * sum(
        weight * np.outer(by_doc, by_word)
        for weight, by_doc, by_word in zip(
            parameters.topic_weights, parameters.topic_doc, parameters.topic_word, strict=True
        )
    )


@pytest.mark.parametrize("seed", range(5))
def test_nmf_to_plsa_keeps_the_product(seed):
    W, H = random_pair(seed)
    parameters = nmf_to_plsa(W, H)
    np.testing.assert_allclose(product(parameters), W @ H, rtol=1e-14)
    assert parameters.total == pytest.approx((W @ H).sum(), rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_nmf_to_plsa_gives_distributions(seed):
    W, H = random_pair(seed)
    topic_weights, topic_doc, topic_word, _ = nmf_to_plsa(W, H)
    for distribution in (topic_weights[np.newaxis], topic_doc, topic_word):
        assert distribution.min() >= 0
        np.testing.assert_allclose(distribution.sum(axis=1), 1, rtol=1e-14)
    assert topic_doc.shape == (4, 12)
    assert topic_word.shape == (4, 9)


def test_nmf_to_plsa_uses_the_scaling_of_the_paper():
    """A_k = sum_d W_dk, B_k = sum_w H_kw; P(z) = A B / total."""
    W, H = random_pair(7)
    A, B = np.diag(W.sum(axis=0)), np.diag(H.sum(axis=1))
    parameters = nmf_to_plsa(W, H)
    np.testing.assert_allclose(parameters.topic_doc.T, W @ np.linalg.inv(A), rtol=1e-14)
    np.testing.assert_allclose(parameters.topic_word, np.linalg.inv(B) @ H, rtol=1e-14)
    np.testing.assert_allclose(np.diag(parameters.topic_weights), A @ B / np.trace(A @ B), rtol=1e-14)


def test_nmf_to_plsa_does_not_depend_on_the_scale_of_the_components():
    """W H does not change if columns of W are multiplied and rows of H divided by the same numbers."""
    W, H = random_pair(8)
    scale = 10.0 ** np.arange(4)
    for one, other in zip(nmf_to_plsa(W, H), nmf_to_plsa(W * scale, H / scale[:, np.newaxis]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_plsa_to_nmf_inverts_nmf_to_plsa(seed):
    W, H = random_pair(seed)
    back_W, back_H = plsa_to_nmf(nmf_to_plsa(W, H))
    np.testing.assert_allclose(back_W @ back_H, W @ H, rtol=1e-14)
    np.testing.assert_allclose(back_H.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(back_W, W * H.sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("total", [1.0, 12345.0])
def test_nmf_to_plsa_inverts_plsa_to_nmf(total):
    rng = np.random.default_rng(3)
    parameters = PLSAParameters(
        rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(6), 3), rng.dirichlet(np.ones(5), 3), total
    )
    W, H = plsa_to_nmf(parameters)
    np.testing.assert_allclose(W @ H, product(parameters), rtol=1e-14)
    for ours, before in zip(nmf_to_plsa(W, H), parameters, strict=True):
        np.testing.assert_allclose(ours, before, rtol=1e-14)


@pytest.mark.parametrize("side", ["W", "H", "both"])
def test_a_component_of_zeros_has_weight_zero(side):
    W, H = random_pair(1)
    if side in ("W", "both"):
        W[:, 2] = 0
    if side in ("H", "both"):
        H[2] = 0
    parameters = nmf_to_plsa(W, H)
    assert parameters.topic_weights[2] == 0
    np.testing.assert_allclose(product(parameters), W @ H, rtol=1e-14)
    np.testing.assert_allclose(parameters.topic_doc.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(parameters.topic_word.sum(axis=1), 1, rtol=1e-14)
    back_W, back_H = plsa_to_nmf(parameters)
    np.testing.assert_allclose(back_W @ back_H, W @ H, rtol=1e-14)


def test_factors_of_zeros_have_a_product_of_zeros():
    parameters = nmf_to_plsa(np.zeros((3, 2)), np.zeros((2, 4)))
    assert parameters.total == 0
    assert np.isfinite(parameters.topic_doc).all()
    back_W, back_H = plsa_to_nmf(parameters)
    assert not (back_W @ back_H).any()


def test_zero_entries_stay_zero():
    W, H = random_pair(2)
    W[1] = 0
    H[:, 3] = 0
    parameters = nmf_to_plsa(W, H)
    assert not parameters.topic_doc[:, 1].any()
    assert not parameters.topic_word[:, 3].any()


def test_float32_factors_are_converted_in_float64():
    W, H = (factor.astype(np.float32) for factor in random_pair(4))
    parameters = nmf_to_plsa(W, H)
    assert {array.dtype for array in parameters[:3]} == {np.dtype(np.float64)}
    np.testing.assert_allclose(product(parameters), W.astype(np.float64) @ H.astype(np.float64), rtol=1e-14)


def test_arguments_do_not_change():
    W, H = random_pair(5)
    before = W.copy(), H.copy()
    parameters = nmf_to_plsa(W, H)
    _, back_H = plsa_to_nmf(parameters)
    back_H[:] = -1
    assert np.array_equal(W, before[0])
    assert np.array_equal(H, before[1])
    assert parameters.topic_word.min() >= 0


def joint(plsa):
    """Return P(d,w) of a fitted PLSA, from its symmetric form."""
    return plsa.topic_doc_.T @ (plsa.topic_weights_[:, np.newaxis] * plsa.components_)


@pytest.fixture(scope="module")
def plsa():
    return PLSA(3, random_state=0, max_iter=60, dtype=np.float64).fit(X)


@pytest.fixture(scope="module")
def nmf():
    """Return the fit by the solver that PLSA chooses by default."""
    return NMF(3, solver="scd", random_state=0, max_iter=60, dtype=np.float64).fit(X)


def test_to_nmf_is_n_times_the_joint_distribution(plsa):
    model = plsa.to_nmf()
    assert isinstance(model, NMF)
    np.testing.assert_allclose(model.doc_factor_ @ model.components_, X.sum() * joint(plsa), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.doc_factor_, X.sum(axis=1, keepdims=True) * plsa.doc_topic_, rtol=1e-13)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-13)


def test_to_plsa_is_the_joint_distribution_of_nmf(nmf):
    model = nmf.to_plsa()
    assert isinstance(model, PLSA)
    np.testing.assert_allclose(joint(model), nmf.doc_factor_ @ nmf.components_ / X.sum(), rtol=1e-12, atol=1e-15)
    parameters = nmf_to_plsa(nmf.doc_factor_, nmf.components_)
    np.testing.assert_allclose(model.topic_weights_, parameters.topic_weights, rtol=1e-12)
    np.testing.assert_allclose(model.topic_doc_, parameters.topic_doc, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(model.components_, parameters.topic_word, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_to_plsa_inverts_to_nmf(dtype, weighted):
    weights = np.random.default_rng(1).integers(1, 4, len(X)) if weighted else None
    before = PLSA(3, random_state=0, max_iter=30, dtype=dtype).fit(sp.csr_array(X), sample_weight=weights)
    after = before.to_nmf().to_plsa()
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    assert after.doc_topic_.dtype == after.components_.dtype == dtype
    for name in ("components_", "doc_topic_", "topic_weights_", "doc_weights_", "unigram_", "topic_doc_"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), rtol=tolerance, atol=tolerance)
    assert after.log_likelihood_ == before.log_likelihood_
    assert after.get_params() == before.get_params()
    assert np.array_equal(after.transform(X), before.transform(X))
    assert after.perplexity(X) == before.perplexity(X)


def test_to_nmf_inverts_to_plsa(nmf):
    after = nmf.to_plsa().to_nmf()
    np.testing.assert_allclose(after.doc_factor_, nmf.doc_factor_, rtol=1e-13)
    assert np.array_equal(after.components_, nmf.components_)
    np.testing.assert_allclose(after.transform(X), nmf.transform(X), rtol=1e-13)
    assert after.get_params() == nmf.get_params()


def test_plsa_and_nmf_find_the_same_fit(plsa, nmf):
    assert np.array_equal(plsa.components_, nmf.components_)
    assert plsa.log_likelihood_ == nmf.log_likelihood_
    np.testing.assert_allclose(plsa.to_nmf().doc_factor_, nmf.doc_factor_, rtol=1e-13)


def test_a_converted_model_has_the_methods_of_a_fitted_one(plsa, nmf):
    as_nmf, as_plsa = plsa.to_nmf(), nmf.to_plsa()
    assert as_nmf.inverse_transform(as_nmf.transform(X)).shape == X.shape
    assert as_plsa.completion_perplexity(X) == plsa.completion_perplexity(X)
    assert len(as_plsa.topics()) == 3
    assert np.isfinite(as_plsa.score(X))


def test_a_conversion_does_not_change_the_model(nmf):
    before = {name: np.copy(value) for name, value in vars(nmf).items() if isinstance(value, np.ndarray)}
    converted = nmf.to_plsa()
    converted.doc_topic_[:] = 0
    for name, value in before.items():
        assert np.array_equal(getattr(nmf, name), value), name
