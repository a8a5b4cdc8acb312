"""Evaluation of a model: its perplexities, and all measures at once.

A perplexity is exp of minus the mean log-probability of a token (natural logarithm), and is reported with that of the
unigram. There are three kinds: training (of the documents that a model was fitted to), folded in (of documents whose
weights were estimated from all their words) and completion (of one half of each document, with weights estimated from
the other half).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, check_sparse, inner
from polyseme.metrics.clustering import Agreement, label_agreement
from polyseme.metrics.coherence import WINDOWS, CoherenceReport, TokenSequences, coherence
from polyseme.metrics.topics import (
    FitReport,
    Redundancy,
    effective_topics,
    exclusivity,
    fit_report,
    topic_diversity,
    topic_redundancy,
)
from polyseme.metrics.words import shown_words, topic_rows
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
        Number of tokens of words that the training documents do not contain. They are scored only if they are given a
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

    Words with unigram probability zero are unseen. If `unseen` is None, they are not scored. Otherwise each of them has
    the probability `unseen`, and the probabilities of all other words are reduced in proportion.
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


@dataclass(frozen=True)
class Evaluation:
    """Result of `evaluate`.

    Attributes
    ----------
    n_documents : int
        Number of documents.
    perplexity : PerplexityReport
        Perplexity with documents folded in on all their words.
    completion : PerplexityReport
        Completion perplexity.
    coherence : dict of str to CoherenceReport
        Coherence by measure.
    diversity : float
        Share of distinct words among the words shown.
    redundancy : Redundancy
        Words that topics share with another topic.
    exclusivity : array of shape (K,)
        Exclusivity of each topic.
    fit : FitReport
        Topic fit.
    effective_topics : array of shape (n_documents,)
        Effective number of topics of each document.
    agreement : Agreement or None
        Agreement with the labels; None without labels.
    topic_weights : array of shape (K,)
        P(z) in these documents.
    topic_words : array of int of shape (K, n_words)
        Columns of the words shown, from which coherence, diversity and redundancy are computed.
    """

    n_documents: int
    perplexity: PerplexityReport
    completion: PerplexityReport
    coherence: dict[str, CoherenceReport]
    diversity: float
    redundancy: Redundancy
    exclusivity: Floats
    fit: FitReport
    effective_topics: Floats
    agreement: Agreement | None
    topic_weights: Floats
    topic_words: Array

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as numbers, lists and strings for JSON.

        Returns
        -------
        dict
            The measures by name; None for perplexities that are not finite.
        """
        return {
            "documents": self.n_documents,
            "perplexity": _finite_or_none(asdict(self.perplexity)),
            "completion": _finite_or_none(asdict(self.completion)),
            "coherence": {
                measure: {
                    "mean": report.mean,
                    "reference": report.reference,
                    "window": report.window,
                    "n_windows": report.n_windows,
                    "absent_words": report.absent_words,
                }
                for measure, report in self.coherence.items()
            },
            "top_words": int(self.topic_words.shape[1]),
            "diversity": self.diversity,
            "redundancy": float(self.redundancy.topics.mean()),
            "exclusivity": float(self.exclusivity.mean()),
            "fit": {
                "threshold": self.fit.threshold,
                "n_fitting": self.fit.n_fitting,
                "fitting_weight": self.fit.fitting_weight,
            },
            "effective_topics": {
                "mean": float(self.effective_topics.mean()),
                "median": float(np.median(self.effective_topics)),
            },
            "agreement": None if self.agreement is None else asdict(self.agreement),
            "topics": [
                {
                    "topic": topic,
                    "weight": float(self.topic_weights[topic]),
                    "fit": float(self.fit.fit[topic]),
                    "carried": float(self.fit.carried[topic]),
                    "exclusivity": float(self.exclusivity[topic]),
                    "redundancy": float(self.redundancy.topics[topic]),
                    "twin": int(self.redundancy.twins[topic]) if self.redundancy.twins[topic] >= 0 else None,
                    "coherence": {measure: float(report.topics[topic]) for measure, report in self.coherence.items()},
                }
                for topic in range(len(self.topic_weights))
            ],
        }


def evaluate(
    model: Any,
    X: Any,
    labels: Sequence[Any] | None = None,
    *,
    n_words: int = 10,
    measures: Sequence[str] = ("npmi", "c_v", "uci"),
    smoothing: float = 0.01,
    texts: TokenSequences | None = None,
    step: Callable[[str], None] | None = None,
) -> Evaluation:
    """Return all measures of a fitted model on documents.

    Parameters
    ----------
    model : estimator
        A fitted topic model.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    labels : sequence, default=None
        One label for each document, for the agreement of topics and labels.
    n_words : int, default=10
        Number of words per topic for coherence, diversity, redundancy and exclusivity.
    measures : sequence of str, default=("npmi", "c_v", "uci")
        Measures of coherence. "umass" can be added; it hardly agrees with human ratings of topics.
    smoothing : float, default=0.01
        Weight of the unigram in the completion perplexity.
    texts : TokenSequences, default=None
        Reference of the coherence with the usual windows (see `Vectorizer.sequences`). None uses the documents of X.
    step : callable, default=None
        Called with the name of each part before it is computed.

    Returns
    -------
    Evaluation
        The measures.
    """
    unknown = [measure for measure in measures if measure not in WINDOWS]
    if unknown:
        raise InputError(f"measures must be among {', '.join(WINDOWS)}, got {unknown[0]!r}.")
    if not hasattr(model, "perplexity_report"):  # NMF, LSA, and models of other libraries
        raise UnsupportedError(
            f"{type(model).__name__} has no perplexity: evaluate PLSA, LDA, HierarchicalPLSA or CorrelatedTopicModel, "
            "or the result of NMF.to_plsa()."
        )
    counts = sp.csr_array(check_sparse(X))
    tokens = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    if not tokens.sum() > 0:
        raise InputError("The documents have none of the words that the model knows: there is nothing to evaluate.")
    report_step = step or (lambda name: None)
    report_step("folding in")
    folded = model.fold_in(X)
    doc_topic = folded.doc_topic
    report_step("agreement with labels")
    agreement = None
    if labels is not None:
        agreement = label_agreement(doc_topic, labels)
        agreement = agreement if agreement.n_documents else None
    report_step("perplexity")
    perplexity = model.perplexity_report(X, weights=folded)
    report_step("completion perplexity")
    completion = model.completion_report(X, smoothing)
    report_step("coherence")
    words = shown_words(model, n_words)
    reference = counts if texts is None else texts
    coherences = {measure: coherence(words, reference, measure) for measure in measures}
    report_step("topics")
    return Evaluation(
        counts.shape[0],
        perplexity,
        completion,
        coherences,
        topic_diversity(words),
        topic_redundancy(words),
        exclusivity(topic_rows(model), n_words),
        fit_report(doc_topic, tokens / tokens.sum()),
        effective_topics(doc_topic),
        agreement,
        np.asarray(tokens @ doc_topic / tokens.sum(), dtype=np.float64),
        words,
    )


def _finite_or_none(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }
