"""What every topic model offers once it is fitted: perplexities, a score, a table of topics, a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.errors import InputError
from polyseme.estimators.tables import Topic, TopicTable, names_of_words, words_of_amounts
from polyseme.estimators.validation import count_data, share, whole_number
from polyseme.factors import symmetric_view
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics import PerplexityReport, perplexity_of, score_tokens, topic_fit
from polyseme.metrics.words import RELEVANCE, word_amounts
from polyseme.sources.memory import sparse_counts
from polyseme.split import split_tokens


class TopicScores:
    """For an estimator with components_, doc_topic_, doc_weights_, topic_weights_, unigram_ and log_likelihood_."""

    components_: Array
    doc_topic_: Array
    doc_weights_: Floats
    topic_weights_: Floats
    unigram_: Floats
    log_likelihood_: float
    random_state: Any

    def _token_probabilities(self, observed: SparseCounts, scored: SparseCounts) -> Array:
        """P(w|d) of every non-zero of `scored`, the documents folded in on `observed`."""
        raise NotImplementedError

    def perplexity(self, X: Any, *, unseen: float | None = None) -> float:
        """exp of minus the mean log P(w|d) of documents folded in on all their words (thesis eq. 4.5).

        Words not seen in training are left out, or get the probability `unseen` each.
        """
        return self.perplexity_report(X, unseen=unseen).perplexity

    def perplexity_report(self, X: Any, *, unseen: float | None = None) -> PerplexityReport:
        """`perplexity` with the unigram's, the number of tokens, and how many were unseen."""
        check_is_fitted(self)
        unseen = self._unseen_probability(unseen)
        X = count_data(self, X, reset=False)
        counts = sparse_counts(X, self.components_.dtype)
        probabilities = self._token_probabilities(counts, counts)
        return score_tokens("folded in", counts, probabilities, self.unigram_, unseen=unseen)

    def completion_perplexity(self, X: Any, smoothing: float = 0.01, *, unseen: float | None = None) -> float:
        """Perplexity of the held-out half of each document, given the weights folded in on the other half.

        Tokens are scored with (1 - smoothing) sum_z P(z|d) P(w|z) + smoothing P(w): without a floor the zeros of a
        converged model would decide the figure. The split depends on `random_state` (0 unless a number) and the
        document's content alone.
        """
        return self.completion_report(X, smoothing, unseen=unseen).perplexity

    def completion_report(self, X: Any, smoothing: float = 0.01, *, unseen: float | None = None) -> PerplexityReport:
        """`completion_perplexity` with the unigram's, the tokens, and the share that leans on the smoothing."""
        check_is_fitted(self)
        smoothing = share("smoothing", smoothing)
        unseen = self._unseen_probability(unseen)
        X = count_data(self, X, reset=False)
        counts = sparse_counts(X, self.components_.dtype)
        seed = int(self.random_state) if isinstance(self.random_state, int | np.integer) else 0
        observed, held_out = (counts.with_values(part) for part in split_tokens(counts, seed))
        probabilities = self._token_probabilities(observed, held_out)
        return score_tokens("completion", held_out, probabilities, self.unigram_, smoothing=smoothing, unseen=unseen)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-probability of a held-out token: minus the log of `completion_perplexity`; higher is better."""
        return -float(np.log(self.completion_perplexity(X)))

    @property
    def training_perplexity_(self) -> float:
        """Perplexity of the training documents themselves: exp(-log_likelihood_)."""
        return perplexity_of(self.log_likelihood_, 1.0)

    @property
    def topic_doc_(self) -> Floats:
        """P(d|z), K x documents, rows sum to one."""
        return symmetric_view(self.doc_topic_, self.doc_weights_).topic_doc

    def topics(self, vocabulary: Any = None, *, n_words: int = 10, relevance: float = RELEVANCE) -> TopicTable:
        """A table with a row for each topic: id, weight P(z), fit, and its words by relevance (`metrics.words`).

        Parameters
        ----------
        vocabulary : sequence of str, a fitted vectorizer, or None
            The word of each column. None for those that the model knows: from a frame, from `fit(feature_names=)` or
            from `set_vocabulary`.
        n_words : int, default=10
            Words of each topic.
        relevance : float, default=0.5
            lambda: 1 ranks words by how many of the topic's documents have them, 0 by how much more frequent they are
            there than in all documents.

        `fit` is how much of its own documents the topic carries: sum_d P(d|z) P(z|d).
        """
        check_is_fitted(self)
        n_words = whole_number("n_words", n_words, least=1)
        amounts, names = word_amounts(self), names_of_words(self, vocabulary)
        words = words_of_amounts(amounts, names, n_words, relevance=share("relevance", relevance))
        known = hasattr(self, "doc_topic_")  # not after partial_fit
        fit = topic_fit(self.doc_topic_, self.topic_doc_) if known else np.full(len(self.components_), np.nan)
        notes = []
        if amounts.unit != "documents":
            notes.append("Words by relevance on tokens, since the model has no document counts.")
        if vocabulary is None and getattr(self, "vocabulary_", None) is None:
            notes.append("The model does not know its words: name them with set_vocabulary.")
        rows = zip(map(float, self.topic_weights_), map(float, fit), words, strict=True)
        return TopicTable(tuple(Topic(topic, *row) for topic, row in enumerate(rows)), tuple(notes))

    # In a notebook: scikit-learn's diagram, and below it the topics of a fitted model.

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return lambda: diagram() + self._topics_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._topics_html()
        return bundle

    def _topics_html(self) -> str:
        return self.topics()._repr_html_() if hasattr(self, "doc_topic_") else ""

    def _unseen_probability(self, unseen: Any) -> float | None:
        """The probability of each word not seen in training, which together must leave some for the others."""
        if unseen is None:
            return None
        n_unseen = int(np.count_nonzero(self.unigram_ == 0))
        probability = share("unseen", unseen)
        if not 0 < probability * max(n_unseen, 1) < 1:
            raise InputError(f"unseen must be above 0 and, times the {n_unseen} unseen words, below 1, got {unseen!r}.")
        return probability
