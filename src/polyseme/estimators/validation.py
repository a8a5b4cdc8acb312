"""Checks of parameters and data that estimators share.

- `count_data` and `training_data`: validated counts, for `transform` and for `fit`. `training_corpus`: the corpus of a
  fit.
- `model_from_parameters`: the `Model` (background and priors) that the parameters of a PLSA describe.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, check_non_negative, validate_data

from polyseme.core.model import Model, as_background, as_loss
from polyseme.data.corpus import Corpus, MemoryCorpus, is_stored
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, DenseCounts, Floats, check_sparse, padded
from polyseme.losses import HiddenEntries
from polyseme.losses.entry_weights import DenseWeights, EntryWeights, StoredWeights, stored
from polyseme.priors.base import DOCUMENTS, TOPICS, Prior
from polyseme.priors.members import as_prior
from polyseme.solvers import EarlyStopping
from polyseme.solvers.base import SOLVERS, FitProblem, Solver, check_solver
from polyseme.utils import check_range, got, word_names

if TYPE_CHECKING:
    from polyseme.estimators.plsa import PLSA


_ANNOTATED = ("anndata", "mudata")
"""Packages whose objects hold counts together with other tables."""


def count_data(estimator: Any, X: Any, *, reset: bool, missing: bool = False) -> Any:
    """Return X as a CSR matrix or a dense array of non-negative finite numbers, its features checked against the fit.

    With `missing`, a dense array may contain NaN. Sparse data may have unsorted entries, duplicates (which are added
    up) and unused memory after its entries. Indices that do not fit its shape raise InputError before scipy or a kernel
    uses them to access memory.
    """
    names = annotated_names(X)
    if names is not None:
        known = None if reset else getattr(estimator, "vocabulary_", None)
        if known is not None and not np.array_equal(known, names):
            raise InputError("X has other genes than the data of the fit, or another order: use adata[:, genes].")
        X = X.X
    check_not_shards(estimator, X)
    _check_numeric(X)
    given = without_subclass(check_sparse(X))
    X = validate_data(
        estimator,
        given,
        reset=reset,
        accept_sparse="csr",
        accept_large_sparse=True,
        dtype="numeric",
        order="C",
        ensure_all_finite=False,  # scikit-learn's own message is very long
    )
    if sp.issparse(X):
        if X is not given:
            check_sparse(X)  # converted from another format or from a data frame
        if X.indices.size > X.nnz:
            X = type(X)((X.data[: X.nnz], X.indices[: X.nnz], X.indptr), X.shape)
    if X.dtype == np.float16:
        X = X.astype(np.float32)
    elif X.dtype == np.longdouble and X.dtype != np.float64:  # not supported by scipy.sparse and the kernels
        with np.errstate(over="ignore"):  # infinity raises an error below
            X = X.astype(np.float64)
    elif not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    elif sp.issparse(X) and X.dtype.kind in "iu" and X.dtype.itemsize < 8 and not X.has_canonical_format:
        X = X.astype(np.int64)  # a sum of duplicates may not fit in fewer bits
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind == "f" and np.isnan(values).any():
        if not missing or sp.issparse(X):
            raise InputError("Input X contains NaN or masked entries: every count must be a finite number.")
        values = np.nan_to_num(values, nan=0.0, posinf=np.inf)
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise InputError("Input X contains infinity (inf): every count must be a finite number.")
    check_non_negative(X if sp.issparse(X) else values, type(estimator).__name__)
    check_range("Every count", values, working_dtype(estimator, X, reset))
    return X


def annotated_names(X: Any) -> Array | None:
    """Return the names of the genes of an AnnData; None for other data."""
    if not any(f"{kind.__module__.partition('.')[0]}.{kind.__name__}" == "anndata.AnnData" for kind in type(X).__mro__):
        return None
    return np.array([str(name) for name in X.var_names], dtype=object)


def without_subclass(X: Any) -> Any:
    """Return a matrix of scipy or an array of numpy for an object of a subclass, such as a view in another library.

    Masked entries become NaN. A `numpy.matrix` stays one, which scikit-learn refuses.
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        return np.ma.filled(X.astype(np.result_type(X, np.float32)), np.nan)
    if sp.issparse(X):
        kind = next(base for base in type(X).__mro__ if base.__module__.partition(".")[0] == "scipy")
        return X if type(X) is kind else kind(X)
    return np.asarray(X) if isinstance(X, np.ndarray) and not isinstance(X, np.matrix) else X


class ObservedData(NamedTuple):
    """Counts of which some entries may be missing or have weights."""

    X: Any
    """Counts x, CSR or dense; v x if the entries have weights v."""
    entries: EntryWeights | None = None
    """Weights of the entries; None if all entries of a document have the same weight."""
    row_weights: Floats | None = None
    """Weights of the documents, if all entries of each document have the same weight; None if all are one."""


def observed_data(estimator: Any, X: Any, entry_weight: Any, *, reset: bool) -> ObservedData:
    """Return the counts and the weights of their entries. NaN in a dense array is a missing entry.

    Raise InputError if the weights do not fit X, are negative or not finite, if a document has no observed entry, if a
    word has none (in a fit), or if X is NaN where its weight is positive.
    """
    X = count_data(estimator, X, reset=reset, missing=True)
    dtype = working_dtype(estimator, X, reset)
    missing = None
    if not sp.issparse(X) and X.dtype.kind == "f" and np.isnan(X).any():
        missing = np.isnan(X)
        X = np.where(missing, 0, X)
    if entry_weight is None and missing is None:
        return ObservedData(X)
    if entry_weight is None:
        assert missing is not None
        entries: EntryWeights = DenseWeights(DenseCounts(np.asarray(~missing, dtype=dtype)))
    else:
        weights = _entry_weights(entry_weight, X.shape, dtype)
        if missing is not None:
            rows, columns = np.nonzero(missing)
            wrong = np.flatnonzero(weights[rows] if isinstance(weights, np.ndarray) else weights.at(rows, columns))
            if wrong.size:
                row, column = rows[wrong[0]], columns[wrong[0]]
                raise InputError(
                    f"X is NaN in row {row}, column {column}, where entry_weight is positive: give a missing entry the "
                    "weight 0."
                )
        if isinstance(weights, np.ndarray):
            return ObservedData(X, None, None if (weights == 1).all() else weights)
        entries = weights
    if reset:  # for new documents, the inference of the fitted model checks this
        declared_model(estimator).check_weighs_entries()
    _check_observed(entries, X.shape, dtype, reset)
    weighted = entries.times(X).astype(dtype)
    values = weighted.data if sp.issparse(weighted) else weighted
    check_range("Every count times its entry_weight", values, dtype)
    return ObservedData(weighted, entries)


def _entry_weights(given: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> EntryWeights | Floats:
    """Return checked weights of entries; one weight per document if all entries of each document have the same one."""
    if isinstance(given, EntryWeights):
        return given
    hidden = isinstance(given, HiddenEntries)
    table = given.pattern if hidden else given
    if not sp.issparse(table):
        try:
            table = np.asarray(table)
        except ValueError:  # rows of different lengths
            table = np.empty(0)
    if table.shape != shape:
        raise InputError(f"entry_weight must have the shape of X, {shape}, got {table.shape}.")
    if hidden:
        return given.weights(dtype) if table.nnz else np.ones(shape[0])
    if table.dtype.kind not in "biuf":
        raise InputError("entry_weight must be a table of numbers of at least 0, or of booleans.")
    values = (check_sparse(table, "entry_weight").data if sp.issparse(table) else table).astype(np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("entry_weight must be finite and not negative: 0 is the weight of a missing entry.")
    check_range("Every entry_weight", values, dtype)
    if sp.issparse(table):
        counts = stored(table, dtype)
        if counts.values.size < shape[0] * shape[1]:
            return StoredWeights(counts)
        values = counts.matrix().toarray().astype(np.float64)
    if (values == values[:, :1]).all() and (values > 0).all():
        return np.asarray(values[:, 0])
    return DenseWeights(DenseCounts(np.ascontiguousarray(values, dtype=dtype)))


def _check_observed(entries: EntryWeights, shape: tuple[int, int], dtype: np.dtype[Any], fits: bool) -> None:
    """Raise InputError if all entries of a document or, in a fit, all entries of a word are missing."""
    ones = [padded(np.ones((size, 1)), dtype) for size in shape]
    for what, sums in (("row", entries.over_words(ones[1])), ("column", entries.over_docs(ones[0]))):
        empty = np.flatnonzero(~(sums[:, 0] > 0))
        if empty.size and (fits or what == "row"):
            raise InputError(f"All entries of {what} {empty[0]} are missing: leave such a {what} out of X.")


class Training(NamedTuple):
    """Corpus of a fit, and its words."""

    corpus: Corpus
    vocabulary: Array | None
    """The word of each column."""


@contextmanager
def training_corpus(
    estimator: Any, X: Any, sample_weight: Any, feature_names: Any, n_threads: int, entry_weight: Any = None
) -> Iterator[Training]:
    """Set the features of the estimator, and yield the corpus of a fit to counts or to shards, with the words."""
    dtype = estimator.get_params(deep=False).get("dtype")
    if not is_stored(X):
        data = training_data(
            estimator, X, sample_weight, feature_names=feature_names, entry_weight=entry_weight,
            missing=type(estimator)._weighs_entries,
        )  # fmt: skip
        corpus = MemoryCorpus.of(data.X, factor_dtype(dtype, data.X), data.weights, n_threads, data.entries)
        yield Training(corpus, data.vocabulary)
        return
    check_no_weights(sample_weight, entry_weight)
    estimator.n_features_in_ = X.shape[1]
    vars(estimator).pop("feature_names_in_", None)
    vocabulary = names_or_none(X.vocabulary if feature_names is None else feature_names, X.shape[1])
    with X.session(factor_dtype(dtype, X), n_threads) as corpus:
        check_has_words(corpus)
        yield Training(corpus, vocabulary)


def check_has_words(corpus: Corpus) -> None:
    """Raise InputError if no document has a word."""
    if not corpus.tokens > 0:
        raise InputError("There is nothing to fit: the documents have no words.")


def check_no_weights(sample_weight: Any, entry_weight: Any = None) -> None:
    """Raise UnsupportedError if weights are given for the documents or the entries of shards."""
    if entry_weight is not None:
        raise UnsupportedError("Shards have no weights of entries: give the counts as an array to use entry_weight.")
    if sample_weight is not None:
        raise UnsupportedError(
            "Shards have no weights: leave sample_weight out, or repeat the documents when you write the shards."
        )


def init_parts(init: Any) -> tuple[Any, ...]:
    """Return the parameter `init` as a name or as arrays, to identify a checkpoint. They are checked later."""
    if not isinstance(init, tuple | list):
        return (init,)
    try:
        return tuple(None if factor is None else np.asarray(factor) for factor in init)
    except ValueError:  # rows of different lengths
        return (init,)


class TrainingData(NamedTuple):
    """Validated counts of a fit."""

    X: Any
    """Counts, CSR or dense."""
    weights: Floats | None
    """Weights of the documents; None if all are one."""
    vocabulary: Array | None
    """The word of each column."""
    entries: EntryWeights | None = None
    """Weights v of the entries, where X is v x; None if all are one."""


def training_data(
    estimator: Any, X: Any, sample_weight: Any, *, feature_names: Any = None, reset: bool = True,
    entry_weight: Any = None, missing: bool = False,
) -> TrainingData:  # fmt: skip
    """Return the counts of a fit, the weights of its documents and the names of its words.

    The names are `feature_names`, or else the columns of a data frame. Raise InputError if no document with a positive
    weight has a token.
    """
    observed = ObservedData(None)
    if feature_names is None:
        feature_names = annotated_names(X)
    if missing:
        observed = observed_data(estimator, X, entry_weight, reset=reset)
        X = observed.X
    else:
        X = count_data(estimator, X, reset=reset)
    if feature_names is None:
        feature_names = vars(estimator).get("feature_names_in_")
    vocabulary = names_or_none(feature_names, X.shape[1])
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        check_range("Every sample weight", weights, working_dtype(estimator, X, reset))
    if observed.row_weights is not None:
        weights = observed.row_weights if weights is None else weights * observed.row_weights
    row_sums = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    if not (row_sums if weights is None else row_sums * weights).sum() > 0:
        raise InputError("There is nothing to fit: every document is empty or has weight zero.")
    return TrainingData(X, weights, vocabulary, observed.entries)


def names_or_none(feature_names: Any, size: int) -> Array | None:
    """Return the names of the `size` words; None without names."""
    return None if feature_names is None else word_names("feature_names", feature_names, size)


def factor_dtype(dtype: Any, X: Any) -> np.dtype[Any]:
    """Return the dtype of the factors: `dtype` if given, else float64 for float64 data and float32 for other data."""
    if dtype is None:
        return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)
    for known in (np.dtype(np.float32), np.dtype(np.float64)):
        if isinstance(dtype, str | type | np.dtype) and dtype in (known.name, known.type, known):
            return known
    raise InputError(f"dtype must be None, float32 or float64, got {dtype!r}.")


def working_dtype(estimator: Any, X: Any, reset: bool) -> np.dtype[Any]:
    """Return the dtype of the factors of a fitted estimator or, with `reset`, of a fit to X."""
    if not reset and hasattr(estimator, "components_"):
        return factor_dtype(estimator.components_.dtype, X)
    return factor_dtype(estimator.get_params(deep=False).get("dtype"), X)


def check_not_shards(estimator: Any, X: Any) -> None:
    """Raise an error for shards and for annotated data (AnnData), where only arrays are accepted."""
    if is_stored(X):
        raise UnsupportedError(
            f"This method of {type(estimator).__name__} takes no shards, which are for fit and transform of PLSA, NMF, "
            "LDA and HierarchicalPLSA: give the counts of some documents. Iterating over the shards yields the counts "
            "of one shard after the other."
        )
    if sp.issparse(X) or isinstance(X, np.ndarray) or hasattr(X, "columns"):
        return  # possibly a view of one of the tables of such an object
    if any(kind.__module__.partition(".")[0] in _ANNOTATED for kind in type(X).__mro__):
        raise InputError(
            f"X is an object of the class {type(X).__name__}: pass its matrix of counts, a row for each cell, such as "
            "adata.X or adata.layers['counts']."
        )


def clear_fit(estimator: Any) -> None:
    """Remove the attributes of an earlier fit, except those that validation of the new data has just set."""
    fitted = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    for name in {*fitted, "_fitted", "_training"} & vars(estimator).keys() - {"n_features_in_", "feature_names_in_"}:
        delattr(estimator, name)


def as_solver(solver: Any) -> Solver:
    """Return the solver object, or the solver of that name with its default settings."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(map(repr, SOLVERS))} or a solver object, {got(solver)}")
        return SOLVERS[solver]()
    if not isinstance(solver, Solver):
        raise InputError(
            f"solver must be a name or a solver object such as polyseme.solvers.Tempered(0.9), got {solver!r}."
        )
    return solver


def with_early_stopping(early_stopping: Any, solver: Solver) -> Solver:
    """Return the solver, wrapped in EarlyStopping if the parameter `early_stopping` is set."""
    if early_stopping is None or early_stopping is False:
        return solver
    if not isinstance(early_stopping, EarlyStopping):
        raise InputError(
            f"early_stopping must be None or a solver such as polyseme.solvers.EarlyStopping(), got {early_stopping!r}."
        )
    return early_stopping if early_stopping.solver is not None else replace(early_stopping, solver=solver)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Begin the message of an InputError about a prior with the name of the parameter."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def declared_model(estimator: Any, n_topics: int = 1) -> Model:
    """Return the model that the parameters of a PLSA or NMF describe, before it is adapted to data."""
    given = estimator.get_params(deep=False)
    priors: dict[str, Prior | None] = {}
    for name in ("doc_topic_prior", "topic_word_prior"):
        with _naming(name):
            priors[name] = as_prior(given.get(name))
    doc_prior, word_prior = priors.values()
    background, loss = as_background(given.get("background")), as_loss(estimator.loss)
    return Model(n_topics, background=background, doc_prior=doc_prior, word_prior=word_prior, loss=loss)


def accepts_missing_entries(estimator: Any) -> bool:
    """Return whether the model and the solver that the parameters of a PLSA or NMF describe fit missing entries."""
    model = declared_model(estimator)
    if not model.weighs_entries:
        return False
    solver = with_early_stopping(estimator.early_stopping, as_solver(estimator.solver))
    observed = DenseWeights(DenseCounts(np.array([[0.0, 1.0], [1.0, 1.0]])))
    corpus = MemoryCorpus.of(np.array([[0.0, 1.0], [1.0, 2.0]]), np.dtype(np.float64), None, 1, observed)
    try:
        check_solver(solver, FitProblem(model, corpus), checkpoint=estimator.get_params().get("checkpoint") is not None)
    except UnsupportedError:
        return False
    return True


def model_from_parameters(
    estimator: PLSA, K: int, corpus: Corpus, vocabulary: Array | None, *, free_scale: bool = False
) -> Model:
    """Return the model that the parameters of a PLSA describe, its priors checked against the shape of the data.

    `free_scale` says whether the scale of documents is free with a loss other than Kullback-Leibler, as in NMF.
    """
    declared = declared_model(estimator, K)
    background, doc_prior, word_prior = declared.background, declared.doc_prior, declared.word_prior
    if word_prior is not None and vocabulary is not None:
        word_prior = word_prior.resolve(list(vocabulary))
    if word_prior is not None:
        word_prior = word_prior.with_documents(corpus.documents)
    sides = (
        ("doc_topic_prior", doc_prior, DOCUMENTS, (corpus.all_documents.n_docs, K)),
        ("topic_word_prior", word_prior, TOPICS, (K, corpus.n_words)),
    )
    for name, prior, factor, shape in sides:
        if prior is not None:
            for part in prior.parts:
                if factor not in part.acts_on:
                    raise InputError(
                        f"{name} is a prior on {factor}, but {type(part).__name__} acts on {part.acts_on[0]} only."
                    )
            with _naming(name):
                prior.check(shape)
    if not (declared.loss.is_likelihood or declared.is_plain):
        raise UnsupportedError(
            f"loss={declared.loss.name!r} has no likelihood that a prior or a background could change: leave "
            "background, doc_topic_prior and topic_word_prior out."
        )
    if doc_prior is not None and corpus.kept is not None:
        doc_prior = doc_prior.with_rows(corpus.kept)
    if background is not None and background.joint and doc_prior is not None:
        raise UnsupportedError("JointBackground has no P(z|d) that doc_topic_prior could act on: use Background.")
    model = replace(
        declared,
        background=None if background is None else background.resolve(corpus.unigram),
        doc_prior=None if doc_prior is None or doc_prior.neutral else doc_prior,
        word_prior=None if word_prior is None or word_prior.neutral else word_prior,
        free_scale=free_scale,
    )
    if not (corpus.in_memory or model.is_separable):
        raise UnsupportedError(
            "Shards are read one at a time: use no JointBackground, and no prior that compares or names documents."
        )
    return model


def _check_numeric(X: Any) -> None:
    """Raise InputError for complex numbers and text, because scikit-learn's own messages print the data."""
    dtypes = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", ()))
    if not dtypes:
        try:
            dtypes = [np.asarray(X).dtype]
        except ValueError:
            return  # ragged rows: scikit-learn's message is clear
    kinds = {getattr(dtype, "kind", "") for dtype in dtypes}
    if "c" in kinds:
        raise InputError("Complex data not supported: every count must be a real number of at least 0.")
    objects = np.asarray(X, dtype=object).ravel() if "O" in kinds and not sp.issparse(X) else ()
    if kinds & {"U", "S", "T"} or any(isinstance(value, str | bytes) for value in objects):
        raise InputError("X contains text instead of numbers: count the words first, for example with CountVectorizer.")
