"""Posterior of a mixture of multinomials, in which all words of a document come from one topic.

P(z|d) is proportional to P(z) prod_w P(w|z)^x_dw. All functions are vectorized over documents; the result of a document
does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import DocumentWeights, GivenDocuments, NoLargeArrays, OwnPrior, StoredArray
from polyseme.core.fold_in import select_known_words
from polyseme.kernels import Array, Floats, SparseCounts, check_topics

_TINY = float(np.finfo(np.float64).tiny)
"""Probability in place of zero, whose logarithm is finite."""


def log_joint(matrix: Any, topic_word: Floats, topic_shares: Floats) -> Floats:
    """Return log P(z) + sum_w x_dw log P(w|z), documents x K, from counts (CSR) and P(w|z) (words x K)."""
    return np.asarray(matrix @ np.log(np.maximum(topic_word, _TINY)) + np.log(np.maximum(topic_shares, _TINY)))


def log_sums(logs: Floats) -> tuple[Floats, Floats]:
    """Return the softmax of every row, and the log of the sum of its exponentials."""
    largest = logs.max(axis=1, keepdims=True)
    powers = np.exp(logs - largest)
    sums = powers.sum(axis=1, keepdims=True)
    return powers / sums, (largest + np.log(sums))[:, 0]


@dataclass(frozen=True, eq=False)
class MixturePosterior(NoLargeArrays, OwnPrior):
    """Inference of a mixture of multinomials: the probability of each topic for the document as a whole."""

    kind: ClassVar[str] = "mixture"
    parameter_names: ClassVar[tuple[str, ...]] = ()
    background: ClassVar[None] = None
    stored: ClassVar[Mapping[str, StoredArray]] = {"topic_shares": StoredArray("K")}
    stored_by_document: ClassVar[Mapping[str, StoredArray]] = {}
    topic_shares: Floats
    """P(z), the share of the documents of each topic."""

    def edited(self, edit: TopicEdit) -> MixturePosterior:
        """Return the inference for merged and removed topics."""
        shares = edit.sums(self.topic_shares)
        return replace(self, topic_shares=shares / shares.sum())

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int,
        given: GivenDocuments | None = None,
    ) -> DocumentWeights:  # fmt: skip
        """Return P(z|d) of every row, with log P(d) as its bound; a document without known words gets P(z)."""
        words = topic_word.T.astype(np.float64)
        word_sums = words.sum(axis=1)
        check_topics(word_sums)
        known_counts, unseen_tokens = select_known_words(counts, word_sums > 0)
        doc_topic, bounds = log_sums(log_joint(known_counts.matrix().astype(np.float64), words, self.topic_shares))
        doc_topic = doc_topic.astype(topic_word.dtype)
        return DocumentWeights(doc_topic, np.zeros(counts.n_docs), known_counts, unseen_tokens, bounds)
