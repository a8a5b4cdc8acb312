"""All measures of a model at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, check_sparse
from polyseme.metrics.clustering import Agreement, label_agreement
from polyseme.metrics.coherence import WINDOWS, CoherenceReport, TokenSequences, coherence
from polyseme.metrics.perplexity import PerplexityReport
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
        Share of different words among the words shown.
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
                    "coherence": {measure: float(found.topics[topic]) for measure, found in self.coherence.items()},
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
        Reference of the coherence with the usual windows (see `Vectorizer.sequences`). None: the documents of X.
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
