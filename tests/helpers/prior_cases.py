"""Small counts and factors for the tests of priors, and EM with priors, dense and plain."""

import numpy as np

from polyseme.priors import Dirichlet

ROWS, COLUMNS = 4, 6
TOTALS = np.array([90.0, 40.0, 120.0, 60.0])


def counts(seed=0):
    """Return counts of at least two, with the row sums TOTALS."""
    drawn = np.random.default_rng(seed).dirichlet(np.full(COLUMNS, 0.8), ROWS)
    return 2 + drawn * (TOTALS - 2 * COLUMNS)[:, np.newaxis]


def factor(seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(COLUMNS), ROWS)


def plain(n):
    return n / n.sum(axis=1, keepdims=True)


def likelihood(n, f):
    seen = n > 0
    with np.errstate(divide="ignore"):
        return float((n[seen] * np.log(f[seen])).sum())


def mixed_counts(seed=0, n_docs=60, n_words=30, n_topics=3, tokens=80):
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.full(n_topics, 0.3), n_docs), rng.dirichlet(np.full(n_words, 0.2), n_topics)
    return np.array([rng.multinomial(tokens, p) for p in theta @ phi], dtype=np.float64)


def em(X, n_topics, doc_prior=None, word_prior=None, *, iterations=100, seed=1):
    """Return the objectives of dense EM, and the factors (theta, phi) of each."""
    doc_prior, word_prior = doc_prior or Dirichlet(1), word_prior or Dirichlet(1)
    theta = doc_prior.adapt_start(np.full((len(X), n_topics), 1 / n_topics))
    phi = plain(np.random.default_rng(seed).exponential(size=(n_topics, X.shape[1])) * (X.sum(axis=0) + 0.01))
    objectives, points = [], []
    for _ in range(iterations):
        p = np.maximum(theta @ phi, 1e-300)
        objectives.append(likelihood(X, p) + doc_prior.log_density(theta) + word_prior.log_density(phi))
        points.append((theta, phi))
        r = X / p
        doc_counts, word_counts = theta * (r @ phi.T), phi * (theta.T @ r)
        theta, phi = doc_prior.maximize(doc_counts, theta), word_prior.maximize(word_counts, phi)
    return np.array(objectives), points
