"""Held-out log-probabilities document by document, so that two models can be compared on the same documents.

The mean log-probability of a token is a ratio, sum_d l_d / sum_d n_d. Its standard error comes from the residuals
l_d - mean n_d of the documents, which are the independent units; tokens of one document are not. The difference of two
models on the same documents is such a ratio too, and its standard error is far smaller than that of either: what makes
a document hard is hard for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics import perplexity_of
from polyseme.sources.memory import sparse_counts
from polyseme.split import split_tokens

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
