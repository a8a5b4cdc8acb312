"""Base classes of the estimators.

- `Decomposition` and `CountDecomposition`: what scikit-learn expects of an estimator with `components_`, and `save`.
- `FittedDecomposition`: attributes over the fitted model that an estimator holds.
- `TopicEstimator`: `transform`, perplexities, `score` and the table `topics` of a topic model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyseme.core.dirichlet import MODEL, with_inference
from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import (
    DocumentWeights,
    FittedTopics,
    FoldedTraining,
    FoldIn,
    StoredArray,
    TrainingDocuments,
    WordDocuments,
    fold_in_training,
    posterior_operands,
    with_missing_words,
)
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.model import as_loss
from polyseme.core.shard import as_counts, row_batches, sparse_counts, split_tokens, without_words
from polyseme.data.corpus import Corpus, MemoryCorpus, is_stored
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.validation import (
    accepts_missing_entries,
    check_has_words,
    check_no_weights,
    clear_fit,
    count_data,
    factor_dtype,
    observed_data,
    training_data,
)
from polyseme.io import models
from polyseme.io.files import COUNT, FLAG, NULL, OBJECT, TEXT, either
from polyseme.io.models import NUMBER_OR_NAN, WORDS, StoredAttributes, StoredValue
from polyseme.kernels import Array, Floats, single_threaded_blas
from polyseme.losses import KULLBACK_LEIBLER
from polyseme.metrics.evaluation import PerplexityReport, add_splits, score_tokens
from polyseme.metrics.topics import topic_fit
from polyseme.metrics.words import RELEVANCE, Topic, TopicTable, names_of_words, word_amounts, words_of_amounts
from polyseme.sklearn_bases import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from polyseme.solvers import EarlyStopping
from polyseme.solvers.base import SOLVERS, FitStarts, FitSummary
from polyseme.solvers.checkpoints import FitFolder
from polyseme.utils import (
    RandomStateLike,
    as_seed,
    check_integer,
    check_share,
    effective_threads,
    perplexity_of,
    word_names,
)

_EQUAL = 1e-6
"""Relative difference up to which weights of topics are equal, so that rounding does not decide between them."""

if TYPE_CHECKING:
    from polyseme import estimators as public
    from polyseme.text.vectorizer import TopicPipeline

    Estimator: TypeAlias = (
        public.CorrelatedTopicModel
        | public.HierarchicalPLSA
        | public.LDA
        | public.LSA
        | public.MultinomialMixture
        | public.NMF
        | public.PLSA
        | public.RealTopicModel
        | public.TensorPLSA
        | public.TopicClassifier
    )
    """A model of any class that `load` reads."""


class Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers with components_ (K x features) that preserve float32."""

    _stored: ClassVar[StoredAttributes] = {
        "n_features_in_": StoredValue(COUNT),
        "feature_names_in_": WORDS,
    }
    """Fitted attributes in a model file, except `history_`."""
    _inferences: ClassVar[tuple[type[Any], ...]] = ()
    """Kinds of inference that the fitted model can have."""
    components_: Array
    n_features_in_: int
    feature_names_in_: Array
    vocabulary_: Array | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        dtype = getattr(self, "dtype", None)
        with suppress(InputError):  # fit reports the error
            kept = ["float64", "float32"] if dtype is None else [factor_dtype(dtype, None).name]
            tags.transformer_tags.preserves_dtype = kept
        return tags

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted model to a file that `polyseme.load` reads.

        The file is written completely or not at all.

        Parameters
        ----------
        path : str or path-like
            File to write. An existing file is replaced.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA, load
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> model.save("model.safetensors")
        >>> again = load("model.safetensors")
        >>> np.array_equal(again.transform(X), model.transform(X))
        True
        """
        check_is_fitted(self)
        models.save(self, path)

    def _check_stored(self) -> None:
        """Raise ValueError if attributes from a model file contradict each other."""

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


class CountDecomposition(Decomposition):
    """Base class of transformers of non-negative counts, dense or sparse."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def set_vocabulary(self, vocabulary: Any) -> Self:
        """Set the names of the words of a fitted model.

        `topics()` and the plots show these names, and `save` stores them. `fit(X, feature_names=...)` and a fit to a
        data frame set them too. After scikit-learn's Pipeline: `pipe[-1].set_vocabulary(pipe[:-1])`.

        Parameters
        ----------
        vocabulary : sequence of str or fitted vectorizer
            One name for each column, or the vectorizer that made the counts.

        Returns
        -------
        Self
            The estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> model.set_vocabulary(["cat", "dog", "bond", "stock"]).topics(n_words=2)
        topic weight  fit  words
            1  55.0%  95%  stock, bond
            0  45.0%  93%  cat, dog
        """
        check_is_fitted(self)
        self._set_words(word_names("vocabulary", vocabulary, int(self.components_.shape[1])))
        return self

    def _set_words(self, names: Array) -> None:
        self.vocabulary_ = names


class LargestTopic:
    """Prediction of the largest topic, for models with `transform`."""

    def predict(self, X: Any) -> Array:
        """Return the largest topic of documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Data as `transform` takes it.

        Returns
        -------
        array of int of shape (n_documents,)
            Number of the topic with the largest weight; the first of equal ones.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> model.predict(X)
        array([0, 0, 1, 1])
        """
        weights = np.asarray(self.transform(X))  # type: ignore[attr-defined]
        return np.asarray((weights >= weights.max(axis=1, keepdims=True) * (1 - _EQUAL)).argmax(axis=1))


class FittedDecomposition(LargestTopic, CountDecomposition):
    """Base class of estimators that hold a fitted model (`_fitted`) and its training documents (`_training`).

    Attributes of the estimator are read-only properties over these two objects.
    """

    _stored: ClassVar[StoredAttributes] = {
        **CountDecomposition._stored,
        "fitted_": StoredValue(OBJECT, required=True),
        "documents_": StoredValue(either(NULL, OBJECT)),
        "n_features_in_": StoredValue(COUNT, required=True),
        "log_likelihood_": NUMBER_OR_NAN,
        "n_iter_": StoredValue(COUNT),
        "converged_": StoredValue(FLAG),
        "solver_": StoredValue(TEXT),
        "annealing_": StoredArray("**", required=False),  # set by some solvers, as held_out_
        "held_out_": StoredArray("*", required=False),
    }
    _inferences: ClassVar[tuple[type[Any], ...]] = (MaximumLikelihood,)
    _weighs_entries: ClassVar[bool] = False
    """Whether `fit` and `transform` accept missing entries and weights of entries."""
    _edits_topics: ClassVar[bool] = False
    """Whether `with_edited_topics` can merge and remove topics and ban words."""
    _refits: ClassVar[bool] = False
    """Whether `refitting` can start a fit from the current topics."""
    _adds_topics: ClassVar[bool] = False
    """Whether `with_added_topics` can add topics to those of a fit."""
    _fitted: FittedTopics
    """The fitted model, `fitted_` in a file."""
    _training: TrainingDocuments | None = None
    """The training documents, `documents_` in a file; None after `partial_fit`."""
    n_jobs: int | None
    log_likelihood_: float
    history_: dict[str, Array]
    n_iter_: int
    converged_: bool
    solver_: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._weighs_entries:
            with suppress(InputError):  # fit reports the error
                tags.input_tags.allow_nan = accepts_missing_entries(self)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    @property
    def _topics(self) -> FittedTopics:
        """The fitted model. Raises NotFittedError, which is an AttributeError, before a fit."""
        fitted: FittedTopics | None = vars(self).get("_fitted")
        if fitted is None:
            raise NotFittedError(f"This {type(self).__name__} is not fitted: call fit first.")
        return fitted

    @property
    def _documents(self) -> TrainingDocuments:
        """The training documents. Raises AttributeError after `partial_fit`."""
        self._topics  # noqa: B018, raises NotFittedError before a fit
        if self._training is None:
            raise AttributeError(f"This {type(self).__name__} does not know its training documents: use transform.")
        return self._training

    @property
    def components_(self) -> Array:  # type: ignore[override]
        """P(w|z), K x words; rows sum to one."""
        return self._topics.topic_word

    @property
    def topic_weights_(self) -> Floats:
        """P(z), shape (K,)."""
        return self._topics.topic_weights

    @property
    def unigram_(self) -> Floats:
        """P(w) of the training documents."""
        return self._topics.unigram

    @property
    def n_tokens_(self) -> float:
        """Number of training tokens, multiplied by the weights of their documents."""
        return self._topics.n_tokens

    @property
    def vocabulary_(self) -> Array | None:  # type: ignore[override]
        """The word of each column; None if the model does not know the words."""
        return self._topics.vocabulary

    @property
    def doc_weights_(self) -> Floats:
        """P(d) of the training documents."""
        return self._documents.doc_weights

    def with_documents(self, X: Any, sample_weight: Any = None) -> Self:
        """Return a copy of the fitted model whose training documents are X.

        Nothing is fitted: the documents are folded in, and the topics and their inference do not change, except for
        words that occur in X and have probability zero in every topic. Such a word gets its unigram probability in
        every topic (in a tree: in every node that produces words) before the topics are normalized again. In a model
        with a Dirichlet posterior no word has probability zero, unless it was banned.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk (`polyseme.scale.open_shards`).
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.

        Returns
        -------
        Self
            A new fitted model with the parameters and the history of this one.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> more = model.with_documents([[1, 1, 0, 0], [0, 0, 2, 2], [0, 0, 1, 0]])
        >>> more.doc_topic_.shape, np.array_equal(more.components_, model.components_)
        ((3, 2), True)
        """
        check_is_fitted(self)
        return copy(self)._fold_in_documents(X, sample_weight)

    def with_edited_topics(self, groups: Any, banned: Any, X: Any, sample_weight: Any = None) -> Self:
        """Return a copy of the fitted model with merged and removed topics, without some words.

        Nothing is fitted. P(w|z) of a merged topic is the mean of its parts, weighted by P(z); with a Dirichlet
        posterior the expected counts and the priors of its parts are added. Then the documents are folded in.

        Parameters
        ----------
        groups : sequence of sequence of int
            The current topics that each new topic is made of. Topics in no group are removed.
        banned : sequence of int
            Columns of words that get probability zero.
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk. Banned words are removed from an array; shards must be written without them.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.

        Returns
        -------
        Self
            A new fitted model.

        Raises
        ------
        UnsupportedError
            If the topics of such a model depend on each other, or its loss has no likelihood.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(3, random_state=0).fit(X)
        >>> merged = model.with_edited_topics([[0, 2], [1]], [], X)  # topics 0 and 2 become one
        >>> merged.components_.shape
        (2, 4)
        """
        self._check_edits_topics()
        check_is_fitted(self)
        edit = TopicEdit.of(groups, banned, *self._fitted.topic_word.shape)
        model = copy(self)
        model._edit_topics(edit)
        return model._fold_in_documents(X, sample_weight, edit.banned)

    def refitting(self, X: Any) -> Self:
        """Return an unfitted estimator whose `fit(X)` starts from the topics of this model.

        The estimator has the parameters of this one, with `init` set to the topics. Words of X that have probability
        zero in every topic get a probability as in `with_documents`. Set other parameters, such as `callback`, before
        the fit. Ctrl-C during the fit keeps the best model so far.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk.

        Returns
        -------
        Self
            The unfitted estimator.

        Raises
        ------
        UnsupportedError
            If such a model cannot start from given topics.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> more = np.vstack([X, [[1, 1, 0, 0], [0, 0, 2, 2]]])
        >>> bool(model.refitting(more).fit(more).log_likelihood_ >= model.with_documents(more).log_likelihood_)
        True
        """
        self._check_refits()
        check_is_fitted(self)
        model = copy(self)
        with model._corpus_of(X) as corpus:
            model._complete_topics(corpus.unigram)
        return clone(self).set_params(n_components=model._fitted.n_topics, init=model._start_of(X))

    def _check_edits_topics(self) -> None:
        """Raise UnsupportedError if `with_edited_topics` cannot edit the topics of this class or of this fit."""
        if not self._edits_topics:
            raise UnsupportedError(
                f"The topics of a {type(self).__name__} depend on each other and cannot be merged, removed or changed: "
                "rename them, or fit again with another number of topics."
            )
        fitted: FittedTopics | None = vars(self).get("_fitted")
        if fitted is not None and not fitted.inference.is_likelihood:
            # A word that the remaining topics hardly have would dominate a loss such as (x - q)^2 / q.
            raise UnsupportedError(
                f"The topics of a {type(self).__name__} that was fitted to a loss without a likelihood cannot be "
                "merged, removed or changed: rename them, or fit with loss='kullback-leibler'."
            )

    def _check_adds_topics(self) -> None:
        """Raise UnsupportedError if topics cannot be added to those of this class or of this fit."""
        if not self._adds_topics:
            raise UnsupportedError(
                f"Topics cannot be added to those of a {type(self).__name__}: add the documents without new topics, or "
                "fit again."
            )
        if not self._topics.inference.is_likelihood:
            raise UnsupportedError(
                f"Topics cannot be added to a {type(self).__name__} that was fitted to a loss without a likelihood: "
                "fit with loss='kullback-leibler'."
            )

    @property
    def _own_topic_names(self) -> Sequence[str]:
        """Names that the model gives its topics, "" for a topic without a name."""
        return [""] * self._topics.n_topics

    def _predicted(self, doc_topic: Array) -> dict[str, Any]:
        """Return what the model predicts for documents with these topic weights, as columns of a table by name."""
        return {}

    def _check_refits(self) -> None:
        """Raise UnsupportedError if `refitting` cannot start a fit of this class from given topics."""
        if not self._refits:
            raise UnsupportedError(
                f"A {type(self).__name__} cannot start from given topics: fold in the documents with its current "
                "topics, or fit a new model to all documents."
            )

    def _start_of(self, X: Any) -> tuple[Any, Array]:
        """Return the parameter `init` with which a fit to X starts from the topics: it folds in the documents first."""
        return None, self._fitted.topic_word

    def _edit_topics(self, edit: TopicEdit) -> None:
        """Replace the topics of `_fitted` by the edited ones, and change everything that depends on their number."""
        raise NotImplementedError

    def _complete_topics(self, unigram: Floats) -> None:
        """Give words that occur, but have probability zero in all topics, a probability in every topic."""
        fitted = self._fitted
        completed = with_missing_words(fitted.topic_word, fitted.missing_words(unigram), unigram)
        self._fitted = replace(fitted, topic_word=completed)

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        """Return the attributes of the estimator that follow from the training documents and are not in `folded`."""
        return {}

    @contextmanager
    def _corpus_of(self, X: Any, sample_weight: Any = None, banned: Sequence[int] | Array = ()) -> Iterator[Corpus]:
        """Yield the corpus of documents with the words of the fitted model, without banned words."""
        n_threads = effective_threads(self.n_jobs)
        if is_stored(X):
            check_no_weights(sample_weight)
            with stored_session(self, X, n_threads) as corpus:
                check_has_words(corpus)
                if len(banned) and corpus.word_totals[np.asarray(banned)].any():
                    raise InputError("The shards contain banned words: write the shards without them.")
                yield corpus
            return
        data = training_data(self, X, sample_weight, reset=False)
        counts = without_words(data.X, banned) if len(banned) else data.X
        memory = MemoryCorpus(as_counts(counts, self._fitted.topic_word.dtype), data.weights, n_threads)
        check_has_words(memory)
        yield memory

    def _fold_in_documents(self, X: Any, sample_weight: Any, banned: Sequence[int] | Array = ()) -> Self:
        """Fold in documents, and set what follows from them. The estimator must be a copy, because it changes."""
        background = self._fitted.inference.background
        if is_stored(X) and background is not None and background.joint:
            raise UnsupportedError(
                "The training documents of a model with a JointBackground cannot be shards: give an array."
            )
        with self._corpus_of(X, sample_weight, banned) as corpus:
            self._complete_topics(corpus.unigram)
            fitted = self._fitted
            folded = fold_in_training(
                corpus, fitted.topic_word, fitted.inference, active=fitted.active, unigram=corpus.unigram,
                n_tokens=corpus.tokens, n_documents=corpus.documents, vocabulary=fitted.vocabulary,
            )  # fmt: skip
            attributes = self._of_documents(folded, corpus)
        self._set_documents(folded, attributes)
        return self

    def _set_documents(self, folded: FoldedTraining, attributes: Mapping[str, Any]) -> None:
        self._fitted, self._training = folded[:2]
        if self._fitted.inference.is_likelihood:
            self.log_likelihood_ = folded.log_likelihood
        for name, value in attributes.items():
            setattr(self, name, value)

    def _set_words(self, names: Array) -> None:
        self._fitted = replace(self._fitted, vocabulary=names)

    def _set_fitted(
        self, folded: FoldedTraining, end: FitSummary, of_documents: Mapping[str, Any] | None = None
    ) -> None:
        """Set the results of a fit and of folding in, in place of those of an earlier fit.

        `of_documents` are the attributes that `_of_documents` returns.
        """
        clear_fit(self)
        self._set_documents(folded, of_documents or {})
        self.history_, self.n_iter_, self.converged_ = end.history, end.n_iter, end.converged
        self.solver_ = end.solver
        for name, value in end.attributes.items():
            setattr(self, name, value)


def times_components(weights: Any, components: Array) -> Array:
    """Return weights (documents x K) times components (K x words). Raise InputError for weights of another shape."""
    rows = np.asarray(weights)
    if rows.dtype.kind not in "fiu" or rows.ndim != 2 or rows.shape[1] != len(components):
        raise InputError(
            f"X must be a matrix of numbers with a column for each of the {len(components)} components, such as the "
            f"result of transform, got shape {rows.shape}."
        )
    with single_threaded_blas():
        return np.asarray(rows @ components)


def _has_likelihood(estimator: TopicEstimator) -> bool:
    """Return True, or raise UnsupportedError if the model has no likelihood to score words with."""
    if vars(estimator).get("_fitted") is not None:
        estimator._check_likelihood()
    elif not as_loss(getattr(estimator, "loss", KULLBACK_LEIBLER)).is_likelihood:
        raise UnsupportedError("score is a likelihood of held-out words: use loss='kullback-leibler'.")
    return True


class TopicEstimator(FittedDecomposition):
    """Base class of topic models: `fit_transform`, `transform`, the scores and the table of topics."""

    random_state: RandomStateLike

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Self:
        """Fit the model."""
        raise NotImplementedError

    @property
    def doc_topic_(self) -> Array:
        """P(z|d) of the training documents."""
        return self._documents.doc_topic

    @property
    def word_documents_(self) -> Array:
        """Expected number of documents that contain a word and use it in a topic, K x words."""
        return self._word_documents.amounts

    @property
    def topic_documents_(self) -> Floats:
        """Sum of P(z|d) over the training documents, shape (K,)."""
        return self._word_documents.topics

    @property
    def document_frequency_(self) -> Floats:
        """Number of training documents that contain each word."""
        return self._word_documents.words

    @property
    def _word_documents(self) -> WordDocuments:
        word_documents = self._topics.word_documents
        if word_documents is None:
            raise AttributeError("The model has no counts of documents after partial_fit.")
        return word_documents

    def transform(self, X: Any) -> Array:
        """Return the topic weights of documents, with the topics fixed.

        The inference of each document runs until convergence, independently of the others. PLSA and trees maximize the
        likelihood, and a document without known words gets P(z). LDA returns the mean of the posterior q(theta_d), the
        correlated topic model the softmax of the mean of q(eta_d).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk. For shards the result is a file beside them, `transformed.npy`, that is mapped to
            memory.

        Returns
        -------
        array of shape (n_documents, n_topics)
            P(z|d); rows sum to one. The topics of a tree are its leaves.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> weights = model.transform([[3, 1, 0, 0], [0, 0, 1, 1]])
        >>> weights.shape
        (2, 2)
        >>> bool(np.allclose(weights.sum(axis=1), 1))
        True
        """
        return self._doc_topic_of(X)

    def _doc_topic_of(self, X: Any, entry_weight: Any = None) -> Array:
        """Return P(z|d) of documents. Only classes with `_weighs_entries` accept `entry_weight`."""
        check_is_fitted(self)
        n_threads = effective_threads(self.n_jobs)
        if is_stored(X):
            check_no_weights(None, entry_weight)
            with stored_session(self, X, n_threads) as corpus:
                return fold_in_stored(self._fitted, corpus)
        if self._weighs_entries:
            X, entries, _ = observed_data(self, X, entry_weight, reset=False)
        else:
            X, entries = count_data(self, X, reset=False), None
        if entries is not None:
            counts = sparse_counts(X, self.components_.dtype)
            return self._fitted.fold_in(counts, n_threads=n_threads, entries=entries).doc_topic
        batches = row_batches(X, self.components_.dtype)
        return np.concatenate([self._fitted.fold_in(counts, n_threads=n_threads).doc_topic for counts in batches])

    def inverse_transform(self, X: Any) -> Array:
        """Return the distributions of words that topic weights represent, P(w|d) = sum_z P(z|d) P(w|z).

        With a `Background`, its share is mixed in. That of a `JointBackground` differs between documents and does not
        follow from their weights: the result is the topics' part.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_topics)
            P(z|d), as `transform` returns it.

        Returns
        -------
        array of shape (n_documents, n_words)
            P(w|d), dense.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> model.inverse_transform(model.transform(X)).shape
        (4, 4)
        """
        check_is_fitted(self)
        probabilities = times_components(X, self.components_)
        background = self._fitted.inference.background
        if background is None or background.joint:
            return probabilities
        mixed = (1 - background.share) * probabilities + background.share * background.word_probabilities
        return mixed.astype(probabilities.dtype)

    def fold_in(self, X: Any, *, inference: str = MODEL) -> DocumentWeights:
        """Return the topic weights of documents, with the topics fixed, and other results of the inference.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        inference : {"model", "posterior"}, default="model"
            "model": as in `transform`. "posterior": the mean of the posterior under a Dirichlet prior that was learned
            from the training documents. This prior avoids weights of 0 and 1 for documents of a few words. LDA and the
            correlated topic model have their own prior, so for them both are the same.

        Returns
        -------
        DocumentWeights
            `doc_topic` is P(z|d), by default equal to `transform(X)`; `background` is the share of the background in
            each document; `counts` are the counts of known words; `unseen_tokens` is the number of other tokens;
            `bounds` and `parameters` describe the posterior of each document, in models that have one.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> careful = model.fold_in([[1, 0, 0, 0]], inference="posterior")
        >>> bool(model.transform([[1, 0, 0, 0]]).max() > careful.doc_topic.max())
        True
        """
        check_is_fitted(self)
        fitted = with_inference(self._fitted, inference)
        counts = sparse_counts(count_data(self, X, reset=False), self.components_.dtype)
        return fitted.fold_in(counts, n_threads=effective_threads(self.n_jobs))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """Fit the model and return the topic weights of the same documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column.

        Returns
        -------
        array of shape (n_documents, n_topics)
            P(z|d), equal to `transform(X)`. The topics of a tree are its leaves.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import LDA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> LDA(2, random_state=0).fit_transform(X).shape
        (4, 2)
        """
        return self.fit(X, y, sample_weight, feature_names).doc_topic_

    def perplexity(self, X: Any, *, unseen: float | None = None) -> float:
        """Return the perplexity of documents that are folded in on all their words.

        The perplexity is exp(-mean log P(w|d)) over all tokens. The weights of a document are estimated from the same
        words that are scored; `completion_perplexity` scores held-out words instead.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        unseen : float, default=None
            Probability of each word that does not occur in the training documents. None does not score such words.

        Returns
        -------
        float
            The perplexity; lower is better.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> round(model.perplexity(X), 2)
        2.3
        """
        return self.perplexity_report(X, unseen=unseen).perplexity

    def perplexity_report(
        self, X: Any, *, unseen: float | None = None, weights: DocumentWeights | None = None
    ) -> PerplexityReport:
        """Return the result of `perplexity` with the perplexity of the unigram and the numbers of tokens.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        unseen : float, default=None
            Probability of each word that does not occur in the training documents. None does not score such words.
        weights : DocumentWeights, default=None
            Result of `fold_in(X)`, if it is already known. None folds in the documents.

        Returns
        -------
        PerplexityReport
            Perplexity, perplexity of the unigram, and numbers of scored and unseen tokens.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> model.perplexity_report(X)
        Perplexity (folded in) of 31 tokens
                 value
        model      2.3  standard error 0.1
        unigram    3.8
        """
        check_is_fitted(self)
        self._check_likelihood()
        unseen = self._unseen_probability(unseen)
        counts = sparse_counts(count_data(self, X, reset=False), self.components_.dtype)
        n_threads = effective_threads(self.n_jobs)
        if weights is None:
            weights = self._fitted.fold_in(counts, n_threads=n_threads)
        probabilities = self._fitted.token_probabilities(weights, counts, n_threads=n_threads)
        return score_tokens("folded in", counts, probabilities, self.unigram_, unseen=unseen)

    @available_if(_has_likelihood)  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Floats:
        """Return the log-likelihood of each document, sum_w x_dw log P(w|d), folded in on all its words.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        array of shape (n_documents,)
            Natural logarithms. Words that do not occur in the training documents are not scored.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> model.score_samples(X).round(1)
        array([-4.9, -7.7, -5.4, -7.9])
        """
        check_is_fitted(self)
        counts = sparse_counts(count_data(self, X, reset=False), self.components_.dtype)
        n_threads = effective_threads(self.n_jobs)
        weights = self._fitted.fold_in(counts, n_threads=n_threads)
        p = self._fitted.token_probabilities(weights, counts, n_threads=n_threads).astype(np.float64)
        known = self.unigram_[counts.indices] > 0
        with np.errstate(divide="ignore"):
            logs = np.where(known, counts.values * np.log(np.where(known, p, 1.0)), 0.0)
        rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
        return np.bincount(rows, logs, counts.n_docs).astype(np.float64)

    def token_topics(self, X: Any) -> Array:
        """Return the topic weights P(z|d,w) of every word of every document, with the topics fixed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        array of shape (n_nonzeros, n_topics)
            A row for each non-zero count, in the order of `scipy.sparse.csr_array(X)` with sorted columns. Rows sum to
            one, or to one minus the weight of the background; zeros for words that no topic has.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> tokens = model.token_topics([[2, 0, 0, 1]])  # the words 0 and 3
        >>> tokens.argmax(axis=1) == model.predict(np.eye(4))[[0, 3]]
        array([ True,  True])
        """
        check_is_fitted(self)
        counts = sparse_counts(count_data(self, X, reset=False), self.components_.dtype)
        fitted = self._fitted
        weights = fitted.fold_in(counts, n_threads=effective_threads(self.n_jobs))
        operands = fitted.inference.operands(weights, fitted.topic_word)
        A, B = posterior_operands(operands, fitted.inference.temperature)
        joint = A[np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))] * B[counts.indices]
        sums = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, sums, out=np.zeros_like(joint), where=sums > 0)[:, : fitted.n_topics]

    def completion_perplexity(
        self,
        X: Any,
        smoothing: float = 0.01,
        *,
        unseen: float | None = None,
        inference: str | None = None,
        random_state: RandomStateLike = None,
        n_splits: int = 1,
    ) -> float:
        """Return the perplexity of one half of each document, with its weights estimated from the other half.

        Tokens are scored with (1 - smoothing) sum_z P(z|d) P(w|z) + smoothing P(w). The half of each token is drawn by
        a hash of the seed and the content of the document. `completion_report` also returns the standard error.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        smoothing : float, default=0.01
            Weight of the unigram P(w). Without it a single zero of the model makes the perplexity infinite.
        unseen : float, default=None
            Probability of each word that does not occur in the training documents. None does not score such words.
        inference : {"posterior", "model"}, default=None
            How the weights are estimated, as in `fold_in`. None uses "posterior", or "model" if no prior was learned
            (`partial_fit`).
        random_state : int, RandomState or Generator, default=None
            Seed of the splits into halves. None uses that of the estimator, or 0 if it is not an int.
        n_splits : int, default=1
            Number of splits. The documents are folded in and scored once for each.

        Returns
        -------
        float
            The perplexity of the held-out halves; lower is better.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> bool(model.completion_perplexity(X) < model.completion_report(X).unigram_perplexity)
        True
        """
        return self.completion_report(
            X, smoothing, unseen=unseen, inference=inference, random_state=random_state, n_splits=n_splits
        ).perplexity

    def completion_report(
        self,
        X: Any,
        smoothing: float = 0.01,
        *,
        unseen: float | None = None,
        inference: str | None = None,
        random_state: RandomStateLike = None,
        n_splits: int = 1,
    ) -> PerplexityReport:
        """Return the result of `completion_perplexity` with its standard error and the perplexity of the unigram.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        smoothing : float, default=0.01
            Weight of the unigram P(w). Without it a single zero of the model makes the perplexity infinite.
        unseen : float, default=None
            Probability of each word that does not occur in the training documents. None does not score such words.
        inference : {"posterior", "model"}, default=None
            How the weights are estimated, as in `fold_in`. None uses "posterior", or "model" if no prior was learned
            (`partial_fit`).
        random_state : int, RandomState or Generator, default=None
            Seed of the splits into halves. None uses that of the estimator, or 0 if it is not an int.
        n_splits : int, default=1
            Number of splits. The documents are folded in and scored once for each.

        Returns
        -------
        PerplexityReport
            Perplexity with its standard error over documents and splits, perplexity of the unigram, numbers of tokens,
            and the share of tokens that only the smoothing explains.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> report = model.completion_report(X, n_splits=5)
        >>> bool(report.perplexity < report.unigram_perplexity)
        True
        """
        check_is_fitted(self)
        self._check_likelihood()
        smoothing = check_share("smoothing", smoothing)
        unseen = self._unseen_probability(unseen)
        own = self.random_state if isinstance(self.random_state, int | np.integer) else 0
        seed = as_seed(own if random_state is None else random_state)
        n_splits = check_integer("n_splits", n_splits, least=1)
        counts = sparse_counts(count_data(self, X, reset=False), self.components_.dtype)
        n_threads, fitted = effective_threads(self.n_jobs), with_inference(self._fitted, inference)
        reports = []
        for split in range(n_splits):
            halves = split_tokens(counts, seed + (split << 32))  # so no two seeds share a split
            observed, held_out = (counts.with_values(half) for half in halves)
            weights = fitted.fold_in(observed, n_threads=n_threads)
            p = fitted.token_probabilities(weights, held_out, n_threads=n_threads)
            reports.append(score_tokens("completion", held_out, p, self.unigram_, smoothing=smoothing, unseen=unseen))
        return add_splits(reports)

    @available_if(_has_likelihood)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None, *, random_state: RandomStateLike = None, n_splits: int = 1) -> float:
        """Return the mean log-probability of a held-out token, -log `completion_perplexity(X)`.

        Its standard error is `standard_error / perplexity` of `completion_report`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        random_state : int, RandomState or Generator, default=None
            Seed of the splits into halves. None uses that of the estimator, or 0 if it is not an int.
        n_splits : int, default=1
            Number of splits. The documents are folded in and scored once for each.

        Returns
        -------
        float
            The score; higher is better.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> bool(model.score(X) == -np.log(model.completion_perplexity(X)))
        True
        """
        return -float(np.log(self.completion_perplexity(X, random_state=random_state, n_splits=n_splits)))

    @property
    def training_perplexity_(self) -> float:
        """Perplexity of the training documents, `exp(-log_likelihood_)`."""
        return perplexity_of(self.log_likelihood_)

    @property
    def topic_doc_(self) -> Floats:
        """P(d|z), topics x training documents; rows sum to one."""
        return self._topics.symmetric_view(self._documents).topic_doc

    def topics(self, vocabulary: Any = None, *, n_words: int = 10, relevance: float = RELEVANCE) -> TopicTable:
        """Return a table with one row per topic: its id, weight P(z), fit and most relevant words.

        The fit of a topic, sum_d P(d|z) P(z|d), is the mean share that it has in its own documents.

        Parameters
        ----------
        vocabulary : sequence of str or fitted vectorizer, default=None
            The word of each column. None uses the names that the model knows from a data frame, from
            `fit(feature_names=)` or from `set_vocabulary`.
        n_words : int, default=10
            Number of words per topic.
        relevance : float, default=0.5
            Weight lambda between 0 and 1. 1 ranks words by the number of the topic's documents that contain them, 0 by
            how much more frequent they are there than in all documents.

        Returns
        -------
        TopicTable
            Prints as text and in notebooks; `to_pandas()` and `to_polars()` return data frames.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> model.topics(["cat", "dog", "bond", "stock"], n_words=2)
        topic weight  fit  words
            1  55.0%  95%  stock, bond
            0  45.0%  93%  cat, dog
        """
        check_is_fitted(self)
        n_words = check_integer("n_words", n_words, least=1)
        amounts, names = word_amounts(self), names_of_words(self, vocabulary)
        words = words_of_amounts(amounts, names, n_words, relevance=check_share("relevance", relevance))
        fit = np.full(len(self.components_), np.nan)
        if self._training is not None:
            fit = topic_fit(self.doc_topic_, self.topic_doc_)
        notes = []
        if amounts.unit != "documents":
            notes.append("Words are ranked by tokens, because the model has no counts of documents.")
        if vocabulary is None and self.vocabulary_ is None:
            notes.append("The model has no names for its words: set them with set_vocabulary.")
        rows = zip(self._own_topic_names, map(float, self.topic_weights_), map(float, fit), words, strict=True)
        return TopicTable(tuple(Topic(topic, *row) for topic, row in enumerate(rows)), tuple(notes))

    # A notebook shows scikit-learn's diagram and below it the topics of a fitted model.

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_
        return lambda: diagram() + self._topics_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._topics_html()
        return bundle

    def _topics_html(self) -> str:
        return self.topics()._repr_html_() if vars(self).get("_training") is not None else ""

    def _check_likelihood(self) -> None:
        """Raise UnsupportedError if the model has no likelihood to score words with."""
        if not self._fitted.inference.is_likelihood:
            raise UnsupportedError(
                f"This {type(self).__name__} was fitted to a loss without a likelihood, so it has no perplexity and no "
                "score: use loss='kullback-leibler'."
            )

    def _unseen_probability(self, unseen: Any) -> float | None:
        """Check the probability of each word that does not occur in training: in total it must be below 1."""
        if unseen is None:
            return None
        n_unseen = int(np.count_nonzero(self.unigram_ == 0))
        probability = check_share("unseen", unseen)
        if not 0 < probability * max(n_unseen, 1) < 1:
            raise InputError(f"unseen must be above 0 and, times the {n_unseen} unseen words, below 1, got {unseen!r}.")
        return probability


def share_fit(source: FittedDecomposition, target: FittedDecomposition) -> None:
    """Set the fit of one estimator in another that has the same fitted model and training documents."""
    clear_fit(target)
    names = ("n_features_in_", "feature_names_in_", "_fitted", "_training", "log_likelihood_", "history_", "n_iter_")
    for name in (*names, "converged_", "solver_"):
        if name in vars(source):  # feature names are optional
            setattr(target, name, getattr(source, name))


@contextmanager
def stored_session(estimator: FittedDecomposition, shards: Any, n_threads: int) -> Iterator[Corpus]:
    """Yield the corpus of shards whose words are those of a fitted model."""
    if shards.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"The shards have {shards.shape[1]} words, but the model has {estimator.n_features_in_}: "
            "write the shards with the vocabulary of the model."
        )
    with shards.session(estimator._fitted.topic_word.dtype, n_threads) as corpus:
        yield corpus


def fold_in_stored(fitted: FittedTopics, corpus: Corpus) -> Array:
    """Return P(z|d) of the documents of shards, mapped from a file beside them."""
    job = FoldIn(fitted.inference.without_arrays(), fitted.active, corpus.tokens, fitted.topic_weights)
    return corpus.fold_in(job, (fitted.topic_word, *fitted.inference.arrays)).arrays["doc_topic"]


def fit_starts(corpus: Corpus, random_state: Any, checkpoint: Any = None) -> FitStarts:
    """Return the starts of a fit. Their states are stored in a given checkpoint, or in a folder of the corpus.

    Without a seed nothing is stored in the folder of the corpus, because no other call could resume the fit.
    """
    default = corpus.fit_folder
    if checkpoint is None and (default is None or not isinstance(random_state, int | np.integer)):
        return FitStarts()
    return FitFolder.of(checkpoint, default or Path())


def load(path: str | PathLike[str], *, check_documents: bool = True) -> Estimator | TopicPipeline:
    """Load a model or a pipeline that was written by `save`, or the model of a run.

    Nothing in the file is executed: it holds arrays and parameters only. The arrays of the training documents of a run
    are files beside its model, which are mapped to memory.

    Parameters
    ----------
    path : str or path-like
        The model file.
    check_documents : bool, default=True
        Whether to check the digests of arrays in files beside the model file. False is for files that were already
        checked.

    Returns
    -------
    estimator
        The fitted model, or the TopicPipeline of a vectorizer and a model.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or was written by a newer version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from polyseme import PLSA, load
    >>> model = PLSA(2, random_state=0).fit(np.eye(4))
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model")
    ...     again = load(Path(folder) / "model")
    >>> bool((again.components_ == model.components_).all())
    True
    """
    from polyseme import estimators
    from polyseme.core.model import Background, JointBackground
    from polyseme.estimators.lda import VARIATIONAL_SOLVERS
    from polyseme.losses import Beta
    from polyseme.losses.absolute import Absolute
    from polyseme.losses.chi_square import ChiSquare
    from polyseme.losses.penalized import Penalized, Penalty
    from polyseme.priors import MEMBERS
    from polyseme.solvers import TreeGrowth

    named: tuple[type[Any], ...] = (*SOLVERS.values(), *VARIATIONAL_SOLVERS.values(), *MEMBERS)
    losses = (Absolute, Beta, ChiSquare, Penalized, Penalty)
    others: tuple[type[Any], ...] = (EarlyStopping, TreeGrowth, Background, JointBackground, *losses)
    settings = {part.__name__: part for part in (*named, *others)}
    classes = {name: getattr(estimators, name) for name in estimators.__all__}
    return models.restore(path, classes, settings, pipeline=_pipeline, check_documents=check_documents)


def _pipeline(model: Any, description: Any) -> TopicPipeline:
    from polyseme.text.vectorizer import TopicPipeline

    return TopicPipeline._of_description(model, description)
