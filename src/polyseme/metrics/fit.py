"""Topic fit, as the thesis judges topics (ch. 6), and how many topics a document has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.core.factors import symmetric_view
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats


def topic_fit(doc_topic: Array, topic_doc: Array) -> Floats:
    """How much of its own documents each topic carries: sum_d P(d|z) P(z|d), between 0 and 1 (thesis ch. 6).

    A fitting topic by itself carries the majority of the weight of its documents.
    """
    return np.asarray(np.einsum("kd,dk->k", topic_doc, doc_topic, dtype=np.float64))


@dataclass(frozen=True)
class FitReport:
    """Which topics fit, as the thesis means it."""

    fit: Floats
    """of each topic: the mean share of its own documents that it carries, sum_d P(d|z) P(z|d)"""
    carried: Floats
    """of each topic: the share of its weight in documents of which it carries more than half"""
    ranking: Array
    """topics, the most fitting first"""
    threshold: float
    n_fitting: int
    """topics whose fit is above the threshold"""
    fitting_weight: float
    """P(z) of those topics together: how much of the corpus they carry"""


def fit_report(doc_topic: Array, doc_weights: Floats, *, threshold: float = 0.5) -> FitReport:
    """The fit of every topic, from P(z|d) (documents x K) and P(d), and how many are above the threshold.

    The thesis's fitting topic carries the majority of the weight of its documents: a fit above one half. A topic
    without documents has fit zero.
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
    """How many topics each document has: exp of the entropy of P(z|d), from 1 (one topic) to K (all alike)."""
    theta = np.asarray(doc_topic, dtype=np.float64)
    logs = np.log(theta, out=np.zeros_like(theta), where=theta > 0)
    return np.asarray(np.exp(-(theta * logs).sum(axis=1)))
