"""Perplexities: exp of minus the mean log-probability of a token (natural log), the unigram's beside each.

Three kinds, which never share a name: training (of the documents a model was fitted on), folded in (of documents
whose weights were estimated from all their words; thesis eq. 4.5) and completion (of the half of each document that
its weights were not estimated from).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, inner


@dataclass(frozen=True)
class PerplexityReport:
    """A perplexity and what it rests on."""

    kind: str
    perplexity: float
    unigram_perplexity: float
    """of the same tokens under P(w) of the training corpus alone"""
    tokens: float
    """how many tokens were scored"""
    unseen_tokens: float
    """tokens of words that the training corpus does not have; scored only if `unseen` gives them a probability"""
    smoothed_share: float
    """share of the scored tokens to which the smoothing gives more probability than the topics do"""


def perplexity_of(log_probability: float, tokens: float) -> float:
    """exp(-log_probability / tokens); NaN without tokens."""
    return float(np.exp(-log_probability / tokens)) if tokens > 0 else float("nan")


def score_tokens(
    kind: str,
    counts: SparseCounts,
    probabilities: Array,
    unigram: Floats,
    *,
    smoothing: float = 0.0,
    unseen: float | None = None,
) -> PerplexityReport:
    """The perplexity of counts under (1 - smoothing) p + smoothing unigram, p one number a non-zero.

    Words with unigram probability zero are unseen: left out, or given the probability `unseen` each, which is then
    taken from all other words alike.
    """
    x = counts.values.astype(np.float64)
    base = unigram[counts.indices]
    seen = base > 0
    unseen_tokens = float(x[~seen].sum())
    kept = 1.0 if unseen is None else 1.0 - unseen * float(np.count_nonzero(unigram == 0))
    from_topics = (1.0 - smoothing) * probabilities[seen].astype(np.float64)
    from_unigram = smoothing * base[seen]
    total_log = inner(x[seen], _log(kept * (from_topics + from_unigram)))
    unigram_log = inner(x[seen], _log(kept * base[seen]))
    tokens = float(x[seen].sum())
    leaning = float(x[seen][from_unigram > from_topics].sum())
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
        leaning / tokens if tokens > 0 else 0.0,
    )


def pool_reports(reports: Iterable[PerplexityReport]) -> PerplexityReport:
    """One report of documents that were scored in batches: the same, whatever the batches."""
    reports = list(reports)
    kinds = sorted({report.kind for report in reports})
    if len(kinds) != 1:
        raise InputError(f"Reports of one kind can be pooled, got {' and '.join(kinds) or 'none'}.")
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


def _log(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p))
