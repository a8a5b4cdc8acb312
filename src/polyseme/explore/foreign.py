"""Topics of other libraries as parts of a page, and a page's parts as pyLDAvis takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.explore.parts import (
    Inference,
    Parts,
    label_lists,
    of_model,
    of_nonnegative_factors,
    sparse_counts_of,
    strings,
    words_of,
)
from polyseme.factors import rows_to_one
from polyseme.retrieval.queries import checked_counts


def from_sklearn(
    model: Any,
    counts: Any,
    vectorizer: Any = None,
    *,
    vocabulary: Sequence[str] | None = None,
    titles: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    title: str = "Topics",
) -> Parts:
    """Parts of a fitted LatentDirichletAllocation, NMF or MiniBatchNMF of scikit-learn and its counts.

    NMF's factors are rescaled: rows of H to sum one, their sums moved into W (Gaussier and Goutte 2005).
    """
    if not hasattr(model, "components_"):
        raise InputError(f"{type(model).__name__} is not fitted: call fit first.")
    words = words_of(model, vocabulary, vectorizer)
    matrix = checked_counts(counts, len(words), "counts")
    weights = np.asarray(model.transform(counts))
    if hasattr(model, "doc_topic_prior_"):  # LatentDirichletAllocation
        lambda_ = np.asarray(model.components_, dtype=np.float64)
        alpha = np.full(len(lambda_), float(model.doc_topic_prior_))
        inference = Inference("variational", alpha=alpha, totals=lambda_.sum(axis=1))
        topics, doc_topic = rows_to_one(lambda_), rows_to_one(weights)
    elif np.min(model.components_) >= 0:
        note = "New texts are folded in by likelihood (KL), not by this NMF's own transform."
        topics, doc_topic, inference = of_nonnegative_factors(weights, model.components_, note)
    else:
        raise InputError(f"A {type(model).__name__} has negative weights of words: the page is for topic models.")
    facts = {"iterations": int(model.n_iter_)} if hasattr(model, "n_iter_") else {}
    return Parts(
        topics, doc_topic, matrix, words, type(model).__name__, title, inference, vectorizer, titles=strings(titles),
        labels=label_lists(labels), times=None if times is None else list(times), texts=strings(texts), facts=facts,
    )  # fmt: skip


def from_gensim(
    model: Any,
    corpus: Any,
    *,
    titles: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    title: str = "Topics",
) -> Parts:
    """Parts of a gensim LdaModel and its corpus (an iterable of lists of (word, count))."""
    lambda_ = np.asarray(model.state.get_lambda(), dtype=np.float64)
    words = [str(model.id2word[word]) for word in range(lambda_.shape[1])]
    documents = [list(document) for document in corpus]
    matrix = checked_counts(sparse_counts_of(documents, len(words)), len(words), "corpus")
    gamma, _ = model.inference(documents)
    inference = Inference("variational", alpha=np.asarray(model.alpha, dtype=np.float64), totals=lambda_.sum(axis=1))
    return Parts(
        rows_to_one(lambda_), rows_to_one(np.asarray(gamma)), matrix, words, type(model).__name__, title, inference,
        titles=strings(titles), labels=label_lists(labels), times=None if times is None else list(times),
        texts=strings(texts),
    )  # fmt: skip


def pyldavis_arguments(model: Any, counts: Any = None, vocabulary: Sequence[str] | None = None) -> dict[str, Any]:
    """The arguments of `pyLDAvis.prepare`: topic_term_dists, doc_topic_dists, doc_lengths, vocab, term_frequency.

    model : a fitted model with its counts and vocabulary, or `Parts`. Documents without words are left out, since
    pyLDAvis fails on them. Give `sort_topics=False` beside these, to keep the model's own topic numbers.
    """
    parts = model if isinstance(model, Parts) else of_model(model, counts, vocabulary)
    kept = parts.tokens > 0
    return {
        "topic_term_dists": rows_to_one(parts.topic_word),
        "doc_topic_dists": rows_to_one(np.asarray(parts.doc_topic[kept], dtype=np.float64)),
        "doc_lengths": parts.tokens[kept],
        "vocab": list(parts.vocabulary),
        "term_frequency": np.asarray(parts.counts.sum(axis=0), dtype=np.float64).ravel(),
    }
