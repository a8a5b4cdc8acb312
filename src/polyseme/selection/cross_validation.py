"""Folds: which documents, or which tokens of every document, are held out in turn.

Held-out log-probabilities document by document, so that two models can be compared on the same documents.

The mean log-probability of a token is a ratio, sum_d l_d / sum_d n_d. Its standard error comes from the residuals
l_d - mean n_d of the documents, which are the independent units; tokens of one document are not. The difference of two
models on the same documents is such a ratio too, and its standard error is far smaller than that of either: what makes
a document hard is hard for both.

Fitting a table with hidden entries, and predicting these.

Cross-validation of a topic model: every document, or token, is held out once and scored by a fit without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from polyseme.core.holdout import Mask, SparseMask, diagonal_masks, split_hidden, split_in_parts, split_tokens
from polyseme.core.model import Model
from polyseme.core.shard import sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import count_data, factor_dtype
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.kernels.threads import effective_threads
from polyseme.metrics import perplexity_of
from polyseme.solvers.initialize import named_start
from polyseme.solvers.masked import fit_seen
from polyseme.utils import check_n_jobs, check_nonnegative, check_share, check_whole_number


class DocumentFold(NamedTuple):
    """Numbers of the documents to fit on, and of those held out."""

    train: Array
    test: Array


def document_folds(n_documents: int, n_folds: int, seed: int = 0) -> list[DocumentFold]:
    """Every document held out once, in `n_folds` random parts of nearly equal size."""
    n_folds = check_whole_number("n_folds", n_folds, least=2)
    if n_documents < n_folds:
        raise InputError(
            f"{n_documents} documents cannot be parted into {n_folds} folds: give at most {n_documents} folds."
            if n_documents >= 2
            else f"Cross-validation by documents needs at least 2 of them, got {n_documents}."
        )
    order = np.random.default_rng(seed).permutation(n_documents)
    parts = [np.sort(part) for part in np.array_split(order, n_folds)]
    everything = np.arange(n_documents)
    return [DocumentFold(np.setdiff1d(everything, part, assume_unique=True), part) for part in parts]


def token_folds(counts: SparseCounts, n_folds: int, seed: int = 0) -> Iterator[tuple[SparseCounts, SparseCounts]]:
    """(observed, held out) for each fold: every token held out once, the same for a document in any batch."""
    n_folds = check_whole_number("n_folds", n_folds, least=2)
    for held_out in split_in_parts(counts, n_folds, seed):
        yield counts.with_values(counts.values - held_out), counts.with_values(held_out)


COMPLETION, FOLDED_IN = "completion", "folded in"
KINDS = (COMPLETION, FOLDED_IN)


@dataclass(frozen=True)
class DocumentScores:
    """sum log P(w|d) over the scored tokens of each document, and the unigram's beside it (natural logs)."""

    kind: str
    logs: Floats
    unigram_logs: Floats
    tokens: Floats
    """how many tokens of each document were scored"""
    unseen_tokens: float
    """tokens of words that the training documents do not have: left out"""

    @property
    def mean(self) -> float:
        """Mean log-probability of a token."""
        return _ratio(self.logs, self.tokens)[0]

    @property
    def standard_error(self) -> float:
        """Of `mean`."""
        return _ratio(self.logs, self.tokens)[1]

    @property
    def perplexity(self) -> float:
        return perplexity_of(self.mean, 1.0)

    @property
    def perplexity_error(self) -> float:
        """Standard error of the perplexity, to first order: perplexity times that of the mean log."""
        return self.perplexity * self.standard_error

    @property
    def unigram_perplexity(self) -> float:
        return perplexity_of(_ratio(self.unigram_logs, self.tokens)[0], 1.0)

    def gain_over(self, other: DocumentScores) -> tuple[float, float]:
        """Mean log-probability of a token above that of another model of the same tokens, and its standard error."""
        return _ratio(self.logs - other.logs, self.tokens)

    def gain_over_unigram(self) -> tuple[float, float]:
        return _ratio(self.logs - self.unigram_logs, self.tokens)


def _ratio(values: Floats, tokens: Floats) -> tuple[float, float]:
    """sum values / sum tokens and its standard error by documents (NaN for fewer than two)."""
    total, n = float(tokens.sum()), int(np.count_nonzero(tokens))
    if total <= 0:
        return float("nan"), float("nan")
    mean = float(values.sum()) / total
    if n < 2:
        return mean, float("nan")
    spread = float(((values - mean * tokens) ** 2).sum()) * n / (n - 1)
    return mean, float(np.sqrt(spread)) / total


def joined(parts: list[DocumentScores], rows: list[Array] | None = None) -> DocumentScores:
    """Scores of several folds as one: documents in the order of `rows` (their numbers), or the same ones added up."""
    kind, unseen = parts[0].kind, sum(part.unseen_tokens for part in parts)
    columns = [[getattr(part, name) for part in parts] for name in ("logs", "unigram_logs", "tokens")]
    if rows is None:
        logs, unigram, tokens = (np.sum(column, axis=0) for column in columns)
    else:
        order = np.argsort(np.concatenate(rows), kind="stable")
        logs, unigram, tokens = (np.concatenate(column)[order] for column in columns)
    return DocumentScores(kind, logs, unigram, tokens, unseen)


def probabilistic(model: Any) -> Any:
    """A fitted model that knows P(w|d): itself, or the PLSA that a KL-NMF is."""
    if hasattr(model, "to_plsa"):
        model = model.to_plsa()
    if not hasattr(model, "_token_probabilities"):
        raise UnsupportedError(f"{type(model).__name__} has no P(w|d) to score held-out words with: use PLSA or LDA.")
    return model


def score_documents(
    model: Any, X: Any, kind: str = COMPLETION, *, smoothing: float = 0.01, seed: int = 0
) -> DocumentScores:
    """Scores documents X with a fitted model.

    kind : "completion" scores the half of each document that its topic weights were not estimated from, with
        (1 - smoothing) P(w|d) + smoothing P(w); "folded in" all words, which the weights were estimated from (thesis
        eq. 4.5), without smoothing. The split depends on `seed` and each document's content alone.
    """
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    model = probabilistic(model)
    counts = sparse_counts(X, model.components_.dtype)
    if kind == FOLDED_IN:
        return score_tokens_of(model, kind, counts, counts, 0.0)
    observed, held_out = (counts.with_values(part) for part in split_tokens(counts, seed))
    return score_tokens_of(model, kind, observed, held_out, smoothing)


def score_tokens_of(
    model: Any, kind: str, observed: SparseCounts, scored: SparseCounts, smoothing: float
) -> DocumentScores:
    """Scores the tokens `scored` of documents whose weights are estimated from `observed`."""
    probabilities = model._token_probabilities(observed, scored)
    return scores_of_probabilities(kind, scored, probabilities, model.unigram_, smoothing)


def scores_of_probabilities(
    kind: str, scored: SparseCounts, probabilities: Array, unigram: Floats, smoothing: float
) -> DocumentScores:
    """Scores tokens with (1 - smoothing) p + smoothing unigram, p one number a non-zero; unseen words are left out."""
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


def _log(p: Floats, where: Array) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(p, out=np.zeros_like(p), where=where)


MASKED = "masked entries"


@dataclass(frozen=True)
class MaskedFit:
    """x_dw ~ W H, fitted to the entries that are not hidden.

    doc_factor : W, documents x K.
    components : H = P(w|z), K x words, rows sum to one.
    unigram : P(w) of the counts that are not hidden.
    log_likelihood : mean log-probability of a token that is not hidden, among the words that are not.
    """

    doc_factor: Array
    components: Array
    unigram: Floats
    log_likelihood: float
    history: dict[str, Array]
    n_iter: int
    converged: bool

    def predict(self, rows: Any, columns: Any) -> Floats:
        """The expected counts of entries (rows[i], columns[i])."""
        docs, words = self.doc_factor[np.asarray(rows)], self.components[:, np.asarray(columns)]
        return np.asarray(np.einsum("ik,ki->i", docs, words, dtype=np.float64))

    def expected(self, mask: Mask) -> Floats:
        """The sum of the expected counts of each document's hidden entries."""
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
    """Fits K topics by maximum likelihood to the entries of X (documents x words) that are not hidden.

    hidden : a sparse or dense table of X's shape, not zero where an entry is hidden (whatever X has there does not
        count), or a `polyseme.core.holdout.Mask`. Hide zeros and non-zeros alike: an entry that is not observed is not
        zero.
    """
    X = count_data(PLSA(), X, reset=True)
    K = check_whole_number("n_components", n_components, least=1)
    counts = sparse_counts(X, factor_dtype(dtype, X))
    mask = _as_mask(hidden, (counts.n_docs, counts.n_words))
    seen, _ = split_hidden(counts, mask)
    corpus = MemoryCorpus(seen, None, effective_threads(check_n_jobs(n_jobs)))
    if not corpus.tokens > 0:
        raise InputError("There is nothing to fit: every count is hidden or zero.")
    max_iter = check_whole_number("max_iter", max_iter, least=1)
    return _fit(corpus, mask, K, max_iter, check_nonnegative("tol", tol), random_state)


def _as_mask(hidden: Any, shape: tuple[int, int]) -> Mask:
    if hasattr(hidden, "sums_over_words"):
        return cast(Mask, hidden)
    mask = SparseMask(hidden if sp.issparse(hidden) else np.asarray(hidden))
    if mask.shape != shape:
        raise InputError(f"hidden must have the shape of X, {shape}, got {mask.shape}.")
    return mask


def _fit(corpus: MemoryCorpus, mask: Mask, K: int, max_iter: int, tol: float, seed: Any) -> MaskedFit:
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


def entry_folds(model: Any, X: Any, n_folds: int, smoothing: float, seed: int) -> Any:
    """(scores, expected tokens) of each fold of hidden entries, fitted with the model's number of topics and limits."""
    _check_plain(model)
    counts = sparse_counts(X, factor_dtype(model.dtype, X))
    n_folds = check_whole_number("n_folds", n_folds, least=2)
    for mask in diagonal_masks(counts.n_docs, counts.n_words, n_folds, seed):
        seen, hidden = split_hidden(counts, mask)
        corpus = MemoryCorpus(seen, None, effective_threads(model.n_jobs))
        fit = _fit(corpus, mask, model.n_components, model.max_iter, model.tol, model.random_state)
        yield _scored(fit, hidden, smoothing, corpus.n_threads), fit.expected(mask)


def _scored(fit: MaskedFit, hidden: SparseCounts, smoothing: float, n_threads: int) -> DocumentScores:
    """log P(w|d) of hidden tokens, P(w|d) = (WH)_dw / sum_w (WH)_dw."""
    sums = fit.doc_factor.sum(axis=1, dtype=np.float64, keepdims=True)
    theta = np.divide(fit.doc_factor, sums, out=np.full(fit.doc_factor.shape, 1 / len(fit.components)), where=sums > 0)
    operands = (padded(theta, hidden.dtype), padded(fit.components.T, hidden.dtype))
    return scores_of_probabilities(
        MASKED, hidden, hidden.products(*operands, n_threads=n_threads), fit.unigram, smoothing
    )


def _check_plain(model: Any) -> None:
    plain = {"solver": "auto", "background": 0.0, "doc_topic_prior": None, "topic_word_prior": None}
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    if type(model).__name__ not in ("PLSA", "NMF") or any(
        parameters.get(name, value) != value for name, value in plain.items()
    ):
        raise UnsupportedError(
            "Entries are masked for plain maximum likelihood: use PLSA or NMF with solver='auto' and without priors."
        )


@dataclass(frozen=True)
class CrossValidation:
    """What cross-validation found.

    scores : the log-probabilities of all documents, each from the fold that held it out.
    fold_perplexities : of each fold alone.
    predicted_ratio : with masked entries, the counts predicted for them over those observed; 1 is unbiased.
    seconds : of each fold.
    """

    scores: DocumentScores
    fold_perplexities: Floats
    predicted_ratio: float | None = None
    seconds: Floats = field(default_factory=lambda: np.empty(0), compare=False)

    @property
    def perplexity(self) -> float:
        """exp of minus the mean log-probability of a held-out token, over all folds."""
        return self.scores.perplexity

    @property
    def standard_error(self) -> float:
        """Of `perplexity`, by documents."""
        return self.scores.perplexity_error

    @property
    def unigram_perplexity(self) -> float:
        """Of the same tokens under P(w) of each fold's training documents."""
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
    """Perplexity of held-out data by k-fold cross-validation.

    Parameters
    ----------
    model : an estimator (PLSA, LDA, NMF), fitted anew for each fold with its own parameters.
    X : counts, documents x words.
    by : "documents": the documents of a fold are folded in to topics fitted without them (thesis ch. 6); "words": a
        part of the tokens of every document is held out, and scored with the weights that its other tokens give;
        "entries": a part of the cells of X, zeros too, is masked (Wold 1978), for plain maximum likelihood.
    kind : for documents, "completion" (the half of a document that its weights did not see) or "folded in" (thesis
        eq. 4.5: all its words, which the weights did see; it falls with every further topic).
    smoothing : the share of the unigram that is mixed in, lest zeros decide; "folded in" takes none.
    unseen : words of a fold that its training part does not have are left out and counted ("leave out"), or refused
        ("raise"). The same words are left out for every model.
    seed : of the folds.
    progress : called with (folds done, folds).
    """
    if by not in _WAYS:
        raise InputError(f"by must be one of {', '.join(map(repr, _WAYS))}, got {by!r}.")
    if unseen not in ("leave out", "raise"):
        raise InputError(f"unseen must be 'leave out' or 'raise', got {unseen!r}.")
    smoothing = check_share("smoothing", smoothing)
    X = count_data(clone(model), X, reset=True)
    parts: list[DocumentScores] = []
    extras: list[Any] = []
    seconds: list[float] = []
    started = perf_counter()
    for scores, extra in _WAYS[by](model, X, n_folds, kind, smoothing, seed):
        _check_seen(scores, len(parts), unseen)
        parts.append(scores)
        extras.append(extra)
        seconds.append(perf_counter() - started)
        started = perf_counter()
        if progress is not None:
            progress(len(parts), n_folds)
    return CrossValidation(
        joined(parts, extras if by == "documents" else None),
        np.array([part.perplexity for part in parts]),
        float(np.sum(extras)) / float(X.sum()) if by == "entries" else None,
        np.array(seconds),
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
        fitted = probabilistic(clone(model).fit(observed.matrix()))
        yield score_tokens_of(fitted, COMPLETION, observed, held_out, smoothing), None


def _by_entries(model: Any, X: Any, n_folds: int, kind: str, smoothing: float, seed: int) -> Any:
    if kind != COMPLETION:
        raise InputError(f"kind must be {COMPLETION!r} where entries are masked, got {kind!r}.")
    yield from entry_folds(model, X, n_folds, smoothing, seed)


_WAYS: dict[str, Callable[..., Any]] = {"documents": _by_documents, "words": _by_words, "entries": _by_entries}
"""each gives (scores of a fold, the numbers of its documents, or the counts expected in its masked entries)"""


def _check_seen(scores: DocumentScores, fold: int, unseen: str) -> None:
    """One sentence where a fold cannot be scored as asked."""
    if not scores.tokens.sum() > 0:
        raise InputError(
            f"Fold {fold + 1} has no held-out word that its training documents have: use fewer folds or more documents."
        )
    if unseen == "raise" and scores.unseen_tokens:
        raise InputError(
            f"Fold {fold + 1} has {scores.unseen_tokens:g} tokens of words that its training documents do not have: "
            "leave rare words out (min_df=2 or more), or pass unseen='leave out'."
        )
