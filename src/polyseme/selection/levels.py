"""Levels: finer topics below those of a fitted PLSA, as long as they predict held-out documents better.

A level has about twice as many topics as the one above it. A PLSA of the expected counts x P(z|d,w) of a topic splits
it into children; the number of children is proportional to the tokens of the topic. Then all topics are fitted
together: documents are folded in with the new topics, after which a token may belong to a child of another topic, and
EM continues for an iteration or two. Most tokens of a fine topic still belong to one topic of the level above.

Every level is a PLSA with the documents folded in. Held-out documents determine the number of levels: a level is kept
if its topics, fitted without these documents, make the second halves of these documents more probable by more than a
standard error. The levels that are kept are fitted to all documents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyseme.core.fitted import DocumentWeights, posterior_operands
from polyseme.core.shard import sample_documents, sparse_counts
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats, SparseCounts, normalize_rows, row_blocks, single_threaded_blas
from polyseme.selection.cross_validation import document_folds, score_documents
from polyseme.selection.suggestions import MIN_DOCUMENTS, TopicTokens
from polyseme.utils import effective_threads

MAX_TOPICS = 160
"""Largest number of topics of a level. With 6 to 80 topics to start from, the finest level can have 81 or more."""
MIN_TRAINING = 200
"""With fewer documents there are no finer levels: too few of them could be held out."""
_DOCUMENTS_PER_TOPIC = 10
"""Smallest number of documents per topic of a level."""
_FOLDS = 10
"""One of this number of parts of the documents is held out."""
_JOINT_ITERATIONS = 1
"""Iterations of EM with all topics of a level, after the split. With more iterations the topics nest worse and predict
no better (see docs/decisions.md)."""
_FINAL_ITERATIONS = 1
"""Iterations of EM with all documents, from the topics that were fitted without the held-out documents."""
_SPLIT_ITERATIONS, _SPLIT_TOL = 50, 3e-3
"""Limits of the fit of the children of one topic."""
_PARENT_SHARE = 1e-3
"""Weight of the parent in a child at the start of EM, because EM cannot turn a zero into a positive number."""
_NESTING_NONZEROS = 1 << 17
"""Number of non-zeros of the sample of documents that determines the parents of topics."""
Progress = Callable[[int, int, str], Any]


class Level(NamedTuple):
    """A level of topics below another one."""

    model: PLSA
    """The fitted model, with all documents."""
    parents: Array
    """For each topic, the topic of the level above to which the most of its tokens belong."""
    nesting: Floats
    """Share of the tokens of each topic that belong to its parent."""


def make_levels(
    model: PLSA, X: Any, rows: Array, sample: Any, *, random_state: int = 0, progress: Progress | None = None
) -> Iterator[Level]:
    """Yield the levels below a fitted model, the coarsest first; none if no finer level predicts better.

    X : all documents, in memory or as shards.
    rows, sample : indices of some documents, or of all, and their counts in memory. They are used to split topics and
        to compare levels.
    progress : called with (levels done, largest number of levels, description).
    """
    n_documents, n_topics = sample.shape[0], model._fitted.n_topics
    sizes = _sizes(n_topics, n_documents)
    if not sizes:
        return
    fold = document_folds(n_documents, _FOLDS, random_state)[0]
    training, held_out = sample[fold.train], sample[fold.test]
    # The given topics were fitted to all documents: fit them to the training part, so that the comparison is fair.
    before = score_documents(_fit_briefly(model.refitting(training), training, _FINAL_ITERATIONS), held_out)
    above = model
    for n_done, size in enumerate(sizes):
        if progress is not None:
            progress(n_done, len(sizes), f"{size} topics")
        topics = split_topics(above, training, size, rows=rows[fold.train], random_state=random_state)
        if len(topics) == above._fitted.n_topics:
            break
        # a prior on the topics of the model does not apply to other topics
        start = clone(model).set_params(n_components=len(topics), init=(None, topics), topic_word_prior=None)
        fine = _fit_briefly(start, training, _JOINT_ITERATIONS)
        score = score_documents(fine, held_out)
        gain, error = score.gain_over(before)
        if not gain > error:
            break
        level = linked(above, _fit_briefly(fine.refitting(X), X, _FINAL_ITERATIONS), rows, sample)
        yield level
        above, before = level.model, score


def _sizes(n_topics: int, n_documents: int) -> list[int]:
    """Return the numbers of topics of all possible levels."""
    most = min(MAX_TOPICS, n_documents // _DOCUMENTS_PER_TOPIC) if n_documents >= MIN_TRAINING else 0
    sizes = []
    while 2 * n_topics <= most:
        n_topics *= 2
        sizes.append(n_topics)
    return sizes


def split_topics(model: PLSA, X: Any, n_topics: int, *, rows: Array, random_state: int = 0) -> Floats:
    """Return P(w|z) of finer topics, in the order of the topics that they come from.

    X has the counts of the documents `rows` of the model. A topic has at most one child for MIN_DOCUMENTS of its
    documents, so the result may have fewer topics than `n_topics` if there are few documents.
    """
    fitted, documents = model._fitted, model._training
    assert documents is not None
    counts = sparse_counts(X, fitted.topic_word.dtype)
    tokens = TopicTokens(fitted, documents.take(rows), counts, n_threads=effective_threads(model.n_jobs))
    most = np.maximum(tokens.n_documents()[: fitted.n_topics] // MIN_DOCUMENTS, 1)
    topics = []
    for topic, n_children in enumerate(children_in_proportion(fitted.topic_weights, n_topics, most)):
        parent = fitted.topic_word[topic : topic + 1].astype(np.float64)
        if n_children == 1:
            topics.append(parent)
            continue
        topics.append(_children(tokens, topic, int(n_children), parent, model.n_jobs, random_state))
    return normalize_rows(np.concatenate(topics))


def _children(
    tokens: TopicTokens, topic: int, n_children: int, parent: Floats, n_jobs: int | None, random_state: int
) -> Floats:
    """Return P(w|z) of the children of a topic, fitted to its tokens. `parent` is its P(w|z), 1 x words."""
    split = PLSA(n_children, max_iter=_SPLIT_ITERATIONS, tol=_SPLIT_TOL, n_jobs=n_jobs, random_state=random_state)
    children = _fitted(split, tokens.enough(topic).matrix()).components_
    return np.asarray((1 - _PARENT_SHARE) * children + _PARENT_SHARE * parent)


def add_children(
    above: PLSA, level: PLSA, topics: Array, X: Any, rows: Array, corpus: Any, *, random_state: int
) -> PLSA:
    """Return the model of a finer level with children of topics that the level above has got in addition.

    The other topics of the level do not change. A topic gets as many children as the others have on average, if it has
    enough documents.

    above : the level above, with the new topics. topics : the new topics. X, rows : counts of the documents that the
    new topics were fitted to, and their rows. corpus : all documents.
    """
    fitted, documents = above._fitted, above._training
    assert documents is not None
    counts = sparse_counts(X, fitted.topic_word.dtype)
    tokens = TopicTokens(fitted, documents.take(rows), counts, n_threads=effective_threads(above.n_jobs))
    most = np.maximum(tokens.n_documents()[topics] // MIN_DOCUMENTS, 1)
    usual = round(level._fitted.n_topics / (fitted.n_topics - len(topics)))
    added = []
    for topic, limit in zip(topics.tolist(), most.tolist(), strict=True):
        parent, n_children = fitted.topic_word[topic : topic + 1].astype(np.float64), min(usual, limit)
        added.append(
            parent if n_children < 2 else _children(tokens, topic, n_children, parent, above.n_jobs, random_state)
        )
    return level.with_added_topics(np.concatenate(added), corpus)


def children_in_proportion(weights: Floats, n_children: int, most: Array) -> Array:
    """Return the number of children of each topic, `n_children` in total, in proportion to the weights.

    A topic has at least one child and at most `most`. Every further child goes to the topic with the largest weight per
    child, counting half a child more (Webster's method).
    """
    numbers = np.ones(len(weights), dtype=np.intp)
    for _ in range(min(n_children, int(most.sum())) - len(weights)):
        numbers[np.argmax(np.where(numbers < most, weights / (numbers + 0.5), -1))] += 1
    return numbers


def _fit_briefly(estimator: PLSA, X: Any, n_iterations: int) -> PLSA:
    """Fit an estimator by a fixed number of iterations of EM, and return it."""
    return _fitted(estimator.set_params(solver="em", max_iter=n_iterations, tol=0.0, n_init=1), X)


def _fitted(estimator: PLSA, X: Any) -> PLSA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # these fits need not converge
        return estimator.fit(X)


def linked(coarse: PLSA, fine: PLSA, rows: Array, sample: Any) -> Level:
    """Return the level of `fine` below `coarse`, two models of the same documents; `sample` has the counts of `rows`.

    The tokens that topic z of one model and topic z' of the other share are n_zz' = sum x P(z|d,w) P(z'|d,w), where the
    sum is over the tokens of a sample.
    """
    counts = sparse_counts(sample, fine._fitted.topic_word.dtype)
    drawn = sample_documents(counts, _NESTING_NONZEROS)
    counts, rows = counts.take(drawn), rows[drawn]
    shared = _shared_tokens(_posterior(coarse, rows, counts), _posterior(fine, rows, counts), counts)
    parents = shared.argmax(axis=0)
    totals = shared.sum(axis=0)
    return Level(fine, parents, np.divide(shared.max(axis=0), totals, out=np.zeros_like(totals), where=totals > 0))


def _posterior(model: PLSA, rows: Array, counts: SparseCounts) -> tuple[Array, Array, Array]:
    """Return A, B and q with P(z|d,w) = A_dz B_wz / q_dw, for the documents `rows` of the model with these counts."""
    K = model._fitted.n_topics
    assert model._training is not None
    documents = model._training.take(rows)
    weights = DocumentWeights(documents.doc_topic, documents.background, counts)
    operands = model._fitted.inference.operands(weights, model._fitted.topic_word)
    A, B = posterior_operands(operands, model._fitted.inference.temperature)
    q = counts.products(A, B, n_threads=effective_threads(model.n_jobs))
    return A[:, :K], B[:, :K], np.where(q > 0, q, np.inf)


def _shared_tokens(one: tuple[Array, Array, Array], other: tuple[Array, Array, Array], counts: SparseCounts) -> Floats:
    """Return the sum over all tokens of the product of two posteriors (topics of one x topics of the other)."""
    documents = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    (A, B, q), (C, D, r) = one, other
    total = np.zeros((A.shape[1], C.shape[1]))
    with single_threaded_blas():
        for block in row_blocks(documents.size, A.shape[1] + C.shape[1]):
            docs, words = documents[block], counts.indices[block]
            factor = counts.values[block] / (q[block].astype(np.float64) * r[block])
            total += ((A[docs] * B[words]) * factor[:, np.newaxis]).T @ (C[docs] * D[words])
    return total
