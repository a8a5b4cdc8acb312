"""Cross-validation of topic models by documents, by tokens or by masked entries.

`DocumentScores` holds held-out log-probabilities by document, so that two models can be compared on the same documents.
The difference between two models on the same documents has a much smaller standard error than either model, because a
document that is hard to predict is hard for both (`metrics.evaluation.mean_and_error`).

Half of the vocabulary can be predicted from the other half (`score_other_words`), to tell topics from repeated words.

Masked entries have weight zero in a fit (`entry_weight`), and the fit predicts them. The method is that of Wold, S.
(1978). Cross-validatory estimation of the number of components in factor and principal components models.
Technometrics 20, 397-405. The model of repeated words is that of Madsen, R. E., Kauchak, D. and Elkan, C. (2005).
Modeling word burstiness using the Dirichlet distribution. ICML, 545-552.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from polyseme.core.dirichlet import with_inference
from polyseme.core.fitted import FittedTopics, observed_shares
from polyseme.core.shard import sparse_counts, split_in_parts, split_tokens
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.nmf import NMF
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import count_data, factor_dtype
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.losses import KULLBACK_LEIBLER
from polyseme.losses.entry_weights import WithoutEntries, diagonal_folds
from polyseme.metrics.evaluation import mean_and_error
from polyseme.metrics.words import fitted_topics
from polyseme.options import named
from polyseme.utils import RandomStateLike, as_seed, check_integer, check_share, effective_threads, perplexity_of

COMPLETION, FOLDED_IN, MASKED, OTHER_WORDS = "completion", "folded in", "masked entries", "other words"
KINDS = (COMPLETION, FOLDED_IN)
_TOPIC_SHARE = 0.1
"""Weight of the topics in `score_other_words`; the unigram has the rest."""


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
    random_state: RandomStateLike = 0,
    inference: str | None = None,
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
        What is held out. "documents": the documents of a fold, which are folded in with topics fitted without them.
        "words": some tokens of every document, scored with weights from its other tokens. "entries": some entries of X,
        including zeros, which are masked (Wold 1978); only for plain maximum likelihood.
    n_folds : int, default=10
        Number of folds.
    kind : {"completion", "folded in"}, default="completion"
        For documents: "completion" scores one half of a document with weights from the other half. "folded in" scores
        all words with weights from the same words; this perplexity falls with every additional topic.
    smoothing : float, default=0.01
        Weight of the unigram in the scored probability. Without it a single zero makes the perplexity infinite. Not
        used with "folded in".
    unseen : {"leave out", "raise"}, default="leave out"
        What to do with words of a fold that do not occur in its training part: "leave out" does not score them, for any
        model; "raise" raises InputError.
    random_state : int, RandomState or Generator, default=0
        Seed of the folds.
    inference : {"posterior", "model"}, default=None
        How completion estimates the weights of held-out documents: "posterior" uses the prior that the model has
        learned, and "model" does the same as `transform`. None uses "posterior" if the model has such a prior.
    progress : callable, default=None
        Called with (folds done, number of folds).

    Returns
    -------
    CrossValidation
        Perplexity with its standard error, and the scores of all documents.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.selection import cross_validate
    >>> X = synthetic_corpus(200, n_topics=3, n_words=60, random_state=0).counts()
    >>> one, three = (cross_validate(PLSA(n_topics, random_state=0), X, n_folds=3) for n_topics in (1, 3))
    >>> three.perplexity < one.perplexity
    True
    """
    if by not in _FOLDS:
        raise InputError(f"by must be one of {', '.join(map(repr, _FOLDS))}, got {by!r}.")
    if unseen not in ("leave out", "raise"):
        raise InputError(f"unseen must be 'leave out' or 'raise', got {unseen!r}.")
    if inference is not None and (kind != COMPLETION or by == "entries"):
        raise InputError("inference is used for kind='completion' by documents or words only: leave it out.")
    smoothing, seed = check_share("smoothing", smoothing), as_seed(random_state)
    X = count_data(clone(model), X, reset=True)
    parts: list[DocumentScores] = []
    infos: list[Any] = []
    seconds: list[float] = []
    started = perf_counter()
    for scores, info in _FOLDS[by](model, X, n_folds, kind, smoothing, seed, inference):
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


class DocumentFold(NamedTuple):
    """Indices of the documents to fit, and of the documents held out."""

    train: Array
    test: Array


def document_folds(n_documents: int, n_folds: int, seed: int = 0) -> list[DocumentFold]:
    """Return `n_folds` random folds of nearly equal size, in which every document is held out once."""
    n_folds = check_integer("n_folds", n_folds, least=2)
    if n_documents < n_folds:
        raise InputError(
            f"{named('n_folds', n_folds)} is more than the {n_documents} documents: use at most {n_documents} folds."
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
    """Sums of log P(w|d) and of log P(w) over the scored tokens of each document (natural logarithms)."""

    kind: str
    """How the documents were scored."""
    logs: Floats
    unigram_logs: Floats
    tokens: Floats
    """Numbers of scored tokens."""
    unseen_tokens: float
    """Number of tokens that are not scored because their words do not occur in the training documents."""

    @property
    def mean(self) -> float:
        """Mean log-probability of a token."""
        return mean_and_error(self.logs, self.tokens)[0]

    @property
    def standard_error(self) -> float:
        """Standard error of `mean`."""
        return mean_and_error(self.logs, self.tokens)[1]

    @property
    def perplexity(self) -> float:
        """Perplexity exp(-mean)."""
        return perplexity_of(self.mean)

    @property
    def perplexity_error(self) -> float:
        """Standard error of the perplexity to first order, the perplexity times the standard error of the mean."""
        return self.perplexity * self.standard_error

    @property
    def unigram_perplexity(self) -> float:
        """Perplexity of the same tokens under the unigram."""
        return perplexity_of(mean_and_error(self.unigram_logs, self.tokens)[0])

    def gain_over(self, other: DocumentScores) -> tuple[float, float]:
        """Return the gain in mean log-probability over another model of the same tokens, and its standard error."""
        return mean_and_error(self.logs - other.logs, self.tokens)

    def gain_over_unigram(self) -> tuple[float, float]:
        """Return the gain in mean log-probability over the unigram, and its standard error."""
        return mean_and_error(self.logs - self.unigram_logs, self.tokens)


def combine_scores(parts: list[DocumentScores], rows: list[Array] | None = None) -> DocumentScores:
    """Combine the scores of several folds.

    `rows` are the indices of the documents of each fold, and the result is in the order of these indices. If `rows` is
    None, all folds have the same documents, and their scores are added.
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
    model: Any,
    X: Any,
    kind: str = COMPLETION,
    *,
    smoothing: float = 0.01,
    seed: int = 0,
    inference: str | None = None,
) -> DocumentScores:
    """Score documents X with a fitted model.

    With kind="completion" one half of each document is scored, with weights estimated from the other half and with the
    probability (1 - smoothing) P(w|d) + smoothing P(w). With kind="folded in" all words are scored without smoothing,
    with weights estimated from the same words. The split depends only on `seed` and on the content of each document.
    `inference` is how completion estimates weights, as in `completion_perplexity` of the model.
    """
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    fitted, n_threads = scored_topics(model), effective_threads(model.n_jobs)
    counts = sparse_counts(X, fitted.topic_word.dtype)
    if kind == FOLDED_IN:
        return score_held_out(fitted, kind, counts, counts, 0.0, n_threads=n_threads)
    observed, held_out = (counts.with_values(part) for part in split_tokens(counts, seed))
    return score_held_out(with_inference(fitted, inference), kind, observed, held_out, smoothing, n_threads=n_threads)


def score_held_out(
    fitted: FittedTopics, kind: str, observed: SparseCounts, scored: SparseCounts, smoothing: float, *, n_threads: int
) -> DocumentScores:
    """Score the tokens `scored` of documents whose weights are estimated from `observed`."""
    weights = fitted.fold_in(observed, n_threads=n_threads)
    probabilities = fitted.token_probabilities(weights, scored, n_threads=n_threads)
    return scores_of_probabilities(kind, scored, probabilities, fitted.unigram, smoothing)


def score_other_words(fitted: FittedTopics, X: Any, *, seed: int, n_threads: int) -> DocumentScores:
    """Score the words of each half of the vocabulary, predicted from the words of the other half.

    A document that has used a word uses it again more often than others do. Topics predict such repetitions, so they
    beat the unigram in completion even if the words of a document say nothing about its other words. Here the tokens
    of a word are never on both sides. The null model is a bursty unigram (Dirichlet-multinomial; Madsen, Kauchak and
    Elkan 2005): each document draws its own distribution of words around that of the corpus. The shares of the words
    of half B among themselves are then independent of the words of half A, so no prediction from A is better in
    expectation than the unigram within B, whatever the concentration is. If the concentration were learned, its
    errors would look like structure where some words are repeated more than others.

    Topics fitted to such documents exaggerate what they know, so they only have to improve the unigram: the scored
    probability is a tenth of that of the topics and nine tenths of that of the unigram, both within the half.
    """
    fitted = with_inference(fitted, None)
    counts = sparse_counts(X, fitted.topic_word.dtype)
    first = np.random.default_rng(seed).permutation(counts.n_words) % 2 == 0
    parts = []
    for half in (first, ~first):
        observed, scored = (counts.with_values(counts.values * side[counts.indices]) for side in (~half, half))
        weights = fitted.fold_in(observed, n_threads=n_threads)
        A, B = fitted.inference.operands(weights, fitted.topic_word)
        shares = np.einsum("dk,k->d", A, B[half].sum(axis=0, dtype=np.float64), dtype=np.float64)
        shares = np.repeat(shares, np.diff(scored.indptr))
        products = scored.products(A, B, n_threads=n_threads).astype(np.float64)
        p = np.divide(products, shares, out=np.zeros_like(products), where=shares > 0)
        unigram = np.where(half, fitted.unigram, 0)
        unigram /= max(unigram.sum(), np.finfo(np.float64).tiny)
        parts.append(scores_of_probabilities(OTHER_WORDS, scored, p, unigram, 1 - _TOPIC_SHARE))
    return combine_scores(parts)


def scores_of_probabilities(
    kind: str, scored: SparseCounts, probabilities: Array, unigram: Floats, smoothing: float
) -> DocumentScores:
    """Score tokens with (1 - smoothing) p + smoothing unigram, where p has one value per non-zero of `scored`."""
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
    """Return the topics of a fitted estimator. Raise UnsupportedError if the estimator has no likelihood."""
    check_is_fitted(model)
    fitted = fitted_topics(model)
    if fitted is None or not fitted.inference.is_likelihood:
        raise UnsupportedError(
            f"{type(model).__name__} has no P(w|d) to score held-out words with: "
            "use PLSA or NMF with loss='kullback-leibler', or LDA."
        )
    return fitted


def _log(p: Floats, where: Array) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(p, out=np.zeros_like(p), where=where)


def _check_plain(model: Any) -> None:
    plain = {
        "solver": "auto", "background": 0.0, "doc_topic_prior": None, "topic_word_prior": None,
        "loss": KULLBACK_LEIBLER.name, "alpha_W": 0.0,
    }  # fmt: skip
    parameters = model.get_params(deep=False)
    if not isinstance(model, PLSA | NMF) or any(parameters.get(name, value) != value for name, value in plain.items()):
        raise UnsupportedError(
            "by='entries' fits plain maximum likelihood: use PLSA or NMF with the default loss, solver='auto', "
            "no background, no priors, no penalties."
        )


def _by_documents(
    model: Any, X: Any, n_folds: int, kind: str, smoothing: float, seed: int, inference: str | None
) -> Any:
    for fold in document_folds(X.shape[0], n_folds, seed):
        fitted = clone(model).fit(X[fold.train])
        scores = score_documents(fitted, X[fold.test], kind, smoothing=smoothing, seed=seed, inference=inference)
        yield scores, fold.test


def _by_words(model: Any, X: Any, n_folds: int, kind: str, smoothing: float, seed: int, inference: str | None) -> Any:
    if kind != COMPLETION:
        raise InputError(f"kind must be {COMPLETION!r} with by='words', got {kind!r}.")
    dtype = np.dtype(np.float64 if X.dtype == np.float64 else np.float32)
    for observed, held_out in token_folds(sparse_counts(X, dtype), n_folds, seed):
        fitted = with_inference(scored_topics(clone(model).fit(observed.matrix())), inference)
        n_threads = effective_threads(model.n_jobs)
        yield score_held_out(fitted, COMPLETION, observed, held_out, smoothing, n_threads=n_threads), None


def _by_entries(model: Any, X: Any, n_folds: int, kind: str, smoothing: float, seed: int, inference: str | None) -> Any:
    """Yield the scores and expected tokens of each fold of masked entries, fitted with the parameters of the model."""
    if kind != COMPLETION:
        raise InputError(f"kind must be {COMPLETION!r} with by='entries', got {kind!r}.")
    _check_plain(model)
    counts = sparse_counts(X, factor_dtype(model.dtype, X))
    n_folds, n_threads = check_integer("n_folds", n_folds, least=2), effective_threads(model.n_jobs)
    names = PLSA().get_params(deep=False).keys() - {"checkpoint"}
    plsa = PLSA(**{name: value for name, value in model.get_params(deep=False).items() if name in names})
    for hidden in diagonal_folds(counts.n_docs, counts.n_words, n_folds, seed):
        observed = WithoutEntries(hidden)
        fitted = clone(plsa).fit(X, entry_weight=observed)
        theta, phi = fitted.doc_topic_, fitted.components_
        scored = counts.with_values(counts.values * hidden.at_counts(counts))
        probabilities = scored.products(padded(theta, scored.dtype), padded(phi.T, scored.dtype), n_threads=n_threads)
        totals = (counts.totals - scored.totals) / observed_shares(theta, phi, observed, n_threads=n_threads)
        expected = totals * observed_shares(theta, phi, hidden, n_threads=n_threads)
        yield scores_of_probabilities(MASKED, scored, probabilities, fitted.unigram_, smoothing), expected


_FOLDS: dict[str, Callable[..., Any]] = {"documents": _by_documents, "words": _by_words, "entries": _by_entries}
"""Generators of folds. Each yields the scores of a fold and the indices of its documents (documents), None (words), or
the expected counts of its masked entries (entries)."""


def _check_fold(scores: DocumentScores, fold: int, unseen: str) -> None:
    """Raise InputError if a fold has nothing to score, or has unseen words that are not allowed."""
    if not scores.tokens.sum() > 0:
        raise InputError(
            f"Fold {fold + 1} has no held-out word of its training documents: use fewer folds or more documents."
        )
    if unseen == "raise" and scores.unseen_tokens:
        raise InputError(
            f"Fold {fold + 1} has {scores.unseen_tokens:g} tokens of words that its training documents do not contain: "
            f"remove rare words ({named('min_df', 2)} or more), or pass unseen='leave out'."
        )
