"""Stability: whether other runs, and other samples of the documents, find the same topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from polyseme.core.factors import align
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, check_sparse
from polyseme.metrics.words import top_words, topic_rows


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
        Number of the partner in every run; -1 for none.
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
    """Return how well topics are found again in other runs.

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    runs : iterable of arrays of shape (n_topics, n_words)
        Topics of other runs. With fewer topics than K, the topics that are left without a partner score zero.
    n_words : int, default=10
        Number of top words that are compared.

    Returns
    -------
    Stability
        Similarity of each topic.
    """
    topics = np.asarray(topic_word, dtype=np.float64)
    others = [np.asarray(run, dtype=np.float64) for run in runs]
    if not others:
        raise InputError("Stability needs at least one other run to compare with.")
    if any(run.ndim != 2 or run.shape[1] != topics.shape[1] for run in others):
        raise InputError(f"Every run must have topics over the same {topics.shape[1]} words.")
    n_words = min(n_words, topics.shape[1])
    own = top_words(topics, n_words)
    found, partners, words = [], [], []
    for run in others:
        partner, distance = align(topics, run)
        theirs = top_words(run, n_words)[partner]
        same = (own[:, :, np.newaxis] == theirs[:, np.newaxis, :]).any(axis=2).mean(axis=1)
        found.append(np.maximum(1.0 - distance, 0.0))
        partners.append(partner)
        words.append(np.where(partner >= 0, same, 0.0))
    return Stability(np.mean(found, axis=0), np.mean(words, axis=0), np.array(found), np.array(partners))


def bootstrap_stability(
    model: Any,
    X: Any,
    *,
    n_samples: int = 5,
    random_state: int = 0,
    n_words: int = 10,
    progress: Callable[[int, int], Any] | None = None,
) -> Stability:
    """Return how well the topics of a fitted model are found again in bootstrap samples of the documents.

    Each sample draws as many documents with replacement, and a clone of the model is fitted to it from its own start.
    The value depends on how similar topics are anyway: with topics that resemble the whole corpus, even noise can reach
    0.7.

    Parameters
    ----------
    model : estimator
        A fitted topic model.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        The training documents.
    n_samples : int, default=5
        Number of samples.
    random_state : int, default=0
        Seed of the samples and of the starts.
    n_words : int, default=10
        Number of top words that are compared.
    progress : callable, default=None
        Called with (samples done, number of samples).

    Returns
    -------
    Stability
        Similarity of each topic.
    """
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
