"""What NMF refuses, and how its fits end."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import oracles
from polyseme import NMF, InputError, UnsupportedError
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 25, 3)
WITH_GAPS = X.copy()
WITH_GAPS[5] = 0
WITH_GAPS[:, 7] = 0
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


# what is refused


@pytest.mark.parametrize("loss", ["itakura-saito", "KL", "", None, 1, ["frobenius"]], ids=repr)
def test_an_unknown_loss(loss):
    with pytest.raises(InputError, match="loss must be one of 'kullback-leibler', 'frobenius'") as error:
        NMF(2, loss=loss).fit(X)
    sentence(error)


BAD_PAIRS = {
    "too few documents": (np.ones((39, 3)), np.ones((3, 25))),
    "too few words": (np.ones((40, 3)), np.ones((3, 24))),
    "another number of components": (np.ones((40, 4)), np.ones((4, 25))),
    "W and H of different sizes": (np.ones((40, 3)), np.ones((2, 25))),
    "transposed": (np.ones((3, 40)), np.ones((25, 3))),
    "flat": (np.ones(40), np.ones(25)),
    "negative": (np.full((40, 3), -1.0), np.ones((3, 25))),
    "not a number": (np.full((40, 3), np.nan), np.ones((3, 25))),
    "one of two": (np.ones((40, 3)),),
    "text": ("ab", "cd"),
    "a number": 5,
}


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
@pytest.mark.parametrize("pair", BAD_PAIRS)
def test_a_pair_to_start_from(pair, loss):
    with pytest.raises(InputError, match="init") as error:
        NMF(3, loss=loss, init=BAD_PAIRS[pair]).fit(X)
    sentence(error)


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
@pytest.mark.parametrize(
    ("name", "value"), [("init", "kmeans"), ("n_components", 0), ("n_components", 2.5), ("max_iter", 0)]
)
def test_parameters(name, value, loss):
    """Those that scikit-learn's solver takes may be refused in its own words."""
    with pytest.raises(InputError if loss == "kullback-leibler" else ValueError, match=f"{name}|starts from") as error:
        NMF(**{"n_components": 2, "loss": loss, name: value}).fit(X)
    sentence(error)


def test_frobenius_takes_no_weights():
    with pytest.raises(UnsupportedError, match="sample_weight") as error:
        NMF(2, loss="frobenius").fit(X, sample_weight=np.ones(len(X)))
    sentence(error)


def test_frobenius_has_no_lsa_start():
    with pytest.raises(UnsupportedError, match="lsa") as error:
        NMF(2, loss="frobenius", init="lsa").fit(X)
    sentence(error)


@LAYOUTS
@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_negative_numbers(loss, layout):
    data = X.copy()
    data[0, 0] = -1
    with pytest.raises(ValueError, match="Negative values in data"):
        NMF(2, loss=loss).fit(layout(data))


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_nothing_to_fit(loss):
    with pytest.raises(InputError, match="nothing to fit"):
        NMF(2, loss=loss).fit(np.zeros((4, 5)))


def test_an_unfitted_model():
    for use in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(NMF(2), use)(X)
    with pytest.raises(NotFittedError):
        NMF(2).to_plsa()
