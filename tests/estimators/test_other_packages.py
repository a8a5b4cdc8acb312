"""Estimators inside HyperSpy and librosa, which call any estimator of scikit-learn's form."""

import numpy as np
import pytest

from polyseme import NMF, PLSA
from polyseme.metrics import align


@pytest.fixture(scope="module")
def mixtures():
    """Return points x channels of three spectra, and the spectra."""
    rng = np.random.default_rng(0)
    spectra = rng.dirichlet(np.full(40, 0.2), 3)
    return rng.poisson(2000 * rng.dirichlet(np.full(3, 0.3), 48) @ spectra).astype(float), spectra


def test_librosa_decompose(mixtures):
    decompose = pytest.importorskip("librosa.decompose", reason="librosa is not installed").decompose
    X, spectra = mixtures
    model = NMF(3, random_state=0)
    components, activations = decompose(X.T, transformer=model, sort=True)
    assert np.linalg.norm(X.T - components @ activations) < 0.1 * np.linalg.norm(X)
    assert align(spectra, components.T / components.sum(axis=0)[:, np.newaxis])[1].max() < 0.1
    _, again = decompose(X.T, transformer=model, fit=False)
    np.testing.assert_allclose(again, model.transform(X).T)


def test_hyperspy_decomposition(mixtures):
    signals = pytest.importorskip("hyperspy.api", reason="HyperSpy is not installed").signals
    X, spectra = mixtures
    image = signals.Signal1D(X.reshape(6, 8, 40))
    image.decomposition(algorithm=NMF(3, random_state=0), output_dimension=3, print_info=False)
    factors = image.get_decomposition_factors().data
    assert align(spectra, factors / factors.sum(axis=1, keepdims=True))[1].max() < 0.1
    assert np.linalg.norm(image.get_decomposition_model().data - image.data) < 0.1 * np.linalg.norm(X)


def test_plsa_gives_shares(mixtures):
    decompose = pytest.importorskip("librosa.decompose", reason="librosa is not installed").decompose
    X, _ = mixtures
    components, activations = decompose(X.T, transformer=PLSA(3, random_state=0))
    np.testing.assert_allclose(activations.sum(axis=0), 1, rtol=1e-5)
    estimate = components @ (activations * X.sum(axis=1))
    assert np.linalg.norm(X.T - estimate) < 0.1 * np.linalg.norm(X)
