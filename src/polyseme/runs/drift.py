"""How new documents differ from those of a run: topics that grow and fade, and what the topics do not explain."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.shard import sparse_counts
from polyseme.kernels import Array, Floats, SparseCounts, weighted_sum
from polyseme.runs.corpus import take_counts
from polyseme.runs.run import Run
from polyseme.selection.new_topics import Reference, held_out_topics
from polyseme.uncertainty.intervals import Differences, differences_of
from polyseme.utils import effective_threads, sample_rows

FADED = 0.5
"""A topic has faded if its share is at most this part of what it was, and the difference is not due to chance."""
_MOST, _SHARE, _LEAST = 5000, 0.2, 20
"""Old documents that are compared with new ones: at most this number, this share of all, and at least this number."""
_FALSE_DISCOVERIES = 0.05


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
