"""What every estimator of components is to scikit-learn, and how it is saved."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polyseme import storage
from polyseme.estimators.validation import word_names
from polyseme.kernels import Array


class Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer to weights of components_ (K x features), which keeps float32."""

    components_: Array
    vocabulary_: Array | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the fitted model to a file that `polyseme.load` reads; the file appears whole or not at all."""
        check_is_fitted(self)
        storage.save(self, path)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


class CountDecomposition(Decomposition):
    """One of counts: dense or sparse, not negative."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def set_vocabulary(self, vocabulary: Any) -> Self:
        """Names the words of a fitted model: one name for each column, or the fitted vectorizer that made the counts.

        The names are those of `topics()` and of plots, and they are saved with the model. `fit(X, feature_names=...)`
        and a fit of a frame set them, too. After scikit-learn's Pipeline: `pipe[-1].set_vocabulary(pipe[:-1])`.
        """
        check_is_fitted(self)
        self.vocabulary_ = word_names("vocabulary", vocabulary, int(self.components_.shape[1]))
        return self
