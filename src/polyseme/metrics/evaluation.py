"""All figures of a model at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, checked_sparse
from polyseme.metrics.clustering import Agreement, label_agreement
from polyseme.metrics.coherence import WINDOWS, CoherenceReport, TokenSequences, coherence
from polyseme.metrics.diversity import Redundancy, exclusivity, topic_diversity, topic_redundancy
from polyseme.metrics.fit import FitReport, effective_topics, fit_report
from polyseme.metrics.perplexity import PerplexityReport
from polyseme.metrics.words import shown_words

Step = Callable[[str], None]


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found."""

    n_documents: int
    perplexity: PerplexityReport
    completion: PerplexityReport
    coherence: dict[str, CoherenceReport]
    """by measure"""
    diversity: float
    redundancy: Redundancy
    exclusivity: Floats
    fit: FitReport
    effective_topics: Floats
    """of each document"""
    agreement: Agreement | None
    """with the labels, if there are any"""
    topic_weights: Floats
    """P(z) in these documents"""
    topic_words: Array
    """topics x n word numbers, the words shown: what coherence, diversity and redundancy look at"""

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON; a figure that is not a number is None."""
        return {
            "documents": self.n_documents,
            "perplexity": _numbers(asdict(self.perplexity)),
            "completion": _numbers(asdict(self.completion)),
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
    measures: Sequence[str] = tuple(WINDOWS),
    smoothing: float = 0.01,
    texts: TokenSequences | None = None,
    step: Step = lambda what: None,
) -> Evaluation:
    """Every figure of a fitted model on documents X (counts): perplexities, coherence, fit, agreement with labels.

    The reference of the coherence is X, by whole documents, or `texts` (Vectorizer.sequences), by the usual windows of
    each measure. `step` is told what is being done, before each part.
    """
    unknown = [measure for measure in measures if measure not in WINDOWS]
    if unknown:
        raise InputError(f"measures must be among {', '.join(WINDOWS)}, got {unknown[0]!r}.")
    counts = sp.csr_array(checked_sparse(X))
    tokens = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    if not tokens.sum() > 0:
        raise InputError("The documents have none of the words that the model knows: there is nothing to judge.")
    step("folding in")
    doc_topic = model.transform(X)
    step("agreement with labels")
    agreed = None
    if labels is not None:
        agreed = label_agreement(doc_topic, labels)
        agreed = agreed if agreed.n_documents else None
    step("perplexity")
    perplexity = model.perplexity_report(X)
    step("completion perplexity")
    completion = model.completion_report(X, smoothing)
    step("coherence")
    words = shown_words(model, n_words)
    reference = counts if texts is None else texts
    coherent = {measure: coherence(words, reference, measure) for measure in measures}
    step("topics")
    return Evaluation(
        counts.shape[0],
        perplexity,
        completion,
        coherent,
        topic_diversity(words),
        topic_redundancy(words),
        exclusivity(model.components_, n_words),
        fit_report(doc_topic, tokens / tokens.sum()),
        effective_topics(doc_topic),
        agreed,
        np.asarray(tokens @ doc_topic / tokens.sum(), dtype=np.float64),
        words,
    )


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }
