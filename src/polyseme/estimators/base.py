"""Checks of parameters and data, each with one sentence that says what to do.

The model that a PLSA's parameters ask for: its background and its priors.

What every estimator of components is to scikit-learn, and how it is saved.

What every topic model offers once it is fitted: perplexities, a score, a table of topics, a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_non_negative, validate_data

from polyseme.core.factors import symmetric_view
from polyseme.core.holdout import split_tokens
from polyseme.core.model import FixedBackground, Model, as_background
from polyseme.core.shard import sparse_counts
from polyseme.data.corpus import Corpus
from polyseme.data.disk import DiskCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.tables import Topic, TopicTable, names_of_words, words_of_amounts
from polyseme.io import models
from polyseme.kernels import Array, Floats, SparseCounts, checked_sparse
from polyseme.metrics import PerplexityReport, perplexity_of, score_tokens, topic_fit
from polyseme.metrics.words import RELEVANCE, word_amounts
from polyseme.priors import DOCUMENTS, TOPICS, Prior, as_prior
from polyseme.solvers import SOLVERS, EarlyStopping, Solver
from polyseme.utils import check_range, check_share, check_whole_number, word_names

if TYPE_CHECKING:
    from polyseme.estimators.plsa import PLSA


_ANNOTATED = ("anndata", "mudata")
"""packages whose objects hold counts together with other tables"""


def clear_fit(estimator: Any) -> None:
    """Removes what an earlier fit left, but for what validation has just set."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        if name not in ("n_features_in_", "feature_names_in_", "vocabulary_"):
            delattr(estimator, name)


def set_vocabulary(estimator: Any, names: Any, size: int) -> None:
    """Sets vocabulary_ to the names of the `size` words; None, the default of the class, where they are not known."""
    vars(estimator).pop("vocabulary_", None)
    if names is not None:
        estimator.vocabulary_ = word_names("feature_names", names, size)


def refuse_other_factors(name: str, prior: Prior, factor: str) -> None:
    """Raises InputError if a part of the prior `name` cannot act on `factor`."""
    for part in prior.parts:
        if factor not in part.acts_on:
            raise InputError(f"{name} is on {factor}, but {type(part).__name__} acts on {part.acts_on[0]} only.")


def as_solver(solver: Any) -> Solver:
    """A solver object, or the one of that name with its default settings."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise InputError(
                f"solver must be one of {', '.join(map(repr, SOLVERS))} or a solver object, got {solver!r}."
            )
        return SOLVERS[solver]()
    if isinstance(solver, type) or not hasattr(solver, "begin"):
        raise InputError(f"solver must be a name or a solver object such as polyseme.solvers.EM(), got {solver!r}.")
    return solver


def with_early_stopping(early_stopping: Any, solver: Solver) -> Solver:
    """The solver, its iterations ended by held-out words if `early_stopping` asks for it."""
    if early_stopping is None or early_stopping is False:
        return solver
    if early_stopping is True:
        early_stopping = EarlyStopping()
    if not isinstance(early_stopping, EarlyStopping):
        raise InputError(
            f"early_stopping must be None, True or a polyseme.solvers.EarlyStopping, got {early_stopping!r}."
        )
    return early_stopping if early_stopping.solver is not None else replace(early_stopping, solver=solver)


def _check_numeric(X: Any) -> None:
    """scikit-learn's own messages print the data."""
    dtypes = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", ()))
    if not dtypes:
        try:
            dtypes = [np.asarray(X).dtype]
        except ValueError:
            return  # ragged: scikit-learn says so well
    kinds = {getattr(dtype, "kind", "") for dtype in dtypes}
    if "c" in kinds:
        raise InputError("Complex data not supported: every count must be a real number of at least 0.")
    if kinds & {"U", "S", "T"} or ("O" in kinds and not sp.issparse(X) and _has_text(X)):
        raise InputError("X holds text where numbers belong: count the words first, for example with CountVectorizer.")


def _has_text(X: Any) -> bool:
    return any(isinstance(value, str | bytes) for value in np.asarray(X, dtype=object).ravel())


def check_not_shards(estimator: Any, X: Any) -> None:
    """For what only takes arrays."""
    if isinstance(X, DiskCorpus):
        raise UnsupportedError(
            f"This part of {type(estimator).__name__} takes no shards, which are for PLSA's fit and transform: give "
            "the counts of some documents; iterating over shards gives those of one shard after the other."
        )
    if any(kind.__module__.partition(".")[0] in _ANNOTATED for kind in type(X).__mro__):
        raise InputError(
            f"X is an object of the class {type(X).__name__}: pass its matrix of counts, a row for each cell, such as "
            "adata.X or adata.layers['counts']."
        )


def count_data(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a CSR matrix or a dense array of non-negative finite numbers, its features checked against the fit.

    Sparse data may have unsorted entries, duplicates (which are added up) and unused memory after its entries. Indices
    that do not fit its shape raise InputError, before scipy or a kernel reads memory by them.
    """
    check_not_shards(estimator, X)
    _check_numeric(X)
    given = checked_sparse(X)
    X = validate_data(
        estimator,
        given,
        reset=reset,
        accept_sparse="csr",
        accept_large_sparse=True,
        dtype="numeric",
        order="C",
        ensure_all_finite=False,  # scikit-learn's own message is a page long
    )
    if sp.issparse(X):
        if X is not given:
            checked_sparse(X)  # made from a format that is not checked itself, or from a data frame
        if X.indices.size > X.nnz:
            X = type(X)((X.data[: X.nnz], X.indices[: X.nnz], X.indptr), X.shape)
    if X.dtype == np.float16:
        X = X.astype(np.float32)
    elif X.dtype == np.longdouble and X.dtype != np.float64:  # which scipy.sparse and the kernels do not take
        with np.errstate(over="ignore"):  # infinity is refused below
            X = X.astype(np.float64)
    elif not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    elif sp.issparse(X) and X.dtype.kind in "iu" and X.dtype.itemsize < 8 and not X.has_canonical_format:
        X = X.astype(np.int64)  # where the sum of duplicates fits
    values = X.data if sp.issparse(X) else X
    for name, wrong in (("NaN", np.isnan), ("infinity (inf)", np.isinf)):
        if values.dtype.kind == "f" and wrong(values).any():
            raise InputError(f"Input X contains {name}: every count must be a finite number.")
    check_non_negative(X, type(estimator).__name__)
    check_range("Every count", values, working_dtype(estimator, X, reset))
    return X


def working_dtype(estimator: Any, X: Any, reset: bool) -> np.dtype[Any]:
    """The dtype of an estimator's factors: as fitted, or as a fit to X makes them."""
    if not reset and hasattr(estimator, "components_"):
        return factor_dtype(estimator.components_.dtype, X)
    return factor_dtype(estimator.get_params(deep=False).get("dtype"), X)


def training_data(
    estimator: Any, X: Any, sample_weight: Any, *, feature_names: Any = None, reset: bool = True
) -> tuple[Any, Floats | None]:
    """`count_data` of a fit, with its weights (None: all one); at least one token of weight is needed.

    Sets vocabulary_ from `feature_names`, or else from the columns of a frame.
    """
    X = count_data(estimator, X, reset=reset)
    if reset or feature_names is not None:
        names = getattr(estimator, "feature_names_in_", None) if feature_names is None else feature_names
        set_vocabulary(estimator, names, X.shape[1])
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        check_range("Every sample weight", weights, working_dtype(estimator, X, reset))
    row_sums = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    if not (row_sums if weights is None else row_sums * weights).sum() > 0:
        raise InputError("There is nothing to fit: every document is empty (or has weight zero).")
    return X, weights


def factor_dtype(dtype: Any, X: Array | sp.csr_array | DiskCorpus) -> np.dtype[Any]:
    """The dtype of the factors: as asked, else float64 for float64 data and float32 for integers and float32."""
    if dtype is None:
        return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)
    for known in (np.dtype(np.float32), np.dtype(np.float64)):
        if isinstance(dtype, str | type | np.dtype) and dtype in (known.name, known.type, known):
            return known
    raise InputError(f"dtype must be None, float32 or float64, got {dtype!r}.")


def model_from_parameters(estimator: PLSA, K: int, corpus: Corpus) -> Model:
    """The model that the parameters describe, checked against the data."""
    background = as_background(estimator.background)
    doc_prior, word_prior = as_prior(estimator.doc_topic_prior), as_prior(estimator.topic_word_prior)
    names = estimator.vocabulary_
    if word_prior is not None and names is not None:
        word_prior = word_prior.resolve(list(names))
    sides = (
        ("doc_topic_prior", doc_prior, DOCUMENTS, (corpus.n_docs, K)),
        ("topic_word_prior", word_prior, TOPICS, (K, corpus.n_words)),
    )
    for name, prior, factor, shape in sides:
        if prior is not None:
            refuse_other_factors(name, prior, factor)
            prior.check(shape)
    if background is not None and background.joint and doc_prior is not None:
        raise UnsupportedError(
            "JointBackground leaves P(d|z) free, so there is no P(z|d) for doc_topic_prior: use Background."
        )
    fixed = None
    if background is not None:
        fixed = FixedBackground(background.share, background.probabilities(corpus.unigram), background.joint)
    return Model(
        K,
        background=fixed,
        doc_prior=None if doc_prior is None or doc_prior.neutral else doc_prior,
        word_prior=None if word_prior is None or word_prior.neutral else word_prior,
    )


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
        models.save(self, path)

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
        smoothing = check_share("smoothing", smoothing)
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
        n_words = check_whole_number("n_words", n_words, least=1)
        amounts, names = word_amounts(self), names_of_words(self, vocabulary)
        words = words_of_amounts(amounts, names, n_words, relevance=check_share("relevance", relevance))
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
        probability = check_share("unseen", unseen)
        if not 0 < probability * max(n_unseen, 1) < 1:
            raise InputError(f"unseen must be above 0 and, times the {n_unseen} unseen words, below 1, got {unseen!r}.")
        return probability
