"""All estimators with small settings and their tolerances, and counts to fit them to."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import oracles
from polyseme import LDA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, MultinomialMixture, TensorPLSA
from polyseme.losses import Beta

X = oracles.mixed_counts(0, 60, 45, 4)
X_WITH_GAPS = X.copy()
X_WITH_GAPS[[0, 17]] = 0
X_WITH_GAPS[:, [3, 44]] = 0

NMF_LOSSES = ("squared", "chi-square", "absolute", Beta(1.5))
PLSA_LOSSES = ("squared", "chi-square", "absolute", Beta(0.5))
LEARNED = {"doc_topic_prior": "asymmetric-learned", "topic_word_prior": "symmetric-learned"}


class Member(NamedTuple):
    """An estimator, and the tolerances of properties that not every estimator has exactly."""

    make: Callable[..., Any]
    """make(**parameters) returns the estimator, not fitted."""
    other: Mapping[str, Any]
    """Parameters of a fit with other attributes, or with attributes of other sizes."""
    weighted: Mapping[str, Mapping[str, float]] = {}
    """Attributes and columns of the history that are equal for integer weights and repeated rows, with tolerances;
    empty for an estimator without weights."""
    alone: float = 0.0
    """Tolerance of the weights of a document in different batches."""
    sums: bool = True
    """Whether the rows of `transform` sum to one."""
    likelihood: bool = True
    """Whether the estimator fits a likelihood."""


_PLSA = {
    "components_": {"atol": 1e-9},
    "topic_weights_": {"rtol": 1e-6},
    "log_likelihood_": {"rtol": 1e-9},
    "residual": {"rtol": 1e-6},
}
_LOSS = {"components_": {"atol": 1e-6}, "loss": {"rtol": 1e-6}}
_LDA = {"components_": {"atol": 1e-7}, "topic_weights_": {"rtol": 1e-6}, "doc_topic_prior_": {"rtol": 1e-6}}
_BOUND = {**_LDA, "bound_": {"rtol": 1e-9}}
_TREE = {"node_word_": {"atol": 1e-9}, "leaf_node_": {"atol": 1e-8}}
_CORRELATED = {"components_": {"atol": 1e-8}, "covariance_": {"atol": 1e-7}, "bound_": {"rtol": 1e-9}}

MEMBERS = {
    "PLSA": Member(partial(PLSA, n_components=3, max_iter=40), {"solver": "annealed"}, _PLSA),
    "NMF": Member(
        partial(NMF, n_components=3, max_iter=40),
        {"loss": "squared"},
        {"components_": {"atol": 1e-9}, "reconstruction_err_": {"rtol": 1e-6}},
        sums=False,
    ),
    **{
        f"NMF-{loss}": Member(
            partial(NMF, n_components=3, max_iter=40, loss=loss),
            {"loss": "kullback-leibler"},
            _LOSS,
            alone=1e-4,
            sums=False,
            likelihood=False,
        )
        for loss in NMF_LOSSES
    },
    **{
        f"NMF-penalties-{loss}": Member(
            partial(NMF, n_components=3, max_iter=40, loss=loss, alpha_W=0.01, l1_ratio=0.5),
            {"alpha_W": 0.0},
            _LOSS,
            alone=1e-4,
            sums=False,
            likelihood=False,
        )
        for loss in ("kullback-leibler", "squared")
    },
    **{
        f"PLSA-{loss}": Member(
            partial(PLSA, n_components=3, max_iter=40, loss=loss),
            {"loss": "kullback-leibler"},
            _LOSS,
            alone=1e-4,
            likelihood=False,
        )
        for loss in PLSA_LOSSES
    },
    "LDA": Member(partial(LDA, n_components=3, max_iter=30), {"solver": "map"}, _BOUND),
    "LDA-random": Member(partial(LDA, n_components=3, max_iter=30, init="random"), {"solver": "map"}, _BOUND),
    "LDA-learned": Member(partial(LDA, n_components=3, max_iter=30, **LEARNED), {"n_components": 2}, _LDA),
    "LDA-online": Member(partial(LDA, n_components=3, max_iter=6, solver="online"), {"solver": "map"}),
    "LDA-map": Member(partial(LDA, n_components=3, max_iter=30, solver="map"), {"solver": "variational"}, _LDA),
    "HierarchicalPLSA": Member(partial(HierarchicalPLSA, branching=2, max_iter=30), {"branching": 3}, _TREE),
    "HierarchicalPLSA-grown": Member(
        partial(HierarchicalPLSA, branching=2, max_iter=30, growth=6), {"growth": None}, _TREE
    ),
    "CorrelatedTopicModel": Member(
        partial(CorrelatedTopicModel, n_components=3, max_iter=30), {"covariance": "diagonal"}, _CORRELATED, alone=1e-4
    ),
    "CorrelatedTopicModel-diagonal": Member(
        partial(CorrelatedTopicModel, n_components=3, max_iter=30, covariance="diagonal"),
        {"covariance": "full"},
        _CORRELATED,
        alone=1e-4,
    ),
    "MultinomialMixture": Member(
        partial(MultinomialMixture, n_components=3, max_iter=30, init="random"),
        {"n_components": 2},
        {"components_": {"atol": 1e-9}, "topic_shares_": {"rtol": 1e-9}, "log_evidence_": {"rtol": 1e-9}},
    ),
    "TensorPLSA": Member(partial(TensorPLSA, n_components=3, max_iter=40), {"n_components": 2}, alone=1e-6),
}


def over(condition: Callable[[Any, Member], bool] = lambda *_: True) -> Any:
    """Return a mark that runs a test with every member for which condition(estimator, member) holds."""
    chosen = {name: member for name, member in MEMBERS.items() if condition(member.make(), member)}
    return pytest.mark.parametrize("member", chosen.values(), ids=chosen.keys())


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return the fitted attributes and properties of an estimator without the times of its fit."""
    kind = type(estimator)
    names = {*vars(estimator), *(name for name in dir(kind) if isinstance(getattr(kind, name, None), property))}
    public = sorted(name for name in names if name.endswith("_") and not name.startswith("_"))
    left = {name: getattr(estimator, name) for name in public if hasattr(estimator, name)}
    for name in [name for name, value in left.items() if isinstance(value, tuple)]:
        left |= {f"{name}{number}": value for number, value in enumerate(left.pop(name))}
    if "history_" in left:
        left |= {column: values for column, values in left.pop("history_").items() if column != "seconds"}
    return left


def same_fit(one: Any, other: Any) -> bool:
    """Return whether two fits have the same bits."""
    first, second = fitted_attributes(one), fitted_attributes(other)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def fitted_plsa(data: Any = X, /, n_components: int = 3, *, sample_weight: Any = None, **parameters: Any) -> PLSA:
    """Return a short fit of PLSA."""
    settings = {"random_state": 0, "max_iter": 40, **parameters}
    return PLSA(n_components, **settings).fit(data, sample_weight=sample_weight)
