"""Scores of queries, and the words behind them: recipes (combined.py) put to work on a corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyseme.errors import UnsupportedError
from polyseme.kernels import Array, Floats
from polyseme.retrieval.combined import Recipe, how_to_get
from polyseme.retrieval.latent_scores import SingularSpace, TopicSpace
from polyseme.retrieval.queries import row_of
from polyseme.retrieval.smoothed_scores import SmoothedScores
from polyseme.retrieval.term_scores import TermScores


class Scoring:
    """The postings of a corpus, and the latent spaces it has so far (None: not yet)."""

    def __init__(self, counts: Any, terms: TermScores) -> None:
        self.counts = counts
        self.terms = terms
        self.lsi: SingularSpace | None = None
        self.average: TopicSpace | None = None
        self._model: TopicSpace | None = None
        self._smoothed: dict[str, SmoothedScores] = {}

    @property
    def model(self) -> TopicSpace | None:
        """The one model of `plsi-q` and `plsi-u`."""
        return self._model

    @model.setter
    def model(self, space: TopicSpace | None) -> None:
        self._model, self._smoothed = space, {}

    def topics(self) -> TopicSpace:
        """The given model, or the largest of those of `plsi*`."""
        space = self.average if self._model is None else self._model
        if space is None:
            raise UnsupportedError("This index has no topics: call use_model(model) or fit_models() first.")
        return space.only(int(np.argmax(space.sizes)))

    def parts(self, queries: Any, recipe: Recipe) -> dict[str, Floats]:
        """Arrays queries x documents, whose sum is the score: "latent" and "term", or one of them."""
        if recipe.latent is None:
            return {"term": self.terms.scores(queries, recipe.term)}
        weight = recipe.term_weight
        if recipe.smoothed:
            latent, term = self._smoothing(recipe.term).parts(queries, weight)
            return {"latent": latent, "term": term}
        latent = (1 - weight) * self._space(recipe.latent).scores(queries)
        if weight == 0:
            return {"latent": latent}
        term = self.terms.scores(queries, recipe.term)
        return {"latent": latent, "term": term * (weight / _bound(term, recipe.term))}

    def explainer(self, query: Any, recipe: Recipe) -> Callable[[int], list[tuple[Array, Array]]]:
        """What gives, for a document, pairs (words, weights); all weights together are its score.

        A word may come more than once. What only depends on the query is computed here.
        """
        weight = recipe.term_weight
        if recipe.smoothed:
            smoothing = self._smoothing(recipe.term)
            return lambda document: [smoothing.word_parts(query, document, weight)]
        latent = None if recipe.latent is None else self._space(recipe.latent).explainer(query)
        scale = weight
        if latent is not None and recipe.term == "bm25":
            scale = weight / float(_bound(self.terms.scores(query, recipe.term), recipe.term)[0, 0])

        def explain(document: int) -> list[tuple[Array, Array]]:
            found = []
            if latent is not None:
                words, weights = latent(row_of(self.counts, document), document)
                found.append((words, (1 - weight) * weights))
            if weight > 0:
                words, weights = self.terms.word_parts(query, document, recipe.term)
                found.append((words, scale * weights))
            return found

        return explain

    def _space(self, name: str) -> Any:
        space = getattr(self, name)
        if space is None:
            raise UnsupportedError(f"This index cannot do that yet: call {how_to_get(name)} first.")
        return space

    def _smoothing(self, weighting: str) -> SmoothedScores:
        """Made when it is first asked for, and kept."""
        if weighting not in self._smoothed:
            self._smoothed[weighting] = SmoothedScores.of(self.terms, self._space("model"), self.counts, weighting)
        return self._smoothed[weighting]


def _bound(scores: Floats, term: str) -> Floats:
    """What a query's term scores are divided by beside a cosine (queries x 1): 1, or bm25's largest value."""
    if term != "bm25":
        return np.ones((scores.shape[0], 1))
    largest = scores.max(axis=1, keepdims=True)
    return np.where(largest > 0, largest, 1.0)
