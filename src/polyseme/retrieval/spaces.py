"""Latent spaces of a corpus: scores of documents that need not share a word with the query.

The notation is that of `retrieval.terms`.

    PLSI-Q (`TopicSpace`)      cos(P(z|q), P(z|d)), with the query folded in by likelihood at the temperature of the
                               fit; the mean if there are several models
    LSI (`SingularSpace`)      cos(q V, x_d V), with V the leading right singular vectors of the weighted counts

P(z|q) is a sum over the words of the query, sum_w (q_w / |q|) P(z|q,w) with |q| = sum_w q_w, and P(z|d) is such a sum
over the words of the document; q V and x_d V are sums over words as well. To explain a score, one half is distributed
over the words of the query and one half over the words of the document. Words that only one of the two contains
therefore have a contribution, too.

PLSI-U (`SmoothedScores`) is term matching with documents that are smoothed by a model:

    P(w|d) = lambda x_dw / n_d + (1 - lambda) sum_z P(z|d) P(w|z),      score = cos(q g, P(.|d) g)

with word weights g (1 for tf, idf for tfidf). No array of documents x words is needed: with Q = q g^2 the product is
lambda Q . x_d / n_d + (1 - lambda) (Q P(w|z)) . P(z|d), and the squared length of a document is
lambda^2 a_d + 2 lambda (1 - lambda) b_d + (1 - lambda)^2 c_d, where

    a = |x_d g|^2 / n_d^2,   b = sum_w g_w^2 (x_dw / n_d) sum_z P(z|d) P(w|z),   c = P(z|d)' G P(z|d)

and G = P(w|z)' g^2 P(w|z) is K x K. a, b and c are stored, so that lambda can change with each query.

Held-out tokens of the corpus determine the temperature of a fit and when it stops.

The arrays of a stored index are in a mapped file. They are read by rows (`array[words]`) or completely (`array[:]`),
and each access checks what it reads. Only functions that fit models import estimators and scipy; a search does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import (
    FOLD_IN_STEPS,
    FOLD_IN_TOLERANCE,
    Array,
    Floats,
    SparseCounts,
    padded,
    row_blocks,
    single_threaded_blas,
)
from polyseme.retrieval.postings import VectorCodes, typical_table
from polyseme.retrieval.queries import SparseRow, SparseRows, times_dense, used_columns
from polyseme.retrieval.terms import LSA_WEIGHTS, TermScores, inverse, sums_by_row, values_of
from polyseme.utils import check_integer, check_n_jobs, check_range, effective_threads

if TYPE_CHECKING:
    from polyseme.core.fitted import FittedTopics

SIZES = (32, 48, 64, 80, 128)
"""Hofmann's numbers of topics."""

_NUMBERS_AT_ONCE = 1 << 22
_ROUNDING = float(np.sqrt(np.finfo(np.float64).eps))
"""Share of the largest singular value, or of the terms of a sum, up to which a value counts as a rounding error."""
_ROUNDED_COSINE = 1e-6
"""A cosine in float32 of at most this size counts as zero."""

Explainer = Callable[[SparseRow, int], tuple[Array, Array]]
"""Function from the words and counts of a document, and its row, to words and their contributions."""


@dataclass(frozen=True)
class TopicSpace:
    """Topics of one or more models of a corpus. The columns of the models are side by side."""

    topic_word: Array
    """P(w|z) (words x sum of K, float32)."""
    documents: Any
    """P(z|d) of each model, scaled to length one (documents x sum of K, float32); zero for documents without words.

    `UnitRows` if the weights are in a file."""
    sizes: tuple[int, ...]
    """K of each model."""
    temperatures: tuple[float, ...]
    topic_weights: Floats
    """P(z) of each model."""
    background_shares: tuple[float, ...]
    """Share of the background of each model; 0 without a background."""
    background_word: Array
    """P(w|B) of each model (words x models, float32)."""

    @classmethod
    def of(cls, models: Sequence[FittedTopics], doc_topic: Sequence[Array], counts: Any) -> TopicSpace:
        """Construct the space from fitted models and the weights P(z|d) of the rows of `counts` under each of them."""
        empty = np.flatnonzero(np.diff(counts.indptr[:]) == 0)
        parts = [UnitRows(weights, empty)[:] for weights in doc_topic]
        return cls.of_units(models, parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1), counts.shape[1])

    @classmethod
    def of_units(cls, models: Sequence[FittedTopics], documents: Any, n_words: int) -> TopicSpace:
        """Construct the space from fitted models and P(z|d), scaled to length one.

        Queries are folded in by likelihood, with the background and the temperature of a model, but without its prior
        on documents: a query has so few words that the prior would dominate.
        """
        backgrounds = [model.inference.background for model in models]
        return cls(
            np.ascontiguousarray(np.concatenate([model.topic_word for model in models]).T, dtype=np.float32),
            documents,
            tuple(model.n_topics for model in models),
            tuple(float(model.inference.temperature) for model in models),
            np.concatenate([np.asarray(model.topic_weights, dtype=np.float64) for model in models]),
            tuple(0.0 if background is None else background.share for background in backgrounds),
            np.stack(
                [
                    np.zeros(n_words) if background is None else background.word_probabilities
                    for background in backgrounds
                ],
                axis=1,
            ).astype(np.float32),
        )

    @cached_property
    def typical(self) -> Any:
        """The documents with the largest cosine to each topic."""
        return typical_table(self.documents)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Columns of each model."""
        ends = np.cumsum(self.sizes)
        return tuple(slice(int(end) - size, int(end)) for end, size in zip(ends, self.sizes, strict=True))

    def only(self, chosen: int) -> TopicSpace:
        """Return the space of one of the models."""
        if len(self.sizes) == 1:
            return self
        block = self.blocks[chosen]
        return TopicSpace(
            self.topic_word[:, block],
            np.ascontiguousarray(self.documents[:, block]),
            (self.sizes[chosen],),
            (self.temperatures[chosen],),
            self.topic_weights[block],
            (self.background_shares[chosen],),
            self.background_word[:, [chosen]],
        )

    def fold(self, queries: Any) -> Array:
        """Return P(z|q) of each model (queries x sum of K, float32); zeros for a query without known words."""
        words, compact = used_columns(queries)
        topic_word = self.topic_word[words]
        counts = SparseCounts(
            compact.indptr.astype(np.int32),
            compact.indices.astype(np.int32),
            compact.data.astype(np.float32),
            compact.shape[0],
            len(words) + 1,
        )
        folded = np.empty((queries.shape[0], self.topic_word.shape[1]), dtype=np.float32)
        settings = zip(
            self.blocks, self.temperatures, self.background_shares, self.background_word[words].T, strict=True
        )
        for block, beta, share, background in settings:
            folded[:, block] = _fold_in(counts, topic_word[:, block], beta, share, background)
        return folded

    def scores(self, queries: Any) -> Array:
        """Return the scores (queries x documents)."""
        vectors = self._query_vectors(self.fold(queries))
        scores = np.empty((len(vectors), len(self.documents)), dtype=np.float32)
        with single_threaded_blas():
            for rows in row_blocks(len(self.documents), self.documents.shape[1], _NUMBERS_AT_ONCE):
                scores[:, rows] = vectors @ self.documents[rows].T
        return scores

    def explainer(self, query: Any) -> Explainer:
        """Return a function from a document to its words and those of the query, with their contributions."""
        folded = self.fold(query)
        vector = 0.5 * self._query_vectors(folded)[0]
        query_shares = self.word_shares(query, folded[0])

        def explain(row: SparseRow, document: int) -> tuple[Array, Array]:
            by_topic = vector * self.documents[document]
            document_shares = self.word_shares(row, self.weights_of(document))
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([query_shares @ by_topic, document_shares @ by_topic])

        return explain

    def weights_of(self, document: int) -> Array:
        """Return P(z|d) of each model, scaled to add up to one."""
        row = np.array(self.documents[document])
        for block in self.blocks:
            row[block] /= max(row[block].sum(), np.finfo(np.float32).tiny)
        return row

    def _query_vectors(self, folded: Array) -> Array:
        """Return P(z|q) scaled such that the product with `documents` is the mean of the cosines of all models."""
        vectors = np.concatenate([_normalize_rows(folded[:, block]) for block in self.blocks], axis=1)
        return vectors / np.float32(len(self.sizes))

    def word_shares(self, row: Any, weights: Array) -> Array:
        """Return the share of each word of a row in the weight of each topic (words x sum of K).

        The share is n_w P(z|w) / sum_w n_w P(z|w), where n_w are the counts of the row, and P(z|w) is proportional to
        (P(z) P(w|z))^beta with `weights` as P(z). A background is one more topic in P(z|w). Columns add up to one.
        """
        shares = self.topic_word[row.indices]
        backgrounds = self.background_word[row.indices].T
        settings = zip(self.blocks, self.temperatures, self.background_shares, backgrounds, strict=True)
        for block, beta, share, background in settings:
            joint = (np.float32(1 - share) * weights[block] * shares[:, block]) ** np.float32(beta)
            total = joint.sum(axis=1) + (np.float32(share) * background) ** np.float32(beta)
            posterior = joint / np.maximum(total, np.finfo(np.float32).tiny)[:, np.newaxis]
            counted = row.data[:, np.newaxis].astype(np.float32) * posterior
            shares[:, block] = counted / np.maximum(counted.sum(axis=0), np.finfo(np.float32).tiny)
        return shares


class UnitRows:
    """Rows of weights P(z|d), scaled to length one when they are read: the weights may be in a file.

    empty : rows of the documents without words, in increasing order. They are zero.
    """

    def __init__(self, weights: Any, empty: Array) -> None:
        self._weights, self._empty = weights, empty
        self.shape: tuple[int, int] = tuple(weights.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        """Return one row, or the rows of a slice or an array of indices."""
        numbers = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows)
        units = np.empty((numbers.size, self.shape[1]), dtype=np.float32)
        step = max(1, _NUMBERS_AT_ONCE // max(1, self.shape[1]))
        for start in range(0, len(units), step):
            part = slice(start, start + step)
            read = numbers.reshape(-1)[part]
            chosen = slice(read[0], read[-1] + 1) if isinstance(rows, slice) else read
            units[part] = _normalize_rows(np.asarray(self._weights[chosen], dtype=np.float32))
        places = np.searchsorted(self._empty, numbers.reshape(-1))
        inside = np.flatnonzero(places < len(self._empty))
        units[inside[self._empty[places[inside]] == numbers.reshape(-1)[inside]]] = 0
        return units.reshape(*numbers.shape, self.shape[1])


@dataclass(frozen=True)
class SingularSpace:
    """LSI: the leading right singular vectors of the counts with word weights (tf or tfidf)."""

    basis: Any
    """V with each row multiplied by the weight of its word (words x K, float64)."""
    units: Any
    """x_d V, scaled to length one (K x documents, float32).

    Dimensions are rows, because BLAS then multiplies a vector by this matrix three times as fast."""
    lengths: Any
    """|x_d V| (float64)."""
    weighting: str

    @classmethod
    def of(cls, counts: Any, weighting: str, n_components: int) -> SingularSpace:
        """Compute the singular vectors. Their signs and rotations do not change a score."""
        if weighting not in LSA_WEIGHTS:
            raise InputError(f"weighting must be one of {', '.join(map(repr, LSA_WEIGHTS))}, got {weighting!r}.")
        largest = min(counts.shape) - 1
        if not 1 <= n_components <= largest:
            raise InputError(f"n_components of LSI must be from 1 to {largest} for this corpus, got {n_components!r}.")
        from polyseme.estimators.lsa import LSA

        lsa = LSA(n_components, weights=LSA_WEIGHTS[weighting], dtype="float64").fit(counts)
        # The vectors of singular values that are zero up to rounding are arbitrary.
        used = lsa.singular_values_ > _ROUNDING * lsa.singular_values_.max(initial=0)
        basis = np.ascontiguousarray(lsa.components_[used].T) * lsa.word_weights_[:, np.newaxis]
        # rounding leaves tiny values for words that do not occur
        basis[np.bincount(counts.indices, minlength=counts.shape[1]) == 0] = 0
        documents = _without_rounding(lsa.doc_vectors_[:, used], counts, basis)
        return cls.of_vectors(basis, documents, weighting)

    @classmethod
    def of_vectors(cls, basis: Floats, documents: Floats, weighting: str) -> SingularSpace:
        """Construct the space from the vectors x_d V of the documents (documents x K)."""
        lengths = np.sqrt(np.einsum("ik,ik->i", documents, documents))
        return cls(basis, np.ascontiguousarray(_normalize_rows(documents).T, dtype=np.float32), lengths, weighting)

    def truncated(self, n_components: int) -> SingularSpace:
        """Return the space of the first dimensions, which equals one that was fitted with fewer components."""
        documents = (self.units[:n_components] * self.lengths[:]).T
        return SingularSpace.of_vectors(self.basis[:, :n_components], documents, self.weighting)

    def query_vectors(self, queries: Any) -> Array:
        """Return q V, scaled to length one (queries x K, float32)."""
        words, compact = used_columns(queries)
        basis = self.basis[words]
        vectors = _without_rounding(times_dense(compact, basis), compact, basis)
        return _normalize_rows(vectors).astype(np.float32)

    def scores(self, queries: Any) -> Floats:
        """Return the scores (queries x documents)."""
        with single_threaded_blas():
            scores = np.asarray(self.query_vectors(queries) @ self.units[:])
        scores[np.abs(scores) <= _ROUNDED_COSINE] = 0
        return scores

    def nearest(self, vector: Array, k: int, allowed: Any = None) -> tuple[Array, Array]:
        """Return the k documents with the largest positive scores for a query vector, and their scores (float32)."""
        documents, scores = self._codes.nearest(self.units[:], vector, k, allowed)
        hits = scores > _ROUNDED_COSINE
        return documents[hits], scores[hits]

    @cached_property
    def _codes(self) -> VectorCodes:
        """The documents in eight bits."""
        return VectorCodes.of(self.units[:])

    def explainer(self, query: Any) -> Explainer:
        """Return a function from a document to its words and those of the query, with their contributions."""
        tiny = np.finfo(float).tiny
        vector = times_dense(query, self.basis)[0]
        length = max(float(np.linalg.norm(vector)), tiny)

        def explain(row: SparseRow, document: int) -> tuple[Array, Array]:
            document_length = max(float(self.lengths[document]), tiny)
            along_query = query.data * (self.basis[query.indices] @ self.units[:, document])
            along_document = row.data * (self.basis[row.indices] @ vector) / document_length
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([along_query, along_document]) / (2 * length)

        return explain


@dataclass(frozen=True)
class SmoothedScores:
    """PLSI-U: scores with documents smoothed by one model, for one weighting of words."""

    terms: TermScores
    space: TopicSpace
    weighting: str
    squares: Any
    """a, b and c of the squared lengths (3 x documents, float64): see `smoothed_squares`."""

    def parts(self, queries: Any, term_weight: float) -> tuple[Floats, Floats]:
        """Return the latent and the term part of the scores (queries x documents each)."""
        scale, weights = self._scales(term_weight), self._query_weights(queries)
        words, compact = used_columns(queries)
        by_topic = times_dense(replace(compact, data=weights), self.space.topic_word[words].astype(np.float64))
        products = np.empty((len(by_topic), len(scale)), dtype=np.float32)
        with single_threaded_blas():
            for rows in row_blocks(len(scale), by_topic.shape[1], _NUMBERS_AT_ONCE):
                products[:, rows] = by_topic.astype(np.float32) @ _doc_topic(self.space, rows).T
        latent = (1 - term_weight) * scale * products
        counted = self.terms.counted(queries, weights)
        return latent, term_weight * scale * counted / np.maximum(self.terms.totals[:], 1)

    def word_parts(self, query: Any, row: SparseRow, document: int, term_weight: float) -> tuple[Array, Floats]:
        """Return the words of the query and their contributions, whether the document contains them or not."""
        words = query.indices
        smoothed = self.space.topic_word[words] @ _doc_topic(self.space, slice(document, document + 1))[0]
        observed = values_of(row, words) / max(self.terms.totals[document], 1)
        mixed = (1 - term_weight) * smoothed + term_weight * observed
        return words, self._scales(term_weight)[document] * self._query_weights(query) * mixed

    def _scales(self, term_weight: float) -> Floats:
        """Return one over the lengths of the documents."""
        mixture = np.array([term_weight**2, 2 * term_weight * (1 - term_weight), (1 - term_weight) ** 2])
        return inverse(np.sqrt(np.maximum(mixture @ self.squares[:], 0)))

    def _query_weights(self, queries: Any) -> Floats:
        """Return the values of the queries times g^2, divided by the lengths of the queries."""
        weights = self.terms.word_weights(queries.indices, self.weighting)
        norms = np.maximum(np.sqrt(sums_by_row(queries, queries.data**2 * weights**2)), 1e-300)
        return np.asarray(queries.data * weights**2 / np.repeat(norms, np.diff(queries.indptr)))


def smoothed_squares(terms: TermScores, space: TopicSpace, counts: SparseRows, weighting: str) -> Floats:
    """Return a, b and c of the squared lengths of smoothed documents (3 x documents)."""
    totals, c = np.maximum(terms.totals[:], 1), np.zeros(counts.shape[0])
    squared = (terms.word_weights(np.arange(counts.shape[1]), weighting) ** 2)[:, np.newaxis]
    topic_word = np.asarray(space.topic_word[:], dtype=np.float64)
    with single_threaded_blas():
        gram = topic_word.T @ (squared * topic_word)
        for rows in row_blocks(len(c), len(gram), _NUMBERS_AT_ONCE):
            doc_topic = _doc_topic(space, rows)
            c[rows] = np.einsum("dk,dk->d", doc_topic @ gram, doc_topic, dtype=np.float64)
    weighted, b = squared * topic_word, np.zeros(len(totals))
    for rows, block in counts.blocks():
        b[rows] = np.einsum("dk,dk->d", np.asarray(block @ weighted), _doc_topic(space, rows)) / totals[rows]
    a = (terms.lengths(weighting) / totals) ** 2
    return np.stack([a, b, c])


def topic_space(model: Any, counts: SparseRows, doc_topic: Any, *, n_jobs: int | None) -> TopicSpace:
    """Return the space of a fitted model. If `doc_topic`, P(z|d) of the documents, is None, fold in the documents."""
    from polyseme.core.shard import sparse_counts
    from polyseme.metrics.words import fitted_topics

    fitted = fitted_topics(model)
    if fitted is None:
        raise InputError(
            "Search needs a fitted PLSA, NMF, LDA, HierarchicalPLSA or CorrelatedTopicModel, "
            f"got {type(model).__name__}."
        )
    (n_docs, n_words), dtype = counts.shape, fitted.topic_word.dtype
    if fitted.topic_word.shape[1] != n_words:
        raise InputError(
            f"The model has {fitted.topic_word.shape[1]} words, but the index has {n_words}: "
            "both must come from the same vocabulary."
        )
    if doc_topic is None:
        n_threads = effective_threads(check_n_jobs(n_jobs))
        folded = np.empty((n_docs, fitted.n_topics), dtype=dtype)
        for rows, block in counts.blocks():
            check_range("Every count", block.data, dtype)
            folded[rows] = fitted.fold_in(sparse_counts(block, dtype), n_threads=n_threads).doc_topic
        return TopicSpace.of([fitted], [folded], counts)
    weights = np.asanyarray(doc_topic)
    if weights.shape != (n_docs, fitted.n_topics):
        raise InputError(
            f"doc_topic must have a row for each of the {n_docs} documents of the index and a column for each of the "
            f"{fitted.n_topics} topics, got the shape {weights.shape}."
        )
    if weights.dtype.kind not in "fiu" or (weights.size and not (weights.min() >= 0 and weights.max() < np.inf)):
        raise InputError("doc_topic must contain P(z|d) of each document: finite numbers of at least 0.")
    return TopicSpace.of([fitted], [weights], counts)


def fit_topic_space(
    counts: Any, sizes: Sequence[int], *, random_state: int, n_jobs: int | None, verbose: int
) -> TopicSpace:
    """Fit a model for each number of topics, by tempered EM with held-out tokens, and return their space."""
    from polyseme.estimators import PLSA
    from polyseme.solvers import HeldOutTempered

    if not sizes:
        raise InputError("n_components must contain at least one number of topics.")
    checked = [check_integer("n_components", size, least=1) for size in sizes]
    models = [
        PLSA(
            size, solver=HeldOutTempered(patience=10, tries=2), n_jobs=n_jobs,
            dtype="float32", random_state=random_state, verbose=verbose,
        ).fit(counts)
        for size in checked
    ]  # fmt: skip
    return TopicSpace.of([model._fitted for model in models], [model.doc_topic_ for model in models], counts)


def _doc_topic(space: TopicSpace, rows: slice) -> Array:
    """Return P(z|d) of some documents in a space of one model (documents x K, float32)."""
    documents = space.documents[rows]
    return np.asarray(documents / np.maximum(documents.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny))


def _without_rounding(vectors: Floats, counts: Any, basis: Floats) -> Floats:
    """Return products of counts and a basis, with zeros for sums that are zero up to rounding.

    Otherwise a document that shares no direction with a query would be a hit by a rounding error.
    """
    lengths = np.sqrt(np.einsum("wk,wk->w", basis, basis))
    sizes = sums_by_row(counts, counts.data * lengths[counts.indices])
    return np.where(np.abs(vectors) > _ROUNDING * sizes[:, np.newaxis], vectors, 0.0)


def _normalize_rows(rows: Array) -> Array:
    """Scale rows to length one; a row of zeros does not change."""
    lengths = np.sqrt(np.einsum("ik,ik->i", rows, rows))[:, np.newaxis]
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _fold_in(counts: SparseCounts, topic_word: Array, beta: float, share: float, background: Array) -> Array:
    """Return P(z|q) of the rows. `topic_word` and `background` have P(w|z) and P(w|B) only for words of the rows.

    The kernel needs the total probability of all other words by topic, so one more row is added for them.
    """
    n_topics = topic_word.shape[1]
    columns = topic_word if share == 0 else np.column_stack([topic_word, background])
    known = np.asarray(columns.any(axis=1))
    if not known.all():
        counts = counts.with_values(np.where(known[counts.indices], counts.values, 0))
    rest = np.maximum(1 - columns.sum(axis=0, dtype=np.float64), 0)
    operand = np.vstack([columns if beta == 1 else columns**beta, rest])
    folded, _ = counts.fold_in(
        padded(operand, np.float32), n_topics, empty=np.zeros(n_topics), tol=FOLD_IN_TOLERANCE, max_iter=FOLD_IN_STEPS,
        n_threads=1, background=share, temperature=beta,
    )  # fmt: skip
    return folded
