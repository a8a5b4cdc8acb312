"""`TopicPipeline`: a Pipeline from texts to topics that passes the words of the columns to its model."""

from __future__ import annotations

from typing import Any, Self

from sklearn import pipeline
from sklearn.pipeline import Pipeline


class TopicPipeline(Pipeline):
    """Pipeline of scikit-learn that also passes the words of the columns to its last step.

    A Pipeline passes counts from step to step, but not the words of their columns. After a fit, this class calls
    `set_vocabulary` of the last step with the result of `get_feature_names_out` of the steps before it. Then
    `pipeline[-1].topics()` shows words, and they are saved with the model.

    The parameters are those of Pipeline.

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
        """Fit all steps, and pass the words to the last one.

        Parameters
        ----------
        X : iterable
            Input of the first step, such as texts.
        y : array-like, default=None
            Target of all steps.
        **params : dict
            Parameters of the steps, as in Pipeline.

        Returns
        -------
        TopicPipeline
            This object.
        """
        super().fit(X, y, **params)
        self._set_vocabulary()
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps, pass the words to the last one, and return its result.

        Parameters
        ----------
        X : iterable
            Input of the first step, such as texts.
        y : array-like, default=None
            Target of all steps.
        **params : dict
            Parameters of the steps, as in Pipeline.

        Returns
        -------
        array of shape (n_documents, n_topics)
            Result of the last step.
        """
        transformed = super().fit_transform(X, y, **params)
        self._set_vocabulary()
        return transformed

    def _set_vocabulary(self) -> None:
        if len(self.steps) > 1 and hasattr(self[-1], "set_vocabulary"):
            self[-1].set_vocabulary(self[:-1].get_feature_names_out())


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> TopicPipeline:
    """Construct a TopicPipeline whose steps are named after their types.

    Parameters
    ----------
    *steps : estimators
        The steps.
    memory : str or object with the joblib.Memory interface, default=None
        Cache of fitted transformers.
    verbose : bool, default=False
        Whether to print the time of each step.

    Returns
    -------
    TopicPipeline
        The pipeline.
    """
    return TopicPipeline(pipeline.make_pipeline(*steps).steps, memory=memory, verbose=verbose)
