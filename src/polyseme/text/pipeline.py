"""A Pipeline from texts to topics whose model knows its words."""

from __future__ import annotations

from typing import Any, Self

from sklearn import pipeline
from sklearn.pipeline import Pipeline


class TopicPipeline(Pipeline):
    """scikit-learn's Pipeline, which also gives the names of the words to its last step.

    A Pipeline passes counts from step to step, but not the words of their columns. After a fit, this one calls
    `set_vocabulary` of the last step with the names that the steps before it give (`get_feature_names_out`), so that
    `pipeline[-1].topics()` shows words, and the names are saved with the model. All else is as in Pipeline.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.text import Vectorizer, make_pipeline
    >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
    >>> pipe = make_pipeline(Vectorizer(), PLSA(2, random_state=0)).fit(texts)
    >>> list(pipe[-1].vocabulary_)
    ['and', 'bass', 'bread', 'cheese', 'drums', 'guitar', 'red', 'wine']
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """As in Pipeline; then the last step learns the names of its words."""
        super().fit(X, y, **params)
        self._name_words()
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """As in Pipeline; then the last step learns the names of its words."""
        transformed = super().fit_transform(X, y, **params)
        self._name_words()
        return transformed

    def _name_words(self) -> None:
        if len(self.steps) > 1 and hasattr(self[-1], "set_vocabulary"):
            self[-1].set_vocabulary(self[:-1].get_feature_names_out())


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> TopicPipeline:
    """scikit-learn's `make_pipeline`, as a TopicPipeline."""
    return TopicPipeline(pipeline.make_pipeline(*steps).steps, memory=memory, verbose=verbose)
