"""Slow, dense float64 implementations of the computations of the package, written from the formulas alone.

X is documents x words, theta = P(z|d) documents x K, phi = P(w|z) K x words. Equations are Hong's (2012).
Nothing here imports polyseme.
"""

import numpy as np


def random_counts(seed, n_docs, n_words, density=0.3, largest=9, empty_rows=(), empty_words=()):
    """Return integer counts with the given rows and words empty."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, largest + 1, (n_docs, n_words)) * (rng.random((n_docs, n_words)) < density)
    X[list(empty_rows)] = 0
    X[:, list(empty_words)] = 0
    return X.astype(np.float64)


def random_factors(seed, n_docs, n_words, K):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(K), n_docs), rng.dirichlet(np.ones(n_words), K)


def mixed_counts(seed, n_docs, n_words, K, tokens=60):
    """Return counts drawn from K sparse topics, so that there is structure to find."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.full(K, 0.2), n_docs), rng.dirichlet(np.full(n_words, 0.1), K)
    return np.array([rng.multinomial(tokens, p) for p in theta @ phi], dtype=np.float64)


def posterior(theta, phi):
    """Return P(z|d,w), documents x words x K (eq. 33); zero where P(w|d) is."""
    joint = theta[:, np.newaxis, :] * phi.T[np.newaxis, :, :]
    total = joint.sum(axis=2, keepdims=True)
    return np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)


def normalized(rows):
    """Return rows that sum to one; a row of zeros stays."""
    sums = rows.sum(axis=1, keepdims=True)
    return np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)


def sweep(X, A, B, weights=None):
    """Return the kernel's three sums by loops over the non-zeros: row sums, word sums (B words x K) and logs."""
    weights = np.ones(len(X)) if weights is None else weights
    row_sums, word_sums, logs = np.zeros(A.shape), np.zeros(B.shape), np.zeros(len(X))
    for d, w in zip(*np.nonzero(X), strict=True):
        q = sum(a * b for a, b in zip(A[d], B[w], strict=True))
        row_sums[d] += X[d, w] / q * B[w]
        word_sums[w] += weights[d] * X[d, w] / q * A[d]
        logs[d] += X[d, w] * np.log(q)
    return row_sums, word_sums, logs


def em_step(X, theta, phi, weights=None):
    """Run an asymmetric step (eq. 33-35): both factors from the posterior at the old ones."""
    expected = X[:, :, np.newaxis] * posterior(theta, phi)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    by_word = np.einsum("d,dwk->kw", weights, expected)
    return normalized(expected.sum(axis=1)), normalized(by_word)


def symmetric_em_step(X, topic_weights, topic_doc, topic_word):
    """Run a symmetric step (eq. 36-38): P(z), P(d|z) K x documents, P(w|z) K x words."""
    joint = topic_weights[:, np.newaxis, np.newaxis] * topic_doc[:, :, np.newaxis] * topic_word[:, np.newaxis, :]
    total = joint.sum(axis=0)
    expected = X * np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    return (
        expected.sum(axis=(1, 2)) / X.sum(),
        normalized(expected.sum(axis=2)),
        normalized(expected.sum(axis=1)),
    )


def symmetric_of(theta, phi, doc_weights):
    """Return P(z), P(d|z), P(w|z) of the same P(d,w) = P(d) sum_z P(z|d) P(w|z)."""
    joint = (doc_weights[:, np.newaxis] * theta).T
    return joint.sum(axis=1), normalized(joint), phi


def token_em_step(X, theta, phi):
    """Run a step token by token (eq. 8-12): every token has its own posterior."""
    theta_counts, phi_counts = np.zeros(theta.shape), np.zeros(phi.shape)
    for d, w in zip(*np.nonzero(X), strict=True):
        for _ in range(int(X[d, w])):
            joint = [theta[d, k] * phi[k, w] for k in range(len(phi))]
            for k, value in enumerate(joint):
                theta_counts[d, k] += value / sum(joint)
                phi_counts[k, w] += value / sum(joint)
    return normalized(theta_counts), normalized(phi_counts)


def tempered_step(X, theta, phi, beta):
    """Compute P(z|d,w) ∝ (P(z|d) P(w|z))^beta, then run the plain M-step (Hofmann 1999)."""
    expected = X[:, :, np.newaxis] * posterior(theta**beta, phi**beta)
    return normalized(expected.sum(axis=1)), normalized(expected.sum(axis=0).T)


def log_likelihood(X, theta, phi, weights=None):
    """Return sum x log P(w|d) over the non-zeros."""
    p = theta @ phi
    terms = np.zeros(X.shape)
    present = X > 0
    with np.errstate(divide="ignore"):
        terms[present] = X[present] * np.log(p[present])
    return terms.sum() if weights is None else weights @ terms.sum(axis=1)


def free_energy(X, theta, phi, beta):
    """Return (1/beta) sum x log sum_z (P(z|d) P(w|z))^beta per token, by loops."""
    total = 0.0
    for d, w in zip(*np.nonzero(X), strict=True):
        total += X[d, w] * np.log(sum((theta[d, z] * phi[z, w]) ** beta for z in range(len(phi))))
    return total / beta / X.sum()


def bound(X, theta, phi, q):
    """Return Jensen's lower bound of the log-likelihood for any q(z|d,w), documents x words x K (eq. 17-20)."""
    total = 0.0
    for d, w in zip(*np.nonzero(X), strict=True):
        for k in range(len(phi)):
            if q[d, w, k] > 0:
                total += X[d, w] * q[d, w, k] * np.log(theta[d, k] * phi[k, w] / q[d, w, k])
    return total


def nmf_step(X, W, H):
    """Run multiplicative updates of the KL divergence, documents first, words with the new W."""
    W = W * (_ratio(X, W @ H) @ H.T) / H.sum(axis=1)
    H = H * (W.T @ _ratio(X, W @ H)) / W.sum(axis=0)[:, np.newaxis]
    return W, H


def _ratio(X, P):
    return np.divide(X, P, out=np.zeros_like(P), where=X > 0)


def fold_in(X, phi, steps=20000):
    """Return theta with phi fixed, by many EM steps from uniform weights."""
    theta = np.full((len(X), len(phi)), 1.0 / len(phi))
    for _ in range(steps):
        theta = normalized(theta * (_ratio(X, theta @ phi) @ phi.T))
    return theta


def refit_words(X, theta, phi, steps=20000):
    """Return phi with theta fixed, by many EM steps from phi."""
    for _ in range(steps):
        phi = normalized(phi * (theta.T @ _ratio(X, theta @ phi)))
    return phi


def perplexity(X, p):
    """Return exp(-mean log p) by loops over tokens; p is documents x words."""
    total, tokens = 0.0, 0.0
    for d in range(X.shape[0]):
        for w in range(X.shape[1]):
            if X[d, w] > 0:
                total += X[d, w] * np.log(p[d, w])
                tokens += X[d, w]
    return float(np.exp(-total / tokens))


def word_documents(X, theta, phi, weights=None, shares=None, background=None, beta=1.0):
    """Return n_zw, the sum of P(z|d,w) over the documents that contain w, each with its weight (K x words).

    shares : the share of the background in each document; beta : the temperature of P(z|d,w).
    """
    n = np.zeros(phi.shape)
    for d, w in np.argwhere(X > 0):
        joint = theta[d].astype(np.float64) * phi[:, w]
        common = 0.0
        if background is not None:
            joint, common = (1 - shares[d]) * joint, shares[d] * background[w]
        total = (joint**beta).sum() + common**beta
        if total > 0:
            n[:, w] += (1.0 if weights is None else weights[d]) * joint**beta / total
    return n


def relevance(n, topic_documents, frequency, weight):
    """Return lambda log(n_zw / D_z) + (1 - lambda) log[(n_zw / D_z) / (df_w / D)] by loops."""
    total = sum(topic_documents)
    scores = np.full(n.shape, -np.inf)
    for z, w in np.argwhere(n > 0):
        share = n[z, w] / topic_documents[z]
        scores[z, w] = weight * np.log(share) + (1 - weight) * np.log(share / (frequency[w] / total))
    return scores


def shown_words(n, topic_documents, frequency, phi, count, weight=0.5, least=3):
    """Return the first words of each topic: those of at least 3 documents by relevance, then the others by relevance.

    Words without any document come last, by their probability.
    """
    n = np.where(frequency > 0, n, 0)
    scores = np.round(relevance(n, topic_documents, frequency, weight), 4)
    return [
        sorted(range(n.shape[1]), key=lambda w, z=z: (n[z, w] < least, -scores[z, w], -phi[z, w] * (n[z, w] == 0), w))[
            :count
        ]
        for z in range(len(n))
    ]


def explained_nats(X, theta, phi, unigram, shares=None, background=None, prior=20.0):
    """Return sum_w n_dw P(z|d,w) log r_zw / n_d, documents x K, with the prior of r_zw = 1 in documents."""
    df = np.count_nonzero(X, axis=0)
    scores = np.zeros((len(X), len(phi)))
    for d, w in np.argwhere(X > 0):
        joint = theta[d] * phi[:, w] * (1.0 if background is None else 1 - shares[d])
        total = joint.sum() + (0.0 if background is None else shares[d] * background[w])
        for z in np.flatnonzero(phi[:, w] > 0):
            ratio = (df[w] * phi[z, w] / unigram[w] + prior) / (df[w] + prior)
            scores[d, z] += X[d, w] * joint[z] / total * np.log(ratio) / X[d].sum()
    return scores
