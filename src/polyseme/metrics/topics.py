"""Measures of topics: their share in their own documents, differences, distances, and stability.

Topic fit is the share that topics have in their own documents. Topics differ by their words (diversity, redundancy,
exclusivity) and by distances between distributions, which may also be documents P(z|d), words P(z|w) or counts of
texts. Topics are stable if other runs, and other samples of the documents, find the same ones: `align` matches them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.base import clone

from polyseme.core.fitted import symmetric_view
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, check_sparse, normalize_rows
from polyseme.metrics.words import top_words, topic_rows
from polyseme.utils import RandomStateLike, as_seed


def topic_fit(doc_topic: Array, topic_doc: Array) -> Floats:
    """Return the mean share of each topic in its own documents, sum_d P(d|z) P(z|d).

    Parameters
    ----------
    doc_topic : array-like of shape (n_documents, K)
        P(z|d).
    topic_doc : array-like of shape (K, n_documents)
        P(d|z).

    Returns
    -------
    array of shape (K,)
        Values between 0 and 1. Above 0.5 a topic has the majority of the weight of its documents.
    """
    return np.asarray(np.einsum("kd,dk->k", topic_doc, doc_topic, dtype=np.float64))


@dataclass(frozen=True)
class FitReport:
    """Fit of topics, and which topics fit.

    Attributes
    ----------
    fit : array of shape (K,)
        Mean share of each topic in its own documents, sum_d P(d|z) P(z|d).
    carried : array of shape (K,)
        Share of the weight of each topic that is in documents where the topic has more than half of the weight.
    ranking : array of int of shape (K,)
        Topics by decreasing fit.
    threshold : float
        Fit above which a topic is said to fit.
    n_fitting : int
        Number of topics that fit.
    fitting_weight : float
        Sum of P(z) over these topics.
    """

    fit: Floats
    carried: Floats
    ranking: Array
    threshold: float
    n_fitting: int
    fitting_weight: float


def fit_report(doc_topic: Array, doc_weights: Floats, *, threshold: float = 0.5) -> FitReport:
    """Return the fit of every topic, and how many topics are above a threshold.

    A topic without documents has fit zero.

    Parameters
    ----------
    doc_topic : array-like of shape (n_documents, K)
        P(z|d).
    doc_weights : array-like of shape (n_documents,)
        P(d).
    threshold : float, default=0.5
        A topic fits if its fit is above this value; 0.5 means the majority of the weight of its documents.

    Returns
    -------
    FitReport
        Fit and ranking of the topics.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.metrics import fit_report
    >>> weights = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    >>> report = fit_report(weights, np.array([10.0, 20, 10]))
    >>> report.ranking, report.n_fitting
    (array([0, 1]), 1)
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold must be between 0 and 1, got {threshold}.")
    view = symmetric_view(np.asarray(doc_topic), np.asarray(doc_weights, dtype=np.float64))
    used = view.topic_weights > 0
    fit = np.where(used, topic_fit(doc_topic, view.topic_doc), 0.0)
    carried = np.where(used, np.einsum("kd,dk->k", view.topic_doc, np.asarray(doc_topic) > 0.5), 0.0)
    fitting = fit > threshold
    return FitReport(
        fit,
        carried,
        np.argsort(-fit, kind="stable"),
        threshold,
        int(np.count_nonzero(fitting)),
        float(view.topic_weights[fitting].sum()),
    )


def effective_topics(doc_topic: Array) -> Floats:
    """Return the effective number of topics of each document, exp of the entropy of P(z|d).

    Parameters
    ----------
    doc_topic : array-like of shape (n_documents, K)
        P(z|d).

    Returns
    -------
    array of shape (n_documents,)
        From 1 (one topic) to K (equal weights).

    Examples
    --------
    >>> from polyseme.metrics.topics import effective_topics
    >>> effective_topics([[1.0, 0.0], [0.5, 0.5]])
    array([1., 2.])
    """
    theta = np.asarray(doc_topic, dtype=np.float64)
    logs = np.log(theta, out=np.zeros_like(theta), where=theta > 0)
    return np.asarray(np.exp(-(theta * logs).sum(axis=1)))


def topic_diversity(topic_words: Array) -> float:
    """Return the share of distinct words among the top words of all topics.

    Parameters
    ----------
    topic_words : array-like of int of shape (K, n)
        Columns of the top words of each topic (see `top_words`).

    Returns
    -------
    float
        1 if no word occurs in two topics, and if there are no topics.

    References
    ----------
    - Dieng, A. B., Ruiz, F. J. R., and Blei, D. M. (2020). Topic modeling in embedding spaces. TACL 8, 439-453.

    Examples
    --------
    >>> from polyseme.metrics import topic_diversity
    >>> topic_diversity([["wine", "cheese"], ["guitar", "cheese"]])
    0.75
    """
    topic_words = np.asarray(topic_words)
    return float(np.unique(topic_words).size / topic_words.size) if topic_words.size else 1.0


class Redundancy(NamedTuple):
    """Words that topics share with another topic.

    Attributes
    ----------
    topics : array of shape (K,)
        Largest share of the top words of each topic that are also top words of one other topic; 0 for a single topic.
    twins : array of int of shape (K,)
        This other topic; -1 if there is none.
    """

    topics: Floats
    twins: Array


def topic_redundancy(topic_words: Array) -> Redundancy:
    """Return how many top words of each topic another topic repeats, and which topic.

    Parameters
    ----------
    topic_words : array-like of int of shape (K, n)
        Columns of the top words of each topic (see `top_words`).

    Returns
    -------
    Redundancy
        Shares and topics.

    Examples
    --------
    >>> from polyseme.metrics import topic_redundancy
    >>> topic_redundancy([["wine", "cheese"], ["guitar", "cheese"], ["drums", "bass"]]).topics
    array([0.5, 0.5, 0. ])
    """
    topic_words = np.asarray(topic_words)
    n_topics, n_words = topic_words.shape
    if n_topics < 2 or n_words == 0:
        return Redundancy(np.zeros(n_topics), np.full(n_topics, -1))
    words, columns = np.unique(topic_words, return_inverse=True)
    rows = np.repeat(np.arange(n_topics), n_words)
    contains = sp.csr_array((np.ones(rows.size), (rows, columns.ravel())), shape=(n_topics, words.size))
    contains.data[:] = 1
    shared = (contains @ contains.T).toarray()
    n_distinct = np.diag(shared).copy()
    np.fill_diagonal(shared, -1)
    twins = shared.argmax(axis=1)
    share = shared[np.arange(n_topics), twins] / n_distinct
    return Redundancy(np.asarray(share), np.where(share > 0, twins, -1))


def frex(topic_word: Array, *, weight: float = 0.7) -> Floats:
    """Return FREX, the harmonic mean of the ranks of a word by frequency and by exclusivity.

    With phi = P(w|z), E = phi_kw / sum_j phi_jw (0 for a word that no topic has), and F(x) the share of the words of
    the topic whose value is at most x::

        FREX = 1 / (weight / F(E) + (1 - weight) / F(phi))

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    weight : float, default=0.7
        Weight of exclusivity.

    Returns
    -------
    array of shape (K, n_words)
        Values between 0 and 1.

    References
    ----------
    - Bischof, J. M., and Airoldi, E. M. (2012). Summarizing topical content with word frequency and exclusivity. ICML.

    Examples
    --------
    >>> from polyseme.metrics import frex
    >>> frex([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]).argmax(axis=1)
    array([0, 2])
    """
    if not 0 <= weight <= 1:
        raise InputError(f"weight must be between 0 and 1, got {weight}.")
    phi = np.asarray(topic_word, dtype=np.float64)
    sums = phi.sum(axis=0)
    exclusive = np.divide(phi, sums, out=np.zeros_like(phi), where=sums > 0)
    by_frequency = rankdata(phi, method="max", axis=1) / phi.shape[1]
    by_exclusivity = rankdata(exclusive, method="max", axis=1) / phi.shape[1]
    return np.asarray(1.0 / (weight / by_exclusivity + (1.0 - weight) / by_frequency))


def exclusivity(topic_word: Array, n_words: int = 10, *, weight: float = 0.7) -> Floats:
    """Return the mean FREX of the most probable words of each topic.

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    n_words : int, default=10
        Number of words per topic.
    weight : float, default=0.7
        Weight of exclusivity in FREX.

    Returns
    -------
    array of shape (K,)
        Near 1 if the words are frequent in the topic and rare in the others.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.metrics import exclusivity
    >>> topics = np.array([[0.5, 0.4, 0.1, 0, 0], [0, 0.1, 0.4, 0.3, 0.2]])
    >>> exclusivity(topics, n_words=2).round(2)
    array([0.9 , 0.81])
    """
    scores = frex(topic_word, weight=weight)
    return np.asarray(np.take_along_axis(scores, top_words(topic_word, n_words), axis=1).mean(axis=1))


METRICS = ("symmetric-kl", "hellinger", "cosine")


def word_topics(topic_word: Array, topic_weights: Floats) -> Floats:
    """Return P(z|w) = P(z) P(w|z) / P(w).

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    topic_weights : array-like of shape (K,)
        P(z).

    Returns
    -------
    array of shape (n_words, K)
        P(z|w); zeros for words that no topic has.

    Examples
    --------
    >>> from polyseme.metrics.topics import word_topics
    >>> word_topics([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]).shape
    (2, 2)
    """
    joint = np.asarray(topic_word, dtype=np.float64).T * np.asarray(topic_weights, dtype=np.float64)
    return normalize_rows(joint)


def distances(rows: Any, others: Any = None, metric: str = "hellinger", *, smoothing: float = 1e-3) -> Floats:
    """Return the distances between rows, as distributions p and q.

    ==============  ============================================
    metric          distance
    ==============  ============================================
    "hellinger"     sqrt(1 - sum sqrt(p q)), from 0 to 1
    "cosine"        1 - p q / (norm(p) norm(q)), from 0 to 1
    "symmetric-kl"  sum (p - q) log(p / q) in nats, at least 0
    ==============  ============================================

    Parameters
    ----------
    rows : array-like or sparse matrix of shape (n_rows, n_columns)
        Non-negative numbers. Rows are scaled to sum to one; a row of zeros becomes uniform.
    others : array-like or sparse matrix of shape (n_others, n_columns), default=None
        Other rows. None computes the distances between all pairs of `rows`.
    metric : {"hellinger", "cosine", "symmetric-kl"}, default="hellinger"
        The distance.
    smoothing : float, default=1e-3
        For "symmetric-kl", the weight of the uniform distribution that is mixed with p and q. With 0 the distance is
        infinite if only one of them is zero at an entry.

    Returns
    -------
    array of shape (n_rows, n_others)
        The distances.

    Examples
    --------
    >>> from polyseme.metrics import distances
    >>> distances([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]).round(2)
    array([[0., 1.]])
    """
    if metric not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    if not 0 <= smoothing < 1:
        raise InputError(f"smoothing must be at least 0 and below 1, got {smoothing}.")
    P = _distributions(rows)
    Q = P if others is None else _distributions(others)
    if P.shape[1] != Q.shape[1]:
        raise InputError(f"rows and others must have the same number of columns, got {P.shape[1]} and {Q.shape[1]}.")
    if metric == "symmetric-kl":
        result = _symmetric_kl(P, Q, smoothing)
    elif metric == "hellinger":
        result = np.sqrt(np.maximum(1.0 - _products(_map(P, np.sqrt), _map(Q, np.sqrt)), 0.0))
    else:
        result = np.maximum(1.0 - _products(_unit(P), _unit(Q)), 0.0)
    if others is None:
        np.fill_diagonal(result, 0.0)
    return result


def _distributions(rows: Any) -> Any:
    """Return rows that sum to one, as float64, CSR or dense; rows of zeros become uniform."""
    if not sp.issparse(rows):
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2:
            raise InputError(f"Distances need the rows of a matrix, got {values.ndim} dimensions.")
        _check_nonnegative(values)
        empty = values.sum(axis=1) == 0
        return normalize_rows(np.where(empty[:, np.newaxis], 1.0, values))
    P = sp.csr_array(check_sparse(rows, "The table"), dtype=np.float64)
    _check_nonnegative(P.data)
    sums = np.asarray(P.sum(axis=1)).ravel()
    if (sums == 0).any():
        uniform = sp.csr_array((sums == 0).astype(np.float64)[:, np.newaxis]) @ sp.csr_array(np.ones((1, P.shape[1])))
        P = sp.csr_array(P + uniform)
        sums = np.asarray(P.sum(axis=1)).ravel()
    P = sp.csr_array(sp.diags_array(1.0 / sums) @ P)
    P.eliminate_zeros()
    return P


def _check_nonnegative(values: Array) -> None:
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("Distances need distributions: all numbers must be finite and non-negative.")


def _products(P: Any, Q: Any) -> Floats:
    """Return the product of P and the transpose of Q as a dense array."""
    product = P @ Q.T
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def _map(P: Any, function: Any) -> Any:
    """Apply a function with f(0) = 0 to every entry."""
    if not sp.issparse(P):
        return function(P)
    return sp.csr_array((function(P.data), P.indices, P.indptr), P.shape)


def _unit(P: Any) -> Any:
    squares = _map(P, np.square).sum(axis=1)
    lengths = np.sqrt(np.asarray(squares).ravel())
    return sp.csr_array(sp.diags_array(1.0 / lengths) @ P) if sp.issparse(P) else P / lengths[:, np.newaxis]


def _symmetric_kl(P: Any, Q: Any, smoothing: float) -> Floats:
    """Return sum p log p + sum q log q - sum p log q - sum q log p, by matrix products only.

    Smoothed logarithms are log(s) + L with s = smoothing / n, so that L is zero where p is zero and stays sparse.
    """
    n = P.shape[1]
    base = smoothing / n
    weight = 1.0 - smoothing

    def logs(R: Any) -> Any:
        if smoothing > 0:
            return _map(R, lambda p: np.log1p(weight * p / base))
        return _map(R, lambda p: np.log(p, out=np.zeros_like(p), where=p > 0))

    def cross(R: Any, L: Any) -> Floats:
        """sum r log q without the constant log(s), which cancels."""
        return np.asarray(weight * _products(R, L) + base * np.asarray(L.sum(axis=1)).ravel())

    def with_itself(R: Any, L: Any) -> Floats:
        products = R.multiply(L) if sp.issparse(R) else R * L
        return np.asarray(weight * np.asarray(products.sum(axis=1)).ravel() + base * np.asarray(L.sum(axis=1)).ravel())

    LP, LQ = logs(P), logs(Q)
    result = with_itself(P, LP)[:, np.newaxis] + with_itself(Q, LQ) - cross(P, LQ) - cross(Q, LP).T
    result = np.maximum(result, 0.0)
    if smoothing == 0:
        in_p, in_q = _map(P, np.sign), _map(Q, np.sign)
        both = _products(in_p, in_q)
        only_one = (np.asarray(in_p.sum(axis=1)).ravel()[:, np.newaxis] > both) | (
            np.asarray(in_q.sum(axis=1)).ravel() > both
        )
        result[only_one] = np.inf
    return np.asarray(result)


def classical_scaling(distances: Floats) -> Floats:
    """Return points in the plane (K x 2) with nearly these distances, by classical multidimensional scaling.

    The coordinates are the leading eigenvectors of -J D^2 J / 2 with J = I - 1/K, times the square roots of the
    eigenvalues. The coordinate of each axis with the largest absolute value is positive.

    Torgerson, W. S. (1952). Multidimensional scaling: I. Theory and method. Psychometrika 17, 401-419.
    """
    K = len(distances)
    squares = distances**2
    centered = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean()
    values, vectors = np.linalg.eigh(-centered / 2)
    points = np.zeros((K, 2))
    for axis in range(min(2, K)):
        value, vector = values[-1 - axis], vectors[:, -1 - axis]
        if value > 1e-12:
            sign = np.sign(vector[np.argmax(np.abs(vector))])
            points[:, axis] = sign * vector * np.sqrt(value)
    return points


def align(topics: Array, others: Array, metric: str = "total-variation") -> tuple[Array, Floats]:
    """Match topics with other topics, one to one, with the smallest total distance.

    Parameters
    ----------
    topics : array of shape (K, n_words)
        P(w|z).
    others : array of shape (n_others, n_words)
        Topics over the same words.
    metric : {"total-variation", "cosine", "hellinger", "symmetric-kl"}, default="total-variation"
        The distance: half the sum of absolute differences, or a metric of `distances`.

    Returns
    -------
    order : array of shape (K,)
        ``others[order[i]]`` is the match of ``topics[i]``; -1 for a topic without a match, if there are fewer others.
    distance : array of shape (K,)
        Distance of each pair; 1 without a match, infinite for "symmetric-kl".

    Examples
    --------
    >>> from polyseme.metrics import align
    >>> order, distance = align([[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.9, 0.1]])
    >>> order
    array([1, 0])
    """
    topics, others = np.asarray(topics), np.asarray(others)
    if metric == "total-variation":
        cost = np.array([0.5 * np.abs(others - topic).sum(axis=1) for topic in topics])
    else:
        cost = distances(topics, others, metric)
    left, right = linear_sum_assignment(cost)
    order = np.full(len(topics), -1)
    distance = np.full(len(topics), np.inf if metric == "symmetric-kl" else 1.0)
    order[left], distance[left] = right, cost[left, right]
    return order, distance


@dataclass(frozen=True)
class Stability:
    """Similarity of topics to their matched topics in other runs.

    Topics are matched one to one so that their total distance is smallest.

    Attributes
    ----------
    topics : array of shape (K,)
        1 - total variation distance of each topic to its partner, mean over the runs; 1 means an equal topic.
    words : array of shape (K,)
        Share of the top words of each topic that its partner also has, mean over the runs.
    runs : array of shape (n_runs, K)
        1 - distance in every run; 0 for a topic without a partner.
    partners : array of int of shape (n_runs, K)
        Index of the partner in every run; -1 if there is none.
    """

    topics: Floats
    words: Floats
    runs: Floats
    partners: Array

    @property
    def mean(self) -> float:
        """Mean of `topics`."""
        return float(self.topics.mean()) if self.topics.size else 0.0


def stability(topic_word: Array, runs: Iterable[Array], *, n_words: int = 10) -> Stability:
    """Return how similar topics are to the matching topics of other runs.

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    runs : iterable of arrays of shape (n_topics, n_words)
        Topics of other runs. If a run has fewer than K topics, topics without a partner score zero.
    n_words : int, default=10
        Number of top words that are compared.

    Returns
    -------
    Stability
        Similarity of each topic.

    Examples
    --------
    >>> from polyseme.metrics import stability
    >>> topics = [[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]]
    >>> stability(topics, [topics]).topics.shape
    (2,)
    """
    topics = np.asarray(topic_word, dtype=np.float64)
    others = [np.asarray(run, dtype=np.float64) for run in runs]
    if not others:
        raise InputError("Stability needs at least one other run to compare with.")
    if any(run.ndim != 2 or run.shape[1] != topics.shape[1] for run in others):
        raise InputError(f"Every run must have topics over the same {topics.shape[1]} words.")
    n_words = min(n_words, topics.shape[1])
    top = top_words(topics, n_words)
    similarities, partners, words = [], [], []
    for run in others:
        partner, distance = align(topics, run)
        partner_top = top_words(run, n_words)[partner]
        same = (top[:, :, np.newaxis] == partner_top[:, np.newaxis, :]).any(axis=2).mean(axis=1)
        similarities.append(np.maximum(1.0 - distance, 0.0))
        partners.append(partner)
        words.append(np.where(partner >= 0, same, 0.0))
    return Stability(np.mean(similarities, axis=0), np.mean(words, axis=0), np.array(similarities), np.array(partners))


def bootstrap_stability(
    model: Any,
    X: Any,
    *,
    n_samples: int = 5,
    random_state: RandomStateLike = 0,
    n_words: int = 10,
    progress: Callable[[int, int], Any] | None = None,
) -> Stability:
    """Return how similar the topics of a fitted model are to those of fits on bootstrap samples of the documents.

    Each sample has as many documents as X, drawn with replacement, and a clone of the model is fitted to it from its
    own start. The value also depends on how similar any topics of the corpus are: if topics resemble the whole corpus,
    even noise can reach 0.7.

    Parameters
    ----------
    model : estimator
        A fitted topic model.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        The training documents.
    n_samples : int, default=5
        Number of samples.
    random_state : int, RandomState or Generator, default=0
        Seed of the samples and of the starts.
    n_words : int, default=10
        Number of top words that are compared.
    progress : callable, default=None
        Called with (samples done, number of samples).

    Returns
    -------
    Stability
        Similarity of each topic.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.metrics import bootstrap_stability
    >>> X = synthetic_corpus(300, n_topics=3, n_words=100, random_state=0).counts()
    >>> found = bootstrap_stability(PLSA(3, random_state=0).fit(X), X)
    >>> bool(found.topics.min() > 0.8)
    True
    """
    random_state = as_seed(random_state)
    if n_samples < 1:
        raise InputError(f"n_samples must be at least 1, got {n_samples}.")
    topics = topic_rows(model)
    counts = sp.csr_array(check_sparse(X)) if sp.issparse(X) else np.asarray(X)
    rng = np.random.default_rng(random_state)
    n_docs = counts.shape[0]
    runs = []
    for done in range(1, n_samples + 1):
        rows = np.sort(rng.integers(n_docs, size=n_docs))
        other = clone(model).set_params(random_state=int(rng.integers(2**31)))
        runs.append(topic_rows(other.fit(counts[rows])))
        if progress is not None:
            progress(done, n_samples)
    return stability(topics, runs, n_words=n_words)
