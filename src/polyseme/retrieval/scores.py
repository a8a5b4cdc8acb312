"""Search methods, and the scores that combine words and topics.

Term scores (`retrieval.terms`) come from the words that the query and the document share, latent scores
(`retrieval.spaces`) from their topics or dimensions. A method combines both as Hofmann (1999) does:

    score = (1 - term_weight) latent + term_weight term

bm25 has no upper bound, so it is first divided by its largest value for the query. Hofmann uses models with 32, 48, 64,
80 and 128 topics, which have equal weights, and term_weight = 1/2. Nothing is tuned on queries.

References
----------
- Hofmann (1999). Probabilistic latent semantic indexing. Proceedings of SIGIR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import (
    Array,
    Floats,
)
from polyseme.retrieval.postings import (
    WEIGHT,
    Feedback,
    Ranking,
    best_scores,
    rank_combined,
)
from polyseme.retrieval.queries import SparseRows
from polyseme.retrieval.spaces import SingularSpace, SmoothedScores, TopicSpace, smoothed_squares
from polyseme.retrieval.terms import WEIGHTINGS, TermScores
from polyseme.utils import check_share

_DOCUMENTS_PER_HIT = 8
"""LSI finds the best documents by codes if the index has more documents per hit than this, else by all scores."""
_REQUIRED_CALLS = {"lsi": "fit_lsi()", "model": "set_model(model)", "average": "fit_models()"}
"""The call that adds each latent space to an index."""


@dataclass(frozen=True)
class MethodSettings:
    """Settings of a search method."""

    latent: str | None
    """Latent space of `Scoring`: "lsi", "model" or "average"; None for a term score alone."""
    term: str
    """Term score: "tf", "tfidf" or "bm25"."""
    term_weight: float
    smoothed: bool = False
    """Whether the latent space smooths the documents (PLSI-U)."""
    combined: bool = False
    """Whether topics complement bm25 (`polyseme.retrieval.postings`), if there is a model."""

    @property
    def from_lists(self) -> bool:
        """Whether the best documents are found in posting lists, without the scores of all documents."""
        return self.combined or (self.latent is None and self.term == "bm25")

    @property
    def from_vectors(self) -> bool:
        """Whether the score is only a product of LSI vectors, so that the best documents can be found by codes."""
        return self.latent == "lsi" and self.term_weight == 0


DEFAULT_METHOD = "bm25+topics"
METHODS = {
    DEFAULT_METHOD: MethodSettings("model", "bm25", 1.0, combined=True),
    "tf": MethodSettings(None, "tf", 1.0),
    "tfidf": MethodSettings(None, "tfidf", 1.0),
    "bm25": MethodSettings(None, "bm25", 1.0),
    "lsi": MethodSettings("lsi", "tfidf", 0.0),
    "plsi-u": MethodSettings("model", "tfidf", 0.5, smoothed=True),
    "plsi-q": MethodSettings("model", "tfidf", 0.5),
    "plsi*": MethodSettings("average", "tfidf", 0.5),
}


def method_settings(method: str, term: str | None, term_weight: float | None) -> MethodSettings:
    """Return the settings of a method, with another term score or weight if they are given."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}.")
    settings = METHODS[method]
    if (settings.latent is None or settings.combined) and (term is not None or term_weight is not None):
        raise InputError(f"{method!r} has its own term score: term and term_weight are for lsi and plsi methods.")
    if term is not None and term not in WEIGHTINGS:
        raise InputError(f"term must be one of {', '.join(map(repr, WEIGHTINGS))}, got {term!r}.")
    if settings.smoothed and term == "bm25":
        raise InputError("'plsi-u' smooths the counts of words: its term must be 'tf' or 'tfidf'.")
    weight = settings.term_weight if term_weight is None else check_share("term_weight", term_weight)
    return replace(settings, term=term or settings.term, term_weight=weight)


class Scoring:
    """Term scores of a corpus, and its latent spaces. A space is None until it is fitted."""

    def __init__(self, counts: SparseRows | None, terms: TermScores) -> None:
        """Construct the scoring. If `counts` is None, they are made from the posting lists when they are needed."""
        self.terms = terms
        self._counts = counts
        self.lsi: SingularSpace | None = None
        self.average: TopicSpace | None = None
        self._model: TopicSpace | None = None
        self._smoothed: dict[str, SmoothedScores] = {}

    @property
    def counts(self) -> SparseRows:
        """Counts (documents x words)."""
        if self._counts is None:
            self._counts = SparseRows.of(self.terms.postings.by_document())
        return self._counts

    @property
    def model(self) -> TopicSpace | None:
        """The model of `bm25+topics`, `plsi-q` and `plsi-u`."""
        return self._model

    @model.setter
    def model(self, space: TopicSpace | None) -> None:
        self._model, self._smoothed = space, {}

    def topics(self) -> TopicSpace:
        """Return the model of `plsi-q`, or the largest model of `plsi*`."""
        space = self.average if self._model is None else self._model
        if space is None:
            raise UnsupportedError("This index has no topics: call set_model(model) or fit_models() first.")
        return space.only(int(np.argmax(space.sizes)))

    def rank(
        self, queries: Any, method: MethodSettings, k: int, allowed: Any = None, document: int | None = None
    ) -> Iterator[Ranking]:
        """Yield the k best documents for each query.

        allowed : mask of the documents that may be returned. document : row of the document that is the only query;
        None if the queries are texts.
        """
        if method.from_lists:
            space = self.model if method.combined else None
            feedback = None if space is None else Feedback(space.documents, space.typical)
            topics = None if space is None or document is None else space.weights_of(document).astype(np.float64)
            for i in range(queries.shape[0]):
                query = self.terms.query_words(queries, i)
                yield rank_combined(self.terms.postings, query, feedback, k, allowed, topics)
            return
        if method.from_vectors and _DOCUMENTS_PER_HIT * k < self.terms.postings.n_docs:
            space = self._space("lsi")
            for vector in space.query_vectors(queries):
                rows, scores = space.nearest(vector, k, allowed)
                yield Ranking(rows, {"latent": scores})
            return
        parts = self.parts(queries, method)
        for i in range(queries.shape[0]):
            total = np.asarray(sum(part[i] for part in parts.values()), dtype=np.float32)
            best, _ = best_scores(total, k, allowed)
            yield Ranking(best, {name: part[i, best] for name, part in parts.items()})

    def parts(self, queries: Any, method: MethodSettings) -> dict[str, Floats]:
        """Return arrays (queries x documents) whose sum is the score: "latent" and "term", or one of them."""
        if method.from_lists:
            n_docs = self.terms.postings.n_docs
            shape = (queries.shape[0], n_docs)
            names = ("latent", "term") if method.combined and self.model is not None else ("term",)
            parts: dict[str, Floats] = {name: np.zeros(shape) for name in names}
            for i, ranking in enumerate(self.rank(queries, method, n_docs)):
                for name, values in ranking.parts.items():
                    parts[name][i, ranking.rows] = values
            return parts
        if method.latent is None:
            return {"term": self.terms.scores(queries, method.term)}
        weight = method.term_weight
        if method.smoothed:
            latent, term = self._smoothed_scores(method.term).parts(queries, weight)
            return {"latent": latent, "term": term}
        latent = (1 - weight) * self._space(method.latent).scores(queries)
        if weight == 0:
            return {"latent": latent}
        term = self.terms.scores(queries, method.term)
        return {"latent": latent, "term": term * (weight / _term_scale(term, method.term))}

    def explainer(
        self, query: Any, method: MethodSettings, ranking: Ranking
    ) -> Callable[[int], list[tuple[Array, Array]]]:
        """Return a function from a document to pairs (words, weights) whose weights add up to the score.

        A word may occur in several pairs. This method computes everything that depends only on the query. The returned
        function accepts documents of the ranking.
        """
        weight = method.term_weight
        if method.combined:
            return self._combined_explainer(query, ranking)
        if method.smoothed:
            smoothed = self._smoothed_scores(method.term)
            return lambda document: [smoothed.word_parts(query, self.counts.row(document), document, weight)]
        latent = None if method.latent is None else self._space(method.latent).explainer(query)
        scale = weight
        if latent is not None and method.term == "bm25":
            scale = weight / float(_term_scale(self.terms.scores(query, method.term), method.term)[0, 0])

        def explain(document: int) -> list[tuple[Array, Array]]:
            pairs, row = [], self.counts.row(document)
            if latent is not None:
                words, weights = latent(row, document)
                pairs.append((words, (1 - weight) * weights))
            if weight > 0:
                words, weights = self.terms.word_parts(query, row, document, method.term)
                pairs.append((words, scale * weights))
            return pairs

        return explain

    def _combined_explainer(self, query: Any, ranking: Ranking) -> Callable[[int], list[tuple[Array, Array]]]:
        """Return the explainer of "bm25+topics".

        The weight of a query word that the document contains is its summand in the term part. One half of the latent
        part is distributed over the query words that the document lacks, in proportion to i_w, and one half over the
        words of the document, in proportion to their shares in P(z|d).
        """
        latent_parts = ranking.parts.get("latent", np.zeros(len(ranking.rows)))
        latent_of = dict(zip(ranking.rows.tolist(), latent_parts.tolist(), strict=True))
        topics = ranking.topics

        def explain(document: int) -> list[tuple[Array, Array]]:
            row = self.counts.row(document)
            words, impacts, amounts = self.terms.query_impacts(query, row, document)
            missing = np.where(impacts > 0, 0, amounts)
            space = self.model
            weight = 0.0 if space is None else WEIGHT
            pairs = [(words, np.where(impacts > 0, impacts + weight * amounts, 0))]
            latent = latent_of[document]
            if space is None or topics is None or latent == 0:
                return pairs
            shares = space.word_shares(row, space.weights_of(document)) @ (topics * space.documents[document])
            pairs.append((words, 0.5 * latent * missing / missing.sum()))
            pairs.append((row.indices, 0.5 * latent * shares / max(shares.sum(), np.finfo(float).tiny)))
            return pairs

        return explain

    def supports(self, method: MethodSettings) -> bool:
        """Return whether the index has the latent space of a method, or the method works without it."""
        return method.latent is None or method.combined or self._spaces()[method.latent] is not None

    def _spaces(self) -> dict[str, Any]:
        return {"lsi": self.lsi, "model": self.model, "average": self.average}

    def _space(self, name: str) -> Any:
        space = self._spaces()[name]
        if space is None:
            raise UnsupportedError(f"The index has no model for this method: call {_REQUIRED_CALLS[name]} first.")
        return space

    def _smoothed_scores(self, weighting: str) -> SmoothedScores:
        """Return the smoothed scores of the model, computed once."""
        if weighting not in self._smoothed:
            space = self._space("model")
            squares = smoothed_squares(self.terms, space, self.counts, weighting)
            self.set_squares(weighting, squares)
        return self._smoothed[weighting]

    def is_ready(self, method: MethodSettings) -> bool:
        """Return whether everything that a search needs, apart from the query, has been computed."""
        return self.supports(method) and (not method.smoothed or self.has_squares(method.term))

    def has_squares(self, weighting: str) -> bool:
        """Return whether the result of `smoothed_squares` for the model is known."""
        return weighting in self._smoothed

    def squares(self, weighting: str) -> Floats:
        """Return the result of `smoothed_squares` for the model."""
        return np.asarray(self._smoothed_scores(weighting).squares[:])

    def set_squares(self, weighting: str, squares: Any) -> None:
        """Set the result of `smoothed_squares` for the model, for example from an index file."""
        self._smoothed[weighting] = SmoothedScores(self.terms, self._space("model"), weighting, squares)


def _term_scale(scores: Floats, term: str) -> Floats:
    """Return the divisor of term scores in a sum with cosines (queries x 1): 1, or the largest value of bm25."""
    if term != "bm25":
        return np.ones((scores.shape[0], 1))
    largest = scores.max(axis=1, keepdims=True)
    return np.where(largest > 0, largest, 1.0)
