"""Cross-validation of topic models by documents, by tokens or by masked entries.

`DocumentScores` holds held-out log-probabilities by document, so that two models can be compared on the same documents.
The mean log-probability of a token is a ratio, sum_d l_d / sum_d n_d. Its standard error comes from the residuals l_d -
mean n_d of the documents: documents are independent, tokens of one document are not. The difference of two models on
the same documents is such a ratio too. Its standard error is much smaller than that of either model, because a document
that is hard to predict is hard for both.

`fit_masked` fits a matrix with hidden entries and predicts them, after Wold, S. (1978). Cross-validatory estimation of
the number of components in factor and principal components models. Technometrics 20, 397-405.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from polyseme.core.fitted import FittedTopics
from polyseme.core.holdout import Mask, SparseMask, diagonal_masks, split_hidden, split_in_parts, split_tokens
from polyseme.core.model import Model
from polyseme.core.shard import sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import count_data, factor_dtype
from polyseme.estimators.nmf import NMF
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.losses import KULLBACK_LEIBLER
from polyseme.metrics.perplexity import perplexity_of
from polyseme.metrics.words import fitted_topics
from polyseme.solvers.coordinate import fit_seen
from polyseme.solvers.initialize import named_start
from polyseme.utils import check_integer, check_n_jobs, check_nonnegative, check_share, effective_threads

COMPLETION, FOLDED_IN, MASKED = "completion", "folded in", "masked entries"
KINDS = (COMPLETION, FOLDED_IN)


@dataclass(frozen=True)
class CrossValidation:
    """Result of `cross_validate`.

    Attributes
    ----------
    scores : DocumentScores
        Log-probabilities of all documents, each from the fold that held it out.
    fold_perplexities : array of shape (n_folds,)
        Perplexity of each fold.
    predicted_ratio : float or None
        With masked entries: predicted counts divided by observed counts; 1 is unbiased.
    seconds : array of shape (n_folds,)
        Duration of each fold.
    """

    scores: DocumentScores
    fold_perplexities: Floats
    predicted_ratio: float | None = None
    seconds: Floats = field(default_factory=lambda: np.empty(0), compare=False)

    @property
    def perplexity(self) -> float:
        """Perplexity of the held-out tokens of all folds."""
        return self.scores.perplexity

    @property
    def standard_error(self) -> float:
        """Standard error of `perplexity`, by documents."""
        return self.scores.perplexity_error

    @property
    def unigram_perplexity(self) -> float:
        """Perplexity of the same tokens under the unigram of the training documents of each fold."""
        return self.scores.unigram_perplexity


def cross_validate(
    model: Any,
    X: Any,
    *,
    by: str = "documents",
    n_folds: int = 10,
    kind: str = COMPLETION,
    smoothing: float = 0.01,
    unseen: str = "leave out",
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> CrossValidation:
    """Return the perplexity of held-out data by k-fold cross-validation.

    Parameters
    ----------
    model : estimator
        PLSA, LDA or NMF. It is cloned and fitted for each fold.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    by : {"documents", "words", "entries"}, default="documents"
        What is held out. "documents": the documents of a fold are folded in to topics fitted without them. "words":
        some tokens of every document, scored with weights from its other tokens. "entries": some entries of X,
        including zeros, are masked (Wold 1978); only for plain maximum likelihood.
    n_folds : int, default=10
        Number of folds.
    kind : {"completion", "folded in"}, default="completion"
        For documents: "completion" scores one half of a document with weights from the other half. "folded in" scores
        all words with weights from the same words; this perplexity falls with every additional topic.
    smoothing : float, default=0.01
        Weight of the unigram in the scored probability. Without it a single zero makes the perplexity infinite. Not
        used with "folded in".
    unseen : {"leave out", "raise"}, default="leave out"
        Words of a fold that do not occur in its training part are not scored, the same words for every model, or raise
        InputError.
    seed : int, default=0
        Seed of the folds.
    progress : callable, default=None
        Called with (folds done, number of folds).

    Returns
    -------
    CrossValidation
        Perplexity with its standard error, and the scores of all documents.
    """
    if by not in _FOLDS:
        raise InputError(f"by must be one of {', '.join(map(repr, _FOLDS))}, got {by!r}.")
    if unseen not in ("leave out", "raise"):
        raise InputError(f"unseen must be 'leave out' or 'raise', got {unseen!r}.")
    smoothing = check_share("smoothing", smoothing)
    X = count_data(clone(model), X, reset=True)
    parts: list[DocumentScores] = []
    infos: list[Any] = []
    seconds: list[float] = []
    started = perf_counter()
    for scores, info in _FOLDS[by](model, X, n_folds, kind, smoothing, seed):
        _check_fold(scores, len(parts), unseen)
        parts.append(scores)
        infos.append(info)
        seconds.append(perf_counter() - started)
        started = perf_counter()
        if progress is not None:
            progress(len(parts), n_folds)
    return CrossValidation(
        combine_scores(parts, infos if by == "documents" else None),
        np.array([part.perplexity for part in parts]),
        float(np.sum(infos)) / float(X.sum()) if by == "entries" else None,
        np.array(seconds),
    )


@dataclass(frozen=True)
class MaskedFit:
    """Fit of x_dw ~ W H to the entries that are not hidden.

    Attributes
    ----------
    doc_factor : array of shape (n_documents, K)
        W.
    components : array of shape (K, n_words)
        H = P(w|z); rows sum to one.
    unigram : array of shape (n_words,)
        P(w) of the counts that are not hidden.
    log_likelihood : float
        Mean log-probability of a token that is not hidden, among the words that are not hidden.
    history : dict of arrays
        Values of each iteration.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the fit stopped by its tolerance.
    """

    doc_factor: Array
    components: Array
    unigram: Floats
    log_likelihood: float
    history: dict[str, Array]
    n_iter: int
    converged: bool

    def predict(self, rows: Any, columns: Any) -> Floats:
        """Return the expected counts of entries (rows[i], columns[i]).

        Parameters
        ----------
        rows : array-like of int
            Documents of the entries.
        columns : array-like of int
            Words of the entries.

        Returns
        -------
        array of shape (n_entries,)
            Expected counts.
        """
        docs, words = self.doc_factor[np.asarray(rows)], self.components[:, np.asarray(columns)]
        return np.asarray(np.einsum("ik,ki->i", docs, words, dtype=np.float64))

    def expected(self, mask: Mask) -> Floats:
        """Return the sum of the expected counts of the hidden entries of each document.

        Parameters
        ----------
        mask : Mask
            The hidden entries.

        Returns
        -------
        array of shape (n_documents,)
            Expected counts.
        """
        return np.asarray(np.einsum("dk,dk->d", self.doc_factor, mask.sums_over_words(self.components.T)))


def fit_masked(
    X: Any,
    hidden: Any,
    n_components: int,
    *,
    max_iter: int = 200,
    tol: float = 1e-2,
    random_state: int = 0,
    n_jobs: int | None = None,
    dtype: Any = None,
) -> MaskedFit:
    """Fit K topics by maximum likelihood to the entries that are not hidden.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    hidden : array-like or sparse matrix of shape (n_documents, n_words), or Mask
        Non-zero where an entry is hidden; the values of X at these entries are not used. Hide zeros as well as
        non-zeros: an entry that is not observed is not zero.
    n_components : int
        Number of topics K.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=0.01
        Tolerance in nats per token, as in PLSA.
    random_state : int, default=0
        Seed of the start.
    n_jobs : int, default=None
        Number of threads; None uses all cores.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None: float64 for float64 data, else float32.

    Returns
    -------
    MaskedFit
        The factors, which predict the hidden entries.
    """
    X = count_data(PLSA(), X, reset=True)
    K = check_integer("n_components", n_components, least=1)
    counts = sparse_counts(X, factor_dtype(dtype, X))
    mask = _as_mask(hidden, (counts.n_docs, counts.n_words))
    seen, _ = split_hidden(counts, mask)
    corpus = MemoryCorpus(seen, None, effective_threads(check_n_jobs(n_jobs)))
    if not corpus.tokens > 0:
        raise InputError("There is nothing to fit: every count is hidden or zero.")
    max_iter = check_integer("max_iter", max_iter, least=1)
    return _fit_unmasked(corpus, mask, K, max_iter, check_nonnegative("tol", tol), random_state)


class DocumentFold(NamedTuple):
    """Indices of the documents to fit, and of the documents held out."""

    train: Array
    test: Array


def document_folds(n_documents: int, n_folds: int, seed: int = 0) -> list[DocumentFold]:
    """Return `n_folds` random folds of nearly equal size, in which every document is held out once."""
    n_folds = check_integer("n_folds", n_folds, least=2)
    if n_documents < n_folds:
        raise InputError(
            f"n_folds={n_folds} is more than the {n_documents} documents: use at most {n_documents} folds."
            if n_documents >= 2
            else f"Cross-validation by documents needs at least 2 documents, got {n_documents}."
        )
    order = np.random.default_rng(seed).permutation(n_documents)
    parts = [np.sort(part) for part in np.array_split(order, n_folds)]
    everything = np.arange(n_documents)
    return [DocumentFold(np.setdiff1d(everything, part, assume_unique=True), part) for part in parts]


def token_folds(counts: SparseCounts, n_folds: int, seed: int = 0) -> Iterator[tuple[SparseCounts, SparseCounts]]:
    """Yield (observed, held-out) counts of each fold. Every token is held out once.

    The fold of a token does not depend on the other documents.
    """
    n_folds = check_integer("n_folds", n_folds, least=2)
    for held_out in split_in_parts(counts, n_folds, seed):
        yield counts.with_values(counts.values - held_out), counts.with_values(held_out)


@dataclass(frozen=True)
class DocumentScores:
    """Sums of log P(w|d) over the scored tokens of each document, with those of the unigram (natural logarithm).

    Attributes
    ----------
    kind : str
        How the documents were scored.
    logs : array of shape (n_documents,)
        Sums of log P(w|d).
    unigram_logs : array of shape (n_documents,)
        Sums of log P(w).
    tokens : array of shape (n_documents,)
        Numbers of scored tokens.
    unseen_tokens : float
        Number of tokens that are not scored because their words do not occur in the training documents.
    """

    kind: str
    logs: Floats
    unigram_logs: Floats
    tokens: Floats
    unseen_tokens: float

    @property
    def mean(self) -> float:
        """Mean log-probability of a token."""
        return _mean_and_error(self.logs, self.tokens)[0]

    @property
    def standard_error(self) -> float:
        """Standard error of `mean`."""
        return _mean_and_error(self.logs, self.tokens)[1]

    @property
    def perplexity(self) -> float:
        """Perplexity exp(-mean)."""
        return perplexity_of(self.mean, 1.0)

    @property
    def perplexity_error(self) -> float:
        """Standard error of the perplexity to first order, the perplexity times the standard error of the mean."""
        return self.perplexity * self.standard_error

    @property
    def unigram_perplexity(self) -> float:
        """Perplexity of the same tokens under the unigram."""
        return perplexity_of(_mean_and_error(self.unigram_logs, self.tokens)[0], 1.0)

    def gain_over(self, other: DocumentScores) -> tuple[float, float]:
        """Return the gain in mean log-probability over another model of the same tokens, and its standard error."""
        return _mean_and_error(self.logs - other.logs, self.tokens)

    def gain_over_unigram(self) -> tuple[float, float]:
        """Return the gain in mean log-probability over the unigram, and its standard error."""
        return _mean_and_error(self.logs - self.unigram_logs, self.tokens)


def combine_scores(parts: list[DocumentScores], rows: list[Array] | None = None) -> DocumentScores:
    """Combine the scores of several folds.

    `rows` are the indices of the documents of each fold, and the result is in their order. None: all folds have the
    same documents, and their scores are added.
    """
    kind, unseen = parts[0].kind, sum(part.unseen_tokens for part in parts)
    columns = [[getattr(part, name) for part in parts] for name in ("logs", "unigram_logs", "tokens")]
    if rows is None:
        logs, unigram, tokens = (np.sum(column, axis=0) for column in columns)
    else:
        order = np.argsort(np.concatenate(rows), kind="stable")
        logs, unigram, tokens = (np.concatenate(column)[order] for column in columns)
    return DocumentScores(kind, logs, unigram, tokens, unseen)


def score_documents(
    model: Any, X: Any, kind: str = COMPLETION, *, smoothing: float = 0.01, seed: int = 0
) -> DocumentScores:
    """Score documents X with a fitted model.

    With kind="completion" one half of each document is scored, with weights estimated from the other half and with the
    probability (1 - smoothing) P(w|d) + smoothing P(w). With kind="folded in" all words are scored without smoothing,
    with weights estimated from the same words. The split depends only on `seed` and on the content of each document.
    """
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    fitted, n_threads = scored_topics(model), effective_threads(model.n_jobs)
    counts = sparse_counts(X, fitted.topic_word.dtype)
    if kind == FOLDED_IN:
        return score_held_out(fitted, kind, counts, counts, 0.0, n_threads=n_threads)
    observed, held_out = (counts.with_values(part) for part in split_tokens(counts, seed))
    return score_held_out(fitted, kind, observed, held_out, smoothing, n_threads=n_threads)


def score_held_out(
    fitted: FittedTopics, kind: str, observed: SparseCounts, scored: SparseCounts, smoothing: float, *, n_threads: int
) -> DocumentScores:
    """Score the tokens `scored` of documents whose weights are estimated from `observed`."""
    weights = fitted.fold_in(observed, n_threads=n_threads)
    probabilities = fitted.token_probabilities(weights, scored, n_threads=n_threads)
    return scores_of_probabilities(kind, scored, probabilities, fitted.unigram, smoothing)


def scores_of_probabilities(
    kind: str, scored: SparseCounts, probabilities: Array, unigram: Floats, smoothing: float
) -> DocumentScores:
    """Score tokens with (1 - smoothing) p + smoothing unigram, where p has one number per non-zero of `scored`."""
    base = unigram[scored.indices]
    seen = base > 0
    x = np.where(seen, scored.values, 0).astype(np.float64)
    mixed = (1 - smoothing) * probabilities.astype(np.float64) + smoothing * base
    return DocumentScores(
        kind,
        scored.sums_by_row(x * _log(mixed, seen)),
        scored.sums_by_row(x * _log(base, seen)),
        scored.sums_by_row(x),
        float(scored.values[~seen].sum(dtype=np.float64)),
    )


def scored_topics(model: Any) -> FittedTopics:
    """Return the topics of a fitted estimator. Raises UnsupportedError if the estimator has no likelihood."""
    check_is_fitted(model)
    fitted = fitted_topics(model)
    if fitted is None or not fitted.inference.is_likelihood:
        raise UnsupportedError(
            f"{type(model).__name__} has no P(w|d) to score held-out words with: "
            "use PLSA or NMF with loss='kullback-leibler', or LDA."
        )
    return fitted


def _mean_and_error(values: Floats, tokens: Floats) -> tuple[float, float]:
    """Return sum values / sum tokens and its standard error by documents (NaN for fewer than two documents)."""
    total, n = float(tokens.sum()), int(np.count_nonzero(tokens))
    if total <= 0:
        return float("nan"), float("nan")
    mean = float(values.sum()) / total
    if n < 2:
        return mean, float("nan")
    variance = float(((values - mean * tokens) ** 2).sum()) * n / (n - 1)
    return mean, float(np.sqrt(variance)) / total


def _log(p: Floats, where: Array) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(p, out=np.zeros_like(p), where=where)


def _as_mask(hidden: Any, shape: tuple[int, int]) -> Mask:
    if hasattr(hidden, "sums_over_words"):
        return cast(Mask, hidden)
    mask = SparseMask(hidden if sp.issparse(hidden) else np.asarray(hidden))
    if mask.shape != shape:
        raise InputError(f"hidden must have the shape of X, {shape}, got {mask.shape}.")
    return mask


def _fit_unmasked(corpus: MemoryCorpus, mask: Mask, K: int, max_iter: int, tol: float, seed: Any) -> MaskedFit:
    rng = np.random.default_rng(seed)
    theta, phi = named_start("random", corpus, Model(K), rng)
    fit = fit_seen(corpus, mask, theta, phi, max_iter=max_iter, tol=tol)
    if fit is None or fit.interrupted:
        raise KeyboardInterrupt
    docs, words = fit.run.point
    return MaskedFit(
        np.ascontiguousarray(docs[:, :K]),
        np.ascontiguousarray(words[:, :K].T),
        corpus.unigram,
        float(fit.history["log_likelihood"][-1]),
        fit.history,
        fit.n_iter,
        fit.converged,
    )


def _score_hidden(fit: MaskedFit, hidden: SparseCounts, smoothing: float, n_threads: int) -> DocumentScores:
    """Score hidden tokens with P(w|d) = (WH)_dw / sum_w (WH)_dw."""
    sums = fit.doc_factor.sum(axis=1, dtype=np.float64, keepdims=True)
    theta = np.divide(fit.doc_factor, sums, out=np.full(fit.doc_factor.shape, 1 / len(fit.components)), where=sums > 0)
    operands = (padded(theta, hidden.dtype), padded(fit.components.T, hidden.dtype))
    return scores_of_probabilities(
        MASKED, hidden, hidden.products(*operands, n_threads=n_threads), fit.unigram, smoothing
    )


def _check_plain(model: Any) -> None:
    plain = {
        "solver": "auto", "background": 0.0, "doc_topic_prior": None, "topic_word_prior": None,
        "loss": KULLBACK_LEIBLER.name,
    }  # fmt: skip
    parameters = model.get_params(deep=False)
    if not isinstance(model, PLSA | NMF) or any(parameters.get(name, value) != value for name, value in plain.items()):
        raise UnsupportedError(
            "by='entries' fits plain maximum likelihood: use PLSA or NMF with the default loss, solver='auto', "
            "no background, no priors."
        )


def _by_documents(model: Any, X: Any, n_folds: int, kind: str, smoothing: float, seed: int) -> Any:
    for fold in document_folds(X.shape[0], n_folds, seed):
        fitted = clone(model).fit(X[fold.train])
        yield score_documents(fitted, X[fold.test], kind, smoothing=smoothing, seed=seed), fold.test


def _by_words(model: Any, X: Any, n_folds: int, kind: str, smoothing: float, seed: int) -> Any:
    if kind != COMPLETION:
        raise InputError(f"kind must be {COMPLETION!r} where words are held out, got {kind!r}.")
    dtype = np.dtype(np.float64 if X.dtype == np.float64 else np.float32)
    for observed, held_out in token_folds(sparse_counts(X, dtype), n_folds, seed):
        fitted, n_threads = scored_topics(clone(model).fit(observed.matrix())), effective_threads(model.n_jobs)
        yield score_held_out(fitted, COMPLETION, observed, held_out, smoothing, n_threads=n_threads), None


def _by_entries(model: Any, X: Any, n_folds: int, kind: str, smoothing: float, seed: int) -> Any:
    """Yield the scores and expected tokens of each fold of masked entries, fitted with the parameters of the model."""
    if kind != COMPLETION:
        raise InputError(f"kind must be {COMPLETION!r} where entries are masked, got {kind!r}.")
    _check_plain(model)
    counts = sparse_counts(X, factor_dtype(model.dtype, X))
    n_folds = check_integer("n_folds", n_folds, least=2)
    for mask in diagonal_masks(counts.n_docs, counts.n_words, n_folds, seed):
        seen, hidden = split_hidden(counts, mask)
        corpus = MemoryCorpus(seen, None, effective_threads(model.n_jobs))
        fit = _fit_unmasked(corpus, mask, model.n_components, model.max_iter, model.tol, model.random_state)
        yield _score_hidden(fit, hidden, smoothing, corpus.n_threads), fit.expected(mask)


_FOLDS: dict[str, Callable[..., Any]] = {"documents": _by_documents, "words": _by_words, "entries": _by_entries}
"""Generators of folds. Each yields the scores of a fold and the indices of its documents (documents), None (words), or
the expected counts of its masked entries (entries)."""


def _check_fold(scores: DocumentScores, fold: int, unseen: str) -> None:
    """Raise InputError if a fold has nothing to score, or has unseen words that are not allowed."""
    if not scores.tokens.sum() > 0:
        raise InputError(
            f"Fold {fold + 1} shares no held-out word with its training documents: use fewer folds or more documents."
        )
    if unseen == "raise" and scores.unseen_tokens:
        raise InputError(
            f"Fold {fold + 1} has {scores.unseen_tokens:g} tokens of words that its training documents do not have: "
            "remove rare words (min_df=2 or more), or pass unseen='leave out'."
        )
