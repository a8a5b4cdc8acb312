"""What other packages that show topics need of a model: pyLDAvis, and topicwizard and Turftopic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.explore.page_data import page_data
from polyseme.kernels import Array, normalize_rows
from polyseme.metrics.words import words_of_amounts


def pyldavis_arguments(model: Any, counts: Any = None, vocabulary: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the arguments of ``pyLDAvis.prepare``.

    Documents without words are left out, because pyLDAvis fails on them. Pass ``sort_topics=False`` to pyLDAvis as
    well, to keep the numbers of the topics.

    Parameters
    ----------
    model : estimator, Run or PageData
        Fitted model, also of scikit-learn, run, or data of a page.
    counts : array-like or sparse matrix of shape (n_documents, n_words), default=None
        Counts that the model was fitted to. Only for an estimator.
    vocabulary : sequence of str or None, default=None
        Word of each column. Only for an estimator.

    Returns
    -------
    dict
        Values of topic_term_dists, doc_topic_dists, doc_lengths, vocab and term_frequency.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.explore import pyldavis_arguments
    >>> X = np.array([[4, 3, 0], [5, 2, 1], [0, 1, 6]])
    >>> arguments = pyldavis_arguments(PLSA(2, random_state=0).fit(X), X, ["wine", "bread", "guitar"])
    >>> arguments["topic_term_dists"].shape
    (2, 3)
    """
    data = page_data(model, counts, vocabulary)
    filled = data.tokens > 0
    return {
        "topic_term_dists": normalize_rows(data.topic_word),
        "doc_topic_dists": normalize_rows(np.asarray(data.doc_topic[filled], dtype=np.float64)),
        "doc_lengths": data.tokens[filled],
        "vocab": list(data.vocabulary),
        "term_frequency": np.asarray(data.counts.sum(axis=0), dtype=np.float64).ravel(),
    }


def topicwizard_data(
    model: Any, counts: Any = None, *, vectorizer: Any = None, texts: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the TopicData of Turftopic and topicwizard, such as for ``topicwizard.visualize(topic_data=...)``.

    Parameters
    ----------
    model : estimator, Run or PageData
        Fitted model, also of scikit-learn, run, or data of a page. A run contains the other arguments.
    counts : array-like or sparse matrix of shape (n_documents, n_words), default=None
        Counts that the model was fitted to. Only for an estimator.
    vectorizer : CountVectorizer or None, default=None
        Vectorizer of the counts, with which topicwizard shows the topics of new texts. Only for an estimator.
    texts : sequence of str or None, default=None
        Text of each document. None: empty texts. Only for an estimator.

    Returns
    -------
    dict
        The entries of a TopicData without positions, which topicwizard computes.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.explore import topicwizard_data
    >>> from polyseme.text import Vectorizer
    >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
    >>> words = Vectorizer(language="english")
    >>> model = PLSA(2, random_state=0).fit(words.fit_transform(texts))
    >>> topicwizard_data(model, words.transform(texts), vectorizer=words, texts=texts)["corpus"][0]
    'red wine and cheese'
    """
    data = page_data(model, counts, vectorizer=vectorizer, texts=texts)
    estimator = getattr(model, "model", model)
    words = words_of_amounts(data.word_documents, data.vocabulary, 3)

    def transform(documents: Sequence[str]) -> Array:
        return np.asarray(estimator.transform(data.vectorizer.transform(documents)))

    return {
        "corpus": data.texts or data.excerpts or [""] * len(data.tokens),
        "vocab": np.array(data.vocabulary),
        "document_term_matrix": sp.csr_matrix(data.counts),
        "document_topic_matrix": np.asarray(data.doc_topic),
        "topic_term_matrix": np.asarray(data.topic_word),
        "document_representation": sp.csr_matrix(data.counts),
        "transform": None if data.vectorizer is None or model is data else transform,
        "topic_names": [data.topic_names.get(topic) or ", ".join(first) for topic, first in enumerate(words)],
    }
