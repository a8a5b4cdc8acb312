"""Fit every estimator to extreme counts, and print a line for every result that is not finite or not normalized.

Run: python extreme_fits.py WEIGHTS.npz, with POLYSEME_ISA in the environment. The file receives the weights of the
documents.
"""

import sys
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import oracles
from polyseme import LDA, LSA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, RealTopicModel, TensorPLSA
from polyseme.losses import Beta
from solver_problems import LIKELIHOOD

K = 3
LEARNED = {"doc_topic_prior": "asymmetric-learned", "topic_word_prior": "symmetric-learned"}
MAKERS = {
    **{f"PLSA, {name}": (PLSA, {"solver": name}) for name in LIKELIHOOD},
    "PLSA with a background": (PLSA, {"background": 0.1}),
    "PLSA with priors": (PLSA, {"doc_topic_prior": 1.1, "topic_word_prior": 1.1}),
    "PLSA from NNDSVD": (PLSA, {"init": "nndsvd"}),
    "NMF": (NMF, {}),
    **{f"NMF, {loss}": (NMF, {"loss": loss}) for loss in ("squared", "chi-square", "absolute", Beta(1.5))},
    **{
        # From documents, topics of the squared loss are so similar that float32 does not determine the weights.
        f"PLSA, {loss}": (PLSA, {"loss": loss, "init": "random"})
        for loss in ("squared", "chi-square", "absolute", Beta(0.5))
    },
    "LDA": (LDA, {}),
    "LDA, learned priors": (LDA, LEARNED),
    "LDA, online": (LDA, {"solver": "online"}),
    "LDA, MAP": (LDA, {"solver": "map"}),
    "HierarchicalPLSA": (HierarchicalPLSA, {}),
    "CorrelatedTopicModel": (CorrelatedTopicModel, {}),
    "TensorPLSA": (TensorPLSA, {}),
}
UNNORMALIZED = ("NMF", "LSA")


def extreme_counts():
    """Return counts across the allowed range: by entry, by document, by word, and all at one end."""
    counts = oracles.mixed_counts(1, 24, 14, K, tokens=40).astype(np.float64)
    shares = counts / counts.max()
    for dtype, low, high in ((np.float32, -8, 10), (np.float64, -28, 30)):
        ends = np.random.default_rng(0).uniform(low, high, shares.shape)
        by_document = np.linspace(low, high, len(shares))[:, np.newaxis]
        by_word = np.linspace(low, high, shares.shape[1])
        scales = {"mixed": ends, "by document": by_document, "by word": by_word, "large": high, "small": low}
        for name, exponents in scales.items():
            yield f"{name}, {np.dtype(dtype).name}", (shares * 10.0**exponents).astype(dtype)
    ends = np.random.default_rng(1).uniform(-14, 14, shares.shape)
    yield "span of 1e28", shares * 10.0**ends


def estimators(dtype):
    name = np.dtype(dtype).name
    for label, (kind, parameters) in MAKERS.items():
        size = {} if kind is HierarchicalPLSA else {"n_components": K}
        yield label, kind(**size, random_state=0, dtype=name, max_iter=10, n_jobs=1, **parameters)
    yield "LSA", LSA(K, dtype=name)
    yield "RealTopicModel", RealTopicModel(PLSA(K, random_state=0, dtype=name, max_iter=10, n_jobs=1))


def fitted_weights():
    """Yield (estimator, counts, model, weights) of every pair; counts are sparse if the estimator takes them."""
    for name, counts in extreme_counts():
        for label, model in estimators(counts.dtype):
            data = counts if label == "RealTopicModel" else sp.csr_array(counts)
            yield label, name, model, model.fit(data).transform(data)


def problems(label, model, weights):
    """Yield descriptions of the errors of a fit."""
    for name in ("log_likelihood_", "bound_", "reconstruction_err_", "components_", "topic_weights_"):
        if hasattr(model, name) and not np.isfinite(getattr(model, name)).all():
            yield f"{name} is not finite"
    if not np.isfinite(weights).all():
        yield "weights are not finite"
    elif not label.startswith(UNNORMALIZED) and np.abs(weights.sum(axis=1) - 1).max() > 1e-5:
        yield "weights do not sum to one"
    if (
        not label.startswith((*UNNORMALIZED, "RealTopicModel"))
        and np.abs(model.components_.sum(axis=1) - 1).max() > 1e-5
    ):
        yield "topics do not sum to one"


def main(path):
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = {}
    for label, name, model, weights in fitted_weights():
        # W of other losses is not determined if two rows of H are nearly proportional; its product with H is.
        found[f"{label}; {name}"] = weights @ model.components_ if label.startswith("NMF, ") else weights
        for problem in problems(label, model, weights):
            print(f"{label}; {name}: {problem}")
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
