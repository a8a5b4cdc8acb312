"""New topics: what new documents are about that the topics of a fitted model do not explain.

The topics of the model do not change; EM fits some more to new documents beside them (`fit_beside`). Topics that are
only finer than the old ones also raise the likelihood, of old documents as well as of new ones. So topics fitted to one
half of the new documents have to raise the log-likelihood of documents of the other half by more than `TIMES` times
what they raise that of old documents. The test is a permutation test (`_p_value`): under the hypothesis, the gains of
new documents and TIMES the gains of old documents are exchanged among documents with the same main topic, so a topic
that becomes more or less frequent is no evidence. A threshold above one is needed because a fit with fewer topics than
the documents have subjects joins some of them, and the parts of a topic then grow and fade.

The fit must give old documents no advantage. They are a sample whose expected counts n_dw P(z|d,w) are subtracted from
the topics (`held_out_topics`); both groups are scored with these topics. The halves of the new documents are used both
ways, and up to three topics are tried; the p-value is the smallest one times the number of tests (Bonferroni). A
document longer than the median old document counts as one of that length, so that a few long documents are no topic.

Once there is something new, the number of topics grows while they explain the new documents better. Subjects near an
old topic, which explains them in part, are found by a fit of old and new documents together, without fixed topics.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import vstack
from sklearn.exceptions import ConvergenceWarning

from polyseme.core.fitted import DocumentWeights, FittedTopics, TrainingDocuments, posterior_operands
from polyseme.core.fold_in import MaximumLikelihood, select_known_words
from polyseme.core.model import m_step_docs
from polyseme.data.corpus import MemoryCorpus
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats, SparseCounts, Want, normalize_rows, padded, row_blocks
from polyseme.metrics.evaluation import mean_and_error
from polyseme.selection.reading import shared_topics
from polyseme.selection.suggestions import MIN_DOCUMENTS

FALSE_ALARMS = 0.001
"""Probability of a new topic in documents without one."""
TIMES = 3.0
"""A new topic explains new documents better than this many times what it explains in old documents."""
MIN_NEW = 2 * MIN_DOCUMENTS
"""With fewer new documents there is no test."""
_SIZE = 0.5
"""A new topic is the main topic of at least this share of the documents that an old topic has on average."""
_TRIED = 3
"""Most topics that are fitted at a time before any of them is new."""
_TESTS = _TRIED * (_TRIED + 1)
"""Number of tests: every topic of each number of topics, in both halves of the documents."""
_PERMUTATIONS, _PERMUTED = 23_999, 1 << 21
"""Number of permutations, and of values that are permuted at once."""
_ENOUGH = 20
"""Permutations end when this many had values as large as those found."""
_SMOOTHING = 0.01
"""Weight of the unigram in held-out topics, because words of the held-out documents alone have probability zero."""
_START_SHARE, _START_UNIGRAM = 0.1, 0.01
"""Weight of new topics in every document, and of the observed words in new topics, at the start of EM."""
_MAX_ITER, _MOVED = 200, 0.005
"""EM ends when an iteration moves at most this share of the tokens of every new topic."""
_FREE_ITERATIONS = 50
"""Limit of a fit in which no topic is fixed."""
_LEAST_COUNT = 1e-3
"""Smaller expected counts are left out of this fit."""
_FREE, _MORE_FREQUENT = 6, 1.5
"""Number of topics, in addition to the old ones, of a fit in which no topic is fixed. Those that are more frequent in
new documents by this factor start new topics."""
_FAILURES = 2
"""Numbers of new topics in a row that may fail before the search for more of them ends."""
Progress = Callable[[int, int, str], Any]


class Reference(NamedTuple):
    """Old documents, and the topics without what these documents have contributed."""

    topic_word: Array
    """P(w|z), K x words."""
    inference: MaximumLikelihood
    """Inference of PLSA, the only model to which topics are added."""
    counts: SparseCounts

    @property
    def length(self) -> float:
        """Median number of tokens of an old document."""
        totals = self.counts.totals
        return float(np.median(totals[totals > 0])) if totals.any() else 1.0


class NewTopics(NamedTuple):
    """Result of `find_new_topics`."""

    p_value: float
    """Probability of gains as large as those found if there is no new topic."""
    start: Floats
    """P(w|z) of topics that were fitted to half of the new documents beside the old ones (m x words)."""
    new: Array
    """Which of them are new; the others are parts of old topics, which EM needs to find the new ones."""


def held_out_topics(
    fitted: FittedTopics, documents: TrainingDocuments, counts: SparseCounts, tokens: Floats, trained: Array,
    *, n_threads: int,
) -> Array:  # fmt: skip
    """Return P(w|z) without the contribution of some documents, smoothed by the unigram.

    documents, counts : the documents to leave out. tokens : expected number of tokens of each topic in the documents
    that it was fitted to. trained : which topics were fitted to which of the documents (documents x K, bool).
    """
    expected = fitted.topic_word * tokens[:, np.newaxis]
    groups, group = np.unique(trained, axis=0, return_inverse=True)
    for number, topics in enumerate(groups):
        rows = np.flatnonzero(group.ravel() == number)
        part, some = documents.take(rows), counts.take(rows)
        operands = fitted.inference.operands(DocumentWeights(part.doc_topic, part.background, some), fitted.topic_word)
        A, B = posterior_operands(operands, fitted.inference.temperature)
        sums = some.sums(A, B, Want.WORDS, n_threads=n_threads).word_sums * B
        expected -= sums[:, : len(expected)].T * topics[:, np.newaxis]
    left = np.maximum(expected, 0)
    left[left.sum(axis=1) <= 0] = fitted.unigram
    held_out = (1 - _SMOOTHING) * normalize_rows(left) + _SMOOTHING * fitted.unigram
    return held_out.astype(fitted.topic_word.dtype)


def find_new_topics(
    reference: Reference, counts: SparseCounts, *, random_state: int, n_threads: int, progress: Progress | None = None
) -> NewTopics | None:
    """Return the new topics of new documents with these counts; None if there are none, or too few documents.

    One, two and three topics are fitted, because one may join a new subject with a part of an old topic. If one of them
    is new, the number of topics grows as long as more of them are new.
    """
    rng = np.random.default_rng(random_state)
    counts, _ = select_known_words(counts, np.asarray(reference.topic_word.any(axis=0)))
    rows = rng.permutation(np.flatnonzero(counts.totals > 0))
    if rows.size < MIN_NEW:
        return None
    old, new = (_shortened(part, reference.length) for part in (reference.counts, counts))
    one, other = (new.take(np.sort(half)) for half in np.array_split(rows, 2))
    searches = [_Search(reference, old, *pair, rng, n_threads) for pair in ((one, other), (other, one))]
    topics = [search.fit(_unexplained(reference, search.first, n_threads)) for search in searches]
    least = 1.0
    for m in range(1, _TRIED + 1):
        if progress is not None:
            progress(m - 1, _TRIED, f"{m} at a time")
        if m > 1:
            topics = [search.more(found, m, random_state) for search, found in zip(searches, topics, strict=True)]
        p_values = [search.p_values(found) for search, found in zip(searches, topics, strict=True)]
        best = int(np.argmin([values.min() for values in p_values]))
        least = min(least, float(p_values[best].min()) * _TESTS)
        if least <= FALSE_ALARMS and searches[best].new(topics[best]).any():
            return NewTopics(least, *searches[best].grow(topics[best], random_state))
    return NewTopics(min(least, 1.0), topics[0][:0], np.empty(0, dtype=bool))


def given_topics(
    reference: Reference, counts: SparseCounts, n_topics: int, *, random_state: int, n_threads: int
) -> Floats:
    """Return P(w|z) of a given number of topics of new documents beside the old topics."""
    counts = _shortened(counts, reference.length)
    topics = fit_beside(reference, counts, _unexplained(reference, counts, n_threads), n_threads=n_threads)
    if n_topics > 1:
        topics = _split(reference, counts, topics, n_topics, random_state, n_threads)
    return topics


def fit_new_topics(
    fitted: FittedTopics, reference: Reference, counts: SparseCounts, start: Floats, *, n_threads: int
) -> Floats:
    """Return P(w|z) of new topics, fitted to new documents beside the topics of a model from those of a search."""
    exact = reference._replace(topic_word=fitted.active_topics)
    return fit_beside(exact, _shortened(counts, reference.length), start, n_threads=n_threads)


def fit_beside(reference: Reference, counts: SparseCounts, start: Floats, *, n_threads: int) -> Floats:
    """Return P(w|z) of new topics that EM fits to documents beside the old topics, which do not change.

    start : P(w|z) at the start, which is mixed with the words of the documents, because EM cannot increase a zero.
    """
    K, m = len(reference.topic_word), len(start)
    model, corpus = reference.inference.model(K + m), MemoryCorpus(counts, None, n_threads)
    old = reference.inference.weights(counts, reference.topic_word, None, n_threads=n_threads).doc_topic
    theta = np.hstack([(1 - _START_SHARE) * old, np.full((counts.n_docs, m), _START_SHARE / m)])
    theta = padded(theta, counts.dtype, model.n_columns)
    start = (1 - _START_UNIGRAM) * start + _START_UNIGRAM * corpus.unigram
    phi = padded(np.vstack([reference.topic_word, start]).T, counts.dtype, model.n_columns)
    for _ in range(_MAX_ITER):
        A, B = model.operands(theta, phi)
        sums = corpus.sums(A, B)
        theta = m_step_docs(model, corpus, theta, A, sums.row_sums)
        before = phi[:, K : K + m].T.astype(np.float64)
        expected = (B[:, K : K + m] * sums.word_sums[:, K : K + m]).T
        used = expected.sum(axis=1, keepdims=True) > 0
        topics = normalize_rows(np.where(used, expected, before))
        phi[:, K : K + m] = topics.T
        if np.abs(topics - before).sum(axis=1).max() <= 2 * _MOVED:
            break
    return topics


class _Search(NamedTuple):
    """Halves of the new documents and the old ones, between which new topics are compared."""

    reference: Reference
    old: SparseCounts
    first: SparseCounts
    """New documents that topics are fitted to."""
    second: SparseCounts
    """New documents that are compared with the old ones."""
    rng: np.random.Generator
    n_threads: int

    def fit(self, start: Floats) -> Floats:
        return fit_beside(self.reference, self.first, start, n_threads=self.n_threads)

    def more(self, topics: Floats, n_topics: int, seed: int) -> Floats:
        """Return another number of topics in place of these."""
        return self.fit(_split(self.reference, self.first, topics, n_topics, seed, self.n_threads))

    def grow(self, topics: Floats, seed: int) -> tuple[Floats, Array]:
        """Return more topics as long as more of them are new and explain the documents better, and which are new."""
        new, failures, m = self.new(topics), 0, len(topics)
        while failures < _FAILURES:
            m += 1
            more = self.more(topics, m, seed)
            if (found := self.new(more)).sum() > new.sum() and self.explains(more, topics):
                topics, new, failures = more, found, 0
            else:
                failures += 1
        # A subject near an old topic is explained by it in part, so a division of the new topics does not find it.
        joined = self.fit(np.vstack([topics[new], self.more_frequent(seed)]))
        found = self.new(joined)
        return (joined, found) if found.sum() >= new.sum() and self.explains(joined, topics) else (topics, new)

    def more_frequent(self, seed: int) -> Floats:
        """Return topics of a fit of old and new documents, none of them fixed, that are more frequent in new ones."""
        n_topics = len(self.reference.topic_word) + _FREE
        matrix = vstack([self.first.matrix(), self.old.matrix()], format="csr")
        topics = _free_fit(matrix, n_topics, seed, self.n_threads)
        joint = self._replace(reference=self.reference._replace(topic_word=topics.astype(self.first.dtype)))
        new, old = (np.bincount(joint._main(part), minlength=n_topics) for part in (self.second, self.old))
        return topics[new / self.second.n_docs >= _MORE_FREQUENT * (old + 1) / (self.old.n_docs + 1)]

    def p_values(self, topics: Floats) -> Floats:
        """Return the p-value of each topic in addition to the old ones and to the others."""
        main = [self._main(part) for part in (self.second, self.old)]
        after, values = _stacked(self.reference, topics), []
        for k in range(len(topics)):
            before = _stacked(self.reference, np.delete(topics, k, axis=0))
            new, old = (self._logs(part, after) - self._logs(part, before) for part in (self.second, self.old))
            values.append(_p_value(new, main[0], TIMES * old, main[1], self.rng))
        return np.array(values)

    def new(self, topics: Floats) -> Array:
        """Return which topics are the main topics of enough documents, and of more than TIMES the share of old ones."""
        K, m = len(self.reference.topic_word), len(topics)
        new, old = (np.bincount(self._main(part, topics), minlength=K + m)[K:] for part in (self.second, self.old))
        share_of_old = (old + 1) / (self.old.n_docs + 1)
        least = max(_SIZE * self.second.n_docs / K, MIN_DOCUMENTS / 2)
        return np.asarray((new >= least) & (new / self.second.n_docs >= TIMES * share_of_old))

    def explains(self, topics: Floats, fewer: Floats) -> bool:
        """Return whether topics explain the new subjects better than fewer topics do.

        In a document about one of them, each additional topic has to gain more than the nat by which a further weight
        raises the likelihood by chance (Akaike's criterion); the topics were fitted to other documents.
        """
        about = self.second.take(np.flatnonzero(self._main(self.second, fewer) >= len(self.reference.topic_word)))
        more, less = (self._logs(about, _stacked(self.reference, added)) for added in (topics, fewer))
        gain, error = mean_and_error(more - less - (len(topics) - len(fewer)), np.ones(about.n_docs))
        return bool(gain > error)

    def _logs(self, counts: SparseCounts, topic_word: Array) -> Floats:
        """Return the log-likelihood of documents."""
        weights = self.reference.inference.weights(counts, topic_word, None, n_threads=self.n_threads)
        operands = self.reference.inference.operands(weights, topic_word)
        return counts.sums(*operands, Want.LOGS, n_threads=self.n_threads).logs

    def _main(self, counts: SparseCounts, added: Floats | None = None) -> Array:
        """Return the main topic of documents."""
        topics = self.reference.topic_word if added is None else _stacked(self.reference, added)
        weights = self.reference.inference.weights(counts, topics, None, n_threads=self.n_threads)
        return weights.doc_topic.argmax(axis=1)


def _split(
    reference: Reference, counts: SparseCounts, topics: Floats, n_topics: int, seed: int, n_threads: int
) -> Floats:
    """Return `n_topics` topics of the tokens that are expected to come from new topics."""
    joint, K = _stacked(reference, topics), len(reference.topic_word)
    weights = reference.inference.weights(counts, joint, None, n_threads=n_threads)
    A, B = reference.inference.operands(weights, joint)
    q = counts.products(A, B, n_threads=n_threads)
    A[:, K : len(joint)] = 0
    others = counts.products(A, B, n_threads=n_threads)
    values = counts.values * np.clip(1 - np.divide(others, q, out=np.ones_like(q), where=q > 0), 0, 1)
    expected = counts.with_values(np.where(values > _LEAST_COUNT, values, 0))
    expected = expected.take(np.flatnonzero(expected.totals >= 1))
    if expected.n_docs < n_topics:
        return np.repeat(topics, n_topics, axis=0)[:n_topics]
    return _free_fit(expected.matrix(), n_topics, seed, n_threads)


def _free_fit(matrix: Any, n_topics: int, seed: int, n_threads: int) -> Floats:
    """Return P(w|z) of topics of which none is fixed."""
    start = shared_topics(matrix, n_topics, max_documents=None, n_jobs=n_threads, random_state=seed)
    init = "random" if start is None else (None, start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # EM continues beside the old topics
        fit = PLSA(n_topics, init=init, max_iter=_FREE_ITERATIONS, n_jobs=n_threads, random_state=seed).fit(matrix)
    return fit.components_.astype(np.float64)


def _p_value(new: Floats, new_main: Array, old: Floats, old_main: Array, rng: np.random.Generator) -> float:
    """Return the share of permutations within main topics in which the values of new documents are as large."""
    values, main = np.concatenate([new, old]), np.concatenate([new_main, old_main])
    is_new = np.arange(values.size) < new.size
    strata, observed = [], 0.0
    for topic in np.unique(main):
        rows = main == topic
        centered = values[rows] - values[rows].mean()
        n = int((rows & is_new).sum())
        if 0 < n < centered.size:
            strata.append((centered, n))
            observed += centered[is_new[rows]].sum()
    rounding = 1e-9 * np.abs(values).sum()
    done = larger = 0
    for block in row_blocks(_PERMUTATIONS, values.size, _PERMUTED):
        drawn = np.zeros(block.stop - block.start)
        for centered, n in strata:
            drawn += rng.permuted(np.tile(centered, (drawn.size, 1)), axis=1)[:, :n].sum(axis=1)
        done, larger = done + drawn.size, larger + int((drawn >= observed - rounding).sum())
        if larger >= _ENOUGH:
            break
    return (1 + larger) / (1 + done)


def _unexplained(reference: Reference, counts: SparseCounts, n_threads: int) -> Floats:
    """Return the words that documents use more often than the topics expect, as one topic."""
    weights = reference.inference.weights(counts, reference.topic_word, None, n_threads=n_threads)
    A, B = reference.inference.operands(weights, reference.topic_word)
    observed = counts.word_totals(None)
    excess = np.maximum(observed - B @ np.einsum("d,dk->k", counts.totals, A, dtype=np.float64), 0)
    return normalize_rows((excess if excess.any() else observed)[np.newaxis])


def _stacked(reference: Reference, topics: Floats) -> Array:
    return np.vstack([reference.topic_word, topics.astype(reference.topic_word.dtype)])


def _shortened(counts: SparseCounts, length: float) -> SparseCounts:
    """Return counts in which no document has more than `length` tokens."""
    scale = np.minimum(1, length / np.maximum(counts.totals, 1e-300))
    return counts.with_values((counts.values * np.repeat(scale, np.diff(counts.indptr))).astype(counts.dtype))
