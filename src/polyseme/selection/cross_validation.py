"""Cross-validation of a topic model: every document, or token, is held out once and scored by a fit without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from polyseme.errors import InputError
from polyseme.estimators.validation import count_data, share
from polyseme.kernels import Floats
from polyseme.selection.folds import document_folds, token_folds
from polyseme.selection.masked import entry_folds
from polyseme.selection.scores import (
    COMPLETION,
    DocumentScores,
    joined,
    probabilistic,
    score_documents,
    score_tokens_of,
)
from polyseme.sources.memory import sparse_counts


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
    smoothing = share("smoothing", smoothing)
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
