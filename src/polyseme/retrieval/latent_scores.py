"""Scores from topics and from singular vectors: a query and a document may match without a word in common.

`TopicSpace` (PLSI-Q): cos(P(z|q), P(z|d)), the query folded in at the beta of the fit; over several models, the mean.
`SingularSpace` (LSI): cos(q V, x_d V), V the leading right singular vectors of the weighted counts.

Both split a score over words. P(z|q) is itself a sum over the query's words, sum_w (q_w / |q|) P(z|q,w), and P(z|d) one
over the document's; q V and x_d V are sums, too. Half of a score is split along the query, half along the document: so
words count that only one of the two contains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.estimators.lsa import LSA
from polyseme.kernels import Array, Floats, SparseCounts, padded, single_threaded_blas
from polyseme.retrieval.queries import Row, own_words
from polyseme.solvers.folding import MAX_STEPS, TOLERANCE

Explainer = Callable[[Row, int], tuple[Array, Array]]
"""(words and counts of a document, its number) -> (words, weights)"""


@dataclass(frozen=True)
class TopicSpace:
    """One or more models of a corpus, side by side: their K columns follow each other."""

    topic_word: Array
    """P(w|z), words x sum of K, float32"""
    documents: Array
    """P(z|d) of each model at length one, sum of K x documents, float32; zero for a document without words.

    By topic, since BLAS multiplies one vector by rows of documents three times as fast as by rows of topics."""
    sizes: tuple[int, ...]
    """K of each model"""
    temperatures: tuple[float, ...]
    topic_weights: Floats
    """P(z) of each model"""
    background_shares: tuple[float, ...]
    """lambda of each model, 0 without a background"""
    background_word: Array
    """P(w|B) of each model, words x models, float32"""

    @classmethod
    def of(cls, models: Sequence[Any], counts: Any) -> TopicSpace:
        """Of fitted estimators such as PLSA, with the documents folded in.

        Queries are folded in with the model's background and temperature, but without its prior on documents: a query
        is not one of the documents, and has few words to stand up to it.
        """
        for model in models:
            if model.components_.shape[1] != counts.shape[1]:
                raise InputError(
                    f"The model knows {model.components_.shape[1]} words, but the index has {counts.shape[1]}: "
                    "both must come from the same vocabulary."
                )
        empty = np.diff(counts.indptr) == 0
        blocks = []
        for model in models:
            block = _unit(np.asarray(model.transform(counts), dtype=np.float32))
            block[empty] = 0
            blocks.append(block)
        return cls(
            np.ascontiguousarray(np.concatenate([model.components_ for model in models]).T, dtype=np.float32),
            np.ascontiguousarray(np.concatenate(blocks, axis=1).T),
            tuple(int(model.components_.shape[0]) for model in models),
            tuple(float(model.temperature_) for model in models),
            np.concatenate([np.asarray(model.topic_weights_, dtype=np.float64) for model in models]),
            tuple(float(getattr(model, "background_weight_", 0.0)) for model in models),
            np.stack([_background_of(model) for model in models], axis=1),
        )

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The columns of each model."""
        ends = np.cumsum(self.sizes)
        return tuple(slice(int(end) - size, int(end)) for end, size in zip(ends, self.sizes, strict=True))

    def only(self, chosen: int) -> TopicSpace:
        """One of the models, alone."""
        block = self.blocks[chosen]
        return TopicSpace(
            self.topic_word[:, block],
            self.documents[block],
            (self.sizes[chosen],),
            (self.temperatures[chosen],),
            self.topic_weights[block],
            (self.background_shares[chosen],),
            self.background_word[:, [chosen]],
        )

    def fold(self, queries: Any) -> Array:
        """P(z|q) of each model (queries x sum of K, float32); zeros for a query without known words."""
        words, compact = own_words(queries)
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
            folded[:, block] = _folded(counts, topic_word[:, block], beta, share, background)
        return folded

    def scores(self, queries: Any) -> Array:
        """Queries x documents."""
        with single_threaded_blas():
            return np.asarray(self._query_vectors(self.fold(queries)) @ self.documents)

    def explainer(self, query: Any) -> Explainer:
        """What gives, for a document, the words of the query and of the document, and what each adds to the score."""
        folded = self.fold(query)
        vector = 0.5 * self._query_vectors(folded)[0]
        query_evidence = self._evidence(query, folded[0])

        def explain(row: Row, document: int) -> tuple[Array, Array]:
            by_topic = vector * self.documents[:, document]
            document_evidence = self._evidence(row, self.weights_of(document))
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([query_evidence @ by_topic, document_evidence @ by_topic])

        return explain

    def weights_of(self, document: int) -> Array:
        """P(z|d) of each model, which sums to one again."""
        row = np.array(self.documents[:, document])
        for block in self.blocks:
            row[block] /= max(row[block].sum(), np.finfo(np.float32).tiny)
        return row

    def _query_vectors(self, folded: Array) -> Array:
        """At length one for each model, divided by the number of models: a product with `documents` is the mean."""
        return np.concatenate([_unit(folded[:, block]) for block in self.blocks], axis=1) / np.float32(len(self.sizes))

    def _evidence(self, row: Any, weights: Array) -> Array:
        """Share of each of the row's words in each topic's weight (words x sum of K): columns sum to one.

        n_w P(z|w) / sum_w n_w P(z|w), with P(z|w) ∝ (P(z) P(w|z))^beta of the row, beside a background if there is one.
        """
        evidence = self.topic_word[row.indices]
        backgrounds = self.background_word[row.indices].T
        settings = zip(self.blocks, self.temperatures, self.background_shares, backgrounds, strict=True)
        for block, beta, share, background in settings:
            joint = (np.float32(1 - share) * weights[block] * evidence[:, block]) ** np.float32(beta)
            total = joint.sum(axis=1) + (np.float32(share) * background) ** np.float32(beta)
            posterior = joint / np.maximum(total, np.finfo(np.float32).tiny)[:, np.newaxis]
            counted = row.data[:, np.newaxis].astype(np.float32) * posterior
            evidence[:, block] = counted / np.maximum(counted.sum(axis=0), np.finfo(np.float32).tiny)
        return evidence


def _background_of(model: Any) -> Array:
    """P(w|B) of a fitted estimator, zeros without one."""
    background = getattr(model, "background_", None)
    return np.asarray(np.zeros(model.components_.shape[1]) if background is None else background, dtype=np.float32)


def _folded(counts: SparseCounts, topic_word: Array, beta: float, share: float, background: Array) -> Array:
    """The rows folded in; topic_word and background hold P(w|z) and P(w|B) of their words alone.

    One row more stands for all other words: the kernel wants to know what the topics give to them.
    """
    n_topics = topic_word.shape[1]
    columns = topic_word if share == 0 else np.column_stack([topic_word, background])
    known = np.asarray(columns.any(axis=1))
    if not known.all():
        counts = counts.with_values(np.where(known[counts.indices], counts.values, 0))
    rest = np.maximum(1 - columns.sum(axis=0, dtype=np.float64), 0)
    operand = np.vstack([columns if beta == 1 else columns**beta, rest])
    folded, _ = counts.fold_in(
        padded(operand, np.float32), n_topics, empty=np.zeros(n_topics), tol=TOLERANCE, max_iter=MAX_STEPS,
        n_threads=1, background=share, temperature=beta,
    )  # fmt: skip
    return folded


_LSA_WEIGHTS = {"tf": "counts", "tfidf": "tf-idf"}


@dataclass(frozen=True)
class SingularSpace:
    """LSI: the leading right singular vectors of the counts, whose columns are multiplied by weights (tf or tfidf)."""

    basis: Floats
    """V, words x K, each row already times its word's weight"""
    documents: Floats
    """x_d V, K x documents"""
    weighting: str

    @classmethod
    def of(cls, counts: Any, weighting: str, n_components: int) -> SingularSpace:
        """The exact decomposition; signs and rotations change no score."""
        if weighting not in _LSA_WEIGHTS:
            raise InputError(f"weighting must be one of {', '.join(map(repr, _LSA_WEIGHTS))}, got {weighting!r}.")
        most = min(counts.shape) - 1
        if not 1 <= n_components <= most:
            raise InputError(f"n_components of LSI must be from 1 to {most} for this corpus, got {n_components!r}.")
        lsa = LSA(n_components, weights=_LSA_WEIGHTS[weighting], dtype="float64").fit(counts)
        basis = np.ascontiguousarray(lsa.components_.T) * lsa.word_weights_[:, np.newaxis]
        basis[np.bincount(counts.indices, minlength=counts.shape[1]) == 0] = 0  # not quite, by rounding
        return cls(basis, np.ascontiguousarray(lsa.doc_vectors_.T), weighting)

    def truncated(self, n_components: int) -> SingularSpace:
        """The first dimensions alone: what fewer components would have given."""
        return SingularSpace(self.basis[:, :n_components], self.documents[:n_components], self.weighting)

    @cached_property
    def _units(self) -> Floats:
        """The documents at length one."""
        return np.ascontiguousarray(_unit(self.documents.T).T)

    def scores(self, queries: Any) -> Floats:
        """Queries x documents."""
        with single_threaded_blas():
            return np.asarray(_unit(queries @ self.basis) @ self._units)

    def explainer(self, query: Any) -> Explainer:
        """As TopicSpace.explainer."""
        tiny = np.finfo(float).tiny
        vector = np.asarray(query @ self.basis)[0]
        length = max(float(np.linalg.norm(vector)), tiny)

        def explain(row: Row, document: int) -> tuple[Array, Array]:
            own = max(float(np.linalg.norm(self.documents[:, document])), tiny)
            along_query = query.data * (self.basis[query.indices] @ self.documents[:, document])
            along_document = row.data * (self.basis[row.indices] @ vector)
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([along_query, along_document]) / (2 * length * own)

        return explain


def _unit(rows: Array) -> Array:
    """Rows of length one; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ik,ik->i", rows, rows))[:, np.newaxis]
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
