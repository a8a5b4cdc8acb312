"""Topic fit, the share that topics have in their own documents, and the number of topics of a document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.core.factors import symmetric_view
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats


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
    """
    theta = np.asarray(doc_topic, dtype=np.float64)
    logs = np.log(theta, out=np.zeros_like(theta), where=theta > 0)
    return np.asarray(np.exp(-(theta * logs).sum(axis=1)))
