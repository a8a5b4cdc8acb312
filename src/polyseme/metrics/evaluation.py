"""Evaluation of a model: its perplexities, and all measures at once.

A perplexity is exp of minus the mean log-probability of a token (natural logarithm), and is reported with that of the
unigram. There are three kinds: training (of the documents that a model was fitted to), folded in (of documents whose
weights were estimated from all their words) and completion (of one half of each document, with weights estimated from
the other half).

The mean log-probability of a token is a ratio, sum_d l_d / sum_d n_d, where document d has n_d scored tokens with the
log-probability l_d. Its standard error comes from the residuals l_d - mean n_d of the documents: documents are
independent, tokens of one document are not. With several splits into halves, l_d and n_d are sums over the splits. Each
document is split on its own, so that the variation between splits is a part of that between documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, check_sparse
from polyseme.metrics.clustering import Agreement, label_agreement
from polyseme.metrics.coherence import WINDOWS, CoherenceReport, TokenSequences, coherence
from polyseme.metrics.deviance import ExplainedDeviance, explained_deviance
from polyseme.metrics.topics import (
    FitReport,
    Redundancy,
    effective_topics,
    exclusivity,
    fit_report,
    topic_diversity,
    topic_redundancy,
)
from polyseme.metrics.words import fitted_topics, top_words, topic_rows
from polyseme.options import flags_used
from polyseme.printing import Printed, Table, decimal
from polyseme.progress import pluralize
from polyseme.utils import perplexity_of


@dataclass(frozen=True, repr=False)
class PerplexityReport(Printed):
    """A perplexity with the tokens that it was computed from.

    Attributes
    ----------
    kind : str
        "folded in" or "completion".
    perplexity : float
        Perplexity of the model; NaN without tokens.
    standard_error : float
        Standard error of the perplexity, over documents and splits; NaN for fewer than two documents. An interval of
        two standard errors on either side contains the perplexity of all such documents in about 95% of all cases.
    unigram_perplexity : float
        Perplexity of the same tokens under P(w) of the training documents.
    tokens : float
        Number of scored tokens, in all splits.
    unseen_tokens : float
        Number of tokens, in all splits, of words that the training documents do not contain. They are scored only if
        they are given a probability.
    smoothed_share : float
        Share of the scored tokens that get more probability from the smoothing than from the topics.
    document_logs : array of shape (n_documents,)
        Log-probability of the scored tokens of each document.
    document_tokens : array of shape (n_documents,)
        Number of scored tokens of each document.
    """

    kind: str
    perplexity: float
    standard_error: float
    unigram_perplexity: float
    tokens: float
    unseen_tokens: float
    smoothed_share: float
    document_logs: Floats = field(compare=False)
    document_tokens: Floats = field(compare=False)

    def _printed_table(self) -> Table:
        error = decimal(self.standard_error, 1)
        rows = [
            ("model", decimal(self.perplexity, 1), error and f"standard error {error}"),
            ("unigram", decimal(self.unigram_perplexity, 1), ""),
        ]
        if self.smoothed_share:
            rows.append(("smoothed tokens", f"{self.smoothed_share:.1%}", ""))
        if self.unseen_tokens:
            rows.append(("unseen tokens", decimal(self.unseen_tokens, 0), ""))
        return Table(f"Perplexity ({self.kind}) of {pluralize(round(self.tokens), 'token')}", ("", "value", ""), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the report without the documents for JSON.

        Returns
        -------
        dict
            The figures by name; None for numbers that are not finite.
        """
        figures = {name: value for name, value in vars(self).items() if not name.startswith("document_")}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in figures.items()
        }

    @staticmethod
    def pool(reports: Iterable[PerplexityReport]) -> PerplexityReport:
        """Combine reports of batches of documents into one report of all documents.

        Parameters
        ----------
        reports : iterable of PerplexityReport
            Reports of one kind.

        Returns
        -------
        PerplexityReport
            The report of all documents; it does not depend on the batches.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> from polyseme.typing import PerplexityReport
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> report = PerplexityReport.pool(model.perplexity_report(batch) for batch in (X[:2], X[2:]))
        >>> bool(np.isclose(report.perplexity, model.perplexity(X)))
        True
        """
        reports = list(reports)
        kinds = sorted({report.kind for report in reports})
        if len(kinds) != 1:
            raise InputError(f"Only reports of one kind can be pooled, got {' and '.join(kinds) or 'none'}.")
        return _combine(reports, np.concatenate)


def add_splits(reports: list[PerplexityReport]) -> PerplexityReport:
    """Combine reports of several splits of the same documents."""
    return _combine(reports, lambda splits: np.sum(splits, axis=0))


def mean_and_error(values: Floats, tokens: Floats) -> tuple[float, float]:
    """Return sum values / sum tokens and its standard error by documents (NaN for fewer than two documents)."""
    total, n = float(tokens.sum()), int(np.count_nonzero(tokens))
    mean = float(values.sum()) / total if total > 0 else math.nan
    if n < 2 or not math.isfinite(mean):
        return mean, math.nan
    variance = float(((values - mean * tokens) ** 2).sum()) * n / (n - 1)
    return mean, math.sqrt(variance) / total


def _combine(reports: list[PerplexityReport], join: Callable[[list[Floats]], Floats]) -> PerplexityReport:
    scored = [report for report in reports if report.tokens > 0]
    return _report(
        reports[0].kind,
        join([report.document_logs for report in reports]),
        join([report.document_tokens for report in reports]),
        -sum(report.tokens * float(np.log(report.unigram_perplexity)) for report in scored),
        sum(report.unseen_tokens for report in reports),
        sum(report.tokens * report.smoothed_share for report in scored),
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
    base = unigram[counts.indices]
    seen = base > 0
    x = counts.values.astype(np.float64)
    unseen_tokens = float(x[~seen].sum())
    if unseen is None:
        x[~seen] = 0
    seen_share = 1.0 if unseen is None else 1.0 - unseen * float(np.count_nonzero(unigram == 0))
    from_topics = (1.0 - smoothing) * probabilities.astype(np.float64)
    from_unigram = smoothing * base
    mixed, alone = (np.where(seen, seen_share * p, unseen or 1.0) for p in (from_topics + from_unigram, base))
    return _report(
        kind,
        counts.sums_by_row(xlogy(x, mixed)),
        counts.sums_by_row(x),
        float(xlogy(x, alone).sum()),
        unseen_tokens,
        float(x[seen & (from_unigram > from_topics)].sum()),
    )


def _report(
    kind: str, logs: Floats, tokens: Floats, unigram_log: float, unseen_tokens: float, smoothed_tokens: float
) -> PerplexityReport:
    total = float(tokens.sum())
    mean, error = mean_and_error(logs, tokens)
    perplexity = perplexity_of(mean)
    return PerplexityReport(
        kind,
        perplexity,
        perplexity * error,
        perplexity_of(unigram_log, total),
        total,
        unseen_tokens,
        smoothed_tokens / total if total > 0 else 0.0,
        logs,
        tokens,
    )


@dataclass(frozen=True, repr=False)
class Evaluation(Printed):
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
    explained : ExplainedDeviance or None
        Share of the deviance that the topics explain, of all counts, documents and words, and dispersion of words; None
        for models of other libraries.
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
    explained: ExplainedDeviance | None
    effective_topics: Floats
    agreement: Agreement | None
    topic_weights: Floats
    topic_words: Array

    def _printed_table(self) -> Table:
        rows = [
            (f"perplexity, {kind}", decimal(report.perplexity, 1), f"{decimal(report.unigram_perplexity, 1)} unigram")
            for kind, report in (("folded in", self.perplexity), ("completion", self.completion))
        ]
        rows += [(f"coherence {name}", decimal(report.mean, 3), "") for name, report in self.coherence.items()]
        rows += [
            ("diversity", decimal(self.diversity, 3), ""),
            ("exclusivity", decimal(float(self.exclusivity.mean()), 3), ""),
            ("topics that fit", str(self.fit.n_fitting), f"of {len(self.topic_weights)}"),
            ("topics per document", decimal(float(self.effective_topics.mean()), 2), ""),
        ]
        if self.explained is not None:
            rows.append(("deviance explained", f"{self.explained.total:.1%}", "of the unigram's"))
        if self.agreement is not None:
            rows += [(f"{name} with labels", decimal(getattr(self.agreement, name), 3), "") for name in ("nmi", "ari")]
        heading = f"{len(self.topic_weights)} topics on {pluralize(self.n_documents, 'document')}"
        return Table(heading, ("measure", "value", ""), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as numbers, lists and strings for JSON.

        Returns
        -------
        dict
            The measures by name; None for perplexities that are not finite.
        """
        return {
            "documents": self.n_documents,
            "perplexity": self.perplexity.to_dict(),
            "completion": self.completion.to_dict(),
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
            "explained": None
            if self.explained is None
            else {"total": self.explained.total, "median_dispersion": self.explained.median_dispersion},
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

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.metrics import evaluate
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> found = evaluate(PLSA(2, random_state=0).fit(X), X, n_words=2)
    >>> found.diversity
    1.0
    """
    unknown = [measure for measure in measures if measure not in WINDOWS]
    if unknown:
        raise InputError(f"measures must be among {', '.join(WINDOWS)}, got {unknown[0]!r}.")
    if not hasattr(model, "perplexity_report"):  # NMF, LSA, and models of other libraries
        advice = (
            "evaluate a run of another --model, such as plsa."
            if flags_used()
            else "evaluate PLSA, LDA, HierarchicalPLSA, CorrelatedTopicModel, MultinomialMixture, or the result of "
            "NMF.to_plsa()."
        )
        raise UnsupportedError(f"{type(model).__name__} has no perplexity: {advice}")
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
    words = top_words(model, n_words)
    reference = counts if texts is None else texts
    coherences = {measure: coherence(words, reference, measure) for measure in measures}
    report_step("topics")
    fitted = fitted_topics(model)
    return Evaluation(
        counts.shape[0],
        perplexity,
        completion,
        coherences,
        topic_diversity(words),
        topic_redundancy(words),
        exclusivity(topic_rows(model), n_words),
        fit_report(doc_topic, tokens / tokens.sum()),
        None if fitted is None else explained_deviance(fitted, folded),
        effective_topics(doc_topic),
        agreement,
        np.asarray(tokens @ doc_topic / tokens.sum(), dtype=np.float64),
        words,
    )
