"""Fitting a table with hidden entries, and predicting these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import count_data, factor_dtype, non_negative, threads_of, whole_number
from polyseme.initialise import named_start
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.masks import Mask, SparseMask, diagonal_masks, split_hidden
from polyseme.model import Model
from polyseme.selection.scores import DocumentScores, scores_of_probabilities
from polyseme.solvers.masked import fit_seen
from polyseme.sources.memory import MemorySource, effective_threads, sparse_counts

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
        count), or a `polyseme.masks.Mask`. Hide zeros and non-zeros alike: an entry that is not observed is not zero.
    """
    X = count_data(PLSA(), X, reset=True)
    K = whole_number("n_components", n_components, least=1)
    counts = sparse_counts(X, factor_dtype(dtype, X))
    mask = _as_mask(hidden, (counts.n_docs, counts.n_words))
    seen, _ = split_hidden(counts, mask)
    source = MemorySource(seen, None, effective_threads(threads_of(n_jobs)))
    if not source.tokens > 0:
        raise InputError("There is nothing to fit: every count is hidden or zero.")
    max_iter = whole_number("max_iter", max_iter, least=1)
    return _fit(source, mask, K, max_iter, non_negative("tol", tol), random_state)


def _as_mask(hidden: Any, shape: tuple[int, int]) -> Mask:
    if hasattr(hidden, "sums_over_words"):
        return cast(Mask, hidden)
    mask = SparseMask(hidden if sp.issparse(hidden) else np.asarray(hidden))
    if mask.shape != shape:
        raise InputError(f"hidden must have the shape of X, {shape}, got {mask.shape}.")
    return mask


def _fit(source: MemorySource, mask: Mask, K: int, max_iter: int, tol: float, seed: Any) -> MaskedFit:
    rng = np.random.default_rng(seed)
    theta, phi = named_start("random", source, Model(K), rng)
    fit = fit_seen(source, mask, theta, phi, max_iter=max_iter, tol=tol)
    if fit is None or fit.interrupted:
        raise KeyboardInterrupt
    docs, words = fit.run.point
    return MaskedFit(
        np.ascontiguousarray(docs[:, :K]),
        np.ascontiguousarray(words[:, :K].T),
        source.unigram,
        float(fit.history["log_likelihood"][-1]),
        fit.history,
        fit.n_iter,
        fit.converged,
    )


def entry_folds(model: Any, X: Any, n_folds: int, smoothing: float, seed: int) -> Any:
    """(scores, expected tokens) of each fold of hidden entries, fitted with the model's number of topics and limits."""
    _check_plain(model)
    counts = sparse_counts(X, factor_dtype(model.dtype, X))
    n_folds = whole_number("n_folds", n_folds, least=2)
    for mask in diagonal_masks(counts.n_docs, counts.n_words, n_folds, seed):
        seen, hidden = split_hidden(counts, mask)
        source = MemorySource(seen, None, effective_threads(model.n_jobs))
        fit = _fit(source, mask, model.n_components, model.max_iter, model.tol, model.random_state)
        yield _scored(fit, hidden, smoothing, source.n_threads), fit.expected(mask)


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
