"""Dense implementations of the algorithms of Zhang, Ding and Tang as printed, and runs of the package.

As in the paper, X is words x documents, C = P(w|z) words x K, S = P(z) the diagonal and H = P(d|z) documents x K, each
with columns that sum to one; F and G are the factors of NMF. R = X / (C S H'). The package's factors are C-like
`words` and H-like `docs`.
"""

import numpy as np

import oracles
from polyseme.core.model import Model
from polyseme.kernels import padded
from polyseme.solvers.base import FitProblem
from polyseme.solvers.coordinate import Unnormalized
from polyseme.solvers.multiplicative import MultiplicativeRun, PLSIRun
from solver_problems import factors, make_corpus

K = 4


def joint(X):
    return X / X.sum()


def dense():
    return joint(np.random.default_rng(0).uniform(0.1, 2, (14, 18)))


def sparse():
    return joint(oracles.random_counts(1, 30, 25, 0.3, empty_rows=(4,), empty_words=(7,)).T)


def triple(X, seed=5):
    """Return random positive C, S, H."""
    rng = np.random.default_rng(seed)
    n_words, n_docs = X.shape
    return rng.dirichlet(np.ones(n_words), K).T, rng.dirichlet(np.full(K, 3.0)), rng.dirichlet(np.ones(n_docs), K).T


def plsa_start(X, seed=6):
    """Return theta and phi, and the same P(d,w) as a triple, where all algorithms have P(d) = n_d / N."""
    n_words, n_docs = X.shape
    theta, phi = oracles.random_factors(seed, n_docs, n_words, K)
    topic_weights, topic_doc, topic_word = oracles.symmetric_of(theta, phi, X.sum(axis=0))
    return (theta, phi), (topic_word.T, topic_weights, topic_doc.T)


def ratio(X, P):
    return np.divide(X, P, out=np.zeros_like(P), where=X > 0)


def to_one(factor):
    return factor / factor.sum(axis=0)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


# formulas of the paper


def new_F(X, F, G):
    """Run line 2 of Algorithm 1."""
    return F / G.sum(axis=0) * (ratio(X, F @ G.T) @ G)


def new_G(X, F, G):
    """Run line 3 of Algorithm 1 with the given F."""
    return G / F.sum(axis=0) * (ratio(X, F @ G.T).T @ F)


def theorem_1(X, C, S, H):
    """Return the next C and S from the old values (equations 4 and 5)."""
    R = ratio(X, C * S @ H.T)
    share = np.diag(C.T @ R @ H)
    return C * (R @ H) / share, S * share


def corollary_3(X, C, S, H):
    """Return the next H and S from the old values."""
    R = ratio(X, C * S @ H.T)
    share = np.diag(C.T @ R @ H)
    return H * (R.T @ C) / share, S * share


def algorithm_2(X, C, S, H):
    """Run PLSI with R recomputed before each line."""
    R = ratio(X, C * S @ H.T)
    C = C * (R @ H) / np.diag(C.T @ R @ H)
    R = ratio(X, C * S @ H.T)
    S = S * np.diag(C.T @ R @ H)
    R = ratio(X, C * S @ H.T)
    return C, S, H * (R.T @ C) / np.diag(C.T @ R @ H)


def algorithm_2_as_scanned(X, C, S, H):
    """Run PLSI as scanned: the denominator of H has the old C, and its R the old S."""
    R = ratio(X, C * S @ H.T)
    new_C = C * (R @ H) / np.diag(C.T @ R @ H)
    R = ratio(X, new_C * S @ H.T)
    return new_C, S * np.diag(new_C.T @ R @ H), H * (R.T @ new_C) / np.diag(C.T @ R @ H)


def algorithm_3_as_printed(X, C, S, H):
    """Run Algorithm 3 with every line from the values of the last iteration."""
    new_C, new_S = theorem_1(X, C, S, H)
    new_H, _ = corollary_3(X, C, S, H)
    return new_C, new_S, new_H


def algorithm_3(X, C, S, H):
    """Run Algorithm 3 in Gauss-Seidel order: C and S, then H and S from the new C and S."""
    C, S = theorem_1(X, C, S, H)
    H, S = corollary_3(X, C, S, H)
    return C, S, H


def divergence(X, P):
    """Return sum x log(x / p) - x + p."""
    present = X > 0
    return float((X[present] * np.log(X[present] / P[present])).sum() - X.sum() + P.sum())


# runs of the package from F and G, or from C, S and H


def nmf_run(X, F, G, order="words-first", normalize=False):
    point = Unnormalized(padded(G, np.float64), padded(F, np.float64))
    return MultiplicativeRun(FitProblem(Model(K), make_corpus(X.T)), point, order, normalize)


def plsi_run(X, C, S, H):
    start = Unnormalized(padded(H * S * X.sum(), np.float64), padded(C, np.float64))
    return PLSIRun(FitProblem(Model(K), make_corpus(X.T)), start)


def F_and_G(run):
    return run.point.words[:, :K], run.point.docs[:, :K]


def C_S_H(run):
    return run.C[:, :K], run.S[:K], run.H[:, :K]


def product(X, run):
    theta, phi = factors(run)
    return (X.sum(axis=0)[:, np.newaxis] * theta @ phi).T
