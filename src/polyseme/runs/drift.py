"""How new documents differ from those of a run: topics that grow and fade, and what the topics do not explain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.shard import sparse_counts
from polyseme.kernels import Array, Floats, SparseCounts, Want, weighted_sum
from polyseme.metrics.evaluation import mean_and_error
from polyseme.runs.corpus import take_counts
from polyseme.runs.run import Run
from polyseme.selection.new_topics import Reference, find_new_topics, held_out_topics
from polyseme.text.vectorizer import Vectorizer
from polyseme.uncertainty.intervals import Differences, differences_of
from polyseme.utils import effective_threads, sample_rows

FADED = 0.5
"""A topic has faded if its share is at most this part of what it was, and the difference is not due to chance."""
_MOST, _SHARE, _LEAST = 5000, 0.2, 20
"""Old documents that are compared with new ones: at most this number, this share of all, and at least this number."""
_FALSE_DISCOVERIES = 0.05
_UNKNOWN, _WORSE = 0.2, 1.25
"""A new fit is recommended if a larger share of the tokens are new words, or if the perplexity of new documents is
more than this many times that of old ones."""
_WORDS_SHOWN = 20
UPDATE, NEW_TOPICS, FIT = "update", "new topics", "fit again"
"""What is recommended."""


class ShareChanges(NamedTuple):
    """Mean weights of the topics in old and in new documents."""

    old: Floats
    new: Floats
    difference: Differences
    """New minus old, with 95% intervals."""

    @property
    def changed(self) -> Array:
        """Which topics are more or less frequent, at a false discovery rate of 5%."""
        return self.difference.q_values <= _FALSE_DISCOVERIES

    @property
    def faded(self) -> list[int]:
        """Topics that have faded."""
        return np.flatnonzero(self.changed & (self.new <= FADED * self.old)).tolist()


def reference_of(run: Run) -> Reference:
    """Return some documents of a run, drawn at random, and its topics without what these have contributed."""
    fitted, training, info = run.view.fitted, run.view.training, run.info
    size = min(max(int(_SHARE * info.documents), _LEAST), _MOST)
    rows = sample_rows(info.documents, size, info.model.random_state)
    counts = sparse_counts(take_counts(run.store.shards, rows), fitted.topic_word.dtype)
    ranges = np.array(info.fitted_to or [(0, info.documents)] * fitted.n_topics)
    tokens, trained = np.zeros(fitted.n_topics), np.zeros((rows.size, fitted.n_topics), dtype=bool)
    for first, last in np.unique(ranges, axis=0).tolist():
        topics, within = (ranges == (first, last)).all(axis=1), slice(first, last)
        lengths = training.doc_weights[within] * (1 - training.background[within]) * fitted.n_tokens
        tokens[topics] = weighted_sum(np.asarray(lengths), np.asarray(training.doc_topic[within]))[topics]
        trained[np.ix_((first <= rows) & (rows < last), topics)] = True
    n_threads = effective_threads(None)
    topic_word = held_out_topics(fitted, training.take(rows), counts, tokens, trained, n_threads=n_threads)
    return Reference(topic_word, cast(MaximumLikelihood, fitted.inference), counts)


def share_changes(reference: Reference, counts: SparseCounts) -> ShareChanges:
    """Compare the mean weights of the topics in new documents with those in old ones."""
    means, variances, sizes = [], [], []
    for documents in (reference.counts, counts):
        known = documents.take(np.flatnonzero(documents.totals > 0))
        weights = reference.inference.weights(known, reference.topic_word, None, n_threads=effective_threads(None))
        means.append(weights.doc_topic.mean(axis=0, dtype=np.float64))
        variances.append(weights.doc_topic.var(axis=0, dtype=np.float64) / max(known.n_docs - 1, 1))
        sizes.append(known.n_docs)
    error = np.sqrt(variances[0] + variances[1])
    return ShareChanges(means[0], means[1], differences_of(means[1] - means[0], error, 0.95, max(min(sizes) - 1, 1)))


@dataclass(frozen=True, eq=False)
class Drift:
    """How well the topics of a run explain new documents, compared with old ones that the topics were not fitted to."""

    n_documents: int
    """New documents with known words."""
    perplexity: float
    """Of the new documents, folded in."""
    old_perplexity: float
    """Of old documents, with topics that were not fitted to them."""
    ratio: tuple[float, float]
    """95% interval of the first perplexity divided by the second one."""
    unknown: float | None
    """Share of the tokens of the new documents whose words no document of the run has; None without texts."""
    new_words: tuple[str, ...]
    """Words that the run does not have, in most of the new documents first."""
    shares: ShareChanges
    p_value: float | None
    """P-value of new topics; None if there are too few documents to test."""
    n_new: int
    """Number of new topics."""

    @property
    def changed_topics(self) -> list[int]:
        """Topics whose share differs from that of old documents, the largest difference first."""
        order = np.argsort(-np.abs(self.shares.difference.estimate), kind="stable")
        return order[self.shares.changed[order]].tolist()

    @property
    def advice(self) -> str:
        """What to do with the new documents: UPDATE, NEW_TOPICS or FIT."""
        if (self.unknown or 0) > _UNKNOWN:
            return FIT
        if self.n_new:
            return NEW_TOPICS
        return FIT if self.ratio[0] > _WORSE else UPDATE


def drift_of(run: Run, X: Any, texts: Iterable[str] | None = None) -> Drift | None:
    """Compare new documents with those of a run; None for a model without a likelihood that takes new topics.

    X : counts of the words of the run. texts : the same documents, to find words that the run does not have.
    """
    counts = sparse_counts(X, run.view.fitted.topic_word.dtype)
    known = counts.take(np.flatnonzero(counts.totals > 0))
    if not run.model._adds_topics or not run.view.fitted.inference.is_likelihood or known.n_docs < 2:
        return None
    reference, n_threads = reference_of(run), effective_threads(None)
    (new, new_error), (old, old_error) = (_mean_log(reference, part) for part in (known, reference.counts))
    half = 1.96 * float(np.hypot(new_error, old_error))
    found = find_new_topics(reference, counts, random_state=run.info.model.random_state, n_threads=n_threads)
    has_texts = texts is not None and run.store.documents.has_texts
    unknown, words = _unknown_words(run, texts or ()) if has_texts else (None, ())
    return Drift(
        known.n_docs, float(np.exp(-new)), float(np.exp(-old)),
        (float(np.exp(old - new - half)), float(np.exp(old - new + half))), unknown, words,
        share_changes(reference, known), None if found is None else found.p_value,
        0 if found is None else int(found.new.sum()),
    )  # fmt: skip


def _mean_log(reference: Reference, counts: SparseCounts) -> tuple[float, float]:
    """Return the mean log-likelihood of a token, and its standard error by documents."""
    n_threads = effective_threads(None)
    weights = reference.inference.weights(counts, reference.topic_word, None, n_threads=n_threads)
    operands = reference.inference.operands(weights, reference.topic_word)
    logs = counts.sums(*operands, Want.LOGS, n_threads=n_threads).logs
    return mean_and_error(np.asarray(logs), counts.totals)


def _unknown_words(run: Run, texts: Iterable[str]) -> tuple[float, tuple[str, ...]]:
    """Return the share of tokens whose words occur in two of the texts and in no document of the run, and the words.

    Words that the run has left out because they are too rare or too frequent are not new. A large run is represented by
    a sample of its documents.
    """
    language = {"language": run.info.language} if run.info.counting.get("language") == "auto" else {}
    vectorizer = Vectorizer(**{**run.info.counting, **language, "min_df": 1, "max_df": 1.0})
    counts = vectorizer.fit_transform(texts)
    words = np.asarray(vectorizer.get_feature_names_out())
    documents = np.asarray((counts > 0).sum(axis=0)).ravel()
    before = np.asarray(vectorizer.transform(run.view.corpus.sampled_texts(_MOST)[1]).sum(axis=0)).ravel()
    new = (documents > 1) & (before == 0) & ~np.isin(words, [*run.vocabulary, *run.info.banned_words])
    shown = np.argsort(-np.where(new, documents, 0), kind="stable")[: min(_WORDS_SHOWN, int(new.sum()))]
    share = float(counts[:, np.flatnonzero(new)].sum()) / max(float(counts.sum()), 1.0)
    return share, tuple(map(str, words[shown]))
