"""What takes no shards says so at once, and what to do instead."""

import numpy as np
import pytest
from sklearn.base import clone

from polyseme import (
    LDA,
    LSA,
    NMF,
    PLSA,
    CorrelatedTopicModel,
    HierarchicalPLSA,
    RealTopicModel,
    TensorPLSA,
    UnsupportedError,
)
from polyseme.scale import write_shards
from polyseme.selection import choose_n_topics
from test_disk import SETTINGS, X, count_looks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def shards(tmp_path):
    return write_shards([X], tmp_path / "shards", shard_nonzeros=400)


OTHERS = [LDA(2), LSA(2), HierarchicalPLSA(), CorrelatedTopicModel(2), TensorPLSA(2), RealTopicModel()]


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda estimator: type(estimator).__name__)
def test_other_estimators_refuse_shards_and_say_what_to_do(estimator, shards):
    sentence = f"{type(estimator).__name__} takes no shards, which are for PLSA's fit and transform: give the counts of"
    with pytest.raises(UnsupportedError, match=sentence):
        clone(estimator).fit(shards)


def test_what_takes_no_shards_refuses_them_at_once(shards, monkeypatch):
    looks = count_looks(monkeypatch)
    with pytest.raises(UnsupportedError, match=r"fit PLSA to them, and take its to_nmf\(\)"):
        NMF(2).fit(shards)
    with pytest.raises(UnsupportedError, match="NMF takes no shards"):
        NMF(2, loss="frobenius").fit(shards)
    model = PLSA(2, random_state=0, max_iter=2).fit(X)
    for method in (model.partial_fit, model.perplexity, model.score, choose_n_topics):
        with pytest.raises(UnsupportedError, match="one shard after the other"):
            method(shards)
    assert not looks
    nmf = PLSA(**SETTINGS).fit(shards).to_nmf()
    np.testing.assert_allclose(nmf.doc_factor_.sum(axis=1), X.sum(axis=1), rtol=1e-9)
