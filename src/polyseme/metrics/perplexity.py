"""Perplexities, exp of minus the mean log-probability of a token (natural logarithm), each with that of the unigram.

There are three kinds: training (of the documents that a model was fitted to), folded in (of documents whose weights
were estimated from all their words) and completion (of the half of each document that its weights were not estimated
from).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, inner
from polyseme.utils import perplexity_of


@dataclass(frozen=True)
class PerplexityReport:
    """A perplexity with the tokens that it was computed from.

    Attributes
    ----------
    kind : str
        "folded in" or "completion".
    perplexity : float
        Perplexity of the model; NaN without tokens.
    unigram_perplexity : float
        Perplexity of the same tokens under P(w) of the training documents.
    tokens : float
        Number of scored tokens.
    unseen_tokens : float
        Number of tokens of words that the training documents do not have. They are scored only if they are given a
        probability.
    smoothed_share : float
        Share of the scored tokens that get more probability from the smoothing than from the topics.
    """

    kind: str
    perplexity: float
    unigram_perplexity: float
    tokens: float
    unseen_tokens: float
    smoothed_share: float


def pool_reports(reports: Iterable[PerplexityReport]) -> PerplexityReport:
    """Combine reports of batches of documents into one report of all documents.

    Parameters
    ----------
    reports : iterable of PerplexityReport
        Reports of one kind.

    Returns
    -------
    PerplexityReport
        The report of all documents; it does not depend on the batches.
    """
    reports = list(reports)
    kinds = sorted({report.kind for report in reports})
    if len(kinds) != 1:
        raise InputError(f"Only reports of one kind can be pooled, got {' and '.join(kinds) or 'none'}.")
    scored = [report for report in reports if report.tokens > 0]
    tokens = sum(report.tokens for report in scored)
    return PerplexityReport(
        kinds[0],
        perplexity_of(-sum(report.tokens * float(np.log(report.perplexity)) for report in scored), tokens),
        perplexity_of(-sum(report.tokens * float(np.log(report.unigram_perplexity)) for report in scored), tokens),
        tokens,
        sum(report.unseen_tokens for report in reports),
        sum(report.tokens * report.smoothed_share for report in scored) / tokens if tokens > 0 else 0.0,
    )


def score_tokens(
    kind: str,
    counts: SparseCounts,
    probabilities: Array,
    unigram: Floats,
    *,
    smoothing: float = 0.0,
    unseen: float | None = None,
) -> PerplexityReport:
    """Return the perplexity of counts under (1 - smoothing) p + smoothing unigram, with one p per non-zero.

    Words with unigram probability zero are unseen. They are not scored, or get the probability `unseen` each, which is
    subtracted from all other words in proportion.
    """
    x = counts.values.astype(np.float64)
    base = unigram[counts.indices]
    seen = base > 0
    unseen_tokens = float(x[~seen].sum())
    seen_share = 1.0 if unseen is None else 1.0 - unseen * float(np.count_nonzero(unigram == 0))
    from_topics = (1.0 - smoothing) * probabilities[seen].astype(np.float64)
    from_unigram = smoothing * base[seen]
    total_log = inner(x[seen], _log(seen_share * (from_topics + from_unigram)))
    unigram_log = inner(x[seen], _log(seen_share * base[seen]))
    tokens = float(x[seen].sum())
    smoothed = float(x[seen][from_unigram > from_topics].sum())
    if unseen is not None:
        total_log += unseen_tokens * float(np.log(unseen))
        unigram_log += unseen_tokens * float(np.log(unseen))
        tokens += unseen_tokens
    return PerplexityReport(
        kind,
        perplexity_of(total_log, tokens),
        perplexity_of(unigram_log, tokens),
        tokens,
        unseen_tokens,
        smoothed / tokens if tokens > 0 else 0.0,
    )


def _log(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p))
