"""Topics of models of scikit-learn and gensim, as arguments of `PageData.from_arrays`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.dirichlet import DirichletPosterior
from polyseme.errors import InputError
from polyseme.estimators.base import Decomposition
from polyseme.kernels import Array, Floats, normalize_rows
from polyseme.metrics.words import column_words
from polyseme.utils import checked_counts


def topics_of_sklearn(model: Any, counts: Any, vocabulary: Sequence[str] | None, vectorizer: Any) -> dict[str, Any]:
    """Return the topics of a LatentDirichletAllocation, NMF or MiniBatchNMF of scikit-learn."""
    name = type(model).__name__
    if isinstance(model, Decomposition) or not hasattr(model, "components_"):
        raise InputError(
            f"{name} has no fitted topics: call fit first, and give a topic model of polyseme, a "
            "LatentDirichletAllocation or NMF of scikit-learn, or an LdaModel of gensim."
        )
    words = column_words(model, vocabulary, vectorizer)
    found = {
        "counts": checked_counts(counts, len(words), "counts"),
        "vocabulary": words,
        "facts": {"iterations": int(model.n_iter_)} if hasattr(model, "n_iter_") else {},
    }
    weights, topics = np.asarray(model.transform(counts)), np.asarray(model.components_, dtype=np.float64)
    if hasattr(model, "doc_topic_prior_"):  # LatentDirichletAllocation
        alpha, eta = np.full(len(topics), model.doc_topic_prior_), np.full(len(words), model.topic_word_prior_)
        inference = DirichletPosterior(topics, alpha, eta)
        return found | {"topic_word": topics, "doc_topic": normalize_rows(weights), "inference": inference}
    if topics.min() < 0:
        raise InputError(f"{name} has negative weights of words: the page only shows topic models.")
    topics, doc_topic = _normalize_factors(weights, topics)
    note = "New texts are folded in by likelihood (KL), not by this NMF's own transform."
    return found | {"topic_word": topics, "doc_topic": doc_topic, "folding_note": note}


def topics_of_gensim(model: Any, counts: Any, vocabulary: Sequence[str] | None, vectorizer: Any) -> dict[str, Any]:
    """Return the topics of an LdaModel of gensim. `counts` are its documents: lists of a word's number and count."""
    if vocabulary is not None or vectorizer is not None:
        raise InputError("A model of gensim knows its words: leave vocabulary= and vectorizer= out.")
    lambda_ = np.asarray(model.state.get_lambda(), dtype=np.float64)
    words = [str(model.id2word[word]) for word in range(lambda_.shape[1])]
    documents = [list(document) for document in counts]
    gamma, _ = model.inference(documents)
    eta = np.broadcast_to(model.eta, lambda_.shape).mean(axis=0)  # may differ between topics; the page does not use it
    return {
        "topic_word": lambda_,
        "doc_topic": normalize_rows(np.asarray(gamma)),
        "counts": checked_counts(_gensim_counts(documents, len(words)), len(words), "counts"),
        "vocabulary": words,
        "inference": DirichletPosterior(lambda_, np.asarray(model.alpha, dtype=np.float64), eta),
    }


def _normalize_factors(W: Array, H: Floats) -> tuple[Floats, Floats]:
    """Return P(w|z) and P(z|d) of W (documents x K) and H (K x words): the sums of the rows of H become scales of W.

    Gaussier, E. and Goutte, C. (2005). Relation between PLSA and NMF and implications. Proceedings of SIGIR, 601-602.
    """
    sums = H.sum(axis=1)
    H = np.where(sums[:, np.newaxis] > 0, H, 1.0)
    mass = np.asarray(W, dtype=np.float64) * sums
    empty = mass.sum(axis=1) == 0
    mass[empty] = mass.sum(axis=0) if mass.sum() > 0 else 1.0
    return normalize_rows(H), normalize_rows(mass)


def _gensim_counts(corpus: Any, n_words: int) -> Any:
    """Return the counts (documents x words) of lists of (word, count)."""
    indptr, indices, data = [0], [], []
    for document in corpus:
        for word, count in document:
            indices.append(int(word))
            data.append(float(count))
        indptr.append(len(indices))
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_words))
