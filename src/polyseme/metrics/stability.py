"""Whether topics come back: in other runs, and in other samples of the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from polyseme.core.factors import align
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, checked_sparse
from polyseme.metrics.words import top_words


@dataclass(frozen=True)
class Stability:
    """How well each topic is found again; topics were matched one to one, so that they differ least in all."""

    topics: Floats
    """of each topic: 1 - total variation distance to its partner, the mean over the runs; 1 is found again exactly"""
    words: Floats
    """of each topic: the share of its top words that its partner has too, the mean over the runs"""
    runs: Floats
    """runs x topics: 1 - distance in every run; 0 for a topic without a partner"""
    partners: Array
    """runs x topics: the partner's number; -1 for none"""

    @property
    def mean(self) -> float:
        return float(self.topics.mean()) if self.topics.size else 0.0


def stability(topic_word: Array, runs: Iterable[Array], *, n_words: int = 10) -> Stability:
    """How well the topics (K x words) are found again in other runs' topics, by optimal assignment.

    Runs may have other numbers of topics; where they have fewer, the topics left over score zero.
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
    """How well a fitted model's topics are found again by fits to bootstrap samples of the documents.

    Each sample draws as many documents with replacement, and a clone of the model is fitted to it from a start of its
    own. Topics that all resemble the corpus as a whole are alike by nature: 1 - distance of pure noise can be 0.7.
    `progress` is called with (samples done, samples).
    """
    if n_samples < 1:
        raise InputError(f"n_samples must be at least 1, got {n_samples}.")
    if not hasattr(model, "components_"):
        raise InputError("The model has no topics yet: call fit first.")
    counts = sp.csr_array(checked_sparse(X)) if sp.issparse(X) else np.asarray(X)
    rng = np.random.default_rng(random_state)
    n_docs = counts.shape[0]
    runs = []
    for done in range(1, n_samples + 1):
        rows = np.sort(rng.integers(n_docs, size=n_docs))
        other = clone(model).set_params(random_state=int(rng.integers(2**31)))
        runs.append(other.fit(counts[rows]).components_)
        if progress is not None:
            progress(done, n_samples)
    return stability(model.components_, runs, n_words=n_words)
